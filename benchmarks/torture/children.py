"""Child processes that are found again, bounded, and gone in the end, whatever they did."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.torture.ledger import Lost

# Generous: a verdict that hangs on it must be about a process that hangs, not about a busy machine.
BOUND_S = float(os.environ.get("TORTURE_BOUND_S", "300"))
_MARK = "AGENTUNIT_TORTURE"
_numbers = itertools.count(1)
# What children print does not lie where they work: a disk may be full there, or read-only.
_LOGS = TemporaryDirectory(prefix="agentunit-torture-logs-")


def wait_for(condition: Callable[[], bool], what: str, bound_s: float = BOUND_S, every_s: float = 0.002) -> None:
    """Wait until something is so; that it never is, is a loss."""
    ends_at = time.monotonic() + bound_s
    while not condition():
        if time.monotonic() > ends_at:
            raise Lost(f"{what}: not within {bound_s:.0f} s")
        time.sleep(every_s)


class Child:
    """A process with a mark in its environment, by which all that it started is found, also what left its group."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        number = next(_numbers)
        self.mark = f"{os.getpid()}-{number}"
        self.out_file = Path(_LOGS.name, f"{number}.out")
        self.error_file = Path(_LOGS.name, f"{number}.err")
        # Files and not pipes: nobody need read them, and what was said before a kill is there.
        with open(self.out_file, "wb") as out, open(self.error_file, "wb") as err:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=stdin,
                stdout=out,
                stderr=err,
                start_new_session=True,
                env={**usual_environment(), **(environment or {}), _MARK: self.mark},
            )

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    @property
    def out(self) -> str:
        return self.out_file.read_text(encoding="utf-8", errors="replace")

    @property
    def errors(self) -> str:
        return self.error_file.read_text(encoding="utf-8", errors="replace")

    def signal(self, number: int) -> None:
        """Send a signal to the process itself."""
        self.process.send_signal(number)

    def kill(self, *, group: bool) -> None:
        """SIGKILL, to the process alone or to its group."""
        if group:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()

    def end(self, bound_s: float = BOUND_S, *, leaves_processes: bool = False) -> int:
        """Wait for its end, and for the end of all that it started; returns the exit code."""
        try:
            try:
                code = self.process.wait(timeout=bound_s)
            except subprocess.TimeoutExpired:
                raise Lost(f"did not end within {bound_s:.0f} s; it said: {self.errors[-500:]!r}") from None
            if not leaves_processes:
                wait_for(lambda: not self.left(), "processes that it started are still running", 60.0, 0.05)
        finally:
            self.clear()
        return code

    def left(self) -> list[int]:
        """The processes that it started, in whatever session, and that are still there."""
        return marked(self.mark)

    def clear(self) -> None:
        """Leave nothing of it running."""
        if not self.is_over:
            self.process.kill()
            self.process.wait()
        for pid in self.left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def marked(mark: str) -> list[int]:
    """The processes with a mark in their environment (Linux; elsewhere none are found)."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit() and int(name) != os.getpid():
            try:
                environment = Path("/proc", name, "environ").read_bytes()
            except OSError:
                continue
            if wanted in environment.split(b"\0"):
                found.append(int(name))
    return found


def usual_environment() -> dict[str, str]:
    """The environment without what would change what is measured."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTUNIT_", "GITHUB_", "CI"))}
    return {**kept, "COLUMNS": "100", "PYTHONUTF8": "1", "AGENTUNIT_BACKEND": "lexical"}


def agentunit(*arguments: str, python: str | None = None) -> list[str]:
    """The command line of a verb."""
    return [python or sys.executable, "-m", "agentunit", *arguments]


def done(
    command: Sequence[str],
    folder: Path,
    *,
    expect: Sequence[int] | None = (0,),
    environment: Mapping[str, str] | None = None,
    leaves_processes: bool = False,
) -> Child:
    """Run a command to its end. Another exit code than expected is a loss."""
    child = Child(command, folder, environment=environment)
    code = child.end(leaves_processes=leaves_processes)
    if expect is not None and code not in expect:
        raise Lost(f"{' '.join(command[1:6])} ended with {code}, not {list(expect)}: {child.errors[-600:]}")
    return child


def said_plainly(child: Child) -> bool:
    """Whether what went wrong was foreseen: neither a traceback nor the line that stands for one."""
    return "Traceback" not in child.errors and "AGENTUNIT_TRACEBACK" not in child.errors
