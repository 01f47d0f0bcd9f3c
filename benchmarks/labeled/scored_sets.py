"""The labeled sets with the scores of our metrics and of plain baselines, computed once and kept outside git."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.addons.review.labeling.label_files import Label
from agentunit.addons.review.labeling.scorer_agreement import score_labeled
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.metrics.builtin import AnswerCorrectnessMetric, FaithfulnessMetric, RetrievalQualityMetric
from agentunit.multimodal.metrics import ImageCaptionAccuracyMetric
from agentunit.privacy.metrics import DataMinimizationMetric
from benchmarks.validity.baselines import (
    ANSWER_WORDS_IN_CONTEXT,
    CONTAINMENT,
    QUESTION_WORDS_IN_CONTEXT,
    TOKEN_F1,
    Baseline,
)
from benchmarks.validity.data import LabelledData
from benchmarks.validity.measure import LabelledCase
from benchmarks.validity.progress import tell
from benchmarks.validity.rows import data_minimization, faithfulness, retrieval_quality
from benchmarks.validity.sampling import sampled

# Fewer rows are no population that 30 labels could be drawn from; more would say no more about an interval.
FEWEST_ROWS, MOST_ROWS = 60, 5000
# A model reads a handful of cases a second.
MOST_MODEL_ROWS = 250


class Row(Struct, frozen=True, array_like=True):
    """A person's label of a case, from 0 to 1, a score of it, and the source that it shares with other cases."""

    label: float
    score: float
    group: str


class ScoredSet(Struct, frozen=True):
    """One set with the scores of one scorer; rows that the scorer could not score are left out."""

    name: str
    scorer: str
    rows: list[Row]

    @property
    def rate(self) -> float:
        """What people say about all rows."""
        return sum(row.label for row in self.rows) / len(self.rows)

    @property
    def mean_score(self) -> float:
        """What the scorer says about them."""
        return sum(row.score for row in self.rows) / len(self.rows)


Scorer = Callable[[Sequence[LabelledCase]], list[Row]]


def by_metric(metric: Any) -> Scorer:
    """The scores that a user of the metric would get."""

    def rows(cases: Sequence[LabelledCase]) -> list[Row]:
        found = score_labeled(cases, [metric]).rows.values()
        return [Row(each.label, each.value, str(each.group)) for rows in found for each in rows]

    return rows


def by_baseline(baseline: Baseline) -> Scorer:
    """The scores of a few lines of code."""

    def rows(cases: Sequence[LabelledCase]) -> list[Row]:
        scored = [(label, baseline.score(record)) for record, label in cases]
        return [Row(label.value, score, str(label.group)) for label, score in scored if score is not None]

    return rows


FAITHFULNESS = {
    "content-token precision": by_baseline(ANSWER_WORDS_IN_CONTEXT),
    "faithfulness (local)": by_metric(FaithfulnessMetric(backend="local")),
}
CORRECTNESS = {
    "containment": by_baseline(CONTAINMENT),
    "token F1": by_baseline(TOKEN_F1),
    "answer_correctness (local)": by_metric(AnswerCorrectnessMetric(backend="local")),
}
RETRIEVAL = {
    "question words in context": by_baseline(QUESTION_WORDS_IN_CONTEXT),
    "retrieval_quality (local)": by_metric(RetrievalQualityMetric(backend="local")),
}
CAPTIONS = {"image_caption_accuracy (keywords)": by_metric(ImageCaptionAccuracyMetric(use_semantic=False))}
MINIMIZATION = {"data_minimization (values)": by_metric(DataMinimizationMetric())}


def labelled_sets(data: LabelledData) -> Iterator[tuple[str, list[LabelledCase], Mapping[str, Scorer]]]:
    """Every set with labels of a case, and what scores it."""
    for name, cases in _by_dataset(data.rows("faithfulness"), faithfulness.labeled_case).items():
        yield name, cases, FAITHFULNESS
    for name, cases in _by_dataset(data.rows("answer_correctness"), _answer).items():
        yield name, cases, CORRECTNESS
    for name, cases in retrieval_quality._sets(data).items():
        yield name, cases, RETRIEVAL
    yield "thumb", [_caption(row) for row in data.rows("caption_thumb")], CAPTIONS
    for name, cases in data_minimization.sets_of(data).items():
        yield name, cases, MINIMIZATION


def scored_sets(data: LabelledData, cache: Path) -> Iterator[ScoredSet]:
    """Every set with every scorer's scores; what is in the cache is not computed again."""
    for name, cases, scorers in labelled_sets(data):
        if len(cases) < FEWEST_ROWS:
            continue
        for scorer, score in scorers.items():
            most_rows = MOST_MODEL_ROWS if "(local)" in scorer else MOST_ROWS
            path = cache / f"{_file_name(name)}.{_file_name(scorer)}.{most_rows}.json"
            if path.is_file():
                found = msgspec.json.decode(path.read_bytes(), type=ScoredSet)
            else:
                tell(f"{name}, {scorer} …")
                found = ScoredSet(name, scorer, score(sampled(cases, most_rows)))
                cache.mkdir(parents=True, exist_ok=True)
                path.write_bytes(msgspec.json.encode(found))
            if len(found.rows) >= FEWEST_ROWS:
                yield found


def _by_dataset(
    rows: Sequence[dict[str, Any]], case: Callable[[dict[str, Any]], LabelledCase]
) -> dict[str, list[LabelledCase]]:
    sets: dict[str, list[LabelledCase]] = {}
    for row in rows:
        sets.setdefault(row["dataset"], []).append(case(row))
    return sets


def _answer(row: dict[str, Any]) -> LabelledCase:
    case = DatasetCase(row["id"], row["question"], expected_output=row["expected"])
    return Record(case, outcome=row["answer"]), Label(float(row["correct"]), row["question"])


def _caption(row: dict[str, Any]) -> LabelledCase:
    case = DatasetCase(row["id"], "Describe the image.", expected_output=row["refs"])
    # People graded from 1 to 5; a rate is of values from 0 to 1.
    return Record(case, outcome=row["caption"]), Label((row["human_score"] - 1.0) / 4.0, row["image"])


def _file_name(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text)
