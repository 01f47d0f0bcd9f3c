"""Evaluation logs of Inspect (UK AISI), as JSON or as .eval archives: one record a sample."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.core.interactions import HandoffEvent
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.traces.chats.content import text_of
from agentunit.traces.chats.conversation import Conversation
from agentunit.traces.chats.inspect_archives import ARCHIVE_START, archive_rows
from agentunit.traces.chats.inspect_usage import LoggedEvent, logged_events, sample_usage, usage_counts
from agentunit.traces.chats.messages import add_message
from agentunit.traces.chats.plain_data import as_amount, as_dict, as_list, as_name, as_time, without_nones
from agentunit.traces.chats.rows import CaseIds, NoConversation, file_rows, records_of_rows
from agentunit.traces.formats_base import Opening, Source, TraceFormat
from agentunit.traces.spans import ReadingNotes

_ATTACHMENT = "attachment://"
# How Inspect's scorers write a verdict.
_VERDICTS = {"C": True, "I": False, 1: True, 0: False}


def _matches_json(opening: Opening) -> bool:
    header = {"version", "status", "eval"} <= opening.keys and opening.keys & {"samples", "plan", "results", "stats"}
    return bool(header) or {"epoch", "input", "target", "messages", "scores"} <= opening.keys


def _matches_archive(opening: Opening) -> bool:
    is_log = opening.path.lower().endswith(".eval") or b"_journal/start.json" in opening.head
    return opening.head.startswith(ARCHIVE_START) and is_log


def _read_json(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    ids = CaseIds()
    rows = file_rows(source, "samples")
    yield from records_of_rows(source, rows, lambda row, around: _record(row, around, ids, notes))


def _read_archive(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
    ids = CaseIds()
    yield from records_of_rows(source, archive_rows(source), lambda row, around: _record(row, around, ids, notes))


def _record(row: Any, around: dict[str, Any], ids: CaseIds, notes: ReadingNotes) -> Record:
    sample = as_dict(row)
    if "eval" in sample and "id" not in sample:
        raise NoConversation("the log holds no samples: it has only its header, or was written without them")
    if not isinstance(sample.get("messages"), list) and not isinstance(sample.get("events"), list):
        raise NoConversation("an Inspect sample needs 'messages' or 'events'")
    evaluation = as_dict(around.get("eval"))
    events = list(logged_events(sample.get("events")))
    talk = _Sample(notes, as_dict(sample.get("attachments")), events)
    talk.add_messages(as_list(sample.get("messages")))
    usage = sample_usage(sample, events, notes)
    duration_s = as_amount(sample.get("total_time"))
    metadata = without_nones(
        source_format=INSPECT_LOG.name,
        trace_id=as_name(sample.get("uuid")),
        eval_id=as_name(evaluation.get("eval_id")),
        model=as_name(evaluation.get("model")),
        usage=usage.agent,
        cost=usage.agent_cost,
        grader_usage=usage.graders,
        model_usage=as_dict(sample.get("model_usage")) or None,
        duration_s=duration_s,
    )
    case = _case(sample, evaluation, ids, talk)
    trace = TraceLog(talk.events, metadata, handoffs=talk.handoffs)
    return Record(case, trace, _outcome(sample, talk, duration_s))


class _Sample(Conversation):
    """A sample's messages, with the model calls that made them and the calls that no message tells of."""

    def __init__(self, notes: ReadingNotes, attachments: dict[str, Any], events: list[LoggedEvent]) -> None:
        super().__init__(notes)
        self.handoffs: list[HandoffEvent] = []
        self._attachments = attachments
        own = [logged for logged in events if not logged.by_grader]
        self._model_calls = [logged for logged in own if logged.event.get("event") == "model"]
        self._tool_calls = [logged for logged in own if logged.event.get("event") == "tool"]

    def add_messages(self, messages: list[Any]) -> None:
        made_by = {name: logged for logged in self._model_calls if (name := _message_id(logged.event))}
        told_models: set[int] = set()
        told_calls: set[str] = set()
        for value in messages:
            message = {**as_dict(value), "content": self.attached(as_dict(value).get("content"))}
            logged = made_by.pop(_id_of(message) or "", None)
            if logged is not None:
                told_models.add(id(logged))
                self._add_model_call(logged)
                message["timestamp"] = logged.event.get("completed", logged.event.get("timestamp"))
            told_calls.update(name for call in as_list(message.get("tool_calls")) if (name := _id_of(call)))
            message.pop("usage", None)
            add_message(self, message, agent=logged.agent if logged else None)
        self._add_untold(
            [logged for logged in self._model_calls if id(logged) not in told_models],
            [logged for logged in self._tool_calls if _id_of(logged.event) not in told_calls],
        )
        for logged in self._tool_calls:
            target = as_name(logged.event.get("agent"))
            if target and logged.agent:
                at = as_time(logged.event.get("timestamp"))
                self.handoffs.append(HandoffEvent(logged.agent, target, timestamp=at))

    def _add_untold(self, model_calls: list[LoggedEvent], tool_calls: list[LoggedEvent]) -> None:
        """What agents within agents did, and attempts that were given up, stands in no message of the sample."""
        for logged in model_calls:
            self._add_model_call(logged)
        for logged in tool_calls:
            self._add_tool_call(logged)
        if model_calls or tool_calls:
            self.events = _by_time(self.events)

    def attached(self, content: Any) -> Any:
        """Content whose text was long enough for Inspect to put it aside, as it was."""
        if isinstance(content, str) and content.startswith(_ATTACHMENT):
            return self._attachments.get(content.removeprefix(_ATTACHMENT), content)
        if isinstance(content, list):
            return [{**p, "text": self.attached(p["text"])} if "text" in as_dict(p) else p for p in content]
        return content

    def _add_model_call(self, logged: LoggedEvent) -> None:
        output = as_dict(logged.event.get("output"))
        usage = as_dict(output.get("usage"))
        self.model_call(
            usage_counts(usage, self.notes),
            model=as_name(output.get("model")) or as_name(logged.event.get("model")),
            cost=as_amount(usage.get("total_cost")),
            agent=logged.agent,
            at=as_time(logged.event.get("timestamp")),
        )

    def _add_tool_call(self, logged: LoggedEvent) -> None:
        event = logged.event
        name, call_id, at = as_name(event.get("function")), _id_of(event), as_time(event.get("timestamp"))
        error = as_dict(event.get("error"))
        self.call(name or "", event.get("arguments"), call_id=call_id, agent=logged.agent, at=at)
        if "result" in event or error:
            result = self.attached(event.get("result"))
            told = as_name(error.get("message"))
            self.result(text_of(result), call_id=call_id, name=name or "", failed=bool(error), error=told)


def _by_time(events: list[TraceEvent]) -> list[TraceEvent]:
    """Events in order of time; one without a time stays behind the one before it."""
    times, latest = [], -inf
    for event in events:
        latest = latest if event.timestamp is None else event.timestamp
        times.append(latest)
    return [events[position] for position in sorted(range(len(events)), key=times.__getitem__)]


def _id_of(value: Any) -> str | None:
    return as_name(as_dict(value).get("id"))


def _message_id(event: dict[str, Any]) -> str | None:
    choices = as_list(as_dict(event.get("output")).get("choices"))
    return _id_of(as_dict(choices[0]).get("message")) if choices else None


def _case(sample: dict[str, Any], evaluation: dict[str, Any], ids: CaseIds, talk: _Sample) -> DatasetCase:
    asked = sample.get("input")
    if isinstance(asked, list):
        texts = [text_of(talk.attached(m.get("content"))) for m in map(as_dict, asked) if m.get("role") == "user"]
        asked = next((text for text in texts if text), None)
    epochs = as_dict(evaluation.get("config")).get("epochs")
    epoch = as_name(sample.get("epoch"))
    suffix = f"/epoch-{epoch}" if epoch and epochs not in (None, 1) else ""
    target = sample.get("target")
    metadata = without_nones(
        task=evaluation.get("task"),
        epoch=sample.get("epoch"),
        choices=sample.get("choices"),
        sample_metadata=as_dict(sample.get("metadata")) or None,
    )
    query = talk.attached(asked) if isinstance(asked, str) else talk.first_asked
    named = ids.unique(f"{as_name(sample.get('id')) or 'sample'}{suffix}")
    return DatasetCase(named, query, target if target not in ("", []) else None, metadata=metadata)


def _outcome(sample: dict[str, Any], talk: _Sample, duration_s: float | None) -> Outcome:
    output = as_dict(sample.get("output"))
    choices = as_list(output.get("choices"))
    answer = text_of(talk.attached(as_dict(as_dict(choices[0]).get("message")).get("content"))) if choices else None
    scores = as_dict(sample.get("scores"))
    # Several scorers give several verdicts: none of them alone says whether the sample was solved.
    values = [as_dict(score).get("value") for score in scores.values()]
    verdict = values[0] if len(values) == 1 and isinstance(values[0], (str, int, float)) else None
    error = sample.get("error")
    return Outcome(
        _VERDICTS.get(verdict) if verdict is not None else None,
        answer or talk.last_answer,
        error=as_name(as_dict(error).get("message")),
        elapsed_s=duration_s,
        metadata=without_nones(scores=scores or None, limit=sample.get("limit")),
    )


INSPECT_LOG = TraceFormat(
    "inspect", "logs of Inspect (UK AISI) as JSON: one record a sample", _matches_json, _read_json
)
INSPECT_ARCHIVE = TraceFormat(
    "inspect-eval", "logs of Inspect (UK AISI) as .eval archives: one record a sample", _matches_archive, _read_archive
)
