"""Sessions of Google's Agent Development Kit: events by author, in the spelling of its API or of its Python types."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from agentunit.addons.formats.chats._chat_logs import add_function_response
from agentunit.addons.formats.chats.chat_conversation import HUMANS, Conversation, Turn, interactions_of
from agentunit.addons.formats.chats.chat_records import NoConversation, RowContext, chat_format, listed_in
from agentunit.addons.formats.chats.loose_values import (
    as_dict,
    as_list,
    as_name,
    as_time,
    count_unknown,
    gemini_counts,
    text_of,
    without_nones,
)
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import HandoffEvent, TraceLog
from agentunit.traces.formats_base import Opening
from agentunit.traces.json_files.stream import file_rows
from agentunit.traces.places import names_in
from agentunit.traces.spans import ReadingNotes

_TRANSFER_TOOLS = ("transfer_to_agent", "transfer_to_other_agent")


@lru_cache(1024)
def _snake_case(name: str) -> str:
    return re.sub("(?<=[a-z])[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _members(value: Any) -> dict[str, Any]:
    """The members of an object as the Python types spell them; the API spells them in camelCase."""
    return {_snake_case(name): member for name, member in as_dict(value).items() if member is not None}


# Fields that are read, and those that tell nothing about what was done.
_SESSION_FIELDS = names_in("id app_name user_id state events last_update_time")
_EVENT_FIELDS = names_in(
    "id author invocation_id timestamp content partial actions usage_metadata model_version error_code error_message "
    "turn_complete interrupted long_running_tool_ids branch finish_reason grounding_metadata citation_metadata "
    "custom_metadata cache_metadata avg_logprobs logprobs_result input_transcription output_transcription "
    "live_session_resumption_update interaction_id node_info"
)
_ACTION_FIELDS = names_in(
    "transfer_to_agent state_delta artifact_delta requested_auth_configs requested_tool_confirmations escalate "
    "skip_summarization compaction end_of_agent agent_state rewind_before_invocation_id"
)
_PART_FIELDS = names_in(
    "text thought thought_signature function_call function_response inline_data file_data executable_code "
    "code_execution_result video_metadata media_resolution"
)
_CASE_FIELDS = names_in("eval_id conversation session_input creation_timestamp rubrics final_session_state")
_TURN_FIELDS = names_in(
    "invocation_id user_content final_response intermediate_data creation_timestamp rubrics app_details"
)
_STEP_FIELDS = names_in("tool_uses tool_responses intermediate_responses")
_UNREADABLE_EVENT = "an event has no author; it was left out"


def _matches(opening: Opening) -> bool:
    value = opening.value
    if isinstance(value, dict) and _is_event(value):
        return True
    if isinstance(value, dict) and isinstance(value.get("events"), list):
        return any(map(_is_event, value["events"][:3]))
    marks = (b'"invocationId"', b'"invocation_id"')
    return value is None and {"id", "events"} <= opening.keys and any(mark in opening.head for mark in marks)


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and "author" in value and "invocation_id" in _members(value)


class _AdkSession(Conversation):
    """A session as it is read, event by event."""

    def __init__(self, notes: ReadingNotes) -> None:
        super().__init__(notes)
        self.turns: list[Turn] = []
        self.handoffs: list[HandoffEvent] = []
        self.error: str | None = None

    def add(self, value: Any) -> None:
        event = _members(value)
        author = as_name(event.get("author"))
        if author is None:
            self.notes.problems[_UNREADABLE_EVENT] += 1
            return
        if event.get("partial") is True:
            return  # the whole of it follows
        count_unknown(self.notes, event, _EVENT_FIELDS)
        actions = _members(event.get("actions"))
        count_unknown(self.notes, actions, _ACTION_FIELDS, "actions")
        at = as_time(event.get("timestamp"))
        usage = event.get("usage_metadata")
        if isinstance(usage, dict):
            model = as_name(event.get("model_version"))
            self.model_call(gemini_counts(usage), model=model, agent=author, at=at)
        parts = [_members(part) for part in as_list(as_dict(event.get("content")).get("parts"))]
        text = text_of(parts)
        is_user = author.lower() in HUMANS
        self.say("user" if is_user else "assistant", text, agent=author, at=at)
        if text and text.strip():
            self.turns.append(Turn(author, text, at))
        for part in parts:
            count_unknown(self.notes, part, _PART_FIELDS, "parts")
            self._add_call_or_result(part, author, at)
        self._add_handoff(actions, parts, author, at)
        self._add_error(event, author)

    def _add_call_or_result(self, part: dict[str, Any], author: str, at: float | None) -> None:
        call = part.get("function_call")
        if call is not None:
            self.add_calls([call], agent=author, at=at)
        answer = as_dict(part.get("function_response"))
        if answer:
            # ADK's documentation asks tools to answer {"status": "error", "error_message": …} when they fail.
            response = as_dict(answer.get("response"))
            error_key = (
                "error_message" if response.get("status") == "error" and "error_message" in response else "error"
            )
            add_function_response(self, answer, agent=author, at=at, error_key=error_key)

    def _add_handoff(self, actions: dict[str, Any], parts: list[dict[str, Any]], author: str, at: float | None) -> None:
        target = as_name(actions.get("transfer_to_agent"))
        for part in parts if target is None else []:
            # Sessions of early versions tell the target in the tool's answer only.
            answer = as_dict(part.get("function_response"))
            if answer.get("name") in _TRANSFER_TOOLS:
                target = as_name(as_dict(answer.get("response")).get("target_agent_name"))
        if target is not None:
            self.handoffs.append(HandoffEvent(author, target, timestamp=at))

    def _add_error(self, event: dict[str, Any], author: str) -> None:
        code = as_name(event.get("error_code"))
        message = as_name(event.get("error_message"))
        if code is None and message is None:
            return
        self.error = ": ".join(part for part in (code, message) if part)
        self.fail_waiting(author, self.error, "the error that ended the agent's turn while the call was open")


def _record(row: Any, context: RowContext) -> Record:
    # A file of bare events is one session.
    session, events = listed_in({"events": row} if isinstance(row, list) else row, "events", "an ADK session")
    if events and not any(isinstance(event, dict) and "author" in event for event in events):
        raise NoConversation("none of the session's events has an author, so it is not an ADK session")
    session = _members(session)
    talk = _AdkSession(context.notes)
    count_unknown(context.notes, session, _SESSION_FIELDS)
    for event in events:
        talk.add(event)
    session_id = as_name(session.get("id"))
    app = as_name(session.get("app_name"))
    case = DatasetCase(
        context.ids.unique(session_id or context.fallback_id),
        talk.first_asked,
        metadata=without_nones(app_name=app, user_id=session.get("user_id")),
    )
    metadata = without_nones(
        source_format=ADK_SESSION.name, session_id=session_id, state=as_dict(session.get("state")) or None
    )
    trace = TraceLog(talk.events, metadata, interactions_of(talk.turns), talk.handoffs)
    return Record(case, trace, Outcome(output=talk.last_answer, error=talk.error))


ADK_SESSION = chat_format(
    "adk-session",
    "sessions of Google's Agent Development Kit: {id, events: [{author, content, …}]}",
    _matches,
    _record,
    is_part=_is_event,
)


def _is_early_turn(row: Any) -> bool:
    """A turn as eval files held it before there were sets: {"query": …, "expected_tool_use": […], "reference": …}."""
    return isinstance(row, dict) and "query" in row and "expected_tool_use" in row


def _as_turn(row: dict[str, Any]) -> dict[str, Any]:
    called = map(as_dict, as_list(row["expected_tool_use"]))
    return {
        "user_content": {"parts": [{"text": row["query"]}]},
        "final_response": {"parts": [{"text": row.get("reference")}]},
        "intermediate_data": {
            "tool_uses": [{"name": call.get("tool_name"), "args": call.get("tool_input")} for call in called]
        },
    }


def _evaluated_record(row: Any, context: RowContext) -> Record:
    whole = {"conversation": list(map(_as_turn, row))} if isinstance(row, list) else row
    case, turns = listed_in(_members(whole), "conversation", "a case of an ADK eval set")
    talk = _AdkSession(context.notes)
    for each in turns:
        turn = _members(each)
        count_unknown(context.notes, turn, _TURN_FIELDS, "conversation")
        steps = _members(turn.get("intermediate_data"))
        at = as_time(turn.get("creation_timestamp"))
        asked, answered = turn.get("user_content"), turn.get("final_response")
        talk.say("user", text_of(as_dict(asked).get("parts")), at=at)
        talk.add_calls(as_list(steps.get("tool_uses")), at=at)
        for response in as_list(steps.get("tool_responses")):
            add_function_response(talk, as_dict(response), at=at)
        for spoken in as_list(steps.get("intermediate_responses")):
            author, parts = spoken if isinstance(spoken, list) and len(spoken) == 2 else (None, None)
            talk.say("assistant", text_of(parts), agent=as_name(author), at=at)
        talk.say("assistant", text_of(as_dict(answered).get("parts")), at=at)
        count_unknown(context.notes, steps, _STEP_FIELDS)
    count_unknown(context.notes, case, _CASE_FIELDS)
    eval_id = as_name(case.get("eval_id"))
    return Record(
        DatasetCase(context.ids.unique(eval_id or context.fallback_id), talk.first_asked),
        TraceLog(talk.events, {"source_format": ADK_EVAL_SET.name}),
        Outcome(output=talk.last_answer),
    )


ADK_EVAL_SET = chat_format(
    "adk-eval-set",
    "eval sets of Google's Agent Development Kit: the conversations recorded in their cases",
    lambda opening: not {"eval_cases", "evalCases"}.isdisjoint(opening.keys) or _is_early_turn(opening.value),
    _evaluated_record,
    rows=lambda source: file_rows(source, within="eval_cases"),
    is_part=_is_early_turn,
)
