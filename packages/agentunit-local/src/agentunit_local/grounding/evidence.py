"""Which sentences of the context bear on a sentence of the answer."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import log
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from agentunit_local.grounding.segments import Sentence, is_content, split_sentences, stem, words_of

EVIDENCE_WORDS = 220
_BIGRAM_WEIGHT = 0.5
_NEIGHBOUR_SHARE = 0.35
_OPENING_SCORE = 0.05
# A passage bears on a claim that holds this share of the claim's words that the best passage holds.
_BEARING_SHARE = 0.5

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
        self.sentences: list[ContextSentence] = []
        parted = [split_sentences(passage) for passage in passages]
        # Where two sentences do equally well, the order of passages must not decide. But passages of one sentence may
        # be a document that was given sentence by sentence, whose order means something.
        order = sorted(
            range(len(passages)), key=lambda n: (len(parted[n]) > 1, passages[n] if len(parted[n]) > 1 else "")
        )
        for number in order:
            for sentence in parted[number]:
                words = words_of(sentence.text)
                stems = tuple(map(stem, words))
                content = frozenset(compress(stems, map(is_content, words)))
                bigrams = frozenset(itertools.pairwise(stems))
                spelt = f" {' '.join(words)} ".lower()
                self.sentences.append(ContextSentence(sentence, number, spelt, stems, content, bigrams))
        self._with_word = _places(sentence.content for sentence in self.sentences)
        self._with_pair = _places(sentence.bigrams for sentence in self.sentences)
        self.bigrams = frozenset(self._with_pair)
        self._sizes = Counter(sentence.passage for sentence in self.sentences)
        # A long sentence meets more words by chance.
        self._dampers = np.array([(len(sentence.stems) + 8) ** 0.3 for sentence in self.sentences])
        owners = np.array([sentence.passage for sentence in self.sentences], np.intp)
        self._continues = owners[1:] == owners[:-1]

    def evidence_for(self, claim: str, budget: int = EVIDENCE_WORDS) -> list[int]:
        """The numbers of the sentences that bear most on a claim, within ``budget`` words, as the model reads them.

        Passages that hold little of the claim are left out: beside others they would only be in the way. Each sentence
        chosen is the one that adds most: words of the claim that are not covered yet count in full,
        covered ones by half. Neighbours of telling sentences and the opening of a passage come next: they say who
        "she" is.
        """
        words = words_of(claim)
        stems = [stem(word) for word in words]
        content = frozenset(each for each, word in zip(stems, words, strict=True) if is_content(word))
        bearing = self._bearing(content)
        open_to = np.array([each.passage in bearing for each in self.sentences])
        if sum(len(each.stems) for each, is_open in zip(self.sentences, open_to, strict=True) if is_open) <= budget:
            return self._in_order(np.flatnonzero(open_to).tolist(), bearing)
        wanted = self._weights([each for each in dict.fromkeys(stems) if each in content], open_to)
        pairs = {each: _BIGRAM_WEIGHT for each in itertools.pairwise(stems) if each in self.bigrams}
        scores = np.where(open_to, self._scores(wanted, pairs), 0.0)
        shares = np.where(open_to, self._with_neighbours(scores), 0.0)
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
                touched = np.concatenate([_array(self._with_word[each]) for each in covered])
                scores[touched] = np.where(open_to, self._scores(wanted, pairs), 0.0)[touched]
                shares = np.where(open_to, self._with_neighbours(scores), 0.0)
        return self._in_order(chosen, bearing)

    def _weights(self, words: Iterable[str], open_to: NDArray[np.bool_]) -> dict[str, float]:
        """How telling each word is: the rarer in the sentences that are open to choice, the more."""
        held = self._with_word
        counts = {each: int(open_to[_array(held[each])].sum()) for each in words if each in held}
        return {each: log(1 + int(open_to.sum()) / count) for each, count in counts.items() if count}

    def _bearing(self, content: frozenset[str]) -> dict[int, int]:
        """The passages that bear on a claim, with how many of its words each holds.

        A passage of one sentence is kept: a document may have been given sentence by sentence.
        """
        held: Counter[int] = Counter()
        for each in content & self._with_word.keys():
            held.update({self.sentences[number].passage for number in self._with_word[each]})
        least = _BEARING_SHARE * max(held.values(), default=0)
        return {number: held[number] for number, size in self._sizes.items() if size == 1 or held[number] >= least}

    def _in_order(self, chosen: Iterable[int], bearing: Mapping[int, int]) -> list[int]:
        """Sentences in the order of their passage; passages that hold most of the claim first, wherever they stand.

        Passages of one sentence stay together, in the order they were given.
        """
        alone = max((held for passage, held in bearing.items() if self._sizes[passage] == 1), default=0)

        def place(number: int) -> tuple[int, int]:
            passage = self.sentences[number].passage
            return -(alone if self._sizes[passage] == 1 else bearing[passage]), number

        return sorted(chosen, key=place)

    def _scores(self, wanted: Mapping[str, float], pairs: Mapping[tuple[str, str], float]) -> Floats:
        met = self._summed(wanted, self._with_word)
        scores: Floats = np.where(met > 0, (met + self._summed(pairs, self._with_pair)) / self._dampers, 0.0)
        return scores

    def _summed(self, weights: Mapping[Key, float], places: Mapping[Key, list[int]]) -> Floats:
        """For each sentence, the weights of what it holds, always added up in the same order."""
        total = np.zeros(len(self.sentences))
        for each, weight in weights.items():
            if each in places:
                total[_array(places[each])] += weight
        return total

    def _with_neighbours(self, scores: Floats) -> Floats:
        shares: Floats = scores.copy()
        lent = np.where(self._continues, _NEIGHBOUR_SHARE, 0.0)
        shares[1:] = np.maximum(shares[1:], lent * scores[:-1])
        shares[:-1] = np.maximum(shares[:-1], lent * scores[1:])
        shares[0] = max(shares[0], _OPENING_SCORE)
        shares[1:] = np.maximum(shares[1:], np.where(self._continues, 0.0, _OPENING_SCORE))
        return shares


def _places(held: Iterable[frozenset[Any]]) -> dict[Any, list[int]]:
    """In which sentences each thing stands. Of all things a claim asks for few, so only those become arrays."""
    found: defaultdict[Any, list[int]] = defaultdict(list)
    for number, things in enumerate(held):
        for each in things:
            found[each].append(number)
    return found


def _array(numbers: list[int]) -> Places:
    return np.array(numbers, np.intp)
