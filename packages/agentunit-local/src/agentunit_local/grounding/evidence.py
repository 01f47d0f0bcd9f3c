"""Which sentences of the context bear on a sentence of the answer."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, log

from agentunit_local.grounding.segments import Sentence, is_content, split_sentences, stem, words_of

EVIDENCE_WORDS = 220
_BIGRAM_WEIGHT = 0.5
_NEIGHBOUR_SHARE = 0.35
_OPENING_SCORE = 0.05


@dataclass(frozen=True, slots=True)
class ContextSentence:
    """A sentence of the context, the passage it stands in, and its words."""

    sentence: Sentence
    passage: int
    stems: tuple[str, ...]
    content: frozenset[str]
    bigrams: frozenset[tuple[str, str]]


class Context:
    """The passages of one case, read once for all sentences of the answer."""

    def __init__(self, passages: Sequence[str]) -> None:
        self.passages = list(passages)
        self.sentences: list[ContextSentence] = []
        for number, passage in enumerate(self.passages):
            for sentence in split_sentences(passage):
                words = words_of(sentence.text)
                stems = tuple(stem(word) for word in words)
                content = frozenset(each for each, word in zip(stems, words, strict=True) if is_content(word))
                bigrams = frozenset(itertools.pairwise(stems))
                self.sentences.append(ContextSentence(sentence, number, stems, content, bigrams))
        self._holding: defaultdict[str, list[int]] = defaultdict(list)
        for number, held in enumerate(self.sentences):
            for each in held.content:
                self._holding[each].append(number)
        n_sentences = len(self.sentences)
        self._weights = {each: log(1 + n_sentences / len(held)) for each, held in self._holding.items()}
        self._openings = frozenset(number for number in range(n_sentences) if not self._neighbours(number, (-1,)))
        self.stems = frozenset(each for sentence in self.sentences for each in sentence.stems)
        self.bigrams = frozenset().union(*(sentence.bigrams for sentence in self.sentences))
        self.n_words = sum(len(sentence.stems) for sentence in self.sentences)

    def weight(self, word: str) -> float:
        """How telling a word of the context is: the rarer in it, the more."""
        return self._weights.get(word, 0.0)

    def evidence_for(self, claim: str, budget: int = EVIDENCE_WORDS) -> list[int]:
        """The numbers of the sentences that bear most on a claim, in the order of the context, within ``budget`` words.

        Each sentence chosen is the one that adds most: words of the claim that are not covered yet count in full,
        covered ones by half. Neighbours of telling sentences and the opening of a passage come next: they say who
        "she" is.
        """
        if self.n_words <= budget:
            return list(range(len(self.sentences)))
        words = words_of(claim)
        stems = [stem(word) for word in words]
        wanted = {each: self.weight(each) for each, word in zip(stems, words, strict=True) if is_content(word)}
        wanted = {each: weight for each, weight in wanted.items() if weight}
        pairs = set(itertools.pairwise(stems)) & self.bigrams
        scores = [self._score(sentence, wanted, pairs) for sentence in self.sentences]
        shares = self._with_neighbours(scores)
        chosen: set[int] = set()
        left = budget
        while left > 0:
            best = max(
                (number for number in range(len(shares)) if number not in chosen), key=shares.__getitem__, default=None
            )
            if best is None or (shares[best] <= 0 and chosen):
                break
            sentence = self.sentences[best]
            chosen.add(best)
            left -= len(sentence.stems)
            covered = sentence.content & wanted.keys()
            if covered:
                for each in covered:
                    wanted[each] *= 0.5
                pairs -= sentence.bigrams
                for number, other in enumerate(self.sentences):
                    if scores[number] and other.content & covered:
                        scores[number] = self._score(other, wanted, pairs)
                shares = self._with_neighbours(scores)
        return sorted(chosen)

    def _score(self, sentence: ContextSentence, wanted: dict[str, float], pairs: set[tuple[str, str]]) -> float:
        met = sum(wanted[each] for each in sentence.content & wanted.keys())
        if not met:
            return 0.0
        met += _BIGRAM_WEIGHT * len(sentence.bigrams & pairs)
        # A long sentence meets more words by chance.
        return float(met / (len(sentence.stems) + 8) ** 0.3)

    def _with_neighbours(self, scores: list[float]) -> list[float]:
        shares = list(scores)
        for number, sentence in enumerate(self.sentences):
            for other in (number - 1, number + 1):
                if 0 <= other < len(scores) and self.sentences[other].passage == sentence.passage:
                    shares[number] = max(shares[number], _NEIGHBOUR_SHARE * scores[other])
            if number == 0 or self.sentences[number - 1].passage != sentence.passage:
                shares[number] = max(shares[number], _OPENING_SCORE)
        return shares
