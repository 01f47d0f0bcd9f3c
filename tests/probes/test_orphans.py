"""Processes that detach themselves from the one that is measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentunit.core.trace import TraceLog
from agentunit.probes import _process_tree as trees
from agentunit.probes._process_tree import ProcessReading, ProcessTree
from agentunit.probes.measuring import measure
from agentunit.probes.meter import Meter
from agentunit.sustainability.metrics import EnergyMetric, ResourceUtilizationMetric

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")

# Forks, so that the program's starter ends at once and nobody above knows it; says when it is done.
DETACHED = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
open(sys.argv[1], "w").close()
"""


def detach(done: Path) -> None:
    subprocess.run([sys.executable, "-S", "-c", DETACHED, str(done)], check=True)


def wait_for(done: Path) -> None:
    while not done.exists():
        time.sleep(0.01)


@pytest.mark.parametrize("interval_s", [0.05, 30.0], ids=["seen while it ran", "between two samples"])
def test_a_detached_process_counts(tmp_path: Path, interval_s: float) -> None:
    trace = TraceLog()
    with measure(trace, sample_interval=interval_s):
        detach(tmp_path / "done")
        wait_for(tmp_path / "done")
    found = trace.metadata["resource_use"]
    # The kernel counts by ticks and the process by nanoseconds: a half second may be counted a little short.
    assert 0.45 <= found["cpu_s"] <= 0.8
    assert found["missing"] == []
    assert not trees._subreaper()


def test_children_of_the_program_are_left_to_those_who_wait_for_them(tmp_path: Path) -> None:
    with measure(TraceLog(), sample_interval=0.01):
        own = subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(7)"])
        forked = os.fork()
        if not forked:
            os._exit(9)
        detach(tmp_path / "done")
        wait_for(tmp_path / "done")
        assert own.wait() == 7
        assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 9


def test_a_program_that_adopts_orphans_itself_goes_on_doing_so() -> None:
    trees._set_subreaper(True)
    try:
        with measure(TraceLog(), sample_interval=30):
            assert trees._subreaper()
        assert trees._subreaper()
    finally:
        trees._set_subreaper(False)


def test_where_nothing_can_be_adopted_a_lost_process_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(option: int, argument: object) -> None:
        raise OSError("refused")

    monkeypatch.setattr(trees, "_prctl", refuse)
    new = Meter()
    monkeypatch.setattr("agentunit.probes.measuring.meter", lambda: new)
    # Its starter ends when it is told to, after the process below it has been seen; that one then runs on.
    below = "subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL)"
    code = f"import subprocess\n{below}\nprint(flush=True)\ninput()"
    trace = TraceLog()
    with measure(trace, sample_interval=30) as measurement:
        pipe = subprocess.PIPE
        with subprocess.Popen([sys.executable, "-S", "-c", code], stdin=pipe, stdout=pipe) as starter:
            assert starter.stdout is not None
            starter.stdout.readline()
            with measure(TraceLog(), sample_interval=30):
                (stray,) = [each for _, each in trees._children(starter.pid)]
            starter.communicate(b"\n")
    try:
        found = measurement.facts
        assert any("lost from sight" in problem for problem in found["problems"])
        assert found["missing"] == ["a process detached itself from the agent's and ran on unseen"]
        energy = EnergyMetric().evaluate({"id": "q1"}, trace, "done").detail
        assert energy["incomplete"] is True
        assert energy["missing"] == found["missing"]
        assert ResourceUtilizationMetric().evaluate({"id": "q1"}, trace, "done").detail["missing"] == found["missing"]
    finally:
        os.kill(stray, 9)


def test_an_adopted_process_stays_in_the_branch_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    here, tool, orphan, later = os.getpid(), 1_000_001, 1_000_002, 1_000_003
    looks = iter(
        (
            {},
            {
                tool: ProcessReading(1.0, 0.0, 0.0, 10, here, tool, 7),
                orphan: ProcessReading(2.0, 1.0, 0.0, 10, tool, tool, 7),
            },
            {orphan: ProcessReading(2.0, 1.5, 0.0, 10, here, orphan, 1)},
            {
                orphan: ProcessReading(2.0, 1.5, 0.0, 10, here, orphan, 1),
                later: ProcessReading(3.0, 0.25, 0.0, 10, orphan, orphan, 1),
            },
        )
    )
    monkeypatch.setattr(trees, "_way_to_look", lambda: lambda: (0, next(looks)))
    tree = ProcessTree()
    assert tree.advance().children_s[7, tool] == pytest.approx(1.0)
    assert tree.advance().children_s[7, tool] == pytest.approx(0.5)
    found = tree.advance()
    assert found.children_s[7, tool] == pytest.approx(0.25)
    assert found.children_rss_bytes == {tool: 20}
