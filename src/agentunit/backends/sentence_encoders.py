"""Sentence encoders: that of agentunit-local, an ONNX encoder in a folder, or any of sentence-transformers."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any

from agentunit.backends.quality import BackendUnavailable, require_ready
from agentunit.installation import install_command

SHIPPED_MODEL = "all-MiniLM-L6-v2"
INSTALL = install_command("local")
LONGEST_TEXT = 100_000
INSTALL_TRANSFORMERS = "pip install sentence-transformers"
_TRANSFORMERS = "sentence_transformers"
_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
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
    """Refuse what names no encoder that can be had here; one sentence says what is possible."""
    if isinstance(name, (str, Path)) and (is_shipped(str(name)) or _is_folder(name)):
        return
    is_name = isinstance(name, str) and re.fullmatch(r"[\w.-]{1,100}(/[\w.-]{1,100})?", name) is not None
    if is_name and find_spec(_TRANSFORMERS) is not None:
        return
    others = f"other names need sentence-transformers ({INSTALL_TRANSFORMERS}); " if is_name else ""
    raise ValueError(
        f"{owner}: model_name must be {SHIPPED_MODEL!r} or a folder with an encoder exported to ONNX (model.onnx and "
        f"tokenizer.json); {others}received {name!r:.200}"
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
    """The similarity by an encoder, opened once: the shipped one by its name, an ONNX encoder by its folder, any other
    through sentence-transformers, which gets it from where that package gets a model of this name.

    ``BackendUnavailable`` says why it cannot be opened.
    """
    has_onnx = _is_folder(model_name) and any((Path(model_name) / name).is_file() for name in _ONNX_FILES)
    if not is_shipped(model_name) and not has_onnx and find_spec(_TRANSFORMERS) is not None:
        return _by_sentence_transformers(model_name)
    require_ready(sentences_unready())
    from agentunit_local.sentences import encoder_from_folder, shipped_encoder
    from agentunit_local.text_model import ModelFilesError

    if is_shipped(model_name):
        return TextSimilarity(shipped_encoder(), SHIPPED_MODEL)
    try:
        encoder = encoder_from_folder(model_name)
    except ModelFilesError as error:
        raise BackendUnavailable(f"no sentence encoder: {error}") from None
    return TextSimilarity(encoder, f"onnx:{encoder.name}")


@lru_cache(maxsize=1)
def similarity_on_this_machine() -> TextSimilarity | None:
    """The default encoder through sentence-transformers, where agentunit-local is missing; nothing is downloaded."""
    if find_spec(_TRANSFORMERS) is None:
        return None
    try:
        return _by_sentence_transformers(_SHIPPED_NAMES[-1], local_files_only=True)
    except BackendUnavailable:
        return None


def _by_sentence_transformers(model_name: str, **options: Any) -> TextSimilarity:
    try:
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer(model_name, **options)
    except Exception as error:  # noqa: BLE001  # the package and its model are the user's, and may fail in any way
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise BackendUnavailable(f"sentence-transformers cannot load {model_name!r} ({reason})") from None
    return TextSimilarity(_Transformer(encoder), f"sentence-transformers:{Path(model_name).name}")


class _Transformer:
    """A model of sentence-transformers as an encoder: vectors of length 1, and none for a blank text."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def encode(self, texts: Sequence[str]) -> list[Any]:
        found = self._model.encode(
            list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return [vector if text.strip() else 0 * vector for text, vector in zip(texts, found, strict=True)]


def _is_folder(name: str | Path) -> bool:
    try:
        return bool(str(name)) and Path(name).is_dir()
    except (OSError, ValueError):
        return False
