"""Coordination formulas: hand-checked tables, what must never happen, and properties."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import entropy

from agentunit.formulas.coordination import (
    COORDINATION_WEIGHTS,
    Duties,
    act_allowed,
    communication_efficiency,
    known_rate,
    load_balance,
    mean_of_known,
    role_adherence,
    weighted_score,
)

VERDICTS = st.sampled_from([True, False, None])
TIMES = st.none() | st.floats(0, 1e9)
MESSAGES = st.lists(st.tuples(VERDICTS, TIMES), max_size=12)


def test_the_weights_are_those_of_the_catalog() -> None:
    assert dict(COORDINATION_WEIGHTS) == {
        "handoff_success_rate": 0.25,
        "conflict_resolution_rate": 0.20,
        "communication_efficiency": 0.25,
        "role_adherence": 0.15,
        "load_balance_score": 0.15,
    }


@pytest.mark.parametrize(
    ("verdicts", "rate"),
    [([True, True, False, True], 0.75), ([None, True], 1.0), ([None, None], None), ([], None), ([False], 0.0)],
)
def test_rate_of_what_is_known(verdicts: list[bool | None], rate: float | None) -> None:
    assert known_rate(verdicts) == rate


@pytest.mark.parametrize(
    ("successes", "times_s", "value"),
    [
        pytest.param([True, True], [1.0, 2.0], 1.0, id="all arrive, well within 5 s"),
        pytest.param([True, True], [None, None], 1.0, id="no times: success alone"),
        pytest.param([True, False], [None, None], 0.5, id="half arrive"),
        pytest.param([True, False], [10.0, 10.0], 0.5, id="half arrive, twice too slow: (0.5 + 0.5) / 2"),
        pytest.param([True, True], [5.0, 15.0], 0.75, id="mean of 10 s: (1 + 0.5) / 2"),
        pytest.param([None, None], [20.0, None], 0.25, id="success unknown: speed alone"),
        pytest.param([True, False], [10.0, 0.0], 0.5, id="the speed of a failure is no speed"),
        pytest.param([True], [0.0], 1.0, id="no time at all"),
        pytest.param([None], [None], None, id="nothing known"),
        pytest.param([], [], None, id="nothing there"),
    ],
)
def test_communication(successes: list[bool | None], times_s: list[float | None], value: float | None) -> None:
    assert communication_efficiency(successes, times_s) == value


@pytest.mark.parametrize(
    ("work", "value"),
    [
        ([3, 3, 3], 1.0),
        ([100, 0], 0.0),
        # −(3/4·ln 3/4 + 1/4·ln 1/4) / ln 2
        ([3, 1], 0.8112781244591328),
        # two of four share it evenly: ln 2 / ln 4
        ([5, 5, 0, 0], 0.5),
        ([7], None),
        ([0, 0], None),
        ([], None),
    ],
)
def test_load_balance(work: list[int], value: float | None) -> None:
    assert load_balance(work) == pytest.approx(value)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20))
def test_load_balance_is_scipys_entropy_over_its_maximum(work: list[int]) -> None:
    assume(sum(work))
    assert load_balance(work) == pytest.approx(float(entropy(work) / entropy([1] * len(work))), abs=1e-12)


@given(st.lists(st.integers(0, 10**6), max_size=20), st.randoms())
def test_load_balance_is_in_range_and_blind_to_order(work: list[int], shuffler: Any) -> None:
    value = load_balance(work)
    assert value is None or 0.0 <= value <= 1.0
    shuffled = list(work)
    shuffler.shuffle(shuffled)
    assert load_balance(shuffled) == pytest.approx(value)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20))
def test_one_more_idle_agent_never_makes_work_more_even(work: list[int]) -> None:
    before = load_balance(work)
    assume(before is not None)
    assert load_balance([*work, 0]) <= before  # type: ignore[operator]


# duties, act, allowed
LEAD = Duties(message_types=frozenset({"plan", "review"}), capabilities=frozenset({"search"}), can_escalate=True)
CODER = Duties(can_delegate=False, can_escalate=False)


@pytest.mark.parametrize(
    ("duties", "act", "allowed"),
    [
        (LEAD, ("request", "plan"), True),
        (LEAD, ("request", "code"), False),
        (LEAD, ("request", "generic"), None),
        (LEAD, ("delegation", "plan"), True),
        (LEAD, ("request", "plan", ["search"]), True),
        (LEAD, ("request", "plan", ["search", "pay"]), False),
        (CODER, ("request", "code"), True),
        (CODER, ("request", "generic"), True),
        (CODER, ("delegation", "code"), False),
        (CODER, ("handoff",), False),
        (CODER, ("escalation", "code"), False),
        (CODER, ("notification", "escalation"), False),
        (Duties(message_types=frozenset({"generic"})), ("request", "generic"), True),
        (Duties(), ("delegation", "anything", ["everything"]), True),
    ],
)
def test_what_a_role_allows(duties: Duties, act: Any, allowed: bool | None) -> None:
    assert act_allowed(duties, *act) is allowed


def test_a_role_that_is_only_a_name_says_nothing() -> None:
    assert not Duties().say_something
    assert Duties(can_delegate=True).say_something
    assert Duties(message_types=frozenset()).say_something


@pytest.mark.parametrize(
    ("acts", "value"),
    [
        pytest.param({"a": [(True, True), (True, None), (False, True), (True, True)]}, 0.75, id="one of four"),
        pytest.param({"a": [(False, True)] * 99, "b": [(True, True)]}, 0.5, id="every agent counts once"),
        pytest.param({"a": [(True, False)]}, None, id="a failure proves no adherence"),
        pytest.param({"a": [(False, False), (True, True)]}, 0.5, id="what is not allowed counts though it failed"),
        pytest.param({"a": [(None, True)], "b": [(True, True)]}, 1.0, id="what nobody can judge is left out"),
        pytest.param({}, None, id="no roles"),
    ],
)
def test_role_adherence(acts: Any, value: float | None) -> None:
    assert role_adherence(acts) == value


COMPONENTS = st.fixed_dictionaries(
    {name: st.none() | st.floats(0, 1, allow_subnormal=False) for name in COORDINATION_WEIGHTS}
)


def test_weights_of_what_is_unknown_go_to_the_rest() -> None:
    known = dict.fromkeys(COORDINATION_WEIGHTS, None) | {"handoff_success_rate": 1.0, "role_adherence": 0.2}
    # (0.25·1 + 0.15·0.2) / (0.25 + 0.15)
    assert weighted_score(known, COORDINATION_WEIGHTS) == pytest.approx(0.7)
    assert weighted_score(dict.fromkeys(COORDINATION_WEIGHTS, None), COORDINATION_WEIGHTS) is None
    assert weighted_score(dict.fromkeys(COORDINATION_WEIGHTS, 1.0), COORDINATION_WEIGHTS) == 1.0


@given(COMPONENTS, st.sampled_from(list(COORDINATION_WEIGHTS)))
def test_the_score_lies_among_its_components_and_a_zero_never_raises_it(
    components: dict[str, float | None], name: str
) -> None:
    score = weighted_score(components, COORDINATION_WEIGHTS)
    known = [value for value in components.values() if value is not None]
    assert (score is None) == (not known)
    if score is None:
        return
    assert min(known) - 1e-12 <= score <= max(known) + 1e-12
    assert 0.0 <= score <= 1.0
    with_zero = weighted_score({**components, name: 0.0}, COORDINATION_WEIGHTS)
    assert with_zero is not None
    assert with_zero <= score + 1e-12


@given(MESSAGES, TIMES)
def test_one_more_failed_message_never_makes_communication_better(
    messages: list[tuple[bool | None, float | None]], took_s: float | None
) -> None:
    before = communication_efficiency([each for each, _ in messages], [each for _, each in messages])
    after = communication_efficiency(
        [each for each, _ in messages] + [False], [each for _, each in messages] + [took_s]
    )
    assert after is not None
    assert 0.0 <= after <= 1.0
    assert after == 0.0 if before is None else after <= before + 1e-12


@given(st.lists(TIMES, max_size=12))
def test_everything_failed_is_zero_however_quickly(times_s: list[float | None]) -> None:
    assert communication_efficiency([False] * len(times_s), times_s) == (0.0 if times_s else None)


def test_mean_of_nothing_is_unknown() -> None:
    assert mean_of_known([None]) is None
