"""How far mean scores are from true rates, measured on the sets of this benchmark for docs/validity.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentunit.metrics.builtin import AnswerCorrectnessMetric, FaithfulnessMetric, RetrievalQualityMetric
from benchmarks.labeled.scored_sets import (
    CORRECTNESS,
    FAITHFULNESS,
    FEWEST_ROWS,
    MOST_ROWS,
    RETRIEVAL,
    ScoredSet,
    by_metric,
    labelled_sets,
)
from benchmarks.validity.bias import Bias
from benchmarks.validity.data import LabelledData
from benchmarks.validity.sampling import sampled

_LEXICAL = (
    ("faithfulness", FAITHFULNESS, FaithfulnessMetric),
    ("answer_correctness", CORRECTNESS, AnswerCorrectnessMetric),
    ("retrieval_quality", RETRIEVAL, RetrievalQualityMetric),
)

# Grades on a scale of their own, of which a score is no estimate.
_GRADED = frozenset({"thumb"})


def measured_biases(data: LabelledData, scored: Iterable[ScoredSet]) -> Iterator[Bias]:
    """The bias of every metric on every set, and of the lexical fallback beside it."""
    for each in scored:
        metric, _, backend = each.scorer.partition(" (")
        if backend.endswith(")") and each.name not in _GRADED:
            yield _bias(metric, backend.rstrip(")"), each)
    for name, cases, scorers in labelled_sets(data):
        for metric, kind, made in _LEXICAL:
            if scorers is kind and len(cases) >= FEWEST_ROWS:
                rows = by_metric(made(backend="lexical"))(sampled(cases, MOST_ROWS))
                if len(rows) >= FEWEST_ROWS:
                    yield _bias(metric, "lexical", ScoredSet(name, metric, rows))


def _bias(metric: str, backend: str, scored: ScoredSet) -> Bias:
    return Bias(metric, backend, scored.name, len(scored.rows), round(scored.mean_score, 4), round(scored.rate, 4))
