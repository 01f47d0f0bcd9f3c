from __future__ import annotations

import json
import re
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.growth import growth

from agentunit.reports.printable import clipped, printable, printable_json, printable_line, xml_safe

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


@pytest.mark.parametrize("part", ["#", "a" + "#" * 9, ":", "a:", "#\u00ad", ":\u200b", "::error"])
def test_the_time_to_disarm_a_text_grows_with_its_length(part):
    assert growth(lambda times: printable("a" + part * times), 4_000) < 9


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


@pytest.mark.parametrize(
    "hostile",
    [
        "::error file=x::boo",
        "  ::set-output name=a::b",
        "text\n::add-mask::b",
        "text\r::warning::b",
        "\u200b::error::b",
        ":\u200b:error::b",
        ":::error::b",
        "\x1b[0m::error::b",
        "xxxx::stop-commands::token",
        "anywhere ##[error]boo",
        "###[group]boo",
        "##vso[task.setvariable variable=a]b",
    ],
)
def test_what_a_ci_log_would_obey_is_broken_up_however_a_console_folds_it(hostile):
    for shown in (printable(hostile), printable_line(hostile)):
        for start in range(len(shown)):
            # A console may start a line at any character; the log leaves out what nobody sees.
            for line in shown[start:].replace("\u200b", "").splitlines():
                assert not re.match(r"\s*::(?:error|set-output|add-mask|warning|stop-commands)\b", line)
                assert not re.search(r"##\w*\[", line)


@pytest.mark.parametrize(
    "plain", ["std::vector", "tests/test_a.py::TestB::test_c", "fe80::1", "# title ## more", "a: b"]
)
def test_plain_text_with_colons_and_hashes_stays(plain):
    assert printable(plain) == plain


def test_json_for_standard_output_is_the_same_data():
    data = {"answer": "::error::x\n##[error] ##vso[x]", "back": "\\##["}
    text = printable_json(data)
    assert "##" not in text
    assert json.loads(text) == data
