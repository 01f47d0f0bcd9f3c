"""What runs a CLIP: batches of prepared pictures or tokens in, vectors out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from agentunit.backends.clip.settings import ClipSettings
from agentunit.backends.clip.tokens import TextTokens

Later = Callable[[], Any]


@dataclass(frozen=True)
class PictureBatch:
    """Room for prepared pictures: ``pixels`` is an array of bytes (n, side, side, 3) that is filled in place."""

    pixels: Any
    held: Any = None


class ClipRuntime(Protocol):
    """One set of weights on one device. ``encode_…`` start the work; what they return waits for it.

    Vectors come as a numpy array of float32, one row each, not normalised.
    """

    name: str
    device: str
    settings: ClipSettings
    tokens: TextTokens
    batch_size: int
    text_length: int | None

    def empty_batch(self, n_pictures: int) -> PictureBatch:
        """Room for that many pictures, in memory from which the device can fetch them quickly."""
        ...

    def encode_pictures(self, batch: PictureBatch) -> Later:
        """Start encoding a batch of pictures."""
        ...

    def encode_tokens(self, tokens: Any) -> Later:
        """Start encoding a batch of padded tokens."""
        ...
