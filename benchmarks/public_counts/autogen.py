"""Histories of AutoGen, and what its replaying model client recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def count(path: Path) -> list[dict[str, Any]]:
    document = json.loads(path.read_text("utf-8"))
    return [history(document["messages"])] if isinstance(document, dict) else [recorded(call) for call in document]


def history(messages: list[dict[str, Any]]) -> dict[str, Any]:
    texts = [each for each in messages if isinstance(each.get("content"), str)]
    asking = [each for each in messages if each["type"] == "AssistantMessage" and isinstance(each["content"], list)]
    called = [call["name"] for each in asking for call in each["content"]]
    return {
        "question": next(each["content"] for each in texts if each["type"] == "UserMessage"),
        "answer": [each["content"] for each in texts if each["type"] == "AssistantMessage"][-1],
        "tool_calls": [[name] for name in called],
    }


def recorded(call: dict[str, Any]) -> dict[str, Any]:
    """A call of the model by itself: whose run it belongs to is not stated."""
    reply = call.get("response") or call["stream"][-1]
    return {"tokens": {"input": reply["usage"]["prompt_tokens"], "output": reply["usage"]["completion_tokens"]}}
