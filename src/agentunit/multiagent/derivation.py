"""What the agents of a trace did, step by step, and with each other: read from its events where nobody recorded it.

Objections are found in English only, and only where said outright: an agent that silently does something else is not
noticed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

from agentunit.core.codec import as_trace
from agentunit.core.results import json_fallback
from agentunit.core.trace import AgentInteraction, AgentRole, ConflictEvent, HandoffEvent, tool_status
from agentunit.metrics.inputs import InputProblem, Item, payload_of
from agentunit.public import publish

HUMANS = frozenset(("user", "human"))
# Printed lines and instructions are nobody's turn.
_NOT_SPOKEN = frozenset(("log", "system", "developer"))
_AGENT_KEYS = ("agent", "from_agent", "agent_name")
_SPOKEN_TYPES = frozenset(("message", "task_result"))


@dataclass(frozen=True)
class TeamStep:
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


def steps_of(trace: Any) -> list[TeamStep]:
    """The steps of a trace, in the order of its events; what has no words and calls no tool is no step.

    >>> events = [{"type": "message", "payload": {"role": "assistant", "agent": "coder", "content": "Done."}},
    ...           {"type": "tool_call", "payload": {"name": "test", "agent": "tester", "status": "error"}}]
    >>> [(step.number, step.agent, step.kind, step.failed) for step in steps_of({"events": events})]
    [(0, 'coder', 'message', None), (1, 'tester', 'tool_call', True)]
    """
    steps: list[TeamStep] = []
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
            steps.append(TeamStep(len(steps), position, agent, event.type, text, failed, event.timestamp))
            executed = None
        elif event.type in _SPOKEN_TYPES and text_in(payload.get("role")) not in _NOT_SPOKEN:
            text = text_in(payload.get("content"))
            if text.strip():
                failed = None if executed is None else call_failed(executed)
                step = TeamStep(
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


NEXT_SPEAKER = "the next speaker"
SPEAKER_ORDER = "the order of the speakers"
STATED_RECEIVER = "the receiver that the message names"
NAMES = "the names in the events"
INTRODUCTION = "the introduction of the team"
# How AG2's group chats and Magentic-One's orchestrator open: a list of "name: what it is for".
_INTRODUCED = re.compile(r"(?:In attendance are|assembled the following team):[ \t]*\n(?P<team>.*)", re.DOTALL)
_MEMBER = re.compile(r"^(?P<name>[A-Za-z][\w.-]{0,60}):[ \t]*\n?[ \t]*(?P<about>\S[^\n]*)", re.M)
WORDS_OF_DISAGREEMENT = "words of disagreement"
_WRONG = r"(?:incorrect|wrong|mistaken|inaccurate|flawed|not (?:quite |entirely )?(?:correct|right|accurate))"
_IS = r"(?:is|was|are|were|seems?|appears?)(?: to be)?"
_OBJECTION = re.compile(
    r"\bI (?:respectfully |have to |must )?disagree\b"
    rf"|\byour (?:[\w'-]+ ){{1,4}}?{_IS} {_WRONG}\b"
    rf"|(?:^|[.!?:\n] *|\bbut |\bhowever,? )(?:that|this)(?:'s| {_IS}) {_WRONG}\b"
    r"|\byou(?:'ve| have)? (?:overlooked|misread|misunderstood|miscalculated)\b"
    r"|\byou(?:'ve| have)? made (?:an? )?(?:\w+ )?(?:error|mistake)\b"
    r"|\b(?:error|mistake|flaw) in your\b"
    r"|\b(?:discrepancy|contradiction|inconsistency) between (?:your|our|the two|these)\b",
    re.IGNORECASE,
)
_AGREEMENT = re.compile(
    r"\b(?:I|we|both of us) (?:fully |completely |both )?agree\b(?! to)"
    r"|\byou(?:'re| are) (?:absolutely |quite )?(?:right|correct)\b"
    r"|\bI apologi[sz]e\b|\bapologies\b|\bgood catch\b|\bconsensus\b"
    r"|\bthank you for (?:pointing|catching|correcting|the correction)\b",
    re.IGNORECASE,
)
_EXCERPT_LENGTH = 200


@dataclass(frozen=True)
class Derived:
    """What the agents of a trace did with each other. ``derived`` names the fields that nobody recorded."""

    interactions: list[AgentInteraction]
    handoffs: list[HandoffEvent]
    conflicts: list[ConflictEvent]
    roles: dict[str, AgentRole]
    steps: list[TeamStep]
    derived: frozenset[str] = field(default_factory=frozenset)


def derived(trace: Any) -> Derived:
    """The interactions, handoffs, conflicts, roles and steps of a trace: as recorded, else read from its events.

    A message goes to whom it names, else to the next one who speaks. A handoff is the task's passing from one speaker
    to the next, unless the message names somebody else; it failed when all the next one's calls failed, and is unknown
    when it made none that tells. A conflict is an agent's objecting, in so many words, to the speaker before it.
    Response times come from time stamps. Roles derived from names allow everything: they state nobody's duties.

    >>> said = [("planner", "Find the date."), ("searcher", "It was in May."), ("planner", "Thanks.")]
    >>> events = [{"type": "message", "payload": {"role": "assistant", "agent": a, "content": t}} for a, t in said]
    >>> found = derived({"events": events})
    >>> [(each.from_agent, each.to_agent) for each in found.interactions]
    [('planner', 'searcher'), ('searcher', 'planner')]
    >>> found.interactions[0].metadata["derived_from"], sorted(found.roles)
    ('the next speaker', ['planner', 'searcher'])
    """
    trace = trace_of(trace)
    steps = steps_of(trace)
    recorded = {name: _recorded(trace, name) for name in ("interactions", "handoffs", "conflicts", "agent_roles")}
    named = _named_agents(trace)
    several = len(named) > 1
    interactions = list(recorded["interactions"] or (_interactions(steps) if several else ()))
    conflicts = list(recorded["conflicts"] or (derived_conflicts(steps) if several else ()))
    handoffs = list(recorded["handoffs"] or (_handoffs(steps) if several else ()))
    roles = dict(recorded["agent_roles"] or _roles(steps, named))
    made = {"interactions": interactions, "handoffs": handoffs, "conflicts": conflicts, "agent_roles": roles}
    return Derived(
        _with_response_times(interactions),
        handoffs,
        conflicts,
        roles,
        steps,
        frozenset(name for name, found in made.items() if found and not recorded[name]),
    )


def _recorded(trace: Any, name: str) -> Any:
    """What a trace holds under a name; it must be a list, or a dict for roles."""
    value = reading(trace, name)
    kind, wanted = ("dict", Mapping) if name == "agent_roles" else ("list", (list, tuple))
    if value is not None and not isinstance(value, wanted):
        raise InputProblem(f"trace.{name} must be a {kind}; received {value!r:.80}")
    return value


def _named_agents(trace: Any) -> list[str]:
    """The agents that any event names, the human aside, in order of appearance."""
    names = [agent_in(payload_of(event)) for event in Item(None, trace, None).events]
    return list(dict.fromkeys(name for name in names if name and name.lower() not in HUMANS))


def _turns(steps: Sequence[TeamStep]) -> list[tuple[str, list[TeamStep]]]:
    """Messages and calls in runs of one agent each; the human's, and those of nobody, are left out.

    Results of assigned tasks are left out as well: workers deliver them side by side, not to each other.
    """
    turns: list[tuple[str, list[TeamStep]]] = []
    for step in steps:
        if step.agent is None or step.by_human or step.kind == "task_result":
            continue
        if not turns or turns[-1][0] != step.agent:
            turns.append((step.agent, []))
        turns[-1][1].append(step)
    return turns


def _interactions(steps: Sequence[TeamStep]) -> list[AgentInteraction]:
    turns = _turns(steps)
    found: list[AgentInteraction] = []
    for place, (agent, said) in enumerate(turns):
        following = turns[place + 1][0] if place + 1 < len(turns) else None
        for step in said:
            stated = step.to_agents
            receivers = tuple(name for name in stated or (following,) if name and name != agent)
            if step.kind == "tool_call" or not receivers:
                continue
            found.append(
                AgentInteraction(
                    agent,
                    receivers[0] if len(receivers) == 1 else list(receivers),
                    content=step.text,
                    timestamp=step.timestamp,
                    success=None,
                    metadata={"derived_from": STATED_RECEIVER if stated else NEXT_SPEAKER, "step": step.number},
                )
            )
    return found


def _handoffs(steps: Sequence[TeamStep]) -> list[HandoffEvent]:
    turns = _turns(steps)
    found = []
    for (giver, turn), (taker, taken) in pairwise(turns):
        stated = turn[-1].to_agents
        if stated and taker not in stated:
            continue
        verdicts = [step.failed for step in taken if step.failed is not None]
        asked_at, taken_at = turn[-1].timestamp, taken[0].timestamp
        known = asked_at is not None and taken_at is not None and taken_at >= asked_at
        found.append(
            HandoffEvent(
                giver,
                taker,
                success=not all(verdicts) if verdicts else None,
                handoff_time=taken_at - asked_at if known else None,  # type: ignore[operator]
                timestamp=taken_at,
                metadata={"derived_from": SPEAKER_ORDER, "step": taken[0].number},
            )
        )
    return found


def _roles(steps: Sequence[TeamStep], named: Sequence[str]) -> dict[str, AgentRole]:
    roles: dict[str, AgentRole] = {}
    introduced = next((found for step in steps[:4] if (found := _INTRODUCED.search(step.text))), None)
    for member in _MEMBER.finditer(introduced["team"].split("\n\n\n")[0]) if introduced else ():
        about = {"derived_from": INTRODUCTION}
        roles.setdefault(member["name"], AgentRole(member["name"], member["about"].strip(), metadata=about))
    for name in named if len(named) > 1 else ():
        roles.setdefault(name, AgentRole(name, metadata={"derived_from": NAMES}))
    return roles


def _with_response_times(interactions: list[Any]) -> list[Any]:
    """The interactions, with the time until the receiver's next message to the sender where stamps tell it."""
    if any(reading(each, "response_time") is not None for each in interactions):
        return interactions
    if not any(reading(each, "timestamp") is not None for each in interactions):
        return interactions
    answered_at: dict[tuple[str, str], float] = {}
    timed: dict[int, Any] = {}
    latest_first = sorted(range(len(interactions)), key=lambda place: _moment(interactions[place], place), reverse=True)
    for place in latest_first:
        each = interactions[place]
        at, sender = reading(each, "timestamp"), sender_of(each)
        receivers = receivers_of(each)
        answers = [when for name in receivers if (when := answered_at.get((name, sender))) is not None]
        if isinstance(each, AgentInteraction) and isinstance(at, float) and answers and min(answers) >= at:
            metadata = {**each.metadata, "response_time_derived_from": "the time of the answer"}
            each = msgspec.structs.replace(each, response_time=min(answers) - at, metadata=metadata)
        if isinstance(at, float):
            answered_at.update({(sender, name): at for name in receivers})
        timed[place] = each
    return [timed[place] for place in range(len(interactions))]


def _moment(interaction: Any, place: int) -> tuple[float, int]:
    """When an interaction was; those of one moment, or without one, stay in the order of the list."""
    at = reading(interaction, "timestamp")
    return (at if isinstance(at, float) else float("-inf")), place


def reading(entry: Any, name: str) -> Any:
    """A field of an interaction, handoff, conflict or role, whether it is an object or a plain dict."""
    return entry.get(name) if isinstance(entry, dict) else getattr(entry, name, None)


def sender_of(interaction: Any) -> str:
    """The sender of an interaction or handoff, which must be a name."""
    name = reading(interaction, "from_agent")
    if not isinstance(name, str):
        raise InputProblem(f"from_agent of an interaction must be an agent's name; received {name!r:.80}")
    return name


def receivers_of(interaction: Any) -> list[str]:
    """The receivers of an interaction or handoff, one name or several, as a list."""
    to = reading(interaction, "to_agent")
    names = [to] if isinstance(to, str) else to
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in names):
        raise InputProblem(f"to_agent of an interaction must be an agent's name, or several; received {to!r:.80}")
    return sorted(names) if isinstance(names, (set, frozenset)) else list(names)


def find_objection(text: str) -> re.Match[str] | None:
    """Where a text calls something wrong outright.

    >>> bool(find_objection("Your calculation is not correct: 7 x 8 is 56.")), find_objection("All of this is correct.")
    (True, None)
    """
    return _OBJECTION.search(text)


def derived_conflicts(steps: Sequence[TeamStep]) -> list[ConflictEvent]:
    """The objections of one speaker to the one before it.

    Resolved when either of the two says later that it agrees; not resolved when the other one speaks again and neither
    does; unknown when the other one has no further say.
    """
    spoken = [step for step in steps if step.agent is not None and not step.by_human and step.kind != "tool_call"]
    conflicts = []
    for place, (earlier, step) in enumerate(pairwise(spoken), 1):
        found = None if earlier.agent == step.agent or step.is_result else find_objection(step.text)
        if found is None or earlier.agent is None or step.agent is None:
            continue
        pair = [earlier.agent, step.agent]
        later = [each for each in spoken[place + 1 :] if each.agent in pair]
        settled = next((each for each in later if _AGREEMENT.search(each.text)), None)
        answered = any(each.agent == earlier.agent for each in later)
        resolution_s = None
        if settled is not None and settled.timestamp is not None and step.timestamp is not None:
            resolution_s = max(0.0, settled.timestamp - step.timestamp)
        start = max(0, found.start() - _EXCERPT_LENGTH // 2)
        conflicts.append(
            ConflictEvent(
                pair,
                "disagreement",
                resolved=True if settled else False if answered else None,
                resolution_time=resolution_s,
                timestamp=step.timestamp,
                description=" ".join(step.text[start : start + _EXCERPT_LENGTH].split()),
                metadata={"derived_from": WORDS_OF_DISAGREEMENT, "step": step.number},
            )
        )
    return conflicts


publish("agentunit.multiagent", Derived)
