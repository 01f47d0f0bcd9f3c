"""The calls of models and retrievers in a trace as events, each counted once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentunit.core.trace import TraceEvent
from agentunit.traces.assembly.tree import Node, nearest_above, top_down
from agentunit.traces.vocabularies.values import as_text, question_in

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
    exceptions = [event.attributes for event in span.events if event.name == "exception"]
    kinds = [error_type, *(each.get("exception.type") for each in exceptions)]
    if any(isinstance(kind, str) and kind.rpartition(".")[2] in _CONTROL_FLOW for kind in kinds):
        return None
    failed = span.status == "error" or facts.error is not None
    if not failed and facts.kind == "tool":
        failed = as_text(error_type) is not None
    if not failed:
        return None
    said = [as_text(each.get("exception.message")) for each in exceptions]
    status = as_text(span.status_message)
    # LangChain's status holds the whole traceback.
    told = status is not None and "Traceback (most recent call last)" in status
    spoken = [*said, facts.error, status] if told else [status, facts.error, *said]
    return next((text for text in [*spoken, as_text(error_type)] if text), "failed")


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
