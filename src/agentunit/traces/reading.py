"""The door: files and folders of traces in any known format come out as records."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from agentunit.core.case import origin_of, set_origin
from agentunit.core.records import Record
from agentunit.core.results import InputError, describe_own_file
from agentunit.traces.assembly.record import assemble, left_out
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, decompressed, describe_damage, replayed
from agentunit.traces.expected import ExpectedAnswers
from agentunit.traces.formats import detect, format_named, is_native, read_opening
from agentunit.traces.formats_base import Opening, Source, TraceFormat, cannot_be_read
from agentunit.traces.grouping import GroupBy, SessionRecords, SpanGroup, SpanGroups, SpoolFailed
from agentunit.traces.limits import raised_by, read_limits
from agentunit.traces.line_ranges import LineRange
from agentunit.traces.native import NATIVE_FORMAT, STDIN, RecordFile, misspelled_fields, spoken_os_error
from agentunit.traces.spans import LogEvent, PackedSpan, ReadingNotes, Span
from agentunit.traces.vocabularies import facts_of
from agentunit.urls import is_remote, open_binary, remote_files, remote_folder, shown_source

_SPANS_A_TICK = 256
_MOST_REMEMBERED = 1_000_000
_MOST_REPEATED_NAMED = 100_000
_REPEATED = "cases have the id of another case in these files: are they the same runs twice?"
_MOST_PROBLEMS = 100
_TABLES = tuple(f"{table}{packed}" for table in (".csv", ".tsv") for packed in ("", ".gz", ".zst"))
_A_RECORD = (
    'a record is one line such as {"case": {"query": "…", "context": ["…"]}, "outcome": {"output": "…"}} '
    "(docs/records.md), a row has a question and a response; --from names one of the formats of docs/traces.md"
)


class TraceSource(Protocol):
    """Where records come from, for those who read them and say how it went."""

    notes: ReadingNotes
    expected: ExpectedAnswers | None
    on_progress: Callable[[], None]

    def fraction(self) -> float | None:
        """How far along the reading is, ``None`` where that cannot be known."""
        ...

    def __iter__(self) -> Iterator[Record | InputError]: ...


class InputFile(NamedTuple):
    """A file to read: whether the user named it, and not only its folder, and its size (0 where not known)."""

    path: str
    named: bool
    n_bytes: int


class TraceFiles:
    """The records of files and folders, streamed; what cannot be read is yielded in its place as an ``InputError``.

    ``format`` forces a format by name; else each file's is told by how it begins. Spans of one trace are put together
    whichever files they stand in, so their records come after all files were read; ``group_by="session"`` makes one
    record of all traces of a session. ``expected`` completes the cases. ``notes`` says what was noticed on the way.
    For progress there is ``fraction``, and ``on_progress``, which is called now and then while nothing is yielded.
    ``current_file`` is the file that a record was just read from, ``None`` for one put together from spans of any.
    ``repeated_ids`` are ids that several cases of several files have, up to a limit.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        format: str | None = None,
        group_by: GroupBy = "trace",
        expected: ExpectedAnswers | None = None,
    ) -> None:
        if group_by not in ("trace", "session"):
            raise ValueError(f"TraceFiles: group_by must be trace or session; received {group_by!r}")
        self.notes = ReadingNotes()
        self.expected = expected
        self.on_progress: Callable[[], None] = lambda: None
        self._format = format
        self._group_by = group_by
        self._forced = None if format is None else format_named(format)
        self.files = list(files_in([os.fspath(path) for path in paths]))
        self._size = sum(n_bytes for _, _, n_bytes in self.files)
        self._done_bytes = 0
        self._n_groups = self._n_assembled = 0
        self._raw: BinaryIO | None = None
        self.passed_over: dict[str, str] = {}
        self.current_file: str | None = None
        self.repeated_ids: set[str] = set()

    def fraction(self) -> float | None:
        """How far along the reading is, ``None`` where that cannot be known; traces are put together after it."""
        if not self._size:
            return None
        here = 0
        if self._raw is not None and not self._raw.closed and self._raw.seekable():
            here = self._raw.tell()
        read = (self._done_bytes + here) / self._size
        return read if not self._n_groups else (read + self._n_assembled / self._n_groups) / 2

    def __iter__(self) -> Iterator[Record | InputError]:
        # One file names each case once; the same runs in two files or formats would count twice unnoticed.
        seen: set[int] | None = set() if len(self.files) > 1 else None
        records = self._records()
        for found in records if self._group_by == "trace" else _by_session(records):
            if seen is not None and isinstance(found, Record):
                self.note_repeated(found.case.id, seen)
            yield self.completed(found)

    def completed(self, found: Record | InputError) -> Record | InputError:
        """A record that was read, with what is known of its case beside its file."""
        if found.__class__ is Record:
            if origin_of(found.case) is None:
                # Put together from several files: paths in it are looked up beside the first of them.
                set_origin(found.case, _folder_of(self.files[0][0]))
            if self.expected is not None:
                self.expected.join(found)
        return found

    def note_repeated(self, case_id: str, seen: set[int]) -> None:
        """Count a case whose id another case had; so many ids are remembered, and no more."""
        known = hash(case_id)
        if case_id and known in seen:
            self.notes.problems[_REPEATED] += 1
            if len(self.repeated_ids) < _MOST_REPEATED_NAMED:
                self.repeated_ids.add(case_id)
        elif len(seen) < _MOST_REMEMBERED:
            seen.add(known)

    def read_file(
        self, path: str, named: bool, groups: SpanGroups, lines: LineRange | None = None, bad_before: int = 0
    ) -> Iterator[Record | InputError]:
        """What one file holds, or some lines of one that holds records; its spans are put into ``groups``.

        ``bad_before`` parts of the file before those lines could not be read.
        """
        for found in self._file(path, named, groups, lines, bad_before):
            yield self.completed(found)

    def _records(self) -> Iterator[Record | InputError]:
        with SpanGroups(self.notes, self._group_by, _session_of) as groups:
            try:
                for path, named, n_bytes in self.files:
                    self.current_file = path
                    yield from self._file(path, named, groups)
                    self._done_bytes += n_bytes
                self.current_file = None
                yield from self._assembled(groups)
            except SpoolFailed as error:
                yield InputError(self.files[0][0], None, str(error))

    def _file(
        self, path: str, named: bool, groups: SpanGroups, lines: LineRange | None = None, bad_before: int = 0
    ) -> Iterator[Record | InputError]:
        name = "standard input" if path == STDIN else shown_source(path)
        if not named and os.path.exists(path) and not os.path.isfile(path) and not _is_run(path):
            # Opening a pipe without a writer would wait for ever.
            self._pass_over("pipes, devices and links to folders", name)
            return
        try:
            self._raw = sys.stdin.buffer if path == STDIN else _run(path) if _is_run(path) else open_binary(path)
        except OSError as error:
            yield InputError(name, None, spoken_os_error(error))
            return
        try:
            found = self._stream(name, path, named, groups) if lines is None else self._lines(path, lines)
            yield from self._few_errors(path, name, found, bad_before)
        except ZstandardMissing as error:
            yield InputError(name, None, str(error))
        except BROKEN_STREAM as error:
            yield InputError(name, None, describe_damage(error, ""))
        except OSError as error:
            yield InputError(name, None, spoken_os_error(error))
        except (MemoryError, SpoolFailed):
            raise
        except Exception as error:  # noqa: BLE001  # one odd file must not cost the others
            yield InputError(name, None, f"{cannot_be_read(error)}; the rest of the file is left out")
        finally:
            if path != STDIN:
                self._raw.close()
            self._raw = None

    def _few_errors(
        self, path: str, name: str, found: Iterator[Record | InputError], n_errors: int
    ) -> Iterator[Record | InputError]:
        """What was found, unless next to nothing of a large file can be read."""
        limit = read_limits().bad_items
        folder = _folder_of(path)
        for each in found:
            if each.__class__ is Record:
                set_origin(each.case, folder)
                yield each
                continue
            n_errors += isinstance(each, InputError)
            if n_errors > limit:
                reason = f"more than {limit:,.0f} parts of the file cannot be read; the rest is left out"
                yield InputError(name, None, f"{reason} ({raised_by('AGENTUNIT_MAX_BAD_ITEMS')})")
                return
            yield each

    def _stream(self, name: str, path: str, named: bool, groups: SpanGroups) -> Iterator[Record | InputError]:
        if self._raw is None:
            return
        stream = decompressed(self._raw)
        opening, taken = read_opening(path, stream)
        if not taken.strip():
            # An empty file holds nothing, which is not an error; one that is damaged from the start says so here.
            found_here = list(RecordFile(path).read_from(replayed(taken, stream)))
            yield from found_here
            if not found_here:
                self._pass_over("empty files", name)
            return
        native = self._format == NATIVE_FORMAT or (self._forced is None and is_native(opening))
        found = self._forced if self._forced is not None else None if native else detect(opening)
        is_other = opening.value is not None or b"\0" in opening.head or path.lower().endswith(_TABLES)
        if found is None and not native and (is_other or not named):
            yield from self._unknown(name, opening, named)
            return
        self.notes.n_files += 1
        self.notes.formats[found.name if found else NATIVE_FORMAT] += 1
        if found is None:
            yield from self._native(path, replayed(taken, stream))
        else:
            yield from self._formatted(found, Source(name, replayed(taken, stream)), groups)

    def _lines(self, path: str, lines: LineRange) -> Iterator[Record | InputError]:
        if self._raw is None:
            return
        if lines.start == 0:
            self.notes.n_files += 1
            self.notes.formats[NATIVE_FORMAT] += 1
        yield from self._native(path, lines.stream(self._raw))

    def _native(self, path: str, stream: io.BufferedIOBase) -> Iterator[Record | InputError]:
        for each in RecordFile(path).read_from(stream):
            if each.__class__ is Record:
                if "instrumentation" in each.trace.metadata:
                    self._note_scopes(each.trace.metadata["instrumentation"])
                if each.case.extra or each.extra or each.trace.extra or getattr(each.outcome, "extra", None):
                    self._note_slips(each)
            yield each

    def _note_slips(self, record: Record) -> None:
        problems = self.notes.problems
        for slip in misspelled_fields(record):
            # A bad file could bring a new name with every line.
            if slip in problems or len(problems) < _MOST_PROBLEMS:
                problems[slip] += 1

    def _note_scopes(self, scopes: object) -> None:
        """Records that were made of spans say by whose: the advice of the doctor depends on it."""
        if isinstance(scopes, list):
            self.notes.scopes.update(scope for scope in scopes if isinstance(scope, str))

    def _formatted(self, format: TraceFormat, source: Source, groups: SpanGroups) -> Iterator[Record | InputError]:
        for count, each in enumerate(format.read(source, self.notes)):
            if isinstance(each, (Span, PackedSpan)):
                try:
                    groups.add(each)
                except (MemoryError, SpoolFailed):
                    raise
                except Exception as error:  # noqa: BLE001  # one odd span must not cost the others
                    yield InputError(source.name, None, f"a span of trace {each.trace_id} {cannot_be_read(error)}")
                if count % _SPANS_A_TICK == 0:
                    self._n_groups = len(groups)
                    self.on_progress()
            elif isinstance(each, InputError) or not left_out(each, self.notes):
                yield each

    def _unknown(self, name: str, opening: Opening, named: bool) -> Iterator[InputError]:
        if not named:
            # A folder also holds what was never meant to be read.
            self._pass_over("files of no known format in the folder", name)
            return
        if (own := describe_own_file(opening.keys, name)) is not None:
            yield InputError(name, None, own)
            return
        from agentunit.datasets.recorded_rows import unsure_about

        names = ", ".join(sorted(opening.keys)[:8])
        holds = f"its first object has the names {names}" if names else "it does not begin like any of them"
        ways_out = "; ".join(filter(None, (unsure_about(opening), _A_RECORD)))
        yield InputError(name, None, f"no trace format that is known ({holds}); {ways_out}")

    def _pass_over(self, what: str, name: str) -> None:
        """Count what a folder holds beside traces; the first stands as an example of all."""
        problem = self.passed_over.setdefault(what, f"{what} were passed over, such as {name}")
        self.notes.problems[problem] += 1

    def _assembled(self, groups: SpanGroups) -> Iterator[Record | InputError]:
        self._n_groups = len(groups)
        for group in groups:
            self._n_assembled += 1 if isinstance(group, InputError) else len(group.trace_ids)
            record = self._record_of(group)
            if record is not None:
                yield record

    def assembled(self, groups: Iterable[SpanGroup | InputError]) -> Iterator[Record | InputError]:
        """The records of traces whose spans are together."""
        for group in groups:
            record = self._record_of(group)
            if record is not None:
                yield self.completed(record)

    def _record_of(self, group: SpanGroup | InputError) -> Record | InputError | None:
        if isinstance(group, InputError):
            return group
        try:
            return assemble(group.spans, self.notes, _session_id(group, self._group_by))
        except Exception as error:  # noqa: BLE001  # one odd trace must not cost the others
            return InputError(f"trace {group.id}", None, f"cannot be put together ({type(error).__name__}: {error})")


def read_records(
    *paths: str | os.PathLike[str], format: str | None = None, group_by: GroupBy = "trace"
) -> Iterator[Record | InputError]:
    """The records of files and folders of traces in any known format; ``"-"`` is standard input.

    What cannot be read comes as an ``InputError`` with its file, line and reason, and ``score`` collects them.
    """
    yield from TraceFiles(paths, format=format, group_by=group_by)


def _by_session(found: Iterator[Record | InputError]) -> Iterator[Record | InputError]:
    """Records of files that hold one a trace, put together by session."""
    sessions = SessionRecords()
    for each in found:
        if isinstance(each, InputError) or not sessions.hold(each):
            yield each
    yield from sessions.merged()


def _session_id(group: SpanGroup, group_by: GroupBy) -> str | None:
    return group.id if group_by == "session" and group.id not in group.trace_ids else None


def _session_of(packed: PackedSpan) -> tuple[str, bool] | None:
    """The session that a span names, and whether the span is a root, whose word counts most."""
    unpacked = packed.unpack(packed.data, ReadingNotes())
    if isinstance(unpacked, LogEvent):
        return None
    session = facts_of(unpacked).session_id
    return None if session is None else (session, unpacked.parent_id is None)


def files_in(paths: Sequence[str]) -> Iterator[InputFile]:
    """The files of files and folders."""
    for path in paths:
        if is_remote(path):
            yield from _remotefiles_in(path)
        elif path == STDIN or not os.path.isdir(path):
            yield InputFile(path, True, _size(path))
        else:
            for each in _walk(path):
                yield InputFile(each, False, _size(each))


def _remotefiles_in(url: str) -> Iterator[InputFile]:
    try:
        for each in remote_files(url):
            yield InputFile(each.url, each.named, each.n_bytes)
    except OSError:
        # Opening it says what is wrong with it, in its place among the others.
        yield InputFile(url, True, 0)


# What is read in a folder although it is hidden there.
_HIDDEN_TRACES = (".aider.chat.history.md",)


# What lies in a folder that is one run, as OpenHands keeps its conversations: its state, and a file for each event.
_RUN_STATE, _RUN_EVENTS = "base_state.json", "events"


def _is_run(path: str) -> bool:
    return os.path.isfile(os.path.join(path, _RUN_STATE)) and os.path.isdir(os.path.join(path, _RUN_EVENTS))


def _run(path: str) -> BinaryIO:
    """The files of a run as the lines of one file."""
    events = Path(path, _RUN_EVENTS)
    parts = [Path(path, _RUN_STATE), *sorted(each for each in events.glob("*.json") if each.is_file())]
    return io.BytesIO(b"\n".join(part.read_bytes() for part in parts))


def _walk(path: str) -> Iterator[str]:
    for folder, folders, names in os.walk(path):
        if _is_run(folder):
            folders[:] = []
            yield folder
            continue
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        linked = [each for each in folders if os.path.islink(os.path.join(folder, each))]
        for name in sorted([*names, *linked]):
            if not name.startswith(".") or name in _HIDDEN_TRACES:
                yield os.path.join(folder, name)


def _folder_of(path: str) -> str:
    if is_remote(path):
        return remote_folder(path)
    return os.getcwd() if path == STDIN else os.path.dirname(os.path.abspath(path))


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size if path != STDIN else 0
    except OSError:
        return 0
