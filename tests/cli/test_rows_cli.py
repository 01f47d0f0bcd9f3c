"""A user's own rows on the command line: scored, gated, shown, converted, examined and imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROWS = [
    {
        "user_input": "Where is the tower?",
        "response": "Paris",
        "retrieved_contexts": ["In Paris."],
        "reference": "Paris",
    },
    {"user_input": "How high is it?", "response": "Very high.", "retrieved_contexts": ["330 m."], "reference": "330 m"},
    {"user_input": "Who made it?", "response": None, "retrieved_contexts": ["Eiffel."], "reference": "Eiffel"},
]


@pytest.fixture
def rows(invoke: Any) -> str:
    return _write("rows.jsonl", ROWS)


def _write(name: str, rows: list[dict[str, Any]]) -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def test_rows_are_scored_as_they_are(invoke: Any, rows: str) -> None:
    result = invoke("score", rows, "--metrics", "exact_match", "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)["summary"]
    (row,) = summary["metrics"]
    assert (summary["n_cases"], row["n_scored"], row["mean"]) == (3, 2, 0.5)
    assert [(each["reason"], each["first_cases"]) for each in summary["unscored"]] == [
        ("the record holds no answer and no events", ["case-3"])
    ]
    assert "3 cases, 1 record without content" in invoke("score", rows, "--metrics", "exact_match").stdout


@pytest.mark.parametrize("named", [True, False])
def test_a_case_without_an_id_is_shown_by_the_name_that_scoring_gave_it(invoke: Any, rows: str, named: bool) -> None:
    if not named:
        invoke("convert", rows, "--out", "records.jsonl")
        rows = "records.jsonl"
    result = invoke("show", rows, "case-2")
    assert result.exit_code == 0, result.output
    assert "How high is it?" in result.stdout
    invoke("show", rows, "--gate", "exact_match mean >= 0.5")
    assert "How high is it?" in invoke("show", "last", "case-2").stdout


def test_rows_are_gated_and_converted(invoke: Any, rows: str) -> None:
    gated = invoke("show", rows, "--gate", "exact_match mean >= 0.5 coverage 0.6")
    assert gated.exit_code == 0, gated.output
    assert invoke("convert", rows, "--out", "records.jsonl").exit_code == 0
    first = json.loads(Path("records.jsonl").read_text().splitlines()[0])
    assert first["outcome"] == {"output": "Paris"}
    assert first["case"]["context"] == ["In Paris."]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
def test_the_doctor_examines_rows_as_records(invoke: Any, rows: str, name: str) -> None:
    if name == "rows.csv":
        Path(name).write_text("question,answer,reference\nWhere?,Paris,Paris\nHow high?,Very.,330 m\nWho?,,Eiffel\n")
    result = invoke("doctor", name, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["formats"], found["n_cases"], found["holds"]["answer"]) == ({"rows": 1}, 3, 2)


def test_the_doctor_examines_tests_that_nobody_answered_as_tests(invoke: Any) -> None:
    goldens = [{"input": f"What is {n} + 1?", "actual_output": None, "expected_output": str(n + 1)} for n in range(3)]
    result = invoke("doctor", _write("goldens.jsonl", goldens), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_runs"] == 0


def test_an_import_says_that_recorded_answers_can_be_scored(invoke: Any, rows: str) -> None:
    result = invoke("init", "suite", "--from", rows)
    assert result.exit_code == 0, result.output
    assert "2 recorded answers in rows.jsonl: to score them as they are, without an agent" in result.stdout
    assert "next: agentunit score rows.jsonl" in result.stdout
    _write("own.jsonl", [{"question": "Where?", "answer": "Paris", "ground_truth": "Paris"}])
    assert "recorded answers need none either: 'agentunit score FILE'" in invoke("init", "--from", "own.jsonl").stderr


def _doctored(invoke: Any, *records: dict[str, Any]) -> dict[str, Any]:
    result = invoke("doctor", _write("records.jsonl", list(records)), "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def _record(answer: str | None, **metadata: Any) -> dict[str, Any]:
    case = {"query": "Where is it?", "context": ["It is in Paris."], "expected_output": "Paris", "metadata": metadata}
    return {"case": case, "outcome": {"output": answer}}


MULTIMODAL = ("multimodal_coherence", "image_caption_accuracy", "audio_transcription_quality")


@pytest.mark.parametrize(
    ("metadata", "n_scored"), [({}, 0), ({"text": "x"}, 0), ({"image_url": "a.png"}, 1), ({"transcript": "Paris"}, 1)]
)
def test_the_doctor_offers_metrics_of_media_where_there_is_media(
    invoke: Any, metadata: dict[str, Any], n_scored: int
) -> None:
    found = _doctored(invoke, _record("In Paris.", **metadata))
    rows = {row["metric"]: row for row in found["metrics"]}
    assert [rows[name]["n_scored"] for name in MULTIMODAL] == [n_scored] * 3
    if not n_scored:
        assert rows[MULTIMODAL[0]]["reasons"][0]["reason"].startswith("no media: ")


def test_an_empty_answer_is_none_to_the_doctor(invoke: Any) -> None:
    found = _doctored(invoke, _record("In Paris."), _record(" "), _record(None))
    assert found["holds"]["answer"] == 1


def test_blank_passages_are_none_to_the_doctor(invoke: Any) -> None:
    blank = _record("In Paris.")
    blank["case"]["context"] = ["", "  "]
    assert _doctored(invoke, blank)["holds"]["texts of retrieved documents"] == 0


def test_the_doctor_names_no_pass_rate_where_hardly_an_answer_equals_the_expected_one(invoke: Any) -> None:
    sentences = [_record(f"It is in Paris, number {n}.") for n in range(5)]
    for n, each in enumerate(sentences):
        each["case"]["query"] = f"Where is tower {n}?"
    assert _doctored(invoke, *sentences)["soundness"]["rate"] is None
    sentences[0]["outcome"]["output"] = "Paris"
    assert _doctored(invoke, *sentences)["soundness"]["rate"] == pytest.approx(0.2)
