"""A record: one case with its trace and outcome. The unit that is written to disk, streamed and scored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from agentunit.core.case import DatasetCase
from agentunit.core.outcome import Outcome
from agentunit.core.trace import TraceLog

RECORD_VERSION = 1


class Record(Struct, forbid_unknown_fields=True):
    """``{"v": 1, "case": …, "trace": …, "outcome": …}``: what an agent was asked, what it did, what came out."""

    case: DatasetCase
    trace: TraceLog = field(default_factory=TraceLog)
    outcome: Outcome | str | bool | int | float | list[Any] | None = None
    v: int = RECORD_VERSION
    extra: dict[str, Any] | None = field(default=None, name="__extra__")


class LooseRecord:
    """A record whose parts are a user's own objects (any case, any outcome), as they were handed over."""

    __slots__ = ("case", "outcome", "trace")

    def __init__(self, case: Any, trace: Any, outcome: Any) -> None:
        self.case = case
        self.trace = trace
        self.outcome = outcome


def as_mapping(value: object) -> dict[str, Any] | None:
    """A plain dict of a mapping with text keys; ``None`` for anything else."""
    if isinstance(value, dict):
        return value
    return dict(value) if isinstance(value, Mapping) else None
