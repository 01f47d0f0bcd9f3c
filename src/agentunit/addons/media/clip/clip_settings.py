"""How a CLIP model wants its input: its settings, its tokens, and its pictures as arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from agentunit.backends.quality import BackendUnavailable

OPENAI_MEAN = (0.48145466, 0.4578275, 0.40821073)
OPENAI_STD = (0.26862954, 0.26130258, 0.27577711)
_BICUBIC = 3
_CONTEXT_TOKENS = 77


@dataclass(frozen=True)
class ClipSettings:
    """Sizes in pixels and tokens, and what is taken from colors before the model sees them."""

    resize_to: int = 224
    side: int = 224
    mean: tuple[float, float, float] = OPENAI_MEAN
    std: tuple[float, float, float] = OPENAI_STD
    resample: int = _BICUBIC
    context_tokens: int = _CONTEXT_TOKENS


def settings_of(folder: Path) -> ClipSettings:
    """The settings of a checkpoint or of an ONNX pair, from ``config.json`` and ``preprocessor_config.json``."""
    config = _read(folder / "config.json")
    pictures = _read(folder / "preprocessor_config.json") or _read(folder / "processor_config.json")
    pictures = pictures.get("image_processor", pictures)
    return settings_from(config, pictures, str(folder))


def settings_from(config: Mapping[str, Any], pictures: Mapping[str, Any], name: str) -> ClipSettings:
    """The settings that a model's configuration and that of its preprocessing state; CLIP's own where they do not."""
    try:
        side = int(config.get("vision_config", {}).get("image_size", 224))
        text = config.get("text_config", {})
        size, crop = pictures.get("size", side), pictures.get("crop_size", side)
        if isinstance(size, Mapping) and "shortest_edge" not in size:
            raise ValueError("pictures are not scaled by their shorter side")
        settings = ClipSettings(
            resize_to=int(size["shortest_edge"] if isinstance(size, Mapping) else size),
            side=int(crop["height"] if isinstance(crop, Mapping) else crop),
            mean=_three(pictures.get("image_mean", OPENAI_MEAN)),
            std=_three(pictures.get("image_std", OPENAI_STD)),
            resample=int(pictures.get("resample", _BICUBIC)),
            context_tokens=int(text.get("max_position_embeddings", _CONTEXT_TOKENS)),
        )
        if not (0 < settings.side <= settings.resize_to <= 4096 and settings.context_tokens > 2):
            raise ValueError(f"sizes do not fit together: {settings}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BackendUnavailable(f"{name} does not say how CLIP wants to be fed: {error}") from None
    return settings


def _three(values: Any) -> tuple[float, float, float]:
    red, green, blue = (float(each) for each in values)
    return red, green, blue


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BackendUnavailable(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise BackendUnavailable(f"{path} must hold a JSON object; received {content!r:.80}")
    return content


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
    """The tokenizer of a CLIP (of the package ``tokenizers``), with the number of tokens that the model takes."""

    def __init__(self, tokeniser: Any, context_tokens: int) -> None:
        tokeniser.no_truncation()
        tokeniser.no_padding()
        self._tokeniser = tokeniser
        self._start, self._end = (tokeniser.token_to_id(mark) for mark in (START, END))
        if self._start is None or self._end is None:
            raise BackendUnavailable(f"the tokenizer must know {START} and {END}, as CLIP's does; it does not")
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
        lengths = np.array([len(each) for each in windows])
        flat = np.fromiter(chain.from_iterable(windows), np.int64, int(lengths.sum()))
        batch = np.full((len(windows), length), self._end, dtype=np.int64)
        batch[:, 0] = self._start
        batch[:, 1:][np.arange(length - 1) < lengths[:, None]] = flat
        return batch

    def _windows(self, encoded: Any, complete: bool) -> TokenWindows:
        marks = (self._start, self._end)
        room = self.context_tokens - 2
        ids = encoded.ids
        if len(ids) <= room:
            # A mark that somebody wrote into a text would end it for the model.
            has_marks = self._start in ids or self._end in ids
            plain = [each for each in ids if each not in marks] if has_marks else ids
            return TokenWindows([plain] if plain else [], complete)
        kept = [(each, word) for each, word in zip(ids, encoded.word_ids, strict=True) if each not in marks]
        if len(kept) > room * MOST_WINDOWS:
            kept, complete = kept[: room * MOST_WINDOWS], False
        windows = []
        while kept:
            even = -(-len(kept) // -(-len(kept) // room))
            # Where a word starts, if one does near.
            starts = (at for at in range(even, even // 2, -1) if at == len(kept) or kept[at][1] != kept[at - 1][1])
            cut = next(starts, even)
            windows.append([each for each, _ in kept[:cut]])
            kept = kept[cut:]
        return TokenWindows(windows, complete)


# Beyond this ratio of its sides the middle of a picture is cut out first: scaling all of a line one pixel high to the
# height that the model takes would need gigabytes.
_LONGEST_RATIO = 16


def cropped(image: Any, settings: ClipSettings) -> Any:
    """The square of an RGB picture that the model sees, as a Pillow picture of ``side`` × ``side``."""
    width, height = image.size
    shorter, longer = min(width, height), max(width, height)
    if longer > _LONGEST_RATIO * shorter:
        image = _middle(image, min(width, _LONGEST_RATIO * shorter), min(height, _LONGEST_RATIO * shorter))
        width, height = image.size
        longer = max(width, height)
    scaled = settings.resize_to, int(settings.resize_to * longer / shorter)
    size = scaled if width <= height else scaled[::-1]
    if (width, height) != size:
        image = image.resize(size, resample=settings.resample)
    return _middle(image, settings.side, settings.side)


def normalised(pixels: Any, settings: ClipSettings) -> Any:
    """Bytes (n, height, width, 3) as the numbers (n, 3, height, width) that the model takes, in numpy."""
    import numpy as np

    scale = np.asarray([1 / (255 * each) for each in settings.std], dtype=np.float32)
    shift = np.asarray([m / s for m, s in zip(settings.mean, settings.std, strict=True)], dtype=np.float32)
    return np.ascontiguousarray((pixels * scale - shift).transpose(0, 3, 1, 2))


def _middle(image: Any, width: int, height: int) -> Any:
    if image.size == (width, height):
        return image
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))
