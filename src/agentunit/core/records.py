"""A record: one case with its trace and outcome. The unit that is written to disk, streamed and scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct, field
from msgspec.structs import fields

from agentunit.core.case import DatasetCase
from agentunit.core.trace import TraceLog
from agentunit.public import publish

# What came out of an agent's run.


class Outcome(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The result of one run: the agent's answer and what it says about itself.

    ``success`` is the agent's own flag, ``state`` the world it left behind (compared with a case's
    ``expected_state``), ``cost`` is in US dollars, ``elapsed_s`` in seconds. ``None`` means unknown.
    """

    success: bool | None = None
    output: Any = None
    cost: float | None = None
    usage: dict[str, Any] | None = None
    error: str | None = None
    state: dict[str, Any] | None = None
    elapsed_s: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] | None = field(default=None, name="__extra__")


def outcome_text(outcome: object) -> str | None:
    """The text of an outcome: the string itself, or its ``output``; ``None`` when it has none.

    An output that is data (a dict, a list, a number) becomes its JSON. An object without ``output`` has no text:
    a Python repr is never mistaken for an answer.

    >>> outcome_text("Paris"), outcome_text(Outcome(output={"city": "Paris"})), outcome_text(object())
    ('Paris', '{"city":"Paris"}', None)
    """
    output = outcome if isinstance(outcome, (str, bool, int, float, list)) else getattr(outcome, "output", None)
    if output is None or isinstance(output, str):
        return output
    if isinstance(output, float) and not isfinite(output):
        return None
    try:
        # An object has no order, so two that are equal must read the same.
        plain = msgspec.to_builtins(output, str_keys=True, order="sorted")
        return msgspec.json.encode(plain, order="sorted").decode()
    except (TypeError, ValueError, RecursionError):
        return _unordered_json(output)


def _unordered_json(output: Any) -> str | None:
    """The JSON of what holds names or members that cannot be put in order."""
    try:
        return msgspec.json.encode(output).decode()
    except (TypeError, ValueError, RecursionError):
        return None


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

    __slots__ = ("case", "extra", "outcome", "trace")

    def __init__(self, case: Any, trace: Any, outcome: Any, extra: dict[str, Any] | None = None) -> None:
        self.extra = extra
        self.case = case
        self.trace = trace
        self.outcome = outcome


class OwnPart:
    """A user's own object in the place of a case, a trace or an outcome: the fields that it lacks are empty.

    All else is the object's: its attributes, its class, how it is compared, printed, counted and walked through.

    >>> class Reply:
    ...     text = "Paris"
    >>> outcome = OwnPart(Reply(), Outcome)
    >>> outcome.text, outcome.output, outcome.metadata, isinstance(outcome, Reply)
    ('Paris', None, {}, True)
    """

    __slots__ = ("_kind", "_own")

    def __init__(self, own: Any, kind: type[Struct]) -> None:
        object.__setattr__(self, "_own", own)
        object.__setattr__(self, "_kind", kind)

    @property  # type: ignore[misc]  # what isinstance asks, beside the true type
    def __class__(self) -> Any:
        return type(self._own)

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._own, name)
        except AttributeError:
            for each in fields(self._kind):
                if each.name == name:
                    return each.default if each.default is not NODEFAULT else each.default_factory()
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._own, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnPart, (self._own, self._kind)

    def __eq__(self, other: object) -> bool:
        return bool(self._own == (other._own if type(other) is OwnPart else other))

    def __hash__(self) -> int:
        return hash(self._own)

    def __bool__(self) -> bool:
        return bool(self._own)

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._own)

    def __getitem__(self, key: Any) -> Any:
        return self._own[key]

    def __repr__(self) -> str:
        return repr(self._own)

    def __str__(self) -> str:
        return str(self._own)


def as_mapping(value: object) -> dict[str, Any] | None:
    """A plain dict of a mapping with text keys; ``None`` for anything else."""
    if isinstance(value, dict):
        return value
    return dict(value) if isinstance(value, Mapping) else None


publish("agentunit", Outcome, Record)
