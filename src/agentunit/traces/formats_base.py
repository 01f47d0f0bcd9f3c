"""What a trace format is: how to recognize it, and how to read it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple

from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.traces.spans import PackedSpan, ReadingNotes, Span


def cannot_be_read(error: Exception) -> str:
    """The reason of an item whose reading failed in a way that its reader did not foresee."""
    return f"cannot be read ({type(error).__name__}: {' '.join(str(error).split()):.200})"


class Source(NamedTuple):
    """One file as a format reads it: its name for messages, and its decompressed bytes from the beginning.

    A reader that walks through more than ``most_parts`` fields or elements above the items raises ``LimitExceeded``.
    """

    name: str
    stream: io.BufferedIOBase
    most_parts: float = inf


class Opening(NamedTuple):
    """The start of a file, by which its format is told.

    ``head`` has no byte order mark and no leading white space. ``value`` is the first JSON value of the file when it
    is complete within the part that was looked at (for an array: its first element), ``keys`` are the names in it.
    """

    path: str
    head: bytes
    value: Any
    keys: frozenset[str]


class TraceFormat(NamedTuple):
    """A format by its name for ``--from``. ``read`` yields spans, or whole records, and what it could not read.

    Most formats are told by what only their tool writes. A file that is known ``by_shape`` alone, such as messages with
    roles, may come from a tool that nobody here knows; reports say so.
    """

    name: str
    summary: str
    matches: Callable[[Opening], bool]
    read: Callable[[Source, ReadingNotes], Iterator[Span | PackedSpan | Record | InputError]]
    by_shape: bool = False
