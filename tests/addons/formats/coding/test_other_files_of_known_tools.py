"""Other files of tools that are known: web exports, outputs of resolvers, older eval files, one file a simulation."""

from __future__ import annotations

import json

import pytest

from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.metrics.builtin import ToolSuccessMetric
from agentunit.metrics.inputs import Item
from agentunit.traces.reading import TraceFiles


@pytest.fixture
def read(tmp_path):
    """The one record of a file with this value, and what it was read as."""

    def read_value(value, name="file.json"):
        path = tmp_path / name
        path.write_text(json.dumps(value), encoding="utf-8")
        files = TraceFiles([path])
        [found] = files
        assert isinstance(found, Record), found
        return found, next(iter(files.notes.formats))

    return read_value


def calls_of(record):
    return [event.payload for event in record.trace.events if event.type == "tool_call"]


LINES = [
    {"type": "user", "timestamp": "2026-05-01T10:00:00Z", "message": {"role": "user", "content": "Read the PDF."}},
    {
        "type": "assistant",
        "timestamp": "2026-05-01T10:00:01Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c1", "name": "Skill", "input": {"skill": "pdf"}},
                {"type": "tool_use", "id": "c2", "name": "Read", "input": {"file_path": "a.pdf"}},
            ],
        },
    },
    {
        "type": "user",
        "timestamp": "2026-05-01T10:00:02Z",
        "message": {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "Launching skill: pdf", "is_error": False},
                {"type": "tool_result", "tool_use_id": "c2", "content": "no such file", "is_error": True},
            ],
        },
    },
]


@pytest.mark.parametrize("name", ["loglines", "messages"])
def test_the_lines_of_claude_code_within_one_object(read, name):
    record, format = read({name: LINES})
    assert (format, record.case.query) == ("claude-code", "Read the PDF.")
    assert [(call["name"], call["status"]) for call in calls_of(record)] == [("Skill", "success"), ("Read", "error")]
    [skill] = [event for event in record.trace.events if event.type == "skill"]
    assert (skill.payload["name"], skill.timestamp) == ("pdf", 1777629601.0)


def test_the_output_of_the_resolver_of_openhands(read):
    events = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Fix it."}},
        {
            "id": 1,
            "source": "agent",
            "action": "run",
            "args": {"command": "make"},
            "tool_call_metadata": {"function_name": "execute_bash", "tool_call_id": "c1"},
        },
        {
            "id": 2,
            "source": "agent",
            "observation": "run",
            "content": "error",
            "cause": 1,
            "extras": {"metadata": {"exit_code": 2}},
        },
    ]
    row = {
        "issue": {"owner": "ada", "repo": "tool", "number": 7, "title": "It breaks."},
        "issue_type": "issue",
        "instruction": "Fix it.",
        "git_patch": "diff --git a/tool.py b/tool.py\n--- a/tool.py\n+++ b/tool.py\n",
        "history": events,
        "metrics": {"accumulated_cost": 0.5},
        "success": True,
    }
    record, format = read(row, "output.jsonl")
    assert (format, record.case.id, record.case.query) == ("openhands", "ada/tool/7", "Fix it.")
    assert [(call["name"], call["status"]) for call in calls_of(record)] == [("execute_bash", "error")]
    assert record.trace.metadata["files_touched"] == ["tool.py"]
    assert record.trace.metadata["cost"] == 0.5
    # What the resolver thinks of its own work is no verdict.
    assert record.outcome.success is None


def test_the_turns_of_an_older_eval_file_of_adk(read):
    turns = [
        {"query": "Hi", "expected_tool_use": [], "reference": "Hello."},
        {
            "query": "Roll a die.",
            "expected_tool_use": [{"tool_name": "roll", "tool_input": {"sides": 6}}],
            "reference": "It is a 4.",
        },
    ]
    record, format = read(turns)
    assert (format, record.case.query, record.outcome.output) == ("adk-eval-set", "Hi", "It is a 4.")
    assert [(call["name"], call["arguments"]) for call in calls_of(record)] == [("roll", {"sides": 6})]
    assert ToolSuccessMetric().judge(Item(record.case, record.trace, record.outcome)).value is None


def test_one_simulation_of_tau2_a_file(read, tmp_path):
    simulation = {
        "id": "s1",
        "task_id": "40",
        "trial": 0,
        "termination_reason": "user_stop",
        "messages": [
            {"role": "user", "content": "Cancel my flight."},
            {"role": "assistant", "content": "It is canceled."},
        ],
    }
    record, format = read(simulation)
    assert (format, record.case.id, record.outcome.output) == ("tau2", "40/trial-0", "It is canceled.")

    voice = tmp_path / "voice.json"
    voice.write_text(json.dumps({**simulation, "messages": None, "ticks": []}))
    [refused] = TraceFiles([voice])
    assert isinstance(refused, InputError)
    assert "needs a list of 'messages'" in refused.reason


def test_a_session_of_qwen_code_is_not_taken_for_one_of_claude_code(read, tmp_path):
    path = tmp_path / "session.jsonl"
    prompt = "Hi\n<qwen:user-prompt-submit-context>\nA hook said this.\n</qwen:user-prompt-submit-context>"
    lines = [
        {"uuid": "u1", "sessionId": "s", "type": "system", "subtype": "ui_telemetry", "systemPayload": {"a": 1}},
        {"uuid": "u2", "sessionId": "s", "type": "user", "message": {"role": "user", "parts": [{"text": prompt}]}},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    files = TraceFiles([path])
    [record] = files
    assert (next(iter(files.notes.formats)), record.case.query) == ("qwen-code", "Hi")


LOADED = "<skill>\n<name>pdf</name>\n<path>/s/SKILL.md</path>\n</skill>"


def test_an_agent_that_codex_spawned_was_handed_a_task(tmp_path):
    path = tmp_path / "rollout.jsonl"
    lines = [
        {"timestamp": "2026-05-01T10:00:00Z", "type": "session_meta", "payload": {"id": "t1"}},
        {
            "timestamp": "2026-05-01T10:00:01Z",
            "type": "response_item",
            "payload": {
                "type": "function_call",
                "call_id": "c1",
                "name": "spawn_agent",
                "arguments": json.dumps({"agent_type": "explorer", "message": "Look."}),
            },
        },
        {
            "timestamp": "2026-05-01T10:00:02Z",
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": LOADED}],
            },
        },
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    [record] = TraceFiles([path])
    assert [(each.from_agent, each.to_agent) for each in record.trace.handoffs] == [("codex", "explorer")]
    assert [event.payload["name"] for event in record.trace.events if event.type == "skill"] == ["pdf"]
