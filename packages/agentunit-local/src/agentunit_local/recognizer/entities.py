"""People, places and addresses in texts: cuts texts into windows, asks the model, and joins its labels to spans."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentunit_local.recognizer.tokens import LABELS, PIECES, Token, cut, pieces

WEIGHTS = Path(__file__).parents[1] / "weights" / "recognizer.onnx"
LONGEST = 96
"""Tokens that the model reads at once."""

BATCH_TOKENS = 2048
MOST_THREADS = 4
_KINDS = ("person", "place", "address")
_SENTENCE_END = frozenset("\n.!?。！？।;؛؟")
_JOINED_BY = re.compile(r"[\s,.\-/'’·#]*\Z")


class Entity(NamedTuple):
    """A person, place or address by its position in a text, and how likely it is one, between 0 and 1."""

    kind: str
    start: int
    end: int
    share: float


class Recognizer:
    """The model, opened with the first text and kept. Calls from several threads are safe."""

    def __init__(self, weights: Path = WEIGHTS, threads: int | None = None) -> None:
        self._weights, self._threads = weights, threads
        self._session: Any = None
        self._process = -1

    def find(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text, in order, none overlapping."""
        windows = [(place, window) for place, text in enumerate(texts) for window in _windows(text)]
        found: list[list[Entity]] = [[] for _ in texts]
        for batch in _batches(windows):
            shares = self._shares([[texts[place][each.start : each.end] for each in window] for place, window in batch])
            for (place, window), rows in zip(batch, shares, strict=True):
                found[place] += _spans(texts[place], window, rows)
        return [sorted(each, key=lambda entity: entity.start) for each in found]

    def _shares(self, windows: list[list[str]]) -> NDArray[np.float32]:
        fed = np.zeros((len(windows), max(len(words) for words in windows), PIECES), np.int32)
        for row, words in enumerate(windows):
            fed[row, : len(words)] = [pieces(word) for word in words]
        shares: NDArray[np.float32] = self._opened().run(None, {"pieces": fed})[0]
        return shares

    def _opened(self) -> Any:
        """The model; a forked process opens it anew, because it lacks the threads of the process it came from."""
        if self._session is None or self._process != os.getpid():
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = self._threads or min(MOST_THREADS, os.cpu_count() or 1)
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            self._session = onnxruntime.InferenceSession(str(self._weights), options, providers=["CPUExecutionProvider"])
            self._process = os.getpid()
        return self._session


@lru_cache(maxsize=1)
def shipped_recognizer() -> Recognizer:
    """The recognizer of this package."""
    return Recognizer()


def _windows(text: str) -> Iterator[list[Token]]:
    """The tokens of a text in pieces that the model can read at once, cut where a sentence ends if one does."""
    tokens = cut(text)
    at = 0
    while at < len(tokens):
        end = min(at + LONGEST, len(tokens))
        if end < len(tokens):
            ends = (place + 1 for place in range(end - 1, at + LONGEST // 2, -1) if text[tokens[place].start] in _SENTENCE_END)
            end = next(ends, end)
        yield tokens[at:end]
        at = end


def _batches(windows: list[tuple[int, list[Token]]]) -> Iterator[list[tuple[int, list[Token]]]]:
    """Windows of similar length together, with a bounded number of tokens, filling included."""
    batch: list[tuple[int, list[Token]]] = []
    for window in sorted(windows, key=lambda each: len(each[1])):
        if batch and (len(batch) + 1) * len(window[1]) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _spans(text: str, window: list[Token], shares: NDArray[np.float32]) -> Iterator[Entity]:
    """Runs of tokens of one kind. A run is as likely as its mean token; a new beginning parts two runs."""
    best = shares[: len(window)].argmax(-1)
    begun: int | None = None
    kind = ""
    for place in range(len(window) + 1):
        label = LABELS[best[place]] if place < len(window) else "O"
        if begun is not None and not (label.startswith("I-") and label[2:] == kind):
            yield Entity(kind, window[begun].start, window[place - 1].end, _mean(shares, begun, place, kind))
            begun = None
        if begun is None and label != "O":
            begun, kind = place, label[2:]


def _mean(shares: NDArray[np.float32], start: int, end: int, kind: str) -> float:
    begins, goes_on = LABELS.index(f"B-{kind}"), LABELS.index(f"I-{kind}")
    return float((shares[start:end, begins] + shares[start:end, goes_on]).mean())
