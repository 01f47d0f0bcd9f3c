"""Cases that disagree with themselves: answer and context, or a date and its weekday."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from agentunit.metrics.inputs import acceptable_answers
from agentunit.soundness.found import Hit
from agentunit.soundness.material import Material, passages_of
from agentunit.soundness.texts import is_refusal, numbers, plain, shown, words

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


def against_context(material: Material) -> Iterator[Hit]:
    """Expected answers with a quantity for which the context states another one, and no such as expected."""
    for case in material.cases:
        context = "\n".join(passages_of(case))
        if not context:
            continue
        for answer in acceptable_answers(case.expected_output):
            told = _other_quantity(answer, context)
            if told:
                yield Hit(case.id, told)
                break


def absent_from_context(material: Material) -> Iterator[Hit]:
    """Short expected answers of which no word stands in the context, nor in the question."""
    for case in material.cases:
        known = set(words("\n".join([*passages_of(case), case.query or ""])))
        answers = acceptable_answers(case.expected_output)
        if not passages_of(case) or not answers:
            continue
        if all(_is_absent(answer, known) for answer in answers):
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


def _other_quantity(answer: str, context: str) -> str | None:
    """The first quantity of an answer that the context states otherwise: "30 days" against "14 days"."""
    stated: dict[str, list[str]] = {}
    for amount, unit in _QUANTITY.findall(context):
        stated.setdefault(unit.casefold().rstrip("s"), []).append(amount)
    amounts = set(numbers(context))
    for amount, unit in _QUANTITY.findall(answer):
        others = stated.get(unit.casefold().rstrip("s"))
        if others and amount not in others and not set(numbers(amount)) & amounts:
            return f"{amount} {unit} is expected; the context says {others[0]} {unit}"
    return None


def _is_absent(answer: str, known: set[str]) -> bool:
    said = words(answer)
    if not 0 < len(said) <= _LONGEST_EXTRACT or is_refusal(answer) or set(said) & _WITHOUT_FACTS:
        return False
    # A number may be computed, and a single letter names a choice.
    telling = [word for word in said if len(word) > 2 and word.isalpha()]
    begins = {each[:4] for each in known}
    return len(telling) == len(said) and bool(plain(answer)) and not any(word[:4] in begins for word in telling)
