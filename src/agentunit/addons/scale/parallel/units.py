"""Units of work: the parts that an input is cut into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from agentunit.addons.scale.parallel._spools import Spool, SpooledTrace
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, decompressed
from agentunit.traces.formats import is_native, read_opening
from agentunit.traces.line_ranges import LineRange
from agentunit.traces.native import NATIVE_FORMAT
from agentunit.traces.reading import InputFile
from agentunit.urls import is_file, is_remote, open_binary

_REMOTE_TIMES = 8
BLOCK_BYTES = 4 << 20
"""How much of the input is one unit: large enough that handing it out costs nothing, small enough to do again."""


class FileUnit(Struct, frozen=True, tag="file"):
    """A whole file, or some lines of it. ``named``: the user named it, and not only its folder."""

    path: str
    named: bool
    n_bytes: int
    lines: LineRange | None = None


class TraceUnit(Struct, frozen=True, tag="traces"):
    """Some traces, of spans that other units have found. ``spools`` are the numbers of those units."""

    traces: list[SpooledTrace]
    spools: list[int]
    n_bytes: int

    def __str__(self) -> str:
        first, n_more = self.traces[0].id, len(self.traces) - 1
        return f"trace {first}" + (f" and {n_more:,} more" if n_more else "")


Unit = FileUnit | TraceUnit


def file_units(files: Sequence[InputFile], format_name: str | None, block_bytes: int = BLOCK_BYTES) -> list[FileUnit]:
    """The units of files: record files are cut into blocks of lines, all others are one unit each.

    What is compressed can only be read from its start, and only what is one record a line can be cut anywhere. By URL
    blocks are larger: each is asked for by itself, and some bytes behind it are fetched with it.
    """
    units: list[FileUnit] = []
    for path, named, n_bytes in files:
        size = block_bytes * (_REMOTE_TIMES if is_remote(path) else 1)
        if n_bytes <= size or not _is_cut(path, format_name):
            units.append(FileUnit(path, named, n_bytes))
            continue
        for start in range(0, n_bytes, size):
            end = min(start + size, n_bytes)
            units.append(FileUnit(path, named, end - start, LineRange(start, end)))
    return units


def trace_units(spools: Iterable[tuple[int, Spool]], block_bytes: int = BLOCK_BYTES) -> Iterator[TraceUnit]:
    """The traces of all files that hold spans, in the order of their first spans, cut into units."""
    traces: dict[str, SpooledTrace] = {}
    for number, spool in spools:
        for trace_id, n_bytes, runs in spool.traces:
            known = traces.get(trace_id)
            places = [(number, runs[at], runs[at + 1]) for at in range(0, len(runs), 2)]
            if known is None:
                traces[trace_id] = SpooledTrace(trace_id, n_bytes, places)
            else:
                traces[trace_id] = SpooledTrace(trace_id, known.n_bytes + n_bytes, known.places + places)
    some: list[SpooledTrace] = []
    n_bytes = 0
    for trace in traces.values():
        some.append(trace)
        n_bytes += trace.n_bytes
        if n_bytes >= block_bytes:
            yield _trace_unit(some, n_bytes)
            some, n_bytes = [], 0
    if some:
        yield _trace_unit(some, n_bytes)


def _trace_unit(traces: list[SpooledTrace], n_bytes: int) -> TraceUnit:
    return TraceUnit(traces, sorted({place[0] for trace in traces for place in trace.places}), n_bytes)


def _is_cut(path: str, format_name: str | None) -> bool:
    """Whether a file is plain lines of records, and can be read from any place."""
    if not is_file(path) or format_name not in (None, NATIVE_FORMAT):
        return False
    try:
        with open_binary(path) as opened:
            raw: Any = opened
            stream = decompressed(raw)
            if stream is not raw or not raw.seekable():
                return False
            return format_name == NATIVE_FORMAT or is_native(read_opening(path, stream)[0])
    except (OSError, ZstandardMissing, *BROKEN_STREAM):
        return False  # its unit meets the same damage, and says so
