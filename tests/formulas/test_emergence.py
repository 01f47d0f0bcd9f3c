"""Emergence formulas: hand-checked tables, what must never happen, and properties."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentunit.formulas.coordination import (
    SWARM_WEIGHTS,
    adaptation,
    collective_share,
    early_and_late,
    entropy,
    self_organization,
    specialization,
)

COUNTS = st.lists(st.integers(0, 1000), max_size=12)
TIMES = st.lists(st.none() | st.floats(0, 1e9), max_size=12)
TYPES_OF = st.dictionaries(
    st.sampled_from("abcd"), st.dictionaries(st.sampled_from(["plan", "code", "test"]), st.integers(0, 50)), max_size=4
)


def test_the_weights_are_those_of_the_catalog() -> None:
    assert dict(SWARM_WEIGHTS) == {
        "self_organization": 0.30,
        "specialization": 0.25,
        "collective_decision": 0.25,
        "adaptation_rate": 0.20,
    }


@pytest.mark.parametrize(
    ("moments", "halves"),
    [
        pytest.param([1.0, 2.0, 3.0, 4.0], ([0, 1], [2, 3]), id="in order"),
        pytest.param([4.0, 3.0, 2.0, 1.0], ([3, 2], [1, 0]), id="by time, not by the order of the list"),
        pytest.param([1.0, 2.0, 3.0, 4.0, 5.0], ([0, 1], [2, 3, 4]), id="the middle one is late"),
        pytest.param([1.0, None, 2.0, 3.0, None, 4.0], ([0, 2], [3, 5]), id="without a time there is no place"),
        pytest.param([1.0, 2.0, 3.0], None, id="too few for two in each half"),
        pytest.param([None] * 9, None, id="no times at all"),
        pytest.param([5.0] * 9, None, id="all at one moment"),
        # The cut in the middle would part the three at 2.0; the nearest that parts moments leaves them together.
        pytest.param([1.0, 1.0, 2.0, 2.0, 2.0, 3.0], ([0, 1], [2, 3, 4, 5]), id="one moment stays together"),
        pytest.param([2.0, 2.0, 2.0, 3.0, 3.0], ([0, 1, 2], [3, 4]), id="and belongs where the cut is nearest"),
        pytest.param([1.0, 2.0, 2.0, 2.0], None, id="and no cut may leave one alone"),
    ],
)
def test_halves(moments: list[float | None], halves: Any) -> None:
    assert early_and_late(moments) == halves


@given(st.lists(st.none() | st.integers(0, 9).map(float), max_size=20))
def test_halves_depend_on_time_alone(moments: list[float | None]) -> None:
    halves, backwards = early_and_late(moments), early_and_late(moments[::-1])
    assert (halves is None) == (backwards is None)
    if halves is None or backwards is None:
        return
    assert sorted([*halves[0], *halves[1]]) == [place for place, moment in enumerate(moments) if moment is not None]
    assert min(map(len, halves)) >= 2
    assert max(moments[place] for place in halves[0]) < min(moments[place] for place in halves[1])  # type: ignore[type-var]
    assert set(halves[0]) == {len(moments) - 1 - place for place in backwards[0]}


@given(COUNTS)
def test_entropy_is_scipys(counts: list[int]) -> None:
    expected = float(stats.entropy(counts)) if sum(counts) else 0.0
    assert entropy(counts) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("early", "late", "value"),
    [
        ([1, 1, 1, 1], [4], 1.0),
        ([1, 1, 1, 1], [2, 2], 0.5),
        ([2, 2], [2, 2], 0.0),
        ([2, 2], [1, 1, 1, 1], 0.0),
        ([4], [4], None),
        ([4], [1, 1, 1, 1], None),
    ],
)
def test_self_organization(early: list[int], late: list[int], value: float | None) -> None:
    assert self_organization(early, late) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("types_of", "value"),
    [
        pytest.param({"a": {"plan": 3}, "b": {"code": 3}}, 1.0, id="each its own"),
        pytest.param({"a": {"plan": 2, "code": 2}, "b": {"plan": 5, "code": 5}}, 0.0, id="all do all"),
        pytest.param({"a": {"generic": 9}, "b": {"generic": 9}}, 0.0, id="one type shared by all"),
        # (0.625 − 0.5) / 0.5
        pytest.param({"a": {"plan": 3, "code": 1}}, 0.25, id="three of four"),
        # of three types: (0.5 − 1/3) / (2/3), and 1
        pytest.param({"a": {"plan": 2, "code": 2}, "b": {"test": 4}}, (0.25 + 1) / 2, id="mean over agents"),
        pytest.param({"a": {"plan": 1}, "b": {"code": 1}}, None, id="one message shows no habit"),
        pytest.param({"a": {"plan": 2, "code": 2}, "b": {"code": 1}}, 0.0, id="nor lends one to the others"),
        pytest.param({}, None, id="nobody"),
    ],
)
def test_specialisation(types_of: Any, value: float | None) -> None:
    assert specialization(types_of) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("types", "successes", "value"),
    [
        (["negotiation", "collaboration"], [True, True], 1.0),
        (["negotiation", "request"], [True, True], 0.5),
        (["negotiation", "request"], [False, True], 0.0),
        (["negotiation", "request"], [None, None], 0.0),
        (["negotiation"], [None], None),
        ([], [], None),
    ],
)
def test_collective_share(types: list[str], successes: list[bool | None], value: float | None) -> None:
    assert collective_share(types, successes) == value


@pytest.mark.parametrize(
    ("early", "late", "value"),
    [
        ([4.0, 6.0], [2.0, 3.0], 0.5),
        ([2.0], [4.0], 0.0),
        ([2.0, None], [None, 1.0], 0.5),
        ([0.0, 0.0], [0.0, 0.0], None),
        ([None], [1.0], None),
        ([1.0], [], None),
    ],
)
def test_adaptation(early: list[float | None], late: list[float | None], value: float | None) -> None:
    assert adaptation(early, late) == value


@given(COUNTS, COUNTS, TYPES_OF, TIMES, TIMES, st.lists(st.tuples(st.sampled_from(["negotiation", "x"]), st.none())))
def test_in_range_whatever_comes(
    early: list[int], late: list[int], types_of: Any, early_s: Any, late_s: Any, joint: list[Any]
) -> None:
    values = [
        self_organization(early, late),
        specialization(types_of),
        adaptation(early_s, late_s),
        collective_share([kind for kind, _ in joint], [success for _, success in joint]),
    ]
    assert all(value is None or 0.0 <= value <= 1.0 for value in values)
