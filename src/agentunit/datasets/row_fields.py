"""The fields of a row, as tools name them, in the places of a case."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentunit.datasets.rows import RowError
from agentunit.traces.limits import LimitExceeded
from agentunit.traces.python_literals import python_literal

# Where a field goes: a field of the case, "metadata.NAME", or one of these.
KEPT = "kept with the case, read by nothing"
MERGED = "its fields are metadata"
UNMAPPED = "what it asks for is not done here"
RECORDED = "an answer that was recorded: kept, and scored where the file is read as records"

_ASKED = ("query", "question", "input", "prompt", "user_input", "message", "text", "messages", "content")
_ANSWERED = ("answer", "output", "expected_output", "expected", "response", "result", "text", "content", "messages")
_ROLES_OF_USERS = ("user", "human")
LISTS = ("data", "items", "examples", "samples", "goldens", "test_cases", "testCases", "cases")
"""Under which names a document may list its rows."""


@dataclass(frozen=True)
class RowFormat:
    """One tool's rows. ``marks`` are sets of fields, one of which every row of its files has.

    Of several fields that go to one place, the first that holds something wins; the others are kept.
    """

    tool: str
    marks: tuple[frozenset[str], ...]
    fields: Mapping[str, str]
    grader_fields: tuple[str, ...] = ()
    passages_between: str | None = None

    def knows(self, row: Mapping[str, Any]) -> bool:
        """Whether a row looks like one of this tool's."""
        names = {str(name).split(".")[0] for name in row}
        return any(mark <= names for mark in self.marks)


def mapped_fields(row: Mapping[str, Any], row_format: RowFormat) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a row holds, in the places of its format; and by its own name what has no place there, or a taken one."""
    row = _gathered(row)
    case: dict[str, Any] = {"metadata": {}}
    rest = {}
    in_order = [name for name in row_format.fields if name in row]
    for name in [*in_order, *(name for name in row if name not in row_format.fields)]:
        value = row[name]
        if holds_nothing(value):
            continue
        place = row_format.fields.get(name, KEPT)
        taken = place in case or place.removeprefix("metadata.") in case["metadata"]
        if place == MERGED and isinstance(value, Mapping):
            for key, each in value.items():
                case["metadata"].setdefault(str(key), each)
        elif place in (KEPT, UNMAPPED, MERGED, RECORDED) or taken:
            rest[name] = value
        else:
            _put(case, place, value, row_format)
    return case, rest


def holds_nothing(value: Any) -> bool:
    """Whether a field is there without saying anything."""
    return value is None or value == [] or value == {} or (isinstance(value, str) and not value.strip())


def _gathered(row: Mapping[str, Any]) -> dict[str, Any]:
    """Columns such as ``inputs.question`` as one field ``inputs``."""
    gathered: dict[str, Any] = {}
    for name, value in row.items():
        head, dot, tail = name.partition(".")
        if dot and head in ("inputs", "outputs", "metadata") and isinstance(gathered.get(head, {}), dict):
            if value is not None:
                gathered.setdefault(head, {})[tail] = value
        else:
            gathered[name] = value
    return gathered


def _put(case: dict[str, Any], place: str, value: Any, row_format: RowFormat) -> None:
    if place == "query":
        case["query"], rest = asked(value)
        case["metadata"].update(rest)
    elif place == "expected_output":
        case[place] = _answer(value)
    elif place == "context":
        case[place] = _passages(value, row_format.passages_between)
    elif place == "metadata.expected_tool_calls":
        case["metadata"]["expected_tool_calls"] = [_tool_call(each) for each in _listed(value)]
    elif place.startswith("metadata."):
        case["metadata"][place.removeprefix("metadata.")] = value
    else:
        case[place] = value


def asked(value: Any) -> tuple[str, dict[str, Any]]:
    """The question in whatever a tool calls its input, and the metadata with what else it holds.

    >>> asked({"question": "Where is A-1?", "customer": "c7"})
    ('Where is A-1?', {'inputs': {'customer': 'c7'}})
    >>> asked([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}])[0]
    '2 + 2?'
    """
    if isinstance(value, str):
        return value, {}
    if isinstance(value, Mapping):
        name = next((each for each in _ASKED if value.get(each)), next(iter(value)) if len(value) == 1 else None)
        if name is None:
            return as_text(value), {"inputs": dict(value)}
        query, found = asked(value[name])
        others = {key: each for key, each in value.items() if key != name}
        return query, {**found, **({"inputs": others} if others else {})}
    if isinstance(value, Sequence) and value and all(_is_message(each) for each in value):
        last = max((n for n, each in enumerate(value) if _role(each) in _ROLES_OF_USERS), default=len(value) - 1)
        found = {"messages": list(value[: last + 1])} if last else {}
        if value[last + 1 :]:
            # What was answered then is an answer key now.
            found["expected_messages"] = list(value[last + 1 :])
        return as_text(value[last]["content"]), found
    return as_text(value), {}


def _answer(value: Any) -> Any:
    """The expected answer: of an object with one usual name, what stands there; of messages, the last."""
    if isinstance(value, Mapping):
        if len(value) != 1:
            return dict(value)
        ((name, only),) = value.items()
        return _answer(only) if name in _ANSWERED and only is not None else only
    if isinstance(value, list) and value and all(_is_message(each) for each in value):
        return as_text(value[-1]["content"])
    return value


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and "content" in value


def _role(message: Mapping[str, Any]) -> str:
    return str(message.get("role") or message.get("type") or "").lower()


def as_text(value: Any) -> str:
    """The text of a value: of the parts of a message theirs, of other data its JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and any(
        isinstance(each, Mapping) and isinstance(each.get("text"), str) for each in value
    ):
        return "\n".join(each["text"] for each in value if isinstance(each, Mapping) and "text" in each)
    # Tables hold times and bytes, too.
    return json.dumps(value, ensure_ascii=False, default=str)


def _passages(value: Any, between: str | None) -> Any:
    if isinstance(value, str):
        written = _literal(value)
        if not isinstance(written, list):
            return value.split(between) if between else [value]
        value = written
    return [_passage(each) for each in value if each is not None] if isinstance(value, list) else value


def _passage(value: Any) -> str:
    """The text of a passage: itself, or what a document of a retriever holds under a usual name."""
    names = ("text", "content", "page_content") if isinstance(value, Mapping) else ()
    return next((value[name] for name in names if isinstance(value.get(name), str)), None) or as_text(value)


def _literal(text: str) -> Any:
    """A list that a table holds as Python would write it; nothing in it is run.

    >>> _literal("['a', 'b']"), _literal("['a' 'b']")
    (['a', 'b'], ['a', 'b'])
    """
    if not text.startswith("["):
        return None
    try:
        return python_literal(text)
    except LimitExceeded as error:
        raise RowError(str(error)) from None
    except (ValueError, SyntaxError):
        return None


def _listed(value: Any) -> list[Any]:
    found = _literal(value) if isinstance(value, str) else value
    return found if isinstance(found, list) else [value]


def _tool_call(call: Any) -> Any:
    """A call as ``tool_trajectory`` expects it: a name, with arguments where they are stated."""
    if not isinstance(call, Mapping) or "name" not in call:
        return call
    names = ("inputParameters", "input_parameters", "args", "arguments")
    arguments = next((call[each] for each in names if call.get(each) is not None), None)
    return {"name": call["name"], **({} if arguments is None else {"arguments": arguments})}
