from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.formulas.trajectory import (
    ToolCall,
    alignment_score,
    calls_match,
    match_trajectory,
    value_similarity,
)

MODES = ("unordered", "ordered", "strict")
RULES = ("equal", "subset", "ignore")

# Few names and few arguments, so that matches, near matches and repetitions are all common.
NAMES = st.sampled_from(["a", "b", "c"])
ARGUMENTS = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([1, 2, True, "p", "q"]), max_size=2)
MADE = st.builds(ToolCall, NAMES, ARGUMENTS)
EXPECTED = st.builds(ToolCall, NAMES, st.none() | ARGUMENTS)
EXPECTED_CALLS = st.lists(EXPECTED, max_size=5)
MADE_CALLS = st.lists(MADE, max_size=5)
STATED_CALLS = st.lists(MADE, max_size=5)


def calls(text: str) -> list[ToolCall]:
    return [ToolCall(name) for name in text]


# By brute force: every way to pair the calls


def largest_pairing(expected: list[ToolCall], made: list[ToolCall], rule: Any) -> int:
    short, long, flipped = (expected, made, False) if len(expected) <= len(made) else (made, expected, True)
    return max(
        sum(
            calls_match(other, one, rule) if flipped else calls_match(one, other, rule)
            for one, other in zip(short, chosen, strict=True)
        )
        for chosen in permutations(long, len(short))
    )


def longest_common_subsequence(expected: list[ToolCall], made: list[ToolCall], rule: Any) -> int:
    for size in range(min(len(expected), len(made)), 0, -1):
        for some in combinations(expected, size):
            for others in combinations(made, size):
                if all(calls_match(e, a, rule) for e, a in zip(some, others, strict=True)):
                    return size
    return 0


@given(EXPECTED_CALLS, MADE_CALLS, st.sampled_from(RULES))
@settings(deadline=None)
def test_unordered_matches_equal_brute_force(expected: Any, made: Any, rule: Any) -> None:
    assert match_trajectory(expected, made, "unordered", rule).matched == largest_pairing(expected, made, rule)


@given(EXPECTED_CALLS, MADE_CALLS, st.sampled_from(RULES))
@settings(deadline=None)
def test_ordered_matches_equal_the_longest_common_subsequence(expected: Any, made: Any, rule: Any) -> None:
    assert match_trajectory(expected, made, "ordered", rule).matched == longest_common_subsequence(expected, made, rule)


def test_unordered_gives_up_a_match_where_another_gains_more() -> None:
    # "any find" took find(1) first; only by moving to find(2) do both expected calls find a partner.
    expected = [ToolCall("find"), ToolCall("find", {"id": 1})]
    made = [ToolCall("find", {"id": 1}), ToolCall("find", {"id": 2})]
    assert match_trajectory(expected, made, "unordered").matched == 2


def test_a_long_chain_of_such_moves() -> None:
    # Expected call k takes k or k + 1 by its subset; the last one takes only 0, so that all must move up by one.
    n = 300
    expected = [*(ToolCall("t", {f"k{k}": 1}) for k in range(n)), ToolCall("t", {"first": 1})]
    made = [ToolCall("t", {f"k{k}": 1, f"k{k - 1}": 1, **({"first": 1} if k == 0 else {})}) for k in range(n + 1)]
    assert match_trajectory(expected, made, "unordered", "subset").matched == n + 1


# Precision, recall and F1 by hand: m matches among e expected and a made


@pytest.mark.parametrize(
    ("expected", "made", "mode", "matched"),
    [
        ("ab", "ab", "strict", 2),
        ("ab", "ba", "unordered", 2),
        ("ab", "ba", "ordered", 1),
        ("ab", "ba", "strict", 0),
        ("abc", "axbxc", "ordered", 3),
        ("abc", "axbxc", "strict", 1),
        ("aab", "ab", "unordered", 2),
        ("aab", "aba", "unordered", 3),
        ("aab", "aba", "ordered", 2),
        ("abcbdab", "bdcaba", "ordered", 4),  # the textbook pair: b c b a
        ("", "a", "ordered", 0),
        ("a", "", "unordered", 0),
    ],
)
def test_matches_by_hand(expected: str, made: str, mode: Any, matched: int) -> None:
    match = match_trajectory(calls(expected), calls(made), mode)
    e, a = len(expected), len(made)
    assert match.matched == matched
    assert match.precision == (matched / a if a else None)
    assert match.recall == (matched / e if e else None)
    assert match.f1 == 2 * matched / (e + a)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_expected_and_nothing_made_is_right(mode: Any) -> None:
    match = match_trajectory([], [], mode)
    assert (match.matched, match.precision, match.recall, match.f1) == (0, None, None, 1.0)


@given(EXPECTED_CALLS, MADE_CALLS, st.sampled_from(RULES))
@settings(deadline=None)
def test_stricter_modes_never_match_more(expected: Any, made: Any, rule: Any) -> None:
    unordered, ordered, strict = (match_trajectory(expected, made, mode, rule) for mode in MODES)
    assert min(len(expected), len(made)) >= unordered.matched >= ordered.matched >= strict.matched >= 0
    for match in (unordered, ordered, strict):
        assert 0.0 <= match.f1 <= 1.0


@given(EXPECTED_CALLS, MADE_CALLS, st.sampled_from(MODES))
@settings(deadline=None)
def test_stricter_arguments_never_match_more(expected: Any, made: Any, mode: Any) -> None:
    equal, subset, ignore = (match_trajectory(expected, made, mode, rule).matched for rule in RULES)
    assert equal <= subset <= ignore


@given(STATED_CALLS, st.sampled_from(MODES), st.sampled_from(RULES))
@settings(deadline=None)
def test_identical_trajectories_match_wholly(made: Any, mode: Any, rule: Any) -> None:
    assert match_trajectory(made, made, mode, rule).f1 == 1.0
    assert alignment_score(made, made) == 1.0


@given(EXPECTED_CALLS, MADE_CALLS, st.sampled_from(MODES), st.integers(0, 5))
@settings(deadline=None)
def test_one_more_wrong_call_never_raises_f1(expected: Any, made: Any, mode: Any, place: int) -> None:
    # Strict goes by position: a wrong call in the middle may push later ones to where they were expected.
    place = len(made) if mode == "strict" else min(place, len(made))
    more = [*made[:place], ToolCall("wrong", {}), *made[place:]]
    assert match_trajectory(expected, more, mode).f1 <= match_trajectory(expected, made, mode).f1
    assert alignment_score(expected, more) <= alignment_score(expected, made)


@given(STATED_CALLS, STATED_CALLS, st.sampled_from(MODES))
@settings(deadline=None)
def test_matching_is_symmetric_where_every_call_states_its_arguments(one: Any, other: Any, mode: Any) -> None:
    assert match_trajectory(one, other, mode).matched == match_trajectory(other, one, mode).matched


# One call against another


@pytest.mark.parametrize(
    ("expected", "made", "equal", "subset"),
    [
        (None, {}, True, True),
        (None, {"x": 1}, True, True),
        ({}, None, True, True),
        ({}, {"x": 1}, False, True),
        ({"x": 1}, {}, False, False),
        ({"x": 1}, None, False, False),
        ({"x": 1}, {"x": 1}, True, True),
        ({"x": 1}, {"x": 1.0}, True, True),
        ({"x": 1}, {"x": True}, False, False),
        ({"x": 0}, {"x": False}, False, False),
        ({"x": [1]}, {"x": [True]}, False, False),
        ({"x": {"y": 1}}, {"x": {"y": 1}}, True, True),
        ({"x": {"y": 1}}, {"x": {"y": 1, "z": 2}}, False, False),  # subset is of the arguments, not within them
        ({"x": [1, 2]}, {"x": (1, 2)}, True, True),
        ({"x": [1, 2]}, {"x": [2, 1]}, False, False),
        ({"x": None}, {"x": None}, True, True),
        ({"x": None}, {}, False, False),
        ({"x": "1"}, {"x": 1}, False, False),
    ],
)
def test_arguments(expected: Any, made: Any, equal: bool, subset: bool) -> None:
    one, other = ToolCall("find", expected), ToolCall("find", made)
    assert calls_match(one, other, "equal") is equal
    assert calls_match(one, other, "subset") is subset
    assert calls_match(one, other, "ignore") is True
    assert not any(calls_match(one, ToolCall("other", made), rule) for rule in RULES)


# Alignment


@pytest.mark.parametrize(
    ("expected", "made", "score"),
    [
        ([], [], 1.0),
        ([ToolCall("a", {})], [], 0.0),
        ([ToolCall("a", {})], [ToolCall("b", {})], 0.0),
        ([ToolCall("a", {"x": 1})], [ToolCall("a", {"x": "p"})], 0.5),  # the tool is right, its argument all wrong
        ([ToolCall("a", {"x": 1})], [ToolCall("a", {"x": 2})], 0.75),  # 0.5 + 0.5 × 1/2
        ([ToolCall("a")], [ToolCall("a", {"x": 2})], 1.0),
        ([ToolCall("a", {}), ToolCall("b", {})], [ToolCall("b", {}), ToolCall("a", {})], 0.5),  # 2 × 1 / 4
        # Pairing the second find costs the order nothing and gains more: 2 × 1 / 3
        ([ToolCall("a", {"x": 1})], [ToolCall("a", {"x": "p"}), ToolCall("a", {"x": 1})], 2 / 3),
    ],
)
def test_alignment_by_hand(expected: Any, made: Any, score: float) -> None:
    assert alignment_score(expected, made) == pytest.approx(score)


@given(EXPECTED_CALLS, MADE_CALLS)
@settings(deadline=None)
def test_alignment_lies_between_ordered_f1_and_one(expected: Any, made: Any) -> None:
    score = alignment_score(expected, made)
    assert match_trajectory(expected, made, "ordered", "equal").f1 - 1e-12 <= score <= 1.0
    assert score <= match_trajectory(expected, made, "ordered", "ignore").f1 + 1e-12


@given(STATED_CALLS, STATED_CALLS)
@settings(deadline=None)
def test_alignment_is_symmetric_where_every_call_states_its_arguments(one: Any, other: Any) -> None:
    assert alignment_score(one, other) == pytest.approx(alignment_score(other, one), abs=1e-12)


# Values


@pytest.mark.parametrize(
    ("left", "right", "similarity"),
    [
        (1, 1, 1.0),
        (1, 1.0, 1.0),
        (0, 0.0, 1.0),
        (2, 4, 0.5),  # 1 − 2/4
        (-2, 2, 0.0),  # 1 − 4/2, at least 0
        (0, 5, 0.0),
        (1, True, 0.0),
        (True, False, 0.0),
        (True, True, 1.0),
        (None, None, 1.0),
        (None, 0, 0.0),
        ("1", 1, 0.0),
        ("Paris", "paris", 1.0),
        ("night", "nacht", 0.25),  # ni ig gh ht / na ac ch ht: one pair of four, 2 × 1 / 8
        ("a", "b", 0.0),
        ("a", "a", 1.0),
        ("", "", 1.0),
        ("", "a", 0.0),
        ([1, 2], [1, 4], 0.75),
        ([1], [1, 1], 0.5),
        ([], [], 1.0),
        ([], [1], 0.0),
        ({}, {}, 1.0),
        ({"x": 1}, {}, 0.0),
        ({"x": 1}, {"x": 1, "y": 1}, 0.5),
        ({"x": {"y": 2}}, {"x": {"y": 4}}, 0.5),
        ({"x": 1}, [1], 0.0),
        ((1, 2), [1, 2], 1.0),
        (1e308, -1e308, 0.0),
        (10**400, 10**400 - 1, 1.0),
        (10**400, 1.5, 0.0),
        (float("inf"), 1, 0.0),
        (float("nan"), 1, 0.0),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_value_similarity_by_hand(left: Any, right: Any, similarity: float) -> None:
    assert value_similarity(left, right) == pytest.approx(similarity)
    assert value_similarity(right, left) == pytest.approx(similarity)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
@settings(deadline=None)
def test_similarity_is_bounded_symmetric_and_one_for_equals(left: Any, right: Any) -> None:
    similarity = value_similarity(left, right)
    assert 0.0 <= similarity <= 1.0
    assert similarity == pytest.approx(value_similarity(right, left), abs=1e-12)
    assert value_similarity(left, left) == 1.0


def test_similarity_is_the_same_in_every_process() -> None:
    # The order in which a set of names is walked changes from process to process, and with it the last digit of a sum.
    code = (
        "from agentunit.formulas.trajectory import value_similarity as v\n"
        "names = [f'name{n}' for n in range(12)]\n"
        "print([v({n: 1 for n in names}, {n: 1 + k / d for k, n in enumerate(names)}) for d in (3, 7, 11, 13, 17)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
