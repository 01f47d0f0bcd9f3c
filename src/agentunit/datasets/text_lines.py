"""The text of a table, line by line and within limits, as Python's ``csv`` takes it."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite

from agentunit.traces.limits import LimitExceeded, item_too_long, read_limits, too_many_nodes

_CHUNK_BYTES = 1 << 16
_LARGEST_CELL = 1 << 30


class TextLines:
    """The lines of a text in UTF-8, or in UTF-16 with a mark, with their ends. ``number`` counts those handed out."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        limits = read_limits()
        self.number = 0
        self._longest, self._most_cells = limits.item_bytes, limits.nodes
        self._stream = stream
        self._started = self._read()
        # Spreadsheets call UTF-16 "Unicode text"; it always begins with one of these.
        self.encoding = "utf-16" if self._started.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
        # It keeps back a carriage return whose line feed may follow in the next piece.
        self._decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(self.encoding)(), translate=False)
        self._lines = self._split()
        self._first: list[str] = []

    def delimiter(self, choose: Callable[[str], str]) -> str:
        """What ``choose`` makes of the first line that is not blank; it is handed out all the same."""
        for line in self._lines:
            self._first.append(line)
            if line.strip():
                return choose(line)
        return choose("")

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._first.pop(0) if self._first else next(self._lines)
        self.number += 1
        if len(line) > self._most_cells and sum(map(line.count, ",;\t")) > self._most_cells:
            raise too_many_nodes()
        return line

    def _split(self) -> Iterator[str]:
        pieces: list[str] = []
        n_held = 0
        chunk = self._started
        while True:
            for line in io.StringIO(self._decoder.decode(chunk, final=not chunk), newline=""):
                pieces.append(line)
                n_held += len(line)
                if line.endswith(("\n", "\r")):
                    yield "".join(pieces)
                    pieces, n_held = [], 0
            if n_held > self._longest:
                raise LimitExceeded(item_too_long("the line"))
            if not chunk:
                break
            chunk = self._read()
        if pieces:
            yield "".join(pieces)

    def _read(self) -> bytes:
        return self._stream.read1(_CHUNK_BYTES)


@contextmanager
def bounded_text(stream: io.BufferedIOBase) -> Iterator[TextLines]:
    """The lines of a table, while ``csv`` takes cells of any length that an item may have."""
    longest = read_limits().item_bytes
    # The limit is one of the whole process, so it is put back.
    earlier = csv.field_size_limit(min(int(longest), _LARGEST_CELL) if isfinite(longest) else _LARGEST_CELL)
    try:
        yield TextLines(stream)
    finally:
        csv.field_size_limit(earlier)
