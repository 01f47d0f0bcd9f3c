"""CPU time and memory of this process and all below it, orphans too: read from Linux itself, elsewhere by psutil."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

from agentunit.installation import install_command

INSTALL_HINT = install_command("sustainability")

# Processes that nobody collects are remembered only up to here.
_MOST_DEBTS = 1000

Branch = tuple[int | None, int]
"""A child of this process with all below it: the thread that started it, where known, and its number."""


class ProcessReading(NamedTuple):
    """One process below this one. ``born`` tells it from a later one with the same number; ``ended_s`` is the CPU time
    of children of its own that it has collected; ``parent`` is the process that will collect it; ``child`` is the child
    of this process it descends from, and ``thread`` the thread that started that child, where known; ``session`` is
    the number of its session's first process, where known."""

    born: float
    cpu_s: float
    ended_s: float
    rss_bytes: int
    parent: int
    child: int
    thread: int | None
    session: int | None = None

    @property
    def branch(self) -> Branch:
        """The branch it belongs to."""
        return self.thread, self.child


@dataclass
class _Debt:
    """A process that was counted while it ran and has ended: its time comes a second time, in what its parent has
    collected. ``collector`` is the process in which that will be seen: the parent or, when that has ended too, the
    nearest process above it that runs."""

    reading: ProcessReading
    owed_s: float
    collector: int
    is_new: bool = True


class Increase(NamedTuple):
    """CPU seconds since the last look: of this process, of each child with its descendants (by the thread that
    started it and its number), and of processes that ended before anybody saw whose they were."""

    own_s: float
    children_s: dict[Branch, float]
    unseen_s: float
    rss_bytes: int | None
    children_rss_bytes: dict[int, int]
    pids: dict[int, int]
    sessions: dict[int, int | None]
    """The session of each child."""
    has_lost_some: bool
    """Whether a process that was seen below this one runs on, but is below it no more."""

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
        self._below: dict[int, ProcessReading] = {}
        self._debts: dict[int, _Debt] = {}
        self.advance()

    def advance(self) -> Increase:
        """Look again. Time that a process spent before it was first seen here counts; what it spent is never lost
        when it ends, as long as its parent collects it, and never counted twice."""
        own_s, ended_s = time.process_time(), _ended_children_s()
        rss, below = self._look() if self._look is not None else (None, {})
        below = self._in_their_branches(below)
        children_s: defaultdict[Branch, float] = defaultdict(float)
        collected_s = {os.getpid(): max(0.0, ended_s - self._ended_s)}
        for pid, now in below.items():
            before = self._last_reading(pid, now)
            children_s[now.branch] += max(0.0, now.cpu_s - before.cpu_s)
            collected_s[pid] = max(0.0, now.ended_s - before.ended_s)
        self._update_debts(below)
        for pid, now in below.items():
            children_s[now.branch] += self._uncounted(pid, collected_s[pid])
        candidates = {debt.reading.branch for debt in self._debts.values() if debt.collector == os.getpid()}
        unseen_s = self._uncounted(os.getpid(), collected_s[os.getpid()])
        if len(candidates) == 1 and unseen_s:
            children_s[candidates.pop()] += unseen_s
            unseen_s = 0.0
        self._drop_settled_debts()
        rss_of: Counter[int] = Counter()
        for each in below.values():
            rss_of[each.child] += each.rss_bytes
        increase = Increase(
            max(0.0, own_s - self._own_s),
            children_s,
            unseen_s,
            None if rss is None else rss + rss_of.total(),
            rss_of,
            {os.getpid(): 0, **{pid: each.child for pid, each in below.items()}},
            {pid: each.session for pid, each in below.items() if each.child == pid},
            any(pid not in below and _runs(pid, each.born) for pid, each in self._below.items()),
        )
        self._own_s, self._ended_s, self._below = own_s, ended_s, below
        return increase

    def children_before(self, pid: int | None) -> frozenset[int]:
        """The children of this process that were born before one of them, as the last look saw them; all for ``None``.

        What a program detaches is a child as well, and may be there before anybody looks: it was born after it.
        """
        began = self._below.get(pid) if pid is not None else None
        return frozenset(
            each
            for each, seen in self._below.items()
            if seen.child == each and (began is None or seen.born < began.born)
        )

    def _in_their_branches(self, below: dict[int, ProcessReading]) -> dict[int, ProcessReading]:
        """An orphan that became a child of this process, and what it starts, stays in the branch that it comes from."""
        adopted = {
            pid: before.branch
            for pid, now in below.items()
            if now.child == pid
            and (before := self._below.get(pid)) is not None
            and before.born == now.born
            and before.child != pid
        }
        if not adopted:
            return below
        return {
            pid: now._replace(thread=adopted[now.child][0], child=adopted[now.child][1])
            if now.child in adopted
            else now
            for pid, now in below.items()
        }

    def _last_reading(self, pid: int, now: ProcessReading) -> ProcessReading:
        """What was last known of a process; zeros when it is new. One look may miss a process that still runs."""
        before = self._below.get(pid)
        if (before is None or before.born != now.born) and pid in self._debts:
            before = self._debts[pid].reading
            if before.born == now.born:
                del self._debts[pid]
        if before is None or before.born != now.born:
            return now._replace(cpu_s=0.0, ended_s=0.0)
        return before

    def _update_debts(self, below: dict[int, ProcessReading]) -> None:
        for debt in self._debts.values():
            collector = self._nearest_running(debt.collector, below)
            debt.is_new, debt.collector = collector != debt.collector, collector
        for pid, gone in self._below.items():
            if not self._still_runs(pid, below):
                self._debts.pop(pid, None)
                owed_s = gone.cpu_s + gone.ended_s
                self._debts[pid] = _Debt(gone, owed_s, self._nearest_running(gone.parent, below))

    def _nearest_running(self, pid: int, below: dict[int, ProcessReading]) -> int:
        """A process of the last look or, when it has ended, the nearest one above it that has not."""
        while pid in self._below and not self._still_runs(pid, below):
            pid = self._below[pid].parent
        return pid if pid in self._below else os.getpid()

    def _still_runs(self, pid: int, below: dict[int, ProcessReading]) -> bool:
        return pid in below and below[pid].born == self._below[pid].born

    def _uncounted(self, collector: int, collected_s: float) -> float:
        """What of the time that a process has collected was not counted while the collected ones ran."""
        # Older debts first: they are paid by this look or never.
        for debt in sorted(self._debts.values(), key=lambda each: each.is_new):
            if debt.collector == collector:
                paid_s = min(collected_s, debt.owed_s)
                collected_s -= paid_s
                debt.owed_s -= paid_s
        return collected_s

    def _drop_settled_debts(self) -> None:
        # Times are read one after the other, so a look may miss what was collected during it, but the next one shows
        # it. What is not there then was collected by nobody. Only Linux says what a child has collected.
        never_paid = self._look is _look_at_proc
        self._debts = {
            pid: debt for pid, debt in self._debts.items() if debt.owed_s > 0 and (debt.is_new or not never_paid)
        }
        while len(self._debts) > _MOST_DEBTS:
            del self._debts[next(iter(self._debts))]


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


def _look_at_proc() -> tuple[int | None, dict[int, ProcessReading]]:
    page = os.sysconf("SC_PAGE_SIZE")
    below: dict[int, ProcessReading] = {}
    pending = [(pid, os.getpid(), pid, thread) for thread, pid in _children(os.getpid())]
    while pending:
        pid, parent, child, thread = pending.pop()
        try:
            born, cpu_s, ended_s, session = _stat(str(pid))
            rss = _rss_pages(str(pid)) * page
        except (OSError, ValueError, IndexError):
            # It ended while we looked.
            continue
        below[pid] = ProcessReading(born, cpu_s, ended_s, rss, parent, child, thread, session)
        pending += [(grandchild, pid, child, thread) for _, grandchild in _children(pid)]
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


def _stat(place: str) -> tuple[float, float, float, int]:
    """When a process was born, its CPU seconds, those of the children that it has collected, and its session."""
    with open(f"/proc/{place}/stat", "rb") as file:
        # The name before it may hold spaces and brackets.
        fields = file.read().rpartition(b")")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    user, system, ended_user, ended_system = (int(each) for each in fields[11:15])
    return float(fields[19]), (user + system) / tick, (ended_user + ended_system) / tick, int(fields[3])


def _runs(pid: int, born: float) -> bool:
    """Whether a process that was seen before runs now."""
    if os.path.exists("/proc/self/statm"):
        try:
            return _stat(str(pid))[0] == born
        except (OSError, ValueError, IndexError):
            return False
    if find_spec("psutil") is None:
        return False
    import psutil

    try:
        return bool(psutil.Process(pid).create_time() == born)
    except psutil.Error:
        return False


def _rss_pages(place: str) -> int:
    with open(f"/proc/{place}/statm", "rb") as file:
        return int(file.read().split()[1])


def _look_with_psutil() -> tuple[int | None, dict[int, ProcessReading]]:
    import psutil

    below: dict[int, ProcessReading] = {}
    here = psutil.Process()
    try:
        for child in here.children():
            for each in (child, *child.children(recursive=True)):
                try:
                    times = each.cpu_times()
                    ended_s = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
                    rss = each.memory_info().rss
                    used_s, parent = times.user + times.system, here.pid if each == child else each.ppid()
                    below[each.pid] = ProcessReading(each.create_time(), used_s, ended_s, rss, parent, child.pid, None)
                except psutil.Error:
                    continue
        return here.memory_info().rss, below
    except psutil.Error:
        return None, below


# Orphans are processes whose starter has ended, as a daemon's has. Linux gives them to the nearest process that asks.

_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37


class Adoption:
    """Whether orphans among this process's descendants become its own children, which keeps them in sight.

    It changes nothing for children that this process started itself, and none is collected here: a process that has
    ended may be one that its starter waits for. Nobody waits for an adopted one, so it stays in the process table
    until this process ends. Code that waits for *any* child may be given an adopted one.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        self._ours = False
        self._wanted_by: set[int] = set()

    def begin(self, who: object) -> None:
        """Adopt from now on, until all who wanted it have had enough.

        What the program itself has asked the system for stays as it is.
        """
        self._wanted_by.add(id(who))
        if self._ours:
            return
        try:
            if _subreaper():
                return
            _set_subreaper(True)
            self._ours = True
        except (OSError, ImportError, AttributeError, ValueError) as error:
            self.problem = f"processes that detach themselves (daemons, setsid) are lost from sight here: {error}"

    def end(self, who: object) -> None:
        """Adopt no more, unless somebody else wants it; those adopted stay."""
        self._wanted_by.discard(id(who))
        if self._ours and not self._wanted_by:
            self._ours = False
            with suppress(OSError):
                _set_subreaper(False)


def _prctl(option: int, argument: object) -> None:
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has no way to follow them")
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(option, argument, zero, zero, zero) != 0:
        raise OSError(f"prctl({option}) was refused (error {ctypes.get_errno()})")


def _subreaper() -> bool:
    import ctypes

    found = ctypes.c_int(0)
    _prctl(_GET_CHILD_SUBREAPER, ctypes.byref(found))
    return bool(found.value)


def _set_subreaper(wanted: bool) -> None:
    import ctypes

    _prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(wanted))
