"""No kind of agent receives what its answer is graded by."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agentunit.adapters._callable import CallableAgent
from agentunit.adapters.base import AgentResult
from agentunit.adapters.command import CommandAgent
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome
from agentunit.core.trace import TraceLog
from agentunit.engine.recording.agent_view import AgentView
from agentunit.engine.recording.runner import plan_run, record
from agentunit.engine.recording.suite import Suite, SuiteError, load_suite
from agentunit.metrics.assertions import ContainsMetric
from agentunit.metrics.base import CompositeMetric, MetricInfo, MetricResult
from agentunit.metrics.inputs import Item
from agentunit.metrics.registry import MetricRegistry, registry, resolve_metrics
from agentunit.store.sqlite import Store

KEY = "S3CRET"
ANSWER_KEYS = (
    "contains",
    "regex",
    "json_schema",
    "rubric",
    "check",
    "expected_state",
    "expected_tool_calls",
    "expected_refund",
    "references",
    "captions",
    "transcript",
    "sensitive",
    "necessary",
    "promoted_from",
)
SHARED = {
    "image_path": "a.png",
    "video_path": "a.mp4",
    "audio_path": "a.wav",
    "consent": {"email": True},
    "user_data": {"email": "jane@example.com"},
    "epsilon": 0.5,
    "level": 3,
}


def case() -> DatasetCase:
    return DatasetCase(
        "q1",
        "What is the secret?",
        expected_output={"answer": [KEY]},
        tools=["search"],
        context=["Nobody knows."],
        metadata={**dict.fromkeys(ANSWER_KEYS, KEY), **SHARED, "mine": KEY},
        extra={"ground_truth": KEY},
    )


def told(case: DatasetCase, metadata: Any, context: Any, tools: Any, query: Any) -> str:
    seen = [case.id, case.expected_output, case.extra, case.metadata, case.tools, case.context, metadata]
    return json.dumps([*seen, context, tools, query])


def echo(case: Any, metadata: Any, context: Any, tools: Any, query: Any) -> str:
    return told(case, metadata, context, tools, query)


def echo_everything(**everything: Any) -> str:
    return told(*(everything[name] for name in ("case", "metadata", "context", "tools", "query")))


def echo_pieces(case: Any, metadata: Any, context: Any, tools: Any, query: Any) -> Any:
    yield told(case, metadata, context, tools, query)


async def echo_async(case: Any, metadata: Any, context: Any, tools: Any, query: Any) -> str:
    return told(case, metadata, context, tools, query)


async def echo_async_pieces(case: Any, metadata: Any, context: Any, tools: Any, query: Any) -> Any:
    yield told(case, metadata, context, tools, query)


class EchoAgent:
    """An agent in the shape that framework adapters have."""

    concurrency_hint = None

    async def run(self, case: DatasetCase, *, timeout_s: Any = None, seed: Any = None) -> AgentResult:
        return AgentResult(Outcome(output=echo(case, case.metadata, None, None, None)), TraceLog(), 0.0)

    async def close(self) -> None:
        pass


class EchoHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        reply = json.dumps({"output": body}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def address() -> Any:
    server = ThreadingHTTPServer(("127.0.0.1", 0), EchoHandler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


COMMAND = [sys.executable, "-c", "import sys, json; print(json.dumps({'output': sys.stdin.read()}))"]
AGENTS = {
    "function": (lambda: echo, None),
    "keywords": (lambda: echo_everything, None),
    "generator": (lambda: echo_pieces, None),
    "coroutine": (lambda: echo_async, None),
    "async generator": (lambda: echo_async_pieces, None),
    "worker process": (lambda: CallableAgent(echo, isolation="process"), 30),
    "command": (lambda: CommandAgent(COMMAND), 30),
    "own adapter": (EchoAgent, None),
    "http": (None, 30),
}


@pytest.mark.parametrize("kind", AGENTS)
def test_no_kind_of_agent_receives_an_answer_key(kind: str, tmp_path: Path, address: str) -> None:
    make, timeout_s = AGENTS[kind]
    agent = address if make is None else make()
    # Not one of the metrics that read these keys is in the suite: whoever scores later must not find them known.
    suite = Suite([case()], agent, metrics=["response_time"], timeout_s=timeout_s, grader_fields=["mine"])
    with Store(tmp_path / "runs.db") as store:
        plan = plan_run(suite, store)
        record(plan, store)
        (stored,) = store.records(plan.header.id)
    assert stored.record.outcome.error is None
    seen = stored.record.outcome.output
    assert KEY not in seen
    assert "a.png" in seen
    assert "jane@example.com" in seen
    # What is stored is the whole case.
    assert stored.record.case.metadata == case().metadata
    assert stored.record.case.expected_output == {"answer": [KEY]}


class Undeclared:
    name = "politeness"

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, 1.0)


class Declared(Undeclared):
    info = MetricInfo("politeness", "style", "", inputs=("case.metadata.tone or case.metadata.level", "outcome.output"))


def test_a_metric_that_does_not_say_what_it_reads_hides_all_metadata() -> None:
    assert AgentView([Undeclared()])(case()).metadata == {}
    assert AgentView([CompositeMetric([ContainsMetric(), Undeclared()])])(case()).metadata == {}
    assert AgentView([Undeclared()], agent_fields=["level"])(case()).metadata == {"level": 3}
    assert AgentView([Undeclared()]).hides_undeclared([case()])
    assert not AgentView([Undeclared()], agent_fields=[]).hides_undeclared([case()])
    assert not AgentView([Undeclared()]).hides_undeclared([DatasetCase("q", metadata={"contains": "x"})])


def test_what_a_metric_only_names_among_its_inputs_is_an_answer_key() -> None:
    assert "level" not in AgentView([Declared()])(case()).metadata
    assert AgentView([CompositeMetric([ContainsMetric()])])(case()).metadata["level"] == 3


def test_an_assertion_of_another_name_hides_the_field_of_that_name() -> None:
    metrics = resolve_metrics([{"contains": {"name": "level"}}])
    assert "level" not in AgentView(metrics)(case()).metadata


def test_a_registered_metric_hides_its_keys_although_no_suite_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    other = MetricRegistry(entry_point_group=None)
    other.register("politeness", Declared)
    other.register("city", ContainsMetric(name="epsilon"))
    other.register("several", lambda: CompositeMetric([ContainsMetric(name="consent")]))
    other.register("broken", lambda: 1 / 0)
    monkeypatch.setattr(registry, "answer_keys", other.answer_keys)
    assert not {"level", "epsilon", "consent"} & set(AgentView([])(case()).metadata)


def test_a_case_built_by_hand_may_hold_anything() -> None:
    assert AgentView([])(DatasetCase("q", metadata={1: "a", "expected": 2})).metadata == {1: "a"}  # type: ignore[dict-item]
    assert AgentView([])(DatasetCase("q", metadata=["a"])).metadata == {}  # type: ignore[arg-type]


def test_context_and_tools_may_be_for_graders_only() -> None:
    seen = AgentView([], grader_fields=["context", "tools"])(case())
    assert (seen.context, seen.tools) == (None, None)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"agent_fields": ["contains"]}, "the metric 'contains' grades by it"),
        ({"agent_fields": ["expected_output"]}, "reserved for graders"),
        ({"agent_fields": ["a"], "grader_fields": ["a"]}, "grader_fields lists it, too"),
        ({"agent_fields": "level"}, "must be a list of names"),
        ({"grader_fields": [3]}, "must be names of fields; received 3"),
        ({"grader_fields": ["query"]}, "every agent receives 'query'"),
        ({"agent_fields": ["context"]}, "every agent receives 'context'"),
    ],
)
def test_fields_that_cannot_be_listed_are_refused(fields: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        with pytest.raises(SuiteError, match=problem):
            plan_run(Suite([case()], echo, metrics=["response_time"], **fields), store)
        assert store.runs() == []


def test_a_yaml_suite_lists_fields(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text("dataset: d.jsonl\nagent: a:b\ngrader_fields: [gold]\nagent_fields: [level]\n")
    suite = load_suite(path)
    assert (suite.grader_fields, suite.agent_fields) == (("gold",), ("level",))


def describe_class(own: MetricRegistry, name: str) -> MetricInfo:
    found = own._own[name]
    module, _, attribute = found.partition(":")
    info: MetricInfo = getattr(import_module(module), attribute).info
    return info


def test_every_field_that_a_metric_reads_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The declarations against what the metrics' code asks for."""
    read: set[str] = set()

    class Spy(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            read.add(key)
            return super().get(key, default)

        def __getitem__(self, key: str) -> Any:
            read.add(key)
            return super().__getitem__(key)

    monkeypatch.setattr(Item, "case_metadata", property(lambda item: Spy(item.case.metadata)))
    own = MetricRegistry(entry_point_group=None)
    for name in own.names():
        info = describe_class(own, name)
        named = {place.strip() for each in info.inputs for place in each.split(" or ")}
        assert {f"case.metadata.{key}" for key in info.metadata_inputs} >= {
            place for place in named if place.startswith("case.metadata.")
        }, name
        try:
            metric = own.create(name)
        except Exception:  # noqa: BLE001  # a judge or a model that is not here
            continue
        read.clear()
        metric.evaluate(DatasetCase("q", "?", metadata={}), TraceLog(), Outcome(output="yes"))
        assert read <= set(info.metadata_inputs), name


def test_names_that_mean_the_right_answer_are_shown_only_where_the_suite_lists_them() -> None:
    case = DatasetCase("q1", "?", metadata={"gold": "4", "Label": "x", "city": "Oslo"})
    assert AgentView([])(case).metadata == {"city": "Oslo"}
    assert AgentView([], agent_fields=["gold", "city"])(case).metadata == {"gold": "4", "city": "Oslo"}
