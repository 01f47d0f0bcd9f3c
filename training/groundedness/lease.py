"""One training run from packed parts to packed weights: ``python -m training.groundedness.lease PACK OUT [name=value …]``.

``pack`` (``python -m training.groundedness.lease pack BUILT START PACK``) cuts what a run needs into files of at most 60 MiB,
to be carried to a machine with an accelerator. The run joins them, trains teachers, then a student that learns their logits,
and writes each model as rows of int8 as soon as it is trained, so that a run that is cut short loses only its last step.
A step that would not end in the time left is not begun.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from training.groundedness.start import PART_BYTES, write_parts


@dataclass(frozen=True)
class Plan:
    """The steps of a lease. ``teachers`` seeds are trained on ``layers`` layers each, then a student on fewer.

    ``leave_out`` names sets (by how their names begin, with commas) that are left out one after the other, with one
    teacher each: the figures of development. Without it the models that ship are trained.
    """

    teachers: int = 2
    layers: int = 12
    student_layers: int = 8
    epochs: float = 1.0
    student_epochs: float = 1.25
    rate: float = 6e-5
    student_rate: float = 1.5e-4
    tokens: int = 32000
    stretch: float = 1.3
    fold: int = -1
    leave_out: str = ""
    seconds: float = 1500.0


def pack(built: Path, start: Path, out: Path, part_bytes: int = PART_BYTES) -> list[Path]:
    """The built data and the start in parts; the start is already in parts and is copied."""
    out.mkdir(parents=True, exist_ok=True)
    with np.load(built) as arrays:
        content = built.read_bytes() if built.stat().st_size <= part_bytes else b""
        if not content:
            np.savez_compressed(out / "built.npz", **{name: arrays[name] for name in arrays.files})
            content = (out / "built.npz").read_bytes()
            (out / "built.npz").unlink()
    written = []
    for number, at in enumerate(range(0, len(content), part_bytes), 1):
        written.append(out / f"built-{number:02}.part")
        written[-1].write_bytes(content[at : at + part_bytes])
    for part in sorted(start.glob("*.npz")):
        written.append(out / f"start-{part.name}")
        written[-1].write_bytes(part.read_bytes())
    return written


def unpack(packed: Path, work: Path) -> tuple[Path, Path]:
    """The built data and the start, joined again."""
    start = work / "start"
    start.mkdir(parents=True, exist_ok=True)
    built = work / "built.npz"
    built.write_bytes(b"".join(part.read_bytes() for part in sorted(packed.glob("built-*.part"))))
    for part in packed.glob("start-*.npz"):
        (start / part.name).write_bytes(part.read_bytes())
    return built, start


def run(packed: Path, out: Path, plan: Plan) -> list[str]:
    """Train what the plan says within its time; returns the names of the steps that were done."""
    from training.groundedness.train import Recipe
    from training.groundedness.train import main as train

    started = time.monotonic()
    built, start = unpack(packed, out / "work")
    recipe = Recipe(epochs=plan.epochs, rate=plan.rate, tokens=plan.tokens, layers=plan.layers, fold=plan.fold)
    steps: list[tuple[str, Path, Any]] = [
        (f"without-{name}", start, replace(recipe, name=name, leave_out=name))
        for name in plan.leave_out.split(",")
        if name
    ]
    if not steps:
        names = [f"teacher-{seed}" for seed in range(1, plan.teachers + 1)]
        steps = [(name, start, replace(recipe, name=name, seed=n, predict=True)) for n, name in enumerate(names, 1)]
        taught = ",".join(str(out / "work" / name / "logits.npy") for name in names)
        student = replace(
            recipe, name="student", layers=plan.student_layers, epochs=plan.student_epochs, rate=plan.student_rate,
            teacher=taught, stretch=plan.stretch,
        )  # fmt: skip
        steps.append(("student", out / "work" / names[0] / "model.pt", student))
    done: list[str] = []
    longest = 0.0
    for name, weights, step in steps:
        left = plan.seconds - (time.monotonic() - started)
        if left < longest:
            print(f"{name} is not begun: {left:.0f} s are left, the longest step took {longest:.0f} s", flush=True)
            break
        begun = time.monotonic()
        train(built, weights, out / "work" / name, step)
        _keep(out / "work" / name, out / name)
        longest = max(longest, time.monotonic() - begun)
        done.append(name)
    return done


def _keep(trained: Path, out: Path) -> None:
    """What of a step is carried home: weights as rows of int8 in parts, the report, and the scores of measured rows."""
    import torch

    state = torch.load(trained / "model.pt", weights_only=True)
    write_parts({name: tensor.float().numpy() for name, tensor in state.items()}, out)
    for name in ("report.json", "scores.jsonl"):
        (out / name).write_bytes((trained / name).read_bytes())


def main(arguments: list[str]) -> None:
    """Pack, or run a plan."""
    if arguments[0] == "pack":
        for path in pack(*map(Path, arguments[1:4])):
            print(path, f"{path.stat().st_size / 1024 / 1024:.0f} MiB")
        return
    plan = Plan()
    for option in arguments[2:]:
        key, _, value = option.partition("=")
        plan = replace(plan, **{key: type(getattr(plan, key))(value)})
    done = run(Path(arguments[0]), Path(arguments[1]), plan)
    print(json.dumps(done))


if __name__ == "__main__":
    main(sys.argv[1:])
