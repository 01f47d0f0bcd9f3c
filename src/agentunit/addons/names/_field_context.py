"""Fields of data that tell people from things: ``customer_name`` from ``product_name``, a price beside a ``name``."""

from __future__ import annotations

import re

from agentunit.privacy.detection.gazetteer import word_set

THINGS_WITH_NAMES = word_set(
    """
    product products item items article file files class table column field function method module package model brand
    category department project repo repository branch host server service app application plan tier theme font color
    colour city country state region street company organization organisation vendor manufacturer supplier song album
    movie film book game template event campaign store shop hotel restaurant venue airline airport route station
    species plant recipe dish display tool agent event_type type status level tag tags label icon image variable param
    parameter attribute property schema database cluster node container pod namespace job task queue topic stream bucket
    group role event operator library framework language locale currency timezone collection series make material style
    flavor flavour variant sku menu course subject hobby team pet drug medication medicine ship vessel sprint epic
    milestone carrier destination origin genre board view zone room deck cabin
    """
)
"""What stands before "name", or is a field of data by itself, where it is a thing's: ``product_name``, ``"city":``."""
_PEOPLE = word_set(
    """
    customer user client person contact patient employee member holder owner passenger guest recipient sender author
    assignee manager driver student applicant tenant buyer seller reporter reviewer maintainer contributor attendee
    traveler traveller cardholder beneficiary payer payee signer editor creator speaker
    """
)
# The key of the value that a place stands in, in JSON and in JSON within JSON; and keys elsewhere in the object.
_IN_VALUE = re.compile(r"""["'](?P<key>[A-Za-z][\w .-]{0,39})\\{0,3}["']\s{0,3}:\s{0,3}\\{0,3}["'][^"'{}\n]{0,40}\Z""")
_KEY = re.compile(r"""["'](?P<key>[A-Za-z][\w.-]{0,39})\\{0,3}["']\s{0,3}:""")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_KEY_REACH, _REACH = 100, 400
_SAYS_PERSON = word_set(
    """
    email mail phone mobile telephone dob birth birthday birthdate age gender sex ssn passport firstname lastname first
    last surname given family salary job occupation employer nationality spouse relationship diagnosis address street
    zip postcode username login twitter avatar bio role position
    """
)
_SAYS_THING = word_set(
    """
    price prices cost sku brand category color colour stock quantity qty unit currency version license dependencies
    description parameters size weight dimensions rating manufacturer vendor genre artist album calories ingredients
    endpoint port image replicas schema datatype nullable latitude longitude population elevation capacity duration
    url homepage repository constant icon permissions arguments inputschema
    """
)


def is_thing_field(text: str, start: int) -> bool:
    """Whether a place in a text of data stands in the field of a thing, or in the name of something that has a price.

    >>> is_thing_field('{"product_name": "Victoria Sponge"}', 18), is_thing_field('{"customerName": "Victoria"}', 18)
    (True, False)
    >>> is_thing_field('{"name": "Aurora", "price": 9}', 10), is_thing_field('{"name": "Aurora", "age": 9}', 10)
    (True, False)
    """
    before = max(0, start - _KEY_REACH)
    if text.find('"', before, start) < 0 and text.find("'", before, start) < 0:
        return False
    found = _IN_VALUE.search(text, before, start)
    if found is None:
        return False
    words = [word.lower() for word in _WORDS.findall(found["key"])]
    if not words or not _PEOPLE.isdisjoint(words):
        return False
    if words[-1] in ("name", "title", "label") and len(words) > 1:
        return words[-2] in THINGS_WITH_NAMES
    if words[-1] in THINGS_WITH_NAMES:
        return True
    return words[-1] in ("name", "title", "label") and _is_thing(text, start)


def _is_thing(text: str, start: int) -> bool:
    """Whether the object around a place has fields that things have and people have not."""
    opening = text.rfind("{", max(0, start - _REACH), start)
    closing = text.find("}", start, start + _REACH)
    if opening < 0:
        return False
    keys: set[str] = set()
    for found in _KEY.finditer(text, opening, closing if closing >= 0 else start + _REACH):
        keys.update(word.lower() for word in _WORDS.findall(found["key"]))
    return not keys.isdisjoint(_SAYS_THING) and keys.isdisjoint(_SAYS_PERSON)
