"""A run that is killed while its failing checks are tried again, and resumed, ends as one that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from agentunit.engine.deciding.stored import own_decision
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.store.runs import FIRST_AGAIN
from agentunit.store.sqlite import Store

N_CASES = 10
# Ten cases have twenty checks that passed, with ``answered``: 3 + 5 tries, of which one is planned.
N_AGAIN = 7
SUITE = """
import os, time
from agentunit import Suite

VERSION = os.environ["AGENT"]

def note(file, text):
    # What was begun before is on the disk, also where the process was killed.
    with open(file, "a+") as log:
        log.write(text + "\\n")
        log.seek(0)
        lines = log.read().split()
    if os.environ.get("PAUSE") == f"{file} {len(lines)}":
        open("paused", "w").close()
        time.sleep(600)
    return lines

def agent(query, case):
    n_calls = note("called", case.id).count(case.id)
    fails = VERSION == "2" and (case.id in ("c3", "c7") or (case.id == "c5" and n_calls == 1))
    # No answer comes twice: an agent that gives the same again is not tried again.
    return f"{os.urandom(4).hex()} says: " + ("nobody knows" if fails else "here")

def is_here(answer):
    note("scored", "x")
    return float(answer.endswith("here"))

cases = [{"id": f"c{n}", "query": f"Where is {n}?"} for n in range(10)]
suite = Suite(cases, agent, metrics=[is_here], gates=["is_here >= 0.5"], concurrency=1)
"""


def start(folder: Path, *arguments: str, version: str, pause: str = "") -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "agentunit", "run", "suite.py", *arguments],
        cwd=folder,
        env={**os.environ, "AGENT": version, "PAUSE": pause},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[bytes], exit_code: int) -> str:
    output = process.communicate(timeout=300)[0].decode()
    assert process.returncode == exit_code, output
    return output


def kill_when_paused(process: subprocess.Popen[bytes], folder: Path) -> None:
    paused = folder / "paused"
    while not paused.exists():
        assert process.poll() is None, process.communicate()[0].decode()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    paused.unlink()


def with_baseline(folder: Path) -> Path:
    folder.mkdir()
    (folder / "suite.py").write_text(SUITE)
    finish(start(folder, "--name", "before", version="1"), 0)
    for log in ("called", "scored"):
        (folder / log).unlink()
    return folder


def result_of(folder: Path) -> tuple[object, ...]:
    """What must not depend on interruptions: the verdict, the records and the scores of the run."""
    with Store(folder / ".agentunit" / "runs.db") as store:
        run = run_from_store(store, "after")
        assert run.header.status == "finished"
        (stored,) = run.decisions
        decision = own_decision(run)
        assert decision is not None
        tries = {(row.case_id, row.repeat) for row in [*run.records, *run.again_records]}
        rows = [*run.metrics["is_here"], *run.again_metrics["is_here"]]
        values = {(row.case_id, row.repeat): row.value for row in rows}
    return stored.made_by, decision.verdict, decision.headline, decision.failing_cases, tries, values


def test_kills_in_the_middle_of_trying_again_lose_no_try_and_double_none(tmp_path: Path) -> None:
    undisturbed = with_baseline(tmp_path / "undisturbed")
    finish(start(undisturbed, "--name", "after", "--baseline", "before", version="2"), 1)
    expected = result_of(undisturbed)
    assert expected[1:4] == (
        "fail",
        "FAIL: 2 broken (c3, c7: returned 0), passed once before; is_here 0.70, was 1.00",
        ("c3", "c7"),
    )
    again = Counter(case_id for case_id, repeat in expected[4] if repeat >= FIRST_AGAIN)  # type: ignore[attr-defined]
    assert again == {"c3": N_AGAIN, "c7": N_AGAIN, "c5": 1}

    folder = with_baseline(tmp_path / "killed")
    # In the first try again, in the middle of a later round, and where a try is recorded and not yet scored.
    for n, pause in enumerate(("called 11", "called 17", "scored 20")):
        arguments = ("--resume", "after") if n else ("--name", "after", "--baseline", "before")
        kill_when_paused(start(folder, *arguments, version="2", pause=pause), folder)
    finish(start(folder, "--resume", "after", version="2"), 1)
    assert result_of(folder) == expected
    calls = Counter((folder / "called").read_text().split())
    planned = dict.fromkeys((f"c{n}" for n in range(N_CASES)), 1)
    # Two calls were cut off by a kill and made once more.
    assert calls.total() - sum(planned.values()) - again.total() == 2
