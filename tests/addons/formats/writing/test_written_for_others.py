"""Records written as spans and as messages: what is read back, and the rules of those who take them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.traces.facts import facts_of
from click.testing import CliRunner

from agentunit.addons.formats.writing.openai_writer import encode_openai
from agentunit.addons.formats.writing.otlp_writer import encode_otlp
from agentunit.cli.main import cli
from agentunit.core.codec import decode_record
from agentunit.core.records import Record
from agentunit.traces.reading import TraceFiles

CORPUS = Path(__file__).resolve().parents[3] / "corpus"
FILES = sorted(
    path
    for path in CORPUS.glob("*/*")
    if path.suffix in (".json", ".jsonl", ".traj", ".md") and ".expected." not in path.name
)
# An agent that has a role and did nothing has no span.
SILENT_AGENTS = ("marble",)
TOKENS = ("input", "output")


def records_of(path):
    return [found for found in TraceFiles([path]) if isinstance(found, Record)]


def shown(record):
    facts = facts_of(record)
    facts["tokens"] = {kind: facts["tokens"][kind] for kind in TOKENS} if facts["tokens"] else None
    facts["cost"] = None if facts["cost"] is None else round(facts["cost"], 12)
    return facts


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_spans_hold_the_facts_of_the_record(path, tmp_path):
    out = tmp_path / "spans.jsonl"
    for record in records_of(path):
        out.write_bytes(encode_otlp(record))
        [seen] = records_of(out)
        before, after = shown(record), shown(seen)
        if path.parent.name in SILENT_AGENTS:
            assert set(after.pop("agents")) <= set(before.pop("agents"))
        assert after == before


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_spans_keep_the_rules_of_otlp(path):
    for record in records_of(path):
        [resource] = json.loads(encode_otlp(record))["resourceSpans"]
        [scope] = resource["scopeSpans"]
        seen = set()
        for span in scope["spans"]:
            assert len(span["traceId"]) == 32
            assert len(span["spanId"]) == 16
            assert span["spanId"] not in seen
            # A parent comes before what it holds.
            assert span.get("parentSpanId", next(iter(seen), None)) in {*seen, None}
            seen.add(span["spanId"])
            assert int(span.get("endTimeUnixNano", 0)) >= int(span.get("startTimeUnixNano", 0)) or not seen
            assert all(len(each["value"]) == 1 for each in span["attributes"])
        assert [span for span in scope["spans"] if "parentSpanId" not in span] == scope["spans"][:1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_messages_keep_the_rules_of_fine_tuning(path):
    for record in records_of(path):
        whole = json.loads(encode_openai(record))
        waiting = []
        for message in whole["messages"]:
            if message["role"] == "tool":
                assert message["tool_call_id"] in waiting
                waiting.remove(message["tool_call_id"])
                continue
            assert not waiting, "a call without its result before the next message"
            assert message["role"] in ("system", "developer", "user", "assistant")
            calls = message.get("tool_calls", [])
            assert isinstance(message["content"], str) or calls
            for call in calls:
                assert call["function"]["name"]
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
            waiting = [call["id"] for call in calls]
        assert not waiting


SAID = """{"v":1,"case":{"id":"q1","query":"Why?"},"trace":{"events":[
{"type":"llm_call","payload":{"model":"m","usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1},"cost":0.5}},
{"type":"message","payload":{"role":"assistant","content":"I look."}},
{"type":"tool_call","payload":{"name":"look","id":"c1","arguments":{"q":"a"},"status":"success","result":"found"}},
{"type":"tool_call","payload":{"name":"ask","id":"c2","arguments":"b","status":"error","error":"closed"}},
{"type":"llm_call","payload":{"model":"m","usage":{"prompt_tokens":9,"completion_tokens":2}}},
{"type":"tool_call","payload":{"name":"wait","arguments":null}}],
"metadata":{"tools":[{"name":"look","description":"Looks."}]}},"outcome":{"output":"Because."}}""".replace("\n", "")


def test_a_conversation_for_fine_tuning():
    whole = json.loads(encode_openai(decode_record(SAID)))
    assert whole["tools"] == [{"type": "function", "function": {"name": "look", "description": "Looks."}}]
    asked, looking, found, closed, waiting, nothing, answered = whole["messages"]
    assert asked == {"role": "user", "content": "Why?"}
    assert (looking["content"], [call["id"] for call in looking["tool_calls"]]) == ("I look.", ["c1", "c2"])
    assert [call["function"]["arguments"] for call in looking["tool_calls"]] == ['{"q":"a"}', '{"input":"b"}']
    assert found == {"role": "tool", "tool_call_id": "c1", "content": "found"}
    assert closed == {"role": "tool", "tool_call_id": "c2", "content": "closed"}
    assert (waiting["content"], nothing["content"]) == (None, "")
    assert answered == {"role": "assistant", "content": "Because."}


def test_the_spans_of_a_record_in_both_vocabularies():
    [resource] = json.loads(encode_otlp(decode_record(SAID)))["resourceSpans"]
    [scope] = resource["scopeSpans"]
    named = {}
    for span in scope["spans"]:
        values = {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}
        named.setdefault(span["name"], []).append((values, span))
    [(root, _)], [(first, _), (second, _)] = named["agent"], named["chat"]
    assert (root["input.value"], root["output.value"], root["session.id"]) == ("Why?", "Because.", "q1")
    assert (first["gen_ai.usage.input_tokens"], first["llm.token_count.prompt"]) == ("7", "7")
    assert first["llm.output_messages.0.message.content"] == "I look."
    assert second["llm.cost.total" if "llm.cost.total" in second else "llm.token_count.prompt"] == "9"
    [(_, looked)], [(_, asked)], [(waited, open_end)] = named["look"], named["ask"], named["wait"]
    assert looked["status"] == {"code": 1}
    assert asked["status"] == {"code": 2, "message": "closed"}
    assert ("status" in open_end, waited["gen_ai.tool.status"]) == (False, "unknown")
    # No time is known, so none is written.
    assert not [span for span in scope["spans"] if "startTimeUnixNano" in span]


@pytest.mark.parametrize("target", ["otlp", "openai"])
def test_convert_writes_them(tmp_path, target):
    source, out = tmp_path / "records.jsonl", tmp_path / "out.jsonl"
    source.write_text(SAID)
    done = CliRunner().invoke(cli, ["convert", str(source), "--to", target, "--out", str(out)])
    assert done.exit_code == 0, done.output
    [line] = out.read_text("utf-8").splitlines()
    assert set(json.loads(line)) == ({"resourceSpans"} if target == "otlp" else {"messages", "tools"})
