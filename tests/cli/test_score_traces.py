"""``agentunit score`` on traces: what was noticed while reading is told, where it disturbs nothing."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from spans_of import TRACE, oi, otlp

from agentunit.traces.spans import Span


def write_spans() -> None:
    server = Span(TRACE, "http", None, "POST /chat", 0.1, 5.0)
    answered = oi("AGENT", "a", "http", input__value="Why?", output__value="Because.")
    tools = [
        oi("TOOL", "t1", "a", tool__name="search", tool_results="[1]"),
        oi("TOOL", "t2", "gone", tool__name="search", status="error"),
    ]
    Path("spans.json").write_bytes(otlp(server, answered, *tools))


def test_a_span_file_is_scored_with_its_answers_and_what_was_noticed_is_told(invoke):
    write_spans()
    Path("answers.csv").write_text("question,expected\nwhy?,Because.\nwho?,Me.\n")
    result = invoke("score", "spans.json", "--expected", "answers.csv", "-m", "answer_correctness,tool_success")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if "1/1" in line}
    assert "1.00" in rows["answer_correctness"]
    assert "0.50" in rows["tool_success"]
    shown = " ".join(result.stdout.split())
    assert "read as otlp-json: 4 spans in 1 trace" in shown
    assert "1 span of no known vocabulary, kept as plain events: POST /chat" in shown
    assert "1 field not understood: tool_results ×1" in shown
    assert "1 × spans name a parent that is not in the file" in shown
    assert "expected answers were found for 1 case; 1 row of the dataset met no case: case-2" in shown


def test_the_doctor_lists_fields_that_nobody_knows(invoke):
    write_spans()
    assert "1 field not understood: tool_results ×1" in " ".join(invoke("doctor", "spans.json").stdout.split())
    assert json.loads(invoke("doctor", "spans.json", "--json").stdout)["not_understood"] == {"tool_results": 1}


def test_json_on_standard_output_stays_one_object(invoke):
    write_spans()
    result = invoke("score", "spans.json", "-m", "tool_success", "--json")
    assert json.loads(result.stdout)["summary"]["n_cases"] == 1
    assert "read as otlp-json" in result.stderr


def test_a_wrong_format_or_answers_file_is_told_before_anything_is_read(invoke):
    write_spans()
    forced = invoke("score", "spans.json", "--from", "otlp")
    assert forced.exit_code == 2
    assert "must be one of records, otlp-json" in " ".join(forced.stderr.split())
    Path("answers.jsonl").write_text("{")
    assert invoke("score", "spans.json", "--expected", "answers.jsonl").exit_code == 3
    assert invoke("score", "spans.json", "--expected", "nowhere.csv").exit_code == 2


def test_hostile_names_do_not_reach_the_terminal(invoke):
    odd = Span(TRACE, "x", None, "\x1b[2J[red]gone", 0.1, 0.2)
    Path("spans.json").write_bytes(otlp(odd, oi("AGENT", "a", input__value="Why?")))
    result = invoke("score", "spans.json", "-m", "tool_success")
    assert "\x1b[2J" not in result.output
    assert "[red]gone" in result.output


def test_converted_records_score_as_the_traces_do(invoke):
    write_spans()
    converted = invoke("convert", "spans.json", "--out", "records.jsonl.gz")
    assert converted.exit_code == 0, converted.output
    assert "1 record in records.jsonl.gz" in converted.stderr
    assert not Path("records.jsonl.gz.part").exists()
    for path in ("spans.json", "records.jsonl.gz"):
        (row,) = json.loads(invoke("score", path, "-m", "tool_success", "--json").stdout)["summary"]["metrics"]
        assert (row["mean"], row["worst_cases"]) == (0.5, [TRACE])


def test_converting_says_what_could_not_be_read_and_keeps_the_rest(invoke):
    write_spans()
    Path("cut.json").write_bytes(Path("spans.json").read_bytes()[:-40])
    result = invoke("convert", "spans.json", "cut.json", "--out", "records.jsonl")
    assert result.exit_code == 3
    assert "not read: cut.json" in result.stderr
    assert len(Path("records.jsonl").read_text().splitlines()) == 1
    nothing = invoke("convert", "cut.json", "--out", "cut.json")
    assert nothing.exit_code == 2
    assert "is an input" in nothing.stderr


def test_an_output_that_is_no_file_is_written_to_and_not_replaced(invoke):
    write_spans()
    os.mkfifo("pipe")
    for verb in (["convert", "spans.json"], ["score", "spans.json", "-m", "response_time"]):
        # A reader that is there already: opening the pipe for writing then does not wait.
        reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
        try:
            result = invoke(*verb, "--out", "pipe")
            received = os.read(reader, 1 << 16)
        finally:
            os.close(reader)
        assert result.exit_code == 0, result.output
        assert json.loads(received)
        assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def test_an_output_that_is_a_link_is_written_where_it_points(invoke):
    write_spans()
    Path("kept").mkdir()
    Path("out.jsonl").symlink_to("kept/real.jsonl")
    assert invoke("convert", "spans.json", "--out", "out.jsonl").exit_code == 0
    assert Path("out.jsonl").is_symlink()
    assert json.loads(Path("kept/real.jsonl").read_text().splitlines()[0])
    assert not list(Path().rglob("*.part"))


def test_a_recorded_run_can_be_converted_and_redacted_by_its_name(invoke):
    Path("suite.py").write_text(
        "from agentunit import Suite\n"
        "cases = [{'id': 'q1', 'query': 'Who?'}]\n"
        "suite = Suite(dataset=cases, agent=lambda q: 'Ask mia.li@example.com', metrics=['contains'])\n"
    )
    invoke("run", "suite.py")
    assert invoke("convert", "last", "--out", "records.jsonl").exit_code == 0
    assert "mia.li@example.com" in Path("records.jsonl").read_text()
    assert invoke("convert", "--mask", "last", "--out", "shareable.jsonl").exit_code == 0
    assert "<EMAIL_1>" in Path("shareable.jsonl").read_text()
    unknown = invoke("convert", "nowhere", "--out", "x.jsonl")
    assert unknown.exit_code == 3
    assert "no such file, and no such run" in unknown.stderr


SLIPS = {
    "case": {"id": "q1", "expected_ouput": "x", "contxt": ["x"], "mine": 1},
    "outcome": {"output": "x", "sucess": True},
}
NAMED = [
    "2 × field case.expected_ouput is not read; did you mean 'expected_output'?",
    "2 × field case.contxt is not read; did you mean 'context'?",
    "2 × field outcome.sucess is not read; did you mean 'success'?",
]


def test_misspelled_fields_of_records_are_named_once_with_how_many_have_them(invoke):
    other = {"case": {"id": "q2", "context": ["x"], "contexts": 3, "expected_output": "x"}, "outcome": "x"}
    lines = [json.dumps({**SLIPS, "case": {**SLIPS["case"], "id": each}}) for each in ("q1", "q3")]
    Path("records.jsonl").write_text("\n".join([*lines, json.dumps(other)]))
    for command in (
        ["score", "records.jsonl", "-m", "contains"],
        ["score", "records.jsonl", "-m", "contains", "--jobs", "2"],
        ["doctor", "records.jsonl"],
        ["show", "records.jsonl", "-g", "cost <= 1"],
        ["convert", "records.jsonl", "--out", "other.jsonl"],
    ):
        said = [line.strip() for line in invoke(*command).output.splitlines() if "did you mean" in line]
        assert said == NAMED, command


def test_misspelled_columns_and_fields_of_datasets_are_named(invoke):
    Path("answers.csv").write_text("id,query,expected_ouput,level\nq1,Why?,Because.,3\n")
    Path("records.jsonl").write_text('{"case": {"id": "q1", "query": "Why?"}, "outcome": "Because."}\n')
    note = "note: field 'metadata.expected_ouput' (1 case) is not read; did you mean 'expected_output'?"
    for command in (["doctor", "answers.csv"], ["score", "records.jsonl", "--expected", "answers.csv"]):
        result = invoke(*command)
        assert [line for line in result.stderr.splitlines() if "not read" in line] == [note], command
