"""Conversations: what a case says about its user, and the turns that a trace records.

A trace holds a conversation as ``message`` events, whoever recorded it: the user's message, what the agent did, its
answer, and so on. A run marks those of its own two speakers with the number of their ``turn``, because agents record
messages among themselves as well; in other recordings, each message of a user begins a turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agentunit.core.records import outcome_text
from agentunit.core.trace import TraceEvent

USER_FAILED = "the simulated user failed"
"""How the reason begins why a case has no score in which the simulated user failed, and not the agent."""
SIMULATED_USER = "simulated_user"
"""The name in a trace's metadata under which stands who played the user, how it ended, and what it took."""
DEFAULT_MAX_TURNS = 10

UserKind = Literal["script", "function", "judge"]
_USERS = ("user", "human")
_AGENTS = ("assistant", "ai", "agent", "model")
_TURN_TEXTS = ("query", "content")
_TURN_EXPECTED = ("expected_output", "expected")
_OF_A_PERSONA = ("persona", "goal", "max_turns", "seed", "stop")
_SHAPE_OF_TURNS = 'a list of what the user says, such as ["Hello", {"query": "And now?", "expected_output": "Rain."}]'


class ConversationError(ValueError):
    """A case whose ``turns`` or ``user`` cannot be used; the message says what was received and what would do."""


class ScriptedTurn(NamedTuple):
    """What a user says, and what the answer should be, if that is known."""

    query: str
    expected_output: Any = None


class Persona(NamedTuple):
    """A user that a judge model plays: who it is, what it wants, and when it has had enough."""

    persona: str
    goal: str
    max_turns: int = DEFAULT_MAX_TURNS
    seed: int | None = None
    stop: str | None = None


class Exchange(NamedTuple):
    """One turn of a recorded conversation: what the user said, and the last thing the agent answered to it.

    ``events`` are those of the turn, both messages included; ``end`` is the place behind the last of them.
    """

    number: int
    query: str
    answer: str | None
    events: Sequence[TraceEvent]
    end: int


def names_turns(value: Any) -> bool:
    """Whether data under the name ``turns`` are what a user says; a number is some fact of the dataset's own.

    >>> names_turns(["Hello"]), names_turns(3), names_turns("3"), names_turns("Hello")
    (True, False, False, True)
    """
    return not (
        value is None or isinstance(value, (bool, int, float)) or (isinstance(value, str) and _is_number(value))
    )


def names_user(value: Any) -> bool:
    """Whether data under the name ``user`` say who plays the user; a name or an id is a fact of the dataset's own.

    >>> names_user({"persona": "A tourist", "goal": "Find a hotel"}), names_user("alice"), names_user({"id": 7})
    (True, False, False)
    """
    if isinstance(value, Mapping):
        return not {"function", *_OF_A_PERSONA}.isdisjoint(value)
    return callable(value)


def user_kind(case: Any) -> UserKind | None:
    """Who plays the user of a case; ``None`` for a case of one question, and for data that are no user.

    >>> user_kind({"turns": ["Hi", "Bye"]}), user_kind({"query": "Hi"})
    ('script', None)
    """
    if isinstance(case, Mapping):
        turns, user = case.get("turns"), case.get("user")
    else:
        turns, user = getattr(case, "turns", None), getattr(case, "user", None)
    if turns is None and user is None:
        return None
    if isinstance(turns, (list, tuple)) and turns and all(map(_turn_or_none, turns)):
        return "script"
    if callable(user) or (isinstance(user, Mapping) and isinstance(user.get("function"), str)):
        return "function"
    return "judge" if isinstance(user, Mapping) and {"persona", "goal"} <= user.keys() else None


def check_conversation(turns: Any, user: Any) -> None:
    """Refuse ``turns`` and ``user`` that cannot be used, with the way out."""
    if turns is not None and user is not None:
        raise ConversationError(
            "a case must have turns or user, not both: turns are the whole of what the user says (query may be the "
            "first message of either)"
        )
    if turns is not None:
        scripted(turns)
    if user is not None and not callable(user):
        persona_of(user)


def scripted(turns: Any) -> list[ScriptedTurn]:
    """What the user of a case says.

    >>> scripted(["Hello", {"query": "Rain today?", "expected_output": "No."}])[1].expected_output
    'No.'
    >>> scripted("Hello")
    Traceback (most recent call last):
    ...
    agentunit.core.conversation.ConversationError: turns must be a list of what the user says, such as ["Hello",
    {"query": "And now?", "expected_output": "Rain."}]; received 'Hello'
    """
    if not isinstance(turns, (list, tuple)) or not turns:
        raise ConversationError(f"turns must be {_SHAPE_OF_TURNS}; received {turns!r:.80}")
    return [_scripted_turn(each, number) for number, each in enumerate(turns, 1)]


def _scripted_turn(turn: Any, number: int) -> ScriptedTurn:
    found = _turn_or_none(turn)
    if found is not None:
        return found
    if isinstance(turn, Mapping) and turn.get("role") not in (None, *_USERS):
        raise ConversationError(
            f"turns[{number - 1}] must be a message of the user; received the role {turn['role']!r:.80} (what the "
            "agent should say is the expected_output of the user's turn)"
        )
    unknown = [key for key in turn if key not in (*_TURN_TEXTS, *_TURN_EXPECTED, "role")] if _is_mapping(turn) else []
    if unknown:
        known = f"{', '.join((*_TURN_TEXTS, _TURN_EXPECTED[0]))} and role"
        raise ConversationError(f"turns[{number - 1}] must hold only {known}; received {unknown[0]!r:.80}")
    raise ConversationError(
        f"turns[{number - 1}] must be a text that is not blank, or a mapping with query and expected_output; "
        f"received {turn!r:.80}"
    )


def _turn_or_none(turn: Any) -> ScriptedTurn | None:
    if isinstance(turn, str):
        return ScriptedTurn(turn) if turn.strip() else None
    if not isinstance(turn, Mapping) or not turn.keys() <= {*_TURN_TEXTS, *_TURN_EXPECTED, "role"}:
        return None
    text = next((turn[name] for name in _TURN_TEXTS if turn.get(name) is not None), None)
    if not isinstance(text, str) or not text.strip() or turn.get("role", "user") not in _USERS:
        return None
    return ScriptedTurn(text, next((turn[name] for name in _TURN_EXPECTED if turn.get(name) is not None), None))


def persona_of(user: Any) -> Persona:
    """The user that a mapping describes.

    >>> persona_of({"persona": "A tourist", "goal": "Find a hotel"}).max_turns
    10
    """
    rule = "user must be a function, or a mapping with persona and goal (also max_turns, seed and stop)"
    if not isinstance(user, Mapping):
        raise ConversationError(f"{rule}; received {user!r:.80}")
    if "function" in user:
        raise ConversationError(
            f"user names the function {user['function']!r:.80}, and data cannot hold one: give the function itself in "
            "a Python suite, DatasetCase(…, user=function)"
        )
    unknown = [name for name in user if name not in _OF_A_PERSONA]
    if unknown:
        raise ConversationError(f"{rule}; received {unknown[0]!r:.80}")
    for name in ("persona", "goal"):
        if not isinstance(user.get(name), str) or not user[name].strip():
            raise ConversationError(f"user: {name} must be a text; received {user.get(name)!r:.80}")
    stop = user.get("stop")
    if not (stop is None or (isinstance(stop, str) and stop.strip())):
        raise ConversationError(f"user: stop must be a text that says when the user is done; received {stop!r:.80}")
    max_turns = DEFAULT_MAX_TURNS if user.get("max_turns") is None else user["max_turns"]
    if not _is_whole(max_turns) or max_turns < 1:
        raise ConversationError(f"user: max_turns must be a whole number of at least 1; received {max_turns!r:.80}")
    if user.get("seed") is not None and not _is_whole(user["seed"]):
        raise ConversationError(f"user: seed must be a whole number; received {user['seed']!r:.80}")
    return Persona(user["persona"], user["goal"], max_turns, user.get("seed"), stop)


def script_of(case: Any) -> list[ScriptedTurn]:
    """All that the user of a scripted case says: its query first, unless that is the first of its turns.

    >>> [turn.query for turn in script_of({"query": "Hi", "turns": ["Hi", "Bye"]})]
    ['Hi', 'Bye']
    """
    held = case if isinstance(case, Mapping) else {name: getattr(case, name, None) for name in ("query", "turns")}
    turns, query = scripted(held["turns"]), held.get("query")
    return turns if not query or query == turns[0].query else [ScriptedTurn(query), *turns]


def user_failure(trace: Any) -> str | None:
    """Why the simulated user of a recorded conversation failed; ``None`` when it did not, or there is none."""
    metadata = getattr(trace, "metadata", None)
    if metadata.__class__ is dict and SIMULATED_USER not in metadata:
        return None
    about = metadata.get(SIMULATED_USER) if isinstance(metadata, Mapping) else None
    failed = about.get("failed") if isinstance(about, Mapping) else None
    return f"{USER_FAILED}: {failed}" if isinstance(failed, str) else None


def exchanges_of(events: Sequence[Any]) -> list[Exchange]:
    """The turns of a recorded conversation.

    >>> said = [("user", "Hello"), ("assistant", "Hi!"), ("user", "Rain today?"), ("assistant", "No.")]
    >>> events = [TraceEvent("message", {"role": role, "content": text}) for role, text in said]
    >>> [(turn.query, turn.answer) for turn in exchanges_of(events)]
    [('Hello', 'Hi!'), ('Rain today?', 'No.')]
    """
    said = [(at, payload) for at, event in enumerate(events) if (payload := _message(event)) is not None]
    asked = [(at, payload) for at, payload in said if payload.get("role") in _USERS]
    marked = [(at, payload) for at, payload in asked if _is_whole(payload.get("turn"))]
    # A user that writes two messages at once has one turn.
    starts = marked or [each for each in asked if each[0] == 0 or not _is_from_user(events[each[0] - 1])]
    places = [at for at, _ in starts]
    found = []
    for number, start in enumerate(places, 1):
        end = places[number] if number < len(places) else len(events)
        part = events[start:end]
        queries: list[Mapping[str, Any]] = []
        answers: list[Mapping[str, Any]] = []
        for event in part:
            payload = _message(event)
            if payload is None or (marked and payload.get("turn") is None):
                continue
            (queries if payload.get("role") in _USERS else answers).append(payload)
        spoken = [outcome_text(each["content"]) for each in answers if each.get("role") in _AGENTS]
        query = "\n".join(filter(None, (outcome_text(each["content"]) for each in queries)))
        found.append(Exchange(number, query, spoken[-1] if spoken else None, part, end))
    return found


def _message(event: Any) -> Mapping[str, Any] | None:
    """The payload of an event that is a message with a text."""
    payload = getattr(event, "payload", None)
    is_message = getattr(event, "type", None) == "message" and isinstance(payload, Mapping)
    return payload if is_message and payload is not None and payload.get("content") is not None else None


def _is_from_user(event: Any) -> bool:
    payload = _message(event)
    return payload is not None and payload.get("role") in _USERS


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(text: str) -> bool:
    return text.strip().replace(".", "", 1).isdigit()
