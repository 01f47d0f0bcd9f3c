"""What the multi-agent measures read: the interactions of agents, in whatever shape they come.

Entries may be the types of the data model, other objects with the same fields, or plain dicts. They are kept as
columns, not as objects, so that a hundred thousand interactions are read in a fraction of a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from enum import Enum
from functools import cached_property, lru_cache
from itertools import chain, compress
from math import isfinite
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import NODEFAULT, Struct, structs

from agentunit.core.trace import (
    AgentInteraction,
    AgentRole,
    ConflictEvent,
    HandoffEvent,
    InteractionType,
    epoch_seconds,
)
from agentunit.formulas.coordination import UNSTATED_MESSAGE_TYPE, Duties
from agentunit.formulas.graph import Graph
from agentunit.metrics.inputs import InputProblem, number_at

_StructT = TypeVar("_StructT", bound=Struct)
_ReadT = TypeVar("_ReadT")
# Values of these types are hashable, and equal only to their own kind: 1 and True are not, nor enumerations and texts.
_DISTINGUISHABLE = frozenset((str, bool, type(None)))
# Far below the largest amount that is accepted, so that what is above is read with care and named if it is wrong.
_ORDINARY_S = 1e9


def entries_of(values: Any, kind: type[_StructT], place: str) -> Sequence[_StructT]:
    """The entries of a list as the data model's own type; fields that it does not know are nobody's concern here."""
    if values is None:
        return []
    if not isinstance(values, (list, tuple)):
        raise InputProblem(f"{place} must be a list; received {values!r:.80}")
    if set(map(type, values)) <= {kind}:
        return values
    return [
        value if value.__class__ is kind else entry_of(value, kind, f"{place}[{number}]")
        for number, value in enumerate(values)
    ]


def entry_of(value: Any, kind: type[_StructT], place: str) -> _StructT:
    """One entry of the data model's own type, made of a dict or of an object with the same fields."""
    names, needed = _fields_of(kind)
    if isinstance(value, Mapping):
        known = {name: _plain(each) for name, each in value.items() if name in names}
    else:
        known = {name: _plain(getattr(value, name)) for name in names if hasattr(value, name)}
    for name in needed:
        if name not in known:
            raise InputProblem(f"{place} must have {name!r}; received {value!r:.80}")
    try:
        return kind(**known)
    except (TypeError, ValueError) as error:
        raise InputProblem(f"{place}: {error!s:.120}") from None


@lru_cache(maxsize=8)
def _fields_of(kind: type[Struct]) -> tuple[frozenset[str], list[str]]:
    """The fields of a type, and those it cannot be made without."""
    all_fields = structs.fields(kind)
    needed = [each.name for each in all_fields if each.default is NODEFAULT and each.default_factory is NODEFAULT]
    return frozenset(each.name for each in all_fields), needed


def column(entries: Sequence[Any], place: str, name: str, read: Callable[[str, Any], _ReadT]) -> list[_ReadT]:
    """One field of all entries; what many entries share is read once."""
    values = list(map(attrgetter(name), entries))
    if set(map(type, values)) <= _DISTINGUISHABLE:
        first_at = dict(zip(reversed(values), range(len(values) - 1, -1, -1), strict=True))
        meaning = {value: read(f"{place}[{number}].{name}", value) for value, number in first_at.items()}
        return list(map(meaning.__getitem__, values))
    return [read(f"{place}[{number}].{name}", value) for number, value in enumerate(values)]


def column_of_seconds(entries: Sequence[Any], place: str, name: str) -> list[float | None]:
    """One field of all entries that says how long something took."""
    values = list(map(attrgetter(name), entries))
    if set(map(type, values)) <= {float, type(None)}:
        known = [value for value in values if value is not None]
        if all(map((0.0).__le__, known)) and all(map(_ORDINARY_S.__ge__, known)):
            return values
    return [seconds_at(f"{place}[{number}].{name}", value) for number, value in enumerate(values)]


def column_of_moments(entries: Sequence[Any], place: str, name: str) -> list[float | None]:
    """One field of all entries that says when something happened."""
    values = list(map(attrgetter(name), entries))
    if set(map(type, values)) <= {float, type(None)} and all(
        map(isfinite, [value for value in values if value is not None])
    ):
        return values
    return [moment_at(f"{place}[{number}].{name}", value) for number, value in enumerate(values)]


def _plain(value: Any) -> Any:
    """What a member of an enumeration stands for: its value where that is a text, else its name."""
    if not isinstance(value, Enum):
        return value
    return value.value if isinstance(value.value, str) else value.name


def name_at(place: str, value: Any) -> str:
    """The name of an agent; a number names one too."""
    value = _plain(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = f"{value:d}" if abs(value) < 10**100 else hex(value)
    if not isinstance(value, str):
        raise InputProblem(f"{place} must be the name of an agent; received {value!r:.80}")
    return value


def names_at(place: str, value: Any) -> tuple[str, ...]:
    """The names of no, one or many agents, each once."""
    if value is None or value == "":
        return ()
    if isinstance(value, (list, tuple, set, frozenset)):
        return tuple(dict.fromkeys(name_at(place, each) for each in value))
    return (name_at(place, value),)


def word_at(place: str, value: Any) -> str:
    """A word, or what an enumeration stands for; small and capital letters do not matter."""
    value = _plain(value)
    if not isinstance(value, str):
        raise InputProblem(f"{place} must be a text or an enumeration; received {value!r:.80}")
    return value.strip().lower()


def message_type_at(place: str, value: Any) -> str:
    """The type of a message; one that says nothing is of the type that says nothing."""
    return UNSTATED_MESSAGE_TYPE if value is None else word_at(place, value)


def words_at(place: str, value: Any) -> frozenset[str] | None:
    """Some words, or one; ``None`` says nothing."""
    if value is None:
        return None
    words = [value] if isinstance(value, (str, Enum)) else value
    if not isinstance(words, (list, tuple, set, frozenset)):
        raise InputProblem(f"{place} must be a list of texts; received {value!r:.80}")
    return frozenset(word_at(place, each) for each in words)


def moment_at(place: str, value: Any) -> float | None:
    """A point in time, in seconds; ``None`` is unknown."""
    try:
        return None if value is None else epoch_seconds(value)
    except ValueError as error:
        raise InputProblem(f"{place}: {error}") from None


def seconds_at(place: str, value: Any) -> float | None:
    """How long something took, in seconds; ``None`` is unknown."""
    return number_at(place, value.total_seconds() if isinstance(value, timedelta) else value)


def verdict_at(place: str, value: Any) -> bool | None:
    """Yes, no or unknown."""
    if value is None or isinstance(value, bool):
        return value
    raise InputProblem(f"{place} must be true, false or unknown (None); received {value!r:.80}")


@dataclass(frozen=True)
class Messages:
    """Interactions by column; those of an agent with itself are left out.

    ``moments`` says when, for telling early from late: time stamps, or any numbers in the same order. Of messages that
    were ``derived``, a type that is the default for all of them is not known.
    """

    senders: list[str] = field(default_factory=list)
    receivers: list[tuple[str, ...]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    message_types: list[str] = field(default_factory=list)
    moments: list[float | None] = field(default_factory=list)
    successes: list[bool | None] = field(default_factory=list)
    response_times_s: list[float | None] = field(default_factory=list)
    capabilities: list[tuple[str, ...]] = field(default_factory=list)
    derived: bool = False

    def __len__(self) -> int:
        return len(self.senders)

    def edges(self) -> Iterator[tuple[str, str]]:
        """Who addressed whom."""
        for sender, names in set(zip(self.senders, self.receivers, strict=True)):
            for name in names:
                yield sender, name

    def pair_counts(self, places: Sequence[int]) -> list[int]:
        """How often each sender addressed each receiver in the messages at some places."""
        said = zip(map(self.senders.__getitem__, places), map(self.receivers.__getitem__, places), strict=True)
        counts: Counter[tuple[str, str]] = Counter()
        for (sender, names), n_alike in Counter(said).items():
            for name in names:
                counts[sender, name] += n_alike
        return list(counts.values())

    def only(self, kept: Iterable[bool]) -> Messages:
        """The messages for which this is true."""
        flags = list(kept)
        if all(flags):
            return self
        columns = [each.name for each in fields(self) if each.name != "derived"]
        left: dict[str, Any] = {name: list(compress(getattr(self, name), flags)) for name in columns}
        return replace(self, **left)

    @property
    def types_are_known(self) -> bool:
        """Whether anything says of what type the interactions are."""
        return not self.derived or not {InteractionType.REQUEST.value}.issuperset(self.types)

    @property
    def message_types_are_known(self) -> bool:
        """Whether anything says of what type the messages are."""
        return not self.derived or not {UNSTATED_MESSAGE_TYPE}.issuperset(self.message_types)


@dataclass(frozen=True)
class Handoffs:
    """Handoffs by column."""

    givers: list[str] = field(default_factory=list)
    takers: list[str] = field(default_factory=list)
    successes: list[bool | None] = field(default_factory=list)
    times_s: list[float | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.givers)


@dataclass(frozen=True)
class Conflicts:
    """Conflicts by column."""

    parties: list[tuple[str, ...]] = field(default_factory=list)
    resolved: list[bool | None] = field(default_factory=list)
    times_s: list[float | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.parties)


@dataclass(frozen=True)
class Interactions:
    """All that agents did with each other. ``derived`` names what nobody recorded and the events of a trace show."""

    messages: Messages
    handoffs: Handoffs
    conflicts: Conflicts
    roles: Mapping[str, Duties]
    derived: tuple[str, ...] = ()

    @cached_property
    def agents(self) -> set[str]:
        """Those with a role, and those that were seen."""
        seen = chain(
            self.messages.senders,
            chain.from_iterable(set(self.messages.receivers)),
            self.handoffs.givers,
            self.handoffs.takers,
            chain.from_iterable(self.conflicts.parties),
        )
        return {*self.roles, *seen}

    def graph(self) -> Graph:
        """Who addressed whom, whether or not it succeeded."""
        return Graph(self.agents, self.messages.edges())


def interactions_of(trace: Any) -> Interactions:
    """What the agents of a trace did with each other: as recorded, else as its events tell it."""
    # Imported here: the measures on lists that a user passes need no derivation.
    from agentunit.multiagent.derivation import derived

    found = derived(trace)
    messages = read_interactions(found.interactions)
    derived_names = set(found.derived)
    # Readers of chat logs derive interactions too, and mark them the same way.
    if any("derived_from" in _metadata_of(each) for each in found.interactions):
        derived_names.add("interactions")
    if any("response_time_derived_from" in _metadata_of(each) for each in found.interactions):
        derived_names.add("response_times")
    if "interactions" in derived_names:
        messages = replace(messages, derived=True)
        if all(moment is None for moment in messages.moments):
            # Events stand in the order in which they happened, so what was derived from them is in order too.
            messages = replace(messages, moments=[float(place) for place in range(len(messages))])
    return Interactions(
        messages,
        read_handoffs(found.handoffs),
        read_conflicts(found.conflicts),
        read_roles(found.roles),
        tuple(sorted(derived_names)),
    )


def read_interactions(values: Any) -> Messages:
    """The interactions of a list, as columns.

    >>> entries = [{"from_agent": "a", "to_agent": ["b", "a"], "interaction_type": "Negotiation"},
    ...          {"from_agent": "a", "to_agent": "a"}]
    >>> messages = read_interactions(entries)
    >>> messages.receivers, messages.types
    ([('b',)], ['negotiation'])
    """
    if isinstance(values, Messages):
        return values
    place = "interactions"
    entries = entries_of(values, AgentInteraction, place)
    senders = column(entries, place, "from_agent", name_at)
    addressed = column(entries, place, "to_agent", names_at)
    receivers = [
        tuple([name for name in names if name != sender]) if sender in names else names
        for sender, names in zip(senders, addressed, strict=True)
    ]
    messages = Messages(
        senders,
        receivers,
        column(entries, place, "interaction_type", word_at),
        column(entries, place, "message_type", message_type_at),
        column_of_moments(entries, place, "timestamp"),
        column(entries, place, "success", verdict_at),
        column_of_seconds(entries, place, "response_time"),
        [_capabilities_of(entry, number) if entry.metadata else () for number, entry in enumerate(entries)],
    )
    between_agents = [not names or bool(left) for names, left in zip(addressed, receivers, strict=True)]
    return messages.only(between_agents)


def read_handoffs(values: Any) -> Handoffs:
    """The handoffs of a list, as columns."""
    if isinstance(values, Handoffs):
        return values
    entries = entries_of(values, HandoffEvent, "handoffs")
    return Handoffs(
        column(entries, "handoffs", "from_agent", name_at),
        column(entries, "handoffs", "to_agent", name_at),
        column(entries, "handoffs", "success", verdict_at),
        column_of_seconds(entries, "handoffs", "handoff_time"),
    )


def read_conflicts(values: Any) -> Conflicts:
    """The conflicts of a list, as columns."""
    if isinstance(values, Conflicts):
        return values
    entries = entries_of(values, ConflictEvent, "conflicts")
    return Conflicts(
        column(entries, "conflicts", "agents_involved", names_at),
        column(entries, "conflicts", "resolved", verdict_at),
        column_of_seconds(entries, "conflicts", "resolution_time"),
    )


def read_roles(values: Any) -> dict[str, Duties]:
    """What each agent's role says of its acts. A role that is only a name says nothing.

    >>> read_roles({"a": {"name": "lead", "can_delegate": False}, "b": "coder"})["a"].can_delegate
    False
    """
    if values is not None and not isinstance(values, Mapping):
        raise InputProblem(f"agent_roles must be a dict from agents to roles; received {values!r:.80}")
    duties = {}
    for agent, role in (values or {}).items():
        if isinstance(role, Duties):
            duties[agent] = role
            continue
        place = f"agent_roles[{agent!r:.40}]"
        named = AgentRole(role) if isinstance(role, str) else role
        entry = named if named.__class__ is AgentRole else entry_of(named, AgentRole, place)
        duties[name_at(place, agent)] = Duties(
            words_at(f"{place}.message_types", entry.message_types),
            words_at(f"{place}.capabilities", entry.capabilities),
            verdict_at(f"{place}.can_delegate", entry.can_delegate),
            verdict_at(f"{place}.can_escalate", entry.can_escalate),
        )
    return duties


def _metadata_of(interaction: Any) -> Mapping[str, Any]:
    metadata = getattr(interaction, "metadata", None)
    return metadata if isinstance(metadata, dict) else {}


def _capabilities_of(entry: AgentInteraction, number: int) -> tuple[str, ...]:
    """The capabilities that an act says it used: ``metadata["capability"]``, one or several."""
    used = entry.metadata.get("capability") if isinstance(entry.metadata, Mapping) else None
    return tuple(sorted(words_at(f"interactions[{number}].metadata['capability']", used) or ()))
