"""Fields whose text is personal whatever it looks like: no pattern knows "Mia" for a name, but ``first_name`` does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_FIELDS = {
    "name": "first_name last_name full_name firstname lastname fullname given_name family_name surname",
    "address": "street street_address address1 address2 address_line1 address_line2",
    "date_of_birth": "dob date_of_birth birth_date birthdate birthday",
    "password": "password passwd",
}
FIELD_TYPES = {field: type for type, fields in _FIELDS.items() for field in fields.split()}
"""The type of what stands in a field, by the field's name in lower case."""

_PARTS_OF_NAMES = {
    **dict.fromkeys(("first_name", "firstname", "given_name"), "first"),
    **dict.fromkeys(("last_name", "lastname", "family_name", "surname"), "last"),
}
# The same fields in a JSON text, as tools hand them over; the value ends where the quote that opened it returns.
_QUOTED_FIELD = re.compile(
    rf"""(["'])(?P<field>{"|".join(FIELD_TYPES)})\1\s*:\s*(["'])(?P<value>(?:(?!\3|\\|\n).)+)\3""", re.IGNORECASE
)


class Leaf(NamedTuple):
    """A text of a record and the name of the field that it stands in."""

    field: str
    text: str


def known_fields(leaf: Leaf) -> Iterator[tuple[str, int, int]]:
    """The fields of ``FIELD_TYPES`` that a text stands in or, being JSON, holds; with the place of the value.

    >>> list(known_fields(Leaf("surname", "Li"))), list(known_fields(Leaf("content", '{"DOB": "1990-05-13"}')))
    ([('surname', 0, 2)], [('dob', 9, 19)])
    """
    field = leaf.field.lower()
    if field in FIELD_TYPES and leaf.text.strip():
        yield field, 0, len(leaf.text)
    for found in _QUOTED_FIELD.finditer(leaf.text):
        if found["value"].strip():
            yield found["field"].lower(), *found.span("value")


def full_names(leaves: Iterable[Leaf]) -> Iterator[str]:
    """The names of people whose first name and surname stand in fields of their own, one after the other.

    >>> list(full_names([Leaf("last_name", "Li"), Leaf("n", "3"), Leaf("first_name", "Mia")]))
    ['Mia Li']
    """
    parts: dict[str, str] = {}
    for leaf in leaves:
        for field, start, end in known_fields(leaf):
            part = _PARTS_OF_NAMES.get(field)
            if part is not None:
                parts[part] = leaf.text[start:end]
            if len(parts) == 2:
                yield f"{parts['first']} {parts['last']}"
                parts = {}
