"""A callable as an agent, wherever it runs: what it is given, what it may return, how it may fail."""

from __future__ import annotations

import asyncio
import functools
import io
import os
import sys
import threading
import warnings
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.adapters._call import AgentCall
from agentunit.adapters._callable import CallableAgent
from agentunit.adapters.base import as_agent
from agentunit.adapters.threads_and_processes import outside_loops
from agentunit.core.case import DatasetCase
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceEvent

CASE = DatasetCase("q1", "Capital of France?", tools=[{"name": "search"}], context=["Paris."], metadata={"level": 1})


@pytest.fixture(params=["thread", "process", "loop"])
def ask_anywhere(request, ask):
    """Ask a synchronous function in a thread and in a worker process, and its asynchronous twin in the loop."""

    def ask_anywhere(function, **options):
        if request.param != "loop":
            return ask(function, isolation=request.param, **options)

        @functools.wraps(function)
        async def twin(*arguments, **named):
            return function(*arguments, **named)

        return ask(twin, **options)

    return ask_anywhere


# Parameters


def test_parameters_are_filled_by_name(ask_anywhere):
    def agent(metadata, tools, trace, context, seed, query, case):
        trace.record("seen")
        return {"output": [metadata, tools, context, seed, query, case.id]}

    result = ask_anywhere(agent, case=CASE, seed=7)
    assert result.outcome.output == [{"level": 1}, [{"name": "search"}], ["Paris."], 7, "Capital of France?", "q1"]
    assert [event.type for event in result.trace.events] == ["seen"]


class Callable:
    def __call__(self, question):
        return question

    def method(self, question):
        return question


def positional_only(question, /, trace):
    return question


def with_options(question, temperature=0.5, *, top_k=3):
    assert (temperature, top_k) == (0.5, 3)
    return question


def anything(*arguments):
    (question,) = arguments
    return question


def everything(**named):
    assert sorted(named) == ["case", "context", "metadata", "query", "seed", "tools", "trace"]
    return named["query"]


def beside_known_names(question, trace, context=()):
    assert trace.events == []
    return question


def two_settled(first, second, question):
    assert (first, second) == (1, 2)
    return question


def keeps_its_own(query, context):
    assert context == "chosen"
    return query


@pytest.mark.parametrize(
    "agent",
    [
        lambda q: q,
        lambda q="default": q,
        Callable(),
        Callable().method,
        positional_only,
        with_options,
        anything,
        everything,
        beside_known_names,
        functools.partial(two_settled, 1, 2),
        functools.partial(keeps_its_own, context="chosen"),
        str.strip,
        "".join,
    ],
)
def test_a_single_parameter_gets_the_query(ask, agent):
    assert ask(agent, "Paris?", case=DatasetCase("q1", "Paris?", context=["x"])).outcome.output == "Paris?"


def test_a_default_stands_for_what_a_case_does_not_have(ask):
    def agent(query, context=("none",), seed=42, tools=None):
        return f"{context} {seed} {tools}"

    assert ask(agent).outcome.output == "('none',) 42 None"


def test_an_agent_without_parameters_is_called_all_the_same(ask):
    assert ask(lambda: "always this").outcome.output == "always this"


@pytest.mark.parametrize(
    ("agent", "named"),
    [
        (lambda query, model: "", "'model'"),
        (lambda case, model: "", "'model'"),
        (lambda one, two: "", "'one', 'two'"),
        (functools.partial(lambda a, b, c: "", 1), "'b', 'c'"),
    ],
)
def test_parameters_that_nobody_can_fill_are_refused_before_the_run(agent, named):
    with pytest.raises(TypeError, match=f"as_agent: the agent's parameters must be among query, .*received {named}"):
        as_agent(agent)


def test_what_an_agent_does_to_its_case_stays_with_it(ask_anywhere):
    case = DatasetCase("q1", "?", expected_output={"a": [1]}, context=["c"], metadata={"deep": {"list": [1]}})

    def vandal(case, context, metadata):
        case.expected_output["a"].append(2)
        case.expected_output, case.id = "mine", "other"
        context.clear()
        metadata["deep"]["list"].append(2)
        return "done"

    assert ask_anywhere(vandal, case=case).outcome.output == "done"
    assert case == DatasetCase("q1", "?", expected_output={"a": [1]}, context=["c"], metadata={"deep": {"list": [1]}})


# Answers


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("Paris", Outcome(output="Paris")),
        ("", Outcome(output="")),
        ({"output": "Paris", "cost": 1, "mood": "good"}, Outcome(output="Paris", cost=1.0, extra={"mood": "good"})),
        ({"city": "Paris"}, Outcome(output={"city": "Paris"})),
        (MappingProxyType({"output": "Paris"}), Outcome(output="Paris")),
        ({"success": False}, Outcome(success=False)),
        (Outcome(True, ["a", 1], usage={"total_tokens": 3}), Outcome(True, ["a", 1], usage={"total_tokens": 3})),
        (Outcome(output={1, 2}), Outcome(output=[1, 2])),
        ("half a pair \ud800", Outcome(output="half a pair ?")),
    ],
    ids=repr,
)
def test_answers(ask_anywhere, returned, expected):
    result = ask_anywhere(lambda query: returned)
    assert result.failure is None
    assert result.outcome == expected
    assert result.elapsed_s > 0


def cyclic():
    loop = []
    loop.append(loop)
    return {"output": loop}


class OddString:
    def __str__(self):
        raise RuntimeError("no words for it")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: None, "the agent returned None"),
        (lambda: 42, "the agent returned an object of type int"),
        (lambda: ["Paris"], "the agent returned an object of type list"),
        (lambda: b"Paris", "the agent returned an object of type bytes"),
        (lambda: Callable(), "the agent returned an object of type Callable"),
        (lambda: {"output": "x", "cost": "a lot"}, "cost"),
        (lambda: {"output": "x", 1: 2}, "does not fit an outcome"),
        (lambda: Outcome(success="yes", output="x"), "success"),
        (lambda: Outcome(output=Callable()), "the agent's output holds an object of type Callable"),
        (lambda: {"output": {"deep": [Callable()]}}, "the agent's output holds an object of type Callable"),
        (cyclic, "the agent's output cannot be written as JSON: nested too deeply"),
        (lambda: Outcome(output="x", metadata={"odd": OddString()}), "no words for it"),
        (lambda: Outcome(output="x", usage=3), "usage"),
    ],
)
def test_what_is_no_answer_is_named(ask_anywhere, make, said):
    result = ask_anywhere(lambda query: make())
    assert (result.failure, result.outcome.success, result.trace.metadata["failure"]) == (
        "wrong_type",
        False,
        "wrong_type",
    )
    assert said in result.outcome.error


def test_the_same_outcome_object_may_be_handed_out_again():
    shared = Outcome(output="x")

    async def go():
        agent = as_agent(lambda query: shared)
        first = await agent.run(DatasetCase("a"))
        first.outcome.output = "changed"
        return await agent.run(DatasetCase("b"))

    assert asyncio.run(go()).outcome.output == "x"


def test_generators(ask):
    def pieces(query, trace):
        trace.record("start")
        yield "Pa"
        yield "ris"

    async def async_pieces(query):
        yield "Pa"
        await asyncio.sleep(0)
        yield "ris"

    async def hands_over_a_generator(query):
        return async_pieces(query)

    def with_outcome(query):
        yield "Par"
        yield {"cost": 0.5}
        yield "is"

    def with_return(query):
        yield "thinking"
        return {"output": "Paris"}

    for agent in (pieces, async_pieces, hands_over_a_generator, lambda q: pieces, lambda q: iter(["Par", "is"])):
        agent = agent("") if agent.__name__ == "<lambda>" and callable(agent("")) else agent
        for method in (None, "thread", "process"):
            result = ask(agent, isolation=method)
            assert (result.failure, result.outcome.output) == (None, "Paris")
            assert 0 <= result.trace.metadata["first_output_s"] <= result.elapsed_s
    result = ask(with_outcome)
    assert (result.outcome.output, result.outcome.cost) == ("Paris", 0.5)
    assert ask(with_return).outcome.output == "Paris"


def test_generators_that_go_wrong(ask_anywhere):
    closed = []

    def wrong_piece(query):
        try:
            yield "Pa"
            yield 3
        finally:
            closed.append(True)

    def breaks(query):
        yield "Pa"
        raise ValueError("torn")

    def nothing(query):
        yield from ()

    result = ask_anywhere(wrong_piece)
    assert (result.failure, result.outcome.output) == ("wrong_type", "Pa")
    assert "yielded an object of type int" in result.outcome.error
    result = ask_anywhere(breaks)
    assert (result.failure, result.outcome.output) == ("raised", "Pa")
    assert result.outcome.error.startswith("ValueError: torn (")
    assert "yielded nothing" in ask_anywhere(nothing).outcome.error


def test_a_function_that_hands_back_a_coroutine(ask):
    async def answer(query):
        await asyncio.sleep(0)
        return query

    for method in ("thread", "process", None):
        assert ask(lambda query: answer(query), "Paris?", isolation=method).outcome.output == "Paris?"
    for method in ("process", None):
        assert ask(functools.partial(answer), "Paris?", isolation=method).outcome.output == "Paris?"


# Failures


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no")


class Own(BaseException):
    pass


def nested(error):
    raise error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such city"), "ValueError: no such city (test_callable_agent.py:"),
        (KeyError("city"), "KeyError: 'city' (test_callable_agent.py:"),
        (ValueError("two\n  lines"), "ValueError: two lines ("),
        (ValueError(), "ValueError (test_callable_agent.py:"),
        (Mute(), "Mute: (its message cannot be read) ("),
        (Own("mine"), "Own: mine ("),
        (ValueError("half \ud800"), "ValueError: half \\ud800 ("),
        (StopIteration("early"), "StopIteration"),
        (MemoryError(), "MemoryError ("),
        (RecursionError("deep"), "RecursionError: deep ("),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exceptions_become_one_sentence(ask_anywhere, error, said, monkeypatch):
    monkeypatch.chdir(os.path.dirname(__file__))

    def agent(query, trace):
        trace.record("before")
        nested(error)

    result = ask_anywhere(agent)
    assert result.failure == result.trace.metadata["failure"] == "raised"
    assert said in result.outcome.error
    assert "\n" not in result.outcome.error
    assert result.outcome.success is False
    assert [event.type for event in result.trace.events] == ["before"]
    if not isinstance(error, StopIteration):
        assert "in nested" in result.outcome.error
        assert "raise error" in result.trace.metadata["traceback"]


def test_a_group_of_exceptions_names_the_first(ask):
    class Group(Exception):
        exceptions = (ValueError("inner"), KeyError("other"))

    def agent(query):
        raise Group("2 errors")

    assert ask(agent).outcome.error == "Group: 2 errors; the first: ValueError: inner"


def test_a_long_message_is_clipped(ask):
    def agent(query):
        raise ValueError("x" * 10_000_000)

    result = ask(agent)
    assert len(result.outcome.error) < 1000
    assert len(result.trace.metadata["traceback"]) < 10_000


@pytest.mark.parametrize(("code", "said"), [(None, "SystemExit"), (3, "SystemExit: 3"), ("bye", "SystemExit: bye")])
def test_an_exit_ends_the_case_only(ask_anywhere, code, said):
    result = ask_anywhere(lambda query: sys.exit(code))
    assert result.failure == result.trace.metadata["failure"] == "exit"
    assert result.outcome.error.startswith(f"the agent called sys.exit: {said} (")


def test_an_interrupt_of_its_own_ends_the_case_only(ask):
    def agent(query):
        raise KeyboardInterrupt

    for method in ("thread", "process"):
        assert ask(agent, isolation=method).outcome.error.startswith("KeyboardInterrupt (")


def test_a_fork_that_returns_into_the_run_is_stopped_there(ask_anywhere, tmp_path):
    def agent(query):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            return "from the child"
        os.waitpid(pid, 0)
        return "from the parent"

    result = ask_anywhere(agent)
    assert (result.failure, result.outcome.output) == (None, "from the parent")


# Traces


def test_every_call_has_a_fresh_trace():
    async def go():
        agent = as_agent(lambda query, trace: trace.record("only") and "x")
        return [await agent.run(DatasetCase(str(n))) for n in range(3)]

    assert [len(result.trace.events) for result in asyncio.run(go())] == [1, 1, 1]


def test_a_result_shares_nothing_with_the_agent():
    kept = []

    async def agent(query, trace):
        kept.append(trace)
        payload = {"list": [1]}
        kept.append(payload)
        trace.record("event", data=payload)
        return "x"

    async def go():
        return await as_agent(agent).run(DatasetCase("q1"))

    result = asyncio.run(go())
    kept[0].record("late")
    kept[1]["list"].append(2)
    assert [event.payload for event in result.trace.events] == [{"data": {"list": [1]}}]


def test_a_trace_that_was_filled_with_anything_is_kept_as_far_as_it_fits(ask_anywhere):
    def agent(query, trace):
        trace.events.append(TraceEvent("good", {"a": {1, 2}}))
        trace.events.append("no event")
        trace.events += [{"type": "as a dict", "mood": "odd"}]
        trace.events.append(TraceEvent("unwritable", {"odd": OddString()}))
        trace.interactions.append({"from_agent": "a", "to_agent": "b"})
        trace.handoffs = "none"
        trace.metadata["fine"] = 1
        return "answer"

    result = ask_anywhere(agent)
    assert (result.failure, result.outcome.output) == (None, "answer")
    assert [event.type for event in result.trace.events] == ["good", "as a dict"]
    assert result.trace.interactions[0].to_agent == "b"
    assert result.trace.handoffs == []
    assert result.trace.metadata["fine"] == 1
    assert result.trace.metadata["trace_error"].startswith("parts of the trace were left out: ")
    decode_record(encode_record(Record(CASE, result.trace, result.outcome)))


def test_a_failure_is_told_even_when_the_metadata_is_gone(ask_anywhere):
    def agent(query, trace):
        trace.metadata = None
        raise ValueError("x")

    assert ask_anywhere(agent).trace.metadata["failure"] == "raised"


def test_more_than_can_be_kept_is_a_failure(ask_anywhere, monkeypatch):
    monkeypatch.setattr("agentunit.adapters._call.MAX_REPLY_BYTES", 10_000)
    result = ask_anywhere(lambda query: "x" * 20_000)
    assert (result.failure, result.outcome.output) == ("raised", None)
    assert "the most that is kept of one case" in result.outcome.error


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(output=json_values, payload=st.dictionaries(st.text(), json_values, max_size=3), failed=st.booleans())
def test_sealing_keeps_all_json(output, payload, failed):
    call = AgentCall()
    call.trace.events.append(TraceEvent("e", payload, 1.0))
    call.finish(Outcome(output=output))
    if failed:
        call.fail("timeout", "too late")
    result = call.result()
    again = decode_record(encode_record(Record(CASE, result.trace, result.outcome)))
    assert (again.outcome, again.trace) == (result.outcome, result.trace)
    assert result.failure == ("timeout" if failed else None)


@settings(deadline=None)
@given(anything=json_values, metadata=json_values)
def test_any_data_in_place_of_a_trace_gives_a_result_that_can_be_stored(anything, metadata):
    call = AgentCall()
    call.trace.events = anything
    call.trace.metadata = metadata
    call.finish("answer")
    result = call.result()
    assert result.outcome.output == "answer"
    decode_record(encode_record(Record(CASE, result.trace, result.outcome)))


# Prints


def test_prints_are_kept_with_the_case_and_away_from_the_terminal(ask_anywhere, capfd):
    def agent(query):
        print("thinking", query)
        print("careful", file=sys.stderr)
        sys.stdout.writelines(["a", "b\n"])
        sys.stdout.buffer.write(b"bytes\n")
        sys.stdout.flush()
        return "x"

    result = ask_anywhere(agent)
    assert result.trace.metadata["stdout"] == "thinking Capital of France?\nab\nbytes\n"
    assert result.trace.metadata["stderr"] == "careful\n"
    assert capfd.readouterr() == ("", "")


def test_a_quiet_agent_leaves_no_prints(ask_anywhere):
    assert ask_anywhere(lambda query: "x").trace.metadata == {}


def test_prints_of_a_failed_case_are_kept(ask_anywhere):
    def agent(query):
        print("last words")
        raise ValueError

    assert ask_anywhere(agent).trace.metadata["stdout"] == "last words\n"


def test_endless_prints_are_cut_in_the_middle(ask_anywhere):
    def agent(query):
        print("first line")
        for _ in range(300):
            print("x" * 1000)
        print("last line")
        return "x"

    text = ask_anywhere(agent).trace.metadata["stdout"]
    assert len(text) < 66_000
    assert text.startswith("first line\n")
    assert text.endswith("last line\n")
    # 11 + 300 · 1001 + 10 = 300,321 characters, of which 65,536 are kept.
    assert "[234785 characters cut]" in text


def test_an_agent_that_asks_the_terminal_finds_the_end_of_input(ask_anywhere):
    result = ask_anywhere(lambda query: input("password? "))
    assert result.outcome.error.startswith("EOFError: ")


def test_streams_that_an_agent_leaves_in_sys_are_put_back(ask_anywhere):
    before = sys.stdout, sys.stderr, sys.stdin

    def vandal(query):
        sys.stdout = io.StringIO()
        sys.stderr.close()
        return "x"

    assert ask_anywhere(vandal).failure is None
    assert (sys.stdout, sys.stderr, sys.stdin) == before
    sys.stderr.write("")


@pytest.mark.parametrize("isolation", ["thread", "process", "auto"])
def test_eight_at_once_are_not_mixed_up(isolation, capfd):
    meeting = threading.Barrier(8, timeout=10)

    def agent(query, trace):
        if isolation == "thread":
            meeting.wait()
        for step in range(20):
            print(f"{query} {step}")
            trace.record("step", query=query, step=step)
        return query

    async def async_agent(query, trace):
        for step in range(20):
            print(f"{query} {step}")
            trace.record("step", query=query, step=step)
            await asyncio.sleep(0)
        return query

    async def go():
        called = CallableAgent(async_agent if isolation == "auto" else agent, workers=8, isolation=isolation)
        try:
            return await asyncio.gather(*[called.run(DatasetCase(str(n), f"case {n}")) for n in range(8)])
        finally:
            await called.close()

    for n, result in enumerate(asyncio.run(go())):
        assert result.outcome.output == f"case {n}"
        assert [(e.payload["query"], e.payload["step"]) for e in result.trace.events] == [
            (f"case {n}", step) for step in range(20)
        ]
        assert result.trace.metadata["stdout"] == "".join(f"case {n} {step}\n" for step in range(20))
    assert capfd.readouterr() == ("", "")


def test_the_runners_own_prints_reach_the_terminal_while_cases_run(capfd):
    async def agent(query):
        print("hidden")
        await asyncio.sleep(0.05)
        return "x"

    async def go():
        running = asyncio.ensure_future(as_agent(agent).run(DatasetCase("q1")))
        await asyncio.sleep(0.01)
        print("progress")
        await running

    asyncio.run(go())
    assert capfd.readouterr().out == "progress\n"


def test_what_a_call_raises_does_not_seem_to_come_of_a_missing_loop():
    async def answer():
        raise ValueError("no such city")

    with pytest.raises(ValueError, match="no such city") as raised:
        outside_loops(lambda: asyncio.run(answer()))
    assert raised.value.__context__ is None
