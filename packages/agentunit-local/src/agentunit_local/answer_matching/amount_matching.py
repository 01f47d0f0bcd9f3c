"""The dates and amounts of one expected answer against those of the answer given."""

from __future__ import annotations

from itertools import islice

from agentunit_local.answer_matching import dates
from agentunit_local.answer_matching.aliases import MONTHS, word_set
from agentunit_local.answer_matching.answer_index import stem
from agentunit_local.answer_matching.given_answer import KEY_WEIGHT, GivenAnswer
from agentunit_local.answer_matching.quantities import UNIT_WORDS, Quantity, close, equal, read_quantities
from agentunit_local.answer_matching.stance import is_left_open, is_negated
from agentunit_local.answer_matching.words import Words

_DATE_GRADES = {dates.SAME: "date_same", dates.COARSER: "date_coarser", dates.NEAR: "date_near"}
_DATE_RECALL = {dates.SAME: 1.0, dates.COARSER: 0.6, dates.NEAR: 0.3, dates.OTHER: 0.0}
_DATE_WORDS = word_set("early mid late spring summer autumn fall winter circa c ca")
_THOUSANDS = (1e3, 1e6, 1e9)
# Of a long expected text, only so many dates and amounts are compared: the time stays linear.
_MOST_COMPARED = 40


def match_dates(found: dict[str, float], words: Words, weights: list[float], given: GivenAnswer) -> float | None:
    """How far the dates agree; a grade from 0 to 1 when the expected answer is nothing but a date."""
    wanted, places = dates.read_dates(words)
    if not wanted:
        return None
    pure = not any(
        weight > 0.3 and place not in places and words.forms[place] not in _DATE_WORDS
        for place, weight in enumerate(weights)
    )
    grade = max(dates.agreement(date, given.dates) for date in islice(wanted, _MOST_COMPARED))
    if grade in _DATE_GRADES or given.dates:
        found[_DATE_GRADES.get(grade, "date_other")] = 1.0 if pure else 0.5
    return _DATE_RECALL[grade] if pure else None


def match_other_spelling(found: dict[str, float], given: GivenAnswer) -> None:
    """The same date or amount in other words: what is no part of it counts as unexpected."""
    forms, values = given.words.forms, given.words.values
    matter = [
        place for place in given.news if values[place] is not None or forms[place][0].isdigit()
        or forms[place] in MONTHS or stem(forms[place]) in UNIT_WORDS
    ]  # fmt: skip
    if matter:
        found["precision"] = len(matter) / len(given.news)
        found["early"] = 1 / (1 + matter[0] / 10)
        found["negated"] = float(is_negated(given.words, matter[0], matter[-1] + 1, given.asked))
        found["left_open"] = float(is_left_open(given.words, matter[0]))
        found["sentence_recall"] = 1.0
        found["opening_recall"] = float(given.words.sentences[matter[0]] == 0)


def match_numbers(found: dict[str, float], words: Words, weights: list[float], given: GivenAnswer) -> float | None:
    """How far the amounts agree; a grade from 0 to 1 when the expected answer is nothing but amounts."""
    wanted = read_quantities(words, dates.read_dates(words)[1])[:_MOST_COMPARED]
    if not wanted:
        return None
    pure = not any(
        weight >= KEY_WEIGHT and value is None and form not in UNIT_WORDS and stem(form) not in UNIT_WORDS
        for form, value, weight in zip(words.forms, words.values, weights, strict=True)
    )
    share = sum(_stands(quantity, given) for quantity in wanted) / len(wanted)
    strength = 1.0 if pure else 0.5
    found["number_found"] = strength * share
    if share < 1 and any(_nearly_stands(quantity, given) for quantity in wanted if not _stands(quantity, given)):
        found["number_close"] = strength
        share = max(share, 0.5)
    elif share < 1 and given.quantities:
        found["number_other"] = strength * (1 - share)
    return share if pure else None


def _stands(wanted: Quantity, given: GivenAnswer) -> bool:
    if wanted.dimension is None:
        candidates = given.quantities.values() if wanted.value != int(wanted.value) else ()
        return wanted.value in given.numbers or any(equal(wanted, one) for group in candidates for one in group)
    same_kind = given.quantities.get(wanted.dimension, ())
    bare = given.quantities.get(None, ())
    return any(equal(wanted, quantity) for group in (same_kind, bare) for quantity in group)


def _nearly_stands(wanted: Quantity, given: GivenAnswer) -> bool:
    if any(close(wanted.base, quantity.base) for quantity in given.quantities.get(wanted.dimension, ())):
        return True
    if wanted.dimension is None and any(wanted.value * scale in given.numbers for scale in _THOUSANDS):
        return True
    return any(low <= wanted.value <= high for low, high in given.ranges)
