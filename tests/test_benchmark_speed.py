"""The speed benchmark runs and answers all its questions; how fast anything is is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run_benchmark(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.speed", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))


def test_our_rows_of_all_questions(tmp_path):
    figures_path = tmp_path / "figures.json"
    done = run_benchmark(
        "--only-ours", "--rounds", "1", "--cases", "50", "--records", "20", "--json", str(figures_path)
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = json.loads(figures_path.read_text(encoding="utf-8"))["answers"]
    assert list(answers) == ["import", "install", "overhead", "catalog", "memory"]
    assert [row["name"] for row in answers["import"]] == ["agentunit", "agentunit, score loaded"]
    assert answers["overhead"][0]["n_cases"] == 50
    assert answers["overhead"][0]["best_ms"] > 0
    assert [row["n_records"] for row in answers["catalog"]] == [20, 20, 20]
    assert [row["n_records"] for row in answers["memory"]] == [20, 200]
    assert "Overhead of a trivial metric" in done.stdout
    assert "--install-peers" in done.stdout  # how to get the rows that are not there


def test_a_size_of_nothing_is_refused():
    done = run_benchmark("--rounds", "0")
    assert done.returncode == 2
    assert "must be a whole number of at least 1; received '0'" in done.stderr


def test_the_recordings_are_the_same_every_time_and_of_the_promised_size():
    from benchmarks.speed import recordings

    once, again = list(recordings.recordings(3)), list(recordings.recordings(3))
    assert once == again
    # A longer file begins with the shorter one, so that sizes can be compared.
    assert list(islice(recordings.recordings(10), 3)) == once
    for record in once:
        assert len(record["trace"]["events"]) == recordings.EVENTS_PER_RECORD
        assert all(50 <= len(passage.split()) <= 75 for passage in record["case"]["context"])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"name": "ours", "best_s": 0.5}, 1.0),
        ({"name": "theirs", "best_s": 2.0}, 4.0),  # 2.0 / 0.5
        ({"name": "broken"}, None),  # a peer that failed has no figure, so no ratio
    ],
)
def test_ratios_are_to_our_row(row, expected):
    from benchmarks.speed.answers import Answer, Column

    answer = Answer("k", "Question", (Column("name", "package"), Column("ratio", "to ours", str)))
    answer.add(name="ours", best_s=0.5)
    answer.add(**row)
    answer.compare("best_s", "ours")
    assert answer.rows[-1].get("ratio") == expected
    assert answer.table().splitlines()[-1].startswith(f"| {row['name']}")
