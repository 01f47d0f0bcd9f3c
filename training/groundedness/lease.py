"""Trains all models in one go on a lent accelerator: ``python -m training.groundedness.lease BUILT LARGE SMALL OUT [name=value …]``.

``LARGE`` and ``SMALL`` are folders with the starts. First come the models that ship: seeds of the large one, the mean of their
weights, and a small one that learns the mean's logits. Then the same without each family of sets in turn, for the figures of
development and the probabilities. A step that would not end in the time left is not begun, and what is done is on disk.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Plan:
    """The steps of a lease. ``leave_out`` names families of sets: with ``+`` those that are left out together.

    ``made_share`` is the share of made sentences used in an epoch.
    """

    seeds: int = 2
    layers: int = 12
    small_layers: int = 8
    epochs: float = 1.0
    small_epochs: float = 1.5
    rate: float = 6e-5
    small_rate: float = 1.5e-4
    tokens: int = 32000
    made_share: float = 0.8
    leave_out: str = "summedits_,frank_+wice,begin_"
    seconds: float = 1200.0


def run(built: Path, large: Path, small: Path, out: Path, plan: Plan) -> list[str]:
    """Do what the plan says within its time; returns the names of the steps that were done."""
    from training.groundedness.train import Recipe, average, main

    recipe = Recipe(
        epochs=plan.epochs, rate=plan.rate, tokens=plan.tokens, layers=plan.layers, made_share=plan.made_share
    )
    student = replace(recipe, layers=plan.small_layers, epochs=plan.small_epochs, rate=plan.small_rate)
    seeds = [f"large-{seed}" for seed in range(1, plan.seeds + 1)]
    steps: list[tuple[str, Callable[[Path], None]]] = []

    def taught(name: str, teacher: str, without: str) -> None:
        wanted = replace(student, name=name, leave_out=without, teacher=str(out / teacher / "logits.npy"))
        steps.append((name, lambda folder: main(built, small, folder, wanted)))

    def trained(name: str, wanted: Recipe) -> None:
        steps.append((name, lambda folder: main(built, large, folder, wanted)))

    for seed, name in enumerate(seeds, 1):
        trained(name, replace(recipe, name=name, seed=seed))
    models = [out / name / "model.pt" for name in seeds]
    mean = replace(recipe, name="large", predict=True)
    steps.append(("large", lambda folder: average(built, models, folder, mean)))
    taught("small", "large", "")
    for family in filter(None, plan.leave_out.split(",")):
        without = family.replace("+", ",")
        trained(f"large-without-{family}", replace(recipe, name=family, leave_out=without, predict=True))
        taught(f"small-without-{family}", f"large-without-{family}", without)
    return _within(plan.seconds, steps, out)


def _within(seconds: float, steps: list[tuple[str, Callable[[Path], None]]], out: Path) -> list[str]:
    """Do the steps one after the other; one is not begun when the longest of its kind would not end in time."""
    started = time.monotonic()
    longest: dict[str, float] = {}
    done: list[str] = []
    for name, step in steps:
        kind = "small" if name.startswith("small") else "mean" if name == "large" else "large"
        left = seconds - (time.monotonic() - started)
        if left < longest.get(kind, 0.0):
            print(f"{name} is not begun: {left:.0f} s are left, too few for one more of its kind", flush=True)
            continue
        if (out / name / "scores.jsonl.gz").exists():  # of a plan that was stopped
            done.append(name)
            continue
        begun = time.monotonic()
        step(out / name)
        scores = out / name / "scores.jsonl"
        with gzip.open(out / name / "scores.jsonl.gz", "wb") as file:
            file.write(scores.read_bytes())
        scores.unlink()
        longest[kind] = max(longest.get(kind, 0.0), time.monotonic() - begun)
        done.append(name)
        (out / "done.json").write_text(json.dumps(done))
    return done


def main(arguments: list[str]) -> None:
    """Run a plan whose fields may be set as ``name=value``."""
    plan = Plan()
    for option in arguments[4:]:
        key, _, value = option.partition("=")
        plan = replace(plan, **{key: type(getattr(plan, key))(value)})
    print(json.dumps(run(*map(Path, arguments[:4]), plan)))


if __name__ == "__main__":
    main(sys.argv[1:])
