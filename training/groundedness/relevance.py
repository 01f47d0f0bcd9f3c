"""Fits how signals of relevance are put together: ``python -m training.groundedness.relevance DATA CALIBRATION``.

``CALIBRATION`` is the file of numbers that ships with the weights; what it says of relevance is written anew.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from agentunit_local.grounding.claims import claims_of
from agentunit_local.grounding.relevance import Answer, relevance_signals
from agentunit_local.sentences import shipped_encoder
from agentunit_local.steps import answered
from sklearn.linear_model import LogisticRegression

from training.groundedness.groups import rows_of


def fit_relevance(data: Path, *, answered_by: bool) -> dict[str, float]:
    """Weights of the signals of relevance: by the question alone on ARES and QNLI rows, with an answer on ARES.

    Each set counts alike, and in it each label does. Fitted is on whole answers, though passages are then judged by the claim that
    they fit best: fitted on that claim, passages of ARES were told apart less well (0.85 instead of 0.86, by tenths left out).
    """
    rows: list[tuple[str, str, str, list[str], int]] = [
        ("ares", row["question"], row["response"], row["context"], int(row["context_relevant"]))
        for row in rows_of(data / "dev/rag_triad.jsonl.gz")
    ]
    for row in [] if answered_by else list(rows_of(data / "train/qnli_dev.jsonl.gz"))[:200]:
        question = row["hypothesis"].partition("question: ")[2]
        rows.append(("qnli", question, "", [row["premise"]], int(row["label"] == "entailment")))
    encoder = shipped_encoder()
    names = ("part", "words", "answer", "answer_words") if answered_by else ("whole", "part", "words")
    inputs, labels, kinds = [], [], []
    for kind, question, response, passages, label in rows:
        whole = Answer.of(" ".join(claim.text for claim in claims_of(response, question)), question)
        if answered_by and whole is None:
            continue
        answers = [whole] if answered_by and whole is not None else []
        all_signals = answered(relevance_signals(question, answers, passages), encoder.encode)
        found = [signals[0] for signals in all_signals if signals]
        inputs.append([float(np.mean([signals[name] for signals in found])) for name in names])
        labels.append(label)
        kinds.append((kind, label))
    sizes = Counter(kinds)
    weights = np.array([1 / sizes[each] for each in kinds])
    model = LogisticRegression(C=1.0).fit(
        np.array(inputs), labels, sample_weight=weights * len(weights) / weights.sum()
    )
    fitted = {name: round(float(value), 5) for name, value in zip(names, model.coef_[0], strict=True)}
    return {**fitted, "intercept": round(float(model.intercept_[0]), 5)}


def main(data: Path, calibration: Path) -> None:
    """Fit and write."""
    known = json.loads(calibration.read_text(encoding="utf-8"))
    known["relevance"] = fit_relevance(data, answered_by=False)
    known["answered_relevance"] = fit_relevance(data, answered_by=True)
    calibration.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: known[name] for name in ("relevance", "answered_relevance")}))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
