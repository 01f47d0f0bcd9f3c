"""A worker that is a new Python process: where there is no fork, for agents that can be imported by name.

What the agent prints from Python is kept as anywhere; what C code or child processes print is dropped here.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import Any

from agentunit.adapters.exchange import Exchange
from agentunit.adapters.frames import RESULT, SETUP, FrameReader, framed
from agentunit.adapters.processes import Child
from agentunit.adapters.sealing import MAX_REPLY_BYTES
from agentunit.adapters.threads import DaemonThreads
from agentunit.traces.live.capture import captures_every_case
from agentunit.traces.live.instrument import turned_on

_START = "from agentunit.adapters.worker_process import serve_spawned; serve_spawned()"
_READ_BYTES = 1 << 16
_threads = DaemonThreads("agentunit-spawned-worker")


def importable_form(agent: Callable[..., Any]) -> bytes | None:
    """The agent as a new process can load it; ``None`` for what lives only here (a lambda, a script's function)."""
    try:
        data = pickle.dumps(agent)
        loading = _NamedModules(io.BytesIO(data))
        loading.load()
    except Exception:  # noqa: BLE001 - whatever an object raises, it cannot travel
        return None
    return data if all(map(_can_be_found, loading.modules)) else None


class _NamedModules(pickle.Unpickler):
    """Notes the modules that a pickle needs."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.modules: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.modules.add(module.partition(".")[0])
        return super().find_class(module, name)


def _can_be_found(module: str) -> bool:
    """Whether a new process finds it: a module may be loaded here that no path leads to."""
    return module in sys.stdlib_module_names or PathFinder.find_spec(module) is not None


class SpawnedWorker:
    """A spawned worker, spoken to by a thread that reads its answers."""

    def __init__(self, agent: bytes) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
        process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
            start_new_session=os.name == "posix",
        )
        assert process.stdin is not None
        assert process.stdout is not None
        # It is at home in any loop: a thread does the listening.
        self.home: asyncio.AbstractEventLoop | None = None
        self.child: Child = _SpawnedChild(process)
        self._stdin, self._stdout = process.stdin, process.stdout
        frameworks = turned_on() if captures_every_case() else None
        # Sent together with the first case.
        self._unsent = framed(SETUP, pickle.dumps((sys.path, agent, frameworks)))

    def is_alive(self) -> bool:
        """Whether it can be given a case."""
        return not self.child.has_ended()

    def start(self, exchange: Exchange, request: bytes) -> None:
        """Give it a case; what comes back goes to the exchange."""
        loop = asyncio.get_running_loop()
        data, self._unsent = self._unsent + request, b""
        _threads.submit(lambda: self._converse(data, loop, exchange))

    def stop(self) -> None:
        """The case is over."""

    def ask_for_last_words(self) -> None:
        """Its time is up: ask for the trace it has. Windows knows no such question."""
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it and all that it started."""
        self.child.kill()
        for stream in (self._stdin, self._stdout):
            # A thread that is still reading sees the end of the process instead.
            with contextlib.suppress(OSError):
                stream.close()

    def _converse(self, data: bytes, loop: asyncio.AbstractEventLoop, exchange: Exchange) -> None:
        reader = FrameReader()
        # The loop may be closed while we read, and the pipes when the worker is killed.
        with contextlib.suppress(RuntimeError, ValueError):
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[self._stdin.write(rest) :]
                while received := self._stdout.read(_READ_BYTES):
                    for kind, body in reader.feed(received):
                        loop.call_soon_threadsafe(exchange.on_frame, kind, body)
                        if kind == RESULT:
                            return
                    if reader.announced > MAX_REPLY_BYTES:
                        loop.call_soon_threadsafe(exchange.on_size, reader.announced)
                        return
            except OSError:
                # It is gone, which the end of the conversation says as well.
                pass
            loop.call_soon_threadsafe(exchange.settle, "died")


class _SpawnedChild(Child):
    """A process that the standard library started and collects."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(process.pid)
        self._process = process

    def has_ended(self) -> bool:
        self.exit_code = self._process.poll()
        self.ended = self.exit_code is not None
        return self.ended

    def kill(self) -> None:
        if os.name == "posix":
            super().kill()
        else:
            self._process.kill()
