"""Reading the original weights: safetensors is a length, a JSON header and raw numbers, so no library is needed."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import numpy as np

LAYERS, HEADS, WIDTH = 6, 12, 384
LAYER_NORM_EPSILON = 1e-12
ORIGINAL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

Weights = dict[str, np.ndarray]


def read_safetensors(path: Path) -> Weights:
    """The fp32 tensors of the original file, by name; another file is refused."""
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != ORIGINAL_SHA256:
        raise ValueError(f"{path} must have the SHA-256 {ORIGINAL_SHA256}; it has {found}")
    (header_size,) = struct.unpack_from("<Q", data)
    start = 8 + header_size
    header = json.loads(data[8:start])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[start + begin : start + end], "<f4").reshape(entry["shape"])
    return tensors


def quantised(matrix: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix as 8-bit integers and one scale per slice along ``axis``: matrix ≈ integers · scales."""
    scales = np.abs(matrix).max(axis=axis, keepdims=True) / 127
    scales = np.where(scales == 0, 1, scales).astype(np.float32)
    return np.clip(np.rint(matrix / scales), -127, 127).astype(np.int8), scales
