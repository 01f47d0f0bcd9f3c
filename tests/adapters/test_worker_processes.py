"""Synchronous agents with a timeout: real processes that hang, die, fork and close what is not theirs."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import itertools
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from agentunit.adapters._callable import CallableAgent
from agentunit.adapters.base import as_agent
from agentunit.core.case import DatasetCase
from agentunit.core.trace import TraceEvent

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def sleeps(query, trace):
    print("going to sleep")
    trace.metadata["cost"] = 0.5
    event = trace.record("tool_call", name="wait")
    event.payload["status"] = "running"
    time.sleep(60)


def spins(query, trace):
    trace.record("tool_call", name="spin")
    while True:
        pass


def hangs_in_c(query, trace):
    trace.record("tool_call", name="c")
    # Never comes back to the interpreter: no signal handler, no other thread runs in this process any more.
    all(itertools.repeat(True))


def swallows_everything(query, trace):
    trace.record("tool_call", name="stubborn")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


def test_the_current_loop_of_a_worker_is_its_own(ask):
    async def answer():
        return "done"

    result = ask(lambda query: asyncio.get_event_loop().run_until_complete(answer()), timeout_s=10)
    assert result.outcome.output == "done"


@pytest.mark.parametrize("agent", [sleeps, spins, hangs_in_c, swallows_everything])
def test_a_hanging_agent_is_ended_and_keeps_its_trace(ask, agent):
    result = ask(agent, timeout_s=1.5)
    assert result.failure == result.trace.metadata["failure"] == "timeout"
    assert result.outcome.error.startswith("timeout: no answer within 1.5 s")
    assert result.outcome.success is False
    assert [event.type for event in result.trace.events] == ["tool_call"]
    assert result.elapsed_s >= 1.5


def test_an_agent_that_still_hears_tells_all_it_has(ask):
    result = ask(sleeps, timeout_s=1.5)
    assert re.search(r"\(it was at \S*test_worker_processes.py:\d+ in sleeps\)$", result.outcome.error)
    assert result.trace.metadata["stdout"] == "going to sleep\n"
    assert result.trace.metadata["cost"] == 0.5
    assert result.trace.events[0].payload == {"name": "wait", "status": "running"}


def test_a_generator_that_hangs_keeps_its_pieces(ask):
    def agent(query):
        yield "as far as "
        yield "it got"
        time.sleep(60)

    assert ask(agent, timeout_s=1.5).outcome.output == "as far as it got"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (lambda: os._exit(7), "exit code 7"),
        (lambda: os._exit(0), "exit code 0"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "signal SIGSEGV"),
        (lambda: ctypes.string_at(0), "signal SIGSEGV"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "signal SIGKILL (often: the system ran out of memory)"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "signal SIGTERM"),
        (os.abort, "signal SIGABRT"),
    ],
    ids=["exit 7", "exit 0", "SIGSEGV", "null pointer", "SIGKILL", "SIGTERM", "abort"],
)
def test_an_agent_that_dies_says_how(ask, end, said):
    def agent(query, trace):
        trace.record("before")
        print("last words", flush=True)
        end()

    result = ask(agent, timeout_s=20)
    assert result.failure == result.trace.metadata["failure"] == "died"
    assert result.outcome.error == f"the agent's process died ({said})"
    assert [event.type for event in result.trace.events] == ["before"]
    assert result.trace.metadata["stdout"] == "last words\n"


def test_a_worker_that_was_sent_sigterm_without_a_timeout_is_not_used_again():
    def agent(query):
        if query == "end":
            os.kill(os.getpid(), signal.SIGTERM)
        return query

    async def go():
        called = CallableAgent(agent, workers=1, isolation="process")
        results = [await called.run(DatasetCase(query, query)) for query in ("first", "end", "last")]
        await called.close()
        return results

    first, end, last = asyncio.run(asyncio.wait_for(go(), 60))
    assert (first.failure, end.failure, last.failure) == (None, "died", None)
    assert last.outcome.output == "last"


def test_an_agent_that_closes_every_file_is_replaced():
    def agent(query):
        if query == "close":
            os.closerange(3, 256)
        return query

    async def go():
        called = as_agent(agent, workers=1)
        results = [await called.run(DatasetCase("q", query), timeout_s=20) for query in ("a", "close", "b")]
        await called.close()
        return results

    first, broken, last = asyncio.run(go())
    assert (first.outcome.output, last.outcome.output) == ("a", "b")
    assert broken.failure == "died"


def test_the_run_goes_on_after_every_kind_of_failure():
    def agent(query):
        if query == "hang":
            time.sleep(60)
        if query == "die":
            os._exit(3)
        if query == "exit":
            sys.exit(3)
        if query == "raise":
            raise ValueError
        return query

    queries = ["fine", "hang", "fine", "die", "fine", "exit", "fine", "raise", "fine"] * 2

    async def go():
        called = as_agent(agent, workers=3)
        results = await asyncio.gather(
            *[called.run(DatasetCase(str(n), query), timeout_s=3) for n, query in enumerate(queries)]
        )
        await called.close()
        return results

    results = asyncio.run(go())
    expected = {"fine": None, "hang": "timeout", "die": "died", "exit": "exit", "raise": "raised"}
    assert [result.failure for result in results] == [expected[query] for query in queries]


def test_workers_are_reused_and_no_more_than_asked_for():
    async def go():
        called = as_agent(lambda query: str(os.getpid()), workers=2)
        pids = [(await called.run(DatasetCase("q"), timeout_s=20)).outcome.output for _ in range(5)]
        pids += [
            result.outcome.output
            for result in await asyncio.gather(*[called.run(DatasetCase("q"), timeout_s=20) for _ in range(10)])
        ]
        await called.close()
        return pids

    pids = asyncio.run(go())
    assert len(set(pids[:5])) == 1
    assert len(set(pids)) <= 2
    assert str(os.getpid()) not in pids


def test_closing_ends_the_workers(is_gone):
    async def go():
        called = as_agent(lambda query: str(os.getpid()))
        result = await called.run(DatasetCase("q"), timeout_s=20)
        await called.close()
        return int(result.outcome.output)

    assert is_gone(asyncio.run(go()))


@pytest.mark.filterwarnings("ignore:unclosed")
def test_an_agent_that_nobody_closes_takes_its_workers_with_it(is_gone):
    called = as_agent(lambda query: str(os.getpid()))
    pid = int(asyncio.run(called.run(DatasetCase("q"), timeout_s=20)).outcome.output)
    del called
    gc.collect()
    assert is_gone(pid)


def test_a_pool_outlives_its_loop():
    called = as_agent(lambda query: str(os.getpid()), workers=1)
    pids = {asyncio.run(called.run(DatasetCase("q"), timeout_s=20)).outcome.output for _ in range(3)}
    assert len(pids) == 1
    asyncio.run(called.close())


def test_a_pool_is_shared_by_loops_in_several_threads():
    called = as_agent(lambda query: query, workers=2)
    answers = []

    def in_thread(name):
        async def go():
            results = [await called.run(DatasetCase("q", f"{name} {n}"), timeout_s=20) for n in range(20)]
            answers.extend(result.outcome.output for result in results)

        asyncio.run(go())

    threads = [threading.Thread(target=in_thread, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == sorted(f"{name} {n}" for name in "abc" for n in range(20))
    asyncio.run(called.close())


def test_a_worker_that_died_between_cases_is_replaced_unnoticed():
    def agent(query):
        return str(os.getpid())

    async def go():
        called = as_agent(agent, workers=1)
        first = int((await called.run(DatasetCase("q", "a"), timeout_s=300)).outcome.output)
        os.kill(first, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # it was noticed before we looked
            os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
        second = int((await called.run(DatasetCase("q", "b"), timeout_s=300)).outcome.output)
        await called.close()
        return first, second

    first, second = asyncio.run(go())
    assert second != first


def test_every_case_finds_the_current_loop_of_the_worker():
    async def answer(query):
        return query

    def agent(query):
        if query == "run":
            return asyncio.run(answer(query))
        return asyncio.get_event_loop().run_until_complete(answer(query))

    async def go():
        called = as_agent(agent, workers=1, isolation="process")
        results = [await called.run(DatasetCase("q", query)) for query in ("run", "current")]
        await called.close()
        return results

    assert [result.outcome.output for result in asyncio.run(go())] == ["run", "current"]


def test_a_last_word_after_the_result_does_not_cut_the_worker_off():
    from agentunit.adapters._worker_process import EVENT

    def agent(query, trace):
        link = trace.events.link
        late = threading.Timer(0.05, lambda: link.send(EVENT, b'{"type": "late"}'))
        late.daemon = True
        late.start()
        return query

    async def go():
        called = as_agent(agent, workers=1, isolation="process")
        results = []
        for query in ("a", "b", "c"):
            results.append(await asyncio.wait_for(called.run(DatasetCase("q", query)), 60))
            # Long enough for the late word to come while no case is running; if it does not, the test proves less.
            await asyncio.sleep(0.3)
        await called.close()
        return results

    assert [result.outcome.output for result in asyncio.run(go())] == ["a", "b", "c"]


def test_a_thread_left_behind_does_not_speak_in_the_next_case():
    def agent(query, trace):
        if query == "first":

            def chatter():
                for _ in range(50):
                    trace.record("stray")
                    time.sleep(0.005)

            threading.Thread(target=chatter, daemon=True).start()
            return "a"
        trace.record("own")
        time.sleep(60)
        return "b"

    async def go():
        called = as_agent(agent, workers=1)
        await called.run(DatasetCase("q", "first"), timeout_s=20)
        second = await called.run(DatasetCase("q", "second"), timeout_s=1.5)
        await called.close()
        return second

    assert {event.type for event in asyncio.run(go()).trace.events} == {"own"}


def test_events_are_streamed_however_they_are_added(ask):
    def agent(query, trace):
        trace.record("a")
        trace.events.append(TraceEvent("b"))
        trace.events += [TraceEvent("c")]
        trace.events.extend([TraceEvent("d")])
        trace.events.insert(0, TraceEvent("e"))
        os._exit(1)

    assert [event.type for event in ask(agent, timeout_s=20).trace.events] == ["a", "b", "c", "d", "e"]


def test_an_endless_trace_is_ended(ask, monkeypatch):
    monkeypatch.setattr("agentunit.adapters._worker.MAX_REPLY_BYTES", 200_000)

    def agent(query, trace):
        while True:
            trace.record("again", text="x" * 1000)

    result = ask(agent, timeout_s=20)
    assert result.failure == "raised"
    assert "the most that is kept of one case" in result.outcome.error
    assert 100 < len(result.trace.events) < 1000


def test_an_endless_print_holds_up_nothing(ask):
    def agent(query):
        while True:
            print("x" * 1000)

    result = ask(agent, timeout_s=0.3)
    assert result.failure == "timeout"
    assert len(result.trace.metadata["stdout"]) < 70_000


def test_cases_and_answers_of_megabytes_pass(ask):
    case = DatasetCase("q", "x" * 5_000_000, context=["c" * 3_000_000])
    result = ask(lambda query, context: query + context[0], case=case, timeout_s=20)
    assert (result.failure, len(result.outcome.output)) == (None, 8_000_000)


def test_a_case_that_cannot_be_pickled_travels_as_json(ask):
    case = DatasetCase("q", "x", metadata={"lock": threading.Lock(), "n": 1})
    result = ask(lambda metadata: str(metadata["n"]), case=case, timeout_s=20)
    assert result.outcome.output == "1"


# Processes that an agent starts


def child_pids(folder: Path) -> list[int]:
    return [int(file.name) for file in folder.iterdir()]


def leave_pid(folder: Path, *, own_session: bool = False) -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=own_session)
    (folder / str(child.pid)).touch()


# An orphan of a dead agent that has a session of its own has no tie to us left, and is not found.
@pytest.mark.parametrize(("own_session", "end"), [(False, "hang"), (True, "hang"), (False, "die")])
def test_children_of_an_ended_agent_are_gone(ask, is_gone, tmp_path, own_session, end):
    def agent(query):
        leave_pid(tmp_path, own_session=own_session)
        leave_pid(tmp_path, own_session=own_session)
        if os.fork() == 0:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(60)
        time.sleep(0.05)
        if end == "die":
            os._exit(1)
        time.sleep(60)

    assert ask(agent, timeout_s=2).failure == ("timeout" if end == "hang" else "died")
    pids = child_pids(tmp_path)
    assert len(pids) == 3
    assert all(is_gone(pid) for pid in pids)


def test_a_dead_agent_whose_child_holds_the_line_is_still_found_dead(ask, tmp_path, is_gone):
    def agent(query):
        if os.fork() == 0:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(60)
        time.sleep(0.05)
        os._exit(9)

    result = ask(agent, timeout_s=2)
    assert (result.failure, result.outcome.error) == ("died", "the agent's process died (exit code 9)")
    assert all(is_gone(pid) for pid in child_pids(tmp_path))


def test_a_cancelled_case_is_ended_too(is_gone, tmp_path):
    def agent(query):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(60)

    async def go():
        called = as_agent(agent, workers=1)
        running = asyncio.ensure_future(called.run(DatasetCase("q"), timeout_s=60))
        waiting = asyncio.ensure_future(called.run(DatasetCase("q"), timeout_s=60))
        while not child_pids(tmp_path):
            await asyncio.sleep(0.01)
        waiting.cancel()
        running.cancel()
        outcomes = await asyncio.gather(running, waiting, return_exceptions=True)
        await called.close()
        return outcomes

    assert [type(outcome) for outcome in asyncio.run(go())] == [asyncio.CancelledError] * 2
    assert all(is_gone(pid) for pid in child_pids(tmp_path))


PARENT = """
    import asyncio, os, pathlib, subprocess, sys, time
    from agentunit.adapters.base import as_agent
    from agentunit.core.case import DatasetCase

    folder = pathlib.Path(sys.argv[1])

    def agent(query):
        child = subprocess.Popen(["sleep", "60"])
        (folder / str(child.pid)).touch()
        (folder / str(os.getpid())).touch()
        time.sleep(60)

    async def main():
        called = as_agent(agent, workers=2)
        await asyncio.gather(*[called.run(DatasetCase("q"), timeout_s=60) for _ in range(2)])

    asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends workers for us")
def test_hanging_workers_do_not_outlive_a_killed_run(tmp_path, is_gone):
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path)])
    try:
        for _ in range(1000):
            if len(child_pids(tmp_path)) == 4:
                break
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    pids = child_pids(tmp_path)
    assert len(pids) == 4
    assert all(is_gone(pid) for pid in pids)


def test_a_stuck_thread_does_not_hold_up_the_end_of_the_process():
    script = """
        import asyncio, time
        from agentunit.adapters.base import as_agent
        from agentunit.core.case import DatasetCase

        async def main():
            called = as_agent(lambda query: time.sleep(60))
            running = asyncio.ensure_future(called.run(DatasetCase("q")))
            await asyncio.sleep(0.1)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await called.close()

        asyncio.run(main())
        print("over")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=20, check=True
    )
    assert (done.stdout, done.stderr) == ("over\n", "")


# Where an agent runs


MODULE = """
    import asyncio, os, sys, threading, time

    loops = []

    def answer(query, trace):
        trace.record("step")
        print("printed", query)
        if query == "hang":
            time.sleep(60)
        if query == "die":
            os._exit(5)
        if query == "close the loop":
            asyncio.get_event_loop().close()
        if query == "leave threads":
            for _ in range(65):
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        if query == "leave a thread":
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        return str(os.getpid())

    async def async_answer(query):
        loops.append(asyncio.get_running_loop())
        if query == "cancel all":
            for task in asyncio.all_tasks():
                task.cancel()
            await asyncio.sleep(0)
        if query == "stop":
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0)
        if query == "raise":
            raise RuntimeError("by itself")
        if query == "leave a task":
            asyncio.ensure_future(asyncio.sleep(60))
        assert all(loop is loops[0] for loop in loops)
        return str(os.getpid())

    class Answering:
        def __call__(self, query):
            return str(os.getpid())

    instance = Answering()
"""


@pytest.fixture
def importable(tmp_path, monkeypatch):
    (tmp_path / "an_importable_agent.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__("an_importable_agent")
    sys.modules.pop("an_importable_agent", None)


def ask_named(name, *queries, timeout_s=None, **options):
    async def go():
        called = as_agent(f"an_importable_agent:{name}", **{"workers": 1, **options})
        results = [await called.run(DatasetCase("q", query), timeout_s=timeout_s) for query in queries]
        await called.close()
        return results

    return asyncio.run(go())


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("name", ["answer", "async_answer", "instance"])
def test_a_named_agent_runs_in_a_worker_that_is_reused(name):
    pids = {result.outcome.output for result in ask_named(name, "a", "b", "c")}
    assert len(pids) == 1
    assert str(os.getpid()) not in pids


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("name", ["answer", "async_answer", "instance"])
def test_a_named_agent_stays_in_this_process_if_asked(name):
    (result,) = ask_named(name, "a", isolation="thread")
    assert result.outcome.output == str(os.getpid())


def test_an_object_stays_in_this_process_unless_asked(importable, ask):
    for agent in (importable.answer, importable.async_answer):
        assert ask(agent).outcome.output == str(os.getpid())
        assert ask(agent, isolation="process").outcome.output != str(os.getpid())


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize(
    ("name", "fault", "failure"),
    [
        ("answer", "die", "died"),
        ("answer", "close the loop", None),
        ("answer", "leave threads", None),
        ("async_answer", "cancel all", "raised"),
        ("async_answer", "stop", "raised"),
    ],
)
def test_a_worker_is_replaced_after_a_fault(name, fault, failure):
    before, faulty, after, later = ask_named(name, "a", fault, "b", "c")
    assert faulty.failure == failure
    assert before.failure is after.failure is None
    assert before.outcome.output != after.outcome.output == later.outcome.output


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize(
    ("name", "query"), [("async_answer", "raise"), ("async_answer", "leave a task"), ("answer", "leave a thread")]
)
def test_a_worker_is_kept_after_what_harms_nobody(name, query):
    before, _, after = ask_named(name, "a", query, "b")
    assert before.outcome.output == after.outcome.output


@pytest.mark.usefixtures("importable")
def test_a_named_agent_that_hangs_is_replaced():
    hung, after = ask_named("answer", "hang", "a", timeout_s=3)
    assert (hung.failure, hung.trace.metadata["stdout"]) == ("timeout", "printed hang\n")
    assert after.failure is None


@pytest.mark.usefixtures("importable")
def test_a_named_agent_is_not_forked_where_that_is_not_safe(monkeypatch):
    here = str(os.getpid())
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        assert ask_named("answer", "a")[0].outcome.output == here
        assert ask_named("answer", "a", isolation="process")[0].outcome.output != here
    # A process for each of very many cases at once.
    assert ask_named("async_answer", "a", workers=17)[0].outcome.output == here
    assert ask_named("answer", "a", workers=17)[0].outcome.output != here
    # A fork would not have the thread that a client of the agent's module needs.
    over = threading.Event()
    client = threading.Thread(target=over.wait, daemon=True)
    client.start()
    assert ask_named("answer", "a")[0].outcome.output == here
    over.set()
    client.join()
    assert ask_named("answer", "a")[0].outcome.output != here


def test_without_processes_a_thread_is_given_up(ask, capfd):
    ended, over = threading.Event(), threading.Event()

    def agent(query, trace):
        trace.record("before")
        print("before")
        ended.wait(20)
        print("late")
        trace.record("late")
        over.set()
        return "late"

    result = ask(agent, timeout_s=0.1, isolation="thread")
    ended.set()
    assert over.wait(20)
    assert capfd.readouterr() == ("", "")
    assert result.failure == "timeout"
    assert "its thread cannot be ended and was left to itself" in result.outcome.error
    assert "in agent)" in result.outcome.error
    assert [event.type for event in result.trace.events] == ["before"]
    assert result.trace.metadata["stdout"] == "before\n"


@pytest.mark.parametrize("make", [CallableAgent, as_agent])
def test_a_wrong_isolation_is_refused(make):
    with pytest.raises(ValueError, match=r"isolation must be auto, process or thread; received 'fork'"):
        make(str.upper, isolation="fork")
