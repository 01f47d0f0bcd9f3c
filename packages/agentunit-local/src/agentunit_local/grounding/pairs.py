"""Evidence and claim as the cross-encoder reads them: one row of token numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentunit_local.text_model import ModelFilesError, readable

_START, _END = "[CLS]", "[SEP]"


@dataclass(frozen=True, slots=True)
class PairOfTokens:
    """One pair: token numbers, and which of them are the claim's: ``n_claim`` from the place ``first`` on.

    ``said`` is the claim as the tokenizer gave it.
    """

    ids: list[int]
    first: int
    n_claim: int
    said: Any
    n_left_out: int
    n_claim_left_out: int

    @property
    def types(self) -> list[int]:
        """1 for the tokens of the claim and its end, 0 for the others."""
        return [0] * self.first + [1] * (self.n_claim + 1)

    @property
    def claim_places(self) -> list[tuple[int, tuple[int, int]]]:
        """The place of each token of the claim, and where in its text it stands."""
        return list(enumerate(self.said.offsets[: self.n_claim], self.first))


class PairTokens:
    """Turns pairs into tokens; ``length`` bounds a pair, and the evidence gives way to the claim."""

    def __init__(self, tokenizer: Any, length: int) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self._length = length
        self._start, self._end = tokenizer.token_to_id(_START), tokenizer.token_to_id(_END)
        if self._start is None or self._end is None:
            raise ModelFilesError(f"the tokenizer must know {_START} and {_END}, as those of BERT and its kin do")

    def encode(self, evidence: str, claim: str) -> PairOfTokens:
        """One pair; ``n_left_out`` and ``n_claim_left_out`` count the tokens for which there was no room."""
        said = self._tokenizer.encode(readable(claim), add_special_tokens=False)
        return self._joined(self._tokenizer.encode(readable(evidence), add_special_tokens=False).ids, said)

    def encode_all(self, pairs: Sequence[tuple[str, str]]) -> list[PairOfTokens]:
        """Many pairs, which are cut into tokens by several threads. What several pairs share is read once."""
        shown = {evidence: readable(evidence) for evidence, _ in pairs}
        # Only where the tokens of a claim stand is asked for; without that, tokens are found faster.
        cut = getattr(self._tokenizer, "encode_batch_fast", self._tokenizer.encode_batch)
        found = cut(list(shown.values()), add_special_tokens=False)
        ids = {evidence: each.ids for evidence, each in zip(shown, found, strict=True)}
        said = self._tokenizer.encode_batch([readable(claim) for _, claim in pairs], add_special_tokens=False)
        return [self._joined(ids[evidence], claim) for (evidence, _), claim in zip(pairs, said, strict=True)]

    def _joined(self, shown: list[int], said: Any) -> PairOfTokens:
        said_ids: Sequence[int] = said.ids
        claim_ids = said_ids[: self._length - 3]
        kept = shown[: self._length - 3 - len(claim_ids)]
        ids = [self._start, *kept, self._end, *claim_ids, self._end]
        n_claim = len(claim_ids)
        return PairOfTokens(ids, len(kept) + 2, n_claim, said, len(shown) - len(kept), len(said_ids) - n_claim)
