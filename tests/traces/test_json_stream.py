from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentunit.core.results import InputError
from agentunit.traces.compressed import decompressed
from agentunit.traces.formats_base import Source
from agentunit.traces.json_files import cursor as json_cursor
from agentunit.traces.json_files.cursor import DamagedJson, JsonCursor, UnfitValue
from agentunit.traces.json_files.stream import RawValue, json_values

CUT_OFF = "the file ends in the middle of a value: it was cut off, or is still being written"
BROKEN_LINE = "the line ends in the middle of a value"


def source(data: bytes) -> Source:
    return Source("f.json", io.BufferedReader(io.BytesIO(data)))


def read(data: bytes, into: tuple[str, ...] = ()) -> tuple[list[Any], list[InputError]]:
    values, errors = [], []
    for found in json_values(source(data), into):
        if isinstance(found, RawValue):
            values.append(json.loads(found.data))
        else:
            errors.append(found)
    return values, errors


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads so few bytes at a time that every value is cut by the end of a buffer."""

    def of(n_bytes: int) -> None:
        monkeypatch.setattr(json_cursor, "LOOK_BYTES", 0)
        monkeypatch.setattr(json_cursor, "CHUNK_BYTES", n_bytes)

    return of


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b" \n\t ", []),
        (b"\xef\xbb\xbf{}", [{}]),
        (b'\xef\xbb\xbf\n [1, "a", null, true, -2.5e3, {"b": []}] \n', [1, "a", None, True, -2500.0, {"b": []}]),
        (b'{"a": 1}', [{"a": 1}]),
        (b'{"a": 1}\n\n{"a": 2}\r\n{"a": 3}', [{"a": 1}, {"a": 2}, {"a": 3}]),
        (b'{"a": 1}{"a": 2} [3]', [{"a": 1}, {"a": 2}, 3]),
        (b'{\n  "a": [\n    1\n  ]\n}\n{\n  "a": 2\n}\n', [{"a": [1]}, {"a": 2}]),
        (b'[\n{"a": 1},\n{"a": 2}\n]\n', [{"a": 1}, {"a": 2}]),
        (b"[1]\n[2, 3]\n", [[1], [2, 3]]),
        (b"[[1], [2]]", [[1], [2]]),
        (b"[]", []),
        (b'1 "two" null', [1, "two", None]),
        (rb'["\"]}", "\\", "{[", "\\\""]', ['"]}', "\\", "{[", '\\"']),
        (b"[" * 60 + b"]" * 60, [json.loads("[" * 59 + "]" * 59)]),
    ],
)
def test_every_layout_of_a_file_gives_its_values(data: bytes, expected: list[Any]) -> None:
    assert read(data) == (expected, [])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"data": [1, 2], "meta": {}}', [1, 2]),
        (b'{"meta": {"data": [0]}, "data": [1]}', [1]),
        (b'{"data": {"a": 1}}', [{"data": {"a": 1}}]),
        (b'{"a": "\\"data\\"", "b": 2}', [{"a": '"data"', "b": 2}]),
        (b'{"spans": [1]}\n{"x": 1}\n{"data": [2]}', [1, {"x": 1}, 2]),
        (b'[{"data": [1]}]', [{"data": [1]}]),
    ],
)
@pytest.mark.parametrize("n_bytes", [1, 3, 1 << 20])
def test_named_arrays_are_walked_into(data: bytes, expected: list[Any], n_bytes: int, small_chunks: Any) -> None:
    small_chunks(n_bytes)

    assert read(data, ("data", "spans")) == (expected, [])


@pytest.mark.parametrize(
    ("data", "expected", "errors"),
    [
        (b'{"a": 1}\nsome text\n{"a": 2}\n', [{"a": 1}, {"a": 2}], [(2, "not JSON from here on: 'some text'")]),
        (b'{"a": 1}\n{"a": "cut\n{"a": 2}\n', [{"a": 1}, {"a": 2}], [(2, BROKEN_LINE)]),
        (b'{"a": 1}\n{"a": [1,\n{"a": 2}\n', [{"a": 1}, {"a": 2}], [(2, BROKEN_LINE)]),
        (b'{"a": "cut\n{"a": 2}\n{"a": 3}', [{"a": 2}, {"a": 3}], [(1, BROKEN_LINE)]),
        (b'{"a": 1} x\n{"a": 2}\n', [{"a": 1}, {"a": 2}], [(1, "not JSON from here on: 'x'")]),
        (b'{"a": 1}\n{"a": 2}\n{"a"', [{"a": 1}, {"a": 2}], [(3, CUT_OFF)]),
        (b'[{"a": 1}, {"a": 2}, {"a"', [{"a": 1}, {"a": 2}], [(1, CUT_OFF)]),
        (b"[1, 2", [1], [(1, CUT_OFF)]),
        (b"[1, 2,", [1, 2], [(1, CUT_OFF)]),
        (b'[\n{"a": 1},\n{"a": }},\n{"a": 2}\n]', [{"a": 1}, {"a": 2}], None),
        (
            b'{"a": 1}\nx\ny\nz\n{"a": 2}\n',
            [{"a": 1}, {"a": 2}],
            [(2, "not JSON from here on: 'x'; left out up to line 4")],
        ),
        (b"hello", [], [(1, "not JSON from here on: 'hello'")]),
        (b'\x00\x01{"a": 1}', [], [(1, "not JSON from here on: '\\x00\\x01{\"a\": 1}'")]),
    ],
)
def test_damage_costs_its_line_and_is_told(data: bytes, expected: Any, errors: list[tuple[int, str]] | None) -> None:
    values, found = [], []
    for each in json_values(source(data)):
        if isinstance(each, InputError):
            found.append((each.line, each.reason))
        else:
            try:
                values.append(json.loads(each.data))
            except ValueError:
                assert errors is None

    assert values == expected
    assert found == errors if errors is not None else found


def test_lines_and_positions_are_where_values_begin() -> None:
    found = list(json_values(source(b'\n{"a":\n1}\n{"b": 2}')))

    assert [(each.position, each.line) for each in found if isinstance(each, RawValue)] == [(1, 2), (2, 4)]


def test_a_value_nested_too_deeply_is_left_out_and_the_rest_read() -> None:
    values, errors = read(b"[1, " + b"[" * 600 + b"]" * 600 + b", 2]")

    assert values == [1, 2]
    assert [error.reason for error in errors] == ["a value is nested 600 levels deep, more than 500, and is left out"]


@pytest.mark.parametrize(
    "long", [b'"' + b"x\\n" * 5000 + b'"', b"[" + b"1," * 5000 + b"1]", b'{"a": {"b": "' + b"y" * 9999]
)
def test_a_value_that_is_too_long_is_left_out_and_not_held(
    long: bytes, monkeypatch: pytest.MonkeyPatch, small_chunks: Any
) -> None:
    small_chunks(100)
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", str(1 / 256))
    closing = b'"}}' if long.startswith(b"{") else b""

    found = list(json_values(source(b"[1, [" + long + closing + b"], 2]")))

    assert [each.data for each in found if isinstance(each, RawValue)] == [b"1", b"2"]
    assert [each.reason for each in found if isinstance(each, InputError)] == [
        "a value is longer than 0.00390625 MiB (the environment variable AGENTUNIT_MAX_ITEM_MB raises this limit)"
        " and is left out"
    ]


def test_a_text_that_is_too_long_does_not_stop_a_walk(monkeypatch: pytest.MonkeyPatch, small_chunks: Any) -> None:
    small_chunks(100)
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", str(1 / 256))
    cursor = JsonCursor(source(b'{"a": "' + b'\\"{' * 5000 + b'", "b": 1}'))

    assert [cursor.value() for name in cursor.members() if name == "b"] == [b"1"]


def test_a_broken_compressed_file_gives_what_is_whole_and_says_so() -> None:
    lines = b"".join(b'{"n": %d, "text": "%s"}\n' % (n, bytes([97 + n % 26]) * n) for n in range(3000))
    packed = gzip.compress(lines)

    found = list(json_values(Source("f", decompressed(io.BytesIO(packed[: len(packed) // 2])))))

    assert isinstance(found[-1], InputError)
    assert found[-1].reason.startswith("the compressed file is cut off or damaged here (")
    assert len(found) > 100
    assert (
        b"".join(each.data + b"\n" for each in found[:-1] if isinstance(each, RawValue))
        == lines[: sum(len(each.data) + 1 for each in found[:-1] if isinstance(each, RawValue))]
    )


def test_a_walk_skips_what_is_not_taken_and_damage_shows_in_it() -> None:
    cursor = JsonCursor(source(b'{"a": [1, {"b": 2}], "\\u0063": 3, "d": "x"} {"a" 1}'))

    taken = {name: cursor.value() for name in cursor.members() if name != "a"}

    assert taken == {"c": b"3", "d": b'"x"'}
    assert cursor.begin() == ord("{")
    with pytest.raises(DamagedJson, match="not JSON from here on: '1}'"):
        list(cursor.members())


texts = st.text(alphabet=st.sampled_from('ab"\\{}[],:\n\té€😀 0'), max_size=8)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def encoded(value: Any, style: int) -> bytes:
    separators = ((",", ":"), (", ", ": "))[style % 2]
    indent = None if style < 2 else 1
    return json.dumps(value, ensure_ascii=style % 2 == 0, indent=indent, separators=separators).encode()


def cursor_values(data: bytes, n_bytes: int) -> list[Any]:
    cursor = JsonCursor(source(data), n_bytes)
    values = [json.loads(cursor.value()) for _ in cursor.elements()]
    assert cursor.peek() == json_cursor.END
    return values


@settings(max_examples=300, deadline=None)
@given(st.lists(documents, max_size=5), st.integers(0, 3), st.data())
def test_any_array_gives_its_elements_whatever_the_chunks(values: list[Any], style: int, data: st.DataObject) -> None:
    document = encoded(values, style)
    n_bytes = data.draw(st.integers(1, len(document) + 1))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_cursor, "LOOK_BYTES", 0)
        assert cursor_values(document, n_bytes) == values


alike = st.recursive(
    st.integers(0, 9) | st.sampled_from(['{"a":', ',{"a":1}', "}, {"]),
    lambda inner: st.lists(inner, max_size=3) | st.fixed_dictionaries({"a": inner}, optional={"b": inner}),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.fixed_dictionaries({"a": alike}, optional={"b": alike}), max_size=8), st.integers(0, 3), st.data())
def test_elements_that_begin_alike_are_not_mixed_up(values: list[Any], style: int, data: st.DataObject) -> None:
    document = encoded(values, style) + b" 7"
    n_bytes = data.draw(st.integers(1, len(document) + 1))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_cursor, "LOOK_BYTES", 0)
        cursor = JsonCursor(source(document), n_bytes)
        assert [json.loads(each) for each in cursor.values() if isinstance(each, bytes)] == values
        assert cursor.value() == b"7"


def test_damage_among_elements_that_begin_alike_costs_no_element_before_it() -> None:
    elements = [b'{"a":%d}' % number for number in range(9)]
    elements[5] = b'{"a":"5}'

    values, errors = read(b"[" + b",".join(elements) + b"]")

    assert values == [{"a": number} for number in range(5)]
    assert len(errors) == 1


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.dictionaries(texts, documents, max_size=3) | st.lists(documents, max_size=3), min_size=2, max_size=5)
)
def test_any_lines_give_their_values(values: list[Any]) -> None:
    document = b"\n".join(encoded(value, 0) for value in values)

    assert read(document) == (values, [])


@settings(max_examples=300, deadline=None)
@given(st.lists(documents, max_size=5), st.integers(0, 3), st.data())
def test_a_cut_never_gives_a_damaged_element(values: list[Any], style: int, data: st.DataObject) -> None:
    document = encoded(values, style)
    cut = data.draw(st.integers(1, len(document) - 1))

    found, errors = read(document[:cut])

    assert found == values[: len(found)]
    assert len(errors) == 1


@settings(max_examples=300, deadline=None)
@given(st.lists(documents, max_size=4), st.integers(0, 3), st.data())
def test_any_damage_is_met_without_an_exception(values: list[Any], style: int, data: st.DataObject) -> None:
    document = bytearray(encoded(values, style))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(document) - 1))
        document[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        document += b" "

    for found in json_values(source(bytes(document)), ("a",)):
        assert found.reason if isinstance(found, InputError) else found.data


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_met_without_an_exception(data: bytes) -> None:
    cursor = JsonCursor(source(data), 7)
    while cursor.begin() != json_cursor.END:
        before = cursor.offset
        try:
            cursor.value()
        except UnfitValue:
            pass
        except DamagedJson as damage:
            cursor.recover(damage)
        assert cursor.offset > before
