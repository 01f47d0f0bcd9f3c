"""AgentUnit's own record files: one JSON record a line, plain or compressed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.structs import fields

from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError, decode_record
from agentunit.core.records import LooseRecord, Outcome, Record
from agentunit.core.results import InputError
from agentunit.core.trace import TraceLog
from agentunit.traces.compressed import ZstandardMissing, bounded_lines, decompressed
from agentunit.traces.formats_base import cannot_be_read
from agentunit.traces.limits import LimitExceeded, check_nodes, read_limits
from agentunit.urls import RemoteError, shown_source

STDIN = "-"
NATIVE_FORMAT = "records"
_LONGEST_FIELD = 40


class RecordFile:
    """The records of a file, streamed. What cannot be read is yielded in its place as an ``InputError``.

    ``position`` and ``size`` are in bytes of the file as it lies on disk, for progress; size is 0 when unknown.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.name = "standard input" if self.path == STDIN else shown_source(self.path)
        self.size = 0
        self._raw: BinaryIO | None = None

    @property
    def position(self) -> int:
        """How many bytes of the file have been read so far."""
        if self._raw is None or self._raw.closed or not self._raw.seekable():
            return self.size if self._raw is not None and self._raw.closed else 0
        return self._raw.tell()

    def __iter__(self) -> Iterator[Record | InputError]:
        try:
            self._raw = self._open()
        except OSError as error:
            yield InputError(self.name, None, spoken_os_error(error))
            return
        try:
            yield from self.read_from(decompressed(self._raw))
        except ZstandardMissing as error:
            yield InputError(self.name, None, str(error))
        except OSError as error:
            yield InputError(self.name, None, spoken_os_error(error))
        finally:
            if self.path != STDIN:
                self._raw.close()

    def _open(self) -> BinaryIO:
        if self.path == STDIN:
            return sys.stdin.buffer
        raw = open(self.path, "rb")  # noqa: SIM115  # closed by __iter__, which outlives this call
        self.size = os.fstat(raw.fileno()).st_size
        return raw

    def read_from(self, stream: io.BufferedIOBase) -> Iterator[Record | InputError]:
        """The records of a stream of decompressed bytes."""
        number = 0
        most_nodes = read_limits().nodes
        try:
            for number, line in bounded_lines(stream):
                found: Record | InputError
                # In place, not in a function of its own: this is all that is done per line.
                try:
                    if isinstance(line, str):
                        found = InputError(self.name, number, line)
                    else:
                        if len(line) > most_nodes:
                            check_nodes(line, most_nodes)
                        found = decode_record(line)
                except (RecordError, LimitExceeded) as error:
                    found = InputError(self.name, number, str(error))
                except MemoryError:
                    raise
                except Exception as error:  # noqa: BLE001  # one odd line must not cost the others
                    found = InputError(self.name, number, cannot_be_read(error))
                yield found
        except OSError as error:
            yield InputError(self.name, number + 1, spoken_os_error(error))


def misspelled_fields(record: Record | LooseRecord) -> Iterator[str]:
    """Fields of a record that are kept but not read, and whose names are nearly those of fields that it lacks.

    >>> from agentunit.core.codec import as_record
    >>> list(misspelled_fields(as_record({"case": {"id": "q1", "contxt": ["a"], "mine": 1}, "outcome": "b"})))
    ["field case.contxt is not read; did you mean 'context'?"]
    """
    parts: tuple[tuple[str, type[Struct], Any], ...] = (
        ("", Record, record),
        ("case.", DatasetCase, record.case),
        ("trace.", TraceLog, record.trace),
        ("outcome.", Outcome, record.outcome),
    )
    for where, kind, part in parts:
        # An object of a user's own may have an "extra" that means something else.
        extra = getattr(part, "extra", None) if isinstance(part, (kind, LooseRecord)) else None
        for name in extra or ():
            near = _nearest_field(kind, name)
            # What a record has is not what it lacks: "tool" beside "tools" is a field of its own.
            if near is not None and not getattr(part, near):
                yield f"field {where}{name} is not read; did you mean {near!r}?"


@lru_cache(maxsize=1024)
def _nearest_field(kind: type[Struct], name: str) -> str | None:
    known = [each.name for each in fields(kind) if each.name != "extra" and len(each.name) > 1]
    return next(iter(get_close_matches(name.lower()[:_LONGEST_FIELD], known, n=1, cutoff=0.8)), None)


def spoken_os_error(error: OSError) -> str:
    """Why a file cannot be read, in a few words."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, RemoteError):
        return str(error)
    if isinstance(error, IsADirectoryError) or (error.filename and Path(error.filename).is_dir()):
        return "is a folder, not a file"
    return (error.strerror or str(error)).lower()
