"""The sensitive values that a case and its tool results hold, and whether one stands in a text, however written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from html import unescape
from typing import Any
from unicodedata import combining, normalize
from urllib.parse import unquote

from agentunit.core.results import json_within
from agentunit.metrics.inputs import Item
from agentunit.privacy._passages import leaves, tool_name
from agentunit.privacy.detection.readable import INVISIBLE

_WORD = re.compile(r"[^\W_]+")
_NO_WORD = re.compile(r"[\W_]+")
_ESCAPE = re.compile(r'\\(?:u00a0|[nrtbf"/\\])')
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_STREET_LINE = re.compile(r"(?=.*\d)(?=.*[^\W\d_])")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# Below it a value stands in half of all texts by chance: it counts only beside the name of its field.
_SHORTEST_ALONE = 3
_SHORTEST_RUN_TOGETHER = 6
_SHORTEST_NUMBER = 5
_FIELD_NAME_REACH = 40
_NOTHING_SAID = frozenset({"none", "null", "unknown", "redacted", "na", "hidden", "masked", "undefined", "nan"})


def plain(text: str) -> str:
    """A text without what writers vary: case, accents, width, invisible marks, escapes of URLs, HTML and JSON."""
    if "%" in text:
        text = unquote(text)
    if "&" in text:
        text = unescape(text)
    if "\\" in text:
        text = _ESCAPE.sub(" ", text)
    text = INVISIBLE.sub("", text)
    if text.isascii():
        return text.lower()
    text = normalize("NFKD", text).casefold()
    return "".join(letter for letter in text if not combining(letter))


class SearchedText:
    """A text made ready for looking up many values."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def plain(self) -> str:
        """The text without what writers vary."""
        return plain(self._text)

    @cached_property
    def squeezed(self) -> str:
        """Its letters and digits alone."""
        return _NO_WORD.sub("", self.plain)


class KnownValue:
    """A value of a field, which is looked for in texts. ``parts`` are those of an address; one part is the rule.

    ``source`` says where it was held: the name of a tool, or ``case.metadata``.

    It matches on boundaries: 1 does not stand in 21. Of a value in several parts, half of them (or one that is a
    street line) gives it away.

    >>> phone = KnownValue("phone", "+1 555 010 9944")
    >>> [phone.stands_in(SearchedText(text)) for text in ("call (555) 010-9944", "tel%3A5550109944", "0155501099440")]
    [True, True, False]
    """

    def __init__(self, field: str, *parts: str, source: str = "") -> None:
        self.field = field
        self.source = source
        self._parts = parts
        self._patterns = [each for each in (_Pattern(part, field) for part in parts) if each.usable]
        self.identity = tuple(pattern.squeezed for pattern in self._patterns)

    @property
    def usable(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._patterns)

    def stands_in(self, text: SearchedText) -> bool:
        """Whether the value, or enough of its parts, stands in the text."""
        found = [pattern for pattern in self._patterns if pattern.stands_in(text)]
        if len(self._patterns) < 2:
            return bool(found)
        return 2 * len(found) >= len(self._patterns) or any(pattern.street_line for pattern in found)

    @property
    def text(self) -> str:
        """The value as it was written."""
        return ", ".join(self._parts)

    def is_verbatim_in(self, text: str) -> bool:
        """Whether it stands in the text as it was written, and not only in another spelling."""
        return any(part.strip() in text for part in self._parts if part.strip())


class _Pattern:
    def __init__(self, value: str, field: str) -> None:
        written = plain(value.strip())
        self._words = _WORD.findall(written)
        self.squeezed = "".join(self._words)
        self.usable = bool(self.squeezed) and self.squeezed not in _NOTHING_SAID
        self.street_line = len(self.squeezed) >= _SHORTEST_RUN_TOGETHER and bool(_STREET_LINE.match(written))
        self._written = written
        self._field_words = [] if len(self.squeezed) >= _SHORTEST_ALONE else field_words(field)
        digits = sum(letter.isdigit() for letter in self.squeezed)
        self._numeric = len(self.squeezed) >= _SHORTEST_NUMBER and 2 * digits >= len(self.squeezed)
        self._hint = self._words[0] if self._email else self._national[-1] if self._numeric else self.squeezed

    @property
    def _email(self) -> bool:
        return bool(_EMAIL.fullmatch(self._written))

    @cached_property
    def _national(self) -> list[str]:
        """The spellings of a number, the longest first: a telephone number also without its country's code."""
        spellings = [self.squeezed]
        if self.squeezed.isdigit() and self._written.startswith(("+", "00")):
            bare = self.squeezed.removeprefix("00")
            codes = (1,) if bare.startswith(("1", "7")) else (2, 3)
            spellings += [bare, *(bare[code:] for code in codes if len(bare) - code >= 8)]
        return spellings

    def stands_in(self, text: SearchedText) -> bool:
        if self._hint not in text.squeezed:
            return False
        return any(self._counts(text.plain, found) for found in self._expression.finditer(text.plain))

    def _counts(self, text: str, found: re.Match[str]) -> bool:
        if not self._field_words:
            return True
        before = _WORD.findall(text[max(0, found.start() - _FIELD_NAME_REACH) : found.start()])[-4:]
        return not set(before).isdisjoint(self._field_words)

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        if self._email:
            body = r"[\W_]{0,3}(?:at|dot)?[\W_]{0,3}".join(map(re.escape, self._words))
        elif self._numeric:
            spelled = (r"[\s.\-()/_]{0,3}".join(map(re.escape, spelling)) for spelling in self._national)
            body = f"(?:{'|'.join(f'0?{each}' if each != self.squeezed else each for each in spelled)})"
        else:
            least = 0 if len(self.squeezed) >= _SHORTEST_RUN_TOGETHER else 1
            body = rf"[\W_]{{{least},3}}".join(map(re.escape, self._words))
        number = self.squeezed.isdigit()
        # Scripts without spaces have no boundaries to stand on.
        left = "" if _unspaced(self.squeezed[0]) else r"(?<![^\W_])" + (r"(?<!\d[.,])" if number else "")
        right = "" if _unspaced(self.squeezed[-1]) else r"(?![^\W_])" + (r"(?![.,]\d)" if number else "")
        return re.compile(left + body + right)


def _unspaced(letter: str) -> bool:
    return letter.isalpha() and ("\u0e00" <= letter <= "\u0eff" or letter >= "\u2e80")


def field_words(name: str) -> list[str]:
    """The words of a field's name, however it is written.

    >>> field_words("customerEmail"), field_words("Phone-Number"), field_words("user_id")
    (['customer', 'email'], ['phone', 'number'], ['user', 'id'])
    """
    return [word.lower() for word in _WORD.findall(_CAMEL.sub("_", name))]


# Answer keys, and rules about the data, are not data that an agent could leak.
_NOT_DATA = frozenset((
    "consent", "necessary", "sensitive", "expected_tool_calls", "expected_state", "check", "contains", "regex",
    "json_schema",
))  # fmt: skip
OF_THE_CASE = "case.metadata"
"""The source of a value that the case itself holds."""

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
        self._words = {name: _key_words(name) for name in names}

    def matching(self, key: Any) -> str | None:
        """Which of the names a key answers to: the one whose words it ends with."""
        if not isinstance(key, str) or len(key) > 80:
            return None
        words = _key_words(key)
        if words[-1:] == ("address",) and words[-2:-1] and words[-2] in _OTHER_ADDRESSES:
            words = ("_".join(words[-2:]),)
        return next((name for name, own in self._words.items() if own and words[-len(own) :] == own), None)


# Records of one source repeat their fields.
@lru_cache(maxsize=4_096)
def _key_words(name: str) -> tuple[str, ...]:
    words = field_words(name.replace("e-mail", "email").replace("E-Mail", "email").replace("eMail", "email"))
    superfluous = len(words) > 1 and (words[-1] in _NUMBER_WORDS or words[-2:] == ["email", "address"])
    return tuple(words[:-1] if superfluous else words)


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
    metadata = {key: value for key, value in item.case_metadata.items() if key not in _NOT_DATA}
    yield from _named_values(metadata, wanted_of_the_case, OF_THE_CASE)
    for call in item.tool_calls:
        result, source = json_within(call.get("result")), tool_name(call)
        if isinstance(result, str):
            for key, text in _NAMED_LINE.findall(result):
                if name := wanted.matching(key):
                    yield _value(name, text, source)
        else:
            yield from _named_values(result, wanted, source)


def data_of(item: Item) -> Iterator[tuple[str, Any]]:
    """What a run holds, with its source: the case's metadata without answer keys, and the result of each tool call."""
    metadata = {key: value for key, value in item.case_metadata.items() if key not in _NOT_DATA}
    yield OF_THE_CASE, metadata
    for call in item.tool_calls:
        yield tool_name(call), json_within(call.get("result"))


def _named_values(data: Any, wanted: FieldNames, source: str) -> Iterator[KnownValue]:
    pending: list[tuple[str, Any]] = [("", data)]
    while pending:
        parent, each = pending.pop()
        if isinstance(each, Mapping):
            for key, value in each.items():
                name = wanted.matching(key)
                if name is None or not _of_a_person(key, parent, each):
                    pending.append((str(key), value))
                else:
                    yield from values_of(name, value, source)
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


def values_of(field: str, value: Any, source: str = "") -> Iterator[KnownValue]:
    """The values of a field: a list holds several, an object's texts are the parts of one."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, (list, tuple)):
            pending += reversed(each)
            continue
        texts = [text for _, _, text in leaves(each)]
        if isinstance(each, Mapping):
            yield KnownValue(field, *texts, source=source)
        elif texts:
            yield _value(field, texts[0], source)


def _value(field: str, text: str, source: str) -> KnownValue:
    of_an_address = field_words(field)[-1:] and field_words(field)[-1] in _ADDRESS_WORDS
    return KnownValue(field, *(text.split(",") if of_an_address else [text]), source=source)
