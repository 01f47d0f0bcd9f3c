"""Pictures on their way to the device: decoded by threads into the room of a batch, several batches at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from agentunit.backends.clip.decoders import DecoderProcess, DecoderProcesses
from agentunit.backends.clip.interface import Unencodable, Vector
from agentunit.backends.clip.preprocessing import cropped
from agentunit.backends.clip.runtime import ClipRuntime, Later, PictureBatch
from agentunit.backends.clip.vectors import unit_vectors
from agentunit.backends.media.images import as_rgb, decode_image
from agentunit.backends.media.limits import MediaLimits, MediaProblem

Settle = Callable[[bytes, "Vector | Unencodable"], None]
_DECODED_TOGETHER = 8
_BATCHES_DECODING = 3
_BATCHES_RUNNING = 2


class _Filling:
    """One batch: who sits in which place, and the tasks that fill it."""

    def __init__(self, room: PictureBatch) -> None:
        self.room = room
        self.digests: list[bytes] = []
        self.tasks: list[Future[dict[bytes, str]]] = []


class PictureBatches:
    """Takes pictures one by one and hands their vectors to ``settle``, by digest, when they are made.

    A picture that cannot be decoded keeps its place in the batch empty: its reason is settled in its stead. With
    ``processes``, threads only carry pictures to and from them.
    """

    def __init__(
        self,
        runtime: ClipRuntime,
        limits: MediaLimits,
        pool: Executor,
        settle: Settle,
        processes: DecoderProcesses | None = None,
    ) -> None:
        self._runtime, self._limits, self._pool, self._settle = runtime, limits, pool, settle
        self._processes = processes
        self._waiting: list[tuple[bytes, Any]] = []
        self._decoding: deque[_Filling] = deque()
        self._running: deque[tuple[list[bytes], dict[bytes, str], Later]] = deque()

    def add(self, digest: bytes, content: Any) -> None:
        """Take a picture: decoded, as bytes, or as something that gives its bytes when called."""
        self._waiting.append((digest, content))
        if len(self._waiting) == self._runtime.batch_size:
            self._begin()
            self._advance(_BATCHES_DECODING, _BATCHES_RUNNING)

    def finish(self) -> None:
        """Wait until every picture is settled."""
        if self._waiting:
            self._begin()
        self._advance(0, 0)

    def _begin(self) -> None:
        batch = _Filling(self._runtime.empty_batch(len(self._waiting)))
        batch.digests = [digest for digest, _ in self._waiting]
        for start in range(0, len(self._waiting), _DECODED_TOGETHER):
            some = self._waiting[start : start + _DECODED_TOGETHER]
            batch.tasks.append(self._pool.submit(self._fill, batch.room.pixels, start, some))
        self._waiting = []
        self._decoding.append(batch)

    def _fill(self, pixels: Any, start: int, pictures: list[tuple[bytes, Any]]) -> dict[bytes, str]:
        if self._processes is None:
            return self._filled(pixels, start, pictures, None)
        with self._processes.borrowed() as decoder:
            return self._filled(pixels, start, pictures, decoder)

    def _filled(
        self, pixels: Any, start: int, pictures: list[tuple[bytes, Any]], decoder: DecoderProcess | None
    ) -> dict[bytes, str]:
        reasons: dict[bytes, str] = {}
        for place, (digest, content) in enumerate(pictures, start):
            try:
                content = content() if callable(content) else content
                if not isinstance(content, bytes):
                    pixels[place] = cropped(as_rgb(content), self._runtime.settings)
                elif decoder is None:
                    pixels[place] = cropped(decode_image(content, self._limits), self._runtime.settings)
                else:
                    decoder.decode_into(content, memoryview(pixels[place]).cast("B"))
            except MediaProblem as problem:
                reasons[digest] = str(problem)
        return reasons

    def _advance(self, most_decoding: int, most_running: int) -> None:
        while len(self._decoding) > most_decoding:
            batch = self._decoding.popleft()
            reasons = {digest: reason for task in batch.tasks for digest, reason in task.result().items()}
            if len(reasons) == len(batch.digests):
                self._hand_over(batch.digests, reasons, None)
            else:
                self._running.append((batch.digests, reasons, self._runtime.encode_pictures(batch.room)))
            while len(self._running) > most_running:
                self._hand_over(*self._running.popleft())
        while len(self._running) > most_running:
            self._hand_over(*self._running.popleft())

    def _hand_over(self, digests: list[bytes], reasons: dict[bytes, str], later: Later | None) -> None:
        vectors = unit_vectors(later()) if later is not None else [None] * len(digests)
        for digest, vector in zip(digests, vectors, strict=True):
            reason = reasons.get(digest)
            answer = Unencodable(reason) if reason is not None else vector
            if answer is not None:
                self._settle(digest, answer)
