"""Files that the real frameworks wrote of the same small support case: a look-up, a failed refund, an answer."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from typing import Any

import pytest

import agentunit
from agentunit.addons.formats.chats._inspect_archives import archive_rows
from agentunit.addons.formats.chats.adk_sessions import ADK_SESSION
from agentunit.addons.formats.chats.autogen import AUTOGEN, AUTOGEN_CONSOLE
from agentunit.addons.formats.chats.inspect_logs import INSPECT_ARCHIVE, INSPECT_LOG
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.results import InputError
from agentunit.traces.formats import detect
from agentunit.traces.formats import opening_of as formats_opening_of
from agentunit.traces.formats_base import Source

# The format that each recorded file must be told to be, as the command line tells it.
FORMAT_OF = {
    "adk_session.json": "adk-session",
    "adk_session_snake_case.json": "adk-session",
    "adk_session_tool_raised.json": "adk-session",
    "ag2_chat_result.json": "autogen",
    "ag2_group_chat.json": "autogen",
    "autogen_console.txt": "autogen-console",
    "autogen_task_result.json": "autogen",
    "autogen_team_state.json": "autogen",
    "inspect_support_desk.eval": "inspect-eval",
    "inspect_support_team.eval": "inspect-eval",
}
QUESTION = "Why was I charged twice for order A-1042?"
ANSWER = "The refund needs a supervisor."
LOOK_UP = ("lookup_order", {"order_id": "A-1042"}, "success")
REFUND = ("refund", {"charge_id": "ch_2"}, "error")


def _tools(record: Any) -> list[tuple[str, Any, str]]:
    payloads = [event.payload for event in record.trace.events if event.type == "tool_call"]
    return [(call["name"], call["arguments"], call["status"]) for call in payloads]


def _tokens(record: Any) -> dict[str, Any]:
    (scores,) = agentunit.score([record], ["token_usage"])
    return scores.scores["token_usage"].result.detail


@pytest.mark.parametrize("name", FORMAT_OF)
def test_detection(recorded: Any, name: str) -> None:
    found = detect(formats_opening_of(name, recorded(name)))
    assert found is not None
    assert found.name == FORMAT_OF[name]


@pytest.mark.parametrize(
    ("format_", "name", "transfer", "tokens"),
    [
        (AUTOGEN, "autogen_task_result.json", "transfer_to_billing", (410, 50, 460)),
        (AUTOGEN, "autogen_team_state.json", "transfer_to_billing", (410, 50, 460)),
        # Gemini's thoughts, 5 tokens, are part of the completion and of the stated total.
        (ADK_SESSION, "adk_session.json", "transfer_to_agent", (410, 55, 465)),
        (ADK_SESSION, "adk_session_snake_case.json", "transfer_to_agent", (410, 55, 465)),
    ],
)
def test_two_agents(
    read: Any, recorded: Any, format_: Any, name: str, transfer: str, tokens: tuple[int, int, int]
) -> None:
    (record,) = read(format_, recorded(name))

    assert (record.case.query, record.outcome.output) == (QUESTION, ANSWER)
    look_up, handing_over, refund = _tools(record)
    assert (look_up, refund) == (LOOK_UP, REFUND)
    assert handing_over[0] == transfer
    assert [(h.from_agent, h.to_agent) for h in record.trace.handoffs] == [("triage", "billing")]
    found = _tokens(record)
    assert (found["prompt_tokens"], found["completion_tokens"], found["total_tokens"]) == tokens
    failed = [e.payload for e in record.trace.events if e.payload.get("status") == "error"]
    assert "locked" in failed[0]["error"]
    assert failed[0]["agent"] == "billing"
    assert all(event.timestamp for event in record.trace.events)
    assert decode_record(encode_record(record)) == record


def test_adk_counts_cached_tokens(read: Any, recorded: Any) -> None:
    (record,) = read(ADK_SESSION, recorded("adk_session.json"))
    usages = [event.payload["usage"] for event in record.trace.events if event.type == "llm_call"]
    cached = [usage.get("prompt_tokens_details", {}).get("cached_tokens", 0) for usage in usages]
    assert cached == [0, 64, 32, 0]


def test_adk_tool_that_raised_ends_the_session(read: Any, recorded: Any) -> None:
    (record,) = read(ADK_SESSION, recorded("adk_session_tool_raised.json"))
    (call,) = [event.payload for event in record.trace.events if event.type == "tool_call"]
    assert (call["status"], call["error"]) == ("error", "PermissionError: order A-1042 is shipped")
    assert call["derived_from"]
    assert record.outcome.output is None
    assert record.outcome.error == "PermissionError: order A-1042 is shipped"


def test_ag2_chat_result(read: Any, recorded: Any) -> None:
    (record,) = read(AUTOGEN, recorded("ag2_chat_result.json"))
    assert record.case.query == "Sum 2 and 2, then lock door 1."
    # The task was given by "boss", whose "Go on." is not an answer.
    assert record.outcome.output == "It is 4."
    assert _tools(record) == [("add", {"a": 2, "b": 2}, "success"), ("lock", {"door": 1}, "error")]
    found = _tokens(record)
    assert (found["prompt_tokens"], found["completion_tokens"], found["total_tokens"]) == (406, 46, 452)
    stated = json.loads(recorded("ag2_chat_result.json"))["cost"]["usage_excluding_cached_inference"]["total_cost"]
    assert record.trace.metadata["cost"] == stated


def test_ag2_group_chat(read: Any, recorded: Any) -> None:
    (record,) = read(AUTOGEN, recorded("ag2_group_chat.json"), name="ag2_group_chat.json")
    assert (record.case.id, record.case.query) == ("ag2_group_chat", "Write a haiku.")
    assert record.outcome.output == "Shorter."
    exchanges = [(i.from_agent, i.to_agent) for i in record.trace.interactions]
    assert exchanges == [
        ("boss", "writer"),
        ("writer", "critic"),
        ("critic", "boss"),
        ("boss", "writer"),
        ("writer", "critic"),
    ]


def test_autogen_console(read: Any, recorded: Any) -> None:
    (record,) = read(AUTOGEN_CONSOLE, recorded("autogen_console.txt"))
    assert (record.case.query, record.outcome.output) == (QUESTION, ANSWER)
    assert _tools(record) == [LOOK_UP, ("transfer_to_billing", {}, "success"), REFUND]
    assert _tokens(record)["total_tokens"] == 460


def _inspect_document(archive: bytes) -> dict[str, Any]:
    rows = [row for row in archive_rows(Source("log.eval", BytesIO(archive))) if not isinstance(row, InputError)]
    return {**rows[0].around, "samples": [json.loads(row.data) for row in rows]}


def test_inspect_archive(read: Any, recorded: Any) -> None:
    records = read(INSPECT_ARCHIVE, recorded("inspect_support_desk.eval"), name="log.eval")

    assert [record.case.id for record in records] == ["q0", "q1"]
    assert [record.outcome.success for record in records] == [True, False]
    for record, graded in zip(records, (222, 224), strict=True):
        assert (record.case.query, record.outcome.output) == (QUESTION, ANSWER)
        assert record.case.expected_output == "A supervisor must agree."
        assert _tools(record) == [LOOK_UP, REFUND]
        found = _tokens(record)
        # Inspect counts the 64 cached tokens beside the input; its total of 406 includes them.
        assert (found["prompt_tokens"], found["completion_tokens"], found["total_tokens"]) == (370, 36, 406)
        assert record.trace.metadata["grader_usage"]["total_tokens"] == graded
        calls = [e.payload["usage"]["total_tokens"] for e in record.trace.events if e.type == "llm_call"]
        assert calls == [112, 178, 116]
        assert decode_record(encode_record(record)) == record


def test_inspect_agents_within_agents(read: Any, recorded: Any) -> None:
    (record,) = read(INSPECT_ARCHIVE, recorded("inspect_support_team.eval"), name="log.eval")
    calls = [event.payload for event in record.trace.events if event.type == "tool_call"]
    assert [(call["agent"], call["name"], call["status"]) for call in calls] == [
        ("triage", "billing", "success"),
        ("billing", "refund", "error"),
        ("billing", "submit", "success"),
        ("triage", "transfer_to_supervisor", "success"),
        ("supervisor", "submit", "success"),
        ("triage", "submit", "success"),
    ]
    assert [(h.from_agent, h.to_agent) for h in record.trace.handoffs] == [("triage", "supervisor")]
    assert _tokens(record)["prompt_tokens"] == sum(range(100, 106))
    times = [event.timestamp for event in record.trace.events if event.timestamp is not None]
    assert times == sorted(times)


def test_inspect_json_and_deflated_archive_give_the_same_records(read: Any, recorded: Any) -> None:
    archive = recorded("inspect_support_desk.eval")
    records = read(INSPECT_ARCHIVE, archive, name="log.eval")
    document = _inspect_document(archive)
    repacked = BytesIO()
    with zipfile.ZipFile(repacked, "w", zipfile.ZIP_DEFLATED) as out:
        header = {key: value for key, value in document.items() if key != "samples"}
        out.writestr("header.json", json.dumps(header))
        for sample in document["samples"]:
            out.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))

    assert read(INSPECT_LOG, document) == records
    assert read(INSPECT_ARCHIVE, repacked.getvalue(), name="log.eval") == records


def test_inspect_log_cut_off_keeps_the_samples_before_the_cut(read: Any, recorded: Any) -> None:
    document = json.dumps(_inspect_document(recorded("inspect_support_desk.eval"))).encode()
    first, error = read(INSPECT_LOG, document[:-200])
    assert first.case.id == "q0"
    assert "cut off" in error.reason


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[: len(data) // 2], "cut off or damaged"),
        (lambda data: b"", "cut off or damaged"),
        (lambda data: data.replace(b"(\xb5/\xfd", b"(\xb5/\xfe"), "cannot be read"),
        (lambda data: data.replace(b"samples/", b"simples/"), "holds no samples"),
    ],
)
def test_damaged_archives_say_why(read: Any, recorded: Any, damage: Any, reason: str) -> None:
    found = read(INSPECT_ARCHIVE, damage(recorded("inspect_support_desk.eval")), name="log.eval")
    assert found
    assert all(isinstance(each, InputError) and reason in each.reason for each in found)


def test_steps_of_old_inspect_logs_tell_the_grader_apart(read: Any) -> None:
    def model(total: int) -> dict[str, Any]:
        usage = {"input_tokens": total - 1, "output_tokens": 1, "total_tokens": total}
        return {"event": "model", "model": "m", "output": {"usage": usage, "choices": []}}

    def step(action: str, kind: str) -> dict[str, Any]:
        return {"event": "step", "action": action, "type": kind, "name": kind}

    sample = {
        "id": 7,
        "epoch": 1,
        "input": "Why?",
        "target": "",
        "messages": [{"role": "user", "content": "Why?"}],
        "scores": {"a": {"value": 1}, "b": {"value": 0}},
        "events": [
            step("begin", "solver"),
            model(10),
            {"event": "subtask", "events": [model(20)]},
            step("end", "solver"),
            step("begin", "scorer"),
            model(500),
            step("end", "scorer"),
        ],
        "model_usage": {"m": {"input_tokens": 527, "output_tokens": 3, "total_tokens": 530}},
    }
    (record,) = read(INSPECT_LOG, {"version": 2, "status": "success", "eval": {}, "samples": [sample]})
    assert record.trace.metadata["usage"]["total_tokens"] == 30
    assert record.trace.metadata["grader_usage"]["total_tokens"] == 500
    assert record.outcome.success is None
    assert record.case.expected_output is None
