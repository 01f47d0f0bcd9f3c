"""Rows with recorded answers, read as records."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import agentunit
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.datasets.readers import load_dataset
from agentunit.traces.reading import TraceFiles

RAGAS = {
    "user_input": "Where is the tower?",
    "retrieved_contexts": ["The tower is in Paris.", "It is high."],
    "response": "In Paris.",
    "reference": "Paris",
}
DEEPEVAL = {
    "input": "Where is the tower?",
    "actual_output": "In Paris.",
    "expected_output": "Paris",
    "retrieval_context": ["The tower is in Paris.", "It is high."],
    "context": None,
}
FIRST_RAGAS = {
    "question": "Where is the tower?",
    "answer": "In Paris.",
    "contexts": ["The tower is in Paris.", "It is high."],
    "ground_truth": "Paris",
}
PLAIN = {
    "query": "Where is the tower?",
    "output": "In Paris.",
    "context": ["The tower is in Paris.", "It is high."],
    "expected": "Paris",
}


def read(path: Path, **options: Any) -> tuple[list[Record], list[InputError], TraceFiles]:
    files = TraceFiles([path], **options)
    found = list(files)
    return (
        [each for each in found if isinstance(each, Record)],
        [each for each in found if isinstance(each, InputError)],
        files,
    )


def lines(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(tmp_path: Path, *rows: dict[str, Any], delimiter: str = ",") -> Path:
    path = tmp_path / "rows.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def _as_lines(folder: Path, row: dict[str, Any]) -> Path:
    return lines(folder, row)


def _as_list(folder: Path, row: dict[str, Any]) -> Path:
    (folder / "rows.json").write_text(json.dumps([row], indent=1))
    return folder / "rows.json"


def _within_document(folder: Path, row: dict[str, Any]) -> Path:
    (folder / "rows.json").write_text(json.dumps({"name": "tower", "data": [row]}))
    return folder / "rows.json"


def _as_json_cells(folder: Path, row: dict[str, Any]) -> Path:
    return table(folder, {name: json.dumps(v) if isinstance(v, list) else v for name, v in row.items()})


def _as_python_cells(folder: Path, row: dict[str, Any]) -> Path:
    return table(folder, row, delimiter=";")


def _as_spreadsheet(folder: Path, row: dict[str, Any]) -> Path:
    titled = {name.replace("_", " ").title(): value for name, value in row.items()}
    path = table(folder, titled, delimiter="\t")
    path.write_bytes(path.read_text().encode("utf-16"))
    return path


def _as_parquet(folder: Path, row: dict[str, Any]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist([row]), folder / "rows.parquet")
    return folder / "rows.parquet"


def _compressed(folder: Path, row: dict[str, Any]) -> Path:
    path = folder / "rows.csv.gz"
    path.write_bytes(gzip.compress(_as_json_cells(folder, row).read_bytes()))
    return path


WAYS = [
    _as_lines, _as_list, _within_document, _as_json_cells, _as_python_cells, _as_spreadsheet, _as_parquet, _compressed,
]  # fmt: skip


@pytest.mark.parametrize("write", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("row", [RAGAS, DEEPEVAL, FIRST_RAGAS, PLAIN], ids=["ragas", "deepeval", "ragas-0.1", "plain"])
def test_a_row_is_a_record_whatever_it_is_written_in(tmp_path: Path, row: dict[str, Any], write: Any) -> None:
    (record,), errors, files = read(write(tmp_path, row))
    assert not errors
    assert dict(files.notes.formats) == {"rows": 1}
    case = record.case
    assert (case.query, case.expected_output) == ("Where is the tower?", "Paris")
    assert case.context == ["The tower is in Paris.", "It is high."]
    assert record.outcome.output == "In Paris."
    assert not record.trace.events


@pytest.mark.parametrize(
    ("beside", "answer", "expected"),
    [
        ({"reference": "Paris"}, "Rome", "Paris"),
        ({"ground_truth": "Paris"}, "Rome", "Paris"),
        ({"response": "Oslo"}, "Oslo", "Rome"),
        ({"prediction": "Oslo"}, "Oslo", "Rome"),
    ],
)
def test_what_answer_means_is_told_by_the_names_next_to_it(
    tmp_path: Path, beside: dict[str, Any], answer: str, expected: str
) -> None:
    (record,), _, _ = read(lines(tmp_path, {"question": "Where?", "answer": "Rome", **beside}))
    assert (record.outcome.output, record.case.expected_output) == (answer, expected)


def test_an_answer_alone_is_scored_only_on_demand(tmp_path: Path) -> None:
    path = lines(tmp_path, {"question": "Where?", "answer": "Rome"})
    records, (error,), _ = read(path)
    assert not records
    assert "'answer' may be what an agent answered or what is expected: --from rows scores it" in error.reason
    (record,), errors, _ = read(path, format="rows")
    assert not errors
    assert (record.outcome.output, record.case.expected_output) == ("Rome", None)
    assert load_dataset(path)[0].expected_output == "Rome"


def test_an_answer_that_may_be_either_is_refused(tmp_path: Path) -> None:
    row = {"question": "Where?", "answer": "Rome", "response": "Oslo", "reference": "Paris"}
    records, (error,), _ = read(lines(tmp_path, row))
    assert not records
    assert "as 'response' is, or the expected one, as 'reference' is; rename or remove one" in error.reason


def test_answer_means_the_same_in_all_rows_of_a_file(tmp_path: Path) -> None:
    records, (error,), _ = read(
        lines(
            tmp_path,
            {"question": "One?", "answer": "1", "prediction": "2"},
            {"question": "Two?", "answer": "2"},
            {"question": "Three?", "answer": "3", "reference": "4"},
        )
    )
    assert [(each.outcome.output, each.case.expected_output) for each in records] == [("2", "1"), (None, "2")]
    assert error.line == 3
    assert "the expected answer in rows before" in error.reason


def test_two_recorded_answers_that_differ_are_refused(tmp_path: Path) -> None:
    asked = {"question": "Where?"}
    records, (error,), _ = read(
        lines(
            tmp_path,
            {**asked, "response": "Oslo", "output": None},
            {**asked, "response": "Oslo", "output": "Oslo"},
            {**asked, "response": "Oslo", "output": "Rome"},
        )
    )
    assert [each.outcome.output for each in records] == ["Oslo", "Oslo"]
    assert "may be any of 'response', 'output'" in error.reason


@pytest.mark.parametrize("nothing", [None, "", "  "])
def test_a_row_without_an_answer_is_a_record_without_one(tmp_path: Path, nothing: Any) -> None:
    path = lines(tmp_path, RAGAS, {**RAGAS, "response": nothing})
    *_, last = agentunit.score(agentunit.read_records(path), ["exact_match"])
    assert last.scores["exact_match"].value is None
    assert last.scores["exact_match"].result.detail["reason"] == "the record holds no answer and no events"


def test_ids_are_the_rows_own_or_its_position(tmp_path: Path) -> None:
    path = lines(tmp_path, RAGAS, {**RAGAS, "id": 7}, RAGAS)
    scored = agentunit.score(agentunit.read_records(path), ["exact_match"])
    assert [case.case_id for case in scored] == ["case-1", "7", "case-3"]


def test_other_columns_are_metadata(tmp_path: Path) -> None:
    row = {**RAGAS, "team": "billing", "metadata": {"level": 1}, "faithfulness": 0.5, "input": "raw", "tools": "a, b"}
    (record,), _, _ = read(lines(tmp_path, row))
    assert record.case.metadata == {"team": "billing", "level": 1, "faithfulness": 0.5, "input": "raw", "tools": "a, b"}


def test_what_was_retrieved_comes_before_what_should_have_been(tmp_path: Path) -> None:
    wanted = {"reference_contexts": ["gold"]}
    found, nothing, unknown = read(
        lines(
            tmp_path,
            {**RAGAS, **wanted},
            {**RAGAS, **wanted, "retrieved_contexts": []},
            {**RAGAS, **wanted, "retrieved_contexts": None},
        )
    )[0]
    assert found.case.context == RAGAS["retrieved_contexts"]
    assert found.case.metadata == wanted
    assert nothing.case.context is None
    assert unknown.case.context == ["gold"]


def test_passages_may_be_documents_arrays_or_one_text(tmp_path: Path) -> None:
    (record,), _, _ = read(
        lines(tmp_path, {**RAGAS, "retrieved_contexts": [{"page_content": "one"}, {"text": "two"}, None, "three"]})
    )
    assert record.case.context == ["one", "two", "three"]
    cells = {"question": "[1] why?", "response": '["so"]', "expected": '["a", "b"]'}
    rows = read(
        table(tmp_path, *({**cells, "contexts": each} for each in ("one | text", "['a'\n 'b']", "[]", "[1] x")))
    )
    assert [each.case.context for each in rows[0]] == [["one | text"], ["a", "b"], None, ["[1] x"]]
    assert {(each.case.query, each.outcome.output) for each in rows[0]} == {("[1] why?", '["so"]')}
    assert rows[0][0].case.expected_output == ["a", "b"]


def test_an_expected_object_stays_one(tmp_path: Path) -> None:
    (record,), _, _ = read(lines(tmp_path, {**RAGAS, "reference": {"total": 5}}))
    assert record.case.expected_output == {"total": 5}


def test_faults_name_their_line(tmp_path: Path) -> None:
    path = lines(
        tmp_path, RAGAS, 7, {"response": "So."}, {**RAGAS, "retrieved_contexts": {"a": 1}}, {**RAGAS, "id": [1]}
    )
    records, errors, _ = read(path)
    assert len(records) == 1
    assert [(each.line, each.reason.split(";")[0]) for each in errors] == [
        (2, "a row must be an object with fields"),
        (3, "a row needs a question (user_input, query, question, input)"),
        (4, "context must be a text or a list of texts"),
        (5, "id must be a text or a whole number"),
    ]
    path = tmp_path / "cut.csv"
    path.write_text("question,response\nWhere?\nWhy?,So.\n")
    (record,), (error,), _ = read(path)
    assert record.case.query == "Why?"
    assert (error.line, error.reason) == (2, "the row must have 2 cells as the header has; received 1")
    for header in ("question,Question,response", "question,question,response"):
        path.write_text(f"{header}\na,b,c\nd,e,f\n")
        (error,) = read(path, format="rows")[1]
        assert "the name 'question' is there twice" in error.reason
    path.write_text("question,answer,response,reference\na,b,c,d\ne,f,g,h\n")
    assert [each.line for each in read(path)[1]] == [None]
    path.write_text("city,response\nOslo,cold\nRome,warm\n")
    assert "the header must name a question" in read(path, format="rows")[1][0].reason


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Where?"},
        {"response": "Here."},
        {"input": {"a": 1}, "output": {"b": 2}},
        {"input": "Where?", "output": "Here.", "span_id": "1", "parent_id": None},
        {"input": "Where?", "target": "Here."},
    ],
)
def test_what_may_be_something_else_is_not_taken_for_rows(tmp_path: Path, row: dict[str, Any]) -> None:
    records, (error,), _ = read(lines(tmp_path, row))
    assert not records
    assert (
        'such as {"case": {"query": "…", "context": ["…"]}, "outcome": {"output": "…"}} (docs/records.md)'
        in error.reason
    )


def test_tables_of_something_else_are_one_error_or_passed_over(tmp_path: Path) -> None:
    (tmp_path / "weather.csv").write_text("city,celsius\nOslo,3\nRome,20\n")
    _, (error,), _ = read(tmp_path / "weather.csv")
    assert "docs/records.md" in error.reason
    (tmp_path / "expected.csv").write_text("question,answer\nWhere?,Here.\n")
    records, errors, files = read(tmp_path)
    assert (records, errors) == ([], [])
    assert files.passed_over


def test_a_parquet_file_of_other_columns_is_passed_over(tmp_path: Path) -> None:
    path = _as_parquet(tmp_path, {"city": "Oslo"})
    _, (error,), _ = read(path)
    assert "docs/records.md" in error.reason
    assert read(tmp_path)[1] == []


def test_rows_whose_first_has_no_answer_are_read_on_demand(tmp_path: Path) -> None:
    path = lines(tmp_path, {name: value for name, value in RAGAS.items() if name != "response"}, RAGAS)
    assert "a first row with a question and no answer: --from rows reads it" in read(path)[1][0].reason
    records, errors, _ = read(path, format="rows")
    assert [each.outcome.output for each in records] == [None, "In Paris."]
    assert not errors
