from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.text import share_true, token_overlap, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n.,!", []),
        ("The cat", ["the", "cat"]),
        ("It's 4 o'clock", ["it", "s", "4", "o", "clock"]),
        ("snake_case kebab-case", ["snake_case", "kebab", "case"]),
        ("Zoë STRASSE straße", ["zoë", "strasse", "strasse"]),
        ("東京 タワー", ["東京", "タワー"]),
        ("3.5", ["3", "5"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text())
def test_words_are_the_same_whatever_the_case_of_plain_letters(text: str) -> None:
    plain = text.encode("ascii", "ignore").decode()
    assert words(plain.upper()) == words(plain.lower()) == words(plain)
    assert words(" ".join(words(plain))) == words(plain)


@pytest.mark.parametrize(
    ("flags", "share"),
    [([], None), ([True], 1.0), ([False], 0.0), ([True, False], 0.5), ([True, False, True, True], 0.75)],
)
def test_share_true(flags: list[bool], share: float | None) -> None:
    assert share_true(flags) == share


@given(st.lists(st.booleans(), min_size=1))
def test_shares_of_true_and_false_make_one(flags: list[bool]) -> None:
    share, rest = share_true(flags), share_true([not flag for flag in flags])
    assert share is not None
    assert rest is not None
    assert 0.0 <= share <= 1.0
    assert share + rest == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("reference", "candidate", "overlap"),
    [
        ("the cat sat", "the cat sat", (1.0, 1.0, 1.0)),
        ("the cat sat", "The CAT, sat!", (1.0, 1.0, 1.0)),
        ("the cat sat", "a dog ran", (0.0, 0.0, 0.0)),
        ("the cat sat", "the cat ran away", (2 / 4, 2 / 3, 4 / 7)),  # 2PR / (P + R) = 2m / (n + k)
        ("a a b", "a b b b", (2 / 4, 2 / 3, 4 / 7)),  # shared: one a, one b
        ("a", "a a a", (1 / 3, 1.0, 0.5)),
        ("", "a", None),
        ("a", "?!", None),
        ("", "", None),
    ],
)
def test_token_overlap(reference: str, candidate: str, overlap: tuple[float, float, float] | None) -> None:
    assert token_overlap(reference, candidate) == (None if overlap is None else pytest.approx(overlap))


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8)


@given(WORDS, WORDS)
def test_overlap_equals_the_count_of_shared_words(reference: list[str], candidate: list[str]) -> None:
    overlap = token_overlap(" ".join(reference), " ".join(candidate))
    if not reference or not candidate:
        assert overlap is None
        return
    assert overlap is not None
    precision, recall, f1 = overlap
    shared = (Counter(reference) & Counter(candidate)).total()
    assert (precision, recall) == (shared / len(candidate), shared / len(reference))
    assert f1 == pytest.approx(2 * shared / (len(reference) + len(candidate)))
    assert min(precision, recall) - 1e-12 <= f1 <= max(precision, recall) + 1e-12


@given(WORDS, WORDS)
def test_precision_and_recall_swap_with_the_texts(one: list[str], other: list[str]) -> None:
    forth = token_overlap(" ".join(one), " ".join(other))
    back = token_overlap(" ".join(other), " ".join(one))
    if forth is None or back is None:
        assert forth is back
    else:
        assert (forth[0], forth[1]) == (back[1], back[0])
        assert forth[2] == pytest.approx(back[2])
