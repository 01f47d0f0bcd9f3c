"""Answers beside videos, with a CLIP that knows coloured shapes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_media import encoded, shape, sound, video
from PIL import Image

from agentunit.addons.media import video_vectors
from agentunit.addons.media.clip.encoder import CachedEncoder
from agentunit.backends.media_sources import MediaAccess
from agentunit.core.results import MetricResult
from agentunit.metrics.inputs import Item
from agentunit.multimodal.clip_metric import EncodedText
from agentunit.multimodal.video import VideoResponseRelevanceMetric

RED, BLUE = shape("red"), shape("blue", "square")
CLIP = video(((at / 25, RED if at < 75 else BLUE) for at in range(100)), keyframe_every=5)


def asked(metric: VideoResponseRelevanceMetric, answer: Any, source: Any = CLIP) -> MetricResult:
    return metric.evaluate({"id": "q1", "metadata": {"video_path": source}}, None, answer)


@pytest.fixture
def metric(tiny_clip: CachedEncoder) -> VideoResponseRelevanceMetric:
    return VideoResponseRelevanceMetric(encoder=tiny_clip)


class Redness:
    """An encoder for which a frame is red or not."""

    name = "redness"

    def __init__(self) -> None:
        self.n_frames: list[int] = []

    def encode_images(self, sources: Sequence[Any], access: MediaAccess = MediaAccess()) -> list[Any]:  # noqa: B008
        self.n_frames.append(len(sources))
        middles = [each.getpixel((each.width // 2, each.height // 2)) for each in sources]
        return [[1.0, 0.0] if red > blue else [0.0, 1.0] for red, _, blue in middles]

    def encode_texts(self, texts: Sequence[str]) -> list[Any]:
        return [EncodedText(([1.0, 0.0],), (1,)) for _ in texts]


def test_the_score_by_hand() -> None:
    found = asked(VideoResponseRelevanceMetric(encoder=Redness()), "it is red")
    # Six of eight frames are red: 0.6 · 0.75 + 0.4 · 1
    assert found.value == pytest.approx(0.85)
    detail = found.detail
    assert (detail["mean_similarity"], detail["best_similarity"]) == (0.75, 1.0)
    assert [each["similarity"] for each in detail["frames"]] == [1.0] * 6 + [0.0] * 2
    assert detail["duration_s"] == pytest.approx(4.0, abs=0.1)
    assert (detail["num_frames"], detail["text_windows"], detail["model"]) == (8, 1, "redness")
    assert detail["backend"] == "clip:redness"
    assert "frames_missing" not in detail


@pytest.mark.parametrize("num_frames", [1, 4, 20])
def test_as_many_frames_as_asked(num_frames: int) -> None:
    encoder = Redness()
    found = asked(VideoResponseRelevanceMetric(num_frames, encoder=encoder), "it is red")
    assert encoder.n_frames == [num_frames]
    assert len(found.detail["frames"]) == num_frames


def test_a_true_answer_scores_more_than_a_false_one(metric: VideoResponseRelevanceMetric) -> None:
    values = {each: asked(metric, f"a photo of a {each}").value for each in ("red circle", "green star", "black cross")}
    assert max(values, key=lambda each: values[each] or 0.0) == "red circle"


def test_every_way_to_name_a_video(metric: VideoResponseRelevanceMetric, tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(CLIP)
    uri = "data:video/mp4;base64," + base64.b64encode(CLIP).decode()
    values = {asked(metric, "a red circle", source).value for source in (CLIP, uri, path, str(path), [str(path)])}
    assert len(values) == 1
    assert values != {None}


def test_a_video_that_several_cases_share_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled: list[Any] = []
    sample = video_vectors.sample_frames_apart
    monkeypatch.setattr(video_vectors, "sample_frames_apart", lambda *args: sampled.append(args[0]) or sample(*args))
    encoder = Redness()
    metric = VideoResponseRelevanceMetric(encoder=encoder)
    other = video([(0.0, BLUE), (1.0, BLUE)])
    items = [
        Item({"id": f"{at}", "metadata": {"video_path": (CLIP, other, b"junk")[at % 3]}}, None, f"answer {at}")
        for at in range(12)
    ]
    results = metric.evaluate_batch(items)
    assert len(sampled) == 3
    assert [result.value is None for result in results] == [False, False, True] * 4
    assert results == [metric.measure(item) for item in items]
    assert len(sampled) == 3


def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    metric = VideoResponseRelevanceMetric(encoder=Redness())
    path = tmp_path / "clip.mp4"
    path.write_bytes(video([(0.0, RED), (1.0, RED)]))
    assert asked(metric, "red", str(path)).value == 1.0
    path.write_bytes(video([(0.0, BLUE), (1.0, BLUE), (2.0, BLUE)]))
    assert asked(metric, "red", str(path)).value == 0.0


def test_fewer_frames_than_asked_are_said(metric: VideoResponseRelevanceMetric) -> None:
    found = asked(metric, "a red circle", video([(0.0, RED), (0.5, RED)]))
    assert found.value is not None
    assert found.detail["frames_missing"] == "2 of 8 frames could be had from the video"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"This is a text.", "is not a video of a known format"),
        (sound(), "holds no video stream"),
        (CLIP[:500], "is damaged"),
        ("nowhere.mp4", "nowhere.mp4 cannot be"),
        ("/dev/zero", "found a device"),
        ("http://127.0.0.1:9/x.mp4", "nothing is fetched unasked"),
    ],
)
def test_hostile_videos_are_errors_with_a_reason(metric: VideoResponseRelevanceMetric, source: Any, words: str) -> None:
    found = asked(metric, "a red circle", source)
    assert found.value is None
    assert words in found.detail["reason"]
    assert found.detail["error"]["type"] == "Refused"
    assert found.detail["num_frames"] == 8


def test_outside_of_the_root_nothing_is_read(tiny_clip: CachedEncoder, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "clip.mp4").write_bytes(CLIP)
    metric = VideoResponseRelevanceMetric(encoder=tiny_clip, media_root=tmp_path / "root")
    assert "is outside of the allowed folder" in asked(metric, "a red circle", "../clip.mp4").detail["reason"]


def test_large_frames_are_made_smaller_before_they_wait() -> None:
    sizes: list[tuple[int, int]] = []

    class Watching(Redness):
        def encode_images(self, sources: Sequence[Any], access: MediaAccess = MediaAccess()) -> list[Any]:  # noqa: B008
            sizes.extend(each.size for each in sources)
            return super().encode_images(sources, access)

    large = Image.new("RGB", (3840, 2160), (214, 40, 40))
    metric = VideoResponseRelevanceMetric(2, encoder=Watching())
    assert asked(metric, "red", video([(0.0, large), (1.0, large)])).value == 1.0
    assert set(sizes) == {(1920, 1080)}


@pytest.mark.parametrize(("answer", "words"), [(None, "no answer"), ("", "blank")])
def test_no_answer_is_no_case_for_this_metric(metric: VideoResponseRelevanceMetric, answer: Any, words: str) -> None:
    found = asked(metric, answer)
    assert words in found.detail["reason"]
    assert "error" not in found.detail


def test_no_video_is_no_case_for_this_metric(metric: VideoResponseRelevanceMetric) -> None:
    found = asked(metric, "a red circle", None)
    assert found.detail["reason"] == "no video: case.metadata['video_path'] is missing"
    assert "error" not in found.detail


@pytest.mark.parametrize("source", [5, ["a.mp4", "b.mp4"], {"path": "a.mp4"}])
def test_what_cannot_be_one_video_is_an_error(metric: VideoResponseRelevanceMetric, source: Any) -> None:
    assert asked(metric, "a red circle", source).detail["error"]["type"] == "InputProblem"


@pytest.mark.parametrize("num_frames", [0, -1, 257, 2.5, True, "8"])
def test_parameters_are_checked(num_frames: Any) -> None:
    with pytest.raises(ValueError, match="VideoResponseRelevanceMetric: num_frames must be from 1 to 256; received"):
        VideoResponseRelevanceMetric(num_frames)


def test_a_picture_is_no_video(metric: VideoResponseRelevanceMetric) -> None:
    found = asked(metric, "a red circle", encoded(RED, "JPEG"))
    assert found.value is None
    assert "not a video" in found.detail["reason"]
