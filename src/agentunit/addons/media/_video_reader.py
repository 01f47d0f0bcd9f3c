"""A video stream under limits: where its keyframes are, and frames decoded from one of them on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

from agentunit.backends.media_sources import MediaLimits, MediaProblem

_STEPS_BACK_S = (1.0, 4.0, 16.0, 64.0, 0.0)
_BEFORE_ALL_S = 10.0
_LONGEST_S = 10_000 * 3600.0
_WELL_AFTER = 1.1


class Keyframe(NamedTuple):
    """When a keyframe is shown, and the time to look for so that reading begins at or before it."""

    tick: int
    seen_from: int


class VideoReader:
    """One video stream of an open container. Times are ticks of the stream unless a name says seconds.

    Every loop over what a file holds is bounded by packets, decoded frames and the clock: files may be endless, or
    lie about what is in them.
    """

    def __init__(self, container: Any, stream: Any, limits: MediaLimits) -> None:
        self._container, self._stream, self._limits = container, stream, limits
        self._deadline = time.monotonic() + limits.most_video_s
        self._trouble: str | None = None
        self._cut_short = False
        self.n_decoded = 0
        self._tick_s: Fraction = stream.time_base or Fraction(1, 1000)
        self.first_tick: int = stream.start_time or 0
        context = stream.codec_context
        if context is None:
            raise MediaProblem("holds a video stream of an unknown codec")
        limits.check_frame(context.width or 0, context.height or 0)
        # The size in the header need not be that of the frames, so the decoder gets the limit as well.
        context.options = {**context.options, "max_pixels": str(limits.most_frame_pixels)}

    def seconds(self, tick: int) -> float:
        """A time of the stream in seconds from its start."""
        return float((tick - self.first_tick) * self._tick_s)

    def ticks(self, seconds: float) -> int:
        """Seconds as ticks of the stream."""
        return int(seconds / self._tick_s)

    def stated_duration(self) -> float | None:
        """The duration in seconds that the file states, if it is one."""
        import av

        stream, whole = self._stream.duration, self._container.duration
        stated = float(stream * self._tick_s) if stream else whole / av.time_base if whole else 0.0
        return stated if 0 < stated < _LONGEST_S else None

    def goes_on_after(self, seconds: float) -> bool:
        """Whether frames come well after the end that a file states: sampling must not leave them out."""
        late = self.first_tick + self.ticks(_WELL_AFTER * seconds)
        packets = self._packets(self._limits.most_packets_per_seek) if self._seek(late) else iter(())
        # What an edit list leaves out is read, but never shown.
        return any(each.pts is not None and each.pts > late and not each.is_discard for each in packets)

    def measured_duration(self) -> float:
        """The time in seconds from the first to the last packet that can be read; nothing is decoded.

        ``inf`` when there are more packets than may be read.
        """
        self._seek(self.first_tick)
        first, last, step = None, None, 0
        for packet in self._packets(20 * self._limits.most_packets_per_seek):
            if packet.pts is not None:
                first = packet.pts if first is None else min(first, packet.pts)
                last = packet.pts if last is None else max(last, packet.pts)
                step = max(step, packet.duration or 0)
        if self._cut_short:
            return inf
        if first is None or last is None:
            raise MediaProblem(f"has no timestamps to choose frames by{self.describe_trouble()}")
        self.first_tick = first
        return max(float((last - first + (step or 1)) * self._tick_s), float(self._tick_s))

    def keyframe_before(self, target: int) -> Keyframe | None:
        """The keyframe from which a time can be reached; ``None`` when nothing can be read there.

        Files without an index lead to any place near a time, perhaps after its keyframe: then further back is tried.
        """
        nearest, tick = None, target
        for back_s in _STEPS_BACK_S:
            found = self._keyframe_from(tick)
            if found is not None and found.tick <= target:
                return found
            nearest = found or nearest
            if tick < self.first_tick:
                break
            # From before the first frame on, reading begins at the beginning whatever a format makes of times.
            tick = max(self.first_tick - self.ticks(_BEFORE_ALL_S), tick - self.ticks(back_s))
        return nearest

    def _keyframe_from(self, tick: int) -> Keyframe | None:
        if not self._seek(tick):
            return None
        packets = self._packets(self._limits.most_packets_per_seek)
        ticks = (int(each.pts) for each in packets if each.is_keyframe and each.pts is not None)
        return next((Keyframe(each, tick) for each in ticks), None)

    def frames_at(self, start: Keyframe, aims: Sequence[int], slack: int) -> Iterator[tuple[int, Any]]:
        """For each time, in order, the frame that is shown then, decoding from a keyframe on.

        One that begins up to ``slack`` earlier is as good, and saves decoding further.
        """
        if not self._seek(start.seen_from):
            return
        # The keyframe itself is wanted: it is asked back from the decoder before more is given to it.
        alone = len(aims) == 1 and start.tick >= aims[0] - slack
        waiting = list(aims)
        before, n_since = None, 0
        for frame in self._decoded(start.tick, alone):
            n_since += 1
            if frame.pts is None or n_since > self._limits.most_frames_per_seek:
                self._trouble = f"{self._limits.most_frames_per_seek:,} frames without what was looked for"
                return
            while waiting and frame.pts >= waiting[0] - slack:
                shown = before if before is not None and frame.pts > waiting[0] else frame
                waiting.pop(0)
                n_since = 0
                yield shown.pts, self._picture(shown)
            before = frame
            if not waiting:
                return
        if before is not None and not self._cut_short:
            yield before.pts, self._picture(before)

    def describe_trouble(self) -> str:
        """What went wrong on the way, in words that end a sentence."""
        return f": {self._trouble}" if self._trouble else ""

    def _decoded(self, start: int, alone: bool) -> Iterator[Any]:
        import av

        begun = False
        for packet in self._packets(self._limits.most_packets_per_seek):
            begun = begun or (packet.is_keyframe and (packet.pts is None or packet.pts >= start))
            if not begun:
                continue
            try:
                frames = packet.decode()
                if alone and not frames:
                    frames = self._stream.codec_context.decode(None)
            except av.FFmpegError as error:
                self._trouble = in_words(error)
                if alone:
                    return
                continue
            for frame in frames:
                self.n_decoded += 1
                yield frame
            if alone:
                return

    def _packets(self, most: int) -> Iterator[Any]:
        import av

        try:
            for count, packet in enumerate(self._container.demux(self._stream)):
                if count >= most:
                    self._trouble, self._cut_short = f"{most:,} packets without what was looked for", True
                    return
                if time.monotonic() > self._deadline:
                    raise MediaProblem(f"took longer than {self._limits.most_video_s:g} s to sample")
                yield packet
        except av.FFmpegError as error:
            self._trouble = in_words(error)

    def _seek(self, tick: int) -> bool:
        import av

        self._cut_short = False
        try:
            self._container.seek(tick, stream=self._stream, backward=True)
        except (av.FFmpegError, OverflowError) as error:
            self._trouble = in_words(error)
            return False
        return True

    def _picture(self, frame: Any) -> Any:
        self._limits.check_frame(frame.width, frame.height)
        picture = frame.to_image()
        turned = int(getattr(frame, "rotation", 0) or 0)
        return picture.rotate(turned, expand=True) if turned % 360 else picture


def in_words(error: Exception) -> str:
    """What FFmpeg says of an error, without the number of the file it happened in."""
    return str(getattr(error, "strerror", None) or error).lower()
