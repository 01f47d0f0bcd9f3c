"""The claims of an answer: its sentences, with what a reader needs to understand each."""

from __future__ import annotations

from dataclasses import dataclass

from agentunit_local.grounding.segments import split_sentences, words_of

_SHORT_WORDS = 6


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the answer, where it stands, and the text that is compared with the context."""

    text: str
    start: int
    end: int
    asked: str


def claims_of(answer: str, question: str | None = None) -> list[Claim]:
    """The claims of an answer. A bare answer ("In 1969") says something only together with its question.

    >>> [claim.asked for claim in claims_of("In 1969", "When was it?")]
    ['When was it? In 1969']
    >>> [claim.text for claim in claims_of("It was in 1969. Armstrong was the first man there.")]
    ['It was in 1969.', 'Armstrong was the first man there.']
    """
    sentences = split_sentences(answer)
    bare = len(sentences) == 1 and question and len(words_of(answer)) <= _SHORT_WORDS
    return [
        Claim(each.text, each.start, each.end, f"{question} {each.text}" if bare else each.text) for each in sentences
    ]
