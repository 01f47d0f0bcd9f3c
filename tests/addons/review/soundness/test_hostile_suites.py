"""Datasets made to stop the doctor: each took minutes or ended with an error, and must be examined as any other."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from agentunit.addons.review.soundness import _texts as texts
from agentunit.addons.review.soundness.examine import examine_soundness
from agentunit.addons.review.soundness.gathered_runs import Gathered
from agentunit.addons.review.soundness.material import Material
from agentunit.backends import json_schema
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record

_MANY = 4000


def _tool(properties: dict[str, Any], **others: Any) -> list[dict[str, Any]]:
    return [{"name": "t", "parameters": {"type": "object", "properties": properties, **others}}]


def _calls(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"expected_tool_calls": list(calls)}


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": value}
    return value


HOSTILE: dict[str, DatasetCase] = {
    "lines without text": DatasetCase("c", "x" + "\n" * 200_000 + "y", "Paris", None, ["\n" * 200_000]),
    "an answer announced often": DatasetCase("c", "answer: b\n" * 20_000, "Paris " * 30_000),
    "many tools": DatasetCase(
        "c", "q", None, [f"tool_number_{n}" for n in range(_MANY)], None,
        _calls(*({"name": f"tool_nember_{n}"} for n in range(_MANY))),
    ),
    "many arguments": DatasetCase(
        "c", "q", None, _tool({f"arg_number_{n}": {} for n in range(_MANY)}), None,
        _calls({"name": "t", "arguments": {f"arg_nember_{n}": 1 for n in range(_MANY)}}),
    ),
    "many assertions": DatasetCase(
        "c", "q", None, None, None,
        {"assertions": [{"type": kind, "value": str(n)} for n in range(999) for kind in ("icontains", "not-contains")]},
    ),
    "many answers": DatasetCase("c", "q", [f"unread{chr(0x4E00 + n)}" for n in range(8000)], None, ["lorem " * 30_000]),
    "a name as long as a book": DatasetCase("c", "q", None, ["ab" * 100_000], None, _calls({"name": "ba" * 100_000})),
    "names that are none": DatasetCase(
        "c", "q", None, _tool({"a": {"type": ["string", 5], "enum": [1]}}, required=[["x"], {"y": 1}, None]), None,
        _calls({"name": "t", "arguments": {"a": [1], "new_a": [1]}}),
    ),
    "values nested deeply": DatasetCase(
        "c", "q", "Paris", _tool({"a": _nested(300)}), None,
        {"m": _nested(300), **_calls({"name": "t", "arguments": _nested(300)})},
    ),
    "patterns that explode": DatasetCase("c", "q", "a" * 5000 + "!", None, None, {"regex": "(a+)+$"}),
    "a pattern too large": DatasetCase("c", "q", "a", None, None, {"regex": "((a{1000}){1000}){1000}"}),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_case_is_examined(name):
    assert examine_soundness(Material([HOSTILE[name]])).n_cases == 1


def test_names_are_compared_a_bounded_number_of_times(monkeypatch):
    compared: list[int] = []
    monkeypatch.setattr(texts, "get_close_matches", lambda name, names, **_: compared.append(len(names)) or [])
    examine_soundness(Material([HOSTILE["many tools"], HOSTILE["many arguments"]]))
    assert 0 < sum(compared) <= 10 * 1000


def test_unknown_keywords_of_a_schema_are_compared_a_bounded_number_of_times(monkeypatch):
    compared: list[str] = []
    monkeypatch.setattr(json_schema.difflib, "get_close_matches", lambda name, *_, **__: compared.append(name) or [])
    json_schema.check_schema({"type": "object", **{f"propertiex{n}": 1 for n in range(_MANY)}})
    assert 0 < len(compared) <= 100


def test_records_of_one_id_are_told_apart_in_one_step_each():
    gathered = Gathered()
    steps = 0

    def count(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return count

    sys.settrace(count)
    try:
        ids = [gathered._case_of(Record(DatasetCase("x", f"question {n % 300}")), n) for n in range(600)]
    finally:
        sys.settrace(None)
    assert ids[:3] == ["x", "x (2)", "x (3)"]
    assert ids[:300] == ids[300:]
    assert len(set(ids)) == 300
    assert steps < 600 * 30
