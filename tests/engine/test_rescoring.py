"""Kept records that are scored: which functions turn out to be checks, and a baseline under another version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kept_records import add_record

from agentunit.engine.recording.runner import plan_run, record
from agentunit.engine.recording.suite import Suite
from agentunit.engine.scoring.rescoring import rescore_baseline, score_run
from agentunit.engine.scoring.scored_run import ScoredRun, recorded_infos, run_from_store
from agentunit.metrics.functions import FunctionMetric
from agentunit.store.runs import FIRST_AGAIN
from agentunit.store.sqlite import Store

CASES = [{"id": f"c{at}", "query": str(at), "expected_output": "yes"} for at in range(6)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "runs.db")
    with opened:
        yield opened


def agrees(query: str) -> str:
    """An agent."""
    return "yes"


def recorded(store: Store, metrics: list[Any], agent: Callable[[str], str] = agrees) -> str:
    plan = plan_run(Suite(CASES, agent, metrics=metrics), store)
    record(plan, store)
    return plan.header.id


def late(answer: str, query: str):  # type: ignore[no-untyped-def]
    """Applies to the second half only."""
    return None if int(query) < 3 else answer == "yes"


def test_a_function_becomes_a_check_of_the_run_with_its_first_bool(store: Store) -> None:
    run_id = recorded(store, [late])
    score_run(store, run_id, [late, "contains"])
    info = run_from_store(store, run_id).info("late")
    assert (info.check, info.direction, info.range) == (True, "higher", (0.0, 1.0))
    # It stays one, although the function itself says nothing and its bools are not scored again.
    score_run(store, run_id, [late])
    assert run_from_store(store, run_id).info("late").check
    record(plan_run(Suite(CASES, agrees, metrics=[late]), store, resume=run_id), store)
    assert run_from_store(store, run_id).info("late").check


def test_another_version_of_a_function_speaks_for_itself(store: Store) -> None:
    run_id = recorded(store, [late])
    score_run(store, run_id, [late])

    def graded(answer: str) -> float:
        return 0.7

    score_run(store, run_id, [FunctionMetric(graded, "late")], again=True)
    assert not run_from_store(store, run_id).info("late").check


def test_a_kill_between_check_and_score_loses_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = recorded(store, [late])

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "add_blocks", killed)
        with pytest.raises(KeyboardInterrupt):
            score_run(store, run_id, [late])
    assert list(store.metrics_scored(run_id)) == []
    assert run_from_store(store, run_id).header.settings["metric_infos"]["late"]["check"] is True


def test_an_info_of_an_earlier_edition_takes_whether_it_is_a_check_from_the_metric() -> None:
    def stored(name: str, family: str = "quality", **more: Any) -> dict[str, Any]:
        return {"name": name, "family": family, "summary": "", **more}

    infos = recorded_infos(
        {
            "metric_infos": {
                "contains": stored("contains"),
                "polite": stored("contains"),
                "own_contains": stored("contains", check=False),
                "regex": stored("regex", family="custom"),
                "faithfulness": stored("faithfulness"),
                "gone": stored("gone"),
            }
        }
    )
    assert [name for name, info in infos.items() if info.check] == ["contains", "polite"]


def polite(*words: str) -> FunctionMetric:
    """Two versions of a user's function, under one name."""
    if len(words) > 1:

        def newer(answer: str):  # type: ignore[no-untyped-def]
            return any(word in answer for word in words)

        return FunctionMetric(newer, "polite")

    def older(answer: str):  # type: ignore[no-untyped-def]
        return words[0] in answer

    return FunctionMetric(older, "polite")


def two_versions(store: Store) -> tuple[ScoredRun, ScoredRun]:
    runs = []
    for metric in (polite("yes"), polite("yes", "please")):
        run_id = recorded(store, [metric], lambda query: "please" if query == "0" else "yes")
        score_run(store, run_id, [metric])
        runs.append(run_from_store(store, run_id))
    return runs[0], runs[1]


def test_a_baseline_is_scored_again_by_the_functions_at_hand(store: Store) -> None:
    baseline, candidate = two_versions(store)
    assert [row.value for row in baseline.metrics["polite"]] == [0.0, *[1.0] * 5]
    _, again, refused = rescore_baseline(candidate, baseline, ["polite"])
    assert (again, refused) == ([], {"polite": "the metric is not installed here"})
    rescored, again, refused = rescore_baseline(candidate, baseline, ["polite"], [polite("yes", "please")])
    assert (again, refused) == (["polite"], {})
    assert [row.value for row in rescored.metrics["polite"]] == [1.0] * 6
    assert rescored.info("polite").check
    assert {row.version for row in rescored.metrics["polite"]} == {row.version for row in candidate.metrics["polite"]}


@pytest.mark.parametrize(
    ("metric", "why"),
    [(polite("yes"), "version .* is installed here"), (polite("yes", "sorry"), "does not give the candidate's scores")],
)
def test_what_is_at_hand_must_give_the_scores_of_the_candidate(store: Store, metric: Any, why: str) -> None:
    baseline, candidate = two_versions(store)
    same, again, refused = rescore_baseline(candidate, baseline, ["polite"], [metric])
    assert (same, again) == (baseline, [])
    assert re.search(why, refused["polite"])


def test_tries_again_of_a_baseline_are_left_out(store: Store) -> None:
    baseline, candidate = two_versions(store)
    (first, *_) = store.records(baseline.header.id)
    add_record(store, baseline.header.id, 0, FIRST_AGAIN, first.record, failed=False, elapsed_s=0.0)
    again = run_from_store(store, baseline.header.id)
    rescored, names, _ = rescore_baseline(candidate, again, ["polite"], [polite("yes", "please")])
    assert (names, [row.repeat for row in rescored.metrics["polite"]]) == (["polite"], [0] * 6)
