"""Places in JSON objects, as the tables of formats name them, and the check of names in such tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

Paths = tuple[str, ...]


def at(row: Mapping[str, Any], path: str) -> Any:
    """What stands at a place; ``None`` when there is nothing.

    A place is a name, or names with dots between them that lead into nested objects; ``*`` is the only member of one.

    >>> at({"usage": {"gpt-4.1": {"tokens": 5}}}, "usage.*.tokens")
    5
    """
    if path in row:
        return row[path]
    name, dot, rest = path.partition(".")
    inner = next(iter(row.values())) if name == "*" and len(row) == 1 else row.get(name)
    if not dot:
        return inner
    return at(inner, rest) if isinstance(inner, dict) else None


def first_at(row: Mapping[str, Any], paths: Iterable[str]) -> Any:
    """What stands at the first of several places that holds something, be it an empty text only if no other does."""
    empty = None
    for path in paths:
        value = at(row, path)
        if value is not None and value != "":
            return value
        empty = value if empty is None else empty
    return empty


def names_in(text: str) -> frozenset[str]:
    """A set of names, written as one text.

    >>> sorted(names_in("id type"))
    ['id', 'type']
    """
    return frozenset(text.split())


def require_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name in a table that nothing reads: ``ValueError``, when the table is loaded.

    >>> require_known("Step: does", ["sing"], ["say", "call"])
    Traceback (most recent call last):
    ...
    ValueError: Step: does must be one of say, call; received 'sing'
    """
    for name in names:
        if name not in known:
            listed = sorted(known) if isinstance(known, (set, frozenset)) else known
            raise ValueError(f"{what} must be one of {', '.join(listed)}; received {name!r}")
