"""The figures of suspects, on made-up runs of which it is known who went wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceEvent, TraceLog

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def runs(n_tasks=10, n_runs=5, *, success=True):
    """Of each task the last run fails: it cancels the wrong order, and takes no more steps than the others."""
    for task in range(n_tasks):
        for trial in range(n_runs):
            failed = trial == n_runs - 1
            call = {"name": "cancel_order", "arguments": {"id": task + 100 * failed}, "status": "success"}
            outcome = Outcome((not failed) if success else None, "Done.")
            yield Record(DatasetCase(f"{task}/trial-{trial}"), TraceLog([TraceEvent("tool_call", call)]), outcome)


def test_a_set_is_measured_beside_length_and_base_rate():
    from benchmarks.validity.suspects import DIFFERENCE, PRECISION, measure_set

    found = measure_set("made up", list(runs()))
    values = {(each.scorer.name, each.statistic): each.value for each in found.figures}
    assert values["suspects", "AUROC"] == 1.0
    assert values["short run", "AUROC"] == 0.5
    assert values["suspects", PRECISION] == 1.0
    assert values["short run", PRECISION] == pytest.approx(0.2)
    assert values["share of all runs that failed", PRECISION] == 0.2
    assert values["suspects", DIFFERENCE] == 0.5
    assert (found.n_runs, found.n_tasks, found.fewest_peers, found.n_unranked) == (50, 10, 4, 0)


@pytest.mark.parametrize("records", [list(runs(n_runs=2)), list(runs(success=False)), []])
def test_what_cannot_be_measured_is_no_set(records):
    from benchmarks.validity.suspects import measure_set

    assert measure_set("made up", records) is None


def test_the_chapter_has_the_recorded_sets_and_a_mean_of_those_with_three_peers(monkeypatch):
    from benchmarks.validity.data import LabelledData
    from benchmarks.validity.rows.suspects import measure
    from benchmarks.validity.suspects import recorded_sets

    sets = {"taubench_airline_gpt4o": runs(), "mast_ag2_experiments": runs(n_runs=3), "tau2_sims": runs(n_runs=2)}
    monkeypatch.setattr(LabelledData, "records", lambda self, name: list(sets[name]))
    family = measure(LabelledData(Path("nowhere")))
    recorded = recorded_sets()
    assert recorded
    assert all(each.source and each.figures for each in recorded)
    mean = next(each for each in family.headline if each.scorer.name == "suspects" and each.statistic == "AUROC")
    with_peers = [each for each in recorded if each.fewest_peers >= 3]
    assert mean.n_sets == len(with_peers) + 1
    few_peers = [each.name for each in recorded if each.fewest_peers < 3]
    assert list(family.outside_mean) == ["AG2 mathematics (MAST)", *few_peers]
    said = "Not ranked, because no run has two peers: tau2, three domains (20 runs)"
    assert any(said in each for each in family.remarks)
    assert family.trust == ()


def test_what_the_command_prints_are_recorded_figures_of_sets_that_no_choice_was_made_with():
    from benchmarks.validity.rows.suspects import CHOSEN_WITH
    from benchmarks.validity.suspects import recorded_sets

    from agentunit.addons.review._suspects_console import WORTH

    fresh = [each for each in recorded_sets() if each.name not in CHOSEN_WITH]
    assert len(fresh) == 3
    for one in fresh:
        auroc = next(each for each in one.figures if (each.scorer.name, each.statistic) == ("suspects", "AUROC"))
        assert f"{auroc.value:.2f} on {one.name.split(',')[0]}" in WORTH
        assert f"({one.n_runs:,}" in WORTH
        assert one.measured


def test_the_page_on_production_has_the_recorded_figures():
    from benchmarks.validity.suspects import recorded_sets

    page = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
    for one in recorded_sets():
        auroc = next(each for each in one.figures if (each.scorer.name, each.statistic) == ("suspects", "AUROC"))
        assert f"| {one.name} | {one.n_runs:,} | {auroc.value:.2f} |" in page


def test_no_recorded_set_is_significantly_below_short_run():
    from benchmarks.validity.suspects import DIFFERENCE, recorded_sets

    found = [each for one in recorded_sets() for each in one.figures if each.statistic == DIFFERENCE]
    assert found
    assert all(each.high >= 0 for each in found)
