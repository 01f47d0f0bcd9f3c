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
"""Tokens that the model can read at once."""

READ_AT_ONCE = 64
"""Tokens of a window: enough for what stands around a name, and few enough to leave out what holds none."""

BATCH_TOKENS = 2048
MOST_THREADS = 4
_SENTENCE_END = frozenset("\n.!?。！？।;؛؟")


class Entity(NamedTuple):
    """A person, place or address by its position in a text, and how likely it is one, between 0 and 1."""

    kind: str
    start: int
    end: int
    share: float


class Reading:
    """What the model says of one text: its entities, and how likely any stretch of it is of a kind."""

    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self._windows: list[tuple[list[Token], NDArray[np.float32]]] = []

    def add(self, text: str, window: list[Token], shares: NDArray[np.float32]) -> None:
        """Take in what the model says of a window of the text."""
        self._windows.append((window, shares))
        self.entities = sorted((*self.entities, *_spans(text, window, shares)), key=lambda each: each.start)

    def share(self, kind: str, start: int, end: int) -> float | None:
        """How likely the tokens of a stretch are of a kind, on the mean; ``None`` for one that was not read."""
        for window, shares in self._windows:
            places = [place for place, token in enumerate(window) if token.start < end and start < token.end]
            if places:
                return _mean(shares, places[0], places[-1] + 1, kind)
        return None


class Recognizer:
    """The model, opened with the first text and kept. Calls from several threads are safe."""

    def __init__(self, weights: Path = WEIGHTS, threads: int | None = None) -> None:
        self._weights, self._threads = weights, threads
        self._session: Any = None
        self._process = -1

    def unready(self) -> str | None:
        """Why it cannot run now; ``None`` when it can."""
        return None if self._weights.is_file() else f"{self._weights}: no such file"

    def read(self, texts: Sequence[str], wanted: Sequence[Sequence[tuple[int, int]]] = ()) -> list[Reading]:
        """What the model says of each text. It reads windows in which something may stand or that are ``wanted``."""
        windows = [
            (place, window)
            for place, text in enumerate(texts)
            for window in _windows(text)
            if promising(text[window[0].start : window[-1].end])
            or (wanted and any(start < window[-1].end and window[0].start < end for start, end in wanted[place]))
        ]
        readings = [Reading() for _ in texts]
        for batch in _batches(windows):
            shares = self._shares([[texts[place][each.start : each.end] for each in window] for place, window in batch])
            for (place, window), rows in zip(batch, shares, strict=True):
                readings[place].add(texts[place], window, rows[: len(window)])
        return readings

    def find(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text, in order, none overlapping."""
        return [reading.entities for reading in self.read(texts)]

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
            options.intra_op_num_threads = self._threads or _default_threads()
            options.log_severity_level = 3
            # Threads that wait in a busy loop would show as CPU time of whatever runs beside them.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            self._session = onnxruntime.InferenceSession(str(self._weights), options, ["CPUExecutionProvider"])
            self._process = os.getpid()
        return self._session


def _default_threads() -> int:
    told = os.environ.get("AGENTUNIT_LOCAL_THREADS", "")
    return int(told) if told.isdecimal() and int(told) else min(MOST_THREADS, os.cpu_count() or 1)


_CAPITALIZED = re.compile(r"(?<![.!?\n]\s)(?<!^)\b[^\W\d_a-z\u00df-\u00f6\u00f8-\u00ff][^\W\d_]", re.MULTILINE)
_TWO_CAPITALIZED = re.compile(r"\b[A-Z\u00c0-\u00de]\w+[ ,-]+(?:\w{1,3} )?[A-Z\u00c0-\u00de]")
_OTHER_SCRIPT = re.compile(r"[\u0370-\u1cff\u2c00-\ud7ff\uf900-\ufaff\ufe70-\ufeff]")
_LEADS_UP = re.compile(
    r"(?i)\b(?:name|named|called|i['’]?m|i am|this is|call|ask for|mr|mrs|ms|dr|miss|dear|hi|hello|from|with|by|for"
    r"|live|address|street|st|road|avenue|ave|lane|drive|strasse|stra\u00dfe|rue|calle|rua|via|ship|send|deliver)\b"
)


def promising(text: str) -> bool:
    """Whether a name or an address may stand in a text: a capital within, another script, words that lead up to one.

    >>> [promising(text) for text in ("it is late.", "It is late, Mia.", "my name is mia", "return x + 1")]
    [False, True, True, False]
    """
    return any(each.search(text) is not None for each in (_CAPITALIZED, _TWO_CAPITALIZED, _OTHER_SCRIPT, _LEADS_UP))


@lru_cache(maxsize=1)
def shipped_recognizer() -> Recognizer:
    """The recognizer of this package."""
    return Recognizer()


def _windows(text: str) -> Iterator[list[Token]]:
    """The tokens of a text in pieces that the model can read at once, cut where a sentence ends if one does."""
    tokens = cut(text)
    at = 0
    while at < len(tokens):
        end = min(at + READ_AT_ONCE, len(tokens))
        if end < len(tokens):
            places = range(end - 1, at + READ_AT_ONCE // 3, -1)
            end = next((place + 1 for place in places if text[tokens[place].start] in _SENTENCE_END), end)
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
