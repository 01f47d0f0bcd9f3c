from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentunit.core.results import decode_case_scores

GOOD = '{"v":1,"case":{"id":"q1","expected_output":"4"},"trace":{"metadata":{"cost":0.5}},"outcome":"4"}\n'
WRONG = '{"v":1,"case":{"id":"q2","expected_output":"4"},"outcome":"5"}\n'


def write(name: str, *lines: str | bytes) -> Path:
    path = Path(name)
    path.write_bytes(b"".join(line.encode() if isinstance(line, str) else line for line in lines))
    return path


def test_scores_a_file_and_prints_a_table(invoke):
    write("runs.jsonl", GOOD, WRONG)
    result = invoke("score", "runs.jsonl", "-m", "answer_correctness,exact_match,cost")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    correctness = next(line for line in lines if line.startswith("answer_correctness"))
    assert "0.50 [0.09, 0.91]" in correctness
    assert "2/2" in correctness
    assert correctness.endswith("weak")
    cost = next(line for line in lines if line.startswith("cost"))
    assert "$0.5000" in cost
    assert "1/2" in cost
    assert "1 of 2 cases wrong: exact_match: " in result.stdout
    assert "agentunit show runs.jsonl q2" in result.stdout
    assert "not scored: 1 kind of missing input ('agentunit doctor runs.jsonl' says what to record)" in result.stdout
    assert "2 cases in" in result.stdout


def test_json_is_one_object_with_everything(invoke):
    write("runs.jsonl", GOOD, WRONG)
    result = invoke("score", "runs.jsonl", "--metrics", "answer_correctness", "--json")
    run = json.loads(result.stdout)
    assert run["sources"] == ["runs.jsonl"]
    parameters = {"backend": "auto", "calibration": None}
    assert run["metrics"] == [{"name": "answer_correctness", "version": "3", "parameters": parameters}]
    (row,) = run["summary"]["metrics"]
    assert (row["mean"], row["n_scored"], row["n_cases"], row["interval"]) == (0.5, 2, 2, "wilson")
    assert row["worst_cases"] == ["q2"]


def test_out_keeps_every_case(invoke):
    write("runs.jsonl", GOOD, WRONG)
    result = invoke("score", "runs.jsonl", "-m", "answer_correctness", "-o", "scores.jsonl")
    assert result.exit_code == 0
    cases = [decode_case_scores(line) for line in Path("scores.jsonl").read_bytes().splitlines()]
    assert [(case.index, case.case_id) for case in cases] == [(0, "q1"), (1, "q2")]
    assert [case.scores["answer_correctness"].value for case in cases] == [1.0, 0.0]
    assert cases[0].scores["answer_correctness"].result.detail["backend"] == "lexical"


BAD_LINES = {
    "malformed": (b'{"case": {"id": "x"\n', "not JSON: the line is truncated"),
    "wrong type": (b'{"case": {"id": "x", "metadata": 5}}\n', "case.metadata must be object; received int"),
    "invalid UTF-8": (b'{"case": {"id": "\xff"}}\n', "not valid UTF-8"),
    "NaN": (b'{"case": {"id": "x"}, "trace": {"metadata": {"cost": NaN}}}\n', "NaN is not JSON"),
    "Infinity": (b'{"case": {"id": "x"}, "trace": {"metadata": {"cost": Infinity}}}\n', "Infinity is not JSON"),
    "newer version": (b'{"v": 2, "case": {"id": "x"}}\n', "record version must be 1; received 2"),
    "no case": (b'{"question": "?"}\n', "a record needs 'case'; received the fields question"),
}


@pytest.mark.parametrize(("line", "reason"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_line_is_listed_and_the_rest_scored(invoke, line, reason):
    write("runs.jsonl", GOOD, line, WRONG)
    result = invoke("score", "runs.jsonl", "-m", "answer_correctness", "--errors", "errors.jsonl")
    assert result.exit_code == 3
    assert "2/2" in result.stdout
    assert "runs.jsonl, line 2: " in result.stdout
    assert reason in result.stdout
    assert "errors: 1 (1 unreadable, 0 failed scores), allowed: 0" in result.stderr
    (error,) = [json.loads(each) for each in Path("errors.jsonl").read_text().splitlines()]
    assert (error["source"], error["line"]) == ("runs.jsonl", 2)
    assert reason in error["reason"]


def test_max_errors_allows_some(invoke):
    write("runs.jsonl", GOOD, "{\n")
    assert invoke("score", "runs.jsonl", "-m", "cost", "--max-errors", "1").exit_code == 0
    assert invoke("score", "runs.jsonl", "-m", "cost", "--max-errors", "0").exit_code == 3


def test_strict_stops_at_the_first(invoke):
    write("runs.jsonl", GOOD, "{\n", WRONG)
    result = invoke("score", "runs.jsonl", "-m", "cost", "--strict", "-o", "scores.jsonl")
    assert result.exit_code == 3
    assert "runs.jsonl, line 2: not JSON" in result.stderr
    assert "Traceback" not in result.output
    assert len(Path("scores.jsonl.part").read_text().splitlines()) == 1  # what was scored before is kept


def test_a_truncated_gzip_keeps_what_could_be_read(invoke):
    whole = gzip.compress(b"".join(GOOD.replace("q1", f"q{n}-{os.urandom(20).hex()}").encode() for n in range(2000)))
    write("runs.jsonl.gz", whole[: len(whole) // 2])
    result = invoke("score", "runs.jsonl.gz", "-m", "cost", "--json")
    summary = json.loads(result.stdout)["summary"]
    assert result.exit_code == 3
    assert summary["n_cases"] > 500
    assert "cut off or damaged" in summary["input_errors"][0]["reason"]


def test_empty_input_says_so(invoke):
    write("runs.jsonl")
    result = invoke("score", "runs.jsonl")
    assert result.exit_code == 3
    assert result.stderr.splitlines() == ["nothing to score: runs.jsonl holds no records"]


def test_a_missing_file_is_one_line(invoke):
    result = invoke("score", "nowhere.jsonl")
    assert result.exit_code == 3
    assert result.stderr == "Error: nowhere.jsonl: no such file\n"


def test_an_empty_folder_holds_nothing_to_score(invoke):
    Path("runs").mkdir()
    result = invoke("score", "runs")
    assert (result.exit_code, result.stderr) == (3, "nothing to score: runs holds no records\n")


def test_an_input_is_never_overwritten(invoke):
    path = write("runs.jsonl", GOOD)
    result = invoke("score", "runs.jsonl", "-o", "runs.jsonl")
    assert result.exit_code == 2
    assert "would destroy it" in result.stderr
    assert path.read_text() == GOOD


def test_an_output_that_cannot_be_written_is_one_line(invoke):
    write("runs.jsonl", GOOD)
    result = invoke("score", "runs.jsonl", "-o", "no/such/folder/scores.jsonl")
    assert result.exit_code == 3
    assert result.stderr == "Error: cannot write no/such/folder/scores.jsonl.part: no such file or directory\n"


def test_an_unknown_metric_suggests_the_nearest(invoke):
    write("runs.jsonl", GOOD)
    result = invoke("score", "runs.jsonl", "-m", "faithfullness")
    assert result.exit_code == 2
    assert "no metric is called 'faithfullness'; did you mean 'faithfulness'?" in result.stderr


def test_a_metric_of_ones_own_beside_the_traces(invoke, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    write("runs.jsonl", GOOD)
    write(
        "shouting_metric.py",
        "from agentunit import MetricResult\n"
        "class Shouting:\n"
        "    name = 'shouting'\n"
        "    def evaluate(self, case, trace, outcome):\n"
        "        return MetricResult(self.name, float(outcome.output.isupper()))\n",
    )
    result = invoke("score", "runs.jsonl", "-m", "shouting_metric:Shouting,cost")
    assert result.exit_code == 0, result.output
    assert "shouting" in result.stdout


def test_a_metric_that_raises_is_recorded_and_counts(invoke, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    write("runs.jsonl", GOOD, WRONG)
    write(
        "fragile_metric.py",
        "from agentunit import MetricResult\n"
        "class Fragile:\n"
        "    name = 'fragile'\n"
        "    def evaluate(self, case, trace, outcome):\n"
        "        return MetricResult(self.name, 1 / (case.id != 'q1'))\n",
    )
    result = invoke("score", "runs.jsonl", "-m", "fragile_metric:Fragile", "-o", "scores.jsonl")
    assert result.exit_code == 3
    assert "error fragile: 1 × ZeroDivisionError: division by zero (fragile_metric.py:5) (q1)" in result.stdout
    first, second = [decode_case_scores(line) for line in Path("scores.jsonl").read_bytes().splitlines()]
    error = first.scores["fragile"].result.detail["error"]
    assert (error["type"], error["message"]) == ("ZeroDivisionError", "division by zero")
    assert "fragile_metric.py:5 in evaluate" in error["place"]
    assert second.scores["fragile"].value == 1.0


def test_standard_input(invoke):
    result = invoke("score", "-", "-m", "cost", "--json", input=GOOD)
    assert json.loads(result.stdout)["summary"]["n_cases"] == 1


def test_control_characters_of_a_hostile_file_stay_out_of_the_terminal(invoke):
    write("runs.jsonl", GOOD, '{"case": {"id": "x", "metadata": {}}, "v": "\\u001b[2J"}\n')
    result = invoke("score", "runs.jsonl", "-m", "cost")
    assert "\x1b[2J" not in result.output


def test_markup_in_a_record_is_printed_as_it_is(invoke):
    write("runs.jsonl", '{"case": {"id": "[red]x[/red]"}}\n', '{"case": {"id": "[/oops]"}}\n')
    result = invoke("score", "runs.jsonl", "-m", "cost")
    assert result.exit_code == 4, result.output  # nothing was scored: the data cannot tell
    assert "[red]x[/red], [/oops]" in result.stdout


def test_a_closed_pipe_is_no_traceback(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text(GOOD * 3)
    command = f"{sys.executable} -m agentunit score {path} -m cost --json | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
