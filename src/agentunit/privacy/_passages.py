"""The texts of a run in which data may stand, each with its place, and the base of the metrics that read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

from agentunit.core.results import MetricResult, json_within
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import InputProblem, Item, payload_of

Kind = Literal["input", "output", "message", "tool_argument", "interaction"]

privacy_info = partial(MetricInfo, family="privacy", direction="higher", range=(0.0, 1.0))
_AGENT_ROLES = frozenset({"assistant", "agent", "ai", "model", "bot"})
_USER_ROLES = frozenset({"user", "human", "customer"})
# A name that a developer gave. Anything else in a place may be somebody's data, and is shown by its position.
_PLAIN_NAME = re.compile(r"[A-Za-z_](?:[A-Za-z_.\-]|[0-9](?![0-9]{3})){0,39}")

UNNAMED_TOOL = "a tool"


class Passage(NamedTuple):
    """A text, the kind of place it stands in, and that place in words."""

    kind: Kind
    place: str
    text: str


class PrivacyMetric(ItemMetric):
    """A metric whose results never hold the data it read, not even in the reason of an error."""

    def measure(self, item: Item) -> MetricResult:
        """Score one item; an input that is there but unusable becomes a result that says so."""
        try:
            return self.score_item(item)
        except InputProblem as problem:
            return self.refused(problem)

    def refused(self, problem: InputProblem) -> MetricResult:
        """The result of an unusable input, with its place and rule but without the value received."""
        without_value = InputProblem(str(problem).partition("; received")[0])
        return self.unscored(str(without_value), error=without_value)


def passages(item: Item) -> Iterator[Passage]:
    """Every text of a run that a user, an agent or a tool received: what was asked, answered, said and passed on."""
    yield from user_input(item)
    yield from disclosed_passages(item)
    yield from interactions(item)


def user_input(item: Item) -> Iterator[Passage]:
    """What the user said: the query, and the user's messages in the trace."""
    yield from _at("input", "query", item.case.query)
    yield from _messages(item, "input", "user message", _USER_ROLES)


def outputs(item: Item) -> Iterator[Passage]:
    """The outcome's output; data is taken apart, so that each place names its field. An empty one is one passage."""
    output = item.outcome.output
    found = []
    if isinstance(output, (Mapping, list, tuple)):
        found = list(_at("output", "output", output, between=" "))
    elif item.answer is not None:
        found = list(_at("output", "output", item.answer))
    if not found and item.answer is not None:
        found = [Passage("output", "output", "")]
    yield from found


def tool_arguments(item: Item) -> Iterator[Passage]:
    """What was passed to tools: each argument of each call, calls numbered from 1."""
    for number, call in enumerate(item.tool_calls, start=1):
        name = tool_name(call)
        who = f" ({name})" if name != UNNAMED_TOOL else ""
        yield from _at(
            "tool_argument", f"tool call {number}{who} argument", json_within(call.get("arguments")), between=" "
        )


def tool_name(call: Mapping[str, Any]) -> str:
    """The name of the tool of a call, where a developer gave it one."""
    name = call.get("name")
    return name if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) else UNNAMED_TOOL


def interactions(item: Item) -> Iterator[Passage]:
    """What agents said to each other, numbered from 1."""
    found = item.trace.interactions or []
    if not isinstance(found, (list, tuple)):
        raise InputProblem("trace.interactions must be a list")
    for number, each in enumerate(found, start=1):
        sender, to = _part(each, "from_agent"), _part(each, "to_agent")
        receivers = to if isinstance(to, (list, tuple)) else [to]
        to_agents = ", ".join(_agent(receiver) for receiver in receivers)
        place = f"message {number} from {_agent(sender)} to {to_agents}"
        yield from _at("interaction", place, _part(each, "content"))


def disclosed_passages(item: Item) -> Iterator[Passage]:
    """What left the agent: its output, its messages, and what it passed to tools."""
    yield from outputs(item)
    yield from _messages(item, "message", "agent message", _AGENT_ROLES)
    yield from tool_arguments(item)


def leaves(value: Any) -> Iterator[tuple[str, str, str]]:
    """The texts in a value: the path to each, the name it stands under, and the text.

    Names that nobody chose for a program (those that may be data themselves) appear in the path by position.

    >>> list(leaves({"to": [{"email": "a@b.example"}], "n": 3}))
    [('to[0].email', 'email', 'a@b.example'), ('n', 'n', '3')]
    """
    pending: list[tuple[str, str, Any]] = [("", "", value)]
    while pending:
        path, name, each = pending.pop()
        if isinstance(each, str):
            if each:
                yield path, name, each
        elif isinstance(each, Mapping):
            inner = [(_step(path, key, number), str(key), child) for number, (key, child) in enumerate(each.items())]
            pending += reversed(inner)
        elif isinstance(each, (list, tuple)):
            pending += reversed([(f"{path}[{number}]", name, child) for number, child in enumerate(each)])
        elif isinstance(each, (int, float)) and not isinstance(each, bool):
            yield path, name, _number_text(each)


def _number_text(number: float) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to spell out integers of thousands of digits
        return ""


def _step(path: str, key: Any, number: int) -> str:
    if not (isinstance(key, str) and _PLAIN_NAME.fullmatch(key)):
        return f"{path}[{number}]"
    return f"{path}.{key}" if path else key


def _at(kind: Kind, place: str, value: Any, *, between: str | None = None) -> Iterator[Passage]:
    """The texts of a value. The name that a text stands under says what it is, so it is part of the passage."""
    for path, name, text in leaves(value):
        at = f"{place}{between}{path}" if between and path else place
        yield Passage(kind, at, f"{name}: {text}" if name else text)


def _messages(item: Item, kind: Kind, words: str, roles: frozenset[str]) -> Iterator[Passage]:
    number = 0
    for event in item.events:
        if event.type != "message":
            continue
        payload = payload_of(event)
        if str(payload.get("role")).lower() in roles:
            number += 1
            content = payload.get("content")
            for _, _, text in leaves(content):
                yield Passage(kind, f"{words} {number}", text)


def _part(interaction: Any, name: str) -> Any:
    return interaction.get(name) if isinstance(interaction, Mapping) else getattr(interaction, name, None)


def _agent(name: Any) -> str:
    return name if isinstance(name, str) and name.strip() and len(name) <= 80 else "an unnamed agent"
