"""Batches: handed in together, found again by a run that was killed, paid for once."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_asking import ask_all, question, settings_for
from judge_batches import BatchShelf
from judge_decisions import decide
from judge_server import JudgeServer

from agentunit.addons.judge import _batches as batches
from agentunit.addons.judge import _calls as calls
from agentunit.addons.judge._batch_journal import BatchJournal, open_batches_in
from agentunit.addons.judge.client import JudgeClient
from agentunit.addons.judge.judge_backend import JudgeBackend
from agentunit.addons.judge.settings import JudgeSettings
from agentunit.backends.quality import QualityQuestion


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "QUIET_S", 0.05)
    monkeypatch.setattr(batches, "FIRST_POLL_S", 0.01)
    monkeypatch.setattr(calls, "_FIRST_BACKOFF_S", 0.01)


@pytest.fixture(params=["openai", "anthropic"])
def kind(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def shelf() -> BatchShelf:
    return BatchShelf()


@pytest.fixture
def server(shelf: BatchShelf) -> Iterator[JudgeServer]:
    with JudgeServer(lambda body: {"echo": body["messages"][-1]["content"]}, batches=shelf) as running:
        yield running


def settings_of(server: JudgeServer, kind: str, folder: Path, **changes: Any) -> JudgeSettings:
    url = server.url if kind == "openai" else server.url.removesuffix("/v1")
    profile = "compatible" if kind == "openai" else "anthropic"
    prices = {"usd_per_million_input": 1000.0, "usd_per_million_output": 1000.0}
    return settings_for(url, profile=profile, batch=True, cache=str(folder), **prices, **changes)


def asked(settings: JudgeSettings, n_questions: int = 20) -> tuple[JudgeClient, list[str | None]]:
    client = JudgeClient(settings)
    replies = ask_all(client, (question(f"number {number}") for number in range(n_questions)))
    client.close()
    return client, [reply.text for reply in replies]


ECHOES = [f'{{"echo": "number {number}"}}' for number in range(20)]


def test_questions_are_asked_in_one_batch_at_half_the_price(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path
) -> None:
    client, texts = asked(settings_of(server, kind, tmp_path))
    assert texts == ECHOES
    assert (shelf.submissions, server.n_calls) == (1, 0)
    tokens = client.usage.prompt_tokens + client.usage.completion_tokens
    assert client.usage.cost_usd == pytest.approx(tokens * 1000 / 1e6 / 2)
    # Everything is in the cache by now: a second run hands in nothing.
    assert asked(settings_of(server, kind, tmp_path))[1] == ECHOES
    assert shelf.submissions == 1
    assert open_batches_in(tmp_path) == []


def test_a_run_that_was_killed_finds_its_batch_again(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path
) -> None:
    shelf.polls_to_end = 10**9
    client = JudgeClient(settings_of(server, kind, tmp_path))
    futures = [client.submit(client.ask(question(f"number {number}"))) for number in range(20)]
    _until(lambda: any(each.batch_id for each in open_batches_in(tmp_path)))
    client.close()
    assert all(each.cancelled() for each in futures)

    shelf.polls_to_end = 1
    assert asked(settings_of(server, kind, tmp_path))[1] == ECHOES
    assert shelf.submissions == 1


def test_a_run_that_was_killed_before_it_knew_the_id_finds_its_batch_by_what_it_handed_in(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = BatchJournal.name_batch
    monkeypatch.setattr(BatchJournal, "name_batch", _killed)
    client = JudgeClient(settings_of(server, kind, tmp_path))
    futures = [client.submit(client.ask(question(f"number {number}"))) for number in range(20)]
    _until(lambda: shelf.submissions == 1)
    client.close()
    assert all(each.cancelled() for each in futures)
    assert [each.batch_id for each in open_batches_in(tmp_path)] == [None]

    monkeypatch.setattr(BatchJournal, "name_batch", named)
    assert asked(settings_of(server, kind, tmp_path))[1] == ECHOES
    assert shelf.submissions == 1


def test_a_batch_that_was_never_handed_in_is_handed_in_again(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "GRACE_S", -1.0)
    client = JudgeClient(settings_of(server, kind, tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(batches.BatchApi, "submit", _never)
        patch.setattr("agentunit.addons.judge._batch_protocols.AnthropicBatchApi.submit", _never)
        futures = [client.submit(client.ask(question(f"number {number}"))) for number in range(20)]
        _until(lambda: len(open_batches_in(tmp_path)) == 1)
        client.close()
    assert all(each.cancelled() for each in futures)
    assert asked(settings_of(server, kind, tmp_path))[1] == ECHOES
    assert shelf.submissions == 1


@pytest.mark.parametrize("fault", ["skipped", "failing", "garbled"])
def test_what_a_batch_does_not_answer_is_asked_again(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path, fault: str
) -> None:
    setattr(shelf, fault, 3)
    assert asked(settings_of(server, kind, tmp_path))[1] == ECHOES
    assert shelf.submissions == 2


def test_a_batch_of_somebody_else_is_not_taken_for_the_own(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.add_of_somebody_else(20)
    with monkeypatch.context() as patch:
        patch.setattr(BatchJournal, "name_batch", _killed)
        client = JudgeClient(settings_of(server, kind, tmp_path))
        for number in range(20):
            client.submit(client.ask(question(f"number {number}")))
        _until(lambda: shelf.submissions == 1)
        client.close()
    assert asked(settings_of(server, kind, tmp_path))[1] == ECHOES
    # Its own batch was found and not paid for twice.
    assert (shelf.submissions, open_batches_in(tmp_path)) == (1, [])


def test_responses_that_are_none_of_a_batch_api_end_in_a_problem_and_not_in_a_wait_without_end(
    server: JudgeServer, shelf: BatchShelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_FAILED_POLLS", 2)
    shelf.garbles_polls = 2
    client = JudgeClient(settings_of(server, "openai", tmp_path))
    (reply,) = ask_all(client, [question("number 0")])
    client.close()
    assert "cannot be collected: the response is none of a batch API" in (reply.problem or "")
    # It is not lost: a later run collects it.
    assert asked(settings_of(server, "openai", tmp_path), 1)[1] == ECHOES[:1]
    assert shelf.submissions == 1


@pytest.mark.parametrize("step", ["begin", "name_batch", "finish"])
def test_a_journal_that_cannot_be_written_is_told(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(BatchJournal, step, _full)
        client = JudgeClient(settings_of(server, kind, tmp_path))
        (reply,) = ask_all(client, [question("number 0")])
        client.close()
    assert "the disk is full" in (reply.problem or "")
    assert shelf.submissions == (0 if step == "begin" else 1)
    assert asked(settings_of(server, kind, tmp_path), 1)[1] == ECHOES[:1]
    assert shelf.submissions == 1


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("", "/openai/files?api-version=2024-10-21"),
        ("/openai/deployments/d?api-version=2025-01-01", "/openai/files?api-version=2025-01-01"),
        ("/openai/v1", "/openai/v1/files"),
    ],
)
def test_the_batches_of_azure_are_beside_its_deployments(
    server: JudgeServer, shelf: BatchShelf, tmp_path: Path, path: str, files: str
) -> None:
    url = server.url.removesuffix("/v1") + path
    assert asked(settings_for(url, profile="azure", batch=True, cache=str(tmp_path)), 2)[1] == ECHOES[:2]
    assert [each.path for each in server.requests if each.path.partition("?")[0].endswith("/files")] == [files]
    made = next(each.body for each in server.requests if each.body)
    assert made["endpoint"] == "/chat/completions"


def test_a_batch_that_is_refused_is_told_once_for_all(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path
) -> None:
    shelf.refuses = "no batches for you"
    client = JudgeClient(settings_of(server, kind, tmp_path))
    replies = ask_all(client, (question(f"number {number}") for number in range(5)))
    client.close()
    assert {reply.problem for reply in replies} == {"the batch cannot be handed in: HTTP 400: no batches for you"}
    assert (open_batches_in(tmp_path), shelf.submissions) == ([], 0)


def test_a_run_whose_time_is_up_says_that_a_later_one_collects(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path
) -> None:
    shelf.polls_to_end = 10**9
    _, texts = asked(settings_of(server, kind, tmp_path, run_timeout_s=0.5))
    assert texts == [None] * 20
    shelf.polls_to_end = 1
    assert asked(settings_of(server, kind, tmp_path))[1] == ECHOES
    assert shelf.submissions == 1


def test_replies_that_were_cut_off_get_more_room_in_the_next_batch(
    server: JudgeServer, shelf: BatchShelf, kind: str, tmp_path: Path
) -> None:
    server.needs_tokens = 10_000
    assert asked(settings_of(server, kind, tmp_path))[1] == ECHOES
    assert shelf.submissions == 3


def test_claims_and_verdicts_are_two_batches(shelf: BatchShelf, kind: str, tmp_path: Path) -> None:
    questions = [QualityQuestion("?", [f"Item {at} is red."], f"Item {at} is red.") for at in range(10)]
    with JudgeServer(decide, batches=shelf) as server:
        client = JudgeClient(settings_of(server, kind, tmp_path))
        verdicts = JudgeBackend(client).judge("faithfulness", questions)
        client.close()
    assert [verdict.value for verdict in verdicts] == [1.0] * 10
    assert (shelf.submissions, server.n_calls) == (2, 0)


def test_batches_need_a_cache_and_a_server_that_has_them(tmp_path: Path) -> None:
    for changes, said in (({"cache": None}, "batches need the cache"), ({"profile": "vllm"}, "have no batches")):
        settings = settings_for("http://127.0.0.1:9/v1", **{"batch": True, "cache": str(tmp_path), **changes})
        client = JudgeClient(settings)
        (reply,) = ask_all(client, [question()])
        client.close()
        assert said in (reply.problem or "")


def _until(holds: Any) -> None:
    async def wait() -> None:
        while not holds():
            await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(wait(), 60))


def _full(*_: Any) -> None:
    raise sqlite3.OperationalError("the disk is full")


def _killed(*_: Any) -> None:
    # As if the process ended here: nothing after it happens.
    raise asyncio.CancelledError


async def _never(*_: Any) -> str:
    await asyncio.Event().wait()
    return ""
