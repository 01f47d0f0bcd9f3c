"""Live capture: spans find the capture they belong to, wherever the agent runs and however it ends."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import agentunit
from agentunit.adapters._callable import CallableAgent
from agentunit.core.case import DatasetCase
from agentunit.core.trace import TraceLog
from agentunit.installation import install_command
from agentunit.traces.live import capture as live
from agentunit.traces.live.capture import CaptureError, capture_spans
from agentunit.traces.live.captured import Captured, write_into
from agentunit.traces.spans import Span


def tool(name, **attributes):
    """A finished tool span."""
    start_tool(name, **attributes).end()


def start_tool(name, **attributes):
    shared = {"openinference.span.kind": "TOOL", "tool.name": name, "input.value": "{}"}
    return trace.get_tracer("desk").start_span(name, attributes={**shared, **attributes})


def names(captured: TraceLog):
    return [event.payload["name"] for event in captured.events if event.type == "tool_call"]


def test_spans_become_events_among_the_users_own():
    with capture_spans() as captured:
        captured.record("note", text="before")
        asked = {"openinference.span.kind": "AGENT", "input.value": "Why?", "output.value": "Because."}
        with trace.get_tracer("desk").start_as_current_span("triage", attributes=asked):
            tool("search", **{"output.value": "found"})
        captured.record("note", text="after")
        captured.metadata["cost"] = 0.5
    assert [event.type for event in captured.events] == ["note", "tool_call", "note"]
    call = captured.events[1].payload
    assert (call["status"], call["result"], call["agent"]) == ("success", "found", "triage")
    assert captured.metadata["cost"] == 0.5
    assert captured.metadata["duration_s"] > 0
    assert captured.metadata["spans"] == {"captured": 2}


def test_an_empty_block_is_an_empty_trace():
    with capture_spans() as captured:
        pass
    assert captured.events == []
    assert captured.metadata["spans"] == {"captured": 0}


def test_what_the_block_raises_is_raised_and_its_spans_are_kept():
    kept = []

    def work():
        with capture_spans() as captured:
            kept.append(captured)
            tool("search")
            raise LookupError

    with pytest.raises(LookupError):
        work()
    assert names(kept[0]) == ["search"]


def test_concurrent_tasks_do_not_mix():
    async def work(number, all_open):
        with capture_spans() as captured:
            await all_open.wait()
            await asyncio.gather(*(asyncio.to_thread(tool, f"{number}-{step}") for step in range(3)))
            with trace.get_tracer("desk").start_as_current_span("around"):
                await asyncio.sleep(0)
                tool(f"{number}-last")
        return captured

    async def go():
        all_open = asyncio.Barrier(5) if hasattr(asyncio, "Barrier") else asyncio.Event()
        if isinstance(all_open, asyncio.Event):
            all_open.set()
        return await asyncio.gather(*(work(number, all_open) for number in range(5)))

    for number, captured in enumerate(asyncio.run(go())):
        assert sorted(names(captured)) == [f"{number}-0", f"{number}-1", f"{number}-2", f"{number}-last"]
        assert "unattributed" not in captured.metadata["spans"]


def test_concurrent_threads_do_not_mix():
    barrier, found = threading.Barrier(4), {}

    def work(number):
        with capture_spans() as captured:
            barrier.wait()
            tool(f"tool-{number}")
            # A trace of its own, as frameworks start it that do not know of ours.
            away = trace.get_tracer("desk").start_span("away", context=context.Context())
            inner = {"openinference.span.kind": "TOOL", "tool.name": f"far-{number}"}
            within = trace.set_span_in_context(away, context.Context())
            desk = trace.get_tracer("desk")
            in_bare_thread(lambda: desk.start_span("far", within, attributes=inner).end())
            away.end()
            barrier.wait()
        found[number] = captured

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, captured in found.items():
        assert names(captured) == [f"tool-{number}", f"far-{number}"]
        assert len(captured.metadata["trace_id"]) == 2


def in_bare_thread(function):
    """Run in a thread that knows nothing of where it was started."""
    thread = threading.Thread(target=contextvars.Context().run, args=(function,))
    thread.start()
    thread.join()


def test_a_bare_thread_belongs_to_the_only_capture_that_is_open():
    with capture_spans() as captured:
        in_bare_thread(lambda: tool("bare"))
    assert names(captured) == ["bare"]


def test_what_may_belong_to_several_captures_is_counted_by_each():
    async def work(both_open, done):
        with capture_spans() as captured:
            await both_open.wait()
            await done.wait()
        return captured

    async def go():
        both_open, done = asyncio.Event(), asyncio.Event()
        tasks = [asyncio.create_task(work(both_open, done)) for _ in range(2)]
        both_open.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        in_bare_thread(lambda: tool("bare"))
        done.set()
        return await asyncio.gather(*tasks)

    for captured in asyncio.run(go()):
        assert names(captured) == []
        assert captured.metadata["spans"] == {"captured": 0, "unattributed": 1}


def test_what_comes_late_is_not_taken_for_the_next_capture():
    with capture_spans() as first:
        left = start_tool("left")
        within = trace.set_span_in_context(left, context.Context())
    with capture_spans() as second:
        in_bare_thread(lambda: trace.get_tracer("desk").start_span("late", within).end())
        left.end()
    assert names(first) == ["left"]
    assert second.events == []
    assert "unattributed" not in second.metadata["spans"]


def test_a_span_that_never_ends_is_kept_without_a_verdict():
    with capture_spans() as captured:
        running = start_tool("hang")
        failed = start_tool("fail")
        failed.set_status(trace.Status(trace.StatusCode.ERROR, "no"))
    running.end()
    failed.end()
    hang, fail = (event.payload for event in captured.events)
    assert hang["not_ended"]
    assert "status" not in hang
    assert (fail["not_ended"], fail["status"], fail["error"]) == (True, "error", "no")
    assert captured.metadata["spans"] == {"captured": 2, "not_ended": ["hang", "fail"]}


def test_a_capture_within_a_capture_is_part_of_both():
    with capture_spans() as outer:
        tool("one")
        with capture_spans() as inner:
            tool("two")
            in_bare_thread(lambda: tool("three"))
        tool("four")
    assert names(inner) == ["two", "three"]
    assert names(outer) == ["one", "two", "three", "four"]


def test_the_context_is_as_before_whatever_the_agent_left_in_it():
    with trace.get_tracer("desk").start_as_current_span("mine") as mine:
        with capture_spans() as captured:
            context.attach(trace.set_span_in_context(start_tool("leaked")))
        assert trace.get_current_span() is mine
    assert captured.metadata["spans"]["not_ended"] == ["leaked"]


def test_the_users_provider_and_exporter_go_on_working():
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for _ in range(2):
        with capture_spans(tracer_provider=provider) as captured:
            provider.get_tracer("desk").start_span("work").end()
        assert captured.metadata["spans"]["captured"] == 1
    work, case = exporter.get_finished_spans()[:2]
    assert (work.name, case.name) == ("work", "agentunit.case")
    assert work.parent.span_id == case.context.span_id
    assert len(exporter.get_finished_spans()) == 4


def test_a_provider_that_cannot_be_hashed_is_listened_to_once():
    class Provider(TracerProvider):  # as Logfire's
        __hash__ = None

        def __eq__(self, other):
            return NotImplemented

    provider = Provider(shutdown_on_exit=False)
    for _ in range(2):
        with capture_spans(tracer_provider=provider) as captured:
            provider.get_tracer("desk").start_span("work").end()
        assert captured.metadata["spans"]["captured"] == 1


def test_a_sampler_that_records_nothing_is_named():
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    with capture_spans(tracer_provider=provider) as captured:
        provider.get_tracer("desk").start_span("work").end()
    (problem,) = captured.metadata["spans"]["problems"]
    assert "sampler" in problem


def test_a_provider_that_is_none_of_the_sdk_is_refused():
    with pytest.raises(CaptureError, match=r"TracerProvider of the OpenTelemetry SDK; received .*NoOpTracerProvider"):
        capture_spans(tracer_provider=trace.NoOpTracerProvider()).__enter__()


def test_odd_values_in_spans_and_traces_do_no_harm():
    spans = [
        Span("t", "a", attributes={"openinference.span.kind": 7, "gen_ai.operation.name": ["chat"]}),
        Span("t", "b", "b", start_s=2.0, end_s=1.0, attributes={"openinference.span.kind": "TOOL", "tool.name": {}}),
    ]
    log = TraceLog()
    log.events = [{"type": "note"}]
    write_into(log, Captured(spans))
    assert log.events[0] == {"type": "note"}
    assert log.metadata["spans"]["captured"] == 2


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)


def test_nothing_of_opentelemetry_is_imported_unless_used():
    done = run_python(
        """
        import sys, agentunit, agentunit.adapters._callable
        agentunit.capture_spans, agentunit.instrument
        assert not [name for name in sys.modules if name.startswith("opentelemetry")]
        sys.modules["opentelemetry"] = None
        for use in (agentunit.instrument, lambda: agentunit.capture_spans().__enter__()):
            try:
                use()
            except Exception as error:
                print(error)
        """
    )
    assert done.stdout == f"capturing spans needs the extra otel: {install_command('otel')}\n" * 2, done.stderr


@pytest.fixture
def every_case(monkeypatch):
    monkeypatch.setattr(live, "_for_every_case", False)
    agentunit.instrument()


def ask(agent, isolation="auto", timeout_s=None):
    async def go():
        called = CallableAgent(agent, isolation=isolation)
        try:
            cases = [DatasetCase(f"q{number}", f"question {number}") for number in range(3)]
            return await asyncio.gather(*(called.run(case, timeout_s=timeout_s) for case in cases))
        finally:
            await called.close()

    return asyncio.run(go())


def answers(query, trace):
    trace.record("note", text=query)
    tool(f"find {query}")
    return query.upper()


async def answers_later(query, trace):
    trace.record("note", text=query)
    await asyncio.sleep(0)
    await asyncio.to_thread(tool, f"find {query}")
    return query.upper()


def answers_in_pieces(query, trace):
    trace.record("note", text=query)
    tool(f"find {query}")
    yield query.upper()


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
@pytest.mark.usefixtures("every_case")
@pytest.mark.parametrize(
    ("agent", "isolation"),
    [
        (answers, "thread"),
        (answers, "process"),
        (answers_in_pieces, "thread"),
        (answers_later, "auto"),
        (answers_later, "process"),
    ],
)
def test_every_case_has_its_own_spans(agent, isolation):
    for number, result in enumerate(ask(agent, isolation)):
        assert result.outcome.output == f"QUESTION {number}"
        assert [event.type for event in result.trace.events] == ["note", "tool_call"]
        assert names(result.trace) == [f"find question {number}"]
        assert result.trace.metadata["spans"] == {"captured": 1}


def test_without_instrument_nothing_is_captured(monkeypatch):
    monkeypatch.setattr(live, "_for_every_case", False)
    for result in ask(answers, "thread"):
        assert names(result.trace) == []
        assert "spans" not in result.trace.metadata


def works_then(hang):
    def agent(query, trace):
        trace.record("note", text=query)
        tool("done")
        start_tool("running")
        hang()

    return agent


def sleep_on():
    time.sleep(60)


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def deaf_in_c():
    # Neither a signal handler nor another thread runs in this process any more.
    all(itertools.repeat(True))


@needs_fork
@pytest.mark.usefixtures("every_case")
@pytest.mark.parametrize(
    ("hang", "failure"),
    [(sleep_on, "timeout"), (deaf_in_c, "timeout"), (kill_itself, "died")],
    ids=["sleeps", "deaf", "killed"],
)
def test_a_worker_that_is_killed_leaves_its_spans(hang, failure):
    for result in ask(works_then(hang), "process", timeout_s=1):
        assert result.failure == failure
        assert [event.type for event in result.trace.events] == ["note", "tool_call", "tool_call"]
        done, running = (event.payload for event in result.trace.events[1:])
        assert (done["name"], done["status"]) == ("done", "success")
        assert (running["name"], running["not_ended"]) == ("running", True)


@pytest.mark.usefixtures("every_case")
def test_cases_that_are_given_up_keep_their_spans():
    async def sleeps(query):
        tool("done")
        await asyncio.sleep(60)

    released = threading.Event()
    for result in ask(sleeps, timeout_s=1.5) + ask(works_then(released.wait), "thread", timeout_s=1.5):
        assert result.failure == "timeout"
        assert names(result.trace)[0] == "done"
    released.set()


@pytest.mark.usefixtures("every_case")
def test_an_agent_that_raises_keeps_its_spans():
    def agent(query):
        tool("done")
        raise LookupError("no such order")

    for result in ask(agent, "thread"):
        assert result.outcome.error.startswith("LookupError: no such order")
        assert names(result.trace) == ["done"]


def test_instrument_names_what_it_knows():
    with pytest.raises(ValueError, match=r"name must be one of langgraph, openai-agents, .*; received 'letta'"):
        agentunit.instrument("letta")


@pytest.mark.usefixtures("every_case")
@pytest.mark.parametrize(
    ("name", "packages"),
    [
        ("langchain", "langgraph openinference-instrumentation-langchain"),
        ("Pydantic_AI", "pydantic-ai-slim"),
        ("google-adk", "google-adk"),
        ("ag2", '"ag2[openai]" openinference-instrumentation-ag2'),
        ("strands", '"strands-agents[openai]"'),
        ("agno", "agno openinference-instrumentation-agno"),
        ("agent_framework", "agent-framework-core agent-framework-openai"),
        ("haystack", "haystack-ai opentelemetry-haystack"),
    ],
)
def test_instrument_says_what_to_install(name, packages, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    monkeypatch.setenv("ENABLE_SENSITIVE_DATA", "true")
    monkeypatch.setenv("HAYSTACK_CONTENT_TRACING_ENABLED", "true")
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "false")
    for module in (
        "openinference",
        "pydantic_ai",
        "google.adk",
        "ag2",
        "strands",
        "agent_framework",
        "haystack_integrations",
    ):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CaptureError, match=f"Try: pip install {packages}".replace("[", r"\[")):
        agentunit.instrument(name)


class FakeInstrumentor:
    """Stands where an instrumentation of OpenInference would."""

    is_instrumented_by_opentelemetry = False
    fits = True
    calls: list[dict] = []  # noqa: RUF012

    def instrument(self, **options):
        type(self).calls.append(options)
        type(self).is_instrumented_by_opentelemetry = self.fits

    def instrumentation_dependencies(self):
        return ("smolagents >= 99",)


@pytest.fixture
def fake_instrumentor(monkeypatch, every_case):
    kind = type("FrameworkInstrumentor", (FakeInstrumentor,), {"calls": []})
    for name in ("openinference", "openinference.instrumentation"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    for name in ("smolagents", "crewai"):
        module = types.ModuleType(f"openinference.instrumentation.{name}")
        module.BaseInstrumentor, module.FrameworkInstrumentor = FakeInstrumentor, kind
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr("agentunit.traces.live.instrument._turned_on", [])
    return kind


def test_instrument_turns_a_framework_on_once(fake_instrumentor):
    agentunit.instrument("smolagents")
    agentunit.instrument("smolagents", "smolagents")
    assert fake_instrumentor.calls == [{"tracer_provider": trace.get_tracer_provider()}]


def test_instrument_leaves_alone_what_the_user_turned_on(fake_instrumentor):
    fake_instrumentor.is_instrumented_by_opentelemetry = True
    agentunit.instrument("smolagents")
    assert fake_instrumentor.calls == []


def test_instrument_says_when_versions_do_not_fit(fake_instrumentor):
    fake_instrumentor.fits = False
    with pytest.raises(CaptureError, match="asks for smolagents >= 99; that is not installed"):
        agentunit.instrument("smolagents")


@pytest.mark.parametrize(("set_by_user", "after"), [(None, "true"), ("false", "false")])
def test_instrument_turns_the_telemetry_of_crewai_off(fake_instrumentor, monkeypatch, set_by_user, after):
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", set_by_user or "")
    if set_by_user is None:
        monkeypatch.delenv("CREWAI_DISABLE_TELEMETRY")
    agentunit.instrument("crewai")
    assert os.environ["CREWAI_DISABLE_TELEMETRY"] == after
    assert fake_instrumentor.calls[0]["use_event_listener"]


@pytest.mark.usefixtures("every_case")
@pytest.mark.parametrize(("set_by_user", "after"), [(None, "true"), ("false", "false")])
def test_instrument_has_agent_framework_record_contents(monkeypatch, set_by_user, after):
    seen = []
    observability = types.ModuleType("agent_framework.observability")
    observability.enable_instrumentation = lambda: seen.append(os.environ["ENABLE_SENSITIVE_DATA"])
    monkeypatch.setitem(sys.modules, "agent_framework", types.ModuleType("agent_framework"))
    monkeypatch.setitem(sys.modules, observability.__name__, observability)
    monkeypatch.setattr("agentunit.traces.live.instrument._turned_on", [])
    monkeypatch.setenv("ENABLE_SENSITIVE_DATA", set_by_user or "")
    if set_by_user is None:
        monkeypatch.delenv("ENABLE_SENSITIVE_DATA")
    agentunit.instrument("agent-framework")
    assert seen == [after]


@pytest.mark.usefixtures("every_case")
def test_instrument_says_what_ag2_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "ag2", types.ModuleType("ag2"))
    monkeypatch.setattr("agentunit.traces.live.instrument._turned_on", [])
    with pytest.warns(UserWarning, match="TelemetryMiddleware"):
        agentunit.instrument("ag2")
