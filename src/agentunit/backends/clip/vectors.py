"""Rows of an array as vectors that need no numpy."""

from __future__ import annotations

from array import array
from typing import Any

from agentunit.backends.clip.interface import Unencodable, Vector

NO_VECTOR = "has no finite vector: the model made none of it"


def unit_vectors(rows: Any) -> list[Vector | Unencodable]:
    """The rows of an array as compact vectors of length 1; a row without direction has none."""
    import numpy as np

    with np.errstate(all="ignore"):
        units = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    usable = np.isfinite(units).all(axis=1)
    return [
        array("f", unit.tobytes()) if good else Unencodable(NO_VECTOR) for unit, good in zip(units, usable, strict=True)
    ]
