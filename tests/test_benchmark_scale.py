"""The benchmark of scale runs and its ways agree; how fast anything is is not judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))


def test_all_ways_give_the_same_scores_and_make_a_cost_model(tmp_path, monkeypatch, capsys):
    from benchmarks.scale import __main__ as scale

    monkeypatch.setattr(scale, "_TMPFS", tmp_path / "no tmpfs")
    arguments = ["--questions", "pace", "--records", "40", "--rounds", "1", "--disk", str(tmp_path)]
    assert scale.main([*arguments, "--json", str(tmp_path / "figures.json")]) == 0
    answers = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["answers"]
    assert [row["name"] for row in answers["pace"]] == ["one process", "--jobs 1", "--jobs 2", "two at once"]
    assert {row["n_records"] for row in answers["pace"]} == {40}
    (exact,) = answers["cost_model"]
    (two,) = [row for row in answers["pace"] if row["name"] == "--jobs 2"]
    assert exact["core_hours"] == pytest.approx(two["cpu_us"] * 1e3 / 3600)
    assert "are the same" in capsys.readouterr().out


def test_the_plot_has_a_point_for_each_size_and_way():
    from benchmarks.scale.drawing import growth_plot
    from benchmarks.speed.answers import Answer

    answer = Answer("growth", "", ())
    for n_records in (100, 1000):
        for name in ("one process", "--jobs 2"):
            answer.add(n_records=n_records, name=name, cpu_us=50.0, peak_mb=60.0)
    assert growth_plot(answer).count("<circle") == 8
