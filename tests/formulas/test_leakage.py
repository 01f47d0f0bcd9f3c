"""Leakage and held-back shares: hand-checked values, bounds, and that more leaks never look better."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.privacy import kept_private, share_held_back

SHARES = st.floats(min_value=0.0, max_value=1.0)
FINDINGS = st.lists(st.tuples(SHARES, SHARES), max_size=12)


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([], 1.0),
        ([(0.5, 0.95)], 0.525),  # 1 − 0.475
        ([(1.0, 0.98)], 0.02),
        ([(0.5, 0.95), (0.6, 0.9)], 0.525 * 0.46),  # (1 − 0.475)(1 − 0.54)
        ([(1.0, 1.0), (0.3, 0.6)], 0.0),
        ([(0.0, 1.0), (1.0, 0.0)], 1.0),
    ],
)
def test_hand_checked(findings: list[tuple[float, float]], expected: float) -> None:
    assert kept_private(findings) == pytest.approx(expected, abs=1e-15)


@given(FINDINGS, st.tuples(SHARES, SHARES))
def test_one_more_finding_never_raises_it(findings: list[tuple[float, float]], another: tuple[float, float]) -> None:
    assert 0.0 <= kept_private([*findings, another]) <= kept_private(findings) <= 1.0


@given(FINDINGS, st.randoms())
def test_order_does_not_matter(findings: list[tuple[float, float]], random: object) -> None:
    shuffled = list(findings)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert kept_private(shuffled) == kept_private(findings)


@pytest.mark.parametrize("bad", [(1.1, 0.5), (0.5, -0.1), (float("nan"), 0.5), (0.5, float("inf"))])
def test_what_is_no_share_is_refused(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="kept_private: weight and confidence must be from 0 to 1"):
        kept_private([bad])


@pytest.mark.parametrize(("leaked", "available", "expected"), [(0, 3, 1.0), (3, 3, 0.0), (1, 4, 0.75), (0, 0, None)])
def test_share_held_back(leaked: int, available: int, expected: float | None) -> None:
    assert share_held_back(leaked, available) == expected


@pytest.mark.parametrize(("leaked", "available"), [(2, 1), (-1, 1), (1, 0)])
def test_more_leaked_than_available_is_refused(leaked: int, available: int) -> None:
    with pytest.raises(ValueError, match="leaked must be from 0 to available"):
        share_held_back(leaked, available)
