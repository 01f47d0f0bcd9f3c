"""Runs of coding agents that are lines by kind: what the tables say, and what must not be guessed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from agentunit.addons.formats.coding.session_lines import steps_of
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.metrics.builtin import CostMetric, TokenUsageMetric
from agentunit.metrics.inputs import Item
from agentunit.traces.reading import TraceFiles

CORPUS = Path(__file__).resolve().parents[3] / "corpus"
FORMATS = (
    "pi", "copilot-cli", "copilot-chat", "cursor", "opencode", "cline", "kimi", "droid", "openhands-v1", "codex-exec",
    "gemini-stream", "antigravity", "openclaw-telemetry",
)  # fmt: skip
FILES = sorted(
    path
    for name in FORMATS
    for path in (CORPUS / name).iterdir()
    if path.suffix in (".json", ".jsonl") and ".expected" not in path.name
)
ODD_VALUES = (None, True, 3, -1, 2.5, "x", [], {}, [1], {"a": 1}, ["s"], [[{}]])


@pytest.fixture
def read(tmp_path):
    """The records of a file with these values, one per line, and the notes of its reading."""

    def read_values(*values):
        path = tmp_path / "session.jsonl"
        path.write_text("\n".join(json.dumps(value) for value in values), encoding="utf-8")
        files = TraceFiles([path])
        return list(files), files.notes

    return read_values


def lines_of(name, file):
    return [json.loads(line) for line in (CORPUS / name / file).read_text("utf-8").splitlines()]


def calls_of(record):
    return [event.payload for event in record.trace.events if event.type == "tool_call"]


def test_a_call_whose_end_is_not_stated_has_no_status(read):
    started = [line for line in lines_of("copilot-cli", "events.jsonl") if line["type"] != "tool.execution_complete"]
    [record], _ = read(*started)
    assert [call.get("status") for call in calls_of(record)] == [None, None, None]

    blocks = lines_of("droid", "session.jsonl")
    for block in blocks[3]["message"]["content"]:
        del block["is_error"]
    [record], _ = read(*blocks)
    assert [(call["result"], call.get("status")) for call in calls_of(record)] == [
        ("3 notes.txt", None),
        ("no such file", None),
    ]


def test_tokens_and_costs_of_zero_are_unknown(read):
    lines = lines_of("pi", "session.jsonl")
    for line in lines:
        if "usage" in line.get("message", {}):
            line["message"]["usage"] = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}
    [record], _ = read(*lines)
    item = Item(record.case, record.trace, record.outcome)
    assert TokenUsageMetric().judge(item).value is None
    assert CostMetric().judge(item).value is None


def test_the_work_of_a_sub_agent_is_its_own(read):
    [record], _ = read(*lines_of("copilot-cli", "events.jsonl"))
    assert [(call["name"], call["agent"]) for call in calls_of(record)] == [
        ("shell", "copilot-cli"),
        ("task", "copilot-cli"),
        ("read", "explore"),
    ]
    [handoff] = record.trace.handoffs
    assert (handoff.from_agent, handoff.to_agent, handoff.success) == ("copilot-cli", "explore", True)
    assert record.outcome.output == "It has 3 lines; missing.txt is not there."


def test_totals_of_parts_add_up_and_later_totals_of_one_part_replace_earlier_ones(read):
    [record], _ = read(*lines_of("openhands-v1", "events.jsonl"))
    assert record.trace.metadata["usage"]["prompt_tokens"] == 210 + 40
    assert record.trace.metadata["cost"] == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("name", "file", "line"),
    [
        ("pi", "session.jsonl", {"type": "telepathy", "id": "a9"}),
        ("copilot-cli", "events.jsonl", {"type": "telepathy", "data": {}}),
        ("codex-exec", "events.jsonl", {"type": "item.completed", "item": {"id": "i9", "type": "telepathy"}}),
        ("kimi", "wire.jsonl", {"type": "telepathy", "time": 1}),
    ],
)
def test_a_kind_of_line_that_no_table_has_is_counted(read, name, file, line):
    [record], notes = read(*lines_of(name, file), line)
    assert [field for field in notes.not_understood if "telepathy" in field]
    assert record.trace.metadata["not_understood"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_field_that_no_table_has_is_counted(tmp_path, path):
    text = path.read_text("utf-8")
    values = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    # What kinds of lines say that add nothing is not looked at.
    for line in values if isinstance(values, list) else [values]:
        line["newly_added"] = "something"
    made = tmp_path / path.name
    made.write_text(json.dumps(values) if path.suffix == ".json" else "\n".join(map(json.dumps, values)))
    files = TraceFiles([made])
    assert [each for each in files if isinstance(each, InputError)] == []
    assert files.notes.not_understood["newly_added"] >= 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_odd_values_in_any_place_cost_no_more_than_their_line(tmp_path, path):
    """Every file once with each of its values replaced: something is read or refused with a reason."""
    text = path.read_text("utf-8")
    values = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else [json.loads(text)]
    random_values = random.Random(path.name)
    made = tmp_path / path.name
    for _ in range(25):
        copy = json.loads(json.dumps(values))
        _replace_one(copy, random_values)
        made.write_text("\n".join(map(json.dumps, copy)))
        for each in TraceFiles([made], format=path.parent.name):
            assert isinstance(each, Record) or "cannot be read (" not in str(each), each


def _replace_one(value, random_values):
    while isinstance(value, (dict, list)) and value:
        key = random_values.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if not isinstance(value[key], (dict, list)) or random_values.random() < 0.2:
            value[key] = random_values.choice(ODD_VALUES)
            return
        value = value[key]


@pytest.mark.parametrize(
    ("lines", "skills"),
    [
        (
            [
                {"type": "init", "timestamp": "2026-05-01T10:00:00Z", "session_id": "g", "model": "m"},
                {"type": "tool_use", "tool_name": "activate_skill", "tool_id": "c1", "parameters": {"name": "pdf"}},
                {"type": "tool_result", "tool_id": "c1", "status": "error", "output": "not found"},
                {"type": "tool_use", "tool_name": "activate_skill", "tool_id": "c2", "parameters": {"name": "docx"}},
                {"type": "tool_result", "tool_id": "c2", "status": "success", "output": "# Docx"},
            ],
            [("pdf", "error"), ("docx", None)],
        ),
        (
            [
                {"type": "turn.started"},
                {
                    "type": "item.completed",
                    "item": {
                        "id": "i",
                        "type": "command_execution",
                        "command": "cat /home/ada/.agents/skills/pdf/SKILL.md",
                        "exit_code": 0,
                    },
                },
            ],
            [("pdf", None)],
        ),
    ],
)
def test_a_skill_that_was_loaded_is_a_fact(read, lines, skills):
    [record], _ = read(*lines)
    loaded = [event.payload for event in record.trace.events if event.type == "skill"]
    assert [(each["name"], each.get("status")) for each in loaded] == skills


def test_a_row_of_a_table_that_nothing_reads_does_not_load():
    with pytest.raises(ValueError, match=r"a step must be one of .*; received 'sing'"):
        steps_of("sing text=content")
    with pytest.raises(ValueError, match=r"a fact of 'say' must be one of .*; received 'txt'"):
        steps_of("say txt=content")


@pytest.mark.parametrize(
    "line",
    [
        {"type": "message", "id": "m1", "message": {"role": "user", "content": "Hi"}},
        {"type": "session", "id": "s1"},
        {"type": "init", "id": 3},
        {"role": "user", "message": {"content": "Hi"}},
        {"type": "say", "text": "Hi"},
    ],
)
def test_lines_without_evidence_of_a_tool_are_not_taken_for_one(read, line):
    found, notes = read(line, line)
    assert not set(notes.formats) & set(FORMATS)
    assert all(isinstance(each, InputError) for each in found) or not found


def test_chats_of_aider_in_which_nothing_was_asked_are_counted(tmp_path):
    started = "# aider chat started at 2026-05-0{} 10:00:00\n\n> Aider v0.86.1  \n"
    history = tmp_path / ".aider.chat.history.md"
    asked = "\n#### Hi?  \n\nHello.\n\n> Tokens: 3.2k sent, 21 received. Cost: $0.01 message, $0.01 session.  \n"
    history.write_text(started.format(1) + "\n#### /add notes.txt  \n\n" + started.format(2) + asked)

    files = TraceFiles([tmp_path])
    [record] = files

    assert (record.case.id, record.case.query, record.outcome.output) == ("2026-05-02T10:00:00", "Hi?", "Hello.")
    assert [event.payload for event in record.trace.events if event.type == "llm_call"] == [
        {"cost": 0.01, "agent": "aider"}
    ]
    assert dict(files.notes.problems) == {
        "a chat of Aider in which nothing was asked; it was left out": 1,
        "Aider rounds token counts above 999; they were left out": 1,
    }
    # A folder in which Aider was never asked anything is no error.
    history.write_text(started.format(1))
    assert list(TraceFiles([tmp_path])) == []


def test_the_folder_of_a_conversation_of_openhands_is_one_run(tmp_path):
    lines = [line for line in lines_of("openhands-v1", "events.jsonl") if "State" not in line["kind"]]
    stats = lines_of("openhands-v1", "events.jsonl")[-1]["value"]
    conversation = tmp_path / "conversations" / "c0ffee"
    (conversation / "events").mkdir(parents=True)
    state = {"id": "c0ffee", "agent": {"llm": {"model": "gpt-5"}}, "stats": stats, "execution_status": "finished"}
    (conversation / "base_state.json").write_text(json.dumps(state))
    for place, line in enumerate(lines):
        (conversation / "events" / f"event-{place:05d}-x.json").write_text(json.dumps(line))
    (tmp_path / "conversations" / "notes.txt").write_text("not a trace")

    for named in (conversation, tmp_path):
        files = TraceFiles([named])
        [record] = files
        assert record.case.id == "c0ffee"
        assert [call["name"] for call in calls_of(record)] == ["shell", "read", "finish"]
        assert record.trace.metadata["usage"]["prompt_tokens"] == 250
        assert not files.notes.not_understood
