"""Known values in texts, however they are spelled: with other separators, in other letters, escaped or encoded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from unicodedata import category, combining, digit, normalize

from agentunit.formulas.identifiers import calendar_date
from agentunit.privacy.detection.gazetteer import words
from agentunit.privacy.detection.readable import INVISIBLE
from agentunit.privacy.encodings import Map, encoded_texts, read_as, unescaped
from agentunit.privacy.findings import NUMBER_TYPES
from agentunit.privacy.pseudonyms import PLACEHOLDER

_SHORTEST = 6
_SHORTEST_ADDRESS = 8
_MOST_BETWEEN = 3
_DEEPEST = 3
_MOST_ESCAPED = 6  # JSON in JSON in JSON, written as a line of JSON
_MOST_REMEMBERED = 10_000
_MOST_LITERALS_AT_ONCE = 2_000
_AUTOMATON_BYTES = 64 << 20
_NOT_ALNUM = bytes(each for each in range(128) if not chr(each).isalnum())
_ALNUM = frozenset(each for each in range(128) if chr(each).isalnum())
_NO_WORD = re.compile(r"[\W_]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# Chinese, Japanese and Korean put no space between surname and given name, or before the next word. Two letters may be
# part of a longer word; three mean the name wherever they stand.
_UNSPACED = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af々]+")
_SHORTEST_UNSPACED = 3
_MARKS = frozenset("%&\\")
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
            if type in _EXACT_TYPES:
                self._exact.append((type, value))
                continue
            for spelling in _spellings(type, value):
                self._meant.setdefault(spelling, (type, value))
        self._patterns = _alternations(list(self._meant))

    def __bool__(self) -> bool:
        return bool(self._meant or self._exact)

    def stand_in(self, text: str) -> bool:
        """Whether a text holds one of the values; quicker than asking for the places."""
        return any(True for _ in self._found(text))

    def places(self, text: str) -> list[Place]:
        """The places of the values in a text, in order, none overlapping: the longer wins."""
        if text in self._without:
            return []
        kept: list[Place] = []
        for place in sorted(self._found(text), key=lambda each: (each.start - each.end, each.start)):
            if all(place.end <= other.start or other.end <= place.start for other in kept):
                kept.append(place)
        if not kept and len(self._without) < _MOST_REMEMBERED:
            self._without.add(text)
        return sorted(kept, key=lambda each: each.start)

    def _found(self, text: str, depth: int = 0) -> Iterator[Place]:
        if not self:
            return
        view = self._unmasked(text)
        for level in range(_MOST_ESCAPED + 1):
            yield from self._found_in(view, depth)
            seen = view.seen()
            if seen is not None:
                yield from self._found_in(seen, depth)
            decoded = view.decoded() if level < _MOST_ESCAPED else None
            if decoded is None:
                break
            view = decoded

    def _unmasked(self, text: str) -> _View:
        if not self._stands_for or "<" not in text:
            return _View(text)
        read, step = read_as(text, PLACEHOLDER, lambda found: self._stands_for.get(found.group(), found.group()))
        return _View(read, (step,))

    def _found_in(self, view: _View, depth: int) -> Iterator[Place]:
        squeezed = _squeezed(view.text)
        for pattern in self._patterns:
            found = pattern.search(squeezed)
            while found is not None:
                first, past = found.span()
                span = view.whole(first, past)
                if span is not None:
                    yield Place(*self._meant[found.group().decode()], *span)
                # A part of something longer may overlap the value itself: 10 5550104477.
                found = pattern.search(squeezed, past if span is not None else first + 1)
        for type, value in self._exact:
            yield from (Place(type, value, *view.written(*span)) for span in _exact_spans(value, view.text))
        if depth < _DEEPEST:
            for start, end, decoded in encoded_texts(view.text):
                inner = next(self._found(decoded, depth + 1), None)
                if inner is not None:
                    yield Place(inner.type, inner.value, *view.written(start, end))


class _View:
    """A text as it reads once its escapes are undone, and where each of its characters stands in the text as written.

    ``maps`` are the steps back to that text, the last decoding first.
    """

    def __init__(self, text: str, maps: tuple[Map, ...] = ()) -> None:
        self.text = text
        self._maps = maps
        self._letters: list[int] | None = None

    def decoded(self) -> _View | None:
        """The text with one more layer of escapes undone, ``None`` where there is none."""
        if _MARKS.isdisjoint(self.text):
            return None
        text, step = unescaped(self.text)
        return None if text == self.text else _View(text, (step, *self._maps))

    def seen(self) -> _View | None:
        """The text without what is invisible in it, ``None`` where nothing is."""
        if self.text.isascii() and self.text.isprintable():
            return None
        text, step = read_as(self.text, INVISIBLE, lambda found: "")
        return None if text == self.text else _View(text, (step, *self._maps))

    def written(self, start: int, end: int) -> tuple[int, int]:
        """A span of this text as a span of the text as written."""
        for step in self._maps:
            start, end = step.back(start, end)
        return start, end

    def whole(self, first: int, past: int) -> tuple[int, int] | None:
        """Where letters and digits stand that were found in the squeezed text; None inside a longer word or number."""
        if self._letters is None:
            self._letters = _letter_places(self.text)
        letters = self._letters[first:past]
        start, end = letters[0], letters[-1] + 1
        if any(right - left > _MOST_BETWEEN + 1 for left, right in pairwise(letters)):
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


def decoded_text(text: str) -> str | None:
    """A text with what is escaped or encoded in it undone, ``None`` where nothing is.

    >>> decoded_text("to=ada%40example.org"), decoded_text("plain")
    ('to=ada@example.org', None)
    """
    view: _View | None = _View(text)
    for _ in range(_MOST_ESCAPED):
        deeper = view.decoded() if view is not None else None
        if deeper is None:
            break
        view = deeper
    readable = view.text if view is not None else text
    more = [decoded for _, _, decoded in encoded_texts(readable)]
    return None if readable == text and not more else "\n".join([readable, *more])


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
        return [place for place, each in enumerate(text.encode()) if each in _ALNUM]
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


def _exact_spans(value: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if not _goes_on(text[start - 1 : start], value[0]) and not _goes_on(text[end : end + 1], value[-1]):
            yield start, end
        start = text.find(value, end)


def _alternations(literals: Sequence[str]) -> list[Any]:
    """Patterns that find any of the literals in squeezed bytes, in linear time."""
    if not literals:
        return []
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _AUTOMATON_BYTES
    options.longest_match = True
    options.never_capture = True
    return [
        re2.compile(b"|".join(each.encode() for each in literals[at : at + _MOST_LITERALS_AT_ONCE]), options)
        for at in range(0, len(literals), _MOST_LITERALS_AT_ONCE)
    ]


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
        yield _squeezed(f"{local} at {domain.replace('.', ' dot ')}").decode()
        yield _squeezed(f"{local} at {domain}").decode()
        yield _squeezed(f"{local.replace('.', ' dot ')} at {domain.replace('.', ' dot ')}").decode()


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
