"""What agents do with each other: messages, handoffs, conflicts, and the roles they hold."""

from __future__ import annotations

from enum import Enum
from typing import Any

from msgspec import Struct, field

from agentunit.core.time import epoch_seconds


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
