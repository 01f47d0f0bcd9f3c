"""``agentunit.run``: the same run and the same decision as on the command line."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import agentunit
from agentunit.engine.deciding.stored import own_decision
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.store import open_store
from agentunit.store.portable import export_run

CASES = [{"id": f"c{n}", "query": f"Room {n}?", "metadata": {"contains": f"Room {n}"}} for n in range(12)]


# No answer comes twice: an agent that gives the same again needs no further try.
ANSWERS = count()


class Desk:
    """An agent that finds every room but those that are broken, and fails once where it is flaky."""

    def __init__(self, broken: tuple[str, ...] = (), flaky: tuple[str, ...] = ()) -> None:
        self.broken, self.flaky = broken, set(flaky)
        self.n_calls = 0

    def __call__(self, case: agentunit.DatasetCase) -> str:
        self.n_calls += 1
        if case.id in self.broken or case.id in self.flaky:
            self.flaky.discard(case.id)
            return f"answer {next(ANSWERS)}: nobody knows"
        return f"answer {next(ANSWERS)}: {case.query.removesuffix('?')}"


def suite(agent: Callable[..., str], **settings: object) -> agentunit.Suite:
    return agentunit.Suite(CASES, agent, metrics=["contains"], name="desk", **settings)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def test_a_broken_case_fails_and_a_flaky_one_is_listed(store: str) -> None:
    assert agentunit.run(suite(Desk()), store=store).passed
    result = agentunit.run(suite(Desk(("c3",), ("c7",))), baseline="last", store=store)
    assert (result.verdict, result.exit_code, result.broken, result.flaky) == ("fail", 1, ("c3",), ("c7",))
    assert '1 of 12 cases broken: contains: missing: "Room 3"' in repr(result)
    assert len(repr(result).splitlines()) < 20
    (row,) = result.summary().metrics
    assert row.n_cases == 12
    with open_store(store) as opened:
        kept = own_decision(run_from_store(opened, "last"))
    assert kept is not None
    assert kept.headline == result.decision.headline


def test_tries_are_bounded_and_can_be_switched_off(store: str) -> None:
    agentunit.run(suite(Desk()), store=store)
    once = Desk(("c3",))
    result = agentunit.run(suite(once), baseline="last", tries=1, store=store)
    assert result.verdict == "cannot tell"
    assert "rerun" in (result.decision.way_out or "")
    assert once.n_calls == 12
    never = Desk(("c3",))
    result = agentunit.run(suite(never, try_again=False), baseline="last~1", store=store)
    assert never.n_calls == 12
    # What the agent does cannot be repeated: no hint offers to.
    assert (result.verdict, result.decision.way_out) == ("cannot tell", None)


def test_the_metric_of_a_gate_is_scored_and_a_missed_gate_fails(store: str) -> None:
    settings = {"gates": ["contains >= 0.9", "response_time max <= 60", "answered >= 0.9"]}
    assert agentunit.run(suite(Desk(), **settings), store=store).passed
    result = agentunit.run(suite(Desk(("c1", "c2")), **settings), store=store)
    assert result.exit_code == 1
    assert "contains >= 0.9" in result.decision.headline


def test_a_run_in_a_notebook_whose_thread_runs_a_loop(store: str) -> None:
    async def cell() -> agentunit.RunResult:
        return agentunit.run(suite(Desk(("c3",))), store=store)

    result = asyncio.run(cell())
    assert [finding.case_id for finding in result.cases] == ["c3"]


def test_an_interrupt_in_a_notebook_stops_the_run_and_keeps_what_is_finished(store: str) -> None:
    end = threading.Event()

    def interrupted(case: agentunit.DatasetCase) -> str:
        if case.id == "c5":
            # The main thread hears it while it waits.
            os.kill(os.getpid(), signal.SIGINT)
            end.wait(60)
        return "Room 1"

    async def cell() -> None:
        agentunit.run(agentunit.Suite(CASES, interrupted, metrics=["contains"], concurrency=1), store=store)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    end.set()
    with open_store(store) as opened:
        header = opened.find_run("last")
        assert header.status == "stopped"
        assert [record.case_id for record in opened.records(header.id)] == ["c0", "c1", "c2", "c3", "c4"]


def test_what_trying_again_took_stands_under_the_sentence(store: str) -> None:
    agentunit.run(suite(Desk()), store=store)
    result = agentunit.run(suite(Desk(flaky=("c7",))), baseline="last", store=store)
    assert result.decision.line.endswith("tried again: 1 call")


def test_a_baseline_from_a_file_is_noted_by_its_path(store: str, tmp_path: Path) -> None:
    agentunit.run(suite(Desk()), store=store)
    file = tmp_path / "main.json"
    with open_store(store) as opened:
        export_run(opened, opened.find_run("last").id, file)
    result = agentunit.run(suite(Desk()), baseline=str(file), margin=0.5, tries=3, store=store)
    settings = result.scored.header.settings
    assert [settings[name] for name in ("baseline", "margin", "tries")] == [str(file), 0.5, 3]


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"gates": ["contains[chek] >= 0.5"]}, {}, "contains has no backend"),
        ({"gates": ["contains pass^3 >= 0.5"]}, {}, "needs 3 repeats of each case; received 1"),
        ({"gates": ["contain >= 0.5"]}, {}, "did you mean 'contains'"),
        ({}, {"tries": 0}, "tries must be a whole number of at least 1; received 0"),
        ({}, {"margin": "much"}, "margin: must be a number above 0"),
        ({}, {"margin": {"contains": -1}}, "margin: must be a number above 0"),
    ],
)
def test_a_slip_is_told_before_the_agent_is_called(
    store: str, settings: dict[str, object], options: dict[str, object], message: str
) -> None:
    desk = Desk()
    with pytest.raises(ValueError, match=re.escape(message)):
        agentunit.run(suite(desk, **settings), store=store, **options)  # type: ignore[arg-type]
    assert desk.n_calls == 0


def test_a_suite_configures_its_judge_before_its_metrics_are_made(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    configured: list[object] = []
    monkeypatch.setattr(
        "agentunit.engine.recording.suite_run.configure_judge", lambda **settings: configured.append(settings)
    )
    monkeypatch.setattr("agentunit.engine.recording.runner.configure_judge", lambda **settings: None)

    def made(suite: agentunit.Suite) -> agentunit.Suite:
        assert configured == [{"model": "small"}]
        return suite

    monkeypatch.setattr("agentunit.engine.recording.suite_run.with_gated_metrics", made)
    agentunit.run(suite(Desk(), judge={"model": "small"}), store=store)


def test_runs_are_compared_by_whatever_names_them(store: str, tmp_path: Path) -> None:
    def room(case: agentunit.DatasetCase) -> str:
        return str(case.query)

    def worse(case: agentunit.DatasetCase) -> str:
        return "nobody knows" if case.id == "c3" else room(case)

    old, new = (agentunit.run(suite(agent), store=store) for agent in (room, worse))
    file = str(tmp_path / "old.json")
    with open_store(store) as opened:
        export_run(opened, old.scored.header.id, file)
    for baseline in (old, old.scored, old.scored.header.id, file, Path(file)):
        for candidate in (new, new.scored.header.id):
            compared = agentunit.compare(baseline, candidate, store=store)
            assert isinstance(compared, agentunit.Comparison)
            assert (compared.candidate, compared.n_by_kind["broken"]) == (new.scored.header.id, 1)
            assert "c3" in repr(compared)
    assert agentunit.compare(old, old).is_unchanged
    with pytest.raises(ValueError, match="margin"):
        agentunit.compare(old, new, margin={"unheard_of": 0.1})


def test_two_files_are_compared_without_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = agentunit.run(suite(Desk()), store="runs.db")
    with open_store("runs.db") as opened:
        export_run(opened, run.scored.header.id, "run.json")
    assert agentunit.compare("run.json", "run.json", store="none.db").is_unchanged
    assert not Path("none.db").exists()
