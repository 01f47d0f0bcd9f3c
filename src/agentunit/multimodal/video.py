"""How well an answer fits the video it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from agentunit import doors
from agentunit.backends.media_sources import shown_source
from agentunit.core.results import MetricResult
from agentunit.formulas.similarity import cosine, frames_score, weighted_mean
from agentunit.metrics.inputs import InputProblem
from agentunit.metrics.parameters import Rule, check_parameters, is_number
from agentunit.metrics.sentences import amount, counted
from agentunit.multimodal.clip_metric import (
    Asked,
    ClipEncoder,
    ClipMetric,
    EncodedText,
    Refused,
    Unencodable,
    Vector,
    named_media,
    text_detail,
    usable_text,
)
from agentunit.multimodal.reference_texts import multimodal_info
from agentunit.public import publish

_N_FRAMES = Rule("from 1 to 256", lambda value: is_number(value) and isinstance(value, int) and 1 <= value <= 256)


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
    from the middles of as many equal parts. Cosines of CLIP are small (0.2 to 0.35 for a good match), and so is
    this score: compare it with scores of the same model, not with 1.0.

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
    def _videos(self) -> Any:
        # It keeps what it made: several cases may be about one video.
        return doors.part("video_encoder")(self.num_frames, self._access)

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
        videos = self._videos.encode(encoder, [each.places[0] for each in asked])
        results = []
        for each, text, video in zip(asked, texts, videos, strict=True):
            try:
                results.append(self._result(usable_text(text), _usable_video(each, video), encoder.name))
            except Refused as problem:
                results.append(self.refused(problem, str(problem), each))
        return results

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
        best = max(range(len(similarities)), key=similarities.__getitem__)
        detail["why"] = (
            f"similarity {detail['mean_similarity']:.2f} on average of {counted(len(similarities), 'frame')}, "
            f"{similarities[best]:.2f} at best, at {amount(video.times_s[best])} s"
        )
        if len(similarities) < self.num_frames:
            detail["frames_missing"] = f"{len(similarities)} of {self.num_frames} frames could be had from the video"
        return MetricResult(self.name, frames_score(similarities), detail)

    def refused(self, error: Exception, reason: str, asked: Asked) -> MetricResult:
        """The result of an item whose video or answer cannot be used."""
        return self.unscored(reason, error=error, num_frames=self.num_frames, backend=self.current_backend)


def _usable_video(asked: Asked, video: EncodedVideo | Unencodable) -> EncodedVideo:
    if isinstance(video, Unencodable):
        raise Refused(f"{shown_source(asked.sources[0])} {video.reason}")
    return video


publish("agentunit.multimodal.metrics", VideoResponseRelevanceMetric)
