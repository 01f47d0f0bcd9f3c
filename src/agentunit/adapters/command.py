"""A program as an agent: the question as JSON on its standard input, the answer on its standard output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import time
from asyncio.subprocess import PIPE, Process
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentunit.adapters._call import MAX_ANSWER_BYTES, AgentCall, WrongType, request_json, take_reply
from agentunit.adapters._prints import BoundedText
from agentunit.adapters.base import AgentResult, FailureKind
from agentunit.adapters.failures import clipped, describe_error
from agentunit.adapters.threads_and_processes import describe_exit, kill_group, kill_tree
from agentunit.core.case import DatasetCase

_READ_BYTES = 1 << 16
# How long after its end somebody else may hold the program's output open.
_LINGER_S = 0.5
_LOOK_EVERY_S = 0.1
_TO_DIE_S = 2.0
_ERROR_CHARACTERS = 300


class CommandAgent:
    """A program that is started anew for every case.

    ``command`` is a list of arguments, or a string that is split as a shell would split it; a shell is never started
    (name one if you want it: ``["sh", "-c", "…"]``). ``env`` is added to the environment. The program reads one JSON
    object from its standard input and writes an outcome as JSON (with ``trace`` if it likes), or plain text. What it
    writes to standard error is kept in ``trace.metadata["stderr"]``. When it ends, or its time is up, its whole process
    group is killed.
    """

    concurrency_hint: int | None = None

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        try:
            arguments = shlex.split(command) if isinstance(command, str) else [os.fspath(each) for each in command]
        except (ValueError, TypeError) as error:
            raise ValueError(f"CommandAgent: command must be a list or split like a shell's; {error}") from None
        if not arguments:
            raise ValueError(f"CommandAgent: command must name a program; received {command!r}")
        self._cwd = None if cwd is None else os.fspath(cwd)
        if self._cwd is not None and not os.path.isdir(self._cwd):
            raise ValueError(f"CommandAgent: cwd must be a folder; received {self._cwd!r}")
        self._env = None if env is None else {**os.environ, **env}
        self._arguments = arguments
        if self._program() is None:
            raise ValueError(f"CommandAgent: command must start with a program that exists; received {arguments[0]!r}")

    def __repr__(self) -> str:
        return f"CommandAgent({shlex.join(self._arguments)!r})"

    def files(self, folder: str = ".") -> list[str]:
        """The files that the command names, in the folder it runs in or in ``folder``; programs on the path are not."""
        folders = (self._cwd or os.getcwd(), folder)
        named = (os.path.join(each, word) for word in self._arguments for each in folders)
        return [os.path.abspath(path) for path in named if os.path.isfile(path)]

    async def run(self, case: DatasetCase, *, timeout_s: float | None = None, seed: int | None = None) -> AgentResult:
        """Start the program on one case, and kill it when the time is up."""
        call, errors = AgentCall(), BoundedText()
        try:
            question = request_json(case, seed)
            with call.starting():
                process = await asyncio.create_subprocess_exec(
                    *self._arguments,
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    cwd=self._cwd,
                    env=self._env,
                    start_new_session=os.name == "posix",
                )
                call.begin_probe(process.pid)
        except Exception as error:  # noqa: BLE001 - no such program any more, no more processes: the case says so
            call.fail("raised", f"the command cannot be started: {describe_error(error)}")
            return call.result()
        try:
            await asyncio.wait_for(_converse(process, question, call, errors), timeout_s)
        except (asyncio.TimeoutError, TimeoutError):
            call.timed_out(timeout_s or 0.0)
        finally:
            call.end_probe()
            await _kill(process)
        text = errors.text()
        if text:
            call.metadata["stderr"] = text
        return call.result()

    async def close(self) -> None:
        """Nothing is kept between cases."""

    def _program(self) -> str | None:
        name = self._arguments[0]
        if os.path.dirname(name):
            place = os.path.join(self._cwd or "", name)
            return place if os.access(place, os.X_OK) and not os.path.isdir(place) else None
        return shutil.which(name, path=(self._env or os.environ).get("PATH"))


async def _converse(process: Process, question: bytes, call: AgentCall, errors: BoundedText) -> None:
    answer = bytearray()
    decoder = getincrementaldecoder("utf-8")("replace")
    assert process.stdout is not None
    assert process.stderr is not None
    exited = asyncio.ensure_future(process.wait())
    asking = asyncio.ensure_future(_ask(process, question))
    reading = asyncio.ensure_future(_read(process.stdout, answer.extend, MAX_ANSWER_BYTES))
    listening = asyncio.ensure_future(_read(process.stderr, lambda data: errors.write(decoder.decode(data))))
    tasks: tuple[asyncio.Future[Any], ...] = (exited, asking, reading, listening)
    try:
        while process.returncode is None and not _went_wrong(reading):
            # Not only the exit: in some versions it is reported only when the last pipe is closed.
            await asyncio.wait({exited, reading} if not reading.done() else {exited}, timeout=_LOOK_EVERY_S)
        if not _went_wrong(reading):
            if os.name == "posix":
                kill_group(process.pid)
            # A child that got away may hold the program's output open for ever.
            await asyncio.wait({reading, listening}, timeout=_LINGER_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if len(answer) > MAX_ANSWER_BYTES:
        call.fail("raised", f"the command wrote more than {MAX_ANSWER_BYTES // 2**20} MiB to its standard output")
        return
    try:
        take_reply(call, answer.decode("utf-8", "replace"), may_be_text=True)
    except WrongType as error:
        call.raised(error)
    code = process.returncode
    if code:
        said = clipped(errors.text()[-_ERROR_CHARACTERS:].strip(), _ERROR_CHARACTERS)
        failure: FailureKind = "raised" if code > 0 else "died"
        call.fail(failure, f"the command ended with {describe_exit(code)}" + (f": {said}" if said else ""))


async def _ask(process: Process, question: bytes) -> None:
    assert process.stdin is not None
    # A program need not read its question.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(question)
        await process.stdin.drain()
        process.stdin.close()
        await process.stdin.wait_closed()


async def _read(stream: asyncio.StreamReader, take: Callable[[bytes], object], limit: int | None = None) -> None:
    """Hand over all that a stream brings, until it ends or passes the limit."""
    size = 0
    while (limit is None or size <= limit) and (data := await stream.read(_READ_BYTES)):
        take(data)
        size += len(data)
    if limit is not None and size > limit:
        raise _TooMuch


class _TooMuch(Exception):
    """A program that does not stop writing."""


def _went_wrong(task: asyncio.Future[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


async def _kill(process: Process) -> None:
    """End the program if it still runs, and all that it started in any case."""
    if os.name == "posix":
        if process.returncode is None:
            kill_tree(process.pid)
        else:
            kill_group(process.pid)
    elif process.returncode is None:
        process.kill()
    deadline = time.monotonic() + _TO_DIE_S
    while process.returncode is None and time.monotonic() < deadline:
        await asyncio.sleep(0.001)
    # Whoever got away may hold the pipes open; we do not.
    process._transport.close()  # type: ignore[attr-defined]
