"""The score table in DuckDB, Polars and pandas: the lines of docs/records.md, and data frames."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.optional
duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

from click.testing import CliRunner  # noqa: E402

import agentunit  # noqa: E402
from agentunit.addons.scale._parquet_table import COLUMNS  # noqa: E402
from agentunit.cli.main import cli  # noqa: E402
from agentunit.engine.scoring.scored_run import run_from_file  # noqa: E402

PAGE = Path(__file__).resolve().parents[3] / "docs" / "records.md"
RECORDS = [
    {"case": {"id": "q1"}, "trace": {"metadata": {"cost": 0.5}}, "outcome": {"output": "a", "success": True}},
    {"case": {"id": "q2"}, "outcome": {"output": "b", "success": False}},
]
METRICS = ["task_success", "cost"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The folder of the page: a file of traces and its score table."""
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["convert", "demo", "--out", "traces.jsonl"],
        ["score", "traces.jsonl", "-m", ",".join(METRICS), "--out", "scores.parquet"],
    ):
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output
    return tmp_path / "scores.parquet"


def test_the_lines_of_the_page_run(table, capsys):
    blocks = re.findall(r"^```text\n(import .*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, {})
    shown = capsys.readouterr().out
    assert "task_success" in shown
    assert "trace.metadata['cost']" in shown


def test_tools_count_what_the_summary_counts(table):
    found = duckdb.sql(
        f"SELECT metric, backend, avg(value), count(value) FROM '{table}' WHERE value IS NOT NULL GROUP BY ALL"
    )
    rows = {(metric, backend): (mean, n) for metric, backend, mean, n in found.fetchall()}
    summary = run_from_file(table).summary()
    assert {(row.metric, row.backend) for row in summary.metrics} == set(rows)
    for row in summary.metrics:
        assert rows[row.metric, row.backend] == (pytest.approx(row.mean), row.n_scored)
    scanned = polars.scan_parquet(table).filter(polars.col("metric") == "cost").collect()
    assert scanned["value"].null_count() == sum(each.value is None for each in run_from_file(table).metrics["cost"])


def test_data_frames_have_the_columns_and_types_of_the_table(table):
    for run in (agentunit.score(RECORDS, METRICS), run_from_file(table)):
        rows, as_pandas, as_polars = run.to_rows(), run.to_pandas(), run.to_polars()
        assert tuple(as_pandas.columns) == tuple(as_polars.columns) == COLUMNS
        assert as_polars.to_dicts() == rows
        assert as_pandas["value"].dtype == "float64"
        assert as_pandas["position"].dtype == "int64"
        assert as_pandas["agent_failed"].dtype == "boolean"
        assert as_pandas["case_id"].tolist() == [row["case_id"] for row in rows]
        assert as_pandas["value"].isna().sum() == sum(row["value"] is None for row in rows)
    assert polars.read_parquet(table).schema == as_polars.schema
    assert as_polars.equals(polars.read_parquet(table))


def test_a_run_without_scores_is_an_empty_frame():
    for name in ("pandas", "polars"):
        frame = getattr(agentunit.score([], METRICS), f"to_{name}")()
        assert (tuple(frame.columns), len(frame)) == (COLUMNS, 0)


def test_a_table_that_another_tool_wrote_anew_is_no_run(table, tmp_path):
    polars.read_parquet(table).write_parquet(tmp_path / "other.parquet")
    refused = CliRunner().invoke(cli, ["show", "other.parquet"])
    assert refused.exit_code == 3
    assert "is a Parquet file, but no score table of AgentUnit" in refused.stderr
