"""The same scores, to the last digit, however the work is cut, ordered and spread."""

from __future__ import annotations

import json
import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.torture.children import agentunit, done
from benchmarks.torture.ledger import Ledger, Trial
from benchmarks.torture.made_up import METRICS, write_records
from benchmarks.torture.scenarios_score import timeless

_N_RECORDS = 300
_METRICS = [
    *METRICS.split(","),
    "contains",
    "response_time",
    "data_minimization",
    "hallucination_rate",
    "step_efficiency",
]

# The Python interface, with a batch size: scores and summary as one JSON document.
_IN_BATCHES = """
import json, random, sys
import agentunit, msgspec
from agentunit.core.codec import decode_record

names, batch_size, jobs = json.loads(sys.argv[1])
records = [decode_record(line) for line in open("records.jsonl", "rb")]
run = agentunit.score(records, names, batch_size=batch_size, jobs=jobs)
scores = {
    each.case_id: {name: msgspec.to_builtins(score) for name, score in each.scores.items()} for each in run
}
print(json.dumps({"scores": scores, "summary": msgspec.to_builtins(run.summary())}))
"""


def torture_determinism(ledger: Ledger) -> None:
    """Random ways to do the same, each compared with the plain one."""
    with ledger.trying(
        "determinism", "score FILE: processes, hash seed, order of metrics, pieces of the file"
    ) as trial:
        if trial is not None:
            _files(trial, 8 * ledger.counts.repeats)
    with ledger.trying("determinism", "Python: batch size, processes, hash seed, order of metrics") as trial:
        if trial is not None:
            _batches(trial, 6 * ledger.counts.repeats, "lexical", _N_RECORDS)
    with ledger.trying("determinism", "local model: batch size, processes, order of metrics") as trial:
        if trial is not None and find_spec("agentunit_local") is not None:
            _batches(trial, 3 * ledger.counts.repeats, "local", 12)


def _chosen_metrics(folder: Path) -> list[str]:
    known = done(agentunit("metrics", "--json"), folder).out
    return [name for name in _METRICS if f'"{name}"' in known]


def _files(trial: Trial, n_ways: int) -> None:
    folder = trial.place("files")
    write_records(folder / "records.jsonl", _N_RECORDS)
    (folder / "pieces").mkdir()
    names = _chosen_metrics(folder)
    expected = _scored(folder, ["records.jsonl"], names, "0", [])
    for _ in range(n_ways):
        order = trial.chance.sample(names, len(names))
        jobs = trial.chance.choice([[], ["--jobs", "2"], ["--jobs", "3"]])
        hash_seed = str(trial.chance.randrange(1, 4_000_000))
        files = trial.chance.choice([["records.jsonl"], _cut(folder, trial.chance)])
        found = _scored(folder, files, order, hash_seed, jobs)
        trial.times += 1
        for key, value in expected.items():
            if found[key] != value:
                trial.lose(f"{key} differ with {jobs}, hash seed {hash_seed}, {len(files)} files, metrics {order}")


def _cut(folder: Path, chance: random.Random) -> list[str]:
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    cuts = sorted(chance.sample(range(1, len(lines)), 3))
    for each in (folder / "pieces").iterdir():
        each.unlink()
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(lines)], strict=True)):
        (folder / "pieces" / f"{number}.jsonl").write_bytes(b"".join(lines[start:end]))
    return [f"pieces/{number}.jsonl" for number in range(4)]


def _scored(folder: Path, files: list[str], names: list[str], hash_seed: str, jobs: list[str]) -> dict[str, Any]:
    out = folder / "scores.jsonl"
    options = ["--metrics", ",".join(names), "--out", out.name, "--json", "--max-errors", "99999", *jobs]
    child = done(agentunit("score", *files, *options), folder, environment={"PYTHONHASHSEED": hash_seed})
    lines = [_sorted(timeless(line)) for line in out.read_text().splitlines()]
    summary = timeless(child.out)["summary"]
    rows = sorted(summary.pop("metrics"), key=lambda row: row["name"] if "name" in row else json.dumps(row))
    return {"scores": lines, "rows of the summary": rows}


def _sorted(data: Any) -> Any:
    return json.loads(json.dumps(data, sort_keys=True))


def _batches(trial: Trial, n_ways: int, backend: str, n_records: int) -> None:
    import sys

    folder = trial.place("batches")
    write_records(folder / "records.jsonl", n_records)
    names = _chosen_metrics(folder)
    if backend == "local":
        names = [each for each in names if each in ("faithfulness", "answer_correctness", "hallucination_rate")]

    def scored(order: list[str], batch_size: int, jobs: int | None, hash_seed: str) -> Any:
        child = done(
            [sys.executable, "-c", _IN_BATCHES, json.dumps([order, batch_size, jobs])],
            folder,
            environment={"PYTHONHASHSEED": hash_seed, "AGENTUNIT_BACKEND": backend},
        )
        found = timeless(child.out)
        found["summary"].pop("created_at", None)
        rows = found["summary"].pop("metrics")
        return _sorted(
            {"scores": found["scores"], "rows": sorted(rows, key=json.dumps) if isinstance(rows, list) else rows}
        )

    expected = scored(names, 64, None, "0")
    trial.require(len(expected["scores"]) == n_records, "scores are lacking")
    for _ in range(n_ways):
        order = trial.chance.sample(names, len(names))
        batch_size, jobs = trial.chance.choice([1, 2, 7, 64, 1000]), trial.chance.choice([None, None, 2])
        hash_seed = str(trial.chance.randrange(1, 4_000_000))
        trial.times += 1
        if scored(order, batch_size, jobs, hash_seed) != expected:
            trial.lose(
                f"scores differ with batches of {batch_size}, jobs {jobs}, hash seed {hash_seed}, metrics {order}"
            )
