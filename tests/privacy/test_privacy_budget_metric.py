"""``privacy_budget``: what spends, in which order, exactly, safely, and the same after an interruption."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from math import comb, exp
from pathlib import Path
from typing import Any

import pytest

import agentunit
from agentunit.backends import accountant
from agentunit.backends.quality import BackendUnavailable
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.core.trace import TraceLog
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.gates import evaluate_gates
from agentunit.engine.recording.runner import plan_run, record
from agentunit.engine.recording.suite import Suite
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import ScoredRun, recorded_infos, run_from_store
from agentunit.installation import install_command
from agentunit.metrics.base import CompositeMetric, MetricInfo
from agentunit.privacy import PrivacyBudgetMetric
from agentunit.reports.figures import describe_value
from agentunit.store.sqlite import Store

CATALOG_KEYS = ["epsilon_used", "total_spent", "remaining", "utilization", "budget_exceeded", "warning"]


def spending(*epsilons: Any) -> list[dict[str, Any]]:
    return [{"case": {"id": f"q{k}", "metadata": {"epsilon": each}}} for k, each in enumerate(epsilons)]


def values_of(run: Any, name: str = "privacy_budget") -> list[float | None]:
    return [case.scores[name].value for case in run]


def test_the_catalogs_example() -> None:
    metric = PrivacyBudgetMetric(total_budget=10.0, warn_threshold=0.8)
    metric.evaluate({"id": "q1", "metadata": {"epsilon": 2.7}}, None, "x")
    result = metric.evaluate({"id": "q2", "metadata": {"epsilon": 0.5}}, None, "x")
    assert list(result.detail)[:6] == CATALOG_KEYS
    shown = {key: result.detail[key] for key in CATALOG_KEYS}
    assert shown == pytest.approx(
        {
            "epsilon_used": 0.5,
            "total_spent": 3.2,
            "remaining": 6.8,
            "utilization": 0.32,
            "budget_exceeded": False,
            "warning": False,
        }
    )
    assert result.value == pytest.approx(0.68)
    assert result.detail["backend"] == "sum"


@pytest.mark.parametrize(
    ("record_", "spent"),
    [
        ({"case": {"id": "q"}}, 0.0),
        ({"case": {"id": "q", "metadata": {"epsilon": 0.5}}}, 0.5),
        ({"case": {"id": "q", "metadata": {"privacy_epsilon": 2}}}, 2.0),
        ({"case": {"id": "q", "metadata": {"epsilon": 5}}, "trace": {"metadata": {"epsilon": 0.25}}}, 0.25),
        ({"case": {"id": "q"}, "outcome": {"output": "x", "metadata": {"epsilon": 0.75}}}, 0.75),
        (
            {
                "case": {"id": "q"},
                "trace": {
                    "events": [
                        {"type": "tool_call", "payload": {"name": "count", "epsilon": 0.5}},
                        {"type": "query", "payload": {"privacy_epsilon": 0.25}},
                        {"type": "message", "payload": {"role": "user"}},
                    ]
                },
            },
            0.75,
        ),
        (
            {
                "case": {"id": "q", "metadata": {"epsilon": 1.0}},
                "trace": {"events": [{"type": "query", "payload": {"epsilon": 9}}]},
            },
            1.0,
        ),
    ],
)
def test_where_epsilon_is_read(record_: dict[str, Any], spent: float) -> None:
    result = PrivacyBudgetMetric().evaluate(record_["case"], record_.get("trace"), record_.get("outcome"))
    assert result.detail["epsilon_used"] == result.detail["total_spent"] == spent
    assert result.value == pytest.approx(1 - spent / 10)


def test_more_than_all_of_it() -> None:
    run = agentunit.score(spending(1.5, 0.1, 0.4, 0.0, 1.0), [PrivacyBudgetMetric(total_budget=2.0)])
    details = [case.scores["privacy_budget"].result for case in run]
    assert [result.value for result in details] == pytest.approx([0.25, 0.2, 0.0, 0.0, 0.0])
    assert [result.detail["warning"] for result in details] == [False, True, True, True, True]
    assert [result.detail["budget_exceeded"] for result in details] == [False, False, False, False, True]
    assert details[-1].detail["remaining"] == -1.0


def test_sums_are_exact() -> None:
    run = agentunit.score(spending(*[0.1] * 30), [PrivacyBudgetMetric(total_budget=3.0)])
    last = list(run)[-1].scores["privacy_budget"].result.detail
    assert (last["total_spent"], last["budget_exceeded"]) == (3.0, False)
    assert sum([0.1] * 30) > 3.0  # what plain adding would have said


@pytest.mark.parametrize("bad", [-0.1, float("nan"), float("inf"), "a lot", True, [0.5]])
def test_what_cannot_be_spent_is_an_error_and_spends_nothing(bad: Any) -> None:
    records = [
        Record(DatasetCase(f"q{k}", metadata={"epsilon": each}), TraceLog(), "x") for k, each in enumerate((2, bad, 3))
    ]
    scores = [case.scores["privacy_budget"] for case in agentunit.score(records, ["privacy_budget"])]
    assert [score.status for score in scores] == ["ok", "error", "ok"]
    assert scores[1].result.detail["error"]["type"] == "InputProblem"
    assert "case.metadata['epsilon'] must be a finite number of 0 or more" in scores[1].result.detail["reason"]
    assert scores[2].result.detail["total_spent"] == 5.0


def test_a_bad_event_spends_nothing_of_its_case() -> None:
    metric = PrivacyBudgetMetric()
    events = [{"type": "query", "payload": {"epsilon": each}} for each in (1.0, -1.0)]
    assert "epsilon of trace.events[1]" in metric.evaluate({"id": "q"}, {"events": events}, "x").detail["reason"]
    assert metric.evaluate({"id": "q"}, None, "x").detail["total_spent"] == 0.0


def test_many_threads_lose_nothing() -> None:
    metric = PrivacyBudgetMetric(total_budget=1000.0)
    case = {"id": "q", "metadata": {"epsilon": 0.1}}
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: metric.evaluate(case, None, "x"), range(2000)))
    assert len({result.detail["total_spent"] for result in results}) == 2000
    assert metric.evaluate({"id": "q"}, None, "x").detail["total_spent"] == 200.0


# Runs


def test_each_run_begins_with_the_whole_budget() -> None:
    metric = PrivacyBudgetMetric(total_budget=2.0)
    assert values_of(agentunit.score(spending(0.5, 0.5), [metric])) == [0.75, 0.5]
    assert values_of(agentunit.score(spending(0.5, 0.5), [metric])) == [0.75, 0.5]
    both = CompositeMetric([metric], name="both")
    assert values_of(agentunit.score(spending(0.5), [both]), "both") == [0.75]
    assert values_of(agentunit.score(spending(0.5), [both]), "both") == [0.75]


def spending_agent(query: str, trace: TraceLog) -> str:
    trace.metadata["epsilon"] = float(query)
    return query


@pytest.mark.parametrize("as_instance", [True, False], ids=["instance", "name"])
def test_the_same_values_after_a_stop_and_resume(tmp_path: Path, as_instance: bool) -> None:
    cases = [DatasetCase(f"q{k}", str(0.1 * (k + 1))) for k in range(8)]
    metrics: list[Any] = [PrivacyBudgetMetric()] if as_instance else ["privacy_budget"]
    suite = Suite(cases, spending_agent, metrics=metrics, concurrency=4)
    with Store(tmp_path / "runs.db") as store:
        whole = plan_run(suite, store)
        record(whole, store)
        score_run(store, whole.header.id, suite.metrics)

        broken = plan_run(suite, store)
        broken.open = [each for each in broken.open if each[0] not in (1, 4, 5)]  # a kill leaves gaps
        record(broken, store)
        score_run(store, broken.header.id, suite.metrics)
        rest = plan_run(suite, store, resume=broken.header.id)
        assert sorted(rest.open) == [(1, 0), (4, 0), (5, 0)]
        record(rest, store)
        score_run(store, broken.header.id, suite.metrics)

        uninterrupted, resumed = (
            [(row.case_id, row.value) for row in run_from_store(store, plan.header.id).metrics["privacy_budget"]]
            for plan in (whole, broken)
        )
    assert resumed == uninterrupted
    assert uninterrupted[-1][1] == pytest.approx(1 - 3.6 / 10)


# The value of a run


def scored_run(tmp_path: Path, epsilons: list[float | None], *, times: float = 1.0, **settings: Any) -> ScoredRun:
    """A recorded and scored run whose cases spend so many times these; ``None`` records no ε."""

    def agent_that_may_spend(query: str, trace: TraceLog) -> str:
        if query:
            trace.metadata["epsilon"] = times * float(query)
        return "done"

    cases = [DatasetCase(f"q{k}", "" if each is None else str(each)) for k, each in enumerate(epsilons)]
    suite = Suite(cases, agent_that_may_spend, metrics=["privacy_budget"], **settings)
    with Store(tmp_path / "runs.db") as store:
        plan = plan_run(suite, store)
        record(plan, store)
        score_run(store, plan.header.id, suite.metrics)
        return run_from_store(store, plan.header.id)


def test_a_run_is_its_last_balance(tmp_path: Path) -> None:
    run = scored_run(tmp_path, [1.0] * 12)  # 12 of 10: the mean balance is 0.375
    (row,) = run.summary().metrics
    assert (row.mean, row.low, row.high, row.aggregate) == (0.0, None, None, "last")
    assert (row.minimum, row.maximum) == (0.0, 0.9)
    (verdict,) = evaluate_gates(run, ["privacy_budget >= 0.2"])
    assert (verdict.verdict, verdict.value, verdict.low) == ("fail", 0.0, None)
    assert verdict.reason == "last value 0 misses >= 0.2"
    assert verdict.cases == (), "a balance speaks of the run, and of no case"
    assert describe_value(row, "score") == "0.00 at the end"


def test_scoring_a_stream_gives_the_same_last_balance() -> None:
    summary = agentunit.score(spending(*[1.0] * 12), ["privacy_budget"]).summary()
    assert [(row.mean, row.low, row.interval) for row in summary.metrics] == [(0.0, None, None)]
    both = agentunit.score(spending(4.0, 4.0), [CompositeMetric([PrivacyBudgetMetric()], name="both")]).summary()
    assert both.metrics[0].mean == pytest.approx(0.2)


def test_every_repeat_spends_and_the_last_one_counts(tmp_path: Path) -> None:
    run = scored_run(tmp_path, [1.0, 2.0], repeats=2)  # 1, 1, 2, 2
    assert [row.value for row in run.metrics["privacy_budget"]] == pytest.approx([0.9, 0.8, 0.6, 0.4])
    (row,) = run.summary().metrics
    assert row.mean == pytest.approx(0.4)
    assert (row.n_repeats, row.within_case_sd, row.pass_all) == (2, None, None)
    assert evaluate_gates(run, ["privacy_budget >= 0.4"])[0].verdict == "pass"
    assert evaluate_gates(run, ["privacy_budget >= 0.5"])[0].verdict == "fail"


def test_a_run_without_any_epsilon_has_no_value(tmp_path: Path) -> None:
    run = scored_run(tmp_path, [None, None])
    (row,) = run.summary().metrics
    assert (row.mean, row.status, row.n_scored) == (None, "not_applicable", 0)
    assert "no epsilon was recorded in this run" in run.summary().unscored[0].reason
    (verdict,) = evaluate_gates(run, ["privacy_budget >= 0.2"])
    assert verdict.verdict == "cannot tell"
    assert "no epsilon was recorded" in verdict.reason


def test_cases_before_the_first_epsilon_have_no_value_and_later_ones_spend_nothing(tmp_path: Path) -> None:
    run = scored_run(tmp_path, [None, None, None, 2.0, None, 0.0])
    assert [row.value for row in run.metrics["privacy_budget"]] == [None, None, None, 0.8, 0.8, 0.8]
    (verdict,) = evaluate_gates(run, ["privacy_budget >= 0.2"])
    assert (verdict.verdict, verdict.n_scored, verdict.n_expected) == ("pass", 3, 3)


def test_an_epsilon_of_zero_is_recorded() -> None:
    assert values_of(agentunit.score(spending(0), ["privacy_budget"])) == [1.0]


def test_two_runs_show_their_balances_and_test_nothing(tmp_path: Path) -> None:
    before, after = scored_run(tmp_path, [0.5] * 8), scored_run(tmp_path, [0.5] * 8, times=2.0)
    compared = {each.metric: each for each in compare_runs(after, before).metrics}["privacy_budget"]
    assert (compared.verdict, compared.gated) == ("shown only", False)
    assert (compared.baseline_mean, compared.candidate_mean) == pytest.approx((0.6, 0.2))
    assert compared.difference == pytest.approx(-0.4)


def test_a_run_scored_before_metrics_said_how_they_add_up(tmp_path: Path) -> None:
    run = scored_run(tmp_path, [1.0] * 12)
    facts = run.header.settings["metric_infos"]["privacy_budget"]
    del facts["aggregate"]
    assert recorded_infos(run.header.settings)["privacy_budget"].aggregate == "last"


def test_an_unknown_aggregate_is_refused() -> None:
    with pytest.raises(ValueError, match="aggregate must be one of mean, last; received 'sum'"):
        MetricInfo("mine", "custom", "", aggregate="sum")  # type: ignore[arg-type]


# True composition


def optimal_epsilon(epsilon: float, k: int, delta: float) -> float:
    """The smallest ε of k ε-private mechanisms at δ, by the exact formula of Kairouz, Oh and Viswanath (2015)."""
    likely = exp(epsilon) / (1 + exp(epsilon))

    def delta_at(target: float) -> float:
        losses = ((k - 2 * i) * epsilon for i in range(k + 1))
        chances = (comb(k, i) * likely ** (k - i) * (1 - likely) ** i for i in range(k + 1))
        return sum(p * (1 - exp(target - loss)) for p, loss in zip(chances, losses, strict=True) if loss > target)

    low, high = 0.0, k * epsilon
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 1), (0.1, 100), (0.5, 40), (1.0, 20)])
def test_composition_equals_the_exact_optimum(epsilon: float, k: int) -> None:
    pytest.importorskip("dp_accounting", reason="true composition needs the extra dp")
    run = agentunit.score(spending(*[epsilon] * k), [PrivacyBudgetMetric(composition="pld")])
    last = list(run)[-1].scores["privacy_budget"]
    assert last.backend == "pld"
    assert last.result.detail["total_spent"] == pytest.approx(optimal_epsilon(epsilon, k, 1e-6), rel=1e-5)
    assert last.result.detail["summed"] == pytest.approx(k * epsilon)


def test_composition_never_says_more_than_the_sum_and_never_shrinks() -> None:
    pytest.importorskip("dp_accounting", reason="true composition needs the extra dp")
    epsilons = [0.3, 0.0, 0.00001, 45.0, 0.7, 1000.0, 12.0, 0.1234567, 900.0, 2.5]
    run = agentunit.score(spending(*epsilons), [PrivacyBudgetMetric(composition="pld", delta=1e-5)])
    details = [case.scores["privacy_budget"].result.detail for case in run]
    spent = [detail["total_spent"] for detail in details]
    assert spent == sorted(spent)
    assert all(detail["total_spent"] <= detail["summed"] for detail in details)


def test_without_the_extra_composition_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accountant, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match=re.escape(install_command("dp"))):
        PrivacyBudgetMetric(composition="pld")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"total_budget": 0}, "total_budget must be finite and above 0; received 0"),
        ({"total_budget": float("inf")}, "total_budget must be finite and above 0"),
        ({"total_budget": True}, "total_budget must be finite and above 0"),
        ({"delta": 1.0}, "delta must be between 0 and 1; received 1.0"),
        ({"warn_threshold": 1.5}, "warn_threshold must be from 0 to 1; received 1.5"),
        ({"warn_threshold": "high"}, "warn_threshold must be a number"),
        ({"composition": "guess"}, "composition must be sum or pld; received 'guess'"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrivacyBudgetMetric(**parameters)
