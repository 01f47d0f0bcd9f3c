"""CPU time and memory of this process and all below it: read from Linux itself, elsewhere through psutil."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

INSTALL_HINT = 'pip install "agentunit-eval[sustainability]"'


# Children that nobody collects are remembered only up to here.
_MOST_OWED = 1000

Branch = tuple[int | None, int]
"""A child of this process with all below it: the thread that started it, where known, and its number."""


class Reading(NamedTuple):
    """One process below this one. ``born`` tells it from a later one with the same number; ``ended_s`` is the CPU time
    of children of its own that it has collected; ``child`` is the child of this process it descends from, and
    ``thread`` the thread that started that child, where known."""

    born: float
    cpu_s: float
    ended_s: float
    rss_bytes: int
    child: int
    thread: int | None


class Increase(NamedTuple):
    """CPU seconds since the last look: of this process, of each child with its descendants (by the thread that
    started it and its number), and of processes that ended before anybody saw whose they were."""

    own_s: float
    children_s: dict[Branch, float]
    unseen_s: float
    rss_bytes: int | None
    children_rss_bytes: dict[int, int]
    pids: dict[int, int]

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.own_s + sum(self.children_s.values()) + self.unseen_s


class ProcessTree:
    """What this process and its descendants use, from one look to the next."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self._look = _way_to_look()
        if self._look is None:
            self.problem = f"memory and running child processes are seen here only with psutil ({INSTALL_HINT})"
        self._own_s, self._ended_s = 0.0, 0.0
        self._below: dict[int, Reading] = {}
        # What was counted of processes that have ended: their time comes a second time when they are collected.
        self._owed_children: dict[Branch, float] = {}
        self._owed_grandchildren: dict[Branch, float] = {}
        self.advance()

    def advance(self) -> Increase:
        """Look again. Time that a process spent before it was first seen here counts; what it spent is never lost
        when it ends, as long as its parent collects it."""
        own_s, ended_s = time.process_time(), _ended_children_s()
        rss, below = self._look() if self._look is not None else (None, {})
        children_s: dict[Branch, float] = {}
        collected_s: dict[Branch, float] = {}
        for pid, now in below.items():
            branch = (now.thread, now.child)
            before = self._below.get(pid)
            if before is None or before.born != now.born:
                before = now._replace(cpu_s=0.0, ended_s=0.0)
            children_s[branch] = children_s.get(branch, 0.0) + max(0.0, now.cpu_s - before.cpu_s)
            collected_s[branch] = collected_s.get(branch, 0.0) + max(0.0, now.ended_s - before.ended_s)
        for pid, gone in self._below.items():
            if pid not in below or below[pid].born != gone.born:
                owed = self._owed_children if pid == gone.child else self._owed_grandchildren
                branch = (gone.thread, gone.child)
                owed[branch] = owed.get(branch, 0.0) + gone.cpu_s + gone.ended_s
                while len(owed) > _MOST_OWED:
                    del owed[next(iter(owed))]
        for branch, late_s in collected_s.items():
            children_s[branch] = children_s.get(branch, 0.0) + _unknown_part(late_s, self._owed_grandchildren, {branch})
        candidates = set(self._owed_children)
        unseen_s = _unknown_part(max(0.0, ended_s - self._ended_s), self._owed_children, candidates)
        if len(candidates) == 1 and unseen_s:
            (branch,) = candidates
            children_s[branch], unseen_s = children_s.get(branch, 0.0) + unseen_s, 0.0
        increase = Increase(
            max(0.0, own_s - self._own_s),
            children_s,
            unseen_s,
            None if rss is None else rss + sum(each.rss_bytes for each in below.values()),
            _by_child(below),
            {os.getpid(): 0, **{pid: each.child for pid, each in below.items()}},
        )
        self._own_s, self._ended_s, self._below = own_s, ended_s, below
        return increase


def thread_cpu_s(thread: int) -> float | None:
    """CPU seconds of a thread of this process (its native id); ``None`` where that cannot be known."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        pass
    try:
        return _stat(f"self/task/{thread}")[1]
    except (OSError, ValueError, IndexError):
        return None


def _unknown_part(collected_s: float, owed: dict[Branch, float], branches: set[Branch]) -> float:
    """What of the time of collected processes was not counted while they ran; the rest is no longer owed."""
    for branch in branches & owed.keys():
        paid_s = min(collected_s, owed[branch])
        collected_s -= paid_s
        owed[branch] -= paid_s
        if owed[branch] <= 0:
            del owed[branch]
    return collected_s


def _by_child(below: dict[int, Reading]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for each in below.values():
        sizes[each.child] = sizes.get(each.child, 0) + each.rss_bytes
    return sizes


def _ended_children_s() -> float:
    try:
        import resource
    except ImportError:  # not on Windows
        times = os.times()
        return times.children_user + times.children_system
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _way_to_look() -> Any:
    if os.path.exists("/proc/self/statm"):
        return _look_at_proc
    return _look_with_psutil if find_spec("psutil") is not None else None


def _look_at_proc() -> tuple[int | None, dict[int, Reading]]:
    page = os.sysconf("SC_PAGE_SIZE")
    below: dict[int, Reading] = {}
    pending = [(pid, pid, thread) for thread, pid in _children(os.getpid())]
    while pending:
        pid, child, thread = pending.pop()
        try:
            born, cpu_s, ended_s = _stat(str(pid))
            rss = _rss_pages(str(pid)) * page
        except (OSError, ValueError, IndexError):
            # It ended while we looked.
            continue
        below[pid] = Reading(born, cpu_s, ended_s, rss, child, thread)
        pending += [(grandchild, child, thread) for _, grandchild in _children(pid)]
    try:
        return _rss_pages("self") * page, below
    except (OSError, ValueError, IndexError):
        return None, below


def _children(pid: int) -> Iterator[tuple[int, int]]:
    """Thread and number of each child that the threads of a process started."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                listing = file.read()
        except OSError:
            continue
        for child in listing.split():
            yield int(thread), int(child)


def _stat(place: str) -> tuple[float, float, float]:
    """When a process was born, its CPU seconds, and those of the children that it has collected."""
    with open(f"/proc/{place}/stat", "rb") as file:
        # The name before it may hold spaces and brackets.
        fields = file.read().rpartition(b")")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    user, system, ended_user, ended_system = (int(each) for each in fields[11:15])
    return float(fields[19]), (user + system) / tick, (ended_user + ended_system) / tick


def _rss_pages(place: str) -> int:
    with open(f"/proc/{place}/statm", "rb") as file:
        return int(file.read().split()[1])


def _look_with_psutil() -> tuple[int | None, dict[int, Reading]]:
    import psutil

    below: dict[int, Reading] = {}
    here = psutil.Process()
    try:
        for child in here.children():
            for each in (child, *child.children(recursive=True)):
                try:
                    times = each.cpu_times()
                    ended_s = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
                    rss = each.memory_info().rss
                    below[each.pid] = Reading(
                        each.create_time(), times.user + times.system, ended_s, rss, child.pid, None
                    )
                except psutil.Error:
                    continue
        return here.memory_info().rss, below
    except psutil.Error:
        return None, below
