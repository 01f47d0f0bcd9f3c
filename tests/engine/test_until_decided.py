"""Running until the data can tell."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from agentunit.engine.gate_expressions import parse_gate
from agentunit.engine.scored_run import ScoredRun
from agentunit.engine.until_decided import (
    MOST_RUNS_A_CASE,
    baseline_questions,
    gate_questions,
    run_until_decided,
)
from agentunit.metrics.base import MetricInfo
from agentunit.store.sqlite import RunHeader, ScoreRow

SHARE = MetricInfo("match", "custom", "", direction="higher", range=(0.0, 1.0))


def info(name: str) -> MetricInfo:
    return SHARE


def row(place, value):
    position, repeat = place
    return ScoreRow(position, repeat, f"c{position}", value, "ok", "check", "1")


class Runs:
    """Runs of cases whose scores a function draws."""

    def __init__(self, draw, cap=None):
        self.draw, self.cap, self.places = draw, cap, []

    def __call__(self, places):
        self.places += places
        scores = {place: [("match", row(place, self.draw(place)))] for place in places}
        return scores, "--max-cost is reached" if self.cap is not None and len(self.places) >= self.cap else None


def ask(gate: str = "match >= 0.8"):
    return gate_questions([parse_gate(gate)], info)


@pytest.mark.parametrize(("gate", "value", "answer"), [
    ("match >= 0.8", 1.0, "yes"), ("match >= 0.8", 0.0, "no"), ("match <= 0.2", 0.0, "yes"), ("match < 0.2", 1.0, "no"),
])  # fmt: skip
def test_plain_cases_are_decided_before_all_are_run(gate, value, answer):
    runs, questions = Runs(lambda place: value), ask(gate)
    watched = run_until_decided(questions, 500, runs)
    assert (questions[0].answer, questions[0].about) == (answer, "population")
    assert watched.n_runs == len(runs.places) < 60
    assert len(set(runs.places)) == len(runs.places)
    assert [position for position, _ in runs.places] != sorted(position for position, _ in runs.places)
    assert "for the population of such cases" in str(questions[0])


def test_when_all_cases_are_run_once_they_are_repeated_at_random():
    source = random.Random(1)
    runs, questions = Runs(lambda place: float(source.random() < 0.93)), ask()
    run_until_decided(questions, 30, runs, at_once=2)
    assert sorted(runs.places[:30]) == [(position, 0) for position in range(30)]
    assert (questions[0].answer, questions[0].about) == ("yes", "cases")
    times = Counter(position for position, _ in runs.places)
    assert all((position, n - 1) in runs.places for position, n in times.items())
    assert len(set(runs.places)) == len(runs.places)


def test_a_cap_ends_it_undecided():
    questions = ask()
    watched = run_until_decided(questions, 1000, Runs(lambda place: 0.8, cap=40))
    assert (questions[0].answer, watched.stopped_by) == (None, "--max-cost is reached")
    assert "not shown" in str(questions[0])


def test_it_says_when_it_never_will_be():
    questions = ask()
    watched = run_until_decided(questions, 60, Runs(lambda place: 0.8))
    assert "would never be decided" in watched.stopped_by
    assert watched.n_runs < MOST_RUNS_A_CASE * 60


def test_cases_that_gates_do_not_count_are_no_evidence():
    questions = ask()
    run_until_decided(questions, 40, Runs(lambda place: 1.0, cap=40), ignored={f"c{n}" for n in range(40)})
    assert (questions[0].answer, questions[0].n) == (None, 0)


@pytest.mark.parametrize("gate", ["match p95 >= 0.8", "match == 1", "match >= 2", "match all == 1"])
def test_other_gates_are_not_asked(gate):
    assert ask(gate) == []


def test_a_score_without_bounds_is_not_asked():
    assert gate_questions([parse_gate("cost <= 1")], lambda name: MetricInfo("cost", "custom", "")) == []


def scored(values):
    header = RunHeader("base", "base", 0.0, 1.0, "finished", len(values), "0", {})
    rows = [row((position, 0), value) for position, value in enumerate(values)]
    return ScoredRun(header, len(values), len(values), 0, {"match": rows})


@pytest.mark.parametrize(("broken", "answer"), [(0, "yes"), (20, "no")])
def test_a_baseline_is_asked_case_by_case(broken, answer):
    (question,) = baseline_questions(["match"], info, scored([1.0] * 100))
    run_until_decided([question], 100, Runs(lambda place: float(place[0] >= broken)))
    assert question.answer == answer


def test_looking_as_often_as_it_does_raises_no_more_false_alarms_than_allowed():
    source = random.Random(7)
    seen = Counter()
    for _ in range(200):
        questions = ask()
        run_until_decided(questions, 100, Runs(lambda place: float(source.random() < 0.8), cap=300))
        seen[questions[0].answer] += 1
    # Either answer is wrong at most in 5 % of the runs of an agent that is just at the threshold: 10 of 200.
    assert seen["yes"] <= 10
    assert seen["no"] <= 10
