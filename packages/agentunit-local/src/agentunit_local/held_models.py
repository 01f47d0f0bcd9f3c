"""Models that one process holds for many: who asks cuts texts into tokens, who holds the model reads them on its GPU.

What travels are arrays of numbers. The transport is not known here: a function that takes a request and returns a
function that waits for its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentunit_local.text_model import Later, ModelFilesError, Outputs, TextModel, Tokens
from agentunit_local.torch_text import CLUSTER, DEFAULT_DEVICE, DEVICE_VARIABLE, TorchTextModel, chosen_device

Request = dict[str, Any]
Answer = dict[str, Any]
Transport = Callable[[Request], Callable[[], Answer]]

_transport: Transport | None = None


def ask_elsewhere(transport: Transport | None) -> None:
    """From now on models of torch are asked through ``transport``; ``None`` opens them in this process again."""
    global _transport
    _transport = transport


def is_asked_elsewhere() -> bool:
    """Whether models are asked through a transport."""
    return _transport is not None


def open_text_model(model: Path, tokenizer: Path, *, device: str, max_tokens: int) -> TextModel:
    """A model of this package in torch, in this process or where another one holds it."""
    if _transport is not None:
        return HeldTextModel(model, tokenizer, max_tokens, _transport)
    if device == CLUSTER:
        raise ModelFilesError(f"{DEVICE_VARIABLE}={CLUSTER} needs the engine 'ray', whose GPUs it means")
    return TorchTextModel(model, tokenizer, device=device, max_tokens=max_tokens)


class HeldTextModel(TextModel):
    """A model that another process holds; texts are cut into tokens here."""

    def __init__(self, model: Path, tokenizer: Path, max_tokens: int, transport: Transport) -> None:
        super().__init__(tokenizer, max_tokens=max_tokens, batch_tokens=1)
        self._place = {"model": _shared_name(model), "tokenizer": _shared_name(tokenizer), "max_tokens": max_tokens}
        self._ask = transport
        self._shapes: dict[str, list[Any]] = transport(dict(self._place))()["shapes"]

    @property
    def output_shapes(self) -> dict[str, list[Any]]:
        """Those of the model that is held."""
        return dict(self._shapes)

    def _started(self, sequences: Sequence[Tokens]) -> Later:
        lengths = np.array([len(each.ids) for each in sequences], np.int32)
        answer = self._ask(
            {
                **self._place,
                "ids": np.fromiter(chain.from_iterable(each.ids for each in sequences), np.int32, int(lengths.sum())),
                "lengths": lengths,
                "segments": np.array([sum(each.segments) for each in sequences], np.int32),
            }
        )
        return lambda: _parted(answer())


def _parted(answer: Answer) -> list[Outputs]:
    """What came back, for each text by itself."""
    found: list[Outputs] = []
    for name, (sizes, flat) in answer["outputs"].items():
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        found = found or [{} for _ in parts]
        for outputs, part in zip(found, parts, strict=True):
            outputs[name] = part
    return found


class ModelHolder:
    """Opens each model once, and answers requests for it. Several threads may ask at once."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str, int], TorchTextModel] = {}

    def answer(self, request: Request) -> Answer:
        """The outputs of a request's sequences, or, of one without sequences, the shapes of the model's outputs."""
        model = self._opened(request["model"], request["tokenizer"], request["max_tokens"])
        if "ids" not in request:
            return {"shapes": model.output_shapes}
        results = model.run_tokens(_sequences(request))
        return {"outputs": {name: _joined([each[name] for each in results]) for name in results[0]}}

    def _opened(self, model: str, tokenizer: str, max_tokens: int) -> TorchTextModel:
        key = model, tokenizer, max_tokens
        if key not in self._models:
            device = chosen_device()
            where = DEFAULT_DEVICE if device == CLUSTER else device
            files = _own_path(model), _own_path(tokenizer)
            self._models[key] = TorchTextModel(*files, device=where, max_tokens=max_tokens)
        return self._models[key]


def _sequences(request: Request) -> list[Tokens]:
    ids = np.split(request["ids"], np.cumsum(request["lengths"])[:-1])
    kinds = zip(request["lengths"].tolist(), request["segments"].tolist(), strict=True)
    return [
        Tokens(some.tolist(), [0] * (length - n_second) + [1] * n_second)
        for some, (length, n_second) in zip(ids, kinds, strict=True)
    ]


def _joined(parts: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.array([part.size for part in parts], np.int64), np.concatenate([part.ravel() for part in parts])


_PACKAGES = ("agentunit_local", "agentunit_local_large")


def _shared_name(path: Path) -> str:
    """A file by a name that holds on other machines: files of our packages lie elsewhere there."""
    for package in _PACKAGES:
        folder = _folder(package)
        if folder is not None and path.is_relative_to(folder):
            return f"{package}:{path.relative_to(folder).as_posix()}"
    return str(path)


def _own_path(name: str) -> Path:
    package, _, inside = name.partition(":")
    if package not in _PACKAGES:
        return Path(name)
    folder = _folder(package)
    if folder is None:
        raise ModelFilesError(f"{package} must be installed where models are held; it is not")
    return folder / inside


def _folder(package: str) -> Path | None:
    found = find_spec(package)
    return None if found is None or found.origin is None else Path(found.origin).parent
