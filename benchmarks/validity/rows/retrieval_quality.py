"""Retrieval quality, on contexts that people judged relevant to the question or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentunit.addons.review.labeling.label_files import Label
from agentunit.addons.review.labeling.scorer_agreement import score_labeled
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.core.trace import TraceLog
from agentunit.metrics.builtin import RetrievalQualityMetric
from benchmarks.validity.baselines import ANSWER_WORDS_IN_CONTEXT, QUESTION_WORDS_IN_CONTEXT
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import Figure, LabelledCase, headline_means, score_sets, trust_figures
from benchmarks.validity.quality_backends import Sets, beyond_lexical
from benchmarks.validity.quality_figures import mean_aurocs, relevance_figures, score_slowly
from benchmarks.validity.sampling import sampled

KEY = "retrieval_quality"
BASELINES = (QUESTION_WORDS_IN_CONTEXT, ANSWER_WORDS_IN_CONTEXT)
OUTSIDE_MEAN = {
    "rgb_en_fact": "a passage counts as relevant when the answer's words are in it, not because people said so"
}
MOST_ROWS = 200

CAN = {
    "lexical": "The lexical backend notices passages that the answer repeats word for word.",
    "local": (
        "The local model compares the question and the answer (the expected one, if a case has it) with each passage, "
        "and ranks passages first that hold the answer."
    ),
}
CANNOT = {
    "lexical": (
        "The lexical backend says nothing about relevance: it looks at the answer, not at the question, and real "
        "answers rarely repeat a whole passage. It is informational."
    ),
    "local": (
        "Without an answer, a passage that is on the topic may score as well as one that helps. A wrong answer of the"
        " agent makes the passage that it came from look useful. The sets are small and of three kinds, and weights "
        "were fitted on them."
    ),
}


def measure(data: LabelledData) -> Family:
    """Score the retrieval sets and say what the scores are worth."""
    sets = _sets(data)

    def sets_for(_: str) -> Sets:
        return {name: sampled(cases, MOST_ROWS, whole_groups=True) for name, cases in sorted(sets.items())}

    def figures_of(backend: str, samples: Sets) -> list[Figure]:
        scored = score_slowly(backend, samples, RetrievalQualityMetric)
        names = _in_mean({name for rows_of in scored.values() for name in rows_of})
        means = mean_aurocs(scored, names, _mean_of(names)) if len(names) > 1 else []
        return [*relevance_figures(scored), *means]

    scored = score_sets(sets, [[RetrievalQualityMetric(backend="lexical")]], BASELINES)
    figures, headline = relevance_figures(scored), headline_means(scored, _in_mean(sets))
    slow = beyond_lexical(KEY, KEY, sets_for, figures_of, use_recorded=data.use_recorded)
    for found in slow.figures.values():
        names = _in_mean({figure.dataset for figure in found} & set(sets))
        figures += [figure for figure in found if figure.dataset in sets]
        if names and _mean_of(names) not in {figure.dataset for figure in headline}:
            plain = {scorer: rows_of for scorer, rows_of in scored.items() if scorer.kind == "baseline"}
            headline += mean_aurocs(plain, names, _mean_of(names))
        headline += [each for each in found if each.statistic == "AUROC" and names and each.dataset == _mean_of(names)]
    measured = {"lexical", *slow.figures}
    return Family(
        key=KEY,
        title="Retrieval quality",
        measured=(
            "People judged whether a retrieved document is relevant to the question (ARES, on product documentation), "
            "or marked the passage that answers it, and the others only look alike (MS MARCO with hard negatives; "
            "news questions of RGB, where the right answer is used as the agent's)."
        ),
        can=" ".join(text for backend, text in CAN.items() if backend in measured),
        cannot=" ".join(text for backend, text in CANNOT.items() if backend in measured),
        baselines=BASELINES,
        headline=headline,
        figures=figures,
        trust=trust_figures(headline),
        outside_mean=OUTSIDE_MEAN,
        remarks=(*_unscored_sets(sets), *slow.remarks),
        files=slow.files,
    )


def _sets(data: LabelledData) -> dict[str, list[LabelledCase]]:
    sets: dict[str, list[LabelledCase]] = {}
    for row in data.rows("rag_triad"):
        sets.setdefault(row["dataset"], []).append(_case(row, row["context"], row["context_relevant"], row["response"]))
    for row in data.rows("retrieval"):
        if "relevant" in row:
            found = [_case(row, [row["passage"]], row["relevant"], None)]
        else:
            found = [
                _case(
                    {**row, "id": f"{row['id']}:{label}:{number}"},
                    [passage],
                    label == "positive",
                    _first(row["answer"]),
                )
                for label in ("positive", "negative")
                for number, passage in enumerate(row[label])
            ]
        if found:
            sets.setdefault(row["dataset"], []).extend(found)
    return sets


def _in_mean(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name not in OUTSIDE_MEAN)


def _mean_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"mean of {len(names)} sets"


def _case(row: dict[str, Any], context: list[str], relevant: Any, response: str | None) -> LabelledCase:
    case = DatasetCase(row["id"], row["question"], context=context)
    trace = TraceLog()
    if response is None:
        # A record of nothing that an agent did is not scored: here it retrieved the passages, and did not answer.
        trace.record("retrieval", query=row["question"], documents=context)
    return Record(case, trace, response), Label(float(bool(relevant)), row.get("group") or row["question"])


def _first(answer: Any) -> str:
    """The first way of writing an answer that may be written in several."""
    return answer if isinstance(answer, str) else _first(answer[0])


def _unscored_sets(sets: Mapping[str, Sequence[LabelledCase]]) -> list[str]:
    """What the metric itself says about sets that it cannot score."""
    metric = RetrievalQualityMetric(backend="lexical")
    return [
        f"`{name}`: {entry.n_cases} of {len(sets[name])} rows were not scored ({entry.reason}). A backend that judges "
        "a passage by the question alone could be measured on them."
        for name in sorted(sets)
        for entry in score_labeled(sets[name], [metric]).summary.unscored
    ]
