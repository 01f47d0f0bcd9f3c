"""What a response says, whatever the profile: the completion, the error, and how long to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from time import time
from typing import Any

import msgspec

from agentunit.addons.judge._level_chances import Position

_CLIPPED_AT = 300
# Why a reply ended, as providers and the gateways before them name it.
_CUT_OFF = frozenset({"length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"})
_HELD_BACK = frozenset(
    {"content_filter", "content-filter", "content_filtered", "guardrail_intervened", "safety", "recitation"}
    | {"prohibited_content", "blocklist", "spii", "refusal", "language", "image_safety"}
)
CUT_OFF = "the reply was cut off at its limit of tokens"
LIMIT_REFUSED = re.compile(
    r"max_?(?:completion_|output_)?tokens\b[^.]{0,60}(?:too large|exceed|at most|less than|greater|maximum|<=|between)|"
    r"maximum (?:context|output|value)|context (?:length|window)|output tokens? limit|"
    r"at most \d+ (?:completion |output )?tokens",
    re.IGNORECASE,
)
"""Words in which servers refuse a limit of tokens that is too high for them."""
_HELD = "a content filter of the server held the reply back"


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
    positions: tuple[Position, ...] | None = None

    @property
    def was_cut_off(self) -> bool:
        """Whether the reply reached its limit of tokens."""
        return self.problem == CUT_OFF


def completed(
    text: str | None, reason: Any, *, refusal: Any = None, stated: Mapping[str, Any] | None = None
) -> Completion:
    """The completion of a text and the reason why it ended there."""
    known = dict(stated or {})
    if refusal:
        return Completion(problem=f"the model refused: {clipped(str(refusal))}", **known)
    reason = reason.lower() if isinstance(reason, str) else None
    if reason in _HELD_BACK:
        return Completion(problem=_HELD, **known)
    if reason in _CUT_OFF:
        return Completion(text=text or "", problem=CUT_OFF, **known)
    if not text or not text.strip():
        return Completion(unreadable="the reply is empty", **known)
    return Completion(text=text, **known)


def token_count(value: Any) -> int | None:
    """A number of tokens; ``None`` where the value is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def usage_of(
    data: Mapping[str, Any], key: str, prompt: tuple[str, ...], completion: tuple[str, ...], cached: str | None = None
) -> dict[str, Any]:
    """Tokens that a response states under ``key``: the sums of these names, ``None`` where the first is missing."""
    usage = data.get(key)
    usage = usage if isinstance(usage, Mapping) else {}

    def added(names: tuple[str, ...]) -> int | None:
        counts = [token_count(usage.get(name)) for name in names]
        return None if counts[0] is None else sum(count or 0 for count in counts)

    return {
        "prompt_tokens": added(prompt),
        "completion_tokens": added(completion),
        "cached_tokens": 0 if cached is None else token_count(usage.get(cached)) or 0,
    }


def text_parts(parts: Any) -> str | None:
    """A text, or the texts of a list of parts; what a model thought aloud is no part of it."""
    if isinstance(parts, list):
        texts = [each.get("text") for each in parts if isinstance(each, Mapping) and not each.get("thought")]
        return "".join(text for text in texts if isinstance(text, str)) or None
    return parts if isinstance(parts, str) else None


def read_error(body: bytes) -> str:
    """What the body of an error response says, as short text."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return clipped(body)
    return error_message(data) or clipped(body)


def error_message(data: Any) -> str | None:
    """The message of an error as OpenAI, Anthropic, Google, AWS, Ollama and FastAPI word it, with its code."""
    if isinstance(data, list) and len(data) == 1:  # as Google's gateways do
        data = data[0]
    if not isinstance(data, Mapping):
        return None
    error = data.get("error")
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        found = (error.get("code"), error.get("status"), error.get("type"))
        code = next((each for each in found if isinstance(each, str) and each), None)
        # A type that says nothing more than that it is an error is left out.
        shown = f" ({code})" if code and (code == error.get("code") or code == error.get("status")) else ""
        return clipped(error["message"]) + shown
    candidates = (error, data.get("detail"), data.get("message"), data.get("Message"))
    return next((clipped(each) for each in candidates if isinstance(each, str) and each), None)


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
        from email.utils import parsedate_to_datetime

        try:
            seconds = parsedate_to_datetime(header).timestamp() - time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if seconds == seconds else None


def asked_wait_s(headers: Mapping[str, str], body: bytes) -> float | None:
    """How long a server asks to wait: ``retry-after-ms`` before ``Retry-After``, else Google's ``retryDelay``.

    >>> asked_wait_s({"retry-after-ms": "250", "retry-after": "1"}, b"")
    0.25
    >>> asked_wait_s({}, b'{"error": {"details": [{"retryDelay": "34s"}]}}')
    34.0
    """
    milliseconds = seconds_to_wait(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    seconds = seconds_to_wait(headers.get("retry-after"))
    return seconds if seconds is not None or b"retryDelay" not in body else _retry_delay_s(body)


def _retry_delay_s(body: bytes) -> float | None:
    try:
        details = msgspec.json.decode(body)["error"]["details"]
        delays = [each["retryDelay"] for each in details if isinstance(each, dict) and "retryDelay" in each]
        return seconds_to_wait(str(delays[0]).removesuffix("s"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError, IndexError):
        return None


def clipped(text: str | bytes) -> str:
    """One short line."""
    if isinstance(text, bytes):
        text = text[: 4 * _CLIPPED_AT].decode("utf-8", "replace")
    line = " ".join(text.split())
    return line if len(line) <= _CLIPPED_AT else line[:_CLIPPED_AT] + "…"
