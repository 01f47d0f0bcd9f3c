"""A run that is killed at random points and resumed ends as one that was never interrupted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from agentunit.store.schema import StoreError
from agentunit.store.sqlite import Store

N_CASES = 60
KILLS = int(os.environ.get("AGENTUNIT_TEST_KILLS", "20"))

SUITE = """
import os, time
from agentunit import MetricResult, Suite

HERE = os.path.dirname(os.path.abspath(__file__))


def agent(query, case, trace, seed):
    with open(os.path.join(HERE, "started.log"), "ab", buffering=0) as log:
        log.write(f"{case.id}\\n".encode())
    trace.record("tool_call", name="double", status="error" if seed % 5 == 0 else "success")
    time.sleep(0.004)
    if int(query) % 7 == 0:
        raise ValueError("a bad number")
    return str(2 * int(query))


class SlowLength:
    name = "slow_length"

    def evaluate(self, case, trace, outcome):
        time.sleep(0.001)
        return MetricResult(self.name, float(len(outcome.output or "")))


suite = Suite(
    dataset=[{"id": f"q{n}", "query": str(n), "expected_output": str(2 * n)} for n in range(N_CASES)],
    agent=agent,
    metrics=["exact_match", "tool_success", SlowLength()],
    concurrency=3,
    seed=11,
    max_errors=1000,
)
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "agentunit", "run", "suite.py", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def run_id_of(folder: Path) -> str | None:
    if not (folder / ".agentunit" / "runs.db").exists():
        return None
    try:
        with Store(folder / ".agentunit" / "runs.db") as store:
            return store.find_run("last").id
    except StoreError:
        return None


def result_of(folder: Path) -> dict[str, object]:
    """What must not depend on interruptions: everything but times."""
    with Store(folder / ".agentunit" / "runs.db") as store:
        header = store.find_run("last")
        assert header.status == "finished"
        records = {
            (each.position, each.repeat): (
                each.case_id,
                each.failed,
                each.record.outcome.output,  # type: ignore[union-attr]
                [(event.type, event.payload) for event in each.record.trace.events],
                each.record.trace.metadata["seed"],
            )
            for each in store.records(header.id)
        }
        scores = {
            (*place, metric): (score.value, score.status)
            for place, of_place in store.scores(header.id)
            for metric, score in of_place.items()
        }
    return {"records": records, "scores": scores, "runs": 1}


def suite_in(folder: Path) -> Path:
    folder.mkdir()
    (folder / "suite.py").write_text(SUITE.replace("N_CASES", str(N_CASES)))
    return folder


def test_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    undisturbed = suite_in(tmp_path / "undisturbed")
    began = time.monotonic()
    process = start(undisturbed)
    _, errors = process.communicate(timeout=300)
    took_s = time.monotonic() - began
    assert process.returncode == 0, errors.decode()
    expected = result_of(undisturbed)
    assert len(expected["records"]) == N_CASES  # type: ignore[arg-type]
    assert len(expected["scores"]) == 3 * N_CASES  # type: ignore[arg-type]

    chance = random.Random(4)
    kills = rounds = 0
    while kills < KILLS:
        folder = suite_in(tmp_path / f"round{rounds}")
        rounds += 1
        kills += kill_until_done(folder, chance, took_s)
        assert result_of(folder) == expected


def kill_until_done(folder: Path, chance: random.Random, took_s: float) -> int:
    """Run and kill, resume and kill, until a run comes to its end; returns how often it was killed.

    Kills come within the time that a whole run took, which depends on the machine, and later with every one of them:
    on a machine that becomes slower, a run comes to its end too.
    """
    kills = 0
    longest_s = 1.1 * took_s
    log = folder / "started.log"
    while True:
        run_id = run_id_of(folder)
        finished: set[str] = set()
        if run_id is not None:
            with Store(folder / ".agentunit" / "runs.db") as store:
                finished = {each.case_id for each in store.records(run_id)}
        seen = log.stat().st_size if log.exists() else 0
        process = start(folder, *(("--resume", run_id) if run_id else ()))
        deadline = time.monotonic() + chance.uniform(0.1 * took_s, longest_s)
        longest_s *= 1.1
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        killed = process.poll() is None
        if killed:
            os.killpg(process.pid, signal.SIGKILL)
        _, errors = process.communicate()
        started = log.read_bytes()[seen:].decode().split() if log.exists() else []
        assert not finished & set(started), "a finished case was run again"
        if not killed:
            assert process.returncode == 0, errors.decode()
            return kills
        kills += 1
