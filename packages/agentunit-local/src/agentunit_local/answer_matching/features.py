"""What speaks for and against an answer being one of the expected ones, as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentunit_local.answer_matching import reference
from agentunit_local.answer_matching.aliases import FUNCTION_WORDS
from agentunit_local.answer_matching.answer_index import stem
from agentunit_local.answer_matching.given_answer import GivenAnswer
from agentunit_local.answer_matching.reference import match_reference
from agentunit_local.answer_matching.stance import declines
from agentunit_local.answer_matching.words import Words, read_words

_LONGEST_ANSWER, _LONGEST_REFERENCE, _MOST_REFERENCES = 200, 12, 10
_STRENGTH = {
    "exact": 2.0, "contained": 1.0, "recall": 1.0, "date_same": 0.5, "date_coarser": 0.3, "number_found": 0.5,
    "glued": 0.5, "acronym": 0.5, "precision": 0.3, "negated": -1.0,
}  # fmt: skip
_KINDS = {
    "asks_when": ("when", "year", "date"),
    "asks_who": ("who", "whose", "whom"),
    "asks_where": ("where",),
    "asks_number": ("many", "much", "long", "old", "far", "tall"),
    "asks_meaning": ("why", "mean", "meaning", "difference", "purpose", "definition"),
    "asks_list": ("names", "list", "what are"),
}
NAMES = (
    *(name for name in reference.NAMES if name != "reference_words"),
    "references_found", "references", "reference_length", "answer_length", "names_in_opening", "declines",
    "declines_but_contained", *_KINDS,
)  # fmt: skip


def match_features(question: str | None, expected: Sequence[str], answer: str) -> dict[str, float]:
    """Compare an answer with the expected ones, any of which will do; the best of them counts.

    The time is linear in the length of the texts. Names and meaning:

    - ``exact``, ``contained``: the expected answer is all of the answer, or stands in it word by word.
      ``glued``: only with spaces lost. ``acronym``: one abbreviates the other. ``inside_reference``: the reverse.
      ``early``: how near to the beginning.
    - ``recall``: the weight of the expected words found (misspelt, derived or related words count less; words of the
      question, titles and function words weigh little); ``key_recall``, ``first_key``, ``last_key``: of the words that
      weigh most; ``sentence_recall``, ``opening_recall``: within one sentence, the first. ``precision``: the share of
      the answer's own words that were expected. ``trigram_recall``: by runs of three characters.
    - ``date_…``, ``number_…``: how the best date and the amounts agree.
    - Against: ``negated`` ("not X"), ``left_open`` ("X or Y"), ``twisted`` (a sentence with another number or
      the opposite), ``namesake`` (Robert for John Kennedy), ``only_asked_words`` (the
      question said it), ``declines`` ("I don't know").
    - Around: ``references_found`` (their share), lengths, and what kind of thing is asked.

    >>> features = match_features("When was the landing?", ["20 July 1969"], "It was in July 1969.")
    >>> features["date_coarser"], features["contained"]
    (1.0, 0.0)
    """
    asked = read_words(question or "")
    asked_stems = frozenset(stem(form) for form in asked.forms if form not in FUNCTION_WORDS)
    given = GivenAnswer(answer, asked_stems)
    matches = [match for text in expected if (match := match_reference(text, given)) is not None]
    if not matches:
        return dict.fromkeys(NAMES, 0.0) | _question_kind(asked)
    best = max(matches, key=_strength)
    best["references_found"] = sum(_is_found(match) for match in matches) / len(matches)
    best["references"] = math.log(min(len(matches), _MOST_REFERENCES))
    best["reference_length"] = math.log(min(best.pop("reference_words"), _LONGEST_REFERENCE))
    best["answer_length"] = math.log(min(max(len(given.words), 1), _LONGEST_ANSWER))
    best["names_in_opening"] = math.log1p(_names_in_opening(given))
    best["declines"] = float(declines(answer))
    best["declines_but_contained"] = best["declines"] * best["contained"]
    return best | _question_kind(asked)


def _strength(match: dict[str, float]) -> float:
    return sum(factor * match[name] for name, factor in _STRENGTH.items())


def _is_found(match: dict[str, float]) -> bool:
    return bool(match["contained"] or match["key_recall"] >= 1 or match["date_same"] >= 1) and not match["negated"]


def _names_in_opening(given: GivenAnswer) -> int:
    """New capitalised words of the first sentence: who else the answer may be about."""
    count = 0
    for place in given.news:
        if given.words.sentences[place]:
            break
        count += place > 0 and given.words.capitals[place]
    return count


def _question_kind(asked: Words) -> dict[str, float]:
    line = f" {' '.join(asked.forms)} "
    return {kind: float(any(f" {word} " in line for word in words)) for kind, words in _KINDS.items()}
