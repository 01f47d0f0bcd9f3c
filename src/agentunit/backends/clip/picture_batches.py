"""Pictures on their way to the device: decoded by threads into the room of a batch, several batches at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, NamedTuple

from agentunit.backends.clip.decoders import DECODED_TOGETHER, DecoderProcesses
from agentunit.backends.clip.interface import Unencodable, Vector
from agentunit.backends.clip.preprocessing import decode_into
from agentunit.backends.clip.runtime import ClipRuntime, Later, PictureBatch
from agentunit.backends.clip.vectors import unit_vectors
from agentunit.backends.media.limits import MediaLimits, MediaProblem

Settle = Callable[[bytes, "Vector | Unencodable"], None]
Decode = Callable[[Sequence[bytes], Sequence[memoryview]], "list[str | None]"]
_BATCHES_DECODING = 3
_BATCHES_RUNNING = 2


class Square(NamedTuple):
    """What the model sees of a picture that came decoded: ``side`` × ``side`` × 3 bytes."""

    pixels: bytes


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

    def add(self, digest: bytes, content: bytes | Square | Callable[[], bytes]) -> None:
        """Take a picture: as bytes, as something that gives its bytes when called, or decoded and cut already."""
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
        for start in range(0, len(self._waiting), DECODED_TOGETHER):
            some = self._waiting[start : start + DECODED_TOGETHER]
            batch.tasks.append(self._pool.submit(self._fill, batch.room.pixels, start, some))
        self._waiting = []
        self._decoding.append(batch)

    def _fill(self, pixels: Any, start: int, pictures: list[tuple[bytes, Any]]) -> dict[bytes, str]:
        files: list[tuple[bytes, bytes, memoryview]] = []
        reasons: dict[bytes, str | None] = {}
        with self._decoder() as decode:
            for place, (digest, content) in enumerate(pictures, start):
                room = memoryview(pixels[place]).cast("B")
                if isinstance(content, Square):
                    room[:] = content.pixels
                elif isinstance(content, bytes):
                    files.append((digest, content, room))
                else:
                    # Of the large files of a task only one is in memory.
                    try:
                        reasons[digest] = decode([content()], [room])[0]
                    except MediaProblem as problem:
                        reasons[digest] = str(problem)
            if files:
                digests, contents, rooms = zip(*files, strict=True)
                reasons.update(zip(digests, decode(contents, rooms), strict=True))
        return {digest: reason for digest, reason in reasons.items() if reason is not None}

    @contextmanager
    def _decoder(self) -> Iterator[Decode]:
        if self._processes is None:
            yield lambda contents, rooms: decode_into(contents, rooms, self._runtime.settings, self._limits)
        else:
            with self._processes.borrowed() as process:
                yield process.decode_into

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
