"""Fits how signals of relevance are put together: ``python -m training.groundedness.relevance DATA CALIBRATION``.

``CALIBRATION`` is the file of numbers that ships with the weights; what it says of relevance is replaced.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from agentunit_local.grounding.claims import claims_of
from agentunit_local.grounding.relevance import Answer, relevance_signals
from agentunit_local.sentences import shipped_encoder
from agentunit_local.steps import answered
from sklearn.linear_model import LogisticRegression

from training.groundedness.groups import rows_of

_QNLI_ROWS = 200
# RGB labels passages by the words of the answer. It teaches that a passage that holds all of it helps, and would teach nothing else if it counted more:
# passages of ARES, by tenths left out, are told apart by 0.864 without RGB, by 0.852 with this share, and by 0.834 with the whole.
_RGB_SHARE = 0.3


class Judged(NamedTuple):
    """Passages that people, or a rule of the set, called relevant to a question or not, and the answer if there is one."""

    kind: str
    question: str
    answer: str
    passages: list[str]
    relevant: int


def judged_by_the_question(data: Path) -> Iterator[Judged]:
    """Rows of four kinds. In two of them (RGB, MS MARCO) passages without the answer are on the topic all the same."""
    for row in rows_of(data / "dev/rag_triad.jsonl.gz"):
        yield Judged("ares", row["question"], "", row["context"], int(row["context_relevant"]))
    for row in list(rows_of(data / "train/qnli_dev.jsonl.gz"))[:_QNLI_ROWS]:
        question = row["hypothesis"].partition("question: ")[2]
        yield Judged("qnli", question, "", [row["premise"]], int(row["label"] == "entailment"))
    for row in rows_of(data / "dev/retrieval.jsonl.gz"):
        if "relevant" in row:
            yield Judged(row["dataset"], row["question"], "", [row["passage"]], int(row["relevant"]))
        else:
            for label in ("positive", "negative"):
                for passage in row[label]:
                    yield Judged(row["dataset"], row["question"], "", [passage], int(label == "positive"))


def judged_by_the_answer(data: Path) -> Iterator[Judged]:
    """Rows of ARES and RGB."""
    for row in rows_of(data / "dev/rag_triad.jsonl.gz"):
        yield Judged("ares", row["question"], row["response"], row["context"], int(row["context_relevant"]))
    for row in rows_of(data / "dev/retrieval.jsonl.gz"):
        for label in ("positive", "negative") if "relevant" not in row else ():
            for passage in row[label]:
                yield Judged("rgb", row["question"], _first(row["answer"]), [passage], int(label == "positive"))


def _first(answer: Any) -> str:
    """The first way of writing an answer that may be written in several."""
    return answer if isinstance(answer, str) else _first(answer[0])


def fit_relevance(
    rows: Iterable[Judged], names: Sequence[str], shares: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Weights of the named signals. Each kind counts alike, unless ``shares`` has another share for it, and in it each label does.

    Whole answers are used, though passages are then judged by the claim that they fit best: with that claim, passages of ARES were
    told apart less well (0.85 instead of 0.86, by tenths left out).
    """
    encoder = shipped_encoder()
    inputs, labels, kinds = [], [], []
    for row in rows:
        claims = " ".join(claim.text for claim in claims_of(row.answer, row.question))
        answer = Answer.of(claims, row.question)
        if row.answer and answer is None:
            continue
        answers = [] if answer is None else [answer]
        all_signals = answered(relevance_signals(row.question, answers, row.passages), encoder.encode)
        found = [signals[0] for signals in all_signals if signals]
        if found:
            inputs.append([float(np.mean([signals[name] for signals in found])) for name in names])
            labels.append(row.relevant)
            kinds.append((row.kind, row.relevant))
    sizes = Counter(kinds)
    weights = np.array([(shares or {}).get(each[0], 1.0) / sizes[each] for each in kinds])
    model = LogisticRegression(C=1.0).fit(
        np.array(inputs), labels, sample_weight=weights * len(weights) / weights.sum()
    )
    fitted = {name: round(float(value), 5) for name, value in zip(names, model.coef_[0], strict=True)}
    return {**fitted, "intercept": round(float(model.intercept_[0]), 5)}


def main(data: Path, calibration: Path) -> None:
    """Fit and write."""
    known = json.loads(calibration.read_text(encoding="utf-8"))
    known["relevance"] = fit_relevance(judged_by_the_question(data), ("whole", "part", "words"))
    known["answered_relevance"] = fit_relevance(
        judged_by_the_answer(data), ("part", "words", "answer", "answer_words"), {"rgb": _RGB_SHARE}
    )
    calibration.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: known[name] for name in ("relevance", "answered_relevance")}))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
