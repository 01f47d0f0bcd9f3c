"""The calls of models, retrievers and tools in a trace as events, each counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentunit.core.trace import TraceEvent
from agentunit.traces.assembly._tree import Node, nearest_above, top_down
from agentunit.traces.vocabularies.span_messages import ToolResult, unwrapped_arguments, unwrapped_result
from agentunit.traces.vocabularies.values import Message, ToolRequest, as_text, question_in

# How some frameworks leave a function: raised, but nothing went wrong.
_CONTROL_FLOW = ("ParentCommand", "GraphInterrupt", "GraphBubbleUp", "NodeInterrupt")


def model_calls(nodes: Sequence[Node]) -> list[Node]:
    """The spans that are calls of a model. Of two that hold each other the inner one counts: it is the call itself.

    A wrapper lends the inner call what that lacks; a wrapper whose inner calls state no tokens counts itself.
    """
    models = [node for node in nodes if node.facts.kind == "llm" and not node.within_evaluation]
    around = nearest_above(nodes, _is_model)
    inner: dict[Node, list[Node]] = {}
    for node in models:
        outer = around[node]
        if outer is not None:
            inner.setdefault(outer, []).append(node)
    if not inner:
        return models
    counted: set[Node] = set()
    dropped: set[Node] = set()
    for node in reversed(top_down(models)):
        within = inner.get(node, [])
        if any(each in counted for each in within):
            dropped.add(node)
            counted.add(node)
            if len(within) == 1:
                _lend(node, within[0])
        else:
            for each in within:
                _lend(each, node)
            dropped.update(within)
            if node.facts.usage:
                counted.add(node)
    return [node for node in models if node not in dropped]


def _is_model(node: Node) -> bool:
    return node.facts.kind == "llm"


def _lend(giver: Node, taker: Node) -> None:
    for name in ("input_messages", "output_messages", "model", "provider", "cost", "agent", "input", "output"):
        if not getattr(taker.facts, name):
            setattr(taker.facts, name, getattr(giver.facts, name))
    given, taken = giver.facts.usage or {}, taker.facts.usage or {}
    if taken and given.get("prompt_tokens") == taken.get("prompt_tokens"):
        for details in ("prompt_tokens_details", "completion_tokens_details"):
            if given.get(details):
                taken[details] = {**given[details], **{name: n for name, n in taken.get(details, {}).items() if n}}


def model_event(node: Node) -> TraceEvent:
    """A model call as a record states it."""
    facts = node.facts
    payload = {
        "model": facts.model,
        "provider": facts.provider,
        "usage": facts.usage,
        "cost": facts.cost,
        "agent": node.agent,
        "duration_s": node.duration_s,
        "error": failure_of(node),
        "span_id": node.span.span_id,
    }
    return TraceEvent("llm_call", known(payload), node.span.start_s)


def known(payload: dict[str, Any]) -> dict[str, Any]:
    """A payload without what is unknown."""
    return {name: value for name, value in payload.items() if value is not None}


def failure_of(node: Node) -> str | None:
    """Why a span failed, by its own status; ``None`` when it did not."""
    span, facts = node.span, node.facts
    error_type = span.attributes.get("error.type")
    failed = span.status == "error" or facts.error is not None
    if not failed and (facts.kind != "tool" or as_text(error_type) is None):
        return None
    exceptions = [event.attributes for event in span.events if event.name == "exception"]
    kinds = [error_type, *(each.get("exception.type") for each in exceptions)]
    if any(isinstance(kind, str) and kind.rpartition(".")[2] in _CONTROL_FLOW for kind in kinds):
        return None
    messages = [as_text(each.get("exception.message")) for each in exceptions]
    status = as_text(span.status_message)
    # LangChain's status holds the whole traceback.
    has_traceback = status is not None and "Traceback (most recent call last)" in status
    reasons = [*messages, facts.error, status] if has_traceback else [status, facts.error, *messages]
    return next((text for text in [*reasons, as_text(error_type)] if text), "failed")


def retrieval_events(nodes: Sequence[Node]) -> list[TraceEvent]:
    """What was retrieved, once for each retrieval: a retriever within a retriever is the same one."""
    events = []
    retrievals = [node for node in nodes if node.facts.kind == "retrieval" and not node.within_evaluation]
    around = nearest_above(nodes, lambda node: node.facts.kind == "retrieval") if retrievals else {}
    filled = {around[node] for node in retrievals if node.facts.documents}
    for node in retrievals:
        facts, outer = node.facts, around[node]
        if outer is not None and (outer.facts.documents or not facts.documents):
            continue
        if node in filled and not facts.documents:
            continue
        payload = {
            "documents": facts.documents or [],
            "query": question_in(facts.input),
            "agent": node.agent,
            "duration_s": node.duration_s,
            "error": failure_of(node),
            "cost": facts.cost,
            "span_id": node.span.span_id,
        }
        events.append(TraceEvent("retrieval", known(payload), node.span.start_s))
    return events


class _Told(NamedTuple):
    """What the span of a tool call tells, out of its wrappings."""

    arguments: Any
    result: ToolResult
    call_id: str | None


def _told_by(node: Node) -> _Told:
    facts = node.facts
    arguments, call_id = unwrapped_arguments(facts.input)
    result = unwrapped_result(facts.output)
    return _Told(arguments, result, facts.tool_call_id or call_id or result.call_id)


class ToolCalls:
    """The tool calls of one trace."""

    def __init__(self, nodes: Sequence[Node], calls: Sequence[Node]) -> None:
        self._spans = [node for node in nodes if node.facts.kind == "tool" and not node.within_evaluation]
        self._told = {node: _told_by(node) for node in self._spans}
        self._repeats = _repeats(nodes, self._told)
        self._requests = _requests(calls)
        self._by_id, self._by_tool = _positions(self._requests)
        self._results = _results(calls)
        self._agents = {node.agent for node in nodes}
        self._repeated = set(self._repeats.values())
        # What the model called to hand over has no span as a tool; the span of the handoff says that it failed.
        self._failed_handoffs = [
            (plain_name(node.facts.to_agent), failure_of(node))
            for node in nodes
            if node.facts.kind == "handoff" and node.facts.to_agent and failure_of(node)
        ]
        self._span_ids = {told.call_id for node, told in self._told.items() if node not in self._repeated} - {None}

    def events(self) -> list[TraceEvent]:
        """One event a call, in no particular order."""
        taken: set[int] = set()
        counted = [node for node in self._spans if node not in self._repeated]
        events = [self._event(node, self._request_of(node, taken)) for node in counted]
        spans_tell = bool(events)
        for position, (asker, request) in enumerate(self._requests):
            if position in taken or request.name in self._agents:
                continue
            result = self._results.get(request.id or "")
            if result is None and spans_tell:
                continue
            event = _requested_event(asker, request, result)
            called = plain_name(request.name)
            failure = next((why for agent, why in self._failed_handoffs if called.endswith(agent)), None)
            if failure is not None:
                event.payload.update(status="error", error=failure)
            events.append(event)
        return events

    def _request_of(self, node: Node, taken: set[int]) -> ToolRequest | None:
        """What the model asked for when it caused this call, by id, else by name and arguments.

        Google's ADK writes other ids into its messages than on its spans where the model gives none.
        """
        arguments, _, call_id = self._told[node]
        candidates = self._by_id.get(call_id, []) if call_id is not None else []
        best = next((position for position in candidates if self._is_open(position, node, taken)), None)
        if best is None:
            candidates = self._by_tool.get(_called_name(node.facts.tool), []) if node.facts.tool else []
            best = next(
                (
                    position
                    for position in candidates
                    if self._is_open(position, node, taken)
                    and self._requests[position][1].id not in self._span_ids
                    and _agree(self._requests[position][1].arguments, arguments)
                ),
                None,
            )
        if best is None:
            return None
        taken.add(best)
        return self._requests[best][1]

    def _is_open(self, position: int, node: Node, taken: set[int]) -> bool:
        return position not in taken and self._requests[position][0].start_s <= node.start_s

    def _event(self, node: Node, request: ToolRequest | None) -> TraceEvent:
        facts = node.facts
        arguments, result, _ = self._told[node]
        if request is not None and not isinstance(arguments, dict):
            # Some instrumentations write a lone argument without its name, or none at all.
            arguments = request.arguments if request.arguments is not None else arguments
        inner = self._repeats.get(node)
        if facts.output is None and inner is not None:
            result = self._told[inner].result
        value, failed = result.value, result.failed
        call_id = facts.tool_call_id or result.call_id or (request.id if request else None)
        message = self._results.get(call_id or "") or (self._results.get(request.id or "") if request else None)
        if message is not None:
            value = message.content if value is None else value
            failed = failed or message.failed
        error = failure_of(node) or (failure_of(inner) if inner is not None else None)
        if error is not None and error.rstrip().endswith(":") and isinstance(value, str):
            # An exception without a message; what the model was told of it says more.
            error = f"{error.rstrip()} {value}"
        if error is None and (failed or facts.is_error):
            error = value if isinstance(value, str) and value.strip() else "the tool reported a failure"
        stated = facts if inner is None or "tool" in (facts.origins or ()) else inner.facts
        payload = {
            "name": stated.tool or node.span.name,
            "arguments": arguments,
            "status": "error" if error is not None else None if _is_unknown(node) else "success",
            "result": value,
            "error": error,
            "id": call_id,
            "agent": node.agent,
            "duration_s": node.duration_s,
            "cost": facts.cost,
            "server": facts.server,
            "server_version": facts.server_version,
            "tool_version": facts.tool_version,
            "is_error": facts.is_error,
            "span_id": node.span.span_id,
        }
        return TraceEvent("tool_call", known(payload), node.span.start_s)


def _is_unknown(node: Node) -> bool:
    """Whether a span says that nobody knows how its call ended, as ``convert --to otlp`` writes it."""
    return node.span.attributes.get("gen_ai.tool.status") == "unknown"


def _agree(requested: Any, received: Any) -> bool:
    """Whether the arguments of a request and of a call can be the same; a call may tell less than was asked."""
    if received is None or requested is None or requested == received:
        return True
    if isinstance(requested, dict):
        if isinstance(received, dict):
            return (
                all(name in received and received[name] == value for name, value in requested.items()) or not received
            )
        return len(requested) == 1 and str(next(iter(requested.values()))) == str(received)
    return False


def plain_name(name: str) -> str:
    """A name without case and marks: transfer tools write that of an agent in lower case with underscores."""
    return "".join(each for each in name.lower() if each.isalnum())


def _requested_name(name: str) -> str:
    return name.strip("'\"").lower()


def _called_name(name: str) -> str:
    return name.lower().replace(" ", "_")


def _positions(requests: Sequence[tuple[Node, ToolRequest]]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Where the requests of each call id, and of each tool, stand in the list."""
    by_id: dict[str, list[int]] = {}
    by_tool: dict[str, list[int]] = {}
    for position, (_, request) in enumerate(requests):
        if request.id is not None:
            by_id.setdefault(request.id, []).append(position)
        by_tool.setdefault(_requested_name(request.name), []).append(position)
    return by_id, by_tool


def _repeats(nodes: Sequence[Node], told: Mapping[Node, _Told]) -> dict[Node, Node]:
    """Spans within which the same call was seen once more, by another instrumentation, and that second span."""
    around = nearest_above(nodes, lambda node: node.facts.kind in ("tool", "agent", "llm"))
    repeats: dict[Node, Node] = {}
    for node, (_, _, call_id) in told.items():
        outer = around[node]
        if outer is None or outer not in told:
            continue
        if outer.facts.tool == node.facts.tool or (call_id is not None and call_id == told[outer].call_id):
            repeats[outer] = node
    return repeats


def _requests(calls: Sequence[Node]) -> list[tuple[Node, ToolRequest]]:
    """The tool calls that models asked for, each once: outputs come back as inputs of the calls that follow."""
    found: list[tuple[Node, ToolRequest]] = []
    seen: set[str] = set()
    for node in calls:
        for message in node.facts.output_messages:
            for request in message.tool_calls:
                if request.id is None or request.id not in seen:
                    found.append((node, request))
                    seen.add(request.id or "")
    return found


def _results(calls: Sequence[Node]) -> dict[str, Message]:
    """What models were told of their tool calls, by the id of the call."""
    results: dict[str, Message] = {}
    for node in calls:
        waiting: list[str] = []
        for message in node.facts.input_messages:
            waiting += [request.id for request in message.tool_calls if request.id]
            if message.role != "tool" and message.failed is None:
                continue
            # Results without an id come in the order of the calls that they answer.
            call_id = message.tool_call_id or (waiting[0] if waiting else None)
            if call_id in waiting:
                waiting.remove(call_id)
            known = results.get(call_id or "")
            if call_id and (known is None or (known.failed is None and message.failed is not None)):
                results[call_id] = message
    return results


def _requested_event(asker: Node, request: ToolRequest, result: Message | None) -> TraceEvent:
    content = None if result is None else result.content
    failed = result is not None and (result.failed or (result.failed is None and _reports_failure(content)))
    # A result whose text was not recorded says nothing of how the call went.
    status = "error" if failed else None if content is None else "success"
    payload = {
        "name": request.name,
        "arguments": request.arguments,
        "status": status,
        "result": content,
        "error": content if status == "error" else None,
        "id": request.id,
        "agent": asker.agent,
        "derived_from": "the model's messages: the trace has no span for this call",
    }
    # Asked for, but whether it was ever called nobody knows: that is no call to count.
    kind = "tool_request" if result is None else "tool_call"
    return TraceEvent(kind, known(payload), asker.span.end_s or asker.span.start_s)


def _reports_failure(content: str | None) -> bool:
    """Whether a result says of itself that the call failed; without a span nothing else can tell."""
    return content is not None and content.lstrip().lower().startswith(("error", "traceback (most recent call last)"))
