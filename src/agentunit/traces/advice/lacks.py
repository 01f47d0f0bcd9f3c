"""What a record does not say, though a metric or a reader of its report could use it."""

from __future__ import annotations

from typing import Any, Literal

from agentunit.core.outcome import outcome_text
from agentunit.core.records import Record
from agentunit.core.trace import TraceEvent

Lack = Literal[
    "question", "answer", "messages", "tool_calls", "tool_arguments", "tool_results", "model_calls", "model_names",
    "tokens", "cached_tokens", "cost", "documents", "document_texts", "agent_names", "session", "times", "expected",
    "expected_tools", "success", "pattern",
]  # fmt: skip

WORDS: dict[Lack, str] = {
    "question": "question",
    "answer": "answer",
    "messages": "messages of the model calls",
    "tool_calls": "tool calls",
    "tool_arguments": "tool arguments",
    "tool_results": "tool results",
    "model_calls": "model calls",
    "model_names": "model names",
    "tokens": "token counts",
    "cached_tokens": "cached tokens",
    "cost": "cost",
    "documents": "retrievals",
    "document_texts": "texts of retrieved documents",
    "agent_names": "agents' names",
    "session": "session id",
    "times": "times",
    "expected": "expected answer",
    "expected_tools": "expected tool calls",
    "success": "verdict on the task",
    "pattern": "pattern to check",
}
"""What each of them is called, in the order in which reports list them."""

# AG2 writes this where nobody named the agent.
_NO_NAMES = (None, "", "unknown")
_PATTERNS = ("contains", "regex", "json_schema")


def lacks_of(record: Record) -> frozenset[Lack]:
    """Everything that a record does not say. What it says of some calls only is lacking for ``tokens`` and models.

    >>> from agentunit.core.case import DatasetCase
    >>> sorted(set(WORDS) - lacks_of(Record(DatasetCase("q1", "Why?", expected_output="So."), outcome="Thus.")))
    ['answer', 'document_texts', 'expected', 'messages', 'question', 'tool_arguments', 'tool_results']
    """
    case, trace = record.case, record.trace
    kinds: dict[str, list[TraceEvent]] = {}
    for event in trace.events:
        kinds.setdefault(event.type, []).append(event)
    metadata: dict[str, Any] = case.metadata or {}
    state = getattr(record.outcome, "state", None)
    judged = "check" in metadata or (metadata.get("expected_state") is not None and state is not None)
    found: dict[Lack, bool] = {
        "question": not case.query,
        "answer": outcome_text(record.outcome) is None,
        "messages": "llm_call" in kinds and "message" not in kinds,
        "times": not _timed(record),
        "session": trace.metadata.get("session_id") is None,
        "agent_names": not _names_agents(record),
        "expected": case.expected_output is None,
        "expected_tools": metadata.get("expected_tool_calls") is None,
        "success": not judged and getattr(record.outcome, "success", None) is None,
        "pattern": not any(name in metadata for name in _PATTERNS),
    }
    found |= _tool_lacks([each.payload for each in kinds.get("tool_call", ())])
    found |= _model_lacks([each.payload for each in kinds.get("llm_call", ())], record)
    found |= _retrieval_lacks([each.payload for each in kinds.get("retrieval", ())], bool(case.context))
    return frozenset(lack for lack, missing in found.items() if missing)


def _tool_lacks(calls: list[dict[str, Any]]) -> dict[Lack, bool]:
    # A call may well take no arguments; only when none has any, they are lacking.
    return {
        "tool_calls": not calls,
        "tool_arguments": bool(calls) and all(call.get("arguments") in (None, "", {}) for call in calls),
        "tool_results": bool(calls) and all(call.get("result") is None for call in calls),
    }


def _model_lacks(calls: list[dict[str, Any]], record: Record) -> dict[Lack, bool]:
    trace = record.trace
    totals = trace.metadata.get("usage") or getattr(record.outcome, "usage", None)
    # A call that failed used nothing that anybody counted.
    answered = [call for call in calls if not call.get("error")]
    uncounted = any(not _usage(call) for call in answered) if answered else not any(_usage(call) for call in calls)
    cached = any(_counts_cached(usage) for usage in (totals, *map(_usage, calls)))
    priced = any(call.get("cost") is not None for event in trace.events if (call := event.payload))
    return {
        "model_calls": not calls,
        "model_names": any(not call.get("model") for call in calls) or (not calls and not trace.metadata.get("model")),
        "tokens": not totals and uncounted,
        "cached_tokens": not cached,
        "cost": not priced and trace.metadata.get("cost") is None and getattr(record.outcome, "cost", None) is None,
    }


def _usage(call: dict[str, Any]) -> Any:
    return call.get("usage") or {name: count for name, count in call.items() if name.endswith("_tokens")}


def _counts_cached(usage: Any) -> bool:
    if not isinstance(usage, dict):
        return False
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    within = details if isinstance(details, dict) else {}
    return any("cache" in str(name) and count is not None for name, count in {**usage, **within}.items())


def _retrieval_lacks(retrievals: list[dict[str, Any]], given: bool) -> dict[Lack, bool]:
    documents = [each for payload in retrievals for each in payload.get("documents") or ()]
    texts = [each.get("text", each.get("content", each.get("page_content"))) for each in documents if _is_dict(each)]
    told = given or any(isinstance(each, str) and each for each in [*texts, *documents])
    return {"documents": not given and not retrievals, "document_texts": bool(retrievals) and not told}


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _timed(record: Record) -> bool:
    stamped = sum(event.timestamp is not None for event in record.trace.events)
    stated = record.trace.metadata.get("duration_s", getattr(record.outcome, "elapsed_s", None))
    return stamped > 1 or stated is not None


def _names_agents(record: Record) -> bool:
    roles = any(name not in _NO_NAMES for name in record.trace.agent_roles)
    return roles or any(event.payload.get("agent") not in _NO_NAMES for event in record.trace.events)
