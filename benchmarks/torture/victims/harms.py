"""Agents that do harm. Each harm is a function of its own; the case that is called "evil" asks for one.

This file runs in a folder of its own, without anything else of this project.
"""

# ruff: noqa: BLE001, RUF006, S110, SIM105 - that is what it is for

import asyncio
import builtins
import ctypes
import gc
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HARMS = {}
ASYNC_HARMS = {}
_FOR_EVER_S = 100_000


def harm(function):
    HARMS[function.__name__] = function
    return function


def async_harm(function):
    ASYNC_HARMS[function.__name__] = function
    return function


# Ends


@harm
def sys_exit(trace):
    sys.exit(0)


@harm
def sys_exit_with_words(trace):
    sys.exit("done here")


@harm
def os_exit(trace):
    os._exit(0)


@harm
def os_exit_as_if_a_gate_failed(trace):
    os._exit(1)


@harm
def segfault(trace):
    ctypes.string_at(0)


@harm
def abort(trace):
    os.abort()


@harm
def kills_itself(trace):
    os.kill(os.getpid(), signal.SIGKILL)


@harm
def terminates_itself(trace):
    os.kill(os.getpid(), signal.SIGTERM)
    return "right"


@harm
def kills_its_parent(trace):
    if os.getppid() > 1:
        os.kill(os.getppid(), signal.SIGKILL)
    return "right"


@harm
def keyboard_interrupt(trace):
    raise KeyboardInterrupt


@harm
def generator_exit(trace):
    raise GeneratorExit


@harm
def base_exception(trace):
    class Odd(BaseException):
        def __str__(self):
            raise RuntimeError("no words")

        __repr__ = __str__

    raise Odd


@harm
def endless_recursion(trace):
    return endless_recursion(trace)


@harm
def out_of_memory(trace):
    raise MemoryError


# Processes and threads


@harm
def fork_storm(trace):
    for _ in range(24):
        if os.fork() == 0:
            time.sleep(_FOR_EVER_S)
            os._exit(0)
    return "right"


@harm
def ends_a_process_that_it_forked(trace):
    ours, theirs = os.pipe()

    def stay():
        os.write(theirs, b"x")
        time.sleep(_FOR_EVER_S)

    child = multiprocessing.get_context("fork").Process(target=stay, daemon=True)
    child.start()
    os.read(ours, 1)
    child.terminate()
    child.join()
    return "right"


@harm
def fork_that_comes_back(trace):
    os.fork()
    return "right"


@harm
def daemon_in_its_own_session(trace):
    subprocess.Popen(["sleep", str(_FOR_EVER_S)], start_new_session=True)
    return "right"


@harm
def child_that_holds_the_output(trace):
    subprocess.Popen(["sleep", str(_FOR_EVER_S)])
    return "right"


@harm
def threads_that_stay(trace):
    for _ in range(8):
        threading.Thread(target=time.sleep, args=(_FOR_EVER_S,), daemon=False).start()
    return "right"


@harm
def thread_that_exits(trace):
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()
    return "right"


# Streams and files


@harm
def closed_stdout(trace):
    sys.stdout.close()
    os.close(1)
    return "right"


@harm
def closed_streams(trace):
    for number in (0, 1, 2):
        try:
            os.close(number)
        except OSError:
            pass
    return "right"


@harm
def closed_files(trace):
    os.closerange(3, 512)
    return "right"


@harm
def streams_that_are_none(trace):
    sys.stdout = sys.stderr = sys.stdin = None
    return "right"


@harm
def prints_100_mb(trace):
    line = "x" * 99_999 + "\n"
    for _ in range(1000):
        sys.stdout.write(line)
    return "right"


@harm
def answers_100_mb(trace):
    return "x" * 100_000_000


@harm
def trace_of_100_mb(trace):
    for _ in range(100):
        trace.record("tool_call", name="big", result="x" * 1_000_000)
    return "right"


@harm
def changed_folder(trace):
    os.chdir("/")
    return "right"


@harm
def removed_folder(trace):
    folder = os.path.join(HERE, "gone")
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    os.rmdir(folder)
    return "right"


@harm
def junk_in_the_stores_folder(trace):
    folder = os.path.join(HERE, ".agentunit")
    os.makedirs(folder, exist_ok=True)
    for name in ("junk", "runs.db.lock", "runs.db.part", "runs.db-journal.old", "\udcff", "a\nb"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"\0garbage")
    os.makedirs(os.path.join(folder, "runs.db.d"), exist_ok=True)
    return "right"


# What everybody shares


@harm
def patched_builtins(trace):
    def broken(*arguments, **options):
        raise RuntimeError("patched")

    for name in ("open", "print", "len", "isinstance", "sorted", "repr"):
        setattr(builtins, name, broken)
    return "right"


@harm
def patched_modules(trace):
    def broken(*arguments, **options):
        raise RuntimeError("patched")

    import json
    import sqlite3

    time.time = time.monotonic = json.dumps = sqlite3.connect = os.path.join = threading.Thread.start = broken
    return "right"


@harm
def emptied_modules(trace):
    sys.path.clear()
    for name in list(sys.modules):
        if name.startswith("agentunit"):
            del sys.modules[name]
    os.environ.clear()
    return "right"


@harm
def ignored_signals(trace):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
        try:
            signal.signal(number, signal.SIG_IGN)
        except ValueError:
            pass  # not in the main thread
    return "right"


@harm
def limits(trace):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return "right"


@harm
def no_garbage_collection_and_no_recursion(trace):
    gc.disable()
    sys.setrecursionlimit(60)
    return "right"


@harm
def hooks_that_raise(trace):
    def broken(*arguments):
        raise RuntimeError("a hook")

    sys.excepthook = sys.unraisablehook = threading.excepthook = sys.displayhook = broken
    sys.settrace(None)
    return "right"


# Answers


@harm
def answer_that_cannot_be_written(trace):
    class Odd:
        def __str__(self):
            raise RuntimeError("no words")

        __repr__ = __str__

    return Odd()


@harm
def answer_without_end(trace):
    answer = {}
    answer["output"] = answer
    return answer


@harm
def answer_of_many_levels(trace):
    answer = []
    for _ in range(100_000):
        answer = [answer]
    return {"output": answer}


@harm
def answer_of_odd_characters(trace):
    return "\ud800 \x00 \x1b[2J \u202e ::error::x\n::error::y"


@harm
def answer_of_a_long_number(trace):
    return {"output": "right", "cost": 10**6000}


@harm
def trace_of_garbage(trace):
    trace.events = [None, 7, object(), {"type": trace}]
    trace.metadata = {"a": float("nan"), 3: trace, "b": {1, 2}}
    return "right"


# Time


@harm
def hangs(trace):
    time.sleep(_FOR_EVER_S)


@harm
def hangs_and_catches_everything(trace):
    while True:
        try:
            time.sleep(_FOR_EVER_S)
        except BaseException:
            pass


# The event loop


@async_harm
async def cancels_every_task(trace):
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0.01)
    return "right"


@async_harm
async def stops_the_loop(trace):
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)
    return "right"


@async_harm
async def closes_the_loop(trace):
    asyncio.get_running_loop().close()
    return "right"


@async_harm
async def blocks_the_loop(trace):
    time.sleep(_FOR_EVER_S)


@async_harm
async def blocks_the_loop_and_catches_everything(trace):
    while True:
        try:
            time.sleep(_FOR_EVER_S)
        except BaseException:
            pass


@async_harm
async def refuses_cancellation(trace):
    while True:
        try:
            await asyncio.sleep(_FOR_EVER_S)
        except BaseException:
            pass


@async_harm
async def leaves_tasks_behind(trace):
    async def stay():
        while True:
            try:
                await asyncio.sleep(_FOR_EVER_S)
            except asyncio.CancelledError:
                pass

    trace.kept = [asyncio.create_task(stay()) for _ in range(8)] if hasattr(trace, "kept") else None
    asyncio.create_task(stay())
    return "right"


@async_harm
async def task_that_exits(trace):
    async def leave():
        sys.exit(0)

    await asyncio.create_task(leave())


@async_harm
async def changes_the_loops_factory(trace):
    asyncio.get_running_loop().set_task_factory(lambda *arguments, **options: None)
    asyncio.get_running_loop().set_exception_handler(lambda *arguments: os._exit(0))
    return "right"


# How they are called


def _note(case_id):
    with builtins.open(os.path.join(HERE, "started.log"), "ab", buffering=0) as log:
        log.write(f"{case_id}\n".encode())


def _is_evil(query):
    return query == "evil" and not os.path.exists(os.path.join(HERE, "tame"))


def function(query, case, trace):
    _note(case.id)
    return HARMS[HARM](trace) if _is_evil(query) else "right"


async def coroutine(query, case, trace):
    _note(case.id)
    if _is_evil(query):
        if HARM in ASYNC_HARMS:
            return await ASYNC_HARMS[HARM](trace)
        return HARMS[HARM](trace)
    # Neighbors need the loop more than once.
    for _ in range(3):
        await asyncio.sleep(0.001)
    return "right"


def main():
    """The same as a command: one question on standard input, the answer on standard output."""
    import json

    class Trace:
        def record(self, *arguments, **options):
            pass

    question = json.load(sys.stdin)
    _note(question["id"])
    answer = HARMS[HARM](Trace()) if _is_evil(question["query"]) else "right"
    print(answer)


with builtins.open(os.path.join(HERE, "harm")) as file:
    HARM = file.read().strip()

if __name__ == "__main__":
    main()
