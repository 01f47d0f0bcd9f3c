"""The speed benchmark runs and answers all its questions; how fast anything is is not judged here."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from datetime import date
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


SMALL = (
    "--rounds", "1", "--cases", "50", "--records", "20", "--memory-cases", "20", "--resume-cases", "60",
    "--run-cases", "30",
)  # fmt: skip


def test_our_rows_of_all_questions(tmp_path):
    figures_path = tmp_path / "figures.json"
    done = run_benchmark("--only-ours", *SMALL, "--json", str(figures_path))
    assert done.returncode == 0, done.stderr
    answers = json.loads(figures_path.read_text(encoding="utf-8"))["answers"]
    assert list(answers) == [
        "import", "install", "overhead", "catalog", "scoring_memory",
        "recording", "recording_scored", "recording_memory", "resume", "whole_run",
    ]  # fmt: skip
    assert [row["name"] for row in answers["import"]] == ["agentunit", "agentunit, score loaded"]
    assert answers["overhead"][0]["n_cases"] == 50
    assert answers["overhead"][0]["best_ms"] > 0
    assert [row["n_records"] for row in answers["catalog"]] == [20, 20, 20]
    assert [row["n_records"] for row in answers["scoring_memory"]] == [20, 200]
    for key in ("recording", "recording_scored"):
        assert [row["name"] for row in answers[key]] == [
            f"agentunit, {way}" for way in ("async", "threads", "processes")
        ]
        assert all(row["n_cases"] == 50 and row["best_ms"] > 0 for row in answers[key])
        assert answers[key][1]["ratio"] == 1.0  # a plain function in threads is what the others are compared to
    assert [row["n_cases"] for row in answers["recording_memory"]] == [20, 200]
    assert all(0 < row["rest_mb"] <= row["worst_mb"] for row in answers["recording_memory"])
    assert [row["n_cases"] for row in answers["resume"]] == [60] * 4
    assert all(row["n_open"] == 1 and row["best_s"] > 0 for row in answers["resume"])  # 60 // 1000, but at least one
    assert [(row["name"], row["n_cases"], row["ratio"]) for row in answers["whole_run"]] == [("agentunit", 30, 1.0)]
    assert "Scoring ready records with a trivial metric" in done.stdout
    assert "--install-peers" in done.stdout  # how to get the rows that are not there


def test_a_script_that_fails_is_a_row_that_says_why(monkeypatch):
    from benchmarks.speed import per_case

    answer = per_case.per_case_answer("k", "Question")
    works = per_case.Subject("ours", Path("python"), "good.py", 10, target_ms=0.5)
    fails = per_case.Subject("theirs", Path("python"), "bad.py", 10)

    def figures_of(python, *arguments):
        if any(argument.endswith("bad.py") for argument in arguments):
            raise per_case.ProcessFailed("no such model")
        return {"cpu_s": 0.002}

    monkeypatch.setattr(per_case, "figures_of", figures_of)
    per_case.measure_per_case([(answer, [works, fails], "ours")], rounds=2)
    ours, theirs = answer.rows
    # 2 ms for 10 cases are 0.2 ms a case.
    assert ours["best_ms"] == pytest.approx(0.2)
    assert ours["note"] == "met (≤ 0.5 ms)"
    assert ours["rounds"] == 2
    assert theirs == {"name": "theirs", "n_cases": 10, "note": "no such model"}


@pytest.mark.parametrize(
    ("n_done", "mean", "scored", "passes"),
    [
        (30, None, False, True),
        (30, 1.0, True, True),
        (29, None, False, False),  # a case was lost
        (30, 0.5, True, False),
        (30, None, True, False),  # asked to score, and did not
    ],
)
def test_a_recording_counts_only_if_every_case_is_kept(monkeypatch, capsys, n_done, mean, scored, passes):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "speed" / "trivial"))
    stopwatch = importlib.import_module("stopwatch")
    asked: list[tuple[int, bool]] = []

    def prepare(n_cases: int, with_scores: bool):
        asked.append((n_cases, with_scores))
        return lambda: (n_done, mean)

    monkeypatch.setattr(sys, "argv", ["script.py", "30", *(["scored"] if scored else [])])
    if passes:
        stopwatch.time_recording(prepare)
        printed = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert printed["n_cases"] == 30
        assert printed["cpu_s"] >= 0
    else:
        with pytest.raises(SystemExit, match="30 cases must be done"):
            stopwatch.time_recording(prepare)
    assert asked == [(20, scored), (30, scored)]  # a warm-up first, of 20 cases


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


def test_tables_that_were_not_measured_again_stay_with_their_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    speed = importlib.import_module("benchmarks.speed.__main__")
    answers = importlib.import_module("benchmarks.speed.answers")
    monkeypatch.setattr(speed, "_machine", lambda: "one core")
    before = "# Speed\n\n## Old\n\n| a |\n\nMeasured on 2026-11-15: one core.\n\n## Again\n\n| b |\n"
    columns = (answers.Column("n", "cases", answers.decimals(0)),)
    answer = answers.Answer("again", "Again", columns, rows=[{"n": 7}])
    tables = speed._results([answer], before, date(2026, 11, 19)).split("\n## ")[1:]
    assert [table.partition("\n")[0] for table in tables] == ["Old", "Again"]
    assert "Measured on 2026-11-15: one core." in tables[0]
    assert "7" in tables[1]
    assert tables[1].strip().endswith("Measured on 2026-11-19: one core.")
