from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.core.judged import Judged
from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.comparison import CaseChange
from agentunit.engine.deciding.cut_offs import parse_margin
from agentunit.engine.deciding.decision import decide_comparison
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.paired import smallest_detectable_drop
from agentunit.formulas.proportions import bounded_mean_test, paired_proportion_test
from agentunit.metrics.base import MetricInfo
from agentunit.store.runs import RecordRow, RunHeader

ROOT = Path(__file__).resolve().parents[2]


def run_of(metrics, *, name="r", backend="b", version="1", status="ok"):
    """A run: by metric, values by case id (or a list, cases c0, c1, …); a list as value holds a case's repeats."""
    rows = {}
    for metric, cases in metrics.items():
        by_id = cases if isinstance(cases, dict) else {f"c{place}": value for place, value in enumerate(cases)}
        rows[metric] = [
            ScoreRow(place, repeat, case_id, value, status if value is not None else "error", backend, version)
            for place, (case_id, given_value) in enumerate(by_id.items())
            for repeat, value in enumerate(given_value if isinstance(given_value, list) else [given_value])
        ]
    n_records = max((len(each) for each in rows.values()), default=0)
    header = RunHeader(name, name, 0.0, 1.0, "finished", n_records, "0", {})
    return ScoredRun(header, n_records, n_records, 0, rows)


def exit_code(comparison):
    return decide_comparison(comparison).exit_code


def compared(new, old, *, metric="tool_success", **how):
    """Two runs of one metric, which counts unless it is said what does."""
    if not how.keys() & {"metrics", "gates"}:
        how["on"] = [metric]
    comparison = compare_runs(run_of({metric: new}, name="new"), run_of({metric: old}, name="old"), **how)
    (only,) = comparison.metrics
    return comparison, only


# Numbers of one metric


def test_pass_and_fail_by_hand():
    # Of 100 cases 80 pass in both, 2 only in the new run, 14 only in the old one, 4 in neither.
    new = [1.0] * 80 + [1.0] * 2 + [0.0] * 14 + [0.0] * 4
    old = [1.0] * 80 + [0.0] * 2 + [1.0] * 14 + [0.0] * 4
    comparison, only = compared(new, old)
    assert (only.baseline_mean, only.candidate_mean) == (0.94, 0.82)
    assert only.difference == pytest.approx(-0.12)
    assert only.low < -0.12 < only.high < 0.0
    assert only.test == "mcnemar"
    exact = scipy.stats.binomtest(2, 16, alternative="less").pvalue
    assert only.p_worse == only.p_adjusted == pytest.approx(exact)
    assert (only.margin, only.p_no_worse) == (None, None)
    assert (only.verdict, only.gated, exit_code(comparison)) == ("regression", True, 1)
    assert only.reason == "worse by 0.12, p = 0.0021"
    spread = math.sqrt((16 - 100 * 0.12**2) / 99)
    assert only.smallest_detectable == smallest_detectable_drop(2, 14, 100, alpha=0.01)
    assert comparison.sentence == "tool_success fell by 12 points (p = 0.0021)"
    assert only.effect_size == pytest.approx(-0.12 / spread)
    assert only.cases_needed is None
    assert only.got_worse[0] == CaseChange("c82", 1.0, 0.0)
    assert [change.case_id for change in only.got_better] == ["c80", "c81"]
    assert (comparison.baseline, comparison.candidate, comparison.n_paired) == ("old", "new", 100)
    _, only = compared(new, old, margin=0.05)
    assert only.p_no_worse == paired_proportion_test(2, 14, 100, margin=0.05)


def test_a_quantity_that_should_be_low():
    source = random.Random(1)
    old = [source.uniform(0.01, 0.03) for _ in range(80)]
    comparison, only = compared([2 * value for value in old], old, metric="cost", margin="10%")
    assert (only.verdict, exit_code(comparison)) == ("regression", 1)
    assert (only.test, only.direction, only.unit) == ("sign-flip", "lower", "USD")
    mean = math.fsum(old) / 80
    assert only.margin == pytest.approx(0.1 * mean)
    # An unseen case may grow by twice the mean, or by what was seen, whichever is more.
    gains = [-value for value in old]
    worst = max(2 * mean, max(old))
    assert only.p_no_worse == pytest.approx(bounded_mean_test(gains, margin=0.1 * mean, worst=worst))
    most = max(range(80), key=old.__getitem__)
    assert only.got_worse[0].case_id == f"c{most}"
    assert only.got_better == ()
    comparison, only = compared([value / 2 for value in old], old, metric="cost")
    assert (only.verdict, exit_code(comparison)) == ("better", 0)


def test_seconds_count_only_when_they_are_named():
    old = [1.0 + place / 40 for place in range(40)]
    slower = [2.0 * value for value in old]
    # Two machines may differ so; a gate holds the run to a limit, not to the other machine.
    for gates in (None, ["response_time <= 9"]):
        comparison, only = compared(slower, old, metric="response_time", gates=gates)
        assert (only.unit, only.gated, only.verdict, comparison.regressions) == ("s", False, "shown only", [])
        assert "differ from machine to machine" in only.note
    comparison, only = compared(slower, old, metric="response_time", metrics=["response_time"])
    assert (only.gated, only.verdict, exit_code(comparison)) == (True, "regression", 1)


def test_a_rate_that_should_be_low_is_pass_and_fail_the_other_way_round():
    comparison, only = compared([1.0] * 12 + [0.0] * 48, [0.0] * 60, metric="hallucination_rate")
    assert (only.test, only.verdict, exit_code(comparison)) == ("mcnemar", "regression", 1)
    assert only.p_worse == pytest.approx(0.5**12)
    assert only.difference == pytest.approx(0.2)
    assert only.low > 0.0
    assert len(only.got_worse) == 12


def test_repeats_of_a_case_are_averaged():
    new = {"a": [1.0, 0.0], "b": [1.0, 1.0]}
    old = {"b": [0.0, 1.0], "a": [1.0, 1.0]}
    _, only = compared(new, old)
    assert only.n_pairs == 2
    assert (only.baseline_mean, only.candidate_mean) == (0.75, 0.75)
    assert only.test == "sign-flip"  # halves are neither pass nor fail


def test_as_many_repeats_are_tested_as_both_runs_have():
    comparison, only = compared({"a": [1.0, 0.0], "b": [1.0, 1.0]}, {"b": [0.0, 1.0, 1.0, 0.0], "a": [1.0]})
    assert (only.baseline_mean, only.candidate_mean) == (0.75, 1.0)
    assert comparison.note == (
        "2 cases have more repeats in one of the runs: as many were tested as both have, the first ones"
    )


def test_a_repeat_that_only_one_run_has_is_listed_and_no_sameness():
    comparison, only = compared({"a": [1.0, 0.0, 0.0], "b": [1.0] * 3}, {"a": [1.0], "b": [1.0]})
    assert (only.difference, only.verdict, comparison.is_unchanged) == (0.0, "no loss shown", False)
    assert [comparison.cases[case_id].kind for case_id in ("a", "b")] == ["worse", "unchanged"]


@pytest.mark.parametrize(("before", "now"), [(1, 10), (2, 5)])
def test_unequal_repeats_raise_no_more_false_alarms_than_allowed(before, now):
    alarms = 0
    for seed in range(200):
        source = random.Random(seed)
        chances = [source.betavariate(4.0, 0.6) for _ in range(66)]
        old, new = ([[float(source.random() < p) for _ in range(n)] for p in chances] for n in (before, now))
        comparison, _ = compared(new, old, resamples=499)
        alarms += bool(comparison.regressions)
    assert alarms <= 10


def test_cases_pair_by_id_whatever_their_order():
    comparison, only = compared({"a": 1.0, "b": 0.0, "x": 1.0}, {"y": 1.0, "z": 0.0, "b": 0.0, "a": 1.0})
    assert (comparison.n_paired, comparison.n_only_baseline, comparison.n_only_candidate) == (2, 2, 1)
    assert (only.n_pairs, only.difference) == (2, 0.0)


def test_a_loss_within_the_margin_is_no_regression():
    # Every case a little worse, far more than by chance, but by 0.01 where 0.05 is allowed.
    old = [0.5 + 0.001 * place for place in range(200)]
    comparison, only = compared([value - 0.01 for value in old], old, margin=0.05)
    assert only.p_adjusted < 0.001
    assert (only.verdict, exit_code(comparison)) == ("no worse", 0)
    assert only.reason == "worse by 0.05 is ruled out, p < 0.001"
    for margin in (0.005, None):
        strict, only = compared([value - 0.01 for value in old], old, margin=margin)
        assert (only.verdict, exit_code(strict)) == ("regression", 1)


# Identical runs


@pytest.mark.parametrize(("metric", "value"), [("tool_success", 1.0), ("tool_success", 0.7), ("cost", 0.02)])
@pytest.mark.parametrize("n", [1, 5, 40, 300])
def test_identical_runs_pass_at_every_size(metric, value, n):
    comparison, only = compared([value] * n, [value] * n, metric=metric)
    assert (exit_code(comparison), only.verdict) == (0, "no change")
    assert comparison.sentence == "no tested score changed"
    assert decide_comparison(comparison).headline == "PASS: no change from old"


@pytest.mark.parametrize(("n", "code"), [(20, 4), (60, 4), (200, 0)])
def test_a_margin_is_ruled_out_when_there_are_enough_cases(n, code):
    # One case lost and one gained.
    new, old = [0.0] + [1.0] * (n - 1), [1.0] * (n - 1) + [0.0]
    comparison, only = compared(new, old, gates=["tool_success >= 0 coverage 0"], margin=0.05)
    assert (only.verdict, [each.metric for each in comparison.undecided]) == (
        ("cannot tell", ["tool_success"]) if code else ("no worse", [])
    )
    if code:
        assert f"about {only.cases_needed} cases would settle it" in only.reason
    # Without one nobody asks for it.
    _, only = compared(new, old, gates=["tool_success >= 0 coverage 0"])
    assert (only.verdict, only.cases_needed) == ("no loss shown", None)


def test_a_quantity_that_is_always_nothing():
    comparison, only = compared([0.0] * 100, [0.0] * 100, metric="cost")
    assert (only.verdict, exit_code(comparison)) == ("no change", 0)


# What is not compared, and what counts


def test_different_backends_are_never_compared():
    comparison = compare_runs(
        run_of({"tool_success": [1.0] * 99}, backend="new"),
        run_of({"tool_success": [1.0] * 99}, backend="old"),
        on=["tool_success"],
    )
    (only,) = comparison.metrics
    assert (only.verdict, only.gated, exit_code(comparison)) == ("not compared", True, 4)
    assert only.reason.startswith("scored by old in the baseline and by new in the candidate")
    assert only.difference is None


def test_different_versions_are_never_compared():
    comparison = compare_runs(
        run_of({"tool_success": [1.0] * 99}, version="2"), run_of({"tool_success": [1.0] * 99}, version="1")
    )
    (only,) = comparison.metrics
    assert (only.verdict, exit_code(comparison)) == ("not compared", 4)
    assert "versions 1 and 2 of the metric may not mean the same" in only.reason


def test_backends_are_compared_each_with_itself():
    def both(first, second):
        run = run_of({"task_success": [first] * 80}, backend="state")
        others = run_of({"task_success": {f"d{place}": second for place in range(80)}}, backend="judge")
        for row in others.metrics["task_success"]:
            row.position += 80
        run.metrics["task_success"] += others.metrics["task_success"]
        return run

    comparison = compare_runs(both(1.0, 0.0), both(1.0, 1.0))
    assert [(each.backend, each.verdict) for each in comparison.metrics] == [
        ("state", "no change"),
        ("judge", "regression"),
    ]
    named = compare_runs(both(1.0, 0.0), both(1.0, 1.0), metrics=["task_success[state]"])
    assert ([each.backend for each in named.metrics], exit_code(named)) == (["state"], 0)


def test_no_case_in_common():
    comparison, only = compared({"a": 1.0}, {"b": 1.0})
    assert (only.verdict, only.reason, exit_code(comparison)) == (
        "not compared",
        "no case has a value in both runs",
        4,
    )


def test_informational_scores_count_only_when_named():
    new = run_of({"faithfulness": [0.0] * 60}, status="informational", backend="lexical")
    old = run_of({"faithfulness": [1.0] * 60}, status="informational", backend="lexical")
    shown = compare_runs(new, old, gates=["faithfulness >= 0.5"])
    assert (shown.metrics[0].verdict, shown.metrics[0].gated, exit_code(shown)) == ("shown only", False, 4)
    assert shown.metrics[0].p_worse is None
    assert shown.metrics[0].note.startswith("informational: ")
    named = compare_runs(new, old, metrics=["faithfulness"])
    assert (named.metrics[0].gated, exit_code(named)) == (True, 1)


def test_where_some_scores_are_informational_the_others_are_compared():
    new, old = (run_of({"faithfulness": values}, backend="local") for values in ([0.0] * 60, [1.0] * 60))
    for run in (new, old):
        run.metrics["faithfulness"][0].status = "informational"
    comparison = compare_runs(new, old, on=["faithfulness"])
    [only] = comparison.metrics
    assert (only.n_pairs, only.gated, only.verdict, exit_code(comparison)) == (59, True, "regression", 1)
    assert comparison.note == "informational scores beside others are left out: faithfulness (1 in the baseline, 1 now)"


def test_a_metric_without_a_direction_is_shown_only():
    comparison = compare_runs(run_of({"mine": [0.0] * 60}), run_of({"mine": [1.0] * 60}))
    (only,) = comparison.metrics
    assert (only.verdict, only.gated, exit_code(comparison)) == ("shown only", False, 4)
    assert (only.p_worse, only.margin) == (None, None)
    named, only = compared([0.0] * 60, [1.0] * 60, metric="mine", metrics=["mine"])
    assert only.p_worse == pytest.approx(2 * 0.5**60)
    assert (only.gated, exit_code(named)) == (True, 4)  # asked for a decision it cannot give


def test_a_new_metric_does_not_stop_a_run_but_a_vanished_one_does():
    steady = {"contains": [1.0] * 80}
    more = {**steady, "tool_success": [1.0] * 80}
    gates = ["tool_success >= 0.5"]
    added = compare_runs(run_of(more), run_of(steady), gates=gates)
    assert [(each.metric, each.verdict, each.gated) for each in added.metrics] == [
        ("contains", "no change", True),
        ("tool_success", "not compared", False),
    ]
    assert exit_code(added) == 0
    vanished = compare_runs(run_of(steady), run_of(more), gates=gates)
    assert [each.metric for each in vanished.undecided] == ["tool_success"]
    assert exit_code(vanished) == 4
    unscored = compare_runs(run_of({**steady, "cost": [None] * 80}), run_of({**steady, "cost": [None] * 80}))
    assert (unscored.metrics[1].reason, exit_code(unscored)) == ("no value in either run", 0)


def test_a_check_that_vanished_is_lost_everywhere():
    steady = {"tool_success": [1.0] * 80}
    comparison = compare_runs(run_of(steady), run_of({**steady, "contains": [1.0] * 80}))
    assert comparison.n_by_kind["lost"] == 80
    assert comparison.too_few == "contains was not scored in r: agentunit score r --metrics contains"
    assert exit_code(comparison) == 4
    # Whoever names what to compare has left it out.
    assert exit_code(compare_runs(run_of(steady), run_of({**steady, "contains": [1.0] * 80}), on=["tool_success"])) == 4
    alone = compare_runs(run_of(steady), run_of({**steady, "contains": [1.0] * 80}), metrics=["tool_success"])
    assert exit_code(alone) == 0


def test_lost_scores_are_not_a_pass():
    old = [1.0] * 200
    comparison, only = compared([1.0] * 150 + [None] * 50, old)
    assert (only.verdict, only.n_lost, exit_code(comparison)) == ("cannot tell", 50, 4)
    assert only.reason.startswith("50 of 200 cases lost their score")
    allowed, only = compared([1.0] * 165 + [None] * 35, old)
    assert (only.verdict, only.n_lost, exit_code(allowed)) == ("no change", 35, 0)


def test_cases_that_the_candidate_does_not_have_are_lost():
    # It failed in the second half of the baseline's cases; the candidate never ran them, and loses nothing elsewhere.
    comparison, only = compared([1.0] * 62, [1.0] * 62 + [0.0] * 58)
    assert (comparison.n_paired, comparison.n_only_baseline, exit_code(comparison)) == (62, 58, 4)
    assert (only.verdict, only.n_lost, only.cases_needed) == ("cannot tell", 58, None)
    assert only.reason == "58 of 120 cases lost their score"
    assert comparison.too_few == "only 62 of 120 cases are in both runs, 80% are needed"


def test_few_cases_in_both_stop_a_pass_of_every_metric_but_hide_no_regression():
    # The first metric applies to 60 cases alone, all of which are in both runs; the second was lost in 20 of them.
    few = {f"c{place}": 1.0 for place in range(60)}
    old = {"tool_success": few, "exact_match": [1.0] * 120}
    new = {"tool_success": few, "exact_match": [1.0] * 40 + [0.0] * 20}
    comparison = compare_runs(run_of(new), run_of(old), on=["tool_success", "exact_match"])
    assert [(each.verdict, each.n_lost) for each in comparison.metrics] == [("no change", 0), ("regression", 60)]
    assert comparison.too_few.startswith("only 60 of 120 cases are in both runs")
    assert exit_code(comparison) == 1
    assert compare_runs(run_of(new), run_of(old), min_coverage=0.5).too_few is None
    enough, only = compared([1.0] * 96, [1.0] * 120)
    assert (only.verdict, only.n_lost, exit_code(enough)) == ("no change", 24, 0)


def test_the_lost_and_the_missing_add_up():
    # 15 % of the cases are not there, 15 % of the others have no score: neither alone is too many.
    comparison, only = compared([1.0] * 140 + [None] * 30, [1.0] * 200)
    assert (only.verdict, only.n_lost, exit_code(comparison)) == ("cannot tell", 60, 4)
    assert only.reason.startswith("60 of 200 cases lost their score")


# Failed agents


def with_failures(values, failed, *, repeats=1, name="r", **settings):
    """A run in which the agent failed at the (case, repeat) places, which have no score then."""
    cases = [[None if (place, repeat) in failed else value for repeat in range(repeats)] for place, value in values]
    run = run_of({"tool_success": cases}, name=name)
    run.metrics["tool_success"] = [row for row in run.metrics["tool_success"] if row.value is not None]
    run.records = [
        RecordRow(place, repeat, f"c{place}", (place, repeat) in failed)
        for place, _ in values
        for repeat in range(repeats)
    ]
    run.header.settings.update(settings)
    return run


def passing(n):
    return [(place, 1.0) for place in range(n)]


def test_a_candidate_that_crashes_is_a_regression():
    # Not one after the other: that would be an outage.
    crashed = {(place, 0) for place in range(0, 40, 2)}
    comparison = compare_runs(with_failures(passing(120), crashed), with_failures(passing(120), ()))
    success, answered = comparison.metrics
    assert (success.difference, success.n_lost) == (0.0, 20)  # on what it answered
    assert (answered.metric, answered.backend, answered.test) == ("answered", "run", "mcnemar")
    assert (answered.verdict, answered.gated, exit_code(comparison)) == ("regression", True, 1)
    assert (answered.baseline_mean, answered.candidate_mean) == (1.0, pytest.approx(100 / 120))
    assert answered.p_worse == pytest.approx(0.5**20)
    assert answered.p_adjusted == answered.p_worse  # nothing else changed
    assert answered.got_worse[0] == CaseChange("c0", 1.0, 0.0)


def test_an_outage_is_no_regression():
    crashed = {(place, 0) for place in range(20)}
    comparison = compare_runs(with_failures(passing(120), crashed), with_failures(passing(120), ()))
    assert (comparison.regressions, len(comparison.unconfirmed), exit_code(comparison)) == ([], 20, 4)


def test_failures_count_whatever_metrics_are_named():
    crashed = {(place, 0) for place in range(0, 40, 2)}
    runs = with_failures(passing(120), crashed), with_failures(passing(120), ())
    assert exit_code(compare_runs(*runs, metrics=["tool_success"])) == 1
    named = compare_runs(*runs, metrics=["answered"], margin={"answered": 0.2})
    assert [(each.metric, each.margin) for each in named.metrics] == [("answered", 0.2)]


def test_answered_is_not_shown_where_no_agent_failed():
    runs = with_failures(passing(120), ()), with_failures(passing(120), ())
    assert [each.metric for each in compare_runs(*runs).metrics] == ["tool_success"]
    asked = compare_runs(*runs, metrics=["answered"])
    assert ([each.metric for each in asked.metrics], exit_code(asked)) == (["answered"], 0)


def test_a_candidate_that_crashes_no_more_than_the_baseline():
    crashed = {(place, 0) for place in range(3)}
    fixed = compare_runs(with_failures(passing(120), ()), with_failures(passing(120), crashed))
    assert [(each.metric, each.verdict) for each in fixed.metrics] == [
        ("tool_success", "shown only"),
        ("answered", "no loss shown"),
    ]
    assert exit_code(fixed) == 0


def test_failures_of_repeats_are_averaged():
    crashed = {(place, 1) for place in range(0, 60, 2)}
    comparison = compare_runs(with_failures(passing(80), crashed, repeats=2), with_failures(passing(80), (), repeats=2))
    answered = comparison.metrics[1]
    assert (answered.test, answered.verdict, answered.got_worse[0].candidate) == ("sign-flip", "regression", 0.5)


def test_only_named_metrics_are_compared():
    runs = [run_of({"tool_success": [1.0] * 80, "cost": [0.1] * 80}) for _ in range(2)]
    assert [each.metric for each in compare_runs(*runs, metrics=["cost"]).metrics] == ["cost"]
    with pytest.raises(ValueError, match=r"metrics must name metrics of the runs \(tool_success, cost\); received 'x'"):
        compare_runs(*runs, metrics=["x"])


def test_holm_over_the_metrics_that_count():
    # One metric alone would be a regression (7 losses of 7); beside two that changed as much it is not.
    lost = [0.0] * 7 + [1.0] * 75
    alone = compare_runs(run_of({"tool_success": lost}), run_of({"tool_success": [1.0] * 82}), on=["tool_success"])
    assert (alone.metrics[0].p_adjusted, exit_code(alone)) == (0.5**7, 1)
    before, after = [0.0, 1.0] * 41, [1.0, 0.0] * 4 + [0.0, 1.0] * 37
    noisy = [{"conciseness": each, "politeness": each[::-1]} for each in (after, before)]
    names = ["tool_success", "conciseness", "politeness"]
    new, old = run_of({"tool_success": lost, **noisy[0]}), run_of({"tool_success": [1.0] * 82, **noisy[1]})
    for run in (new, old):
        run.infos.update({name: MetricInfo(name, "custom", "", "higher", (0.0, 1.0)) for name in names[1:]})
    three = compare_runs(new, old, on=names)
    assert three.metrics[0].p_adjusted == pytest.approx(3 * 0.5**7)
    assert (three.metrics[0].verdict, three.regressions) == ("no loss shown", [])


def test_a_metric_that_could_not_be_significant_takes_nothing_from_the_others():
    # Six changed cases have no p-value below 1/64, whatever their signs.
    lost, few = [0.0] * 7 + [1.0] * 75, [0.0] * 6 + [1.0] * 76
    new, old = ({"tool_success": first, "contains": second} for first, second in ((lost, few), ([1.0] * 82,) * 2))
    comparison = compare_runs(run_of(new), run_of(old), on=["tool_success"])
    assert [each.p_adjusted for each in comparison.metrics] == [0.5**7, 0.5**6]
    assert (comparison.metrics[0].reason, exit_code(comparison)) == ("worse by 0.0854, p = 0.0078", 1)


def test_metrics_that_changed_alike_on_every_case_are_tested_once():
    source = random.Random(5)
    support = [source.uniform(0.5, 1.0) for _ in range(36)]
    fallen = [value - 0.03 + source.gauss(0.0, 0.08) for value in support]
    other, moved = [0.5] * 36, [0.5 + source.gauss(0.0, 0.05) for _ in range(36)]

    def run(values, others):
        # One is 1 minus the other, as far as floats go, and lower is better for it.
        mirrored = [1.0 - value for value in values]
        return run_of({"faithfulness": values, "retrieval_quality": others, "hallucination_rate": mirrored})

    names = ["faithfulness", "retrieval_quality", "hallucination_rate"]
    how = {"on": names, "alpha": 0.05, "margin": 0.05}
    lost, unsure, again = compare_runs(run(fallen, moved), run(support, other), **how).metrics
    assert lost.p_adjusted == again.p_adjusted == pytest.approx(2 * lost.p_worse)
    assert {each.n_tests for each in (lost, unsure, again)} == {2}
    assert lost.smallest_detectable == pytest.approx(again.smallest_detectable)
    # One case that differs is another question.
    apart = run(fallen, moved)
    apart.metrics["hallucination_rate"][0].value = 0.9
    assert compare_runs(apart, run(support, other), **how).metrics[0].n_tests == 3


# Which metrics count


def test_checks_and_metrics_with_gates_count_and_the_others_are_described():
    values = {"tool_success": [1.0] * 80, "contains": [1.0] * 80}
    broken = compare_runs(run_of({**values, "contains": [0.0] * 80}), run_of(values), gates=["tool_success >= 0.9"])
    assert (exit_code(broken), broken.tested) == (1, ["tool_success", "contains"])
    values = {"tool_success": [1.0] * 80, "faithfulness": [1.0] * 80}
    new, old = run_of({**values, "faithfulness": [0.0] * 80}), run_of(values)
    assert exit_code(compare_runs(new, old)) == 4
    gated = compare_runs(new, old, gates=["tool_success >= 0.9"])
    assert [(each.metric, each.gated, each.verdict) for each in gated.metrics] == [
        ("tool_success", True, "no change"),
        ("faithfulness", False, "shown only"),
    ]
    assert (exit_code(gated), gated.tested_by, gated.tested) == (0, "gates", ["tool_success"])
    assert (gated.metrics[1].difference, gated.metrics[1].p_worse) == (-1.0, None)
    new.header.settings["gates"] = ["tool_success >= 0.9"]
    assert compare_runs(new, old) == gated
    named = compare_runs(new, old, on=["faithfulness"])
    assert (exit_code(named), named.tested_by, named.tested) == (1, "named", ["faithfulness"])
    with pytest.raises(ValueError, match="on must name metrics of the runs"):
        compare_runs(new, old, on=["x"])


def test_gates_that_name_nothing_comparable_decide_nothing():
    new, old = run_of({"tool_success": [0.0] * 80}), run_of({"tool_success": [1.0] * 80})
    comparison = compare_runs(new, old, gates=["cost <= 1", "tool_success[other] >= 1"])
    assert (comparison.tested, comparison.regressions, exit_code(comparison)) == ([], [], 4)


# Margins


@pytest.mark.parametrize(
    ("margin", "expected"),
    [
        (None, None),
        (0.02, 0.02),
        ("10%", 0.08),
        ({"tool_success": 0.03}, 0.03),
        ({"tool_success[b]": "5%", "tool_success": 0.03}, 0.04),
    ],
)
def test_margins(margin, expected):
    values = [1.0] * 80 + [0.0] * 20
    _, only = compared(values, values, margin=margin)
    assert only.margin == pytest.approx(expected)


@pytest.mark.parametrize("who_knows", [0, 1])
def test_a_custom_scores_range_is_read_from_its_values(who_knows):
    def of_mine(new, old):
        runs = run_of({"mine": new}), run_of({"mine": old})
        runs[who_knows].infos["mine"] = MetricInfo("mine", "custom", "", direction="higher")
        return compare_runs(*runs, on=["mine"], margin="10%").metrics[0]

    assert of_mine([0.2, 0.9], [0.3, 0.8]).margin == pytest.approx(0.055)
    only = of_mine([0.2, 7.0], [0.3, 8.0])
    assert (only.direction, only.gated) == ("higher", True)
    assert only.margin == pytest.approx(0.1 * 4.15)


def test_the_candidates_word_about_a_metric_wins():
    runs = run_of({"mine": [1.0] * 80}), run_of({"mine": [2.0] * 80})
    for run, direction in zip(runs, ("lower", "higher"), strict=True):
        run.infos["mine"] = MetricInfo("mine", "custom", "", direction=direction, unit="USD")
    (only,) = compare_runs(*runs, on=["mine"]).metrics
    assert (only.verdict, only.unit) == ("better", "USD")


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_an_unseen_case_of_a_quantity_may_be_twice_the_mean(direction):
    runs = run_of({"mine": [3.0] * 79 + [3.01]}), run_of({"mine": [3.01] + [3.0] * 79})
    for run in runs:
        run.infos["mine"] = MetricInfo("mine", "custom", "", direction=direction, unit="USD")
    (only,) = compare_runs(*runs, on=["mine"], margin="10%").metrics
    assert (only.verdict, round(only.worst_assumed, 2)) == ("no worse", 6.0)
    _, bounded = compared([1.0] * 80, [1.0] * 80, margin=0.05)
    assert bounded.worst_assumed is None


def test_the_interval_of_few_differences_stays_within_the_range():
    _, only = compared([0.0, 0.5, 1.0], [1.0, 0.0, 0.2])
    assert (only.low, only.high) == (-1.0, 1.0)


@pytest.mark.parametrize("bad", ["", "x", "0", "-1", "nan", "inf", "%"])
def test_bad_margins(bad):
    with pytest.raises(ValueError, match="margin: must be a number above 0"):
        parse_margin(bad)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"margin": 1.0}, "the margin of tool_success must be below 1, the width of its range; received 1.0"),
        ({"margin": {"x": 0.1}}, "margin must name metrics of the runs"),
        ({"alpha": 0.0}, "alpha must be above 0 and below 0.5; received 0.0"),
        ({"min_coverage": 2}, "min_coverage must be from 0 to 1; received 2"),
    ],
)
def test_bad_settings(how, message):
    with pytest.raises(ValueError, match=message):
        compared([1.0], [1.0], **how)


SCORES = st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=12)


@settings(deadline=None, max_examples=50)
@given(SCORES)
def test_swapping_the_runs_swaps_better_and_worse(pairs):
    new, old = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    _, forth = compared(new, old, resamples=4096, margin=0.05)
    _, back = compared(old, new, resamples=4096, margin=0.05)
    assert forth.difference == pytest.approx(-back.difference, abs=1e-12)
    assert forth.p_worse == pytest.approx(back.p_better)
    if forth.verdict == "regression":
        assert back.verdict == "better"
    for only in (forth, back):
        assert 0.0 <= only.p_no_worse <= 1.0
        assert only.low is None or only.low <= only.difference + 1e-12


def test_large_runs_take_a_moment():
    source = random.Random(2)
    old = [source.random() for _ in range(5000)]
    new = [min(1.0, max(0.0, value + source.gauss(0.0, 0.1))) for value in old]
    comparison, only = compared(new, old, margin=0.05)
    assert (only.verdict, exit_code(comparison)) == ("no worse", 0)


# Simulated runs whose true difference is known. Three metrics at once, one of each kind; each run has its own noise.


def pass_or_fail(levels, loss, source):
    return [float(source.random() < level * (1.0 - loss / 0.8)) for level in levels]


def collapsing(levels, loss, source):
    # Nearly always the same high score; what is lost is lost all at once, in few cases.
    return [0.0 if source.random() < loss / 0.9 else level + source.uniform(-0.02, 0.02) for level in levels]


def shifted(levels, loss, source):
    return [level - loss + source.uniform(-0.15, 0.15) for level in levels]


KINDS = {
    "tool_success": (lambda source: source.betavariate(2.0, 0.5), pass_or_fail),
    "plan_adherence": (lambda source: source.uniform(0.82, 0.98), collapsing),
    "conciseness": (lambda source: source.uniform(0.35, 0.8), shifted),
}


def simulate(n, source, **losses):
    old, new = {}, {}
    for metric, (level, draw) in KINDS.items():
        levels = [level(source) for _ in range(n)]
        old[metric] = draw(levels, 0.0, source)
        new[metric] = draw(levels, losses.get(metric, 0.0), source)
    runs = run_of(new), run_of(old)
    for run in runs:
        run.infos.update({metric: MetricInfo(metric, "quality", "", "higher", (0.0, 1.0)) for metric in KINDS})
    return compare_runs(*runs, on=list(KINDS), margin=0.05, alpha=0.05, resamples=199)


def most_allowed(rate, trials):
    """What chance alone exceeds once in a thousand times."""
    return scipy.stats.binom.ppf(0.999, trials, rate)


@pytest.mark.parametrize(("n", "trials"), [(20, 300), (50, 200), (200, 80)])
def test_false_alarms_are_rare_when_nothing_changed(n, trials):
    source = random.Random(f"nothing changed {n}")
    codes = [exit_code(simulate(n, source)) for _ in range(trials)]
    assert codes.count(1) <= most_allowed(0.05, trials)
    if n == 20:
        assert codes.count(4) > 0.9 * trials  # so few cases cannot tell, and say so


@pytest.mark.parametrize("metric", KINDS)
def test_detection_grows_with_the_number_of_cases(metric):
    found = []
    for n in (20, 60, 240):
        source = random.Random(f"twice the margin {metric} {n}")
        comparisons = [simulate(n, source, **{metric: 0.1}) for _ in range(40)]
        found.append(sum(any(each.metric == metric for each in one.regressions) for one in comparisons))
    assert found[0] < found[1] <= found[2], found
    assert found[2] >= (25 if metric == "tool_success" else 39), found


@pytest.mark.parametrize("n", [50, 150])
def test_no_worse_is_rarely_said_of_a_loss_as_large_as_the_margin(n):
    source = random.Random(f"just the margin {n}")
    trials = 100
    wrong = dict.fromkeys(KINDS, 0)
    for _ in range(trials):
        for each in simulate(n, source, **dict.fromkeys(KINDS, 0.05)).metrics:
            wrong[each.metric] += each.verdict in ("no worse", "better")
    for count in wrong.values():
        assert count <= most_allowed(0.055, trials)


def test_the_number_of_cases_it_names_does_settle_it():
    source = random.Random("settle")
    old = [source.uniform(0.35, 0.8) for _ in range(30)]
    _, only = compared([value + source.uniform(-0.2, 0.2) for value in old], old, margin=0.05)
    assert only.verdict == "cannot tell"
    settled = 0
    for _ in range(60):
        levels = [source.uniform(0.35, 0.8) for _ in range(only.cases_needed)]
        new = [level + source.uniform(-0.2, 0.2) for level in levels]
        settled += compared(new, levels, resamples=99, margin=0.05)[1].verdict == "no worse"
    assert settled >= 0.6 * 60


def test_the_calibration_table_runs():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gate_calibration", "--runs", "2", "--cases", "20"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 5 * 3


def test_different_judges_are_named():
    def judged_by(model, name):
        run = run_of({"faithfulness": [0.5, 1.0, 0.75]}, name=name, backend="judge")
        for row in run.metrics["faithfulness"]:
            row.judged = Judged((model,), 2, 0, 10, 5, None)
        return run

    (same,) = compare_runs(judged_by("small", "new"), judged_by("small", "old")).metrics
    assert same.note is None
    (other,) = compare_runs(judged_by("large", "new"), judged_by("small", "old")).metrics
    assert other.note == "judged by small in the baseline and by large in the candidate: a change may be the judge's"


# What the sentence says about what was seen


def test_what_would_have_been_seen_is_said_whichever_way_the_numbers_went():
    """That chance may have done it is no news where nothing is shown."""
    comparison, only = compared([0.0] * 4 + [1.0] * 20, [1.0] * 24)
    assert (only.verdict, only.p_adjusted) == ("no loss shown", 0.5**4)
    assert comparison.sentence == "a drop of 53 points or more in tool_success would have been seen"
    assert only.reason == "a drop of 53 points or more would have been seen"
    better, _ = compared([1.0] * 24, [0.0] + [1.0] * 23)
    assert better.sentence.endswith(" would have been seen")
    few, only = compared([1.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    assert (few.sentence, only.reason) == ("", "too few cases to see any drop")


def test_a_bound_counts_the_metrics_that_it_is_corrected_for():
    # Two changed cases of contains cannot be significant: they take nothing from tool_success.
    new = {"tool_success": [0.0] * 6 + [1.0] * 20 + [1.0] * 2, "contains": [0.0] * 2 + [1.0] * 26}
    old = {"tool_success": [1.0] * 26 + [0.0] * 2, "contains": [1.0] * 28}
    comparison = compare_runs(run_of(new), run_of(old), on=["tool_success"])
    assert [each.n_tests for each in comparison.metrics] == [1, 2]


def test_a_margin_outside_of_the_interval_that_is_not_ruled_out_is_explained():
    # 36 cases that move by at most 0.05: the interval is narrow, and one case in 20 that breaks may not be among them.
    old = [0.5] * 36
    unseen = "of 5 points is not ruled out: the interval is of these cases, and 1 case in 20 that breaks may not"
    comparison, only = compared([0.5 + 0.05 * math.sin(place) for place in range(36)], old, margin=0.05)
    assert -0.05 < only.low < only.high < 0.05
    assert (only.verdict, exit_code(comparison)) == ("cannot tell", 4)
    assert unseen in only.reason
    # A loss that is significant, smaller than the margin, and yet does not rule it out.
    comparison, only = compared([0.47 + 0.05 * math.sin(place) for place in range(36)], old, margin=0.05)
    assert (only.verdict, exit_code(comparison)) == ("regression", 1)
    # An interval that holds the margin says it itself.
    _, only = compared([0.5 + 0.4 * math.sin(place) for place in range(36)], old, margin=0.05)
    assert only.low < -0.05
    assert only.reason.partition("of 5 points is not ruled out")[2].startswith("; about")


def test_scores_of_two_versions_in_one_run_are_not_compared():
    def mixed(name, values):
        first, second = (run_of({"m": values}, name=name, version=version) for version in "12")
        first.metrics["m"][20:] = second.metrics["m"][20:]
        return first

    (only,) = compare_runs(mixed("new", [0.0] * 40), mixed("old", [1.0] * 40)).metrics
    assert only.verdict == "not compared"
    assert only.reason.startswith("versions 1/2 and 1/2 of the metric may not mean the same")


def test_what_can_be_seen_is_less_where_more_metrics_are_tested():
    old, new = ([float(place not in wrong) for place in range(100)] for wrong in (range(2), range(2, 8)))
    alone, with_another = (
        compare_runs(
            run_of({"tool_success": new, **more}), run_of({"tool_success": old, **more_before}), on=["tool_success"]
        ).metrics[0]
        for more, more_before in (({}, {}), ({"exact_match": new[::-1]}, {"exact_match": old[::-1]}))
    )
    assert alone.smallest_detectable == smallest_detectable_drop(2, 6, 100, alpha=0.01)
    assert with_another.smallest_detectable == smallest_detectable_drop(2, 6, 100, alpha=0.005)


def test_an_unseen_case_may_grow_as_much_as_one_that_was_seen():
    old = [1.0] * 50
    _, only = compared([*old[:-1], 31.0], old, metric="cost", margin="10%")
    # Thirty is more than twice the mean.
    assert (only.worst_assumed, only.verdict) == (30.0, "cannot tell")


def test_a_gate_on_labels_does_not_choose_which_scores_count():
    old, new = ({"tool_success": [1.0] * 40, "cost": [cost] * 40} for cost in (1.0, 2.0))
    by_labels = compare_runs(run_of(new), run_of(old), gates=["cost labeled <= 9"])
    assert (by_labels.tested, by_labels.regressions) == ([], [])
    by_scores = compare_runs(run_of(new), run_of(old), gates=["cost <= 9"])
    assert [each.metric for each in by_scores.regressions] == ["cost"]
