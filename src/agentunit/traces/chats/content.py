"""The text of a message, in the content shapes of the common providers."""

from __future__ import annotations

from typing import Any

from agentunit.traces.chats.plain_data import as_json

# Parts that are a model's thinking, a call or a result: no words of the message itself.
_NOT_SAID = ("thinking", "redacted_thinking", "reasoning", "tool_use", "tool_result", "tool_call", "function_call")


def text_of(content: Any) -> str | None:
    """The words of a message: a text, lines, parts with ``text``, or data as JSON; ``None`` when it says nothing.

    >>> text_of([{"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": {"url": "…"}}])
    'Hello'
    >>> text_of(["two", "lines"])
    'two\\nlines'
    >>> text_of({"parts": [{"text": "Hi."}, {"functionCall": {"name": "search"}}]})
    'Hi.'
    """
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, dict):
        if isinstance(content.get("parts"), list):
            return text_of(content["parts"])
        return content["text"] if isinstance(content.get("text"), str) else as_json(content)
    if not isinstance(content, list):
        return as_json(content)
    said = [text for text in map(_part_text, content) if text is not None]
    return "\n".join(said) if said else None


def _part_text(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type") in _NOT_SAID or part.get("thought") is True:
        return None
    text = part.get("text")
    # The Assistants API wraps it once more.
    if isinstance(text, dict):
        text = text.get("value")
    return text if isinstance(text, str) else None
