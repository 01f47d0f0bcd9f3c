"""What CLIP does to pictures, checked against the steps written out in numpy and Pillow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agentunit.addons.media.clip.clip_settings import (
    OPENAI_MEAN,
    OPENAI_STD,
    ClipSettings,
    cropped,
    normalised,
    settings_of,
)
from agentunit.backends.quality import BackendUnavailable

CLIP = ClipSettings()


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(7).integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("size", "scaled"),
    [
        ((224, 224), (224, 224)),
        ((640, 480), (298, 224)),  # int(224 · 640 / 480) = 298
        ((480, 640), (224, 298)),
        ((100, 50), (448, 224)),
        ((333, 1000), (224, 672)),
        ((7, 7), (224, 224)),
    ],
)
def test_shorter_side_scaled_by_bicubic_sampling_and_the_middle_cut_out(
    size: tuple[int, int], scaled: tuple[int, int]
) -> None:
    picture = noise(*size)
    left, top = (scaled[0] - 224) // 2, (scaled[1] - 224) // 2
    expected = picture.resize(scaled, Image.Resampling.BICUBIC).crop((left, top, left + 224, top + 224))
    assert np.array_equal(np.asarray(cropped(picture, CLIP)), np.asarray(expected))


@pytest.mark.parametrize("size", [(1, 1), (1, 60_000), (60_000, 1), (3, 4_000)])
def test_a_line_is_not_blown_up(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[tuple[int, int]] = []
    resize = Image.Image.resize

    def watched(self: Image.Image, size: tuple[int, int], *args: Any, **kwargs: Any) -> Image.Image:
        sizes.append(size)
        return resize(self, size, *args, **kwargs)

    monkeypatch.setattr(Image.Image, "resize", watched)
    assert cropped(noise(*size), CLIP).size == (224, 224)
    assert all(width * height <= 16 * 224 * 224 for width, height in sizes)


def test_normalised() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (2, 4, 4, 3), dtype=np.uint8)
    found = normalised(pixels, CLIP)
    assert found.dtype == np.float32
    assert found.shape == (2, 3, 4, 4)
    expected = (pixels[1, 2, 3, 0] / 255 - OPENAI_MEAN[0]) / OPENAI_STD[0]
    assert found[1, 0, 2, 3] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("config", "pictures", "expected"),
    [
        ({}, {}, ClipSettings()),
        ({"vision_config": {"image_size": 336}}, {}, ClipSettings(resize_to=336, side=336)),
        ({"text_config": {"max_position_embeddings": 64}}, {}, ClipSettings(context_tokens=64)),
        ({}, {"size": 256, "crop_size": 224}, ClipSettings(resize_to=256)),
        (
            {},
            {"size": {"shortest_edge": 240}, "crop_size": {"height": 240, "width": 240}, "image_mean": [0.5, 0.5, 0.5]},
            ClipSettings(resize_to=240, side=240, mean=(0.5, 0.5, 0.5)),
        ),
        ({}, {"image_processor": {"size": {"shortest_edge": 224}, "resample": 2}}, ClipSettings(resample=2)),
    ],
)
def test_settings_are_read_from_the_files_beside_the_weights(
    tmp_path: Path, config: dict[str, Any], pictures: dict[str, Any], expected: ClipSettings
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(pictures))
    assert settings_of(tmp_path) == expected


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", "{", "is not JSON"),
        ("config.json", "[]", "must hold a JSON object"),
        ("config.json", '{"vision_config": 5}', "does not say how CLIP wants to be fed"),
        ("preprocessor_config.json", '{"size": {"height": 224, "width": 224}}', "not scaled by their shorter side"),
        ("preprocessor_config.json", '{"size": 100}', "sizes do not fit together"),
        ("preprocessor_config.json", '{"image_mean": [1]}', "does not say how"),
    ],
)
def test_settings_of_another_kind_are_refused(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(BackendUnavailable, match=words):
        settings_of(tmp_path)
