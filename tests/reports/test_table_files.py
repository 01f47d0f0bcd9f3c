from __future__ import annotations

import csv
import re
import sys

import pyarrow.parquet
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.addons.scale import _parquet_table as parquet_table
from agentunit.addons.scale.table_output import write_parquet
from agentunit.installation import install_command
from agentunit.reports import reporters
from agentunit.reports.reported_run import open_run, open_run_file
from agentunit.reports.reporters import COLUMNS, ReportError, whole_file, write_csv
from agentunit.store.portable import export_run


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_one_row_a_case_and_metric(demo_run, tmp_path):
    path = tmp_path / "run.csv"
    assert write_csv(demo_run, path) == 66 * 5
    rows = read_csv(path)
    assert tuple(rows[0]) == COLUMNS
    by_key = {(row["case_id"], row["metric"]): row for row in rows}
    assert len(by_key) == 66 * 5
    row = by_key["desk-001", "tool_success"]
    assert float(row["value"]) == pytest.approx(1 / 3)
    assert (row["repeat"], row["status"], row["backend"], row["version"]) == ("1", "ok", "trace", "3")
    assert (row["agent_failed"], row["agent_elapsed_s"]) == ("false", "1.5")
    unscored = by_key["hung", "faithfulness"]
    assert (unscored["value"], unscored["status"]) == ("", "not_applicable")
    assert unscored["reason"].startswith("no ")


def test_csv_and_parquet_hold_the_same(demo_run, tmp_path):
    assert write_csv(demo_run, tmp_path / "run.csv") == write_parquet(demo_run, tmp_path / "run.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "run.parquet")
    assert tuple(table.column_names) == parquet_table.COLUMNS
    assert set(COLUMNS) <= set(table.column_names)
    assert str(table.schema.field("value").type) == "double"
    for from_csv, row in zip(read_csv(tmp_path / "run.csv"), table.to_pylist(), strict=True):
        assert from_csv["case_id"] == row["case_id"]
        assert from_csv["reason"] == (row["reason"] or "")
        assert from_csv["why"] == (row["why"] or "")
        assert (float(from_csv["value"]) if from_csv["value"] else None) == row["value"]


def test_parquet_in_several_batches(demo_run, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_table, "_ROWS_AT_ONCE", 10)
    monkeypatch.setattr(parquet_table, "_ROWS_A_GROUP", 100)
    assert write_parquet(demo_run, tmp_path / "run.parquet") == 330
    about = pyarrow.parquet.read_metadata(tmp_path / "run.parquet")
    assert [about.row_group(group).num_rows for group in range(about.num_row_groups)] == [100, 100, 100, 30]


def test_repeats_are_rows_of_their_own(store, keep, tmp_path):
    records = [Record(DatasetCase("q1", "?"), TraceLog(), Outcome(success=True, output="a"))]
    keep(store, [records, records, records], metrics=["task_success"])
    write_csv(open_run("run-1", store), tmp_path / "run.csv")
    assert [row["repeat"] for row in read_csv(tmp_path / "run.csv")] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1+1", "'  =1+1"),
        ("\t=1", "'\t=1"),
        ("＝1+1", "'＝1+1"),
        ("\u3000＠SUM(A1)", "'\u3000＠SUM(A1)"),
        ("－1", "'－1"),
        ("a=1", "a=1"),
        ("zero\x00byte", "zero\ufffdbyte"),
        (-1.5, -1.5),  # a number is a number
        (None, None),
        (True, "true"),
    ],
)
def test_no_cell_of_text_is_a_formula(text, cell):
    assert reporters._cell(text) == cell


@given(st.text())
def test_every_text_survives_the_csv(tmp_path_factory, text):
    # What logs of CI jobs obey is disarmed, which is another test.
    assume("::" not in text and "##" not in text)
    path = tmp_path_factory.mktemp("csv") / "one.csv"
    with open(path, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\r\n").writerow([reporters._cell(text), "end"])
    with open(path, encoding="utf-8", newline="") as stream:
        ((first, last),) = csv.reader(stream)
    assert last == "end"
    assert first.removeprefix("'") == text.replace("\x00", "\ufffd").removeprefix("'")
    assert not first.startswith(("=", "+", "-", "@"))


def test_hostile_text_in_a_table(hostile_run, tmp_path):
    write_csv(hostile_run, tmp_path / "run.csv")
    write_parquet(hostile_run, tmp_path / "run.parquet")
    assert len(read_csv(tmp_path / "run.csv")) == 6


def test_without_pyarrow_the_command_that_adds_it(demo_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ReportError, match=re.escape(install_command("parquet"))):
        write_parquet(demo_run, tmp_path / "run.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_a_file_reads_like_one_of_a_store(demo_store, demo_run, tmp_path):
    export_run(demo_store, "run-1", tmp_path / "run.json.gz")
    from_file = open_run_file(tmp_path / "run.json.gz")
    write_csv(from_file, tmp_path / "file.csv")
    write_csv(demo_run, tmp_path / "store.csv")
    assert (tmp_path / "file.csv").read_bytes() == (tmp_path / "store.csv").read_bytes()
    assert from_file.case_ids() == demo_run.case_ids()
    assert from_file.case("hung")[0].failed
    assert from_file.case("hung")[0].scores.keys() == demo_run.case("hung")[0].scores.keys()


def test_a_report_that_breaks_off_leaves_what_was_there(tmp_path):
    target = tmp_path / "run.md"
    target.write_text("earlier")

    def broken() -> None:
        with whole_file(target) as stream:
            stream.write(b"new")
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        broken()
    assert target.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [target]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    target = tmp_path / "no" / "such.md"
    with pytest.raises(ReportError, match=r"cannot write .*: no such file or directory"), whole_file(target):
        pass


def test_a_score_without_its_record_is_passed_over(store, keep):
    records = [Record(DatasetCase(f"q{n}", "?"), TraceLog(), Outcome(success=True, output="a")) for n in range(3)]
    keep(store, [records], metrics=["task_success"])
    from agentunit.reports.reported_run import _joined

    # As a reader sees it when another process is adding to the run.
    kept = [stored for stored in store.records("run-1") if stored.position != 1]
    joined = list(_joined(kept, store.scores("run-1")))
    assert [(case.case_id, list(case.scores)) for case in joined] == [
        ("q0", ["task_success"]),
        ("q2", ["task_success"]),
    ]
