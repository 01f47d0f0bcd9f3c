from __future__ import annotations

import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.reports.printable import clipped, printable, printable_line, xml_safe

ANY_TEXT = st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("\x1b[31mred\x1b[0m", "·[31mred·[0m"),
        ("\x9b31m", "·31m"),  # the one-byte form of ESC [
        ("\x07\x08\x7f", "···"),
        ("abc\u202edcba", "abc·dcba"),  # turns the rest of the line round
        ("col1\tcol2", "col1    col2"),
        ("👩‍👩‍👧 naïve 你好 ﬁ", "👩‍👩‍👧 naïve 你好 ﬁ"),  # joiners inside emoji stay
        ("\ud800", "·"),
    ],
)
def test_what_would_steer_a_terminal_becomes_a_dot(text, shown):
    assert printable(text) == shown


@given(ANY_TEXT)
def test_no_control_character_but_the_newline_is_left(text):
    shown = printable(text)
    assert not any(unicodedata.category(each) in ("Cc", "Cs") and each != "\n" for each in shown)
    shown.encode()


@given(ANY_TEXT, st.integers(1, 20))
def test_a_line_is_one_line_of_at_most_its_length(text, most):
    line = printable_line(text, most)
    assert "\n" not in line
    assert len(line) <= most


@given(st.text(st.characters(codec=None, min_codepoint=0)))
def test_xml_takes_what_is_xml_safe(text):
    from xml.sax.saxutils import escape

    ElementTree.fromstring(f"<a>{escape(xml_safe(text))}</a>")


@given(st.text(), st.integers(0, 10))
def test_clipping_loses_nothing_silently(text, most):
    shown, left_off = clipped(text, most)
    assert len(shown) + left_off == len(text)
    assert text.startswith(shown)
