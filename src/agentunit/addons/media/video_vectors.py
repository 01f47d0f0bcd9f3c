"""Videos as the vectors of evenly spaced frames, each video sampled and encoded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from agentunit.addons.media.clip.encoder import RecentlyUsed
from agentunit.addons.media.video_frames import SampledVideo, sample_frames_apart
from agentunit.backends.media_sources import MediaAccess, MediaProblem, source_identity
from agentunit.multimodal.clip_metric import ClipEncoder, Unencodable, Vector
from agentunit.multimodal.video import EncodedVideo

_VIDEOS_AT_ONCE = 4
_VIDEOS_KEPT = 1_024


class VideoEncoder:
    """Takes ``n_frames`` frames of each video, and keeps the vectors of the videos used last."""

    def __init__(self, n_frames: int, access: MediaAccess) -> None:
        self._n_frames = n_frames
        self._access = access
        self._kept: RecentlyUsed[EncodedVideo | Unencodable] = RecentlyUsed(_VIDEOS_KEPT)

    def encode(self, encoder: ClipEncoder, sources: Sequence[Any]) -> list[EncodedVideo | Unencodable]:
        """The vectors of each video, or why there are none, in order."""
        keys = [(encoder.name, source_identity(source, self._access)) for source in sources]
        found = {key: self._kept.get(key) for key in keys}
        new = {key: source for key, source in zip(keys, sources, strict=True) if found[key] is None}
        videos = {key: video for key, video in found.items() if video is not None}
        for key, video in zip(new, self._encode(encoder, list(new.values())), strict=True):
            self._kept.put(key, video)
            videos[key] = video
        return [videos[key] for key in keys]

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
            return sample_frames_apart(source, self._n_frames, self._access)
        except MediaProblem as problem:
            return Unencodable(str(problem))


def _encoded(video: SampledVideo[Any], vectors: Iterator[Vector | Unencodable]) -> EncodedVideo | Unencodable:
    own = list(islice(vectors, len(video.frames)))
    bad = next((each for each in own if isinstance(each, Unencodable)), None)
    if bad is not None:
        return Unencodable(f"has a frame that {bad.reason}")
    usable = tuple(each for each in own if not isinstance(each, Unencodable))
    return EncodedVideo(usable, tuple(video.times_s), video.duration_s, video.decoder)
