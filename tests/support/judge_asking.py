"""Short ways to ask a judge over the true HTTP path in tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from judge_server import JudgeServer

from agentunit.addons.judge.client import JudgeClient, JudgeReply, JudgeRequest
from agentunit.addons.judge.settings import JudgeSettings

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"echo": {"type": "string"}},
    "required": ["echo"],
    "additionalProperties": False,
}


def echo(body: dict[str, Any]) -> dict[str, str]:
    """A judge that says the question back."""
    return {"echo": body["messages"][-1]["content"]}


def settings_for(server: JudgeServer | str, **changes: Any) -> JudgeSettings:
    """Settings for a server: no cache, and the generous times of a slow machine."""
    url = server if isinstance(server, str) else server.url
    return JudgeSettings(**{"url": url, "model": "judge-1", "cache": None, "timeout_s": 60.0, **changes})


def question(text: str = "is it so?", **changes: Any) -> JudgeRequest:
    """A question with a schema."""
    return JudgeRequest(**{"purpose": "claims", "system": "Judge.", "user": text, "schema": SCHEMA, **changes})


def ask_all(client: JudgeClient, requests: Iterable[JudgeRequest]) -> list[JudgeReply]:
    """All replies, in order; every question is handed in at once."""
    futures = [client.submit(client.ask(request)) for request in requests]
    return [future.result(timeout=300) for future in futures]


def ask_one(settings: JudgeSettings, request: JudgeRequest | None = None) -> JudgeReply:
    """One reply, of a client of its own."""
    client = JudgeClient(settings)
    try:
        return ask_all(client, [request or question()])[0]
    finally:
        client.close()
