"""The sensitive values that a case and its tool results hold, by the names they stand under."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentunit.metrics.inputs import Item
from agentunit.privacy.places import as_data, leaves
from agentunit.privacy.values import KnownValue, field_words

# What a case says about its right answer, or about its data, is not data that an agent could leak.
_NO_DATA = frozenset(
    {
        "consent",
        "necessary",
        "sensitive",
        "expected_tool_calls",
        "expected_state",
        "check",
        "contains",
        "regex",
        "json_schema",
    }
)
_ADDRESS_WORDS = frozenset({"address", "location"})
_OTHER_ADDRESSES = frozenset({"ip", "mac", "web", "url", "wallet"})
_OWNERS = """
first last full given family middle maiden user customer client person contact patient employee member holder owner
passenger guest recipient sender author profile account data
"""
_PERSON_WORDS = frozenset(_OWNERS.split())
_PERSONAL_WORDS = frozenset({"email", "phone", "birth", "dob", "ssn", "address", "surname"})
_NUMBER_WORDS = frozenset({"number", "no", "num", "nr"})
_NAMED_LINE = re.compile(
    r"^[\s\-*•>\"']*([A-Za-z][\w \-]{0,39}?)[\"'*]*\s*[:=]\s*[\"']?(\S.*?)[\"',;]*\s*$", re.MULTILINE
)


class FieldNames:
    """Names of fields that are looked for; ``customer_email``, ``eMail`` and ``email`` all answer to ``email``.

    >>> names = FieldNames(["email", "phone", "user_id"])
    >>> [names.matching(each) for each in ("customerEmail", "phone_number", "userId", "email_count")]
    ['email', 'phone', 'user_id', None]
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._words = {name: _told_apart(name) for name in names}

    def matching(self, key: Any) -> str | None:
        """Which of the names a key answers to: the one whose words it ends with."""
        if not isinstance(key, str) or len(key) > 80:
            return None
        words = _told_apart(key)
        if words[-1:] == ["address"] and words[-2:-1] and words[-2] in _OTHER_ADDRESSES:
            words = ["_".join(words[-2:])]
        return next((name for name, own in self._words.items() if own and words[-len(own) :] == own), None)


def _told_apart(name: str) -> list[str]:
    words = field_words(name.replace("e-mail", "email").replace("E-Mail", "email").replace("eMail", "email"))
    superfluous = len(words) > 1 and (words[-1] in _NUMBER_WORDS or words[-2:] == ["email", "address"])
    return words[:-1] if superfluous else words


def held_values(item: Item, names: Sequence[str], *, of_the_case: Sequence[str] = ()) -> list[KnownValue]:
    """The values of these fields in the case's metadata and in the results of tools, each once.

    Fields in ``of_the_case`` are looked for in the metadata only.
    """
    found: dict[tuple[Any, ...], KnownValue] = {}
    for value in _held(item, FieldNames(names), FieldNames((*names, *of_the_case))):
        if value.usable:
            found.setdefault((value.field, value.identity), value)
    return list(found.values())


def _held(item: Item, wanted: FieldNames, wanted_of_the_case: FieldNames) -> Iterator[KnownValue]:
    metadata = {key: value for key, value in item.case_metadata.items() if key not in _NO_DATA}
    yield from _named_values(metadata, wanted_of_the_case)
    for call in item.tool_calls:
        result = as_data(call.get("result"))
        if isinstance(result, str):
            for key, text in _NAMED_LINE.findall(result):
                if name := wanted.matching(key):
                    yield _value(name, text)
        else:
            yield from _named_values(result, wanted)


def _named_values(data: Any, wanted: FieldNames) -> Iterator[KnownValue]:
    pending: list[tuple[str, Any]] = [("", data)]
    while pending:
        parent, each = pending.pop()
        if isinstance(each, Mapping):
            for key, value in each.items():
                name = wanted.matching(key)
                if name is None or not _of_a_person(key, parent, each):
                    pending.append((str(key), value))
                else:
                    yield from values_of(name, value)
        elif isinstance(each, (list, tuple)):
            pending += [(parent, child) for child in each]


def _of_a_person(key: str, parent: str, siblings: Mapping[Any, Any]) -> bool:
    """Everything has a name: one is a person's when its own name, its owner's, or what stands beside it says so."""
    words = field_words(key)
    if words[-1:] != ["name"]:
        return True
    if len(words) > 1:
        return words[-2] in _PERSON_WORDS
    owner = {word.removesuffix("s") for word in field_words(parent)}
    beside = {word for sibling in siblings for word in field_words(str(sibling))}
    return parent == "" or bool(owner & _PERSON_WORDS) or bool(beside & _PERSONAL_WORDS)


def values_of(field: str, value: Any) -> Iterator[KnownValue]:
    """The values of a field: a list holds several, an object's texts are the parts of one."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, (list, tuple)):
            pending += reversed(each)
            continue
        texts = [text for _, _, text in leaves(each)]
        if isinstance(each, Mapping):
            yield KnownValue(field, *texts)
        elif texts:
            yield _value(field, texts[0])


def _value(field: str, text: str) -> KnownValue:
    of_an_address = field_words(field)[-1:] and field_words(field)[-1] in _ADDRESS_WORDS
    return KnownValue(field, *(text.split(",") if of_an_address else [text]))
