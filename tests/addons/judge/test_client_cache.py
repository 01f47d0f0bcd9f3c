"""Replies kept on disk: the second run makes no calls, and nothing that happens to the file makes an error."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_asking import ask_all, echo, question, settings_for
from judge_faults import Fault, failing, refusal
from judge_server import JudgeServer

from agentunit.addons.judge.cache import KeptReply, ReplyCache, cache_folder
from agentunit.addons.judge.client import JudgeClient, JudgeReply, JudgeRequest
from agentunit.addons.judge.settings import JudgeSettings

SUPPORT = Path(__file__).resolve().parents[2] / "support"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(echo) as running:
        yield running


def _run(settings: JudgeSettings, requests: list[JudgeRequest]) -> tuple[JudgeClient, list[JudgeReply]]:
    client = JudgeClient(settings)
    try:
        return client, ask_all(client, requests)
    finally:
        client.close()


def test_a_second_run_makes_no_calls(server: JudgeServer, tmp_path: Path) -> None:
    settings = settings_for(server, cache=str(tmp_path), usd_per_million_input=1.0, usd_per_million_output=2.0)
    requests = [question(f"number {number}") for number in range(50)]
    first_client, first = _run(settings, requests)
    second_client, second = _run(settings, requests)

    assert len(server.calls) == 50
    assert [reply.text for reply in second] == [reply.text for reply in first]
    assert {(reply.cached, reply.attempts, reply.cost_usd) for reply in second} == {(True, 0, 0.0)}
    assert [reply.prompt_tokens for reply in second] == [reply.prompt_tokens for reply in first]
    assert (first_client.usage.calls, first_client.usage.cached) == (50, 0)
    assert (second_client.usage.calls, second_client.usage.cached) == (0, 50)
    assert second_client.usage.prompt_tokens == 0
    assert second_client.usage.cost_usd == 0.0


def test_without_a_cache_every_run_asks(server: JudgeServer) -> None:
    for _ in range(2):
        _run(settings_for(server, cache=None), [question()])
    assert len(server.calls) == 2


CHANGES = [
    {"system": "Judge well."},
    {"user": "is it not so?"},
    {"schema": None},
    {"schema": {"type": "object"}},
    {"max_tokens": 1025},
    {"sample": 1},
]


@pytest.mark.parametrize("change", CHANGES)
def test_another_question_has_another_place(change: dict[str, object]) -> None:
    first, second = question(), JudgeRequest(**{**vars(question()), **change})  # type: ignore[arg-type]
    assert first.digest("http://a/v1", "m") != second.digest("http://a/v1", "m")
    assert first.digest("http://a/v1", "m") != first.digest("http://b/v1", "m")
    assert first.digest("http://a/v1", "m") != first.digest("http://a/v1", "n")


def test_the_purpose_and_the_key_of_the_user_do_not_matter(server: JudgeServer, tmp_path: Path) -> None:
    for purpose, key in (("claims", None), ("verdicts", "another-key-of-the-user")):
        _run(settings_for(server, cache=str(tmp_path), api_key=key), [question(purpose=purpose)])
    assert len(server.calls) == 1


@pytest.mark.parametrize("fault", [failing(400, "no"), refusal(), failing(401)])
def test_failures_are_not_kept(fault: Fault, tmp_path: Path) -> None:
    with JudgeServer(echo, faults={0: fault}) as server:
        settings = settings_for(server, cache=str(tmp_path))
        first = _run(settings, [question(schema=None)])[1][0]
        second = _run(settings, [question(schema=None)])[1][0]

    assert first.text is None
    assert (second.text, second.cached) == ('{"echo": "is it so?"}', False)


def test_a_reply_that_is_forgotten_is_asked_for_again(server: JudgeServer, tmp_path: Path) -> None:
    client = JudgeClient(settings_for(server, cache=str(tmp_path)))
    ask_all(client, [question(), question("another")])
    client.forget(question())
    again = ask_all(client, [question(), question("another")])
    client.close()

    assert [reply.cached for reply in again] == [False, True]
    assert len(server.calls) == 3


@pytest.mark.parametrize("cache", [True, False])
def test_the_same_question_under_way_is_asked_once(cache: bool, tmp_path: Path) -> None:
    all_asked = threading.Event()

    def patient_echo(body: dict[str, object]) -> dict[str, str]:
        all_asked.wait(60)
        return echo(body)

    with JudgeServer(patient_echo) as server:
        client = JudgeClient(settings_for(server, cache=str(tmp_path) if cache else None))
        futures = [client.submit(client.ask(question())) for _ in range(30)]
        while client.usage.questions < 30:
            time.sleep(0.01)
        all_asked.set()
        replies = [future.result(timeout=60) for future in futures]
        client.close()

    assert len(server.calls) == 1
    assert {reply.text for reply in replies} == {'{"echo": "is it so?"}'}
    assert sum(reply.cached for reply in replies) == client.usage.cached == 29


def test_when_the_one_who_asked_is_broken_off_another_asks() -> None:
    go_on = threading.Event()

    def slow_echo(body: dict[str, object]) -> dict[str, str]:
        go_on.wait(60)
        return echo(body)

    with JudgeServer(slow_echo) as server:
        client = JudgeClient(settings_for(server))
        first = client.submit(client.ask(question()))
        second = client.submit(client.ask(question()))
        while not server.requests or client.usage.questions < 2:
            time.sleep(0.01)
        first.cancel()
        go_on.set()
        assert second.result(timeout=60).text == '{"echo": "is it so?"}'
        client.close()


def test_damaged_entries_count_as_not_there(server: JudgeServer, tmp_path: Path) -> None:
    settings = settings_for(server, cache=str(tmp_path))
    requests = [question(f"number {number}") for number in range(4)]
    _run(settings, requests)
    (file,) = tmp_path.glob("*.sqlite")
    connection = sqlite3.connect(file)
    digests = [request.digest(server.url, "judge-1") for request in requests]
    with connection:
        connection.execute("UPDATE replies SET reply = X'7B' WHERE digest = ?", (digests[0],))
        connection.execute("UPDATE replies SET checksum = X'00' WHERE digest = ?", (digests[1],))
        connection.execute("UPDATE replies SET reply = 'text' WHERE digest = ?", (digests[2],))
    connection.close()
    _, replies = _run(settings, requests)

    assert [reply.cached for reply in replies] == [False, False, False, True]
    assert [reply.cached for reply in _run(settings, requests)[1]] == [True] * 4


def test_a_damaged_file_costs_calls_and_is_told(server: JudgeServer, tmp_path: Path) -> None:
    settings = settings_for(server, cache=str(tmp_path))
    _run(settings, [question()])
    (file,) = tmp_path.glob("*.sqlite")
    for beside in tmp_path.glob("*.sqlite-*"):
        beside.unlink()
    file.write_bytes(b"this is no database" * 500)
    client, replies = _run(settings, [question(), question("another")])

    assert [reply.problem for reply in replies] == [None, None]
    (problem,) = client.usage.problems
    assert problem.startswith(f"the cache {file} cannot be used, so replies are not kept: ")


def test_a_folder_that_cannot_be_made_costs_calls_and_is_told(server: JudgeServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    client, replies = _run(settings_for(server, cache=str(tmp_path / "file" / "cache")), [question()])

    assert replies[0].text == '{"echo": "is it so?"}'
    assert len(client.usage.problems) == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_only_the_user_can_read_it_and_no_secret_is_in_it(server: JudgeServer, tmp_path: Path) -> None:
    url = server.url.replace("http://", "http://me:hush-hush-hush@") + "?api-key=abcdefghijkl"
    folder = tmp_path / "new" / "cache"
    _run(settings_for(url, cache=str(folder), api_key="sk-very-secret-key"), [question("the prompt")])

    (file,) = folder.glob("*.sqlite")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    written = b"".join(path.read_bytes() for path in folder.iterdir())
    for secret in (b"sk-very-secret-key", b"hush-hush-hush", b"abcdefghijkl", b"127.0.0.1", b"Judge."):
        assert secret not in written


def test_several_processes_share_one_cache(server: JudgeServer, tmp_path: Path) -> None:
    program = f"""
        import sys
        sys.path.insert(0, {str(SUPPORT)!r})
        from judge_asking import ask_all, question, settings_for
        from agentunit.addons.judge.client import JudgeClient
        client = JudgeClient(settings_for({server.url!r}, cache={str(tmp_path)!r}))
        replies = ask_all(client, [question(f"number {{number}}") for number in range(100)])
        client.close()
        assert [reply.text for reply in replies] == [f'{{{{"echo": "number {{number}}"}}}}' for number in range(100)]
        assert not client.usage.problems, client.usage.problems
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    errors = [process.communicate(timeout=300)[1] for process in running]

    assert errors == [""] * 4
    calls = len(server.calls)
    assert 100 <= calls <= 400
    _run(settings_for(server, cache=str(tmp_path)), [question(f"number {number}") for number in range(100)])
    assert len(server.calls) == calls


@given(st.binary(min_size=32, max_size=32), st.text(), st.none() | st.text(), st.none() | st.integers(0, 10**9))
def test_what_is_kept_is_found(digest: bytes, text: str, model: str | None, tokens: int | None) -> None:
    cache = ReplyCache(_SHARED)
    try:
        text, model = (each and each.encode("utf-8", "replace").decode() for each in (text, model))
        reply = KeptReply(text or "", model, tokens, tokens)
        cache.keep(digest, reply)
        assert cache.find(digest) == reply
        cache.forget(digest)
        assert cache.find(digest) is None
        assert cache.problem is None
    finally:
        cache.close()


@pytest.fixture(autouse=True, scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> None:
    global _SHARED
    _SHARED = tmp_path_factory.mktemp("shared")


_SHARED = Path()


def test_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("default") == tmp_path / "agentunit" / "judge"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder("default") == Path.home() / ".cache" / "agentunit" / "judge"
    assert cache_folder(str(tmp_path)) == tmp_path
