"""Values that Python printed into a text: read as Python reads them, whatever else is there costs next to nothing."""

from __future__ import annotations

import ast
import json
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.formats.chats.autogen import _printed_objects
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.datasets import recorded_rows
from agentunit.datasets.recorded_rows import ROWS
from agentunit.traces.limits import LimitExceeded
from agentunit.traces.python_literals import python_literal
from agentunit.traces.reading import TraceFiles

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
PRINTED = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner))


@given(PRINTED)
def test_what_python_prints_is_read_as_python_reads_it(value: Any) -> None:
    assert python_literal(repr(value)) == ast.literal_eval(repr(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("('a', ('b',), ())", ["a", ["b"], []]),
        ("[('a')]", ["a"]),
        ("['a'\n 'b' 'c']", ["a", "b", "c"]),
        ("['it\\'s', \"it's\"]", ["it's", "it's"]),
    ],
)
def test_tuples_are_lists_and_arrays_have_no_commas(text: str, value: Any) -> None:
    assert python_literal(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "[", "['a'", "[b'raw']", "[{[]: 1}]", "[1+1]", "[1 2]", "['''a''']", "{1, 2}", "[] []", "[1,,2]", "[007]",
     "[" * 5000, "f()", "[open('x')]", "['a' 1]", "{'a'}", "('a' 'b')", "[" + "9" * 5000 + "]", "['\\x']"],
)  # fmt: skip
def test_what_python_would_not_print_is_refused(text: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        python_literal(text)


def test_a_list_takes_no_more_than_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("[" + "1+" * 100_000 + "1]", "[" + "1," * 100_000 + "]"):
        tracemalloc.start()
        with suppress(ValueError):
            python_literal(text)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10 * len(text)
    monkeypatch.setenv("AGENTUNIT_MAX_NODES", "1000")
    with pytest.raises(LimitExceeded, match="more than 1,000 values"):
        python_literal("[" + "1," * 1001 + "]")


def test_objects_that_a_console_prints_take_no_more_than_their_values() -> None:
    tracemalloc.start()
    assert _printed_objects("[Function" + "+1" * 100_000 + "]") == []
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def read(path: Path) -> tuple[list[Record], list[InputError]]:
    found = list(TraceFiles([path], format=ROWS.name))
    return [each for each in found if isinstance(each, Record)], [
        each for each in found if isinstance(each, InputError)
    ]


@pytest.mark.parametrize("cell", ["[b'raw']", "[{[]:1}]", "[{1, 2}]", "[1+1]"])
def test_a_cell_that_is_no_list_is_a_text_and_costs_no_other_row(tmp_path: Path, cell: str) -> None:
    rows = [f'q{number},a,"{cell if number == 3 else "one"}"\n' for number in range(1, 11)]
    (tmp_path / "rows.csv").write_text("question,response,contexts\n" + "".join(rows))
    records, errors = read(tmp_path / "rows.csv")
    assert (len(records), errors) == (10, [])
    assert records[2].case.context == [cell]


def test_a_row_with_too_many_values_costs_no_other_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_MAX_NODES", "1000")
    # Lines within a cell, so that no line alone has too many.
    lists = ["[" + ",\n".join(["1"] * n) + "]" for n in (2, 2_000, 200_000, 2)]
    rows = [f'q,a,"{cell}"\n' for cell in lists]
    (tmp_path / "rows.csv").write_text("question,response,contexts\n" + "".join(rows))
    records, errors = read(tmp_path / "rows.csv")
    assert (len(records), len(errors)) == (3, 1)
    assert "more than 1,000 values" in errors[0].reason


def test_columns_of_one_name_at_two_levels_cost_no_row(tmp_path: Path) -> None:
    rows = [{"question": "q", "response": "a", "inputs": "x", "inputs.y": 1}, {"question": "q", "response": "a"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    records, errors = read(tmp_path / "rows.jsonl")
    assert (len(records), errors) == (2, [])


def test_a_row_that_no_reader_foresaw_costs_no_other_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(fields: dict[str, Any], _: Any) -> Any:
        if fields["question"] == "q3":
            raise TypeError("odd")
        return mapped_fields(fields, _)

    mapped_fields = recorded_rows.mapped_fields
    monkeypatch.setattr(recorded_rows, "mapped_fields", failing)
    (tmp_path / "rows.csv").write_text("question,response\n" + "".join(f"q{n},a\n" for n in range(1, 11)))
    records, errors = read(tmp_path / "rows.csv")
    assert (len(records), [(each.line, each.reason) for each in errors]) == (
        9,
        [(4, "cannot be read (TypeError: odd)")],
    )
