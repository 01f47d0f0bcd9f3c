"""What can be said of a claim's support by comparing its words and numbers with the evidence for it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from agentunit_local.grounding.evidence import ContextSentence
from agentunit_local.grounding.figures import figures_of, share_stated
from agentunit_local.grounding.segments import is_content, stem, words_of


@dataclass(frozen=True, slots=True)
class Compared:
    """The shares of a claim that its evidence holds, each 0 to 1.

    ``content`` counts words, ``triples`` runs of three, ``one_sentence`` the words in the sentence that has most of
    them, ``figures`` numbers, dates and times (1 where the claim has none: nothing in it is unsupported).
    """

    content: float
    triples: float
    one_sentence: float
    figures: float

    @property
    def words(self) -> float:
        """The three shares of words in one."""
        return (self.content + self.triples + self.one_sentence) / 3


def compared(claim: str, evidence: Sequence[ContextSentence]) -> Compared:
    """How far the words and numbers of a claim stand in the sentences that bear on it.

    Names are words here: telling them by their capitals would make a score depend on letter case.

    >>> from agentunit_local.grounding.evidence import Context
    >>> found = compared("Ann paid 30 euros.", Context(["Ann paid 20 euros."]).sentences)
    >>> found.content, found.figures
    (0.75, 0.0)
    """
    words = words_of(claim)
    if not words:
        return Compared(0.0, 0.0, 0.0, 0.0)
    stems = [stem(word) for word in words]
    content = [each for each, word in zip(stems, words, strict=True) if is_content(word)] or stems
    known = frozenset(itertools.chain.from_iterable(each.stems for each in evidence))
    known_pairs = frozenset(itertools.chain.from_iterable(each.bigrams for each in evidence))
    pairs = [pair in known_pairs for pair in itertools.pairwise(stems)]
    # A triple counts as known when both its pairs are: exact triples would need an index of their own.
    triples = [first and second for first, second in itertools.pairwise(pairs)] or pairs or [False]
    wanted = frozenset(content)
    most = max((len(wanted & each.content) for each in evidence), default=0)
    stated = share_stated(figures_of(claim), (figures_of(each.sentence.text) for each in evidence))
    return Compared(
        sum(each in known for each in content) / len(content),
        sum(triples) / len(triples),
        most / len(wanted),
        1.0 if stated is None else stated,
    )
