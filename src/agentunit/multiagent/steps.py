"""The steps of a run: who did what, one after the other, as the events of its trace tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from agentunit.core.codec import as_trace
from agentunit.core.results import json_fallback
from agentunit.core.trace import tool_status
from agentunit.metrics.inputs import Item, payload_of

HUMANS = frozenset(("user", "human"))
# Printed lines and instructions are nobody's turn.
_NOT_SPOKEN = frozenset(("log", "system", "developer"))
_AGENT_KEYS = ("agent", "from_agent", "agent_name")
_SPOKEN_TYPES = frozenset(("message", "task_result"))


@dataclass(frozen=True)
class Step:
    """One message or tool call.

    ``number`` counts steps from 0; ``position`` is its place in ``trace.events``. ``failed`` is ``None`` when nothing
    tells. A tool call that a reader found in the words of a message (an executor's "exitcode: 1") is one step with it,
    and ``is_result``. ``is_task`` marks what was asked of the agents, whoever said it.
    """

    number: int
    position: int
    agent: str | None
    kind: str
    text: str
    failed: bool | None = None
    timestamp: float | None = None
    to_agents: tuple[str, ...] = ()
    is_result: bool = False
    is_task: bool = False

    @property
    def by_human(self) -> bool:
        """Whether the user took it."""
        return self.agent is not None and self.agent.lower() in HUMANS


def steps_of(trace: Any) -> list[Step]:
    """The steps of a trace, in the order of its events; what has no words and calls no tool is no step.

    >>> events = [{"type": "message", "payload": {"role": "assistant", "agent": "coder", "content": "Done."}},
    ...           {"type": "tool_call", "payload": {"name": "test", "agent": "tester", "status": "error"}}]
    >>> [(step.number, step.agent, step.kind, step.failed) for step in steps_of({"events": events})]
    [(0, 'coder', 'message', None), (1, 'tester', 'tool_call', True)]
    """
    steps: list[Step] = []
    executed: dict[str, Any] | None = None
    for position, event in enumerate(Item(None, trace, None).events):
        payload = payload_of(event)
        if event.type == "tool_call":
            if payload.get("derived_from") is not None:
                executed = payload
                continue
            call = [text_in(payload.get("name")), text_in(payload.get("arguments"))]
            agent, failed = agent_in(payload), call_failed(payload)
            text = " ".join(part for part in call if part)
            steps.append(Step(len(steps), position, agent, event.type, text, failed, event.timestamp))
            executed = None
        elif event.type in _SPOKEN_TYPES and text_in(payload.get("role")) not in _NOT_SPOKEN:
            text = text_in(payload.get("content"))
            if text.strip():
                failed = None if executed is None else call_failed(executed)
                step = Step(
                    len(steps), position, agent_in(payload), event.type, text, failed, event.timestamp,
                    receivers_in(payload.get("to_agent")), executed is not None, payload.get("role") == "user",
                )  # fmt: skip
                steps.append(step)
            executed = None
    return steps


def trace_of(record: Any) -> Any:
    """The trace of a record, or the trace itself; plain dicts become the types of the data model."""
    trace = record.get("trace", record) if isinstance(record, dict) else getattr(record, "trace", record)
    return as_trace(trace) if trace is None or isinstance(trace, dict) else trace


def agent_in(payload: dict[str, Any]) -> str | None:
    """The agent that an event's payload names."""
    return next((name for key in _AGENT_KEYS if isinstance(name := payload.get(key), str) and name.strip()), None)


def receivers_in(value: Any) -> tuple[str, ...]:
    """The receivers of a message: one name, or several."""
    names = (value,) if isinstance(value, str) else value if isinstance(value, (list, tuple)) else ()
    return tuple(name for name in names if isinstance(name, str) and name)


def call_failed(payload: dict[str, Any]) -> bool | None:
    """Whether a tool call failed: by its status, else by an error; ``None`` when it says neither."""
    status = tool_status(payload)
    if isinstance(status, str):
        return status != "success"
    return True if payload.get("error") else None


def text_in(value: Any) -> str:
    """A value as text: itself, or as JSON with its keys in order, so that equal calls read alike."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return msgspec.json.encode(value, enc_hook=json_fallback, order="sorted").decode()
    except (TypeError, ValueError, RecursionError):
        return str(value)
