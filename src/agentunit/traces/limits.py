"""How much a file may make us do: one place for the limits of every reader, and the words that name them.

A file of a few kilobytes can expand into gigabytes, by compression, by YAML aliases or by millions of empty values.
Each limit has an environment variable that raises it; ``none`` lifts it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from math import inf
from typing import NamedTuple

_MIB = 1 << 20

# Below this many bytes nothing is refused for its expansion: short files of repeated text compress well.
FREE_BYTES = 64 * _MIB

# Every JSON value but the first follows one of these; every message of OTLP's protobuf begins with one of these tags.
_JSON_SEPARATORS = b",:[{"
_PROTOBUF_TAGS = b"\x0a\x12\x4a\x5a\x6a"
# Of a request over the network, which anybody may send, as shares of the nodes of an item.
_DENSE_SHARE, _PARTS_SHARE = 0.2, 0.02

# PyYAML takes three calls of Python a level, of a thousand.
DEEPEST_YAML = 200


class LimitExceeded(ValueError):
    """Something in a file is larger than a limit; the message names the limit and the variable that raises it."""


class ReadLimits(NamedTuple):
    """The limits that hold now. An item is a line, a record, a span, a row or a file within an archive."""

    item_bytes: float
    nodes: float
    expansion: float
    file_bytes: float
    cases: float
    bad_items: float


_VARIABLES = (
    # name, default, factor
    ("AGENTUNIT_MAX_ITEM_MB", 256, _MIB),
    ("AGENTUNIT_MAX_NODES", 5_000_000, 1),
    ("AGENTUNIT_MAX_EXPANSION", 100, 1),
    ("AGENTUNIT_MAX_FILE_MB", 1024, _MIB),
    ("AGENTUNIT_MAX_CASES", 1_000_000, 1),
    ("AGENTUNIT_MAX_BAD_ITEMS", 100_000, 1),
)


def read_limits() -> ReadLimits:
    """The limits, as the environment sets them. Ask once a file, not once an item.

    >>> read_limits().nodes
    5000000
    """
    return _limits_of(*(os.environ.get(name) for name, _, _ in _VARIABLES))


@lru_cache(maxsize=16)
def _limits_of(*values: str | None) -> ReadLimits:
    return ReadLimits(
        *(
            _number(name, value, default) * factor
            for (name, default, factor), value in zip(_VARIABLES, values, strict=True)
        )
    )


def limit_of(variable: str, default: float) -> float:
    """The limit that an environment variable sets, in the variable's unit."""
    return _number(variable, os.environ.get(variable), default)


def _number(name: str, text: str | None, default: float) -> float:
    if text is None or not text.strip():
        return default
    if text.strip().lower() == "none":
        return inf
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not number > 0:
        raise LimitExceeded(f"{name} must be a number above 0, or none; received {text!r:.40}")
    return number


def most_request_parts() -> float:
    """How many resources, scopes, spans and log records a request over the network may hold."""
    return read_limits().nodes * _PARTS_SHARE


def item_too_long(what: str) -> str:
    """Why something is left out that has more bytes than an item may have."""
    return f"{what} is longer than {read_limits().item_bytes / _MIB:g} MiB ({raised_by('AGENTUNIT_MAX_ITEM_MB')})"


def file_too_long() -> LimitExceeded:
    """The refusal of a file that can only be read as a whole."""
    mib = f"{read_limits().file_bytes / _MIB:g} MiB"
    return LimitExceeded(f"the file is longer than {mib} ({raised_by('AGENTUNIT_MAX_FILE_MB')})")


def raised_by(variable: str) -> str:
    """The way out of a limit."""
    return f"the environment variable {variable} raises this limit"


def check_nodes(data: bytes, limit: float | None = None) -> None:
    """Refuse JSON that would become more values than one item may hold (``read_limits().nodes``).

    Separators within texts count as well, which matters only in items of many megabytes.
    """
    limit = read_limits().nodes if limit is None else limit
    if len(data) > limit:
        _check_count(data, _JSON_SEPARATORS, limit)


def check_protobuf_nodes(data: bytes) -> None:
    """Refuse a message of OTLP that would become more objects than one item may hold."""
    limit = read_limits().nodes
    if len(data) > 2 * limit:
        _check_count(data, _PROTOBUF_TAGS, limit)


def check_yaml_depth(text: bytes | str) -> None:
    """Refuse YAML that is nested so deeply that building it would end the interpreter.

    Every reader of YAML calls it first: libyaml's events come one after the other, at any depth.
    """
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST_YAML:
                raise too_deep()
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_count(data: bytes, marks: bytes, limit: float) -> None:
    if sum(data.count(mark) for mark in marks) > limit:
        raise too_many_nodes(limit)


def too_many_nodes(limit: float | None = None) -> LimitExceeded:
    """The refusal of an item with too many values."""
    limit = read_limits().nodes if limit is None else limit
    return LimitExceeded(f"it holds more than {limit:,.0f} values ({raised_by('AGENTUNIT_MAX_NODES')})")


class Parts:
    """How many parts of a file a reader has walked through, counted on the way."""

    def __init__(self, most: float) -> None:
        self._most = self._n_left = most

    def count(self) -> None:
        """Count one more; refuse it beyond the limit."""
        self._n_left -= 1
        if self._n_left < 0:
            raise too_many_parts(self._most)


def too_many_parts(most: float) -> LimitExceeded:
    """The refusal of a request with too many messages."""
    return LimitExceeded(f"a request may hold {most:,.0f} messages; {raised_by('AGENTUNIT_MAX_NODES')}")


def check_density(data: bytes, *, is_json: bool) -> None:
    """Refuse a request of OTLP that holds little but the marks of messages: a few bytes compressed, minutes of work.

    Texts and pictures hold such marks too, but few of them.
    """
    limit = read_limits().nodes * _DENSE_SHARE
    marks, bytes_a_mark = (_JSON_SEPARATORS, 4) if is_json else (_PROTOBUF_TAGS, 10)
    if len(data) > limit and sum(data.count(mark) for mark in marks) > max(limit, len(data) / bytes_a_mark):
        raise too_many_parts(limit)


def too_deep() -> LimitExceeded:
    """The refusal of YAML with too many levels."""
    return LimitExceeded(f"it is nested deeper than {DEEPEST_YAML} levels")


class Expansion:
    """How much came out of so many bytes that went in, checked on the way."""

    def __init__(self, n_out: int = 0) -> None:
        self._n_out = n_out
        self._limit = read_limits().expansion

    def add(self, n_out: int, n_in: int) -> None:
        """Count further bytes that came out, after ``n_in`` bytes went in altogether; refuse a bomb."""
        self._n_out += n_out
        if self._n_out > FREE_BYTES and self._n_out > self._limit * max(n_in, 1):
            raise LimitExceeded(
                f"the file expands to more than {self._limit:g} times its size ({raised_by('AGENTUNIT_MAX_EXPANSION')})"
            )
