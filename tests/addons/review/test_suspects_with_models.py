"""What the local models add to suspects: a sentence without support, and questions that mean the same."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from agentunit.addons.review.suspects_command import local_groundedness, unsupported
from agentunit.cli.main import cli
from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceEvent, TraceLog

ORDER = "order A-1: shipped on May 3, total $30"


@pytest.fixture(autouse=True)
def any_backend(monkeypatch):
    monkeypatch.delenv("AGENTUNIT_BACKEND", raising=False)


def record(case_id, answer, *writes, query="Where is my order A-1 now?"):
    calls = [{"name": "get_order", "status": "success", "result": ORDER}]
    calls += [{"name": name, "arguments": {"id": "A-1"}, "status": "success", "result": "ok"} for name in writes]
    trace = TraceLog([TraceEvent("tool_call", each) for each in calls])
    return Record(DatasetCase(case_id, query), trace, Outcome(output=answer))


def test_a_sentence_that_the_tool_results_do_not_support_is_named():
    wrong = record("a", "Your order A-1 was shipped on May 3. The total is $45. Have a nice day!")
    found = unsupported(wrong, local_groundedness())
    assert "“The total is $45.”" in found.text
    assert found.cause == "an amount of money"


@pytest.mark.parametrize("answer", ["Your order A-1 was shipped on May 3.", "Have a nice day!", None])
def test_what_is_supported_or_says_nothing_is_no_evidence(answer):
    assert unsupported(record("a", answer), local_groundedness()) is None


def test_it_can_be_left_out(monkeypatch):
    monkeypatch.setenv("AGENTUNIT_BACKEND", "lexical")
    assert local_groundedness() is None


def test_questions_that_mean_the_same_are_one_task(tmp_path):
    asked = [
        "Please cancel my order A-1 for me",
        "Could you please cancel my order A-1?",
        "Please cancel my order A-1, thank you",
    ]
    records = [record(f"t{number}", "Done.", "cancel_order", query=query) for number, query in enumerate(asked)]
    records.append(record("other", "Done.", "cancel_order", query="Please cancel my order A-2 for me"))
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"".join(encode_record(each) + b"\n" for each in records))
    result = CliRunner().invoke(cli, ["score", str(path), "--suspects", "--json"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["task_by"] == {"meaning": 3}
    assert data["unranked"][0]["first_cases"] == ["other"]
