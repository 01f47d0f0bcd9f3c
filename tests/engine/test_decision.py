from __future__ import annotations

from dataclasses import replace

import pytest

from agentunit.core.results import MetricSummary, RunSummary, Unscored
from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.comparison import CaseChange, CaseStanding, Comparison, MetricComparison
from agentunit.engine.deciding.decision import (
    decide,
    decide_comparison,
    decide_run,
    decide_scoring,
    decide_tests,
)
from agentunit.engine.deciding.gate_expressions import Gate, GateVerdict
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.store.runs import RecordRow, RunHeader


def run_of(*, failed=(), broken=(), values=(1.0, 1.0), **settings):
    """A run of one metric m; the agent failed on the cases of ``failed``, the metric on those of ``broken``."""
    ids = [f"c{place}" for place in range(len(values))]
    rows = [
        ScoreRow(
            place, 0, case_id, None if case_id in broken else value, "error" if case_id in broken else "ok", "b", "1"
        )
        for place, (case_id, value) in enumerate(zip(ids, values, strict=True))
    ]
    records = [RecordRow(place, 0, case_id, case_id in failed) for place, case_id in enumerate(ids)]
    header = RunHeader("r1", "run", 0.0, 1.0, "finished", None, "0", settings)
    return ScoredRun(header, len(ids), len(ids), len(failed), {"m": rows}, records)


def verdict(word, *cases):
    return GateVerdict(Gate("m", ">=", 1.0), word, "why", cases=cases)


def comparison(word, *, gated=True, worse=()):
    changes = tuple(CaseChange(case, 1.0, 0.0) for case in worse)
    return Comparison("old", "new", 2, 0, 0, 0.01, (MetricComparison("m", "b", word, "why", gated, got_worse=changes),))


@pytest.mark.parametrize(
    ("words", "failed", "max_errors", "code", "verdict_of_run"),
    [
        ([], [], 0, 0, None),
        (["pass", "pass"], [], 0, 0, "pass"),
        (["pass", "fail"], [], 0, 1, "fail"),
        (["pass"], ["c0"], 0, 3, "errors"),
        (["pass"], ["c0"], 1, 0, "pass"),
        (["pass", "error"], [], 0, 3, "errors"),
        (["fail", "error"], ["c0", "c1"], 0, 1, "fail"),  # a failure is not hidden behind an outage
        ([], ["c0"], 0, 3, "errors"),
    ],
)
def test_gates_and_errors(words, failed, max_errors, code, verdict_of_run):
    decision = decide(run_of(failed=failed), [verdict(word) for word in words], max_errors=max_errors)
    assert (decision.exit_code, decision.verdict) == (code, verdict_of_run)
    assert bool(decision.reasons) == bool(code)


@pytest.mark.parametrize(
    ("word", "failed", "code"),
    [
        ("no worse", [], 0),
        ("no loss shown", [], 0),
        ("cannot tell", [], 4),
        ("cannot tell", ["c0"], 3),  # errors before "cannot tell"
        ("regression", ["c0"], 1),
    ],
)
def test_with_a_baseline(word, failed, code):
    assert decide(run_of(failed=failed), [], comparison(word), max_errors=0).exit_code == code


def test_where_nothing_says_what_must_not_get_worse_a_difference_is_no_pass():
    changed = MetricComparison("m", "b", "shown only", "described, not tested", False, difference=-0.5)
    decision = decide_comparison(Comparison("old", "new", 2, 0, 0, 0.01, (changed,)))
    assert (decision.exit_code, decision.verdict) == (4, "cannot tell")
    assert decision.headline == (
        "CANNOT TELL: no check and no gate says what must not get worse; --on METRIC names some"
    )


def test_every_reason_names_its_kind_and_its_cases():
    run = run_of(failed=["c0"], broken=["c1"], values=(1.0,) * 4)
    decision = decide(run, [verdict("fail", "c2")], comparison("regression", worse=["c3"]), max_errors=0)
    assert [(each.kind, each.exit_code, each.cases) for each in decision.reasons] == [
        ("regression", 1, ()),  # it speaks of the run, never of a case
        ("gate", 1, ("c2",)),
        ("failed case", 3, ("c0",)),
        ("failed score", 3, ("c1",)),
    ]
    assert decision.failing_cases == ("c2", "c0", "c1")
    assert decision.headline == "FAIL: m is worse; m >= 1: why; failed cases and scores: 2, allowed: 0 (c0, c1)"


def test_what_passes_says_by_what_and_which_errors_it_allows():
    decision = decide(run_of(failed=["c0"]), [verdict("pass")], comparison("no worse"), max_errors=2)
    assert decision.headline == "PASS: nothing broken against old; 1 gate met; 2 cases: 1 fine, 1 wrong"
    assert decide(run_of()).headline == "2 cases: 2 without a check"


def test_failed_cases_are_errors_where_their_number_is_limited_and_scores_always():
    run = run_of(failed=["c0"], broken=["c0", "c1"])
    assert decide(run, max_errors=9).n_errors == 3
    assert decide(run).n_errors == 2


def test_what_could_not_be_read_is_an_error_of_its_run():
    run = replace(run_of(failed=["c0"]), n_input_errors=2)
    decision = decide(run, [verdict("pass")], max_errors=2)
    assert (decision.exit_code, decision.n_errors) == (3, 3)
    assert decision.headline == "ERRORS: unreadable records, failed cases and scores: 3, allowed: 2 (c0)"
    assert decide(run, [verdict("pass")], max_errors=3).exit_code == 0


def test_a_gate_speaks_for_a_run_without_scores():
    run = run_of(broken=["c0", "c1"])
    assert [each.kind for each in decide(run, [verdict("fail")], max_errors=2).reasons] == ["gate"]
    assert [each.kind for each in decide(run, max_errors=2).reasons] == ["no scores"]


def test_a_run_is_decided_by_its_own_gates_and_allowance():
    run = run_of(failed=["c0"], gates=["m >= 0.5"], max_errors=1, min_coverage=0.5)
    assert decide_run(run).exit_code == 0
    assert decide_run(run, max_errors=0).exit_code == 3
    assert decide_run(run, ["m >= 2"]).exit_code == 1


@pytest.mark.parametrize("nonsense", ["many", -1, True, 1e999])
def test_a_run_from_elsewhere_is_not_trusted_with_its_settings(nonsense):
    run = run_of(failed=["c0"], gates="m >= 2", max_errors=nonsense, min_coverage=nonsense)
    assert decide_run(run).exit_code == 3
    assert decide_run(run_of(failed=["c0"], max_errors=None)).exit_code == 1


def test_more_coverage_than_all_is_no_setting():
    run = run_of(values=(1.0,) * 5, broken=["c0"], gates=["m >= 1"], max_errors=1, min_coverage=2)
    assert decide_run(run).exit_code == 0


def summary(*, n_cases=2, n_scored=2, n_input_errors=0, n_score_errors=0):
    rows = [MetricSummary("m", "b", "1", "ok", n_cases, n_scored)]
    unscored = [Unscored("m", "error", "boom", 1, ["c1"], 1)] if n_score_errors else []
    return RunSummary(n_cases, rows, unscored, n_input_errors, [], n_score_errors, 0.1)


@pytest.mark.parametrize(
    ("made", "code", "kind"),
    [
        (summary(), 0, None),
        (summary(n_input_errors=2), 3, "unreadable"),
        (summary(n_score_errors=2), 3, "failed score"),
        (summary(n_score_errors=1), 0, None),  # one is allowed
        (summary(n_scored=0), 4, "no scores"),
        (summary(n_cases=0, n_scored=0), 3, "no records"),
    ],
)
def test_scoring_without_a_run(made, code, kind):
    decision = decide_scoring(made, 1)
    assert decision.exit_code == code
    assert [each.kind for each in decision.reasons] == ([kind] if kind else [])


def test_a_test_session():
    assert decide_tests([], 3).headline == "PASS: 3 tests passed"
    failed = decide_tests(["t.py::a"], 3)
    assert (failed.exit_code, failed.headline, failed.failing_cases) == (
        1,
        "FAIL: 1 test of 3 failed: t.py::a",
        ("t.py::a",),
    )
    # Other tests of the session failed, or it was stopped: what was evaluated here is no pass of the session.
    assert decide_tests([], 3, session_exit_code=2).verdict == "fail"
    assert decide_tests([], 0).verdict is None


def test_many_and_long_case_ids_leave_the_headline_short():
    ids = [f"{'x' * 60}\n{n}" for n in range(500)]
    cases = {case_id: CaseStanding("broken", True, False, "m", 9, 9, 9, (3, 3)) for case_id in ids}
    decision = decide_comparison(Comparison("old", "new", 500, 0, 0, 0.01, (), cases=cases))
    assert decision.headline.startswith("FAIL: 500 broken (xxx")
    assert len(decision.headline) <= 200
    assert "\n" not in decision.headline
    assert decision.failing_cases == tuple(ids)


def test_what_newly_fails_and_was_not_tried_to_the_end_has_a_way_out():
    cases = {"c1": CaseStanding("newly failing", True, False, "m", 3, 3, 9, (3, 3))}
    unsure = replace(comparison("no loss shown"), cases=cases, p_chance=0.05)
    decision = decide_comparison(unsure)
    assert decision.headline == "CANNOT TELL: 1 newly failing, not tried to the end (c1)"
    assert decision.way_out == "agentunit rerun new --newly-failing --baseline old"
    certain = decide_comparison(replace(unsure, p_chance=0.0099))
    assert (certain.headline, certain.way_out) == ("FAIL: 1 newly failing, more than chance makes (c1)", None)
    # Beside what is broken it is no doubt about the run.
    broken = {**cases, "c2": CaseStanding("broken", True, False, "m", 9, 9, 9, (3, 3))}
    decision = decide_comparison(replace(unsure, cases=broken))
    assert decision.headline == "FAIL: 1 broken (c2)"
    assert [(reason.kind, reason.exit_code) for reason in decision.reasons] == [("broken", 1), ("newly failing", 0)]
