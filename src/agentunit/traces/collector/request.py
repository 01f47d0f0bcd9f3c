"""The spans and log records in the body of an OTLP/HTTP request."""

from __future__ import annotations

import io
from collections import Counter
from importlib.util import find_spec

from msgspec import Struct, field

from agentunit.core.results import InputError
from agentunit.traces.collector.answers import PROTOBUF
from agentunit.traces.formats_base import Source, TraceFormat
from agentunit.traces.otlp.json_requests import OTLP_JSON
from agentunit.traces.otlp.values import NOT_OF_GENAI
from agentunit.traces.spans import LogEvent, PackedSpan, ReadingNotes, Span

PROTOBUF_MISSING = (
    'protobuf cannot be read here: pip install "agentunit-eval[otel]", or send JSON '
    "(OTEL_EXPORTER_OTLP_PROTOCOL=http/json)"
)

_LONGEST_MESSAGE = 500


class Decoded(Struct):
    """What a request holds. ``unreadable`` counts, by reason, the spans or log records that could not be read.

    ``n_other_logs`` are log records that say nothing about an agent's work.
    """

    spans: list[Span] = field(default_factory=list)
    logs: list[LogEvent] = field(default_factory=list)
    n_other_logs: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)
    notes: ReadingNotes = field(default_factory=ReadingNotes)

    @property
    def n_unreadable(self) -> int:
        """How many spans or log records could not be read."""
        return sum(self.unreadable.values())

    def message(self) -> str:
        """Why something is not kept, for the sender; empty when all is."""
        reasons = [f"{count} × {reason}" for reason, count in self.unreadable.most_common()]
        if self.n_other_logs:
            reasons.append(f"{self.n_other_logs} × {NOT_OF_GENAI}")
        told = "; ".join(reasons)
        return told if len(told) <= _LONGEST_MESSAGE else f"{told[: _LONGEST_MESSAGE - 1]}…"


def protobuf_installed() -> bool:
    """Whether requests in protobuf can be read (extra ``otel``)."""
    try:
        return find_spec("opentelemetry.proto") is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def decode_request(media_type: str, body: bytes) -> Decoded:
    """Read a body; parts that cannot be read are counted, and the rest is there."""
    decoded = Decoded()
    # What spans share may stand behind them, so they are unpacked when all is read.
    for each in list(_reader(media_type).read(Source("the request", io.BytesIO(body)), decoded.notes)):
        part = each.unpack(each.data, decoded.notes) if isinstance(each, PackedSpan) else each
        if isinstance(part, LogEvent):
            decoded.logs.append(part)
        elif isinstance(part, Span) and part.trace_id and part.span_id:
            decoded.spans.append(part)
        elif isinstance(part, Span):
            decoded.unreadable["a span without a trace id or a span id"] += 1
        elif isinstance(part, InputError):
            decoded.unreadable[part.reason] += 1
    decoded.n_other_logs = decoded.notes.problems.pop(NOT_OF_GENAI, 0)
    return decoded


def _reader(media_type: str) -> TraceFormat:
    if media_type == PROTOBUF:
        from agentunit.traces.otlp.protobuf_requests import OTLP_PROTOBUF

        return OTLP_PROTOBUF
    return OTLP_JSON
