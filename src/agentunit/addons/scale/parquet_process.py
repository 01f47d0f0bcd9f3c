"""Parquet of foreign origin, decoded in another process: one damaged byte may end Arrow's, and costs only its file."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from agentunit.datasets.rows import RowError, one_line
from agentunit.installation import install_command
from agentunit.traces.compressed import read_whole
from agentunit.traces.limits import Expansion, LimitExceeded, file_too_long, raised_by, read_limits, too_many_nodes

_MOST_ROWS_AT_ONCE = 1 << 14
_BATCH_BYTES = 1 << 28
_NESTED_VALUES_A_NODE = 10
_BYTES_A_CELL = 8
_UNREADABLE = "not a Parquet file that can be read: "
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from agentunit.addons.scale.parquet_process import serve; serve()"
)


def parquet_rows(stream: io.BufferedIOBase) -> Generator[tuple[int, Sequence[Any]], None, None]:
    """The rows of a Parquet file with their numbers, from 1; the names of its columns come first, as row 0.

    A file that cannot be read raises ``RowError``.
    """
    number = 0
    expansion = Expansion()
    with opened_parquet(stream, WantedRows()) as (batches, n_bytes):
        if n_bytes > read_limits().file_bytes:
            raise file_too_long()
        yield 0, next(batches).names
        for batch in batches:
            try:
                values = [column.to_pylist() for column in batch.columns]
            except Exception as error:  # noqa: BLE001  # a time that Python does not have, for example
                raise RowError(f"{_UNREADABLE}{one_line(error)}") from None
            for cells in zip(*values, strict=True):
                number += 1
                expansion.add(sum(map(_size, cells)), n_bytes)
                yield number, cells


class WantedRows(NamedTuple):
    """What is wanted of a Parquet file: these columns, some of them as dictionaries. Of none only the schema comes.

    ``holding`` is a column and texts: groups of rows without any of them are left out.
    """

    columns: Sequence[str] | None = None
    dictionaries: Sequence[str] = ()
    holding: tuple[str, Sequence[str]] | None = None
    rows_at_once: int | None = None


@contextmanager
def opened_parquet(stream: io.BufferedIOBase, wanted: WantedRows) -> Iterator[tuple[Generator[Any, None, None], int]]:
    """The schema of a file with its metadata, then its rows in batches of Arrow; and how many bytes the file has.

    A file that cannot be read raises ``RowError``.
    """
    with _with_descriptor(stream) as file, closing(_batches(file, wanted)) as batches:
        yield batches, os.fstat(file.fileno()).st_size


def _batches(file: Any, wanted: WantedRows) -> Generator[Any, None, None]:
    try:
        from pyarrow import ArrowException, ipc
    except ImportError:
        raise RowError(f"reading .parquet needs the extra parquet: {install_command('parquet')}") from None
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _START, json.dumps(sys.path), json.dumps(wanted)],
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is ours to hear: a file is not broken because one came
    )
    assert process.stdout is not None
    assert process.stderr is not None
    broken = False
    with process:
        try:
            with ipc.open_stream(process.stdout) as batches:
                yield batches.schema
                yield from batches
        except (ArrowException, OSError):
            broken = True
        except GeneratorExit:
            process.kill()
            raise
        process.stdout.close()
        said = process.stderr.read().decode("utf-8", "replace").splitlines()
    if process.returncode == 1 and said:
        raise RowError(said[-1])
    if process.returncode or broken:
        raise RowError(f"{_UNREADABLE}it ended the process that decoded it (exit code {process.returncode})")


def _size(cell: Any) -> int:
    """About how many bytes a cell takes; an empty one is not for nothing."""
    if isinstance(cell, (str, bytes)):
        return _BYTES_A_CELL + len(cell)
    if isinstance(cell, (list, tuple)):
        return _BYTES_A_CELL + sum(map(_size, cell))
    if isinstance(cell, Mapping):
        return _BYTES_A_CELL + sum(_size(key) + _size(value) for key, value in cell.items())
    return _BYTES_A_CELL


def _with_descriptor(stream: io.BufferedIOBase) -> Any:
    """A file that a process can be started with; what is packed or arrives by a pipe is written down for it."""
    if isinstance(getattr(stream, "raw", None), io.FileIO) and stream.seekable():
        return nullcontext(stream)
    file = TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(read_whole(stream))
    file.seek(0)
    return file


def serve() -> None:
    """Write what standard input holds as a stream of Arrow; an error ends as one line on standard error."""
    try:
        import pyarrow
        from pyarrow import parquet

        wanted = WantedRows(*json.loads(sys.argv[2]))
        file = parquet.ParquetFile(sys.stdin.buffer, read_dictionary=wanted.dictionaries)
        kept = file.schema_arrow.names if not wanted.columns else wanted.columns
        schema = pyarrow.schema([field for field in file.schema_arrow if field.name in kept], file.metadata.metadata)
        n_rows = wanted.rows_at_once or _rows_at_once(file.metadata)
        with pyarrow.ipc.new_stream(sys.stdout.buffer, schema) as batches:
            for group in range(file.metadata.num_row_groups) if wanted.columns != [] else ():
                _check_columns(file.metadata.row_group(group))
                if wanted.holding is not None and not _holds(file, group, *wanted.holding):
                    continue
                for batch in file.iter_batches(n_rows, row_groups=[group], columns=wanted.columns):
                    # The other process relies on it.
                    batch.validate(full=True)
                    batches.write_batch(batch.replace_schema_metadata(schema.metadata))
    except LimitExceeded as error:
        sys.exit(str(error))
    except Exception as error:  # noqa: BLE001  # a damaged file makes Arrow raise whatever Python has
        sys.exit(f"{_UNREADABLE}{one_line(error)}")


def _rows_at_once(metadata: Any) -> int:
    """How many rows may be decoded together: a value of a column can be as long as all that the column stores.

    A dictionary lets a few bytes stand for a long text in every row, and runs let them stand for a million values.
    """
    longest = max((_check_columns(metadata.row_group(group)) for group in range(metadata.num_row_groups)), default=1)
    return int(min(_MOST_ROWS_AT_ONCE, max(1, _BATCH_BYTES // longest)))


def _check_columns(group: Any) -> int:
    """Refuse columns of a row group that are too long; how many bytes the longest has."""
    limit = read_limits()
    longest = 1
    for column in range(group.num_columns):
        chunk = group.column(column)
        if chunk.num_values - group.num_rows > _NESTED_VALUES_A_NODE * limit.nodes:
            raise too_many_nodes()
        longest = max(longest, chunk.total_uncompressed_size)
    if longest > limit.file_bytes:
        raise LimitExceeded(
            f"a column is longer than {limit.file_bytes / 2**20:g} MiB ({raised_by('AGENTUNIT_MAX_FILE_MB')})"
        )
    return longest


def _holds(file: Any, group: int, column: str, texts: Sequence[str]) -> bool:
    """Whether a row group has one of these texts in a column that is read as a dictionary."""
    from pyarrow import array, compute

    wanted = array(texts)
    batches = file.iter_batches(_MOST_ROWS_AT_ONCE, row_groups=[group], columns=[column])
    return any(compute.any(compute.is_in(batch.column(column).dictionary, wanted)).as_py() for batch in batches)
