"""Damaged files: whatever is removed, replaced or cut off, every row is a record or a reason, and can be scored."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agentunit
from agentunit.addons.formats.chats._inspect_archives import archive_rows
from agentunit.addons.formats.chats.adk_sessions import ADK_SESSION
from agentunit.addons.formats.chats.autogen import AUTOGEN, AUTOGEN_CONSOLE
from agentunit.addons.formats.chats.benchmarks import MARBLE
from agentunit.addons.formats.chats.chat_rows import CHAT
from agentunit.addons.formats.chats.inspect_logs import INSPECT_ARCHIVE, INSPECT_LOG
from agentunit.addons.formats.chats.tau import TAU2, TAU_BENCH
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.records import Record
from agentunit.traces.formats_base import Source

RECORDED = Path(__file__).resolve().parents[3] / "traces" / "recorded"
TOOL_CALL = {"id": "c1", "name": "refund", "arguments": {"id": 7}, "requestor": "assistant"}


def _json(name: str) -> Any:
    return json.loads((RECORDED / name).read_bytes())


def _inspect() -> Any:
    with (RECORDED / "inspect_support_desk.eval").open("rb") as file:
        rows: list[Any] = list(archive_rows(Source("log.eval", file)))
    return {**rows[0].around, "samples": [json.loads(rows[0].data)]}


SAMPLES = {
    TAU_BENCH: [
        {
            "task_id": 0,
            "reward": 1.0,
            "trial": 0,
            "info": {"task": {"actions": [{"name": "a", "kwargs": {}}], "outputs": ["1"]}, "user_cost": 0.1},
            "traj": [
                {"role": "user", "content": "Refund?"},
                {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "a", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c", "content": "Error: no"},
            ],
        }
    ],
    TAU2: {
        "info": {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "d"}},
        "tasks": [{"id": "1", "evaluation_criteria": {"actions": [TOOL_CALL]}}],
        "simulations": [
            {
                "id": "s1",
                "task_id": "1",
                "agent_cost": 0.5,
                "duration": 2.5,
                "start_time": "2025-08-01T16:20:44",
                "reward_info": {"reward": 1.0, "action_checks": [{"action": TOOL_CALL}]},
                "messages": [
                    {
                        "role": "user",
                        "content": "Hi",
                        "cost": 0.1,
                        "usage": {"prompt_tokens": 1},
                        "tool_calls": [TOOL_CALL],
                    },
                    {"role": "assistant", "content": "Yes", "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
                    {"role": "tool", "tool_messages": [{"id": "c1", "error": True, "content": "no"}]},
                ],
            }
        ],
    },
    MARBLE: {
        "run": "r",
        "task": "t",
        "coordination_mode": "star",
        "token_usage": 7,
        "iterations": [
            {
                "iteration": 1,
                "task_assignments": {"a": "do"},
                "communications": ["In Session s \nFrom a to b: hello"],
                "task_results": [{"agent_id": "a", "result": "done"}, {"b": "done"}],
                "summary": "all done",
            }
        ],
    },
    CHAT: {
        "id": "x",
        "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
        "cost": 1.5,
        "tools": [{}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}], "timestamp": "2025-01-01T00:00:00Z"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "n", "input": {}}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r", "is_error": True}],
            },
            {"role": "model", "parts": [{"functionCall": {"name": "f"}}, {"functionResponse": {"name": "f"}}]},
            {"type": "ai", "content": "b", "usage_metadata": {"input_tokens": 1}, "response_metadata": {}},
        ],
    },
    AUTOGEN: _json("autogen_team_state.json"),
    AUTOGEN_CONSOLE: {"console_log": "---------- user ----------\nHi\n---------- a ----------\nYes", "prompt": "p"},
    ADK_SESSION: _json("adk_session.json"),
    INSPECT_LOG: _inspect(),
}
ODD_VALUES = st.sampled_from(
    [None, True, -1, 10**40, 1e308, "", "text", "###", [], {}, [None], [[]], {"": None}, {"a": {"b": []}}, ["x", 1]]
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, each in inner for place in _places(each, (*path, key))]


def _mutated(value: Any, place: tuple[Any, ...], replacement: Any, remove: bool) -> Any:
    result = copy.deepcopy(value)
    parent = result
    for key in place[:-1]:
        parent = parent[key]
    if remove:
        del parent[place[-1]]
    else:
        parent[place[-1]] = replacement
    return result


def _check(found: list[Any]) -> None:
    records = [each for each in found if isinstance(each, Record)]
    for record in records:
        assert decode_record(encode_record(record)).case.id == record.case.id
    list(agentunit.score(records, ["token_usage", "cost", "tool_success", "tool_trajectory", "task_success"]))


@pytest.mark.parametrize("format_", SAMPLES, ids=lambda each: each.name)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_keys_removed_and_values_of_other_types(read: Any, opening_of: Any, format_: Any, data: st.DataObject) -> None:
    sample = SAMPLES[format_]
    place = data.draw(st.sampled_from(_places(sample)))
    mutated = _mutated(sample, place, data.draw(ODD_VALUES), data.draw(st.booleans()))
    for each in SAMPLES:
        each.matches(opening_of(mutated))
    _check(read(format_, mutated))


@pytest.mark.parametrize("format_", SAMPLES, ids=lambda each: each.name)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_cut_files(read: Any, format_: Any, data: st.DataObject) -> None:
    raw = json.dumps(SAMPLES[format_]).encode()
    cut = raw[: data.draw(st.integers(1, len(raw) - 1))]
    found = read(format_, cut)
    assert found
    assert not isinstance(found[-1], Record)
    _check(found)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_archives_with_wrong_bytes(read: Any, data: st.DataObject) -> None:
    raw = bytearray((RECORDED / "inspect_support_desk.eval").read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    _check(read(INSPECT_ARCHIVE, bytes(raw), name="log.eval"))
