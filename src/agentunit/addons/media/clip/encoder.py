"""Pictures and texts as vectors of one CLIP model, in batches, each computed once."""

from __future__ import annotations

import os
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from hashlib import sha256
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from agentunit.addons.media._images import as_rgb, decode_image
from agentunit.addons.media.clip._decoders import DecoderProcesses
from agentunit.addons.media.clip.clip_settings import TokenWindows, cropped
from agentunit.addons.media.clip.runtime import ClipRuntime, Later, PictureBatch
from agentunit.backends.media_sources import MediaAccess, MediaLimits, MediaProblem, read_source
from agentunit.multimodal.clip_metric import EncodedText, Unencodable, Vector

Kept = TypeVar("Kept")


class RecentlyUsed(Generic[Kept]):
    """The things used last, up to a number of them; safe to share between threads.

    >>> cache = RecentlyUsed(2)
    >>> for key in "aba": cache.put(key, key.upper())
    >>> cache.put("c", "C"); cache.get("a"), cache.get("b")
    ('A', None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Kept | None:
        """What was put under a key, unless it was pushed out."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Kept) -> None:
        """Keep a value; the one that was not used for longest leaves when there are too many."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)


def digest_of(*parts: bytes) -> bytes:
    """16 bytes that stand for a content.

    >>> digest_of(b"ab") == digest_of(b"ab"), digest_of(b"ab") == digest_of(b"a", b"b")
    (True, False)
    """
    # Processors have instructions for it: no other hash that cannot be forged is as fast on a picture.
    hashed = sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.digest()[:16]


NO_VECTOR = "has no finite vector: the model made none of it"


def unit_vectors(rows: Any) -> list[Vector | Unencodable]:
    """The rows of an array as compact vectors of length 1; a row without direction has none."""
    import numpy as np

    with np.errstate(all="ignore"):
        units = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    usable = np.isfinite(units).all(axis=1)
    return [
        array("f", unit.tobytes()) if good else Unencodable(NO_VECTOR) for unit, good in zip(units, usable, strict=True)
    ]


Settle = Callable[[bytes, "Vector | Unencodable"], None]
_DECODED_TOGETHER = 8
_BATCHES_DECODING = 3
_BATCHES_RUNNING = 2


class _Filling(NamedTuple):
    """One batch: the digest of the picture in each place, and the tasks that fill it."""

    room: PictureBatch
    digests: list[bytes]
    tasks: list[Future[dict[bytes, str]]]


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
        batch = _Filling(self._runtime.empty_batch(len(self._waiting)), [digest for digest, _ in self._waiting], [])
        for start in range(0, len(self._waiting), _DECODED_TOGETHER):
            some = self._waiting[start : start + _DECODED_TOGETHER]
            batch.tasks.append(self._pool.submit(self._fill, batch.room.pixels, start, some))
        self._waiting = []
        self._decoding.append(batch)

    def _fill(self, pixels: Any, start: int, pictures: list[tuple[bytes, Any]]) -> dict[bytes, str]:
        reasons: dict[bytes, str] = {}
        sent: list[tuple[int, bytes, bytes]] = []
        for place, (digest, content) in enumerate(pictures, start):
            try:
                content = content() if callable(content) else content
                if isinstance(content, memoryview):
                    pixels[place] = _square(content, self._runtime.settings.side)
                elif not isinstance(content, bytes):
                    pixels[place] = cropped(as_rgb(content), self._runtime.settings)
                elif self._processes is None:
                    pixels[place] = cropped(decode_image(content, self._limits), self._runtime.settings)
                else:
                    sent.append((place, digest, content))
            except MediaProblem as problem:
                reasons[digest] = str(problem)
        if sent and self._processes is not None:
            with self._processes.borrowed() as decoder:
                made = decoder.decode([content for _, _, content in sent])
                for (place, digest, _), answer in zip(sent, made, strict=True):
                    if isinstance(answer, MediaProblem):
                        reasons[digest] = str(answer)
                    else:
                        pixels[place] = _square(answer, self._runtime.settings.side)
        return reasons

    def _advance(self, most_decoding: int, most_running: int) -> None:
        while len(self._decoding) > most_decoding:
            batch = self._decoding.popleft()
            reasons = {digest: reason for task in batch.tasks for digest, reason in task.result().items()}
            if len(reasons) == len(batch.digests):
                self._hand_over(batch.digests, reasons, None)
            else:
                self._running.append((batch.digests, reasons, self._runtime.encode_pictures(batch.room)))
            self._collect(most_running)
        self._collect(most_running)

    def _collect(self, most_running: int) -> None:
        while len(self._running) > most_running:
            self._hand_over(*self._running.popleft())

    def _hand_over(self, digests: list[bytes], reasons: dict[bytes, str], later: Later | None) -> None:
        vectors = unit_vectors(later()) if later is not None else [None] * len(digests)
        for digest, vector in zip(digests, vectors, strict=True):
            reason = reasons.get(digest)
            answer = Unencodable(reason) if reason is not None else vector
            if answer is not None:
                self._settle(digest, answer)


Taken = TypeVar("Taken")
Made = TypeVar("Made")
_EVERYWHERE = MediaAccess()
_KEPT = 16_384
_READ_TOGETHER = 16
_MANY = 512
_FEW = 3
_TEXTS_TOGETHER = 2_048
_LONGEST_KEY = 512


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
            side = self.runtime.settings.side
            chunks = [sources[at : at + _READ_TOGETHER] for at in range(0, len(sources), _READ_TOGETHER)]
            loaded = _in_order(
                pool, lambda chunk: [_loaded(each, access, side) for each in chunk], chunks, self._n_threads
            )
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
        found = {text: self._texts.get(_text_key(text)) for text in texts}
        asked = [text for text, known in found.items() if known is None]
        chunks = [asked[at : at + _TEXTS_TOGETHER] for at in range(0, len(asked), _TEXTS_TOGETHER)]
        # A chunk is cut into tokens while another is on its way to the device, and a third comes back.
        with ThreadPoolExecutor(1) if len(chunks) > 1 else _AtOnce() as pool:
            started = _in_order(pool, lambda chunk: (chunk, self.runtime.tokens.windows(chunk)), chunks, 1)
            waiting: deque[tuple[list[str], _StartedTexts]] = deque()
            for chunk, read in started:
                waiting.append((chunk, _StartedTexts(self.runtime, read)))
                if len(waiting) > 1:
                    self._settle_texts(*waiting.popleft(), found)
            while waiting:
                self._settle_texts(*waiting.popleft(), found)
        return [found[text] or Unencodable(NO_VECTOR) for text in texts]

    def _settle_texts(
        self, texts: list[str], started: _StartedTexts, found: dict[str, EncodedText | Unencodable | None]
    ) -> None:
        for text, made in zip(texts, started.encoded(), strict=True):
            self._texts.put(_text_key(text), made)
            found[text] = made


def _text_key(text: str) -> Hashable:
    """What stands for a text: a long one would take more room than its vector."""
    return text if len(text) <= _LONGEST_KEY else digest_of(text.encode("utf-8", "surrogatepass"))


class _StartedTexts:
    """Texts on their way through the device."""

    def __init__(self, runtime: ClipRuntime, read: Sequence[TokenWindows]) -> None:
        self._read = read
        windows = [window for each in self._read for window in each.windows]
        lengths = [len(window) for window in windows]
        # Windows of like length go together, so that little is computed for what fills the shorter ones up.
        order = sorted(range(len(windows)), key=lengths.__getitem__)
        self._groups = [order[at : at + runtime.batch_size] for at in range(0, len(order), runtime.batch_size)]
        self._later = [
            runtime.encode_tokens(runtime.tokens.padded([windows[at] for at in group], runtime.text_length))
            for group in self._groups
        ]
        self._n_windows = len(windows)

    def encoded(self) -> Iterator[EncodedText | Unencodable]:
        """Wait for the vectors, and give each text its own."""
        vectors: list[Any] = [None] * self._n_windows
        for group, later in zip(self._groups, self._later, strict=True):
            for place, vector in zip(group, unit_vectors(later()), strict=True):
                vectors[place] = vector
        position = 0
        for windows, complete in self._read:
            made = tuple(vectors[position : position + len(windows)])
            position += len(windows)
            if not made:
                yield Unencodable("holds no words")
            elif any(isinstance(one, Unencodable) for one in made):
                yield Unencodable(NO_VECTOR)
            else:
                yield EncodedText(made, tuple(map(len, windows)), complete)


class _AtOnce(Executor):
    """Does what it is given at once: for a few pictures threads cost more than they save."""

    def submit(self, fn: Callable[..., Made], /, *args: Any, **kwargs: Any) -> Future[Made]:
        done: Future[Made] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


# Hundreds of pictures wait for their turn: of a large file only the digest does, and it is read again.
_MAY_WAIT_BYTES = 2**20


def _loaded(source: Any, access: MediaAccess, side: int) -> tuple[bytes, Any] | Unencodable:
    """What stands for a picture, and its content; a view of the pixels where the model takes them as they are."""
    try:
        if hasattr(source, "tobytes") and hasattr(source, "mode"):
            raw = source.tobytes()
            is_ready = source.mode == "RGB" and source.size == (side, side)
            digest = digest_of(repr((source.mode, source.size)).encode(), raw)
            return digest, memoryview(raw) if is_ready else source
        content = read_source(source, access)
        if len(content) > _MAY_WAIT_BYTES and not isinstance(source, (bytes, bytearray, memoryview)):
            return digest_of(content), lambda: read_source(source, access)
        return digest_of(content), content
    except MediaProblem as problem:
        return Unencodable(str(problem))


def _square(raw: memoryview, side: int) -> Any:
    import numpy as np

    return np.frombuffer(raw, np.uint8).reshape(side, side, 3)


def _in_order(pool: Executor, task: Callable[[Taken], Made], inputs: Iterable[Taken], n_ahead: int) -> Iterator[Made]:
    """What a task makes of each thing, in order, with only so many of them under way."""
    waiting: deque[Future[Made]] = deque()
    for each in inputs:
        waiting.append(pool.submit(task, each))
        if len(waiting) > n_ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
