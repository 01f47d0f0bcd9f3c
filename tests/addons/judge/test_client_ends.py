"""A run ends, whatever the server does or does not do."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from judge_asking import ask_all, ask_one, echo, question, settings_for
from judge_faults import Fault, dropped, failing, rate_limited, silence, trickle
from judge_server import JudgeServer
from virtual_time import run_virtually

from agentunit.addons.judge import _calls as calls
from agentunit.addons.judge._call_limits import Health
from agentunit.addons.judge._chat_completion import Attempt, Dialect, client_for
from agentunit.addons.judge._messages import JudgeUsage
from agentunit.addons.judge.client import JudgeClient

SUPPORT = Path(__file__).resolve().parents[2] / "support"


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_FIRST_BACKOFF_S", 0.01)


@pytest.mark.parametrize("fault", [silence(), trickle(), Fault(status=500, body=b"down", wait_s=0.05)])
def test_two_thousand_questions_to_a_server_that_stopped_answering_end(fault: Fault) -> None:
    with JudgeServer(echo, faults=lambda _: fault, keep_requests=False) as server:
        client = JudgeClient(settings_for(server, concurrency=50, timeout_s=0.3))
        replies = ask_all(client, (question(f"number {number}") for number in range(2000)))
        client.close()

    assert {reply.text for reply in replies} == {None}
    assert all(reply.problem for reply in replies)
    # Most were never sent: the server had been given up, and they say so.
    given_up = [reply for reply in replies if "has given no answer for" in (reply.problem or "")]
    assert len(given_up) > 1500
    assert client.usage.calls < 3000
    assert client.usage.failures == 2000


def test_a_server_that_only_turns_away_is_given_up() -> None:
    with JudgeServer(echo, faults=lambda _: rate_limited("0.3"), keep_requests=False) as server:
        client = JudgeClient(settings_for(server, concurrency=10, timeout_s=0.5))
        replies = ask_all(client, (question(f"number {number}") for number in range(300)))
        client.close()

    assert {reply.text for reply in replies} == {None}
    assert client.usage.calls < 200


def test_the_time_of_a_run_ends_every_question() -> None:
    with JudgeServer(echo, faults=lambda _: silence(), keep_requests=False) as server:
        client = JudgeClient(settings_for(server, concurrency=5, run_timeout_s=0.5))
        replies = ask_all(client, (question(f"number {number}") for number in range(100)))
        client.close()

    assert {reply.problem for reply in replies} == {"the time for all calls of the run (0.5 s) is up"}
    assert client.usage.calls <= 10


def test_another_run_starts_anew() -> None:
    with JudgeServer(echo, faults={0: failing(401, "not yet")}) as server:
        client = JudgeClient(settings_for(server, concurrency=1))
        first = ask_all(client, [question("first"), question("second")])
        client.begin_run()
        second = ask_all(client, [question("third")])
        client.close()

    assert [reply.problem for reply in first] == ["HTTP 401: not yet"] * 2
    assert [reply.text for reply in second] == ['{"echo": "third"}']
    assert (client.usage.questions, client.usage.calls, client.usage.failures) == (1, 1, 0)


def test_a_server_that_comes_back_is_asked_again() -> None:
    with JudgeServer(echo, faults=lambda request: dropped() if request.number < 40 else None) as server:
        client = JudgeClient(settings_for(server, concurrency=10, max_attempts=100))
        replies = ask_all(client, (question(f"number {number}") for number in range(50)))
        client.close()

    assert {reply.problem for reply in replies} == {None}


def test_health_gives_a_quiet_server_up_and_tries_it_again_later() -> None:
    health = Health(settings_for("http://127.0.0.1:1/v1", timeout_s=10.0))
    for number in range(9):
        health.failed(100.0 + number, 100.0, "no", 0.0)
    health.failed(119.0, 110.0, "no", 0.0)
    assert health.why_stop(119.0) is None

    health.failed(120.0, 110.0, "no", 0.0)
    assert health.why_stop(120.0) == ("http://127.0.0.1:1/v1 has given no answer for 20 s; the last of 11 attempts: no")
    assert health.why_stop(140.0) is None
    health.failed(141.0, 140.0, "still no", 0.0)
    assert (health.why_stop(141.0) or "").endswith("the last of 12 attempts: still no")
    health.answered()
    assert health.why_stop(162.0) is None


def test_who_is_woken_after_the_server_was_given_up_hears_why_however_late_that_is() -> None:
    async def woken() -> str | None:
        settings = settings_for("http://127.0.0.1:1/v1", timeout_s=10.0, concurrency=1)
        caller = calls.Caller(settings, client_for(settings.address), JudgeUsage(), Dialect())
        await caller._pace.enter(caller._pace.ticket())
        waiting = asyncio.ensure_future(caller.answer(question()))
        await asyncio.sleep(0)
        # Given up long ago, and for less time than has passed since.
        for _ in range(10):
            caller._learn(Attempt("again", "no"), -200.0, 100.0)
        return (await waiting).problem

    assert run_virtually(woken()) == "http://127.0.0.1:1/v1 has given no answer for 100 s; the last of 10 attempts: no"


def test_closing_breaks_off_what_is_under_way() -> None:
    with JudgeServer(echo, faults=lambda _: silence()) as server:
        client = JudgeClient(settings_for(server, concurrency=2))
        futures = [client.submit(client.ask(question(f"number {number}"))) for number in range(10)]
        while len(server.requests) < 2:
            time.sleep(0.01)
        client.close()
        client.close()
        for future in futures:
            with pytest.raises(concurrent.futures.CancelledError):
                future.result(timeout=60)
        with pytest.raises(RuntimeError, match="the client was closed"):
            client.submit(client.ask(question()))


def test_a_client_that_was_dropped_leaves_nothing_open() -> None:
    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server))
        before = set(threading.enumerate())
        ask_all(client, [question()])
        (thread,) = [each for each in set(threading.enumerate()) - before if each.name == "agentunit-judge"]
        del client
        gc.collect()
        thread.join(60)
        assert not thread.is_alive()
        # What is left unclosed warns here, and a warning is an error.
        gc.collect()


def test_any_event_loop_may_ask() -> None:
    async def several(client: JudgeClient) -> list[str | None]:
        replies = await asyncio.gather(*(client.ask(question(f"number {number}")) for number in range(5)))
        return [reply.text for reply in replies]

    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server))
        found = asyncio.run(several(client)) + asyncio.run(several(client))
        client.close()

    assert found == 2 * [f'{{"echo": "number {number}"}}' for number in range(5)]


def test_a_question_that_cannot_be_written_says_so() -> None:
    with JudgeServer(echo) as server:
        reply = ask_one(settings_for(server), question("half a pair: \ud800"))

    assert reply.text is None
    assert (reply.problem or "").startswith("the question cannot be sent")
    assert not server.calls


def test_a_process_that_never_closes_its_client_ends() -> None:
    program = f"""
        import sys
        sys.path.insert(0, {str(SUPPORT)!r})
        from judge_asking import echo, question, settings_for
        from judge_faults import silence
        from judge_server import JudgeServer
        from agentunit.addons.judge.client import JudgeClient

        server = JudgeServer(echo, faults=lambda _: silence()).__enter__()
        client = JudgeClient(settings_for(server))
        futures = [client.submit(client.ask(question(str(number)))) for number in range(50)]
        while not server.requests:
            pass
        print("the end")
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "the end\n", "")


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
def test_a_forked_process_asks_over_connections_of_its_own() -> None:
    program = f"""
        import os, sys
        sys.path.insert(0, {str(SUPPORT)!r})
        from judge_asking import ask_all, echo, question, settings_for
        from judge_server import JudgeServer
        from agentunit.addons.judge.client import JudgeClient

        with JudgeServer(echo) as server:
            client = JudgeClient(settings_for(server))
            ask_all(client, [question("before")])
            child = os.fork()
            if child == 0:
                text = ask_all(client, [question("in the child")])[0].text
                client.close()
                os._exit(0 if text == '{{"echo": "in the child"}}' else 9)
            status = os.waitpid(child, 0)[1]
            print(status, ask_all(client, [question("after")])[0].text)
            client.close()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300, check=False
    )

    assert (done.returncode, done.stdout) == (0, '0 {"echo": "after"}\n'), done.stderr


def test_many_threads_that_ask_first_at_once_share_one_loop() -> None:
    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server))
        start = threading.Barrier(8)
        before = set(threading.enumerate())

        def ask(number: int) -> str | None:
            start.wait(60)
            return client.submit(client.ask(question(f"number {number}"))).result(timeout=60).text

        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            found = list(threads.map(ask, range(8)))
        loops = [thread for thread in set(threading.enumerate()) - before if thread.name == "agentunit-judge"]
        client.close()

    assert found == [f'{{"echo": "number {number}"}}' for number in range(8)]
    assert len(loops) == 1
