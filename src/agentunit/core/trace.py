"""What happened while an agent worked on one case."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone
from enum import Enum
from math import inf, isfinite
from typing import Any

import msgspec
from msgspec import Struct, field

from agentunit.core.results import model_data
from agentunit.public import publish

# Points in time: whatever a user or a log gives becomes seconds since 1970 as a float.


def epoch_seconds(value: object) -> float:
    """Seconds since 1970-01-01 UTC of a number, a datetime or an ISO 8601 string.

    A datetime or string without a zone is read as UTC, so that the same file means the same everywhere.

    >>> epoch_seconds("1970-01-01T00:01:00Z")
    60.0
    >>> epoch_seconds(datetime(1970, 1, 1, 0, 0, 1))
    1.0
    >>> epoch_seconds(12)
    12.0
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = inf
        if not isfinite(seconds):
            raise ValueError(f"timestamp must be finite seconds; received {value!r:.40}")
        return seconds
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(_as_python_310_reads_it(value))
        except ValueError:
            raise ValueError(f"timestamp must be seconds or an ISO 8601 time; received {value!r}") from None
    if not isinstance(moment, datetime):
        raise ValueError(f"timestamp must be seconds, a datetime or an ISO 8601 time; received {value!r}")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()


_FRACTION = re.compile(r"[.,](\d+)")
_WITH_MILLISECONDS = len("2026-07-01T09:30:00.500Z")


def _as_python_310_reads_it(text: str) -> str:
    """Python 3.10 knows neither "Z" nor fractions of other than three or six digits."""
    zoned = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    if len(text) == _WITH_MILLISECONDS and len(zoned) > len(text) and text[19] == ".":
        return zoned
    return _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), zoned, count=1)


# What agents do with each other: messages, handoffs, conflicts, and the roles they hold.


class InteractionType(str, Enum):
    """The kinds of interaction that metrics tell apart. Plain strings are equally welcome."""

    REQUEST = "request"
    RESPONSE = "response"
    NOTIFICATION = "notification"
    DELEGATION = "delegation"
    COLLABORATION = "collaboration"
    NEGOTIATION = "negotiation"
    CONFLICT = "conflict"
    HANDOFF = "handoff"


class AgentInteraction(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One message from an agent to another, or to several. Times are in seconds."""

    from_agent: str
    to_agent: str | list[str]
    interaction_type: str = InteractionType.REQUEST.value
    message_type: str = "generic"
    content: Any = None
    timestamp: float | None = None
    success: bool | None = True
    response_time: float | None = None
    interaction_id: str | None = None
    parent_interaction_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] | None = field(default=None, name="__extra__")

    def __post_init__(self) -> None:
        if isinstance(self.interaction_type, Enum):
            self.interaction_type = str(self.interaction_type.value)
        if isinstance(self.to_agent, (tuple, set, frozenset)):
            self.to_agent = (
                sorted(self.to_agent) if isinstance(self.to_agent, (set, frozenset)) else list(self.to_agent)
            )
        _normalise_timestamp(self)


class HandoffEvent(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A task passed from one agent to another; ``handoff_time`` is how long the passing took, in seconds."""

    from_agent: str
    to_agent: str
    task_id: str | None = None
    success: bool | None = True
    handoff_time: float | None = None
    timestamp: float | None = None
    reason: str | None = None
    handoff_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] | None = field(default=None, name="__extra__")

    def __post_init__(self) -> None:
        _normalise_timestamp(self)


class ConflictEvent(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A disagreement between agents; ``resolution_time`` is how long it took to settle, in seconds."""

    agents_involved: list[str] = field(default_factory=list)
    conflict_type: str = "unspecified"
    resolved: bool | None = False
    resolution_time: float | None = None
    timestamp: float | None = None
    description: str = ""
    severity: str | None = None
    resolution_method: str | None = None
    conflict_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] | None = field(default=None, name="__extra__")

    def __post_init__(self) -> None:
        _normalise_timestamp(self)


class AgentRole(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What an agent is for. ``None`` means the role says nothing about it, so nothing can break it."""

    name: str
    description: str = ""
    responsibilities: list[str] | None = None
    capabilities: list[str] | None = None
    message_types: list[str] | None = None
    can_delegate: bool | None = None
    can_escalate: bool | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] | None = field(default=None, name="__extra__")


def _normalise_timestamp(event: AgentInteraction | HandoffEvent | ConflictEvent) -> None:
    if event.timestamp.__class__ is not float and event.timestamp is not None:
        event.timestamp = epoch_seconds(event.timestamp)


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


publish("agentunit", AgentInteraction, AgentRole, ConflictEvent, HandoffEvent, InteractionType, TraceEvent, TraceLog)
