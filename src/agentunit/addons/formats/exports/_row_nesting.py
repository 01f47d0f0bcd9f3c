"""Where spans as JSON objects lie in a file, before any of them is read.

They may stand alone, in arrays, in ``{"data": […]}`` or ``{"spans": […]}``, under names of the exporter's choice
(``{"session 1": […]}``), nested in each other (``child_spans``), or column by column as pandas writes them by default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import zip_longest
from typing import Any, NamedTuple, ParamSpec

from agentunit.addons.formats.exports._span_spellings import spelling_of
from agentunit.core.results import InputError
from agentunit.traces.formats_base import Source, cannot_be_read
from agentunit.traces.json_files.stream import json_values
from agentunit.traces.spans import ReadingNotes, Span, as_mapping, decoded_json

P = ParamSpec("P")

# Spans within spans, and what such a span inherits: name there, name here.
_NESTED_SPANS = {
    "child_spans": {"trace_id": "trace_id", "parent_span_id": "span_id"},
    "child_runs": {"trace_id": "trace_id", "parent_run_id": "id"},
}
# Arrays of rows by the names that tools give them: Logfire, LangSmith, HAL, pages of Opik's API.
_ROW_LISTS = ("data", "rows", "runs", "calls", "raw_logging_results", "content")
_OBJECTS_AS_TEXT = ("context", "trace", "record", "record_attributes", "resource_attributes")


class NoSpan(NamedTuple):
    """Something that stands where a span should, and why it is none."""

    reason: str


def spans_of_file(
    source: Source, into: tuple[str, ...], spans_in: Callable[[Any], Iterator[Span | NoSpan]]
) -> Iterator[Span | InputError]:
    """What ``spans_in`` finds in each JSON value of a file; what it fails at becomes an ``InputError`` of its value.

    ``into`` names the arrays whose elements are the values (see ``json_values``).
    """
    for value in json_values(source, into=into):
        if isinstance(value, InputError):
            yield value
            continue
        try:
            decoded = decoded_json(value.data)
        except ValueError as error:
            yield InputError(source.name, value.line, f"no JSON: {error}")
            continue
        for span in _until_it_fails(spans_in(decoded)):
            yield span if isinstance(span, Span) else InputError(source.name, value.line, span.reason)


def _until_it_fails(spans: Iterator[Span | NoSpan]) -> Iterator[Span | NoSpan]:
    try:
        yield from spans
    except (MemoryError, GeneratorExit):
        raise
    except Exception as error:  # noqa: BLE001  # one odd value must not cost the others
        yield NoSpan(cannot_be_read(error))


def one_span(read: Callable[P, Span | NoSpan]) -> Callable[P, Span | NoSpan]:
    """A reader of one span that fails in no other way than with a reason."""

    @wraps(read)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> Span | NoSpan:
        try:
            return read(*args, **kwargs)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  # one odd span must not cost the others
            return NoSpan(f"the span {cannot_be_read(error)}")

    return guarded


def rows_in(value: Any, notes: ReadingNotes) -> Iterator[dict[str, Any] | NoSpan]:
    """The rows that a JSON value is or holds, parents before the spans nested in them."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting.extend(reversed(found))
            continue
        if not isinstance(found, dict):
            yield NoSpan(f"a span should be an object; received {shown(found)}")
            continue
        row = _prepared(found)
        if spelling_of(row) is None:
            held = _held_by(row, notes)
            if isinstance(held, NoSpan):
                yield held
            else:
                waiting.extend(reversed(held))
        elif all(isinstance(column, dict) for column in row.values()):
            waiting.extend(reversed(rows_of_columns(row)))
        else:
            yield row
            waiting.extend(reversed(_nested_in(row)))


def _prepared(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the spellings expect it: databases write names in capitals, and objects as texts."""
    if "RECORD_ATTRIBUTES" in row:
        row = {name.lower(): value for name, value in row.items()}
    texts = {name: as_mapping(row[name]) for name in _OBJECTS_AS_TEXT if row.get(name).__class__ is str}
    return {**row, **{name: value for name, value in texts.items() if value is not None}} if texts else row


def _held_by(holder: dict[str, Any], notes: ReadingNotes) -> list[Any] | NoSpan:
    trace, spans = holder.get("trace"), holder.get("spans")
    if holder.keys() >= _DEEPEVAL_LISTS:
        return _trace_of_deepeval(holder)
    if isinstance(trace, dict) and isinstance(spans, list) and "start_time" in trace:
        return _trace_of_opik(trace, spans)
    if isinstance(trace, dict):
        for name in holder.keys() - {"trace"}:
            notes.problems[f"{name!r} beside a trace is not part of its spans, and was left out"] += 1
        return [trace]
    if isinstance(spans, list):
        placed = [_in_its_trace(each, holder) for each in spans]
        return placed if holder.get("final_output") is None else [_with_answer(row, holder) for row in placed]
    parts = [holder[name] for name in ("post", "patch") if isinstance(holder.get(name), list)]
    rows = next((holder[name] for name in _ROW_LISTS if isinstance(holder.get(name), list)), None)
    if rows is not None or parts:
        return rows if rows is not None else parts
    columns = holder.get("columns")
    if isinstance(columns, list) and all(isinstance(each, dict) and "values" in each for each in columns):
        named = {each["name"]: each["values"] for each in columns if _is_column(each)}
        if len(named) < len(columns):
            notes.problems["a column without a name or a list of values was left out"] += len(columns) - len(named)
        return [dict(zip(named, row, strict=True)) for row in zip_longest(*named.values())]
    # Under names of the exporter's choice anything may stand: what holds no span at all is another format.
    if all(isinstance(each, list) for each in holder.values()) and any(
        isinstance(row, dict) and spelling_of(_prepared(row)) for rows in holder.values() for row in rows
    ):
        return list(holder.values())
    names = ", ".join(sorted(str(name) for name in holder)[:8])
    return NoSpan(f"the object is not a span and holds none; its names are: {names or 'none'}")


def _is_column(column: dict[str, Any]) -> bool:
    return isinstance(column.get("name"), str) and isinstance(column["values"], list)


def _in_its_trace(row: Any, trace: dict[str, Any]) -> Any:
    """A row with what is said once for all spans of its trace."""
    if not isinstance(row, dict):
        return row
    processes = trace.get("processes")
    if isinstance(processes, dict) and "process" not in row:
        return {**row, "process": processes.get(str(row.get("processID")))}
    return row if "context" in row or "trace_id" not in trace else {"trace_id": trace["trace_id"], **row}


def _with_answer(row: Any, trace: dict[str, Any]) -> Any:
    """The span of an agent of any-agent with the answer, which stands beside all spans of its trace."""
    attributes = row.get("attributes") if isinstance(row, dict) else None
    if not isinstance(attributes, dict) or attributes.get("gen_ai.operation.name") != "invoke_agent":
        return row
    answer = trace["final_output"]
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])
    return {**row, "attributes": {"gen_ai.output.messages": said, **attributes}}


def _trace_of_opik(trace: dict[str, Any], spans: list[Any]) -> list[Any]:
    """The spans of a trace below the trace itself, which says what was asked and answered."""
    own_id = trace.get("id")
    return [
        {**trace, "trace_id": own_id, "type": "general", "usage": None},
        *({**each, "parent_span_id": each.get("parent_span_id") or own_id} for each in spans if isinstance(each, dict)),
        *(each for each in spans if not isinstance(each, dict)),
    ]


# A trace of DeepEval keeps its spans by their types.
_DEEPEVAL_LISTS = frozenset(("uuid", "baseSpans", "agentSpans", "llmSpans", "toolSpans"))


def _trace_of_deepeval(trace: dict[str, Any]) -> list[Any]:
    """The spans of a trace below the trace itself, which says what was asked and answered."""
    lists = {name: value for name, value in trace.items() if name.endswith("Spans") and isinstance(value, list)}
    own = {"traceUuid": trace["uuid"], "threadId": trace.get("threadId"), "userId": trace.get("userId")}
    own = {name: value for name, value in own.items() if value not in (None, "None")}
    rest = {name: value for name, value in trace.items() if name not in lists and value != "None"}
    root = {**rest, **own, "type": "trace"}
    spans = [each for listed in lists.values() for each in listed]
    return [
        root,
        *(
            {**own, **each, "parentUuid": each.get("parentUuid") or trace["uuid"]} if isinstance(each, dict) else each
            for each in spans
        ),
    ]


def _nested_in(row: dict[str, Any]) -> list[Any]:
    for name, inherits in _NESTED_SPANS.items():
        if isinstance(row.get(name), list):
            inherited = {there: row.get(here) or row.get("id") for there, here in inherits.items()}
            return [{**inherited, **each} if isinstance(each, dict) else each for each in row[name]]
    return []


def rows_of_columns(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table that is written column by column, each column as an object of index and value."""
    indices = dict.fromkeys(index for column in columns.values() for index in column)
    return [{name: column.get(index) for name, column in columns.items()} for index in indices]


def shown(value: Any) -> str:
    """A value that was received, short enough for a message."""
    return "missing" if value is None else f"{value!r:.60}"
