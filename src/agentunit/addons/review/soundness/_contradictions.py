"""Cases that disagree with themselves: answer and context, or a date and its weekday."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date
from itertools import combinations_with_replacement
from typing import NamedTuple

from agentunit.addons.review.soundness._texts import is_refusal, numbers, plain, shown, words
from agentunit.addons.review.soundness.found import Hit
from agentunit.addons.review.soundness.material import Material, passages_of
from agentunit.metrics.inputs import acceptable_answers

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_DATED = re.compile(
    rf"\b(?P<day_name>{'|'.join(_DAYS)}),?\s+(?:the\s+)?(?:(?P<month>{'|'.join(_MONTHS)})\s+(?P<day>\d{{1,2}})"
    rf"(?:st|nd|rd|th)?|(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month2>{'|'.join(_MONTHS)})),?\s+"
    rf"(?P<year>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_QUANTITY = re.compile(r"(?<![\w.,])(\d+(?:[.,]\d+)*)\s+(?:business |working |calendar )?([A-Za-z]{3,})")
_WITHOUT_FACTS = frozenset(("yes", "no", "true", "false", "none", "unknown"))
_LONGEST_EXTRACT = 6
_OF_A_CLASS = 3
# Words that stand behind a number and count nothing: "in 1969 the", "3 and 4".
_NO_UNITS = frozenset(
    ("and", "are", "but", "for", "from", "had", "has", "not", "that", "the", "was", "were", "which", "who", "with")
)
# What asks for a number that need not stand in the context.
_COMPUTED = re.compile(
    r"\b(?:total|altogether|in all|sum|differ\w*|average|mean|combined|remain\w*|left|convert|calculate|compute)\b",
    re.IGNORECASE,
)
_LONGEST_NUMBER = 9
_MOST_NUMBERS = 50


def against_context(material: Material) -> Iterator[Hit]:
    """Expected answers with a quantity for which the context states another one, and no such as expected."""
    for case in material.cases:
        context = "\n".join(passages_of(case))
        answers = acceptable_answers(case.expected_output)
        if not context or not answers or _COMPUTED.search(case.query or ""):
            continue
        stated = _quantities(context)
        amounts = set(numbers(context))
        told = next(filter(None, (_other_quantity(each, stated, amounts) for each in answers)), None)
        if told is not None and told.amount not in _computed([*amounts, *numbers(case.query or "")]):
            yield Hit(case.id, told.text)


def absent_from_context(material: Material) -> Iterator[Hit]:
    """Short expected answers of which no word stands in the context, nor in the question."""
    times = Counter(answer for case in material.cases for answer in set(acceptable_answers(case.expected_output)))
    for case in material.cases:
        passages = passages_of(case)
        answers = acceptable_answers(case.expected_output)
        # An answer that many cases share is the name of a class, and no extract of a text.
        if not passages or not answers or any(times[answer] >= _OF_A_CLASS for answer in answers):
            continue
        known = plain("\n".join([*passages, case.query or ""]))
        begins = {each[:4] for each in known.split()}
        if all(_is_absent(answer, known, begins) for answer in answers):
            yield Hit(case.id, f"no word of the expected answer {shown(answers[0])} stands in the context")


def wrong_weekdays(material: Material) -> Iterator[Hit]:
    """Questions and passages with a date on a weekday that it does not have, or that does not exist."""
    for case in material.cases:
        for text in (case.query or "", *passages_of(case)):
            for found in _DATED.finditer(text):
                month = _MONTHS.index((found["month"] or found["month2"]).lower()) + 1
                try:
                    day = date(int(found["year"]), month, int(found["day"] or found["day2"]))
                except ValueError:
                    yield Hit(case.id, f"{shown(found.group())} does not exist")
                    continue
                if _DAYS[day.weekday()] != found["day_name"].lower():
                    yield Hit(case.id, f"{shown(found.group())} is a {_DAYS[day.weekday()].capitalize()}")


def _quantities(text: str) -> dict[str, list[str]]:
    """The amounts of each unit: "14 days" is 14 of the unit "day"."""
    found: dict[str, list[str]] = {}
    for amount, unit in _QUANTITY.findall(text):
        if unit.casefold() not in _NO_UNITS:
            found.setdefault(unit.casefold().rstrip("s"), []).append(amount)
    return found


class _Contradiction(NamedTuple):
    amount: str
    text: str


def _other_quantity(answer: str, stated: Mapping[str, list[str]], amounts: Set[str]) -> _Contradiction | None:
    """The first quantity of an answer that the context states otherwise: "30 days" against "14 days"."""
    for amount, unit in _QUANTITY.findall(answer):
        others = stated.get(unit.casefold().rstrip("s"))
        if others and amount not in others and not set(numbers(amount)) & amounts:
            told = f"{amount} {unit} is expected; the context says {others[0]} {unit}"
            return _Contradiction("".join(numbers(amount)), told)
    return None


def _computed(amounts: Sequence[str]) -> set[str]:
    """The whole numbers that come of two of the amounts: a sum, a difference, a product or a quotient."""
    known = [int(each) for each in dict.fromkeys(amounts) if each.isdecimal() and len(each) <= _LONGEST_NUMBER]
    if len(known) > _MOST_NUMBERS:
        known = known[:_MOST_NUMBERS]
    found: set[int] = set()
    for one, other in combinations_with_replacement(known, 2):
        found |= {one + other, abs(one - other), one * other}
        found |= {one // other} if other and not one % other else set()
        found |= {other // one} if one and not other % one else set()
    return set(map(str, found))


def _is_absent(answer: str, known: str, begins: Set[str]) -> bool:
    said = words(answer)
    if not 0 < len(said) <= _LONGEST_EXTRACT or is_refusal(answer) or set(said) & _WITHOUT_FACTS:
        return False
    # A number may be computed, and a single letter names a choice.
    telling = [word for word in said if len(word) > 2 and word.isalpha()]
    if len(telling) != len(said) or any(word[:4] in begins for word in telling):
        return False
    # Not every language has spaces between its words, or writes compounds apart.
    return not any(word in known for word in telling)
