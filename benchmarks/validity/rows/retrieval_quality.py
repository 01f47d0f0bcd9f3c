"""Retrieval quality, on contexts that people judged relevant to the question or not."""

from __future__ import annotations

from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.datasets.labels import Label
from agentunit.engine.validity import score_labelled
from agentunit.metrics.builtin import RetrievalQualityMetric
from benchmarks.validity.baselines import QUESTION_WORDS_IN_CONTEXT
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import LabelledCase, mean_figure, score_sets, set_figure, trust_figures

BACKENDS = ("lexical",)
BASELINES = (QUESTION_WORDS_IN_CONTEXT,)


def measure(data: LabelledData) -> Family:
    """Score the retrieval sets and say what the scores are worth."""
    sets: dict[str, list[LabelledCase]] = {}
    for row in data.rows("rag_triad"):
        sets.setdefault(row["dataset"], []).append(_case(row, row["context"], row["context_relevant"], row["response"]))
    for row in data.rows("retrieval"):
        # Rows without a single judged passage are material for other questions than this one.
        if "relevant" in row:
            sets.setdefault(row["dataset"], []).append(_case(row, [row["passage"]], row["relevant"], None))
    scored = score_sets(sets, [[RetrievalQualityMetric(backend=backend)] for backend in BACKENDS], BASELINES)
    # Metric and baselines are compared on the same sets: those that the metric can score.
    comparable = sorted({name for scorer, rows_of in scored.items() if scorer.kind == "metric" for name in rows_of})
    headline = [
        mean_figure(scorer, {name: rows_of[name] for name in comparable if name in rows_of})
        for scorer, rows_of in scored.items()
    ]
    return Family(
        key="retrieval_quality",
        title="Retrieval quality",
        measured=(
            "People judged whether a retrieved document is relevant to the question (ARES, on product documentation), "
            "or marked the passage that answers it, and the others only look alike (MS MARCO with hard negatives)."
        ),
        can="The lexical backend notices passages that the answer repeats word for word.",
        cannot=(
            "It says nothing about relevance: it looks at the answer, not at the question, and real answers rarely "
            "repeat a whole passage. It is shown as informational and gates nothing unless you name it."
        ),
        baselines=BASELINES,
        headline=headline,
        figures=[
            set_figure(scorer, name, rows_of[name]) for scorer, rows_of in scored.items() for name in sorted(rows_of)
        ],
        trust=trust_figures(headline),
        remarks=_unscored_sets(sets),
    )


def _case(row: dict[str, Any], context: list[str], relevant: Any, response: str | None) -> LabelledCase:
    case = DatasetCase(row["id"], row["question"], context=context)
    return Record(case, outcome=response), Label(float(bool(relevant)), row.get("group") or row["question"])


def _unscored_sets(sets: dict[str, list[LabelledCase]]) -> list[str]:
    """What the metric itself says about sets that it cannot score."""
    metric = RetrievalQualityMetric(backend="lexical")
    return [
        f"`{name}`: {entry.n_cases} of {len(sets[name])} rows were not scored ({entry.reason}). A backend that judges "
        "a passage by the question alone could be measured on them."
        for name in sorted(sets)
        for entry in score_labelled(sets[name], [metric]).summary.unscored
    ]
