"""Blame: which signs are seen where, and who is never blamed."""

from __future__ import annotations

import pytest

from agentunit import DatasetCase, Record, TraceEvent, TraceLog
from agentunit.multiagent import blame


def says(agent, content, role="assistant"):
    return TraceEvent("message", {"role": role, "agent": agent, "content": content})


def ran(agent, words, status):
    call = {"name": "code_execution", "agent": agent, "status": status, "derived_from": "the executor's words"}
    return [TraceEvent("tool_call", call), says(agent, words)]


CODE = "Here is the code that reads the table:\n```python\nprint(table)\n```"


def signs_of(events):
    found = blame(TraceLog(events))
    return {each.step: set(each.signs) - {"early", "length"} for each in found.steps}


def test_a_failure_is_charged_to_whoever_wrote_the_code():
    failed = ran("terminal", "exitcode: 1 (execution failed)", "error")
    found = signs_of([says("boss", "Read the table.", "user"), says("coder", CODE), *failed, says("boss", "Fix it.")])
    assert found == {0: set(), 1: {"failed"}, 3: set()}


@pytest.mark.parametrize(
    ("said", "sign"),
    [
        ("Let us assume that the price is 20 dollars for everyone.", "assumed"),
        (CODE, "unrun"),
        ("The total is therefore one hundred and twenty dollars.", "contradicted"),
    ],
)
def test_signs_in_words(said, sign):
    found = signs_of([says("a", said), says("b", "I disagree with that, since children are free.")])
    assert found == {0: {sign, "contradicted"}, 1: set()}


def test_a_failed_call_a_repeated_step_and_a_failure_passed_over():
    call = TraceEvent("tool_call", {"name": "search", "agent": "a", "arguments": {"q": "Oslo"}, "status": "error"})
    found = signs_of([call, says("b", "The capital of that country is surely Oslo."), call])
    assert found == {0: {"failed"}, 1: {"ignored_failure"}, 2: {"failed", "repeated"}}
    dealt_with = signs_of([call, says("b", "The search failed, so let me look elsewhere for it.")])
    assert dealt_with[1] == set()


def test_the_human_and_the_results_are_never_blamed():
    events = [
        says("user", "Assume it is so.", "user"),
        says("a", "It is so, I think."),
        *ran("x", "exitcode: 0", "success"),
    ]
    found = blame(Record(DatasetCase("q1"), TraceLog(events)))
    assert [each.agent for each in found.agents] == ["a"]
    assert [each.step for each in found.steps] == [1]


@pytest.mark.parametrize(
    "events", [[], [says("user", "Hello there, my friend.", "user")], [TraceEvent("llm_call", {})]]
)
def test_without_agents_there_is_a_reason(events):
    found = blame({"trace": {"events": [{"type": each.type, "payload": each.payload} for each in events]}})
    assert (found.agents, found.steps) == ([], [])
    assert found.reason == "no event names the agent that acted"
