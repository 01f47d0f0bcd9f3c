"""Small files that want much: literals without end, levels without end, damaged tables, beside files that are good."""

from __future__ import annotations

import csv
import io
import json
import random
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from benchmarks.torture.children import Child, said_plainly
from benchmarks.torture.ledger import Skipped, Trial

MOST_BYTES = 400 << 20
"""What a command may take in memory for a file of some kB: four times what it takes for a good one."""

_CELL_CHARACTERS = 39_000
_LEVELS = 25_000
# The command within a process that leaves its own peak and that of its children behind.
_MEASURED = """
import resource, sys
from agentunit.cli.main import main

try:
    main()
finally:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    with open("peak", "w") as stream:
        stream.write(str(max(resource.getrusage(kind).ru_maxrss for kind in kinds)))
"""
_SUITE = """
dataset: {file}
agent: agents:answer
metrics: [response_time]
"""


def literals(chance: random.Random) -> str:
    """A cell that is a Python literal, or begins like one, and takes as much as it can."""
    part, joined = (
        chance.choice(["1", "1j", "''", "[]", "{}", "None", "b''", "-1", "1_0", "'\\\\x41'"]),
        chance.choice(",+-"),
    )
    opened, closed = chance.choice(["[]", "()", "{}"])
    repeated = _CELL_CHARACTERS // (len(part) + 1)
    forms = (
        opened + joined.join([part] * repeated) + closed,
        opened * _CELL_CHARACTERS,
        opened * (_CELL_CHARACTERS // 2) + closed * (_CELL_CHARACTERS // 2),
        "{1:" * (_CELL_CHARACTERS // 3),
        f"[{part}{' ' + part * repeated}]",
        f"[{'-' * _CELL_CHARACTERS}1]",
        f"[{'9' * _CELL_CHARACTERS}]",
        f"[{'not ' * (_CELL_CHARACTERS // 4)}1]",
        f"['{'x' * 20}' * 10 ** 10]",
        f"[{'9**' * 12}9]",
        f"[*{'[*' * (_CELL_CHARACTERS // 2)}",
        f"[{'f(' * (_CELL_CHARACTERS // 2)}]",
    )
    return chance.choice(forms)


def literal_bombs(trial: Trial, n_files: int) -> None:
    """Cells of tables and inputs of tools that are literals: bounded memory, and the row beside it is read."""
    for number in range(n_files):
        folder = trial.place(f"cells{number}")
        bomb = literals(trial.chance)
        written = io.StringIO()
        rows = csv.writer(written)
        rows.writerow(["id", "question", "answer", "contexts", "ground_truth"])
        rows.writerow(["good", "?", "yes", "['yes']", "yes"])
        rows.writerow(["bad", "?", "yes", bomb, bomb if trial.chance.random() < 0.3 else "yes"])
        (folder / "cells.csv").write_text(written.getvalue())
        runs = _tool_runs(bomb)
        (folder / "runs.json").write_text(json.dumps(runs))
        _write_suite(folder, "cells.csv")
        files = trial.chance.choice(["cells.csv", "runs.json"])
        _bounded(trial, folder, trial.chance.choice([["doctor", files], ["convert", files, "--out", "out.jsonl"]]))
        child = _bounded(
            trial, folder, ["score", "cells.csv", "runs.json", "-m", "faithfulness", "--out", "scores.jsonl"]
        )
        # The good row is there whatever becomes of the other.
        written_scores = (folder / "scores.jsonl").read_text()
        trial.require('"good"' in written_scores, f"the good row is not scored: {child.errors[-300:]}")
        _bounded(trial, folder, ["run", "suite.yaml"])


def _tool_runs(text: str) -> list[dict[str, object]]:
    times = {"start_time": "2026-01-01T00:00:00", "end_time": "2026-01-01T00:00:01"}
    chain = {"id": "1" * 32, "trace_id": "1" * 32, "name": "agent", "run_type": "chain", **times}
    tool = {"id": "2" * 32, "trace_id": "1" * 32, "parent_run_id": "1" * 32, "name": "search", "run_type": "tool"}
    return [
        {**chain, "inputs": {"input": "?"}, "outputs": {"output": text}},
        {**tool, **times, "inputs": {"input": text}, "outputs": {"output": text}},
    ]


def _write_suite(folder: Path, dataset: str) -> None:
    (folder / "suite.yaml").write_text(_SUITE.format(file=dataset))
    (folder / "agents.py").write_text("def answer(query):\n    return query\n")


def _bounded(trial: Trial, folder: Path, command: list[str]) -> Child:
    """Run a command; it ends by itself, says what it has to say in words, and takes no more memory than it may."""
    child = Child([sys.executable, "-c", _MEASURED, *command], folder)
    code = child.end()
    trial.times += 1
    trial.require(code >= 0, f"'{' '.join(command)}' was ended by signal {-code}")
    peak = 1024 * int((folder / "peak").read_text())
    trial.require(peak < MOST_BYTES, f"'{' '.join(command)}' took {peak / 1e6:,.0f} MB")
    trial.require(said_plainly(child), f"'{' '.join(command)}' ended with a bug: {child.errors[-500:]}")
    return child


_DEEP: dict[str, Callable[[], str]] = {
    "deep.yaml": lambda: "[" * _LEVELS,
    "braces.yaml": lambda: "{a: " * _LEVELS,
    "dashes.yaml": lambda: "- " * _LEVELS,
    "aliases.yaml": lambda: "- &a0 [x]\n" + "".join(f"- &a{n + 1} [*a{n}]\n" for n in range(4_000)),
    "deep.json": lambda: "[" * _LEVELS + "]" * _LEVELS,
    "objects.json": lambda: '{"a":' * _LEVELS + "1" + "}" * _LEVELS,
    "deep.jsonl": lambda: '{"query":' + "[" * _LEVELS + "]" * _LEVELS + "}\n",
    "case.jsonl": lambda: '{"id":"q","query":"?","metadata":{"a":' + "[" * 5_000 + "]" * 5_000 + "}}\n",
}


def deep_files(trial: Trial, n_files: int) -> None:
    """Files without a bottom, to every verb that takes one; the good files beside them still produce."""
    for _ in range(n_files):
        name = trial.chance.choice(sorted(_DEEP))
        folder = trial.place(f"deep{trial.times}")
        (folder / name).write_text(_DEEP[name]())
        _write_suite(folder, name)
        (folder / "suite.json").write_text(_DEEP["objects.json"]())
        (folder / "bare.yaml").write_text(_DEEP["braces.yaml"]())
        for command in trial.chance.sample(
            [
                ["run", "suite.yaml"],
                ["run", "bare.yaml"],
                ["run", name] if name.endswith(".yaml") else ["gate", name],
                ["doctor", name],
                ["import", name],
                ["convert", name, "--out", "out.jsonl"],
                ["redact", name, "--out", "masked"],
                ["redact", "good.jsonl", "--rules", "bare.yaml", "--out", "masked"],
            ],
            3,
        ):
            _write_good(folder)
            _bounded(trial, folder, command)
        _beside_good(trial, folder, [name])


def _write_good(folder: Path) -> list[str]:
    names = [f"good{number}.jsonl" for number in range(3)]
    for number, name in enumerate(names):
        row = {"v": 1, "case": {"id": f"good {number}", "query": "?", "expected_output": "yes"}, "outcome": "yes"}
        (folder / name).write_text(json.dumps(row) + "\n")
    (folder / "good.jsonl").write_text((folder / names[0]).read_text())
    return names


def _beside_good(trial: Trial, folder: Path, bad: list[str]) -> None:
    """Score bad files together with good ones: of these every record is scored."""
    names = [*_write_good(folder), *bad]
    trial.chance.shuffle(names)
    child = _bounded(trial, folder, ["score", *names, "-m", "exact_match", "--out", "scores.jsonl"])
    scores = (folder / "scores.jsonl").read_text()
    lacking = [number for number in range(3) if f'"good {number}"' not in scores]
    trial.require(not lacking, f"beside {bad} files are not scored: {lacking}; {child.errors[-300:]}")


def damaged_tables(trial: Trial, n_files: int) -> None:
    """Parquet of which one byte is another: whatever that does to the library, the good files beside it produce."""
    if find_spec("pyarrow") is None:
        raise Skipped("pyarrow is not installed")
    import pyarrow
    from pyarrow import parquet

    written = io.BytesIO()
    rows = [
        {"question": f"q{number}", "answer": "yes" * number, "contexts": [f"yes {number}"], "ground_truth": "yes"}
        for number in range(40)
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), written)
    whole = written.getvalue()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for number in range(n_files):
        folder = trial.place(f"damaged{number}")
        bad = []
        for each in range(8):
            data = bytearray(whole)
            # Most of what is fragile is in the footer.
            first = footer if trial.chance.random() < 0.7 else 4
            data[trial.chance.randrange(first, len(data))] = trial.chance.randrange(256)
            bad.append(f"bad{each}.parquet")
            (folder / bad[-1]).write_bytes(data)
        _beside_good(trial, folder, bad)
        trial.times += len(bad) - 1
        _write_suite(folder, bad[0])
        for command in (["run", "suite.yaml"], ["doctor", bad[1]], ["convert", bad[2], "--out", "out.jsonl"]):
            _bounded(trial, folder, command)
