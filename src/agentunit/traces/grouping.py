"""Spans of many files put together by trace or session, in memory that is bounded by the largest of them.

Records that name a session are put together the same way.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Literal, NamedTuple

import msgspec

from agentunit.core.case import DatasetCase
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.records import Outcome, Record, outcome_text
from agentunit.core.results import InputError, encode_json
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.traces.formats_base import cannot_be_read
from agentunit.traces.spans import LogEvent, PackedSpan, ReadingNotes, Span

GroupBy = Literal["trace", "session"]
Unpack = Callable[[bytes, ReadingNotes], Span | LogEvent]

# What is read beyond this goes into a temporary file until its turn comes.
MEMORY_BYTES = 64 << 20

# A larger group is no run of an agent, and would be decoded into several times as much memory.
LARGEST_GROUP_BYTES = 512 << 20

_SPAN_OVERHEAD_BYTES = 120
_HEADER_BYTES = 8
_ORDER: Literal["little"] = "little"

_msgpack = msgspec.msgpack.Encoder()
_msgpack_decoder = msgspec.msgpack.Decoder(Span)
_json_decoder = msgspec.json.Decoder(Span)


class SpoolFailed(RuntimeError):
    """The temporary file that holds spans until their trace is complete could not be written or read."""


class SpanGroup(NamedTuple):
    """The spans of one trace, or of all traces of one session. ``id`` is the trace's or session's id."""

    id: str
    trace_ids: tuple[str, ...]
    spans: list[Span]


class _Trace:
    """One trace as it is collected: spans in memory, and where those before them lie in the file."""

    __slots__ = ("n_bytes", "runs", "session", "waiting")

    def __init__(self) -> None:
        self.n_bytes = 0
        self.session: str | None = None
        self.waiting: list[tuple[bytes, int]] = []
        self.runs = array("Q")


class SpanGroups:
    """Collects spans with ``add``; iterating then gives each group once, in the order of first appearance.

    With ``group_by="session"``, ``session_of`` is asked for the session's id of each span, and whether the span is a
    root. A root's answer counts, else the first within a trace; a trace without one stays alone. Log records are put
    into the events of their span. A group that is too large comes as an ``InputError``. Use it as a context manager:
    the temporary file goes with it. With a ``file`` of the caller's, spans are kept there, and ``spooled`` says where.
    """

    def __init__(
        self,
        notes: ReadingNotes,
        group_by: GroupBy = "trace",
        session_of: Callable[[PackedSpan], tuple[str, bool] | None] | None = None,
        memory_bytes: int = MEMORY_BYTES,
        largest_group_bytes: int = LARGEST_GROUP_BYTES,
        *,
        file: IO[bytes] | None = None,
    ) -> None:
        if group_by == "session" and session_of is None:
            raise ValueError("SpanGroups: group_by='session' needs session_of, but it is None")
        self._notes = notes
        self._session_of = session_of if group_by == "session" else None
        self._memory_bytes = memory_bytes
        self._largest_group_bytes = largest_group_bytes
        self._traces: dict[str, _Trace] = {}
        self._unpacks: list[Unpack] = []
        self._numbers: dict[int, int] = {}
        self._n_waiting_bytes = 0
        self._file = file

    def __enter__(self) -> SpanGroups:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """How many traces there are."""
        return len(self._traces)

    def close(self) -> None:
        """Let go of the temporary file."""
        if self._file is not None:
            # On a full disk closing tries once more to write what could not be written, which was told already.
            with suppress(OSError):
                self._file.close()
            self._file = None

    def add(self, span: PackedSpan | Span) -> None:
        """Take a span in. Raises ``SpoolFailed`` when there is no room for it."""
        packed = span if isinstance(span, PackedSpan) else _packed(span)
        trace = self._traces.get(packed.trace_id)
        if trace is None:
            trace = self._traces[packed.trace_id] = _Trace()
        if self._session_of is not None:
            self._find_session(trace, packed)
        trace.waiting.append((packed.data, self._number(packed.unpack)))
        n_bytes = len(packed.data)
        trace.n_bytes += n_bytes
        self._n_waiting_bytes += n_bytes + _SPAN_OVERHEAD_BYTES
        if self._n_waiting_bytes > self._memory_bytes:
            self._move_to_file()

    def __iter__(self) -> Iterator[SpanGroup | InputError]:
        for group, trace_ids in self._groups():
            n_bytes = sum(self._traces[trace_id].n_bytes for trace_id in trace_ids)
            if n_bytes > self._largest_group_bytes:
                for trace_id in trace_ids:
                    self._traces[trace_id].waiting.clear()
                yield group_too_large(group, n_bytes, self._largest_group_bytes)
                continue
            packed = (
                (trace_id, data, unpack)
                for trace_id in trace_ids
                for data, unpack in self._spans(self._traces[trace_id])
            )
            yield from unpacked_group(group, trace_ids, packed, self._notes)

    def spooled(self) -> Iterator[tuple[str, int, list[int]]]:
        """Write all spans to the file that was handed over; each trace, its bytes, and where its spans lie.

        A place is an offset and a length in bytes, of spans as ``framed_spans`` reads them.
        """
        self._move_to_file()
        for trace_id, trace in self._traces.items():
            yield trace_id, trace.n_bytes, list(trace.runs)

    @property
    def unpacks(self) -> Sequence[Unpack]:
        """What unpacks the spans, by the numbers in their frames."""
        return self._unpacks

    def _groups(self) -> Iterator[tuple[str, list[str]]]:
        if self._session_of is None:
            yield from ((trace_id, [trace_id]) for trace_id in self._traces)
            return
        groups: dict[tuple[bool, str], list[str]] = {}
        for trace_id, trace in self._traces.items():
            key = (False, trace_id) if trace.session is None else (True, trace.session)
            groups.setdefault(key, []).append(trace_id)
        yield from ((key[1], trace_ids) for key, trace_ids in groups.items())

    def _find_session(self, trace: _Trace, packed: PackedSpan) -> None:
        found = self._session_of(packed) if self._session_of is not None else None
        if found is None:
            return
        session, at_root = found
        if trace.session is not None and trace.session != session:
            self._notes.problems["spans of one trace name different sessions: the root's or the first counts"] += 1
        if trace.session is None or at_root:
            trace.session = session

    def _number(self, unpack: Unpack) -> int:
        number = self._numbers.get(id(unpack))
        if number is None:
            number = self._numbers[id(unpack)] = len(self._unpacks)
            self._unpacks.append(unpack)
        return number

    def _move_to_file(self) -> None:
        """Write what waits in memory as one run a trace, so that a trace is read back in few pieces."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="agentunit-spans-")  # noqa: SIM115  # closed by close()
            offset = self._file.seek(0, 2)
            for trace in self._traces.values():
                if not trace.waiting:
                    continue
                run = b"".join(_framed(trace.waiting))
                self._file.write(run)
                trace.runs.extend((offset, len(run)))
                trace.waiting = []
                offset += len(run)
            self._file.flush()
        except OSError as error:
            raise SpoolFailed(_no_room(error)) from error
        self._n_waiting_bytes = 0

    def _spans(self, trace: _Trace) -> Iterator[tuple[bytes, Unpack]]:
        for at in range(0, len(trace.runs), 2):
            yield from self._run(trace.runs[at], trace.runs[at + 1])
        waiting, trace.waiting = trace.waiting, []
        for data, number in waiting:
            yield data, self._unpacks[number]

    def _run(self, offset: int, n_bytes: int) -> Iterator[tuple[bytes, Unpack]]:
        if self._file is None:
            raise SpoolFailed("the spans were let go of before they were read")
        try:
            self._file.seek(offset)
            run = self._file.read(n_bytes)
        except OSError as error:
            raise SpoolFailed(_no_room(error)) from error
        yield from framed_spans(run, self._unpacks)


def framed_spans(run: bytes, unpacks: Sequence[Unpack]) -> Iterator[tuple[bytes, Unpack]]:
    """The spans of a piece of a file of spans, each with what unpacks it."""
    at = 0
    while at < len(run):
        header = int.from_bytes(run[at : at + _HEADER_BYTES], _ORDER)
        at += _HEADER_BYTES
        length = header >> 32
        yield run[at : at + length], unpacks[header & 0xFFFFFFFF]
        at += length


def group_too_large(group: str, n_bytes: int, limit: int = LARGEST_GROUP_BYTES) -> InputError:
    """The error of a group that is left out for its size."""
    return InputError(group, None, f"its spans are {n_bytes >> 20} MiB, more than {limit >> 20}, and are left out")


def unpacked_group(
    group: str, trace_ids: Sequence[str], packed: Iterable[tuple[str, bytes, Unpack]], notes: ReadingNotes
) -> Iterator[SpanGroup | InputError]:
    """A group with its spans unpacked, after those of them that cannot be read."""
    spans, logs = [], []
    for trace_id, data, unpack in packed:
        try:
            unpacked = unpack(data, notes)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  # one odd span must not cost its trace
            yield InputError(f"trace {trace_id}", None, f"a span {cannot_be_read(error)}")
            continue
        if isinstance(unpacked, LogEvent):
            logs.append(unpacked)
        else:
            # A damaged span may name two traces; it stays where it was put.
            unpacked.trace_id = trace_id
            spans.append(unpacked)
    if logs:
        _put_into_spans(logs, spans, notes)
    if spans:
        yield SpanGroup(group, tuple(trace_ids), spans)


def _put_into_spans(logs: list[LogEvent], spans: list[Span], notes: ReadingNotes) -> None:
    by_id = {(span.trace_id, span.span_id): span for span in spans}
    touched: dict[int, Span] = {}
    for log in logs:
        span = by_id.get((log.trace_id, log.span_id))
        if span is None:
            notes.problems["a log record whose span is missing was left out"] += 1
        else:
            span.events.append(log.event)
            touched[id(span)] = span
    for span in touched.values():
        span.events.sort(key=lambda event: float("inf") if event.timestamp is None else event.timestamp)


def _packed(span: Span) -> PackedSpan:
    try:
        return PackedSpan(span.trace_id, _msgpack.encode(span), unpack_msgpack)
    except (TypeError, OverflowError, UnicodeEncodeError):
        # Numbers beyond 64 bits, half surrogate pairs, and objects of other libraries.
        return PackedSpan(span.trace_id, encode_json(span), unpack_json)


def unpack_msgpack(data: bytes, _: ReadingNotes) -> Span:
    """A span that was packed as MessagePack."""
    return _msgpack_decoder.decode(data)


def unpack_json(data: bytes, _: ReadingNotes) -> Span:
    """A span that was packed as JSON."""
    return _json_decoder.decode(data)


def _framed(waiting: list[tuple[bytes, int]]) -> Iterator[bytes]:
    for data, number in waiting:
        yield (len(data) << 32 | number).to_bytes(_HEADER_BYTES, _ORDER)
        yield data


def _no_room(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return (
        f"spans that wait for the rest of their trace cannot be kept in {tempfile.gettempdir()}: {reason}. "
        "Set the environment variable TMPDIR to a folder with more room"
    )


class SessionRecords:
    """Holds the records of sessions, encoded, until all were seen; records without a session pass."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[bytes]] = {}

    def hold(self, record: Record) -> bool:
        """Take a record in; false when it names no session."""
        session = record.trace.metadata.get("session_id")
        if not isinstance(session, str) or not session or record.case.id == session:
            return False
        self._sessions.setdefault(session, []).append(encode_record(record))
        return True

    def merged(self) -> Iterator[Record]:
        """One record a session, in the order in which the sessions were met."""
        for session, lines in self._sessions.items():
            yield merge([decode_record(line) for line in lines], session)


def merge(records: Sequence[Record], session_id: str) -> Record:
    """The records of one session as one: the first question, the last answer, and all that happened between."""
    ordered = sorted(records, key=_began)
    events = [event for record in ordered for event in _turn(record)]
    metadata: dict[str, Any] = {**ordered[0].trace.metadata, "session_id": session_id}
    metadata["trace_id"] = [record.trace.metadata.get("trace_id", record.case.id) for record in ordered]
    for name in ("duration_s", "usage", "usage_from", "cost"):
        metadata.pop(name, None)
    costs = [record.trace.metadata.get("cost") for record in ordered]
    if all(isinstance(cost, (int, float)) for cost in costs):
        metadata["cost"] = sum(costs)
    traces = [record.trace for record in ordered]
    trace = TraceLog(
        events,
        metadata,
        [each for trace in traces for each in trace.interactions],
        [each for trace in traces for each in trace.handoffs],
        [each for trace in traces for each in trace.conflicts],
        {name: role for trace in traces for name, role in trace.agent_roles.items()},
    )
    expected = next((each.case.expected_output for each in ordered if each.case.expected_output is not None), None)
    case = DatasetCase(session_id, next((each.case.query for each in ordered if each.case.query), None), expected)
    answer = next((text for each in reversed(ordered) if (text := outcome_text(each.outcome))), None)
    error = getattr(ordered[-1].outcome, "error", None)
    return Record(
        case, trace, Outcome(success=getattr(ordered[-1].outcome, "success", None), output=answer, error=error)
    )


def _began(record: Record) -> float:
    times = [event.timestamp for event in record.trace.events if event.timestamp is not None]
    return min(times, default=float("inf"))


def _turn(record: Record) -> list[TraceEvent]:
    """The events of one turn, with its question and answer where no message holds them."""
    events = record.trace.events
    said = {event.payload.get("content") for event in events if event.type == "message"}
    times = [event.timestamp for event in events if event.timestamp is not None]
    asked, answered = record.case.query, outcome_text(record.outcome)
    before = [TraceEvent("message", {"role": "user", "content": asked}, min(times, default=None))]
    after = [TraceEvent("message", {"role": "assistant", "content": answered}, max(times, default=None))]
    return [
        *(before if asked and asked not in said else ()),
        *events,
        *(after if answered and answered not in said else ()),
    ]
