"""Answer correctness, on answers of five systems to open questions that people marked right or wrong."""

from __future__ import annotations

from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.datasets.labels import Label
from agentunit.metrics.builtin import AnswerCorrectnessMetric
from benchmarks.validity.baselines import ALWAYS_GOOD, CONTAINMENT, TOKEN_F1
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import (
    Figure,
    LabelledCase,
    agreement_figure,
    score_sets,
    set_figure,
    trust_figures,
)

BACKENDS = ("lexical",)
BASELINES = (TOKEN_F1, CONTAINMENT, ALWAYS_GOOD)


def measure(data: LabelledData) -> Family:
    """Score the answers, all together and system by system, and say what the scores are worth."""
    everything: dict[str, list[LabelledCase]] = {}
    by_system: dict[str, list[LabelledCase]] = {}
    for row in data.rows("answer_correctness"):
        case = DatasetCase(row["id"], row["question"], expected_output=row["expected"])
        # Five systems answered each question, so a question, not an answer, is the independent unit.
        labelled = (Record(case, outcome=row["answer"]), Label(float(row["correct"]), row["question"]))
        everything.setdefault(row["dataset"], []).append(labelled)
        by_system.setdefault(f"{row['dataset']}, answers of {row['model']}", []).append(labelled)
    sets = {**dict(sorted(everything.items())), **dict(sorted(by_system.items()))}
    scored = score_sets(sets, [[AnswerCorrectnessMetric(backend=backend)] for backend in BACKENDS], BASELINES)
    figures: list[Figure] = []
    for scorer, rows_of in scored.items():
        for name in sets:
            if scorer.name != ALWAYS_GOOD.name:
                figures.append(set_figure(scorer, name, rows_of[name]))
            figures.append(agreement_figure(scorer, name, rows_of[name]))
    headline = [figure for figure in figures if figure.dataset in everything]
    return Family(
        key="answer_correctness",
        title="Answer correctness",
        measured=(
            "Five systems answered the same questions (Natural Questions, EVOUNA); people marked each answer right or "
            "wrong. Agreement is the share of answers on which the score, cut at 0.5, "
            "says the same as people; it must be read beside the share that calling everything correct would get."
        ),
        can=(
            "The lexical backend says 1 only when the answer equals an expected one after trimming. Where it says 1 "
            "people nearly always agree (most of those answers are of one terse system, FiD), and for systems that "
            "answer in a few words the way the expected answers are written it is a fair check."
        ),
        cannot=(
            "It calls every answer wrong that is a sentence, has another case or says it in other words, which is what "
            "chat systems do: on them it is close to a coin toss, and its mean is far below the share of right "
            "answers. Compare systems with it only when all of them answer in the same short form."
        ),
        baselines=BASELINES,
        headline=headline,
        figures=figures,
        trust=trust_figures(figure for figure in headline if figure.statistic == "AUROC"),
        remarks=("All answers to one question are resampled together.",),
    )
