"""Rows with recorded answers, as evaluations of RAG write them: JSON Lines, JSON, CSV or Parquet, one record a row."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import Any, NamedTuple

import msgspec

from agentunit.core.codec import why_not_json
from agentunit.core.records import Outcome, Record
from agentunit.core.results import InputError, decode_json
from agentunit.core.trace import TraceLog
from agentunit.datasets.row_fields import LISTS, MERGED, RowFormat, holds_nothing, mapped_fields
from agentunit.datasets.rows import SPELLINGS, RowError, checked_case, listed, shown
from agentunit.datasets.tables import as_data, is_empty, parquet_rows, separated_rows
from agentunit.traces.compressed import replayed
from agentunit.traces.formats_base import Opening, Source, TraceFormat, cannot_be_read
from agentunit.traces.json_files.stream import file_rows
from agentunit.traces.limits import LimitExceeded
from agentunit.traces.places import names_in
from agentunit.traces.spans import ReadingNotes
from agentunit.urls import is_remote

# Where one thing has several names, the first that holds something is taken; the others stay metadata. What was
# retrieved comes before what should have been: it is what the answer rests on.
_ANSWER = "answer"
_RECORDED = ("response", "actual_output", "output", "prediction")
_RETRIEVED = ("retrieved_contexts", "retrieval_context", "contexts")
_EXPECTED = (
    *(name for name in SPELLINGS["expected_output"] if name != _ANSWER), "ground_truth", "ground_truths",
    "expected_answer",
)  # fmt: skip
_NAMES: dict[str, tuple[str, ...]] = {
    "id": SPELLINGS["id"],
    "query": ("user_input", *SPELLINGS["query"]),
    "expected_output": _EXPECTED,
    "output": _RECORDED,
    "context": (*_RETRIEVED, *SPELLINGS["context"], "reference_contexts"),
    "tools": SPELLINGS["tools"],
    MERGED: (*SPELLINGS["metadata"], "additional_metadata", "custom_column_key_values"),
}
_PLACE_OF = {name: place for place, names in _NAMES.items() for name in names}
_KNOWN = frozenset([*_PLACE_OF, _ANSWER])
# A row with one of these is a span, or holds a conversation or a whole trace.
_OF_TRACES = names_in(
    "trace messages events spans trajectory span_id spanId parent_id parent_run_id parent_span_id parentSpanId"
)
_JSON = (b"{", b"[")
_PARQUET = b"PAR1"
_START_BYTES = 1 << 12
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class _Row(NamedTuple):
    """A row by the plain spelling of its names, and the line or row of the file that it is."""

    fields: dict[str, Any]
    number: int | None


class _Roles:
    """What the name ``answer`` means in a file: the recorded answer, or the expected one.

    It is the expected answer next to another name for the recorded one, and the recorded one next to another name for
    the expected one. Next to neither it is what the reader was told, and next to both it is refused.

    >>> _Roles().of({"question", "answer", "ground_truth"}), _Roles().of({"question", "answer", "prediction"})
    ('output', 'expected_output')
    """

    def __init__(self) -> None:
        self._decided: str | None = None

    def of(self, names: Collection[str]) -> str:
        """The place of ``answer``, which all rows of a file share."""
        if _ANSWER not in names:
            return "output"
        found = _role_of_answer(names)
        if self._decided is None:
            self._decided = found or "output"
        elif found is not None and found != self._decided:
            meant = {"output": "the recorded answer", "expected_output": "the expected answer"}
            raise RowError(
                f"'answer' is {meant[found]} here, by the names next to it, and {meant[self._decided]} in rows before; "
                "give all rows the same names"
            )
        return self._decided


def _role_of_answer(names: Collection[str]) -> str | None:
    recorded = [name for name in _RECORDED if name in names]
    expected = [name for name in _EXPECTED if name in names]
    if recorded and expected:
        raise RowError(
            f"'answer' may be the recorded answer, as {recorded[0]!r} is, or the expected one, as {expected[0]!r} is; "
            "rename or remove one of the three"
        )
    return "expected_output" if recorded else "output" if expected else None


def _plain(name: str) -> str:
    """A name as the table spells it.

    >>> _plain("Expected Output"), _plain("actualOutput"), _plain("Team")
    ('expected_output', 'actual_output', 'Team')
    """
    plain = _CAMEL.sub("_", name.strip()).casefold().replace(" ", "_").replace("-", "_")
    return plain if plain in _KNOWN else name


def _plain_names(names: Iterable[Any]) -> list[str]:
    plain = [_plain(str(name)) for name in names]
    repeated = next((name for name, n_times in Counter(plain).items() if n_times > 1), None)
    if repeated is not None:
        raise RowError(f"the name {repeated!r:.80} is there twice")
    return plain


def _plainly_named(fields: Mapping[Any, Any]) -> dict[str, Any]:
    return dict(zip(_plain_names(fields), fields.values(), strict=True))


def _are_recorded(names: Collection[str]) -> bool:
    """Whether names are those of rows with recorded answers, beyond doubt or in a way that reading refuses."""
    if not _OF_TRACES.isdisjoint(names) or not any(name in names for name in _NAMES["query"]):
        return False
    return any(name in names for name in _RECORDED) or (_ANSWER in names and any(name in names for name in _EXPECTED))


def _matches(opening: Opening) -> bool:
    try:
        first = _first_fields(opening)
    except (RowError, LimitExceeded, UnicodeError):
        return False
    if first is None or not _are_recorded(first):
        return False
    # Of a table, names are all that is known here.
    asked = [first[name] for name in _NAMES["query"] if name in first]
    return opening.value is None or any(isinstance(each, str) for each in asked)


def _first_fields(opening: Opening) -> dict[str, Any] | None:
    """The first row of a file, or the names of its columns; ``None`` where neither can be told."""
    if opening.value is not None:
        rows = _rows_within(opening.value)
        return _plainly_named(rows[0]) if rows and isinstance(rows[0], Mapping) else None
    if opening.head.startswith(_PARQUET):
        return dict.fromkeys(map(_plain, _parquet_names(opening.path)))
    if opening.head.startswith(_JSON):
        return None
    _, header = next(separated_rows(io.BufferedReader(io.BytesIO(opening.head))), (0, []))
    return None if isinstance(header, RowError) else dict.fromkeys(map(_plain, header))


def _parquet_names(path: str) -> list[str]:
    """The columns of a Parquet file, which are written at its end."""
    if find_spec("pyarrow") is None:
        # Reading says which extra is missing.
        return [*_NAMES["query"][:1], *_RECORDED[:1]]
    try:
        if is_remote(path):
            return []
        with open(path, "rb") as stream, closing(parquet_rows(stream)) as rows:
            return list(next(rows)[1])
    except (OSError, RowError):
        return []


def unsure_about(opening: Opening) -> str | None:
    """Why rows with a question and an answer are not read as records by themselves; ``None`` for other files."""
    try:
        names = _first_fields(opening) or {}
    except (RowError, LimitExceeded, UnicodeError):
        return None
    if not any(name in names for name in _NAMES["query"]) or not _OF_TRACES.isdisjoint(names) or _are_recorded(names):
        return None
    if _ANSWER not in names:
        return "a first row with a question and no answer: --from rows reads it, where rows after it have a response"
    return (
        "'answer' may be what an agent answered or what is expected: --from rows scores it as the agent's, and next "
        "to another answer (response, output, prediction) it is the expected one"
    )


def _rows_within(value: Any) -> list[Any]:
    """The rows of a JSON value: itself, or the list that it holds under a usual name."""
    if isinstance(value, Mapping) and not any(_plain(str(name)) in _NAMES["query"] for name in value):
        return next((value[name] for name in LISTS if isinstance(value.get(name), list)), [value])
    return [value]


def _read(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    roles = _Roles()
    try:
        for row in _rows(source):
            if isinstance(row, InputError):
                yield row
                continue
            try:
                yield _record(row.fields, roles)
            except RowError as error:
                yield InputError(source.name, row.number, str(error))
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001  # one odd row must not cost the others
                yield InputError(source.name, row.number, cannot_be_read(error))
    except (RowError, LimitExceeded) as error:
        yield InputError(source.name, None, str(error))


def _rows(source: Source) -> Iterator[_Row | InputError]:
    start = source.stream.read(_START_BYTES)
    source = Source(source.name, replayed(start, source.stream))
    if start.startswith(_PARQUET):
        cells = parquet_rows(source.stream)
        names = _column_names(next(cells)[1])
        yield from (_of_cells(source, names, each, number) for number, each in cells)
    elif start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_JSON):
        yield from _json_rows(source)
    else:
        yield from _separated(source)


def _separated(source: Source) -> Iterator[_Row | InputError]:
    names: list[str] | None = None
    for number, cells in separated_rows(source.stream):
        if isinstance(cells, RowError):
            yield InputError(source.name, number, str(cells))
        elif names is None:
            names = _column_names(cells)
        else:
            yield _of_cells(source, names, cells, number)


def _column_names(header: Sequence[str]) -> list[str]:
    """The names of columns; what is wrong with them is wrong with the file."""
    names = _plain_names(name.strip() or f"column_{place}" for place, name in enumerate(header, 1))
    if not any(name in names for name in _NAMES["query"]):
        raise RowError(f"the header must name a question ({', '.join(_NAMES['query'])}); received {listed(names)}")
    if _ANSWER in names:
        _role_of_answer(names)
    return names


def _of_cells(source: Source, names: Sequence[str], cells: Sequence[Any], number: int) -> _Row | InputError:
    if len(cells) != len(names):
        reason = f"the row must have {len(names)} cells as the header has; received {len(cells)}"
        return InputError(source.name, number, reason)
    try:
        return _Row({name: _of_cell(name, cell) for name, cell in zip(names, cells, strict=True)}, number)
    except RowError as error:
        return InputError(source.name, number, str(error))


def _of_cell(name: str, cell: Any) -> Any:
    place = _PLACE_OF.get(name)
    if is_empty(cell):
        return None
    if name == _ANSWER or place in ("query", "output"):
        # One that looks like data is a text all the same.
        return cell
    if place == "id" and isinstance(cell, str):
        return cell.strip()
    data = as_data(cell)
    is_texts = isinstance(data, list) and all(isinstance(each, str) for each in data)
    return cell if place == "expected_output" and not is_texts else data


def _json_rows(source: Source) -> Iterator[_Row | InputError]:
    for found in file_rows(source):
        if isinstance(found, InputError):
            yield found
            continue
        try:
            values = _rows_within(decode_json(found.data))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            yield InputError(source.name, found.line, f"not valid JSON: {why_not_json(error)}")
            continue
        for value in values:
            if not isinstance(value, Mapping):
                yield InputError(
                    source.name, found.line, f"a row must be an object with fields; received {shown(value)}"
                )
                continue
            try:
                yield _Row(_plainly_named(value), found.line)
            except RowError as error:
                yield InputError(source.name, found.line, str(error))


def _record(fields: Mapping[str, Any], roles: _Roles) -> Record:
    """The record of a row. A row without an answer is a record without one: nothing is made up."""
    answer_is = roles.of(fields.keys())
    if not any(name in fields for name in _NAMES["query"]):
        raise RowError(f"a row needs a question ({', '.join(_NAMES['query'])}); received the fields {listed(fields)}")
    given = {name: fields[name] for name in _RECORDED if not holds_nothing(fields.get(name))}
    if len(given) > 1 and any(value != next(iter(given.values())) for value in given.values()):
        raise RowError(
            f"the recorded answer may be any of {', '.join(map(repr, given))}; rename or remove all of them but one"
        )
    places = {**_PLACE_OF, _ANSWER: answer_is}
    if not isinstance(fields.get("tools"), list):
        del places["tools"]
    # Nothing was retrieved where the list is empty: what should have been is not what the answer rests on.
    if any(fields.get(name) == [] for name in _RETRIEVED):
        places = {name: place for name, place in places.items() if place != "context" or name in _RETRIEVED}
    # DeepEval joins passages in this way where it writes one text.
    between = "|" if "actual_output" in fields else None
    case, rest = mapped_fields(fields, RowFormat(ROWS.name, (), places, passages_between=between))
    output = case.pop("output", None)
    expected = [fields[name] for name, place in places.items() if place == "expected_output" and name in fields]
    # As it is: a row may expect data.
    case["expected_output"] = next((each for each in expected if not holds_nothing(each)), None)
    for name, value in rest.items():
        case["metadata"].setdefault(name, value)
    return Record(checked_case(case), TraceLog([], {"source_format": ROWS.name}), Outcome(output=output))


ROWS = TraceFormat(
    "rows",
    "rows with a question and a recorded answer: RAGAS, DeepEval, spreadsheets (JSON Lines, JSON, CSV, Parquet)",
    _matches,
    _read,
    by_shape=True,
)
