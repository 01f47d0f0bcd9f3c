"""A conversation with an agent, turn by turn, and its turns as one trace and one outcome.

The agent is asked once a turn, with the conversation so far; its answers, events and amounts are put together, so that
a conversation that was run is the same to metrics as one that was recorded elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from agentunit.adapters.base import Agent, AgentResult
from agentunit.core.case import AskedCase, DatasetCase
from agentunit.core.conversation import SIMULATED_USER
from agentunit.core.records import Outcome, outcome_text
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.engine.recording.simulated_user import SimulatedUser, UserFailed
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.metrics.usage import COST_PARTS, ItemisedCost, find_usage, itemised_cost, recorded_cost
from agentunit.probes.measuring import joined_measurements, plain_facts

_SHORTEST_TIME_S = 0.001
_TEXTS = ("stdout", "stderr")
_ADDED = ("duration_s", "carbon_kg", "energy_kwh")
_OF_THE_FIRST = ("first_output_s",)
_MEASURED = "resource_use"
# What is added up over the turns and stands in the outcome.
_TOTALS = ("cost", "usage")


async def ask_agent(
    agent: Agent, asked: DatasetCase, user: SimulatedUser | None, *, timeout_s: float | None, seed: int | None
) -> AgentResult:
    """What an agent makes of a case: of its question, or of a conversation where the case has a user."""
    if user is None:
        return await agent.run(asked, timeout_s=timeout_s, seed=seed)
    return await converse(agent, asked, user, timeout_s=timeout_s, seed=seed)


async def converse(
    agent: Agent, asked: DatasetCase, user: SimulatedUser, *, timeout_s: float | None, seed: int | None
) -> AgentResult:
    """A conversation to its end, or to the first turn in which the agent or the user fails.

    ``asked`` is the case as the agent may see it. ``timeout_s`` is the agent's time for all turns together; the user's
    time is not counted. A user that fails leaves no failure in the result: the trace's metadata say so.
    """
    talk = _Talk(seed)
    failed: UserFailed | None = None
    while talk.failure is None:
        try:
            said = await user.next(talk.messages)
            if said is None and not talk.messages:
                raise UserFailed("it ended the conversation before it said anything")
        except UserFailed as error:
            failed, said = error, None
        if said is None:
            break
        at, messages = time.time(), [*talk.messages, {"role": "user", "content": said}]
        left_s = None if timeout_s is None else max(_SHORTEST_TIME_S, timeout_s - talk.elapsed_s)
        shown = (asked.tools, asked.context, asked.metadata)
        result = await agent.run(
            AskedCase(asked.id, said, None, *shown, messages=messages), timeout_s=left_s, seed=seed
        )
        talk.add(said, result, at)
    about = user.about()
    if about is not None:
        if failed is not None:
            about["failed"] = str(failed)
            if failed.traceback_text is not None:
                about["traceback"] = failed.traceback_text
        talk.trace.metadata[SIMULATED_USER] = about
    return talk.result()


class _Talk:
    """The turns so far, as one trace and one outcome."""

    def __init__(self, seed: int | None) -> None:
        self.messages: list[dict[str, Any]] = []
        self.trace = TraceLog()
        self.elapsed_s = 0.0
        self.failure: Any = None
        self._outcomes: list[Outcome] = []
        self._items: list[Item] = []
        self._usages: list[tuple[Any, str] | None] = []

    def add(self, said: str, result: AgentResult, at: float) -> None:
        """Take in one turn: what the user said then, and what the agent did."""
        number = len(self._outcomes) + 1
        answer = outcome_text(result.outcome)
        self.messages += [{"role": "user", "content": said}, {"role": "assistant", "content": answer or ""}]
        self._join_events(number, said, answer, list(result.trace.events), at)
        for name in ("interactions", "handoffs", "conflicts"):
            getattr(self.trace, name).extend(getattr(result.trace, name))
        self.trace.agent_roles.update(result.trace.agent_roles)
        self._join_metadata(result.trace.metadata)
        self.elapsed_s += result.elapsed_s
        self.failure = result.failure
        if result.failure is None and result.outcome.error and result.outcome.output is None:
            # The agent says itself that it has no answer: there is nothing that the user could answer to.
            self.failure = "reported"
        self._count(result)
        self._outcomes.append(result.outcome)

    def result(self) -> AgentResult:
        """The whole conversation. Its outcome is that of the last turn, with the amounts of all of them."""
        outcome = msgspec.structs.replace(self._outcomes[-1]) if self._outcomes else Outcome()
        outcome.elapsed_s = self._elapsed_s()
        cost, parts = _total_cost(self._items)
        if cost is not None:
            outcome.cost = cost
        if cost is not None and parts is not None:
            self.trace.metadata[COST_PARTS] = parts
        if usage := _total_usage(self._usages):
            outcome.usage = usage
        if self.failure is not None and outcome.error and len(self._outcomes) > 1:
            outcome.error = f"turn {len(self._outcomes)}: {outcome.error}"
        failure = None if self.failure == "reported" else self.failure
        return AgentResult(outcome, self.trace, self.elapsed_s, failure)

    def _elapsed_s(self) -> float | None:
        stated = [each.elapsed_s for each in self._outcomes]
        known = [each for each in stated if isinstance(each, (int, float))]
        return float(sum(known)) if known and len(known) == len(stated) else self.elapsed_s

    def _join_events(self, number: int, said: str, answer: str | None, events: list[Any], at: float) -> None:
        """The two messages of the turn around its events; one that the agent has recorded itself is only marked."""
        asked = events[0] if events and _is_message(events[0], "user", said) else None
        answered = events[-1] if len(events) > 1 and answer and _is_message(events[-1], "assistant", answer) else None
        if asked is None:
            events.insert(0, TraceEvent("message", {"role": "user", "content": said, "turn": number}, at))
        else:
            asked.payload["turn"] = number
        if answered is not None:
            answered.payload["turn"] = number
        elif answer is not None:
            events.append(TraceEvent("message", {"role": "assistant", "content": answer, "turn": number}, time.time()))
        self.trace.events += events

    def _join_metadata(self, later: Any) -> None:
        metadata = self.trace.metadata
        for name, value in later.items() if isinstance(later, dict) else ():
            earlier = metadata.get(name)
            if name in _TOTALS and not self._is_broken(name, value):
                continue
            if name == _MEASURED and isinstance(earlier, dict) and isinstance(value, dict):
                metadata[name] = joined_measurements(earlier, value)
            elif earlier is None:
                metadata[name] = value
            elif _adds_up(name, earlier) and _adds_up(name, value):
                metadata[name] = earlier + value
            elif name not in _OF_THE_FIRST:
                metadata[name] = value
        measured = metadata.get(_MEASURED)
        if isinstance(measured, dict) and isinstance(later, dict) and isinstance(later.get(_MEASURED), dict):
            with suppress(AttributeError, TypeError, KeyError):
                of_turn = plain_facts(later[_MEASURED])
                # What the agent says of itself stays.
                metadata.update({k: v for k, v in plain_facts(measured).items() if later.get(k) == of_turn.get(k)})

    def _is_broken(self, name: str, value: Any) -> bool:
        """Whether a total cannot be read: it stays where it is, for the metric that says so."""
        try:
            recorded_cost(Item(None, {"metadata": {name: value}}, None))
            find_usage(Item(None, {"metadata": {name: value}}, None))
        except InputProblem:
            return True
        return False

    def _count(self, result: AgentResult) -> None:
        item = Item(None, result.trace, result.outcome)
        self._items.append(item)
        with suppress(InputProblem):
            self._usages.append(find_usage(item))


def _total_cost(turns: Sequence[Item]) -> tuple[float | None, dict[str, Any] | None]:
    """What all turns cost, and what of it is no stated total; nothing where the events tell it as well.

    A turn that states no total costs what its calls do, by list price where they state tokens alone.
    """
    known: list[float] = []
    by_calls: list[ItemisedCost] = []
    unpriced: str | None = None
    is_told_by_events = True
    for item in turns:
        try:
            total, usage = recorded_cost(item), find_usage(item)
            is_told_by_events &= total is None and (usage is None or usage[1] == "llm_call events")
            by_calls += [itemised_cost(item)] if total is None else []
            known += [] if total is None else [total]
        except InputProblem as problem:
            unpriced, is_told_by_events = str(problem), False
    if is_told_by_events:
        return None, None
    known += [cost for each in by_calls for cost in (each.tool_cost, each.llm_cost) if cost is not None]
    unpriced = next((each.unpriced for each in by_calls if each.unpriced is not None), unpriced)
    listed = any(each.listed for each in by_calls)
    return sum(known) if known else None, {"listed": listed, "unpriced": unpriced} if listed or unpriced else None


def _total_usage(found: Sequence[tuple[Any, str] | None]) -> dict[str, int] | None:
    """The tokens of all turns; ``None`` where the events state them, which metrics add up by themselves."""
    known = [each for each in found if each is not None]
    if not any(place != "llm_call events" for _, place in known):
        return None
    names = {"prompt_tokens": "prompt", "completion_tokens": "completion", "total_tokens": "total"}
    usage: dict[str, int] = {}
    for name, field in names.items():
        amounts = [getattr(tokens, field) for tokens, _ in known]
        if None not in amounts:
            usage[name] = sum(amounts)
    return usage or None


def add_earlier_users(result: AgentResult, earlier: Sequence[Mapping[str, Any]]) -> None:
    """Add what the users of failed attempts took of a judge: it was paid for, and their traces are not kept."""
    about = result.trace.metadata.get(SIMULATED_USER)
    spent = about.get("judge") if isinstance(about, dict) else None
    if not isinstance(spent, dict):
        return
    for each in earlier:
        for name in ("calls", "cached", "unstated"):
            if each.get(name):
                spent[name] = spent.get(name, 0) + each[name]
        for name in ("prompt_tokens", "completion_tokens", "cost_usd"):
            amounts = (spent.get(name), each.get(name))
            spent[name] = None if None in amounts else sum(amounts)


def _is_message(event: Any, role: str, text: str) -> bool:
    payload = event.payload if isinstance(event, TraceEvent) and event.type == "message" else None
    return isinstance(payload, dict) and payload.get("role") == role and payload.get("content") == text


def _adds_up(name: str, value: Any) -> bool:
    """Whether the values of turns under this name are added up: what was printed, and amounts."""
    is_amount = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (name in _TEXTS and isinstance(value, str)) or (name in _ADDED and is_amount)
