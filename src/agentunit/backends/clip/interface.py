"""What an encoder of pictures and texts offers, whatever runs behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from agentunit.backends.media.limits import MediaAccess

Vector = Sequence[float]


@dataclass(frozen=True)
class Unencodable:
    """Why a picture or text has no vector."""

    reason: str


@dataclass(frozen=True)
class EncodedText:
    """A text as one vector for each window of as many tokens as the encoder takes, and how many tokens each holds.

    ``complete`` is false when the text is longer than what is read of it at most.
    """

    vectors: tuple[Vector, ...]
    n_tokens: tuple[int, ...]
    complete: bool = True


@runtime_checkable
class ClipEncoder(Protocol):
    """Pictures and texts as vectors of one space. Both methods give one answer for each thing asked, in order.

    ``name`` says which weights these are: scores of different weights are not alike. A picture is a path, bytes, a
    data URI, a URL where ``access`` allows it, or a decoded picture of Pillow.
    """

    name: str

    def encode_images(self, sources: Sequence[Any], access: MediaAccess = ...) -> Sequence[Vector | Unencodable]:
        """A vector for each picture, or why there is none."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> Sequence[EncodedText | Unencodable]:
        """The vectors of each text, or why there are none."""
        ...
