"""A text model in torch, on a GPU or wherever torch runs: whole batches of like length, begun without waiting."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentunit.installation import install_command
from agentunit_local.onnx_weights import read_weights
from agentunit_local.text_model import Later, ModelFilesError, Outputs, TextModel, Tokens
from agentunit_local.torch_encoder import TorchEncoder, cross_encoder, sentence_encoder

DEVICE_VARIABLE = "AGENTUNIT_LOCAL_DEVICE"
DEFAULT_DEVICE, CLUSTER = "cuda", "cluster"
_ROUNDED_TO = 8
_GPU_BATCH_TOKENS, _CPU_BATCH_TOKENS = 65_536, 2_048


def chosen_device() -> str:
    """Where models of ``local-gpu`` run: ``cuda``, unless ``AGENTUNIT_LOCAL_DEVICE`` names another of torch's devices.

    ``cluster`` stands for the GPUs of the cluster that the engine ``ray`` works on.
    """
    return os.environ.get(DEVICE_VARIABLE) or DEFAULT_DEVICE


def why_no_device(device: str) -> str | None:
    """Why torch cannot run on a device here, with the way out; ``None`` when it can. Nothing is started by asking."""
    if device == CLUSTER:
        return None
    if find_spec("torch") is None:
        return f"torch is not installed; {install_command('gpu')} adds it"
    import torch

    try:
        kind, number = torch.device(device).type, torch.device(device).index
    except RuntimeError:
        devices = "cuda, cuda:1, mps, cpu"
        return f"{DEVICE_VARIABLE} must be a device of torch ({devices}) or {CLUSTER!r}; received {device!r}"
    way_out = "the backend 'local' runs on the processors"
    if kind == "cuda":
        n_gpus = torch.cuda.device_count()
        if not n_gpus:
            built = (
                "finds no GPU of NVIDIA or AMD here" if torch.version.cuda or torch.version.hip else "has no GPU part"
            )
            return f"torch {torch.__version__} {built}; {way_out}"
        if number is not None and number >= n_gpus:
            return f"there are {n_gpus} GPUs here, the first is cuda:0; received {device!r}"
    elif kind == "mps" and not torch.backends.mps.is_available():
        return f"torch finds no GPU of Apple here; {way_out}"
    return None


class TorchTextModel(TextModel):
    """One of this package's models in torch: half precision on a GPU, full precision on the processors.

    ``start_tokens`` hands all batches to the GPU and returns; waiting for the results does not keep it from the next
    batches. A text's outputs differ in the fourth digit with what stands beside it in a batch.
    """

    def __init__(
        self, model: Path, tokenizer: Path, *, device: str, max_tokens: int = 512, batch_tokens: int | None = None
    ) -> None:
        reason = why_no_device(device)
        if reason is not None:
            raise ModelFilesError(reason)
        import torch

        self._on_gpu = torch.device(device).type != "cpu"
        default = _GPU_BATCH_TOKENS if self._on_gpu else _CPU_BATCH_TOKENS
        super().__init__(tokenizer, max_tokens=max_tokens, batch_tokens=batch_tokens or default)
        self.device = device
        self._path = model
        if not model.is_file():
            raise ModelFilesError(f"{model}: no such file")
        self._is_pinned = torch.device(device).type == "cuda"
        self._computed = self._opened(torch.float16 if self._on_gpu else torch.float32)
        self._exact: _Computed | None = None

    def _opened(self, dtype: Any) -> _Computed:
        weights = read_weights(self._path)
        make = sentence_encoder if "word_scales" in weights else cross_encoder
        encoder, heads = make(weights, self.device, dtype, self._path)
        self._width = None if make is cross_encoder else encoder.words.shape[1]
        return _Computed(encoder, heads)

    @property
    def output_shapes(self) -> dict[str, list[Any]]:
        """Those of the ONNX file."""
        if self._width is not None:
            return {"sentence_embedding": ["rows", self._width]}
        return {"claim": ["rows"], "tokens": ["rows", "length"]}

    def _started(self, sequences: Sequence[Tokens]) -> Later:
        batches = self._begun(sequences)

        def wait() -> list[Outputs]:
            found: list[Outputs] = [{} for _ in sequences]
            for places, rows in batches():
                for place, row in zip(places, rows, strict=True):
                    found[place] = self._outputs(row, len(sequences[place].ids))
            return found

        return wait

    def start_rows(self, sequences: Sequence[Tokens]) -> Callable[[], NDArray[Any]]:
        """For a model with one row a text: all rows as one array, to come."""
        batches = self._begun(sequences)

        def wait() -> NDArray[Any]:
            found = np.empty((len(sequences), self._width or 0), np.float32)
            for places, rows in batches():
                found[places] = rows
            return found

        return wait

    def _begun(self, sequences: Sequence[Tokens]) -> Callable[[], Iterator[tuple[list[int], NDArray[Any]]]]:
        """All batches under way; what is returned waits for one after the other."""
        under_way = []
        for places in self._batches([len(sequence.ids) for sequence in sequences]):
            under_way += self._launched([sequences[place] for place in places], places)

        def wait() -> Iterator[tuple[list[int], NDArray[Any]]]:
            for places, fetched in under_way:
                rows = fetched()
                if not np.isfinite(rows).all():
                    rows = self._in_full_precision([sequences[place] for place in places])
                yield places, rows

        return wait

    def _outputs(self, row: NDArray[Any], length: int) -> Outputs:
        if self._width is not None:
            return {"sentence_embedding": row}
        return {"claim": row[:1], "tokens": row[1 : length + 1]}

    def _launched(
        self, sequences: Sequence[Tokens], places: list[int]
    ) -> list[tuple[list[int], Callable[[], NDArray[Any]]]]:
        """Begin one batch, or its halves where the GPU's memory does not hold it."""
        import torch

        try:
            with torch.cuda.device(torch.device(self.device)) if self._is_pinned else nullcontext():
                return [(places, self._fetched(self._rows(self._computed, sequences)))]
        except torch.OutOfMemoryError:
            if len(places) == 1:
                raise
        half = len(places) // 2
        return [*self._launched(sequences[:half], places[:half]), *self._launched(sequences[half:], places[half:])]

    def _in_full_precision(self, sequences: Sequence[Tokens]) -> NDArray[Any]:
        """What half precision has no number for."""
        import torch

        if self._exact is None:
            self._exact = self._opened(torch.float32)
        rows: NDArray[Any] = self._rows(self._exact, sequences).cpu().numpy()
        return rows

    def _rows(self, computed: _Computed, sequences: Sequence[Tokens]) -> Any:
        """The outputs of a batch, still on the device."""
        import torch

        lengths = np.array([len(sequence.ids) for sequence in sequences], np.int64)
        firsts = lengths - np.array([sum(sequence.segments) for sequence in sequences], np.int64)
        flat = np.fromiter(chain.from_iterable(sequence.ids for sequence in sequences), np.int32, int(lengths.sum()))
        length = -(-int(lengths.max()) // _ROUNDED_TO) * _ROUNDED_TO
        length = min(length, self.max_tokens)
        with torch.inference_mode():
            sent = self._sent(flat), self._sent(lengths), self._sent(firsts)
            return computed.rows(*sent, length, self._padding, bool((lengths < length).any()))

    def _sent(self, array: NDArray[Any]) -> Any:
        import torch

        here = torch.from_numpy(array)
        return (here.pin_memory() if self._is_pinned else here).to(self.device, non_blocking=True)

    def _fetched(self, rows: Any) -> Callable[[], NDArray[Any]]:
        """Results on their way back: waiting for them does not wait for what the device was given after them."""
        import torch

        if not self._is_pinned:
            return lambda: rows.cpu().numpy()
        here = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True)
        here.copy_(rows, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record()

        def wait() -> NDArray[Any]:
            arrived.synchronize()
            found: NDArray[Any] = here.numpy()
            return found

        return wait


class _Computed:
    """An encoder with its heads."""

    def __init__(self, encoder: TorchEncoder, heads: Callable[..., Any]) -> None:
        self._encoder, self._heads = encoder, heads

    def rows(self, flat: Any, lengths: Any, firsts: Any, length: int, padding: int, has_padding: bool) -> Any:
        """The outputs of texts whose tokens lie one behind the other; each is filled up to ``length`` tokens."""
        import torch

        place = torch.arange(length, device=flat.device)
        is_there = place < lengths[:, None]
        ids = torch.full(is_there.shape, padding, dtype=torch.int32, device=flat.device)
        ids = ids.masked_scatter_(is_there, flat)
        kinds = ((place >= firsts[:, None]) & is_there).int()
        return self._heads(self._encoder.hidden(ids, kinds, is_there, has_padding), kinds, is_there)
