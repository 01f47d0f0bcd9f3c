"""What holds for every verdict, over random suites, metrics, gates, repeats, missing scores and versions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from decided_runs import INFOS, NO_ANSWER, NOT_APPLICABLE, RAISED, Case, NoValue, Shown, Try, keep_run, run_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentunit.engine.deciding._cases import chance_of_newly_failing
from agentunit.engine.deciding.case_findings import STATES
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.decision import EXIT_CANNOT_TELL, EXIT_ERRORS, EXIT_FAILED, decide_run
from agentunit.engine.deciding.gate_expressions import DEFAULT_MIN_COVERAGE
from agentunit.engine.deciding.stored import decoded, keep_decision, own_decision
from agentunit.engine.deciding.trying import tries_needed
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.store.sqlite import Store

CHECKS = ("contains", "exact_match")
# Gates that ask for what is better; a gate against its metric's direction asks for failures.
GATES = (
    "contains >= 0.5",
    "contains all >= 1",
    "contains pass^2 >= 0.5",
    "contains min >= 1",
    "exact_match any >= 1",
    "exact_match >= 0.3",
    "mine >= 0.5",
    "mine p95 >= 1",
    "support p50 >= 0.3",
    "support all >= 0.4",
    "support min >= 0.4",
    "opinion >= 0.5",
    "answered >= 0.9",
)
STRICTNESS = {EXIT_FAILED: 3, EXIT_ERRORS: 2, EXIT_CANNOT_TELL: 1, 0: 0}

check_cells = st.sampled_from([1.0, 1.0, 1.0, 0.0, 0.0, NOT_APPLICABLE, RAISED, NO_ANSWER, Shown(1.0), Shown(0.0)])
degrees = st.sampled_from([0.0, 0.2, 0.4, 0.6, 1.0, NOT_APPLICABLE])
ANSWERS = ("yes", "no", "It is here.", "Nobody knows.")


@st.composite
def tries(draw: st.DrawFn, metrics: tuple[str, ...], case_id: str) -> Try:
    if draw(st.integers(0, 9)) == 0:
        return Try({"contains": 0.0}, None)
    values = {}
    for metric in metrics:
        values[metric] = draw(degrees if metric in ("support", "opinion") else check_cells)
        if metric == "mine" and not isinstance(values[metric], float):
            values[metric] = 1.0
    answer = draw(st.sampled_from([*ANSWERS, f"The answer of {case_id}."]))
    return Try(values, answer, draw(st.sampled_from([1, 1, 1, 2])))


@st.composite
def suites(draw: st.DrawFn, *, n_repeats: int | None = None) -> tuple[tuple[str, ...], list[Case]]:
    """The metrics of a suite, and its cases as one run found them."""
    metrics = draw(st.sampled_from([CHECKS, ("contains",), ("contains", "mine"), (*CHECKS, "support"), CHECKS[::-1]]))
    metrics += draw(st.sampled_from([(), ("opinion",)]))
    n_tries = n_repeats or draw(st.integers(1, 5))
    return metrics, [
        Case(f"c{n}", [draw(tries(metrics, f"c{n}")) for _ in range(n_tries)]) for n in range(draw(st.integers(1, 8)))
    ]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[Case], list[Case], list[str]]:
    """A baseline, a candidate of the same suite with some tries again, and gates."""
    metrics, old = draw(suites())
    n_tries = draw(st.integers(1, 5))
    new = []
    for case in old:
        if draw(st.integers(0, 2)) == 0:
            new.append(Case(case.id, [case.tries[n % len(case.tries)] for n in range(n_tries)]))
            continue
        now = [draw(tries(metrics, case.id)) for _ in range(n_tries)]
        again = [draw(tries(metrics, case.id)) for _ in range(draw(st.sampled_from([0, 0, 1, 9])))]
        new.append(Case(case.id, now, again, draw(st.sampled_from(["here", "here", "here", "there"]))))
    gates = draw(st.lists(st.sampled_from(GATES), unique=True, max_size=3))
    return old, new, [gate for gate in gates if gate.split()[0] in (*metrics, "answered")]


# Earlier tries of a check, the newest first, as an exported baseline has them.
histories = st.none() | st.dictionaries(
    st.tuples(st.sampled_from([f"c{n}" for n in range(8)]), st.sampled_from(CHECKS)),
    st.text("01", min_size=1, max_size=10),
    max_size=8,
)


def decided(new, old=None, gates=(), *, earlier=None, versions=None, **how):
    """The decision on cases beside others. ``earlier`` are tries of checks before these."""
    run = run_of(new, versions=versions)
    if old is None:
        return decide_run(run, gates, **how)
    baseline = run_of(old, name="old")
    if earlier:
        made = {metric: [[INFOS[metric].backend, "1"]] for metric in CHECKS}
        checks = [[case_id, metric, made[metric], passes] for (case_id, metric), passes in earlier.items()]
        baseline.history = {"format": 1, "checks": checks}
    return decide_run(run, gates, compare_runs(run, baseline, gates=gates, resamples=99), **how)


def strictness(decision):
    return STRICTNESS[decision.exit_code]


def with_values(case, n, **values):
    """A case with other values in its try number ``n``."""
    changed = list(case.tries)
    changed[n] = replace(changed[n], values={**changed[n].values, **values})
    return replace(case, tries=changed)


def passing_places(cases, metrics):
    """The case, try and metric of each check that passes in a planned try."""
    return [
        (place, n, metric)
        for place, case in enumerate(cases)
        for n, one in enumerate(case.tries)
        for metric, cell in one.values.items()
        if metric in metrics and cell == 1.0 and not one.failed
    ]


# 1. Never milder


@settings(max_examples=150)
@given(
    pair=pairs(),
    data=st.data(),
    with_baseline=st.booleans(),
    earlier=histories,
    max_errors=st.sampled_from([None, 0, 3]),
)
def test_turning_a_pass_into_a_fail_never_makes_the_verdict_milder(pair, data, with_baseline, earlier, max_errors):
    old, new, gates = pair
    places = passing_places(new, (*CHECKS, "mine"))
    assume(places)
    place, n, metric = data.draw(st.sampled_from(places))
    worse = [*new[:place], with_values(new[place], n, **{metric: 0.0}), *new[place + 1 :]]
    before = old if with_baseline else None
    assume(before is None or any_check(before, gates))
    was, now = (decided(each, before, gates, earlier=earlier, max_errors=max_errors) for each in (new, worse))
    assert strictness(now) >= strictness(was), (was.headline, now.headline)


@settings(max_examples=100)
@given(pair=pairs(), with_baseline=st.booleans(), repeats=st.integers(1, 5))
def test_adding_a_failing_case_never_makes_the_verdict_milder(pair, with_baseline, repeats):
    old, new, gates = pair
    before = old if with_baseline else None
    gates = [gate for gate in gates if not gate.startswith("answered")]
    was = decided(new, before, gates)
    # One more case that is scored adds to the coverage, whatever its score.
    assume(all(verdict.coverage >= DEFAULT_MIN_COVERAGE for verdict in was.gates))
    metrics = new[0].tries[0].values
    failing = Case("c99", [Try(dict.fromkeys(metrics, 0.0))] * repeats)
    now = decided([*new, failing], before, gates)
    assert strictness(now) >= strictness(was), (was.headline, now.headline)


@settings(max_examples=100)
@given(pair=pairs(), gate=st.sampled_from(GATES), with_baseline=st.booleans())
def test_adding_a_gate_never_makes_a_broken_check_or_a_missed_gate_milder(pair, gate, with_baseline):
    old, new, gates = pair
    before = old if with_baseline else None
    was, now = (decided(new, before, each) for each in (gates, [*gates, gate]))
    broken = () if was.comparison is None else was.comparison.broken
    missed = [verdict.gate for verdict in was.gates if verdict.verdict == "fail"]
    if broken or missed:
        assert now.verdict == "fail", (was.headline, now.headline)
    assert set(missed) <= {verdict.gate for verdict in now.gates if verdict.verdict == "fail"}


# 2. What did not get worse passes


@settings(max_examples=100)
@given(pair=pairs(), earlier=histories, max_errors=st.sampled_from([None, 2]))
def test_a_run_beside_itself_passes_unless_a_gate_is_missed_or_scores_failed(pair, earlier, max_errors):
    _, new, gates = pair
    assume(any_check(new, gates))
    decision = decided(new, new, gates, earlier=earlier, max_errors=max_errors)
    unless = {"gate", "unanswered gate", "failed score", "failed case"}
    undecided = {str(verdict.gate) for verdict in decision.gates if verdict.verdict == "cannot tell"}
    held_against = [
        reason
        for reason in decision.reasons
        if reason.kind not in unless and reason.exit_code and reason.subject not in undecided
    ]
    assert held_against == []


@settings(max_examples=100)
@given(pair=pairs(), earlier=histories, data=st.data())
def test_a_pure_fix_passes(pair, earlier, data):
    _, old, _ = pair
    assume(any_check(old, ()))
    fixed = data.draw(st.sets(st.integers(0, len(old) - 1)))
    new = []
    for place, case in enumerate(old):
        if place not in fixed:
            new.append(case)
            continue
        better = []
        for one in case.tries:
            passing = {metric: 1.0 if metric in CHECKS and cell == 0.0 else cell for metric, cell in one.values.items()}
            better.append(replace(one, values=passing))
        new.append(replace(case, tries=better))
    decision = decided(new, old, earlier=earlier)
    assert {reason.kind for reason in decision.reasons if reason.exit_code} <= {"failed score"}
    assert decision.comparison.broken == decision.comparison.unconfirmed == decision.comparison.ids_of("lost") == ()


@settings(max_examples=60)
@given(pair=pairs(), others=st.sets(st.sampled_from(CHECKS), min_size=1))
def test_what_another_version_of_a_metric_scored_is_never_broken(pair, others):
    old, new, gates = pair
    decision = decided(new, old, gates, versions=dict.fromkeys(others, "another"))
    comparison = decision.comparison
    failing = [comparison.cases[case_id] for case_id in comparison.ids_of("broken", "newly failing", "newly flaky")]
    assert not others & {case.check for case in failing}


# 3. Decided once


@settings(max_examples=25, deadline=None)
@given(pair=pairs(), max_errors=st.sampled_from([None, 2]))
def test_a_store_decides_as_memory_does_and_gives_the_decision_back_as_it_was(pair, max_errors, tmp_path_factory):
    old, new, gates = pair
    in_memory = decided(new, old, gates, max_errors=max_errors)
    with Store(tmp_path_factory.mktemp("store") / "runs.db") as store:
        before, now = keep_run(store, old, name="old"), keep_run(store, new, name="new")
        comparison = compare_runs(now, before, gates=gates, resamples=99)
        kept = keep_decision(store, "new", decide_run(now, gates, comparison, max_errors=max_errors), "run")
        own = own_decision(run_from_store(store, "new"))
        (stored,) = store.decisions("new")
        assert store.own_decisions() == {"new": (kept.verdict, kept.headline)}
    for name in ("exit_code", "verdict", "headline", "line", "reasons", "gates", "counts", "findings", "n_errors"):
        assert getattr(kept, name) == getattr(in_memory, name), name
        assert getattr(own, name) == getattr(kept, name), name
    assert own.comparison.broken == kept.comparison.broken
    assert own.comparison.n_by_kind == kept.comparison.n_by_kind
    assert own.comparison.metrics == kept.comparison.metrics
    assert own.made_with == kept.made_with
    # What is kept of a decision that was read is the same again.
    assert decoded(stored) == own


# 4. Every case is named with why, and no other


@settings(max_examples=120)
@given(pair=pairs(), with_baseline=st.booleans())
def test_every_case_of_a_failure_is_named_with_why_and_no_other_is_called_broken_or_wrong(pair, with_baseline):
    old, new, gates = pair
    decision = decided(new, old if with_baseline else None, gates)
    kinds = {"broken", "wrong", "newly failing"}
    for reason in decision.reasons:
        if reason.kind in kinds:
            assert reason.cases
        if reason.exit_code == EXIT_FAILED:
            assert all(decision.why(case_id) for case_id in reason.cases), reason
    assert len(decision.headline) <= 200
    failing = wrong_by_hand(new, gates)
    assert {finding.case_id for finding in decision.findings if finding.state == "wrong"} == failing
    if decision.comparison is not None:
        broken = set(decision.comparison.broken)
        assert broken <= failing
        assert not broken & set(decision.comparison.unconfirmed)
        passed_before = {case.id for case in old if case.id not in wrong_in_all_checks(case, gates)}
        assert broken <= passed_before


def results_by_hand(case, gates):
    """By check, what came of each try of a case that counts."""
    rules = {metric: lambda cell: cell == 1.0 for metric in CHECKS}
    if any(gate.startswith("mine") for gate in gates):
        rules["mine"] = lambda cell: cell == 1.0
    if "support all >= 0.4" in gates:
        rules["support"] = lambda cell: cell >= 0.4
    results = {"answered": [not one.failed for _, one in case.placed()]}
    for _, one in case.placed():
        for metric, cell in one.values.items():
            if metric in rules and isinstance(cell, float) and not one.failed:
                results.setdefault(metric, []).append(rules[metric](cell))
    return {metric: of_check for metric, of_check in results.items() if of_check}


def any_check(cases, gates):
    """Whether a metric checks anything: otherwise nothing says what must not get worse."""
    return any(results_by_hand(case, gates).keys() - {"answered"} for case in cases)


def wrong_by_hand(cases, gates):
    return {case.id for case in cases if any(not any(each) for each in results_by_hand(case, gates).values())}


def wrong_in_all_checks(case, gates):
    passes = [sum(each) * 2 > len(each) for each in results_by_hand(case, gates).values()]
    return set() if any(passes) else {case.id}


@st.composite
def breaks(draw: st.DrawFn):
    """A baseline, earlier tries, and a candidate in which one check that passed before fails in enough tries.

    The cases fail in other checks and other tries as they like.
    """
    metrics, old = draw(suites())
    metric = draw(st.sampled_from([each for each in metrics if each in CHECKS]))
    place = draw(st.integers(0, len(old) - 1))
    n_passed, n_failed = draw(st.sampled_from([(1, 0), (3, 0), (2, 1), (1, 1), (4, 2)]))
    before = [replace(one, values={**one.values, metric: 1.0}, answer="It was.") for one in [old[place].tries[0]]]
    cells = [1.0] * (n_passed - 1) + [0.0] * n_failed
    before += [Try({**before[0].values, metric: cell}, "It was.") for cell in draw(st.permutations(cells))]
    n_again = draw(st.integers(0, len(before) - 1))
    old[place] = Case(old[place].id, before[: len(before) - n_again], before[len(before) - n_again :])
    # What is needed to have passed in more than half of the newest ten tries.
    history = "1" * draw(st.integers(n_failed - n_passed + 1 if n_failed >= n_passed else 0, 4))
    # Never fewer than there are: each case has two checks and ``answered``.
    needed = tries_needed(len(old) * (len(metrics) + 1), n_failed)
    new = []
    for case in old:
        tries_now = [draw(tries(metrics, case.id)) for _ in range(draw(st.integers(1, 3)))]
        new.append(Case(case.id, tries_now))
    failing = [draw(tries(metrics, f"{old[place].id} {n}")) for n in range(needed)]
    failing = [
        replace(one, values={**one.values, metric: 0.0}, answer=f"Not there, {n}.") for n, one in enumerate(failing)
    ]
    later = draw(st.sampled_from([[], [1.0], [1.0, 0.0]]))
    n_planned = draw(st.integers(1, needed))
    again = failing[n_planned:] + [replace(failing[0], values={**failing[0].values, metric: cell}) for cell in later]
    new[place] = Case(old[place].id, failing[:n_planned], again)
    return old, new, metric, place, {(old[place].id, metric): history} if history else None, n_planned == needed


@settings(max_examples=150)
@given(made=breaks(), data=st.data(), threshold=st.sampled_from(["contains >= 0", "exact_match >= 0", None]))
def test_a_check_that_is_broken_by_construction_is_found_and_named(made, data, threshold):
    old, new, metric, place, earlier, ends_planned = made
    # A pass among the planned tries is one of them.
    assume(not (ends_planned and new[place].again))
    decision = decided(new, old, [threshold] if threshold else [], earlier=earlier)
    case_id = new[place].id
    assert decision.verdict == "fail", decision.headline
    assert decision.comparison.cases[case_id].kind == "broken"
    assert case_id in next(reason for reason in decision.reasons if reason.kind == "broken").cases
    assert decision.why(case_id)
    # By another version of the metric it is none.
    others = decided(new, old, earlier=earlier, versions={metric: "another"})
    standing = others.comparison.cases[case_id]
    assert (standing.kind, standing.check) != ("broken", metric)


@settings(max_examples=100)
@given(pair=pairs(), min_coverage=st.sampled_from([0.5, 0.8, 1.0]), gate=st.sampled_from(["contains", "exact_match"]))
def test_a_gate_is_met_only_where_enough_cases_have_a_value(pair, min_coverage, gate):
    _, new, _ = pair
    (verdict,) = decided(new, None, [f"{gate} >= 0"], min_coverage=min_coverage).gates
    cells = [one.values.get(gate) for case in new for one in case.tries]
    failed = [one.failed for case in new for one in case.tries]
    has_value = [isinstance(cell, float) and not out for cell, out in zip(cells, failed, strict=True)]
    applies = [out or cell != NOT_APPLICABLE for cell, out in zip(cells, failed, strict=True)]
    # Informational scores beside others count as none.
    assume(any(has_value))
    covered = sum(has_value) >= min_coverage * sum(applies) - 1e-9
    assert (verdict.verdict == "pass") == covered, verdict.reason


@settings(max_examples=200)
@given(
    n_before=st.integers(1, 10), n_now=st.integers(1, 10), failed_before=st.integers(0, 9), failed_now=st.integers(0, 9)
)
def test_one_more_failure_of_a_check_never_makes_newly_failing_ones_likelier(
    n_before, n_now, failed_before, failed_now
):
    """What a check that still passes now and then adds to chance must not grow with its failures."""
    assume(failed_before <= n_before and failed_now < n_now)
    chances = [chance_of_newly_failing(n_before, n_now, failed_before, failed) for failed in range(failed_now, n_now)]
    assert chances == sorted(chances, reverse=True)


# 5. One definition of cases


@settings(max_examples=100)
@given(pair=pairs(), with_baseline=st.booleans())
def test_counts_are_of_all_cases_and_agree(pair, with_baseline):
    old, new, gates = pair
    decision = decided(new, old if with_baseline else None, gates)
    counts = decision.counts
    assert counts.n_cases == len(new)
    assert counts.wrong == len(wrong_by_hand(new, gates))
    named = {state: sum(finding.state == state for finding in decision.findings) for state in STATES}
    assert (named["wrong"], named["flaky"], named["doubtful"]) == (counts.wrong, counts.flaky, counts.doubtful)
    if decision.comparison is None:
        return
    comparison = decision.comparison
    assert sum(comparison.n_by_kind.values()) == len(comparison.cases) == comparison.n_paired + comparison.n_changed
    for kind, n in comparison.n_by_kind.items():
        assert n == len(comparison.ids_of(kind))
    assert (comparison.n_only_baseline, comparison.n_only_candidate) == (len(comparison.gone), len(comparison.new))


# The rule of tries


@given(n_passed=st.integers(0, 10**6), more=st.integers(0, 10**6), n_failed=st.integers(0, 9))
def test_more_checks_or_more_failures_before_never_need_fewer_tries(n_passed, more, n_failed):
    needed = tries_needed(n_passed, n_failed)
    assert needed <= tries_needed(n_passed + more, n_failed)
    assert needed + 5 == tries_needed(n_passed, n_failed + 1)
    assert needed >= 3


@pytest.mark.parametrize(("n_passed", "needed"), [(1, 3), (2, 4), (64, 9), (65, 10), (66, 10), (2000, 14)])
def test_tries_needed_by_hand(n_passed, needed):
    assert tries_needed(n_passed, 0) == needed


def test_a_score_without_a_value_is_no_try():
    for cell in (NOT_APPLICABLE, RAISED, NO_ANSWER, NoValue("not_applicable", "x")):
        assert results_by_hand(Case("c", [Try({"contains": cell})]), ()) == {"answered": [True]}
