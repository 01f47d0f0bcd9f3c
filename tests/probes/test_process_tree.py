"""CPU time of nested processes, counted once: on a simulated process table, and on real processes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from agentunit.core.trace import TraceLog
from agentunit.probes import _process_tree as process_tree
from agentunit.probes._process_tree import ProcessReading, ProcessTree
from agentunit.probes.measuring import measure


@dataclass
class FakeProcess:
    """A process as the kernel keeps it: ``ended_s`` grows when it collects a child that has ended."""

    pid: int
    parent: int
    cpu_s: float = 0.0
    ended_s: float = 0.0
    is_zombie: bool = False


@dataclass
class FakeTable:
    """A process table. ``during`` is called between two readings of one look, as things happen while one looks."""

    here: int = field(default_factory=os.getpid)
    processes: dict[int, FakeProcess] = field(default_factory=dict)
    ended_s: float = 0.0
    burned_s: float = 0.0
    next_pid: int = 1_000_000
    during: Callable[[], None] = lambda: None

    def start(self, parent: int | None = None) -> int:
        pid = self.next_pid
        self.next_pid += 1
        self.processes[pid] = FakeProcess(pid, self.here if parent is None else parent)
        return pid

    def burn(self, pid: int, seconds: float) -> None:
        self.processes[pid].cpu_s += seconds
        self.burned_s += seconds

    def children(self, pid: int) -> list[int]:
        return [each.pid for each in self.processes.values() if each.parent == pid]

    def exit(self, pid: int) -> None:
        self.processes[pid].is_zombie = True
        for orphan in self.children(pid):
            self.processes[orphan].parent = 1

    def collect(self, pid: int) -> None:
        gone = self.processes.pop(pid)
        total_s = gone.cpu_s + gone.ended_s
        if gone.parent == self.here:
            self.ended_s += total_s
        else:
            self.processes[gone.parent].ended_s += total_s

    def finish(self, pid: int) -> None:
        self.exit(pid)
        self.collect(pid)

    def look(self) -> tuple[int, dict[int, ProcessReading]]:
        self.during()
        below: dict[int, ProcessReading] = {}
        pending = [(pid, self.here, pid) for pid in self.children(self.here)]
        while pending:
            pid, parent, child = pending.pop()
            self.during()
            if (found := self.processes.get(pid)) is None:
                continue
            below[pid] = ProcessReading(float(pid), found.cpu_s, found.ended_s, 0, parent, child, 7)
            self.during()
            pending += [(each, pid, child) for each in self.children(pid)]
        return 0, below


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    made = FakeTable()

    def look() -> Any:
        return made.look()

    monkeypatch.setattr(process_tree, "_look_at_proc", look)
    monkeypatch.setattr(process_tree, "_way_to_look", lambda: look)
    monkeypatch.setattr(process_tree, "_ended_children_s", lambda: made.ended_s)
    monkeypatch.setattr(process_tree.time, "process_time", lambda: 0.0)
    return made


def test_a_collecting_child_that_ends_before_the_next_look_does_not_double(table: FakeTable) -> None:
    tree = ProcessTree()
    tool = table.start()
    worker = table.start(tool)
    table.burn(worker, 1.0)
    assert tree.advance().total_s == pytest.approx(1.0)
    table.finish(worker)
    table.finish(tool)
    assert tree.advance().total_s == pytest.approx(0.0)
    assert tree.advance().total_s == pytest.approx(0.0)


def test_time_after_the_last_look_counts_for_the_branch(table: FakeTable) -> None:
    tree = ProcessTree()
    tool = table.start()
    worker = table.start(tool)
    table.burn(worker, 1.0)
    tree.advance()
    table.burn(worker, 0.25)
    table.finish(worker)
    table.burn(tool, 0.5)
    table.finish(tool)
    found = tree.advance()
    assert found.children_s[7, tool] == pytest.approx(0.75)
    assert found.unseen_s == 0.0


def test_an_orphan_does_not_hide_later_work(table: FakeTable) -> None:
    tree = ProcessTree()
    tool = table.start()
    starter = table.start(tool)
    daemon = table.start(starter)
    table.burn(daemon, 5.0)
    assert tree.advance().total_s == pytest.approx(5.0)
    table.finish(starter)
    assert tree.advance().total_s == pytest.approx(0.0)
    tree.advance()
    unseen = table.start(tool)
    table.burn(unseen, 3.0)
    table.finish(unseen)
    assert tree.advance().total_s == pytest.approx(3.0)


def test_a_process_that_one_look_misses_is_not_counted_again(table: FakeTable) -> None:
    tree = ProcessTree()
    tool = table.start()
    table.burn(tool, 2.0)
    assert tree.advance().total_s == pytest.approx(2.0)
    missed = table.processes.pop(tool)
    assert tree.advance().total_s == pytest.approx(0.0)
    table.processes[tool] = missed
    table.burn(tool, 0.5)
    assert tree.advance().total_s == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(100))
def test_whatever_happens_between_and_during_looks_all_is_counted_once(table: FakeTable, seed: int) -> None:
    chance = random.Random(seed)

    def happen() -> None:
        pids = [pid for pid, each in table.processes.items() if not each.is_zombie]
        action = chance.choice(("start", "burn", "burn", "finish", "exit", "collect"))
        if action == "start" and len(pids) < 12:
            table.start(chance.choice([table.here, *pids]))
        elif action == "burn" and pids:
            table.burn(chance.choice(pids), chance.choice((0.01, 0.3, 2.0)))
        elif action in ("finish", "exit"):
            leaves = [pid for pid in pids if not table.children(pid)]
            if leaves:
                getattr(table, action)(chance.choice(leaves))
        elif action == "collect":
            zombies = [pid for pid, each in table.processes.items() if each.is_zombie]
            if zombies:
                table.collect(chance.choice(zombies))

    tree = ProcessTree()
    table.during = happen if seed % 2 else lambda: None
    counted_s = 0.0
    for _ in range(60):
        for _ in range(chance.randrange(4)):
            happen()
        counted_s += tree.advance().total_s
        assert counted_s <= table.burned_s + 1e-9
    table.during = lambda: None
    while leaves := [pid for pid in table.processes if not table.children(pid)]:
        if not table.processes[leaves[0]].is_zombie:
            table.exit(leaves[0])
        table.collect(leaves[0])
    counted_s += tree.advance().total_s + tree.advance().total_s
    assert counted_s == pytest.approx(table.burned_s, abs=1e-6)


BURN = "import time\nend = time.process_time() + 1.0\nwhile time.process_time() < end: pass"


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux's /proc")
@pytest.mark.parametrize("depth", [1, 2])
def test_a_program_that_starts_a_program_is_counted_once(depth: int) -> None:
    code = BURN
    for _ in range(depth):
        code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', {code!r}])"
    before_s = process_tree._ended_children_s()
    trace = TraceLog()
    with measure(trace, sample_interval=0.05):
        subprocess.run([sys.executable, "-S", "-c", code], check=True)
    used_s = process_tree._ended_children_s() - before_s
    assert used_s >= 1.0
    assert 0.9 <= trace.metadata["resource_use"]["cpu_s"] / used_s <= 1.1
