"""How far an answer is supported by its context: the model's word and plain comparison, put together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from agentunit_local.grounding.claims import Claim, claims_of
from agentunit_local.grounding.cross_encoder import LARGEST_LOGIT, CrossEncoder, PairScore
from agentunit_local.grounding.evidence import Context
from agentunit_local.grounding.lexical import FEATURES, lexical_features
from agentunit_local.grounding.segments import stem, words_of

_COPIED_WORDS = 4
_MARKS_AROUND = " .!?…。！？\"'“”‘’()[]*•▪"


@dataclass(frozen=True)
class Mix:
    """How the parts of a claim's score are put together, and how scores become probabilities.

    Each part is centred and scaled by what it is on the development sets, then weighted. An answer's score takes the
    model's part from its least supported third of claims (two thirds) and the least supported one (one third), and the
    comparison's part from all claims: one wrong claim among many shows, but does not hide the others.
    """

    centres: dict[str, float]
    scales: dict[str, float]
    weights: dict[str, float]
    slope: float
    intercept: float

    def model_part(self, score: PairScore) -> float:
        """What the model says of a claim."""
        part = self._scaled("logit", score.logit)
        if score.worst_logit is not None:
            part += self._scaled("token", -score.worst_logit)
        return part

    def compared_part(self, features: Sequence[float]) -> float:
        """What the comparison of words, numbers and names says of a claim."""
        known = dict(zip(FEATURES, features, strict=True))
        words = (known["content_precision"] + known["trigram_precision"] + known["best_sentence_coverage"]) / 3
        facts = (known["number_precision"] + known["name_precision"]) / 2
        return self._scaled("words", words) + self._scaled("facts", facts)

    def _scaled(self, part: str, value: float) -> float:
        return self.weights[part] * (value - self.centres[part]) / self.scales[part]

    def probability(self, score: float) -> float:
        """A score as a probability."""
        return 1 / (1 + exp(-max(-30.0, min(30.0, self.slope * score + self.intercept))))

    def answer_score(self, model_parts: Sequence[float], compared_parts: Sequence[float]) -> float:
        """The score of an answer from the parts of its claims."""
        least = sorted(model_parts)
        third = least[: -(-len(least) // 3)]
        judged = (2 * sum(third) / len(third) + least[0]) / 3
        return judged + sum(compared_parts) / len(compared_parts)


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
    """An answer's support: the value, the claims, and how much of the context was read closely."""

    value: float
    claims: list[SupportedClaim]
    n_context_sentences: int
    n_evidence_tokens_left_out: int
    n_claim_tokens_left_out: int


class SupportJudge:
    """Judges answers against contexts with one cross-encoder."""

    def __init__(self, model: CrossEncoder, mix: Mix) -> None:
        self._model = model
        self._mix = mix

    def judge(self, question: str | None, passages: Sequence[str], answer: str) -> Support | None:
        """The support of an answer; ``None`` when the answer holds no claim or the context no sentence."""
        claims = claims_of(answer, question)
        context = Context(passages)
        if not claims or not context.sentences:
            return None
        chosen = [context.evidence_for(claim.asked) for claim in claims]
        copied = [is_copied(claim.text, context) for claim in claims]
        whole = frozenset(same_sentence(each.sentence.text) for each in context.sentences)
        verbatim = [same_sentence(claim.text) in whole for claim in claims]
        asked = [n for n in range(len(claims)) if not copied[n] and not verbatim[n]]
        pairs = [(_joined(context, chosen[number]), claims[number].asked) for number in asked]
        scores = [PairScore(LARGEST_LOGIT, -LARGEST_LOGIT)] * len(claims)
        for number, score in zip(asked, self._model.score(pairs), strict=True):
            scores[number] = score
        model_parts = [self._mix.model_part(score) for score in scores]
        compared = [self._mix.compared_part(lexical_features(claim.text, context)) for claim in claims]
        found = [
            self._described(
                claims[n],
                1.0 if verbatim[n] else self._mix.probability(model_parts[n] + compared[n]),
                scores[n],
                context,
                chosen[n],
                copied[n] or verbatim[n],
            )
            for n in range(len(claims))
        ]
        # The mix never reaches 1: an answer that only repeats sentences of the context is fully grounded by definition.
        value = 1.0 if all(verbatim) else self._mix.probability(self._mix.answer_score(model_parts, compared))
        left_out = sum(score.n_evidence_tokens_left_out for score in scores)
        unread = sum(score.n_claim_tokens_left_out for score in scores)
        return Support(round(value, 6), found, len(context.sentences), left_out, unread)

    def _described(
        self, claim: Claim, probability: float, pair: PairScore, context: Context, chosen: list[int], copied: bool
    ) -> SupportedClaim:
        words = frozenset(stem(word) for word in words_of(claim.asked))
        best = max(chosen, key=lambda n: len(context.sentences[n].content & words), default=None)
        nearest = None if best is None or not context.sentences[best].content & words else context.sentences[best]
        shift = claim.start - (len(claim.asked) - len(claim.text))
        doubtful = tuple(
            {"start": start + shift, "end": end + shift, "probability": risk}
            for start, end, risk in _merged([each for each in pair.doubtful if each[0] + shift >= claim.start])
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
