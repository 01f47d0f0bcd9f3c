"""Answer correctness, on answers of five systems to open questions that people marked right or wrong."""

from __future__ import annotations

from agentunit.addons.review.labeling.label_files import Label
from agentunit.addons.review.labeling.scorer_agreement import ScoredRow
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.metrics.builtin import AnswerCorrectnessMetric
from benchmarks.validity.baselines import ALWAYS_GOOD, CONTAINMENT, EXACT_MATCH, TOKEN_F1
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import Figure, LabelledCase, Scored, Scorer, score_sets, trust_figures
from benchmarks.validity.quality_backends import Sets, beyond_lexical
from benchmarks.validity.quality_figures import correctness_figures, score_slowly
from benchmarks.validity.sampling import sampled
from benchmarks.validity.seen_in_training import left_out_figures, was_seen

KEY = "answer_correctness"
BASELINES = (EXACT_MATCH, TOKEN_F1, CONTAINMENT, ALWAYS_GOOD)
# Every system's answers to some 200 questions.
MOST_ROWS = 1000
_SEEN = (
    "‡ These rows were in the backend's training: the figure says how well it learned, and is not a trust figure. "
    "The column of rows left out of training counts, where there is one."
)
_ANSWERS_OF = ", answers of "

CAN = {
    "lexical": (
        "The lexical backend says 1 only when the answer equals an expected one after trimming. Where it says 1 "
        "people nearly always agree; for systems that answer in a few words, as the expected answers are written, it "
        "is a fair check."
    ),
    "local": (
        "The local backend compares names, numbers, dates, units and negations, and so accepts a right answer inside "
        "a sentence. Systems that answer short factual questions can be compared with it."
    ),
}
CANNOT = {
    "lexical": (
        "The lexical backend calls every answer wrong that is a sentence, has another case or says it in other words:"
        " on chat systems it is close to a coin toss. Compare systems with it only when all answer in the same short "
        "form."
    ),
    "local": (
        "The local backend knows nothing of the world: another name of the same thing, a wider place or a finer date "
        "may count as wrong. All labels here are of one kind of question; on long expected answers it agrees with "
        "people less."
    ),
}


def measure(data: LabelledData) -> Family:
    """Score the answers, all together and system by system, and say what the scores are worth."""
    answers: dict[str, list[LabelledCase]] = {}
    systems: dict[str, str] = {}
    for row in data.rows("answer_correctness"):
        case = DatasetCase(row["id"], row["question"], expected_output=row["expected"])
        # Five systems answered each question, so a question, not an answer, is the independent unit.
        labelled = (Record(case, outcome=row["answer"]), Label(float(row["correct"]), row["question"]))
        answers.setdefault(row["dataset"], []).append(labelled)
        systems[row["id"]] = row["model"]

    def by_system(sets: Sets) -> Sets:
        parts: dict[str, list[LabelledCase]] = {}
        for name, cases in sets.items():
            for record, label in cases:
                parts.setdefault(f"{name}{_ANSWERS_OF}{systems[record.case.id]}", []).append((record, label))
        return dict(sorted(parts.items()))

    def sets_for(_: str) -> Sets:
        return by_system({name: sampled(cases, MOST_ROWS, whole_groups=True) for name, cases in answers.items()})

    def figures_of(backend: str, samples: Sets) -> list[Figure]:
        return correctness_figures(_with_pooled(score_slowly(backend, samples, AnswerCorrectnessMetric)))

    lexical = score_sets(by_system(answers), [[AnswerCorrectnessMetric(backend="lexical")]], BASELINES)
    figures = correctness_figures(_with_pooled(lexical))
    headline = [figure for figure in figures if figure.dataset in answers]
    slow = beyond_lexical(KEY, KEY, sets_for, figures_of, use_recorded=data.use_recorded)
    marks: dict[tuple[Scorer, str, str], str] = {}
    for backend, found in slow.figures.items():
        names = dict.fromkeys(figure.dataset for figure in found)
        left_out = left_out_figures(AnswerCorrectnessMetric.info.name, backend, names)
        figures += [*found, *left_out]
        seen = [figure for figure in found if was_seen(backend, figure.dataset)]
        marks |= {(figure.scorer, figure.dataset, figure.statistic): "‡" for figure in seen}
        headline += [each for each in [*found, *left_out] if each.dataset in answers and each not in seen]
    measured = {"lexical", *slow.figures}
    return Family(
        key=KEY,
        title="Answer correctness",
        measured=(
            "Five systems answered the same questions (Natural Questions, EVOUNA); people marked each answer right or "
            "wrong. Agreement is the share of answers on which the score, cut at 0.5, "
            "says the same as people; it must be read beside the share that calling everything correct would get."
        ),
        can=" ".join(text for backend, text in CAN.items() if backend in measured),
        cannot=" ".join(text for backend, text in CANNOT.items() if backend in measured),
        baselines=BASELINES,
        headline=headline,
        figures=figures,
        trust=trust_figures(figure for figure in headline if figure.statistic == "AUROC"),
        remarks=(
            "All answers to one question are resampled together.",
            *([_SEEN] if marks else []),
            *slow.remarks,
        ),
        marks=marks,
        files=slow.files,
    )


def _with_pooled(scored: Scored) -> Scored:
    """The same with the answers of all systems together, first."""
    whole: Scored = {}
    for scorer, rows_of in scored.items():
        pooled: dict[str, list[ScoredRow]] = {}
        for name, rows in rows_of.items():
            pooled.setdefault(name.partition(_ANSWERS_OF)[0], []).extend(rows)
        whole[scorer] = {**dict(sorted(pooled.items())), **rows_of}
    return whole
