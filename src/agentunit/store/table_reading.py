"""Reading a score table that anybody may have written: nothing in it is trusted, and memory stays bounded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, get_args

from agentunit.core.results import Status
from agentunit.store.parquet_table import (
    COLUMNS,
    KINDS,
    METADATA_KEY,
    TableFacts,
    TableRow,
    TableUnavailable,
    decode_facts,
    load_parquet,
)
from agentunit.store.schema import StoreError
from agentunit.traces.limits import Expansion, LimitExceeded, raised_by, read_limits
from agentunit.traces.native import spoken_os_error
from agentunit.traces.remote import RemoteError, is_remote, open_binary

_MAGIC = b"PAR1"
# A whole row group as it is written: every batch of one has the dictionary of all that came before.
_ROWS_AT_ONCE = 1 << 16
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
        with self._opened() as (file, _):
            facts = (file.metadata.metadata or {}).get(METADATA_KEY.encode())
            if facts is None:
                raise StoreError(f"{self.name} is a Parquet file, but no score table of AgentUnit; {_HINT}")
            self.facts: TableFacts = decode_facts(facts)
            _check_columns(file.schema_arrow)

    def rows(self, *, details: bool = True, case_id: str | None = None) -> Iterator[TableRow]:
        """The rows in the order of position and repeat; those of one case only, or without their details, if asked."""
        wanted = [name for name in COLUMNS if details or name != "detail"]
        order = _Order()
        # As a dictionary, a long text that stands in every row is one text.
        with self._opened([name for name in wanted if KINDS[name] == "string"]) as (file, n_bytes):
            expansion = Expansion()
            for group in range(file.metadata.num_row_groups):
                _check_group(file.metadata.row_group(group))
                if case_id is not None and not _names_case(file, group, case_id):
                    continue
                for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=wanted):
                    expansion.add(batch.num_rows * _BYTES_A_ROW, n_bytes)
                    _check_batch(batch)
                    missing = [None] * batch.num_rows
                    columns = (_plain(batch.column(name)) if name in wanted else missing for name in COLUMNS)
                    for cells in zip(*columns, strict=True):
                        row = TableRow(*cells)
                        order.check(row)
                        if case_id is None or row.case_id == case_id:
                            yield row

    @contextmanager
    def _opened(self, dictionaries: Sequence[str] = ()) -> Iterator[tuple[Any, int]]:
        """The file, and its size in bytes."""
        try:
            _, parquet = load_parquet()
            with open_binary(self._place) as raw:
                n_bytes = _size(raw)
                yield parquet.ParquetFile(raw, read_dictionary=dictionaries), n_bytes
        except StoreError:
            raise
        except TableUnavailable as error:
            raise StoreError(f"{self.name}: {error}") from None
        except MemoryError:
            raise StoreError(f"{self.name} needs more memory than there is here") from None
        except OSError as error:
            # Arrow raises it, too, without a number, of a file that is damaged.
            if error.errno is None and not isinstance(error, (RemoteError, FileNotFoundError)):
                raise self._unreadable(error) from None
            raise StoreError(f"{self.name}: {spoken_os_error(error)}") from None
        except Exception as error:  # noqa: BLE001  # a damaged file makes Arrow raise whatever Python has
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> StoreError:
        said = "".join(each if each.isprintable() else " " for each in str(error))
        why = " ".join(said.split())[:300] or type(error).__name__
        return StoreError(f"{self.name} is not a score table that can be read ({why}); {_HINT}")


def _size(raw: IO[bytes]) -> int:
    size = raw.seek(0, os.SEEK_END)
    raw.seek(0)
    return size


def _check_columns(schema: Any) -> None:
    for name in COLUMNS:
        if schema.get_field_index(name) < 0:
            raise ValueError(f"the column {name} is missing, or there twice")
        kind = schema.field(name).type
        # What Arrow wrote from dictionaries comes back as such.
        found = str(getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind)
        found = {"double": "float64"}.get(found, found.removeprefix("large_"))
        if found != KINDS[name]:
            raise ValueError(f"the column {name} must be {KINDS[name]}; received {found:.80}")


def _check_group(group: Any) -> None:
    limit = read_limits().file_bytes
    for column in range(group.num_columns):
        if group.column(column).total_uncompressed_size > limit:
            raise LimitExceeded(f"a column is longer than {limit / 2**20:g} MiB ({raised_by('AGENTUNIT_MAX_FILE_MB')})")


def _names_case(file: Any, group: int, case_id: str) -> bool:
    """Whether a row group has rows of a case: most have none, and need not be read."""
    from pyarrow import compute

    batches = file.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=["case_id"])
    return any(compute.index(batch.column("case_id").dictionary, case_id).as_py() >= 0 for batch in batches)


def _plain(column: Any) -> Sequence[Any]:
    """The values of a column; those that a dictionary holds once are one object."""
    if not hasattr(column, "dictionary"):
        return column.to_pylist()  # type: ignore[no-any-return]
    texts = column.dictionary.to_pylist()
    return [None if index is None else texts[index] for index in column.indices.to_pylist()]


def _check_batch(batch: Any) -> None:
    """Refuse cells that no score has: they would be met later, where nobody expects them."""
    from pyarrow import compute

    for name, least in (("position", 0), ("repeat", 1), ("case_id", None)):
        column = batch.column(name)
        if column.null_count:
            raise ValueError(f"{name} must not be null")
        if least is not None and batch.num_rows and compute.min(column).as_py() < least:
            raise ValueError(f"{name} counts from {least}; received {compute.min(column).as_py()}")
    scored = batch.column("metric").is_valid()
    for name in _OF_A_SCORE:
        if compute.any(compute.and_(scored, batch.column(name).is_null())).as_py():
            raise ValueError(f"{name} must not be null where there is a metric")
    strange = set(batch.column("status").dictionary.to_pylist()) - _STATUSES - {None}
    if strange:
        raise ValueError(f"a status must be {', '.join(sorted(_STATUSES))}; received {min(strange)!r:.80}")
    for name in (name for name in batch.schema.names if KINDS[name] == "float64"):
        if compute.all(compute.is_finite(batch.column(name))).as_py() is False:
            raise ValueError(f"{name} must be a finite number or null")


class _Order:
    """Rows must come by position and repeat, each score once, and each place must be of one case."""

    def __init__(self) -> None:
        self._place = (-1, 0)
        self._case_id = ""
        self._metrics: set[str | None] = set()

    def check(self, row: TableRow) -> None:
        """Refuse a row that does not follow those before it."""
        place = (row.position, row.repeat)
        if place != self._place:
            if place < self._place:
                raise ValueError(f"rows must be in the order of position and repeat; {place} comes after {self._place}")
            self._place, self._case_id = place, row.case_id
            self._metrics = {row.metric}
            return
        if row.case_id != self._case_id:
            raise ValueError(f"two cases have position {row.position}: {self._case_id!r:.80} and {row.case_id!r:.80}")
        if row.metric in self._metrics or None in (row.metric, *self._metrics):
            raise ValueError(f"the case {row.case_id!r:.80} has two scores of {row.metric!r:.80}")
        self._metrics.add(row.metric)
