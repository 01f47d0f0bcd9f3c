"""Sentence embeddings: all-MiniLM-L6-v2 as shipped with this package, or an ONNX encoder of the user's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentunit_local.held_models import open_text_model
from agentunit_local.onnx_text import OnnxTextModel
from agentunit_local.text_model import ModelFilesError, Outputs, TextModel, Tokens

SHIPPED = "all-MiniLM-L6-v2"
MAX_TOKENS = 256
WEIGHTS = Path(__file__).with_name("weights")
_MODEL_FILES = ("model.onnx", "onnx/model.onnx", "sentence_encoder.onnx")
_POOLED_NAMES = ("sentence_embedding", "sentence_embeddings")

Vectors = NDArray[np.float32]


class SentenceEncoder:
    """Texts to vectors of length 1, whose products are cosine similarities.

    A text longer than ``max_tokens`` is parted into windows, whose embeddings are averaged by their number of tokens. A
    blank text has the vector 0: it says nothing, and is like nothing. The same text gives the same vector, up to 1e-6
    whatever stands beside it in a batch.
    """

    def __init__(self, model: TextModel, *, name: str, max_tokens: int = MAX_TOKENS, pooling: str = "mean") -> None:
        self.name = name
        self.max_tokens = max_tokens
        self._model = model
        self._pooling = pooling
        self._output, self.width = _embedding_output(model, name)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row a text."""
        return self.start(texts)()

    def start(self, texts: Sequence[str]) -> Callable[[], Vectors]:
        """The same without waiting for a device; what is returned waits."""
        said = [place for place, text in enumerate(texts) if text.strip()]
        at = 0
        started = []
        for found in self._model.windows_ahead([texts[place] for place in said], self.max_tokens):
            windows = [window for parts in found for window in parts]
            owners = [place for place, parts in zip(said[at:], found, strict=False) for _ in parts]
            started.append((owners, [len(window.ids) for window in windows], self._started(windows)))
            at += len(found)

        def wait() -> Vectors:
            vectors = np.zeros((len(texts), self.width), np.float32)
            for owners, lengths, rows in started:
                weighted = np.array(lengths, np.float32)[:, None] * rows()
                if len(set(owners)) == len(owners):
                    vectors[owners] = weighted
                else:
                    np.add.at(vectors, owners, weighted)
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            return np.asarray(vectors / np.where(norms > 0, norms, 1), np.float32)

        return wait

    def _started(self, windows: Sequence[Tokens]) -> Callable[[], NDArray[Any]]:
        """A row for each window, to come."""
        if not windows:
            return lambda: np.zeros((0, self.width), np.float32)
        in_rows = getattr(self._model, "start_rows", None)
        if in_rows is not None:
            rows: Callable[[], NDArray[Any]] = in_rows(windows)
            return rows
        results = self._model.start_tokens(windows)
        return lambda: np.stack([self._pooled(outputs) for outputs in results()])

    def _pooled(self, outputs: Outputs) -> NDArray[Any]:
        found = outputs[self._output]
        if found.ndim == 2:
            found = found[0] if self._pooling == "cls" else found.mean(axis=0)
        return found


@lru_cache(maxsize=2)
def shipped_encoder(device: str | None = None) -> SentenceEncoder:
    """The encoder of this package, opened once; on the processors, or in batches on a device of torch."""
    files = WEIGHTS / "sentence_encoder.onnx", WEIGHTS / "tokenizer.json"
    if device is None:
        return SentenceEncoder(OnnxTextModel(*files, max_tokens=512), name=SHIPPED)
    return SentenceEncoder(open_text_model(*files, device=device, max_tokens=512), name=SHIPPED)


@lru_cache(maxsize=2)
def encoder_from_folder(folder: str) -> SentenceEncoder:
    """An encoder exported to ONNX: a folder with ``model.onnx`` (or ``onnx/model.onnx``) and ``tokenizer.json``.

    The files that sentence-transformers writes beside them are heeded: ``sentence_bert_config.json`` (the longest text)
    and ``1_Pooling/config.json`` (mean or first token). A folder that lacks something raises ``ModelFilesError``.
    """
    path = Path(folder)
    model = next((path / name for name in _MODEL_FILES if (path / name).is_file()), None)
    if model is None:
        raise ModelFilesError(f"{folder}: holds no model.onnx and no onnx/model.onnx")
    longest = _settings(path / "sentence_bert_config.json").get("max_seq_length") or MAX_TOKENS
    opened = OnnxTextModel(model, path / "tokenizer.json", max_tokens=longest)
    return SentenceEncoder(opened, name=path.name, max_tokens=longest, pooling=_pooling(path))


def _embedding_output(model: TextModel, name: str) -> tuple[str, int]:
    shapes = model.output_shapes
    pooled = [output for output in _POOLED_NAMES if output in shapes]
    per_token = [output for output, shape in shapes.items() if len(shape) == 3]
    output = next(iter([*pooled, *per_token]), None)
    if output is None or not isinstance(shapes[output][-1], int):
        raise ModelFilesError(f"{name}: the model must have embeddings of known width; its outputs are {shapes}")
    return output, shapes[output][-1]


def _pooling(folder: Path) -> str:
    modes = _settings(folder / "1_Pooling" / "config.json")
    asked = [mode for mode, on in modes.items() if mode.startswith("pooling_mode_") and on is True]
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    if len(asked) > 1 or any(mode not in known for mode in asked):
        raise ModelFilesError(f"{folder}: pooling must be by mean or by first token; received {', '.join(asked)}")
    return known[asked[0]] if asked else "mean"


def _settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelFilesError(f"{path}: cannot be read as JSON: {error}") from None
    return settings if isinstance(settings, dict) else {}
