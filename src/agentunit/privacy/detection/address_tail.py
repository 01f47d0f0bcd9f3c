"""What follows the street of an address: flat, city, state, country, postal code."""

from __future__ import annotations

import re

from agentunit.privacy.detection.address_words import PARTICLES, UNITS
from agentunit.privacy.detection.gazetteer import Kind, entries, fold, kinds_of
from agentunit.privacy.detection.word_lists import words

LONGEST_TAIL = 8
"""How many parts follow a street at most."""

_GAP = re.compile(r"[ ]{0,2}(,?)[ ]{0,2}(\r?\n)?[ ]{0,4}(,?)[ ]?")
_UNIT = re.compile(rf"\b({'|'.join(UNITS)})\.?[ ]#?\d{{1,5}}[a-z]?\b", re.IGNORECASE)
_FLOOR = re.compile(r"#[ ]?\d{1,5}[a-z]?\b|\d{1,2}(?:st|nd|rd|th)[ ]floor\b|floor[ ]\d{1,3}\b", re.IGNORECASE)
_CODE = re.compile(
    r"(?:\d{4,6}(?:-\d{3,4})?|\d{3}[ ]\d{2}|[A-Z]{1,2}\d[A-Z\d]?[ ]\d[A-Z]{2}|[A-Z]\d[A-Z][ ]\d[A-Z]\d)(?![\w@:/-])"
)
_STATE = re.compile(r"(?:[A-Z]{2,3})(?=[ ]\d|[ ]?\n|[ ]?$|[.?!,;)])")
_STATE_ON_ITS_OWN_LINE = re.compile(r"[A-Za-z0-9]{1,4}(?=[ ]?(?:\n|$))")
_CITY_END = re.compile(rf"[ ]?(?:\n|,|$)|[ ](?:\d{{4,6}}|(?:{'|'.join(UNITS)})\b)", re.IGNORECASE)
"""What follows a city that nothing separates from its street."""
_PARTICLES = "|".join(PARTICLES)
_PROPER = r"(?!\d)\w[\w'’./-]*|\([^()\n]{1,30}\)"
_CAPITAL_WORDS = re.compile(
    rf"(?=[^\W\d_])(?:{_PROPER})(?:[ ](?:(?:{_PARTICLES})[ ])?(?:(?=[^\W\d_]|\()(?:{_PROPER}))){{0,5}}(?![\w@])"
)
_REMARK = re.compile(r"[ ]\([^()\n]{1,20}\)")
# Words that open the names of countries, and of cities: "New Zealand" is one, "New York" is not.
_OPENERS_OF_COUNTRIES = frozenset(
    words("new south saint san sao são el de den det man isle island sri st sierra kap ny")
)
_COUNTRY_ABBREVIATIONS = frozenset(("usa", "uk", "us", "u.s.a", "u.k", "uae"))


def find_unit(text: str) -> re.Match[str] | None:
    """The first flat or suite with its number."""
    return _UNIT.search(text)


def end_of_tail(text: str, end: int, is_lower: bool) -> tuple[int, bool]:
    """Where the address ends whose street ends here, and whether a flat, state, country or code confirms it.

    A city alone confirms nothing, and is left out where nothing follows it: it could be any word.
    """
    accepted = position = end
    is_confirmed = is_after_unit = False
    n_pending = 0
    for _ in range(LONGEST_TAIL):
        gap = _GAP.match(text, position)
        if gap is None or (gap.end() == position and position != end):
            break
        here = gap.end()
        has_break = gap.group(2) is not None
        if unit := _UNIT.match(text, here) or _FLOOR.match(text, here):
            accepted = position = unit.end()
            is_confirmed = is_after_unit = True
            continue
        if code := _CODE.match(text, here):
            return _end_of_city_after_code(text, code.end(), is_lower, n_pending), True
        state = _STATE_ON_ITS_OWN_LINE if has_break and gap.group(3) else _STATE
        if (n_pending or is_after_unit) and (found := state.match(text, here)):
            accepted = position = found.end()
            is_confirmed = True
            continue
        if country_end := _end_of_country(text, here):
            gap = _GAP.match(text, country_end)
            code = _CODE.match(text, gap.end()) if gap else None
            return (code.end() if code else country_end), True
        if n_pending >= 3 or not (words_end := _end_of_city(text, here, is_lower)):
            break
        if not (has_break or is_after_unit or gap.group(1) or _CITY_END.match(text, words_end)):
            break
        position = words_end
        n_pending += 1
        if is_after_unit and not has_break:
            accepted = words_end
    return accepted, is_confirmed


def _end_of_city_after_code(text: str, end: int, is_lower: bool, n_pending: int) -> int:
    """Where the city ends that follows its code (``10115 Berlin``), if no city stood before the code."""
    if n_pending or is_lower or text[end : end + 1] != " ":
        return end
    city_end = _end_of_city(text, end + 1, is_lower)
    if not city_end:
        return end
    gap = _GAP.match(text, city_end)
    return (gap and _end_of_country(text, gap.end())) or city_end


def _end_of_city(text: str, start: int, is_lower: bool) -> int:
    """Where words end that can be a city, 0 where none stand here. A sentence that starts here is no city."""
    words = _CAPITAL_WORDS.match(text, start)
    if words is None:
        return 0
    end = start
    for word in words.group().split(" "):
        is_proper = word[0].isupper() or word[0] == "(" or is_lower or word in PARTICLES
        if not is_proper:
            break
        if end == start and not is_lower and kinds_of(word) & Kind.WORD and not kinds_of(word) & Kind.PLACE:
            following = text[start + len(word) : start + len(word) + 2]
            if following[:1] == " " and following[1:].islower():
                return 0
        end += len(word) + (1 if end > start else 0)
    while end > start and text[end - 1] in "./'’-":
        end -= 1
    if text[start:end] in PARTICLES:
        return 0
    return 0 if text[end : end + 1] in (":", "@") else end if end > start else 0


def _end_of_country(text: str, start: int) -> int:
    """Where a country ends that stands here, 0 where none does."""
    words = _CAPITAL_WORDS.match(text, start)
    if words is None:
        return 0
    parts = words.group().split(" ")[:4]
    known = entries()
    for n_parts in range(len(parts), 0, -1):
        name = " ".join(parts[:n_parts])
        folded = fold(name.rstrip("."))
        is_country = known.get(folded, 0) & Kind.COUNTRY and folded not in _OPENERS_OF_COUNTRIES
        if is_country or folded in _COUNTRY_ABBREVIATIONS:
            end = start + len(name.rstrip("."))
            remark = _REMARK.match(text, end)
            return remark.end() if remark else end
    return 0
