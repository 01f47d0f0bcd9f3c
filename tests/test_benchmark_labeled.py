"""The benchmark of the labeled rate: its numpy version against the plain formula, its draws, its files."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.labeled import __main__ as command
from benchmarks.labeled.coverage import Cell, measure
from benchmarks.labeled.draws import simple_draws, stratified_draws
from benchmarks.labeled.page import inserted, measured_part, summary_part
from benchmarks.labeled.plot import plot
from benchmarks.labeled.populations import Population, simulated
from benchmarks.labeled.stopping import measure_stopping
from benchmarks.labeled.vectorized import labeled_rates
from benchmarks.validity.bias import Bias, bias_chapter, bias_summary, with_bias

from agentunit.formulas.labeled import labeled_rate
from agentunit.metrics.trust import TrustFigure

CELL = Cell("news", "ours", 300, 60, 0.8, 0.4, 0.6, 1000, 0.97, 0.96, 0.9, 0.91, 0.17, 0.21, 0.01, 0.02)


def population(n_cases: int, *, graded: bool = False, clustered: bool = False) -> Population:
    rng = np.random.default_rng(n_cases)
    labels = (rng.random(n_cases) < 0.8).astype(float)
    if graded:
        labels = np.clip(0.8 * labels + 0.2 * rng.random(n_cases), 0.0, 1.0)
    scores = np.where(rng.random(n_cases) < 0.15, rng.random(n_cases), 0.2 + 0.5 * labels)
    sizes = rng.integers(1, 4, n_cases).astype(float) if clustered else None
    return Population("made", "up", labels, scores, sizes)


@pytest.mark.parametrize("n", [12, 40, 110, 399])
@pytest.mark.parametrize("graded", [False, True])
def test_many_draws_at_once_are_the_plain_formula(n, graded):
    made = population(400, graded=graded)
    places = np.sort(simple_draws(made.scores, n, 6, np.random.default_rng(1)), axis=1)
    centered = made.scores - made.scores.mean()
    found = labeled_rates(made.labels[places], centered[places], (centered.min(), centered.max()), 400)
    for draw, row in enumerate(places):
        plain = labeled_rate(list(made.scores), {int(place): made.labels[place] for place in row})
        # The plain formula is exact up to a hundred labels, and both are the saddlepoint's beyond.
        assert found.rate[draw] == pytest.approx(plain.rate, abs=1e-6)
        assert found.low[draw] == pytest.approx(plain.low, abs=2e-3)
        assert found.high[draw] == pytest.approx(plain.high, abs=2e-3)


def test_units_of_unequal_size_are_the_plain_formulas_clusters():
    made = population(200, clustered=True)
    cases = np.repeat(np.arange(200), made.sizes.astype(int))
    scores = made.scores[cases]
    places = np.sort(simple_draws(made.scores, 40, 4, np.random.default_rng(2)), axis=1)
    centered = made.scores - scores.mean()
    found = labeled_rates(
        made.labels[places], centered[places], (centered.min(), centered.max()), 200, sizes=made.sizes[places],
        drawn_share=0.0,
    )  # fmt: skip
    for draw, row in enumerate(places):
        labels = {at: float(made.labels[case]) for at, case in enumerate(cases) if case in set(row)}
        plain = labeled_rate(list(scores), labels, clusters=list(cases))
        shrink = (1.0 - len(labels) / len(scores)) ** 0.5
        assert found.rate[draw] == pytest.approx(plain.rate, abs=1e-6)
        assert plain.rate - plain.low == pytest.approx(shrink * (found.rate[draw] - found.low[draw]), abs=0.02)


@pytest.mark.parametrize("draw", [simple_draws, stratified_draws])
@pytest.mark.parametrize(("n_cases", "n"), [(64, 30), (300, 25), (64, 62)])
def test_draws_have_different_cases_of_equal_chance(draw, n_cases, n):
    scores = np.linspace(0.0, 1.0, n_cases)
    rng = np.random.default_rng(3)
    counts = np.zeros(n_cases)
    for _ in range(5):
        places = draw(scores, n, 1000, rng)
        assert all(len(set(row)) == n for row in places[:20])
        np.add.at(counts, places, 1)
    chance = n / n_cases
    spread = (5000 * chance * (1.0 - chance)) ** 0.5
    assert np.abs(counts - 5000 * chance).max() < 5.0 * spread


def test_a_cell_counts_what_holds():
    cell = measure(population(200), 30, 300, stratified_draws)
    assert cell.coverage >= 0.95
    assert 0.0 < cell.width < 1.1 * cell.width_alone
    assert cell.correlation == pytest.approx(
        np.corrcoef(population(200).labels, population(200).scores)[0, 1], abs=1e-4
    )
    assert cell.coverage + cell.too_high + cell.too_low == pytest.approx(1.0)


def test_stopping_looks_until_the_interval_is_narrow():
    found = measure_stopping(population(1000), 40, 20)
    assert [each.width for each in found] == [0.25, 0.15]
    assert 30 <= found[0].median_labels < found[1].median_labels <= 200
    assert min(each.coverage for each in found) > 0.85


def test_simulated_populations_have_the_rates_that_they_say():
    for made in simulated():
        assert len(made.labels) == len(made.scores)
        if " cases, rate " in made.name:
            stated = float(made.name.rpartition(" ")[2])
            assert made.truth == pytest.approx(stated, abs=0.02)


def test_the_page_keeps_what_is_around_the_measured_part():
    page = (
        "# Title\n\n<!-- Measured by `python -m benchmarks.labeled`: begin -->\nstale\n<!-- Measured: end -->\n\nrest\n"
    )
    written = inserted(page, measured_part([CELL], [], []))
    assert written.startswith("# Title\n")
    assert written.endswith("<!-- Measured: end -->\n\nrest\n")
    assert "stale" not in written
    assert "| news | ours | 300 | 0.80 | 0.40 | 0.60 | 0.970 | 0.900 | 0.910 | 0.21 | 0.17 | 0.81 | 0.84 |" in written
    assert "| public sets | 60 | 1 | 0.970 | 0.960 | 0.900 | 0.910 |" in summary_part([CELL], [])
    with pytest.raises(ValueError, match="must both be on the page"):
        inserted("# Title", "measured")
    assert plot([CELL]).count("<circle") == 3 + 3 + 1 + 3


def test_without_data_the_sets_are_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AGENTUNIT_DATA", str(tmp_path / "nowhere"))
    assert command.main(["--only", "sets", "--draws", "10"], root=tmp_path) == 0
    assert "sets skipped, no labeled data here (AGENTUNIT_DATA names its folder)" in capsys.readouterr().out


def test_cells_that_miss_are_named(capsys):
    from msgspec.structs import replace

    assert command.report_misses([CELL]) == 0
    assert command.report_misses([replace(CELL, coverage=0.94), replace(CELL, width=0.3)]) == 1
    told = capsys.readouterr().out
    assert "news, ours, 60 labels: holds in 0.9400" in told
    assert "news, ours, 60 labels: 1.429 times as wide as labels alone" in told


def test_the_worst_bias_on_natural_sets_stands_beside_trust():
    biases = [
        Bias("faithfulness", "local", "ragtruth_qa", 235, 0.403, 0.791),
        Bias("faithfulness", "local", "frank_xsum", 235, 0.9, 0.1),
        Bias("faithfulness", "local", "halueval_qa", 235, 0.9, 0.1),
    ]
    figures = [TrustFigure(name, "local", "AUROC", 0.73) for name in ("faithfulness", "hallucination_rate", "other")]
    found = with_bias(figures, biases)
    assert [each.mean_off for each in found] == [0.388, 0.388, None]
    assert str(found[0]) == "useful, AUROC 0.73; mean off by up to 0.4"
    assert str(found[2]) == "useful, AUROC 0.73"
    assert found[0].at_length().endswith("on 1 labeled set; mean off by up to 0.4")
    page = bias_chapter(biases)
    assert "| `faithfulness` | local | ragtruth_qa | 235 | 0.40 | 0.79 | -0.39 | – |" in page
    assert "| frank_xsum | 235 | 0.90 | 0.10 | +0.80 | rows of training |" in page
    assert "| `faithfulness` | local | 1 | -0.39 to -0.39 |" in bias_summary(biases)
    assert bias_summary([]) == bias_chapter([]) == ""
