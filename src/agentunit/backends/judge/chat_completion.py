"""One request to the judge: how it is written, one attempt to send it, and what the response says."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, Literal

import msgspec

from agentunit.backends.http_client import HttpClient, HttpFailure, Response
from agentunit.backends.judge.settings import Address

# From the most to the least a server can promise about the shape of a reply.
_FORMATS = ("json_schema", "json_object", "plain")
_REFUSED = (400, 415, 422, 501)
# A refusal of the parameter itself, as servers word it; an error that merely mentions the word is about something else.
_TEMPERATURE_REFUSED = re.compile(
    r"(?:unsupported|not supported|unknown|unrecogni[sz]ed|unexpected|extra|invalid|deprecated)\b[^.;]{0,60}"
    r"['\"`]?\btemperature\b"
    r"|\btemperature\b['\"`]?[^.;]{0,40}\b(?:(?:is|are|was|be)(?: not|n't)|does(?: not|n't)|cannot|can't|may not|"
    r"not (?:supported|allowed|permitted)|unsupported|deprecated|only (?:supports|accepts|the default)|must be 1\b)"
)
_SEED_REFUSED = re.compile(r"['\"`\s:.]seed\b")
_WORDS_OF_FORMAT = ("response_format", "json_schema", "json_object", "structured output", "guided", "grammar", "schema")


@dataclass(frozen=True)
class Dialect:
    """How a request is put. A server that refuses a parameter, and answers without it, is asked so from then on."""

    reply_format: str = "json_schema"
    tokens_name: str = "max_tokens"
    with_temperature: bool = True
    with_seed: bool = True

    @property
    def ease(self) -> int:
        """How much is left out or changed."""
        renamed = self.tokens_name != "max_tokens"
        return _FORMATS.index(self.reply_format) + renamed + (not self.with_temperature) + (not self.with_seed)

    def body(
        self,
        model: str,
        system: str,
        user: str,
        schema: dict[str, Any] | None,
        purpose: str,
        max_tokens: int,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """A request in this dialect."""
        found: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            self.tokens_name: max_tokens,
        }
        if self.with_temperature:
            # A judgment must not vary; what has a seed is meant to.
            found["temperature"] = 0 if seed is None else 1
        if self.with_seed and seed is not None:
            found["seed"] = seed
        if schema is not None and self.reply_format == "json_schema":
            wanted = {"name": purpose, "schema": schema, "strict": True}
            found["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif schema is not None and self.reply_format == "json_object":
            found["response_format"] = {"type": "json_object"}
        return found

    def easier(
        self, status: int, message: str, *, had_schema: bool, had_seed: bool = False
    ) -> tuple[Dialect, bool] | None:
        """What to try after a refusal, and whether the server said itself that this is the reason.

        ``None``: the refusal is about something else. A server that does not say why may object to the format.
        """
        if status not in _REFUSED:
            return None
        text = message.lower()
        if self.tokens_name == "max_tokens" and "max_completion_tokens" in text:
            return replace(self, tokens_name="max_completion_tokens"), True
        if self.with_temperature and _TEMPERATURE_REFUSED.search(text):
            return replace(self, with_temperature=False), True
        if self.with_seed and had_seed and _SEED_REFUSED.search(f" {text}"):
            return replace(self, with_seed=False), True
        if not had_schema or self.reply_format == "plain":
            return None
        lower = _FORMATS[_FORMATS.index(self.reply_format) + 1]
        return replace(self, reply_format=lower), any(word in text for word in _WORDS_OF_FORMAT)


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


_MAX_REPLY_BYTES = 4 << 20
_WORTH_REPEATING = (408, 409, 425)
_OVERLOADED = (429, 503, 529)
# What is wrong with every call alike: the key, the account, the address, the model's name.
_WRONG_FOR_ALL = (401, 402, 404, 405)

Kind = Literal["answered", "final", "hopeless", "again", "stale", "turned_away", "too_slow", "unreachable"]


@dataclass(frozen=True)
class Attempt:
    """What came of a request.

    ``kind``: answered; final (repeating it changes nothing); hopeless (no other request will fare better); again; stale
    (the connection had been closed); turned_away (the server has too much to do; ``wait_s`` is what it asked for);
    too_slow; unreachable (no connection could be made).
    """

    kind: Kind
    problem: str | None = None
    status: int | None = None
    completion: Completion = field(default_factory=Completion)
    wait_s: float | None = None
    may_be_billed: bool = False


def client_for(address: Address) -> HttpClient:
    """The HTTP client for a judge's address."""
    headers = {
        "User-Agent": "agentunit",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
    }
    if address.authorization is not None:
        headers["Authorization"] = address.authorization
    return HttpClient(address.host, address.port, is_tls=address.is_tls, headers=headers, max_bytes=_MAX_REPLY_BYTES)


async def attempt(
    client: HttpClient,
    address: Address,
    body: bytes,
    timeout_s: float,
    *,
    on_new: bool = False,
    mark: str | None = None,
) -> Attempt:
    """Send a request once (``on_new``: on a new connection); whatever the server does, it ends after ``timeout_s``."""
    try:
        response = await asyncio.wait_for(client.send(address.target, body, on_new=on_new, mark=mark), timeout_s)
    except asyncio.TimeoutError:
        return Attempt("too_slow", f"no answer within {timeout_s:.3g} s", may_be_billed=True)
    except HttpFailure as error:
        if error.is_untrusted:
            return Attempt("hopeless", str(error))
        if error.is_unreachable:
            return Attempt("unreachable", str(error))
        return Attempt("stale" if error.was_stale else "again", str(error), may_be_billed=error.was_sent)
    return _judged(response._replace(body=address.hidden(response.body)), address)


def _judged(response: Response, address: Address) -> Attempt:
    status = response.status
    if 200 <= status < 300:
        completion = read_completion(response.body)
        if completion.unreadable is not None:
            return Attempt("again", completion.unreadable, status, completion, may_be_billed=True)
        kind: Kind = "answered" if completion.problem is None else "final"
        return Attempt(kind, completion.problem, status, completion, may_be_billed=True)
    said = read_error(response.body)
    problem = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    if 300 <= status < 400:
        return Attempt("hopeless", f"HTTP {status}: redirects are not followed; name the address itself", status)
    if status == 429 and "insufficient_quota" in said:
        return Attempt("hopeless", problem, status)
    if status in _OVERLOADED:
        return Attempt("turned_away", problem, status, wait_s=seconds_to_wait(response.headers.get("retry-after")))
    if status >= 500 and status != 501:
        return Attempt("again", problem, status, may_be_billed=True)
    if status in _WORTH_REPEATING:
        return Attempt("again", problem, status)
    if status in _WRONG_FOR_ALL:
        hint = "" if status not in (404, 405) or address.target.startswith("/v1/") else " (does its URL end in /v1?)"
        return Attempt("hopeless", f"{problem}{hint}", status)
    return Attempt("final", problem, status)
