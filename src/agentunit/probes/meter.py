"""The one meter of a process: looks at regular times and whenever a measurement begins or ends, and shares out what was
used since among the measurements under way, so that nothing is counted twice."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agentunit.formulas.sustainability import trapezoid
from agentunit.probes._counters import Gpus, MachineTime, RaplCounters
from agentunit.probes._process_tree import Adoption, Increase, ProcessTree, thread_cpu_s

_LOCK_PATIENCE_S = 10.0


class Account:
    """What has been attributed to one measurement. It holds sums, not samples: its size does not grow with time."""

    def __init__(self, interval_s: float, pid: int | None = None) -> None:
        self.interval_s = interval_s
        self.pid = pid
        self.seen = pid is None
        self.others: frozenset[int] = frozenset()
        self.thread = threading.get_native_id()
        self.thread_s = thread_cpu_s(self.thread)
        self.elapsed_s = 0.0
        self.n_looks = 0
        self.longest_gap_s = 0.0
        self.cpu_s = 0.0
        self.package_j: float | None = None
        self.gpus: dict[int, GpuAccount] = {}
        self.memory_peak_bytes: int | None = None
        self.memory_byte_s = 0.0
        self.alone_s = 0.0
        self.last_memory_bytes: int | None = None
        self.beside = 0
        self.split = False
        self.left = False
        self.has_lost_some = False

    def take_memory(self, rss_bytes: int | None, elapsed_s: float) -> None:
        """One more reading of the memory in use."""
        if rss_bytes is None:
            return
        before = rss_bytes if self.last_memory_bytes is None else self.last_memory_bytes
        self.memory_byte_s += trapezoid(before, rss_bytes, elapsed_s)
        self.memory_peak_bytes = max(rss_bytes, self.memory_peak_bytes or 0)
        self.last_memory_bytes = rss_bytes


class GpuAccount:
    """One GPU in one measurement."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.energy_j = 0.0
        self.percent_s = 0.0
        self.seconds = 0.0
        self.memory_peak_bytes = 0
        self.shared = False


class Meter:
    """The meter of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: list[Account] = []
        self._ready = False
        self._stop = threading.Event()
        self._overhead_s = 0.0
        self._looking: int | None = None
        self._failure: str | None = None
        self._adoption = Adoption()

    def _set_up(self) -> None:
        self.tree = ProcessTree()
        self.rapl = RaplCounters()
        self.machine = MachineTime()
        self.gpus = Gpus()
        self._at = time.monotonic()
        self._ready = True

    @property
    def counts_memory_energy(self) -> bool:
        """Whether the energy of memory is among what the processor's counters count."""
        return self._ready and self.rapl.counts_memory

    @property
    def problems(self) -> list[str]:
        """Why some things are not measured here."""
        parts = (self.rapl, self.gpus, self.tree, self._adoption) if self._ready else ()
        found = [part.problem for part in parts if part.problem is not None]
        return found if self._failure is None else [*found, self._failure]

    def begin(self, account: Account) -> None:
        """Measure for this account from now on."""
        with self._lock:
            if not self._ready:
                self._set_up()
            self._advance()
            if not self._active:
                self._adoption.begin(self)
            self._active.append(account)
            account.others = self.tree.children_before(account.pid)
            account.take_memory(self._memory_of(account, self._last), 0.0)
            account.thread_s = thread_cpu_s(account.thread)
            if len(self._active) == 1:
                self._stop.set()
                self._stop = threading.Event()
                threading.Thread(
                    target=self._keep_looking, args=(self._stop,), name="agentunit-probe", daemon=True
                ).start()

    @contextmanager
    def adopting(self) -> Iterator[None]:
        """Keep orphans in sight while a program is started: it may detach another one before it is measured."""
        starter = object()
        with self._lock:
            self._adoption.begin(starter)
        try:
            yield
        finally:
            with self._lock:
                self._adoption.end(starter)

    def end(self, account: Account) -> bool:
        """Attribute all until now and leave the account.

        False when the meter was in the middle of a look that this very thread began and a signal interrupted: then the
        account holds what was known at the last one.
        """
        if self._looking == threading.get_ident() or not self._lock.acquire(timeout=_LOCK_PATIENCE_S):
            account.left = True
            return False
        try:
            if account in self._active:
                self._advance()
            return True
        finally:
            self._active = [each for each in self._active if each is not account and not each.left]
            if not self._active:
                self._stop.set()
                self._adoption.end(self)
            self._lock.release()

    def _keep_looking(self, stop: threading.Event) -> None:
        while True:
            with self._lock:
                if stop.is_set():
                    return
                pause_s = min((each.interval_s for each in self._active), default=1.0)
            if stop.wait(pause_s):
                return
            with self._lock:
                if stop.is_set():
                    return
                try:
                    self._advance()
                except Exception as error:  # noqa: BLE001 - nobody listens to this thread
                    self._failure = f"the probe stopped looking: {type(error).__name__}: {error}"
                    return
                if not self._active:
                    self._adoption.end(self)
                    return

    def _advance(self) -> None:
        self._looking = threading.get_ident()
        try:
            self._look()
        finally:
            self._looking = None

    def _look(self) -> None:
        begun_s = time.thread_time()
        self._active = [each for each in self._active if not each.left]
        now = time.monotonic()
        elapsed_s, self._at = max(0.0, now - self._at), now
        threads = {each.thread: thread_cpu_s(each.thread) for each in self._active}
        increase = self._last = self.tree.advance()
        package_j, machine_s = self.rapl.advance(), self.machine.advance()
        # What measuring itself cost is not the agent's.
        own_s = max(0.0, increase.own_s - self._overhead_s)
        increase = increase._replace(own_s=own_s)
        shares = _shares(self._active, increase, threads)
        for account, cpu_s in zip(self._active, shares, strict=True):
            account.thread_s = threads[account.thread]
            account.elapsed_s += elapsed_s
            account.alone_s += elapsed_s / len(self._active)
            account.n_looks += 1
            account.longest_gap_s = max(account.longest_gap_s, elapsed_s)
            account.cpu_s += cpu_s
            account.beside = max(account.beside, len(self._active) - 1)
            # One look may miss a process that has just been adopted; the next one sees it.
            account.has_lost_some |= increase.has_lost_some and self._adoption.problem is not None
            account.take_memory(self._memory_of(account, increase), elapsed_s)
            if package_j is not None and machine_s is not None:
                part = min(1.0, cpu_s / machine_s) if machine_s > 0 else 0.0
                account.package_j = (account.package_j or 0.0) + package_j * part
        self._share_gpus(increase, elapsed_s)
        self._overhead_s = time.thread_time() - begun_s

    def _memory_of(self, account: Account, increase: Increase) -> int | None:
        if account.pid is not None:
            account.seen = account.seen or account.pid in increase.children_rss_bytes
            if increase.rss_bytes is None:
                return None
            return sum(rss for child, rss in increase.children_rss_bytes.items() if _is_of(account, child, increase))
        return increase.rss_bytes

    def _share_gpus(self, increase: Increase, elapsed_s: float) -> None:
        for use in self.gpus.advance(increase.pids):
            for account in self._active:
                kept = account.gpus.get(use.number)
                if kept is None:
                    kept = account.gpus[use.number] = GpuAccount(use.name)
                kept.energy_j += use.energy_j / len(self._active)
                kept.percent_s += use.percent * elapsed_s
                kept.seconds += elapsed_s
                kept.memory_peak_bytes = max(kept.memory_peak_bytes, use.memory_bytes)
                kept.shared = kept.shared or use.share < 1 or len(self._active) > 1


def _shares(active: list[Account], increase: Increase, threads: dict[int, float | None]) -> list[float]:
    """CPU seconds of each account.

    Alone it has all. Beside others it has that of its own thread and of the processes that its thread started, and of
    the rest (helper threads, processes that ended unseen) as much as its part in those.
    """
    if not active:
        return []
    if len(active) == 1 and active[0].pid is None:
        return [increase.total_s]
    named = {account.pid for account in active}
    in_process = [account for account in active if account.pid is None]
    known = []
    for account in active:
        if account.pid is not None:
            certain_s = sum(
                used for (_, child), used in increase.children_s.items() if _is_of(account, child, increase)
            )
        else:
            same_thread = sum(account.thread == other.thread for other in in_process)
            account.split = account.split or same_thread > 1
            now_s, before_s = threads.get(account.thread), account.thread_s
            certain_s = 0.0 if now_s is None or before_s is None else max(0.0, now_s - before_s)
            certain_s += sum(
                used
                for (thread, child), used in increase.children_s.items()
                if thread == account.thread and child not in named
            )
            certain_s /= same_thread
            account.split = account.split or now_s is None
        known.append(certain_s)
    # Of the whole, as much as its part in what is certain: the clocks are read one after the other, so that what is
    # certain may add up to a little more than the whole.
    total_s = sum(known)
    # Where this process only waits for programs, its own time and that of its other children is nobody's.
    whole_s = increase.total_s
    if not in_process:
        detached_s = sum(
            used for (_, child), used in increase.children_s.items() if _is_detached(active, child, increase)
        )
        whole_s = total_s + increase.unseen_s + detached_s
        for account in active:
            account.split = account.split or (detached_s > 0 and len(active) > 1)
    return [whole_s * certain_s / total_s if total_s > 0 else whole_s / len(active) for certain_s in known]


def _is_of(account: Account, child: int, increase: Increase) -> bool:
    """Whether a child of this process is the one that an account is of, or an orphan of its session."""
    return account.pid is not None and account.pid in (child, increase.sessions.get(child))


def _is_detached(active: list[Account], child: int, increase: Increase) -> bool:
    """Whether a child of this process is an orphan in a session of its own, of one of the accounts: which one, nobody
    can say. Other programs that this process starts are in its own session."""
    session = increase.sessions.get(child)
    return (
        session not in (None, _own_session())
        and not any(_is_of(account, child, increase) for account in active)
        and not all(child in account.others for account in active)
    )


def _own_session() -> int | None:
    return os.getsid(0) if hasattr(os, "getsid") else None


_meter = Meter()


def meter() -> Meter:
    """The meter of this process."""
    return _meter


def _start_anew() -> None:
    """In a forked child: its parent's meter, and the thread that drives it, are not its own."""
    global _meter
    _meter = Meter()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
