"""The door: files, folders and pipes in any format, told apart by how they begin, joined by trace and session."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from spans_of import TRACE, oi, otlp

from agentunit import DatasetCase, encode_record, read_records
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.traces.expected import ExpectedAnswers
from agentunit.traces.formats import detect, format_names, opening_of, trace_formats
from agentunit.traces.reading import TraceFiles

OTHER = "f" * 32


def agent(trace: str = TRACE, span: str = "a", **rest: Any) -> Any:
    made = oi("AGENT", span, None, **{"input__value": "Why?", "output__value": "Because.", **rest})
    made.trace_id = trace
    return made


def tool(trace: str = TRACE, span: str = "t", parent: str | None = "a", **rest: Any) -> Any:
    made = oi("TOOL", span, parent, 0.5, tool__name="search", **rest)
    made.trace_id = trace
    return made


def read(*paths: Path, **options: Any) -> tuple[list[Record], list[InputError], TraceFiles]:
    files = TraceFiles(paths, **options)
    found = list(files)
    return (
        [each for each in found if isinstance(each, Record)],
        [each for each in found if isinstance(each, InputError)],
        files,
    )


def n_tools(record: Record) -> int:
    return sum(event.type == "tool_call" for event in record.trace.events)


def test_a_trace_split_over_files_is_joined_whatever_their_order(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(otlp(tool()) + otlp(agent(OTHER)))
    (tmp_path / "two.json.gz").write_bytes(gzip.compress(otlp(agent(), one_line=False)))
    records, errors, files = read(tmp_path)
    assert errors == []
    assert {record.case.id: n_tools(record) for record in records} == {TRACE: 1, OTHER: 0}
    assert files.notes.problems == {}
    assert files.notes.formats == {"otlp-json": 2}
    assert files.fraction() == 1.0


def test_a_folder_is_read_with_what_it_holds_and_the_rest_is_named(tmp_path: Path) -> None:
    (tmp_path / "day" / ".cache").mkdir(parents=True)
    (tmp_path / "day" / "spans.json").write_bytes(otlp(agent()))
    (tmp_path / "records.jsonl").write_bytes(encode_record(Record(DatasetCase("q1", "Why?"))) + b"\n")
    (tmp_path / "notes.txt").write_text("nothing to see")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "day" / ".cache" / "spans.json").write_bytes(otlp(agent(OTHER)))
    records, errors, files = read(tmp_path)
    assert [record.case.id for record in records] == ["q1", TRACE]
    assert errors == []
    passed_over = f"files of no known format in the folder were passed over, such as {tmp_path / 'notes.txt'}"
    assert files.notes.problems == {passed_over: 2}


def test_a_session_is_one_case_with_all_its_turns(tmp_path: Path) -> None:
    first = agent(session__id="s1")
    second = oi("AGENT", "b", None, 10.0, input__value="And then?", output__value="Nothing.", session__id="s1")
    second.trace_id = OTHER
    alone = agent("e" * 32, input__value="Who?")
    (tmp_path / "spans.json").write_bytes(otlp(first, tool(), second, alone))
    by_trace, _, _ = read(tmp_path / "spans.json")
    assert [record.case.id for record in by_trace] == [TRACE, OTHER, "e" * 32]
    session, single = read(tmp_path / "spans.json", group_by="session")[0]
    assert (session.case.id, session.case.query, session.outcome.output) == ("s1", "Why?", "Nothing.")
    assert session.trace.metadata["trace_id"] == [TRACE, OTHER]
    said = [event.payload["content"] for event in session.trace.events if event.type == "message"]
    assert said == ["Why?", "Because.", "And then?", "Nothing."]
    assert n_tools(session) == 1
    assert (single.case.id, single.trace.metadata["trace_id"]) == ("e" * 32, "e" * 32)


def test_records_made_one_a_trace_are_put_together_by_session_too(tmp_path: Path) -> None:
    first = agent(session__id="s1")
    second = oi("AGENT", "b", None, 10.0, input__value="And then?", output__value="Nothing.", session__id="s1")
    second.trace_id = OTHER
    (tmp_path / "spans.json").write_bytes(otlp(first, tool(), second, agent("e" * 32)))
    direct = read(tmp_path / "spans.json", group_by="session")[0]
    lines = [encode_record(record) for record in read(tmp_path / "spans.json")[0]]
    (tmp_path / "records.jsonl").write_bytes(b"\n".join(reversed(lines)) + b"\n")
    alone, session = read(tmp_path / "records.jsonl", group_by="session")[0]
    assert alone.case.id == "e" * 32
    assert (session.case, session.outcome) == (direct[0].case, direct[0].outcome)
    assert session.trace.metadata["trace_id"] == [TRACE, OTHER]
    said = [event.payload["content"] for event in session.trace.events if event.type == "message"]
    assert said == ["Why?", "Because.", "And then?", "Nothing."]


def test_the_same_runs_in_two_files_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "spans.json").write_bytes(otlp(agent()))
    (tmp_path / "records.jsonl").write_bytes(encode_record(read(tmp_path / "spans.json")[0][0]) + b"\n")
    records, _, files = read(tmp_path)
    assert len(records) == 2
    assert files.notes.problems == {
        "cases have the id of another case in these files: are they the same runs twice?": 1
    }


def test_the_roots_session_counts_when_spans_disagree(tmp_path: Path) -> None:
    inner = oi("AGENT", "i", "a", 0.3, session__id="inner")
    (tmp_path / "spans.json").write_bytes(otlp(inner, agent(session__id="outer")))
    (record,), _, files = read(tmp_path / "spans.json", group_by="session")
    assert record.case.id == "outer"
    assert list(files.notes.problems) == ["spans of one trace name different sessions: the root's or the first counts"]


@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.9, 0.999])
def test_half_a_file_gives_the_spans_before_the_cut_and_the_reason(tmp_path: Path, share: float) -> None:
    whole = otlp(*(agent(f"{n:032x}", f"{n:016x}") for n in range(1, 51)), one_line=False)
    (tmp_path / "cut.json").write_bytes(whole[: int(len(whole) * share)])
    records, errors, _ = read(tmp_path / "cut.json")
    assert len(errors) == 1
    assert abs(len(records) - 50 * share) <= 2
    assert all(record.outcome.output == "Because." for record in records)


def test_an_unknown_format_says_what_was_found_and_what_can_be_forced(tmp_path: Path) -> None:
    path = tmp_path / "weather.json"
    path.write_text('{"city": "Oslo", "celsius": 3}')
    _, (error,), _ = read(path)
    assert "its first object has the names celsius, city" in error.reason
    assert "docs/records.md" in error.reason
    assert "--from names one of the formats of docs/traces.md" in error.reason
    with pytest.raises(ValueError, match="must be one of records, otlp-json"):
        TraceFiles([path], format="weather")


def test_a_forced_format_is_read_as_such(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_bytes(otlp(agent()))
    records, errors, _ = read(path, format="records")
    assert records == []
    assert len(errors) == 1
    assert [record.case.id for record in read(path, format="otlp-json")[0]] == [TRACE]


def test_standard_input_is_read_in_any_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(otlp(agent())))))
    (record,) = read_records("-")
    assert isinstance(record, Record)
    assert record.case.id == TRACE


def test_a_huge_attribute_costs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_bytes(otlp(agent(junk="x" * (17 << 20)), agent(OTHER)))
    records, errors, files = read(path)
    assert [record.outcome.output for record in records] == ["Because.", "Because."]
    assert errors == []
    assert sum(files.notes.problems.values()) == 1


def test_a_trace_that_cannot_be_put_together_does_not_cost_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentunit.traces import reading

    real = reading.assemble

    def fragile(spans: Any, *rest: Any) -> Any:
        if spans[0].trace_id == TRACE:
            raise ZeroDivisionError("odd")
        return real(spans, *rest)

    monkeypatch.setattr(reading, "assemble", fragile)
    path = tmp_path / "spans.json"
    path.write_bytes(otlp(agent(), agent(OTHER)))
    records, (error,), _ = read(path)
    assert [record.case.id for record in records] == [OTHER]
    assert str(error) == f"trace {TRACE}: cannot be put together (ZeroDivisionError: odd)"


def test_every_format_has_its_own_name_and_says_what_it_is() -> None:
    names = format_names()
    assert len(set(names)) == len(names)
    assert all(each.summary and not each.summary.endswith(".") for each in trace_formats())


@pytest.mark.parametrize(
    "start",
    [b"", b"{", b"[", b"[]", b"{}", b"null", b"\0\1\2", b"a,b\n1,2\n", b'{"text": "x", "spans": [{"start": 1}]}',
     b'{"messages": "none"}', b'{"query": "Why?", "expected": "Because."}', b"\xff\xfe{\0"],
)  # fmt: skip
def test_what_is_no_trace_is_not_taken_for_one(start: bytes) -> None:
    assert detect(opening_of("file", start)) is None


def test_a_document_larger_than_the_look_at_its_start_is_told_by_its_names() -> None:
    start = b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "' + b"x" * (2 << 20)
    found = detect(opening_of("big.json", start))
    assert found is not None
    assert found.name == "otlp-json"


# -- expected answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        {"id": TRACE, "expected": "Because."},
        {"id": TRACE.upper(), "expected": "Because."},
        {"trace_id": "0x" + TRACE, "expected": "Because."},
        {"question": "  why? ", "expected": "Because."},
    ],
)
def test_expected_answers_are_joined_by_trace_id_case_id_or_question(tmp_path: Path, row: dict[str, str]) -> None:
    from agentunit.datasets.readers import load_dataset

    (tmp_path / "spans.json").write_bytes(otlp(agent()))
    (tmp_path / "answers.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({"id": "x", "question": "Who?"}))
    answers = ExpectedAnswers(load_dataset(tmp_path / "answers.jsonl"))
    (record,), _, _ = read(tmp_path / "spans.json", expected=answers)
    assert record.case.expected_output == "Because."
    assert (answers.n_joined, answers.unused) == (1, ["x"])


def test_a_question_with_two_answers_joins_nothing_and_says_so() -> None:
    answers = ExpectedAnswers([
        DatasetCase("a", "Why?", expected_output="Because."),
        DatasetCase("b", "Why?", expected_output="Why not."),
    ])  # fmt: skip
    record = Record(DatasetCase("t", "Why?"))
    assert not answers.join(record)
    assert (record.case.expected_output, answers.n_ambiguous) == (None, 1)


def test_context_tools_and_checks_of_the_dataset_are_joined_too() -> None:
    known = DatasetCase("t", expected_output="4", context=["2 + 2 = 4"], metadata={"contains": ["4"]})
    record = Record(DatasetCase("t", "2 + 2?", metadata={"team": "x"}))
    assert ExpectedAnswers([known]).join(record)
    assert (record.case.query, record.case.context) == ("2 + 2?", ["2 + 2 = 4"])
    assert record.case.metadata == {"team": "x", "contains": ["4"]}


@pytest.mark.parametrize(
    ("ids", "wanted", "joined"),
    [
        (["ABC", "abc"], "abc", "abc"),
        (["abc", "ABC"], "ABC", "ABC"),
        (["0xab", "ab"], "ab", "ab"),
        (["tr-1", "1"], "tr-1", "tr-1"),
        (["ABC"], "abc", "ABC"),
        (["tr-9f"], "9f", "tr-9f"),
        (["ABC", "Abc"], "abc", None),
        (["0xab", "tr-ab"], "ab", None),
        (["a", "b"], "c", None),
    ],
)
def test_ids_join_as_they_are_written_first_and_are_never_guessed(
    ids: list[str], wanted: str, joined: str | None
) -> None:
    answers = ExpectedAnswers([DatasetCase(each, f"about {each}?", expected_output=each) for each in ids])
    record = Record(DatasetCase(wanted, "another question"))
    assert answers.join(record) == (joined is not None)
    assert record.case.expected_output == joined
    assert answers.n_ambiguous == (joined is None and len({each.lower()[-2:] for each in ids}) == 1)


def test_a_session_of_several_cases_is_ambiguous_and_a_case_id_goes_before_it() -> None:
    rows = [DatasetCase(name, expected_output=name, metadata={"session_id": "s"}) for name in ("a", "b")]
    rows.append(DatasetCase("s2", expected_output="own"))
    rows.append(DatasetCase("c", expected_output="c", metadata={"trace_id": "s2"}))
    answers = ExpectedAnswers(rows)
    assert answers.join(Record(DatasetCase("s"))) is False
    assert answers.n_ambiguous == 1
    record = Record(DatasetCase("s2"))
    assert answers.join(record)
    assert record.case.expected_output == "own"


def test_what_the_dataset_says_wins_over_what_the_trace_says() -> None:
    known = DatasetCase(
        "t", expected_output="4", context=["new"], tools=[{"name": "add"}], metadata={"contains": ["4"]}
    )
    traced = DatasetCase(
        "t", expected_output="5", context=["old"], tools=[{"name": "old"}], metadata={"contains": ["5"], "team": "x"}
    )
    record = Record(traced)
    assert ExpectedAnswers([known]).join(record)
    case = record.case
    assert (case.expected_output, case.context, case.tools) == ("4", ["new"], [{"name": "add"}])
    assert case.metadata == {"contains": ["4"], "team": "x"}


def test_a_first_line_with_a_picture_tells_the_format_too(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "x" * (3 << 20)}}
    asked = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}
    answered = {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}
    rows = [{"type": each["role"], "message": each, "sessionId": "s1"} for each in (asked, answered)]
    (tmp_path / "session.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (record,) = read_records(tmp_path / "session.jsonl")
    assert (record.case.query, record.outcome.output) == ("What is this?", "A cat.")


@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_an_empty_file_is_no_error_and_is_reported(tmp_path, content):
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    records, errors, files = read(path)
    assert (records, errors) == ([], [])
    assert files.notes.problems == {f"empty files were passed over, such as {path}": 1}
