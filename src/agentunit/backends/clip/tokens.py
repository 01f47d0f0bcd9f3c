"""Texts as tokens: long ones in even windows that the model can take, cut between words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from agentunit.backends.quality import BackendUnavailable

MOST_WINDOWS = 32
START, END = "<|startoftext|>", "<|endoftext|>"
# More characters than the windows can hold of any ordinary text.
_MOST_CHARACTERS = 64_000
_ROUNDED_TO = 8


class TokenWindows(NamedTuple):
    """The tokens of a text, without the marks of its start and end, and whether that is all of it."""

    windows: list[list[int]]
    complete: bool


class TextTokens:
    """The tokeniser of a CLIP (of the package ``tokenizers``), with the number of tokens that the model takes."""

    def __init__(self, tokeniser: Any, context_tokens: int) -> None:
        tokeniser.no_truncation()
        tokeniser.no_padding()
        self._tokeniser = tokeniser
        self._start, self._end = (tokeniser.token_to_id(mark) for mark in (START, END))
        if self._start is None or self._end is None:
            raise BackendUnavailable(f"the tokeniser must know {START} and {END}, as CLIP's does; it does not")
        self.context_tokens = context_tokens

    def windows(self, texts: Sequence[str]) -> list[TokenWindows]:
        """The windows of each text; none for a text without anything that can be written in tokens."""
        # Half of a surrogate pair cannot be handed over.
        clean = [each[:_MOST_CHARACTERS].encode("utf-8", "replace").decode() for each in texts]
        encoded = self._tokeniser.encode_batch(clean, add_special_tokens=False)
        cut = [len(each) > _MOST_CHARACTERS for each in texts]
        return [self._windows(one, not shortened) for one, shortened in zip(encoded, cut, strict=True)]

    def padded(self, windows: Sequence[Sequence[int]], length: int | None = None) -> Any:
        """Windows with their marks as one array; what fills the shorter ones up stands after their end, unread."""
        import numpy as np

        needed = 2 + max(map(len, windows))
        if length is None:
            length = min(self.context_tokens, -(-needed // _ROUNDED_TO) * _ROUNDED_TO)
        batch = np.full((len(windows), length), self._end, dtype=np.int64)
        batch[:, 0] = self._start
        for row, window in zip(batch, windows, strict=True):
            row[1 : len(window) + 1] = window
        return batch

    def _windows(self, encoded: Any, complete: bool) -> TokenWindows:
        marks = (self._start, self._end)
        room = self.context_tokens - 2
        ids = encoded.ids
        if len(ids) <= room:
            # A mark that somebody wrote into a text would end it for the model.
            plain = [each for each in ids if each not in marks]
            return TokenWindows([plain] if plain else [], complete)
        kept = [(each, word) for each, word in zip(ids, encoded.word_ids, strict=True) if each not in marks]
        if len(kept) > room * MOST_WINDOWS:
            kept, complete = kept[: room * MOST_WINDOWS], False
        windows = []
        while kept:
            even = -(-len(kept) // -(-len(kept) // room))
            cut = next((at for at in range(even, even // 2, -1) if _word_starts(kept, at)), even)
            windows.append([each for each, _ in kept[:cut]])
            kept = kept[cut:]
        return TokenWindows(windows, complete)


def _word_starts(kept: Sequence[tuple[int, int | None]], at: int) -> bool:
    return at == len(kept) or kept[at][1] != kept[at - 1][1]
