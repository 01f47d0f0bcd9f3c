"""Which sentences of the context bear on a sentence of the answer."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from agentunit_local.grounding.segments import Sentence, is_content, split_sentences, stem, words_of

EVIDENCE_WORDS = 220
_BIGRAM_WEIGHT = 0.5
_NEIGHBOUR_SHARE = 0.35
_OPENING_SCORE = 0.05

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class ContextSentence:
    """A sentence of the context, the passage it stands in, and its words; ``spelt`` has them in small letters."""

    sentence: Sentence
    passage: int
    spelt: str
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
                spelt = f" {' '.join(words)} ".lower()
                self.sentences.append(ContextSentence(sentence, number, spelt, stems, content, bigrams))
        self._with_word = _places(sentence.content for sentence in self.sentences)
        self._with_pair = _places(sentence.bigrams for sentence in self.sentences)
        n_sentences = len(self.sentences)
        self._weights = {each: log(1 + n_sentences / len(places)) for each, places in self._with_word.items()}
        self.stems = frozenset(each for sentence in self.sentences for each in sentence.stems)
        self.bigrams = frozenset(self._with_pair)
        self.n_words = sum(len(sentence.stems) for sentence in self.sentences)
        # A long sentence meets more words by chance.
        self._dampers = np.array([(len(sentence.stems) + 8) ** 0.3 for sentence in self.sentences])
        owners = np.array([sentence.passage for sentence in self.sentences], np.intp)
        self._continues = owners[1:] == owners[:-1]

    def weight(self, word: str) -> float:
        """How telling a word of the context is: the rarer in it, the more."""
        return self._weights.get(word, 0.0)

    def closest(self, wanted: Iterable[str]) -> tuple[int, ContextSentence | None]:
        """How many of some stems the sentence with the most of them holds, and that sentence (the first of equals)."""
        counts = self._summed(dict.fromkeys(wanted, 1.0), self._with_word)
        best = int(counts.argmax()) if len(counts) else 0
        return (int(counts[best]), self.sentences[best]) if counts.any() else (0, None)

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
        pairs = {each: _BIGRAM_WEIGHT for each in itertools.pairwise(stems) if each in self.bigrams}
        scores = self._scores(wanted, pairs)
        shares = self._with_neighbours(scores)
        chosen: list[int] = []
        left = budget
        while left > 0:
            shares[chosen] = 0.0
            best = int(shares.argmax())
            if shares[best] <= 0:
                break
            sentence = self.sentences[best]
            chosen.append(best)
            left -= len(sentence.stems)
            covered = [each for each in wanted if each in sentence.content]
            if covered:
                for each in covered:
                    wanted[each] *= 0.5
                pairs = {each: weight for each, weight in pairs.items() if each not in sentence.bigrams}
                touched = np.concatenate([self._with_word[each] for each in covered])
                scores[touched] = self._scores(wanted, pairs)[touched]
                shares = self._with_neighbours(scores)
        return sorted(chosen)

    def _scores(self, wanted: Mapping[str, float], pairs: Mapping[tuple[str, str], float]) -> Floats:
        met = self._summed(wanted, self._with_word)
        scores: Floats = np.where(met > 0, (met + self._summed(pairs, self._with_pair)) / self._dampers, 0.0)
        return scores

    def _summed(self, weights: Mapping[Key, float], places: Mapping[Key, Places]) -> Floats:
        """For each sentence, the weights of what it holds, always added up in the same order."""
        total = np.zeros(len(self.sentences))
        for each, weight in weights.items():
            if each in places:
                total[places[each]] += weight
        return total

    def _with_neighbours(self, scores: Floats) -> Floats:
        shares: Floats = scores.copy()
        lent = np.where(self._continues, _NEIGHBOUR_SHARE, 0.0)
        shares[1:] = np.maximum(shares[1:], lent * scores[:-1])
        shares[:-1] = np.maximum(shares[:-1], lent * scores[1:])
        shares[0] = max(shares[0], _OPENING_SCORE)
        shares[1:] = np.maximum(shares[1:], np.where(self._continues, 0.0, _OPENING_SCORE))
        return shares


def _places(held: Iterable[frozenset[Any]]) -> dict[Any, Places]:
    """In which sentences each thing stands."""
    found: defaultdict[Any, list[int]] = defaultdict(list)
    for number, things in enumerate(held):
        for each in things:
            found[each].append(number)
    return {each: np.array(numbers, np.intp) for each, numbers in found.items()}
