"""What can go wrong between a judge and its client, as data for ``JudgeServer(faults=…)``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fault:
    """One misbehaviour of the server; what is not set behaves as usual.

    ``twice``: the response is sent two times in a row. ``again_first``: it is sent once more when the next request of
    its connection comes, a moment before the response to that one. ``encoding`` compresses the body (gzip, deflate, or
    raw-deflate), ``has_length`` is off where the end of the connection is the end of the body, ``trailers`` come after
    the last chunk.
    """

    wait_s: float = 0.0
    before: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    drop_after: float | None = None
    hang: bool = False
    trickle_s: float | None = None
    then_close: bool = False
    chunked: bool = False
    version: str = "HTTP/1.1"
    encoding: str | None = None
    has_length: bool = True
    trailers: bytes = b""
    twice: bool = False
    again_first: bool = False
    message: dict[str, Any] | None = None
    choice: dict[str, Any] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)


def failing(status: int, message: str = "scripted failure", retry_after: str | None = None) -> Fault:
    """An error status with an OpenAI-like body; ``retry_after`` is the header as sent (seconds or an HTTP date)."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    body = b'{"error": {"message": "%s", "type": "scripted", "code": null}}' % message.encode()
    return Fault(status=status, headers=headers, body=body)


def rate_limited(retry_after: str | None = None) -> Fault:
    """Status 429, with or without ``Retry-After``."""
    return failing(429, "Rate limit reached", retry_after)


def slow(wait_s: float) -> Fault:
    """The right answer, late."""
    return Fault(wait_s=wait_s)


def silence() -> Fault:
    """Nothing is ever sent; the connection stays open until the server closes."""
    return Fault(hang=True)


def trickle(every_s: float = 0.01) -> Fault:
    """The head, then one byte of space at a time, without end."""
    return Fault(trickle_s=every_s)


def dropped(after: float = 0.0) -> Fault:
    """The connection is cut after this share of the response (0: before its first byte)."""
    return Fault(drop_after=after)


def truncated() -> Fault:
    """A complete HTTP response whose JSON ends in the middle."""
    return Fault(body=b'{"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": "{\\"sco')


def not_json() -> Fault:
    """A page of HTML where JSON was promised."""
    return Fault(body=b"<html><body>It works!</body></html>")


def huge(n_bytes: int) -> Fault:
    """A body of that many bytes, its length announced."""
    return Fault(body=b" " * n_bytes)


def huge_chunked(n_bytes: int) -> Fault:
    """A body of that many bytes in chunks, its length not announced."""
    return Fault(body=b" " * n_bytes, chunked=True)


def refusal(text: str = "I cannot help with that.") -> Fault:
    """A refusal as OpenAI sends it: no content, but ``message.refusal``."""
    return Fault(message={"role": "assistant", "content": None, "refusal": text})


def content_filter() -> Fault:
    """A reply that a filter held back."""
    return Fault(message={"role": "assistant", "content": None}, choice={"finish_reason": "content_filter"})


def cut_off(reason: str = "length") -> Fault:
    """A reply that reached the limit of tokens."""
    return Fault(choice={"finish_reason": reason})


def empty_choices() -> Fault:
    """A response without a choice."""
    return Fault(top={"choices": []})


def no_usage() -> Fault:
    """A right answer that states no tokens."""
    return Fault(top={"usage": None})


def wrong_content_type() -> Fault:
    """A right answer that calls itself plain text."""
    return Fault(content_type="text/plain")


def redirected(location: str, status: int = 307) -> Fault:
    """Go elsewhere."""
    return Fault(status=status, headers={"Location": location}, body=b"")


def goodbye() -> Fault:
    """A right answer, after which the connection is closed without having been announced."""
    return Fault(then_close=True)


def in_chunks() -> Fault:
    """A right answer in HTTP chunks."""
    return Fault(chunked=True)
