"""Records written as ATIF: valid by its rules, the same when read back, and plain to readers that know ATIF only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentunit.addons.formats.coding.atif_writer import encode_atif
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.records import Record
from agentunit.metrics.builtin import CostMetric, TokenUsageMetric
from agentunit.metrics.inputs import Item
from agentunit.traces.reading import TraceFiles

CORPUS = Path(__file__).resolve().parents[3] / "corpus"
FOLDERS = (
    "claude-code", "codex", "gemini-cli", "qwen-code", "swe-agent", "mini-swe-agent", "openhands", "atif", "pi",
    "copilot-cli", "copilot-chat", "cursor", "opencode", "cline", "kimi", "droid", "openhands-v1", "codex-exec",
    "gemini-stream",
)  # fmt: skip
FILES = [
    path
    for folder in FOLDERS
    for path in sorted((CORPUS / folder).iterdir())
    if path.suffix in (".json", ".jsonl", ".traj") and ".expected." not in path.name
]
# Arguments that are a text have no place in ATIF, nor has a sub-agent's call within the call that started it.
PLAIN_FILES = [path for path in FILES if path.parent.name not in ("copilot-cli", "cline", "codex-exec")]
AGENT_ONLY = ("model_name", "reasoning_content", "tool_calls", "metrics")
ODD = """{"v":1,"case":{"id":"odd","query":"Why?","expected_output":42,"mood":"curious"},"trace":{"events":[
{"type":"retrieval","payload":{"documents":["d"]},"timestamp":5.5},
{"type":"tool_call","payload":{"name":"add","arguments":"1+1","result":{"sum":2}}},
{"type":"tool_call","payload":{"name":"add","id":"x","arguments":null,"status":"error","error":"no"}},
{"type":"tool_call","payload":{"name":"add","id":"x","arguments":{},"result":""}},
{"type":"message","payload":{"role":"assistant","agent":"b","content":[{"type":"text","text":"two"}],"to":"a"}},
{"type":"llm_call","payload":{"model":"m","usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}},
{"type":"message","payload":{"role":"critic","content":"so so"}}],
"interactions":[{"from_agent":"b","to_agent":"a"}],"handoffs":[{"from_agent":"a","to_agent":"b","task_id":"x"}]},
"outcome":{"output":{"n":2},"success":false,"cost":0.5}}""".replace("\n", "")
BARE = '{"v":1,"case":{"id":"bare"},"trace":{},"outcome":null}'


def records_of(path):
    return [found for found in TraceFiles([path]) if isinstance(found, Record)]


def plain(record):
    return json.loads(encode_record(record))


def check(whole):
    """The rules of Harbor's model of a trajectory."""
    assert whole["schema_version"] == "ATIF-v1.7"
    assert isinstance(whole["agent"]["name"], str)
    assert isinstance(whole["agent"]["version"], str)
    assert [step["step_id"] for step in whole["steps"]] == list(range(1, len(whole["steps"]) + 1))
    assert whole["steps"]
    children = {child["trajectory_id"] for child in whole.get("subagent_trajectories", [])}
    for step in whole["steps"]:
        assert step["source"] in ("system", "user", "agent")
        assert isinstance(step["message"], str)
        assert step["source"] == "agent" or not set(AGENT_ONLY) & set(step)
        made = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        assert len(made) == len(step.get("tool_calls", []))
        assert all(isinstance(call["arguments"], dict) for call in step.get("tool_calls", []))
        for result in step.get("observation", {"results": []})["results"]:
            assert result["source_call_id"] in made
            assert result["content"] is None or isinstance(result["content"], str)
            assert {ref["trajectory_id"] for ref in result.get("subagent_trajectory_ref", [])} <= children
    for child in whole.get("subagent_trajectories", []):
        check(child)


def without_own(value):
    """What is left for a program that does not know AgentUnit's part of ``extra``."""
    if isinstance(value, dict):
        return {name: without_own(each) for name, each in value.items() if name != "agentunit"}
    return [without_own(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_record_survives_the_way_through_atif(path, tmp_path):
    records = records_of(path)
    assert records
    out = tmp_path / "all.jsonl"
    out.write_bytes(b"\n".join(map(encode_atif, records)))
    for line in out.read_text("utf-8").splitlines():
        check(json.loads(line))
    assert list(map(plain, records_of(out))) == list(map(plain, records))


@pytest.mark.parametrize("line", [ODD, BARE.replace('"bare"', '"asked","query":"Why?"')])
def test_odd_records_survive_too(line, tmp_path):
    out = tmp_path / "odd.json"
    written = encode_atif(decode_record(line))
    check(json.loads(written))
    out.write_bytes(written)
    assert list(map(plain, records_of(out))) == [plain(decode_record(line))]


def test_a_record_that_holds_nothing_is_a_trajectory_that_makes_no_case(tmp_path):
    written = encode_atif(decode_record(BARE))
    check(json.loads(written))
    (tmp_path / "bare.json").write_bytes(written)
    assert records_of(tmp_path / "bare.json") == []


@pytest.mark.parametrize("path", PLAIN_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_programs_that_know_only_atif_see_the_same_facts(path, tmp_path):
    for record in records_of(path):
        out = tmp_path / "plain.json"
        out.write_text(json.dumps(without_own(json.loads(encode_atif(record)))), encoding="utf-8")
        [seen] = records_of(out)
        assert facts(seen) == facts(record)
        # The task may stand in the first message among instructions.
        assert (record.case.query or "") in (seen.case.query or "")


def facts(record):
    item = Item(record.case, record.trace, record.outcome)
    calls = [event.payload for event in record.trace.events if event.type == "tool_call"]
    cost, tokens = CostMetric().judge(item), TokenUsageMetric().judge(item)
    return {
        "answer": item.outcome.output,
        "calls": sorted(
            (call["name"], str(call["arguments"]), call.get("status"), call.get("exit_code")) for call in calls
        ),
        "agents": {call.get("agent") for call in calls},
        "tokens": tokens.detail.get("total_tokens"),
        "cost": round(cost.value, 9) if cost.value is not None and cost.detail["backend"] == "recorded" else None,
    }


def test_steps_that_another_program_added_are_read(tmp_path):
    whole = json.loads(encode_atif(decode_record(BARE)))
    whole["steps"].append({"step_id": 2, "source": "agent", "message": "Added."})
    out = tmp_path / "changed.json"
    out.write_text(json.dumps(whole), encoding="utf-8")
    [record] = records_of(out)
    assert record.outcome.output == "Added."


def test_an_export_from_which_a_result_was_removed_is_read_by_its_steps(tmp_path):
    whole = json.loads(encode_atif(decode_record(ODD)))
    for step in whole["steps"]:
        if "observation" in step:
            step["observation"]["results"] = []
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    files = TraceFiles([path])
    [record] = files
    assert isinstance(record, Record), record
    assert any("its steps were read instead" in text for text in files.notes.problems)
