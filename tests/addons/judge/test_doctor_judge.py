"""``agentunit doctor --judge`` explains every failure, and ``--cache`` looks into the cache and clears it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_asking import ask_one, echo, question, settings_for
from judge_decisions import mark_of
from judge_dialects import reply_in
from judge_faults import Fault, cut_off, failing, redirected
from judge_server import JudgeServer

from agentunit.addons.judge.cache import KeptReply, ReplyCache, cache_contents
from agentunit.addons.judge.doctor import cache_finding, judge_answers
from agentunit.addons.judge.settings import configure_judge


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    configure_judge()
    yield
    configure_judge()


def answered(body: dict[str, Any]) -> dict[str, Any]:
    return {"mark": mark_of(body), "answer": "yes"}


def test_a_judge_that_answers_in_json_is_fine() -> None:
    with JudgeServer(answered) as server:
        configure_judge(url=server.url, model="judge-1")
        (found,) = judge_answers()
    assert (found.state, found.fix, server.n_calls) == ("ok", None, 1)
    assert "(profile compatible) answered in JSON in" in found.note


def in_json(dialect: str) -> Fault:
    return Fault(body=json.dumps(reply_in(dialect, "x", "stop", 1, 1, "m")).encode())


FAULTS: dict[str, tuple[Fault, dict[str, Any], str]] = {
    "no key": (failing(401, "who are you?"), {}, "no key was sent: export AGENTUNIT_JUDGE_API_KEY=…"),
    "wrong key": (failing(401, "no"), {"api_key": "sk-123456789"}, "the key in AGENTUNIT_JUDGE_API_KEY is not the one"),
    "wrong named key": (failing(401, "no"), {"api_key_env": "HOME"}, "the key in HOME is not the one"),
    "403": (failing(403, "denied"), {}, "may not use 'judge-1' there"),
    "404": (failing(404, "model not found"), {}, "check the model 'judge-1', and the address http://127.0.0.1"),
    "405": (failing(405, "POST?"), {}, "takes no questions: compatible servers are named like http://127.0.0.1:8000"),
    "429": (failing(429, "busy"), {}, "turns calls away: wait, or lower AGENTUNIT_JUDGE_CONCURRENCY"),
    "no credit": (
        Fault(status=429, body=b'{"error": {"message": "no", "code": "insufficient_quota"}}'),
        {},
        "has no credit left",
    ),
    "wrong model": (failing(400, "The model 'judge-1' does not exist"), {}, "check the model 'judge-1'"),
    "400": (failing(400, "what?"), {}, "AGENTUNIT_JUDGE_PROFILE names another kind of server (openai, azure,"),
    "500": (failing(500, "oops"), {}, "look into its log"),
    "redirect": (redirected("https://elsewhere.invalid/"), {}, "name the address that it redirects to"),
    "a page": (Fault(body=b"<html></html>"), {}, "is a page, not an API: compatible servers are named like"),
    "wrong dialect": (in_json("anthropic"), {}, "export AGENTUNIT_JUDGE_PROFILE=anthropic"),
    "unknown dialect": (Fault(body=b'{"answer": "yes"}'), {}, "AGENTUNIT_JUDGE_PROFILE names the kind of server"),
    "too few tokens": (cut_off(), {"max_tokens": 5}, "raise AGENTUNIT_JUDGE_MAX_TOKENS"),
    "silence": (Fault(hang=True), {"timeout_s": 0.2}, "raise AGENTUNIT_JUDGE_TIMEOUT_S (now 0.2)"),
    "not HTTP": (Fault(before=b"SSH-2.0\r\n"), {}, "is not an HTTP server, or wants https://"),
    "no JSON": (Fault(message={"content": "Yes!"}), {}, "name a model that follows a format"),
}


@pytest.mark.parametrize(("fault", "settings", "way_out"), FAULTS.values(), ids=FAULTS)
def test_every_failure_has_a_way_out(fault: Fault, settings: dict[str, Any], way_out: str) -> None:
    with JudgeServer(answered, faults=lambda _: fault) as server:
        configure_judge(**{"url": server.url, "model": "judge-1", **settings})
        (found,) = judge_answers()
    assert found.state in ("broken", "not ready")
    assert way_out in (found.fix or "")
    assert "sk-123456789" not in f"{found.note} {found.fix}"


UNREACHED: dict[str, tuple[dict[str, Any], str]] = {
    "nobody listens": ({"url": "http://127.0.0.1:9/v1"}, "nothing listens at 127.0.0.1:9"),
    "no such name": ({"url": "http://no-such-host.invalid/v1"}, "check the host no-such-host.invalid"),
    "a variable that is not set": ({"url": "http://127.0.0.1:9", "api_key_env": "NOT_SET_4711"}, "export NOT_SET_4711"),
    "no keys of AWS": ({"url": "https://bedrock-runtime.eu-west-1.amazonaws.com"}, "export AWS_ACCESS_KEY_ID="),
    "no price": ({"url": "http://127.0.0.1:9", "max_spend_usd": 1}, "set AGENTUNIT_JUDGE_USD_PER_MILLION_INPUT"),
}


@pytest.mark.parametrize(("settings", "way_out"), UNREACHED.values(), ids=UNREACHED)
def test_a_judge_that_cannot_be_reached(
    settings: dict[str, Any], way_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    configure_judge(**{"model": "a-model-of-no-known-price", **settings})
    assert way_out in (judge_answers()[0].fix or "")


async def fix_when_a_server_says(response: bytes, settings: Any) -> str:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(response)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    configure_judge(model="judge-1", **settings(f"127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    (found,) = await asyncio.to_thread(judge_answers)
    server.close()
    return found.fix or ""


def test_tls_where_there_is_none() -> None:
    fix = fix_when_a_server_says(b"HTTP/1.1 400 Bad Request\r\n\r\n", lambda place: {"url": f"https://{place}/v1"})
    assert "write http:// in the URL" in asyncio.run(fix)


@pytest.mark.parametrize(
    ("status", "way_out"),
    [("407 Proxy Authentication Required", "give the proxy its login"), ("403 Forbidden", "check the proxy (as set)")],
)
def test_a_proxy_that_refuses(status: str, way_out: str) -> None:
    refusal = f"HTTP/1.1 {status}\r\n\r\n".encode()
    named = {"url": "https://judge.invalid/v1"}
    fix = fix_when_a_server_says(refusal, lambda place: {**named, "proxy": f"http://{place}"})
    assert way_out in asyncio.run(fix)


# The cache


def test_the_cache_is_looked_into_and_cleared(tmp_path: Path) -> None:
    with JudgeServer(echo) as server:
        for number in range(3):
            ask_one(settings_for(server, cache=str(tmp_path)), question(f"number {number}"))
    configure_judge(cache=str(tmp_path))
    assert cache_finding(clear=False).note.startswith("3 replies, 0.0 of at most 500 MB, used from ")
    assert cache_finding(clear=True).note == f"cleared: 3 replies of {tmp_path}"
    assert cache_finding(clear=False).note.startswith("empty (")
    configure_judge(cache=None)
    assert cache_finding(clear=True).state == "off"


def test_the_replies_that_were_not_used_for_the_longest_time_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(1, 1000))
    monkeypatch.setattr(time, "time", lambda: float(next(times)))
    limit = 200_000
    digests = [bytes([number]) * 32 for number in range(60)]
    cache = ReplyCache(tmp_path, limit)
    for number, digest in enumerate(digests):
        cache.keep(digest, KeptReply("x" * 5_000, None, 1, 1))
        cache.close()
        if number >= 10:
            assert cache.find(digests[0]) is not None  # used again and again
    held = cache_contents(tmp_path)
    assert 0 < held.n_bytes <= limit
    assert cache.find(digests[0]) is not None
    assert cache.find(digests[-1]) is not None
    assert cache.find(digests[1]) is None
    cache.close()
