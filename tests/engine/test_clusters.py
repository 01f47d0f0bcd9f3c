from __future__ import annotations

import random
from math import sqrt
from pathlib import Path

import pytest

from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.gates import evaluate_gates
from agentunit.engine.recording.runner import plan_run, record
from agentunit.engine.recording.suite import Suite, SuiteError
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.formulas.proportions import paired_proportion_interval
from agentunit.formulas.running import ClusterTotals
from agentunit.formulas.statistics import cluster_mean_interval, mean_interval, normal_interval, wilson_interval
from agentunit.store.runs import RecordRow, RunHeader
from agentunit.store.sqlite import Store


def test_an_interval_over_clusters_by_hand():
    # Clusters {0, 0, 0} and {1} and {1, 1}: m = 3/6; total − size · m = −1.5, 0.5, 1; squares 2.25 + 0.25 + 1 = 3.5;
    # √(3/2 · 3.5) / 6 = 0.38188; t with 2 degrees of freedom is 4.3027.
    interval = cluster_mean_interval([0.0, 1.0, 2.0], [3, 1, 2], pass_fail=True)
    assert interval is not None
    assert interval.low == pytest.approx(0.5 - 4.30265 * 0.381881, abs=1e-4)
    assert interval.high == pytest.approx(0.5 + 4.30265 * 0.381881, abs=1e-4)
    assert interval.method == "cluster t"


def test_clusters_of_one_value_are_plain_values():
    values = [0.2, 0.9, 0.4, 0.7]
    mean = sum(values) / 4
    plain = normal_interval(mean, sum((each - mean) ** 2 for each in values) / 3, 4)
    clustered = cluster_mean_interval(values, [1] * 4)
    assert clustered is not None
    assert (clustered.low, clustered.high) == (pytest.approx(plain.low), pytest.approx(plain.high))


def test_nothing_but_passes_counts_each_cluster_once():
    clustered, plain = cluster_mean_interval([5.0, 3.0, 2.0], [5, 3, 2], pass_fail=True), wilson_interval(3, 3)
    assert clustered is not None
    assert (clustered.low, clustered.high, clustered.method) == (plain.low, plain.high, "cluster wilson")


def test_clusters_that_happen_to_be_alike_do_not_claim_certainty():
    clustered, plain = cluster_mean_interval([3.0] * 10, [4] * 10, pass_fail=True), wilson_interval(30, 40)
    assert clustered is not None
    assert (clustered.low, clustered.high) == (plain.low, plain.high)


def test_one_cluster_has_no_interval_and_sizes_are_checked():
    assert cluster_mean_interval([3.0], [4]) is None
    with pytest.raises(ValueError, match="sizes must be 2 whole numbers"):
        cluster_mean_interval([3.0, 1.0], [4, 0])


def test_counting_cases_claims_too_much_and_counting_clusters_does_not():
    """20 customers with 10 cases each, which pass with a chance of their own: how often is the true rate covered?"""
    source = random.Random(11)
    n_runs, naive, clustered = 600, 0, 0
    for _ in range(n_runs):
        totals, values = ClusterTotals(), []
        for customer in range(20):
            chance = source.betavariate(1.4, 0.6)  # mean 0.7, correlation within a customer 1 / (1 + 2)
            for _ in range(10):
                value = float(source.random() < chance)
                totals.add(customer, value)
                values.append(value)
        plain, over_clusters = mean_interval(values), totals.interval(shares=True)
        assert plain is not None
        assert over_clusters is not None
        naive += plain.low <= 0.7 <= plain.high
        clustered += over_clusters.low <= 0.7 <= over_clusters.high
    assert naive / n_runs < 0.75
    assert clustered / n_runs > 0.92


CASES = [
    {"id": f"c{n}", "query": f"{n}", "expected_output": "yes", "metadata": {"customer": f"u{n // 5}"}}
    for n in range(60)
]


def recorded(tmp_path: Path, wrong: set[int], cluster: str | None = "metadata.customer", repeats: int = 1) -> ScoredRun:
    """A run of twelve customers with five cases each, in which the cases of some customers go wrong."""
    suite = Suite(
        CASES,
        lambda query: "no" if int(query) // 5 in wrong else "yes",
        metrics=["exact_match"],
        gates=["exact_match >= 0.5"],
        cluster=cluster,
        repeats=repeats,
    )
    with Store(tmp_path / "runs.db") as store:
        plan = plan_run(suite, store)
        record(plan, store)
        score_run(store, plan.header.id, ["exact_match"])
        return run_from_store(store, plan.header.id)


@pytest.mark.parametrize("repeats", [1, 2])
def test_a_run_keeps_its_clusters_and_its_intervals_are_over_them(tmp_path, repeats):
    run = recorded(tmp_path, {0, 1, 2}, repeats=repeats)
    summary = run.summary()
    assert (summary.clustered_by, summary.n_clusters) == ("metadata.customer", 12)
    (row,) = summary.metrics
    assert row.mean == 0.75
    # Twelve customers of whom three fail: the interval of twelve values.
    standard_error = sqrt((9 * 0.25**2 + 3 * 0.75**2) / 11 / 12)
    assert row.low == pytest.approx(0.75 - 2.20099 * standard_error, abs=1e-4)
    assert row.interval == "cluster t"
    (gate,) = evaluate_gates(run, ["exact_match >= 0.5"])
    assert (gate.low, gate.high) == (pytest.approx(row.low), pytest.approx(1.0))
    assert gate.near
    (total,) = evaluate_gates(run, ["exact_match sum >= 1"])
    assert total.low == pytest.approx(60 * repeats * row.low)


def test_without_the_setting_cases_are_independent(tmp_path):
    run = recorded(tmp_path, {0, 1, 2}, cluster=None)
    assert run.summary().clustered_by is None
    assert run.summary().metrics[0].interval == "wilson"


def test_two_broken_customers_are_no_regression_of_the_population(tmp_path):
    """Ten cases newly fail. As independent cases that is p = 1/1024; as two customers of twelve it shows nothing."""
    found = {}
    for cluster in (None, "metadata.customer"):
        old, new = (recorded(tmp_path, wrong, cluster) for wrong in (set(), {4, 7}))
        comparison = compare_runs(new, old)
        (found[cluster],) = comparison.metrics
    assert found[None].verdict == "regression"
    assert found[None].test == "mcnemar"
    by_cluster = found["metadata.customer"]
    assert by_cluster.verdict == "no loss shown"
    assert (by_cluster.test, by_cluster.p_worse) == ("sign-flip", 0.25)
    assert by_cluster.high is not None
    assert by_cluster.high > 0.0
    assert comparison.note == "intervals and tests are over 12 clusters of metadata.customer, not over cases"


def test_many_broken_customers_are_a_regression(tmp_path):
    old, new = (recorded(tmp_path, wrong) for wrong in (set(), set(range(7))))
    (compared,) = compare_runs(new, old).metrics
    assert (compared.verdict, compared.p_worse) == ("regression", 1 / 128)
    assert compare_runs(new, new).metrics[0].verdict == "no change"


def scored(name: str, metric: str, values: list[float], customers: list[int]) -> ScoredRun:
    settings = {"cluster": {"field": "metadata.customer", "by_position": customers}}
    rows = [ScoreRow(place, 0, f"c{place}", value, "ok", "b", "1") for place, value in enumerate(values)]
    records = [RecordRow(place, 0, f"c{place}", False) for place in range(len(values))]
    header = RunHeader(name, name, 0.0, 1.0, "finished", len(values), "0", settings)
    return ScoredRun(header, len(values), len(values), 0, {metric: rows}, records)


def test_a_customer_with_half_of_all_cases_may_be_lost_as_a_whole():
    """A hundred customers with a case each rule a loss out. One more with a hundred cases does not: it is one draw."""
    for customers, verdict in ((list(range(200)), "no worse"), ([0] * 100 + list(range(1, 101)), "cannot tell")):
        old, new = ([float(place != wrong) for place in range(200)] for wrong in (150, 160))
        (found,) = compare_runs(
            scored("new", "exact_match", new, customers), scored("old", "exact_match", old, customers), margin=0.05
        ).metrics
        assert found.verdict == verdict


def test_customers_that_change_alike_leave_doubt():
    customers = [place // 5 for place in range(60)]
    old, new = [1.0] * 60, [float(place % 5 > 0) for place in range(60)]
    (found,) = compare_runs(
        scored("new", "exact_match", new, customers), scored("old", "exact_match", old, customers)
    ).metrics
    # Each of the twelve lost one of five cases; sixty independent cases would leave this much.
    plain = paired_proportion_interval(0, 12, 60)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_the_interval_of_a_rate_that_should_be_low_is_not_turned_round():
    customers = [place // 5 for place in range(60)]
    old, new = [0.0] * 60, [float(place < 20) for place in range(60)]
    (found,) = compare_runs(
        scored("new", "hallucination_rate", new, customers), scored("old", "hallucination_rate", old, customers)
    ).metrics
    assert found.difference == pytest.approx(1 / 3)
    # Twelve differences, four of them 1: ± 2.201 · √(8/3 / 11 / 12).
    assert (found.low, found.high) == pytest.approx((1 / 3 - 0.3128, 1 / 3 + 0.3128), abs=1e-3)


@pytest.mark.parametrize(
    "kept", ["customer", {"field": 3, "by_position": []}, {"field": "x", "by_position": ["a"]}, {}]
)
def test_clusters_of_a_file_are_checked(kept):
    header = RunHeader("r", "r", 0.0, None, "finished", None, "1", {"cluster": kept})
    assert ScoredRun(header, 0, 0, 0).clusters is None


def test_a_suite_says_what_is_wrong_with_its_cluster():
    with pytest.raises(SuiteError, match=r"cluster: a field of cases must be metadata\.NAME"):
        Suite(CASES, str, cluster="customer")
