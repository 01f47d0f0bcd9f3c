from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.trajectory import state_differences


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({}, {}),
        ({}, {"anything": 1}),
        ({"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),  # more is fine
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}),  # at every depth
        ({"a": 1}, {"a": 1.0}),
        ({"a": None}, {"a": None}),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}),
        ({"a": True}, {"a": True}),
        ([1, 2], [1, 2]),
        (5, 5),
        (None, None),
    ],
)
def test_states_that_hold_what_is_expected(expected: Any, actual: Any) -> None:
    assert state_differences(expected, actual) == []


@pytest.mark.parametrize(
    ("expected", "actual", "differences"),
    [
        ({"a": 1}, {}, ["a is missing, expected 1"]),
        ({"a": 1}, {"a": 2}, ["a is 2, expected 1"]),
        ({"a": None}, {}, ["a is missing, expected None"]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": "x"}}}, ["a.b.c is 'x', expected 1"]),
        ({"a": 1, "b": 2}, {"a": 3}, ["a is 3, expected 1", "b is missing, expected 2"]),
        ({"a": {"b": 1}}, {"a": 5}, ["a is 5, expected {'b': 1}"]),
        ({"a": 5}, {"a": {"b": 1}}, ["a is {'b': 1}, expected 5"]),
        ({"a": 1}, {"a": True}, ["a is True, expected 1"]),
        ({"a": False}, {"a": 0}, ["a is 0, expected False"]),
        ({"a": [1, 2]}, {"a": [2, 1]}, ["a is [2, 1], expected [1, 2]"]),
        ({"a": "1"}, {"a": 1}, ["a is 1, expected '1'"]),
        ({0: {1: "x"}}, {0: {1: "y"}}, ["0.1 is 'y', expected 'x'"]),
        (5, 6, ["the state is 6, expected 5"]),
        ({"a": 1}, None, ["the state is None, expected {'a': 1}"]),
    ],
)
def test_differences_name_the_place(expected: Any, actual: Any, differences: list[str]) -> None:
    assert state_differences(expected, actual) == differences


@pytest.mark.parametrize(
    ("expected", "actual"),
    [([1], [True]), ([{"a": 0}], [{"a": False}]), ({"a": [[1]]}, {"a": [[True]]})],
)
def test_true_is_no_one_within_lists_either(expected: Any, actual: Any) -> None:
    assert len(state_differences(expected, actual)) == 1


def test_long_values_are_shortened() -> None:
    [difference] = state_differences({"a": "x" * 10_000}, {"a": "y" * 10_000})
    assert len(difference) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


@given(JSON)
def test_every_state_holds_itself(state: Any) -> None:
    assert state_differences(state, state) == []


@given(OBJECTS, OBJECTS)
def test_more_state_never_makes_a_difference_and_less_always_does(
    expected: dict[str, Any], other: dict[str, Any]
) -> None:
    assert state_differences(expected, {**other, **expected}) == []
    for key in expected:
        less = {name: value for name, value in expected.items() if name != key}
        assert len(state_differences(expected, less)) == 1


@given(JSON, JSON)
def test_a_difference_is_a_line_of_text(expected: Any, actual: Any) -> None:
    for difference in state_differences(expected, actual):
        assert ", expected " in difference
