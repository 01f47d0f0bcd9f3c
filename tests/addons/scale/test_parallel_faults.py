"""Workers and parents that are killed: what was done stays, what was not is done again, and nothing counts twice."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from multiprocessing import active_children, get_all_start_methods, get_context
from multiprocessing.util import register_after_fork
from pathlib import Path
from typing import Any

import pytest
from tests.support.stopped_jobs import agentunit, seen

from agentunit.addons.scale.parallel.folder import Identity, JobFolder
from agentunit.addons.scale.parallel.pool import WorkerDied, WorkerPool
from agentunit.backends.media_sources import configure_media_root, configured_media_root
from agentunit.engine.scoring.records import WorkFailed
from agentunit.metrics.registry import resolve_metrics

N_RECORDS = 400

METRICS = """
import os, signal, pathlib

def counted(case):
    with open("evaluated.txt", "ab") as log:
        log.write(b"x")
    return len(case.query) / 100

def deadly(case):
    mark = pathlib.Path("killed-" + case.id)
    if case.query == "kill me always" or (case.query == "kill me once" and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [
        json.dumps({"v": 1, "case": {"id": f"q{n}", "query": "x" * (n % 40)}, "outcome": "4"}) for n in range(N_RECORDS)
    ]
    Path("runs.jsonl").write_text("\n".join(lines) + "\n")
    Path("own.py").write_text(METRICS)
    return tmp_path


SCORE = ("score", "runs.jsonl", "-m", "own.py:counted,exact_match", "--json")
JOBS = ("--jobs", "2", "--out", "scores.jsonl")


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGINT"])
def test_a_stopped_job_goes_on_where_it_stood(folder, signal_name):
    alone = agentunit(*SCORE, "--out", "alone.jsonl")
    assert alone.returncode == 0, alone.stderr
    Path("scores.jsonl.blocks").mkdir()
    Path("scores.jsonl.blocks/mine.txt").write_text("not theirs")
    Path("evaluated.txt").unlink()
    stopped = agentunit(*SCORE, *JOBS, stop_after=3, signal_name=signal_name)
    assert stopped.returncode == (-9 if signal_name == "SIGKILL" else 130)
    if signal_name == "SIGINT":
        assert "the same command with --resume continues" in stopped.stderr
    assert not Path("scores.jsonl").exists()
    n_done = sum(each.suffix == ".columns" for each in Path("scores.jsonl.blocks").iterdir())
    assert n_done >= 3
    Path("evaluated.txt").unlink()
    resumed = agentunit(*SCORE, *JOBS, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert seen(resumed) == seen(alone)
    assert Path("scores.jsonl").read_bytes() == Path("alone.jsonl").read_bytes()
    assert Path("evaluated.txt").stat().st_size < N_RECORDS
    assert [each.name for each in Path("scores.jsonl.blocks").iterdir()] == ["mine.txt"]
    assert not Path("scores.jsonl.part").exists()


def test_a_job_goes_on_only_as_the_same_job(folder):
    assert agentunit(*SCORE, *JOBS, stop_after=3).returncode == -9
    other = agentunit("score", "runs.jsonl", "-m", "own.py:counted", *JOBS, "--resume")
    assert other.returncode == 2
    assert "metric exact_match was removed" in other.stderr
    Path("own.py").write_text(METRICS.replace("/ 100", "/ 10"))
    assert "metric counted changed" in agentunit(*SCORE, *JOBS, "--resume").stderr
    Path("own.py").write_text(METRICS)
    with open("runs.jsonl", "ab") as file:
        file.write(b'{"v":1,"case":{"id":"new"}}\n')
    assert "input runs.jsonl changed" in agentunit(*SCORE, *JOBS, "--resume").stderr
    anew = agentunit(*SCORE, *JOBS)
    assert "of a job that was stopped are discarded (--resume continues with them)" in anew.stderr
    assert json.loads(anew.stdout)["summary"]["n_cases"] == N_RECORDS + 1
    nothing = agentunit(*SCORE, *JOBS, "--resume")
    assert (nothing.returncode, "nothing to continue" in nothing.stderr) == (2, True)


def test_what_a_stopped_job_left_goes_when_one_process_finishes_its_output(folder):
    assert agentunit(*SCORE, *JOBS, stop_after=3).returncode == -9
    alone = agentunit(*SCORE, "--out", "scores.jsonl")
    assert alone.returncode == 0, alone.stderr
    assert "of a job that was stopped are discarded" in alone.stderr
    assert not Path("scores.jsonl.blocks").exists()


def test_a_dead_worker_costs_nothing_and_a_deadly_block_only_itself(folder):
    lines = Path("runs.jsonl").read_text().splitlines()
    once = json.dumps({"v": 1, "case": {"id": "once", "query": "kill me once"}, "outcome": "4"})
    Path("runs.jsonl").write_text("\n".join([*lines[:200], once, *lines[200:]]) + "\n")
    done = agentunit("score", "runs.jsonl", "-m", "own.py:deadly", "--json", *JOBS)
    assert done.returncode == 0, done.stderr
    assert Path("killed-once").exists()
    indices = [json.loads(line)["index"] for line in Path("scores.jsonl").read_bytes().splitlines()]
    assert indices == list(range(N_RECORDS + 1))
    Path("runs.jsonl").write_text(
        "\n".join([*lines[:200], once.replace("once", "always"), *lines[200:], "{bad"]) + "\n"
    )
    done = agentunit("score", "runs.jsonl", "-m", "own.py:deadly", "--json", *JOBS)
    assert done.returncode == 3
    summary = json.loads(done.stdout)["summary"]
    dead, bad = summary["input_errors"]
    assert dead["source"] == "runs.jsonl"
    assert "killed two workers (signal 9 (SIGKILL))" in dead["reason"]
    start, end = (int(each.replace(",", "")) for each in dead["reason"].split()[1:4:2])
    assert b"always" in Path("runs.jsonl").read_bytes()[start : end + 100]
    assert N_RECORDS - 60 < summary["n_cases"] < N_RECORDS
    assert bad["line"] == N_RECORDS + 2


def double(number: int) -> int:
    if number == 3:
        os._exit(7)
    if number == 5:
        raise OSError("no space left on device")
    return 2 * number


def test_results_come_in_the_order_of_the_tasks():
    with WorkerPool(3, double) as pool:
        assert list(pool.in_order(range(3), ahead=2)) == [(0, 0), (1, 2), (2, 4)]
        assert list(pool.in_order([3, 4])) == [(3, WorkerDied("exit code 7")), (4, 8)]
        with pytest.raises(WorkFailed, match="no space left"):
            list(pool.in_order([5]))


def test_leaving_a_pool_ends_its_workers():
    with WorkerPool(2, double) as pool:
        results = pool.in_order(range(100, 200))
        next(results)
        workers = [each.process for each in pool._workers]
        assert all(each.is_alive() for each in workers)
    assert not any(each.is_alive() for each in workers)


def _score_elsewhere(metrics: list[Any], answer: str) -> Any:
    return metrics[0].evaluate({"id": "q1"}, None, answer).value, configured_media_root()


def test_beside_threads_of_other_code_workers_are_not_forked(tmp_path):
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        with WorkerPool(1, abs) as pool:
            assert list(pool.in_order([-2])) == [(-2, 2)]
            assert type(pool._workers[0].process).__name__ == "SpawnProcess"
        with WorkerPool(1, lambda task: task) as pool, pytest.raises(WorkFailed, match="cannot be handed"):
            list(pool.in_order([1]))
        (tmp_path / "weights.py").write_text("def weight(answer):\n    return 0.25")
        metrics = resolve_metrics([str(tmp_path / "weights.py:weight")])
        configure_media_root(tmp_path)
        with WorkerPool(1, partial(_score_elsewhere, metrics)) as pool:
            assert list(pool.in_order(["an answer"])) == [("an answer", (0.25, tmp_path))]
        (tmp_path / "weights.py").unlink()
        with WorkerPool(1, partial(_score_elsewhere, metrics)) as pool, pytest.raises(WorkFailed, match="cannot be"):
            list(pool.in_order(["an answer"]))
        with WorkerPool(1, abs) as pool:
            assert list(pool.in_order([-2])) == [(-2, 2)]
    finally:
        configure_media_root(None)
        ended.set()
        other.join()


def _signaled(number: int) -> int:
    os.kill(os.getpid(), number)
    return number


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def end_signals_interrupt():
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


posix_only = pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has other signals")


@posix_only
def test_what_the_whole_group_is_sent_is_the_parents_to_hear(capfd, end_signals_interrupt):
    numbers = [signal.SIGHUP, signal.SIGINT] * 3
    with WorkerPool(2, _signaled) as pool:
        assert [result for _, result in pool.in_order(numbers)] == numbers
    assert "Traceback" not in capfd.readouterr().err


@posix_only
def test_a_worker_that_a_polite_request_ends_is_replaced(capfd, end_signals_interrupt):
    with WorkerPool(1, _signaled) as pool:
        died = WorkerDied("signal 15 (SIGTERM)")
        assert list(pool.in_order([signal.SIGTERM, signal.SIGHUP])) == [
            (signal.SIGTERM, died),
            (signal.SIGHUP, signal.SIGHUP),
        ]
    assert "Traceback" not in capfd.readouterr().err


class _Hook:
    """What a hook of multiprocessing belongs to."""

    is_set = True


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_signal_to_the_group_while_a_worker_starts_is_not_the_workers_to_hear(capfd, end_signals_interrupt):
    hook = _Hook()

    def strike(hook: _Hook) -> None:
        for number in (signal.SIGHUP, signal.SIGINT) if hook.is_set else ():
            os.kill(os.getpid(), number)

    # Runs in the worker, after the fork and before anything of ours.
    register_after_fork(hook, strike)
    try:
        with WorkerPool(2, abs) as pool:
            # Whatever other tests have loaded into this process.
            pool._context = get_context("fork")
            assert list(pool.in_order([-1, -2, -3])) == [(-1, 1), (-2, 2), (-3, 3)]
    finally:
        hook.is_set = False
    assert "Traceback" not in capfd.readouterr().err


@posix_only
def test_a_worker_that_is_being_started_when_ctrl_c_comes_is_ended(monkeypatch, end_signals_interrupt):
    pool = WorkerPool(1, abs)
    start = pool._context.Process.start

    def start_and_strike(process: Any) -> None:
        start(process)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(pool._context.Process, "start", start_and_strike)
    with pytest.raises(KeyboardInterrupt), pool:
        list(pool.in_order([-1]))
    assert not [each for each in active_children() if each.name == "agentunit-worker"]


STRUCK_WHILE_SPAWNED = """
import os, signal, sys, threading
from agentunit.addons.scale.parallel.pool import WorkerPool

def interrupt(number, frame):
    raise KeyboardInterrupt

if __name__ == "__main__":
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, interrupt)
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    with WorkerPool(1, abs) as pool:
        start, started = pool._context.Process.start, []

        def start_and_strike(process):
            start(process)
            started.append(process.pid)
            # Its Python is not there yet.
            os.kill(process.pid, signal.SIGINT)
            os.kill(process.pid, signal.SIGHUP)

        pool._context.Process.start = start_and_strike
        assert pool._context.get_start_method() == "spawn"
        assert list(pool.in_order([-1, -2])) == [(-1, 1), (-2, 2)]
        assert len(started) == 1, "a worker died of it"
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
"""


@posix_only
def test_nor_is_it_while_the_python_of_a_worker_starts(tmp_path):
    (tmp_path / "struck.py").write_text(STRUCK_WHILE_SPAWNED)
    done = subprocess.run([sys.executable, tmp_path / "struck.py"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_unit_that_finds_no_room_leaves_nothing_beside_the_job(tmp_path):
    def without_room(_: object) -> Iterator[Any]:
        yield from ()
        raise OSError(errno.ENOSPC, "No space left on device")

    kept = JobFolder(str(tmp_path), Identity({}, {}, {}), resume=False)
    with pytest.raises(WorkFailed, match=f"cannot write {tmp_path}: no space left on device"):
        kept.write(0, without_room)
    assert [each.name for each in tmp_path.iterdir()] == ["job.json"]


def test_of_work_that_was_given_up_only_what_a_later_one_continues_with_is_kept(tmp_path):
    kept = JobFolder(str(tmp_path / "blocks"), Identity({}, {}, {}), resume=False)
    kept.write(1, lambda _: iter(()))
    done = {each.name for each in Path(kept.path).iterdir()}
    begun = Path(kept.place(2, "lines") + ".machine-7.tmp")
    begun.write_bytes(b"half a line")
    assert kept.keep_done()
    assert {each.name for each in Path(kept.path).iterdir()} == done
    nothing = JobFolder(str(tmp_path / "others"), Identity({}, {}, {}), resume=False)
    assert not nothing.keep_done()
    assert not Path(nothing.path).exists()
