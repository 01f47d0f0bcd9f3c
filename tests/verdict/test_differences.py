"""The cases that a comparison lists, with their answers before and now."""

from __future__ import annotations

from itertools import product

import pytest
from decided_runs import Case, Try, case_of, keep_run, run_of

from agentunit.engine.deciding import compare as module
from agentunit.engine.deciding._cases import chance_of_newly_failing
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.decision import decide_comparison
from agentunit.store.sqlite import Store


def answered(case_id, *tries, metric="contains"):
    """A case by its tries: each an answer, ``None`` where the agent failed, and a value."""
    return Case(case_id, [Try({metric: value}, answer) for answer, value in tries])


def compared(old, new, **how):
    return compare_runs(run_of(new), run_of(old, name="old"), **how)


def kinds(comparison):
    return {each.case_id: each.kind for each in comparison.differences}


def test_each_kind_by_hand():
    old = [answered("a", ("yes", 1.0)), answered("b", ("no", 0.0)), answered("c", ("same", 1.0))]
    old += [answered("d", ("one way", 1.0)), answered("e", ("x", 1.0))]
    new = [answered("a", ("??", 0.0)), answered("b", ("yes", 1.0)), answered("c", ("same", 1.0))]
    new += [answered("d", ("another", 1.0)), answered("e", (None, 1.0))]
    comparison = compared(old, new)
    assert kinds(comparison) == {"a": "newly failing", "e": "newly failing", "b": "fixed", "d": "other answer"}
    counted = {"newly failing": 2, "fixed": 1, "other answer": 1, "unchanged": 1}
    assert {kind: n for kind, n in comparison.n_by_kind.items() if n} == counted
    first, crashed, fixed, _ = comparison.differences
    assert (first.baseline.text, first.candidate.text, first.same_answer) == ("yes", "??", False)
    assert [(each.metric, each.baseline, each.candidate) for each in first.scores] == [("contains", 1.0, 0.0)]
    assert (crashed.candidate.text, crashed.candidate.error) == (None, "ValueError: boom")
    assert crashed.scores[0].metric == "answered"
    assert (fixed.baseline.text, fixed.candidate.text) == ("no", "yes")
    assert not comparison.is_unchanged


def test_of_several_repeats_the_answers_that_show_the_change_are_kept():
    old = [answered("a", ("right", 1.0), ("right", 1.0), ("wrong", 0.0)), answered("b", *[("r", 1.0)] * 3)]
    new = [answered("a", ("broken", 0.0), ("broken", 0.0), ("broken", 0.0))]
    new += [answered("b", ("r", 1.0), ("w", 0.0), ("r", 1.0))]
    comparison = compared(old, new)
    assert kinds(comparison) == {"a": "newly failing", "b": "flaky"}
    shown, flaky = comparison.differences
    assert (shown.baseline.text, shown.candidate.text) == ("right", "broken")
    assert (flaky.baseline.text, flaky.candidate.text) == ("r", "w")


def test_graded_scores_are_worse_or_better_where_they_count():
    old = [answered(name, ("x", value), metric="support") for name, value in (("a", 0.9), ("b", 0.9), ("c", 0.3))]
    new = [answered(name, ("y", value), metric="support") for name, value in (("a", 0.4), ("b", 0.9), ("c", 0.5))]
    assert kinds(compared(old, new, gates=["support >= 0.5"])) == {"a": "worse", "c": "better", "b": "other answer"}
    assert kinds(compared(old, new)) == dict.fromkeys("abc", "other answer")


def test_a_few_words_more_make_no_case_worse():
    old = [Case("a", [Try({"contains": 1.0, "length": 100.0})])]
    new = [Case("a", [Try({"contains": 1.0, "length": 101.0})])]
    assert compared(old, new).is_unchanged
    old, new = ([case_of("a", value, metric="length")] for value in (100.0, 101.0))
    assert kinds(compared(old, new, on=["length"])) == {"a": "worse"}


def test_many_changes_are_counted_and_some_are_listed(monkeypatch):
    monkeypatch.setattr(module, "MOST_LISTED", 2)
    monkeypatch.setattr(module, "_MOST_ANSWERED", 1)
    old = [answered(f"c{n}", ("x", 1.0), metric="support") for n in range(5)]
    new = [answered(f"c{n}", ("y", 0.1 * n), metric="support") for n in range(5)]
    comparison = compared(old, new, gates=["support >= 0"])
    assert comparison.n_by_kind["worse"] == 5
    assert [each.case_id for each in comparison.differences] == ["c0", "c1"]
    assert [each.candidate is None for each in comparison.differences] == [False, True]


def test_records_are_read_once(tmp_path):
    with Store(tmp_path / "runs.db") as store:
        runs = [keep_run(store, [case_of("a", value)], name=name) for name, value in (("old", 1.0), ("new", 0.0))]
    reads = []
    for run in runs:
        run.read_records = lambda read=run.read_records: (reads.append(1), read())[1]
    compare_runs(runs[1], runs[0])
    assert len(reads) == 2


@pytest.mark.parametrize("n", [1, 7, 66])
@pytest.mark.parametrize("metric", ["contains", "support"])
def test_the_same_outputs_are_no_change_whatever_counts(n, metric):
    cases = [answered(f"c{place}", (f"answer {place}", float(place % 3 > 0)), metric=metric) for place in range(n)]
    comparison = compared(cases, cases)
    assert decide_comparison(comparison).exit_code == 0
    assert comparison.differences == ()
    assert comparison.is_unchanged == (metric == "support" or "still failing" not in kinds_of_all(comparison))


def kinds_of_all(comparison):
    return {case.kind for case in comparison.cases.values()}


def chance_by_counting(n_before, n_now, n_failed):
    """Of all ways in which failures may fall on the tries, the share in which the check newly fails."""
    ways = [fails for fails in product((0, 1), repeat=n_before + n_now) if sum(fails) == n_failed]
    newly = [fails for fails in ways if 2 * sum(fails[:n_before]) < n_before and sum(fails[n_before:]) == n_now]
    return len(newly) / len(ways)


@pytest.mark.parametrize("n_before", [1, 2, 3, 5])
@pytest.mark.parametrize("n_now", [1, 2, 4])
def test_the_chance_of_a_newly_failing_check_counts_the_ways_in_which_failures_may_fall(n_before, n_now):
    for failed_before in range(n_before + 1):
        expected = chance_by_counting(n_before, n_now, failed_before + n_now)
        assert chance_of_newly_failing(n_before, n_now, failed_before, n_now) == pytest.approx(expected)


@pytest.mark.parametrize("n_before", [1, 2, 3, 5])
@pytest.mark.parametrize("n_now", [1, 2, 4])
def test_one_more_failure_of_a_check_never_makes_the_newly_failing_ones_more_like_chance(n_before, n_now):
    for failed_before in range(n_before + 1):
        chances = [chance_of_newly_failing(n_before, n_now, failed_before, now) for now in range(n_now)]
        assert chances == sorted(chances, reverse=True)


def test_another_failure_of_a_flaky_case_does_not_excuse_what_newly_fails():
    old = [case_of("a", 1.0, 1.0, 1.0), case_of("b", 1.0, 1.0, 1.0)]
    new = [case_of("a", 0.0, 0.0, 0.0), case_of("b", 0.0, 0.0, 0.0)]
    old += [case_of(f"flaky-{n}", 0.0, 1.0, 1.0) for n in range(2)]
    codes = []
    for tries in ((1.0, 1.0, 1.0), (0.0, 1.0, 1.0), (0.0, 0.0, 1.0)):
        flaky = [case_of(f"flaky-{n}", *tries) for n in range(2)]
        codes.append(decide_comparison(compared([*new, *flaky], old)).exit_code)
    assert len(set(codes)) == 1
