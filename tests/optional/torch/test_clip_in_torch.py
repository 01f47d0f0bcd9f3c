"""The same weights in torch and in ONNX Runtime, and our preprocessing beside that of transformers."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_media import COLOURS, TINY_CLIP, encoded, shape
from PIL import Image

from agentunit.addons.media.clip import loading
from agentunit.addons.media.clip.clip_settings import ClipSettings, cropped, normalised
from agentunit.addons.media.clip.encoder import CachedEncoder
from agentunit.addons.media.clip.loading import load_clip
from agentunit.addons.media.clip.onnx_export import export_onnx
from agentunit.backends.quality import BackendUnavailable
from agentunit.formulas.similarity import cosine
from agentunit.multimodal.clip_metric import CrossModalGroundingMetric, EncodedText, Unencodable, Vector

pytestmark = pytest.mark.optional

ROOT = Path(__file__).resolve().parents[3]
KINDS = [(colour, kind) for colour in COLOURS for kind in ("circle", "square")]
PICTURES = [encoded(shape(colour, kind, side=100)) for colour, kind in KINDS]
CAPTIONS = [f"a photo of a {colour} {kind}" for colour, kind in KINDS]
LONG = "there is a large red circle at the top left. here is what i found. " * 30


@pytest.fixture(scope="module")
def both() -> tuple[CachedEncoder, CachedEncoder]:
    return load_clip(str(TINY_CLIP), runtime="torch"), load_clip(str(TINY_CLIP), runtime="onnx")


def vectors(encoder: CachedEncoder) -> list[Vector]:
    found: list[Vector] = []
    for picture in encoder.encode_images(PICTURES):
        assert not isinstance(picture, Unencodable)
        found.append(picture)
    for text in encoder.encode_texts([*CAPTIONS, LONG]):
        assert isinstance(text, EncodedText)
        found += text.vectors
    return found


def test_both_runtimes_make_the_same_vectors(both: tuple[CachedEncoder, CachedEncoder]) -> None:
    torch_vectors, onnx_vectors = map(vectors, both)
    assert len(torch_vectors) == len(onnx_vectors) > len(PICTURES) + len(CAPTIONS) + 5
    # Half precision on a GPU, single precision elsewhere.
    least = 0.999 if both[0].runtime.device != "cpu" else 1 - 1e-6
    for one, other in zip(torch_vectors, onnx_vectors, strict=True):
        assert cosine(one, other) > least


def test_the_right_caption_is_the_nearest_in_torch(both: tuple[CachedEncoder, CachedEncoder]) -> None:
    found = vectors(both[0])
    pictures, texts = found[: len(PICTURES)], found[len(PICTURES) : 2 * len(PICTURES)]
    for at, picture in enumerate(pictures):
        similarities = [cosine(picture, text) for text in texts]
        assert similarities.index(max(similarities)) == at, KINDS[at]


def test_vectors_are_those_of_transformers_alone(both: tuple[CachedEncoder, CachedEncoder]) -> None:
    import torch
    from transformers import CLIPModel, CLIPTokenizerFast

    model = CLIPModel.from_pretrained(TINY_CLIP).float().eval()
    tokeniser = CLIPTokenizerFast.from_pretrained(TINY_CLIP)
    given = tokeniser(CAPTIONS, padding="max_length", max_length=77, return_tensors="pt")
    with torch.inference_mode():
        made = model.get_text_features(input_ids=given.input_ids, attention_mask=given.attention_mask)
    expected = getattr(made, "pooler_output", made)
    for row, text in zip(expected.tolist(), both[1].encode_texts(CAPTIONS), strict=True):
        assert isinstance(text, EncodedText)
        assert cosine(row, text.vectors[0]) > 1 - 1e-5


@pytest.mark.parametrize("size", [(224, 224), (640, 480), (481, 640), (333, 1000), (60, 90), (225, 224)])
def test_preprocessing_equals_that_of_transformers(size: tuple[int, int]) -> None:
    processor = image_processor()
    picture = Image.fromarray(np.random.default_rng(3).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
    expected = np.asarray(processor(picture, return_tensors="np")["pixel_values"][0])
    settings = ClipSettings()
    found = normalised(np.asarray(cropped(picture, settings))[None], settings)[0]
    assert found.shape == expected.shape == (3, 224, 224)
    assert np.abs(found - expected).max() < 1e-5


def image_processor() -> Any:
    """The processor that works on Pillow's pictures: the other one needs torchvision, and rounds differently."""
    import transformers

    for name in ("CLIPImageProcessorPil", "CLIPImageProcessor"):
        if hasattr(transformers, name):
            return getattr(transformers, name)()
    raise AssertionError("transformers has no CLIPImageProcessor")


def test_an_export_of_a_checkpoint_runs_without_torch(
    tmp_path: Path, both: tuple[CachedEncoder, CachedEncoder]
) -> None:
    source, target = tmp_path / "checkpoint", tmp_path / "pair"
    source.mkdir()
    for name in (
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "preprocessor_config.json",
    ):
        shutil.copy(TINY_CLIP / name, source)
    export_onnx(str(source), target)
    assert {"vision_model.onnx", "text_model.onnx", "tokenizer.json", "config.json"} <= {
        p.name for p in target.iterdir()
    }
    assert not (target / "model.safetensors").exists()
    for one, other in zip(vectors(load_clip(str(target))), vectors(both[1]), strict=True):
        assert cosine(one, other) > 1 - 1e-6


def test_a_checkpoint_alone_runs_in_torch(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TINY_CLIP / name, tmp_path)
    found = load_clip(str(tmp_path))
    assert type(found.runtime).__name__ == "TorchRuntime"
    assert found.runtime.settings.side == 64


def test_scores_of_both_runtimes_agree(both: tuple[CachedEncoder, CachedEncoder]) -> None:
    case = {"id": "q1", "metadata": {"image_path": PICTURES[0]}}
    one, other = (
        CrossModalGroundingMetric(encoder=each, threshold=1.0).evaluate(case, None, "a red circle") for each in both
    )
    assert one.value == pytest.approx(other.value, abs=0.01)


def test_nothing_is_fetched_unasked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loading, "_loaded", {})
    monkeypatch.delenv("AGENTUNIT_CLIP", raising=False)
    monkeypatch.delenv("AGENTUNIT_CLIP_DOWNLOAD", raising=False)
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("something was fetched"))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(BackendUnavailable, match="no weights for CLIP 'ViT-L/14@336px' here"):
        load_clip("ViT-L/14@336px")


def test_published_clipscores_with_the_published_weights() -> None:
    """For those who have ViT-B/32: the figures of CLIPScore's own example, 0.8584 and 0.7153."""
    folder = Path(os.environ.get("AGENTUNIT_DATA") or ROOT.parent / "shared" / "data")
    folder = folder / "media" / "images" / "clipscore_example"
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set AGENTUNIT_DATA to the folder of the shared data")
    try:
        encoder = load_clip("ViT-B/32")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    if encoder.runtime.settings.side != 224:
        pytest.skip(f"{encoder.name} is not ViT-B/32")
    metric = CrossModalGroundingMetric(encoder=encoder, prompt="A photo depicts ", media_root=folder)
    for name, expected in (("good_captions.json", 0.8584), ("bad_captions.json", 0.7153)):
        captions = json.loads((folder / name).read_text(encoding="utf-8"))
        scores = [
            metric.evaluate({"id": image, "metadata": {"image_path": f"{image}.jpg"}}, None, caption).detail[
                "clipscore"
            ]
            for image, caption in captions.items()
        ]
        assert sum(scores) / len(scores) == pytest.approx(expected, abs=0.005)
