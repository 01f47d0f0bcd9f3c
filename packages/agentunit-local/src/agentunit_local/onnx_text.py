"""A text model on ONNX Runtime, on the processors, with a bounded number of threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentunit_local.text_model import Later, ModelFilesError, Outputs, TextModel, Tokens

MOST_THREADS = 4
_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_FED = ("input_ids", "attention_mask", "token_type_ids")


class OnnxTextModel(TextModel):
    """An ONNX model of token ids with its tokenizer, opened once and kept.

    ``threads`` defaults to the processors at hand, at most 4. Calls from several threads are safe.
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
        super().__init__(tokenizer, max_tokens=max_tokens, batch_tokens=batch_tokens)
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

    def _opened(self) -> Any:
        self._process = os.getpid()
        return _open_session(self._model, self._threads or _default_threads())

    def _usable_session(self) -> Any:
        """The model; a forked process opens it anew, because it lacks the threads of the process it came from."""
        if self._process != os.getpid():
            self._session = self._opened()
        return self._session

    @property
    def output_shapes(self) -> dict[str, list[Any]]:
        """The declared shape of each output; a text stands for a size that varies."""
        return dict(self._outputs)

    def _started(self, sequences: Sequence[Tokens]) -> Later:
        """Done at once: the processors that would go on are those that compute."""
        found: list[Outputs] = [{} for _ in sequences]
        for places in self._batches([len(sequence.ids) for sequence in sequences]):
            results = self._usable_session().run(None, self._fed([sequences[place] for place in places]))
            for name, rows in zip(self._outputs, results, strict=True):
                shape = self._outputs[name]
                per_token = len(shape) > 1 and shape[1] == self._length_name
                for place, row in zip(places, rows, strict=True):
                    found[place][name] = row[: len(sequences[place].ids)] if per_token else row
        return lambda: found

    def _fed(self, sequences: Sequence[Tokens]) -> dict[str, NDArray[Any]]:
        shape = len(sequences), max(len(sequence.ids) for sequence in sequences)
        columns = dict(zip(_FED, (np.full(shape, self._padding), np.zeros(shape), np.zeros(shape)), strict=True))
        for row, sequence in enumerate(sequences):
            end = len(sequence.ids)
            columns["input_ids"][row, :end] = sequence.ids
            columns["attention_mask"][row, :end] = 1
            columns["token_type_ids"][row, :end] = sequence.segments
        return {name: columns[name].astype(kind) for name, kind in self._inputs.items()}


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


def _default_threads() -> int:
    """As many as there are processors, up to a few. Processes that work beside each other are told to use one each."""
    told = os.environ.get("AGENTUNIT_LOCAL_THREADS", "")
    return int(told) if told.isdecimal() and int(told) else min(MOST_THREADS, _processors())


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
