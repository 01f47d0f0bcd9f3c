"""Every trace format, and how the one of a file is told.

A package adds one through the entry-point group ``agentunit.formats``: a ``TraceFormat``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from agentunit.core.records import Record
from agentunit.core.results import InputError, decode_json
from agentunit.plugins import Plugin, PluginTable, report_once, require
from agentunit.traces.compressed import BROKEN_STREAM
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.json_files.stream import RawValue, json_values
from agentunit.traces.native import NATIVE_FORMAT
from agentunit.traces.spans import PackedSpan, ReadingNotes, Span

ENTRY_POINT_GROUP = "agentunit.formats"
ROWS_FORMAT = "rows"

_HEAD_BYTES = 1 << 16
_OPENING_BYTES = 1 << 20
_LONGEST_FIRST_LINE = 1 << 24
_NATIVE_KEYS = frozenset(("case", "outcome"))
# As AgentUnit writes records: nothing more need be looked at to know them.
_OWN_START = b'{"v":1,"case":'


# In this order: of two formats that match a file, the first is taken.
_OWN_FORMATS = {
    "otlp-json": "agentunit.traces.otlp.json_requests:OTLP_JSON",
    "otlp-protobuf": "agentunit.traces.otlp.protobuf_requests:OTLP_PROTOBUF",
    "mlflow": "agentunit.addons.formats.exports.mlflow:MLFLOW_TRACES",
    "langfuse": "agentunit.addons.formats.exports.langfuse:LANGFUSE_EXPORT",
    "logfire": "agentunit.addons.formats.exports.span_rows:LOGFIRE",
    "span-json": "agentunit.addons.formats.exports.span_rows:SPAN_JSON",
    "span-json-camel": "agentunit.addons.formats.exports.span_rows:SPAN_JSON_CAMEL",
    "clickhouse": "agentunit.addons.formats.exports.span_rows:CLICKHOUSE",
    "trulens": "agentunit.addons.formats.exports.span_rows:TRULENS",
    "otel-js": "agentunit.addons.formats.exports.span_rows:OTEL_JS",
    "jaeger": "agentunit.addons.formats.exports.span_rows:JAEGER",
    "zipkin": "agentunit.addons.formats.exports.span_rows:ZIPKIN",
    "langsmith": "agentunit.addons.formats.exports.span_rows:LANGSMITH",
    "weave": "agentunit.addons.formats.exports.span_rows:WEAVE",
    "opik": "agentunit.addons.formats.exports.span_rows:OPIK",
    "deepeval": "agentunit.addons.formats.exports.span_rows:DEEPEVAL",
    "inspect": "agentunit.addons.formats.chats.inspect_logs:INSPECT_LOG",
    "inspect-eval": "agentunit.addons.formats.chats.inspect_logs:INSPECT_ARCHIVE",
    "adk-session": "agentunit.addons.formats.chats.adk_sessions:ADK_SESSION",
    "adk-eval-set": "agentunit.addons.formats.chats.adk_sessions:ADK_EVAL_SET",
    "browser-use": "agentunit.addons.formats.chats.browser_use:BROWSER_USE",
    "pi": "agentunit.addons.formats.coding.session_tools:PI",
    "copilot-cli": "agentunit.addons.formats.coding.session_tools:COPILOT_CLI",
    "copilot-chat": "agentunit.addons.formats.coding.session_tools:COPILOT_CHAT",
    "cursor": "agentunit.addons.formats.coding.session_tools:CURSOR",
    "opencode": "agentunit.addons.formats.coding.session_tools:OPENCODE",
    "cline": "agentunit.addons.formats.coding.session_tools:CLINE",
    "kimi": "agentunit.addons.formats.coding.session_tools:KIMI",
    "droid": "agentunit.addons.formats.coding.session_tools:DROID",
    "openhands-v1": "agentunit.addons.formats.coding.session_tools:OPENHANDS_V1",
    "codex-exec": "agentunit.addons.formats.coding.session_tools:CODEX_EXEC",
    "gemini-stream": "agentunit.addons.formats.coding.session_tools:GEMINI_STREAM",
    "antigravity": "agentunit.addons.formats.coding.session_tools:ANTIGRAVITY",
    "openclaw-telemetry": "agentunit.addons.formats.coding.session_tools:OPENCLAW_TELEMETRY",
    "aider": "agentunit.addons.formats.coding.aider:AIDER",
    "crewai": "agentunit.addons.formats.chats.framework_runs:CREWAI",
    "smolagents": "agentunit.addons.formats.chats.framework_runs:SMOLAGENTS",
    "anthropic-managed": "agentunit.addons.formats.chats.event_logs:ANTHROPIC_MANAGED",
    "claude-stream": "agentunit.addons.formats.chats.event_logs:CLAUDE_STREAM",
    "bedrock-agent": "agentunit.addons.formats.chats.event_logs:BEDROCK_AGENT",
    "tau2": "agentunit.addons.formats.chats.tau:TAU2",
    "tau-bench": "agentunit.addons.formats.chats.tau:TAU_BENCH",
    "hal": "agentunit.addons.formats.chats.benchmarks:HAL",
    "marble": "agentunit.addons.formats.chats.benchmarks:MARBLE",
    "atif": "agentunit.addons.formats.coding.atif:ATIF",
    "claude-code": "agentunit.addons.formats.coding.claude_code:CLAUDE_CODE",
    "codex": "agentunit.addons.formats.coding.codex:CODEX",
    "gemini-cli": "agentunit.addons.formats.coding.gemini:GEMINI_CLI",
    "qwen-code": "agentunit.addons.formats.coding.gemini:QWEN_CODE",
    "swe-agent": "agentunit.addons.formats.coding.swe_agent:SWE_AGENT",
    "mini-swe-agent": "agentunit.addons.formats.coding.swe_agent:MINI_SWE_AGENT",
    "openhands": "agentunit.addons.formats.coding.openhands:OPENHANDS",
    "autogen-console": "agentunit.addons.formats.chats.autogen:AUTOGEN_CONSOLE",
    "autogen": "agentunit.addons.formats.chats.autogen:AUTOGEN",
    "chat": "agentunit.addons.formats.chats.chat_rows:CHAT",
    ROWS_FORMAT: "agentunit.datasets.recorded_rows:ROWS",
}


@cache
def format_table() -> PluginTable[TraceFormat]:
    """All formats but AgentUnit's own records, by name; those of installed packages come last."""
    return PluginTable("trace format", ENTRY_POINT_GROUP, _OWN_FORMATS, adopt=_adopted, reserved=(NATIVE_FORMAT,))


def trace_formats() -> tuple[TraceFormat, ...]:
    """All formats but AgentUnit's own records; of two that match a file, the first is taken."""
    return tuple(each for _, each in format_table().usable())


def format_names() -> list[str]:
    """The names for ``--from``."""
    return [NATIVE_FORMAT, *format_table().entries]


def format_named(name: str) -> TraceFormat | None:
    """The format of this name, ``None`` for AgentUnit's own records."""
    if name == NATIVE_FORMAT:
        return None
    if name not in format_table().entries:
        raise ValueError(f"the format must be one of {', '.join(format_names())}; received {name!r}")
    return format_table().load(name)


def detect(opening: Opening) -> TraceFormat | None:
    """The format that a file begins like; ``None`` when it looks like none of them.

    >>> detect(opening_of("spans.json", b'{"resourceSpans": []}')).name
    'otlp-json'
    """
    # Rows are known by a few common names: whatever says more about itself comes first, formats of packages too.
    in_order = sorted(format_table().usable(), key=lambda named: named[0] == ROWS_FORMAT)
    return next((each for _, each in in_order if _matches(each, opening)), None)


def _matches(format: TraceFormat, opening: Opening) -> bool:
    try:
        return format.matches(opening)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  # what a format cannot even look at is not of that format
        return False


def _adopted(made: Any, plugin: Plugin) -> TraceFormat:
    """A format under the name of its entry point. What another package's format does wrong is reported by its name."""
    if plugin.package is None:
        own: TraceFormat = made
        if own.name != plugin.name:
            raise ValueError(f"_OWN_FORMATS: {plugin.target} is called {own.name!r}; received it as {plugin.name!r}")
        return own
    require(made, "trace format", "summary", "matches", "read")

    def matches(opening: Opening) -> bool:
        try:
            return bool(made.matches(opening))
        except Exception as error:  # noqa: BLE001  # a format that cannot look at a file does not match it
            report_once(f"{plugin} cannot look at {opening.path}: {type(error).__name__}: {error}")
            return False

    def read(source: Source, notes: ReadingNotes) -> Iterator[Span | PackedSpan | Record | InputError]:
        try:
            for each in made.read(source, notes):
                if isinstance(each, (Record, Span, PackedSpan, InputError)):
                    yield each
                else:
                    reason = f"{plugin} must yield records or spans; received {each!r:.80}"
                    yield InputError(source.name, None, reason)
        except Exception as error:  # noqa: BLE001  # one file that cannot be read must not cost the others
            yield InputError(source.name, None, f"{plugin} cannot read on: {type(error).__name__}: {error}")

    return TraceFormat(plugin.name, str(made.summary), matches, read)


def is_native(opening: Opening) -> bool:
    """Whether a file begins like AgentUnit's own records; a file whose first line is not JSON may be one, damaged."""
    return not _NATIVE_KEYS.isdisjoint(opening.keys)


def read_opening(path: str, stream: io.BufferedIOBase) -> tuple[Opening, bytes]:
    """The start of a stream, and the bytes that were taken from it for that."""
    taken = bytearray()
    try:
        # Piece by piece: of a stream that breaks, what came before is kept.
        while len(taken) < _OPENING_BYTES and (piece := stream.read1(_OPENING_BYTES - len(taken))):
            taken += piece
        # A first line that holds a picture is longer, and tells the format no less.
        if len(taken) == _OPENING_BYTES and b"\n" not in taken:
            while len(taken) < _LONGEST_FIRST_LINE and (piece := stream.read1(_OPENING_BYTES)):
                taken += piece
                if b"\n" in piece:
                    break
    except BROKEN_STREAM:
        pass  # the reader meets the same damage, and says where
    start = bytes(taken)
    return opening_of(path, start), start


def opening_of(path: str, start: bytes) -> Opening:
    """What a file's first bytes say about its format."""
    head = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:_HEAD_BYTES]
    if head[:1] not in (b"{", b"["):
        # Objects within a text, as in a page of documentation, do not tell what the file is.
        return Opening(path, head, None, frozenset())
    if head.startswith(_OWN_START):
        return Opening(path, head, None, _NATIVE_KEYS)
    # A document that goes on beyond what was looked at has no end to be found.
    is_cut = head[:1] == b"{" and len(start) >= _OPENING_BYTES and b"\n" not in start
    value = None if is_cut else _first_value(start)
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
