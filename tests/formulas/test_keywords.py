from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.formulas.text import keywords_found, modality_coherence


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The image is dark.", ["image"]),
        ("IMAGE, and in  addition: sound", ["image", "in addition"]),
        ("imagery and addition", []),  # parts of words do not count
        ("in no addition", []),  # nor do the words of a phrase apart
        ("image_path", []),
        ("", []),
    ],
)
def test_whole_words_and_phrases(text: str, found: list[str]) -> None:
    assert keywords_found(["image", "in addition"], text) == found


@pytest.mark.parametrize(
    ("referenced", "present", "transition", "value"),
    [
        (0, 1, False, 0.0),
        (1, 1, False, 0.6),
        (1, 1, True, 1.0),
        (0, 3, True, 0.4),
        (2, 3, True, 0.8),
        (0, 0, True, None),
    ],
)
def test_the_formula(referenced: int, present: int, transition: bool, value: float | None) -> None:
    assert modality_coherence(referenced, present, transition) == (None if value is None else pytest.approx(value))


@given(st.integers(0, 4), st.integers(1, 4), st.booleans())
def test_more_references_never_lower_it(referenced: int, present: int, transition: bool) -> None:
    value = modality_coherence(min(referenced, present), present, transition)
    more = modality_coherence(min(referenced + 1, present), present, transition)
    assert value is not None
    assert more is not None
    assert 0 <= value <= more <= 1
