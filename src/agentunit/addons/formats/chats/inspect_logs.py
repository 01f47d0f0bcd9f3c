"""Logs of Inspect (UK AISI): one record a sample, the agent's tokens apart from those of its graders."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Any, NamedTuple

from agentunit.addons.formats.chats._chat_logs import add_message
from agentunit.addons.formats.chats._inspect_archives import ARCHIVE_START, archive_rows
from agentunit.addons.formats.chats.chat_conversation import Conversation
from agentunit.addons.formats.chats.chat_records import CaseIds, NoConversation, RowContext, chat_format
from agentunit.addons.formats.chats.loose_values import (
    add_counts,
    as_amount,
    as_dict,
    as_list,
    as_name,
    as_time,
    count_unknown,
    openai_counts,
    text_of,
    token_counts,
    without_nones,
)
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import HandoffEvent, TraceEvent, TraceLog
from agentunit.traces.formats_base import Opening
from agentunit.traces.json_files.stream import file_rows
from agentunit.traces.places import names_in
from agentunit.traces.spans import ReadingNotes

_GRADING = ("scorer", "scorers")
_COUNTS = (
    "input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read", "input_tokens_cache_write",
    "reasoning_tokens",
)  # fmt: skip

# Fields that are read, and those that tell nothing about what was done.
_SAMPLE_FIELDS = names_in(
    "id epoch input choices target sandbox files setup messages output scores score metadata store events model_usage "
    "role_usage started_at completed_at total_time working_time uuid invalidation error error_retries attachments "
    "limit timelines turn_count events_data message_pool"
)
_EVENT_KINDS = names_in(
    "sample_init sample_limit state store model tool sandbox approval input score score_edit error logger info "
    "span_begin span_end step subtask compaction checkpoint anchor branch interrupt"
)
_CALL_FIELDS = names_in(
    "event uuid span_id parent_id timestamp working_start working_time completed pending metadata model role input "
    "tools tool_choice config output retries error error_traceback traceback cache call style type id function "
    "input_refs call_refs arguments view result truncated events agent failed message_id agent_span_id"
)
_GRADERS_ABOVE_TOTAL = "the graders' logged calls use more tokens than the sample states; its total was kept whole"


class LoggedEvent(NamedTuple):
    """An event of a transcript and its place: within the scoring of the sample or not, and within which agent."""

    event: dict[str, Any]
    by_grader: bool = False
    agent: str | None = None

    def within(self, begun: dict[str, Any]) -> LoggedEvent:
        """The place within a span or step that begins here."""
        kind = begun.get("type")
        agent = as_name(begun.get("name")) if kind == "agent" else None
        return LoggedEvent(begun, self.by_grader or kind in _GRADING, agent or self.agent)


def logged_events(events: Any, around: LoggedEvent | None = None) -> Iterator[LoggedEvent]:
    """The events of a transcript, nested ones too. Their place is told by spans, or by steps in logs of before 2025."""
    outside = around or LoggedEvent({})
    spans: dict[str, LoggedEvent] = {}
    steps = [outside]
    for value in as_list(events):
        event = as_dict(value)
        kind = event.get("event")
        if kind == "span_begin":
            spans[_span(event, "id")] = spans.get(_span(event, "parent_id"), outside).within(event)
        elif kind == "step" and event.get("action") == "begin":
            steps.append(steps[-1].within(event))
        elif kind == "step" and len(steps) > 1:
            steps.pop()
        place = spans.get(_span(event, "span_id"), steps[-1])
        yield LoggedEvent(event, place.by_grader or event.get("role") == "grader", place.agent)
        yield from logged_events(event.get("events"), place)


def usage_counts(usage: Any, notes: ReadingNotes) -> dict[str, Any] | None:
    """Inspect's counts of one call under OpenAI's names.

    Whether its input includes what came from a cache depends on the provider and the version of Inspect; the total
    that stands beside it tells.

    >>> cached = {"input_tokens": 102, "output_tokens": 12, "total_tokens": 178, "input_tokens_cache_read": 64}
    >>> usage_counts(cached, ReadingNotes())
    {'prompt_tokens': 166, 'completion_tokens': 12, 'total_tokens': 178, 'prompt_tokens_details': {'cached_tokens': 64}}
    """
    named = as_dict(usage)
    counts = token_counts({name: named.get(name) for name in _COUNTS}, notes, nested=False)
    if counts is None:
        return None
    prompt, completion, total = (counts.get(name) for name in _COUNTS[:3])
    cached = counts.get("input_tokens_cache_read") or 0
    beside = cached + (counts.get("input_tokens_cache_write") or 0)
    if prompt is not None and completion is not None and total == prompt + completion + beside:
        prompt += beside
    return openai_counts(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=total,
        cached_tokens=cached or None,
        reasoning_tokens=counts.get("reasoning_tokens") or None,
    )


class SampleUsage(NamedTuple):
    """What a sample's log states in all, and what of it its graders used."""

    agent: dict[str, Any] | None
    graders: dict[str, Any] | None
    agent_cost: float | None


def sample_usage(sample: dict[str, Any], events: list[LoggedEvent], notes: ReadingNotes) -> SampleUsage:
    """The sample's stated total over all models, divided between the agent and the graders.

    Graders are charged with the calls logged while the sample was scored; what is left of the total is the agent's.
    """
    stated: dict[str, int] = {}
    graded: dict[str, int] = {}
    costs = []
    for usage in as_dict(sample.get("model_usage")).values():
        # Model by model: each counts its cached tokens in its own way.
        add_counts(stated, _flat(usage_counts(usage, notes)))
        costs.append(as_amount(as_dict(usage).get("total_cost")))
    grading_cost = 0.0
    for logged in events:
        if logged.by_grader and logged.event.get("event") == "model":
            usage = as_dict(as_dict(logged.event.get("output")).get("usage"))
            add_counts(graded, _flat(usage_counts(usage, notes)))
            grading_cost += as_amount(usage.get("total_cost")) or 0.0
    if any(graded.get(name, 0) > count for name, count in stated.items()):
        notes.problems[_GRADERS_ABOVE_TOTAL] += 1
        graded = {}
    own = {name: count - graded.get(name, 0) for name, count in stated.items()}
    known_costs = [cost for cost in costs if cost is not None]
    cost = max(0.0, sum(known_costs) - grading_cost) if known_costs and len(known_costs) == len(costs) else None
    agent, graders = (
        openai_counts(**{**each, "cached_tokens": each.get("cached_tokens") or None}) for each in (own, graded)
    )
    return SampleUsage(agent or None, graders or None, cost)


def _flat(counts: dict[str, Any] | None) -> dict[str, Any]:
    """Counts of one level, so that they can be added."""
    known = dict(counts or {})
    return {**known, **known.pop("prompt_tokens_details", {})}


def _span(event: dict[str, Any], name: str) -> str:
    return as_name(event.get(name)) or ""


_ATTACHMENT = "attachment://"
# How Inspect's scorers write a verdict.
_VERDICTS = {"C": True, "I": False, 1: True, 0: False}


def _matches_json(opening: Opening) -> bool:
    header = {"version", "status", "eval"} <= opening.keys and opening.keys & {"samples", "plan", "results", "stats"}
    return bool(header) or {"epoch", "input", "target", "messages", "scores"} <= opening.keys


def _matches_archive(opening: Opening) -> bool:
    is_log = opening.path.lower().endswith(".eval") or b"_journal/start.json" in opening.head
    return opening.head.startswith(ARCHIVE_START) and is_log


def _record(row: Any, context: RowContext) -> Record:
    sample = as_dict(row)
    if "eval" in sample and "id" not in sample:
        raise NoConversation("the log holds no samples: it has only its header, or was written without them")
    if not isinstance(sample.get("messages"), list) and not isinstance(sample.get("events"), list):
        raise NoConversation("an Inspect sample needs 'messages' or 'events'")
    evaluation = as_dict(context.around.get("eval"))
    events = list(logged_events(sample.get("events")))
    talk = _SampleTalk(context.notes, as_dict(sample.get("attachments")), events)
    count_unknown(context.notes, sample, _SAMPLE_FIELDS)
    for logged in events:
        kind = as_name(logged.event.get("event")) or "none"
        if kind not in _EVENT_KINDS:
            context.notes.count_fields([f"event of type {kind}"])
        elif kind in ("model", "tool"):
            count_unknown(context.notes, logged.event, _CALL_FIELDS, f"event of type {kind}")
    talk.add_messages(as_list(sample.get("messages")))
    usage = sample_usage(sample, events, context.notes)
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
    case = _case(sample, evaluation, context.ids, talk)
    trace = TraceLog(talk.events, metadata, handoffs=talk.handoffs)
    return Record(case, trace, _outcome(sample, talk, duration_s))


class _SampleTalk(Conversation):
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
        matched_models: set[int] = set()
        matched_calls: set[str] = set()
        for value in messages:
            message = {**as_dict(value), "content": self.attached(as_dict(value).get("content"))}
            logged = made_by.pop(_id_of(message) or "", None)
            if logged is not None:
                matched_models.add(id(logged))
                self._add_model_call(logged)
                message["timestamp"] = logged.event.get("completed", logged.event.get("timestamp"))
            matched_calls.update(name for call in as_list(message.get("tool_calls")) if (name := _id_of(call)))
            message.pop("usage", None)
            add_message(self, message, agent=logged.agent if logged else None)
        self._add_unmatched(
            [logged for logged in self._model_calls if id(logged) not in matched_models],
            [logged for logged in self._tool_calls if _id_of(logged.event) not in matched_calls],
        )
        for logged in self._tool_calls:
            target = as_name(logged.event.get("agent"))
            if target and logged.agent:
                at = as_time(logged.event.get("timestamp"))
                self.handoffs.append(HandoffEvent(logged.agent, target, timestamp=at))

    def _add_unmatched(self, model_calls: list[LoggedEvent], tool_calls: list[LoggedEvent]) -> None:
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
            message = as_name(error.get("message"))
            self.result(text_of(result), call_id=call_id, name=name or "", failed=bool(error), error=message)


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


def _case(sample: dict[str, Any], evaluation: dict[str, Any], ids: CaseIds, talk: _SampleTalk) -> DatasetCase:
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


def _outcome(sample: dict[str, Any], talk: _SampleTalk, duration_s: float | None) -> Outcome:
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


INSPECT_LOG = chat_format(
    "inspect",
    "logs of Inspect (UK AISI) as JSON: one record a sample",
    _matches_json,
    _record,
    rows=partial(file_rows, within="samples"),
)
INSPECT_ARCHIVE = chat_format(
    "inspect-eval",
    "logs of Inspect (UK AISI) as .eval archives: one record a sample",
    _matches_archive,
    _record,
    rows=archive_rows,
)
