"""Fits how the signals are put together: ``python -m training.groundedness.calibrate DATA SCORES OUT MEASURED``.

``SCORES`` is what a model trained without fold 0 gave the development rows (``scores.jsonl.gz`` of the training), or a
``.sqlite`` file in which the words of the shipped weights are kept (it is made where it is absent; 25 minutes of one core).
The shipped weights have seen the rows of sets that may train them, so only probabilities and thresholds of faithfulness are
fitted anew then, with the slope corrected for that. ``OUT`` gets the fitted numbers, ``MEASURED`` what every set says when
it is left out of the fit.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from agentunit_local.answer_matching import correctness, match_features
from agentunit_local.grounding.calibration import shipped_calibration
from agentunit_local.grounding.cross_encoder import LARGEST_LOGIT
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.relevance import relevance_signals
from agentunit_local.sentences import shipped_encoder
from agentunit_local.steps import answered
from sklearn.linear_model import LogisticRegression

from training.groundedness.examples import rows_of
from training.groundedness.fit import fit_probabilities, fit_thresholds, left_out, scaled_mix
from training.groundedness.scored import scored_by_shipped, scored_by_training

SEEN_ROWS_SLOPE = 0.47
"""How sure the shipped weights may be, by how sure they are of rows that trained them.

Fitted on rows left out of training, the slope was 0.412; by the same fit it is 0.878 on rows that were not left out.
"""
_RESAMPLES = 500


def fit_faithfulness(data: Path, scores_file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The numbers of faithfulness, and what every set says when it is left out."""
    if scores_file.suffix == ".sqlite":
        rows = list(scored_by_shipped(data, scores_file))
        mix, memory = replace(shipped_calibration().faithfulness, slope=1.0, intercept=0.0), SEEN_ROWS_SLOPE
    else:
        rows = list(scored_by_training(data, scores_file))
        mix, memory = scaled_mix(rows), 1.0
    fitted = fit_probabilities([row for row in rows if not row.graded], mix, memory)
    fitted = replace(fitted, thresholds=fit_thresholds(rows, fitted))
    return asdict(fitted), left_out(rows, mix, memory)


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
        steps = [relevance_signals(question, each, Context([each])) for each in passages if each.strip()]
        found = [answered(each, encoder.encode) for each in steps]
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


def _interval(statistic: Any, n: int, labels: np.ndarray | None = None) -> tuple[float, float]:
    rng = np.random.default_rng(7)
    values = []
    while len(values) < _RESAMPLES:
        chosen = rng.integers(0, n, n)
        if labels is None or 0 < labels[chosen].sum() < n:
            values.append(statistic(chosen))
    return round(float(np.quantile(values, 0.025)), 4), round(float(np.quantile(values, 0.975)), 4)


def main(data: Path, scores_file: Path, out: Path, report: Path) -> None:
    """Fit, write the numbers and what was measured."""
    mix, measured = fit_faithfulness(data, scores_file)
    fitted: dict[str, Any] = {"faithfulness": mix}
    if scores_file.suffix == ".sqlite":
        fitted |= {name: json.loads(out.read_text(encoding="utf-8"))[name] for name in ("correctness", "relevance")}
    else:
        with gzip.open(scores_file, "rt") as file:
            scores = {row["key"]: row for row in map(json.loads, file)}
        fitted["correctness"], measured["datasets"]["evouna_NQ"] = fit_correctness(data, scores)
        fitted["relevance"] = fit_relevance(data)
    out.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
    report.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({**fitted, **measured}, indent=1))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
