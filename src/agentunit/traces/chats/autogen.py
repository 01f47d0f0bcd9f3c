"""Conversations of AG2 and AutoGen agents, of every generation: chats by name, typed messages, saved team states."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from agentunit.core.interactions import AgentRole, HandoffEvent
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.core.trace import TraceLog
from agentunit.traces.chats.autogen_messages import (
    add_autogen_messages,
    add_log_lines,
    add_named_messages,
    is_autogen_message,
    is_log,
)
from agentunit.traces.chats.conversation import Conversation, interactions_of
from agentunit.traces.chats.messages import looks_like_message
from agentunit.traces.chats.rows import CaseIds, NoConversation, RowFacts, file_rows, records_of_rows, row_facts
from agentunit.traces.chats.values import add_counts, as_amount, as_dict, as_list, as_name, token_counts, without_nones
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes

_LISTS = ("chat_history", "trajectory", "history", "messages")


def _matches(opening: Opening) -> bool:
    value = opening.value
    if value is None:
        # The first row is longer than what was looked at.
        named = b'"role"' in opening.head and b'"name"' in opening.head
        return "agent_states" in opening.keys or (named and not opening.keys.isdisjoint(_LISTS[:3]))
    if isinstance(value, list):
        return _spoken_by_names(value) or any(map(is_autogen_message, value[:3]))
    if not isinstance(value, dict):
        return False
    if _is_state(value) or is_autogen_message(value):
        return True
    if looks_like_message(value):
        # The first of a file of bare messages: it alone must tell.
        return isinstance(value.get("name"), str) or _spoken_by_names([value])
    key = _list_key(value)
    if key is None:
        return False
    messages = as_list(value[key])
    return any(map(is_autogen_message, messages[:3])) or _spoken_by_names(messages[:8]) or is_log(messages)


def _spoken_by_names(messages: list[Any]) -> bool:
    """Whether these are chat messages of several speakers with names of their own; a user may have one anywhere."""
    speakers = [each for each in messages if looks_like_message(each) and each.get("role") not in ("tool", "function")]
    names = {each["name"] for each in speakers if isinstance(each.get("name"), str) and each["name"]}
    an_agent = any(each.get("role") == "assistant" and as_name(each.get("name")) for each in speakers)
    return len(names) > 1 or an_agent or any(_is_spoken_role(each.get("role")) for each in speakers)


def _is_spoken_role(role: Any) -> bool:
    """A role that is an agent, as in the hand-made part of Who&When: "Orchestrator (-> WebSurfer)"."""
    return isinstance(role, str) and role.endswith(")") and " (" in role


def _is_state(value: dict[str, Any]) -> bool:
    return isinstance(value.get("agent_states"), dict) or isinstance(value.get("llm_context"), dict)


def _list_key(row: dict[str, Any]) -> str | None:
    return next((key for key in _LISTS if isinstance(row.get(key), (list, str)) and row[key]), None)


def _read(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    ids = CaseIds()
    loose: list[Any] = []
    stem = PurePath(source.name).name.split(".")[0] or "conversation"

    def build(row: Any, _: dict[str, Any]) -> Record | None:
        if looks_like_message(row) or is_autogen_message(row):
            loose.append(row)
            return None
        return _record(row, ids, stem, notes)

    yield from records_of_rows(source, file_rows(source), build)
    if loose:
        # A file of bare messages is one conversation.
        yield _record(loose, ids, stem, notes)


def _record(row: Any, ids: CaseIds, fallback_id: str, notes: ReadingNotes) -> Record:
    messages, facts, stop_reason = _conversation_in(row)
    talk = Conversation(notes)
    handoffs: list[HandoffEvent] = []
    if is_log(messages):
        turns = add_log_lines(talk, messages)
    elif any(map(is_autogen_message, messages)):
        turns, handoffs = add_autogen_messages(talk, messages)
    elif any(map(looks_like_message, messages)):
        turns = add_named_messages(talk, messages)
    else:
        raise NoConversation("none of the messages has a speaker and content, so there is no conversation to read")
    cost, usage = _stated_cost(facts.metadata.get("cost"), notes)
    metadata = without_nones(source_format=AUTOGEN.name, stop_reason=stop_reason, cost=cost, usage=usage)
    prompts = as_dict(facts.metadata.get("system_prompt"))
    trace = TraceLog(
        talk.events,
        metadata,
        interactions_of(turns),
        handoffs,
        agent_roles={name: AgentRole(name, prompt) for name, prompt in prompts.items() if isinstance(prompt, str)},
    )
    case = facts.case(ids, fallback_id, talk.first_asked)
    return Record(case, trace, Outcome(facts.success, talk.last_answer))


def _conversation_in(row: Any) -> tuple[list[Any], RowFacts, Any]:
    if isinstance(row, list):
        return row, row_facts({}, ""), None
    value = as_dict(row)
    if _is_state(value):
        return _state_messages(value), row_facts({}, ""), None
    key = _list_key(value)
    if key is None:
        raise NoConversation(f"no conversation: a row needs a list of messages under one of {', '.join(_LISTS)}")
    conversation = value[key]
    facts = row_facts(value, key)
    facts.metadata.pop("stop_reason", None)
    lines = conversation.splitlines() if isinstance(conversation, str) else conversation
    return lines, facts, value.get("stop_reason")


def _stated_cost(stated: Any, notes: ReadingNotes) -> tuple[float | None, dict[str, Any] | None]:
    """The cost and tokens that a chat result states: those that were paid for, without replies from AG2's own cache."""
    # Older versions write a pair: with what came from the cache, and without.
    paid = stated[1] if isinstance(stated, list) and len(stated) == 2 else stated
    paid = as_dict(as_dict(paid).get("usage_excluding_cached_inference", paid))
    totals: dict[str, int] = {}
    for model in paid.values():
        add_counts(totals, token_counts(model, notes) if isinstance(model, dict) else None)
    cost = as_amount(stated if isinstance(stated, (int, float)) else paid.get("total_cost"))
    return cost, {k: v for k, v in totals.items() if k.endswith("_tokens")} or None


def _state_messages(state: dict[str, Any]) -> list[Any]:
    """The messages of a saved team (its manager's thread), or of a saved agent (what its model was told)."""
    if isinstance(state.get("llm_context"), dict):
        return as_list(state["llm_context"].get("messages"))
    states = [as_dict(each) for each in state["agent_states"].values()]
    threads = [as_list(each.get("message_thread")) for each in states]
    return max(threads, key=len, default=[])


AUTOGEN = TraceFormat(
    "autogen", "conversations of AG2 and AutoGen agents: chat histories, task results, team states", _matches, _read
)
