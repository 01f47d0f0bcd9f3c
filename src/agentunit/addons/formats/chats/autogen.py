"""Conversations of AG2 and AutoGen agents of every generation: chats by name, typed messages, console output."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, BinaryIO, cast

from agentunit.addons.formats.chats._autogen_messages import (
    add_autogen_messages,
    add_log_lines,
    add_named_messages,
    is_autogen_message,
    is_log,
)
from agentunit.addons.formats.chats._chat_logs import looks_like_message
from agentunit.addons.formats.chats.chat_conversation import HUMANS, Conversation, Turn, interactions_of
from agentunit.addons.formats.chats.chat_records import NoConversation, RowContext, RowFacts, chat_format, row_facts
from agentunit.addons.formats.chats.loose_values import (
    add_counts,
    as_amount,
    as_dict,
    as_list,
    as_name,
    token_counts,
    without_nones,
)
from agentunit.core.records import Outcome, Record
from agentunit.core.results import InputError, encode_json
from agentunit.core.trace import AgentRole, HandoffEvent, TraceLog
from agentunit.traces.compressed import BROKEN_STREAM, decompressed
from agentunit.traces.formats_base import Opening, Source
from agentunit.traces.json_files.stream import JsonRow, file_rows
from agentunit.traces.python_literals import PrintedObject, python_literal
from agentunit.traces.spans import ReadingNotes

_LISTS = ("chat_history", "trajectory", "history", "messages")


def _matches(opening: Opening) -> bool:
    value = opening.value
    if value is None:
        # The first row is longer than what was looked at.
        named = b'"role"' in opening.head and b'"name"' in opening.head
        return "agent_states" in opening.keys or (named and not opening.keys.isdisjoint(_LISTS[:3]))
    if isinstance(value, list):
        return _has_named_speakers(value) or any(map(is_autogen_message, value[:3]))
    if not isinstance(value, dict):
        return False
    if _is_state(value) or is_autogen_message(value):
        return True
    if looks_like_message(value):
        # The first of a file of bare messages: it alone must tell.
        return isinstance(value.get("name"), str) or _has_named_speakers([value])
    key = _list_key(value)
    if key is None:
        return False
    messages = as_list(value[key])
    return any(map(is_autogen_message, messages[:3])) or _has_named_speakers(messages[:8]) or is_log(messages)


def _has_named_speakers(messages: list[Any]) -> bool:
    """Whether these are chat messages of several speakers with names of their own; a user may have one anywhere."""
    speakers = [
        each
        for each in messages
        if looks_like_message(each) and each.get("role", each.get("type")) not in ("tool", "function")
    ]
    names = {each["name"] for each in speakers if isinstance(each.get("name"), str) and each["name"]}
    an_agent = any(each.get("role") == "assistant" and as_name(each.get("name")) for each in speakers)
    return len(names) > 1 or an_agent or any(_role_names_agent(each.get("role")) for each in speakers)


def _role_names_agent(role: Any) -> bool:
    """A role that is an agent, as in the hand-made part of Who&When: "Orchestrator (-> WebSurfer)"."""
    return isinstance(role, str) and role.endswith(")") and " (" in role


def _is_state(value: dict[str, Any]) -> bool:
    return isinstance(value.get("agent_states"), dict) or isinstance(value.get("llm_context"), dict)


def _list_key(row: dict[str, Any]) -> str | None:
    return next((key for key in _LISTS if isinstance(row.get(key), (list, str)) and row[key]), None)


def _is_message(value: Any) -> bool:
    return looks_like_message(value) or is_autogen_message(value)


def _record(row: Any, context: RowContext) -> Record:
    messages, facts, stop_reason = _conversation_in(row)
    talk = Conversation(context.notes)
    handoffs: list[HandoffEvent] = []
    if is_log(messages):
        turns = add_log_lines(talk, messages)
    elif any(map(is_autogen_message, messages)):
        turns, handoffs = add_autogen_messages(talk, messages)
    elif any(map(looks_like_message, messages)):
        turns = add_named_messages(talk, messages)
    else:
        raise NoConversation("none of the messages has a speaker and content, so there is no conversation to read")
    cost, usage = _stated_cost(facts.metadata.get("cost"), context.notes)
    metadata = without_nones(source_format=AUTOGEN.name, stop_reason=stop_reason, cost=cost, usage=usage)
    prompts = as_dict(facts.metadata.get("system_prompt"))
    trace = TraceLog(
        talk.events,
        metadata,
        interactions_of(turns),
        handoffs,
        agent_roles={name: AgentRole(name, prompt) for name, prompt in prompts.items() if isinstance(prompt, str)},
    )
    case = facts.case(context, talk.first_asked)
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
    if "mode" in value and ("response" in value or "stream" in value):
        return [*lines, *_recorded_reply(value)], row_facts({}, ""), None
    return lines, facts, value.get("stop_reason")


def _recorded_reply(value: dict[str, Any]) -> list[Any]:
    """The reply in a call that AutoGen's recorder of model clients wrote; of a streamed one, its last piece."""
    pieces = [as_dict(piece) for piece in as_list(value.get("stream"))]
    reply = as_dict(value.get("response")) or next((piece for piece in reversed(pieces) if "usage" in piece), {})
    if "content" not in reply:
        return []
    said = {"type": "AssistantMessage", "source": "assistant", "content": reply["content"]}
    return [{**said, "models_usage": reply.get("usage")}]


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


AUTOGEN = chat_format(
    "autogen",
    "conversations of AG2 and AutoGen agents: chat histories, task results, team states",
    _matches,
    _record,
    is_part=_is_message,
)


# Newer versions print the type of the message as well: "---------- TextMessage (triage) ----------".
_HEADING = re.compile(
    r"^-{10} (?:(?P<kind>[A-Z]\w+(?:Message|Event)) \((?P<who>[^\n]+?)\)|(?P<name>[^\n]+?)) -{10}\r?$", re.M
)
_TOKENS = re.compile(r"^\[Prompt tokens: (\d+), Completion tokens: (\d+)\]\r?$", re.M)
# The summary that the console prints after the last message.
_SUMMARY = "Summary"
# agbench, AutoGen's test bed, wraps what it prints around the console's words.
_BENCH_END = re.compile(r"^SCENARIO\.PY (?:COMPLETE|EXITED)[^\n]*!#!#", re.M)
_BENCH_RUNTIME = re.compile(r"^SCENARIO\.PY RUNTIME: (\d+(?:\.\d+)?) !#!#", re.M)
_LONGEST_LOG_BYTES = 64 << 20


def _matches_console(opening: Opening) -> bool:
    if opening.head[:1] in (b"{", b"["):
        return "console_log" in opening.keys
    headings = _HEADING.finditer(opening.head.decode("utf-8", "replace"))
    # Other programs print such lines too; a team's first words are the user's, or are headed by their type.
    return any(heading["kind"] or heading["name"].lower() in HUMANS for heading in headings)


def _console_rows(source: Source) -> Iterator[JsonRow | InputError]:
    """The rows of a JSON file; a text file is one row."""
    try:
        # A stream that lets itself be looked into before it is read.
        stream = cast(io.BufferedReader, decompressed(cast(BinaryIO, source.stream)))
        is_json = stream.peek(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
        log = b"" if is_json else stream.read(_LONGEST_LOG_BYTES + 1)
    except (*BROKEN_STREAM, OSError) as error:
        yield InputError(source.name, None, f"the file cannot be read to its end ({error})")
        return
    if is_json:
        yield from file_rows(Source(source.name, stream))
    elif len(log) > _LONGEST_LOG_BYTES:
        yield InputError(source.name, None, f"a console log of more than {_LONGEST_LOG_BYTES >> 20} MiB is not read")
    else:
        yield JsonRow(encode_json({"console_log": log.decode("utf-8", "replace")}), None, {})


def _console_record(row: Any, context: RowContext) -> Record:
    value = as_dict(row)
    log = value.get("console_log")
    if not isinstance(log, str):
        raise NoConversation(f"a row needs the text of a console as 'console_log'; received {log!r:.60}")
    talk = Conversation(context.notes)
    turns = _add_sections(talk, log)
    if not talk.events:
        raise NoConversation('the console log has no section headed "---------- Name ----------"')
    facts = row_facts(value, "console_log")
    runtime = _BENCH_RUNTIME.search(log)
    duration_s = float(runtime[1]) if runtime else None
    metadata = without_nones(source_format=AUTOGEN_CONSOLE.name, duration_s=duration_s)
    trace = TraceLog(talk.events, metadata, interactions_of(turns))
    outcome = Outcome(facts.success, talk.last_answer, elapsed_s=duration_s)
    return Record(facts.case(context, talk.first_asked), trace, outcome)


def _add_sections(talk: Conversation, log: str) -> list[Turn]:
    turns = []
    end = _BENCH_END.search(log)
    headings = list(_HEADING.finditer(log, 0, end.start() if end else len(log)))
    for heading, following in zip_longest(headings, headings[1:]):
        until = following.start() if following else end.start() if end else len(log)
        text = log[heading.end() : until].strip()
        speaker, kind = heading["who"] or heading["name"], heading["kind"] or "TextMessage"
        if speaker == _SUMMARY:
            continue
        if tokens := _TOKENS.search(text):
            text = text[: tokens.start()].rstrip()
            usage = {"prompt_tokens": int(tokens[1]), "completion_tokens": int(tokens[2])}
            talk.model_call(usage, agent=speaker)
        if kind.endswith("Event"):
            if not _add_printed_calls(talk, text, speaker):
                talk.say("log", text, agent=speaker, kind=kind)
            continue
        talk.say("user" if speaker.lower() in HUMANS else "assistant", text, agent=speaker)
        if text:
            turns.append(Turn(speaker, text))
    return turns


def _add_printed_calls(talk: Conversation, text: str, speaker: str) -> bool:
    """Add the calls or results that a section prints as Python objects; false when it prints something else."""
    printed = _printed_objects(text)
    if not printed or {kind for kind, _ in printed} - {"FunctionCall", "FunctionExecutionResult"}:
        return False
    for kind, fields in printed:
        name, call_id = as_name(fields.get("name")), as_name(fields.get("id", fields.get("call_id")))
        if kind == "FunctionCall":
            talk.call(name or "", fields.get("arguments"), call_id=call_id, agent=speaker)
        else:
            result, failed = as_name(fields.get("content")), fields.get("is_error") is True
            talk.result(result, call_id=call_id, name=name, failed=failed, agent=speaker)
    return True


def _printed_objects(text: str) -> list[PrintedObject]:
    """Names and fields of a printed list of objects; nothing of it is run.

    >>> _printed_objects("[FunctionCall(id='c1', arguments='{}', name='search')]")
    [PrintedObject(kind='FunctionCall', fields={'id': 'c1', 'arguments': '{}', 'name': 'search'})]
    >>> _printed_objects("Searching…")
    []
    """
    if not text.startswith("[Function"):
        return []
    try:
        found = python_literal(text, objects=True)
    except (SyntaxError, ValueError):
        return []
    return found if all(isinstance(each, PrintedObject) for each in found) else []


AUTOGEN_CONSOLE = chat_format(
    "autogen-console",
    "console output of AutoGen and Magentic-One teams, as text or as rows with 'console_log'",
    _matches_console,
    _console_record,
    rows=_console_rows,
)
