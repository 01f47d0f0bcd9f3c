"""Datasets in tables: CSV, TSV and Parquet. A column is a field; columns of other names become metadata."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any

import msgspec

from agentunit.core.case import DatasetCase
from agentunit.datasets.rows import (
    SPELLINGS,
    CaseCollector,
    RowError,
    checked_case,
    listed,
    pick_spellings,
    shown,
)
from agentunit.doors import part
from agentunit.traces.limits import (
    LimitExceeded,
    check_nodes,
    item_too_long,
    raised_by,
    read_limits,
    too_many_nodes,
)

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


_CELL_NODES_FREE = 1 << 16
_METADATA_PREFIX = "metadata."
_KNOWN = frozenset(spelling for spellings in SPELLINGS.values() for spelling in spellings)


def collect_csv(stream: io.BufferedIOBase, cases: CaseCollector) -> None:
    """A header, then one case a row; separated by commas, or by semicolons as spreadsheets in many countries write."""
    _collect_separated(stream, cases, None)


def collect_tsv(stream: io.BufferedIOBase, cases: CaseCollector) -> None:
    """The same, separated by tabs."""
    _collect_separated(stream, cases, "\t")


def _collect_separated(stream: io.BufferedIOBase, cases: CaseCollector, delimiter: str | None) -> None:
    columns: TableColumns | None = None
    for number, cells in separated_rows(stream, delimiter):
        try:
            if isinstance(cells, RowError):
                raise cells
            if columns is None:
                columns = TableColumns(cells)
            else:
                cases.add(number, columns.case_of(cells))
        except RowError as error:
            cases.refuse(number, str(error))
            if columns is None:
                return


def separated_rows(
    stream: io.BufferedIOBase, delimiter: str | None = None
) -> Iterator[tuple[int, list[str] | RowError]]:
    """The rows of a table with separated cells, its header first, each with the line on which it begins.

    Without a ``delimiter`` the header tells it. A row that cannot be read comes as its error; blank ones are left out.
    """
    with bounded_text(stream) as lines:
        try:
            if delimiter is None:
                delimiter = lines.delimiter(lambda header: next((each for each in ",;\t" if each in header), ","))
            yield from _rows_read(csv.reader(lines, delimiter=delimiter, strict=True))
        except UnicodeDecodeError as error:
            encoding = lines.encoding.removesuffix("-sig").upper()
            line = lines.number + error.object.count(b"\n", 0, error.start) + 1
            yield line, RowError(f"not valid {encoding} ({error.reason}); save the file as UTF-8")


def _rows_read(reader: Any) -> Iterator[tuple[int, list[str] | RowError]]:
    n_blank, most_blank = 0, 2 * read_limits().cases
    while True:
        # A row may span several lines; it is found by its first.
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield number, RowError(f"not CSV: {error}")
            continue
        if cells is None:
            return
        if any(cell and not cell.isspace() for cell in cells):
            yield number, cells
            continue
        n_blank += 1
        if n_blank > most_blank:
            limit = raised_by("AGENTUNIT_MAX_CASES")
            raise LimitExceeded(f"the table holds more than {most_blank:,.0f} blank rows ({limit})")


class TableColumns:
    """What each column of a table holds: a field of the case, a value of its metadata, or metadata as a whole.

    >>> case = TableColumns(["ID", "question", "metadata.level", "tag"]).case_of(["q1", "2 + 2?", "easy", "sums"])
    >>> case.id, case.query, case.metadata
    ('q1', '2 + 2?', {'level': 'easy', 'tag': 'sums'})
    """

    def __init__(self, header: Sequence[str]) -> None:
        names = [name.strip() or f"column_{number}" for number, name in enumerate(header, 1)]
        tidy = [name.casefold().replace(" ", "_") for name in names]
        self._names = [plain if plain in _KNOWN else name for name, plain in zip(names, tidy, strict=True)]
        repeated = next((name for name, n_times in Counter(self._names).items() if n_times > 1), None)
        if repeated is not None:
            raise RowError(f"the header names the column {repeated!r:.80} twice")
        if not any((name in _KNOWN and name not in SPELLINGS["id"]) or _metadata_key(name) for name in self._names):
            raise RowError(
                f"the header must name a column of a case ({', '.join(SPELLINGS['query'])}, …); "
                f"received {listed(names)}"
            )

    def case_of(self, cells: Sequence[Any]) -> DatasetCase:
        """The case of one row. Cells of a CSV file are texts; those of a typed table may be anything."""
        if len(cells) != len(self._names):
            raise RowError(f"the row must have {len(self._names)} cells as the header has; received {len(cells)}")
        filled = {name: cell for name, cell in zip(self._names, cells, strict=True) if not is_empty(cell)}
        # A cell of these two says by its data whether it is about a conversation.
        filled |= {name: as_data(filled[name]) for name in ("turns", "user") if name in filled}
        spelling_of = pick_spellings(filled)
        used = set(spelling_of.values())
        fields = {name: _as_field(name, filled[spelling]) for name, spelling in spelling_of.items()}
        case = checked_case(fields)
        for name, cell in filled.items():
            if name in used:
                continue
            key = _metadata_key(name) or name
            if key in case.metadata:
                raise RowError(f"metadata {key!r:.80} is given twice, by the column {name!r:.80} as well")
            case.metadata[key] = as_data(cell)
        return case


def _metadata_key(column: str) -> str:
    return column[len(_METADATA_PREFIX) :] if column.casefold().startswith(_METADATA_PREFIX) else ""


def is_empty(cell: Any) -> bool:
    """Whether a cell holds nothing."""
    if isinstance(cell, str):
        return not cell or cell.isspace()
    # NaN is what data frames write for "nothing"; it alone differs from itself.
    return cell is None or (isinstance(cell, float) and cell != cell)


def _as_field(name: str, cell: Any) -> Any:
    if not isinstance(cell, str):
        return {key: value for key, value in cell.items() if value is not None} if isinstance(cell, Mapping) else cell
    if name == "id":
        return cell.strip()
    if name == "query":
        return cell
    data = as_data(cell)
    if name == "metadata":
        if not isinstance(data, dict):
            raise RowError(f"metadata must be a JSON object; received {shown(cell)}")
        return data
    if name == "tools":
        return data if isinstance(data, list) else [tool.strip() for tool in cell.split(",") if tool.strip()]
    # Several passages, or several acceptable answers; a text that merely begins with a bracket stays a text.
    return data if isinstance(data, list) and data and all(isinstance(each, str) for each in data) else cell


def as_data(cell: Any) -> Any:
    """A cell that is written as a JSON list or object becomes one. Numbers stay texts: 007 is not 7."""
    if isinstance(cell, str) and cell.lstrip()[:1] in ("[", "{"):
        try:
            if len(cell) > _CELL_NODES_FREE:
                check_nodes(cell.encode("utf-8", "replace"))
            return msgspec.json.decode(cell)
        except LimitExceeded as error:
            raise RowError(str(error)) from None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return cell
    return cell


def parquet_rows(stream: io.BufferedIOBase) -> Generator[tuple[int, Sequence[Any]], None, None]:
    """The rows of a Parquet file with their numbers, from 1; the names of its columns come first, as row 0.

    A file that cannot be read raises ``RowError``.
    """
    rows: Generator[tuple[int, Sequence[Any]], None, None] = part("parquet_rows")(stream)
    return rows


def collect_parquet(stream: io.BufferedIOBase, cases: CaseCollector) -> None:
    """One case a row of a Parquet file. Lists and objects may be columns of their own kind, or JSON in texts."""
    columns: TableColumns | None = None
    try:
        for number, cells in parquet_rows(stream):
            if columns is None:
                columns = TableColumns(cells)
                continue
            try:
                cases.add(number, columns.case_of(cells))
            except RowError as error:
                cases.refuse(number, str(error))
    except (RowError, LimitExceeded) as error:
        cases.refuse(None, str(error))
