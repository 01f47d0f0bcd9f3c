"""Fields that hold what somebody said: their texts may quote a record, and are masked before they are shown.

A field says so in its type: ``why: Said``. Nothing else needs to know which fields those are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

_MARK = "may quote a record"
Said = Annotated[str, _MARK]
"""A text that may quote a record."""

_Value = TypeVar("_Value")


def with_texts(value: _Value, change: Callable[[list[str]], list[str]]) -> _Value:
    """A value of dataclasses or structs with all its ``Said`` texts changed at once, in their order.

    >>> from agentunit.core.results import InputError
    >>> with_texts([InputError("a.jsonl", 3, "no such city")], lambda texts: [text.upper() for text in texts])[0].reason
    'NO SUCH CITY'
    """
    texts = list(_texts(value, is_said=False))
    if not texts:
        return value
    changed = iter(change(texts))
    return _rebuilt(value, changed, is_said=False)  # type: ignore[no-any-return]


def _texts(value: Any, *, is_said: bool) -> Iterator[str]:
    """The texts of a value that are said, in the order in which ``_rebuilt`` takes them."""
    if isinstance(value, str):
        if is_said:
            yield value
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _texts(entry, is_said=is_said)
    else:
        for name, field_is_said in _fields(value.__class__):
            yield from _texts(getattr(value, name), is_said=field_is_said)


def _rebuilt(value: Any, texts: Iterator[str], *, is_said: bool) -> Any:
    """The value with the next of these texts in place of each that is said."""
    if isinstance(value, str):
        return next(texts) if is_said else value
    if isinstance(value, (list, tuple)):
        entries = [_rebuilt(entry, texts, is_said=is_said) for entry in value]
        return entries if isinstance(value, list) else tuple(entries)
    fields = _fields(value.__class__)
    if not fields:
        return value
    changed = {name: _rebuilt(getattr(value, name), texts, is_said=is_said) for name, is_said in fields}
    if isinstance(value, Struct):
        return msgspec.structs.replace(value, **changed)
    return dataclasses.replace(value, **changed)


@cache
def _fields(kind: Any) -> tuple[tuple[str, bool], ...]:
    """The fields of a class in which something is said, by name; whether it is they that are, or what they hold."""
    if not (dataclasses.is_dataclass(kind) or issubclass(kind, Struct)):
        return ()
    names = kind.__struct_fields__ if issubclass(kind, Struct) else [field.name for field in dataclasses.fields(kind)]
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for name in names:
        parts = list(_parts(hints[name]))
        if any(part is Said for part in parts):
            found.append((name, True))
        elif any(isinstance(part, type) and part is not kind and _fields(part) for part in parts):
            found.append((name, False))
    return tuple(found)


def _parts(hint: Any) -> Iterator[Any]:
    """A type and all types that it is made of."""
    yield hint
    if get_origin(hint) is not Annotated:
        for part in get_args(hint):
            yield from _parts(part)
