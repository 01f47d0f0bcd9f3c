from __future__ import annotations

import asyncio
import gzip
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentunit.core.codec import decode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.score_block import ScoreBlock
from agentunit.engine.recording.runner import Plan, Recording, _keep, _Keeper, only_writer, open_again, plan_run, record
from agentunit.engine.recording.suite import Suite, SuiteError, load_suite
from agentunit.engine.scoring.aggregate import MetricAggregate
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.metrics.base import MetricInfo, MetricResult
from agentunit.store.runs import FIRST_AGAIN
from agentunit.store.schema import StoreError
from agentunit.store.sqlite import Store


@pytest.fixture
def store(tmp_path: Path):
    with Store(tmp_path / "runs.db") as opened:
        yield opened


def cases(n: int) -> list[dict[str, Any]]:
    return [{"id": f"q{position}", "query": str(position), "expected_output": str(position)} for position in range(n)]


def run(suite: Suite, store: Store, **options: Any) -> tuple[Recording, str]:
    plan = plan_run(suite, store, **options)
    return record(plan, store), plan.header.id


def outputs(store: Store, run_id: str) -> dict[tuple[str, int], Any]:
    return {(each.case_id, each.repeat): each.record.outcome.output for each in store.records(run_id)}


def test_every_case_is_recorded_once_in_its_place(store: Store) -> None:
    recording, run_id = run(Suite(cases(20), lambda query: f"<{query}>", concurrency=5), store)
    assert (recording.n_planned, recording.n_done, recording.n_failed, recording.stopped) == (20, 20, 0, False)
    assert outputs(store, run_id) == {(f"q{n}", 0): f"<{n}>" for n in range(20)}
    header = store.find_run(run_id)
    assert (header.status, header.n_done, header.n_planned) == ("finished", 20, 20)


def test_concurrency_is_bounded(store: Store) -> None:
    running, most = 0, 0

    async def agent(query: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return query

    run(Suite(cases(20), agent, concurrency=3), store)
    assert most == 3


def test_what_an_agent_may_do_to_itself_stays_in_its_case(store: Store) -> None:
    def agent(query: str) -> Any:
        print("noise")
        if query == "1":
            raise RuntimeError("boom")
        if query == "2":
            raise SystemExit(3)
        if query == "3":
            return object()
        if query == "4":
            return None
        return query

    recording, run_id = run(Suite(cases(6), agent), store)
    assert recording.n_done == 6
    assert recording.failures == {"raised": 1, "exit": 1, "wrong_type": 2}
    failed = {each.case_id: each.record.outcome for each in store.records(run_id) if each.failed}
    assert set(failed) == {"q1", "q2", "q3", "q4"}
    assert "boom" in failed["q1"].error
    assert failed["q1"].success is False
    [fine] = store.case(run_id, "q5")
    assert fine.record.trace.metadata["stdout"] == "noise\n"


def test_a_timeout_ends_the_case_and_the_run_goes_on(store: Store) -> None:
    def agent(query: str, trace: Any) -> str:
        trace.record("message", role="assistant", content="so far so good")
        if query == "0":
            time.sleep(60)
        return query

    started = time.monotonic()
    recording, run_id = run(Suite(cases(4), agent, timeout_s=2), store)
    assert time.monotonic() - started < 20
    assert recording.failures == {"timeout": 1}
    [hung] = store.case(run_id, "q0")
    assert [event.type for event in hung.record.trace.events] == ["message"]  # the trace as far as it got
    assert outputs(store, run_id)[("q3", 0)] == "3"


def test_a_retry_starts_a_fresh_trace(store: Store, tmp_path: Path) -> None:
    tries: dict[str, int] = {}

    def agent(query: str, trace: Any) -> str:
        trace.record("attempt")
        tries[query] = tries.get(query, 0) + 1
        if tries[query] < 3:
            raise ConnectionError(f"try {tries[query]}")
        return query

    recording, run_id = run(Suite(cases(2), agent, retries=2, concurrency=1), store)
    assert recording.n_failed == 0
    [case] = store.case(run_id, "q0")
    assert len(case.record.trace.events) == 1
    assert case.record.trace.metadata["attempts"] == 3
    assert len(case.record.trace.metadata["earlier_failures"]) == 2
    tries.clear()
    recording, run_id = run(Suite(cases(2), agent, retries=1, concurrency=1), store)
    assert recording.n_failed == 2


def test_repeats_and_seeds(store: Store) -> None:
    def agent(query: str, seed: int) -> str:
        return str(seed)

    _, first = run(Suite(cases(3), agent, repeats=2, seed=5), store)
    _, second = run(Suite(cases(3), agent, repeats=2, seed=5, concurrency=1), store)
    assert outputs(store, first) == outputs(store, second)
    assert len(set(outputs(store, first).values())) == 6
    score_run(store, first, ["exact_match"])
    scored = run_from_store(store, first)
    assert (scored.n_cases, scored.n_records, scored.n_repeats) == (3, 6, 2)
    assert scored.summary().metrics[0].n_scored == 6


def test_stopping_keeps_what_was_finished_and_resuming_does_the_rest(store: Store) -> None:
    stop = threading.Event()
    ran: list[str] = []

    async def agent(query: str) -> str:
        ran.append(query)
        if len(ran) == 7:
            stop.set()
        await asyncio.sleep(0.01)
        return query

    suite = Suite(cases(30), agent, concurrency=2)
    plan = plan_run(suite, store)
    recording = record(plan, store, stop=stop)
    assert recording.stopped
    assert store.find_run(plan.header.id).status == "stopped"
    kept = {position for position, _ in store.finished(plan.header.id)}
    assert 0 < len(kept) < 30
    ran.clear()
    again, run_id = run(suite, store, resume="last")
    assert run_id == plan.header.id
    assert again.n_done == 30 - len(kept)
    assert not {str(position) for position in kept} & set(ran)
    assert store.find_run(run_id).n_done == 30
    assert store.find_run(run_id).status == "finished"


def test_ctrl_c_is_a_clean_stop(store: Store) -> None:
    async def agent(query: str) -> str:
        if query == "5":
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.01)
        return query

    before = signal.getsignal(signal.SIGINT)
    plan = plan_run(Suite(cases(50), agent, concurrency=2), store)
    recording = record(plan, store)
    assert recording.stopped
    assert 0 < store.find_run("last").n_done < 50
    assert signal.getsignal(signal.SIGINT) is before


def test_failed_cases_are_tried_again_only_when_asked(store: Store) -> None:
    broken = [True]

    def agent(query: str) -> str:
        if broken[0] and query == "1":
            raise RuntimeError("down")
        return query

    suite = Suite(cases(3), agent)
    _, run_id = run(suite, store)
    broken[0] = False
    assert run(suite, store, resume=run_id)[0].n_done == 0
    again, _ = run(suite, store, resume=run_id, retry_failed=True)
    assert (again.n_done, again.n_failed) == (1, 0)
    assert outputs(store, run_id)[("q1", 0)] == "1"


def test_another_dataset_is_not_mixed_into_a_run(store: Store) -> None:
    run(Suite(cases(3), lambda query: query), store)
    with pytest.raises(SuiteError, match="recorded on another dataset"):
        plan_run(Suite(cases(4), lambda query: query), store, resume="last")
    with pytest.raises(SuiteError, match="holds no cases"):
        plan_run(Suite([], lambda query: query), store)


def rerun_cases(plan: Plan, case_ids: list[str], store: Store) -> None:
    open_again(plan, case_ids, store)
    record(plan, store)


def test_rerun_replaces_records_and_their_scores(store: Store) -> None:
    answers = ["wrong"]
    suite = Suite(cases(3), lambda query: answers[0], metrics=["exact_match"])
    _, run_id = run(suite, store)
    score_run(store, run_id, suite.metrics)
    answers[0] = "1"
    rerun_cases(plan_run(suite, store, resume=run_id), ["q1"], store)
    assert score_run(store, run_id, suite.metrics) == 1
    values = {row.case_id: row.value for row in run_from_store(store, run_id).metrics["exact_match"]}
    assert values == {"q0": 0.0, "q1": 1.0, "q2": 0.0}


def test_rerun_runs_every_repeat_that_is_there(store: Store) -> None:
    # As a run until decided leaves them: cases that were run more often than the suite says.
    suite = Suite(cases(3), lambda query: "old", metrics=["exact_match"])
    plan = plan_run(suite, store)
    plan.open += [(1, 1), (1, 2), (2, 1)]
    record(plan, store)
    suite = replace(suite, agent=lambda query: "new")
    plan = plan_run(suite, store, resume=plan.header.id, changed_agent=True)
    rerun_cases(plan, ["q1"], store)
    header = store.find_run(plan.header.id)
    assert (header.n_done, header.n_planned, header.status) == (6, 6, "finished")
    answers = {(each.position, each.repeat): each.record.outcome.output for each in store.records(header.id)}
    assert {place for place, answer in answers.items() if answer == "new"} == {(1, 0), (1, 1), (1, 2)}


@pytest.mark.parametrize("how", ["rerun", "retry"])
def test_tries_again_are_not_planned_and_go_when_what_they_confirm_is_replaced(store: Store, how: str) -> None:
    fails = ["q1", "q2"]

    def agent(query: str) -> str:
        if f"q{query}" in fails:
            raise ValueError("down")
        return query

    suite = Suite(cases(3), agent, metrics=["exact_match"])
    plan = plan_run(suite, store)
    record(plan, store)
    plan.open = [(1, FIRST_AGAIN), (1, FIRST_AGAIN + 1), (2, FIRST_AGAIN)]
    record(plan, store)
    assert (store.find_run(plan.header.id).n_done, len(store.finished(plan.header.id))) == (3, 6)
    resumed = plan_run(suite, store, resume=plan.header.id)
    assert (resumed.header.n_planned, resumed.open) == (3, [])
    fails.remove("q1")
    if how == "rerun":
        rerun_cases(resumed, ["q1"], store)
        left = {(2, FIRST_AGAIN)}
    else:
        record(plan_run(suite, store, resume=plan.header.id, retry_failed=True), store)
        left = set(plan.open)
        # That it passes now makes up for nothing that was seen before.
        repaired, *_ = store.case(plan.header.id, "q1")
        assert repaired.record.trace.metadata["attempts"] == 2
        assert repaired.record.trace.metadata["earlier_failures"][0].startswith("ValueError: down")
    header = store.find_run(plan.header.id)
    assert (header.n_done, header.n_planned, header.n_failed, header.status) == (3, 3, 1, "finished")
    assert store.finished(plan.header.id) == {(0, 0), (1, 0), (2, 0)} | left


def test_a_rerun_says_with_which_versions_of_the_agent_the_run_was_made(store: Store) -> None:
    suite = Suite(cases(2), lambda query: query, metrics=["exact_match"], agent_version="1")
    _, run_id = run(suite, store)
    for version in ("2", "2", "3"):
        suite = replace(suite, agent_version=version)
        rerun_cases(plan_run(suite, store, resume=run_id, changed_agent=True), ["q1"], store)
    settings = store.find_run(run_id).settings
    assert (settings["agent_version"], settings["earlier_agent_versions"]) == ("3", ["1", "2"])


def test_what_is_noted_after_a_run_was_taken_up_stays_when_more_of_it_is_recorded(store: Store) -> None:
    suite = Suite(cases(2), lambda query: query, metrics=["exact_match"])
    _, run_id = run(suite, store)
    plan = plan_run(suite, store, resume=run_id)
    record(plan, store)
    settings = store.find_run(run_id).settings
    store.update_run(run_id, {**settings, "trying_again": True}, n_planned=2)
    plan.open = [(1, FIRST_AGAIN)]
    record(plan, store)
    assert store.find_run(run_id).settings.get("trying_again") is True


def test_every_failed_repeat_is_retried_that_is_there(store: Store) -> None:
    fails = [True]
    suite = Suite(cases(2), lambda query: 1 / 0 if fails else query, metrics=["exact_match"])
    plan = plan_run(suite, store)
    plan.open += [(1, 1), (1, 2)]
    record(plan, store)
    fails.clear()
    record(plan_run(suite, store, resume=plan.header.id, retry_failed=True), store)
    header = store.find_run(plan.header.id)
    assert (header.n_done, header.n_planned, header.n_failed) == (4, 4, 0)


class Counting:
    """Numbers the cases it meets."""

    name = "counting"
    info = MetricInfo("counting", "custom", "Counts.", stateful=True)

    def __init__(self) -> None:
        self.n = 0

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        self.n += 1
        return MetricResult(self.name, float(self.n))


def test_new_metrics_over_old_records_and_stateful_ones_in_order(store: Store) -> None:
    _, run_id = run(Suite(cases(5), lambda query: query, concurrency=5), store)
    assert score_run(store, run_id, ["exact_match"]) == 5
    assert score_run(store, run_id, ["exact_match"]) == 0  # nothing lacks it
    assert score_run(store, run_id, ["exact_match", "response_time"]) == 5
    assert score_run(store, run_id, [Counting()]) == 5
    assert [row.value for row in run_from_store(store, run_id).metrics["counting"]] == [1, 2, 3, 4, 5]
    score_run(store, run_id, [Counting()])
    assert [row.value for row in run_from_store(store, run_id).metrics["counting"]] == [1, 2, 3, 4, 5]


def test_what_cannot_be_written_fails_its_case_alone(store: Store) -> None:
    def agent(query: str) -> Any:
        return Outcome(output=query, success="yes" if query == "1" else True)  # type: ignore[arg-type]

    recording, run_id = run(Suite(cases(3), agent), store)
    assert recording.failures == {"wrong_type": 1}
    [bad] = store.case(run_id, "q1")
    assert "outcome.success" in bad.record.outcome.error
    assert len(list(store.records(run_id))) == 3


def test_a_run_is_recorded_by_one_process_at_a_time(store: Store) -> None:
    plan = plan_run(Suite(cases(2), lambda query: query), store)
    with only_writer(store, plan.header.id), pytest.raises(SuiteError, match="is being recorded by another process"):
        record(plan, store)
    assert record(plan, store).n_done == 2


def test_attempts_that_failed_were_paid_for(store: Store) -> None:
    def agent(query: str, trace: Any) -> str:
        trace.metadata["cost"] = 0.5
        raise RuntimeError("after the call")

    recording, _ = run(Suite(cases(1), agent, retries=2), store)
    assert recording.spend_usd == 1.5


def test_secrets_of_an_agent_are_not_kept(store: Store) -> None:
    plan = plan_run(Suite(cases(1), "http://me:hunter2@127.0.0.1:9/ask?key=sk-1"), store)
    settings = str(store.find_run(plan.header.id).settings)
    assert "hunter2" not in settings
    assert "sk-1" not in settings
    assert os.stat(store.file).st_mode & 0o077 == 0


class Penalty:
    """A custom metric whose lower values are better, known to nobody but this suite."""

    name = "penalty"
    info = MetricInfo("penalty", "custom", "Lower is better.", direction="lower", range=(0.0, 1.0))

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, 0.25)


def test_what_a_metric_says_of_itself_is_kept_with_the_run(store: Store) -> None:
    suite = Suite(cases(2), lambda query: query, metrics=[Penalty()])
    _, run_id = run(suite, store)
    score_run(store, run_id, suite.metrics)
    assert run_from_store(store, run_id).info("penalty").direction == "lower"


def test_quantiles_and_totals_are_over_records_and_the_mean_over_cases(store: Store) -> None:
    costs = iter([1.0, 2.0, 3.0, 10.0])
    suite = Suite(
        cases(2), lambda query: {"output": query, "cost": next(costs)}, repeats=2, concurrency=1, metrics=["cost"]
    )
    _, run_id = run(suite, store)
    score_run(store, run_id, suite.metrics)
    [row] = run_from_store(store, run_id).summary().metrics
    assert (row.mean, row.total, row.maximum, row.n_scored) == (4.0, 16.0, 10.0, 4)


def test_repeats_tell_how_steady_a_case_is(store: Store) -> None:
    # Repeat-major order: q0 and q1 of the first round, then of the second. q0: 0, 0 (right, right); q1: 1 then wrong.
    answers = iter(["0", "1", "0", "wrong"])
    suite = Suite(cases(2), lambda query: next(answers), repeats=2, concurrency=1, metrics=["exact_match"])
    _, run_id = run(suite, store)
    score_run(store, run_id, suite.metrics)
    [row] = run_from_store(store, run_id).summary().metrics
    assert (row.mean, row.n_repeats, row.pass_all, row.pass_any) == (0.75, 2, 0.5, 1.0)
    assert row.within_case_sd == pytest.approx(0.5)  # variances 0 and 0.5, their mean 0.25


def test_spend_adds_up(store: Store) -> None:
    recording, _ = run(Suite(cases(4), lambda query: {"output": query, "cost": 0.25}), store)
    assert recording.spend_usd == 1.0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"concurrency": 0}, "concurrency must be a whole number of at least 1; received 0"),
        ({"repeats": True}, "repeats must be a whole number"),
        ({"timeout_s": 0}, "timeout_s must be a number above 0; received 0"),
        ({"isolation": "fork"}, "isolation must be auto, process or thread; received 'fork'"),
        ({"min_coverage": 2}, "min_coverage must be from 0 to 1; received 2"),
        ({"seed": "x"}, "seed must be a whole number; received 'x'"),
    ],
)
def test_a_suite_checks_its_settings(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SuiteError, match=sentence):
        Suite([], print, **settings)


def test_suites_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "an_agent.py").write_text("def answer(query):\n    return query\n")
    (tmp_path / "cases.jsonl").write_text('{"id": "q0", "query": "0"}\n')
    (tmp_path / "desk.yaml").write_text(
        "dataset: cases.jsonl\nagent: an_agent:answer\nmetrics: [cost]\ngates: ['cost <= 1']\nrepeats: 2\n"
    )
    suite = load_suite(tmp_path / "desk.yaml")
    assert (suite.name, suite.repeats, suite.gates, suite.folder) == ("desk", 2, ["cost <= 1"], str(tmp_path))
    with Store(tmp_path / "runs.db") as store:
        _, run_id = run(suite, store)
        assert outputs(store, run_id) == {("q0", 0): "0", ("q0", 1): "0"}
    (tmp_path / "two.py").write_text("from agentunit import Suite\na = Suite([], print)\nb = Suite([], print)\n")
    with pytest.raises(SuiteError, match="must define 'suite = Suite"):
        load_suite(tmp_path / "two.py")
    (tmp_path / "typo.yaml").write_text("dataset: cases.jsonl\nagent: a:b\ngate: x\n")
    with pytest.raises(SuiteError, match=r"settings must be among .*; received 'gate'"):
        load_suite(tmp_path / "typo.yaml")
    with pytest.raises(SuiteError, match="no such file"):
        load_suite(tmp_path / "nowhere.py")


def test_an_agent_that_ends_the_loop_or_its_tasks_fails_its_own_case_only(store: Store) -> None:
    from asyncio import all_tasks as imported_before

    async def agent(query: str) -> str:
        if query == "1":
            for task in asyncio.all_tasks():
                task.cancel()
        if query == "2":
            for task in imported_before():
                if task is not asyncio.current_task():
                    task.cancel()
        if query == "3":
            asyncio.get_running_loop().stop()
        if query == "4":
            # What libraries do when they clean up: nothing here but the case's own tasks.
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.001)
        return query

    suite = Suite(cases(8), agent, concurrency=3)
    recording, run_id = run(suite, store)
    assert (recording.n_done, recording.n_failed) == (8, 3)
    errors = {each.case_id: each.record.outcome.error for each in store.records(run_id, failed=True)}
    assert "the agent canceled the task it runs in" in errors["q1"]
    assert "the agent canceled the tasks of the run's event loop" in errors["q2"]
    assert "the agent stopped the run's event loop" in errors["q3"]
    again, _ = run(suite, store, resume=run_id, retry_failed=True)
    assert (again.n_done, again.n_failed) == (3, 3)
    assert asyncio.all_tasks is imported_before


def test_an_exit_in_a_callback_of_the_loop_is_no_verdict(store: Store) -> None:
    async def agent(query: str) -> str:
        asyncio.get_running_loop().call_soon(sys.exit, 0)
        await asyncio.sleep(5)
        return query

    with pytest.raises(SuiteError, match=r"sys\.exit in a callback"):
        run(Suite(cases(1), agent), store)
    assert store.find_run("last").status == "stopped"


def test_lone_surrogates_do_not_end_a_run(store: Store) -> None:
    half = "x\ud800y"
    plan = plan_run(Suite([{"id": "a", "query": "?"}, {"id": half, "query": "?"}], lambda query: query), store)
    assert [case.id for case in plan.cases] == ["a", "x?y"]
    odd = {"query": half, "context": [half], "expected_output": half, "metadata": {half: half}, "other": half}
    for timeout_s in (None, 30):
        suite = Suite([{"id": "a", **odd}, {"id": "b", "query": "?"}], lambda query: query, timeout_s=timeout_s)
        recording, run_id = run(suite, store)
        assert recording.n_done == 2
        score_run(store, run_id, ["exact_match", "pii_leakage"])


@pytest.mark.parametrize("written", ["metrics: contains", "metrics: 'contains,'", "metrics: [contains]"])
def test_one_metric_in_a_yaml_suite_is_that_metric(written: str, tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(f"dataset: cases.jsonl\nagent: 'command: cat'\n{written}\n")
    assert list(load_suite(tmp_path / "suite.yaml").metrics) == ["contains"]


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("metrics:", r"suite\.yaml: 'metrics' is empty; name something, or leave the line out"),
        ("metrics: yes", "Suite: metrics must be a list of names, such as .contains, cost.; received True"),
        ("metrics: ''", "Suite: metrics must be a list of names, such as .contains, cost.; received ''"),
        (
            "gates: {contains: 1}",
            "Suite: gates must be a list of texts like 'faithfulness >= 0.8'; received {'contains'",
        ),
        ("gates: [1]", "Suite: gates must be a list of texts"),
        ("name: 3", "Suite: name must be a text; received 3"),
    ],
)
def test_a_setting_of_another_kind_is_refused(written: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(f"dataset: cases.jsonl\nagent: 'command: cat'\n{written}\n")
    with pytest.raises(SuiteError, match=sentence):
        load_suite(tmp_path / "suite.yaml")


def test_no_gates_and_one_gate_may_be_written_without_a_list() -> None:
    assert Suite([], print, gates=None).gates == ()  # type: ignore[arg-type]
    assert Suite([], print, gates="cost <= 1").gates == ["cost <= 1"]


@pytest.mark.parametrize("name", ["inputs", "detail_keys", "informational", "probes"])
def test_a_text_where_a_metric_lists_texts_is_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"MetricInfo: {name} must be several texts, such as \('cpu',\); received 'cpu'"
    ):
        MetricInfo("m", "custom", "", **{name: "cpu"})  # type: ignore[arg-type]


class Length:
    """The length of the answer; with ``asks_service`` as a judge would give it."""

    name = "length"

    def __init__(self, *, asks_service: bool = False) -> None:
        self.asks_service = asks_service

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, float(len(outcome.output)))


def test_scores_that_were_made_before_an_interrupt_are_all_kept(store: Store) -> None:
    _, run_id = run(Suite(cases(100), lambda query: query), store)

    def interrupt(n_scored: int) -> None:
        if n_scored == 70:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_run(store, run_id, [Length()], on_case=interrupt)
    assert [position for (position, _), _ in store.scores(run_id)] == list(range(70))
    assert score_run(store, run_id, [Length()]) == 30


@pytest.mark.parametrize(("asks_service", "written"), [(False, [64, 36]), (True, [1] * 100)])
def test_scores_are_written_together_unless_a_judge_was_paid_for_them(
    store: Store, monkeypatch: pytest.MonkeyPatch, asks_service: bool, written: list[int]
) -> None:
    _, run_id = run(Suite(cases(100), lambda query: query), store)
    sizes: list[int] = []
    write = store.add_blocks

    def counted(run_id: str, blocks: list[ScoreBlock]) -> None:
        sizes.extend(map(len, blocks))
        write(run_id, blocks)

    monkeypatch.setattr(store, "add_blocks", counted)
    monkeypatch.setattr("agentunit.engine.scoring.rescoring._HELD_BACK_S", 1e9)
    monkeypatch.setattr("agentunit.engine.scoring.rescoring._CASES_AT_ONCE", 64)
    score_run(store, run_id, [Length(asks_service=asks_service)])
    assert (sizes, len(list(store.scores(run_id)))) == (written, 100)


def test_a_reader_that_was_left_may_be_closed_in_any_thread(store: Store) -> None:
    _, run_id = run(Suite(cases(2), lambda query: query), store)
    reader = store.records(run_id)
    next(reader)
    with ThreadPoolExecutor(1) as other:
        other.submit(reader.close).result()  # type: ignore[attr-defined]


def test_slow_scores_do_not_wait_for_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _, run_id = run(Suite(cases(3), lambda query: query), store)
    monkeypatch.setattr("agentunit.engine.scoring.rescoring._HELD_BACK_S", 0.0)
    kept: list[int] = []
    score_run(store, run_id, [Length()], on_case=lambda n: kept.append(len(list(store.scores(run_id)))))
    assert kept == [1, 2, 3]


def test_a_run_is_aggregated_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _, run_id = run(Suite(cases(3), lambda query: query), store)
    monkeypatch.setattr(MetricAggregate, "add", None)
    score_run(store, run_id, [Length()])
    scored = run_from_store(store, run_id)
    summary = scored.summary()
    monkeypatch.setattr(MetricAggregate, "add_block", None)
    assert (scored.summary(), summary.metrics[0].n_scored) == (summary, 3)


def test_cases_that_end_together_are_kept_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = threading.Barrier(4)

    def agent(query: str) -> str:
        barrier.wait(10)
        if query == "5":
            raise ValueError("a bad number")
        return f"<{query}>"

    sizes: list[int] = []
    write = store.add_lines
    monkeypatch.setattr(store, "add_lines", lambda rows: (sizes.append(len(rows)), write(rows)))
    recording, run_id = run(Suite(cases(8), agent, concurrency=4), store)
    assert (recording.n_done, recording.n_failed, recording.failures, sum(sizes)) == (8, 1, {"raised": 1}, 8)
    assert outputs(store, run_id) == {(f"q{n}", 0): None if n == 5 else f"<{n}>" for n in range(8)}

    sizes.clear()
    plan = plan_run(Suite(cases(3), lambda query: query), store)

    async def three_in_one_turn() -> None:
        keeper = _Keeper(partial(_keep, plan, store, Recording(3)), lambda: reported.append(sum(sizes)), 0.0)
        results = [await plan.agent.run(case) for case in plan.cases]
        await asyncio.gather(*[keeper.keep(position, 0, each) for position, each in enumerate(results)])
        keeper.write()

    reported: list[int] = []
    asyncio.run(three_in_one_turn())
    # What is reported is in the store.
    assert (sizes, reported, store.find_run(plan.header.id).n_done) == ([3], [3], 3)


def test_an_error_of_the_last_write_is_not_taken_for_a_stop(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write, n_written = store.add_lines, 0

    def fail_at_the_last(rows: Any) -> None:
        nonlocal n_written
        n_written += len(rows)
        if n_written == 4:
            raise StoreError("the disk is full")
        write(rows)

    monkeypatch.setattr(store, "add_lines", fail_at_the_last)
    with pytest.raises(StoreError, match="the disk is full"):
        run(Suite(cases(4), lambda query: query, concurrency=2), store)
    assert store.find_run("last").status == "stopped"


def test_what_an_interrupt_keeps_from_being_written_is_written_at_the_end() -> None:
    written: list[Any] = []

    def keep(ended: Any) -> None:
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        written.extend(ended)

    async def interrupt_the_first_write() -> None:
        keeper = _Keeper(keep, lambda: None, 60.0)
        keeper._ended.append((0, 0, None))  # type: ignore[arg-type]
        with pytest.raises(KeyboardInterrupt):
            keeper.write()
        keeper.finish()

    interrupted: list[bool] = []
    asyncio.run(interrupt_the_first_write())
    assert written == [(0, 0, None)]


@pytest.mark.parametrize(("name", "is_plain"), [("a.json", True), ("a.JSONL.gz", True), ("a.json.yaml", False)])
def test_only_cases_of_json_files_are_known_to_be_plain(
    store: Store, tmp_path: Path, name: str, is_plain: bool
) -> None:
    (tmp_path / name).write_bytes(b'[{"query": "2"}]' if "L" not in name else gzip.compress(b'{"query": "2"}'))
    assert plan_run(Suite(str(tmp_path / name), lambda query: query), store).cases_are_plain is is_plain


def test_a_record_is_decoded_once_from_recording_to_score(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cases.jsonl").write_text("".join(f'{{"id": "q{n}", "query": "{n}"}}\n' for n in range(5)))
    decoded: list[str] = []
    for module in ("agentunit.adapters.base", "agentunit.engine.recording.runner", "agentunit.store._record_table"):

        def decode(line: bytes, module: str = module) -> Record:
            decoded.append(module)
            return decode_record(line)

        monkeypatch.setattr(f"{module}.decode_record", decode)
    recording, run_id = run(Suite(str(tmp_path / "cases.jsonl"), lambda query: query * 2), store)
    score_run(store, run_id, [Length()], recorded=recording.records)
    assert (decoded, len(list(store.scores(run_id)))) == (["agentunit.adapters.base"] * 5, 5)


def test_records_beyond_what_fits_into_memory_are_read_from_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("agentunit.engine.recording.runner._KEPT_BYTES", 200)
    (tmp_path / "cases.jsonl").write_text("".join(f'{{"id": "q{n}", "query": "{n}"}}\n' for n in range(5)))
    recording, run_id = run(Suite(str(tmp_path / "cases.jsonl"), lambda query: query * 2), store)
    assert 0 < len(recording.records) < 5
    score_run(store, run_id, [Length()], recorded=recording.records)
    assert len(list(store.scores(run_id))) == 5


def test_a_resume_that_is_refused_leaves_the_run_as_it_is(store: Store) -> None:
    _, run_id = run(Suite(cases(2), lambda query: query), store)
    plan = plan_run(Suite(cases(2), lambda query: query, repeats=3), store, resume=run_id)
    with only_writer(store, run_id), pytest.raises(SuiteError, match="being recorded by another process"):
        record(plan, store)
    assert (store.find_run(run_id).n_planned, store.find_run(run_id).status) == (2, "finished")


def test_a_resume_keeps_what_later_scoring_noted(store: Store) -> None:
    _, run_id = run(Suite(cases(2), lambda query: query), store)
    score_run(store, run_id, [Length()])
    assert "length" in store.find_run(run_id).settings["metric_infos"]
    run(Suite(cases(2), lambda query: query, repeats=2), store, resume=run_id)
    assert "length" in store.find_run(run_id).settings["metric_infos"]


def test_an_agent_in_the_loop_finds_every_earlier_case_in_the_store(store: Store) -> None:
    kept: list[int] = []

    async def agent(query: str) -> str:
        kept.append(store.runs()[0].n_done)
        return query

    run(Suite(cases(6), agent, concurrency=3), store)
    # Three begin at once; from then on each begins when another one is kept.
    assert [n_kept >= n_begun - 2 for n_begun, n_kept in enumerate(kept)] == [True] * 6


def test_cases_that_end_together_in_the_loop_are_written_by_one_statement(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def agent(query: str) -> str:
        return query

    sizes: list[int] = []
    write = store.add_lines
    monkeypatch.setattr(store, "add_lines", lambda rows: (sizes.append(len(rows)), write(rows)))
    recording, _ = run(Suite(cases(8), agent, concurrency=4), store)
    assert (recording.n_done, sizes) == (8, [4, 4])


def test_a_store_that_cannot_be_written_ends_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(rows: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(store, "add_lines", full)
    with pytest.raises(StoreError, match="the disk is full"):
        run(Suite(cases(20), lambda query: query, concurrency=4), store)
    assert store.find_run("last").status == "stopped"


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="needs fork")
@pytest.mark.parametrize(("isolation", "in_workers"), [("auto", True), ("process", True), ("thread", False)])
def test_a_suite_says_where_a_named_agent_runs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str, in_workers: bool
) -> None:
    # A model that another test opened in this process leaves a thread, and then "auto" means threads.
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread()])
    (tmp_path / "agent_of_a_suite.py").write_text("import os\ndef answer(query):\n    return str(os.getpid())\n")
    (tmp_path / "suite.yaml").write_text(
        "agent: agent_of_a_suite:answer\ndataset: [{query: a}, {query: b}, {query: c}]\n"
        f"concurrency: 1\nisolation: {isolation}\n"
    )
    recording, run_id = run(load_suite(tmp_path / "suite.yaml"), store)
    (pid,) = set(outputs(store, run_id).values())
    assert (recording.n_failed, pid != str(os.getpid())) == (0, in_workers)
    assert store.find_run(run_id).settings["isolation"] == isolation
