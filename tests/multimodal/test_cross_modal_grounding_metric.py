"""Answers beside pictures, with a CLIP that knows coloured shapes."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_media import COLOURS, TINY_CLIP, encoded, shape

import agentunit
from agentunit.addons.media.clip.encoder import CachedEncoder
from agentunit.addons.media.clip.runtime import OnnxRuntime
from agentunit.backends.media_sources import MediaAccess
from agentunit.core.results import MetricResult
from agentunit.formulas.similarity import cosine
from agentunit.metrics.inputs import Item
from agentunit.multimodal.clip_metric import CrossModalGroundingMetric, EncodedText, Unencodable

RED, BLUE = encoded(shape("red")), encoded(shape("blue", "square"))


def asked(metric: CrossModalGroundingMetric, answer: Any, **metadata: Any) -> MetricResult:
    return metric.evaluate({"id": "q1", "metadata": metadata}, None, answer)


@pytest.fixture
def metric(tiny_clip: CachedEncoder) -> CrossModalGroundingMetric:
    return CrossModalGroundingMetric(encoder=tiny_clip)


class Fixed:
    """An encoder that knows what it is told."""

    name = "fixed"

    def __init__(self, images: dict[Any, Any], texts: dict[str, Any]) -> None:
        self.images, self.texts = images, texts
        self.asked: list[str] = []

    def encode_images(self, sources: Sequence[Any], access: MediaAccess = MediaAccess()) -> list[Any]:  # noqa: B008
        return [self.images[each] for each in sources]

    def encode_texts(self, texts: Sequence[str]) -> list[Any]:
        self.asked += texts
        return [self.texts[each] for each in texts]


def fixed(images: dict[Any, Any], *windows: tuple[list[float], int], **parameters: Any) -> CrossModalGroundingMetric:
    text = EncodedText(tuple(vector for vector, _ in windows), tuple(n for _, n in windows))
    return CrossModalGroundingMetric(encoder=Fixed(images, {"answer": text}), **parameters)


def test_a_true_answer_scores_more_than_a_false_one(metric: CrossModalGroundingMetric) -> None:
    for colour in COLOURS:
        picture = encoded(shape(colour))
        scores = {each: asked(metric, f"a photo of a {each} circle", image_path=picture).detail for each in COLOURS}
        assert max(scores, key=lambda each: scores[each]["similarity"]) == colour


def test_the_detail_holds_what_the_score_is_made_of(metric: CrossModalGroundingMetric) -> None:
    found = asked(metric, "a photo of a red circle", image_path=RED)
    detail = found.detail
    assert found.value == 1.0
    assert detail["similarity"] >= 0.25
    assert detail["clipscore"] == pytest.approx(2.5 * detail["similarity"])
    assert detail["images"] == [{"image": f"{len(RED)} bytes", "similarity": detail["similarity"]}]
    assert (detail["text_windows"], detail["model"], detail["backend"]) == (1, "tiny_clip", "clip:tiny_clip")


@pytest.mark.parametrize(
    ("vector", "threshold", "expected"),
    [([1.0, 0.0], 0.25, 1.0), ([0.2, 0.9798], 0.25, 0.8), ([0.2, 0.9798], 0.2, 1.0), ([-1.0, 0.0], 0.25, 0.0)],
)
def test_the_score_by_hand(vector: list[float], threshold: float, expected: float) -> None:
    metric = fixed({"a.png": [1.0, 0.0]}, (vector, 5), threshold=threshold)
    assert asked(metric, "answer", image_path="a.png").value == pytest.approx(expected, abs=1e-3)


def test_each_window_counts_with_its_best_picture_by_its_tokens() -> None:
    images = {"a.png": [1.0, 0.0], "b.png": [0.0, 1.0]}
    metric = fixed(images, ([1.0, 0.0], 30), ([0.6, 0.8], 10), threshold=1.0)
    detail = asked(metric, "answer", image_paths=["a.png", "b.png"]).detail
    # (30 · max(1, 0) + 10 · max(0.6, 0.8)) / 40
    assert detail["similarity"] == pytest.approx(0.95)
    # a: (30 · 1 + 10 · 0.6) / 40; b: (30 · 0 + 10 · 0.8) / 40
    assert [each["similarity"] for each in detail["images"]] == pytest.approx([0.9, 0.2])
    assert detail["text_windows"] == 2


def test_a_text_that_was_cut_says_so() -> None:
    text = EncodedText(([1.0],), (75,), complete=False)
    metric = CrossModalGroundingMetric(encoder=Fixed({"a.png": [1.0]}, {"answer": text}))
    assert asked(metric, "answer", image_path="a.png").detail["text_cut"] == (
        "only the first 75 tokens of the answer were read"
    )


def test_a_prompt_is_put_before_the_answer() -> None:
    encoder = Fixed({"a.png": [1.0]}, {"A photo depicts answer": EncodedText(([1.0],), (4,))})
    metric = CrossModalGroundingMetric(encoder=encoder, prompt="A photo depicts ")
    assert asked(metric, "answer", image_path="a.png").value == 1.0


def test_a_long_answer_is_read_to_its_end(metric: CrossModalGroundingMetric) -> None:
    padding = "here is what i found. please tell me if you need more. " * 10
    true, false = (
        asked(metric, f"{padding} the {colour} circle is {colour}. a photo of a {colour} circle", image_path=RED).detail
        for colour in ("red", "blue")
    )
    assert true["text_windows"] == false["text_windows"] > 1
    assert true["similarity"] > false["similarity"]


def test_every_way_to_name_pictures(metric: CrossModalGroundingMetric, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(RED)
    uri = "data:image/png;base64," + base64.b64encode(RED).decode()
    values = {
        asked(metric, "a red circle", **{key: source}).value
        for key in ("image_path", "image_paths", "images")
        for source in (str(path), path, RED, uri, [str(path)], (uri, RED))
    }
    assert len(values) == 1
    assert values != {None}


def test_keys_are_read_together_and_each_picture_once(metric: CrossModalGroundingMetric, tmp_path: Path) -> None:
    for name, content in (("a.png", RED), ("b.png", BLUE)):
        (tmp_path / name).write_bytes(content)
    a, b = str(tmp_path / "a.png"), str(tmp_path / "b.png")
    detail = asked(metric, "a blue square", image_path=a, images=[b, a]).detail
    assert [each["image"] for each in detail["images"]] == [a, b]
    first, second = (each["similarity"] for each in detail["images"])
    assert second > first
    assert detail["similarity"] == second


@pytest.mark.parametrize(
    "metadata", [{}, {"image_path": None}, {"image_path": ""}, {"images": []}, {"images": [None, " "]}]
)
def test_no_picture_is_no_case_for_this_metric(metric: CrossModalGroundingMetric, metadata: dict[str, Any]) -> None:
    found = asked(metric, "a red circle", **metadata)
    assert found.value is None
    assert found.detail["reason"] == "no picture: case.metadata['image_path'] is missing"
    assert "error" not in found.detail


@pytest.mark.parametrize(("answer", "words"), [(None, "no answer"), ("", "the answer is blank"), (" \n", "is blank")])
def test_no_answer_is_no_case_for_this_metric(metric: CrossModalGroundingMetric, answer: Any, words: str) -> None:
    found = asked(metric, answer, image_path=RED)
    assert words in found.detail["reason"]
    assert "error" not in found.detail


@pytest.mark.parametrize("given", [5, {"url": "x"}, [RED, 5], True])
def test_what_cannot_be_a_picture_is_an_error(metric: CrossModalGroundingMetric, given: Any) -> None:
    found = asked(metric, "a red circle", image_path=given)
    assert found.detail["error"]["type"] == "InputProblem"
    assert "case.metadata['image_path'] must be a path, bytes or a data URI" in found.detail["reason"]


HOSTILE: dict[str, tuple[bytes, str]] = {
    "text.jpg": (b"This is a text.", "is no picture of a known format"),
    "cut.png": (RED[:100], "cannot be"),
    "empty.png": (b"", "is empty"),
}


@pytest.mark.parametrize("name", [*HOSTILE, "nowhere.png", "folder", "pipe", "out.png", "../out.png", "nul\0.png"])
def test_hostile_pictures_are_errors_with_a_reason(tiny_clip: CachedEncoder, tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    os.mkfifo(root / "pipe")
    (tmp_path / "out.png").write_bytes(RED)
    (root / "out.png").symlink_to(tmp_path / "out.png")
    for each, (content, _) in HOSTILE.items():
        (root / each).write_bytes(content)
    metric = CrossModalGroundingMetric(encoder=tiny_clip, media_root=str(root))
    (root / "good.png").write_bytes(RED)
    assert asked(metric, "a red circle", image_path="good.png").value is not None
    found = asked(metric, "a red circle", image_path=["good.png", name])
    assert found.value is None
    assert found.detail["reason"].startswith(name.split("\0")[0])
    assert found.detail["error"]["type"] == "Refused"
    assert found.detail["threshold"] == 0.25


def test_a_run_goes_on_over_hostile_pictures(tiny_clip: CachedEncoder) -> None:
    pictures = [RED, b"junk", BLUE, RED[:100], RED]
    records = [
        {"case": {"id": str(at), "metadata": {"image_path": each}}, "outcome": "a photo of a red circle"}
        for at, each in enumerate(pictures)
    ]
    run = agentunit.score(records, [CrossModalGroundingMetric(encoder=tiny_clip)])
    statuses = [scores.scores["cross_modal_grounding"].status for scores in run]
    assert statuses == ["ok", "error", "ok", "error", "ok"]


def test_a_batch_encodes_each_distinct_picture_and_text_once(tiny_runtime: OnnxRuntime) -> None:
    class Counting(OnnxRuntime):
        def __init__(self) -> None:
            super().__init__(TINY_CLIP, "counted")
            self.n_pictures = self.n_texts = 0

        def encode_pictures(self, batch: Any) -> Any:
            self.n_pictures += len(batch.pixels)
            return super().encode_pictures(batch)

        def encode_tokens(self, tokens: Any) -> Any:
            self.n_texts += len(tokens)
            return super().encode_tokens(tokens)

    runtime = Counting()
    metric = CrossModalGroundingMetric(encoder=CachedEncoder(runtime))
    texts = ("a red circle", "a blue square", "a green star")
    items = [
        Item({"id": f"{at}", "metadata": {"images": [RED, BLUE][: 1 + at % 2]}}, None, texts[at % 3])
        for at in range(60)
    ]
    results = metric.evaluate_batch(items)
    assert (runtime.n_pictures, runtime.n_texts) == (2, 3)
    assert results == [metric.measure(item) for item in items]
    assert (runtime.n_pictures, runtime.n_texts) == (2, 3)


def test_scoring_through_the_engine_encodes_each_once(tiny_clip: CachedEncoder) -> None:
    calls: list[int] = []

    class Watched:
        name = "watched"

        def encode_images(self, sources: Sequence[Any], access: MediaAccess = MediaAccess()) -> Any:  # noqa: B008
            calls.append(len(sources))
            return tiny_clip.encode_images(sources, access)

        def encode_texts(self, texts: Sequence[str]) -> Any:
            return tiny_clip.encode_texts(texts)

    records = [
        {"case": {"id": str(at), "metadata": {"image_path": RED}}, "outcome": f"a red circle {at}"} for at in range(50)
    ]
    summary = agentunit.score(records, [CrossModalGroundingMetric(encoder=Watched())]).summary()
    assert calls == [50]
    assert summary.metrics[0].n_scored == 50


def test_without_weights_the_reason_has_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTUNIT_CLIP", raising=False)
    monkeypatch.setattr("agentunit.addons.media.clip.loading.find_spec", lambda name: None)
    metric = CrossModalGroundingMetric("ViT-L/14")
    results = metric.evaluate_batch(
        [Item({"id": "1", "metadata": {"image_path": RED}}, None, "x"), Item({"id": "2"}, None, "x")]
    )
    assert "export AGENTUNIT_CLIP=FOLDER" in results[0].detail["reason"]
    assert results[0].detail["error"]["type"] == "BackendUnavailable"
    assert results[0].detail["backend"] == "clip:ViT-L/14"
    assert "no picture" in results[1].detail["reason"]


def test_the_variable_names_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_CLIP", str(TINY_CLIP))
    found = asked(CrossModalGroundingMetric(), "a photo of a red circle", image_path=RED)
    assert (found.value, found.detail["backend"]) == (1.0, "clip:tiny_clip")


def test_an_answer_that_cannot_be_encoded_is_an_error() -> None:
    metric = CrossModalGroundingMetric(encoder=Fixed({RED: [1.0]}, {"x": Unencodable("holds no words")}))
    found = asked(metric, "x", image_path=RED)
    assert found.detail["reason"] == "the answer holds no words"
    assert "error" in found.detail


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"threshold": 0}, "threshold must be above 0 and at most 1; received 0"),
        ({"threshold": 1.5}, "threshold must be above 0"),
        ({"threshold": True}, "threshold must be above 0"),
        ({"threshold": "high"}, "threshold must be above 0"),
        ({"clip_model_name": ""}, "clip_model_name must be a name or a folder; received ''"),
        ({"clip_model_name": None}, "clip_model_name must be a name"),
        ({"media_root": 5}, "media_root must be a folder; received 5"),
        ({"allow_urls": "yes"}, "allow_urls must be true or false"),
        ({"prompt": None}, "prompt must be a text"),
        ({"encoder": "clip"}, "encoder must have a name, encode_images and encode_texts"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match="CrossModalGroundingMetric: " + words):
        CrossModalGroundingMetric(**parameters)


def test_the_catalog_s_call_works() -> None:
    metric = CrossModalGroundingMetric("ViT-B/16", 0.3)
    assert (metric.clip_model_name, metric.threshold) == ("ViT-B/16", 0.3)


def test_cosines_are_those_of_the_encoder(tiny_clip: CachedEncoder, metric: CrossModalGroundingMetric) -> None:
    (picture,), (text,) = tiny_clip.encode_images([RED]), tiny_clip.encode_texts(["a red circle"])
    assert isinstance(text, EncodedText)
    assert not isinstance(picture, Unencodable)
    expected = cosine(text.vectors[0], picture)
    assert asked(metric, "a red circle", image_path=RED).detail["similarity"] == expected
