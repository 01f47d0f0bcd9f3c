"""A server that cannot be reached, or lets nobody in: found once a run, and waited for once a run."""

from __future__ import annotations

import socket
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from judge_asking import ask_all, echo, question, settings_for
from judge_faults import failing
from judge_server import JudgeServer

from agentunit.addons.judge import _call_limits as limits
from agentunit.addons.judge import _calls as calls
from agentunit.addons.judge.client import JudgeClient
from agentunit.backends import http_client
from agentunit.backends.http_client import HttpClient


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_FIRST_BACKOFF_S", 0.01)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An entry for every attempt to connect."""
    made: list[str] = []
    connected = HttpClient._connected

    async def counted(self: HttpClient) -> Any:
        made.append("attempt")
        return await connected(self)

    monkeypatch.setattr(HttpClient, "_connected", counted)
    return made


@pytest.mark.parametrize("why", ["nobody listens", "no such host"])
def test_a_server_that_cannot_be_reached_is_found_once_a_run(
    why: str, connections: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    if why == "no such host":
        monkeypatch.setattr(http_client, "resolve", unknown)
    with JudgeServer(echo) as server:
        url = server.url
    client = JudgeClient(settings_for(url, concurrency=4, max_attempts=3))
    replies = ask_all(client, (question(f"number {number}") for number in range(50)))
    client.close()

    assert {reply.text for reply in replies} == {None}
    said = "the last: cannot connect: the name is not known" if why == "no such host" else "the last: cannot connect: "
    assert all((reply.problem or "").startswith("gave up after 3 attempts") for reply in replies)
    assert all(said in (reply.problem or "") for reply in replies)
    # The first four at once, and then one that looks out for all.
    assert len(connections) <= 4 + 2


def test_a_server_that_was_not_there_is_asked_again_in_the_next_run() -> None:
    with JudgeServer(echo) as server:
        url = server.url
    client = JudgeClient(settings_for(url, max_attempts=2))
    (first,) = ask_all(client, [question()])
    assert (first.problem or "").startswith("gave up after 2 attempts; the last: cannot connect")
    client.begin_run()
    with JudgeServer(echo, port=port_of(url)):
        (second,) = ask_all(client, [question()])
    client.close()
    assert second.text == '{"echo": "is it so?"}'


def test_a_server_that_starts_again_in_the_middle_of_a_run_loses_no_question() -> None:
    with JudgeServer(echo) as server:
        url = server.url
        client = JudgeClient(settings_for(url, concurrency=4, max_attempts=1))
        assert ask_all(client, [question("before")])[0].text == '{"echo": "before"}'
    futures = [client.submit(client.ask(question(f"number {number}"))) for number in range(20)]
    while client._caller is None or client._caller._outage is None:
        time.sleep(0.001)
    with JudgeServer(echo, port=port_of(url)):
        replies = [future.result(timeout=60) for future in futures]
    client.close()
    assert [reply.text for reply in replies] == [f'{{"echo": "number {number}"}}' for number in range(20)]


def test_a_server_that_stays_away_is_not_waited_for_by_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_LONGEST_OUTAGE_S", 0.05)
    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server, concurrency=4))
        ask_all(client, [question("before")])
    replies = ask_all(client, (question(f"number {number}") for number in range(50)))
    client.close()
    assert {reply.text for reply in replies} == {None}
    assert all("cannot connect" in (reply.problem or "") for reply in replies)
    assert client.usage.calls <= 1 + 2 * 4


def test_the_time_of_a_run_ends_the_wait() -> None:
    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server, concurrency=4, run_timeout_s=0.5))
        ask_all(client, [question("before")])
    replies = ask_all(client, (question(f"number {number}") for number in range(10)))
    client.close()
    assert {reply.problem for reply in replies} == {"the time for all calls of the run (0.5 s) is up"}


def test_every_call_forbidden_is_found_once_and_a_forbidden_text_is_its_own_fault() -> None:
    with JudgeServer(echo, faults=lambda _: failing(403, "not for you")) as server:
        client = JudgeClient(settings_for(server, concurrency=1))
        replies = ask_all(client, (question(f"number {number}") for number in range(20)))
        client.close()
    assert {reply.problem for reply in replies} == {"HTTP 403: not for you"}
    assert len(server.calls) == 1

    flagged = {0: failing(403, "this content is unsafe"), 1: failing(403, "flagged by moderation")}
    with JudgeServer(echo, faults=flagged) as server:
        client = JudgeClient(settings_for(server, concurrency=1))
        replies = ask_all(client, (question(f"number {number}") for number in range(20)))
        client.close()
    assert [reply.problem for reply in replies] == [
        "HTTP 403: this content is unsafe",
        "HTTP 403: flagged by moderation",
        *[None] * 18,
    ]


def port_of(url: str) -> int:
    return urlsplit(url).port or 0
