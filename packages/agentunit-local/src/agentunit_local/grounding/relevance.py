"""How relevant a passage is to a question: by the meaning of its parts, and by the question's words."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from math import exp
from typing import Any

from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.segments import is_content, stem, words_of

_PART_SENTENCES = 3
_MOST_PARTS = 12


def passage_relevance(
    question: str, passage: str, weights: Mapping[str, float]
) -> Generator[list[str], Sequence[Any], float]:
    """The probability that a passage helps with a question, 0 to 1; an empty passage does not.

    In steps: yields the texts that must be encoded, and is sent their vectors.
    """
    context = Context([passage])
    if not context.sentences:
        return 0.0
    signals = yield from relevance_signals(question, passage, context)
    total = weights["intercept"] + sum(weights[name] * value for name, value in signals.items())
    return 1 / (1 + exp(-max(-30.0, min(30.0, total))))


def relevance_signals(
    question: str, passage: str, context: Context
) -> Generator[list[str], Sequence[Any], dict[str, float]]:
    """The likeness in meaning of the whole passage and of its best part, and the question's words in one sentence."""
    wanted = frozenset(stem(word) for word in words_of(question) if is_content(word))
    shares = [len(wanted & each.content) / max(1, len(wanted)) for each in context.sentences]
    step = _PART_SENTENCES - 1
    # Of a long passage, the parts that hold most of the question's words are enough: encoding is what takes time.
    starts = sorted(range(0, len(shares), step), key=lambda at: -max(shares[at : at + _PART_SENTENCES]))[:_MOST_PARTS]
    parts = [" ".join(each.sentence.text for each in context.sentences[at : at + _PART_SENTENCES]) for at in starts]
    # A short passage is its own only part: the same text is not read twice.
    texts = list(dict.fromkeys([question, passage, *parts]))
    found = yield texts
    vectors = dict(zip(texts, found, strict=True))
    asked, whole = vectors[question], vectors[passage]
    met = max(shares)
    return {"whole": float(whole @ asked), "part": max(float(vectors[part] @ asked) for part in parts), "words": met}
