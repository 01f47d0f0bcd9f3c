"""Spans and log records as the rows of a spool."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from agentunit.traces.spans import LogEvent, Span, SpanEvent

_Kept = TypeVar("_Kept", Span, SpanEvent)

_OPENS_JSON = b"{"


def encode_kept(kept: Span | SpanEvent) -> bytes:
    """A span or an event as it is kept."""
    try:
        return msgspec.msgpack.encode(kept)
    except (OverflowError, UnicodeError):
        # A number of more than 64 bits, or a lone surrogate: rare, but no reason to lose a span.
        return json.dumps(msgspec.to_builtins(kept)).encode()


def decode_kept(data: bytes, kind: type[_Kept]) -> _Kept:
    """A span or an event that was kept."""
    if data.startswith(_OPENS_JSON):
        return msgspec.convert(json.loads(data), kind)
    return msgspec.msgpack.decode(data, type=kind)


def rows_of_logs(logs: Sequence[LogEvent]) -> dict[str, list[tuple[str, str, bytes, int, bytes]]]:
    """Log records have no id: a retry is known by its content, and equal ones within a request by their number."""
    rows: dict[str, list[tuple[str, str, bytes, int, bytes]]] = {}
    copies: Counter[tuple[str, str, bytes]] = Counter()
    for trace_id, span_id, event in logs:
        data = encode_kept(event)
        key = (trace_id, span_id, hashlib.blake2b(data, digest_size=16).digest())
        rows.setdefault(trace_id, []).append((*key, copies[key], data))
        copies[key] += 1
    return rows
