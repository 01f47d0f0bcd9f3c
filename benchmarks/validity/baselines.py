"""Plain scores that anyone could write in ten lines: a metric that does not beat them is not worth its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec import Struct

from agentunit.core.records import Record, outcome_text
from agentunit.formulas.text import token_overlap, words
from agentunit.metrics.inputs import acceptable_answers

# Words that stand in any English text, so that finding them in a context says nothing. The single letters are what
# is left of "it's", "don't", "I'd" when apostrophes part words.
_STOP_WORD_LINES = (
    "a an the this that these those i you he she it we they me him her us them my your his its our their",
    "who whom whose which what when where why how am is are was were be been being do does did have has had having",
    "can could may might must shall should will would and or but nor not no if then than so because while",
    "of to in on at by for from with about into over under between after before during through up down out off as",
    "also just very too there here all any both each more most other some such only own same again once",
    "s t d m ll re ve",
)
STOP_WORDS = frozenset(word for line in _STOP_WORD_LINES for word in line.split())
_ARTICLES = frozenset(("a", "an", "the"))


class Baseline(Struct, frozen=True):
    """A plain score of a record, higher being better; ``None`` where it has nothing to count."""

    name: str
    meaning: str
    score: Callable[[Record], float | None]


def content_words(text: str) -> list[str]:
    """The words of a text that are not stop words.

    >>> content_words("It is the capital of France.")
    ['capital', 'france']
    """
    return [word for word in words(text) if word not in STOP_WORDS]


def share_found(needles: Sequence[str], haystack: Sequence[str]) -> float | None:
    """The share of words that stand among other words.

    >>> share_found(["capital", "france"], ["france", "paris"])
    0.5
    """
    present = set(haystack)
    return sum(word in present for word in needles) / len(needles) if needles else None


def answer_words_in_context(record: Record) -> float | None:
    """The share of the answer's content words that the context has."""
    answer = outcome_text(record.outcome)
    return None if answer is None else share_found(content_words(answer), _context_words(record))


def answer_bigrams_in_context(record: Record) -> float | None:
    """The share of the answer's pairs of neighboring words that stand side by side in a passage of the context."""
    answer = outcome_text(record.outcome)
    if answer is None:
        return None
    present = {pair for passage in record.case.context or () for pair in pairwise(words(passage))}
    pairs = list(pairwise(words(answer)))
    return sum(pair in present for pair in pairs) / len(pairs) if pairs else None


def question_words_in_context(record: Record) -> float | None:
    """The share of the question's content words that the context has."""
    return share_found(content_words(record.case.query or ""), _context_words(record))


def token_f1(record: Record) -> float | None:
    """The F1 of the answer's words against the nearest expected answer."""
    answer = outcome_text(record.outcome) or ""
    overlaps = [token_overlap(expected, answer) for expected in acceptable_answers(record.case.expected_output)]
    return max((overlap[2] for overlap in overlaps if overlap), default=None)


def exact_match(record: Record) -> float | None:
    """1.0 when the answer is an expected one, whatever case, punctuation and articles."""
    answer = _spaced(outcome_text(record.outcome) or "")
    expected = acceptable_answers(record.case.expected_output)
    return float(any(_spaced(each) == answer for each in expected)) if expected else None


def containment(record: Record) -> float | None:
    """1.0 when an expected answer stands in the answer word for word, whatever case, punctuation and articles."""
    answer = _spaced(outcome_text(record.outcome) or "")
    expected = [_spaced(each) for each in acceptable_answers(record.case.expected_output)]
    return float(any(each in answer for each in expected if each.strip())) if expected else None


def always_good(_: Record) -> float:
    """1.0 for every answer: what agreement looks like when nobody looks."""
    return 1.0


def always_bad(_: Record) -> float:
    """0.0 for every answer: what finding all the bad ones looks like when nobody looks."""
    return 0.0


ANSWER_WORDS_IN_CONTEXT = Baseline(
    "content-token precision",
    "the share of the answer's words, stop words aside, that are anywhere in the context",
    answer_words_in_context,
)
ANSWER_BIGRAMS_IN_CONTEXT = Baseline(
    "bigram precision",
    "the share of the answer's pairs of neighboring words that are side by side in the context",
    answer_bigrams_in_context,
)
QUESTION_WORDS_IN_CONTEXT = Baseline(
    "question words in context",
    "the share of the question's words, stop words aside, that are anywhere in the context",
    question_words_in_context,
)
TOKEN_F1 = Baseline("token F1", "the F1 of the answer's words against the nearest expected answer", token_f1)
EXACT_MATCH = Baseline(
    "exact match",
    "1 when the answer is an expected one (ignoring case, punctuation and articles), otherwise 0",
    exact_match,
)
CONTAINMENT = Baseline(
    "containment",
    "1 when an expected answer is in the answer word for word (ignoring case, punctuation and articles), otherwise 0",
    containment,
)
ALWAYS_GOOD = Baseline("call everything correct", "1 for every answer", always_good)
ALWAYS_BAD = Baseline("call everything bad", "0 for every answer", always_bad)


def _context_words(record: Record) -> list[str]:
    return [word for passage in record.case.context or () for word in words(passage)]


def _spaced(text: str) -> str:
    return " " + " ".join(word for word in words(text) if word not in _ARTICLES) + " "
