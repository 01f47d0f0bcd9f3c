"""Conversations from the command line: a judge model that plays the user, what is asked and spent, and reports."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_decisions import decide, mark_of, texts_of
from judge_faults import failing
from judge_server import JudgeServer
from viewer_client import report_text

from agentunit.addons.judge.settings import configure_judge
from agentunit.backends.quality import load_backend
from agentunit.cli import sending_notice as consent
from agentunit.core.conversation import exchanges_of
from agentunit.engine.scoring import judging as judge_runs
from agentunit.store.sqlite import Store

PERSONA = {"persona": "A guest who says little.", "goal": "Get a table for two.", "max_turns": 4}
AGENT = """
def answer(query, messages):
    reply = "Your table for two is booked." if "two" in query else "For how many?"
    return {"output": reply, "cost": 0.5}
"""


@pytest.fixture(autouse=True)
def no_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("AGENTUNIT_JUDGE_", "AGENTUNIT_RAGAS"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", str(tmp_path / "replies"))
    yield
    configure_judge()
    backend: Any = load_backend("judge")
    backend.close()


def play(body: dict[str, Any]) -> dict[str, Any]:
    """A guest: asks, says for how many, and is done when the table is booked."""
    if "You play a user" not in body["messages"][0]["content"]:
        return decide(body)
    assert "A guest who says little." in body["messages"][0]["content"]
    said = "\n".join(texts_of(body).values())
    message = "For two." if "For how many?" in said else "A table, please."
    return {"mark": mark_of(body), "message": "" if "booked" in said else message, "done": "booked" in said}


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(play) as running:
        yield running


def write_suite(n_cases: int = 1, **more: Any) -> None:
    Path("booking.py").write_text(AGENT, encoding="utf-8")
    cases = [
        {"id": f"c{n}", "user": PERSONA, "expected_output": "Your table for two is booked."} for n in range(n_cases)
    ]
    Path("cases.json").write_text(json.dumps(cases), encoding="utf-8")
    suite = {"dataset": "cases.json", "agent": "booking:answer", "metrics": ["exact_match", "cost"], "seed": 3, **more}
    Path("suite.yaml").write_text(json.dumps(suite), encoding="utf-8")


def judged(server: JudgeServer, *more: str) -> list[str]:
    return ["--judge-url", server.url, "--judge-model", "judge-1", *more]


def records() -> list[Any]:
    with Store(".agentunit/runs.db") as store:
        return list(store.records(store.find_run("last").id))


def test_a_judge_model_plays_a_persona(invoke: Any, server: JudgeServer) -> None:
    write_suite(2, repeats=2, judge={"usd_per_million_input": 1e4, "usd_per_million_output": 1e4})
    made = invoke("run", "suite.yaml", *judged(server), "--gate", "exact_match all == 1", "--json")
    assert made.exit_code == 0, made.output
    for stored in records():
        turns = exchanges_of(stored.record.trace.events)
        assert [turn.query for turn in turns] == ["A table, please.", "For two."]
        about = stored.record.trace.metadata["simulated_user"]
        assert (about["kind"], about["ended"]) == ("judge", "the user was done")
        assert about["judge"]["calls"] + about["judge"]["cached"] == 3
    # Drawn, by a seed of its own for each repeat of each case, the same in every run.
    seeds = {call.body["seed"] for call in server.calls}
    assert len(seeds) == 4
    assert {call.body["temperature"] for call in server.calls} == {1}
    assert "the simulated user asks a judge: persona, goal and conversation of 2 cases go to judge-1" in made.stderr
    summary = json.loads(made.stdout)["summary"]
    # What the user took stands beside the agent's cost, and is not part of it.
    assert summary["simulated_user"]["n_calls"] == len(server.calls) == 12
    assert summary["simulated_user"]["cost_usd"] > 0
    assert next(row["total"] for row in summary["metrics"] if row["metric"] == "cost") == 4.0
    n_calls = len(server.calls)
    assert invoke("run", "suite.yaml", *judged(server)).exit_code == 0
    assert len(server.calls) == n_calls, "the same conversation was paid for twice"
    shown = invoke("show", "last")
    assert "simulated user:" in shown.output


def test_a_user_that_is_not_done_ends_at_max_turns_and_is_scored(invoke: Any) -> None:
    write_suite()
    with JudgeServer(lambda body: {"mark": mark_of(body), "message": "Hm.", "done": False}) as server:
        made = invoke("run", "suite.yaml", *judged(server), "--gate", "exact_match all == 1")
    assert made.exit_code == 1, "the agent never got there, and that is its own failure"
    (stored,) = records()
    assert len(exchanges_of(stored.record.trace.events)) == 4
    assert stored.record.trace.metadata["simulated_user"]["ended"] == "max_turns (4) was reached"


@pytest.mark.parametrize("reply", ["I would rather not.", None])
def test_a_judge_that_fails_is_no_failure_of_the_agent(invoke: Any, reply: str | None) -> None:
    write_suite(2)
    faults = None if reply else (lambda received: failing(500))
    with JudgeServer(lambda body: str(reply), faults=faults) as server:
        options = ["--judge-timeout", "2", "--gate", "exact_match >= 0.9"]
        made = invoke("run", "suite.yaml", *judged(server, *options), env={"AGENTUNIT_JUDGE_MAX_ATTEMPTS": "1"})
    assert made.exit_code == 4, made.output
    assert "simulated user failed: 2 cases (c0, c1)" in made.output
    assert "the agent failed" not in made.output
    assert [stored.failed for stored in records()] == [False, False]
    assert invoke("export", "last", "--to", "j.xml").exit_code == 0
    assert Path("j.xml").read_text(encoding="utf-8").count("<skipped") == 2
    # They are run again as failed ones are.
    with JudgeServer(play) as server:
        again = invoke("run", "suite.yaml", "--resume", "last", "--retry-failed", *judged(server))
    assert again.exit_code == 0, again.output
    assert "simulated user failed" not in again.output


@pytest.mark.parametrize("repeats", ["1", "auto"])
def test_what_users_may_take_is_capped(invoke: Any, server: JudgeServer, repeats: str) -> None:
    # Some conversations of three calls fit into the cap, and then none.
    prices = {"usd_per_million_input": 10.0, "usd_per_million_output": 10.0}
    write_suite(30, judge={**prices, "max_spend_usd": 0.25}, concurrency=1)
    made = invoke("run", "suite.yaml", *judged(server), "--gate", "exact_match >= 0.9", "--repeats", repeats, "--json")
    assert made.exit_code == 4, made.output
    summary = json.loads(made.stdout)["summary"]
    assert 0 < summary["simulated_user"]["cost_usd"] <= 0.25
    failed = [each.record.trace.metadata["simulated_user"].get("failed") for each in records()]
    assert any(failed), "nothing was left unplayed"
    assert not all(failed), "nothing was played"
    assert all("spend" in each for each in failed if each)
    assert summary["n_user_failed"] == sum(each is not None for each in failed)


def test_a_rerun_has_one_cap_for_users_and_scores(
    invoke: Any, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(metrics=["answer_correctness"])
    options = judged(server, "--backend", "judge")
    assert invoke("run", "suite.yaml", *options).exit_code == 0
    began: list[None] = []
    monkeypatch.setattr(judge_runs, "_begin", lambda: began.append(None))
    assert invoke("rerun", "last", "c0", *options).exit_code == 0
    assert len(began) == 1, "the cap began anew for the scores"


def test_nothing_is_sent_without_consent(invoke: Any, server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    write_suite()
    monkeypatch.setattr(consent, "_somebody_can_answer", lambda: True)
    made = invoke("run", "suite.yaml", *judged(server), input="n\n")
    assert made.exit_code == 2
    assert server.calls == []
    assert invoke("runs").output.count("c0") == 0
    configure_judge()
    refused = invoke("run", "suite.yaml")
    assert refused.exit_code != 0
    assert "case 'c0': a judge model plays its user, and no judge is configured" in refused.output


def test_settings_of_a_judge_that_nobody_asks_are_refused_as_ever(invoke: Any, server: JudgeServer) -> None:
    write_suite()
    Path("cases.json").write_text('[{"id": "a", "query": "Hi"}]', encoding="utf-8")
    made = invoke("run", "suite.yaml", *judged(server))
    assert made.exit_code == 2
    assert "no metric asks a judge" in made.output


def test_a_server_that_knows_no_seeds_is_asked_without_one(invoke: Any) -> None:
    write_suite()

    def refuse_seeds(received: Any) -> Any:
        return failing(400, "Unrecognized request argument supplied: seed") if "seed" in received.body else None

    with JudgeServer(play, faults=refuse_seeds) as server:
        made = invoke("run", "suite.yaml", *judged(server))
    assert made.exit_code == 0, made.output
    assert ["seed" in call.body for call in server.calls] == [True, False, False, False]


def test_reports_show_a_conversation_as_turns(invoke: Any, server: JudgeServer) -> None:
    write_suite()
    assert invoke("run", "suite.yaml", *judged(server), "--gate", "cost all <= 0.1").exit_code == 1
    shown = invoke("show", "last", "c0").output
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    at = lines.index("Conversation")
    assert lines[at + 1 : at + 5] == [
        "1 user A table, please.",
        "agent For how many?",
        "2 user For two.",
        "agent Your table for two is booked.",
    ]
    assert any("turn 2: 1.00" in line for line in lines[lines.index("Scores") :])
    assert invoke("export", "last", "--to", "r.md").exit_code == 0
    assert "user: A table, please.\nagent: For how many?" in Path("r.md").read_text(encoding="utf-8")
    assert invoke("export", "last", "--to", "r.html").exit_code == 0
    assert '"turns": [{' in report_text("r.html")


def test_a_field_that_looks_like_a_slip_is_noted(invoke: Any) -> None:
    rows = [
        {"id": "a", "query": "Hi", "user": "guest"},
        {"id": "b", "query": "Hi", "user": "guest", "trns": ["Hi", "Bye"]},
        {"id": "c", "query": "Hi", "expectd": "Hi", "metadata": {"known_failures": {"reason": "x"}}},
        # Fields of the dataset's own: no slip.
        {"id": "d", "query": "Hi", "answer": "Hi", "answers": ["Hi"], "users": ["x"], "turn": 3, "mood": "good"},
    ]
    Path("cases.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("suite.py").write_text(
        "from agentunit import Suite\nsuite = Suite('cases.jsonl', lambda query: query, metrics=['response_time'])\n"
    )
    result = invoke("run", "suite.py")
    assert result.exit_code == 0, result.output
    notes = [line for line in result.stderr.splitlines() if line.startswith("note: field")]
    assert [note.partition(" (metadata")[0].partition(" (a function")[0] for note in notes] == [
        "note: field 'user' (2 cases) is a plain text and plays no conversation",
        "note: field 'trns' (1 case) is not read; did you mean 'turns'?",
        "note: field 'expectd' (1 case) is not read; did you mean 'expected'?",
        "note: field 'metadata.known_failures' (1 case) is not read; did you mean 'known_failure'?",
    ]
    suite = Path("suite.py").read_text()
    Path("suite.py").write_text(suite.replace("metrics=", "grader_fields=['user', 'trns', 'expectd'], metrics="))
    assert invoke("run", "suite.py").stderr.count("note: field '") == 1
    Path("cases.jsonl").write_text('{"trns": ["Hi"]}')
    assert "did you mean 'turns'?" in invoke("run", "suite.py").output


def test_why_a_user_failed_is_on_the_page(invoke: Any) -> None:
    Path("suite.py").write_text(
        "from agentunit import Suite\n"
        "def guest(messages):\n"
        "    raise KeyError('no such line')\n"
        "suite = Suite([{'id': 'a', 'user': guest}], lambda query: query, metrics=['exact_match'])\n"
    )
    assert "guest raised KeyError: 'no such line' (suite.py:3 in guest)" in invoke("run", "suite.py").stdout
    assert invoke("export", "last", "--to", "run.html").exit_code == 0
    assert "guest raised KeyError: 'no such line' (suite.py:3 in guest)" in report_text("run.html")
