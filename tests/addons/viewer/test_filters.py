from __future__ import annotations

import json
from array import array
from math import nan
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.addons.viewer.filters import VERDICT_LETTERS, FilterError, parse_filter

CASES = json.loads((Path(__file__).resolve().parents[3] / "viewer" / "filter_cases.json").read_text(encoding="utf-8"))


class Rows:
    """The rows that the filters of the browser are tested with, too."""

    n_rows = len(CASES["rows"])

    def names(self):
        return CASES["columns"]

    def numbers(self, name):
        return array("d", [nan if row[name] is None else row[name] for row in CASES["rows"]])

    def texts(self, name):
        return [row[name] for row in CASES["rows"]]

    def verdicts(self):
        return "".join(VERDICT_LETTERS[row["verdict"] or "unknown"] for row in CASES["rows"]).encode()


@pytest.mark.parametrize("each", CASES["filters"], ids=lambda each: each["text"])
def test_a_filter_keeps_what_it_says(each):
    wanted = parse_filter(each["text"], CASES["columns"])(Rows())
    assert [row["id"] for row, kept in zip(CASES["rows"], wanted, strict=True) if kept] == each["wanted"]


@pytest.mark.parametrize("each", CASES["refused"], ids=lambda each: each["text"])
def test_what_is_no_filter_is_refused_at_its_place(each):
    with pytest.raises(FilterError) as refused:
        parse_filter(each["text"], CASES["columns"])
    assert refused.value.at == each["at"]


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["faithfulness", "<", "1", "and", "or", "not", "(", ")", "is", "known", "'a'", "~", "`"]))
)
def test_whatever_is_typed_is_a_filter_or_refused(words):
    text = " ".join(words)
    try:
        places, kept = [], parse_filter(text, CASES["columns"])(Rows())
    except FilterError as error:
        places, kept = [error.at], b""
    assert set(kept) <= {0, 1}
    assert all(0 <= place <= len(text) for place in places)


def test_deep_and_long_filters_are_refused():
    for text in ("(" * 100 + "faithfulness < 1" + ")" * 100, "not " * 60 + "faithfulness < 1", "x" * 3_000):
        with pytest.raises(FilterError):
            parse_filter(text, CASES["columns"])
