"""Faithfulness and hallucination rate, on 16 sets of answers and summaries that people checked against their source."""

from __future__ import annotations

from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.datasets.labels import Label
from agentunit.engine.validity import ScoredRow
from agentunit.metrics.builtin import FaithfulnessMetric, HallucinationRateMetric
from benchmarks.validity.baselines import ANSWER_WORDS_IN_CONTEXT
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import (
    Figure,
    LabelledCase,
    Scorer,
    mean_figure,
    score_sets,
    set_figure,
    trust_figures,
)

BACKENDS = ("lexical",)
BASELINES = (ANSWER_WORDS_IN_CONTEXT,)
OUTSIDE_MEAN = {
    "halueval_qa": "its wrong answers were generated, and counting shared word pairs alone finds them",
    "factscore": "its labels are grades (the share of supported facts), so it has a rank correlation instead",
}
# Outputs that the sets themselves ship, by their name there: what better-known detectors say about the same rows.
RELEASED = {
    "frank_cnndm": {"FactCC": "FactCC", "QAGS": "QAGS", "FEQA": "FEQA", "BertScore P Art": "BERTScore precision"},
    "frank_xsum": {"FactCC": "FactCC", "QAGS": "QAGS", "FEQA": "FEQA", "BertScore P Art": "BERTScore precision"},
    "faithbench": {"hhem-2.1": "HHEM-2.1", "true_nli": "TRUE (NLI)", "gpt-4-turbo": "GPT-4-turbo", "gpt_4o": "GPT-4o"},
}


def measure(data: LabelledData) -> Family:
    """Score the faithfulness sets and say what the scores are worth."""
    sets: dict[str, list[LabelledCase]] = {}
    rows = data.rows("faithfulness")
    for row in rows:
        sets.setdefault(row["dataset"], []).append(_case(row))
    runs = [(FaithfulnessMetric(backend=backend), HallucinationRateMetric(backend=backend)) for backend in BACKENDS]
    scored = score_sets(sets, runs, BASELINES)
    names = sorted(sets)
    headline = [
        mean_figure(scorer, {name: rows_of[name] for name in names if name not in OUTSIDE_MEAN and name in rows_of})
        for scorer, rows_of in scored.items()
    ]
    return Family(
        key="faithfulness",
        title="Faithfulness and hallucination rate",
        measured=(
            "People read an answer or a summary beside its source and marked whether the source supports all of it. "
            "A good score is high where they found nothing made up. The sets cover summaries of news (FRANK, CLIFF), "
            "of news, meetings, sales mails and chats with small edits (SummEdits) and of passages that detectors "
            "find hard (FaithBench), dialogue (BEGIN), questions over retrieved passages (RAGTruth), claims from "
            "Wikipedia (WiCE) and biographies (FActScore)."
        ),
        can=(
            "The lexical backend finds context strings that the answer repeats word for word. Where the context is one "
            "short passage and answers quote it whole, it notices; that is all."
        ),
        cannot=(
            "It cannot tell a faithful answer from an invented one: real answers hardly ever repeat a whole passage, "
            "so nearly every score is 0 (hallucination rate: 1) and carries no information. It is shown as "
            "informational and gates nothing unless you name it. Counting shared words does better on answers that "
            "add foreign material, and does little or nothing on small edits of a true text (SummEdits), where nearly "
            "every word is familiar."
        ),
        baselines=BASELINES,
        headline=headline,
        figures=[
            set_figure(scorer, name, rows_of[name])
            for scorer, rows_of in scored.items()
            for name in names
            if name in rows_of
        ],
        trust=trust_figures(headline),
        outside_mean=OUTSIDE_MEAN,
        released=_released(rows),
        remarks=(
            "A claim that is only partly supported counts as unsupported (WiCE). Rows about the same source text are "
            "resampled together.",
            "The mean weighs every set alike and never pools them: pooled sets that differ in how often answers are "
            "faithful reward a score for recognising the set.",
        ),
    )


def _released(rows: list[dict[str, Any]]) -> list[Figure]:
    figures = []
    for dataset, systems in RELEASED.items():
        for key, name in systems.items():
            scored = [
                ScoredRow(case[1].value, float(output), case[1].group)
                for row, case in ((row, _case(row)) for row in rows if row["dataset"] == dataset)
                if (output := (row.get("baselines") or {}).get(key)) is not None
            ]
            if scored:
                figures.append(set_figure(Scorer(name, "released"), dataset, scored))
    return figures


def _case(row: dict[str, Any]) -> LabelledCase:
    case = DatasetCase(row["id"], row.get("question"), context=row["context"])
    hallucinated = row.get("hallucinated")
    label = float(row["faithful"]) if hallucinated is None else float(not hallucinated)
    return Record(case, outcome=row["response"]), Label(label, row.get("group"))
