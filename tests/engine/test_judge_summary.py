"""What a judge took, and how steady it was, in the summary of a run: streamed, stored, exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from judge_faults import dropped
from judge_server import JudgeServer
from kept_records import add_record

from agentunit import CompositeMetric, DatasetCase, MetricResult, Outcome, Record, score
from agentunit.addons.judge.rubric_metric import RubricMetric
from agentunit.addons.judge.settings import configure_judge
from agentunit.core.results import JudgeSpend, RunSummary, encode_json
from agentunit.engine.scoring.judging import JudgeTally, judged_metrics, total_spend
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import run_from_file, run_from_store
from agentunit.reports.figures import describe_judge_spend, describe_spending
from agentunit.store.portable import export_run
from agentunit.store.sqlite import Store


class Judged:
    """A metric whose cases say in their metadata what the judge said and took."""

    def __init__(self, name: str = "judged") -> None:
        self.name = name

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        said = case.metadata.get("said", [])
        spent = {"model": "small", "calls": 2, "cached": 1, "prompt_tokens": 100, "completion_tokens": 10}
        detail = {"backend": "judge", "judge": {**spent, "cost_usd": 0.25, **case.metadata.get("spent", {})}}
        if len(said) > 1:
            detail["judge_values"] = said
        if not said:
            detail |= {"reason": "HTTP 500", "error": {"type": "JudgeFailed", "message": "HTTP 500"}}
            return MetricResult(self.name, None, detail)
        return MetricResult(self.name, sum(said) / len(said), detail)


def case(name: str, *said: float, **spent: Any) -> Record:
    return Record(DatasetCase(name, metadata={"said": list(said), "spent": spent}))


CASES = [case("q0", 0.0, 0.5), case("q1", 0.5, 1.0), case("q2")]


def summary_of(records: list[Record], *metrics: Any) -> RunSummary:
    return score(records, list(metrics) or [Judged()]).summary()


def test_calls_tokens_and_cost_are_added_up_and_failures_counted() -> None:
    summary = summary_of(CASES)
    assert summary.judge == JudgeSpend(["small"], 3, 1, 6, 3, 300, 30, 0.75, partial=False)
    (row,) = summary.metrics
    assert row.judge is not None
    assert row.judge.n_repeats == 2
    assert row.judge.judge_sd == pytest.approx(0.125**0.5)
    assert (row.judge.agent_sd, row.judge.judge_share) == (None, pytest.approx(0.5))
    assert summary.unscored[0].status == "error"


def test_a_price_that_is_unknown_of_some_makes_the_sum_a_part() -> None:
    spend = summary_of([case("q0", 1.0), case("q1", 1.0, cost_usd=None)]).judge
    assert spend is not None
    assert (spend.cost_usd, spend.prompt_tokens, spend.partial) == (0.25, 200, True)
    assert describe_judge_spend(spend).startswith("at least $0.2500")
    spend = summary_of([case("q0", 1.0, cost_usd=None)]).judge
    assert spend is not None
    assert spend.cost_usd is None
    assert describe_judge_spend(spend).startswith("price unknown, 110 tokens in 2 calls of small")


def test_a_part_that_cost_nothing_tells_no_price() -> None:
    # A request that was turned away costs nothing, for certain; of the one that was answered no price is known.
    turned_away = {"prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0}
    spend = summary_of([case("q0", **turned_away), case("q1", 1.0, cost_usd=None)]).judge
    assert spend is not None
    assert (spend.cost_usd, spend.partial) == (0.0, True)
    assert describe_judge_spend(spend).startswith("price unknown, 110 tokens in 4 calls")


def test_calls_that_may_have_been_billed_unseen_are_told() -> None:
    unseen = {"prompt_tokens": None, "completion_tokens": None, "cost_usd": None, "unstated": 2}
    spend = summary_of([case("q0", 1.0), case("q1", **unseen), case("q2", **unseen)]).judge
    assert spend is not None
    assert (spend.cost_usd, spend.n_unstated) == (0.25, 4)
    assert "; 4 calls may have been billed unseen" in describe_judge_spend(spend)
    both = summary_of([case("q1", **unseen)], CompositeMetric([Judged("part"), Judged("other")])).judge
    assert both is not None
    assert both.n_unstated == 4


def test_what_is_wrong_with_the_judges_run_is_told_at_once_and_from_the_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = {"scores": [{"criterion": 1, "reason": "It is.", "score": 5}]}
    record = Record(DatasetCase("q0", "Where is it?"), outcome=Outcome(output="It arrives on Monday."))
    broken = [dropped(), dropped()]
    try:
        with (
            JudgeServer(lambda body: said, faults=lambda _: broken.pop() if broken else None) as server,
            Store(tmp_path / "runs.db") as store,
        ):
            configure_judge(url=server.url, model="small", cache=str(tmp_path / "file" / "cache"))
            metric = RubricMetric("The answer is polite.")
            at_once = score([record], [metric]).summary()
            header = store.create_run("judged", agentunit_version="0", settings={"metrics": ["rubric"]})
            add_record(store, header.id, 0, 0, record, failed=False, elapsed_s=0.0)
            score_run(store, header.id, [metric])
            # Nothing is left to score, so nothing new is known of the judge.
            score_run(store, header.id, [metric])
            stored = run_from_store(store, header.id).summary()
    finally:
        configure_judge()
    for summary in (at_once, stored):
        assert summary.judge is not None
        (problem,) = summary.judge.problems
        assert "cannot be used, so replies are not kept" in problem
        assert dict(describe_spending(summary))["judge"].endswith(problem)
        assert json.loads(encode_json(summary))["judge"]["problems"] == [problem]
    assert at_once.judge is not None
    assert at_once.judge.n_unstated == 2


def test_a_run_from_the_cache_took_nothing_and_knows_it() -> None:
    free = {"calls": 0, "cached": 3, "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0}
    spend = summary_of([case("q0", 1.0, **free)]).judge
    assert spend == JudgeSpend(["small"], 1, 0, 0, 3, 0, 0, 0.0, partial=False)


def test_several_metrics_and_composites_add_up() -> None:
    one, other = Judged("one"), Judged("other")
    spend = summary_of(CASES[:2], one, CompositeMetric([Judged("part"), other])).judge
    assert spend is not None
    assert (spend.n_scores, spend.n_calls, spend.cost_usd) == (4, 12, 1.5)


def test_without_a_judge_there_is_nothing_to_tell() -> None:
    summary = score([Record(DatasetCase("q0"))], ["cost"]).summary()
    assert summary.judge is None
    assert describe_spending(summary) == []
    assert JudgeTally().spend() is None
    assert total_spend([None, None]) is None
    assert judged_metrics([Judged()]) == []


def test_the_agents_cost_stands_beside_the_judges() -> None:
    record = Record(CASES[0].case)
    record.trace.metadata = {"cost": 0.5, "usage": {"prompt_tokens": 1000, "completion_tokens": 500}}
    told = dict(describe_spending(summary_of([record], Judged(), "cost", "token_usage")))
    assert told["agent"] == "$0.5000, 1,500 tokens"
    assert told["judge"] == "$0.2500, 110 tokens in 2 calls of small; 1 reply reused; $0.2500 a verdict"


def test_records_of_before_are_still_read() -> None:
    data = json.loads(encode_json(summary_of(CASES)))
    new = data.pop("judge")
    del new["n_unstated"], new["problems"]
    assert msgspec.convert(new, JudgeSpend).problems == []
    for row in data["metrics"]:
        del row["judge"]
    read = msgspec.convert(data, RunSummary)
    assert read.judge is None
    assert read.metrics[0].judge is None


def test_a_stored_run_and_its_export_tell_the_same(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        header = store.create_run("judged", agentunit_version="0", settings={"metrics": ["judged", "both"]})
        for position, record in enumerate([*CASES, case("q3", 1.0, 1.0)]):
            for repeat in range(2):
                add_record(store, header.id, position, repeat, record, failed=False, elapsed_s=0.0)
        score_run(store, header.id, [Judged(), CompositeMetric([Judged("part")], name="both")])
        export_run(store, header.id, tmp_path / "run.jsonl")
        stored = run_from_store(store, header.id).summary()
    assert stored.judge == JudgeSpend(["small"], 16, 2, 32, 16, 1600, 160, 4.0, partial=False)
    judged = next(row for row in stored.metrics if row.metric == "judged")
    assert judged.judge is not None
    # Two runs of each case, judged alike: what the agent seems to vary is the judge's, and nothing is left for it.
    assert judged.judge.agent_sd == 0.0
    assert judged.judge.judge_sd == pytest.approx((0.5 / 6) ** 0.5)
    exported = run_from_file(tmp_path / "run.jsonl").summary()
    assert exported.judge == stored.judge
    assert [row.judge for row in exported.metrics] == [row.judge for row in stored.metrics]


def test_what_the_cache_answered_for_one_metric_is_no_price_of_anothers_calls() -> None:
    called = JudgeSpend(["m"], 2, 0, 4, 0, 100, 20, None, True)
    cached = JudgeSpend(["m"], 2, 0, 0, 4, 0, 0, 0.0, False)
    total = total_spend([called, cached])
    assert total is not None
    assert (total.cost_usd, total.prompt_tokens, total.n_cached) == (None, 100, 4)
    nothing = total_spend([cached, cached])
    assert nothing is not None
    assert (nothing.cost_usd, nothing.prompt_tokens, nothing.partial) == (0.0, 0, False)


def test_a_judge_within_a_composite_of_composites_is_seen() -> None:
    rubric = RubricMetric("Is it polite?")
    outer = CompositeMetric([CompositeMetric([rubric], name="inner"), Judged()], name="outer")
    assert judged_metrics([outer]) == [rubric]
