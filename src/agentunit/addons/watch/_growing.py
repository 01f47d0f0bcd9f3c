"""Files that grow: what is new in them since they were last looked at, and how far they were read.

Files of lines are read line by line as they grow; of other files it is known only when nobody writes to them any more
that they are complete. Rotated, copied, truncated and replaced files are known again by their first bytes and by those
before the place up to which they were read.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct, field, structs

from agentunit.core.case import set_origin
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.traces.formats import detect, format_named, is_native, opening_of
from agentunit.traces.formats_base import Source, TraceFormat, cannot_be_read
from agentunit.traces.limits import item_too_long, read_limits
from agentunit.traces.native import NATIVE_FORMAT, RecordFile, spoken_os_error
from agentunit.traces.reading import TraceFiles, files_in
from agentunit.traces.spans import LogEvent, PackedSpan, ReadingNotes, Span

QUIET_S = 60.0
LINES_AT_ONCE = 128
# Formats of which every line is read by itself. Of the others, lines belong together, as those of a session.
BY_LINE = frozenset(
    (
        *(NATIVE_FORMAT, "otlp-json", "mlflow", "langfuse", "logfire", "span-json", "span-json-camel", "clickhouse"),
        *("trulens", "otel-js", "langsmith", "weave", "opik", "tau-bench", "chat"),
    )
)
_MARK_BYTES = 1024
_HEADS_REMEMBERED = 10_000
_READ_BYTES = 4 << 20
_LOOKED_AT_BYTES = 1 << 20
_LINES_LOOKED_AT = 20
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
_RECORDS_AT_ONCE = 256
_LINE_FILES = (".jsonl", ".ndjson", ".log")


class FileProgress(Struct):
    """How far a file was read. ``kind`` is ``lines``, ``whole`` or, before that is known, empty.

    ``head`` is a digest of its first ``n_head`` bytes, ``tail`` one of the bytes before ``offset``. ``is_skipping``:
    in the middle of a line that is too long. ``generation`` counts how often the file began anew.
    """

    path: str
    device: int
    inode: int
    offset: int = 0
    n_lines: int = 0
    kind: str = ""
    format: str = ""
    head: str = ""
    n_head: int = 0
    tail: str = ""
    is_skipping: bool = False
    generation: int = 0

    @property
    def key(self) -> str:
        """What a store keeps it under."""
        return f"{self.device}:{self.inode}"


class FoundRecord(Struct):
    """A record, and what tells it from others where it has no id of its own: its place."""

    record: Record
    place: str


class Found(Struct):
    """What a piece of a file holds. ``written_at``: when the file was last written to, in seconds since 1970.

    ``progress`` is to be kept together with what became of the piece; ``None`` in the middle of a file that is not
    read by lines.
    """

    written_at: float
    records: list[FoundRecord] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    logs: list[LogEvent] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)
    progress: FileProgress | None = None

    def take(self, each: Record | Span | LogEvent | PackedSpan | InputError, place: str, notes: ReadingNotes) -> None:
        """Put something that was read where it belongs."""
        if isinstance(each, PackedSpan):
            try:
                each = each.unpack(each.data, notes)
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001  # one odd span must not cost its neighbors
                each = InputError(f"trace {each.trace_id}", None, f"a span {cannot_be_read(error)}")
        if isinstance(each, Span):
            self.spans.append(each)
        elif isinstance(each, LogEvent):
            self.logs.append(each)
        elif isinstance(each, InputError):
            self.errors.append(each)
        else:
            self.records.append(FoundRecord(each, place))


class GrowingFiles:
    """The files of paths and folders, read on from where they were left.

    ``known`` is the progress that was kept. A file in which lines do not stand for themselves is read when it has not
    been written to for ``quiet_s``, and so is a last line without an end; ``n_waiting`` counts such files.
    """

    def __init__(
        self,
        paths: Sequence[str],
        known: Iterable[FileProgress] = (),
        *,
        format: str | None = None,
        quiet_s: float = QUIET_S,
        lines_at_once: int = LINES_AT_ONCE,
    ) -> None:
        self.notes = ReadingNotes()
        self.gone: list[FileProgress] = []
        self.n_waiting = 0
        self._paths = list(paths)
        self._format = format
        self._quiet_s = quiet_s
        self._lines_at_once = lines_at_once
        self._known: dict[tuple[int, int], FileProgress] = {}
        self._by_head: dict[str, FileProgress] = {}
        for each in known:
            self._remember(each)
        self._unread: dict[str, int] = {}
        self._refused: set[str] = set()
        self._looked_at: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    def n_unread_bytes(self) -> int:
        """How much there was to read in all files when they were last looked at."""
        return sum(self._unread.values())

    def read(self, now: float, *, up_to: dict[str, int] | None = None) -> Iterator[Found]:
        """What is new, piece by piece; a piece that the caller goes on from is done with.

        With ``up_to``, files are read up to these sizes and no further, and no other files.
        """
        there: set[tuple[int, int]] = set()
        self.n_waiting = 0
        is_whole = True
        self._unread = {}
        # In the order in which they were written: that of their names is often by chance.
        for path, named, _ in sorted(files_in(self._paths), key=lambda each: _written_at(each.path)):
            if up_to is not None and path not in up_to:
                is_whole = False
                continue
            try:
                status = os.stat(path)
                if not os.path.isfile(path):
                    continue
                there.add((status.st_dev, status.st_ino))
                yield from self._read_on(path, named, status, now, (up_to or {}).get(path, status.st_size))
            except FileNotFoundError:
                continue
            except OSError as error:
                is_whole = False
                if path in self._refused:
                    continue
                self._refused.add(path)
                yield Found(now, errors=[InputError(path, None, spoken_os_error(error))])
        if is_whole:
            # Unless a folder is not there for a moment, as when a disk is mounted anew.
            for place in [each for each in self._known if each not in there and there]:
                self.gone.append(self._known.pop(place))
                self._looked_at.pop(place, None)

    def sizes(self) -> dict[str, int]:
        """The files that are there now, with their sizes."""
        return {path: n_bytes for path, _, n_bytes in files_in(self._paths)}

    def _read_on(self, path: str, named: bool, status: os.stat_result, now: float, size: int) -> Iterator[Found]:
        place = (status.st_dev, status.st_ino)
        progress = self._known.get(place)
        written_at = status.st_mtime
        is_quiet = now - written_at >= self._quiet_s
        if progress is not None:
            # Progress that was kept may be of the middle of a file: only what was seen to its end is left alone.
            same = self._looked_at.get(place) == (size, status.st_mtime_ns)
            if same and progress.path == path and (progress.offset >= size or not (is_quiet or progress.offset == 0)):
                return
            progress = structs.replace(progress, path=path)
        with open(path, "rb") as stream:
            if progress is None:
                progress = self._copied(stream, path, status) or FileProgress(path, *place)
            elif progress.offset and (size < progress.offset or _mark(stream, progress.offset) != progress.tail):
                progress = FileProgress(path, *place, generation=progress.generation + 1)
            if progress.kind == "":
                self._tell_kind(progress, stream, named, is_quiet)
            self._unread[path] = max(0, size - progress.offset)
            if progress.kind == "lines":
                yield from self._lines(progress, stream, size, written_at, is_quiet)
            elif progress.kind == "whole" and is_quiet and progress.tail != _mark(stream, size):
                yield from self._whole(progress, stream, named, size, written_at)
        self._remember(progress)
        self._looked_at[place] = (size, status.st_mtime_ns)
        if progress.offset >= size:
            self._unread.pop(path, None)
        elif progress.kind != "lines":
            self.n_waiting += 1

    def _copied(self, stream: io.BufferedReader, path: str, status: os.stat_result) -> FileProgress | None:
        """The progress of a file that this one is a copy or a successor of, as after some ways of rotating logs."""
        if status.st_size < _MARK_BYTES:
            return None
        each = self._by_head.get(_digest(stream, 0, _MARK_BYTES))
        if each is None or each.offset > status.st_size or _mark(stream, each.offset) != each.tail:
            return None
        return structs.replace(each, path=path, device=status.st_dev, inode=status.st_ino)

    def _remember(self, progress: FileProgress) -> None:
        self._known[progress.device, progress.inode] = progress
        if progress.kind == "lines" and progress.n_head == _MARK_BYTES:
            # Also after the file itself was emptied: its copy may be met only then.
            self._by_head[progress.head] = structs.replace(progress)
            if len(self._by_head) > _HEADS_REMEMBERED:
                del self._by_head[next(iter(self._by_head))]

    def _tell_kind(self, progress: FileProgress, stream: io.BufferedReader, named: bool, is_quiet: bool) -> None:
        """How a file is read, as soon as its first lines are there."""
        stream.seek(0)
        start = stream.read(_LOOKED_AT_BYTES)
        if not start.strip():
            return
        if start.startswith(_COMPRESSED) or (self._format is not None and self._format not in BY_LINE):
            progress.kind = "whole"
            return
        lines = start.split(b"\n", _LINES_LOOKED_AT + 1)
        complete = [line for line in lines[:-1] if line.strip()] or ([start] if is_quiet else [])
        for line in complete[:_LINES_LOOKED_AT]:
            # A first line that is damaged does not hide what the others are.
            if (found := self._format or _format_of_line(progress.path, line)) in BY_LINE:
                progress.kind, progress.format = "lines", found
                return
        opening = opening_of(progress.path, start)
        if complete and opening.head[:1] not in (b"{", b"[") and (named or progress.path.endswith(_LINE_FILES)):
            progress.kind, progress.format = "lines", NATIVE_FORMAT
        elif is_quiet or complete:
            progress.kind = "whole"

    def _lines(
        self, progress: FileProgress, stream: io.BufferedReader, size: int, written_at: float, is_quiet: bool
    ) -> Iterator[Found]:
        longest = read_limits().item_bytes
        while progress.offset < size:
            stream.seek(progress.offset)
            data = stream.read(min(_READ_BYTES, size - progress.offset))
            if not data:
                return
            end = _end_of_lines(data, self._lines_at_once)
            at_end = progress.offset + len(data) >= size
            while not end and not at_end and len(data) <= longest:
                more = stream.read(min(_READ_BYTES, size - progress.offset - len(data)))
                if not more:
                    return
                end = more.find(b"\n") + 1 and len(data) + more.find(b"\n") + 1
                data += more
                at_end = progress.offset + len(data) >= size
            if not end and (is_quiet or progress.is_skipping) and at_end:
                end = len(data)
            too_long = not end and len(data) > longest
            if not end and not too_long and not progress.is_skipping:
                return
            data = data[:end] if end else data
            found = Found(written_at)
            if too_long and not progress.is_skipping:
                found.errors.append(InputError(progress.path, progress.n_lines + 1, item_too_long("the line")))
            elif progress.is_skipping:
                rest = data.find(b"\n") + 1
                data = data[:rest] if rest else data
                progress.is_skipping = not rest
            else:
                self._parse(progress, data, found)
            progress.is_skipping = progress.is_skipping or too_long
            progress.offset += len(data)
            progress.n_lines += data.count(b"\n")
            self._set_marks(progress, stream)
            found.progress = structs.replace(progress)
            self._unread[progress.path] = max(0, size - progress.offset)
            self._remember(progress)
            yield found

    def _parse(self, progress: FileProgress, data: bytes, found: Found) -> None:
        before = (len(found.records), len(found.spans), len(found.logs))
        self._parse_some(progress, data, progress.n_lines, found)
        if progress.format == NATIVE_FORMAT or not found.errors or data.count(b"\n") <= 1:
            return
        # What is wrong with one line must not cost those after it.
        del found.records[before[0] :], found.spans[before[1] :], found.logs[before[2] :], found.errors[:]
        for number, line in enumerate(data.splitlines(keepends=True)):
            self._parse_some(progress, line, progress.n_lines + number, found)

    def _parse_some(self, progress: FileProgress, data: bytes, n_lines: int, found: Found) -> None:
        folder = os.path.dirname(os.path.abspath(progress.path))
        read: Iterable[Record | Span | PackedSpan | InputError]
        stream = io.BufferedReader(io.BytesIO(data))
        format = None if progress.format == NATIVE_FORMAT else format_named(progress.format)
        if format is None:
            read = RecordFile(progress.path).read_from(stream)
        else:
            read = format.read(Source(progress.path, stream), self.notes)
        number = 0
        try:
            for number, each in enumerate(read, start=1):
                if isinstance(each, InputError):
                    each = structs.replace(each, line=n_lines + (each.line or 1))
                elif isinstance(each, Record):
                    set_origin(each.case, folder)
                found.take(each, f"{progress.key}:{progress.generation}:{n_lines}:{number}", self.notes)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  # one odd piece must not cost the others
            found.errors.append(InputError(progress.path, n_lines + 1, cannot_be_read(error)))

    def _whole(
        self, progress: FileProgress, stream: io.BufferedReader, named: bool, size: int, written_at: float
    ) -> Iterator[Found]:
        files = TraceFiles([progress.path], format=self._format)
        spans = _SpanSink()
        found = Found(written_at)
        read = files.read_file(progress.path, named, spans)  # type: ignore[arg-type]  # only add() is called
        for number, each in enumerate(read, start=1):
            found.take(each, f"{progress.path}:{number}", self.notes)
            if len(found.records) >= _RECORDS_AT_ONCE:
                yield found
                found = Found(written_at)
            if len(spans.packed) >= 16 * _RECORDS_AT_ONCE:
                yield from spans.found(written_at, self.notes)
        yield from spans.found(written_at, self.notes)
        self.notes.problems.update(files.notes.problems)
        progress.offset = size
        self._set_marks(progress, stream)
        found.progress = structs.replace(progress)
        yield found

    def _set_marks(self, progress: FileProgress, stream: io.BufferedReader) -> None:
        if progress.n_head < _MARK_BYTES:
            progress.n_head = min(_MARK_BYTES, progress.offset)
            progress.head = _digest(stream, 0, progress.n_head)
        progress.tail = _mark(stream, progress.offset)


def _written_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


class _SpanSink:
    """Takes the spans of a file in, as ``SpanGroups`` does."""

    def __init__(self) -> None:
        self.packed: list[PackedSpan | Span] = []

    def __len__(self) -> int:
        return len(self.packed)

    def add(self, span: PackedSpan | Span) -> None:
        self.packed.append(span)

    def found(self, written_at: float, notes: ReadingNotes) -> Iterator[Found]:
        if self.packed:
            found = Found(written_at)
            for each in self.packed:
                found.take(each, "", notes)
            self.packed = []
            yield found


def _format_of_line(path: str, line: bytes) -> str:
    """The format of a line that stands by itself; empty where it is of none, or is not a whole object."""
    if not line.lstrip().startswith(b"{"):
        return ""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return ""
    opening = opening_of(path, line)
    if is_native(opening):
        return NATIVE_FORMAT
    found: TraceFormat | None = detect(opening)
    return "" if found is None else found.name


def _end_of_lines(data: bytes, most: int) -> int:
    """Where the last of at most so many whole lines ends; 0 where none does."""
    end = 0
    for _ in range(most):
        found = data.find(b"\n", end)
        if found < 0:
            break
        end = found + 1
    return end


def _mark(stream: io.BufferedReader, offset: int) -> str:
    """A digest of the bytes before a place."""
    start = max(0, offset - _MARK_BYTES)
    return _digest(stream, start, offset - start)


def _digest(stream: io.BufferedReader, start: int, n_bytes: int) -> str:
    stream.seek(start)
    return blake2b(stream.read(n_bytes), digest_size=12).hexdigest()
