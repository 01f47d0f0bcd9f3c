"""One conversation as it is put together, message by message, into the events of a trace; and who spoke to whom."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from itertools import count
from typing import Any, NamedTuple

from agentunit.addons.formats.chats.loose_values import as_data, as_dict, without_nones
from agentunit.core.trace import AgentInteraction, TraceEvent
from agentunit.traces.content_blocks import MessageBlock, called
from agentunit.traces.spans import ReadingNotes

_NAMELESS = "a tool call has no name; it was left out"
_NO_TOKENS = "a model call states 0 tokens, which no call takes; they count as unknown"
_ORPHAN = "a tool result answers no recorded call; it was kept as a call without arguments"


class Conversation:
    """The events of one conversation. A tool call and its result, told by id, become one event.

    ``first_asked`` is the first thing the user said, ``last_answer`` the last thing the agent did.

    >>> talk = Conversation(ReadingNotes())
    >>> talk.call("search", '{"q": "Oslo"}', call_id="c1")
    >>> talk.result("no such page", call_id="c1", failed=True)
    >>> talk.events[0].payload["status"], talk.events[0].payload["arguments"]
    ('error', {'q': 'Oslo'})
    """

    def __init__(self, notes: ReadingNotes) -> None:
        self.events: list[TraceEvent] = []
        self.notes = notes
        self.first_asked: str | None = None
        self.last_answer: str | None = None
        # Calls that wait for their result, oldest first: some providers use an id again. Of the numbers under a key,
        # those of answered calls are dropped when they are met.
        self._next_number = count()
        self._waiting: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._numbers: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)

    def say(
        self, role: str, text: str | None, *, agent: str | None = None, at: float | None = None, **more: Any
    ) -> None:
        """A message; one without words is no event."""
        if text is None or not text.strip():
            return
        if role == "user" and self.first_asked is None:
            self.first_asked = text
        elif role == "assistant":
            self.last_answer = text
        payload = {"role": role, "content": text, **without_nones(agent=agent, **more)}
        self.events.append(TraceEvent("message", payload, at))

    def model_call(
        self,
        usage: dict[str, Any] | None,
        *,
        model: str | None = None,
        cost: float | None = None,
        agent: str | None = None,
        at: float | None = None,
    ) -> None:
        """A call of a language model; without tokens and cost there is nothing to tell.

        No call takes no tokens at all: clients write 0 for what their provider did not send.
        """
        if usage and not any(_is_counted(count) for count in usage.values()):
            self.notes.problems[_NO_TOKENS] += 1
            usage = None
        if usage or cost is not None:
            payload = without_nones(model=model, usage=usage, cost=cost, agent=agent)
            self.events.append(TraceEvent("llm_call", payload, at))

    def call(
        self,
        name: str,
        arguments: Any,
        *,
        call_id: str | None = None,
        agent: str | None = None,
        at: float | None = None,
        kind: str = "tool_call",
    ) -> None:
        """A tool call. It has no status until its result comes: whether it succeeded is unknown."""
        payload = {"name": name, "arguments": as_data(arguments), **without_nones(id=call_id, agent=agent)}
        self.events.append(TraceEvent(kind, payload, at))
        number = next(self._next_number)
        self._waiting[number] = payload
        self._numbers["name", name].append(number)
        self._numbers[("without id", name) if call_id is None else ("id", call_id)].append(number)

    def add_calls(
        self, values: list[Any], *, agent: str | None = None, at: float | None = None, kind: str = "tool_call"
    ) -> None:
        """Tool calls in the shapes of the common providers; one without a name is left out and noted."""
        for value in values:
            self.add_call(called(as_dict(value)), agent=agent, at=at, kind=kind)

    def add_call(
        self, call: MessageBlock, *, agent: str | None = None, at: float | None = None, kind: str = "tool_call"
    ) -> None:
        """A tool call that was read; one without a name is left out and noted."""
        if call.name is None:
            self.notes.problems[_NAMELESS] += 1
        else:
            self.call(call.name, call.arguments, call_id=call.call_id, agent=agent, at=at, kind=kind)

    def result(
        self,
        result: Any,
        *,
        call_id: str | None = None,
        name: str | None = None,
        failed: bool | None = False,
        error: str | None = None,
        agent: str | None = None,
        at: float | None = None,
        duration_s: float | None = None,
        kind: str = "tool_call",
    ) -> None:
        """The result of a call: of the oldest one with that id, or, where results have no ids, with that name.

        ``failed`` is ``None`` where it is not known how the call ended.
        """
        payload = self._answered(call_id, name)
        if payload is None:
            self.notes.problems[_ORPHAN] += 1
            payload = {"name": name or "", **without_nones(id=call_id, agent=agent)}
            self.events.append(TraceEvent(kind, payload, at))
        if failed is not None:
            payload["status"] = "error" if failed else "success"
        payload.update(without_nones(result=result, duration_s=duration_s))
        if failed:
            payload["error"] = error or (result if isinstance(result, str) and result else "the tool failed")

    def fail_waiting(self, agent: str, error: str, derived_from: str) -> None:
        """The calls of an agent that have no result yet failed, as far as one can tell from something else."""
        for number in [number for number, call in self._waiting.items() if call.get("agent") == agent]:
            self._waiting.pop(number).update(status="error", error=error, derived_from=derived_from)

    def identify(self, name: str, call_id: str) -> dict[str, Any] | None:
        """Give an id to the oldest waiting call of this name that has none."""
        number = self._oldest("without id", name)
        if number is None:
            return None
        self._numbers["without id", name].popleft()
        self._numbers["id", call_id].append(number)
        self._waiting[number]["id"] = call_id
        return self._waiting[number]

    def _answered(self, call_id: str | None, name: str | None) -> dict[str, Any] | None:
        if call_id is not None:
            number = self._oldest("id", call_id)
        else:
            number = next(iter(self._waiting), None) if name is None else self._oldest("name", name)
        return None if number is None else self._waiting.pop(number)

    def _oldest(self, key: str, value: str) -> int | None:
        """The number of the oldest waiting call with this id or name."""
        numbers = self._numbers.get((key, value)) or deque()
        while numbers and numbers[0] not in self._waiting:
            numbers.popleft()
        return numbers[0] if numbers else None


def _is_counted(count: Any) -> bool:
    return any(count.values()) if isinstance(count, dict) else bool(count)


HUMANS = frozenset(("user", "human"))
NEXT_SPEAKER = "the next speaker"


class Turn(NamedTuple):
    """One agent's turn. ``to`` is whom the source names as addressee; ``None`` where it names nobody."""

    speaker: str
    text: str
    at: float | None = None
    to: str | None = None


def interactions_of(turns: list[Turn]) -> list[AgentInteraction]:
    """The messages between agents; where no addressee is stated, it is taken to be the next one who speaks.

    What was inferred says so in its metadata. Whether a message was a success, no chat tells. The human is no agent,
    and the last word is to nobody in particular.

    >>> turns = [Turn("a", "Go."), Turn("b", "Done."), Turn("a", "Good.")]
    >>> [(each.from_agent, each.to_agent) for each in interactions_of(turns)]
    [('a', 'b'), ('b', 'a')]
    """
    # Read backwards, the next other speaker is one step away however long a monologue is.
    found: list[AgentInteraction] = []
    following = after_following = None
    for turn in reversed(turns):
        if turn.speaker != following:
            following, after_following = turn.speaker, following
        addressee = turn.to or after_following
        if addressee and addressee != turn.speaker and not {turn.speaker.lower(), addressee.lower()} & HUMANS:
            derived = {} if turn.to else {"derived_from": NEXT_SPEAKER}
            found.append(
                AgentInteraction(
                    turn.speaker, addressee, content=turn.text, timestamp=turn.at, success=None, metadata=derived
                )
            )
    found.reverse()
    return found
