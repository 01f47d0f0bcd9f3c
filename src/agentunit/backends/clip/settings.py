"""How a CLIP wants to be fed, read from the small files that lie beside its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentunit.backends.quality import BackendUnavailable

OPENAI_MEAN = (0.48145466, 0.4578275, 0.40821073)
OPENAI_STD = (0.26862954, 0.26130258, 0.27577711)
_BICUBIC = 3
_CONTEXT_TOKENS = 77


@dataclass(frozen=True)
class ClipSettings:
    """Sizes in pixels and tokens, and what is taken from colours before the model sees them."""

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


def _three(given: Any) -> tuple[float, float, float]:
    red, green, blue = (float(each) for each in given)
    return red, green, blue


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BackendUnavailable(f"{path} is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise BackendUnavailable(f"{path} must hold a JSON object; received {content!r:.80}")
    return content
