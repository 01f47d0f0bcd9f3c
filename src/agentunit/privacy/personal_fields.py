"""Fields whose text is personal whatever it looks like: no pattern knows "Mia" for a name, but ``first_name`` does."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

_FIELDS = {
    "name": """
        first_name last_name middle_name full_name firstname lastname fullname given_name family_name surname
        maiden_name customer_name passenger_name cardholder_name cardholder card_holder account_holder
        """,
    "address": """
        street street_address address1 address2 address_line1 address_line2 address_line_1 address_line_2 street1
        street2 zip zip_code zipcode postal_code postalcode postcode
        """,
    "date_of_birth": "dob date_of_birth birth_date birthdate birthday",
    "password": "password passwd",
    "credit_card": """
        card_number credit_card_number last_four last4 last_4 card_last_four card_last4 card_last_4
        account_number_last_4 account_last_4 cvv cvc cvv2 security_code
        """,
    "account": "customer_id member_id account_number account_no account_id payment_method_id payment_id",
}
FIELD_TYPES = {field: type for type, fields in _FIELDS.items() for field in fields.split()}
"""The type of what stands in a field, by the field's name in lower case."""

_STREETS = frozenset(field for field in _FIELDS["address"].split() if field[0] in "as")
_CARDS = frozenset(field for field in _FIELDS["credit_card"].split() if field != "security_code")
_ABOUT_PEOPLE = _STREETS | frozenset(
    ("email", "email_address", "phone", "phone_number", "mobile", "dob", "date_of_birth", "birth_date", "ssn")
)
_BESIDE = {
    **dict.fromkeys(("city", "town", "locality"), (_STREETS | frozenset(("zip", "zip_code", "postal_code")), "street")),
    **dict.fromkeys(("expiration_date", "expiry_date", "expiration", "expiry", "exp_date"), (_CARDS, "card_number")),
    "name": (_ABOUT_PEOPLE, "full_name"),
}
"""Fields that are personal beside one of others, in the same object, and the field that they then count as."""

_PARTS_OF_NAMES = {
    **dict.fromkeys(("first_name", "firstname", "given_name"), "first"),
    **dict.fromkeys(("last_name", "lastname", "family_name", "surname"), "last"),
}
_KNOWN = "|".join(sorted({*FIELD_TYPES, *_BESIDE, *_ABOUT_PEOPLE}, key=len, reverse=True))
# The same fields in a JSON text, as tools hand them over, and in one within another, where quotes are escaped. A brace
# may end an object, so what stands between two of them belongs together.
_QUOTED_FIELD = re.compile(
    rf"""["'](?P<field>{_KNOWN})(?P<close>\\{{0,3}}["'])\s*:\s*"""
    r"""(?:(?P<open>\\{0,3}["'])(?P<value>(?:\\[^\n]|[^\\\n])+?)(?P=open))?|(?P<brace>[{}])""",
    re.IGNORECASE,
)


class Leaf(NamedTuple):
    """A text of a record and the name of the field that it stands in."""

    field: str
    text: str


class KnownField(NamedTuple):
    """A field of ``FIELD_TYPES`` and where its value stands in a text."""

    field: str
    start: int
    end: int


def counts_as(field: str, beside: Collection[str]) -> str:
    """The field that one counts as beside the others of its object, all in lower case.

    >>> counts_as("city", {"address1", "city"}), counts_as("city", {"city", "weather"}), counts_as("zip", {"zip"})
    ('street', 'city', 'zip')
    """
    others, known_as = _BESIDE.get(field, (frozenset(), field))
    return known_as if not others.isdisjoint(beside) else field


def known_fields(leaf: Leaf) -> Iterator[KnownField]:
    """The fields of ``FIELD_TYPES`` that a text stands in or, being JSON, holds; with the place of the value.

    >>> list(known_fields(Leaf("surname", "Li")))
    [KnownField(field='surname', start=0, end=2)]
    >>> text = '{"n": 3, "zip": "28236", "city": "Ely"}'
    >>> [text[start:end] for _, start, end in known_fields(Leaf("content", text))]
    ['28236', 'Ely']
    """
    field = leaf.field.lower()
    if field in FIELD_TYPES and leaf.text.strip():
        yield KnownField(field, 0, len(leaf.text))
    held: list[KnownField] = []
    for found in _QUOTED_FIELD.finditer(leaf.text) if '"' in leaf.text or "'" in leaf.text else ():
        if found["brace"]:
            yield from _personal(held)
            held = []
        else:
            start, end = found.span("value")
            held.append(KnownField(found["field"].lower(), start, end if found["value"] is not None else start))
    yield from _personal(held)


def full_names(fields: Iterable[tuple[Leaf, Iterable[KnownField]]]) -> Iterator[str]:
    """The names of people whose first name and surname stand in fields of their own, one after the other.

    >>> leaves = [Leaf("last_name", "Li"), Leaf("n", "3"), Leaf("first_name", "Mia")]
    >>> list(full_names((leaf, known_fields(leaf)) for leaf in leaves))
    ['Mia Li']
    """
    parts: dict[str, str] = {}
    for leaf, known in fields:
        for field, start, end in known:
            part = _PARTS_OF_NAMES.get(field)
            if part is not None:
                parts[part] = leaf.text[start:end]
            if len(parts) == 2:
                yield f"{parts['first']} {parts['last']}"
                parts = {}


def _personal(held: list[KnownField]) -> Iterator[KnownField]:
    """Those of an object's fields that are personal by themselves or beside the others."""
    beside = {each.field for each in held}
    for each in held:
        field = counts_as(each.field, beside)
        if field in FIELD_TYPES and each.start < each.end:
            yield each._replace(field=field)
