"""Running until the data can tell: further cases, then repeats, until every gate and comparison is decided.

First every case is run once, in random order, and what is shown holds for the population that the cases were drawn
from. The evidence (``formulas.bounded_mean``) may be looked at whenever one likes, so stopping as soon as it suffices
makes no verdict wrong more often than a test of fixed size would. Cases of one cluster are one piece of evidence.

A baseline question that is still open is then put to the usual test of a comparison, once, after each case has been
run as often as in the baseline. Further repeats would not answer it: they tell ever more exactly how the candidate
differs from what the baseline happened to score, and take that chance for a difference.

For open gates cases are then drawn at random and run again, and what is shown holds for these very cases. Each of
the two parts may be wrong half as often as the whole.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import msgspec

from agentunit.core.score_block import Place, ScoreRow
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.comparison import ALPHA as BASELINE_ALPHA
from agentunit.engine.deciding.cut_offs import Margin, margin_in_unit, range_width
from agentunit.engine.deciding.gate_expressions import Gate
from agentunit.engine.deciding.paired_scores import baseline_subject, scores_by_backend
from agentunit.engine.scoring.scored_run import ScoredRun, SequentialAnswer
from agentunit.formulas.bounded_mean import MeanEvidence
from agentunit.metrics.base import MetricInfo

ALPHA = 0.05
PART = 0.5
"""The share of the allowed errors that each part may make: the cases run once, and what follows."""
MOST_RUNS_A_CASE = 10
_FEWEST_AT_ONCE = 10

About = Literal["population", "cases"]
Answer = Literal["yes", "no"]


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
    against_baseline: bool = False
    no_alpha: float = ALPHA * PART
    answer: Answer | None = None
    about: About = "population"
    n: int = 0
    tested: SequentialAnswer | None = None
    """What the test of a comparison said, where it was asked. It ends the question."""

    def __post_init__(self) -> None:
        self._evidence = self.yes(), self.no()

    @property
    def is_open(self) -> bool:
        """Whether more runs may still answer it."""
        return self.answer is None and self.tested is None

    def begin(self, about: About) -> None:
        """Collect evidence anew, about something else; an answer stays."""
        if self.is_open:
            self.about, self.n, self._evidence = about, 0, (self.yes(), self.no())

    def observe(self, rows: Iterable[ScoreRow], largest: int = 1) -> None:
        """Take one more score, or those of one cluster, of which the greatest has so many."""
        values = [
            value
            for row in rows
            if self.backend in (None, row.backend) and row.value is not None and (value := self.value(row)) is not None
        ]
        if not values or not self.is_open:
            return
        self.n += len(values)
        shown, refuted = self._evidence
        shown.add_group(values, largest)
        refuted.add_group(values, largest)
        if shown.shows(ALPHA * PART):
            self.answer = "yes"
        elif refuted.shows(self.no_alpha):
            self.answer = "no"

    def runs_needed(self) -> int | None:
        """About how many more runs would answer it, if they went on like those so far."""
        shown, refuted = self._evidence
        ways = [shown.values_needed(ALPHA * PART), refuted.values_needed(self.no_alpha)]
        needed = min((way for way in ways if way is not None), default=None)
        return None if needed is None else round(needed * self.n / max(1, shown.n))

    def outcome(self) -> SequentialAnswer:
        """What is kept with the run."""
        if self.tested is not None:
            return self.tested
        _, refuted = self._evidence
        # As large as one that had all of the allowed errors to itself.
        allowed = BASELINE_ALPHA if self.against_baseline else ALPHA
        p_value = min(1.0, refuted.p_value * allowed / self.no_alpha)
        return SequentialAnswer(self.answer, str(self), p_value if self.answer == "no" else None)

    def __str__(self) -> str:
        if self.tested is not None:
            return self.tested.text
        runs = "1 run" if self.n == 1 else f"{self.n:,} runs"
        if self.answer is not None:
            whom = "the population of such cases" if self.about == "population" else "these cases"
            return f"shown after {runs}, for {whom}"
        needed = self.runs_needed()
        if self.against_baseline:
            return f"not shown after {runs}" + (f"; about {needed:,} more would show it" if needed else "")
        # One that needs far more than were made will not be decided by going on.
        is_near = needed is None or needed > 2 * self.n
        why = ": the mean is too near the threshold" if is_near else ""
        more = f" (about {needed:,} more would show it)" if needed else ""
        instead = "--repeats N instead of auto compares the mean of these cases with it"
        return f"not shown after {runs}{why}{more}; {instead}"


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
    names: Iterable[str],
    run_info: Callable[[str], MetricInfo],
    baseline: ScoredRun,
    margins: Margin | Mapping[str, Margin] | None,
) -> list[Question]:
    """A question for each bounded metric with a margin that a baseline has scored: is it no worse, by case?"""
    found = []
    for name in names:
        info = run_info(name)
        scored = scores_by_backend(baseline.metrics.get(name, ()))
        for backend, scores in scored.items():
            width = range_width(info, list(scores.values.values()))
            if width is None or info.direction == "none" or scores.informational or info.unit != "score":
                continue
            margin = margin_in_unit(name, backend, margins, width, 1.0)
            if margin is None:
                continue
            sign = -1.0 if info.direction == "lower" else 1.0
            gain = _gain(scores.values, sign)
            yes, no = _evidence(-margin, "above", -width, width), _evidence(0.0, "below", -width, width)
            subject = baseline_subject(name, backend, baseline.header.id)
            found.append(Question(subject, name, backend, gain, yes, no, against_baseline=True))
    return found


def _evidence(threshold: float, side: str, low: float, high: float) -> Callable[[], MeanEvidence]:
    return lambda: MeanEvidence(threshold, side, low=low, high=high)


def _gain(old: dict[str, float], sign: float) -> Callable[[ScoreRow], float | None]:
    def gain(row: ScoreRow) -> float | None:
        return None if row.value is None or row.case_id not in old else sign * (row.value - old[row.case_id])

    return gain


def answers_by_test(
    candidate: ScoredRun,
    baseline: ScoredRun,
    places: Collection[Place],
    alpha: float,
    *,
    gates: Sequence[str] = (),
    margin: Margin | Mapping[str, Margin] | None = None,
    min_coverage: float = 0.8,
    resamples: int | None = None,
) -> dict[str, SequentialAnswer]:
    """What the usual comparison of these runs of cases with a baseline says, by the subject of each question."""
    header = msgspec.structs.replace(
        candidate.header, settings={**candidate.header.settings, "until_decided": None}, n_planned=len(places)
    )
    among = replace(
        candidate,
        header=header,
        metrics={name: [row for row in rows if row.place in places] for name, rows in candidate.metrics.items()},
        records=[row for row in candidate.records if row.place in places],
    )
    comparison = compare_runs(
        among, baseline, gates=gates, margin=margin, min_coverage=min_coverage, alpha=alpha, resamples=resamples
    )
    answers: dict[str, Answer] = {"regression": "no", "no worse": "yes", "better": "yes", "no change": "yes"}
    return {
        baseline_subject(each.metric, each.backend, baseline.header.id): SequentialAnswer(
            answers.get(each.verdict),
            f"{each.reason} (tested after all {comparison.n_paired:,} cases)",
            min(1.0, each.p_adjusted * BASELINE_ALPHA / alpha)
            if each.verdict == "regression" and each.p_adjusted is not None
            else None,
        )
        for each in comparison.metrics
    }


def count_decided(questions: Sequence[Question]) -> str:
    """How many questions are answered."""
    answered = sum(question.answer is not None for question in questions)
    return f"{answered} of {len(questions)} questions decided"


@dataclass
class Watched:
    """The questions of a run with their answers, and why no more cases were run."""

    questions: list[Question]
    n_runs: int = 0
    n_cases: int = 0
    stopped_by: str | None = None

    def __str__(self) -> str:
        why = self.stopped_by
        if why is None and all(question.answer is not None for question in self.questions):
            why = "every question is answered"
        why = why or "every case was run as often as in the baseline; more cases would help"
        return f"{self.n_runs:,} runs of {self.n_cases:,} cases, {count_decided(self.questions)}: {why}"

    @property
    def open_questions(self) -> list[Question]:
        """Those that more runs may still answer."""
        return [question for question in self.questions if question.is_open]


@dataclass
class Course:
    """The order in which cases are run: fixed by the seed, whatever comes out of them and wherever a run is taken up.

    ``clusters`` are the numbers of the cases' clusters, whose cases come together; ``in_baseline`` says how often the
    baseline ran each case, by position.
    """

    n_cases: int
    seed: int | None = None
    clusters: Sequence[int] | None = None
    in_baseline: Sequence[int] | None = None

    def __post_init__(self) -> None:
        # Only random() itself is the same in every version of Python.
        self._source = random.Random(f"order {self.seed}")
        self.numbers = list(range(self.n_cases)) if self.clusters is None else list(self.clusters)
        keys = {number: self._source.random() for number in dict.fromkeys(self.numbers)}
        within = [self._source.random() for _ in range(self.n_cases)]
        order = sorted(range(self.n_cases), key=lambda position: (keys[self.numbers[position]], within[position]))
        self.once = [(position, 0) for position in order]
        times = [min(n, MOST_RUNS_A_CASE) for n in self.in_baseline or [1] * self.n_cases]
        self.as_in_baseline = [(at, repeat) for repeat in range(1, max(times)) for at in order if repeat < times[at]]

    def again(self, times: Sequence[int]) -> Iterator[Place]:
        """Cases at random, forever, where each was already run so many times."""
        repeats = list(times)
        while True:
            position = int(self._source.random() * self.n_cases)
            yield position, repeats[position]
            repeats[position] += 1


Scores = dict[Place, list[tuple[str, ScoreRow]]]
"""The scores of each run of a case that is recorded, by metric."""


def run_until_decided(
    questions: Sequence[Question],
    course: Course,
    run_places: Callable[[list[Place]], tuple[Scores, str | None]],
    *,
    at_once: int = 1,
    ignored: Collection[str] = (),
    done: Collection[Place] = (),
    test: Callable[[Collection[Place], float], Mapping[str, SequentialAnswer]] = lambda places, alpha: {},
    keep: Callable[[Watched], None] = lambda watched: None,
    min_coverage: float = 0.8,
    every_case: bool = False,
) -> Watched:
    """Run cases until every question is answered, or it is clear that none of them will be.

    ``run_places`` records and scores these runs of cases, where they are not ``done`` before; it returns the scores of
    those that are recorded, and why no more may be run (a cap, Ctrl-C). ``ignored`` are the ids of cases that gates do
    not count. ``test`` answers baseline questions by the usual comparison, with a chance of error. ``keep`` is called
    after every look at the evidence. Where fewer than ``min_coverage`` of the cases have a value, a gate on it fails
    whatever the values are, and no case is repeated for it. ``every_case`` is run once before it may stop: beside a
    baseline cases decide, whatever is known of means.
    """
    watched = Watched(list(questions), n_cases=course.n_cases)
    for question in questions:
        # That a run got worse is shown as surely as where nothing is looked at on the way.
        allowed = BASELINE_ALPHA if question.against_baseline else ALPHA
        question.no_alpha = allowed * PART / max(1, len(questions))
    part = _Part(watched, run_places, max(_FEWEST_AT_ONCE, 2 * at_once), set(done), ignored, keep)
    numbers = course.numbers
    sizes = Counter(numbers)
    if not part.run(course.once, lambda place: (numbers[place[0]], sizes[numbers[place[0]]]), to_the_end=every_case):
        return watched
    if asked := [question for question in watched.open_questions if question.against_baseline]:
        if not part.run(course.as_in_baseline):
            return watched
        alpha = BASELINE_ALPHA * PART * len(asked) / len(questions)
        said = test({*course.once, *course.as_in_baseline}, alpha)
        for question in asked:
            question.tested = said.get(question.subject, SequentialAnswer(None, str(question), None))
            question.answer = question.tested.answer
        keep(watched)
    if not watched.open_questions:
        return watched
    n_counted = course.n_cases - len(ignored)
    for question in watched.open_questions:
        if question.n < min_coverage * n_counted - 1e-9:
            needed = f"only {question.n:,} of {n_counted:,} cases have a value, {min_coverage:.0%} are needed"
            watched.stopped_by = f"{question.subject}: {needed}"
            return watched
    for question in questions:
        question.begin("cases")
    times = [1] * course.n_cases
    if asked:
        for position, _ in course.as_in_baseline:
            times[position] += 1
    part.run(course.again(times), lambda place: (place, 1), most=MOST_RUNS_A_CASE * course.n_cases)
    return watched


@dataclass
class _Part:
    """Runs of cases, a few at a time, with a look at the evidence after each few."""

    watched: Watched
    run_places: Callable[[list[Place]], tuple[Scores, str | None]]
    fewest: int
    done: set[Place]
    ignored: Collection[str]
    keep: Callable[[Watched], None]

    def run(
        self,
        places: Iterable[Place],
        unit_of: Callable[[Place], tuple[Any, int]] | None = None,
        most: int | None = None,
        *,
        to_the_end: bool = False,
    ) -> bool:
        """Run these places in their order; whether questions are left when all are run.

        ``unit_of`` names the piece of evidence that a place belongs to and the number of its places; without it there
        is none. With ``most``, no more runs than that are made in all, nor where they would not do. ``to_the_end``:
        they are run although every question is answered.
        """
        whole: dict[Any, list[tuple[str, ScoreRow]]] = {}
        seen: Counter[Any] = Counter()
        largest = max(unit_of(place)[1] for place in places) if unit_of and isinstance(places, list) else 1
        left = iter(places)
        while batch := self._next(left, most):
            scores, stopped_by = self.run_places(batch)
            for place in batch:
                # What comes after a run that is missing waits for it: the order must not depend on what took long.
                if place not in scores:
                    break
                self.watched.n_runs += 1
                if unit_of is None:
                    continue
                unit, size = unit_of(place)
                rows = whole.setdefault(unit, [])
                rows += [(name, row) for name, row in scores[place] if row.case_id not in self.ignored]
                seen[unit] += 1
                if seen[unit] == size:
                    for question in self.watched.questions:
                        question.observe((row for name, row in whole[unit] if name == question.metric), largest)
                    del whole[unit], seen[unit]
            if stopped_by is not None:
                self.watched.stopped_by = stopped_by
            elif most is not None and self.watched.open_questions:
                stopped_by = self.watched.stopped_by = _never(self.watched.open_questions, most - self.watched.n_runs)
            self.keep(self.watched)
            is_answered = not self.watched.open_questions and not to_the_end
            if stopped_by is not None or is_answered:
                return False
        return bool(self.watched.open_questions)

    def _next(self, left: Iterator[Place], most: int | None) -> list[Place]:
        """The next few places; first all up to the last one that is done."""
        size = max(self.fewest, self.watched.n_runs // 10)
        if not self.done:
            return list(islice(left, size))
        taken: list[Place] = []
        for place in islice(left, most):
            taken.append(place)
            self.done.discard(place)
            if not self.done:
                break
        return taken


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
