"""Datasets of other tools, row by row: which field is what, as tables."""

from __future__ import annotations

import ast
import io
import itertools
import json
import string
import tokenize
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentunit.datasets.rows import SPELLINGS

# Where a field goes: a field of the case, "metadata.NAME", or one of these.
KEPT = "kept with the case, read by nothing"
MERGED = "its fields are metadata"
UNMAPPED = "what it asks for is not done here"
RECORDED = "an answer that was recorded: kept, and scored where the file is read as records"

_ASKED = ("query", "question", "input", "prompt", "user_input", "message", "text", "messages", "content")
_ANSWERED = ("answer", "output", "expected_output", "expected", "response", "result", "text", "content", "messages")
_ROLES_OF_USERS = ("user", "human")
_LETTERS = string.ascii_uppercase
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


def _marks(*marks: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(mark.split()) for mark in marks)


def _as_metadata(names: str) -> dict[str, str]:
    return {name: f"metadata.{name}" for name in names.split()}


ROW_FORMATS = (
    RowFormat(
        "RAGAS",
        _marks("user_input"),
        {
            "user_input": "query",
            "reference": "expected_output",
            "reference_contexts": "context",
            "retrieved_contexts": "context",
            "response": RECORDED,
            "reference_tool_calls": "metadata.expected_tool_calls",
            **dict.fromkeys(("rubrics", "reference_topics"), UNMAPPED),
            **_as_metadata("persona_name query_style query_length synthesizer_name"),
        },
        grader_fields=("context",),
    ),
    RowFormat(
        "LangSmith",
        _marks("inputs outputs", "inputs dataset_id"),
        {
            "id": "id",
            "inputs": "query",
            "outputs": "expected_output",
            "metadata": MERGED,
            "split": "metadata.split",
            "attachments": UNMAPPED,
        },
    ),
    RowFormat(
        "Langfuse",
        _marks("input expectedOutput", "input datasetId"),
        {
            "id": "id",
            "input": "query",
            "expectedOutput": "expected_output",
            "metadata": MERGED,
            "mediaReferences": UNMAPPED,
        },
    ),
    RowFormat(
        "OpenAI evals", _marks("input ideal"), {"input": "query", "ideal": "expected_output", "metadata": MERGED}
    ),
    RowFormat(
        "Inspect",
        _marks("input target"),
        {
            "id": "id",
            "input": "query",
            "target": "expected_output",
            "choices": "choices",
            "metadata": MERGED,
            **dict.fromkeys(("files", "setup", "sandbox"), UNMAPPED),
        },
    ),
    RowFormat(
        "DeepEval",
        _marks("input expected_output", "input actual_output", "scenario expected_outcome"),
        {
            "turns": "query",
            "input": "query",
            "scenario": "query",
            "expected_output": "expected_output",
            "expected_outcome": "expected_output",
            "context": "context",
            "retrieval_context": "context",
            "actual_output": RECORDED,
            "expected_tools": "metadata.expected_tool_calls",
            "additional_metadata": MERGED,
            "custom_column_key_values": MERGED,
            **_as_metadata("name source_file user_description"),
            "expectations": UNMAPPED,
        },
        grader_fields=("context",),
        passages_between="|",
    ),
)


def case_of_row(
    row: Mapping[str, Any], row_format: RowFormat, kept: Counter[str], unmapped: Counter[str]
) -> dict[str, Any]:
    """A row as the fields of a case. What has no place among them keeps its name, and no agent receives it."""
    case, rest = mapped_fields(row, row_format)
    for name in rest:
        (unmapped if row_format.fields.get(name) == UNMAPPED else kept)[name] += 1
    if "choices" in case:
        _offer(case)
    # Names that a case has itself would be read as such.
    for name, value in rest.items():
        case[name if name not in _CASE_NAMES else f"{name} ({row_format.tool})"] = value
    return case


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


_CASE_NAMES = frozenset(["metadata", *itertools.chain.from_iterable(SPELLINGS.values())])


def _gathered(row: Mapping[str, Any]) -> dict[str, Any]:
    """Columns such as ``inputs.question`` as one field ``inputs``."""
    gathered: dict[str, Any] = {}
    for name, value in row.items():
        head, dot, tail = name.partition(".")
        if dot and head in ("inputs", "outputs", "metadata"):
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
            return _text(value), {"inputs": dict(value)}
        query, found = asked(value[name])
        others = {key: each for key, each in value.items() if key != name}
        return query, {**found, **({"inputs": others} if others else {})}
    if isinstance(value, Sequence) and value and all(_is_message(each) for each in value):
        last = max((n for n, each in enumerate(value) if _role(each) in _ROLES_OF_USERS), default=len(value) - 1)
        found = {"messages": list(value[: last + 1])} if last else {}
        if value[last + 1 :]:
            # What was answered then is an answer key now.
            found["expected_messages"] = list(value[last + 1 :])
        return _text(value[last]["content"]), found
    return _text(value), {}


def _answer(value: Any) -> Any:
    """The expected answer: of an object with one usual name, what stands there; of messages, the last."""
    if isinstance(value, Mapping):
        if len(value) != 1:
            return dict(value)
        ((name, only),) = value.items()
        return _answer(only) if name in _ANSWERED and only is not None else only
    if isinstance(value, list) and value and all(_is_message(each) for each in value):
        return _text(value[-1]["content"])
    return value


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and "content" in value


def _role(message: Mapping[str, Any]) -> str:
    return str(message.get("role") or message.get("type") or "").lower()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and any(
        isinstance(each, Mapping) and isinstance(each.get("text"), str) for each in value
    ):
        return "\n".join(each["text"] for each in value if isinstance(each, Mapping) and "text" in each)
    return json.dumps(value, ensure_ascii=False)


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
    return next((value[name] for name in names if isinstance(value.get(name), str)), None) or _text(value)


def _literal(text: str) -> Any:
    """A list that a table holds as Python would write it; nothing in it is run.

    An array of numpy has no commas: what Python would join to one text are its elements.

    >>> _literal("['a', 'b']"), _literal("['a' 'b']")
    (['a', 'b'], ['a', 'b'])
    """
    if not text.startswith("["):
        return None
    try:
        found = ast.literal_eval(text)
        if isinstance(found, list) and found and all(isinstance(each, str) for each in found):
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            return [ast.literal_eval(token.string) for token in tokens if token.type == tokenize.STRING]
    except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        return None
    return found


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


def _offer(case: dict[str, Any]) -> None:
    """Choices are part of the question, and a letter that names one is as good as its text."""
    given = case.pop("choices")
    choices = [_text(each) for each in (given if isinstance(given, list) else [given])]
    case["metadata"]["choices"] = choices
    offered = [f"{letter}) {choice}" for letter, choice in zip(_LETTERS, choices, strict=False)]
    case["query"] = "\n".join([case.get("query") or "", *offered])
    target = case.get("expected_output")
    if isinstance(target, str) and len(target) == 1 and target in _LETTERS[: len(choices)]:
        case["expected_output"] = [target, choices[_LETTERS.index(target)]]
