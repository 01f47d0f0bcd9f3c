"""Which tools are declared, and whether calls obey their schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import agentunit
from agentunit import DatasetCase, Outcome, Record, TraceLog, decode_record, encode_record
from agentunit.backends.json_schema import SchemaError
from agentunit.core.results import encode_json
from agentunit.metrics.tools import DeclaredTool, ToolArgumentValidityMetric, declared_tools

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def call(name: str | None, arguments: Any = None, **facts: Any) -> dict[str, Any]:
    payload = {"name": name, "arguments": arguments, **facts}
    return {"type": "tool_call", "payload": {key: value for key, value in payload.items() if value is not None}}


def checked(tools: Any, *calls: dict[str, Any], offered: Any = None) -> agentunit.MetricResult:
    trace = {"events": list(calls), "metadata": {} if offered is None else {"tools": offered}}
    return ToolArgumentValidityMetric().evaluate({"id": "q1", "tools": tools}, trace, "done")


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "function", "function": {"name": "t", "description": "d", "parameters": SCHEMA}},
        {"type": "function", "name": "t", "parameters": SCHEMA, "strict": True},
        {"name": "t", "input_schema": SCHEMA},
        {"name": "t", "inputSchema": SCHEMA, "annotations": {}},
        {"name": "t", "parameters": SCHEMA},
        {"name": "t", "parameters": json.dumps(SCHEMA)},
        {"toolSpec": {"name": "t", "inputSchema": {"json": SCHEMA}}},
        {"functionDeclarations": [{"name": "t", "parametersJsonSchema": SCHEMA}]},
    ],
)
def test_every_shape_of_a_declaration_is_read(entry: dict[str, Any]) -> None:
    assert declared_tools([entry]) == [DeclaredTool("t", SCHEMA)]
    for tools, offered in (([entry], None), (None, [entry]), (["t"], [entry]), ([entry], ["t"])):
        result = checked(tools, call("t", {"n": 1}), call("t", {"n": "one"}), offered=offered)
        assert result.value == 0.5


def test_declarations_keep_server_and_version_and_what_is_none_is_left_out() -> None:
    entries = [{"name": "t", "server": "files", "version": 2}, 5, None, {}, {"name": ""}, {"name": 5}, "", [], "plain"]
    assert declared_tools(entries, None, "text", 5) == [DeclaredTool("t", None, "files", "2"), DeclaredTool("plain")]
    assert declared_tools({"t": {"parameters": SCHEMA}, "u": 5}) == [DeclaredTool("t", SCHEMA)]


def test_calls_are_counted_by_hand() -> None:
    tools = [{"name": "t", "parameters": SCHEMA}, "free", {"name": "bad", "parameters": {"type": "colour"}}]
    result = checked(
        tools,
        call("t", {"n": 1}),
        call("t", '{"n": 2}'),
        call("t", {"n": 1, "m": 2}),
        call("t", "{n: 1}"),
        call("t", ""),
        call("t"),
        call("free", {"n": 1}),
        call("bad", {"n": 1}),
        call("bad", {}),
        call("nowhere", {}),
        call(None, {}),
    )
    assert result.value == 2 / 5
    assert result.detail == {
        "n_calls": 11,
        "n_checked": 5,
        "n_valid": 2,
        "invalid": [
            {"call": 3, "name": "t", "problems": ["$: additional property 'm' is not allowed"]},
            {"call": 4, "name": "t", "problems": ["$: the arguments are not JSON"]},
            {"call": 5, "name": "t", "problems": ["$: 'n' is a required property"]},
        ],
        "without_schema": ["free"],
        "unknown_tools": ["nowhere", "(unnamed)"],
        "broken_schemas": [{"name": "bad", "problem": result.detail["broken_schemas"][0]["problem"]}],
        "n_without_arguments": 1,
        "backend": "schema",
        "why": "t, call 3 (3 of 5 calls invalid): $: additional property 'm' is not allowed",
    }
    assert "colour" in result.detail["broken_schemas"][0]["problem"]


@pytest.mark.parametrize(
    ("tools", "calls", "reason"),
    [
        (None, [call("t", {})], "no tool declares a schema"),
        (["t"], [call("t", {})], "no tool declares a schema"),
        ([{"name": "t", "parameters": SCHEMA}], [], "no tool_call events"),
        ([{"name": "t", "parameters": SCHEMA}], [call("u", {}), call("t")], "no call states arguments"),
        ([{"name": "t", "parameters": {"$ref": "#/nowhere"}}], [call("t", {})], "no call states arguments"),
        ([{"name": "t", "parameters": {"$ref": "https://example.org/s"}}], [call("t", {})], "no call states arguments"),
        ([{"name": "t", "parameters": {"$ref": "#"}}], [call("t", {})], "no call states arguments"),
    ],
)
def test_without_anything_to_check_there_is_no_value(tools: Any, calls: list[Any], reason: str) -> None:
    result = checked(tools, *calls)
    assert result.value is None
    assert reason in result.detail["reason"]
    assert "error" not in result.detail


def test_of_two_servers_the_one_that_was_called_counts() -> None:
    offered = [
        {"name": "t", "server": "a", "parameters": {"required": ["x"]}},
        {"name": "t", "server": "b", "parameters": {"required": ["y"]}},
    ]
    assert checked(None, call("t", {"x": 1}, server="a"), offered=offered).value == 1.0
    assert checked(None, call("t", {"x": 1}, server="b"), offered=offered).value == 0.0
    # Without a server either may have been meant.
    assert checked(None, call("t", {"x": 1}), call("t", {"z": 1}), offered=offered).value == 0.5


def test_a_long_trace_does_not_make_a_long_detail() -> None:
    result = checked([{"name": "t", "parameters": SCHEMA}], *[call("t", {}) for _ in range(500)])
    assert (result.value, result.detail["n_checked"], len(result.detail["invalid"])) == (0.0, 500, 100)


@given(st.lists(st.dictionaries(st.sampled_from("nm"), st.integers() | st.text(max_size=3)), min_size=1, max_size=6))
def test_agrees_with_the_validator_call_by_call(arguments: list[dict[str, Any]]) -> None:
    validator = Draft202012Validator(SCHEMA)
    expected = sum(validator.is_valid(each) for each in arguments) / len(arguments)
    assert checked([{"name": "t", "parameters": SCHEMA}], *[call("t", each) for each in arguments]).value == expected


class Model:
    """As Pydantic's models are, which MCP's SDK returns."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, mode: str, by_alias: bool) -> Any:
        assert (mode, by_alias) == ("json", True)
        return self.fields


def test_objects_of_an_sdk_are_read_live_and_after_they_were_written() -> None:
    trace = TraceLog(metadata={"tools": [Model(name="t", inputSchema=SCHEMA)]})
    trace.record("tool_call", name="t", arguments={"n": 1}, result=Model(content=[], isError=True))
    live = Record(DatasetCase("q1"), trace, Outcome(output="done"))
    for record in (live, decode_record(encode_record(live))):
        (case,) = agentunit.score([record], ["tool_argument_validity", "tool_success"])
        assert {name: each.value for name, each in case.scores.items()} == {
            "tool_argument_validity": 1.0,
            "tool_success": 0.0,
        }


def test_what_cannot_be_dumped_is_written_as_text() -> None:
    class Odd(Model):
        def model_dump(self, *, mode: str, by_alias: bool) -> Any:
            raise RuntimeError("cannot")

        def __str__(self) -> str:
            return "odd"

    class Listed(Odd):
        def model_dump(self, *, mode: str, by_alias: bool) -> Any:
            return [self]

    assert encode_json({"a": Odd(), "b": Listed(), "c": Model(x=1)}) == b'{"a":"odd","b":"odd","c":{"x":1}}'


def test_a_schema_that_cannot_be_used_is_not_tried_for_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []

    def refuse(arguments: Any, schemas: Any) -> list[str]:
        tried.append(arguments)
        raise SchemaError("it takes too long")

    monkeypatch.setattr("agentunit.metrics.tools._problems", refuse)
    tools = [{"name": "book", "input_schema": {"type": "object"}}]
    events = [{"type": "tool_call", "payload": {"name": "book", "arguments": {"n": n}}} for n in range(100)]
    result = ToolArgumentValidityMetric().evaluate({"id": "q1", "tools": tools}, {"events": events}, "done")
    assert (len(tried), result.value, result.detail["n_checked"]) == (3, None, 0)
    assert result.detail["broken_schemas"] == [{"name": "book", "problem": "it takes too long"}]


def test_an_agent_that_failed_before_any_tool_call_says_nothing_about_tools():
    from agentunit import Outcome
    from agentunit.metrics.builtin import ToolSuccessMetric

    result = ToolSuccessMetric().evaluate({"id": "q"}, None, Outcome(success=False, error="KeyError: 'KEY'"))
    assert result.value is None
    assert result.detail["reason"] == "the agent failed before any tool call"
    # A run that did end, and says that it did not succeed, is scored as ever.
    assert ToolSuccessMetric().evaluate({"id": "q"}, None, Outcome(success=False)).value == 0.0
