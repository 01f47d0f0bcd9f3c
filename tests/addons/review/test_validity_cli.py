"""``agentunit validity``: the user's labels against the metrics, and every way in which a labels file can be wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agentunit.addons.review.labeling.label_files import label_number

HEADER = "question,context,answer,expected,label"


def answer_row(good, right, label=None):
    """A row whose answer_correctness is 1 when ``right``."""
    words = label or ("pass" if good else "fail")
    return f"2+2?,It is 4,{'4' if right else '5'},4,{words}"


# Of ten good answers eight score 1, of ten bad ones three do: AUROC = balanced accuracy = (0.8 + 0.7) / 2 = 0.75.
KNOWN_ROWS = [answer_row(True, i < 8) for i in range(10)] + [answer_row(False, i < 3) for i in range(10)]


def write(name, *lines):
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def run_json(invoke, *arguments):
    result = invoke("label", "--measure", *arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def test_a_labels_file_that_holds_the_texts(invoke):
    code, report = run_json(invoke, "--labels", write("mine.csv", HEADER, *KNOWN_ROWS), "-m", "answer_correctness")
    assert code == 0
    (row,) = report["agreements"]
    assert (row["metric"], row["backend"], row["statistic"]) == ("answer_correctness", "lexical", "AUROC")
    assert (row["n"], row["n_good"]) == (20, 10)
    assert row["value"] == pytest.approx(0.75)
    assert row["balanced_accuracy"] == pytest.approx(0.75)
    assert row["agreement"] == pytest.approx(15 / 20)
    assert row["low"] < 0.75 < row["high"]
    assert report["n_labels"] == 20
    assert report["input_errors"] == []


def test_too_few_labels_are_no_verdict(invoke):
    rows = [answer_row(True, i < 4) for i in range(5)] + [answer_row(False, i < 2) for i in range(5)]
    asked = ("--labels", write("few.csv", HEADER, *rows), "-m", "answer_correctness")
    code, report = run_json(invoke, *asked)
    assert [row["verdict"] for row in report["agreements"]] == ["too few labels to tell"]
    assert code == 4
    assert "The data cannot tell: 10 labels read" in invoke("label", "--measure", *asked).stdout


def test_the_table_reads_well(invoke):
    result = invoke(
        "label", "--measure", "--labels", write("mine.csv", HEADER, *KNOWN_ROWS), "-m", "answer_correctness,cost"
    )
    assert result.exit_code == 0
    heading, row = result.stdout.splitlines()[:2]
    assert heading.split("  ")[0] == "metric"
    assert "AUROC, 95 %" in heading
    assert row.startswith("answer_correctness ↑  lexical  20  0.75 [")
    assert "0.75 at 0.5" in row
    assert "cost: 20 × " in result.stdout
    assert "next: agentunit metrics answer_correctness" in result.stdout


def write_runs(n=20):
    # Every other answer is right.
    lines = [
        {"v": 1, "case": {"id": f"q{i}", "expected_output": "4"}, "outcome": "4" if i % 2 else "5"} for i in range(n)
    ]
    return write("runs.jsonl", *map(json.dumps, lines))


@pytest.mark.parametrize("id_column", ["id", "case_id", "Case_ID "])
def test_records_joined_by_case_id(invoke, id_column):
    labels = write("mine.csv", f"{id_column},label", *(f"q{i},{i % 2}" for i in range(2, 20)), "q77,1")
    code, report = run_json(invoke, write_runs(), "--labels", labels, "-m", "answer_correctness")
    assert code == 0
    assert (report["agreements"][0]["n"], report["agreements"][0]["value"]) == (18, 1.0)
    assert report["not_joined"] == ["1 label without a record (q77)", "2 records without a label"]


def test_jsonl_labels_and_grades(invoke):
    rows = [{"id": f"q{i}", "label": 2 + i % 2} for i in range(20)]
    labels = write("mine.jsonl", *map(json.dumps, rows))
    code, report = run_json(invoke, write_runs(), "--labels", labels, "-m", "answer_correctness")
    assert code == 0
    assert (report["agreements"][0]["statistic"], report["agreements"][0]["value"]) == ("Spearman", 1.0)
    _, turned = run_json(invoke, "runs.jsonl", "--labels", labels, "-m", "answer_correctness", "--label-means", "bad")
    assert turned["agreements"][0]["value"] == -1.0


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        ("true", 1), (" TRUE ", 1), ("yes", 1), ("1", 1), ("pass", 1), ("Good", 1), ("correct", 1), (True, 1), (1, 1),
        ("false", 0), ("no", 0), ("0", 0), ("fail", 0), ("bad", 0), ("Incorrect", 0), (False, 0), (0.0, 0),
        ("0.25", 0.25), (4, 4), ("-3", -3),
    ],
)  # fmt: skip
def test_known_labels(raw, number):
    assert label_number(raw)[0] == number


@pytest.mark.parametrize("raw", ["maybe", "nan", "inf", "1e999", [1], {"label": 1}, "true false"])
def test_unknown_labels(raw):
    with pytest.raises(ValueError, match=r"label must be true/false.*; received"):
        label_number(raw)


@pytest.mark.parametrize(
    ("good", "bad", "means"),
    [
        ("no", "yes", "bad"),
        ("0", "1", "bad"),
        ("false", "true", "bad"),
        # These words say themselves what they mean.
        ("pass", "fail", "bad"),
        ("correct", "incorrect", "good"),
    ],
)
def test_what_a_label_means(invoke, good, bad, means):
    rows = [answer_row(True, True, good), answer_row(False, False, bad)] * 10
    labels = write("mine.csv", HEADER.replace("label", "hallucinated"), *rows)
    code, report = run_json(
        invoke, "--labels", labels, "-m", "answer_correctness", "--label-column", "Hallucinated", "--label-means", means
    )
    assert (code, report["agreements"][0]["value"]) == (0, 1.0)


def test_a_lower_is_better_metric_and_a_context_of_several_texts(invoke):
    rows = [
        {"response": "It is 4 and even." if i % 2 else "No.", "context": ["4", "even"], "label": bool(i % 2)}
        for i in range(20)
    ]
    labels = write("mine.jsonl", *map(json.dumps, rows))
    csv_rows = [f'{"It is 4 and even." if i % 2 else "No."},"[""4"", ""even""]",{i % 2}' for i in range(20)]
    in_csv = write("mine.csv", "output,context,label", *csv_rows)
    for path in (labels, in_csv):
        code, report = run_json(invoke, "--labels", path, "-m", "hallucination_rate")
        assert (code, report["agreements"][0]["value"]) == (0, 1.0)
        assert report["agreements"][0]["balanced_accuracy"] == 1.0


def test_groups_widen_the_interval(invoke):
    with_groups = [f"{row},{index % 5}" for index, row in enumerate(KNOWN_ROWS * 3)]
    plain = run_json(invoke, "--labels", write("a.csv", HEADER, *KNOWN_ROWS * 3), "-m", "answer_correctness")[1]
    grouped = run_json(invoke, "--labels", write("b.csv", f"{HEADER},group", *with_groups), "-m", "answer_correctness")[
        1
    ]
    assert plain["agreements"][0]["value"] == grouped["agreements"][0]["value"]
    assert plain["agreements"][0]["low"] != grouped["agreements"][0]["low"]


def test_bad_rows_are_named_and_the_rest_counts(invoke):
    labels = write(
        "mine.csv", HEADER, *KNOWN_ROWS[:5], answer_row(True, True, "maybe"), "too,few", *KNOWN_ROWS[5:], "2+2?,,4,4,"
    )
    result = invoke("label", "--measure", "--labels", labels, "-m", "answer_correctness")
    assert result.exit_code == 3
    assert "mine.csv, line 7: label must be true/false" in result.stdout
    assert "received 'maybe'" in result.stdout
    assert "mine.csv, line 8: has 2 cells where the header has 5" in result.stdout
    assert "1 row without a label" in result.stdout
    assert "lexical  20  0.75" in result.stdout
    assert "errors: 2 (2 unreadable, 0 failed scores)" in result.stderr


def test_a_cell_of_several_lines_keeps_the_line_numbers_right(invoke):
    rows = ['"2+2\n\n?",It is 4,4,4,pass', answer_row(True, True, "maybe")]
    code, report = run_json(invoke, "--labels", write("mine.csv", HEADER, *rows), "-m", "answer_correctness")
    assert code == 3
    assert [error["line"] for error in report["input_errors"]] == [5]


def test_words_and_grades_do_not_mix(invoke):
    rows = [*KNOWN_ROWS, answer_row(True, True, "7")]
    code, report = run_json(invoke, "--labels", write("mine.csv", HEADER, *rows), "-m", "answer_correctness")
    assert code == 3
    assert [(error["line"], error["reason"]) for error in report["input_errors"]] == [
        (22, "label '7' is mixed with words; use one kind")
    ]
    assert report["agreements"][0]["value"] == pytest.approx(0.75)
    grades = [answer_row(True, i > 5, str(i)) for i in range(12)]
    code, report = run_json(
        invoke, "--labels", write("b.csv", HEADER, *grades, KNOWN_ROWS[0]), "-m", "answer_correctness"
    )
    assert [error["reason"] for error in report["input_errors"]] == ["label 'pass' is mixed with grades; use one kind"]
    assert report["agreements"][0]["statistic"] == "Spearman"


def test_an_id_labeled_twice_counts_once(invoke):
    labels = write("mine.csv", "id,label", *(f"q{i},{i % 2}" for i in range(20)), "q3,0", ",1")
    code, report = run_json(invoke, write_runs(), "--labels", labels, "-m", "answer_correctness")
    assert code == 3
    assert report["agreements"][0]["value"] == 1.0
    assert [(error["line"], error["reason"]) for error in report["input_errors"]] == [
        (22, "id 'q3' is labeled on line 5 already"),
        (23, "has a label but no id"),
    ]


def test_an_unreadable_record_is_named(invoke):
    runs = Path(write_runs())
    runs.write_text(runs.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    labels = write("mine.csv", "id,label", *(f"q{i},{i % 2}" for i in range(20)))
    code, report = run_json(invoke, "runs.jsonl", "--labels", labels, "-m", "answer_correctness")
    assert code == 3
    assert report["input_errors"][0]["line"] == 21
    assert report["agreements"][0]["n"] == 20


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (KNOWN_ROWS[8:12], "4 rows are labeled and scored; at least 10 are needed"),
        (KNOWN_ROWS[:10], "all 10 labels are good; there is nothing to distinguish"),
        ([], "no metric could be judged"),
    ],
)
def test_labels_that_cannot_tell_exit_4(invoke, rows, words):
    result = invoke("label", "--measure", "--labels", write("mine.csv", HEADER, *rows), "-m", "answer_correctness")
    assert result.exit_code == 4
    assert words in result.stdout
    assert "The data cannot tell" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--labels", "gone.csv"), "gone.csv: no such file"),
        (("gone.jsonl", "--labels", "ids.csv"), "gone.jsonl: no such file"),
        (("--labels", "."), ".: is not a file"),
        (("--labels", "ids.csv"), "ids.csv: no column answer, response or output"),
        (("runs.jsonl", "--labels", "texts.csv"), "no column id or case_id to join the records by"),
        (("--labels", "texts.csv", "--label-column", "verdict"), "no column 'verdict' (--label-column names another); the file has: question"),  # noqa: E501
        (("--labels", "empty.csv"), "no column 'label'"),
        (("--labels", "latin.csv"), "latin.csv: not UTF-8 text (byte 8)"),
        (("--labels", "cut.csv.gz"), "cut off or damaged"),
        (("--labels", "array.json"), "a JSON array; write one object per line"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used_are_one_line(invoke, arguments, words):
    write_runs()
    write("ids.csv", "id,label", "q1,1")
    write("texts.csv", HEADER, *KNOWN_ROWS)
    write("array.json", '[{"label": 1}]')
    Path("empty.csv").touch()
    Path("latin.csv").write_bytes("label\nna\u00efve\n".encode("latin-1"))
    Path("cut.csv.gz").write_bytes(gzip.compress(b"label\n1\n" * 100)[:-9])
    result = invoke("label", "--measure", *arguments)
    assert result.exit_code == 3
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [(), ("--labels", "mine.csv", "-m", "nope"), ("--labels", "mine.csv", "--threshold", "nan"),
     ("--labels", "mine.csv", "--label-means", "maybe")],
)  # fmt: skip
def test_usage_errors_exit_2(invoke, arguments):
    write("mine.csv", HEADER, *KNOWN_ROWS)
    assert invoke("label", "--measure", *arguments).exit_code == 2


def test_spreadsheet_exports_are_read(invoke):
    rows = [row.replace(",", ";") for row in KNOWN_ROWS]
    text = "\r\n".join([HEADER.replace(",", ";"), *rows])
    Path("mine.csv.gz").write_bytes(gzip.compress(text.encode("utf-8-sig")))
    code, report = run_json(invoke, "--labels", "mine.csv.gz", "-m", "answer_correctness")
    assert (code, report["agreements"][0]["n"]) == (0, 20)


def test_a_long_context_fits_in_a_cell(invoke):
    rows = [row.replace("It is 4", "4 " * 100_000) for row in KNOWN_ROWS]
    code, report = run_json(invoke, "--labels", write("mine.csv", HEADER, *rows), "-m", "answer_correctness")
    assert (code, report["agreements"][0]["n"]) == (0, 20)


def test_texts_of_the_wrong_kind_are_named(invoke):
    bad = [{"answer": "4", "context": 7, "label": 1}, {"answer": "4", "query": ["?"], "label": 1}, ["no", "object"]]
    good = [{"answer": "4" if i % 2 else "5", "expected": ["4", "four"], "label": i % 2} for i in range(20)]
    labels = write("mine.jsonl", *map(json.dumps, [*good, *bad]))
    code, report = run_json(invoke, "--labels", labels, "-m", "answer_correctness")
    assert (code, report["agreements"][0]["value"]) == (3, 1.0)
    reasons = {error["line"]: error["reason"] for error in report["input_errors"]}
    assert reasons[21] == "context must be a text or a list of texts; received 7"
    assert reasons[22] == "query must be a text; received ['?']"
    assert "not a JSON object" in reasons[23]


def test_control_characters_do_not_reach_the_terminal(invoke):
    labels = write("mine.csv", "id,label", *(f"q{i},{i % 2}" for i in range(20)), "\x1b[31m,1", "x,\x1b[2J")
    result = invoke("label", "--measure", write_runs(), "--labels", labels, "-m", "answer_correctness")
    assert "\x1b" not in result.stdout
    assert "(·[31m)" in result.stdout
    assert result.exit_code == 3


def test_help_shows_an_example(invoke):
    result = invoke("label", "--help")
    assert result.exit_code == 0
    assert "agentunit label runs.jsonl --measure --labels mine.csv" in result.stdout
