"""``python -m training.sentence_encoder --weights FOLDER``: convert, compare with fp32, write."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from training.sentence_encoder.graph import build_graph
from training.sentence_encoder.reference import embed
from training.sentence_encoder.weights import Weights, read_safetensors

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "packages/agentunit-local/src/agentunit_local/weights"
LOWEST_COSINE = 0.998
_SUBJECTS = ("A dog", "Two children", "The old bridge", "My parcel", "A red bicycle",
             "The committee", "Nobody", "An agent with three tools", "The 1998 report", "Zoë")  # fmt: skip
_ENDINGS = (
    "runs across the wet grass.", "was refunded yesterday, after 14 days!", "plays the violin in Paris.",
    "cannot be found in the database.", "stands next to a parked car while it rains and the lights change to green.",
    "voted against the proposal.", "sleeps.", "costs $12.50 (tax included), which is more than I'd pay.",
    "looks at the camera.", "has been cancelled because of a strike; see order A-1007 for details.",
    "is taller than the tower behind it.", "writes a letter to the editor.", "opens the door.",
    "asks whether the meeting could be moved to Tuesday.", "holds a yellow umbrella.", "speaks French and German.",
    "was built in the nineteenth century.", "eats an apple.", "loses the match by three points.", "disagrees.",
)  # fmt: skip
SENTENCES = [f"{subject} {ending}" for subject in _SUBJECTS for ending in _ENDINGS]


def main() -> int:
    """Exit code: 0 written, 1 the converted model is not close enough to the original."""
    parser = argparse.ArgumentParser(prog="python -m training.sentence_encoder", description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="the folder with model.safetensors")
    parser.add_argument("--target", type=Path, default=TARGET, help="the folder to write into")
    options = parser.parse_args()
    weights = read_safetensors(options.weights / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(options.weights / "tokenizer.json"))
    # The runtime pads and cuts by itself; a tokenizer that cuts texts silently must not be shipped.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = build_graph(weights).SerializeToString(deterministic=True)
    cosines = compare(model, tokenizer, weights)
    print(f"cosine with fp32 over {len(cosines)} sentences: lowest {min(cosines):.5f}, mean {np.mean(cosines):.5f}")
    if min(cosines) < LOWEST_COSINE:
        print(f"not written: the lowest must be at least {LOWEST_COSINE}", file=sys.stderr)
        return 1
    options.target.mkdir(parents=True, exist_ok=True)
    (options.target / "sentence_encoder.onnx").write_bytes(model)
    compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
    (options.target / "tokenizer.json").write_text(compact + "\n", encoding="utf-8")
    print(f"written: {options.target} ({len(model) / 1e6:.1f} MB)")
    return 0


def compare(model: bytes, tokenizer: Tokenizer, weights: Weights) -> list[float]:
    """The cosine of each sentence's converted and original embedding."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    cosines = []
    for sentence in SENTENCES:
        ids = tokenizer.encode(sentence).ids
        fed = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64)}
        ours, theirs = session.run(None, fed)[0][0], embed(weights, ids)
        cosines.append(float(ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)))
    return cosines


if __name__ == "__main__":
    sys.exit(main())
