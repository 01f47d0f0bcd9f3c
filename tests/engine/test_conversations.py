"""Conversations that are run: history for every kind of agent, limits, failures of either side, kill and resume."""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentunit import Outcome, Suite, TraceLog
from agentunit.adapters.base import AgentResult
from agentunit.adapters.command import CommandAgent
from agentunit.core.conversation import exchanges_of
from agentunit.core.records import Record
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.decision import decide_run
from agentunit.engine.recording.conversations import add_earlier_users
from agentunit.engine.recording.runner import Caps, Recording, plan_run, record
from agentunit.engine.recording.suite import SuiteError, load_suite
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.metrics import usage
from agentunit.metrics.builtin import CostMetric
from agentunit.store.sqlite import Store

TURNS = ["My name is Ada.", "What is my name?"]


def run(suite: Suite, **options: Any) -> tuple[Recording, list[Record], ScoredRun]:
    with Store("runs.db") as store:
        plan = plan_run(suite, store)
        recording = record(plan, store, **options)
        score_run(store, plan.header.id, suite.metrics)
        return recording, [each.record for each in store.records(plan.header.id)], run_from_store(store, plan.header.id)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def answers(found: Record) -> list[tuple[str, str | None]]:
    return [(turn.query, turn.answer) for turn in exchanges_of(found.trace.events)]


def remembers(messages: list[dict[str, Any]]) -> str:
    said = [each["content"] for each in messages if each["role"] == "user"]
    return f"Ada, after {len(messages)} messages" if any("Ada" in text for text in said[:-1]) else "Hello!"


async def remembers_async(query: str, history: list[dict[str, Any]]) -> str:
    return f"Ada, after {len(history) + 1} messages" if any("Ada" in each["content"] for each in history) else "Hello!"


def takes_everything(**received: Any) -> str:
    return remembers(received["messages"])


def yields(messages: list[dict[str, Any]]) -> Iterator[str]:
    yield from remembers(messages)


EXPECTED = [(TURNS[0], "Hello!"), (TURNS[1], "Ada, after 3 messages")]


@pytest.mark.parametrize("agent", [remembers, remembers_async, takes_everything, yields])
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_function_gets_the_history(agent: Any, isolation: Any) -> None:
    suite = Suite([{"id": "a", "turns": TURNS}], agent, ["response_time"], isolation=isolation)
    _, (found,), _ = run(suite)
    assert answers(found) == EXPECTED
    assert found.outcome.output == EXPECTED[-1][1]  # type: ignore[union-attr]


def test_an_agent_that_is_named_runs_in_worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("remembering_agent.py").write_text(
        "import os\ndef answer(query, messages, case):\n"
        "    return f'{os.getpid()} {len(messages)} {case.messages == messages} {case.turns}'\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(os.getcwd())
    cases = [{"id": f"c{n}", "turns": ["a", "b", "c"]} for n in range(6)]
    _, records, _ = run(Suite(cases, "remembering_agent:answer", ["response_time"], timeout_s=30))
    for found in records:
        replies = [str(answer).split() for _, answer in answers(found)]
        assert [reply[1:] for reply in replies] == [[str(n), "True", "None"] for n in (1, 3, 5)]
        assert str(os.getpid()) not in {reply[0] for reply in replies}


def test_a_command_and_an_http_endpoint_get_the_messages() -> None:
    program = "import json, sys; print(len(json.load(sys.stdin)['messages']), 'messages')"
    _, (found,), _ = run(Suite([{"id": "a", "turns": TURNS}], CommandAgent([sys.executable, "-c", program]), ["cost"]))
    assert [answer for _, answer in answers(found)] == ["1 messages", "3 messages"]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = json.dumps({"output": remembers(received.get("messages", [])), "cost": 0.25}).encode()
            bodies.append(received)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: Any) -> None:
            pass

    bodies: list[dict[str, Any]] = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        cases = [{"id": "a", "turns": TURNS}, {"id": "b", "query": "Hi"}]
        address = f"http://127.0.0.1:{server.server_port}/"
        _, (found, _), scored = run(Suite(cases, address, ["cost"], concurrency=1))
    finally:
        server.shutdown()
        server.server_close()
    assert answers(found) == EXPECTED
    assert bodies[1]["query"] == TURNS[1]
    assert [each["role"] for each in bodies[1]["messages"]] == ["user", "assistant", "user"]
    # What was sent for a case of one question has not changed.
    assert set(bodies[2]) == {"id", "query", "context", "tools", "metadata", "seed"}
    assert [row.value for row in scored.metrics["cost"]] == [0.5, 0.25]


def test_a_question_alone_is_asked_as_ever_and_the_rest_of_the_script_is_hidden() -> None:
    seen: list[Any] = []

    def agent(query: str, case: Any = None, history: Any = "none") -> str:
        seen.append((query, case.turns, case.user, history))
        return "ok"

    run(Suite([{"id": "a", "turns": TURNS}, {"id": "b", "query": "Hi"}], agent, ["cost"], concurrency=1))
    assert [each[:3] for each in seen] == [(TURNS[0], None, None), (TURNS[1], None, None), ("Hi", None, None)]
    assert seen[0][3] == []
    assert len(seen[1][3]) == 2
    assert seen[2][3] == "none"


def test_amounts_are_added_up_over_the_turns() -> None:
    def agent(query: str, trace: Any) -> dict[str, Any]:
        trace.record("llm_call", model="m", usage={"prompt_tokens": 10, "completion_tokens": 5})
        trace.record("tool_call", name="find", status="success" if "Ada" in query else "error")
        trace.metadata["cost"] = 0.5
        return {"output": query, "elapsed_s": 2.0, "usage": {"prompt_tokens": 10, "completion_tokens": 5}}

    metrics = ["cost", "token_usage", "response_time", "tool_success"]
    _, _, scored = run(Suite([{"id": "a", "turns": TURNS}], agent, metrics))
    assert [scored.metrics[name][0].value for name in metrics] == [1.0, 30.0, 4.0, 0.5]


@pytest.mark.parametrize(
    ("later", "cost", "partial", "backend"),
    [
        ({"model": "gpt-4o", "usage": {"prompt_tokens": 100, "completion_tokens": 10}}, 0.85, False, "prices"),
        ({"model": "nobody's", "usage": {"prompt_tokens": 100, "completion_tokens": 10}}, 0.5, True, "recorded"),
        ({"model": "gpt-4o", "cost": 0.25}, 0.75, False, "recorded"),
    ],
)
def test_a_turn_that_states_no_total_costs_what_its_calls_do(
    monkeypatch: pytest.MonkeyPatch, later: dict[str, Any], cost: float, partial: bool, backend: str
) -> None:
    monkeypatch.setattr(usage, "prices_installed", lambda: True)
    monkeypatch.setattr(usage, "price_usd", lambda model, *tokens: 0.35 if model == "gpt-4o" else None)

    def agent(query: str, trace: Any) -> dict[str, Any]:
        if query == TURNS[0]:
            return {"output": "ok", "cost": 0.5}
        trace.record("llm_call", **later)
        return {"output": "ok"}

    _, (found,), scored = run(Suite([{"id": "a", "turns": TURNS}], agent, ["cost"]))
    result = CostMetric().evaluate(found.case, found.trace, found.outcome)
    assert (result.value, result.detail["partial"]) == (pytest.approx(cost), partial)
    assert scored.metrics["cost"][0].backend == backend


def test_messages_that_the_agent_records_itself_are_not_recorded_twice() -> None:
    def agent(query: str, trace: Any) -> str:
        trace.record("message", role="user", content=query)
        trace.record("message", role="assistant", content="ok")
        return "ok"

    _, (found,), _ = run(Suite([{"id": "a", "turns": TURNS}], agent, ["cost"]))
    assert len(found.trace.events) == 4
    assert answers(found) == [(TURNS[0], "ok"), (TURNS[1], "ok")]


# The agent fails


def test_a_failed_turn_fails_the_case_and_a_retry_begins_anew() -> None:
    calls: list[str] = []

    def agent(query: str) -> str:
        calls.append(query)
        if calls.count(TURNS[1]) == 1 and query == TURNS[1]:
            raise ValueError("the first time")
        return query

    recording, (found,), _ = run(Suite([{"id": "a", "turns": TURNS}], agent, ["cost"], retries=1, isolation="thread"))
    assert calls == TURNS * 2
    assert recording.n_failed == 0
    assert found.trace.metadata["attempts"] == 2
    calls.clear()
    recording, (found,), scored = run(Suite([{"id": "a", "turns": TURNS}], agent, ["exact_match"], isolation="thread"))
    assert recording.n_failed == 1
    assert str(found.outcome.error).startswith("turn 2: ValueError: the first time")  # type: ignore[union-attr]
    assert scored.metrics["exact_match"][0].reason == "turn 2: no answer"


def test_the_time_of_a_case_is_that_of_all_its_turns() -> None:
    def agent(query: str) -> str:
        time.sleep(0.4)
        return query

    suite = Suite([{"id": "a", "turns": ["1", "2", "3", "4", "5", "6"]}], agent, ["cost"], timeout_s=1.0)
    recording, (found,), _ = run(suite)
    assert recording.failures == {"timeout": 1}
    assert 1 <= len(exchanges_of(found.trace.events)) <= 3


def test_caps_stop_between_conversations() -> None:
    cases = [{"id": f"c{n}", "turns": TURNS} for n in range(5)]
    agent = lambda query: {"output": query, "cost": 1.0}  # noqa: E731
    recording, records, _ = run(Suite(cases, agent, ["cost"], concurrency=1), caps=Caps(cost_usd=3.0))
    assert (recording.capped_by, len(records)) == ("cost", 2)
    assert all(len(answers(found)) == 2 for found in records)


# The simulated user


def asks_twice(messages: list[dict[str, Any]]) -> str | None:
    return "And more?" if len(messages) < 4 else None


async def asks_async(messages: Any, case: Any, seed: int) -> str | None:
    return f"{case.expected_output} {isinstance(seed, int)}" if not messages else None


@pytest.mark.parametrize(
    ("case", "queries"),
    [
        ({"query": "Hi", "user": asks_twice}, ["Hi", "And more?"]),
        ({"user": asks_twice}, ["And more?", "And more?"]),
        ({"expected_output": "x", "user": asks_async}, ["x True"]),
    ],
)
def test_a_function_plays_the_user(case: dict[str, Any], queries: list[str]) -> None:
    _, (found,), _ = run(Suite([{"id": "a", **case}], lambda query: query, ["cost"]))
    assert [query for query, _ in answers(found)] == queries
    assert found.case.user["function"] == case["user"].__qualname__


def breaks(messages: Any) -> str:
    raise KeyError("no such line")


def exits(messages: Any) -> str:
    sys.exit(3)


def never_ends(messages: Any) -> str:
    return "Go on."


def hangs(messages: Any) -> str:
    time.sleep(60)
    return "too late"


@pytest.mark.parametrize(
    ("user", "why"),
    [
        (breaks, "in breaks)"),  # where it was raised: file:line in function
        (breaks, "breaks raised KeyError: 'no such line' ("),
        (exits, "exits raised SystemExit: 3 ("),
        (never_ends, "never_ends did not end the conversation within 50 messages"),
        (hangs, "hangs gave no message within 0.3 s"),
        (lambda messages: 7, "must return what the user says, as a text, or None at the end; received 7"),
        (lambda messages: None, "it ended the conversation before it said anything"),
    ],
)
def test_a_user_that_fails_is_counted_apart_from_the_agent(user: Any, why: str) -> None:
    cases = [{"id": "broken", "user": user, "expected_output": "x"}]
    cases += [{"id": f"c{n}", "query": "x", "expected_output": "x"} for n in range(9)]
    timeout = 0.3 if user is hangs else None
    suite = Suite(cases, lambda query: query, ["exact_match"], ["exact_match >= 0.9"], timeout_s=timeout)
    recording, records, scored = run(suite)
    assert (recording.n_failed, recording.n_user_failed, scored.n_failed) == (0, 1, 0)
    assert why in str(records[0].trace.metadata["simulated_user"]["failed"])
    assert why in str(scored.metrics["exact_match"][0].reason)
    assert scored.summary().n_user_failed == 1
    decision = decide_run(scored)
    assert decision.exit_code == 0
    assert "simulated user failed: 1 case (broken)" in decision.headline
    assert [(each.kind, each.cases) for each in decision.reasons] == [("simulated user", ("broken",))]


def test_too_many_failed_users_leave_a_gate_undecided_and_not_failed() -> None:
    cases = [{"id": f"b{n}", "user": breaks, "expected_output": "x"} for n in range(3)]
    cases += [{"id": "c", "query": "x", "expected_output": "x"}]
    _, _, scored = run(Suite(cases, lambda query: query, ["exact_match"], ["exact_match >= 0.9"]))
    assert decide_run(scored).verdict == "cannot tell"
    _, _, scored = run(Suite(cases[:3], lambda query: query, ["exact_match"], ["exact_match >= 0.9"]))
    assert decide_run(scored).verdict == "cannot tell"
    _, _, scored = run(Suite(cases, lambda query: "wrong", ["exact_match"], ["exact_match >= 0.9"]))
    assert decide_run(scored).verdict == "fail"


def test_users_that_cannot_be_played_are_refused_before_the_run() -> None:
    def strange(first: Any, second: Any) -> str:
        return ""

    with Store("runs.db") as store:
        with pytest.raises(SuiteError, match=r"case .a.: user: the parameters of .*strange must be among messages"):
            plan_run(Suite([{"id": "a", "user": strange}], lambda query: query), store)
        persona = {"persona": "p", "goal": "g"}
        with pytest.raises(SuiteError, match="case 'a': a judge model plays its user, and no judge is configured"):
            plan_run(Suite([{"id": "a", "user": persona}], lambda query: query), store)
        assert store.runs() == []


# Kill and resume

SUITE = """
import os, time
from agentunit import Suite

def user(messages):
    return f"line {len(messages) // 2}" if len(messages) < 8 else None

def agent(query, messages, case):
    with open("started.log", "ab", buffering=0) as log:
        log.write(f"{case.id} {len(messages)}\\n".encode())
    time.sleep(0.02)
    return f"{query} after {len(messages)}"

suite = Suite(
    dataset=[{"id": f"c{n}", "user": user} if n % 2 else {"id": f"c{n}", "turns": list("abcd")} for n in range(20)],
    agent=agent, metrics=["response_time"], concurrency=2, seed=1,
)
"""


def test_a_killed_run_takes_up_with_whole_conversations() -> None:
    Path("suite.py").write_text(SUITE, encoding="utf-8")
    command = [sys.executable, "-m", "agentunit", "run", "suite.py"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    log = Path("started.log")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not log.exists() or log.read_text().count("\n") < 22):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    with Store(".agentunit/runs.db") as store:
        kept = {each.case_id for each in store.records(store.find_run("last").id)}
    assert 0 < len(kept) < 20
    log.unlink()
    done = subprocess.run([*command, "--resume", "last"], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    started = [line.split() for line in log.read_text().splitlines()]
    assert not kept & {case_id for case_id, _ in started}
    # What was interrupted began again with its first message.
    assert [n for case_id, n in started].count("1") == 20 - len(kept)
    with Store(".agentunit/runs.db") as store:
        records = [each.record for each in store.records(store.find_run("last").id)]
    assert len(records) == 20
    assert all(len(exchanges_of(found.trace.events)) == 4 for found in records)


def test_what_the_users_of_failed_attempts_took_is_counted() -> None:
    spent = {"model": "m", "calls": 2, "cached": 1, "prompt_tokens": 10, "completion_tokens": 5, "cost_usd": 0.5}
    result = AgentResult(Outcome(), TraceLog(metadata={"simulated_user": {"kind": "judge", "judge": dict(spent)}}), 1.0)
    add_earlier_users(result, [spent, {**spent, "cost_usd": None, "unstated": 1}])
    total = result.trace.metadata["simulated_user"]["judge"]
    assert (total["calls"], total["cached"], total["prompt_tokens"], total["unstated"]) == (6, 3, 30, 1)
    assert total["cost_usd"] is None


def test_a_failed_user_neither_wins_nor_loses_a_comparison() -> None:
    cases = [{"id": f"c{n}", "query": "x", "user": asks_twice, "expected_output": "And more?"} for n in range(6)]
    broken = [{**case, "user": breaks} if case["id"] == "c0" else case for case in cases]
    _, _, baseline = run(Suite(cases, lambda query: query, ["exact_match"]))
    _, _, candidate = run(Suite(broken, lambda query: query, ["exact_match"]))
    comparison = compare_runs(candidate, baseline)
    assert not comparison.regressions
    assert {row.metric: row.n_pairs for row in comparison.metrics}["exact_match"] == 5
    assert "newly failing" not in {each.kind for each in comparison.differences}


def test_the_example_finds_its_bug() -> None:
    suite = load_suite(Path(__file__).parents[2] / "examples" / "conversation" / "suite.py")
    _, records, scored = run(suite)
    assert [row.value for row in scored.metrics["exact_match"]] == [1.0, 0.5, 1.0]
    assert len(answers(records[2])) == 2


def test_a_changed_answer_in_an_earlier_turn_is_a_change() -> None:
    cases = [{"id": f"c{n}", "turns": TURNS} for n in range(3)]
    _, _, baseline = run(Suite(cases, lambda query: "ok", ["response_time"]))
    _, _, same = run(Suite(cases, lambda query: "ok", ["response_time"]))
    _, _, other = run(Suite(cases, lambda query: "ok" if query == TURNS[1] else "Hi", ["response_time"]))
    assert compare_runs(same, baseline).n_by_kind["unchanged"] == 3
    assert compare_runs(other, baseline).n_by_kind["other answer"] == 3
