"""What CLIP does to a picture before it looks at it: shorter side scaled by bicubic sampling, middle cut out."""

from __future__ import annotations

from typing import Any

from agentunit.backends.clip.settings import ClipSettings

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
