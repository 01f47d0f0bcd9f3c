"""ATIF, the Agent Trajectory Interchange Format of Harbor and Terminal-Bench 2: versions 1.0 to 1.8."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from agentunit.addons.formats.chats.chat_records import RowContext, chat_format
from agentunit.addons.formats.chats.loose_values import as_amount, as_dict, as_list, as_name, as_time, text_of
from agentunit.addons.formats.coding._session import Session, count, names, usage_of
from agentunit.core.codec import as_event, decode_record
from agentunit.core.records import Record
from agentunit.core.results import encode_json
from agentunit.core.trace import TraceEvent
from agentunit.traces.content_blocks import says_failure
from agentunit.traces.formats_base import Opening

# What records keep beside ATIF's own fields lies under this name in ``extra``.
OWN = "agentunit"
_ROOT_FIELDS = names(
    "schema_version session_id trajectory_id agent steps notes final_metrics continued_trajectory_ref extra "
    "subagent_trajectories"
)
_STEP_FIELDS = names(
    "step_id timestamp source model_name reasoning_effort message reasoning_content tool_calls observation metrics "
    "is_copied_context llm_call_count extra"
)
_CALL_FIELDS = names("tool_call_id function_name arguments extra")
_RESULT_FIELDS = names("source_call_id content subagent_trajectory_ref extra")
# Where producers put what ATIF has no field for.
_FAILED = ("is_error", "tool_result_is_error", "tool_use_is_error")
_EXIT_CODES = ("exit_code", "returncode", "return_code")
_CACHE_WRITTEN = ("cache_creation_input_tokens", "cache_write_input_tokens", "cache_creation_tokens")
_REASONING = ("reasoning_tokens", "reasoning_output_tokens", "thoughts_tokens")
_UNREADABLE = "the record within an ATIF trajectory cannot be read; its steps were read instead"


def _matches(opening: Opening) -> bool:
    version = as_dict(opening.value).get("schema_version")
    if opening.value is None and {"schema_version", "agent"} <= opening.keys:
        return b'"ATIF-v' in opening.head
    return isinstance(version, str) and version.startswith("ATIF-v")


def _first(extra: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((extra[name] for name in names if extra.get(name) is not None), None)


class _Embedded:
    """The trajectories within another one, each to be read once; they may have no ids, or the same."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self._left = dict(enumerate(map(as_dict, as_list(whole.get("subagent_trajectories")))))
        self._places: defaultdict[str, deque[int]] = defaultdict(deque)
        for place, child in self._left.items():
            if (name := _name_of(child)) is not None:
                self._places[name].append(place)

    def take(self, ref: dict[str, Any]) -> dict[str, Any] | None:
        """The next trajectory that a reference names."""
        places = self._places.get(_name_of(ref) or "")
        return self._left.pop(places.popleft()) if places else None

    def others(self) -> list[dict[str, Any]]:
        """Those that no reference named."""
        return list(self._left.values())


def _name_of(trajectory: dict[str, Any]) -> str | None:
    return as_name(trajectory.get("trajectory_id")) or as_name(trajectory.get("session_id"))


class _Trajectory(Session):
    """A trajectory as it is read, with the embedded ones where a result refers to them."""

    def __init__(self, context: RowContext, main: str) -> None:
        super().__init__(context.notes, main)
        self.copied: str | None = None

    def add(self, whole: dict[str, Any], name: str) -> None:
        self.check_fields(whole, _ROOT_FIELDS)
        inner = _Embedded(whole)
        model = as_name(as_dict(whole.get("agent")).get("model_name"))
        for step in map(as_dict, as_list(whole.get("steps"))):
            self.check_fields(step, _STEP_FIELDS)
            for task_id, child in self._step(step, name, model, inner):
                self._delegate(child, name, task_id, as_time(step.get("timestamp")))
        for child in inner.others():
            self._delegate(child, name, None, None)

    def _delegate(self, child: dict[str, Any], by: str, task_id: str | None, at: float | None) -> None:
        target = as_name(as_dict(child.get("agent")).get("name")) or "subagent"
        self.hand_over(task_id, target, at=at, by=by)
        self.add(child, target)

    def _step(
        self, step: dict[str, Any], name: str, model: str | None, inner: _Embedded
    ) -> list[tuple[str | None, dict[str, Any]]]:
        at, source, text = as_time(step.get("timestamp")), step.get("source"), text_of(step.get("message"))
        is_copied = step.get("is_copied_context") is True
        if source == "agent" and not is_copied:
            self._metrics(step, name, model, at)
            self.reason(as_name(step.get("reasoning_content")), agent=name, at=at)
        role = "assistant" if source == "agent" else str(source)
        if is_copied and role == "user":
            self.copied = self.copied or text
        speaker = name if role == "assistant" or name != self.main else None
        self.say(role, text, agent=speaker, at=at, copied=True if is_copied else None)
        # Calls that were copied from another trajectory are counted there.
        return [] if is_copied else self._calls(step, name, at, inner)

    def _metrics(self, step: dict[str, Any], agent: str, model: str | None, at: float | None) -> None:
        metrics = as_dict(step.get("metrics"))
        extra = as_dict(metrics.get("extra"))
        usage = usage_of(
            count(metrics.get("prompt_tokens")),
            count(metrics.get("completion_tokens")),
            count(metrics.get("cached_tokens")),
            count(_first(extra, _CACHE_WRITTEN)),
            count(_first(extra, _REASONING)),
        )
        name = as_name(step.get("model_name")) or model
        self.model_call(usage, model=name, cost=as_amount(metrics.get("cost_usd")), agent=agent, at=at)

    def _calls(
        self, step: dict[str, Any], agent: str, at: float | None, inner: _Embedded
    ) -> list[tuple[str | None, dict[str, Any]]]:
        calls = [as_dict(call) for call in as_list(step.get("tool_calls"))]
        for call in calls:
            self.check_fields(call, _CALL_FIELDS)
            extra = as_dict(call.get("extra"))
            call_id = as_name(call.get("tool_call_id"))
            name = as_name(call.get("function_name")) or ""
            self.call(name, call.get("arguments"), call_id=call_id, agent=agent, at=at)
            self.tell(call_id, extra=extra or None)
        found = []
        for result in map(as_dict, as_list(as_dict(step.get("observation")).get("results"))):
            self.check_fields(result, _RESULT_FIELDS)
            call_id = as_name(result.get("source_call_id"))
            if call_id is None and calls:
                # One result for all calls of the step, as terminals give it.
                named = [as_name(call.get("tool_call_id")) for call in calls]
                waiting = [each for each in named if "status" not in self.calls.get(each or "", {})]
                for each in waiting[:-1]:
                    self.end_call(each, None)
                call_id = waiting[-1] if waiting else None
                calls = []
            self._result(call_id, result, at)
            for ref in map(as_dict, as_list(result.get("subagent_trajectory_ref"))):
                child = inner.take(ref)
                if child is not None:
                    found.append((call_id, child))
        return found

    def _result(self, call_id: str | None, result: dict[str, Any], at: float | None) -> None:
        content, extra = text_of(result.get("content")), as_dict(result.get("extra"))
        if call_id is None:
            self.say("system", content, at=at)
            return
        code = _first(extra, _EXIT_CODES)
        failed = _first(extra, _FAILED)
        exit_code = code if isinstance(code, int) else None
        says_nothing = content is None and not result.get("subagent_trajectory_ref")
        if failed is None and exit_code is None and (says_nothing or says_failure(content)):
            # ATIF has no field for how a call ended: without words, and with those of an error, nobody knows.
            self.result(content, call_id=call_id, failed=None)
            return
        self.end_call(call_id, content, failed=failed is True, exit_code=exit_code)


def _kept_events(whole: dict[str, Any]) -> list[tuple[int, TraceEvent]] | None:
    """The events that AgentUnit wrote into a trajectory, with their places; ``None`` when others added steps."""
    found: list[tuple[int, TraceEvent]] = []
    for step in map(as_dict, as_list(whole.get("steps"))):
        own = as_dict(step.get("extra")).get(OWN)
        if not isinstance(own, dict):
            return None
        found += [(int(kept["n"]), _kept_event(kept, step)) for kept in as_list(own.get("events"))]
    for child in map(as_dict, as_list(whole.get("subagent_trajectories"))):
        inner = _kept_events(child)
        if inner is None:
            return None
        found += inner
    return sorted(found, key=lambda pair: pair[0])


def _kept_event(kept: dict[str, Any], step: dict[str, Any]) -> TraceEvent:
    """An event, of which ATIF's own fields hold the text, the arguments and the result."""
    fields = {name: value for name, value in kept.items() if name not in ("n", "from", "call", "arguments", "result")}
    payload = fields["payload"] = dict(kept["payload"])
    if "from" in kept:
        payload["content"] = step[kept["from"]]
    if "call" in kept:
        call = step["tool_calls"][kept["call"]]
        if kept.get("arguments") is True:
            payload["arguments"] = call["arguments"]
        if kept.get("result") is True:
            results = step["observation"]["results"]
            payload["result"] = next(
                each["content"] for each in results if each["source_call_id"] == call["tool_call_id"]
            )
    event: TraceEvent = as_event(fields)
    return event


def _kept_record(kept: dict[str, Any], whole: dict[str, Any], context: RowContext) -> Record | None:
    """The record that AgentUnit wrote as this trajectory; ``None`` when it was changed since."""
    try:
        record, events = decode_record(encode_json(kept)), _kept_events(whole)
    except (ValueError, TypeError, LookupError, StopIteration):
        context.notes.problems[_UNREADABLE] += 1
        return None
    if events is None:
        return None
    record.case.id = context.ids.unique(record.case.id or context.fallback_id)
    record.trace.events = [event for _, event in events]
    return record


def _record(row: Any, context: RowContext) -> Record:
    whole = as_dict(row)
    kept = as_dict(as_dict(whole.get("extra")).get(OWN))
    if kept and (record := _kept_record(kept, whole, context)) is not None:
        return record
    about = as_dict(whole.get("agent"))
    run = _Trajectory(context, as_name(about.get("name")) or "agent")
    run.add(whole, run.main)
    final = as_dict(whole.get("final_metrics"))
    if not as_list(whole.get("subagent_trajectories")):
        totals = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens")
        run.totals(usage_of(*(count(final.get(name)) for name in totals)), None)
    run.totals(None, final.get("total_cost_usd"))
    tools = [as_dict(as_dict(tool).get("function")) or as_dict(tool) for tool in as_list(about.get("tool_definitions"))]
    if tools:
        run.metadata["tools"] = tools
    case_id = as_name(whole.get("session_id")) or as_name(whole.get("trajectory_id"))
    session = as_name(whole.get("session_id"))
    return run.record(context, ATIF.name, case_id=case_id, session_id=session, question=run.first_asked or run.copied)


ATIF = chat_format("atif", "ATIF trajectories of Harbor and Terminal-Bench 2, versions 1.0 to 1.8", _matches, _record)
