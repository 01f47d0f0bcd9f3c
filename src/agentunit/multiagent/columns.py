"""Reading what a list of entries holds, field by field; what cannot be used is named with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import NODEFAULT, Struct, structs

from agentunit.core.time import epoch_seconds
from agentunit.formulas.coordination import UNSTATED_MESSAGE_TYPE
from agentunit.metrics.inputs import InputProblem, number_at

_StructT = TypeVar("_StructT", bound=Struct)
_ReadT = TypeVar("_ReadT")
# Values of these types are hashable, and equal only to their own kind: 1 and True are not, nor enumerations and texts.
_DISTINGUISHABLE = frozenset((str, bool, type(None)))
# Far below the largest amount that is accepted, so that what is above is read with care and named if it is wrong.
_ORDINARY_S = 1e9


def entries_of(values: Any, kind: type[_StructT], place: str) -> Sequence[_StructT]:
    """The entries of a list as the data model's own type; fields that it does not know are nobody's concern here."""
    if values is None:
        return []
    if not isinstance(values, (list, tuple)):
        raise InputProblem(f"{place} must be a list; received {values!r:.80}")
    if set(map(type, values)) <= {kind}:
        return values
    return [
        value if value.__class__ is kind else entry_of(value, kind, f"{place}[{number}]")
        for number, value in enumerate(values)
    ]


def entry_of(value: Any, kind: type[_StructT], place: str) -> _StructT:
    """One entry of the data model's own type, made of a dict or of an object with the same fields."""
    names, needed = _fields_of(kind)
    if isinstance(value, Mapping):
        known = {name: _plain(each) for name, each in value.items() if name in names}
    else:
        known = {name: _plain(getattr(value, name)) for name in names if hasattr(value, name)}
    for name in needed:
        if name not in known:
            raise InputProblem(f"{place} must have {name!r}; received {value!r:.80}")
    try:
        return kind(**known)
    except (TypeError, ValueError) as error:
        raise InputProblem(f"{place}: {error!s:.120}") from None


@lru_cache(maxsize=8)
def _fields_of(kind: type[Struct]) -> tuple[frozenset[str], list[str]]:
    """The fields of a type, and those it cannot be made without."""
    all_fields = structs.fields(kind)
    needed = [each.name for each in all_fields if each.default is NODEFAULT and each.default_factory is NODEFAULT]
    return frozenset(each.name for each in all_fields), needed


def column(entries: Sequence[Any], place: str, name: str, read: Callable[[str, Any], _ReadT]) -> list[_ReadT]:
    """One field of all entries; what many entries share is read once."""
    values = list(map(attrgetter(name), entries))
    if set(map(type, values)) <= _DISTINGUISHABLE:
        first_at = dict(zip(reversed(values), range(len(values) - 1, -1, -1), strict=True))
        meaning = {value: read(f"{place}[{number}].{name}", value) for value, number in first_at.items()}
        return list(map(meaning.__getitem__, values))
    return [read(f"{place}[{number}].{name}", value) for number, value in enumerate(values)]


def column_of_seconds(entries: Sequence[Any], place: str, name: str) -> list[float | None]:
    """One field of all entries that says how long something took."""
    values = list(map(attrgetter(name), entries))
    if set(map(type, values)) <= {float, type(None)}:
        known = [value for value in values if value is not None]
        if all(map((0.0).__le__, known)) and all(map(_ORDINARY_S.__ge__, known)):
            return values
    return [seconds_at(f"{place}[{number}].{name}", value) for number, value in enumerate(values)]


def column_of_moments(entries: Sequence[Any], place: str, name: str) -> list[float | None]:
    """One field of all entries that says when something happened."""
    values = list(map(attrgetter(name), entries))
    if set(map(type, values)) <= {float, type(None)} and all(
        map(isfinite, [value for value in values if value is not None])
    ):
        return values
    return [moment_at(f"{place}[{number}].{name}", value) for number, value in enumerate(values)]


def _plain(value: Any) -> Any:
    """What a member of an enumeration stands for: its value where that is a text, else its name."""
    if not isinstance(value, Enum):
        return value
    return value.value if isinstance(value.value, str) else value.name


def name_at(place: str, value: Any) -> str:
    """The name of an agent; a number names one too."""
    value = _plain(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = f"{value:d}" if abs(value) < 10**100 else hex(value)
    if not isinstance(value, str):
        raise InputProblem(f"{place} must be the name of an agent; received {value!r:.80}")
    return value


def names_at(place: str, value: Any) -> tuple[str, ...]:
    """The names of no, one or many agents, each once."""
    if value is None or value == "":
        return ()
    if isinstance(value, (list, tuple, set, frozenset)):
        return tuple(dict.fromkeys(name_at(place, each) for each in value))
    return (name_at(place, value),)


def word_at(place: str, value: Any) -> str:
    """A word, or what an enumeration stands for; small and capital letters do not matter."""
    value = _plain(value)
    if not isinstance(value, str):
        raise InputProblem(f"{place} must be a text or an enumeration; received {value!r:.80}")
    return value.strip().lower()


def message_type_at(place: str, value: Any) -> str:
    """The type of a message; one that says nothing is of the type that says nothing."""
    return UNSTATED_MESSAGE_TYPE if value is None else word_at(place, value)


def words_at(place: str, value: Any) -> frozenset[str] | None:
    """Some words, or one; ``None`` says nothing."""
    if value is None:
        return None
    words = [value] if isinstance(value, (str, Enum)) else value
    if not isinstance(words, (list, tuple, set, frozenset)):
        raise InputProblem(f"{place} must be a list of texts; received {value!r:.80}")
    return frozenset(word_at(place, each) for each in words)


def moment_at(place: str, value: Any) -> float | None:
    """A point in time, in seconds; ``None`` is unknown."""
    try:
        return None if value is None else epoch_seconds(value)
    except ValueError as error:
        raise InputProblem(f"{place}: {error}") from None


def seconds_at(place: str, value: Any) -> float | None:
    """How long something took, in seconds; ``None`` is unknown."""
    return number_at(place, value.total_seconds() if isinstance(value, timedelta) else value)


def verdict_at(place: str, value: Any) -> bool | None:
    """Yes, no or unknown."""
    if value is None or isinstance(value, bool):
        return value
    raise InputProblem(f"{place} must be true, false or unknown (None); received {value!r:.80}")
