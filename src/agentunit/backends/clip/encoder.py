"""A CLIP as the metrics use it: nothing is encoded twice, and pictures are decoded while the device works."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from agentunit.backends.clip.cache import RecentlyUsed, digest_of
from agentunit.backends.clip.decoders import DecoderProcesses
from agentunit.backends.clip.interface import EncodedText, Unencodable, Vector
from agentunit.backends.clip.picture_batches import PictureBatches
from agentunit.backends.clip.runtime import ClipRuntime
from agentunit.backends.clip.vectors import NO_VECTOR, unit_vectors
from agentunit.backends.media.limits import MediaAccess, MediaProblem
from agentunit.backends.media.sources import read_source

Given = TypeVar("Given")
Made = TypeVar("Made")
_EVERYWHERE = MediaAccess()
_KEPT = 16_384
_READ_TOGETHER = 16
_MANY = 512
_FEW = 3
_TEXTS_TOGETHER = 2_048


class CachedEncoder:
    """Encodes each distinct picture and text once, as long as its vector is among the last 16,384 used.

    Files are read and pictures decoded by ``n_threads`` threads, a few batches ahead of the device. Beside a GPU,
    decoding moves to as many processes once ``many`` pictures have been met; ``many=None`` never starts any.
    """

    def __init__(
        self, runtime: ClipRuntime, *, n_kept: int = _KEPT, n_threads: int | None = None, many: int | None = _MANY
    ) -> None:
        self.name = runtime.name
        self.runtime = runtime
        self._pictures: RecentlyUsed[Vector | Unencodable] = RecentlyUsed(n_kept)
        self._texts: RecentlyUsed[EncodedText | Unencodable] = RecentlyUsed(n_kept)
        self._n_threads = n_threads or min(32, _processors())
        self._many = many
        self._n_met = 0
        self._processes: DecoderProcesses | None = None

    def encode_images(self, sources: Sequence[Any], access: MediaAccess = _EVERYWHERE) -> list[Vector | Unencodable]:
        """A vector of length 1 for each picture, or why there is none."""
        found: list[Vector | Unencodable | None] = [None] * len(sources)
        places: dict[bytes, list[int]] = {}

        def settle(digest: bytes, answer: Vector | Unencodable) -> None:
            self._pictures.put((digest, access.limits), answer)
            for place in places[digest]:
                found[place] = answer

        with ThreadPoolExecutor(self._n_threads) if len(sources) > _FEW else _AtOnce() as pool:
            batches = PictureBatches(self.runtime, access.limits, pool, settle, self._decoders(len(sources), access))
            chunks = [sources[at : at + _READ_TOGETHER] for at in range(0, len(sources), _READ_TOGETHER)]
            loaded = _in_order(pool, lambda chunk: [_loaded(each, access) for each in chunk], chunks, self._n_threads)
            for place, each in enumerate(one for chunk in loaded for one in chunk):
                if isinstance(each, Unencodable):
                    found[place] = each
                    continue
                digest, content = each
                known = self._pictures.get((digest, access.limits))
                if known is not None:
                    found[place] = known
                elif digest in places:
                    # Made already, and pushed out of the cache since, or still under way.
                    found[place] = found[places[digest][0]]
                    places[digest].append(place)
                else:
                    places[digest] = [place]
                    batches.add(digest, content)
            batches.finish()
        return [each if each is not None else Unencodable(NO_VECTOR) for each in found]

    def _decoders(self, n_more: int, access: MediaAccess) -> DecoderProcesses | None:
        self._n_met += n_more
        too_few = self._many is None or self._n_met < self._many or n_more < _READ_TOGETHER
        # Without scattered reads (Windows) threads have to do.
        if too_few or not hasattr(os, "readv"):
            return None
        if self._processes is None or not self._processes.ours or self._processes.limits != access.limits:
            self._processes = DecoderProcesses(self._n_threads, self.runtime.settings, access.limits)
        return self._processes

    def encode_texts(self, texts: Sequence[str]) -> list[EncodedText | Unencodable]:
        """The vectors of length 1 of each text, or why there are none."""
        keys = [digest_of(text.encode("utf-8", "surrogatepass")) for text in texts]
        found = {key: self._texts.get(key) for key in keys}
        new = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
        asked = list(new.items())
        chunks = [asked[at : at + _TEXTS_TOGETHER] for at in range(0, len(asked), _TEXTS_TOGETHER)]
        # A chunk is cut into tokens while the device still works on the one before.
        started: deque[tuple[list[tuple[bytes, str]], _StartedTexts]] = deque()
        for chunk in [*chunks, None]:
            if chunk is not None:
                started.append((chunk, _StartedTexts(self.runtime, [text for _, text in chunk])))
            while len(started) > (chunk is not None):
                done, texts_of_chunk = started.popleft()
                for (key, _), made in zip(done, texts_of_chunk.encoded(), strict=True):
                    self._texts.put(key, made)
                    found[key] = made
        return [found[key] or Unencodable(NO_VECTOR) for key in keys]


class _StartedTexts:
    """Texts on their way through the device."""

    def __init__(self, runtime: ClipRuntime, texts: Sequence[str]) -> None:
        self._read = runtime.tokens.windows(texts)
        windows = [window for each in self._read for window in each.windows]
        # Windows of like length go together, so that little is computed for what fills the shorter ones up.
        order = sorted(range(len(windows)), key=lambda at: len(windows[at]))
        self._groups = [order[at : at + runtime.batch_size] for at in range(0, len(order), runtime.batch_size)]
        self._later = [
            runtime.encode_tokens(runtime.tokens.padded([windows[at] for at in group], runtime.text_length))
            for group in self._groups
        ]

    def encoded(self) -> Iterator[EncodedText | Unencodable]:
        """Wait for the vectors, and give each text its own."""
        vectors: dict[int, Vector | Unencodable] = {}
        for group, later in zip(self._groups, self._later, strict=True):
            vectors.update(zip(group, unit_vectors(later()), strict=True))
        position = 0
        for each in self._read:
            made = [vectors[position + at] for at in range(len(each.windows))]
            position += len(each.windows)
            whole = [one for one in made if not isinstance(one, Unencodable)]
            if not made:
                yield Unencodable("holds no words")
            elif len(whole) < len(made):
                yield Unencodable(NO_VECTOR)
            else:
                yield EncodedText(tuple(whole), tuple(map(len, each.windows)), each.complete)


class _AtOnce(Executor):
    """Does what it is given at once: for a few pictures threads cost more than they save."""

    def submit(self, fn: Callable[..., Made], /, *args: Any, **kwargs: Any) -> Future[Made]:
        done: Future[Made] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


# Hundreds of pictures wait for their turn: of a large file only the digest does, and it is read again.
_MAY_WAIT_BYTES = 2**20


def _loaded(source: Any, access: MediaAccess) -> tuple[bytes, Any] | Unencodable:
    try:
        if hasattr(source, "tobytes") and hasattr(source, "mode"):
            return digest_of(repr((source.mode, source.size)).encode(), source.tobytes()), source
        content = read_source(source, access)
        if len(content) > _MAY_WAIT_BYTES and not isinstance(source, (bytes, bytearray, memoryview)):
            return digest_of(content), lambda: read_source(source, access)
        return digest_of(content), content
    except MediaProblem as problem:
        return Unencodable(str(problem))


def _in_order(pool: Executor, task: Callable[[Given], Made], given: Iterable[Given], n_ahead: int) -> Iterator[Made]:
    """What a task makes of each thing, in order, with only so many of them under way."""
    waiting: deque[Future[Made]] = deque()
    for each in given:
        waiting.append(pool.submit(task, each))
        if len(waiting) > n_ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
