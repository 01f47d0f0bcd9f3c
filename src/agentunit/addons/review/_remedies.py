"""What records do not say though a metric could use it, and what would add it to the next recording."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from agentunit.addons.review._trace_settings import SETTINGS, WORDS, Lack, LackCause, Setting
from agentunit.core.records import Record, outcome_text
from agentunit.core.trace import TraceEvent
from agentunit.installation import install_command
from agentunit.traces.places import require_known

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
        "answer": not (outcome_text(record.outcome) or "").strip(),
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
    found |= _retrieval_lacks([each.payload for each in kinds.get("retrieval", ())], _has_words(case.context))
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


def _retrieval_lacks(retrievals: list[dict[str, Any]], has_context: bool) -> dict[Lack, bool]:
    documents = [each for payload in retrievals for each in payload.get("documents") or ()]
    texts = [each.get("text", each.get("content", each.get("page_content"))) for each in documents if _is_dict(each)]
    has_text = has_context or any(isinstance(each, str) and each for each in [*texts, *documents])
    return {"documents": not has_context and not retrievals, "document_texts": bool(retrievals) and not has_text}


def _has_words(context: Any) -> bool:
    return any(
        isinstance(each, str) and each.strip() for each in ([context] if isinstance(context, str) else context or ())
    )


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _timed(record: Record) -> bool:
    stamped = sum(event.timestamp is not None for event in record.trace.events)
    stated = record.trace.metadata.get("duration_s", getattr(record.outcome, "elapsed_s", None))
    return stamped > 1 or stated is not None


def _names_agents(record: Record) -> bool:
    roles = any(name not in _NO_NAMES for name in record.trace.agent_roles)
    return roles or any(event.payload.get("agent") not in _NO_NAMES for event in record.trace.events)


OriginKind = Literal["spans", "records", "log"]


class Origin(NamedTuple):
    """Where a case comes from: spans with the scopes that made them, AgentUnit's own records, or another log."""

    kind: OriginKind
    names: tuple[str, ...]


class Remedy(NamedTuple):
    """One thing to do. ``switch`` is what to write down, ``why`` one or two sentences about it.

    ``warns`` marks data that is known to be wrong, not only to be missing.
    """

    cause: LackCause
    switch: str
    why: str
    warns: bool = False


_DATASET = (
    "agentunit score … --expected cases.jsonl",
    "No trace knows what is right. A dataset does: it finds a case by id or query, and gives expected_output, context, "
    "and in metadata expected_tool_calls, contains, regex or json_schema.",
)
_NO_TRACE_KNOWS: dict[Lack, tuple[str, str]] = {
    "expected": _DATASET,
    "expected_tools": _DATASET,
    "pattern": _DATASET,
    "success": (
        "TaskSuccessMetric(check=…)",
        "A trace does not say whether the task was done: a check of yours does (agentunit metrics task_success).",
    ),
}
_ON_SPANS: dict[Lack, tuple[str, str]] = {
    "question": (
        "gen_ai.input.messages or input.value on spans",
        "No span says what was asked. Most instrumentations have a switch that records contents.",
    ),
    "answer": (
        "gen_ai.output.messages or output.value on spans",
        "No span says what was answered. Most instrumentations have a switch that records contents.",
    ),
    "tool_calls": (
        "an instrumentation of the agent's framework",
        "No tool call is in these traces. If the agent called any, instrument its framework, not only the model's "
        "client.",
    ),
    "documents": (
        "spans of the retriever (retrieval.documents or gen_ai.retrieval.documents)",
        "No retrieval is in these traces. If the agent retrieves, instrument its retriever; else give the cases their "
        "context with --expected.",
    ),
    "document_texts": (
        "retrieval.documents.N.document.content",
        "The spans of the retriever do not hold the texts it found.",
    ),
    "model_calls": (
        "an instrumentation of the model's client, beside that of the framework",
        "No span is a call of a model, so that nothing counts its tokens.",
    ),
    "model_names": (
        "gen_ai.request.model or llm.model_name on the spans of model calls",
        "Token counts have no price without the model's name.",
    ),
    "tokens": (
        "gen_ai.usage.input_tokens and output_tokens, or llm.token_count.*",
        'Model calls state no tokens. Streamed ones often need a setting: stream_options={"include_usage": True}.',
    ),
    "times": ("start and end times on spans", "Without them it is unknown how long a run took."),
}
_IN_RECORDS: dict[Lack, tuple[str, str]] = {
    "question": ("case.query", "The record does not say what was asked."),
    "answer": ("outcome.output", "The record does not say what was answered."),
    "tool_calls": ("trace.events of type tool_call: name, arguments, status, result", "Fine if the agent called none."),
    "documents": ("case.context, or trace.events of type retrieval: documents", "Nothing to compare the answer with."),
    "document_texts": ("documents of retrieval events: text", "The documents are there, but not what they say."),
    "model_calls": ("trace.events of type llm_call: model, usage", "Or the totals in trace.metadata.usage."),
    "model_names": ("model of llm_call events", "Token counts have no price without the model's name."),
    "tokens": ("usage of llm_call events, or trace.metadata.usage", "prompt_tokens and completion_tokens."),
    "times": ("timestamp of events, or trace.metadata.duration_s", "Without them it is unknown how long a run took."),
}
for _table in (_NO_TRACE_KNOWS, _ON_SPANS, _IN_RECORDS):
    require_known("remedies: a lack", _table, WORDS)
_BEYOND_THIS_LOG = (
    "spans of the agent (agentunit collect), or records (docs/records.md)",
    "These logs do not say it: fine if there was nothing to record, otherwise record the agent in another way.",
)
_PRICES = (
    install_command("prices"),
    "Tokens and models are known; this adds the list prices of known models. A cost that is recorded counts first.",
)
_NO_PRICE = (
    "trace.metadata.cost, or llm.cost.total on spans",
    "No list price is known for this model or way of counting: the cost has to be recorded.",
)


def remedies_for(
    origin: Origin,
    lacks: Collection[Lack],
    blocking: Collection[Lack],
    *,
    all_scopes: Collection[str] = (),
    prices: bool = False,
) -> dict[Remedy, tuple[Lack, ...]]:
    """What to do about a case, each with what it adds, the settings of its instrumentations first.

    What holds for every instrumentation is told of ``blocking`` alone: lacks that keep a metric from a score.
    ``prices`` says that list prices are installed.

    >>> [remedy.switch for remedy in remedies_for(Origin("records", ("records",)), ["answer"], ["answer"])]
    ['outcome.output']
    """
    found: dict[Remedy, tuple[Lack, ...]] = {}
    left = set(lacks)
    if origin.kind == "spans":
        for setting, adds in settings_for(origin.names, lacks, all_scopes):
            remedy = Remedy(setting.cause, setting.switch, setting.why, setting.always)
            found[remedy] = (*found.get(remedy, ()), *adds)
            left.difference_update(adds)
    for lack in WORDS:
        if lack in left and lack in blocking:
            general = _general(origin, lack, prices)
            if general is not None:
                found[general] = (*found.get(general, ()), lack)
    return found


def _general(origin: Origin, lack: Lack, prices: bool) -> Remedy | None:
    if lack == "cost":
        return Remedy("unknown", *(_NO_PRICE if prices else _PRICES))
    if lack in _NO_TRACE_KNOWS:
        return Remedy("unknown", *_NO_TRACE_KNOWS[lack])
    if origin.kind == "spans":
        return Remedy("unknown", *_ON_SPANS[lack]) if lack in _ON_SPANS else None
    if lack not in _IN_RECORDS:
        return None
    if origin.kind == "records":
        return Remedy("unknown", *_IN_RECORDS[lack])
    return Remedy("unknown", *_BEYOND_THIS_LOG)


def settings_for(
    scopes: Collection[str], lacks: Collection[Lack], all_scopes: Collection[str] = ()
) -> list[tuple[Setting, tuple[Lack, ...]]]:
    """The settings that add what a case lacks, each with what it adds, by the scopes that made the case's spans.

    ``all_scopes`` are those of all files together.

    >>> [(found, adds)] = settings_for(["pydantic-ai"], ["question", "answer"])
    >>> found.switch, found.cause, adds
    ('InstrumentationSettings(include_content=True)', 'hidden', ('question', 'answer'))
    """
    chosen = []
    left = set(lacks)
    for setting in SETTINGS:
        if not _holds(setting, scopes, lacks, all_scopes):
            continue
        adds = setting.adds if setting.always else tuple(each for each in setting.adds if each in left)
        if adds:
            chosen.append((setting, adds))
            left.difference_update(adds)
    return chosen


def _holds(setting: Setting, scopes: Collection[str], lacks: Collection[Lack], all_scopes: Collection[str]) -> bool:
    return (
        any(scope == name or scope.startswith(f"{name}.") for scope in scopes for name in setting.scopes)
        and set(setting.only_with) <= set(lacks)
        and set(setting.unless).isdisjoint(lacks)
        and (setting.beside is None or setting.beside in scopes)
        and (setting.without is None or setting.without not in all_scopes)
    )
