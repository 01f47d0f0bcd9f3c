"""Fits how the signals are put together: ``python -m training.groundedness.calibrate DATA SCORES OUT MEASURED``.

``SCORES`` are what a model trained without fold 0 gave the development rows (``scores.jsonl`` of the training). Only rows of
fold 0 of the sets that may train shipped weights are fitted on; the others are not looked at here. The parts are centred
and scaled by what they are on those rows. ``OUT`` gets the fitted numbers, ``MEASURED`` what the left-out rows say of them.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from agentunit_local.answer_matching import correctness, match_features
from agentunit_local.grounding.claims import claims_of
from agentunit_local.grounding.cross_encoder import LARGEST_LOGIT, PairScore
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.lexical import FEATURES, lexical_features
from agentunit_local.grounding.relevance import relevance_signals
from agentunit_local.grounding.support import Mix, is_copied
from agentunit_local.sentences import shipped_encoder
from sklearn.linear_model import LogisticRegression

from training.groundedness.agreement import auroc
from training.groundedness.examples import rows_of

# Chosen by hand on the development sets: weights fitted freely on few kinds of data did worse on the other kinds.
WEIGHTS = {"logit": 1.5, "token": 0.3, "words": 1.1, "facts": 0.5}
_FITTED_ON = ("frank_", "summedits_", "wice", "begin_")
_RESAMPLES = 500


def read_scores(path: Path) -> dict[str, dict[str, Any]]:
    """The scores of a training, by the key of the row."""
    with gzip.open(path, "rt") as file:
        return {row["key"]: row for row in map(json.loads, file)}


def faithfulness_parts(data: Path, scores: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of each claim of the rows of fold 0."""
    rows = []
    for row in rows_of(data / "dev" / "faithfulness.jsonl.gz"):
        scored = scores[str(row["id"])]
        if scored["fold"] != 0 or row.get("hallucinated") is None:
            continue
        context = Context(row["context"])
        pairs, features = [], []
        claims = claims_of(row["response"], row.get("question"))
        for claim, logit, worst in zip(claims, scored["claims"], scored["worst"], strict=False):
            bounded = min(max(worst, 1e-4), 1 - 1e-4)
            score = PairScore(max(-LARGEST_LOGIT, min(LARGEST_LOGIT, logit)), float(np.log(bounded / (1 - bounded))))
            pairs.append(PairScore(LARGEST_LOGIT, -LARGEST_LOGIT) if is_copied(claim.text, context) else score)
            features.append(lexical_features(claim.text, context))
        if pairs:
            rows.append(
                {"kind": row["dataset"], "label": int(not row["hallucinated"]), "pairs": pairs, "features": features}
            )
    return rows


def fit_faithfulness(rows: list[dict[str, Any]]) -> Mix:
    """Centres, scales, and the slope and intercept that make probabilities of scores."""
    fitted = [row for row in rows if row["kind"].startswith(_FITTED_ON)]
    raw: dict[str, list[float]] = defaultdict(list)
    for row in fitted:
        for pair, features in zip(row["pairs"], row["features"], strict=True):
            known = dict(zip(FEATURES, features, strict=True))
            raw["logit"].append(pair.logit)
            raw["token"].append(-pair.worst_logit)
            raw["words"].append(
                (known["content_precision"] + known["trigram_precision"] + known["best_sentence_coverage"]) / 3
            )
            raw["facts"].append((known["number_precision"] + known["name_precision"]) / 2)
    centres = {name: round(float(np.mean(values)), 5) for name, values in raw.items()}
    scales = {name: round(float(np.std(values)), 5) for name, values in raw.items()}
    plain = Mix(centres, scales, WEIGHTS, 1.0, 0.0)
    scores = np.array([score_of(plain, row) for row in fitted])
    labels = np.array([row["label"] for row in fitted])
    sizes = Counter((row["kind"], row["label"]) for row in fitted)
    # Each set counts alike, and in it supported and unsupported answers do: the threshold 0.5 then balances both errors.
    weights = np.array([1 / max(8, sizes[row["kind"], row["label"]]) for row in fitted])
    model = LogisticRegression(C=100.0).fit(
        scores[:, None], labels, sample_weight=weights * len(weights) / weights.sum()
    )
    return Mix(centres, scales, WEIGHTS, round(float(model.coef_[0, 0]), 5), round(float(model.intercept_[0]), 5))


def score_of(mix: Mix, row: dict[str, Any]) -> float:
    """The score of an answer."""
    return mix.answer_score(
        [mix.model_part(pair) for pair in row["pairs"]], [mix.compared_part(each) for each in row["features"]]
    )


def fit_correctness(data: Path, scores: dict[str, dict[str, Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """Weights of matching and model, and the agreement of rows that neither half of the fit has seen."""
    rows = [row for row in rows_of(data / "dev/answer_correctness.jsonl.gz") if scores[str(row["id"])]["fold"] == 0]
    matched = np.array([correctness(match_features(r["question"], r["expected"], r["answer"])) for r in rows])
    bounded = matched.clip(1e-4, 1 - 1e-4)
    logits = np.array([scores[str(row["id"])]["claims"][0] for row in rows]).clip(-LARGEST_LOGIT, LARGEST_LOGIT)
    inputs = np.stack([np.log(bounded / (1 - bounded)), logits], axis=1)
    labels = np.array([bool(row["correct"]) for row in rows])
    halves = np.array([len(row["question"]) % 2 for row in rows])
    agree = np.zeros(len(rows), bool)
    for half in (0, 1):
        part = LogisticRegression(C=10.0).fit(inputs[halves != half], labels[halves != half])
        agree[halves == half] = part.predict(inputs[halves == half]) == labels[halves == half]
    model = LogisticRegression(C=10.0).fit(inputs, labels)
    weights = {
        "matched": round(float(model.coef_[0, 0]), 5),
        "model": round(float(model.coef_[0, 1]), 5),
        "intercept": round(float(model.intercept_[0]), 5),
    }
    low, high = _interval(lambda chosen: float(agree[chosen].mean()), len(agree))
    return weights, {
        "n": len(rows),
        "agreement": round(float(agree.mean()), 4),
        "agreement_low": low,
        "agreement_high": high,
    }


def fit_relevance(data: Path) -> dict[str, float]:
    """Weights of the signals of relevance, on ARES and QNLI rows, each set counting alike."""
    rows = [
        ("ares", row["question"], row["context"], int(row["context_relevant"]))
        for row in rows_of(data / "dev/rag_triad.jsonl.gz")
    ]
    for row in list(rows_of(data / "train/qnli_dev.jsonl.gz"))[:200]:
        question = row["hypothesis"].partition("question: ")[2]
        rows.append(("qnli", question, [row["premise"]], int(row["label"] == "entailment")))
    encoder = shipped_encoder()
    inputs, labels = [], []
    for _, question, passages, label in rows:
        found = [relevance_signals(question, each, Context([each]), encoder) for each in passages if each.strip()]
        inputs.append([float(np.mean([signals[name] for signals in found])) for name in ("whole", "part", "words")])
        labels.append(label)
    sizes = Counter((kind, label) for kind, _, _, label in rows)
    weights = np.array([1 / sizes[kind, label] for kind, _, _, label in rows])
    model = LogisticRegression(C=1.0).fit(
        np.array(inputs), labels, sample_weight=weights * len(weights) / weights.sum()
    )
    names = ("whole", "part", "words")
    fitted = {name: round(float(value), 5) for name, value in zip(names, model.coef_[0], strict=True)}
    return {**fitted, "intercept": round(float(model.intercept_[0]), 5)}


def measured(rows: list[dict[str, Any]], mix: Mix) -> dict[str, dict[str, Any]]:
    """AUROC and balanced accuracy at 0.5 of the left-out rows of each set."""
    found = {}
    for kind in sorted({row["kind"] for row in rows}):
        some = [row for row in rows if row["kind"] == kind]
        labels = np.array([row["label"] for row in some])
        values = np.array([mix.probability(score_of(mix, row)) for row in some])

        def area(chosen: np.ndarray, labels: np.ndarray = labels, values: np.ndarray = values) -> float:
            return auroc(labels[chosen], values[chosen])

        low, high = _interval(area, len(some), labels)
        right = [float(((values > 0.5) == label)[labels == label].mean()) for label in (0, 1)]
        found[kind] = {
            "n": len(some), "auroc": round(auroc(labels, values), 4), "auroc_low": low, "auroc_high": high,
            "balanced_accuracy": round(sum(right) / 2, 4),
        }  # fmt: skip
    return found


def _interval(statistic: Any, n: int, labels: np.ndarray | None = None) -> tuple[float, float]:
    rng = np.random.default_rng(7)
    values = []
    while len(values) < _RESAMPLES:
        chosen = rng.integers(0, n, n)
        if labels is None or 0 < labels[chosen].sum() < n:
            values.append(statistic(chosen))
    return round(float(np.quantile(values, 0.025)), 4), round(float(np.quantile(values, 0.975)), 4)


def main(data: Path, scores_file: Path, out: Path, report: Path) -> None:
    """Fit all three, write them and what was measured."""
    scores = read_scores(scores_file)
    rows = faithfulness_parts(data, scores)
    mix = fit_faithfulness(rows)
    weights, agreement = fit_correctness(data, scores)
    fitted = {
        "faithfulness": {
            "centres": mix.centres, "scales": mix.scales, "weights": mix.weights, "slope": mix.slope, "intercept": mix.intercept,
        },
        "correctness": weights,
        "relevance": fit_relevance(data),
    }  # fmt: skip
    out.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
    figures = {"datasets": {**measured(rows, mix), "evouna_NQ": agreement}}
    report.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({**fitted, **figures}, indent=1))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
