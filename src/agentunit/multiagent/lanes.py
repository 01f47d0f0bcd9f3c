"""What each agent of a run did, one thing after the other: the facts behind the swim-lane timeline."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from agentunit.metrics.inputs import Item, payload_of
from agentunit.multiagent.columns import moment_at
from agentunit.multiagent.derivation import Derived, derived, reading, receivers_of, sender_of
from agentunit.multiagent.steps import Step, agent_in, text_in, trace_of

_LABEL_LENGTH = 120


class Mark(Struct, omit_defaults=True):
    """One thing that an agent did: a ``message``, a tool ``call``, a ``model`` call or a ``handoff``.

    ``to`` names those it reaches. ``at_s`` counts from the first thing whose time is known, and ``step`` counts
    messages and tool calls from 0. ``failed`` is ``None`` when nothing tells.
    """

    agent: str
    kind: str
    label: str
    step: int | None = None
    to: list[str] = field(default_factory=list)
    at_s: float | None = None
    failed: bool | None = None


class Lanes(Struct, omit_defaults=True):
    """The agents in order of appearance and what they did, in order. ``n_nameless`` steps name no agent."""

    agents: list[str]
    marks: list[Mark] = field(default_factory=list)
    n_nameless: int = 0

    @property
    def timed(self) -> bool:
        """Whether the time of everything is known, so that distances can stand for time."""
        times = [mark.at_s for mark in self.marks]
        return None not in times and any(times)


def lanes_of(record: Any) -> Lanes:
    """The lanes of a record or a trace. What has no time stays behind what was recorded before it.

    >>> events = [{"type": "message", "payload": {"role": "assistant", "agent": "lead", "content": "Test it."}},
    ...           {"type": "tool_call", "payload": {"name": "pytest", "agent": "tester", "status": "error"}}]
    >>> [(mark.agent, mark.kind, mark.to, mark.failed) for mark in lanes_of({"events": events}).marks]
    [('lead', 'message', ['tester'], None), ('tester', 'call', [], True)]
    """
    trace = trace_of(record)
    found = derived(trace)
    unmatched = list(found.interactions)
    marks: list[Mark] = []
    sent = _sent_by_step(found, unmatched)
    for event, step in _events_and_steps(trace, found.steps):
        if step is not None and step.agent is not None:
            marks.append(_of_step(step, sent.get(step.number)))
        elif step is None and (agent := agent_in(payload_of(event))) is not None:
            payload = payload_of(event)
            failed = True if payload.get("error") else None
            label = text_in(payload.get("model")) or "model call"
            marks.append(Mark(agent, "model", _short(label), at_s=event.timestamp, failed=failed))
    marks += [_of_interaction(each, "message") for each in unmatched]
    if "handoffs" not in found.derived:
        marks += [_of_interaction(each, "handoff") for each in found.handoffs]
    ordered = _in_order(marks)
    seen = dict.fromkeys(mark.agent for mark in ordered)
    receivers = dict.fromkeys(name for mark in ordered for name in mark.to)
    idle = sorted(name for name in found.roles if name not in seen and name not in receivers)
    n_nameless = sum(step.agent is None for step in found.steps)
    return Lanes(list({**seen, **receivers, **dict.fromkeys(idle)}), ordered, n_nameless)


def _events_and_steps(trace: Any, steps: Iterable[Step]) -> Iterator[tuple[Any, Step | None]]:
    """The events that are steps, and the model calls, in the order of the trace."""
    by_position = {step.position: step for step in steps}
    for position, event in enumerate(Item(None, trace, None).events):
        if position in by_position or event.type == "llm_call":
            yield event, by_position.get(position)


def _sent_by_step(found: Derived, interactions: list[Any]) -> dict[int, Any]:
    """The interaction that each step is; those are taken out of the list.

    Readers of chat logs record the same words as a message and as an interaction: they are one thing that happened.
    """
    waiting: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
    for step in found.steps:
        if step.agent is not None and step.kind != "tool_call":
            waiting[step.agent, step.text].append(step.number)
    sent: dict[int, Any] = {}
    left = []
    for each in interactions:
        numbers = waiting.get((sender_of(each), text_in(reading(each, "content"))))
        if numbers:
            sent[numbers.popleft()] = each
        else:
            left.append(each)
    interactions[:] = left
    return sent


def _of_step(step: Step, interaction: Any) -> Mark:
    kind = "call" if step.kind == "tool_call" or step.is_result else "message"
    mark = Mark(str(step.agent), kind, _short(step.text), step.number, at_s=step.timestamp, failed=step.failed)
    if interaction is not None:
        mark.to = [name for name in receivers_of(interaction) if name != step.agent]
        mark.at_s = mark.at_s if mark.at_s is not None else _time_of(interaction)
        if reading(interaction, "success") is False:
            mark.failed = True
    return mark


def _of_interaction(each: Any, kind: str) -> Mark:
    sender = sender_of(each)
    success = reading(each, "success")
    said = reading(each, "content" if kind == "message" else "reason")
    return Mark(
        sender,
        kind,
        _short(text_in(said)),
        to=[name for name in receivers_of(each) if name != sender],
        at_s=_time_of(each),
        failed=None if success is None else success is False,
    )


def _time_of(entry: Any) -> float | None:
    return moment_at("timestamp", reading(entry, "timestamp"))


def _in_order(marks: list[Mark]) -> list[Mark]:
    """The marks by time, counted from the first; the sort is stable, so what has no time stays where it stands."""
    start = min((mark.at_s for mark in marks if mark.at_s is not None), default=0.0)
    latest = start
    keyed = []
    for mark in marks:
        latest = latest if mark.at_s is None else mark.at_s
        mark.at_s = None if mark.at_s is None else mark.at_s - start
        keyed.append((latest, mark))
    return [mark for _, mark in sorted(keyed, key=lambda pair: pair[0])]


def _short(text: str) -> str:
    return " ".join(text[: 4 * _LABEL_LENGTH].split())[:_LABEL_LENGTH]
