"""Reading a score table that anybody may have written: nothing in it is trusted, and memory stays bounded."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedIOBase
from typing import Any, cast, get_args

from agentunit.addons.scale._parquet_table import (
    METADATA_KEY,
    TableFacts,
    TableUnavailable,
    decode_facts,
    load_parquet,
)
from agentunit.addons.scale.parquet_process import WantedRows, opened_parquet
from agentunit.core.results import Status
from agentunit.engine.scoring.score_rows import COLUMNS, KINDS, LATER_COLUMNS, TableRow
from agentunit.formulas.statistics import LARGEST_MAGNITUDE
from agentunit.store.schema import StoreError
from agentunit.traces.limits import Expansion
from agentunit.traces.native import spoken_os_error
from agentunit.urls import RemoteError, is_remote, open_binary

# A whole row group as it is written: every batch of one has the dictionary of all that came before.
_ROWS_AT_ONCE = 1 << 16
# About what a row takes as an object, whatever few bits of the file it came from.
_BYTES_A_ROW = 64
_STATUSES = frozenset(get_args(Status))
_OF_A_SCORE = ("status", "backend", "version")
_HINT = "'agentunit score FILES --out scores.parquet' writes a score table"


class ScoreTableFile:
    """A score table, opened. What is wrong with it is a ``StoreError`` in one sentence."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        # Rows are read later, when the working directory may be another.
        self._place = self.name if is_remote(self.name) else os.path.abspath(self.name)
        with self._opened(WantedRows(columns=[])) as (batches, _):
            schema = next(batches)
            facts = (schema.metadata or {}).get(METADATA_KEY.encode())
            if facts is None:
                raise StoreError(f"{self.name} is a Parquet file, but no score table of AgentUnit; {_HINT}")
            self.facts: TableFacts = decode_facts(facts)
            _check_columns(schema)
            self._columns = [name for name in COLUMNS if schema.get_field_index(name) >= 0]

    def rows(self, *, details: bool = True, case_ids: Collection[str] | None = None) -> Iterator[TableRow]:
        """The rows in the order of position and repeat; those of some cases only, or without their details, if asked.

        What decodes them is another process: one damaged byte may end it.
        """
        wanted = [name for name in self._columns if details or name not in ("detail", "why")]
        order = _Order()
        # As a dictionary, a long text that stands in every row is one text.
        texts = [name for name in wanted if KINDS[name] == "string"]
        holding = None if case_ids is None else ("case_id", list(case_ids))
        with self._opened(WantedRows(wanted, texts, holding, _ROWS_AT_ONCE)) as (batches, n_bytes):
            next(batches)
            expansion = Expansion()
            for batch in batches:
                expansion.add(batch.num_rows * _BYTES_A_ROW, n_bytes)
                _check_batch(batch)
                missing = [None] * batch.num_rows
                columns = (_plain(batch.column(name)) if name in wanted else missing for name in COLUMNS)
                for cells in zip(*columns, strict=True):
                    row = TableRow(*cells)
                    order.check(row)
                    if case_ids is None or row.case_id in case_ids:
                        yield row

    @contextmanager
    def _opened(self, wanted: WantedRows) -> Iterator[tuple[Iterator[Any], int]]:
        """What is wanted of the file as batches, its schema before them, and its size in bytes."""
        try:
            load_parquet()
            with open_binary(self._place) as raw, opened_parquet(cast(BufferedIOBase, raw), wanted) as opened:
                yield opened
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


def _check_columns(schema: Any) -> None:
    for name in COLUMNS:
        if name in LATER_COLUMNS and name not in schema.names:
            continue
        if schema.get_field_index(name) < 0:
            raise ValueError(f"the column {name} is missing, or there twice")
        kind = schema.field(name).type
        # What Arrow wrote from dictionaries comes back as such.
        found = str(getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind)
        found = {"double": "float64"}.get(found, found.removeprefix("large_"))
        if found != KINDS[name]:
            raise ValueError(f"the column {name} must be {KINDS[name]}; received {found:.80}")


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
        largest = compute.max(compute.abs(batch.column(name))).as_py()
        if largest is not None and not largest < LARGEST_MAGNITUDE:
            raise ValueError(f"{name} must be below {LARGEST_MAGNITUDE} in size; received {largest}")


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
