"""The tools that an agent was offered, and whether it called them with arguments that their schemas allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from agentunit.backends.json_schema import SchemaError, violations
from agentunit.core.results import MetricResult, model_data
from agentunit.formulas.text import share_true
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import Item
from agentunit.metrics.sentences import on_one_line, sentence

# OpenAI and plain data, Anthropic, MCP, Gemini.
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
_WRAPPERS = ("function", "toolSpec")
_GROUPS = ("functionDeclarations", "function_declarations")
_LISTED_CALLS = 100
_LISTED_PROBLEMS = 5
_MOST_FAILURES = 3
_NOT_JSON: Any = object()


@dataclass(frozen=True)
class DeclaredTool:
    """A tool that an agent was offered; ``schema`` is the JSON Schema of its arguments, if it states one.

    ``read_only`` is what its declaration says about that, as MCP's annotations do; ``None`` where it says nothing.
    """

    name: str
    schema: Any = None
    server: str | None = None
    version: str | None = None
    read_only: bool | None = field(default=None, repr=False)


def declared_tools(*lists: Any) -> list[DeclaredTool]:
    """The tools that lists of declarations name, in the shapes of OpenAI, Anthropic, Gemini, Bedrock, MCP or as names.

    What is no declaration is left out.

    >>> declared_tools(["search", {"type": "function", "function": {"name": "book", "parameters": {"type": "object"}}}])
    [DeclaredTool(name='search', schema=None, server=None, version=None), \
DeclaredTool(name='book', schema={'type': 'object'}, server=None, version=None)]
    """
    return [tool for each in lists for entry in _entries(each) for tool in _declared(entry)]


def _entries(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        # Tools by their names.
        yield from ({"name": name, **each} for name, each in value.items() if isinstance(each, Mapping))
    elif isinstance(value, (list, tuple)):
        yield from value


def _declared(entry: Any) -> Iterator[DeclaredTool]:
    if isinstance(entry, str) and entry:
        yield DeclaredTool(entry)
    if not isinstance(entry, Mapping):
        # A tool of MCP's SDK is a model.
        entry = model_data(entry) or {}
    for key in _GROUPS:
        if isinstance(entry.get(key), (list, tuple)):
            for each in entry[key]:
                yield from _declared(each)
            return
    inner = next((entry[key] for key in _WRAPPERS if isinstance(entry.get(key), Mapping)), entry)
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        return
    schema = next((inner[key] for key in _SCHEMA_KEYS if inner.get(key) is not None), None)
    if isinstance(schema, str):
        decoded = _decoded(schema)
        schema = schema if decoded is _NOT_JSON else decoded
    if "toolSpec" in entry and isinstance(schema, Mapping) and isinstance(schema.get("json"), Mapping):
        schema = schema["json"]
    server, version = ((inner.get(key) or entry.get(key)) for key in ("server", "version"))
    yield DeclaredTool(name, schema, _text(server), _text(version), _read_only(inner, entry))


def _read_only(*declarations: Mapping[str, Any]) -> bool | None:
    """What ``annotations`` (MCP) or ``read_only`` say: a tool that may destroy something does not only read."""
    for each in declarations:
        annotations = each.get("annotations")
        for facts in (annotations if isinstance(annotations, Mapping) else {}, each):
            for key in ("readOnlyHint", "read_only_hint", "read_only", "readOnly"):
                if isinstance(facts.get(key), bool):
                    return bool(facts[key])
            if facts.get("destructiveHint") is True or facts.get("destructive_hint") is True:
                return False
    return None


def offered_tools(item: Item) -> list[DeclaredTool]:
    """The tools of ``trace.metadata["tools"]``, then those of ``case.tools`` that the trace does not name."""
    in_trace = declared_tools(item.trace_metadata.get("tools"))
    names = {tool.name for tool in in_trace if tool.schema is not None}
    return in_trace + [tool for tool in declared_tools(item.case.tools) if tool.name not in names]


@dataclass(frozen=True)
class ToolArgumentValidityMetric(ItemMetric):
    """The share of tool calls whose arguments are valid by the JSON Schema that their tool declares.

    Tools are declared in ``trace.metadata["tools"]`` or ``case.tools``, in the shapes of OpenAI, Anthropic, Gemini,
    Bedrock or MCP. Counted are the calls that state arguments for a tool with a schema; ``invalid`` says what is wrong
    with which call. Listed apart are tools without a schema, tools that nobody declared, and schemas that are
    themselves broken.

    >>> tools = [{"name": "book", "input_schema": {"type": "object", "required": ["day"]}}]
    >>> events = [{"type": "tool_call", "payload": {"name": "book", "arguments": {"date": "Monday"}}}]
    >>> result = ToolArgumentValidityMetric().evaluate({"id": "q1", "tools": tools}, {"events": events}, "done")
    >>> result.value, result.detail["invalid"]
    (0.0, [{'call': 1, 'name': 'book', 'problems': ["$: 'day' is a required property"]}])
    """

    info = MetricInfo(
        name="tool_argument_validity",
        family="quality",
        summary="The share of tool calls whose arguments are valid by the schema of their tool.",
        direction="higher",
        range=(0.0, 1.0),
        inputs=("case.tools or trace.metadata.tools", "trace tool_call"),
        detail_keys=(
            "n_calls", "n_checked", "n_valid", "invalid", "without_schema", "unknown_tools", "broken_schemas",
            "n_without_arguments",
        ),
        backend="schema",
        trust={"schema": "exact"},
    )  # fmt: skip
    name = info.name

    def score_item(self, item: Item) -> MetricResult:
        """Check the arguments of each call."""
        tools: dict[str, list[DeclaredTool]] = {}
        for tool in offered_tools(item):
            tools.setdefault(tool.name, []).append(tool)
        if not any(tool.schema is not None for named in tools.values() for tool in named):
            return self.unscored("no tool declares a schema, neither in case.tools nor in trace.metadata['tools']")
        if not item.tool_calls:
            return self.unscored("no tool_call events")
        checked = _check_calls(item.tool_calls, tools)
        detail = {**checked, "backend": "schema"}
        valid = detail.pop("valid")
        value = share_true(valid)
        detail.update(n_calls=len(item.tool_calls), n_checked=len(valid), n_valid=sum(valid))
        if value is None:
            return self.unscored("no call states arguments for a tool that declares a usable schema", **detail)
        detail["why"] = _why(detail["invalid"], detail["n_valid"], len(valid))
        return MetricResult(self.name, value, detail)


def _why(invalid: Sequence[Mapping[str, Any]], n_valid: int, n_checked: int) -> str:
    if not invalid:
        return f"the arguments of all {n_checked} calls are valid" if n_checked > 1 else "the arguments are valid"
    first = invalid[0]
    of_all = f" ({n_checked - n_valid} of {n_checked} calls invalid)" if n_checked > 1 else ""
    return sentence(f"{on_one_line(first['name'], 40)}, call {first['call']}{of_all}: {first['problems'][0]}")


def _check_calls(calls: Sequence[Mapping[str, Any]], tools: Mapping[str, Sequence[DeclaredTool]]) -> dict[str, Any]:
    valid: list[bool] = []
    invalid: list[dict[str, Any]] = []
    # Dicts without values: sets that keep the order of the calls.
    without_schema: dict[str, None] = {}
    unknown: dict[str, None] = {}
    broken: dict[str, str] = {}
    # A schema that takes too long mostly does so for every call.
    n_failures: Counter[tuple[int, ...]] = Counter()
    n_without_arguments = 0
    for number, call in enumerate(calls, start=1):
        name = call.get("name")
        name = name if isinstance(name, str) else ""
        schemas = _schemas_of(call, tools.get(name, ()))
        if name not in tools:
            unknown[name or "(unnamed)"] = None
        elif not schemas:
            without_schema[name] = None
        elif call.get("arguments") is None:
            n_without_arguments += 1
        elif n_failures[identity := tuple(map(id, schemas))] < _MOST_FAILURES:
            try:
                problems = _problems(call["arguments"], schemas)
            except SchemaError as error:
                broken[name] = str(error)
                n_failures[identity] += 1
                continue
            valid.append(not problems)
            if problems and len(invalid) < _LISTED_CALLS:
                invalid.append({"call": number, "name": name, "problems": problems})
    return {
        "valid": valid,
        "invalid": invalid,
        "without_schema": list(without_schema),
        "unknown_tools": list(unknown),
        "broken_schemas": [{"name": name, "problem": problem} for name, problem in broken.items()],
        "n_without_arguments": n_without_arguments,
    }


def _schemas_of(call: Mapping[str, Any], tools: Sequence[DeclaredTool]) -> list[Any]:
    """The schemas that a call may obey: those of its server, where two servers offer a tool of the same name."""
    server = call.get("server")
    own = [tool for tool in tools if tool.server is not None and tool.server == server] or tools
    return [tool.schema for tool in own if tool.schema is not None]


def _problems(arguments: Any, schemas: Sequence[Any]) -> list[str]:
    """What is wrong with the arguments by the schema that they come nearest to; nothing when one allows them."""
    if isinstance(arguments, str):
        decoded = _decoded(arguments) if arguments.strip() else {}
        if decoded is _NOT_JSON:
            return ["$: the arguments are not JSON"]
        arguments = decoded
    found = [violations(arguments, schema, limit=_LISTED_PROBLEMS) for schema in schemas]
    return [str(each) for each in min(found, key=len)]


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _NOT_JSON


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "" else None
