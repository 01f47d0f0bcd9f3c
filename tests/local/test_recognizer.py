"""The learned recognizer: tokens of every script, windows, and what it finds where its weights are installed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from agentunit_local.recognizer.entities import LONGEST, WEIGHTS, Recognizer, promising
from agentunit_local.recognizer.tokens import BUCKETS, PIECES, cut, pieces
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.privacy.detectors import detector_named

with_weights = pytest.mark.skipif(not WEIGHTS.is_file(), reason=f"no weights of the recognizer at {WEIGHTS.name}")


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60))
def test_tokens_cover_every_letter_once_and_in_order(text: str) -> None:
    tokens = cut(text)
    assert all(before.end <= after.start for before, after in pairwise(tokens))
    covered = {place for token in tokens for place in range(token.start, token.end)}
    assert all(place in covered for place, letter in enumerate(text) if letter.isalnum())
    for token in tokens:
        rows = pieces(text[token.start : token.end])
        assert len(rows) == PIECES
        assert 0 < rows[0] < BUCKETS
        assert all(0 <= row < BUCKETS for row in rows)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("김민준은", ["김", "민", "준", "은"]),
        ("सुनीता, नमस्ते", ["सुनीता", ",", "नमस्ते"]),
        ("Đình-Phúc's 12b", ["Đình", "-", "Phúc", "'", "s", "12", "b"]),
        ("first_name=Mia", ["first", "_", "name", "=", "Mia"]),
    ],
)
def test_tokens_by_script(text: str, tokens: list[str]) -> None:
    assert [text[each.start : each.end] for each in cut(text)] == tokens


def test_what_holds_no_name_is_not_read() -> None:
    assert not promising("return x + 1")
    assert not promising("The parcel is late again.")
    assert promising("The parcel of Mia is late.")
    assert promising("الاجتماع غدا")


@with_weights
@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Yesterday Oluwaseun Adebayo signed the lease.", "person", "Oluwaseun Adebayo"),
        ("我叫王小明，想查询订单。", "person", "王小明"),
        ("שלום, שמי משה כהן ואני צריך עזרה.", "person", "משה כהן"),
        (
            "Please send it to 27 Maple Avenue, Springfield, IL 62704.",
            "address",
            "27 Maple Avenue, Springfield, IL 62704",
        ),
        ("She moved to Ljubljana last year.", "place", "Ljubljana"),
    ],
)
def test_entities_of_many_scripts(text: str, kind: str, value: str) -> None:
    ((entities),) = Recognizer().find([text])
    assert (kind, value) in [(each.kind, text[each.start : each.end]) for each in entities]


@with_weights
def test_a_long_text_is_read_to_its_end_and_a_batch_changes_nothing() -> None:
    text = "Nothing happened on that day, Ada wrote. " * 60 + "Then Kwame Mensah came."
    assert len(cut(text)) > 2 * LONGEST
    recognizer = Recognizer(threads=1)
    (alone,) = recognizer.find([text])
    assert text[alone[-1].start : alone[-1].end] == "Kwame Mensah"
    together = recognizer.find(["Hi Mia.", text, ""])
    assert [each[:3] for each in together[1]] == [each[:3] for each in alone]
    assert together[2] == []


@with_weights
def test_the_detector_adds_names_and_doubts_german_nouns() -> None:
    detector = detector_named("local", "test")
    texts = ["Guten Tag, der Sommer war lang und die Ernte gut.", "Frag bitte Wiesława Ogunleye-Brzęk."]
    nouns, name = detector.find(texts)
    assert nouns == []
    assert [texts[1][each.start : each.end] for each in name if each.type == "name"] == ["Wiesława Ogunleye-Brzęk"]


def test_without_weights_the_detector_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    from agentunit_local.recognizer import entities

    from agentunit.backends.quality import BackendUnavailable

    monkeypatch.setattr(entities, "shipped_recognizer", lambda: Recognizer(tmp_path / "none.onnx"))  # type: ignore[operator]
    with pytest.raises(BackendUnavailable, match="backend 'local' cannot run"):
        detector_named("local", "test")
