"""The readers against real files: totals are worked out here from the raw JSON, and must equal what metrics say."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import agentunit
from agentunit.addons.formats.chats.adk_sessions import ADK_SESSION
from agentunit.addons.formats.chats.autogen import AUTOGEN, AUTOGEN_CONSOLE
from agentunit.addons.formats.chats.benchmarks import MARBLE
from agentunit.addons.formats.chats.inspect_logs import INSPECT_LOG
from agentunit.addons.formats.chats.tau import TAU2, TAU_BENCH
from agentunit.traces.spans import ReadingNotes


def _lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def _scored(records: list[Any], *metrics: str) -> list[Any]:
    return list(agentunit.score(records, list(metrics)))


def test_tau_bench_tool_calls_errors_and_rewards(read: Any, shared_data: Any) -> None:
    data = shared_data("dev/taubench_airline_gpt4o.jsonl.gz")
    rows, notes = _lines(data), ReadingNotes()
    records = read(TAU_BENCH, data, notes)

    assert len(records) == len(rows)
    assert not notes.problems
    assert len({record.case.id for record in records}) == len(rows)
    for row, record, scores in zip(rows, records, _scored(records, "tool_success", "tool_trajectory"), strict=True):
        answers = [message for message in row["traj"] if message["role"] == "tool"]
        failed = [message for message in answers if message["content"].startswith("Error:")]
        calls = [event.payload for event in record.trace.events if event.type == "tool_call"]
        asked = [call for message in row["traj"] for call in message.get("tool_calls") or ()]
        assert [(call["name"], call["arguments"]) for call in calls] == [
            (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in asked
        ]
        assert [call["result"] for call in calls] == [message["content"] for message in answers]
        if answers:
            expected_share = (len(answers) - len(failed)) / len(answers)
            assert scores.scores["tool_success"].value == pytest.approx(expected_share)
        assert record.outcome.success == (row["reward"] == 1.0)
        assert record.case.query == next(m["content"] for m in row["traj"] if m["role"] == "user")
        said = [m["content"] for m in row["traj"] if m["role"] == "assistant" and m["content"]]
        assert record.outcome.output == said[-1]
        expected = row["info"]["task"]["actions"]
        detail = scores.scores["tool_trajectory"].result.detail
        assert detail["expected"] == [action["name"] for action in expected]


def test_tau2_tokens_cost_and_errors_are_the_agents_own(read: Any, shared_data: Any) -> None:
    data = shared_data("dev/tau2_sims.jsonl.gz")
    rows, notes = _lines(data), ReadingNotes()
    records = read(TAU2, data, notes)

    assert len(records) == len(rows)
    assert not notes.problems
    assert len({record.case.id for record in records}) == len(rows)
    for row, record, scores in zip(rows, records, _scored(records, "token_usage", "cost", "tool_success"), strict=True):
        usages = [m["usage"] for m in row["messages"] if m["role"] == "assistant" and m["usage"]]
        tokens = scores.scores["token_usage"].result.detail
        assert tokens["prompt_tokens"] == sum(usage["prompt_tokens"] for usage in usages)
        assert tokens["completion_tokens"] == sum(usage["completion_tokens"] for usage in usages)
        assert scores.scores["cost"].value == row["agent_cost"]
        assert record.trace.metadata["user_cost"] == row["user_cost"]
        costs = [e.payload.get("cost", 0) for e in record.trace.events if e.type == "llm_call"]
        assert math.isclose(sum(costs), row["agent_cost"])
        answers = [m for m in row["messages"] if m["role"] == "tool" and m["requestor"] == "assistant"]
        share = sum(not m["error"] for m in answers) / len(answers)
        assert scores.scores["tool_success"].value == pytest.approx(share)
        by_user = [e for e in record.trace.events if e.type == "user_tool_call"]
        assert len(by_user) == sum(m["role"] == "tool" and m["requestor"] == "user" for m in row["messages"])
        assert record.outcome.success == (row["reward_info"]["reward"] == 1.0)
        said = [m["content"] for m in row["messages"] if m["role"] == "assistant" and m["content"]]
        # An agent that works alone may say nothing but the word that ends the simulation.
        assert record.outcome.output == ([None] + [text for text in said if text != "###STOP###"])[-1]


def test_tau2_whole_file_with_tasks(read: Any, shared_data: Any) -> None:
    rows = _lines(shared_data("dev/tau2_sims.jsonl.gz"))[:3]
    task = {
        "id": rows[1]["task_id"],
        "user_scenario": {"instructions": {"reason_for_call": "a refund"}},
        "evaluation_criteria": {"actions": [{"name": "refund", "arguments": {"id": 7}, "requestor": "assistant"}]},
    }
    info = {"agent_info": {"llm": "gpt-9"}, "user_info": {}, "environment_info": {"domain_name": "shop"}}
    document = {"timestamp": "now", "info": info, "tasks": [task], "simulations": rows}
    whole = read(TAU2, document)
    alone = read(TAU2, b"\n".join(json.dumps(row).encode() for row in rows))

    assert len(whole) == len(rows)
    assert whole[1].case.metadata["instruction"] == {"reason_for_call": "a refund"}
    assert whole[1].case.metadata["expected_tool_calls"] == [{"name": "refund", "arguments": {"id": 7}}]
    assert whole[1].case.id.startswith("shop/")
    assert whole[1].trace.metadata["model"] == "gpt-9"
    for together, single in zip(whole, alone, strict=True):
        assert together.outcome == single.outcome
        assert len(together.trace.events) == len(single.trace.events)


@pytest.mark.parametrize(
    ("file", "conversation", "question", "expected"),
    [
        ("mast_ag2_experiments", "trajectory", "problem_statement", lambda row: row["other_data"]["answer"]),
        ("mast_human", "trajectory", "problem_statement", lambda row: row["other_data"].get("answer")),
        ("whoandwhen", "history", "question", lambda row: row["ground_truth"]),
    ],
)
def test_named_chats(read: Any, shared_data: Any, file: str, conversation: str, question: str, expected: Any) -> None:
    data = shared_data(f"dev/{file}.jsonl.gz")
    rows, notes = _lines(data), ReadingNotes()
    records = read(AUTOGEN, data, notes)

    assert len(records) == len(rows)
    assert not notes.problems
    assert len({record.case.id for record in records}) == len(rows)
    for row, record in zip(rows, records, strict=True):
        asked = row[question] if isinstance(row[question], str) else "\n".join(row[question])
        assert record.case.query == asked.strip()
        assert record.case.expected_output == expected(row)
        assert record.outcome.output
        messages = [event.payload for event in record.trace.events if event.type == "message"]
        if isinstance(row[conversation][0], str):
            spoken = sum("'s Response:" in line or "->Planner:" in line for line in row[conversation])
            assert 0 < len([m for m in messages if m["role"] == "assistant"]) <= spoken
            continue
        said = [
            m
            for m in row[conversation]
            if (m["content"] if isinstance(m["content"], str) else "".join(m["content"])).strip()
        ]
        assert [m["agent"] for m in messages] == [m["name"] for m in said]
        speakers = [m["agent"] for m in messages]
        exchanges = [(i.from_agent, i.to_agent) for i in record.trace.interactions]
        for sender, receiver in exchanges:
            assert sender != receiver
            assert {sender, receiver} <= set(speakers)
        assert all(i.metadata["derived_from"] for i in record.trace.interactions)
        executions = [m for m in said if str(m["content"]).startswith("exitcode: ")]
        calls = [event for event in record.trace.events if event.type == "tool_call"]
        assert len(calls) == len(executions)
        failures = [m for m in executions if "(execution failed)" in m["content"]]
        assert sum(call.payload["status"] == "error" for call in calls) == len(failures)


def test_magentic_one_console_logs(read: Any, shared_data: Any) -> None:
    data = shared_data("dev/magentic_one_gaia.jsonl.gz")
    rows = _lines(data)
    records = read(AUTOGEN_CONSOLE, data)

    assert len(records) == len(rows)
    for row, record in zip(rows, records, strict=True):
        assert record.case.query == row["prompt"].strip()
        assert record.case.expected_output == row["expected_answer"].strip()
        final = [line for line in row["console_log"].splitlines() if line.startswith("FINAL ANSWER:")][-1]
        assert record.outcome.output.splitlines()[0].strip() == final.strip()
        assert "!#!#" not in record.outcome.output
        agents = {event.payload["agent"] for event in record.trace.events}
        assert {"user", "MagenticOneOrchestrator"} <= agents


def test_marble_interactions_and_tokens(read: Any, shared_data: Any) -> None:
    data = shared_data("dev/marble.jsonl.gz")
    rows, notes = _lines(data), ReadingNotes()
    records = read(MARBLE, data, notes)

    assert len(records) == len(rows)
    assert not notes.problems
    assert len({record.case.id for record in records}) == len(rows)
    for row, record, scores in zip(rows, records, _scored(records, "token_usage"), strict=True):
        talks = [talk for iteration in row["iterations"] for talk in iteration["communications"]]
        sent = [
            line
            for talk in talks
            for line in talk.splitlines()
            if line.startswith("From agent") and " to agent" in line[:20]
        ]
        assert len(record.trace.interactions) == len(sent)
        assert scores.scores["token_usage"].value == row.get("token_usage")


def test_inspect_tokens_are_what_the_file_states(read: Any, shared_data: Any) -> None:
    data = shared_data("otel/inspect_2025-05-12T20-28-26-04-00_security-guide.json")
    log = json.loads(data)
    records = read(INSPECT_LOG, data)

    assert len(records) == len(log["samples"])
    for sample, record, scores in zip(log["samples"], records, _scored(records, "token_usage"), strict=True):
        stated = sum(usage["total_tokens"] for usage in sample["model_usage"].values())
        # One answer of the agent; everything else in the sample's total was spent on grading it.
        own = sample["output"]["usage"]["total_tokens"]
        assert scores.scores["token_usage"].value == own
        assert record.trace.metadata["grader_usage"]["total_tokens"] == stated - own
        assert record.trace.metadata["model_usage"] == sample["model_usage"]
        assert record.case.expected_output == sample["target"]
        assert record.case.query == sample["input"][0]["content"]
        assert record.outcome.output == sample["output"]["choices"][0]["message"]["content"]
        assert record.outcome.success is True
    totals = [
        r.trace.metadata["usage"]["total_tokens"] + r.trace.metadata["grader_usage"]["total_tokens"] for r in records
    ]
    assert sum(totals) == log["stats"]["model_usage"]["openai/gpt-4o-mini"]["total_tokens"]


def test_adk_session_of_an_early_version(read: Any, shared_data: Any) -> None:
    data = shared_data("otel/adk_flow_complex_spark.session.json")
    (record,) = read(ADK_SESSION, data)

    assert record.case.query == "Research on the factors that affect floods in Florida. "
    assert record.outcome.output.startswith("## Flooding in Florida")
    assert [(h.from_agent, h.to_agent) for h in record.trace.handoffs] == [
        ("spark_assistant", "research_assistant"),
        ("spark_assistant", "spark_assistant"),
    ]
    calls = [event.payload for event in record.trace.events if event.type == "tool_call"]
    assert [(call["name"], call["status"]) for call in calls] == [("transfer_to_other_agent", "success")] * 2
    speakers = [i.from_agent for i in record.trace.interactions]
    assert speakers == ["research_plan_agent", "question_generation_agent", "information_retrieval_agent"]
