"""Fields of cases that slices and clusters are made by: ``metadata.category``, ``metadata.a.b``, ``tag``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentunit.core.results import encode_json

_LONGEST_NAME = 80
_TAG = "tag"


def check_field(field: str) -> str:
    """A field that cases can be told apart by; another is a ValueError.

    >>> check_field("metadata.customer.tier"), check_field("tag")
    ('metadata.customer.tier', 'tag')
    """
    prefix, _, path = field.partition(".")
    if field != _TAG and (prefix != "metadata" or not all(part.strip() for part in path.split("."))):
        raise ValueError(f"a field of cases must be metadata.NAME, metadata.NAME.NAME or tag; received {field!r}")
    return field


def field_values(metadata: Any, field: str) -> tuple[str, ...]:
    """The values that a case has in a field: none where it lacks it, several where it is a list.

    ``tag`` stands for ``metadata.tags``, or ``metadata.tag`` where there are none.

    >>> field_values({"customer": {"tier": 3}}, "metadata.customer.tier"), field_values({"tags": ["a", "b"]}, "tag")
    (('3',), ('a', 'b'))
    >>> field_values({"user.id": "u1"}, "metadata.user.id"), field_values({}, "metadata.category")
    (('u1',), ())
    """
    if field == _TAG:
        return field_values(metadata, "metadata.tags") or field_values(metadata, "metadata.tag")
    found = _at(metadata, field.partition(".")[2])
    values = found if isinstance(found, (list, tuple)) else [found]
    return tuple(dict.fromkeys(_as_text(value) for value in values if value is not None and value != ""))


def other_fields(metadata: Any) -> list[str]:
    """The fields that a case has, which is of interest where it lacks the one that is asked for.

    >>> other_fields({"tier": "gold", "customer": {"id": 3}})
    ['metadata.tier', 'metadata.customer']
    """
    return [f"metadata.{name}" for name in metadata] if isinstance(metadata, Mapping) else []


def _at(data: Any, path: str) -> Any:
    if not isinstance(data, Mapping):
        return None
    if path in data:
        return data[path]
    # A key may itself hold a dot, as attributes of spans do.
    for cut in (place for place, sign in enumerate(path) if sign == "."):
        if path[:cut] in data and (found := _at(data[path[:cut]], path[cut + 1 :])) is not None:
            return found
    return None


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else encode_json(value).decode("utf-8", "replace")
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def clusters_of(metadata: Iterable[Any], field: str) -> list[int]:
    """The number of each case's cluster: those with one value of the field share it; one without a value has its own.

    >>> clusters_of([{"customer": "a"}, {"customer": "b"}, {"customer": "a"}, {}, {}], "metadata.customer")
    [0, 1, 0, 2, 3]
    """
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(field_values(each, field) or place, len(numbers)) for place, each in enumerate(metadata)]
