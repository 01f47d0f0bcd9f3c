"""How well an answer fits the video it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from agentunit.backends.clip.encoder import ClipEncoder, EncodedText, Unencodable, Vector
from agentunit.backends.clip.recently_used import RecentlyUsed
from agentunit.backends.media.limits import MediaProblem
from agentunit.backends.media.sources import shown_source, source_identity
from agentunit.backends.media.video import SampledVideo, sample_frames_apart
from agentunit.core.results import MetricResult
from agentunit.formulas.similarity import cosine, frames_score, weighted_mean
from agentunit.metrics.inputs import InputProblem
from agentunit.metrics.parameters import Rule, check_parameters, is_number
from agentunit.multimodal.clip_metric import Asked, ClipMetric, Refused, named_media
from agentunit.multimodal.grounding import text_detail, usable_text
from agentunit.multimodal.references import multimodal_info

_N_FRAMES = Rule("from 1 to 256", lambda value: is_number(value) and isinstance(value, int) and 1 <= value <= 256)
_VIDEOS_AT_ONCE = 4
_VIDEOS_KEPT = 1_024


class EncodedVideo(NamedTuple):
    """The vectors of a video's frames, and when each is shown."""

    vectors: tuple[Vector, ...]
    times_s: tuple[float, ...]
    duration_s: float
    decoder: str


@dataclass(frozen=True)
class VideoResponseRelevanceMetric(ClipMetric):
    """Similarity of the answer and evenly spaced frames of a video by CLIP: 0.6 · mean + 0.4 · best of the cosines.

    The video is in ``case.metadata["video_path"]``: a path, bytes or a data URI. ``num_frames`` frames are taken
    from the middles of as many equal parts. A long answer is read in windows; a frame's similarity is their mean,
    weighted by their tokens. Cosines of CLIP are small (0.2 to 0.35 for a good match), and so is this score: compare
    it with scores of the same model, not with 1.0.

    >>> case = {"id": "q1", "metadata": {"video_path": "no-such-video.mp4"}}
    >>> result = VideoResponseRelevanceMetric(num_frames=8).evaluate(case, None, "A cat jumps onto a sofa.")
    >>> result.value, result.detail["num_frames"]  # a video that is there gives a value from 0 to 1
    (None, 8)
    """

    num_frames: int = 8
    clip_model_name: str = "ViT-B/32"

    info = multimodal_info(
        name="video_response_relevance",
        summary="How well the answer fits evenly spaced frames of the case's video, by CLIP.",
        inputs=("case.metadata.video_path", "outcome.output"),
        metadata_inputs={"video_path": "shared"},
        detail_keys=(
            "mean_similarity",
            "best_similarity",
            "frames",
            "num_frames",
            "duration_s",
            "text_windows",
            "model",
        ),
        backend="clip",
        extra="multimodal",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameters(self, num_frames=_N_FRAMES)

    @property
    def model_name(self) -> str:
        """The name of the CLIP to use, as the user gave it."""
        return self.clip_model_name

    @cached_property
    def _encoded(self) -> RecentlyUsed[EncodedVideo | Unencodable]:
        return RecentlyUsed(_VIDEOS_KEPT)

    def sources(self, metadata: Mapping[str, Any]) -> tuple[Any, ...]:
        """The video of a case."""
        found = named_media(metadata, ("video_path",))
        if len(found) > 1:
            raise InputProblem(f"case.metadata['video_path'] must be one video; received {len(found)}")
        return found

    def missing_media(self) -> str:
        """The reason when a case names no video."""
        return "no video: case.metadata['video_path'] is missing"

    def compare(
        self, encoder: ClipEncoder, asked: Sequence[Asked], texts: Sequence[EncodedText | Unencodable]
    ) -> list[MetricResult]:
        """Sample and encode each distinct video, then score each answer."""
        keys = [(encoder.name, source_identity(each.places[0], self._access)) for each in asked]
        videos = {key: self._encoded.get(key) for key in keys}
        new = {key: each.places[0] for key, each in zip(keys, asked, strict=True) if videos[key] is None}
        for key, video in zip(new, self._encode(encoder, list(new.values())), strict=True):
            self._encoded.put(key, video)
            videos[key] = video
        results = []
        for key, each, text in zip(keys, asked, texts, strict=True):
            try:
                results.append(self._result(usable_text(text), _usable_video(each, videos[key]), encoder.name))
            except Refused as problem:
                results.append(self.refused(problem, str(problem), each))
        return results

    def _encode(self, encoder: ClipEncoder, sources: Sequence[Any]) -> Iterator[EncodedVideo | Unencodable]:
        # A few videos at a time: their frames are large, and only so many may wait to be encoded.
        with ThreadPoolExecutor(_VIDEOS_AT_ONCE) as pool:
            for start in range(0, len(sources), _VIDEOS_AT_ONCE):
                sampled = list(pool.map(self._sampled, sources[start : start + _VIDEOS_AT_ONCE]))
                frames = [each for video in sampled if not isinstance(video, Unencodable) for each in video.frames]
                vectors = iter(encoder.encode_images(frames, self._access) if frames else ())
                for video in sampled:
                    yield video if isinstance(video, Unencodable) else _encoded(video, vectors)

    def _sampled(self, source: Any) -> SampledVideo[Any] | Unencodable:
        try:
            return sample_frames_apart(source, self.num_frames, self._access)
        except MediaProblem as problem:
            return Unencodable(str(problem))

    def _result(self, text: EncodedText, video: EncodedVideo, model: str) -> MetricResult:
        similarities = [
            weighted_mean([cosine(window, frame) for window in text.vectors], text.n_tokens) for frame in video.vectors
        ]
        detail: dict[str, Any] = {
            "mean_similarity": sum(similarities) / len(similarities),
            "best_similarity": max(similarities),
            "frames": [
                {"time_s": time_s, "similarity": each} for time_s, each in zip(video.times_s, similarities, strict=True)
            ],
            "num_frames": self.num_frames,
            "duration_s": video.duration_s,
            "decoder": video.decoder,
            **text_detail(text),
            "model": model,
            "backend": self.current_backend,
        }
        if len(similarities) < self.num_frames:
            detail["frames_missing"] = f"{len(similarities)} of {self.num_frames} frames could be had from the video"
        return MetricResult(self.name, frames_score(similarities), detail)

    def refused(self, error: Exception, reason: str, asked: Asked) -> MetricResult:
        """The result of an item whose video or answer cannot be used."""
        return self.unscored(reason, error=error, num_frames=self.num_frames, backend=self.current_backend)


def _usable_video(asked: Asked, video: EncodedVideo | Unencodable | None) -> EncodedVideo:
    if isinstance(video, EncodedVideo):
        return video
    raise Refused(f"{shown_source(asked.sources[0])} {video.reason if video else 'was not encoded'}")


def _encoded(video: SampledVideo[Any], vectors: Iterator[Vector | Unencodable]) -> EncodedVideo | Unencodable:
    own = list(islice(vectors, len(video.frames)))
    bad = next((each for each in own if isinstance(each, Unencodable)), None)
    if bad is not None:
        return Unencodable(f"has a frame that {bad.reason}")
    usable = tuple(each for each in own if not isinstance(each, Unencodable))
    return EncodedVideo(usable, tuple(video.times_s), video.duration_s, video.decoder)
