"""Two processes that want the same thing at the same time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.torture.children import Child, agentunit, done, said_plainly
from benchmarks.torture.ledger import Ledger, Trial
from benchmarks.torture.scenarios import STORE, Scenario, check_store, run_ids, run_result
from benchmarks.torture.scenarios_run import N_CASES, Run
from benchmarks.torture.scenarios_score import Import, Migration, ScoreFile, ScoreRun
from benchmarks.torture.strikes import finish

_N_WRITERS = 3


def torture_with_writers(ledger: Ledger) -> None:
    """Each row several times."""
    rows: dict[str, Callable[[Trial], None]] = {
        "three runs into one store, made by whoever comes first": _three_runs,
        "two that resume the same run: one of them does": _two_resumes,
        "two that score the same run": lambda trial: _same_work(trial, ScoreRun(), refusal=None),
        "two that write the same file: whole": lambda trial: _same_work(trial, ScoreFile(), refusal="being written by"),
        "two that migrate the same store": lambda trial: _same_work(trial, Migration(), refusal=None),
        "two that import the same run: once": lambda trial: _same_work(trial, Import(), refusal="already"),
    }
    for name, torture in rows.items():
        with ledger.trying("two writers", name) as trial:
            for _ in range(ledger.counts.repeats if trial is not None else 0):
                assert trial is not None
                torture(trial)


def _together(commands: list[list[str]], folder: Path) -> list[Child]:
    children = [Child(command, folder) for command in commands]
    try:
        for child in children:
            child.end()
    finally:
        for child in children:
            child.clear()
    return children


def _place(trial: Trial) -> Path:
    return trial.place(f"round{trial.times}-{len(list(trial.folder.iterdir()))}")


def _three_runs(trial: Trial) -> None:
    folder = _place(trial)
    Run("function in worker processes", "'agents:double'").prepare(folder)
    for child in _together([agentunit("run", "suite.py")] * _N_WRITERS, folder):
        trial.require(child.process.returncode == 0, f"one of them failed: {child.errors[-500:]}")
        trial.times += 1
    check_store(folder / STORE)
    results = [run_result(folder, run_id) for run_id in run_ids(folder)]
    trial.require(len(results) == _N_WRITERS, f"{len(results)} runs are there")
    trial.require(all(len(each["records"]) == N_CASES for each in results), "a run lacks records")
    trial.require(all(each == results[0] for each in results), "the runs differ")


def _two_resumes(trial: Trial) -> None:
    folder = _place(trial)
    scenario = Run("function in worker processes", "'agents:double'")
    scenario.prepare(folder)
    run_id = scenario.interrupt(folder)
    n_started = len(scenario.started(folder))
    children = _together([agentunit("run", "suite.py", "--resume", run_id)] * 2, folder)
    codes = sorted(child.process.returncode for child in children)
    for child in children:
        trial.times += 1
        trial.require(said_plainly(child), f"not a plain message: {child.errors[-500:]}")
    # The second is refused while the first one records, and finds nothing left to do after it.
    trial.require(codes[0] == 0 and codes[1] in (0, 3), f"they ended with {codes}: {children[0].errors[-300:]}")
    asked = scenario.started(folder)[n_started:]
    trial.require(len(asked) == len(set(asked)), "a case was run by both")
    done(agentunit("run", "suite.py", "--resume", run_id), folder)
    trial.require(len(run_result(folder, run_id)["records"]) == N_CASES, "a record is lacking")


def _same_work(trial: Trial, scenario: Scenario, *, refusal: str | None) -> None:
    """The same command twice at once: each does it or is refused in so many words, and the result is that of one."""
    scenario.begin()
    try:
        alone = _place(trial)
        scenario.prepare(alone)
        finish(scenario, alone)
        folder = _place(trial)
        scenario.prepare(folder)
        children = [scenario.start(folder), scenario.start(folder)]
        try:
            codes = [child.end() for child in children]
        finally:
            for child in children:
                child.clear()
        for child, code in zip(children, codes, strict=True):
            trial.times += 1
            trial.require(said_plainly(child), f"not a plain message: {child.errors[-500:]}")
            was_refused = refusal is not None and refusal in child.errors
            trial.require(code == 0 or was_refused, f"one ended with {code}: {child.errors[-500:]}")
        trial.require(0 in codes, f"both were refused: {children[0].errors[-300:]}")
        scenario.check(folder)
        trial.require(
            scenario.result(folder) == scenario.result(alone), "the result of two is another than that of one"
        )
    finally:
        scenario.end()
