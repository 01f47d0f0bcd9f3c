"""What happened while an agent worked on one case."""

from __future__ import annotations

import time
from typing import Any

from msgspec import Struct, field

from agentunit.core.interactions import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent
from agentunit.core.time import epoch_seconds


class TraceEvent(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that happened. Name, arguments, status, cost and the like live in the payload.

    Types that metrics read: ``tool_call`` (``name``, ``arguments``, ``status``, ``result``, ``error``, ``cost``),
    ``llm_call`` (``model`` and token counts), ``retrieval`` (``documents``), ``message`` (``role``, ``content``).
    Any other type is kept.
    """

    type: str
    payload: dict[str, Any] = field(default_factory=dict)
    timestamp: float | None = None
    extra: dict[str, Any] | None = field(default=None, name="__extra__")

    def __post_init__(self) -> None:
        if self.timestamp.__class__ is not float and self.timestamp is not None:
            self.timestamp = epoch_seconds(self.timestamp)


class TraceLog(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The events of one run of an agent on one case, and what its agents did with each other.

    >>> trace = TraceLog()
    >>> _ = trace.record("tool_call", name="search", status="success")
    >>> trace.events[0].payload["status"]
    'success'
    """

    events: list[TraceEvent] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    interactions: list[AgentInteraction] = field(default_factory=list)
    handoffs: list[HandoffEvent] = field(default_factory=list)
    conflicts: list[ConflictEvent] = field(default_factory=list)
    agent_roles: dict[str, AgentRole] = field(default_factory=dict)
    extra: dict[str, Any] | None = field(default=None, name="__extra__")

    def record(self, type: str, /, **payload: Any) -> TraceEvent:
        """Append an event of this type, stamped with the time of now, and return it.

        The names are the payload; a dict called ``payload`` stands for the names in it.
        """
        named = payload.get("payload")
        if isinstance(named, dict):
            payload = {**named, **{name: value for name, value in payload.items() if name != "payload"}}
        event = TraceEvent(type, payload, time.time())
        self.events.append(event)
        return event
