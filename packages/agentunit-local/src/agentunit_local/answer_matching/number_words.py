"""Numbers in words, digits and Roman numerals, read as one spelling."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentunit_local.answer_matching.aliases import word_set

if TYPE_CHECKING:
    from agentunit_local.answer_matching.words import Words

_SMALL = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SMALL_ORDINALS = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth
"""
_TENS_ORDINALS = ["twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth"]
CARDINALS = {word: value for value, word in enumerate(_SMALL.split())} | {
    word: 10 * place for place, word in enumerate(_TENS, start=2)
}
ORDINALS = {word: value for value, word in enumerate(_SMALL_ORDINALS.split())} | {
    word: 10 * place for place, word in enumerate(_TENS_ORDINALS, start=2)
}
SCALES = {
    "hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12,
    "lakh": 1e5, "crore": 1e7, "bn": 1e9, "mn": 1e6, "tn": 1e12,
}  # fmt: skip
_ALL_WORDS = CARDINALS.keys() | ORDINALS.keys() | SCALES.keys()
_ROMAN = re.compile(r"(?=.)(?:M{0,3})(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_LETTERS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
# Words that are no numerals although they could be.
_NOT_ROMAN = frozenset(
    {"DC", "CD", "MD", "MC", "MM", "CC", "CM", "DI", "MI", "LL", "CV", "MIX", "MCC", "LI", "DIM", "CIV"}
)
# A lone I, V or X is a numeral only after one of these.
ROMAN_AFTER = word_set(
    """
    war part chapter article volume type phase act book section stage class title elizabeth charles napoleon george
    james william henry louis edward richard francis nicholas alexander leo pius constantine wilhelm
    """
)
_WRITTEN = re.compile(r"(-?\d{1,15}(?:\.\d{1,15})?)(?:st|nd|rd|th)?")


def number_of(token: str) -> float | None:
    """The number that one token is: digits (with separators or an ordinal ending); ``None`` for any other.

    Runs of more than 15 digits are names, not amounts.

    >>> number_of("1,234.5"), number_of("21st"), number_of("3,5"), number_of("h2o")
    (1234.5, 21.0, 3.5, None)
    """
    if not (token[:1].isdigit() or token[:1] == "-"):
        return None
    if "," in token:
        head, _, tail = token.rpartition(",")
        token = f"{head}.{tail}" if len(tail) < 3 else token.replace(",", "")
    match = _WRITTEN.fullmatch(token)
    return float(match[1]) if match else None


def roman_value(token: str) -> float | None:
    """The value of a Roman numeral in capitals; ``None`` when it is none (or a common abbreviation).

    >>> roman_value("XIV"), roman_value("CD"), roman_value("IIII")
    (14.0, None, None)
    """
    if token in _NOT_ROMAN or not _ROMAN.fullmatch(token):
        return None
    total = previous = 0
    for letter in reversed(token):
        value = _ROMAN_LETTERS[letter]
        total += value if value >= previous else -value
        previous = max(previous, value)
    return float(total)


def plain_number(value: float) -> str:
    """The one spelling that equal numbers share.

    >>> plain_number(21e6), plain_number(2.50)
    ('21000000', '2.5')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.10g}"


def merge_numbers(words: Words) -> Words:
    """The same words, with every number (also one of several words) as one word of digits."""
    forms = words.forms
    if not any(value is not None for value in words.values) and _ALL_WORDS.isdisjoint(forms):
        return words
    merged = type(words)()
    place, end = 0, len(forms)
    while place < end:
        value, after, ordinal = _read_number(words, place)
        if value is None:
            merged.add(forms[place], None, words.capitals[place], words.sentences[place])
        else:
            if ordinal:
                merged.ordinals.add(len(merged))
            merged.add(plain_number(value), value, words.capitals[place], words.sentences[place])
        place = after
    return merged


def _read_number(words: Words, start: int) -> tuple[float | None, int, bool]:
    """The number that begins at a place, the place after it, and whether it is an ordinal."""
    forms = words.forms
    first = forms[start]
    if words.values[start] is not None:
        return _scaled(words, words.values[start] or 0.0, start + 1, start in words.ordinals)
    if first in ORDINALS:
        after_number = first == "second" and start > 0 and words.values[start - 1] is not None
        return (None, start + 1, False) if after_number else (float(ORDINALS[first]), start + 1, True)
    if first == "one" and start + 1 < len(forms) and forms[start + 1] == "of":
        return None, start + 1, False
    if first not in CARDINALS and first not in SCALES:
        return None, start + 1, False
    return _spelled_number(forms, start)


def _scaled(words: Words, value: float, place: int, ordinal: bool) -> tuple[float, int, bool]:
    while place < len(words) and words.forms[place] in SCALES and not ordinal:
        value *= SCALES[words.forms[place]]
        place += 1
    if (
        place < len(words)
        and words.forms[place] in ("k", "m", "b")
        and place >= 2
        and words.forms[place - 2] in "$€£¥₹"
    ):
        value *= {"k": 1e3, "m": 1e6, "b": 1e9}[words.forms[place]]
        place += 1
    return value, place, ordinal


def _spelled_number(forms: list[str], start: int) -> tuple[float, int, bool]:
    total, group, last, place = 0.0, 0.0, 0.0, start
    while place < len(forms):
        form = forms[place]
        if form in CARDINALS or (form in ORDINALS and form != "second"):
            value = float(CARDINALS.get(form, ORDINALS.get(form, 0)))
            if place > start:
                if value >= 10 and 10 <= last <= 20 and group == last and not total:  # "nineteen sixty-nine"
                    group *= 100
                elif not (last >= 100 or (last >= 20 and value < 10)):
                    break
            group, last, place = group + value, value, place + 1
            if form in ORDINALS:
                return total + group, place, True
        elif form in SCALES:
            scale = SCALES[form]
            if scale >= 1000:
                total, group = total + (group or 1) * scale, 0.0
            else:
                group = (group or 1) * scale
            last, place = scale, place + 1
        elif form == "and" and last >= 100 and place + 1 < len(forms) and forms[place + 1] in CARDINALS:
            place += 1
        else:
            break
    return total + group, place, False
