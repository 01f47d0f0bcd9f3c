"""Near-duplicates against the definition, pair by pair, and loops against sequences built by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.conversation import Loop, first_alike, loops, repetition_share, shingles

few_words = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta"]), max_size=12).map(" ".join)


def similarity_of(left, right):
    """The Jaccard index of two texts' shingles."""
    ours, theirs = shingles(left), shingles(right)
    return len(ours & theirs) / len(ours | theirs) if ours or theirs else None


@pytest.mark.parametrize(
    ("left", "right", "similarity"),
    [
        ("Open the door.", "open the DOOR", 1.0),
        ("a b c d", "a b c e", 1 / 3),  # abc | bcd, bce
        ("a b c d", "w x y z", 0.0),
        ("stop", "stop", 1.0),  # fewer words than a shingle has
        ("stop", "stop now", 0.0),
        ("!", "?", None),
        ("!", "word", 0.0),
    ],
)
def test_similarity_by_hand(left, right, similarity):
    assert similarity_of(left, right) == similarity
    assert similarity_of(right, left) == similarity


@pytest.mark.parametrize(
    ("texts", "alike"),
    [
        ([], []),
        (["one"], [None]),
        (["go on", "stop", "go on", "Go on!"], [None, None, 0, 0]),
        (["!", "!"], [None, None]),  # without words nothing is said twice
        # 8 of 10 runs shared is 0.8: near, though 0.8 is no exact float.
        (["a b c d e f g h i j k", "a b c d e f g h i j k l m"], [None, 0]),
        (["a b c d e f g h i j", "a b c d e f g h i j k l m"], [None, None]),  # 8 of 11
    ],
)
def test_first_alike_by_hand(texts, alike):
    assert first_alike(texts) == alike


@given(st.lists(few_words, max_size=12), st.sampled_from((0.3, 0.5, 0.8, 1.0)))
def test_first_alike_is_what_comparing_all_pairs_finds(texts, threshold):
    for place, found in enumerate(first_alike(texts, threshold)):
        near = [
            earlier
            for earlier in range(place)
            if shingles(texts[place]) and similarity_of(texts[earlier], texts[place]) >= threshold - 1e-9
        ]
        assert found == (near[0] if near else None)


def test_a_threshold_out_of_range_is_refused():
    with pytest.raises(ValueError, match="first_alike: threshold must be above 0 and at most 1; received 0"):
        first_alike(["a"], 0)


@pytest.mark.parametrize(
    ("alike", "share"), [([], None), ([None], None), ([None, None], 0.0), ([None, 0], 1.0), ([None, None, 0], 0.5)]
)
def test_repetition_share_by_hand(alike, share):
    assert repetition_share(alike) == share


@given(st.lists(few_words, min_size=2, max_size=10))
def test_saying_one_more_new_thing_never_raises_the_share(texts):
    before = repetition_share(first_alike(texts))
    after = repetition_share(first_alike([*texts, "omega " * 5 + "psi"]))
    assert after <= before


@pytest.mark.parametrize(
    ("sequence", "found"),
    [
        ("", []),
        ("abcd", []),
        ("aaaa", [Loop(0, 1, 4)]),
        ("xababab", [Loop(1, 2, 3)]),
        ("abcabcab", [Loop(0, 3, 2)]),
        ("aabb", [Loop(0, 1, 2), Loop(2, 1, 2)]),
        ("abab" + "xyzxyzxyz", [Loop(0, 2, 2), Loop(4, 3, 3)]),
    ],
)
def test_loops_by_hand(sequence, found):
    assert loops(sequence) == found


@given(st.text("abc", max_size=30))
def test_loops_repeat_and_do_not_overlap(sequence):
    reached = 0
    for loop in loops(sequence):
        assert loop.start >= reached
        reached = loop.start + loop.period * loop.rounds
        assert loop.rounds > 1
        assert sequence[loop.start : reached] == sequence[loop.start : loop.start + loop.period] * loop.rounds


@given(st.text("abc", max_size=20))
def test_a_sequence_without_a_square_has_no_loop(sequence):
    has_square = any(
        sequence[start : start + half] == sequence[start + half : start + 2 * half]
        for half in range(1, min(12, len(sequence) // 2) + 1)
        for start in range(len(sequence) - 2 * half + 1)
    )
    assert bool(loops(sequence)) == has_square


def test_loops_are_no_longer_than_asked_for():
    assert loops("abcabc", longest_period=3) == [Loop(0, 3, 2)]
    assert loops("abcabc", longest_period=2) == []
