from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentunit.metrics.inputs import Item
from agentunit.metrics.usage import find_usage

# Programs that run in environments of their own; they import one another as scripts.
collect_ignore_glob = ["scenarios/*", "docs_model.py", "run_vercel.py"]
RECORDED = Path(__file__).parent / "recorded"
# How frameworks pass a task on or end a run: EXPECTED does not count these among the tools of the user.
MACHINERY = {"final_answer", "handoff", "transfer_to_agent", "transfer_to_billing", "task_billing"}
MACHINERY |= {"delegate_work_to_coworker", "delegate_task_to_member"}


@pytest.fixture(scope="session")
def expected_of():
    """What a scenario is known to have done."""

    def expected_of(scenario):
        facts = json.loads((RECORDED / f"{scenario}.expected.json").read_text())
        facts["tool_calls"] = [call for call in facts["tool_calls"] if not _is_machinery(call["name"])]
        facts["models"].sort()
        facts["agents"].sort()
        return {name: facts[name] for name in FACTS}

    return expected_of


FACTS = ("question", "answer", "tool_calls", "agents", "handoffs", "usage", "models", "documents")


@pytest.fixture(scope="session")
def facts_of():
    """What a record tells, in the shape of a scenario's EXPECTED; unknown is None."""

    def facts_of(record):
        trace = record.trace
        calls = [event.payload for event in trace.events if event.type == "tool_call"]
        return {
            "question": record.case.query,
            "answer": _without_last_newline(record.outcome.output),
            "tool_calls": [_tool_call(call) for call in calls if not _is_machinery(call["name"])],
            "agents": sorted(trace.agent_roles),
            "handoffs": [[handoff.from_agent, handoff.to_agent] for handoff in trace.handoffs],
            "usage": _usage(record),
            "models": sorted({each.payload.get("model") for each in trace.events if each.type == "llm_call"} - {None}),
            "documents": [
                document if isinstance(document, str) else _text(document)
                for event in trace.events
                if event.type == "retrieval"
                for document in event.payload["documents"]
            ],
        }

    return facts_of


@pytest.fixture(scope="session")
def assert_agrees():
    """Compare the facts of a record with the expected ones; what is expected may leave out results and errors."""

    def assert_agrees(found, expected):
        found, expected = dict(found), dict(expected)
        found_calls, expected_calls = (_in_any_order(facts.pop("tool_calls")) for facts in (found, expected))
        assert found == expected
        assert [_told(call) for call in found_calls] == [_told(call) for call in expected_calls]
        for call, right in zip(found_calls, expected_calls, strict=True):
            if "result" in right and right["status"] == "success":
                assert call["result"] == right["result"]
            if right.get("error"):
                assert right["error"] in call["error"]

    return assert_agrees


def _without_last_newline(answer):
    """Strands ends each answer with one."""
    return answer.removesuffix("\n") if isinstance(answer, str) else answer


def _told(call):
    return call["name"], call["arguments"], call["status"]


def _in_any_order(calls):
    """Calls that ran at the same time stand in no certain order."""
    return sorted(calls, key=lambda call: json.dumps([call["name"], call["arguments"], call["status"]], sort_keys=True))


def _tool_call(payload):
    return {name: payload.get(name) for name in ("name", "arguments", "status", "result", "error")}


def _usage(record):
    found = find_usage(Item(record.case, record.trace, record.outcome))
    if found is None:
        return None
    stated = [event.payload.get("usage") or {} for event in record.trace.events if event.type == "llm_call"]
    stated.append(record.trace.metadata.get("usage") or {})
    knows_cached = any("prompt_tokens_details" in usage for usage in stated)
    return {
        "prompt_tokens": found[0].prompt,
        "completion_tokens": found[0].completion,
        "cached_tokens": found[0].cached if knows_cached else None,
    }


def _text(document):
    return next((document[name] for name in ("text", "content", "page_content") if name in document), None)


def _is_machinery(name):
    return name.lower().replace(" ", "_") in MACHINERY
