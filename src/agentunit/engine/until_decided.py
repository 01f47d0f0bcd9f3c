"""Running until the data can tell: further cases, then repeats, until every gate and comparison is decided.

While the dataset has cases left, they are run in random order, and what is shown holds for the population that they
were drawn from. When each has been run once, cases are drawn at random and run again, and what is shown holds for
these very cases. The evidence (``formulas.sequential``) may be looked at whenever one likes, so stopping as soon as it
suffices makes no verdict wrong more often than a test of fixed size would.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agentunit.engine.gate_expressions import Gate
from agentunit.engine.margins import margin_in_unit, range_width
from agentunit.engine.paired_scores import baseline_subject, scores_by_backend
from agentunit.engine.scored_run import ScoredRun, SequentialAnswer
from agentunit.formulas.sequential import MeanEvidence
from agentunit.metrics.base import MetricInfo
from agentunit.store.sqlite import ScoreRow

ALPHA = 0.05
MOST_RUNS_A_CASE = 10
_FEWEST_AT_ONCE = 10

About = Literal["population", "cases"]
Answer = Literal["yes", "no"]
Place = tuple[int, int]
"""Position and repeat of one run of a case."""


@dataclass
class Question:
    """Whether a gate is met, or a metric is no worse than in a baseline.

    ``value`` turns a score into what the evidence is about: the mean of it lies beyond ``yes`` when the answer is yes,
    and beyond ``no`` when it is no. ``no_alpha`` is the chance of a wrong no, shared by all questions of a run.
    """

    subject: str
    metric: str
    backend: str | None
    value: Callable[[ScoreRow], float | None]
    yes: Callable[[], MeanEvidence]
    no: Callable[[], MeanEvidence]
    no_alpha: float = ALPHA
    answer: Answer | None = None
    about: About = "population"
    n: int = 0

    def __post_init__(self) -> None:
        self._evidence = self.yes(), self.no()

    def begin(self, about: About) -> None:
        """Collect evidence anew, about something else; an answer stays."""
        if self.answer is None:
            self.about, self.n, self._evidence = about, 0, (self.yes(), self.no())

    def observe(self, row: ScoreRow) -> None:
        """Take one more score."""
        value = self.value(row) if self.backend in (None, row.backend) and row.value is not None else None
        if value is None or self.answer is not None:
            return
        self.n += 1
        shown, refuted = self._evidence
        shown.add(value)
        refuted.add(value)
        if shown.shows(ALPHA):
            self.answer = "yes"
        elif refuted.shows(self.no_alpha):
            self.answer = "no"

    def runs_needed(self) -> int | None:
        """About how many more runs would answer it, if they went on like those so far."""
        shown, refuted = self._evidence
        ways = [shown.values_needed(ALPHA), refuted.values_needed(self.no_alpha)]
        return min((way for way in ways if way is not None), default=None)

    def outcome(self) -> SequentialAnswer:
        """What is kept with the run."""
        _, refuted = self._evidence
        return SequentialAnswer(self.answer, str(self), refuted.p_value if self.answer == "no" else None)

    def __str__(self) -> str:
        runs = "1 run" if self.n == 1 else f"{self.n:,} runs"
        if self.answer is not None:
            whom = "the population of such cases" if self.about == "population" else "these cases"
            return f"shown after {runs}, for {whom}"
        needed = self.runs_needed()
        return f"not shown after {runs}" + (f"; about {needed:,} more would show it" if needed else "")


def gate_questions(gates: Iterable[Gate], run_info: Callable[[str], MetricInfo]) -> list[Question]:
    """A question for each gate on the mean of a bounded score; other gates are decided once, at the end."""
    found = []
    for gate in gates:
        low, high = run_info(gate.metric).range
        if gate.aggregate != "mean" or gate.operator in ("==", "!=") or low is None or high is None:
            continue
        if low <= gate.threshold <= high:
            above = gate.operator in (">=", ">")
            sides = ("above", "below") if above else ("below", "above")
            yes, no = (_evidence(gate.threshold, side, low, high) for side in sides)
            found.append(Question(str(gate), gate.metric, gate.backend, lambda row: row.value, yes, no))
    return found


def baseline_questions(
    names: Iterable[str], run_info: Callable[[str], MetricInfo], baseline: ScoredRun
) -> list[Question]:
    """A question for each bounded metric that a baseline has scored: is it no worse, by case?"""
    found = []
    for name in names:
        info = run_info(name)
        scored = scores_by_backend(baseline.metrics.get(name, ()))
        for backend, scores in scored.items():
            width = range_width(info, list(scores.values.values()))
            if width is None or info.direction == "none" or scores.informational or info.unit != "score":
                continue
            margin = margin_in_unit(name, backend, None, width, 1.0)
            sign = -1.0 if info.direction == "lower" else 1.0
            gain = _gain(scores.values, sign)
            yes, no = _evidence(-margin, "above", -width, width), _evidence(0.0, "below", -width, width)
            subject = baseline_subject(name, backend, baseline.header.id)
            found.append(Question(subject, name, backend, gain, yes, no))
    return found


def _evidence(threshold: float, side: str, low: float, high: float) -> Callable[[], MeanEvidence]:
    return lambda: MeanEvidence(threshold, side, low=low, high=high)


def _gain(old: dict[str, float], sign: float) -> Callable[[ScoreRow], float | None]:
    def gain(row: ScoreRow) -> float | None:
        return None if row.value is None or row.case_id not in old else sign * (row.value - old[row.case_id])

    return gain


@dataclass
class Watched:
    """The questions of a run with their answers, and why no more cases were run."""

    questions: list[Question]
    n_runs: int = 0
    n_cases: int = 0
    stopped_by: str = "every question is answered"

    def __str__(self) -> str:
        answered = sum(question.answer is not None for question in self.questions)
        decided = f"{answered} of {len(self.questions)} questions decided"
        return f"{self.n_runs:,} runs of {self.n_cases:,} cases, {decided}: {self.stopped_by}"


def run_until_decided(
    questions: Sequence[Question],
    n_cases: int,
    run_places: Callable[[list[Place]], tuple[dict[Place, list[tuple[str, ScoreRow]]], str | None]],
    *,
    seed: int | None = None,
    at_once: int = 1,
    ignored: Collection[str] = (),
) -> Watched:
    """Run cases until every question is answered, or it is clear that none of them will be.

    ``run_places`` records and scores these runs of cases; it returns their scores, and why no more may be run (a cap,
    Ctrl-C). ``ignored`` are the ids of cases that gates do not count.
    """
    for question in questions:
        question.no_alpha = ALPHA / max(1, len(questions))
    source = random.Random(f"order {seed}")
    waiting = source.sample(range(n_cases), n_cases)
    times = [0] * n_cases
    watched = Watched(list(questions), n_cases=n_cases)
    about: About = "population"
    while True:
        size = max(_FEWEST_AT_ONCE, 2 * at_once, watched.n_runs // 10)
        if not waiting and about == "population":
            about = "cases"
            for question in questions:
                question.begin(about)
        if about == "population":
            positions, waiting = waiting[:size], waiting[size:]
        else:
            positions = source.choices(range(n_cases), k=size)
        places = []
        for position in positions:
            places.append((position, times[position]))
            times[position] += 1
        scores, stopped_by = run_places(places)
        for place in places:
            for name, row in scores.get(place, ()):
                for question in questions:
                    if question.metric == name and row.case_id not in ignored:
                        question.observe(row)
        watched.n_runs += sum(place in scores for place in places)
        if stopped_by is not None:
            watched.stopped_by = stopped_by
            return watched
        open_questions = [question for question in questions if question.answer is None]
        if not open_questions:
            return watched
        if about == "cases" and (reason := _never(open_questions, MOST_RUNS_A_CASE * n_cases - watched.n_runs)):
            watched.stopped_by = reason
            return watched


def _never(questions: Sequence[Question], n_left: int) -> str | None:
    """Why it is not worth going on: no run is left, or those so far say that far more would be needed."""
    most = f"at most {MOST_RUNS_A_CASE} runs a case are made, on average"
    if n_left <= 0:
        return most
    for question in questions:
        needed = question.runs_needed()
        # A look at few runs says little about how many are needed.
        if question.n >= 100 and (needed is None or needed > 2 * n_left):
            outlook = "would never be decided" if needed is None else f"would need about {needed:,} more runs"
            return f"{question.subject} {outlook} ({most})"
    return None
