"""The standard streams and the end of the process, whatever an agent or the reader of the output did to them."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, NoReturn

_GRACE_S = 1.0
_LAST_WORDS_S = 5.0
_decided: list[int] = []


def remember_exit_code(code: int) -> None:
    """Call it before the first line of a verdict is printed: the verdict holds although nobody reads the lines."""
    _decided[:] = [code]


def remembered_exit_code(otherwise: int) -> int:
    """The exit code of the verdict that was being printed, or another where nothing was decided yet."""
    return _decided[0] if _decided else otherwise


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """For code of a user's: what it and its child processes print goes to standard error, not between our lines.

    Afterwards both streams are as they were, also when that code closed them or put a file in their place; and so is
    the current folder, which paths on the command line are relative to.
    """
    folder = _current_folder()
    names = {1: "stdout", 2: "stderr"}
    streams = {name: getattr(sys, name) for name in names.values()}
    flush_output()
    saved = {}
    for number in names:
        with suppress(OSError):
            saved[number] = os.dup(number)
    with suppress(OSError):
        os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        for stream in (sys.__stdout__, streams["stdout"]):
            with suppress(OSError, ValueError):
                if stream is not None:
                    stream.flush()
        for number, copy in saved.items():
            os.dup2(copy, number)
            os.close(copy)
        for number, name in names.items():
            setattr(sys, name, _reopened(streams[name], number))
        if folder is not None:
            with suppress(OSError):
                os.chdir(folder)


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _reopened(stream: Any, number: int) -> Any:
    if not isinstance(stream, io.TextIOWrapper) or not stream.closed:
        return stream
    try:
        return open(number, "w", encoding=stream.encoding, errors="replace", closefd=False)
    except OSError:
        return stream


def flush_output() -> None:
    """Write what is waiting. A reader that has gone, or a stream that is closed, is no reason for another exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            forget_output(stream)


def forget_output(stream: Any = None) -> None:
    """What could not be written must not be tried again when Python shuts down."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (sys.stdout if stream is None else stream).fileno())


def end_process(code: int) -> NoReturn:
    """Leave with this exit code, also when an agent left threads or processes that Python would wait for.

    The command has ended: one more Ctrl-C must not print the traceback of Python's own end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    flush_output()
    if _left_by_agent():
        for wait_s, end in ((_GRACE_S, _end_politely), (_GRACE_S + _LAST_WORDS_S, os._exit)):
            threading.Thread(target=_end_after, args=(wait_s, end, code), daemon=True).start()
    sys.exit(code)


def _left_by_agent() -> list[str]:
    """The names of threads and processes that Python would wait for. It ends daemons itself."""
    pools = sys.modules.get("concurrent.futures.thread")
    pooled = set(getattr(pools, "_threads_queues", ()))
    here = (threading.main_thread(), threading.current_thread())
    threads = [each for each in threading.enumerate() if (not each.daemon or each in pooled) and each not in here]
    return [each.name for each in (*threads, *_left_processes())]


def _left_processes() -> list[Any]:
    multiprocessing = sys.modules.get("multiprocessing")
    return [] if multiprocessing is None else [each for each in multiprocessing.active_children() if not each.daemon]


def _end_after(wait_s: float, end: Any, code: int) -> None:
    # Counted from the moment in which Python begins to wait, not before: until then the process is at work.
    while threading.main_thread().is_alive() and not getattr(threading, "_SHUTTING_DOWN", False):
        time.sleep(0.02)
    time.sleep(wait_s)
    if _left_by_agent():
        end(code)


def _end_politely(code: int) -> None:
    with suppress(Exception):
        names = ", ".join(_left_by_agent()[:3])
        sys.stderr.write(f"note: the agent left threads or processes running ({names}), which end here\n")
    for process in _left_processes():
        process.kill()
    with suppress(Exception):
        atexit._run_exitfuncs()
    flush_output()
    os._exit(code)
