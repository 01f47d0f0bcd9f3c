"""Trains the recognizer: ``python -m training.personal_data.train PACK OUT [name=value …]``.

Generates its examples in as many processes as there are cores, then trains until its time is up, and writes the weights
as half-precision arrays in files below 16 MB, with a report of how it does on sentences of another seed. Options:
``seconds`` (of training, 150), ``examples`` (1500000), ``batch`` (768), ``processes`` (the cores), ``seed`` (1),
``checked`` (examples of the report, 6000), ``put_in`` (the weight of names put into plain sentences, 18).

``start=FOLDER`` goes on from weights that were written before, with the table as it is and a lower rate: a few minutes on a
processor teach a new kind of sentence.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from agentunit_local.recognizer.tokens import LABELS
from torch import Tensor, nn

from training.personal_data.examples import Examples, generate, joined
from training.personal_data.model import Recognizer

DEFAULTS = {
    "seconds": 150.0,
    "examples": 1_500_000.0,
    "batch": 768.0,
    "processes": float(os.cpu_count() or 1),
    "seed": 1.0,
    "checked": 6000.0,
    "put_in": 18.0,
}
RATE = 1.5e-3
CHECKED_SEED = 99_991
FILE_ROWS = 32768


def main(arguments: list[str]) -> None:
    """Generate, train, check, write."""
    pack, out = arguments[0], Path(arguments[1])
    given = dict(each.split("=", 1) for each in arguments[2:])
    start = given.pop("start", None)
    options = {**DEFAULTS, **{name: float(value) for name, value in given.items()}}
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    processes = int(options["processes"])
    share = int(options["examples"]) // processes
    seeds = [1000 * int(options["seed"]) + number for number in range(processes)]
    with ProcessPoolExecutor(processes) as pool:
        counts = [*repeat(share, processes), int(options["checked"])]
        made = list(pool.map(generate, repeat(pack), [*seeds, CHECKED_SEED], counts, repeat(options["put_in"])))
    examples, checked = joined(made[:-1]), made[-1]
    generated_s = time.monotonic() - started
    print(f"{len(examples.starts) - 1} examples, {len(examples.tokens)} tokens, {generated_s:.0f} s", flush=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Recognizer().to(device)
    if start is not None:
        model.load_state_dict({name: torch.from_numpy(value).to(device) for name, value in read(Path(start)).items()})
        model.table.weight.requires_grad_(False)
    steps = train(model, examples, options["seconds"], int(options["batch"]), device)
    report = {
        "examples": len(examples.starts) - 1, "tokens": len(examples.tokens), "steps": steps, "device": device,
        "generated_s": round(generated_s), "trained_s": options["seconds"], **check(model, checked, device),
    }  # fmt: skip
    write(model, out)
    (out / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(json.dumps(report, indent=1), f"whole: {time.monotonic() - started:.0f} s", flush=True)


def train(model: Recognizer, examples: Examples, seconds: float, batch: int, device: str) -> int:
    """Train until the time is up; the rate rises, then falls with the time that is left. Returns the steps."""
    torch.manual_seed(1)
    draw = np.random.default_rng(1)
    table, tokens, labels = (
        torch.from_numpy(each).to(device)
        for each in (examples.table.astype(np.int32), examples.tokens, examples.labels)
    )
    starts = examples.starts
    lengths = np.diff(starts)
    slow = [parameter for name, parameter in model.named_parameters() if name != "table.weight"]
    is_new = model.table.weight.requires_grad
    rate, warming = (RATE, 300) if is_new else (RATE / 4, 30)
    optimizer = torch.optim.AdamW(
        [
            {"params": slow, "weight_decay": 0.01},
            *([{"params": [model.table.weight], "weight_decay": 0.0}] if is_new else []),
        ],
        lr=RATE, betas=(0.9, 0.98), fused=device == "cuda",
    )  # fmt: skip
    loss_of = nn.CrossEntropyLoss(ignore_index=-1)
    started, step, batches = time.monotonic(), 0, []
    model.train()
    while (passed := (time.monotonic() - started) / seconds) < 1:
        if not batches:
            order = np.argsort(lengths + draw.uniform(0, 6, len(lengths)))
            cuts = [order[at : at + batch] for at in range(0, len(order), batch)]
            batches = [cuts[place] for place in draw.permutation(len(cuts))]
        chosen = batches.pop()
        pieces, expected = _batch(table, tokens, labels, starts, lengths, chosen, device)
        pieces = _with_pieces_dropped(pieces)
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / warming, (1 - passed) / 0.7)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = model(pieces)
        loss = loss_of(logits.float().view(-1, len(LABELS)), expected.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(slow, 1.0)
        optimizer.step()
        if step % (500 if device == "cuda" else 20) == 0:
            print(f"step {step}, {passed:.0%} of the time, loss {loss.item():.4f}", flush=True)
        step += 1
    return step


def _batch(
    table: Tensor, tokens: Tensor, labels: Tensor, starts: Any, lengths: Any, chosen: Any, device: str
) -> tuple[Tensor, Tensor]:
    longest = max(1, int(lengths[chosen].max()))
    at = torch.from_numpy(starts[chosen]).to(device, non_blocking=True)[:, None] + torch.arange(longest, device=device)
    inside = torch.arange(longest, device=device) < torch.from_numpy(lengths[chosen]).to(device)[:, None]
    at = torch.where(inside, at, 0)
    pieces = table[tokens[at].long()] * inside[..., None]
    return pieces, torch.where(inside, labels[at].long(), -1)


def _with_pieces_dropped(pieces: Tensor) -> Tensor:
    """Some tokens without their whole word, so that the pieces learn to stand for it; and some without another piece.

    A token keeps its first place filled, since an empty one means filling.
    """
    kept = torch.rand(pieces.shape, device=pieces.device) > 0.05
    kept[..., 0] = True
    without_word = (torch.rand(pieces.shape[:2], device=pieces.device) < 0.25) & (pieces[..., 3] != 0)
    dropped = pieces * kept
    dropped[..., 0] = torch.where(without_word, pieces[..., 1], dropped[..., 0])
    return dropped


@torch.no_grad()
def check(model: Recognizer, examples: Examples, device: str) -> dict[str, Any]:
    """Precision and recall of whole spans by kind on examples of a seed that was not trained on."""
    model.eval()
    table, tokens, labels = (
        torch.from_numpy(each).to(device)
        for each in (examples.table.astype(np.int32), examples.tokens, examples.labels)
    )
    lengths = np.diff(examples.starts)
    counts: dict[str, list[int]] = {}
    for first in range(0, len(lengths), 256):
        chosen = np.arange(first, min(first + 256, len(lengths)))
        pieces, expected = _batch(table, tokens, labels, examples.starts, lengths, chosen, device)
        for told, known in zip(model(pieces).argmax(-1).tolist(), expected.tolist(), strict=True):
            length = known.index(-1) if -1 in known else len(known)
            found, true = _spans(told[:length]), _spans(known[:length])
            for kind in {span[2] for span in found | true}:
                each = counts.setdefault(kind, [0, 0, 0])
                each[0] += sum(span[2] == kind for span in found & true)
                each[1] += sum(span[2] == kind for span in found)
                each[2] += sum(span[2] == kind for span in true)
    return {
        kind: {"precision": round(right / max(1, said), 4), "recall": round(right / max(1, there), 4), "spans": there}
        for kind, (right, said, there) in sorted(counts.items())
    }


def _spans(tags: list[int]) -> set[tuple[int, int, str]]:
    found: set[tuple[int, int, str]] = set()
    begun: int | None = None
    for place, tag in enumerate([*tags, 0]):
        label = LABELS[tag]
        goes_on = begun is not None and label.startswith("I-") and label[2:] == LABELS[tags[begun]][2:]
        if begun is not None and not goes_on:
            found.add((begun, place, LABELS[tags[begun]][2:]))
            begun = None
        if begun is None and label != "O":
            begun = place
    return found


def read(trained: Path) -> dict[str, Any]:
    """The arrays that ``write`` wrote, in full precision."""
    with np.load(trained / "layers.npz") as layers:
        arrays = {name: layers[name].astype(np.float32) for name in layers.files}
    table = np.concatenate([np.load(part) for part in sorted(trained.glob("table-*.npy"))])
    return {**arrays, "table.weight": table.astype(np.float32)}


def write(model: Recognizer, out: Path) -> None:
    """The weights as half-precision arrays: the table in files of FILE_ROWS rows, the rest in one."""
    arrays = {
        name: value.detach().float().cpu().numpy().astype(np.float16) for name, value in model.state_dict().items()
    }
    table = arrays.pop("table.weight")
    for number, at in enumerate(range(0, len(table), FILE_ROWS), 1):
        np.save(out / f"table-{number}.npy", table[at : at + FILE_ROWS])
    np.savez(out / "layers.npz", **arrays)


if __name__ == "__main__":
    main(sys.argv[1:])
