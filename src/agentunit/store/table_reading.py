"""Reading a score table that anybody may have written: nothing in it is trusted, and memory stays bounded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import IO, Any, get_args

from agentunit.core.results import Status
from agentunit.store.schema import StoreError
from agentunit.store.score_table import (
    COLUMNS,
    KINDS,
    METADATA_KEY,
    TableFacts,
    TableRow,
    TableUnavailable,
    decode_facts,
    load_parquet,
)
from agentunit.traces.limits import Expansion, LimitExceeded, raised_by, read_limits
from agentunit.traces.remote import is_remote, open_binary

_MAGIC = b"PAR1"
_ROWS_AT_ONCE = 8192
# About what a row takes as an object, whatever few bits of the file it came from.
_BYTES_A_ROW = 64
_STATUSES = frozenset(get_args(Status))
_OF_A_SCORE = ("status", "backend", "version")
_HINT = "'agentunit score FILES --out scores.parquet' writes a score table"


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is Parquet, by how it begins; reading it says what is wrong with it."""
    try:
        with open_binary(path) as raw:
            return raw.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


class ScoreTable:
    """A score table, opened. What is wrong with it is a ``StoreError`` in one sentence."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        # Rows are read later, when the working directory may be another.
        self._place = self.name if is_remote(self.name) else os.path.abspath(self.name)
        with self._opened() as (_, file, _):
            facts = (file.metadata.metadata or {}).get(METADATA_KEY.encode())
            if facts is None:
                raise StoreError(f"{self.name} is a Parquet file, but no score table of AgentUnit; {_HINT}")
            self.facts: TableFacts = decode_facts(facts)
            _check_columns(file.schema_arrow)

    def rows(self, *, details: bool = True, case_id: str | None = None) -> Iterator[TableRow]:
        """The rows in the order of position and repeat; those of one case only, or without their details, if asked."""
        wanted = [name for name in COLUMNS if details or name != "detail"]
        number = 0
        before: TableRow | None = None
        seen: set[str | None] = set()
        with self._opened() as (arrow, file, n_bytes):
            expansion = Expansion()
            for group in range(file.metadata.num_row_groups):
                _check_group(file.metadata.row_group(group))
                n_rows = file.metadata.row_group(group).num_rows
                if case_id is not None and not _names_case(arrow, file, group, case_id):
                    number += n_rows
                    continue
                for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=wanted):
                    columns = {name: _plain(batch.column(name)) for name in wanted}
                    missing = [None] * batch.num_rows
                    expansion.add(batch.num_rows * _BYTES_A_ROW, n_bytes)
                    for cells in zip(*(columns.get(name, missing) for name in COLUMNS), strict=True):
                        number += 1
                        row = TableRow(*cells)
                        _check_row(row, number)
                        same_place = _follows(before, row, number)
                        if not same_place:
                            seen.clear()
                        if row.metric in seen or (seen and None in (row.metric, *seen)):
                            raise ValueError(f"row {number}: {row.metric!r} of this record stands there twice")
                        seen.add(row.metric)
                        before = row
                        if case_id is None or row.case_id == case_id:
                            yield row

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any, int]]:
        """Arrow, the file, and its size in bytes."""
        try:
            arrow, parquet = load_parquet()
            with open_binary(self._place) as raw:
                n_bytes = _size(raw)
                texts = [name for name in COLUMNS if KINDS[name] == "string"]
                # As a dictionary, a long text that stands in every row is one text.
                yield arrow, parquet.ParquetFile(raw, read_dictionary=texts), n_bytes
        except (StoreError, MemoryError):
            raise
        except TableUnavailable as error:
            raise StoreError(f"{self.name}: {error}") from None
        except OSError as error:
            # Arrow, too, says so of a damaged file.
            raise StoreError(f"{self.name}: {_one_line(error.strerror or error)}; {_HINT}") from None
        except Exception as error:  # noqa: BLE001  # a damaged file makes Arrow raise whatever Python has
            raise StoreError(
                f"{self.name} is not a score table that can be read ({_one_line(error)}); {_HINT}"
            ) from None


def _size(raw: IO[bytes]) -> int:
    size = raw.seek(0, os.SEEK_END)
    raw.seek(0)
    return size


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _check_columns(schema: Any) -> None:
    for name in COLUMNS:
        if schema.get_field_index(name) < 0:
            raise ValueError(f"the column {name} is missing, or stands there twice")
        kind = schema.field(name).type
        # The strings were asked for as dictionaries.
        found = str(getattr(kind, "value_type", kind)).removeprefix("large_")
        found = {"double": "float64"}.get(found, found)
        if found != KINDS[name]:
            raise ValueError(f"the column {name} must be {KINDS[name]}; received {found:.80}")


def _check_group(group: Any) -> None:
    limit = read_limits().file_bytes
    for column in range(group.num_columns):
        if group.column(column).total_uncompressed_size > limit:
            raise LimitExceeded(f"a column is longer than {limit / 2**20:g} MiB ({raised_by('AGENTUNIT_MAX_FILE_MB')})")


def _names_case(arrow: Any, file: Any, group: int, case_id: str) -> bool:
    """Whether a row group has rows of a case: most have none, and need not be read."""
    for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=["case_id"]):
        if case_id in batch.column("case_id").dictionary.to_pylist():
            return True
    return False


def _plain(column: Any) -> Sequence[Any]:
    """The values of a column; those that a dictionary holds once are one object."""
    if not hasattr(column, "dictionary"):
        return column.to_pylist()  # type: ignore[no-any-return]
    texts = column.dictionary.to_pylist()
    return [None if index is None else texts[index] for index in column.indices.to_pylist()]


def _check_row(row: TableRow, number: int) -> None:
    required = ("position", "repeat", "case_id", *(_OF_A_SCORE if row.metric is not None else ()))
    for name in required:
        if getattr(row, name) is None:
            raise ValueError(f"row {number}: {name} must not be null")
    if row.position < 0 or row.repeat < 1:
        raise ValueError(
            f"row {number}: position counts from 0 and repeat from 1; received {row.position}, {row.repeat}"
        )
    if row.metric is None:
        return
    if row.status not in _STATUSES:
        raise ValueError(
            f"row {number}: the status must be one of {', '.join(sorted(_STATUSES))}; received {row.status!r:.80}"
        )
    for name in ("value", "amount"):
        number_or_none = getattr(row, name)
        if number_or_none is not None and not isfinite(number_or_none):
            raise ValueError(f"row {number}: {name} must be a finite number or null; received {number_or_none}")


def _follows(before: TableRow | None, row: TableRow, number: int) -> bool:
    """Whether a row is of the same record as the one before it; rows out of order are refused."""
    if before is None:
        return False
    place, last = (row.position, row.repeat), (before.position, before.repeat)
    if place < last:
        raise ValueError(f"row {number}: rows must be in the order of position and repeat; {place} comes after {last}")
    if place == last and row.case_id != before.case_id:
        raise ValueError(f"row {number}: two cases have position {row.position}")
    return place == last
