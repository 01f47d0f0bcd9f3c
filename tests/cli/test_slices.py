from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agentunit.engine.scoring.case_fields import check_field, field_values
from agentunit.engine.scoring.slices import MOST_SLICES, NO_VALUE, OTHER, Slices
from agentunit.metrics.base import MetricInfo

INFO = MetricInfo("m", "custom", "", range=(0.0, 1.0))


def filled(values: dict[str, list[float]], info: MetricInfo = INFO) -> Slices:
    slices = Slices("metadata.kind")
    for kind, of_kind in values.items():
        for value in of_kind:
            slices.add(slices.begin_case({"kind": kind}), "m", info, "check", "ok", value)
    return slices


def test_a_slice_is_measured_against_all_other_cases():
    # All six values: mean 0.5, sample variance 6 · 0.25 / 5 = 0.3.
    rows = {row.slice: row for row in filled({"a": [0, 0, 1], "b": [1, 1, 0]}).rows()}
    assert rows["a"].mean == pytest.approx(1 / 3)
    assert rows["a"].rest_mean == pytest.approx(2 / 3)
    assert rows["a"].difference == pytest.approx(-(1 / 3) / 0.3**0.5)
    assert rows["a"].interval == "wilson"
    assert rows["a"].too_small


def test_what_differs_most_comes_first_and_small_slices_last():
    # good: 1 against 5 of 18, bad: 0 against 12 of 19.
    rows = filled({"same": [1, 0] * 5, "bad": [0] * 6, "tiny": [0, 0], "good": [1] * 7}).rows()
    assert [(row.slice, row.too_small) for row in rows] == [
        ("good", False),
        ("bad", False),
        ("same", False),
        ("tiny", True),
    ]


def test_one_slice_has_no_rest_and_equal_values_do_not_differ():
    assert filled({"a": [1, 0]}).rows()[0].difference is None
    assert [row.difference for row in filled({"a": [1, 1], "b": [1, 1]}).rows()] == [0.0, 0.0]


def test_there_are_at_most_200_slices_and_the_others_are_one():
    rows = filled({str(n): [1.0] for n in range(MOST_SLICES + 50)}).rows()
    assert len(rows) == MOST_SLICES + 1
    assert next(row for row in rows if row.slice == OTHER).n_cases == 50


def test_a_slice_without_a_value_is_shown():
    slices = filled({"a": [1, 0]})
    slices.begin_case({"kind": "failed"})
    row = slices.rows()[-1]
    assert (row.slice, row.n_cases, row.n_scored, row.mean) == ("failed", 1, 0, None)


def test_a_balance_of_the_run_is_not_cut_into_slices():
    assert filled({"a": [1, 0]}, MetricInfo("m", "custom", "", aggregate="last")).rows() == []


@pytest.mark.parametrize(
    ("metadata", "field", "expected"),
    [
        ({"a": {"b": 1}}, "metadata.a.b", ("1",)),
        ({"a.b": True}, "metadata.a.b", ("true",)),
        ({"a": {"b.c": "x"}}, "metadata.a.b.c", ("x",)),
        ({"a": "text"}, "metadata.a.b", ()),
        ({"a": ["x", "y", "x"]}, "metadata.a", ("x", "y")),
        ({"tag": "x"}, "tag", ("x",)),
        (None, "tag", ()),
        ({"a": ""}, "metadata.a", ()),
    ],
)
def test_fields_of_cases(metadata, field, expected):
    assert field_values(metadata, field) == expected


@pytest.mark.parametrize("field", ["category", "metadata", "metadata.", "metadata.a..b", "", "query"])
def test_other_fields_are_refused(field):
    with pytest.raises(ValueError, match=r"metadata\.NAME"):
        check_field(field)


SUITE = """
from agentunit import Suite

KINDS = ["billing", "refund", "login"]
cases = [
    {"id": f"c{n}", "query": kind, "expected_output": "yes", "metadata": {"kind": kind, "mail": "a@b.example"}}
    for n, kind in enumerate(KINDS * 10)
]
suite = Suite(cases, lambda query: "no" if query == BAD else "yes", metrics=["exact_match"], repeats=REPEATS)
"""


@pytest.fixture
def two_runs(invoke, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    for bad, repeats, exit_code in (("''", 1, 0), ("'refund'", 2, 1)):
        Path("suite.py").write_text(SUITE.replace("BAD", bad).replace("REPEATS", str(repeats)))
        assert invoke("run", "suite.py").exit_code == exit_code
    return invoke


def rows_of(result) -> list[tuple[str, int, float]]:
    data = json.loads(result.stdout)["slices"]
    assert data["by"] == "metadata.kind"
    return [(row["slice"], row["n_scored"], row["mean"]) for row in data["rows"]]


EXPECTED = [("refund", 10, 0.0), ("billing", 10, 1.0), ("login", 10, 1.0)]


def test_stored_runs_and_files_by_slice(two_runs):
    assert rows_of(two_runs("show", "last", "--by", "metadata.kind", "--json")) == EXPECTED
    assert rows_of(two_runs("score", "last", "-m", "exact_match", "--by", "metadata.kind", "--json")) == EXPECTED
    assert two_runs("export", "last", "--to", "run.json").exit_code == 0
    assert rows_of(two_runs("show", "run.json", "--by", "metadata.kind", "--json")) == EXPECTED
    records = [
        {"case": {"id": str(n), "expected_output": "a", "metadata": {"kind": kind}}, "outcome": "a" if n % 2 else "b"}
        for n, kind in enumerate(["x", "y"] * 6)
    ]
    Path("traces.jsonl").write_text("\n".join(map(json.dumps, records)))
    scored = two_runs("score", "traces.jsonl", "-m", "exact_match", "--by", "metadata.kind", "--json")
    assert rows_of(scored) == [("x", 6, 0.0), ("y", 6, 1.0)]


def test_changes_by_slice(two_runs):
    result = two_runs("compare", "last~1", "last", "--by", "metadata.kind", "--json")
    assert [row for row in rows_of(result) if row[2]] == [("refund", 10, -1.0)]
    printed = two_runs("compare", "last~1", "last", "--by", "metadata.kind").stdout
    assert "By metadata.kind   new run − baseline" in printed
    assert printed.index("refund") < printed.index("billing")


def test_slices_in_the_terminal(two_runs):
    printed = two_runs("show", "last", "--by", "metadata.kind").stdout
    assert "exact_match  refund   0.00 [0.00, 0.28]   10/10       -2.09 sd" in printed
    assert "not tested" in printed
    assert "<EMAIL_1>" in two_runs("show", "last", "--by", "metadata.mail").stdout
    assert "no scored case has a value of metadata.knd" in two_runs("show", "last", "--by", "metadata.knd").stdout
    assert two_runs("show", "last", "--by", "kind").exit_code == 2


def test_ten_rows_unless_all_are_asked_for(invoke):
    records = [
        {"case": {"id": str(n), "expected_output": "a", "metadata": {"kind": n % 15}}, "outcome": "a"}
        for n in range(90)
    ]
    Path("traces.jsonl").write_text("\n".join(map(json.dumps, records)))
    arguments = ("score", "traces.jsonl", "-m", "exact_match", "--by", "metadata.kind")
    assert "… and 5 more rows (--why shows them)" in invoke(*arguments).stdout
    assert "more rows" not in invoke(*arguments, "--why").stdout


def test_cases_without_the_field_are_a_slice_of_their_own():
    assert Slices("tag").begin_case({}) == (NO_VALUE,)


def test_of_differences_the_slices_that_changed_most_come_first():
    # "still" is far from the rest because the rest moved.
    slices = filled({"still": [0.0] * 8, "worse": [0.0] * 5 + [-1.0], "also": [0.0] * 5 + [-1.0]})
    rows = slices.rows(differences=True)
    assert [row.slice for row in rows] == ["worse", "also", "still"]
    assert (rows[-1].mean, rows[-1].low, rows[-1].high) == (0.0, None, None)


def test_a_field_that_no_case_has_is_told_with_those_that_there_are(invoke, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("suite.py").write_text(
        "from agentunit import Suite\n"
        "cases = [{'id': str(n), 'query': 'x', 'metadata': {'kind': 'a', 'tier': n}} for n in range(3)]\n"
        "suite = Suite(cases, lambda query: query, metrics=['response_time'])\n"
    )
    assert invoke("run", "suite.py").exit_code == 0
    shown = invoke("show", "last", "--by", "metadata.nope").stdout
    assert "no scored case has a value of metadata.nope; cases have metadata.kind, metadata.tier" in shown
