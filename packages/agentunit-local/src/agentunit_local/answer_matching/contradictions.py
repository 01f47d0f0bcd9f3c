"""What makes an answer wrong although it shares most words with the expected one: no decision, or another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentunit_local.answer_matching.aliases import FUNCTION_WORDS
from agentunit_local.answer_matching.dates import read_dates
from agentunit_local.answer_matching.quantities import Quantity, read_quantities, read_ranges
from agentunit_local.answer_matching.stance import declines, is_negated
from agentunit_local.answer_matching.words import Words, read_words
from agentunit_local.grounding.claims import only_declines

_NEAR = 0.05


class Contradiction(NamedTuple):
    """A rule that an answer breaks, and the highest score it can have then."""

    rule: str
    most: float


_REPEATED = Contradiction("the answer only repeats the question", 0.0)
_UNDECIDED = Contradiction("the answer leaves open which choice of the question is right", 0.0)
# People call one in eight answers right of which these rules speak: some are near enough, some are misread.
_OTHER_CHOICE = Contradiction("the answer names the other choice of the question", 0.2)
_NOT_DECLINED = Contradiction("the answer does not decline, as the expected answer does", 0.2)
_OTHER_AMOUNT = Contradiction("the answer names another amount than the expected answer", 0.2)


def contradiction(question: str, expected: Sequence[str], answer: str) -> Contradiction | None:
    """Why an answer is wrong whatever its words; ``None`` where nothing says so.

    >>> contradiction("Is Paris or Rome the capital of France?", ["Paris"], "Paris or Rome").most
    0.0
    >>> contradiction("Is Paris or Rome the capital of France?", ["Paris"], "It is Paris.") is None
    True
    >>> contradiction("How often?", ["Every 20 minutes"], "Every 12 minutes").rule
    'the answer names another amount than the expected answer'
    """
    asked, said = read_words(question), read_words(answer)
    wanted = [read_words(each) for each in expected]
    if not said.forms or any(_holds(each.forms, said.forms) for each in wanted):
        return None
    if question.rstrip().endswith("?"):
        if said.forms == asked.forms:
            return _REPEATED
        found = _by_choice(asked, wanted, said)
        if found is not None:
            return found
    if expected and all(map(only_declines, expected)) and not declines(answer):
        return _NOT_DECLINED
    return _OTHER_AMOUNT if _names_other_amount(wanted, said) else None


def _holds(forms: Sequence[str], part: Sequence[str]) -> bool:
    return f" {' '.join(part)} " in f" {' '.join(forms)} "


def _by_choice(asked: Words, wanted: Sequence[Words], said: Words) -> Contradiction | None:
    offered_again = set(_choices(said))
    for choice in _choices(asked):
        # Which of the two the expected answers name: all the same one, or the question is no choice between these.
        named = {frozenset(choice).intersection(each.forms) for each in wanted}
        right = next(iter(named)) if len(named) == 1 else frozenset()
        if len(right) != 1:
            continue
        (kept,) = right
        (other,) = frozenset(choice) - right
        if choice in offered_again and said.forms.count(kept) == 1:
            return _UNDECIDED
        if kept not in said.forms and other in said.forms:
            place = said.forms.index(other)
            return None if is_negated(said, place, place + 1) else _OTHER_CHOICE
    return None


def _choices(words: Words) -> Iterator[tuple[str, str]]:
    """The words next to each "or", small ones left out: ("lund", "peter") of "by Maria Lund or by Peter Dahl"."""
    for place, form in enumerate(words.forms):
        if form != "or":
            continue
        before = next((each for each in reversed(words.forms[:place]) if each not in FUNCTION_WORDS), None)
        after = next((each for each in words.forms[place + 1 :] if each not in FUNCTION_WORDS), None)
        if before is not None and after is not None and before != after:
            yield before, after


def _names_other_amount(wanted: Sequence[Words], said: Words) -> bool:
    """Whether the answer has one amount, and each expected answer has one in such a unit that is not near it."""
    given = _only_amount(said)
    if given is None:
        return False
    amounts = [_only_amount(each) for each in wanted]
    return bool(amounts) and all(
        each is not None and each.dimension == given.dimension and not _near(each, given) for each in amounts
    )


def _only_amount(words: Words) -> Quantity | None:
    """The amount with a unit, where there is just one and no range: a bare number may count anything ("line 7")."""
    _, dates = read_dates(words)
    found = [each for each in read_quantities(words, dates) if each.dimension is not None]
    return found[0] if len(found) == 1 and not read_ranges(words) else None


def _near(one: Quantity, other: Quantity) -> bool:
    return abs(one.base - other.base) <= _NEAR * max(abs(one.base), abs(other.base))
