"""One step on the way from a file to records, in this process: ``python -m benchmarks.traces.stage STEP FILE``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from agentunit.core.results import InputError
from agentunit.traces.formats_base import Source
from agentunit.traces.json_files.cursor import OPEN_BRACKET, JsonCursor
from agentunit.traces.json_files.stream import read_documents
from agentunit.traces.otlp.json_requests import OTLP_JSON
from agentunit.traces.reading import TraceFiles
from agentunit.traces.spans import PackedSpan, ReadingNotes
from benchmarks.speed.peak_memory import peak_bytes

_WAY = ("resourceSpans", "scopeSpans", "spans")


def elements(path: str) -> Iterator[Any]:
    """The bytes of each span."""
    with open(path, "rb") as file:
        cursor = JsonCursor(Source(path, file))
        yield from read_documents(cursor, lambda: _below(cursor, 0))


def _below(cursor: JsonCursor, depth: int) -> Iterator[Any]:
    for name in cursor.members():
        if name == _WAY[depth] and cursor.peek() == OPEN_BRACKET:
            if depth + 1 == len(_WAY):
                yield from cursor.values()
                continue
            for _ in cursor.elements():
                yield from _below(cursor, depth + 1)


def packed(path: str) -> Iterator[Any]:
    """Packed spans as the reader hands them out."""
    with open(path, "rb") as file:
        yield from OTLP_JSON.read(Source(path, file), ReadingNotes())


def spans(path: str) -> Iterator[Any]:
    """Decoded spans."""
    notes = ReadingNotes()
    for each in packed(path):
        yield each.unpack(each.data, notes) if isinstance(each, PackedSpan) else each


def records(path: str) -> Iterator[Any]:
    """The whole way."""
    yield from TraceFiles([path])


STEPS: dict[str, Callable[[str], Iterator[Any]]] = {
    "elements": elements,
    "packed": packed,
    "spans": spans,
    "records": records,
}


def main() -> None:
    """Time a step and print what it took."""
    step, path = sys.argv[1:]
    start = time.perf_counter()
    n_values = n_errors = 0
    for value in STEPS[step](path):
        n_values += 1
        n_errors += isinstance(value, InputError)
    elapsed_s = time.perf_counter() - start
    print(json.dumps({"elapsed_s": elapsed_s, "n_values": n_values, "n_errors": n_errors, "peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    main()
