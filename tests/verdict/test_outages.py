"""An agent that answers nothing for a while is tried again, and decided by what it says then."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.decision import Decision, decide_run
from agentunit.engine.deciding.trying import OpenCheck, TryingAgain
from agentunit.engine.recording.runner import Plan, plan_run, record
from agentunit.engine.recording.suite import Suite
from agentunit.engine.recording.trying_again import Place, try_again
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.metrics.registry import resolve_metrics
from agentunit.store.sqlite import Store

OUT_OF_ORDER, N_CASES = 5, 20
METRICS = resolve_metrics("contains")
CASES = [{"id": f"c{n}", "query": f"{n}", "metadata": {"contains": f"Room {n}"}} for n in range(N_CASES)]


class Agent:
    """One that is out of order at first in one case, and wrong in another. It says the same, or never the same."""

    def __init__(
        self, *, n_silent: int = 0, silent: int = OUT_OF_ORDER, wrong: int | None = None, same: bool = False
    ) -> None:
        self._n_silent, self._silent, self._wrong, self.same = n_silent, silent, wrong, same
        self.n_calls: Counter[int] = Counter()

    def __call__(self, query: str) -> str:
        n = int(query)
        self.n_calls[n] += 1
        if n == self._silent and self.n_calls[n] <= self._n_silent:
            raise ConnectionError("out of order")
        answer = f"Not {n}" if n == self._wrong else f"Room {n}"
        return answer if self.same else f"{answer}, {id(self)} {self.n_calls[n]}"


def decided(folder: Path, agent: Agent) -> tuple[Decision, list[float]]:
    """What is decided beside an agent without a fault, and how long was waited."""
    waits: list[float] = []
    with Store(folder / "runs.db") as store:
        baseline = run_from_store(store, _recorded(store, Agent(same=agent.same)).header.id)
        plan = _recorded(store, agent)

        def record_places(places: list[Place]) -> bool:
            plan.open = places
            return not record(plan, store).stopped

        run_id = plan.header.id
        try_again(store, run_id, baseline, [], METRICS, record_places, cases=plan.cases, sleep=waits.append)
        candidate = run_from_store(store, run_id)
        return decide_run(candidate, (), compare_runs(candidate, baseline, gates=())), waits


def _recorded(store: Store, agent: Agent) -> Plan:
    plan = plan_run(Suite(dataset=CASES, agent=agent, metrics=METRICS), store)
    record(plan, store)
    score_run(store, plan.header.id, METRICS, cases=plan.cases)
    return plan


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("n_silent", [1, 2])
def test_what_fails_when_the_agent_answers_again_is_tried_to_the_end(tmp_path, n_silent, same):
    decision, waits = decided(tmp_path, Agent(n_silent=n_silent, wrong=OUT_OF_ORDER, same=same))
    assert (decision.exit_code, decision.failing_cases) == (1, ("c5",))
    assert waits == [1.0, 2.0][:n_silent]


def test_an_outage_alone_breaks_nothing(tmp_path):
    decision, _ = decided(tmp_path, Agent(n_silent=4))
    assert (decision.exit_code, decision.comparison.ids_of("flaky")) == (0, ("c5",))


def test_an_outage_that_is_over_is_not_waited_for():
    checks = [OpenCheck(n, f"c{n}", "answered", needed=9, n_failed=1) for n in range(20)]
    trying = TryingAgain(checks)
    waits: list[float] = []
    while positions := trying.next_positions():
        waits.append(trying.wait_s())
        for position in positions:
            trying.take(position, {"answered": len(waits) > 2}, None)
    assert waits == [1.0, 2.0, 4.0, 0.0, 0.0, 0.0]


def test_tries_without_an_answer_are_none_of_those_that_break_a_check():
    check = OpenCheck(0, "c0", "contains", needed=3, n_failed=1)
    trying = TryingAgain([check])
    for passed in (None, None, False, False):
        assert trying.next_positions() == [0]
        trying.take(0, {"contains": passed}, None)
    assert trying.is_broken(check)


def test_what_cannot_be_made_is_not_tried_forever():
    check = OpenCheck(0, "c0", "contains", needed=3, n_failed=1)
    trying = TryingAgain([check])
    n_tries = 0
    while trying.next_positions():
        trying.take(0, {}, None)
        n_tries += 1
    assert (n_tries, trying.is_broken(check)) == (3, False)
