"""Asynchronous agents: canceled, refusing to be canceled, holding up the loop, exiting in their tasks."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from agentunit.adapters.base import as_agent
from agentunit.core.case import DatasetCase

needs_alarm = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs the system's alarm")


@pytest.fixture(autouse=True)
def short_grace(monkeypatch):
    monkeypatch.setattr("agentunit.adapters._callable.CANCEL_GRACE_S", 0.1)


async def sleeps(query, trace):
    trace.record("before")
    print("before")
    await asyncio.sleep(60)


def test_a_slow_agent_is_cancelled_where_it_stands(ask):
    result = ask(sleeps, timeout_s=0.05)
    assert result.failure == result.trace.metadata["failure"] == "timeout"
    assert result.outcome.error.startswith("timeout: no answer within 0.05 s (it was at ")
    assert result.outcome.error.endswith(" in sleeps)")
    assert [event.type for event in result.trace.events] == ["before"]
    assert result.trace.metadata["stdout"] == "before\n"


def test_a_cancelled_agent_may_clean_up(ask):
    async def agent(query, trace):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            trace.record("cleaned up")

    result = ask(agent, timeout_s=0.05)
    assert (result.failure, [event.type for event in result.trace.events]) == ("timeout", ["cleaned up"])


def test_a_generator_keeps_its_pieces_and_is_closed(ask):
    closed = []

    async def agent(query):
        try:
            yield "as far as "
            yield "it got"
            await asyncio.sleep(60)
        finally:
            closed.append(True)

    result = ask(agent, timeout_s=0.05)
    assert (result.failure, result.outcome.output, closed) == ("timeout", "as far as it got", [True])


def test_an_answer_after_cancellation_is_too_late(ask):
    async def agent(query):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "too late"

    assert ask(agent, timeout_s=0.05).failure == "timeout"


async def catches_cancellation(query):
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


async def catches_everything(query):
    while True:
        with contextlib.suppress(BaseException):
            await asyncio.sleep(60)


async def hides_in_a_task(query):
    await asyncio.gather(catches_everything(query), catches_cancellation(query))


async def leaves_a_task_behind(query):
    asyncio.get_running_loop().stubborn = asyncio.ensure_future(catches_everything(query))
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    "agent", [catches_cancellation, catches_everything, hides_in_a_task, leaves_a_task_behind], ids=lambda f: f.__name__
)
def test_an_agent_that_ignores_cancellation_holds_up_neither_the_case_nor_the_loops_end(ask, agent, caplog):
    with caplog.at_level(logging.WARNING):
        assert ask(agent, timeout_s=0.05).failure == "timeout"
    assert caplog.records == []


def test_a_stubborn_task_that_a_finished_case_left_holds_up_nothing(ask):
    async def agent(query):
        asyncio.get_running_loop().stubborn = asyncio.ensure_future(catches_everything(query))
        await asyncio.sleep(0)
        return "answered"

    assert ask(agent).outcome.output == "answered"


def test_tasks_that_a_finished_case_left_go_on_until_the_agent_is_closed():
    ticks = []

    async def background():
        while True:
            ticks.append(1)
            await asyncio.sleep(0.001)

    async def agent(query):
        if not ticks:
            asyncio.get_running_loop().kept = asyncio.ensure_future(background())
        await asyncio.sleep(0.01)
        return "answered"

    async def go():
        called = as_agent(agent)
        await called.run(DatasetCase("a"), timeout_s=20)
        between = len(ticks)
        await called.run(DatasetCase("b"), timeout_s=20)
        after = len(ticks)
        await called.close()
        closed = len(ticks)
        await asyncio.sleep(0.01)
        return between < after, closed == len(ticks)

    assert asyncio.run(go()) == (True, True)


# Code that blocks the loop


def spin():
    while True:
        pass


async def sleeps_in_the_loop(query, trace):
    trace.record("before")
    time.sleep(60)


async def spins_in_the_loop(query, trace):
    trace.record("before")
    spin()


async def blocks_later(query, trace):
    await asyncio.sleep(0.01)
    trace.record("before")
    time.sleep(60)


async def blocks_in_a_task(query, trace):
    await asyncio.gather(asyncio.sleep(60), sleeps_in_the_loop(query, trace))


async def blocks_while_cleaning_up(query, trace):
    trace.record("before")
    try:
        await asyncio.sleep(60)
    finally:
        time.sleep(60)


async def blocks_in_a_generator(query, trace):
    trace.record("before")
    yield "piece"
    time.sleep(60)


async def catches_what_it_can(query, trace):
    trace.record("before")
    for _ in range(3):
        with contextlib.suppress(BaseException):
            time.sleep(60)


async def retries_for_ever(query, trace):
    trace.record("before")
    while True:
        try:
            time.sleep(60)
        except:  # noqa: E722
            time.sleep(60)


async def passes_for_ever(query, trace):
    trace.record("before")
    await asyncio.sleep(0)

    def inner():
        while True:
            try:  # noqa: SIM105
                spin()
            except BaseException:  # noqa: BLE001, S110
                pass

    inner()


@needs_alarm
@pytest.mark.parametrize(
    "agent",
    [
        retries_for_ever,
        passes_for_ever,
        sleeps_in_the_loop,
        spins_in_the_loop,
        blocks_later,
        blocks_in_a_task,
        blocks_while_cleaning_up,
        blocks_in_a_generator,
        catches_what_it_can,
    ],
    ids=lambda f: f.__name__,
)
def test_an_agent_that_blocks_the_loop_is_ended(ask, agent):
    def tracer(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        result = ask(agent, timeout_s=0.1)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert result.failure == "timeout"
    assert "it held up the event loop with blocking code" in result.outcome.error
    assert [event.type for event in result.trace.events] == ["before"]
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@needs_alarm
def test_only_the_case_that_blocks_pays_for_it():
    async def agent(query, trace):
        if query == "block":
            time.sleep(60)
        await asyncio.sleep(0.02)
        return query

    async def go():
        called = as_agent(agent)
        results = await asyncio.gather(
            called.run(DatasetCase("a", "fine"), timeout_s=20),
            called.run(DatasetCase("b", "block"), timeout_s=0.1),
            called.run(DatasetCase("c", "fine"), timeout_s=20),
        )
        await called.close()
        return results

    assert [result.failure for result in asyncio.run(go())] == [None, "timeout", None]


@needs_alarm
def test_neighbors_of_a_case_that_blocks_get_the_lost_time_back():
    async def agent(query, trace):
        await asyncio.sleep(0)
        if query == "block":
            time.sleep(60)
        await asyncio.sleep(0.02)
        return query

    async def go():
        called = as_agent(agent)
        # All have the same time, which the one that blocks uses up for all.
        cases = [DatasetCase(query, query) for query in ("fine", "block", "too")]
        results = await asyncio.gather(*(called.run(case, timeout_s=1.5) for case in cases))
        await called.close()
        return results

    assert [result.failure for result in asyncio.run(go())] == [None, "timeout", None]


def test_what_ends_a_generator_fails_its_case_and_is_not_logged(ask, caplog):
    async def agent(query):
        raise GeneratorExit

    assert ask(agent).failure == "raised"
    gc.collect()
    assert caplog.records == []


@needs_alarm
def test_a_runner_that_is_busy_itself_is_left_alone():
    async def go():
        running = asyncio.ensure_future(as_agent(sleeps).run(DatasetCase("a"), timeout_s=0.05))
        await asyncio.sleep(0)
        # Past the deadline, and past the loop's patience: but this is not the case's code.
        time.sleep(0.4)
        return (await running).outcome.error

    assert "held up" not in asyncio.run(go())


@needs_alarm
def test_somebody_elses_alarm_is_not_touched(ask):
    def handler(number, frame):
        pass

    before = signal.signal(signal.SIGALRM, handler)
    try:
        assert ask(sleeps, timeout_s=0.05).failure == "timeout"
        assert signal.getsignal(signal.SIGALRM) == handler
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_answer_that_came_too_late_because_nothing_could_interrupt_it(ask):
    async def agent(query):
        time.sleep(0.1)
        return "late"

    results = []
    # No alarm in another thread: the loop stands still until the agent lets it go.
    thread = threading.Thread(target=lambda: results.append(ask(agent, timeout_s=0.02)))
    thread.start()
    thread.join()
    assert results[0].failure == "timeout"


def test_a_blocking_agent_can_be_asked_in_a_worker_process(ask):
    async def agent(query, trace):
        trace.record("before")
        # Never comes back to the interpreter, which alone could raise something in it.
        all(itertools.repeat(True))

    result = ask(agent, timeout_s=0.1, isolation="process")
    assert (result.failure, [event.type for event in result.trace.events]) == ("timeout", ["before"])


# Exits and cancellations


async def exits_in_a_task(query):
    await asyncio.gather(asyncio.sleep(60), exits(query))


async def exits_in_an_own_task(query):
    await asyncio.ensure_future(exits(query))


async def exits(query):
    await asyncio.sleep(0)
    sys.exit(3)


@pytest.mark.parametrize("agent", [exits, exits_in_a_task, exits_in_an_own_task], ids=lambda f: f.__name__)
def test_an_exit_ends_the_case_only(ask, agent):
    result = ask(agent, timeout_s=20)
    assert result.failure == "exit"
    assert "SystemExit: 3 (" in result.outcome.error
    assert "in exits)" in result.outcome.error


def test_a_task_that_is_cancelled_before_it_starts_makes_no_noise(ask):
    async def agent(query):
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await asyncio.sleep(0)
        return str(task.cancelled())

    assert ask(agent).outcome.output == "True"


def test_an_agent_that_cancels_itself(ask):
    async def agent(query):
        raise asyncio.CancelledError

    async def by_task(query):
        asyncio.current_task().cancel()
        await asyncio.sleep(60)

    for each in (agent, by_task):
        result = ask(each)
        assert result.failure == "raised"
        assert result.outcome.error.startswith("CancelledError: the agent canceled the task it runs in (")
        assert "test_async_agents.py:" in result.outcome.error


def test_a_cancelled_run_cancels_the_agent():
    seen = []

    async def agent(query):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def go():
        called = as_agent(agent)
        running = asyncio.ensure_future(called.run(DatasetCase("a")))
        await asyncio.sleep(0.01)
        running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            seen.append("raised")
        await called.close()

    asyncio.run(go())
    assert seen == ["cancelled", "raised"]


def test_the_loop_is_left_as_it_was(ask):
    made = []

    def factory(loop, coroutine, **options):
        made.append(coroutine)
        return asyncio.Task(coroutine, loop=loop, **options)

    async def agent(query):
        await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
        return "x"

    async def go():
        loop = asyncio.get_running_loop()
        loop.set_task_factory(factory)
        result = await as_agent(agent).run(DatasetCase("a"), timeout_s=20)
        return result.outcome.output, loop.get_task_factory() is factory

    assert asyncio.run(go()) == ("x", True)
    # The agent and its two sleeps, before those that the end of the loop adds.
    assert len(made) >= 3


def test_contextvars_and_many_tasks_keep_prints_apart(capfd):
    async def agent(query):
        async def part(name):
            await asyncio.sleep(0)
            print(query, name)
            await asyncio.to_thread(print, query, name, "thread")

        await asyncio.gather(*[part(n) for n in range(3)])
        return query

    async def go():
        called = as_agent(agent)
        return await asyncio.gather(*[called.run(DatasetCase(str(n), f"case {n}")) for n in range(8)])

    for n, result in enumerate(asyncio.run(go())):
        lines = result.trace.metadata["stdout"].splitlines()
        assert len(lines) == 6
        assert all(line.startswith(f"case {n} ") for line in lines)
    assert capfd.readouterr() == ("", "")


def test_a_whole_program_with_stubborn_agents_comes_to_its_end():
    script = """
        import asyncio, time
        from agentunit.adapters.base import as_agent
        from agentunit.core.case import DatasetCase

        async def agent(query):
            while True:
                try:
                    await asyncio.sleep(60)
                except BaseException:
                    if query == "block":
                        time.sleep(0.01)

        async def main():
            called = as_agent(agent)
            results = await asyncio.gather(
                *[called.run(DatasetCase("q", query), timeout_s=0.1) for query in ("a", "b", "block")]
            )
            await called.close()
            print([result.failure for result in results])

        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['timeout', 'timeout', 'timeout']\n", "")
