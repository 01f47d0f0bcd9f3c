"""What runs a CLIP model: the interface, and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from agentunit.addons.media.clip.clip_settings import ClipSettings, TextTokens, normalised, settings_of
from agentunit.backends.media_sources import EXTRA
from agentunit.backends.quality import BackendUnavailable, require_ready

Later = Callable[[], Any]


@dataclass(frozen=True)
class PictureBatch:
    """Room for prepared pictures: ``pixels`` is an array of bytes (n, side, side, 3) that is filled in place."""

    pixels: Any
    held: Any = None


class ClipRuntime(Protocol):
    """One set of weights on one device. ``encode_…`` start the work; what they return waits for it.

    Vectors come as a numpy array of float32, one row each, not normalized.
    """

    name: str
    device: str
    settings: ClipSettings
    tokens: TextTokens
    batch_size: int
    text_length: int | None

    def empty_batch(self, n_pictures: int) -> PictureBatch:
        """Room for that many pictures, in memory from which the device can fetch them quickly."""
        ...

    def encode_pictures(self, batch: PictureBatch) -> Later:
        """Start encoding a batch of pictures."""
        ...

    def encode_tokens(self, tokens: Any) -> Later:
        """Start encoding a batch of padded tokens."""
        ...


VISION_FILE, TEXT_FILE = "vision_model.onnx", "text_model.onnx"
_CUDA = "CUDAExecutionProvider"


def onnx_unready() -> str | None:
    """Why ONNX graphs cannot run here, with the command that helps; ``None`` when they can."""
    missing = [name for name in ("numpy", "onnxruntime", "tokenizers") if find_spec(name) is None]
    return f"{missing[0]} is not installed; {EXTRA} adds it" if missing else None


def find_graphs(folder: Path) -> tuple[Path, Path] | None:
    """The two graphs of a folder, in it or in its folder ``onnx``, where exports of others have them."""
    for place in (folder, folder / "onnx"):
        if (place / VISION_FILE).is_file() and (place / TEXT_FILE).is_file():
            return place / VISION_FILE, place / TEXT_FILE
    return None


class OnnxRuntime:
    """An exported pair of graphs, on a GPU where ONNX Runtime has one, else on the processor."""

    def __init__(self, folder: Path, name: str, device: str | None = None) -> None:
        require_ready(onnx_unready())
        graphs = find_graphs(folder)
        if graphs is None or not (folder / "tokenizer.json").is_file():
            raise BackendUnavailable(f"{folder} must hold {VISION_FILE}, {TEXT_FILE} and tokenizer.json; it does not")
        import onnxruntime
        from tokenizers import Tokenizer

        # Builds for Windows report to their maker unless that is turned off.
        onnxruntime.disable_telemetry_events()
        self.name = name
        self.settings = settings_of(folder)
        self.tokens = TextTokens(Tokenizer.from_file(str(folder / "tokenizer.json")), self.settings.context_tokens)
        on_gpu = device != "cpu" and _CUDA in onnxruntime.get_available_providers()
        self.device = "cuda" if on_gpu else "cpu"
        self.batch_size = 128 if on_gpu else 16
        providers = [_CUDA, "CPUExecutionProvider"] if on_gpu else ["CPUExecutionProvider"]
        try:
            self._vision, self._text = (
                _Graph(onnxruntime.InferenceSession(str(g), providers=providers)) for g in graphs
            )
        except Exception as error:  # noqa: BLE001  # the runtime's own exceptions have no common base
            raise BackendUnavailable(f"{folder} holds no graphs that can run: {error}") from None
        self.text_length = self._text.fixed_length

    def empty_batch(self, n_pictures: int) -> PictureBatch:
        """Room in ordinary memory."""
        import numpy as np

        return PictureBatch(np.zeros((n_pictures, self.settings.side, self.settings.side, 3), dtype=np.uint8))

    def encode_pictures(self, batch: PictureBatch) -> Later:
        """Encode a batch of pictures."""
        made = self._vision.run(normalised(batch.pixels, self.settings))
        return lambda: made

    def encode_tokens(self, tokens: Any) -> Later:
        """Encode a batch of padded tokens."""
        made = self._text.run(tokens)
        return lambda: made


class _Graph:
    """One graph, and which of its inputs and outputs are ours."""

    def __init__(self, session: Any) -> None:
        self._session = session
        inputs = {each.name: each for each in session.get_inputs()}
        self._input = inputs.get("pixel_values") or inputs.get("input_ids") or next(iter(inputs.values()))
        self._masks = [name for name in inputs if name == "attention_mask"]
        made = [each.name for each in session.get_outputs()]
        self._output = next((name for name in made if name in ("image_embeds", "text_embeds")), made[0])
        shape = self._input.shape
        self.fixed_length = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else None

    def run(self, batch: Any) -> Any:
        import numpy as np

        kinds = {"tensor(float16)": np.float16, "tensor(int32)": np.int32}
        fed = {self._input.name: batch.astype(kinds.get(self._input.type, batch.dtype), copy=False)}
        fed.update({name: np.ones_like(batch) for name in self._masks})
        (made,) = self._session.run([self._output], fed)
        return made.astype(np.float32, copy=False)
