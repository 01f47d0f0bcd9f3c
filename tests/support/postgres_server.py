"""A PostgreSQL server of Debian's package for tests: on loopback, in a temporary folder, as an unprivileged user."""

from __future__ import annotations

import glob
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PASSWORD = "correct horse"  # of a server that only this test can reach


class NoServer(Exception):
    """Why there is no server here."""


class Server:
    """A running server that can be killed and started again."""

    def __init__(self) -> None:
        self._programs = _programs()
        self._user = _unprivileged_user()
        self.folder = Path(tempfile.mkdtemp(prefix="agentunit-postgres-"))
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._data = self.folder / "data"
        self._run("initdb", "-D", self._data, "-U", "ada", "-A", "scram-sha-256", "--pwfile", password, "-E", "UTF8",
                  "--no-sync")  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(f"listen_addresses = '127.0.0.1'\nport = {self.port}\nunix_socket_directories = ''\n")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://ada:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it and wait until it answers; after a crash it recovers first."""
        self._run("pg_ctl", "-D", self._data, "-l", self.folder / "log", "-w", "-t", "120", "start")

    def kill(self) -> None:
        """End every process of the server at once, as a power cut would."""
        postmaster = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        # First the one that would start others anew.
        _kill_and_wait([postmaster])
        _kill_and_wait(_processes_in(self._data))
        # It names a process; one that ended may be listed until somebody asks how, and would look like a running one.
        (self._data / "postmaster.pid").unlink()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Let it take connections and give no answers, as one behind a broken network does."""
        processes = _processes_in(self._data)
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                # A worker of the server may have ended meanwhile.
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def stop(self) -> None:
        """End it and remove its folder."""
        if (self._data / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: object) -> None:
        command = [os.path.join(self._programs, program), *map(str, arguments)]
        done = subprocess.run(
            command, user=self._user, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}")


def _programs() -> str:
    """The folder of the server's programs; the package is installed where that can be done."""
    found = _installed()
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
            subprocess.run(["apt-get", "-q", *step], env=environment, capture_output=True)
        found = _installed()
    if found is None:
        raise NoServer("PostgreSQL is not installed (apt-get install postgresql), and could not be installed here")
    return found


def _installed() -> str | None:
    beside = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda folder: int(folder.split("/")[-2]))
    on_path = shutil.which("initdb")
    return beside[-1] if beside else os.path.dirname(on_path) if on_path else None


def _unprivileged_user() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.getuid() != 0:
        return None
    names = {each.pw_name for each in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in names:
            return name
    raise NoServer("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody'")


def _processes_in(folder: Path) -> list[int]:
    """The processes that work in a folder: every one of the server does."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cwd").resolve(strict=True) == folder:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _kill_and_wait(processes: list[int]) -> None:
    for process in processes:
        try:
            handle = os.pidfd_open(process)
        except ProcessLookupError:
            continue
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [])
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)
