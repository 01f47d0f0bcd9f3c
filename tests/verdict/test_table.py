"""The table of verdicts, row by row: what fails a run, what is an error, what cannot be told, and which comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import pytest
from decided_runs import NOT_APPLICABLE, RAISED, Case, Shown, Try, case_of, run_of

from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.decision import decide_run
from agentunit.engine.deciding.stored import decision_of
from agentunit.reports.run_facts import describe_finding, findings_by_heading

N_CASES = 40
BEST = {"contains": 1.0, "exact_match": 1.0, "support": 0.9, "length": 10.0}


@dataclass
class Runs:
    """A baseline and a candidate in which nothing is wrong, to be spoiled by one cause or several."""

    old: list[Case] = field(default_factory=lambda: [good_case(n, "before") for n in range(N_CASES)])
    new: list[Case] = field(default_factory=lambda: [good_case(n, "now") for n in range(N_CASES)])
    gates: list[str] = field(default_factory=list)
    margin: float | None = None
    max_errors: int | None = None
    n_input_errors: int = 0

    def spoil(self, n: int, change: Callable[[Try], Try], *, n_again: int = 0) -> None:
        """Change every try of a case, with some tries again."""
        tries = [change(one) for one in self.new[n].tries]
        again = [replace(tries[0], answer=f"again {k} of {n}") for k in range(n_again)]
        self.new[n] = replace(self.new[n], tries=tries, again=again)

    def decision(self, *, with_baseline: bool = True) -> Any:
        candidate = replace(run_of(self.new), n_input_errors=self.n_input_errors)
        comparison = None
        if with_baseline:
            baseline = run_of(self.old, name="old")
            comparison = compare_runs(candidate, baseline, gates=self.gates, margin=self.margin, resamples=999)
        return decide_run(candidate, self.gates, comparison, max_errors=self.max_errors)


def good_case(n: int, when: str) -> Case:
    # No answer comes twice, as those of a language model do not.
    return Case(f"c{n}", [Try(BEST, f"{when} {n} {k}") for k in range(3)])


def with_value(**values: Any) -> Callable[[Try], Try]:
    return lambda one: replace(one, values={**one.values, **values})


def a_broken_check(runs: Runs) -> None:
    runs.spoil(1, with_value(contains=0.0), n_again=9)


def many_newly_failing_checks(runs: Runs) -> None:
    for n in range(2, 5):
        runs.spoil(n, with_value(exact_match=0.0))


def a_missed_gate(runs: Runs) -> None:
    runs.gates.append("contains all >= 0.5")
    runs.new.append(case_of("c99", 0.0, 0.0, 0.0))


def a_worse_mean(runs: Runs) -> None:
    runs.gates.append("support >= 0.1")
    for n in range(N_CASES):
        runs.spoil(n, with_value(support=0.6), n_again=len(runs.new[n].again))


def a_failed_score(runs: Runs) -> None:
    runs.spoil(6, with_value(exact_match=RAISED))


def an_unreadable_record(runs: Runs) -> None:
    runs.n_input_errors = 1


def a_failure_of_the_agent_where_none_is_allowed(runs: Runs) -> None:
    runs.max_errors = 0
    runs.new[7] = replace(runs.new[7], tries=[Try(BEST, None), *runs.new[7].tries[1:]])


def a_gate_on_informational_scores(runs: Runs) -> None:
    runs.gates.append("opinion >= 0.5")
    for n in range(N_CASES):
        runs.spoil(n, with_value(opinion=Shown(0.9)), n_again=len(runs.new[n].again))


def a_newly_failing_check(runs: Runs) -> None:
    runs.spoil(8, with_value(contains=0.0))


def too_many_cases_gone(runs: Runs) -> None:
    runs.old += [good_case(n, "before") for n in range(100, 100 + N_CASES)]


def too_many_checks_lost(runs: Runs) -> None:
    for n in range(20, 30):
        runs.spoil(n, with_value(exact_match=NOT_APPLICABLE))


def a_margin_that_is_not_ruled_out(runs: Runs) -> None:
    runs.gates.append("length <= 100")
    runs.margin = 0.0001
    runs.spoil(9, with_value(length=12.0))


FAIL, ERRORS, CANNOT_TELL = STRICTEST = 1, 3, 4
CAUSES = {
    a_broken_check: (FAIL, "broken"),
    many_newly_failing_checks: (FAIL, "newly failing"),
    a_missed_gate: (FAIL, "gate"),
    a_worse_mean: (FAIL, "regression"),
    a_failed_score: (ERRORS, "failed score"),
    an_unreadable_record: (ERRORS, "unreadable"),
    a_failure_of_the_agent_where_none_is_allowed: (ERRORS, "failed case"),
    a_gate_on_informational_scores: (CANNOT_TELL, "undecided"),
    a_newly_failing_check: (CANNOT_TELL, "newly failing"),
    too_many_cases_gone: (CANNOT_TELL, "too little"),
    too_many_checks_lost: (CANNOT_TELL, "too little"),
    a_margin_that_is_not_ruled_out: (CANNOT_TELL, "undecided"),
}
WORDS = {0: "pass", FAIL: "fail", ERRORS: "errors", CANNOT_TELL: "cannot tell"}


def test_nothing_wrong_passes_and_says_what_would_have_been_seen():
    runs = Runs()
    decision = runs.decision()
    assert (decision.exit_code, decision.verdict) == (0, "pass")
    assert decision.headline == "PASS: nothing broken against old; 40 cases: 40 fine"
    runs.old[0] = replace(runs.old[0], tries=[with_value(contains=0.0)(one) for one in runs.old[0].tries])
    decision = runs.decision()
    assert decision.headline == "PASS: nothing broken against old; 1 fixed (c0); 40 cases: 40 fine"
    assert decision.line == "a drop of 26 points or more in contains would have been seen"


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
def test_each_cause_alone(cause):
    runs = Runs()
    cause(runs)
    decision = runs.decision()
    code, kind = CAUSES[cause]
    assert (decision.exit_code, decision.verdict) == (code, WORDS[code])
    assert kind in {reason.kind for reason in decision.reasons if reason.exit_code == code}
    assert code == min((reason.exit_code for reason in decision.reasons if reason.exit_code), key=STRICTEST.index)
    assert decision.headline.startswith(f"{WORDS[code].upper()}: ")
    assert len(decision.headline) <= 200


@pytest.mark.parametrize(
    "both", list(combinations(CAUSES, 2)), ids=lambda both: " and ".join(each.__name__ for each in both)
)
def test_of_two_causes_the_stricter_decides(both):
    runs = Runs()
    for cause in both:
        cause(runs)
    expected = min((CAUSES[cause][0] for cause in both), key=STRICTEST.index)
    decision = runs.decision()
    assert decision.verdict == WORDS[expected], decision.headline
    assert {CAUSES[cause][1] for cause in both} <= {reason.kind for reason in decision.reasons}


def test_errors_within_the_allowance_are_none():
    runs = Runs(max_errors=2)
    a_failed_score(runs)
    assert runs.decision().verdict == "errors"
    runs.max_errors = 3
    assert runs.decision().verdict == "pass"
    assert runs.decision(with_baseline=False).verdict == "pass"


# Without a baseline


def test_without_a_baseline_a_wrong_case_fails_unless_a_gate_says_how_many_may():
    runs = Runs()
    runs.spoil(1, with_value(contains=0.0))
    decision = runs.decision(with_baseline=False)
    assert decision.headline == "FAIL: 1 wrong (c1: 0, needs 1)"
    assert [(reason.kind, reason.cases) for reason in decision.reasons] == [("wrong", ("c1",))]
    runs.gates = ["contains >= 0.9"]
    decision = runs.decision(with_baseline=False)
    assert decision.headline == "PASS: 1 gate met; 40 cases: 39 fine, 1 wrong"
    (listed,) = findings_by_heading(decision)["Wrong"]
    assert describe_finding(listed) == "0, needs 1 (contains failed 3 of 3) (allowed by contains >= 0.9)"
    # A gate on another metric allows nothing here.
    runs.gates = ["exact_match >= 0.9"]
    assert runs.decision(with_baseline=False).verdict == "fail"
    runs.gates = ["contains all >= 1", "contains >= 0.9"]
    assert {reason.kind for reason in runs.decision(with_baseline=False).reasons} == {"gate"}


def test_the_sentence_says_how_many_of_the_wrong_cases_decide():
    runs = Runs(gates=["contains >= 0.9"])
    runs.spoil(1, with_value(contains=0.0))
    runs.spoil(2, with_value(contains=0.0))
    runs.spoil(3, lambda one: replace(one, answer=None))
    decision = runs.decision(with_baseline=False)
    assert decision.headline == "FAIL: 1 of 3 wrong is not allowed by a gate (c3: ValueError: boom)"
    listed = findings_by_heading(decision)["Wrong"]
    allowed = [(finding.case_id, finding.allowed_by) for finding in listed]
    assert allowed == [("c1", "contains >= 0.9"), ("c2", "contains >= 0.9"), ("c3", "")]


def test_a_reason_that_is_not_that_of_all_stands_at_its_own_case():
    runs = Runs()
    for place in (1, 2, 4, 5, 6):
        runs.spoil(place, with_value(contains=0.0))
    assert runs.decision(with_baseline=False).said == "5 wrong (c1, c2, c4, c5 and 1 more: 0, needs 1)"
    runs.spoil(6, lambda one: replace(one, answer=None))
    assert runs.decision(with_baseline=False).said == "5 wrong (c1: 0, needs 1; c2, c4, c5 and 1 more)"


def test_a_flaky_case_is_counted_and_fails_nothing_by_itself():
    runs = Runs()
    first, *others = runs.new[1].tries
    runs.new[1] = replace(runs.new[1], tries=[with_value(contains=0.0)(first), *others])
    for with_baseline in (False, True):
        decision = runs.decision(with_baseline=with_baseline)
        assert (decision.verdict, str(decision.counts)) == ("pass", "40 cases: 39 fine, 1 flaky")
        (finding,) = decision.findings
        assert (finding.case_id, finding.state, finding.n_failed, finding.n_tries) == ("c1", "flaky", 1, 3)


def test_a_doubt_fails_no_case_unless_it_is_gated_with_all():
    runs = Runs()
    runs.spoil(1, with_value(support=0.2))
    decision = runs.decision(with_baseline=False)
    assert (decision.verdict, str(decision.counts)) == ("pass", "40 cases: 39 fine, 1 doubtful")
    assert decision.why("c1") == "doubted by support"
    runs.gates = ["support all >= 0.4"]
    decision = runs.decision(with_baseline=False)
    assert (decision.verdict, str(decision.counts)) == ("fail", "40 cases: 39 fine, 1 wrong")
    assert decision.why("c1") == "0.2, needs >= 0.4"


@pytest.mark.parametrize(("max_errors", "word"), [(None, "fail"), (0, "errors"), (5, "pass")])
def test_an_agent_that_never_answers_a_case_is_wrong_unless_max_errors_is_set(max_errors, word):
    runs = Runs(max_errors=max_errors)
    runs.new[3] = replace(runs.new[3], tries=[Try(BEST, None)] * 3)
    decision = runs.decision(with_baseline=False)
    assert decision.verdict == word
    assert (decision.counts.wrong, decision.why("c3")) == (1, "ValueError: boom")


def test_a_gate_on_answered():
    runs = Runs()
    runs.new[3] = replace(runs.new[3], tries=[Try(BEST, None)] * 3)
    runs.gates = ["answered >= 0.9"]
    assert runs.decision(with_baseline=False).headline == "PASS: 1 gate met; 40 cases: 39 fine, 1 wrong"
    runs.gates = ["answered >= 0.99"]
    decision = runs.decision(with_baseline=False)
    assert decision.headline.startswith("FAIL: answered >= 0.99: mean 0.975 misses >= 0.99")
    assert decision.failing_cases == ("c3",)


def test_nothing_to_decide_by_is_no_verdict():
    decision = decide_run(run_of([case_of(f"c{n}", 0.9, metric="support") for n in range(3)]))
    assert (decision.verdict, decision.exit_code, decision.headline) == (None, 0, "3 cases: 3 without a check")


@pytest.mark.parametrize("status", ["interrupted", "stopped"])
@pytest.mark.parametrize("value", [1.0, 0.0])
def test_a_run_that_was_stopped_before_its_baseline_was_asked_is_not_decided_by_what_is_wrong(status, value):
    # What is wrong may have been wrong before, and what fails has not been tried again.
    run = run_of([case_of("a", 1.0), case_of("b", value)], baseline="before")
    run.header.status = status
    decision = decision_of(run)
    assert (decision.exit_code, decision.failing_cases) == (4, ())
    assert "stopped before it was held against its baseline" in decision.headline


def test_a_gate_that_a_stopped_run_misses_is_missed_whatever_its_baseline_says():
    run = run_of([case_of("a", 0.0), case_of("b", 1.0)], baseline="before", gates=["contains >= 0.9"])
    run.header.status = "stopped"
    assert decision_of(run).verdict == "fail"


@pytest.mark.parametrize("operator", [">=", "<="])
def test_a_function_of_which_0_is_best_is_tested_once(operator):
    best, worst = (1.0, 0.0) if operator == ">=" else (0.0, 1.0)
    old = [case_of(f"c{n}", best, metric="mine") for n in range(20)]
    new = [case_of(f"c{n}", worst if n < 3 else best, metric="mine") for n in range(20)]
    comparison = compare_runs(run_of(new), run_of(old, name="old"), gates=[f"mine {operator} 0.5"])
    assert [(each.metric, each.gated, each.n_tests) for each in comparison.metrics] == [("mine", True, 1)]
    assert comparison.ids_of("newly failing") == ("c0", "c1", "c2")
