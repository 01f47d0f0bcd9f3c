"""A text model on ONNX Runtime: texts or pairs of texts in, the model's raw outputs out, as numpy arrays.

What every model of this package shares: bounded threads, batches of texts of similar length with a bounded number of
tokens, padding that the model masks, and the order of the input kept. Nothing is cut: a text that does not fit is
refused, and ``windows`` parts it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Text = str | tuple[str, str]
Outputs = dict[str, NDArray[Any]]

MOST_THREADS = 4
_PADDING_NAMES = ("[PAD]", "<pad>")
_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_FED = ("input_ids", "attention_mask", "token_type_ids")


class ModelFilesError(ValueError):
    """Files that are no text model; the message names the file and says why."""


class Tokens(NamedTuple):
    """One text, or one pair, as the model reads it. ``segments`` is 1 where the second text of a pair stands."""

    ids: list[int]
    segments: list[int]


class OnnxTextModel:
    """An ONNX model of token ids with its tokenizer, opened once and kept.

    ``max_tokens`` is what the model can read at once, ``batch_tokens`` the most tokens, padding included, that one call
    of the model sees. ``threads`` defaults to the processors at hand, at most 4. Calls from several threads are safe.
    """

    def __init__(
        self,
        model: str | Path,
        tokenizer: str | Path,
        *,
        max_tokens: int = 512,
        batch_tokens: int = 1024,
        threads: int | None = None,
    ) -> None:
        self.max_tokens = max_tokens
        self.batch_tokens = batch_tokens
        self._tokenizer = _open_tokenizer(Path(tokenizer))
        self._model, self._threads = Path(model), threads
        self._session = self._opened()
        self._inputs = {each.name: _INTEGERS.get(each.type) for each in self._session.get_inputs()}
        unknown = [name for name, kind in self._inputs.items() if name not in _FED or kind is None]
        if unknown:
            raise ModelFilesError(
                f"{model}: inputs must be among {', '.join(_FED)}, as whole numbers; received {unknown[0]!r}"
            )
        self._outputs = {each.name: each.shape for each in self._session.get_outputs()}
        # The model's own name for "as many as there are tokens": outputs that carry it have a row a token.
        self._length_name = self._session.get_inputs()[0].shape[-1]
        self._padding = _padding_id(self._tokenizer)

    def _opened(self) -> Any:
        self._process = os.getpid()
        return _open_session(self._model, self._threads or _default_threads())

    def _usable_session(self) -> Any:
        """The model; a forked process opens it anew, because it lacks the threads of the process it came from."""
        if self._process != os.getpid():
            self._session = self._opened()
        return self._session

    @property
    def tokenizer(self) -> Any:
        """The tokenizer as it was opened: without padding and truncation."""
        return self._tokenizer

    @property
    def output_shapes(self) -> dict[str, list[Any]]:
        """The declared shape of each output; a text stands for a size that varies."""
        return dict(self._outputs)

    def tokens(self, text: Text) -> Tokens:
        """A text or a pair as tokens, however long."""
        parts = [readable(part) for part in ((text,) if isinstance(text, str) else text)]
        encoding = self._tokenizer.encode(*parts)
        return Tokens(encoding.ids, encoding.type_ids)

    def windows(self, text: str, max_tokens: int | None = None) -> list[Tokens]:
        """A text as one window, or as the fewest windows of about equal length that fit; none is dropped.

        Each window has the tokens that the model expects around a text.
        """
        whole = self.tokens(text)
        limit = min(max_tokens or self.max_tokens, self.max_tokens)
        if len(whole.ids) <= limit:
            return [whole]
        encoding = self._tokenizer.encode(readable(text), add_special_tokens=False)
        room = limit - (len(whole.ids) - len(encoding.ids))
        n_windows = -(-len(encoding.ids) // room)
        encoding.truncate(-(-len(encoding.ids) // n_windows))
        pieces = [self._tokenizer.post_process(piece) for piece in (encoding, *encoding.overflowing)]
        return [Tokens(piece.ids, piece.type_ids) for piece in pieces]

    def run(self, texts: Sequence[Text]) -> list[Outputs]:
        """The model's outputs for each text or pair, in the order given."""
        return self.run_tokens([self.tokens(text) for text in texts])

    def run_tokens(self, sequences: Sequence[Tokens]) -> list[Outputs]:
        """The model's outputs by name for each sequence; outputs that have a row a token have no row for padding."""
        longest = max((len(sequence.ids) for sequence in sequences), default=0)
        if longest > self.max_tokens:
            raise ValueError(
                f"OnnxTextModel: a text must have at most {self.max_tokens} tokens; received {longest} "
                "(windows() parts it)"
            )
        found: list[Outputs] = [{} for _ in sequences]
        for places in self._batches([len(sequence.ids) for sequence in sequences]):
            results = self._usable_session().run(None, self._fed([sequences[place] for place in places]))
            for name, rows in zip(self._outputs, results, strict=True):
                shape = self._outputs[name]
                per_token = len(shape) > 1 and shape[1] == self._length_name
                for place, row in zip(places, rows, strict=True):
                    found[place][name] = row[: len(sequences[place].ids)] if per_token else row
        return found

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Positions grouped for one call each, shortest first: texts of similar length waste little on padding."""
        batch: list[int] = []
        for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
            if batch and (len(batch) + 1) * lengths[place] > self.batch_tokens:
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch

    def _fed(self, sequences: Sequence[Tokens]) -> dict[str, NDArray[Any]]:
        shape = len(sequences), max(len(sequence.ids) for sequence in sequences)
        columns = dict(zip(_FED, (np.full(shape, self._padding), np.zeros(shape), np.zeros(shape)), strict=True))
        for row, sequence in enumerate(sequences):
            end = len(sequence.ids)
            columns["input_ids"][row, :end] = sequence.ids
            columns["attention_mask"][row, :end] = 1
            columns["token_type_ids"][row, :end] = sequence.segments
        return {name: columns[name].astype(kind) for name, kind in self._inputs.items()}


def readable(text: str) -> str:
    """A text that the tokenizer can read: half of a surrogate pair, as broken JSON may hold, becomes U+FFFD.

    >>> readable("ok \\ud83d") == "ok \\ufffd"
    True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _open_session(path: Path, threads: int) -> Any:
    import onnxruntime

    # Builds for Windows report to their maker unless told not to.
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that wait in a busy loop would show as CPU time of whatever runs beside them.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not path.is_file():
        raise ModelFilesError(f"{path}: no such file")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001  # the runtime's exceptions share no base class
        raise ModelFilesError(f"{path}: no ONNX model that can be opened: {str(error).splitlines()[0]:.200}") from None


def _open_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    if not path.is_file():
        raise ModelFilesError(f"{path}: no such file")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001  # the library raises plain Exception
        raise ModelFilesError(f"{path}: no tokenizer that can be read: {str(error).splitlines()[0]:.200}") from None
    # Files often say "cut at 128 tokens"; a text that is cut silently is scored wrongly.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _padding_id(tokenizer: Any) -> int:
    known = (tokenizer.token_to_id(name) for name in _PADDING_NAMES)
    return next((number for number in known if number is not None), 0)


def _default_threads() -> int:
    """As many as there are processors, up to a few. Processes that work beside each other are told to use one each."""
    told = os.environ.get("AGENTUNIT_LOCAL_THREADS", "")
    return int(told) if told.isdecimal() and int(told) else min(MOST_THREADS, _processors())


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
