"""Recordings that are events by type: one table a tool says what each type adds to the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from agentunit.addons.formats.chats._chat_logs import add_message
from agentunit.addons.formats.chats.chat_conversation import Conversation
from agentunit.addons.formats.chats.chat_records import NoConversation, RowContext, chat_format
from agentunit.addons.formats.chats.loose_values import (
    as_amount,
    as_data,
    as_dict,
    as_list,
    as_name,
    as_time,
    count_unknown,
    text_of,
    usage_counts,
    without_nones,
)
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.traces.formats_base import Opening, TraceFormat
from agentunit.traces.places import Paths, first_at, names_in, require_known

Does = Literal["say", "message", "call", "result", "model", "retrieved", "failed", "session"]
Role = Literal["user", "assistant"]
# The parts of an event that each of these reads, and those that are read of every event.
_PARTS: dict[Does, frozenset[str]] = {
    "say": names_in("text"),
    "message": names_in("message"),
    "call": names_in("id name arguments server"),
    "result": names_in("id result failed"),
    "model": names_in("usage cost_so_far failed text"),
    "retrieved": names_in("documents"),
    "failed": names_in("text"),
    "session": names_in("tools system"),
}
_PARTS_OF_ANY = names_in("agent model session_id prompt")


class LogStep(NamedTuple):
    """What an event adds, and where its parts stand in it.

    A "message" is in the shape of a provider, a "session" states facts of the whole recording. ``role`` is who says it;
    ``name`` is a call's name where the event has none. ``cost_so_far`` is what all calls up to this one cost. Fields
    that are neither in ``where`` nor in the log's ``known`` are counted.
    """

    does: Does
    where: Mapping[str, Paths] = {}
    role: Role = "assistant"
    name: str | None = None


class EventLog(NamedTuple):
    """A tool's events. Types without a step are known to add nothing; a type that is in neither is counted."""

    name: str
    steps: Mapping[str, LogStep]
    silent: frozenset[str]
    known: frozenset[str]
    time: Paths


def check_steps(log: EventLog) -> None:
    """Refuse a step that would add nothing: ``ValueError`` that names the tool and the type of the event."""
    for kind, step in log.steps.items():
        where = f"{log.name}, step {kind!r}:"
        require_known(f"{where} does", [step.does], get_args(Does))
        require_known(f"{where} role", [step.role], get_args(Role))
        require_known(f"{where} a part of {step.does!r}", step.where, _PARTS[step.does] | _PARTS_OF_ANY)
        if kind in log.silent:
            raise ValueError(f"{where} the type is listed as silent as well")


class _EventLog(Conversation):
    def __init__(self, context: RowContext, log: EventLog) -> None:
        super().__init__(context.notes)
        self.log = log
        self.facts: dict[str, Any] = {}
        self.error: str | None = None
        self._spent = 0.0

    def add(self, kind: str, event: dict[str, Any]) -> None:
        step = self.log.steps.get(kind)
        if step is None:
            if kind not in self.log.silent:
                self.notes.count_fields([kind])
            return
        part = {name: first_at(event, paths) for name, paths in step.where.items()}
        read = {path.partition(".")[0] for paths in step.where.values() for path in paths}
        count_unknown(self.notes, event, self.log.known | read, kind)
        at = as_time(first_at(event, self.log.time))
        agent = as_name(part.get("agent", self.facts.get("agent")))
        if step.does == "say":
            self.say(step.role, text_of(part.get("text")), agent=None if step.role == "user" else agent, at=at)
        elif step.does == "message":
            # The usage of a streamed message is that of its first piece; the log's end states all of it.
            message = {**as_dict(part.get("message")), "usage": None, "id": None, "timestamp": at}
            add_message(self, {name: value for name, value in message.items() if value is not None}, agent=agent)
        elif step.does == "call":
            self._call(step, part, agent, at)
        elif step.does == "result":
            failed = part.get("failed") not in (None, False, "")
            error = part.get("failed") if isinstance(part.get("failed"), str) else None
            result = text_of(part.get("result")) if part.get("result") is not None else None
            self.result(result, call_id=as_name(part.get("id")), failed=failed, error=error, agent=agent, at=at)
        elif step.does == "model":
            model = as_name(part.get("model", self.facts.get("model")))
            counts = usage_counts(part.get("usage"), self.notes)
            cost = self._rise(as_amount(part.get("cost_so_far")))
            self.model_call(counts, model=model, cost=cost, agent=agent, at=at)
            self.error = text_of(part.get("text")) if part.get("failed") is True else self.error
        elif step.does == "retrieved":
            found = [each.get("content") if isinstance(each, dict) else each for each in as_list(part.get("documents"))]
            documents = [text for each in found if (text := text_of(each))]
            self.events.append(TraceEvent("retrieval", without_nones(documents=documents, agent=agent), at))
        elif step.does == "failed":
            self.error = text_of(part.get("text")) or kind
        self._keep(step, part)

    def _rise(self, cost_so_far: float | None) -> float | None:
        """What was spent since the last total; a total below it is that of a process that began anew."""
        if cost_so_far is None:
            return None
        before, self._spent = self._spent, cost_so_far
        return cost_so_far - before if cost_so_far >= before else cost_so_far

    def _call(self, step: LogStep, part: dict[str, Any], agent: str | None, at: float | None) -> None:
        given = part.get("arguments")
        if isinstance(given, list):
            given = {name: each.get("value") for each in map(as_dict, given) if (name := as_name(each.get("name")))}
        name = as_name(part.get("name")) or step.name
        if name is None:
            self.add_calls([{}])
            return
        self.call(name, given, call_id=as_name(part.get("id")), agent=agent, at=at)
        self.events[-1].payload.update(without_nones(server=as_name(part.get("server"))))

    def _keep(self, step: LogStep, part: dict[str, Any]) -> None:
        """Facts that one event states and others lack."""
        self.facts.update({k: part[k] for k in ("session_id", "model") if part.get(k) is not None})
        if step.does == "session":
            self.facts.update({k: part[k] for k in ("agent", "tools") if part.get(k) is not None})
            self.say("system", text_of(part.get("system")))
        if self.first_asked is None and (prompt := _asked(part.get("prompt"))):
            self.say("user", prompt)

    def record(self, context: RowContext) -> Record:
        """The conversation as a record."""
        if not self.events:
            raise NoConversation("none of the events adds anything to a conversation")
        session_id = as_name(self.facts.get("session_id"))
        tools = [each if isinstance(each, dict) else {"name": each} for each in as_list(self.facts.get("tools"))]
        metadata = without_nones(
            source_format=self.log.name,
            session_id=session_id,
            model=as_name(self.facts.get("model")),
            tools=[tool for tool in tools if as_name(tool.get("name"))] or None,
        )
        case = DatasetCase(context.ids.unique(session_id or context.fallback_id), self.first_asked)
        return Record(case, TraceLog(self.events, metadata), Outcome(output=self.last_answer, error=self.error))


def _asked(prompt: Any) -> str | None:
    """The user's words in the prompt that a trace of Bedrock shows: JSON of messages, as text."""
    messages = as_list(as_dict(as_data(prompt)).get("messages"))
    for message in messages:
        if as_dict(message).get("role") == "user":
            text = text_of(message.get("content"))
            return text[7:-2] if text and text.startswith("[{text=") and text.endswith("}]") else text
    return None


_SAID: dict[str, Paths] = {"text": ("content",)}
_USED: dict[str, Paths] = {
    "name": ("name",), "arguments": ("input",), "id": ("id",), "server": ("mcp_server_name",)
}  # fmt: skip
_ANSWERED: dict[str, Paths] = {
    "id": ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id"), "result": ("content",), "failed": ("is_error",)
}  # fmt: skip
_SESSION: dict[str, Paths] = {
    "session_id": ("id",), "agent": ("agent.name",), "model": ("agent.model.id", "agent.model"),
    "system": ("agent.system",), "tools": ("agent.tools",),
}  # fmt: skip
_MANAGED = EventLog(
    "anthropic-managed",
    steps={
        "session": LogStep("session", _SESSION),
        "user.message": LogStep("say", _SAID, role="user"),
        "user.define_outcome": LogStep("say", {"text": ("description",)}, role="user"),
        "agent.message": LogStep("say", _SAID),
        "agent.tool_use": LogStep("call", _USED),
        "agent.mcp_tool_use": LogStep("call", _USED),
        "agent.custom_tool_use": LogStep("call", _USED),
        "agent.tool_result": LogStep("result", _ANSWERED),
        "agent.mcp_tool_result": LogStep("result", _ANSWERED),
        "user.custom_tool_result": LogStep("result", _ANSWERED),
        "span.model_request_end": LogStep("model", {"usage": ("model_usage",)}),
        "session.error": LogStep("failed", {"text": ("error.message", "error.type")}),
    },
    silent=names_in(
        "agent.thinking agent.thread_context_compacted session.deleted session.status_idle "
        "session.status_rescheduled session.status_running session.status_terminated session.thread_created "
        "session.thread_status_idle session.thread_status_rescheduled session.thread_status_running "
        "session.thread_status_terminated span.model_request_start user.interrupt user.tool_confirmation"
    ),
    known=names_in(
        "id type processed_at session_thread_id evaluated_permission is_error environment_id "
        "model_request_start_id created_at updated_at archived_at metadata outcome_evaluations resources "
        "stats status title usage vault_ids"
    ),
    time=("processed_at",),
)
_CLAUDE_STREAM = EventLog(
    "claude-stream",
    steps={
        "user": LogStep("message", {"message": ("message",)}, role="user"),
        "assistant": LogStep("message", {"message": ("message",)}),
        "system": LogStep("session", {"session_id": ("session_id",), "model": ("model",), "tools": ("tools",)}),
        # One result a turn: its usage is that of the turn, its cost that of the process so far.
        "result": LogStep(
            "model",
            {
                "usage": ("usage",),
                "cost_so_far": ("total_cost_usd",),
                "session_id": ("session_id",),
                "failed": ("is_error",),
                "text": ("errors", "result", "subtype"),
            },
        ),
    },
    silent=frozenset(("control_request", "control_response", "stream_event", "rate_limit_event")),
    known=names_in(
        "type subtype uuid session_id parent_tool_use_id timestamp is_error duration_ms duration_api_ms "
        "num_turns result stop_reason modelUsage permission_denials cwd mcp_servers permissionMode "
        "slash_commands apiKeySource claude_code_version output_style agents skills plugins fast_mode_state "
        "tool_use_result error analytics_disabled api_error_status terminal_reason origin"
    ),
    time=("timestamp",),
)
_BEDROCK_PARTS = {
    "modelInvocationInput": LogStep("model", {"model": ("foundationModel",), "prompt": ("text",)}),
    "modelInvocationOutput": LogStep("model", {"usage": ("metadata.usage",)}),
    "actionGroupInvocationInput": LogStep(
        "call",
        {
            "name": ("function", "apiPath"),
            "arguments": ("parameters", "requestBody"),
            "id": ("traceId",),
            "server": ("actionGroupName",),
        },
    ),
    "actionGroupInvocationOutput": LogStep("result", {"id": ("traceId",), "result": ("text",)}),
    "codeInterpreterInvocationInput": LogStep(
        "call", {"arguments": ("code",), "id": ("traceId",)}, name="code_interpreter"
    ),
    "codeInterpreterInvocationOutput": LogStep(
        "result", {"id": ("traceId",), "result": ("executionOutput",), "failed": ("executionError", "executionTimeout")}
    ),
    "agentCollaboratorInvocationInput": LogStep(
        "call", {"name": ("agentCollaboratorName",), "arguments": ("input",), "id": ("traceId",)}
    ),
    "agentCollaboratorInvocationOutput": LogStep("result", {"id": ("traceId",), "result": ("output.text", "output")}),
    "knowledgeBaseLookupOutput": LogStep("retrieved", {"documents": ("retrievedReferences",)}),
    "finalResponse": LogStep("say", {"text": ("text",)}),
    "failureTrace": LogStep("failed", {"text": ("failureReason",)}),
    "session": LogStep("session", {"session_id": ("sessionId",), "agent": ("collaboratorName", "agentId")}),
}
_BEDROCK = EventLog(
    "bedrock-agent",
    steps=_BEDROCK_PARTS,
    silent=frozenset(("rationale", "knowledgeBaseLookupInput", "repromptResponse", "guardrailTrace", "chunk")),
    known=names_in(
        "traceId type metadata eventTime inferenceConfiguration overrideLambda promptCreationMode parserMode "
        "rawResponse parsedResponse reasoningContent executionType verb invocationId invocationType "
        "knowledgeBaseId files agentCollaboratorAliasArn agentCollaboratorName trace agentAliasId agentId "
        "agentVersion callerChain failureCode"
    ),
    time=("eventTime",),
)


_BEDROCK_TRACES = ("orchestrationTrace", "preProcessingTrace", "postProcessingTrace", "routingClassifierTrace")


def _managed_events(row: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Events as the API lists them; in a log of the SDK's calls, what was sent comes back in the stream."""
    for each in row if isinstance(row, list) else [row]:
        event = _logged_event(each)
        if isinstance(each, list) and len(each) == 2 and str(each[0]).endswith(".send"):
            event = {}
        if as_name(as_dict(event).get("type")):
            yield event["type"], event


def _claude_events(row: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in as_list(as_dict(row).get("messages")):
        event = as_dict(as_dict(each).get("message"))
        yield str(event.get("type")), event


def _bedrock_events(row: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The parts of each trace, by the name of the innermost object, with the trace's id and time beside them."""
    rows = row if isinstance(row, list) else as_list(as_dict(row).get("completion")) or [row]
    for each in rows:
        outer = as_dict(as_dict(each).get("trace"))
        for kind in as_dict(each).keys() - {"trace"}:
            yield kind, as_dict(each[kind])
        if not outer:
            continue
        yield "session", outer
        time = {"eventTime": outer.get("eventTime")}
        for kind, trace in as_dict(outer.get("trace")).items():
            if kind not in _BEDROCK_TRACES:
                yield kind, as_dict(trace)
                continue
            for name, part in as_dict(trace).items():
                inner = {**time, "traceId": as_dict(part).get("traceId")}
                if name in ("invocationInput", "observation"):
                    for inner_name, held in as_dict(part).items():
                        if isinstance(held, dict):
                            yield inner_name, {**inner, **held}
                else:
                    yield name, {**inner, **as_dict(part)}


def _logged_event(value: Any) -> Any:
    """An event out of what a log of the SDK's calls puts around it: its name, or a summary beside it ("raw")."""
    if isinstance(value, list) and len(value) == 2:
        return value[1]
    return value["raw"] if isinstance(as_dict(value).get("raw"), dict) else value


def _is_managed(value: Any) -> bool:
    event = as_dict(_logged_event(value))
    kind = event.get("type")
    if kind == "session":
        # Many tools begin their files with a line of this type: theirs names no agent of the service.
        return "id" in event and isinstance(event.get("agent"), dict)
    return isinstance(kind, str) and (kind in _MANAGED.steps or kind in _MANAGED.silent) and "id" in event


def _is_managed_part(value: Any) -> bool:
    sent = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
    return sent or isinstance(as_dict(_logged_event(value)).get("type"), str)


def _is_bedrock(value: Any) -> bool:
    trace = as_dict(as_dict(value).get("trace"))
    return isinstance(trace.get("trace"), dict) and not {"agentId", "sessionId"}.isdisjoint(trace)


def _first_of(value: Any, *names: str) -> Any:
    """The first element of the list that a value is or holds."""
    for name in names:
        if isinstance(as_dict(value).get(name), list):
            value = value[name]
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value


def _format(log: EventLog, summary: str, matches: Any, events: Any, is_part: Any = lambda row: False) -> TraceFormat:
    check_steps(log)

    def record(row: Any, context: RowContext) -> Record:
        found: Iterable[tuple[str, dict[str, Any]]] = events(row)
        talk = _EventLog(context, log)
        for kind, event in found:
            talk.add(kind, event)
        return talk.record(context)

    def match(opening: Opening) -> bool:
        return bool(matches(opening.value))

    return chat_format(log.name, summary, match, record, is_part=is_part)


ANTHROPIC_MANAGED = _format(
    _MANAGED,
    "events of sessions of Anthropic's managed agents, as its API lists or streams them",
    lambda value: _is_managed(_first_of(value, "data")),
    lambda row: _managed_events(row["data"] if isinstance(row, dict) and "data" in row else row),
    _is_managed_part,
)
CLAUDE_STREAM = _format(
    _CLAUDE_STREAM,
    "messages between the Claude Agent SDK and its process: {messages: [{direction, message}]}",
    lambda value: "direction" in as_dict(_first_of(value, "messages")),
    _claude_events,
)
BEDROCK_AGENT = _format(
    _BEDROCK,
    "trace events of Amazon Bedrock agents, as InvokeAgent streams them",
    lambda value: any(map(_is_bedrock, as_list(as_dict(value).get("completion")) or [_first_of(value)])),
    _bedrock_events,
    _is_bedrock,
)
