"""What happened while an agent worked on one case."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from msgspec import Struct, field

from agentunit.core.interactions import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent
from agentunit.core.results import model_data
from agentunit.core.time import epoch_seconds


class TraceEvent(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that happened. Name, arguments, status, cost and the like live in the payload.

    Types that metrics read: ``tool_call`` (``name``, ``arguments``, ``status``, ``result``, ``error``, ``cost``; in
    place of a status also ``is_error`` or ``exit_code``), ``llm_call`` (``model`` and token counts), ``retrieval``
    (``documents``), ``message`` (``role``, ``content``). Any other type is kept.
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


_FAILURE_FACTS = frozenset(("is_error", "isError", "exit_code", "result"))


def tool_status(payload: dict[str, Any]) -> Any:
    """The status of a tool call: as it was recorded, else what its other facts say; ``None`` when nothing says it.

    ``is_error`` is MCP's ``isError``, which may also stand in the result; ``exit_code`` is that of a command.

    >>> tool_status({"status": "success", "exit_code": 1}), tool_status({"is_error": True}), tool_status({})
    ('success', 'error', None)
    >>> tool_status({"exit_code": 0}), tool_status({"result": {"isError": True, "content": []}})
    ('success', 'error')
    """
    status = payload.get("status")
    if status is not None or _FAILURE_FACTS.isdisjoint(payload):
        return status
    failed = [each for key in ("is_error", "isError") if isinstance(each := payload.get(key), bool)]
    exit_code = payload.get("exit_code")
    if isinstance(exit_code, int) and not isinstance(exit_code, bool):
        failed.append(exit_code != 0)
    result = _mcp_result(payload.get("result"))
    if result is not None and isinstance(result.get("isError"), bool):
        failed.append(result["isError"])
    return ("error" if any(failed) else "success") if failed else None


def _mcp_result(result: Any) -> dict[str, Any] | None:
    """The result of an MCP server, as data or as its JSON; ``None`` for anything else."""
    if isinstance(result, str) and '"isError"' in result:
        try:
            result = msgspec.json.decode(result)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
    elif result is not None and not isinstance(result, dict):
        result = model_data(result)
    return result if isinstance(result, dict) and "content" in result else None
