"""How far an answer is supported by its context: the model's word and plain comparison, put together."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from agentunit_local.grounding.claims import Claim, claims_of
from agentunit_local.grounding.cross_encoder import LARGEST_LOGIT, CrossEncoder, PairScore
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.kinds import kind_of
from agentunit_local.grounding.lexical import Compared, compared
from agentunit_local.grounding.segments import stem, words_of
from agentunit_local.steps import answered

_COPIED_WORDS = 4
_MARKS_AROUND = " .!?…。！？\"'“”‘’()[]*•▪"
_MEAN_POWER, _VOTE_POWER = 4, 8
_UNSUPPORTED = -1.0
"""From this score down a claim counts as unsupported; the mean over claims takes all such claims alike."""


@dataclass(frozen=True)
class Mix:
    """How the parts of a claim's score are put together, and how scores become probabilities.

    Each part is centred and scaled by what it is on the development sets, then weighted. ``thresholds`` say from which
    value on an answer of a kind counts as supported.
    """

    centres: dict[str, float]
    scales: dict[str, float]
    weights: dict[str, float]
    slope: float
    intercept: float
    thresholds: dict[str, float]

    def claim_score(self, score: PairScore, comparison: Compared) -> float:
        """What the model and the comparison say of a claim; 0 is an average claim of the development sets."""
        total = self._scaled("logit", score.logit) + self._scaled("words", comparison.words)
        total += self._scaled("figures", comparison.figures)
        return total if score.worst_logit is None else total + self._scaled("token", -score.worst_logit)

    @property
    def highest(self) -> float:
        """The score of a claim of which nothing is doubted."""
        certain = {"logit": LARGEST_LOGIT, "token": LARGEST_LOGIT, "words": 1.0, "figures": 1.0}
        return sum(self._scaled(part, value) for part, value in certain.items())

    def _scaled(self, part: str, value: float) -> float:
        return self.weights[part] * (value - self.centres[part]) / self.scales[part]

    def probability(self, score: float) -> float:
        """A score as a probability."""
        return 1 / (1 + exp(-max(-30.0, min(30.0, self.slope * score + self.intercept))))

    def answer_score(self, claims: Sequence[float]) -> float:
        """The score of an answer from those of its claims; that of one claim is its own, unless it is unsupported.

        A claim's doubt is what it lacks to the highest score. Half of the answer's doubt is the mean over its claims
        (of fourth powers, no claim counting worse than unsupported), half is what all doubts add up to (their norm of
        power 8: the largest, and a little more for each further one). **A claim that is unsupported, or more doubtful
        than the mean, never raises the score**: it raises both halves of the doubt.
        """
        highest = self.highest
        doubts = [max(0.0, highest - each) for each in claims]
        powers = [min(each, highest - _UNSUPPORTED) ** _MEAN_POWER for each in doubts]
        mean = (sum(powers) / len(powers)) ** (1.0 / _MEAN_POWER)
        vote = sum([each**_VOTE_POWER for each in doubts], 0.0) ** (1.0 / _VOTE_POWER)
        return float(highest - (mean + vote) / 2)


@dataclass(frozen=True, slots=True)
class SupportedClaim:
    """A claim of the answer with its probability, the passage that bears most on it, and its doubtful parts."""

    claim: Claim
    probability: float
    passage: int | None
    evidence: str | None
    doubtful: tuple[dict[str, Any], ...]
    copied: bool


@dataclass(frozen=True)
class Support:
    """An answer's support: the value, the claims, and how much of the context was read closely.

    ``kind`` is the kind of the answer, ``threshold`` the value from which an answer of that kind counts as supported.
    """

    value: float
    kind: str
    threshold: float
    claims: list[SupportedClaim]
    n_context_sentences: int
    n_evidence_tokens_left_out: int
    n_claim_tokens_left_out: int


Pair = tuple[str, str]


class SupportJudge:
    """Judges answers against contexts with one cross-encoder."""

    def __init__(self, model: CrossEncoder, mix: Mix) -> None:
        self._model = model
        self._mix = mix

    def judge(self, question: str | None, passages: Sequence[str], answer: str) -> Support | None:
        """The support of an answer; ``None`` when the answer holds no claim or the context no sentence."""
        return answered(self.steps(question, passages, answer), self._model.score)

    def steps(
        self, question: str | None, passages: Sequence[str], answer: str
    ) -> Generator[list[Pair], Sequence[PairScore], Support | None]:
        """The same in steps: yields the pairs that the model must read, and is sent their scores."""
        claims = claims_of(answer, question)
        context = Context(passages)
        if not claims or not context.sentences:
            return None
        chosen = [context.evidence_for(claim.asked) for claim in claims]
        whole = frozenset(same_sentence(each.sentence.text) for each in context.sentences)
        verbatim = [same_sentence(claim.text) in whole for claim in claims]
        copied = [verbatim[n] or is_copied(claim.text, context) for n, claim in enumerate(claims)]
        # The model is not asked about copied claims.
        asked = [number for number in range(len(claims)) if not copied[number]]
        pairs = [PairScore(LARGEST_LOGIT, -LARGEST_LOGIT)] * len(claims)
        given = yield [(_joined(context, chosen[number]), claims[number].text_for_model) for number in asked]
        for number, score in zip(asked, given, strict=True):
            pairs[number] = score
        scores = [
            self._mix.highest if verbatim[n] else self._mix.claim_score(pairs[n], compared(claim.text, found))
            for n, claim in enumerate(claims)
            for found in [[context.sentences[number] for number in chosen[n]]]
        ]
        described = [
            self._described(
                claims[n],
                1.0 if verbatim[n] else self.claim_probability(scores[n]),
                pairs[n],
                context,
                chosen[n],
                copied[n],
            )
            for n in range(len(claims))
        ]
        # The mix never reaches 1: an answer that only repeats sentences of the context is fully grounded by definition.
        value = 1.0 if all(verbatim) else self._mix.probability(self._mix.answer_score(scores))
        kind = kind_of(question, len(claims))
        return Support(
            round(value, 6),
            kind,
            self._mix.thresholds[kind],
            described,
            len(context.sentences),
            sum(pair.n_evidence_tokens_left_out for pair in pairs),
            sum(pair.n_claim_tokens_left_out for pair in pairs),
        )

    def claim_probability(self, score: float) -> float:
        """The probability that a claim is supported: that of an answer which is this claim alone."""
        return self._mix.probability(self._mix.answer_score([score]))

    def _described(
        self, claim: Claim, probability: float, pair: PairScore, context: Context, chosen: list[int], copied: bool
    ) -> SupportedClaim:
        words = frozenset(stem(word) for word in words_of(claim.asked))
        best = max(chosen, key=lambda n: len(context.sentences[n].content & words), default=None)
        nearest = None if best is None or not context.sentences[best].content & words else context.sentences[best]
        shift = claim.start - (len(claim.asked) - len(claim.text))
        doubtful = tuple(
            {"start": start + shift, "end": min(end + shift, claim.end), "probability": risk}
            for start, end, risk in _merged(
                [each for each in pair.doubtful if claim.start <= each[0] + shift < claim.end]
            )
        )
        return SupportedClaim(
            claim,
            round(probability, 4),
            None if nearest is None else nearest.passage,
            None if nearest is None else nearest.sentence.text,
            doubtful,
            copied,
        )


def _joined(context: Context, chosen: Sequence[int]) -> str:
    return " ".join(context.sentences[number].sentence.text for number in chosen)


def is_copied(claim: str, context: Context) -> bool:
    """Whether a claim stands word for word in one sentence of the context: nothing is left to judge then."""
    stems = tuple(stem(word) for word in words_of(claim))
    if len(stems) < _COPIED_WORDS or not context.bigrams.issuperset(itertools.pairwise(stems)):
        return False
    wanted = f" {' '.join(words_of(claim))} ".lower()
    return any(wanted in each.spelt for each in context.sentences)


def same_sentence(text: str) -> str:
    """A sentence without what does not change its meaning: letter case, spacing, and the marks around it.

    >>> same_sentence(" The Museum  opens at nine. ") == same_sentence("the museum opens at nine")
    True
    >>> same_sentence("It is -5 degrees.") == same_sentence("It is 5 degrees.")
    False
    """
    return " ".join(text.split()).strip(_MARKS_AROUND).casefold()


def _merged(parts: Sequence[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """Doubtful tokens side by side as one part, with the highest doubt of them."""
    merged: list[tuple[int, int, float]] = []
    for start, end, risk in parts:
        if merged and start - merged[-1][1] <= 1:
            merged[-1] = merged[-1][0], end, max(risk, merged[-1][2])
        else:
            merged.append((start, end, risk))
    return merged
