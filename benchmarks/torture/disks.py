"""A disk that is full, and one that cannot be written.

The mounts are made in a namespace of a child process (``unshare``): they are gone when it ends, however it ends.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.torture.children import BOUND_S, Child, agentunit, done, said_plainly
from benchmarks.torture.ledger import Ledger, Lost, Skipped, Trial
from benchmarks.torture.made_up import add_run
from benchmarks.torture.scenarios import STORE, Scenario
from benchmarks.torture.scenarios_receive import Collect, Label
from benchmarks.torture.scenarios_run import HttpRun
from benchmarks.torture.scenarios_score import Import, Migration, ScoreFile, ScoreFileInProcesses, ScoreRun
from benchmarks.torture.strikes import difference, finish

_ROOM_AGAIN = "64m"


def torture_with_disks(ledger: Ledger) -> None:
    """Each row in a namespace of its own."""
    for name in FULL:
        with ledger.trying("full disk", name) as trial:
            if trial is not None:
                _inside(trial, f"full disk:{name}", ledger.counts.repeats)
    with ledger.trying("read-only", "store on a read-only mount") as trial:
        if trial is not None:
            _inside(trial, "read-only", 1)


def _inside(trial: Trial, what: str, repeats: int) -> None:
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        raise Skipped("unshare and mount are not here")
    enter = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    here = trial.place("mnt")
    if subprocess.run([*enter, "mount", "-t", "tmpfs", "tmpfs", str(here)], capture_output=True).returncode:
        raise Skipped("nothing may be mounted here")
    seed = trial.chance.randrange(10**9)
    child = Child(
        [*enter, sys.executable, "-m", "benchmarks.torture.disks", what, str(here), str(seed), str(repeats)], Path.cwd()
    )
    child.end(4 * BOUND_S)
    try:
        found = json.loads(child.out.splitlines()[-1])
    except (IndexError, ValueError):
        raise Lost(f"{what}: {child.errors[-500:]}") from None
    trial.times = found["times"]
    for each in found["lost"]:
        trial.lose(each)


def _collect() -> Scenario:
    scenario = Collect()
    scenario.most_refusals = 20
    return scenario


# Work whose own files alone lie on the disk: an agent's log there would make the agent fail, which is no loss of ours.
FULL: dict[str, Callable[[], Scenario]] = {
    "run": lambda: HttpRun("HTTP", ""),
    "score RUN": ScoreRun,
    "score FILE --out": ScoreFile,
    "score FILE --jobs 2 --out": ScoreFileInProcesses,
    "import": Import,
    "collect": _collect,
    "label": Label,
    "store of the first version": Migration,
}


def _fill_disk(trial: Trial, make: Callable[[], Scenario], here: Path, repeats: int) -> None:
    scenario = make()
    scenario.begin()
    try:
        roomy = trial.place("roomy")
        scenario.prepare(roomy)
        before = _size(roomy)
        finish(scenario, roomy)
        expected, needed = scenario.result(roomy), _size(roomy) - before
        for number in range(3 * repeats):
            # From "not even its first file" to "almost all of it".
            room = 4096 * int((before + 1.3 * needed * (number + trial.chance.random()) / (3 * repeats)) / 4096 + 8)
            _mount("-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(here))
            try:
                folder = here / f"full{number}"
                folder.mkdir()
                scenario.prepare(folder)
                child = scenario.start(folder)
                code = child.end()
                trial.times += 1
                trial.require(said_plainly(child), f"not a plain message: {child.errors[-700:]}")
                trial.require(
                    code in (0, 3), f"it ended with {code} on a disk with {room:,} bytes: {child.errors[-500:]}"
                )
                if code == 3:
                    said = child.errors.lower()
                    trial.require(
                        any(words in said for words in ("full", "no space left", "disk i/o error")),
                        f"it does not say that the disk is full: {child.errors[-500:]}",
                    )
                # Even to look into a store takes a page of the disk.
                _mount("-o", f"remount,size={_ROOM_AGAIN}", str(here))
                scenario.check(folder)
                finish(scenario, folder)
                found = scenario.result(folder)
                if found != expected:
                    raise Lost(f"with room again the result is another: {difference(expected, found)}")
            finally:
                subprocess.run(["umount", "-l", str(here)], check=True)
    finally:
        scenario.end()


def _size(folder: Path) -> int:
    # In the pages that a disk in memory gives out.
    return sum(-(-each.stat().st_size // 4096) * 4096 for each in folder.rglob("*") if each.is_file())


def _read_only(trial: Trial, here: Path) -> None:
    """Reading verbs work and change nothing, also beside a killed process's log; writing verbs say why they cannot."""
    add_run(here / STORE, 50, "first")
    add_run(here / STORE, 50, "second")
    done(agentunit("score", "first", "--metrics", "exact_match", "--max-errors", "99"), here)
    killed = Child(
        [sys.executable, "-c", _KILLED_WRITER, str(here / STORE)],
        here,
    )
    killed.end()
    (here / "suite.yaml").write_text("dataset: [{id: a, query: '1'}]\nagent: agents:answer\nmetrics: [response_time]\n")
    (here / "agents.py").write_text("def answer(query):\n    return query\n")
    done(agentunit("export", "first", "--to", "first.json"), here)
    before = _contents(here)
    trial.require(f"{STORE}-wal" in before, "no log was left behind to read")
    _mount("--bind", str(here), str(here))
    _mount("-o", "remount,bind,ro", str(here))
    elsewhere = trial.place("elsewhere")
    try:
        for command in (
            ["runs"],
            ["show", "first"],
            ["show", "first", "c1"],
            ["gate", "first", "--gate", "exact_match >= 0"],
            ["export", "first", "--to", str(elsewhere / "run.json")],
            ["export", "first", "--to", str(elsewhere / "run.html")],
            ["validity", "first"],
        ):
            child = done(agentunit(*command), here, expect=None)
            trial.times += 1
            trial.require(said_plainly(child), f"{command[0]}: {child.errors[-500:]}")
            trial.require(
                child.process.returncode in (0, 1, 4) or command[0] == "validity",
                f"{command[0]} ended with {child.process.returncode}: {child.errors[-500:]}",
            )
        listed = done(agentunit("runs"), here).out
        trial.require("after-kill" in listed, "a run in the log of a killed process is not read")
        for command in (
            ["run", "suite.yaml"],
            ["score", "first", "--metrics", "tool_success"],
            ["score", "first.json", "--out", "scores.jsonl"],
            ["import", "first.json", "--as", "again"],
            ["label", "first", "-m", "exact_match"],
            ["collect", "--port", "0"],
            ["convert", "first.json", "--out", "records.jsonl"],
        ):
            # A person who labels is told with the first answer.
            child = done(["sh", "-c", 'echo y | "$0" "$@"', *agentunit(*command)], here, expect=None)
            trial.times += 1
            trial.require(said_plainly(child), f"{command[0]}: {child.errors[-500:]}")
            trial.require(
                child.process.returncode in (2, 3),
                f"{command[0]} ended with {child.process.returncode}: {child.errors[-500:]}",
            )
            trial.require(
                "read-only" in child.errors or "readonly" in child.errors,
                f"{command[0]} does not say that nothing can be written: {child.errors[-500:]}",
            )
        trial.require(_contents(here) == before, "a read-only folder has changed")
    finally:
        subprocess.run(["umount", "-l", str(here)], check=True)


_KILLED_WRITER = """
import os, signal, sys
from agentunit.store.sqlite import Store

store = Store(sys.argv[1])
store.create_run("after-kill", agentunit_version="1", settings={}, n_planned=1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _contents(folder: Path) -> dict[str, bytes]:
    # The index of the log is SQLite's own scratch paper.
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file() and each.suffix != ".pyc" and not each.name.endswith("-shm")
    }


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def main() -> None:
    """One row, in the namespace that this process lives in; its result is the last line."""
    what, here, seed, repeats = sys.argv[1:]
    folder = Path(here).parent / "inside"
    folder.mkdir()
    trial = Trial(folder, random.Random(int(seed)))
    try:
        if what == "read-only":
            _read_only(trial, Path(here))
        else:
            _fill_disk(trial, FULL[what.partition(":")[2]], Path(here), int(repeats))
    except Lost as loss:
        trial.lose(str(loss))
    print(json.dumps({"times": trial.times, "lost": trial.lost}))


if __name__ == "__main__":
    main()
