from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.growth import growth

from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.gate_expressions import Gate, GateError, parse_gate
from agentunit.engine.deciding.gates import (
    evaluate_gates,
)
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.metrics.base import MetricInfo
from agentunit.store.runs import RecordRow, RunHeader


def run_of(metrics, *, n_planned=None, n_failed=0):
    """A run: by metric a list of cases, each a value or a list of repeats; None is no answer, a row stays as it is."""
    rows = {name: list(_rows(cases)) for name, cases in metrics.items()}
    n_cases = max((len(cases) for cases in metrics.values()), default=0)
    n_records = max((len(each) for each in rows.values()), default=0)
    header = RunHeader("r1", "run", 0.0, 1.0, "finished", n_planned, "0", {})
    return ScoredRun(header, n_cases, n_records, n_failed, rows)


def _rows(cases):
    for position, case in enumerate(cases):
        for repeat, value in enumerate(case if isinstance(case, list) else [case]):
            if isinstance(value, dict):
                yield scored(position, repeat, **value)
            else:
                yield scored(position, repeat, value=value, reason="no answer to score" if value is None else None)


def scored(position, repeat, *, value=None, status=None, backend="b", reason=None):
    status = status or ("ok" if value is not None else "not_applicable")
    return ScoreRow(position, repeat, f"c{position}", value, status, backend, "1", reason)


def judge(expression, metrics, **settings):
    coverage = {"min_coverage": settings.pop("min_coverage")} if "min_coverage" in settings else {}
    (verdict,) = evaluate_gates(run_of(metrics, **settings), [expression], **coverage)
    return verdict


# Reading expressions


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("faithfulness >= 0.8", Gate("faithfulness", ">=", 0.8)),
        ("faithfulness>=0.8", Gate("faithfulness", ">=", 0.8)),
        ("  faithfulness   mean >= .8 ", Gate("faithfulness", ">=", 0.8)),
        ("cost p95 <= 0.02", Gate("cost", "<=", 0.02, "p95")),
        ("cost p99.9 < 1e-3", Gate("cost", "<", 0.001, "p99.9")),
        ("cost total <= 3", Gate("cost", "<=", 3.0, "sum")),
        ("pii_leakage all == 1", Gate("pii_leakage", "==", 1.0, "all")),
        ("x any != -1", Gate("x", "!=", -1.0, "any")),
        ("task_success pass^3 >= 0.7", Gate("task_success", ">=", 0.7, "pass^3")),
        ("task_success[state] pass@10 > 0.9 coverage 0.95", Gate("task_success", ">", 0.9, "pass@10", "state", 0.95)),
        ("my-metric.v2[gpt 4] median <= 5 coverage 0", Gate("my-metric.v2", "<=", 5.0, "median", "gpt 4", 0.0)),
    ],
)  # fmt: skip
def test_expressions(text, gate):
    assert parse_gate(text) == gate
    assert parse_gate(str(gate)) == gate


@pytest.mark.parametrize(
    ("text", "place", "rule", "hint"),
    [
        ("faithfulness => 0.8", "at '=>' (column 14)", "operator", "did you mean 'faithfulness >= 0.8'?"),
        ("faithfulness ≥ 0.8", "at '≥' (column 14)", "operator", "did you mean 'faithfulness >= 0.8'?"),
        ("exact_match = 1", "at '=' (column 13)", "operator", "did you mean 'exact_match == 1'?"),
        ("0.8 <= faithfulness", "at '0.8' (column 1)", "begin with", "did you mean 'faithfulness >= 0.8'?"),
        ("p95 cost <= 0.02", "at 'cost' (column 5)", "an aggregate", "did you mean 'cost p95 <= 0.02'?"),
        ("faithfulness avg >= 80%", "at 'avg' (column 14)", "an aggregate", "did you mean 'faithfulness >= 0.8'?"),
        ("cost 95th <= 0.02", "at '95th' (column 6)", "an aggregate", "did you mean 'cost p95 <= 0.02'?"),
        ("task pass3 >= 0.7", "at 'pass3' (column 6)", "an aggregate", "did you mean 'task pass^3 >= 0.7'?"),
        ("task pass^0 >= 0.7", "at 'pass^0' (column 6)", "an aggregate", "a gate reads METRIC"),
        ("cost p101 <= 1", "at 'p101' (column 6)", "an aggregate", "a gate reads METRIC"),
        ("response_time p99 <= 5s", "at '5s' (column 22)", "number", "did you mean 'response_time p99 <= 5'?"),
        ("cost <= $0.02 coverage 90%", "at '$0.02'", "number", "did you mean 'cost <= 0.02 coverage 0.9'?"),
        ("faithfulness 0.8", "at '0.8' (column 14)", "operator", "a gate reads METRIC"),
        ("faithfulness", "at the end", "operator", "a gate reads METRIC"),
        ("faithfulness >=", "at the end", "number", "a gate reads METRIC"),
        ("", "at the end", "begin with", "a gate reads METRIC"),
        ("a >= nan", "at 'nan'", "finite number", "a gate reads METRIC"),
        ("a >= 1 coverage 2", "at '2' (column 17)", "from 0 to 1", "a gate reads METRIC"),
        ("a >= 1 coverage", "at the end", "from 0 to 1", "did you mean 'a >= 1'?"),
        ("a >= 1 or b >= 1", "at 'or' (column 8)", "only 'coverage SHARE'", "a gate reads METRIC"),
        ("a >= 1 coverage 0.5 b", "at 'b' (column 21)", "nothing may follow", "a gate reads METRIC"),
        ("a[b >= 1", "at '[' (column 2)", "an aggregate", "a gate reads METRIC"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_the_nearest_right_form(text, place, rule, hint):
    with pytest.raises(GateError) as caught:
        parse_gate(text)
    message = str(caught.value)
    assert message.startswith(f"gate {text!r}, {place}")
    assert rule in message
    assert hint in message
    assert "\n" not in message


WORDS = ["m", "m[b]", "[", "]", "mean", "p95", "p", "pass^2", ">=", "<", "=", "≥", "0.5", "1e3", "coverage", "%", "\t"]


@given(st.one_of(st.text(max_size=30), st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join)))
def test_any_text_is_a_gate_or_a_gate_error(text):
    try:
        gate = parse_gate(text)
    except GateError:
        return
    assert parse_gate(str(gate)) == gate


@pytest.mark.parametrize("part", [" ", "[", "[a", "a ", "a[", "m >= 1 ", "\t ", "<", "1", "pass^"])
def test_the_time_to_read_a_gate_grows_with_its_length_and_its_error_does_not(part):
    def read(times):
        with pytest.raises(GateError) as caught:
            parse_gate(part * times)
        assert len(str(caught.value)) < 1_000

    assert growth(read, 4_000) < 9


def test_a_gate_of_more_tries_than_can_be_counted_is_no_gate():
    with pytest.raises(GateError, match="an aggregate"):
        parse_gate(f"m pass^{'1' * 5_000} >= 1")


def test_not_even_a_text():
    with pytest.raises(GateError, match="must be a text like"):
        parse_gate(0.8)


# The number compared


@pytest.mark.parametrize(
    ("expression", "cases", "value", "verdict"),
    [
        ("m >= 0.8", [1.0, 1.0, 1.0, 1.0, 0.0], 0.8, "pass"),
        ("m > 0.8", [1.0, 1.0, 1.0, 1.0, 0.0], 0.8, "fail"),
        ("m >= 0.8", [0.7, 0.8, 0.9], 0.8, "pass"),  # the sum is 2.4000000000000004: rounding decides nothing
        ("m < 0.8", [0.7, 0.8, 0.9], 0.8, "fail"),
        ("m == 0.8", [0.7, 0.8, 0.9], 0.8, "pass"),
        ("m != 0.8", [0.7, 0.8, 0.9], 0.8, "fail"),
        ("m median <= 2", [1.0, 2.0, 9.0], 2.0, "pass"),
        ("m min >= 1", [1.0, 2.0, 9.0], 1.0, "pass"),
        ("m max <= 8", [1.0, 2.0, 9.0], 9.0, "fail"),
        ("m sum <= 12", [1.0, 2.0, 9.0], 12.0, "pass"),
        ("m p75 <= 5.5", [1.0, 2.0, 9.0], 5.5, "pass"),  # h = 2 · 0.75 = 1.5: half way from 2 to 9
        ("m all >= 1", [1.0, 2.0, 9.0], 1.0, "pass"),
        ("m all >= 2", [1.0, 2.0, 9.0], 2 / 3, "fail"),
        ("m any >= 9", [1.0, 2.0, 9.0], 1 / 3, "pass"),
        ("m any > 9", [1.0, 2.0, 9.0], 0.0, "fail"),
    ],
)
def test_aggregates(expression, cases, value, verdict):
    judged = judge(expression, {"m": cases})
    assert judged.value == pytest.approx(value, rel=1e-12)
    assert judged.verdict == verdict
    assert (judged.n_scored, judged.n_expected, judged.coverage) == (len(cases), len(cases), 1.0)


NOT_APPLICABLE = {"status": "not_applicable", "reason": "the case has no such field"}
REPEATED = {"m": [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.5]]}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("m >= 0.5", (1 + 2 / 3 + 0.5 / 3) / 3),
        ("m max >= 1", 1.0),  # over records, not over cases' means
        ("m sum >= 5", 5.5),
        ("m all > 0", 6 / 9),
        ("m pass^1 >= 0", (1 + 2 / 3 + 0) / 3),
        ("m pass^2 >= 0", (1 + 1 / 3 + 0) / 3),  # of the 3 pairs of the second case one holds two passes
        ("m pass^3 >= 0", 1 / 3),
        ("m pass@2 >= 0", (1 + 1 + 0) / 3),  # 0.5 is no pass
    ],
)
def test_repeats(expression, value):
    assert judge(expression, REPEATED).value == pytest.approx(value)


def test_a_mean_counts_each_case_once_however_often_it_ran():
    assert judge("m >= 0", {"m": [[1.0] * 8, [0.0]]}).value == 0.5


# Intervals and noise


def test_the_mean_has_its_interval_and_says_when_it_is_within_noise():
    judged = judge("m >= 0.8", {"m": [1.0] * 16 + [0.0] * 4})
    assert judged.verdict == "pass"  # the point decides
    assert judged.low < 0.8 < judged.high
    assert judged.near
    assert judged.reason == "mean 0.8 meets >= 0.8"
    clear = judge("m >= 0.5", {"m": [1.0] * 20})
    assert (clear.near, clear.verdict) == (False, "pass")


def test_the_interval_of_few_scores_stays_within_their_range():
    judged = judge("faithfulness >= 0.5", {"faithfulness": [1.0, 1.0, 0.4]})
    assert 0.0 <= judged.low < 0.8 < judged.high == 1.0
    assert judge("m pass^2 >= 0.5", {"m": [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]}).high == 1.0


def test_amounts_of_0_and_1_are_no_passes():
    seconds = judge("response_time <= 2", {"response_time": [1.0] * 10})
    assert (seconds.low, seconds.high) == (1.0, 1.0)
    assert judge("m >= 0.5", {"m": [1.0] * 10}).low < 0.8


def test_a_users_metric_keeps_what_it_said_about_itself():
    run = run_of({"mine": [0.1, 0.3, 0.2]})
    run.infos["mine"] = MetricInfo("mine", "custom", "", direction="lower", unit="USD")
    (judged,) = evaluate_gates(run, ["mine >= 0.1"])
    assert (judged.unit, judged.note) == ("USD", "lower is better, and this gate asks for the contrary")


def test_repeats_do_not_narrow_the_interval():
    once = judge("m >= 0.5", {"m": [0.1, 0.5, 0.9, 0.4] * 5})
    thrice = judge("m >= 0.5", {"m": [[value] * 3 for value in [0.1, 0.5, 0.9, 0.4] * 5]})
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    once = judge("m p50 >= 5", {"m": [float(value) for value in range(20)]})
    ten_times = judge("m p50 >= 5", {"m": [[float(value)] * 10 for value in range(20)]})
    assert ten_times.high - ten_times.low > 0.9 * (once.high - once.low)


def test_nothing_but_passes_in_every_repeat_leave_doubt_about_other_cases():
    judged = judge("m pass^2 >= 0.8", {"m": [[1.0, 1.0]] * 10})
    # Wilson for 10 of 10 cases; the twenty records would claim 0.84.
    assert (judged.verdict, judged.low, judged.high) == ("pass", pytest.approx(0.722, abs=1e-3), 1.0)
    assert judged.near
    # A threshold at the very end of the interval is in doubt, too.
    assert judge("m >= 1", {"m": [1.0] * 10}).near


def test_a_quantile_has_an_interval_of_ranks():
    values = [float(value) for value in range(1, 101)]
    judged = judge("m p90 <= 95", {"m": values})
    # Wilson for 90 of 100: 0.826 to 0.945, so ranks 99 · 0.826 + 1 and 99 · 0.945 + 1 of 1..100.
    assert (judged.low, judged.high) == pytest.approx((82.7, 94.5), abs=0.1)
    assert not judged.near
    assert judge("m p90 <= 93", {"m": values}).near


# What never passes silently


def test_a_metric_that_is_not_there():
    judged = judge("faithfullness >= 0", {"faithfulness": [1.0]})
    assert judged.verdict == "error"
    assert judged.reason == "the run has no metric faithfullness: did you mean 'faithfulness'?"
    assert "it has no scores" in judge("x >= 0", {}).reason


def test_no_value_at_all():
    judged = judge("m >= 0", {"m": [None, None]})
    assert (judged.verdict, judged.value) == ("fail", None)
    assert judged.reason == "no value in 2 records: no answer to score"
    error = {"status": "error", "reason": "ValueError: x"}
    assert judge("m >= 0", {"m": [error, NOT_APPLICABLE]}).verdict == "fail"
    # Where it applies to no case, the gate rests on nothing.
    judged = judge("m >= 0", {"m": [NOT_APPLICABLE, NOT_APPLICABLE]})
    assert (judged.verdict, judged.reason) == ("cannot tell", "no value in 2 records: the case has no such field")


def test_cases_to_which_a_metric_does_not_apply_need_no_score():
    judged = judge("m >= 0.9", {"m": [1.0] * 28 + [NOT_APPLICABLE] * 32})
    assert (judged.verdict, judged.n_scored, judged.n_expected, judged.coverage) == ("pass", 28, 28, 1.0)
    assert judge("m >= 0.9", {"m": [1.0] * 7 + [NOT_APPLICABLE] * 32 + [None] * 2}).verdict == "fail"
    tries = judge("m pass^2 >= 0.9", {"m": [[1.0, 1.0], [NOT_APPLICABLE, NOT_APPLICABLE]]})
    assert (tries.verdict, tries.n_scored, tries.n_expected) == ("pass", 1, 1)


def test_all_means_all():
    """A case without a value does not meet it, unless the metric does not apply to it."""
    judged = judge("m all >= 1", {"m": [1.0] * 9 + [None]})
    assert (judged.verdict, judged.cases) == ("fail", ("c9",))
    assert judged.reason == "1 case has no value that counts (c9)"
    judged = judge("m all >= 1", {"m": [1.0] * 8 + [0.0, None]})
    assert (judged.cases, judged.reason) == (
        ("c8", "c9"),
        "1 of 9 values are not >= 1; 1 case has no value that counts (c9)",
    )
    assert judge("m all >= 1", {"m": [1.0] * 9 + [NOT_APPLICABLE]}).verdict == "pass"
    left_out = judge("faithfulness all >= 1", {"faithfulness": [LOCAL] * 9 + [GERMAN]})
    assert (left_out.verdict, left_out.cases) == ("fail", ("c9",))


def test_scores_that_are_left_out_must_not_be_what_a_gate_hangs_on():
    """One of ten scores is left out of a mean of 1: as bad as can be, it would make the mean 0.9."""
    met = judge("faithfulness >= 0.9", {"faithfulness": [LOCAL] * 9 + [GERMAN]})
    assert met.verdict == "pass"
    could = judge("faithfulness >= 0.95", {"faithfulness": [LOCAL] * 9 + [GERMAN]})
    assert (could.verdict, could.cases) == ("fail", ("c9",))
    assert could.reason == "mean 1 meets >= 0.95, but 1 score that is left out could turn it: c9"


def test_too_few_scored():
    judged = judge("m >= 0.5", {"m": [1.0] * 3 + [None] * 197})
    assert judged.verdict == "fail"
    assert judged.reason.startswith("only 3 of 200 records scored, 80% are needed")
    assert judged.value == 1.0


def test_a_stopped_run_is_held_against_what_it_planned():
    judged = judge("m >= 0.5", {"m": [1.0] * 3}, n_planned=200)
    assert (judged.n_scored, judged.n_expected, judged.verdict) == (3, 200, "fail")


def test_a_records_without_any_row_of_the_metric_count():
    # The metric was added later and scored half of the records only.
    judged = judge("m >= 0", {"m": [1.0] * 5, "other": [1.0] * 10})
    assert (judged.n_scored, judged.n_expected, judged.verdict) == (5, 10, "fail")


@pytest.mark.parametrize(
    ("expression", "min_coverage", "verdict"),
    [
        ("m >= 0", 0.5, "pass"),
        ("m >= 0", 0.51, "fail"),
        ("m >= 0 coverage 0.5", 1.0, "pass"),
        ("m >= 0 coverage 0.6", 0.0, "fail"),
    ],
)
def test_the_gates_own_coverage_wins(expression, min_coverage, verdict):
    assert judge(expression, {"m": [1.0, None]}, min_coverage=min_coverage).verdict == verdict


def test_min_coverage_must_be_a_share():
    with pytest.raises(ValueError, match="min_coverage must be from 0 to 1; received 80"):
        evaluate_gates(run_of({}), [], min_coverage=80)


TWO_BACKENDS = {"m": [{"value": 1.0, "backend": "state"}] * 6 + [{"value": 0.0, "backend": "judge"}] * 3 + [None]}


def test_values_of_several_backends_are_not_averaged():
    judged = judge("m >= 0.1", TWO_BACKENDS)
    assert (judged.verdict, judged.value) == ("cannot tell", None)
    assert judged.reason.endswith(": agentunit show r1 --gate 'm[state] >= 0.1' counts 6, m[judge] 3")


def test_a_named_backend_is_gated_alone():
    state = judge("m[state] >= 0.9", TWO_BACKENDS)
    # Of ten records three belong to the judge; the unscored one counts against both.
    assert (state.verdict, state.value, state.n_scored, state.n_expected) == ("pass", 1.0, 6, 7)
    judge_backend = judge("m[judge] >= 0.9", TWO_BACKENDS)
    assert (judge_backend.verdict, judge_backend.n_scored, judge_backend.n_expected) == ("fail", 3, 4)
    missing = judge("m[local] >= 0", TWO_BACKENDS)
    assert missing.reason == "backend local scored nothing: m was scored by state, judge"


def test_informational_scores_carry_their_trust():
    cases = [{"value": 1.0, "status": "informational", "backend": "lexical"}] * 5
    judged = judge("faithfulness[lexical] >= 0.8", {"faithfulness": cases})
    assert judged.verdict == "pass"
    assert judged.note.startswith("informational: weak, AUROC 0.50")
    assert judge("m >= 0.8", {"m": [1.0]}).note is None


WHY = "the text is in 'de'"
LOCAL = {"value": 1.0, "backend": "local"}
GERMAN = {"value": 0.0, "status": "informational", "backend": "local", "reason": WHY}


def test_where_some_scores_are_informational_the_others_decide():
    judged = judge("faithfulness >= 0.9", {"faithfulness": [LOCAL] * 9 + [GERMAN]})
    assert (judged.verdict, judged.value, judged.n_scored, judged.n_expected) == ("pass", 1.0, 9, 10)
    assert judged.note == f"1 of 10 scores is informational and left out: {WHY}"
    named = judge("faithfulness[local] >= 0.9", {"faithfulness": [LOCAL] * 9 + [GERMAN]})
    assert (named.verdict, named.value, named.n_scored) == ("pass", 0.9, 10)
    assert named.note == f"1 of 10 scores that count is informational: {WHY}"
    # Of a run that was kept without the reason.
    old = judge("faithfulness >= 0.9", {"faithfulness": [LOCAL] * 9 + [{**GERMAN, "reason": None}]})
    assert old.note.endswith(": text that local was not measured on")


def test_an_informational_score_counts_as_not_scored():
    cases = {"faithfulness": [LOCAL] * 6 + [GERMAN] * 2 + [None] * 2}
    judged = judge("faithfulness >= 0.9", cases)
    assert (judged.verdict, judged.coverage) == ("fail", 0.6)
    assert judged.reason.startswith(
        "only 6 of 10 records scored, 2 more are informational, and 80% are needed; mean 1 "
    )
    assert "faithfulness >= 0.9 coverage 0.6'" in judged.reason
    assert "do not decide" not in judged.reason
    tries = judge("faithfulness pass^2 >= 0.8", {"faithfulness": [[LOCAL, LOCAL]] * 4 + [[GERMAN, GERMAN]]})
    assert (tries.verdict, tries.value, tries.n_scored, tries.n_expected) == ("pass", 1.0, 4, 5)


def test_ordinary_scores_decide_beside_informational_ones_of_another_backend():
    cases = [LOCAL] * 9 + [{"value": 0.0, "status": "informational", "backend": "lexical"}]
    judged = judge("faithfulness >= 0.9", {"faithfulness": cases})
    assert (judged.verdict, judged.backend, judged.n_expected) == ("pass", "local", 10)
    assert judged.note.startswith("1 of 10 scores is informational and left out: by lexical, weak, AUROC 0.50")


def test_where_all_are_informational_a_gate_cannot_tell_and_says_why():
    judged = judge("faithfulness >= 0.9", {"faithfulness": [GERMAN] * 9 + [None]})
    assert (judged.verdict, judged.n_scored, judged.note) == ("cannot tell", 9, f"informational: {WHY}")
    assert judged.reason == (
        "mean 0 misses >= 0.9, but informational scores do not decide unless the gate names the backend: "
        "faithfulness[local] >= 0.9"
    )
    # Too few are too few, whatever they are worth.
    short = judge("faithfulness >= 0.9", {"faithfulness": [GERMAN] * 6 + [None] * 4})
    assert (short.verdict, short.reason) == (
        "fail",
        "only 6 of 10 records scored, 80% are needed; mean 0 misses >= 0.9",
    )


@pytest.mark.parametrize(("value", "would_be"), [(1.0, "meets"), (0.0, "misses")])
def test_a_gate_on_informational_scores_does_not_decide_unless_it_names_the_backend(value, would_be, monkeypatch):
    cases = [{"value": value, "status": "informational", "backend": "lexical"}] * 5
    monkeypatch.setattr("agentunit.engine.deciding.gates.missing_local_model", lambda: "pip install the-model")
    judged = judge("faithfulness >= 0.8", {"faithfulness": cases})
    assert (judged.verdict, judged.cases) == ("cannot tell", ())
    assert f"mean {value:g} {would_be} >= 0.8" in judged.reason
    assert ": pip install the-model && agentunit score " in judged.reason
    assert "faithfulness[lexical] >= 0.8" in judged.reason
    monkeypatch.setattr("agentunit.engine.deciding.gates.missing_local_model", lambda: None)
    alone = judge("faithfulness >= 0.8", {"faithfulness": cases}).reason
    assert "do not decide: agentunit score " in alone
    assert " --backend local (or name" in alone
    # Another package's informational scores: only naming them helps.
    cases = [{"value": value, "status": "informational", "backend": "coin"}] * 5
    assert "do not decide unless the gate names the backend: m[coin] >= 0.8" in judge("m >= 0.8", {"m": cases}).reason


# pass^k


def test_more_tries_than_repeats_is_an_error_that_names_the_way_out():
    judged = judge("m pass^4 >= 0.5", REPEATED)
    assert judged.verdict == "error"
    assert judged.reason == "no case has 4 scored repeats, the most is 3: run with --repeats 4 or more"


def test_cases_with_too_few_scored_repeats_count_against_the_coverage():
    judged = judge("m pass^2 >= 0.5", {"m": [[1.0, 1.0], [1.0, None], [None, None]]})
    assert (judged.value, judged.n_scored, judged.n_expected) == (1.0, 1, 3)
    assert judged.verdict == "fail"
    assert "only 1 of 3 cases scored" in judged.reason


def recorded(run, n_repeats, failed=(), **settings):
    """The run with a record for each repeat of each case, those at the (case, repeat) places failed."""
    run.records = [
        RecordRow(case, repeat, f"c{case}", (case, repeat) in failed)
        for case in range(run.n_cases)
        for repeat in range(n_repeats)
    ]
    run.n_failed = len(failed)
    run.header.settings.update(settings)
    return run


def test_a_repeat_in_which_the_agent_failed_is_a_try_that_did_not_pass():
    # Three repeats each: the second case crashed once, without a score, the third once beside a score of 1.
    run = recorded(run_of({"m": [[1.0] * 3, [1.0] * 2, [1.0] * 3]}), 3, {(1, 2), (2, 0)})
    hat, at, first = evaluate_gates(run, ["m pass^3 >= 0.9", "m pass@3 >= 0.9", "m pass^1 >= 0.9"])
    assert (hat.value, hat.verdict, hat.n_scored, hat.n_expected) == (pytest.approx(1 / 3), "fail", 3, 3)
    assert (at.value, at.verdict) == (1.0, "pass")
    assert first.value == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    assert hat.cases == ("c1", "c2")


def test_a_case_that_always_crashed_is_a_case_that_never_passed():
    run = recorded(run_of({"m": [[1.0, 1.0], [1.0, 1.0], [None, None]]}), 2, {(2, 0), (2, 1)})
    run.metrics["m"] = run.metrics["m"][:4]  # nothing was scored of the third
    (judged,) = evaluate_gates(run, ["m pass@2 >= 0.9"])
    assert (judged.value, judged.n_scored, judged.n_expected) == (pytest.approx(2 / 3), 3, 3)
    assert (judged.verdict, judged.cases) == ("fail", ("c2",))


def test_an_error_is_a_try_that_did_not_pass_and_one_that_does_not_apply_is_none():
    error = {"value": None, "status": "error"}
    run = recorded(run_of({"m": [[1.0, error], [1.0, None], [1.0, 1.0]]}), 2)
    (judged,) = evaluate_gates(run, ["m pass^2 >= 0.4"], min_coverage=0.5)
    assert (judged.value, judged.n_scored, judged.n_expected) == (0.5, 2, 3)


@pytest.mark.parametrize("settings", [{}, {"repeats": 2}])
def test_the_coverage_of_pass_hat_k_counts_cases(settings):
    # 120 cases twice, of which the second repeats have no score: 240 records were planned.
    run = recorded(run_of({"m": [1.0] * 120}, n_planned=240), 2, **settings)
    (judged,) = evaluate_gates(run, ["m pass^1 >= 0.9"])
    assert (judged.n_scored, judged.n_expected, judged.verdict) == (120, 120, "pass")
    (impossible,) = evaluate_gates(recorded(run_of({"m": [[1.0, 1.0]] * 120}), 2), ["m pass^3 >= 0.9"])
    assert (impossible.n_scored, impossible.n_expected, impossible.verdict) == (0, 120, "error")


def test_a_stopped_run_lacks_the_cases_it_has_not_reached():
    # All cases come before any repeat: 60 of 120 were recorded, once each, and only the suite knows of two repeats.
    run = recorded(run_of({"m": [1.0] * 60}, n_planned=240), 1, repeats=2)
    (judged,) = evaluate_gates(run, ["m pass^1 >= 0.9"])
    assert (judged.n_scored, judged.n_expected, judged.verdict) == (60, 120, "fail")


def test_a_crash_belongs_to_the_backend_that_scored_the_case():
    state, other = ({"value": 1.0, "backend": backend} for backend in ("state", "judge"))
    run = recorded(run_of({"m": [[state, state], [other, other]]}), 2, {(1, 1)})
    del run.metrics["m"][3]
    by_state, by_judge = evaluate_gates(run, ["m[state] pass^1 >= 1", "m[judge] pass^1 >= 1"])
    assert (by_state.verdict, by_state.n_scored, by_state.n_expected) == ("pass", 1, 1)
    assert (by_judge.value, by_judge.n_scored, by_judge.n_expected) == (0.5, 1, 1)


def test_pass_hat_k_among_two_backends():
    cases = [[{"value": 1.0, "backend": "state"}] * 2, [{"value": 0.0, "backend": "judge"}] * 2]
    judged = judge("m[state] pass^2 >= 1", {"m": cases})
    assert (judged.verdict, judged.n_scored, judged.n_expected) == ("pass", 1, 1)


# The cases to look at


@pytest.mark.parametrize(
    ("expression", "cases"),
    [
        ("m all == 1", ("c1", "c3", "c4")),
        ("m min >= 0.3", ("c1", "c4")),
        ("m max <= 0.4", ("c0", "c2", "c3")),
        # A mean, a percentile and a sum speak of the run, never of a case.
        ("m >= 0.9", ()),
        ("m p50 >= 2", ()),
        ("m sum <= 1", ()),
        ("m any > 1", ()),
        ("m >= 0", ()),  # it passes
    ],
)
def test_cases_that_break_a_gate(expression, cases):
    assert judge(expression, {"m": [1.0, 0.2, 1.0, 0.5, 0.0]}).cases == cases


@pytest.mark.parametrize("expression", ["{} >= 0.9", "{} p50 >= 1", "{} pass^1 >= 0.9", "{} pass@1 >= 0.9"])
def test_of_a_check_the_cases_that_fail_it(expression):
    values = [1.0, 0.0, 1.0, 0.0, 0.0]
    for metric in ("contains", "mine"):
        run = run_of({metric: values})
        run.infos["mine"] = MetricInfo("mine", "custom", "")
        (judged,) = evaluate_gates(run, [expression.format(metric)])
        assert (judged.verdict, judged.cases) == ("fail", ("c1", "c3", "c4"))
    assert judge("contains pass^2 >= 0.9", {"contains": [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]}).cases == ("c0", "c2")


def test_every_case_that_breaks_a_gate_is_named():
    assert len(judge("m all == 1", {"m": [0.0] * 9}).cases) == 9


def test_a_gate_against_the_direction_of_its_metric_says_so():
    metrics = {"cost": [{"value": 0.1}] * 3, "faithfulness": [{"value": 0.9, "backend": "judge"}] * 3}
    assert judge("cost >= 0.02", metrics).note == "lower is better, and this gate asks for the contrary"
    assert judge("faithfulness < 0.95", metrics).note == "higher is better, and this gate asks for the contrary"
    for usual in ("cost <= 0.2", "faithfulness >= 0.5", "cost == 0.1"):
        assert judge(usual, metrics).note is None


def test_two_cases_of_one_name_stay_two_cases():
    run = run_of({"m": [1.0, 0.0]})
    for row in run.metrics["m"]:
        row.case_id = "same"
    (judged,) = evaluate_gates(run, ["m pass^1 >= 0"])
    assert (judged.value, judged.n_scored) == (0.5, 2)


# Deciding


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), st.floats(0.0, 1.0))
def test_all_is_the_strictest_any_the_loosest(values, threshold):
    gates = [Gate("m", ">=", threshold, aggregate) for aggregate in ("all", "min", "mean", "max", "any")]
    verdicts = [each.verdict for each in evaluate_gates(run_of({"m": values}), gates)]
    assert verdicts[0] == verdicts[1]
    assert verdicts[3] == verdicts[4]
    assert [verdicts[0], verdicts[2], verdicts[4]] in (
        ["pass", "pass", "pass"],
        ["fail", "pass", "pass"],
        ["fail", "fail", "pass"],
        ["fail", "fail", "fail"],
    )


def test_a_sum_has_the_interval_of_its_mean_times_the_cases():
    mean = judge("m <= 9", {"m": [1.0, 2.0, 9.0]})
    total = judge("m sum <= 30", {"m": [1.0, 2.0, 9.0]})
    assert (total.low, total.high) == pytest.approx((3 * mean.low, 3 * mean.high))


def test_a_sum_over_repeats_can_be_as_large_as_its_records_allow():
    run = run_of({"m": [[0.9, 1.0, 0.9], [0.8, 0.9, 1.0], [1.0, 1.0, 1.0]]})
    run.infos["m"] = MetricInfo("m", "custom", "", range=(0.0, 1.0))
    (judged,) = evaluate_gates(run, ["m sum >= 8"])
    assert judged.value == pytest.approx(8.5)
    assert judged.low < judged.value < judged.high == 9.0


def test_a_balance_is_the_last_value_of_the_last_case():
    run = run_of({"m": [[9.0, 7.0], [5.0, 2.0]]})
    run.infos["m"] = MetricInfo("m", "custom", "", aggregate="last", unit="USD")
    (judged,) = evaluate_gates(run, ["m >= 3"])
    assert (judged.verdict, judged.value) == ("fail", 2.0)
