"""What a response says: the text of the reply, or why there is none, and the tokens it took."""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

import msgspec

_CLIPPED_AT = 300
# Why a reply ended, as OpenAI and the gateways before other providers name it.
_CUT_OFF = ("length", "max_tokens", "model_length", "max_output_tokens")
_HELD_BACK = ("content_filter", "content-filter", "safety", "recitation", "prohibited_content", "refusal")


@dataclass(frozen=True)
class Completion:
    """A response to a question. ``problem`` is final (a refusal); ``unreadable`` is worth another attempt."""

    text: str | None = None
    problem: str | None = None
    unreadable: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0


def read_completion(body: bytes) -> Completion:
    """The reply in the body of a response with a status of success."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Completion(unreadable=f"the response is not JSON: {clipped(body)!r}")
    if not isinstance(data, dict):
        return Completion(unreadable=f"the response is no JSON object: {clipped(body)!r}")
    stated = _stated(data)
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        why = _error_message(data) or "the response has no choice with a message"
        return Completion(unreadable=why, **stated)
    text = _text(message.get("content"))
    reason = choice.get("finish_reason") if isinstance(choice, dict) else None
    if message.get("refusal"):
        return Completion(problem=f"the model refused: {clipped(str(message['refusal']))}", **stated)
    reason = reason.lower() if isinstance(reason, str) else None
    if reason in _HELD_BACK:
        return Completion(problem="a content filter of the server held the reply back", **stated)
    if reason in _CUT_OFF:
        return Completion(text=text or "", problem="the reply was cut off at its limit of tokens", **stated)
    if not text or not text.strip():
        return Completion(unreadable="the reply is empty", **stated)
    return Completion(text=text, **stated)


def _text(content: Any) -> str | None:
    """A text, or texts in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str)) or None
    return content if isinstance(content, str) else None


def _stated(data: dict[str, Any]) -> dict[str, Any]:
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    model = data.get("model")
    return {
        "model": model if isinstance(model, str) else None,
        "prompt_tokens": _count(usage.get("prompt_tokens")),
        "completion_tokens": _count(usage.get("completion_tokens")),
        "cached_tokens": _count(details.get("cached_tokens") if isinstance(details, dict) else None) or 0,
    }


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def read_error(body: bytes) -> str:
    """What the body of an error response says, as short text."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return clipped(body)
    return _error_message(data) or clipped(body)


def _error_message(data: Any) -> str | None:
    """The message of OpenAI's errors (with the code, where it has one) and of FastAPI's."""
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        code = error.get("code")
        return clipped(error["message"]) + (f" ({code})" if isinstance(code, str) and code else "")
    found = error if isinstance(error, str) else data.get("detail") if isinstance(data, dict) else None
    return clipped(found) if isinstance(found, str) and found else None


def seconds_to_wait(header: str | None) -> float | None:
    """What ``Retry-After`` says (seconds, or a date); ``None`` when it is not there or says nothing.

    >>> seconds_to_wait("2.5"), seconds_to_wait("soon"), seconds_to_wait("Thu, 01 Jan 1970 00:00:00 GMT")
    (2.5, None, 0.0)
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if seconds == seconds else None


def clipped(text: str | bytes) -> str:
    """One short line."""
    if isinstance(text, bytes):
        text = text[: 4 * _CLIPPED_AT].decode("utf-8", "replace")
    line = " ".join(text.split())
    return line if len(line) <= _CLIPPED_AT else line[:_CLIPPED_AT] + "…"
