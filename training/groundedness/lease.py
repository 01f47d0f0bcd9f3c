"""Trains all models on a lent accelerator: ``python -m training.groundedness.lease VERB …``.

``plan BUILT`` prints the steps with their times. ``run IN OUT [name=value …]`` does them: ``IN`` holds ``built.npz``,
``start-large`` and ``start-small``, and what an earlier lease brought home (``done``). ``go IN OUT HOME`` starts that by itself
where it does not run yet, waits, and puts what is finished into ``HOME`` in pieces; it is called again until all is home.

First come the models that ship: seeds of the large one, the mean of their weights, and a small one that learns the mean's
logits. Then the same without each family of sets in turn, for the figures of development and the probabilities. A step that
would not end in the time left is not begun; one that is done is not done again.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from training.groundedness import travel

_KEPT = ("scores.jsonl.gz", "report.json", "logits.npy")
_POLL = 2.0


@dataclass(frozen=True)
class Plan:
    """The steps of a lease. ``leave_out`` names families of sets: with ``+`` those that are left out together.

    ``made_share`` is the share of made sentences used in an epoch. A step's time is foreseen by milliseconds a batch,
    and ``reading_share`` is how much of these reading without learning takes.
    """

    seeds: int = 2
    layers: int = 12
    small_layers: int = 8
    epochs: float = 1.0
    small_epochs: float = 1.2
    rate: float = 6e-5
    small_rate: float = 1.5e-4
    tokens: int = 32000
    made_share: float = 1.0
    leave_out: str = "summedits_,frank_+wice,begin_"
    seconds: float = 1500.0
    large_ms: float = 70.0
    small_ms: float = 36.0
    reading_share: float = 0.33
    compile: bool = False


@dataclass(frozen=True)
class Step:
    """A model to be trained: from which start, without which sets, taught by which other step's logits."""

    name: str
    size: str
    without: str = ""
    teacher: str = ""
    seed: int = 1
    reads_all: bool = False
    mean_of: tuple[str, ...] = ()


def steps_of(plan: Plan) -> Iterator[Step]:
    """What ships first, then the families of sets, the one with most sets first."""
    seeds = tuple(f"large-{seed}" for seed in range(1, plan.seeds + 1))
    for seed, name in enumerate(seeds, 1):
        yield Step(name, "large", seed=seed)
    yield Step("large", "large", reads_all=True, mean_of=seeds)
    yield Step("small", "small", teacher="large")
    for family in filter(None, plan.leave_out.split(",")):
        without = family.replace("+", ",")
        yield Step(f"large-without-{family}", "large", without, reads_all=True)
        yield Step(f"small-without-{family}", "small", without, teacher=f"large-without-{family}")


def foreseen(step: Step, plan: Plan, n_batches: dict[str, int]) -> float:
    """The seconds a step should take; ``n_batches`` has those of an epoch, of all pairs, and of what is measured."""
    ms, epochs = (plan.large_ms, plan.epochs) if step.size == "large" else (plan.small_ms, plan.small_epochs)
    learned = 0.0 if step.mean_of else n_batches["epoch"] * epochs
    read = n_batches["measured"] + (n_batches["all"] if step.reads_all else 0)
    return 4.0 + (learned + read * plan.reading_share) * ms / 1000


def batches_of(built: Path, plan: Plan) -> dict[str, int]:
    """How many batches an epoch has, and reading everything or what is measured."""
    import numpy as np

    from training.groundedness.train import Data, Recipe

    data = Data(built, Recipe(tokens=plan.tokens, made_share=plan.made_share), "cpu")
    rng = np.random.default_rng(1)
    everything = np.arange(len(data.arrays["label"]))
    return {
        "epoch": len(data.batches(data.training_groups(rng), rng)),
        "all": len(data.batches(everything, None)),
        "measured": len(data.batches(data.measured_groups(), None)),
    }


def table(plan: Plan, n_batches: dict[str, int]) -> str:
    """The steps with what each takes and when it ends."""
    lines = [f"{'step':32} {'batches':>8} {'seconds':>8} {'ends at':>8}"]
    total = 0.0
    for step in steps_of(plan):
        seconds = foreseen(step, plan, n_batches)
        total += seconds
        epochs = 0.0 if step.mean_of else plan.epochs if step.size == "large" else plan.small_epochs
        late = "  not begun" if total > plan.seconds else ""
        lines.append(f"{step.name:32} {n_batches['epoch'] * epochs:8.0f} {seconds:8.0f} {total / 60:6.1f} m{late}")
    return "\n".join(lines)


def run(given: Path, out: Path, plan: Plan) -> list[str]:
    """Do what the plan says within its time; returns the names of the steps that were done."""
    from training.groundedness.train import Recipe, attention_kernel, average, main

    built = given / "built.npz"
    large = Recipe(
        epochs=plan.epochs, rate=plan.rate, tokens=plan.tokens, layers=plan.layers, made_share=plan.made_share,
        compile=plan.compile,
    )  # fmt: skip
    small = replace(large, layers=plan.small_layers, epochs=plan.small_epochs, rate=plan.small_rate)

    def do(step: Step, folder: Path) -> None:
        recipe = replace(
            large if step.size == "large" else small, name=step.name, seed=step.seed, leave_out=step.without,
            predict=step.reads_all, teacher=str(out / step.teacher / "logits.npy") if step.teacher else "",
        )  # fmt: skip
        if step.mean_of:
            average(built, [out / name / "model.pt" for name in step.mean_of], folder, recipe)
        else:
            main(built, given / f"start-{step.size}", folder, recipe)

    for size in ("large", "small"):
        print(f"attention of the {size} one:", attention_kernel(given / f"start-{size}"), flush=True)
    out.mkdir(parents=True, exist_ok=True)
    if (given / "done").exists():
        shutil.copytree(given / "done", out, dirs_exist_ok=True)
    return _within(plan, out, do, batches_of(built, plan))


def _within(plan: Plan, out: Path, do: Callable[[Step, Path], None], n_batches: dict[str, int]) -> list[str]:
    """Do the steps one after the other; one is not begun when the longest of its kind would not end in time."""
    started = time.monotonic()
    slower: dict[str, float] = {}
    done: list[str] = []
    steps = list(steps_of(plan))
    averaged = {name for step in steps if _is_done(step, out) for name in step.mean_of}
    for step in steps:
        if _is_done(step, out) or step.name in averaged:
            done.append(step.name)
            continue
        lacking = [name for name in (*step.mean_of, *filter(None, [step.teacher])) if name not in done]
        if lacking:
            print(f"{step.name} is not begun: {lacking[0]} is lacking", flush=True)
            continue
        expected = foreseen(step, plan, n_batches) * slower.get(step.size, 1.0)
        left = plan.seconds - (time.monotonic() - started)
        if left < expected:
            print(f"{step.name} is not begun: {left:.0f} s are left, and it would take {expected:.0f}", flush=True)
            continue
        begun = time.monotonic()
        do(step, out / step.name)
        # Scores come last under their name: whoever sees them finds the rest whole.
        scores = out / step.name / "scores.jsonl"
        packed = scores.with_suffix(".part")
        packed.write_bytes(gzip.compress(scores.read_bytes(), 6, mtime=0))
        scores.unlink()
        packed.replace(out / step.name / "scores.jsonl.gz")
        took = time.monotonic() - begun
        if not step.mean_of:
            slower[step.size] = took / foreseen(step, plan, n_batches)
        done.append(step.name)
        print(f"{step.name}: {took:.0f} s (foreseen {foreseen(step, plan, n_batches):.0f})", flush=True)
    return done


def _is_done(step: Step, out: Path) -> bool:
    """A model of which a mean will be taken must be there itself; of the others, what they said is enough."""
    here = (out / step.name / "scores.jsonl.gz").exists()
    return here and (
        not step.name.startswith("large-") or bool(step.without) or (out / step.name / "model.pt").exists()
    )


def results(out: Path) -> list[Path]:
    """The finished files that belong home: what was said first, then the weights that ship."""
    done = [folder for folder in sorted(out.iterdir()) if (folder / "scores.jsonl.gz").exists()] if out.exists() else []
    found = [folder / name for folder in done for name in _KEPT if (folder / name).exists()]
    found += [folder / "model.pt" for folder in done for name in ("small", "large") if folder.name == name]
    return found


def go(given: Path, out: Path, home: Path, most_seconds: float, options: list[str]) -> str:
    """Start the lease where it does not run yet, wait, and put what is finished into ``home``."""
    out.mkdir(parents=True, exist_ok=True)
    began, log, ended = time.monotonic(), out / "log.txt", out / "ended"
    if not (out / "pid").exists() and not ended.exists():
        command = f'{sys.executable} -u -m training.groundedness.lease run "$0" "$1" "${{@:2}}"; echo $? > "$1/ended"'
        with open(log, "a") as file:
            runner = subprocess.Popen(
                ["bash", "-c", command, str(given), str(out), *options],
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        (out / "pid").write_text(str(runner.pid))
    while time.monotonic() - began < most_seconds and not ended.exists() and not _enough(out):
        time.sleep(_POLL)
    files = results(out)
    if ended.exists():
        files.append(log)
    went, left = travel.send(files, out, home, out / "sent.json")
    tail = "\n".join(log.read_text().splitlines()[-12:])
    if not ended.exists():
        return f"{tail}\n{went} pieces come home, {left} wait; training goes on: call again at once"
    status = ended.read_text().strip()
    if status != "0":
        # The next call goes on where this one stopped, with the cause put right.
        (out / "pid").unlink()
        ended.unlink()
        return f"{tail}\ntraining failed ({status}); {went} pieces come home, {left} wait: put it right and call again"
    return f"{tail}\ntraining is done; {went} pieces come home, {left} wait: " + (
        "call again at once" if left else "everything is home"
    )


def _enough(out: Path) -> bool:
    """Whether what is finished and not sent fills a call."""
    sent = out / "sent.json"
    n_sent = len(json.loads(sent.read_text())) if sent.exists() else 0
    n_ready = sum(-(-path.stat().st_size // travel.PIECE_BYTES) for path in results(out))
    return n_ready - n_sent >= 3 * travel.CALL_PIECES


def _plan(options: list[str]) -> Plan:
    plan = Plan()
    for option in options:
        key, _, value = option.partition("=")
        kind = type(getattr(plan, key))
        plan = replace(plan, **{key: value == "1" if kind is bool else kind(value)})
    return plan


def main(arguments: list[str]) -> None:
    """Do what the first argument says."""
    verb, *rest = arguments
    if verb == "plan":
        plan = _plan(rest[1:])
        n_batches = batches_of(Path(rest[0]), plan)
        print(n_batches, table(plan, n_batches), sep="\n")
    elif verb == "run":
        print(json.dumps(run(Path(rest[0]), Path(rest[1]), _plan(rest[2:]))))
    elif verb == "go":
        most = float(os.environ.get("MOST_SECONDS", "540"))
        print(go(Path(rest[0]), Path(rest[1]), Path(rest[2]), most, rest[3:]))
    else:
        raise SystemExit(f"{verb}: the verbs are plan, run and go")


if __name__ == "__main__":
    main(sys.argv[1:])
