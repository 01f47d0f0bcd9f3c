"""Cases that are known to fail: until when, out of how many, and when they count as fixed."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.gate_expressions import parse_gate
from agentunit.engine.deciding.gates import evaluate_gates
from agentunit.engine.deciding.known_failures import counted_part, known_failures, set_aside_on
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.store.runs import RecordRow, RunHeader

MARKED = {"known_failures": {"c0": {"reason": "waits for the index", "until": "2999-01-31"}}}
GATE = parse_gate("m >= 1")


def run_of(values: dict[str, list[float | None]], n_planned: int, repeats: int) -> ScoredRun:
    """A run in which c0 is marked; a score of ``None`` failed."""
    scores = [(int(case[1:]), repeat, case, value) for case, of in values.items() for repeat, value in enumerate(of)]
    rows = [ScoreRow(*place, value, "error" if value is None else "ok", "b", "1") for *place, value in scores]
    records = [RecordRow(*place, False) for *place, _ in scores]
    header = RunHeader("r", "r", 0.0, 1.0, "finished", n_planned, "0", {**MARKED, "repeats": repeats})
    return ScoredRun(header, len(values), len(records), 0, {"m": rows}, records)


@pytest.mark.parametrize(("day", "aside"), [(30, {"c0"}), (31, {"c0"}), (32, set())])
def test_a_mark_holds_to_the_end_of_its_last_day(day: int, aside: set[str]) -> None:
    first = datetime(2999, 1, 1, 23, 59, tzinfo=timezone.utc).timestamp()
    assert set_aside_on(first + (day - 1) * 86_400, MARKED) == aside


def test_no_repeat_of_a_marked_case_is_waited_for() -> None:
    # The run was stopped before it came to the marked case: all that counts is there.
    run = run_of({"c1": [1.0] * 3, "c2": [1.0] * 3}, n_planned=9, repeats=3)
    assert counted_part(run).header.n_planned == 6
    (verdict,) = evaluate_gates(run, [GATE], min_coverage=1.0)
    assert (verdict.verdict, verdict.n_expected) == ("pass", 6)


@pytest.mark.parametrize(
    ("values", "state"),
    # A score that raised says nothing about the case.
    [
        ([1.0, 1.0], "fixed"),
        ([1.0, None], "fixed"),
        ([1.0, 0.0], "still fails"),
        ([None, 0.0], "still fails"),
        ([None, None], "unknown"),
    ],
)
def test_a_case_is_fixed_when_every_try_of_it_that_says_something_is(values: list[float | None], state: str) -> None:
    run = run_of({"c0": values, "c1": [1.0, 1.0]}, n_planned=4, repeats=2)
    assert [(each.case_id, each.state) for each in known_failures(run, [GATE])] == [("c0", state)]
