"""A final answer in a form in which two runs can be compared: what it comes down to, and the words it is made of."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set
from functools import lru_cache
from zlib import crc32

from msgspec import Struct

from agentunit.formulas.text import shortened

SHORT_WORDS = 10
"""An answer of so few words is what it comes down to."""
MOST_STATED = 12
"""What follows "the answer is" counts as the answer when it has no more words than that."""
_KEPT_WORDS = 60
_READ_CHARACTERS = 4_000
_LONGEST_KEPT = 120

# "no" and "not" are not among them: they are answers.
_FILLERS_WORDS = """
the a an of to is are was were be been and or in on for with that this it its by as at from i you we he she they your
our my their have has had so therefore thus there
"""
_FILLERS = frozenset(_FILLERS_WORDS.split())
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_STATED = re.compile(
    r"(?i)(?:final answer(?: is)?|solution[_ ]found|the answer(?: to [^.\n]{0,80})? is|(?<![a-z])answer\s*(?=[:=])"
    r"|####)\s*[:=]?\s*[*_]*\s*([^\n]{1,160})"
)
_SENTENCE_END = re.compile(r"(?<=[a-z\d)*\]])[.!?](?:\s|$)")
_LATEX_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TOKEN = re.compile(r"-?\d+(?:\.\d+)?|\w+")
_ZEROS = re.compile(r"\.0+$|(?<=\.\d)0+$")


class AnswerSignature(Struct, frozen=True):
    """``stated`` are the words that an answer comes down to, if it says so; ``words`` are hashes of all its words."""

    stated: tuple[str, ...] | None
    words: bytes
    shown: str


def answer_signature(text: str) -> AnswerSignature | None:
    r"""What a final answer comes down to; ``None`` for one without words.

    >>> answer_signature("So it took 1,500 steps. The final answer is \\boxed{1500}.").stated
    ('1500',)
    >>> answer_signature("FINAL ANSWER: 42.0 miles").stated, answer_signature("Paris!").stated
    (('42', 'miles'), ('paris',))
    """
    if len(text) > 2 * _READ_CHARACTERS:
        text = f"{text[:_READ_CHARACTERS]} {text[-_READ_CHARACTERS:]}"
    tokens = _tokens(text)
    if not tokens:
        return None
    stated, shown = _stated(text, tokens)
    kept = set(tokens if len(tokens) <= 2 * _KEPT_WORDS else tokens[:_KEPT_WORDS] + tokens[-_KEPT_WORDS:])
    words = b"".join(sorted(_hash(word) for word in kept - _FILLERS))
    shown = " ".join(shown.split())
    return AnswerSignature(stated, words, shortened(shown, _LONGEST_KEPT))


def answer_difference(own: AnswerSignature, other: AnswerSignature) -> float:
    """How far two answers differ, from 0 to 1.

    What both state is compared: numbers must be the same, of words the share that both have counts. What only one
    states must be among the words of the other. Where neither states anything, their words are compared.

    >>> short, long = answer_signature("42"), answer_signature("After some thought we find that 42 of them must have left the house by then")
    >>> answer_difference(short, long), answer_difference(short, answer_signature("41"))
    (0.0, 1.0)
    """  # noqa: E501 - one line of an example
    if own == other:
        return 0.0
    if own.stated is not None and other.stated is not None:
        numbers = [_numbers(each.stated or ()) for each in (own, other)]
        if any(numbers):
            return float(numbers[0] != numbers[1])
        return _distance(set(own.stated) - _FILLERS, set(other.stated) - _FILLERS)
    mine, theirs = _word_hashes(own.words), _word_hashes(other.words)
    if own.stated is None and other.stated is None:
        return _distance(mine, theirs)
    stated, within = (own.stated, theirs) if own.stated is not None else (other.stated, mine)
    wanted = set(_numbers(stated or ())) or set(stated or ()) - _FILLERS
    return 1.0 - sum(_hash(word) in within for word in wanted) / len(wanted) if wanted else 1.0


def normalized_question(text: str) -> str:
    """A question without what does not matter to it: case, punctuation, spacing.

    >>> normalized_question("Where is  my order? "), normalized_question("where is my ORDER")
    ('where is my order', 'where is my order')
    """
    return " ".join(_tokens(text))


def _stated(text: str, tokens: list[str]) -> tuple[tuple[str, ...] | None, str]:
    if boxed := _BOXED.findall(text):
        words = _tokens(boxed[-1])
        if 0 < len(words) <= MOST_STATED:
            return tuple(words), boxed[-1]
    for found in reversed(list(_STATED.finditer(text))):
        said = _SENTENCE_END.split(found[1])[0]
        words = _tokens(said)
        if 0 < len(words) <= MOST_STATED:
            return tuple(words), said
    return (tuple(tokens), text) if len(tokens) <= SHORT_WORDS else (None, text)


def _tokens(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", text).casefold()
    text = _THOUSANDS.sub("", _LATEX_TEXT.sub(r"\1", text)).replace("\\", " ")
    return [_ZEROS.sub("", token) if token[-1].isdigit() and "." in token else token for token in _TOKEN.findall(text)]


def _numbers(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if word.lstrip("-")[:1].isdigit()]


# The peers of a task come again and again.
@lru_cache(maxsize=1024)
def _word_hashes(words: bytes) -> frozenset[bytes]:
    return frozenset(words[at : at + 4] for at in range(0, len(words), 4))


def _distance(own: Set[object], other: Set[object]) -> float:
    both = len(own & other)
    either = len(own) + len(other) - both
    return 1.0 - both / either if either else 0.0


def _hash(word: str) -> bytes:
    return crc32(word.encode("utf-8", "replace")).to_bytes(4, "big")
