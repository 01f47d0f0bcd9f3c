"""The score table: a Parquet file with one narrow row a score, and in its metadata what a run needs to be decided on.

Columns and metadata are documented in docs/records.md. They are stable: a later version may add columns, which readers
leave alone, and one that changes a column has another ``TABLE_VERSION``.
"""

from __future__ import annotations

import io
import secrets
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import IO, Any

import msgspec
from msgspec import Struct

import agentunit
from agentunit.core.results import InputError, encode_json, without_lone_surrogates
from agentunit.engine.scoring.score_rows import COLUMNS, KINDS, TableRow
from agentunit.installation import install_command
from agentunit.store.portable import check_decisions, check_foreign
from agentunit.store.runs import RunHeader, StoredDecision

TABLE_VERSION = 1
METADATA_KEY = "agentunit"

_ROWS_AT_ONCE = 1 << 9
_ROWS_A_GROUP = 1 << 16
_DETAIL_BYTES_A_GROUP = 1 << 25


class TableFacts(Struct):
    """What the file's metadata says about the run. ``judged`` names the metrics whose details tell of a judge,
    ``with_threshold`` those whose details name a threshold; ``None`` where the file does not say. ``decisions`` holds
    the newest decision of the run itself, where there is one.
    """

    score_table: int
    header: RunHeader
    n_input_errors: int = 0
    input_errors: list[InputError] = []
    judged: list[str] = []
    with_threshold: list[str] | None = None
    decisions: list[StoredDecision] = []


class TableUnavailable(RuntimeError):
    """The package that reads and writes Parquet is missing."""


def load_parquet() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise TableUnavailable(f"Parquet needs pyarrow: {install_command('parquet')}") from None
    return pyarrow, parquet


def new_header(name: str, settings: Mapping[str, Any]) -> RunHeader:
    """The header of a run that is kept in a table and in no store."""
    created_at = time.time()
    stamp = datetime.fromtimestamp(created_at, timezone.utc).strftime("%Y%m%d-%H%M%S")
    run_id = f"{stamp}-{secrets.token_hex(2)}"
    return RunHeader(run_id, name, created_at, None, "running", None, agentunit.__version__, dict(settings))


class _Written(io.RawIOBase):
    """The stream that Arrow writes to. It writes an end even when its writer is thrown away: not here."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream: IO[bytes] | None = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self._stream is not None:
            self._stream.write(data)
        return memoryview(data).nbytes

    def drop(self) -> None:
        self._stream = None


class TableWriter:
    """Writes rows to a stream in row groups; left without ``finish``, the file has no end, and reads like no table.

    Memory is bounded by one row group, whose size is bounded in rows and in bytes of details.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._arrow, parquet = load_parquet()
        types = {"string": self._arrow.string(), "int64": self._arrow.int64(), "bool": self._arrow.bool_()}
        types["float64"] = self._arrow.float64()
        self._schema = self._arrow.schema([(name, types[KINDS[name]]) for name in COLUMNS])
        # Details hardly repeat: a dictionary of them would only cost time.
        repeating = [name for name in COLUMNS if name != "detail"]
        self._stream = _Written(stream)
        self._writer = parquet.ParquetWriter(self._stream, self._schema, compression="zstd", use_dictionary=repeating)
        self._rows: list[TableRow] = []
        self._columns: list[list[Any]] = [[] for _ in COLUMNS]
        self._detail_bytes = 0
        self.n_rows = 0

    def add(self, rows: Iterable[TableRow]) -> None:
        """Take the rows of further scores, in the order of position and repeat."""
        for row in rows:
            self._rows.append(row)
            self._detail_bytes += len(row.detail or "")
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._gather()
        if len(self._columns[0]) >= _ROWS_A_GROUP or self._detail_bytes >= _DETAIL_BYTES_A_GROUP:
            self._flush()

    def _gather(self) -> None:
        """Turn rows into columns; a few at a time, while they are warm, takes half as long as all of a group."""
        for column, values in zip(self._columns, zip(*self._rows, strict=True), strict=False):
            column.extend(values)
        self._rows.clear()

    def _flush(self) -> None:
        self._gather()
        n_rows = len(self._columns[0])
        if not n_rows:
            return
        columns = []
        for field, values in zip(self._schema, self._columns, strict=True):
            try:
                columns.append(self._arrow.array(values, field.type))
            except UnicodeEncodeError:
                columns.append(self._arrow.array(without_lone_surrogates(values), field.type))
            values.clear()
        self._writer.write_table(self._arrow.Table.from_arrays(columns, schema=self._schema), n_rows)
        self.n_rows += n_rows
        self._detail_bytes = 0

    def finish(self, facts: TableFacts) -> None:
        """Write what is left, and what is known about the run now that all of it was scored."""
        self._flush()
        self._writer.add_key_value_metadata({METADATA_KEY: encode_json(facts).decode()})
        self._writer.close()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._stream.drop()
        self._writer.close()


def decode_facts(text: bytes) -> TableFacts:
    """The facts in a file's metadata; what is wrong with them is a ``ValueError``."""
    try:
        facts = msgspec.json.decode(text, type=TableFacts)
    except RecursionError:
        raise ValueError("its metadata has too many levels") from None
    if facts.score_table != TABLE_VERSION:
        upgrade = "; it was written by a newer AgentUnit: upgrade" if facts.score_table > TABLE_VERSION else ""
        raise ValueError(f"the version of a score table must be {TABLE_VERSION}; received {facts.score_table}{upgrade}")
    if facts.n_input_errors < 0:
        raise ValueError(f"a count must not be negative; received {facts.n_input_errors}")
    check_foreign(facts.header)
    check_decisions(facts.decisions)
    return facts
