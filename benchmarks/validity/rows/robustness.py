"""What must not change faithfulness, and what must lower it: answers of eight sets, changed in one way each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from msgspec.structs import replace

from agentunit.addons.review.labeling.label_files import Label
from agentunit.addons.review.labeling.scorer_agreement import ScoredRow
from agentunit.core.records import Record, outcome_text
from agentunit.metrics.builtin import FaithfulnessMetric
from benchmarks.validity.contrast.generate import contrast_pairs
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import Figure, LabelledCase, Scorer, tidy
from benchmarks.validity.quality_backends import Sets, beyond_lexical
from benchmarks.validity.quality_figures import score_slowly
from benchmarks.validity.rows.faithfulness import labeled_case
from benchmarks.validity.sampling import sampled

KEY = "robustness"
SETS = (
    "begin_topicalchat", "cliff_cnndm", "cliff_xsum", "factscore", "faithbench", "ragtruth_qa", "summedits_news", "wice"
)  # fmt: skip
ROWS_OF_A_SET = 12
UNCHANGED = "as it was"
ADDED = "a sentence from elsewhere"
HOLDS, LARGEST, SMALLEST_FALL = "share of answers that hold", "largest change", "smallest fall"
LEAST_FALL = 0.01
_FROM_ELSEWHERE = (
    "The violinist recorded nine albums in Lisbon.",
    "Its batteries last for three weeks.",
    "A comet was first seen by two students in Chile.",
)
_N_PASSAGES = 20

Change = Callable[[Record], Record | None]


def _answer(change: Callable[[str], str]) -> Change:
    return lambda record: replace(record, outcome=change(outcome_text(record.outcome) or ""))


def _context(change: Callable[[list[str]], list[str]]) -> Change:
    return lambda record: replace(record, case=replace(record.case, context=change(list(record.case.context or ()))))


def _reversed(record: Record) -> Record | None:
    """Passages of one sentence may be a document sentence by sentence, and then their order means something."""
    passages = record.case.context or ()
    if len(passages) < 2 or any(passage.count(". ") < 1 for passage in passages):
        return None
    return _context(lambda passages: passages[::-1])(record)


def _among_others(passages: list[str]) -> list[str]:
    texts = list(dict.fromkeys(pair.text for pair in contrast_pairs()))
    others = texts[:: len(texts) // _N_PASSAGES][:_N_PASSAGES]
    return [*others[: _N_PASSAGES // 2], *passages, *others[_N_PASSAGES // 2 :]]


def _changes() -> dict[str, tuple[Change, float]]:
    """By name: the change, and how much of a difference it may make."""
    elsewhere = cycle(_FROM_ELSEWHERE)
    return {
        UNCHANGED: (lambda record: record, 0.0),
        ADDED: (_answer(lambda answer: f"{answer.rstrip()} {next(elsewhere)}"), 0.0),
        "a courtesy": (_answer(lambda answer: f"{answer} I hope this helps! Let me know if you need more."), 0.03),
        "a preamble": (_answer(lambda answer: f"Sure! Here is a concise answer:\n\n{answer}"), 0.03),
        "a number before it": (_answer(lambda answer: f"1. {answer}"), 0.03),
        "capitals": (_answer(str.upper), 0.03),
        "more white space": (_answer(lambda answer: "\n " + answer.replace(" ", "  ") + "\t\n"), 0.03),
        "passages in reverse": (_reversed, 0.03),
        f"{_N_PASSAGES} passages about other things": (_context(_among_others), 0.05),
    }


def measure(data: LabelledData) -> Family:
    """Score answers as they were and with each change, and count those that hold."""
    by_set: dict[str, list[LabelledCase]] = {name: [] for name in SETS}
    for row in data.rows("faithfulness"):
        if row["dataset"] in by_set:
            by_set[row["dataset"]].append(labeled_case(row))
    cases = [case for name in SETS for case in sampled(by_set[name], ROWS_OF_A_SET)]

    variants = changed(cases)

    def figures_of(backend: str, samples: Sets) -> list[Figure]:
        scored = score_slowly(backend, samples, FaithfulnessMetric)
        return [figure for scorer, rows_of in scored.items() for figure in held(scorer, rows_of, variants)]

    slow = beyond_lexical(KEY, "faithfulness", lambda _: variants, figures_of, use_recorded=data.use_recorded)
    figures = [figure for found in slow.figures.values() for figure in found]
    return Family(
        key=KEY,
        title="What must not change faithfulness",
        measured=(
            f"{len(cases)} answers of eight sets, each changed in one way. With a sentence from elsewhere added, an "
            f"answer holds when its score falls by at least {LEAST_FALL}; with any other change, when its score moves "
            f"by less than 0.03 ({_N_PASSAGES} passages about other things: 0.05). The order of passages is "
            "reversed only where each has several sentences, which is so in FActScore and RAGTruth."
        ),
        can="An unsupported sentence that is added never raises a score, by construction.",
        cannot=(
            "The evidence for a claim is found by its words. Where no passage of the case has them, added passages "
            "about other things can move the score. A courtesy behind an answer without an end mark is read as a part "
            "of it."
        ),
        baselines=(),
        headline=[],
        figures=figures,
        trust=(),
        remarks=slow.remarks,
        unit="answers",
        files=slow.files,
    )


def changed(cases: Sequence[LabelledCase]) -> dict[str, list[LabelledCase]]:
    """By change: the cases with it, each in a group of its own; those that it does not fit are left out."""
    found: dict[str, list[LabelledCase]] = {}
    for name, (change, _) in _changes().items():
        variants = ((change(record), Label(label.value, record.case.id)) for record, label in cases)
        found[name] = [(record, label) for record, label in variants if record is not None]
    return found


def held(
    scorer: Scorer, rows_of: Mapping[str, Sequence[ScoredRow]], variants: Mapping[str, Sequence[LabelledCase]]
) -> list[Figure]:
    """By change: how many answers hold, and the largest change. One that is no longer scored does not hold."""
    before = {row.group: row.value for row in rows_of.get(UNCHANGED, ())}
    figures = []
    for name, (_, most) in _changes().items():
        scored = {row.group: row.value for row in rows_of.get(name, ())}
        groups = [label.group for _, label in variants[name] if label.group in before]
        if name == UNCHANGED or not groups:
            continue
        differences = [scored[group] - before[group] for group in groups if group in scored]
        hold = [each <= -LEAST_FALL if name == ADDED else abs(each) < most for each in differences]
        extreme = max(differences, key=lambda each: each if name == ADDED else abs(each), default=None)
        if name == ADDED and extreme is not None:
            extreme = -extreme
        of_change = SMALLEST_FALL if name == ADDED else LARGEST
        for statistic, value in ((HOLDS, sum(hold) / len(groups)), (of_change, extreme)):
            figures.append(Figure(scorer, name, statistic, len(groups), tidy(value), None, None))
    return figures
