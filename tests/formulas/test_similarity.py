from __future__ import annotations

from math import isclose, sqrt

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine as cosine_distance

from agentunit.formulas.similarity import clipscore, cosine, frames_score, similarity_score, weighted_mean

NUMBERS = st.floats(-1e6, 1e6)
SIMILARITIES = st.floats(-1, 1)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1, 0], [1, 0], 1.0),
        ([1, 0], [0, 5], 0.0),
        ([1, 0], [-3, 0], -1.0),
        ([3, 4], [4, 3], 24 / 25),  # (12 + 12) / (5 · 5)
        ([1, 1], [1, 0], 1 / sqrt(2)),
        ([1e-200, 0], [1e-200, 0], 1.0),  # lengths whose product would be zero
    ],
)
def test_cosine(left: list[float], right: list[float], expected: float) -> None:
    assert isclose(cosine(left, right), expected, abs_tol=1e-12)


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(*[st.lists(NUMBERS, min_size=n, max_size=n)] * 2)))
def test_cosine_agrees_with_scipy_and_stays_in_range(pair: tuple[list[float], list[float]]) -> None:
    left, right = pair
    assume(max(map(abs, left)) > 1e-3 and max(map(abs, right)) > 1e-3)
    found = cosine(left, right)
    assert -1 <= found <= 1
    assert found == cosine(right, left)
    assert isclose(found, 1 - cosine_distance(left, right), abs_tol=1e-9)
    assert isclose(found, cosine([2.5 * each for each in left], right), abs_tol=1e-9)


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ([1.0], [1.0, 2.0], "equally long; received 1 and 2"),
        ([0.0, 0.0], [1.0, 0.0], "not only zeros; received one of length 0.0"),
        ([float("nan")], [1.0], "finite"),
        ([float("inf")], [1.0], "finite"),
        ([], [], "not only zeros"),
    ],
)
def test_vectors_without_an_angle_are_refused(left: list[float], right: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cosine(left, right)


@pytest.mark.parametrize(
    ("similarity", "threshold", "expected"),
    [(0.25, 0.25, 1.0), (0.9, 0.25, 1.0), (0.2, 0.25, 0.8), (0.0, 0.25, 0.0), (-0.5, 0.25, 0.0), (0.5, 1.0, 0.5)],
)
def test_similarity_score(similarity: float, threshold: float, expected: float) -> None:
    assert similarity_score(similarity, threshold) == pytest.approx(expected)


@given(SIMILARITIES, SIMILARITIES, st.floats(0.01, 1))
def test_more_similar_never_scores_less(one: float, other: float, threshold: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= similarity_score(low, threshold) <= similarity_score(high, threshold) <= 1


@pytest.mark.parametrize("threshold", [0.0, -0.1, 1.1, float("nan")])
def test_a_threshold_must_be_a_similarity_that_can_be_reached(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be above 0 and at most 1"):
        similarity_score(0.5, threshold)


@pytest.mark.parametrize(
    ("similarities", "expected"),
    [
        ([0.3], 0.3),
        ([0.1, 0.2, 0.3], 0.24),  # 0.6 · 0.2 + 0.4 · 0.3
        ([0.0, 1.0], 0.7),  # 0.6 · 0.5 + 0.4 · 1
        ([-0.5, 0.5], 0.2),  # 0.6 · 0 + 0.4 · 0.5
        ([-0.2, -0.1], 0.0),
    ],
)
def test_frames_score(similarities: list[float], expected: float) -> None:
    assert frames_score(similarities) == pytest.approx(expected)


@given(st.lists(SIMILARITIES, min_size=1, max_size=20))
def test_frames_score_lies_between_nothing_and_the_best(similarities: list[float]) -> None:
    assert 0 <= frames_score(similarities) <= max(0.0, max(similarities)) + 1e-12


def test_no_frames_have_no_score() -> None:
    with pytest.raises(ValueError, match="received none"):
        frames_score([])


@pytest.mark.parametrize(("similarity", "expected"), [(0.34336, 0.8584), (0.0, 0.0), (-0.3, 0.0), (1.0, 2.5)])
def test_clipscore(similarity: float, expected: float) -> None:
    assert clipscore(similarity) == pytest.approx(expected)


@pytest.mark.parametrize("function", [clipscore, lambda x: similarity_score(x, 0.5), lambda x: frames_score([x])])
@pytest.mark.parametrize("similarity", [1.01, -1.01, float("nan")])
def test_what_is_no_cosine_is_refused(function: object, similarity: float) -> None:
    with pytest.raises(ValueError, match="from -1 to 1"):
        function(similarity)  # type: ignore[operator]


def test_weighted_mean() -> None:
    assert weighted_mean([1.0, 4.0], [2, 1]) == 2.0
    with pytest.raises(ValueError, match="a weight of 0 or more for each value"):
        weighted_mean([1.0], [0])
    with pytest.raises(ValueError, match="a weight of 0 or more for each value"):
        weighted_mean([1.0, 2.0], [1])
