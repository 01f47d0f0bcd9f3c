"""How relevant passages are to a question: by the meaning of their parts, and by the words of question and answer."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import exp
from typing import Any

from agentunit_local.answer_matching.aliases import MONTHS
from agentunit_local.answer_matching.number_words import CARDINALS, ORDINALS, SCALES
from agentunit_local.answer_matching.quantities import UNITS
from agentunit_local.grounding.evidence import Context, ContextSentence
from agentunit_local.grounding.figures import Figures, beyond, figures_of, share_stated
from agentunit_local.grounding.segments import is_content, stem, words_of

_PART_SENTENCES = 3
_MOST_PARTS = 12
_CITATION = re.compile(r"\[\d+(?:\s*[,;–-]\s*\d+)*\]")
_SAYS_NOTHING = frozenset({"yes", "no", "true", "fals", "none", "null", "na"})
_UNIT_WORDS = [word for word in UNITS if word.isalpha()]
_FIGURE_WORDS = frozenset(map(stem, [*CARDINALS, *ORDINALS, *SCALES, *MONTHS, *_UNIT_WORDS, "pm"]))


@dataclass(frozen=True)
class Answer:
    """What an answer says beyond its question: its words, those of its figures apart, and its figures."""

    text: str
    words: frozenset[str]
    figure_words: frozenset[str]
    figures: Figures

    @classmethod
    def of(cls, text: str, question: str) -> Answer | None:
        """``None`` for an answer that a passage cannot hold: "Yes.", "B", or words of the question.

        >>> Answer.of("They are.", "Are dogs allowed?") is None
        True
        >>> sorted(Answer.of("In May 1969 [2].", "When?").figure_words)
        ['1969', 'may']
        """
        text = _CITATION.sub(" ", text)
        asked = frozenset(map(stem, words_of(question)))
        figures = beyond(figures_of(text), figures_of(question))
        own = [word for word in words_of(text) if stem(word) not in asked]
        # The month of May is a word without content elsewhere.
        stems = frozenset(
            stem(word)
            for word in own
            if (is_content(word) and (len(word) > 1 or word.isdigit())) or (figures.dates and stem(word) in MONTHS)
        )
        stems -= _SAYS_NOTHING
        if not stems and not figures.n:
            return None
        of_figures = frozenset(each for each in stems if each[0].isdigit() or (figures.n and each in _FIGURE_WORDS))
        return cls(text, stems - of_figures, of_figures, figures)

    def held_by(self, sentences: Sequence[ContextSentence], figures: Sequence[Figures]) -> float:
        """Which share of it sentences hold that state these figures. Figures count in any spelling."""
        found = frozenset[str]().union(*(each.content for each in sentences))
        n_words = len(self.words & found)
        stated = share_stated(self.figures, figures)
        if stated is None:
            return (n_words + len(self.figure_words & found)) / max(1, len(self.words | self.figure_words))
        return (n_words + stated * self.figures.n) / (len(self.words) + self.figures.n)


def relevances(
    question: str, answers: Sequence[Answer], passages: Sequence[str], weights: Mapping[str, float]
) -> Generator[list[str], Sequence[Any], list[float]]:
    """The probability that each passage helps with a question, 0 to 1; an empty passage does not.

    Of several answers, the one that a passage fits best counts. ``weights`` are those with an answer where there is
    one. In steps: yields the texts that must be encoded, and is sent their vectors.
    """
    all_signals = yield from relevance_signals(question, answers, passages)
    return [_probability(signals, weights) for signals in all_signals]


def _probability(signals: Sequence[Mapping[str, float]], weights: Mapping[str, float]) -> float:
    if not signals:
        return 0.0
    totals = [weights["intercept"] + sum(weights[name] * value for name, value in each.items()) for each in signals]
    return 1 / (1 + exp(-max(-30.0, min(30.0, max(totals)))))


def relevance_signals(
    question: str, answers: Sequence[Answer], passages: Sequence[str]
) -> Generator[list[str], Sequence[Any], list[list[dict[str, float]]]]:
    """What speaks for each passage: by the question alone, or once for each answer. Nothing speaks for an empty one.

    By the question: the likeness in meaning of its best part (without an answer, of the whole too), and the question's
    words in one sentence. By an answer: the likeness of the best part to it, and how much of what it says beyond the
    question is in one sentence and in all.
    """
    asked = list(dict.fromkeys([question, *(answer.text for answer in answers)]))
    wanted = _content(question).union(*(answer.words | answer.figure_words for answer in answers))
    with_figures = any(answer.figures.n for answer in answers)
    vectors = dict(zip(asked, (yield asked), strict=True))
    found: list[list[dict[str, float]]] = []
    for passage in passages:
        context = Context([passage])
        if not context.sentences:
            found.append([])
            continue
        shares = _shares(_content(question), context)
        figures = [figures_of(each.sentence.text) for each in context.sentences] if with_figures else []
        parts = _parts(context, _shares(wanted, context))
        # A short passage is its own only part: the same text is not read twice.
        texts = list(dict.fromkeys([*parts, *([] if answers else [passage])]))
        read = dict(zip(texts, (yield texts), strict=True))
        likeness = {text: max(float(read[part] @ vector) for part in parts) for text, vector in vectors.items()}
        by_question = {"part": likeness[question], "words": max(shares)}
        if answers:
            found.append(
                [
                    {**by_question, "answer": likeness[answer.text], "answer_words": _held(answer, context, figures)}
                    for answer in answers
                ]
            )
        else:
            found.append([{**by_question, "whole": float(read[passage] @ vectors[question])}])
    return found


def _parts(context: Context, shares: Sequence[float]) -> list[str]:
    """Some sentences at a time; of a long passage those that hold most of what is asked: encoding takes time."""
    step = _PART_SENTENCES - 1
    starts = sorted(range(0, len(shares), step), key=lambda at: -max(shares[at : at + _PART_SENTENCES]))[:_MOST_PARTS]
    return [" ".join(each.sentence.text for each in context.sentences[at : at + _PART_SENTENCES]) for at in starts]


def _content(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words_of(text) if is_content(word))


def _shares(wanted: frozenset[str], context: Context) -> list[float]:
    """Which share of words each sentence holds."""
    return [len(wanted & each.content) / max(1, len(wanted)) for each in context.sentences]


def _held(answer: Answer, context: Context, figures: Sequence[Figures]) -> float:
    """Which share of an answer a passage holds: half by its best sentence, half by all of them."""
    by_sentence = zip_longest(context.sentences, figures)
    best = max(answer.held_by([each], [] if stated is None else [stated]) for each, stated in by_sentence)
    return (best + answer.held_by(context.sentences, figures)) / 2
