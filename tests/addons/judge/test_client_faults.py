"""What servers do wrong, over real connections: every fault becomes an answer after all, or a problem in words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from judge_asking import ask_all, ask_one, echo, question, settings_for
from judge_decisions import decide
from judge_faults import (
    Fault,
    content_filter,
    cut_off,
    dropped,
    empty_choices,
    failing,
    goodbye,
    huge,
    huge_chunked,
    in_chunks,
    no_usage,
    not_json,
    rate_limited,
    redirected,
    refusal,
    slow,
    truncated,
    wrong_content_type,
)
from judge_server import JudgeServer

from agentunit.addons.judge import _calls as calls
from agentunit.addons.judge._chat_completion import client_for
from agentunit.addons.judge.client import JudgeClient
from agentunit.addons.judge.judge_backend import JudgeBackend
from agentunit.backends.quality import QualityQuestion

ECHO = '{"echo": "is it so?"}'


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_FIRST_BACKOFF_S", 0.01)


PASSING = {
    "429": rate_limited(),
    "429 with seconds": rate_limited("0.3"),
    "429 with a date": rate_limited("Thu, 01 Jan 1970 00:00:00 GMT"),
    "429 with nonsense": rate_limited("soon"),
    "500": failing(500),
    "502": failing(502),
    "503": failing(503, retry_after="0.3"),
    "504": failing(504),
    "529": failing(529),
    "408": failing(408),
    "dropped before the response": dropped(),
    "dropped in the head": dropped(0.1),
    "dropped in the body": dropped(0.9),
    "truncated": truncated(),
    "not JSON": not_json(),
    "empty body": Fault(body=b""),
    "JSON that is no object": Fault(body=b"[]"),
    "JSON without a bottom": Fault(body=b'{"choices":' * 50_000),
    "an error without a bottom": Fault(status=500, body=b'{"error":' * 50_000),
    "not HTTP": Fault(before=b"SMTP ready\r\n"),
    "a status that is none": Fault(before=b"HTTP/1.1 OK\r\n"),
    "empty choices": empty_choices(),
    "null content": Fault(message={"role": "assistant", "content": None}),
    "blank content": Fault(message={"role": "assistant", "content": " \n"}),
    "choices of nonsense": Fault(top={"choices": ["?"]}),
    "too long": huge((4 << 20) + 1),
    "too long in chunks": huge_chunked((4 << 20) + 1),
    "compressed": Fault(headers={"Content-Encoding": "gzip"}),
    "strange transfer encoding": Fault(headers={"Transfer-Encoding": "gzip"}),
    "a length that is no number": Fault(headers={"Content-Length": "many"}),
    "two lengths": Fault(before=b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 5\r\n\r\n"),
    "a chunk longer than its size": Fault(
        before=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n"
    ),
    "a chunk with a size that Python would read": Fault(
        before=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0_1\r\na\r\n0\r\n\r\n"
    ),
    "a head without end": Fault(headers={"X-Long": "x" * 70_000}),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_fault_that_passes_is_tried_again(fault: Fault) -> None:
    with JudgeServer(echo, faults={0: fault}) as server:
        reply = ask_one(settings_for(server))

    assert (reply.text, reply.problem, reply.attempts) == (ECHO, None, 2)
    assert len(server.calls) == 2
    assert not server.errors


NO_FAULTS = {
    "slow": slow(0.3),
    "in chunks": in_chunks(),
    "wrong content type": wrong_content_type(),
    "no usage": no_usage(),
    "continue first": Fault(before=b"HTTP/1.1 100 Continue\r\n\r\n"),
    "closes and says so": Fault(headers={"Connection": "close"}, then_close=True),
    "content in parts": Fault(message={"role": "assistant", "content": [{"type": "text", "text": ECHO}]}),
}


@pytest.mark.parametrize("fault", NO_FAULTS.values(), ids=NO_FAULTS)
def test_what_is_odd_but_right_is_taken(fault: Fault) -> None:
    with JudgeServer(echo, faults={0: fault}) as server:
        reply = ask_one(settings_for(server))

    assert (reply.text, reply.problem, reply.attempts) == (ECHO, None, 1)


FINAL: dict[str, tuple[Fault, str]] = {
    "refusal": (refusal("I'd rather not."), "the model refused: I'd rather not."),
    "content filter": (content_filter(), "a content filter of the server held the reply back"),
    "safety filter": (
        Fault(choice={"finish_reason": "SAFETY"}),
        "a content filter of the server held the reply back",
    ),
    "400": (failing(400, "context too long"), "HTTP 400: context too long"),
    "403": (failing(403, "not for you"), "HTTP 403: not for you"),
    "413": (failing(413, "too much"), "HTTP 413: too much"),
    "413 without a body": (Fault(status=413, body=b""), "HTTP 413"),
    "422 of FastAPI": (Fault(status=422, body=b'{"detail": "no such field"}'), "HTTP 422: no such field"),
    "error as text": (Fault(status=403, body=b"  go\n away "), "HTTP 403: go away"),
}


@pytest.mark.parametrize(("fault", "problem"), FINAL.values(), ids=FINAL)
def test_a_no_is_final(fault: Fault, problem: str) -> None:
    with JudgeServer(echo, faults={0: fault}) as server:
        reply = ask_one(settings_for(server), question(schema=None))

    assert (reply.text, reply.problem, reply.attempts) == (None, problem, 1)
    assert len(server.calls) == 1


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "model_length"])
def test_a_reply_that_was_cut_off_keeps_its_text_and_is_not_kept(tmp_path: object, reason: str) -> None:
    with JudgeServer(echo, faults={0: cut_off(reason)}) as server:
        client = JudgeClient(settings_for(server, cache=str(tmp_path), max_tokens=50))
        first, second = ask_all(client, [question()])[0], ask_all(client, [question()])[0]
        client.close()

    told = "the reply was cut off at its limit of tokens (max_tokens is set to 50: set more, or none)"
    assert (first.text, first.problem, first.attempts) == (ECHO, told, 1)
    assert (second.text, second.problem, second.cached) == (ECHO, None, False)


HOPELESS: dict[str, tuple[Fault, str]] = {
    "401": (failing(401, "Incorrect API key"), "HTTP 401: Incorrect API key"),
    "402": (failing(402, "pay first"), "HTTP 402: pay first"),
    "404": (failing(404, "no such model"), "HTTP 404: no such model"),
    "no quota": (
        Fault(status=429, body=b'{"error": {"message": "You have no quota", "code": "insufficient_quota"}}'),
        "HTTP 429: You have no quota (insufficient_quota)",
    ),
    "redirect": (
        redirected("http://198.51.100.1/v1/chat/completions"),
        "HTTP 307: redirects are not followed; name the address itself",
    ),
    "quota of a day": (
        failing(429, "Daily limit", retry_after="3600"),
        "the server asks to wait 3,600 s: HTTP 429: Daily limit",
    ),
}


@pytest.mark.parametrize(("fault", "problem"), HOPELESS.values(), ids=HOPELESS)
def test_what_is_wrong_with_every_call_is_asked_once(fault: Fault, problem: str) -> None:
    with JudgeServer(echo, faults=lambda _: fault) as server:
        client = JudgeClient(settings_for(server, concurrency=1))
        replies = ask_all(client, (question(f"number {number}") for number in range(20)))
        client.close()

    assert {reply.problem for reply in replies} == {problem}
    assert {reply.text for reply in replies} == {None}
    assert len(server.calls) == 1
    assert (client.usage.failures, client.usage.calls) == (20, 1)


def test_attempts_are_bounded_and_the_last_problem_is_told() -> None:
    with JudgeServer(echo, faults=lambda _: failing(500, "down")) as server:
        reply = ask_one(settings_for(server, max_attempts=3))

    assert (reply.text, reply.attempts) == (None, 3)
    assert reply.problem == "gave up after 3 attempts; the last: HTTP 500: down"
    assert len(server.calls) == 3


@pytest.mark.parametrize("n_faulty", [1, 5])
def test_a_response_sent_twice_is_never_the_reply_to_the_next_question(n_faulty: int) -> None:
    with JudgeServer(echo, faults=dict.fromkeys(range(2, 2 + n_faulty), Fault(twice=True))) as server:
        client = JudgeClient(settings_for(server, concurrency=1))
        replies = ask_all(client, (question(f"number {number}") for number in range(20)))
        client.close()

    assert [reply.text for reply in replies] == [f'{{"echo": "number {number}"}}' for number in range(20)]
    assert server.n_connections == 1 + n_faulty


def test_bytes_that_come_after_a_connection_was_put_aside_close_it() -> None:
    async def exchanged() -> list[bytes]:
        found: list[bytes] = []
        client = client_for(settings_for(server).address)
        for _ in range(3):
            found.append((await client.send("/v1/chat/completions", b"{}")).body)
            (kept,) = client._idle
            # Bytes in the reader, or only with the system: both make the connection useless.
            kept.reader.feed_data(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
        client.close()
        return found

    with JudgeServer(echo, faults=lambda _: Fault(body=b"{}")) as server:
        assert asyncio.run(exchanged()) == [b"{}"] * 3
    assert server.n_connections == 3


def test_a_reply_to_another_question_is_refused_and_not_kept_whatever_the_connection_does(tmp_path: Path) -> None:
    questions = [QualityQuestion("?", [f"Item {at} is red."], f"Item {at} is {'red' if at % 2 else 'blue'}.")
                 for at in range(20)]  # fmt: skip
    wanted = [float(at % 2) for at in range(20)]
    faults = dict.fromkeys((3, 10, 11, 30), Fault(again_first=True))
    with JudgeServer(decide, faults=faults) as server:
        client = JudgeClient(settings_for(server, concurrency=1, cache=str(tmp_path)))
        backend = JudgeBackend(client)
        values = [verdict.value for verdict in backend.judge("faithfulness", questions)]
        n_calls = server.n_calls
        from_cache = [verdict.value for verdict in backend.judge("faithfulness", questions)]
        client.close()

    assert values == wanted
    assert from_cache == wanted
    # The questions that got the reply to another one were sent again, and everything in the cache is their own.
    assert 40 < n_calls <= 40 + len(faults)
    assert server.n_calls == n_calls


def test_a_kept_connection_that_the_server_closed_is_no_failed_attempt() -> None:
    with JudgeServer(echo, faults=lambda _: goodbye()) as server:
        client = JudgeClient(settings_for(server, concurrency=1, max_attempts=1))
        replies = ask_all(client, (question(f"number {number}") for number in range(5)))
        client.close()

    assert [reply.problem for reply in replies] == [None] * 5
    assert server.n_connections == 5


def test_connections_are_used_again() -> None:
    with JudgeServer(echo) as server:
        client = JudgeClient(settings_for(server, concurrency=3))
        replies = ask_all(client, (question(f"number {number}") for number in range(60)))
        client.close()

    assert [reply.text for reply in replies] == [f'{{"echo": "number {number}"}}' for number in range(60)]
    assert server.n_connections <= 3
    assert server.most_at_once <= 3


@pytest.mark.parametrize("fault_of", [lambda n: dropped(0.5), lambda n: failing(500), lambda n: truncated()])
def test_many_faults_among_many_questions_lose_none(fault_of: Callable[[int], Fault]) -> None:
    def every_third(request: object) -> Fault | None:
        number = request.number  # type: ignore[attr-defined]
        return fault_of(number) if number % 3 == 0 else None

    with JudgeServer(echo, faults=every_third) as server:
        client = JudgeClient(settings_for(server, concurrency=20, max_attempts=30))
        replies = ask_all(client, (question(f"number {number}") for number in range(200)))
        client.close()

    assert [reply.text for reply in replies] == [f'{{"echo": "number {number}"}}' for number in range(200)]
    assert client.usage.calls == len(server.calls) == 200 + client.usage.retries


def test_what_is_sent_again_on_a_new_connection_is_counted() -> None:
    with JudgeServer(echo, faults={1: dropped()}) as server:
        client = JudgeClient(settings_for(server, concurrency=1, max_attempts=1))
        replies = [reply for text in ("first", "second") for reply in ask_all(client, [question(text)])]
        client.close()

    assert [reply.problem for reply in replies] == [None, None]
    assert [reply.attempts for reply in replies] == [1, 2]
    assert client.usage.calls == server.n_calls == 3
    # The server had read it whole before it hung up.
    assert client.usage.unstated == 1


def test_a_server_that_hangs_up_on_every_connection_it_kept_is_not_asked_once_for_each() -> None:
    def after_the_first_four(request: object) -> Fault | None:
        return dropped() if request.number >= 4 else None  # type: ignore[attr-defined]

    with JudgeServer(echo, faults=after_the_first_four, latency_s=0.2) as server:
        client = JudgeClient(settings_for(server, concurrency=4, max_attempts=1))
        ask_all(client, (question(f"number {number}") for number in range(4)))
        (reply,) = ask_all(client, [question("one more")])
        client.close()

    assert reply.text is None
    assert client.usage.calls == server.n_calls <= 4 + 2
