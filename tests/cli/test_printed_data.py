"""What commands print of data beside their reports holds no personal data either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MAIL = "mia.lindqvist@example.com"
SPAN = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "b7ad6b7169203331",
    "name": f"chat {MAIL}",
    "startTimeUnixNano": "1",
    "endTimeUnixNano": "2",
}
FILES = {
    "spans.json": json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": f"of {MAIL}"}, "spans": [SPAN]}]}]}),
    "records.jsonl": json.dumps({"v": MAIL, "case": {"id": "a", "query": "q"}}) + "\n",
    "data.csv": f"id,query,metadata\na,q,{MAIL}\n",
    "tests.json": json.dumps(
        {
            "prompts": ["{{q}}"],
            "providers": ["echo"],
            "tests": [{"vars": {"q": "?"}, "assert": [{"type": f"foo {MAIL}", "value": 1}]}],
        }
    ),
    "labels.csv": f"id,label\na,{MAIL}\n",
}


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "spans.json"),
        ("score", "records.jsonl"),
        ("score", "records.jsonl", "--strict"),
        ("score", "records.jsonl", "--errors", "errors.jsonl"),
        ("score", "records.jsonl", "--suspects", "--errors", "errors.jsonl"),
        ("doctor", "spans.json"),
        ("doctor", "spans.json", "--json"),
        ("doctor", "records.jsonl"),
        ("doctor", "data.csv"),
        ("convert", "spans.json", "--out", "out.jsonl"),
        ("convert", "records.jsonl", "--out", "out.jsonl"),
        ("convert", "--mask", "spans.json", "--out", "out.jsonl"),
        ("convert", "--mask", "records.jsonl", "--out", "out.jsonl"),
        ("convert", "--check", "records.jsonl"),
        ("label", "--measure", "--labels", "labels.csv", "records.jsonl"),
        ("label", "--measure", "--labels", "labels.csv", "records.jsonl", "--json"),
        ("init", "suite", "--from", "tests.json"),
    ],
)
def test_what_is_printed_of_data_is_masked(invoke: Any, arguments: tuple[str, ...]) -> None:
    for name, content in FILES.items():
        Path(name).write_text(content)
    result = invoke(*arguments)
    listed = Path("errors.jsonl")
    told = result.stdout + result.stderr + (listed.read_text() if listed.exists() else "")
    assert "mia" not in told
    assert "<EMAIL_1>" in told


def test_what_import_says_of_runs_and_labels_is_masked(invoke: Any) -> None:
    Path("suite.py").write_text(
        "from agentunit import Suite\n"
        "CASES = [{'id': 'a', 'query': 'q', 'metadata': {'contains': 'q'}}]\n"
        f"suite = Suite(CASES, lambda query: query, metrics=['contains'], name='of {MAIL}')\n"
    )
    Path("labels.csv").write_text(f"id,label,rater\na,yes,{MAIL}\n")
    assert invoke("run", "suite.py").exit_code == 0
    assert invoke("export", "last", "--to", "run.json").exit_code == 0
    for arguments in (
        ("import", "run.json", "--as", "copy"),
        ("import", "labels.csv", "--run", "last", "--metric", "contains"),
    ):
        told = invoke(*arguments).output
        assert "mia" not in told
        assert "<EMAIL_1>" in told, told
