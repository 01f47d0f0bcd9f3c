"""Embeddings for RAGAS: whose they are, and what happens when there are none to be had."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from judge_faults import Fault, failing
from judge_server import JudgeServer, Received
from ragas_decisions import decide

from agentunit.addons.judge.client import JudgeClient
from agentunit.addons.judge.judge_backend import JudgeBackend
from agentunit.addons.judge.settings import JudgeSettings
from agentunit.addons.ragas._ragas_embeddings import chosen_embeddings
from agentunit.backends.asking import JudgeFailed


class Embedding(JudgeServer):
    """A server that answers requests for embeddings with these, in turn, and rightly when there are no more."""

    def __init__(self, *replies: Fault) -> None:
        super().__init__(decide)
        self.replies = list(replies)

    def _reply(self, path: str, request: Received, fault: Fault) -> tuple[int, bytes]:
        if path == "/v1/embeddings" and self.replies:
            given = self.replies.pop(0)
            return given.status, given.body or b""
        return super()._reply(path, request, fault)


def embedded(server: JudgeServer, text: str, **settings: Any) -> list[float]:
    client = JudgeClient(JudgeSettings(server.url, "judge-1", cache=None, **settings))
    try:
        embeddings = chosen_embeddings(client.settings, JudgeBackend(client).embeddings)
        assert embeddings is not None
        return client.submit(embeddings.aembed_text(text)).result()
    finally:
        client.close()


@pytest.fixture
def _named_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_RAGAS_EMBEDDINGS", "small")


@pytest.fixture
def _no_named_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTUNIT_RAGAS_EMBEDDINGS", raising=False)


@pytest.mark.usefixtures("_named_model")
def test_embeddings_outlast_what_passes() -> None:
    with Embedding(failing(429), failing(503)) as server:
        numbers = embedded(server, "Paris", max_attempts=3)
        assert len(numbers) == 64
        assert [request.body for request in server.requests] == [
            {"model": "small", "input": ["Paris"], "encoding_format": "float"}
        ] * 3


@pytest.mark.usefixtures("_named_model")
@pytest.mark.parametrize(
    ("reply", "said", "n_requests"),
    [
        (failing(401, "wrong key hunter2-hunter2"), "status 401: wrong key ***", 1),
        (failing(500, "out of order"), "status 500: out of order", 2),
        (Fault(body=b"<html>"), "holds no embedding", 1),
        (Fault(body=b'{"data": []}'), "holds no embedding", 1),
        (Fault(body=b'{"data": [{"embedding": ["a"]}]}'), "holds no embedding", 1),
        (Fault(body=b'{"data": [{"embedding": []}]}'), "the embedding is empty", 1),
    ],
)
def test_embeddings_that_are_not_to_be_had_are_a_failure_with_its_reason(
    reply: Fault, said: str, n_requests: int
) -> None:
    with Embedding(reply, reply) as server:
        with pytest.raises(JudgeFailed) as failure:
            embedded(server, "Paris", max_attempts=2, api_key="hunter2-hunter2")
        assert said in str(failure.value)
        assert "hunter2" not in str(failure.value)
        assert len(server.requests) == n_requests


@pytest.mark.usefixtures("_no_named_model")
def test_without_a_named_model_or_the_local_package_there_are_no_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "agentunit.addons.ragas._ragas_embeddings.sentences_unready", lambda: "agentunit-local is missing"
    )
    assert chosen_embeddings(JudgeSettings("http://127.0.0.1:9/v1", "judge-1"), JudgeBackend().embeddings) is None


@pytest.mark.usefixtures("_no_named_model")
def test_the_local_encoder_takes_part_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "agentunit_local"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "sentences.py").write_text(
        "class Encoder:\n    def encode(self, texts):\n        return [[float(len(text)), 1.0] for text in texts]\n\n\n"
        "def shipped_encoder():\n    return Encoder()\n",
        encoding="utf-8",
    )
    set_aside = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "agentunit_local"}
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("agentunit.addons.ragas._ragas_embeddings.sentences_unready", lambda: None)
    embeddings = chosen_embeddings(JudgeSettings("http://127.0.0.1:9/v1", "judge-1"), JudgeBackend().embeddings)
    assert embeddings is not None
    assert embeddings.described == {"model": "all-MiniLM-L6-v2", "runs": "local"}
    assert asyncio.run(embeddings.aembed_text("Paris")) == [5.0, 1.0]
    for name in [name for name in sys.modules if name.split(".")[0] == "agentunit_local"]:
        del sys.modules[name]
    sys.modules.update(set_aside)


def test_a_spend_cap_that_embeddings_would_not_keep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_RAGAS_EMBEDDINGS", "embedder-1")
    prices = {"usd_per_million_input": 1.0, "usd_per_million_output": 1.0}
    settings = JudgeSettings("http://127.0.0.1:9/v1", "judge-1", max_spend_usd=1.0, **prices)
    with pytest.raises(JudgeFailed, match="the price of embeddings of 'embedder-1' is not known"):
        chosen_embeddings(settings, JudgeBackend().embeddings)
