"""Shards of inputs in processes of their own, two at a time."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.torture.children import BOUND_S, Child
from benchmarks.torture.fuzz.targets import TARGETS, Target
from benchmarks.torture.ledger import Ledger, Lost, Trial

_SHARDS = 2
# Where inputs that crash are kept, to look at and to make tests of.
CRASHES = Path(".bench", "torture-crashes")


def torture_with_inputs(ledger: Ledger) -> None:
    """Each target gets its share of all inputs."""
    for target in TARGETS:
        with ledger.trying("fuzz", target.name) as trial:
            if trial is not None:
                _fuzz(trial, target, ledger.seed, max(_SHARDS, round(ledger.counts.inputs * target.share)))


def _fuzz(trial: Trial, target: Target, seed: int, n_inputs: int) -> None:
    shares = [n_inputs // _SHARDS + (at < n_inputs % _SHARDS) for at in range(_SHARDS)]
    with ThreadPoolExecutor(_SHARDS) as pool:
        list(pool.map(lambda at: _shard(trial, target, f"{seed}.{at}", shares[at]), range(_SHARDS)))


def _shard(trial: Trial, target: Target, seed: str, n_inputs: int) -> None:
    folder = trial.place(f"shard{seed}")
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "benchmarks.torture.fuzz.worker", target.name, seed, str(n_inputs)]
    child = Child(command, folder, environment={"PYTHONPATH": str(root), "PYTHONHASHSEED": "0"})
    # Bounded as a whole: an input that hangs outside of Python is not ended by its own limit.
    try:
        code = child.end(BOUND_S + n_inputs * 0.1)
    except Lost:
        code = None
    found = []
    for line in child.out.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    for each in found:
        if "crash" in each:
            kept = _keep(target, base64.b64decode(each["input"]))
            trial.lose(f"{each['crash']} at {each['place']} (input: {kept})")
    counted = [each["inputs"] for each in found if "inputs" in each]
    if code != 0 or not counted:
        current = (folder / "current").read_bytes() if (folder / "current").exists() else b""
        data = current[8 : 8 + int.from_bytes(current[:8], "little")]
        how = "did not end" if code is None else f"ended with {code}"
        trial.lose(f"the process {how}: {child.errors[-300:]} (input: {_keep(target, data)})")
    trial.times += sum(counted)


def _keep(target: Target, data: bytes) -> Path:
    CRASHES.mkdir(parents=True, exist_ok=True)
    name = f"{'-'.join(target.name.split()[:3])}-{zlib.crc32(data):x}".replace(",", "")
    path = CRASHES / name
    path.write_bytes(data)
    return path
