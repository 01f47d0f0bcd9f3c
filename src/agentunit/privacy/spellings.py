"""Known values in texts, however they are spelled: with other separators, in other letters, escaped or encoded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import compress, pairwise, starmap
from typing import NamedTuple
from unicodedata import category, combining, digit, normalize

from agentunit.formulas.checksums import calendar_date
from agentunit.privacy._encodings import (
    ESCAPES,
    INLINE_MARKUP,
    MARKUP,
    QUOTED_PRINTABLE,
    Map,
    Reading,
    encoded_texts,
    texts_in_bytes,
)
from agentunit.privacy._text_places import Literals, Phrases, apart
from agentunit.privacy.detection.gazetteer import words
from agentunit.privacy.detection.readable import INVISIBLE
from agentunit.privacy.findings import NUMBER_TYPES
from agentunit.privacy.pseudonyms import PLACEHOLDER

_SHORTEST = 6
_SHORTEST_ADDRESS = 8
# Between two letters of a value may stand so much, not counting signs of markup, and so much with them.
_MOST_BETWEEN = 3
_MOST_MARKED_BETWEEN = 24
_DECORATION = re.compile(r"[*_~`=\\\[\](){}<>\"'+&;#!/]|\s+(?=\s)")
_DEEPEST = 3
_MOST_ESCAPED = 6  # JSON in JSON in JSON, written as a line of JSON
_MOST_REMEMBERED = 10_000
_NOT_ALNUM = bytes(each for each in range(128) if not chr(each).isalnum())
_IS_ALNUM = bytes(each < 128 and chr(each).isalnum() for each in range(256))
_NO_WORD = re.compile(r"[\W_]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# Chinese, Japanese and Korean put no space between surname and given name, or before the next word. Two letters may be
# part of a longer word; three mean the name wherever they stand.
_UNSPACED = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af々]+")
_SHORTEST_UNSPACED = 3
# An @, an equals sign or a folded line, as mails write them.
_IS_MAIL = re.compile(r"=(?:40|3D|\r?\n)")
_DATE = re.compile(r"([0-9]{1,4})[-/. ]([0-9]{1,2})[-/. ]([0-9]{1,4})")
_MONTHS = words("january february march april may june july august september october november december")
# Squeezed together these would be other numbers: 10.1.2.30 is not 101230.
_EXACT_TYPES = frozenset(("ip_address",))
# Of these types a value without a digit is a plain word.
_WITH_DIGITS = NUMBER_TYPES | {"account", "address", "date_of_birth", "mac_address"}


class Place(NamedTuple):
    """Where a text holds a known value, and the type and value as they were known."""

    type: str
    value: str
    start: int
    end: int


class KnownValues:
    """Values of a type, looked for in texts in every spelling and encoding.

    Too short or too common values are left out: six letters or digits are the least, and a name needs two words
    (in Chinese, Japanese and Korean two letters).

    >>> known = KnownValues([("ssn", "536-22-8741"), ("email", "ada@example.org")])
    >>> text = "536228741, ada%40example.org or YWRhQGV4YW1wbGUub3Jn"
    >>> [(place.type, text[place.start : place.end]) for place in known.places(text)]
    [('ssn', '536228741'), ('email', 'ada%40example.org'), ('email', 'YWRhQGV4YW1wbGUub3Jn')]

    ``stands_for`` are pseudonyms of first names and the like: a full name is known although part of it is masked.

    >>> KnownValues([("name", "Mia Li Lindqvist")], {"<NAME_2>": "Mia Li"}).places("<NAME_2>\\nLindqvist")[0][2:]
    (0, 18)
    """

    def __init__(self, values: Iterable[tuple[str, str]], stands_for: Mapping[str, str] | None = None) -> None:
        self._stands_for = stands_for or {}
        self._meant: dict[str, tuple[str, str]] = {}
        self._without: set[str] = set()
        self._exact: list[tuple[str, str]] = []
        for type, written in values:
            value = INVISIBLE.sub("", written)
            if not value:
                continue  # nobody sees anything, so nothing can be told by it
            if type in _EXACT_TYPES:
                self._exact.append((type, value))
                continue
            for spelling in _spellings(type, value):
                self._meant.setdefault(spelling, (type, value))
        self._literals = Literals(self._meant)
        self._written = Phrases(value for _, value in self._exact)
        self._types_of_exact = {value: type for type, value in reversed(self._exact)}

    def __bool__(self) -> bool:
        return bool(self._meant or self._exact)

    def stand_in(self, text: str) -> bool:
        """Whether a text holds one of the values; quicker than asking for the places."""
        return any(True for _ in self._found(text))

    def places(self, text: str) -> list[Place]:
        """The places of the values in a text, in order, none overlapping: the longer wins."""
        if text in self._without:
            return []
        kept = apart([], list(self._found(text)))
        if not kept and len(self._without) < _MOST_REMEMBERED:
            self._without.add(text)
        return kept

    def _found(self, text: str, depth: int = 0) -> Iterator[Place]:
        if not self:
            return
        view = _View(text)
        if self._stands_for and "<" in text:
            view = view.read_as(Reading(PLACEHOLDER, self._meant_by)) or view
        for layer in range(_MOST_ESCAPED + 1):
            yield from self._read_in(view)
            # An equals sign may be one: what is read as a mail is looked at beside the rest, not instead of it.
            mail = view.read_as(QUOTED_PRINTABLE) if "=" in view.text else None
            if mail is not None:
                yield from self._read_in(mail)
                yield from self._encoded_in(mail, depth)
            decoded = view.read_as(ESCAPES) if layer < _MOST_ESCAPED else None
            if decoded is None:
                break
            view = decoded
        # No escape is part of a code, so codes are the same once all escapes are undone.
        yield from self._encoded_in(view, depth)

    def _meant_by(self, pseudonym: re.Match[str]) -> str:
        return self._stands_for.get(pseudonym.group(), pseudonym.group())

    def _read_in(self, view: _View) -> Iterator[Place]:
        for each in (view, view.read_as(MARKUP)):
            if each is None:
                continue
            for literal, span in self._literals.found(_squeezed(each.text), each.whole):
                yield Place(*self._meant[literal], *span)
            for value, start, end in self._written.found(each.text):
                if not _goes_on(each.text[end : end + 1], value[-1]):
                    yield Place(self._types_of_exact[value], value, *each.written(start, end))

    def _encoded_in(self, view: _View, depth: int) -> Iterator[Place]:
        for start, end, decoded in texts_in_bytes(view.text) if depth < _DEEPEST else ():
            inner = next(self._found(decoded, depth + 1), None)
            if inner is not None:
                yield Place(inner.type, inner.value, *view.written(start, end))


class _View:
    """A text as it reads once its escapes are undone, and where each of its characters stands in the text as written.

    ``steps`` are the readings that led to it. Only where something is found are they done again with their places.
    """

    def __init__(self, text: str, root: str | None = None, steps: tuple[Reading, ...] = ()) -> None:
        self.text = text
        self._root = text if root is None else root
        self._steps = steps
        self._maps: list[Map] | None = None
        self._letters: list[int] | None = None

    def read_as(self, reading: Reading) -> _View | None:
        """The text as it reads in one more way, ``None`` where that changes nothing."""
        text = reading.read(self.text)
        return None if text == self.text else _View(text, self._root, (*self._steps, reading))

    def written(self, start: int, end: int) -> tuple[int, int]:
        """A span of this text as a span of the text as written."""
        if self._maps is None:
            self._maps = []
            text = self._root
            for reading in self._steps:
                text, step = reading.mapped(text)
                self._maps.append(step)
        for step in reversed(self._maps):
            start, end = step.back(start, end)
        return start, end

    def whole(self, first: int, past: int) -> tuple[int, int] | None:
        """Where letters and digits stand that were found in the squeezed text; None inside a longer word or number."""
        if self._letters is None:
            self._letters = _letter_places(self.text)
        letters = self._letters[first:past]
        start, end = letters[0], letters[-1] + 1
        gaps = ((left + 1, right) for left, right in pairwise(letters) if right - left > _MOST_BETWEEN + 1)
        if not all(starmap(self._is_marked, gaps)):
            return None
        if self._letters[past : past + 1] == letters[-1:]:
            return None  # only part of a syllable: "주" in "준"
        before, after = self.text[start - 1 : start], self.text[end : end + 1]
        if _goes_on(before, self.text[start]) or _goes_on(after, self.text[end - 1]):
            return None
        # A vowel that is written as a sign of its own belongs to the letter before it: "वर्मा".
        while category(self.text[end : end + 1] or " ").startswith("M"):
            end += 1
        if end - start < _SHORTEST_UNSPACED and (_UNSPACED.match(before) or _UNSPACED.match(after)):
            return None
        return self.written(start, end)

    def _is_marked(self, start: int, end: int) -> bool:
        """Whether little but signs of markup is between two letters: ``a**@**b``, or a quote that ends and begins."""
        if end - start > _MOST_MARKED_BETWEEN:
            return False
        return len(_DECORATION.sub("", self.text[start:end])) <= _MOST_BETWEEN


def decoded_text(text: str, layers: int = 2) -> str | None:
    """A text with what is escaped or encoded in it undone, ``None`` where nothing is; so many layers of codes at most.

    >>> decoded_text("to=ada%40example.org"), decoded_text("plain")
    ('to=ada@example.org', None)
    """
    readable = text
    for _ in range(_MOST_ESCAPED):
        deeper = ESCAPES.read(readable)
        if deeper == readable:
            break
        readable = deeper
    readings = dict.fromkeys((readable, INLINE_MARKUP.read(readable)))
    if _IS_MAIL.search(readable):
        readings[QUOTED_PRINTABLE.read(readable)] = None
    for _, _, decoded in encoded_texts(readable):
        readings[decoded] = None
        deeper_text = decoded_text(decoded, layers - 1) if layers else None
        if deeper_text is not None:
            readings[deeper_text] = None
    readings.pop(text, None)
    return "\n".join(readings) if readings else None


def _folded(text: str) -> str:
    return _NOT_ASCII.sub(lambda run: _folded_run(run.group()), text.lower())


@lru_cache(maxsize=4_096)
def _folded_run(run: str) -> str:
    kept = (each for each in normalize("NFKD", run).casefold() if not combining(each))
    return "".join(str(digit(each)) if each.isdecimal() else each for each in kept)


def _squeezed(text: str) -> bytes:
    """The letters and digits of a text, folded."""
    if text.isascii():
        return text.lower().encode().translate(None, _NOT_ALNUM)
    return _NO_WORD.sub("", _folded(text)).encode("utf-8", "replace")


def _letter_places(text: str) -> list[int]:
    """The place of the character that each byte of the squeezed text came from."""
    if text.isascii():
        return list(compress(range(len(text)), text.encode().translate(_IS_ALNUM)))
    places: list[int] = []
    for place, letter in enumerate(text):
        if letter.isascii():
            if letter.isalnum():
                places.append(place)
        else:
            places += [place] * len(_NO_WORD.sub("", _folded(letter)).encode("utf-8", "replace"))
    return places


def _goes_on(neighbor: str, letter: str) -> bool:
    """Whether a neighbor continues the number or the word that ends here. Scripts without spaces have no ends."""
    if letter.isdigit():
        return neighbor.isdigit()
    return neighbor.isalpha() and neighbor.isascii() and letter.isascii()


def _spellings(type: str, value: str) -> Iterator[str]:
    """The squeezed forms of a value that are long enough to mean it and nothing else."""
    forms = {_squeezed(value).decode()}
    forms.update(_OTHER_FORMS[type](value) if type in _OTHER_FORMS else ())
    shortest = _SHORTEST_ADDRESS if type == "address" else _SHORTEST
    needs_digit = type in _WITH_DIGITS
    if type == "name" and _UNSPACED.fullmatch(value.replace(" ", "")):
        # Full names have two to four letters in these scripts.
        yield from (form for form in sorted(forms) if len(value) > 1)
        return
    for form in sorted(forms):
        if len(form) < shortest or (needs_digit and not any(each.isdigit() for each in form)):
            continue
        if type == "name" and len(value.split()) < 2:
            continue
        yield form


def _spoken_email(value: str) -> Iterator[str]:
    local, at, domain = value.rpartition("@")
    if at:
        yield _squeezed(f"{local.replace('.', ' dot ')} at {domain.replace('.', ' dot ')}").decode()
        for word in ("at", "arobase", "arroba"):
            yield _squeezed(f"{local} {word} {domain.replace('.', ' dot ')}").decode()
            yield _squeezed(f"{local} {word} {domain}").decode()


def _national_phone(value: str) -> Iterator[str]:
    digits = "".join(each for each in value if each.isdigit())
    if value.strip().startswith(("+", "00")):
        bare = digits.removeprefix("00")
        codes = (1,) if bare.startswith(("1", "7")) else (2, 3)
        for national in (bare, *(bare[code:] for code in codes)):
            if len(national) >= 8:
                yield from (national, "0" + national)
    elif len(digits) == 10:
        yield "1" + digits
    elif digits.startswith("0") and len(digits) >= 9:
        yield digits[1:]


def _other_dates(value: str) -> Iterator[str]:
    for year, month, day in _dates(value):
        two = f"{month:02}", f"{day:02}"
        for m, d in {two, (str(month), str(day))}:
            yield from (f"{year}{m}{d}", f"{d}{m}{year}", f"{m}{d}{year}")
        ordinal = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day not in (11, 12, 13) else 0, "th")
        for name in {_MONTHS[month - 1], _MONTHS[month - 1][:3]}:
            for d in {str(day), two[1], f"{day}{ordinal}"}:
                yield from (f"{d}{name}{year}", f"{name}{d}{year}", f"{d}of{name}{year}")


def _dates(value: str) -> Iterator[tuple[int, int, int]]:
    """The dates that a text can mean: year, month, day."""
    numbers = _DATE.fullmatch(value.strip()[:10])
    if numbers is not None:
        first, second, third = map(int, numbers.groups())
        orders = [(first, second, third)] if first > 31 else [(third, second, first), (third, first, second)]
        yield from (each for each in orders if each[0] > 999 and calendar_date(*each))
        return
    parts = re.findall(r"[a-z]+|[0-9]+", value.lower())
    named = [part for part in parts if len(part) > 2]
    months = [at for at, name in enumerate(_MONTHS, start=1) if any(name.startswith(part) for part in named)]
    figures = [int(part) for part in parts if part.isdigit()]
    if len(months) == 1 and len(figures) == 2 and calendar_date(max(figures), months[0], min(figures)):
        yield max(figures), months[0], min(figures)


def _surname_first(value: str) -> Iterator[str]:
    first, *others = value.split()
    if others:
        yield _squeezed(f"{others[-1]} {' '.join((first, *others[:-1]))}").decode()


_OTHER_FORMS: dict[str, Callable[[str], Iterator[str]]] = {
    "name": _surname_first,
    "email": _spoken_email,
    "phone": _national_phone,
    "date_of_birth": _other_dates,
}
