"""Every trace format, and how the one of a file is told."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import msgspec

from agentunit.core.results import decode_json
from agentunit.traces.compressed import BROKEN_STREAM
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.json_files.stream import RawValue, json_values
from agentunit.traces.native import NATIVE_FORMAT

_HEAD_BYTES = 1 << 16
_OPENING_BYTES = 1 << 20
_NATIVE_KEYS = frozenset(("case", "outcome"))


@cache
def trace_formats() -> tuple[TraceFormat, ...]:
    """All formats but AgentUnit's own records; of two that match a file, the first is taken."""
    from agentunit.traces.chats.adk_sessions import ADK_SESSION
    from agentunit.traces.chats.autogen import AUTOGEN
    from agentunit.traces.chats.chat_logs import CHAT
    from agentunit.traces.chats.console_logs import AUTOGEN_CONSOLE
    from agentunit.traces.chats.inspect_logs import INSPECT_ARCHIVE, INSPECT_LOG
    from agentunit.traces.chats.marble import MARBLE
    from agentunit.traces.chats.tau import TAU_BENCH
    from agentunit.traces.chats.tau2 import TAU2
    from agentunit.traces.exports.langfuse import LANGFUSE_EXPORT
    from agentunit.traces.exports.mlflow import MLFLOW_TRACES
    from agentunit.traces.exports.rows import SPAN_ROW_FORMATS
    from agentunit.traces.otlp.json_requests import OTLP_JSON
    from agentunit.traces.otlp.protobuf_requests import OTLP_PROTOBUF

    spans = (OTLP_JSON, OTLP_PROTOBUF, MLFLOW_TRACES, LANGFUSE_EXPORT, *SPAN_ROW_FORMATS)
    chats = (INSPECT_LOG, INSPECT_ARCHIVE, ADK_SESSION, TAU2, TAU_BENCH, MARBLE, AUTOGEN_CONSOLE, AUTOGEN, CHAT)
    return (*spans, *chats)


def format_names() -> list[str]:
    """The names for ``--from``."""
    return [NATIVE_FORMAT, *(each.name for each in trace_formats())]


def format_named(name: str) -> TraceFormat | None:
    """The format of this name, ``None`` for AgentUnit's own records."""
    if name == NATIVE_FORMAT:
        return None
    found = next((each for each in trace_formats() if each.name == name), None)
    if found is None:
        raise ValueError(f"the format must be one of {', '.join(format_names())}; received {name!r}")
    return found


def detect(opening: Opening) -> TraceFormat | None:
    """The format that a file begins like; ``None`` when it looks like none of them.

    >>> detect(opening_of("spans.json", b'{"resourceSpans": []}')).name
    'otlp-json'
    """
    return next((each for each in trace_formats() if _matches(each, opening)), None)


def _matches(format: TraceFormat, opening: Opening) -> bool:
    try:
        return format.matches(opening)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  # what a format cannot even look at is not of that format
        return False


def is_native(opening: Opening) -> bool:
    """Whether a file begins like AgentUnit's own records; a file whose first line is no JSON may be one, damaged."""
    return not _NATIVE_KEYS.isdisjoint(opening.keys)


def read_opening(path: str, stream: io.BufferedIOBase) -> tuple[Opening, bytes]:
    """The start of a stream, and the bytes that were taken from it for that."""
    taken = b""
    try:
        # Piece by piece: of a stream that breaks, what came before is kept.
        while len(taken) < _OPENING_BYTES and (piece := stream.read1(_OPENING_BYTES - len(taken))):
            taken += piece
    except BROKEN_STREAM:
        pass  # the reader meets the same damage, and says where
    return opening_of(path, taken), taken


def opening_of(path: str, start: bytes) -> Opening:
    """What a file's first bytes say about its format."""
    head = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:_HEAD_BYTES]
    if head[:1] not in (b"{", b"["):
        # Objects within a text, as in a page of documentation, do not tell what the file is.
        return Opening(path, head, None, frozenset())
    value = _first_value(start)
    keys = frozenset(value) if isinstance(value, dict) else _leading_keys(head)
    return Opening(path, head, value, keys)


def _first_value(start: bytes) -> Any:
    source = Source("", io.BufferedReader(io.BytesIO(start)))
    for found in json_values(source):
        if isinstance(found, RawValue):
            try:
                return decode_json(found.data)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                return None
        return None
    return None


def _leading_keys(head: bytes) -> frozenset[str]:
    """The names in the outermost object of a document that goes on beyond what was looked at."""
    keys: set[str] = set()
    depth, at = 0, 0
    text = head.decode("utf-8", "replace")
    while at < len(text):
        each = text[at]
        if each == '"':
            end = at + 1
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            after = text[end + 1 : end + 20].lstrip()
            if depth == 1 and after.startswith(":"):
                keys.add(text[at + 1 : end])
            at = end
        elif each in "{[":
            # The elements of an outer array are what its file is about.
            depth += 0 if each == "[" and depth == 0 else 1
        elif each in "}]":
            depth -= 1
        at += 1
    return frozenset(keys)
