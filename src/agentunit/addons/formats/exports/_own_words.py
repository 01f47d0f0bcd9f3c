"""What tools with words of their own call the parts of a run, as attributes of OpenTelemetry and OpenInference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from agentunit.traces.places import Paths, first_at, names_in, require_known
from agentunit.traces.python_literals import python_literal
from agentunit.traces.spans import as_mapping
from agentunit.traces.vocabularies.attribute_rows import require_attributes

OpenInferenceKind = Literal[
    "LLM", "CHAIN", "TOOL", "AGENT", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL", "EVALUATOR", "PROMPT"
]


class OwnWords(NamedTuple):
    """How a tool says what a run is. ``types`` are its types by OpenInference's kinds; one with a dot is a beginning.

    ``facts`` hold for every run, ``call_facts`` for calls of models only: on others they are sums over the runs below.
    ``costs`` are added. ``known`` are fields that are read elsewhere or deliberately left out, by the object they stand
    in ("": the run); every other field becomes an attribute under the tool's name, so that it is kept and counted.
    """

    tool: str
    type: Paths
    types: Mapping[str, OpenInferenceKind]
    input: Paths
    output: Paths
    usage: Paths
    costs: tuple[Paths, ...]
    facts: Mapping[str, Paths]
    call_facts: Mapping[str, Paths]
    known: Mapping[str, frozenset[str]]


# The names of token counts in the usage objects of tools and providers, best first.
_COUNTS: dict[str, Paths] = {
    "gen_ai.usage.input_tokens": ("input_tokens", "prompt_tokens"),
    "gen_ai.usage.output_tokens": ("output_tokens", "completion_tokens"),
    "gen_ai.usage.total_tokens": ("total_tokens",),
    "gen_ai.usage.cache_read.input_tokens": (
        "input_token_details.cache_read",
        "prompt_token_details.cache_read",
        "input_tokens_details.cached_tokens",
        "prompt_tokens_details.cached_tokens",
        "cache_read_input_tokens",
        "original_usage.prompt_tokens_details.cached_tokens",
        "original_usage.input_tokens_details.cached_tokens",
        "original_usage.cache_read_input_tokens",
    ),
    "gen_ai.usage.cache_creation.input_tokens": (
        "input_token_details.cache_creation",
        "prompt_token_details.cache_creation",
        "cache_creation_input_tokens",
        "original_usage.cache_creation_input_tokens",
    ),
    "gen_ai.usage.reasoning.output_tokens": (
        "output_token_details.reasoning",
        "completion_token_details.reasoning",
        "output_tokens_details.reasoning_tokens",
        "completion_tokens_details.reasoning_tokens",
        "original_usage.completion_tokens_details.reasoning_tokens",
        "original_usage.output_tokens_details.reasoning_tokens",
    ),
}
# Anthropic counts these beside its input tokens, and only its usage objects have them at the top.
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")

_WEAVE_TYPES: dict[str, OpenInferenceKind] = {
    "llm": "LLM", "tool": "TOOL", "agent": "AGENT", "search": "RETRIEVER", "guardrail": "GUARDRAIL",
    "scorer": "EVALUATOR", "openai.embeddings.": "EMBEDDING", "openai.": "LLM", "anthropic.": "LLM", "litellm.": "LLM",
    "google.genai.": "LLM", "google.generativeai.": "LLM", "mistralai.": "LLM", "groq.": "LLM", "cohere.": "LLM",
    "cerebras.": "LLM", "together.": "LLM", "langchain.Llm.": "LLM", "langchain.Tool.": "TOOL",
    "langchain.Retriever.": "RETRIEVER",
}  # fmt: skip


LANGSMITH_WORDS = OwnWords(
    tool="langsmith_run",
    type=("run_type",),
    types={"llm": "LLM", "tool": "TOOL", "retriever": "RETRIEVER", "embedding": "EMBEDDING"},
    input=("inputs",),
    output=("outputs",),
    usage=(
        "outputs.usage_metadata",
        "extra.metadata.usage_metadata",
        "outputs.llm_output.token_usage",
        "outputs.usage",
    ),
    costs=(("total_cost", "outputs.usage_metadata.total_cost", "extra.metadata.usage_metadata.total_cost"),),
    facts={
        "session.id": ("extra.metadata.session_id", "extra.metadata.thread_id", "extra.metadata.conversation_id"),
        "agent.name": ("extra.metadata.lc_agent_name",),
        "error.message": ("error",),
    },
    call_facts={
        "gen_ai.request.model": ("extra.metadata.ls_model_name", "inputs.model", "extra.invocation_params.model"),
        "gen_ai.response.model": ("outputs.model", "outputs.llm_output.model_name"),
        "gen_ai.provider.name": ("extra.metadata.ls_provider",),
        # The API states these beside the run; where the reply states them as well, they are the same.
        "gen_ai.usage.input_tokens": ("prompt_tokens",),
        "gen_ai.usage.output_tokens": ("completion_tokens",),
        "gen_ai.usage.total_tokens": ("total_tokens",),
        "gen_ai.usage.cache_read.input_tokens": ("prompt_token_details.cache_read",),
        "gen_ai.usage.reasoning.output_tokens": ("completion_token_details.reasoning",),
    },
    known={
        "": names_in(
            "id name start_time end_time run_type extra error serialized events inputs outputs "
            "reference_example_id parent_run_id tags attachments session_id session_name child_run_ids child_runs "
            "feedback_stats app_path manifest_id status prompt_tokens completion_tokens total_tokens "
            "prompt_token_details completion_token_details first_token_time total_cost prompt_cost "
            "completion_cost prompt_cost_details completion_cost_details parent_run_ids trace_id dotted_order "
            "in_dataset inputs_preview outputs_preview execution_order share_token last_queued_at inputs_s3_urls "
            "outputs_s3_urls s3_urls trace_first_received_at trace_tier ttl_seconds trace_min_start_time "
            "trace_max_start_time price_model_id thread_id messages is_root metadata latency"
        ),
        "extra": names_in("metadata runtime invocation_params options batch_size"),
        "extra.metadata": names_in(
            "session_id thread_id conversation_id lc_agent_name ls_model_name ls_provider ls_model_type ls_temperature "
            "ls_max_tokens ls_stop ls_method ls_run_depth ls_invocation_params ls_integration usage_metadata "
            "revision_id LANGSMITH_PROJECT LANGSMITH_TRACING LANGSMITH_ENDPOINT LANGSMITH_TRACING_V2 langgraph_step "
            "langgraph_node langgraph_triggers langgraph_path langgraph_checkpoint_ns langgraph_version "
            "checkpoint_ns __metadata__"
        ),
    },
)
WEAVE_WORDS = OwnWords(
    tool="weave",
    type=("attributes.weave.kind", "op_name"),
    types=_WEAVE_TYPES,
    input=("inputs",),
    output=("output",),
    usage=("summary.usage.*",),
    costs=(
        ("summary.weave.costs.*.prompt_tokens_total_cost",),
        ("summary.weave.costs.*.completion_tokens_total_cost",),
    ),
    facts={"session.id": ("thread_id",), "error.message": ("exception",)},
    call_facts={"gen_ai.request.model": ("inputs.model",), "gen_ai.response.model": ("output.model",)},
    known={
        "": names_in(
            "id op_name trace_id project_id parent_id inputs output exception summary display_name attributes "
            "started_at ended_at deleted_at thread_id turn_id wb_user_id wb_username wb_run_id wb_run_step "
            "wb_run_step_end storage_size_bytes total_storage_size_bytes weave_task_id created_timestamp "
            "otel_dump expire_at"
        ),
        "summary": names_in("usage status_counts weave"),
        "attributes": names_in("weave weave_task_id"),
    },
)
OPIK_WORDS = OwnWords(
    tool="opik",
    type=("type",),
    types={"llm": "LLM", "tool": "TOOL", "guardrail": "GUARDRAIL"},
    input=("input",),
    output=("output",),
    usage=("usage",),
    costs=(("total_estimated_cost",),),
    facts={"session.id": ("thread_id",), "error.message": ("error_info.message", "error_info.exception_type")},
    call_facts={"gen_ai.request.model": ("model",), "gen_ai.provider.name": ("provider",)},
    known={
        "": names_in(
            "id project_name project_id trace_id parent_span_id name type start_time end_time input output "
            "metadata model provider tags usage error_info created_at last_updated_at created_by last_updated_by "
            "feedback_scores comments total_estimated_cost total_estimated_cost_version duration ttft source "
            "environment span_feedback_scores guardrails_validations span_count thread_id visibility_mode "
            "llm_span_count has_tool_spans providers experiment annotation_queues total_cost cost"
        ),
        "error_info": names_in("exception_type message traceback"),
        "metadata": names_in("created_from type usage _opik_graph_definition"),
    },
)


DEEPEVAL_WORDS = OwnWords(
    tool="deepeval",
    type=("type",),
    types={"llm": "LLM", "tool": "TOOL", "agent": "AGENT", "retriever": "RETRIEVER"},
    input=("input",),
    output=("output",),
    usage=(),
    costs=(),
    facts={"session.id": ("threadId",), "user.id": ("userId",), "error.message": ("error",)},
    call_facts={
        "gen_ai.request.model": ("model",),
        "gen_ai.provider.name": ("provider",),
        "gen_ai.usage.input_tokens": ("inputTokenCount",),
        "gen_ai.usage.output_tokens": ("outputTokenCount",),
    },
    known={
        "": names_in(
            "uuid name status type parentUuid traceUuid startTime endTime input output error model provider "
            "integration inputTokenCount outputTokenCount threadId userId metadata tags environment availableTools "
            "agentHandoffs toolsCalled expectedTools retrievalContext context expectedOutput metricsData "
            "costPerInputToken costPerOutputToken tokenIntervals metricCollection"
        ),
    },
)


def check_words(words: OwnWords) -> None:
    """Refuse words that would be lost: a kind or an attribute that nobody knows, a field that is read and not known."""
    require_known(f"{words.tool}: a kind in types", words.types.values(), get_args(OpenInferenceKind))
    require_attributes(words.tool, (*words.facts, *words.call_facts))
    places = [words.type, words.input, words.output, words.usage, *words.costs]
    places += [*words.facts.values(), *words.call_facts.values()]
    for path in (path for paths in places for path in paths):
        require_known(f"{words.tool}: the field that {path!r} begins with", [path.partition(".")[0]], words.known[""])
    for place in filter(None, words.known):
        around, _, name = place.rpartition(".")
        require_known(f"{words.tool}: the place {place!r}, of which fields are known,", [name], words.known[around])


for _words in (LANGSMITH_WORDS, WEAVE_WORDS, OPIK_WORDS, DEEPEVAL_WORDS):
    check_words(_words)
require_attributes("token counts of tools", _COUNTS)


def attributes_in(row: Mapping[str, Any], words: OwnWords, name: str) -> dict[str, Any]:
    """The attributes that a run's own fields stand for."""
    kind = _kind(first_at(row, words.type), words.types)
    given, returned = first_at(row, words.input), first_at(row, words.output)
    attributes = {key: first_at(row, paths) for key, paths in words.facts.items()}
    if kind == "LLM":
        attributes |= {key: first_at(row, paths) for key, paths in words.call_facts.items()}
        attributes |= {"gen_ai.operation.name": "chat", "gen_ai.usage.cost": _sum(row, words.costs)}
        attributes |= _counts(first_at(row, words.usage) or _usage_of_reply(returned))
        attributes |= {"gen_ai.input.messages": _messages(given), "gen_ai.output.messages": _messages(returned)}
    elif kind == "TOOL":
        attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        attributes |= {
            "gen_ai.tool.call.arguments": _json(_arguments(given)),
            "gen_ai.tool.call.result": _json(returned),
        }
        attributes["error.type"] = "error" if attributes.get("error.message") else None
    elif kind == "RETRIEVER":
        attributes |= {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": _query(given)}
        attributes["gen_ai.retrieval.documents"] = _json(_documents(returned))
    else:
        attributes |= {"openinference.span.kind": kind, "input.value": _json(given), "output.value": _json(returned)}
        if kind == "AGENT":
            attributes.setdefault("agent.name", name)
    unknown = {
        ".".join(filter(None, (words.tool, place, key))): _json(value)
        for place, known in words.known.items()
        for key, value in (as_mapping(first_at(row, (place,)) if place else row) or {}).items()
        if key not in known and value not in NOTHING
    }
    return {**attributes, **unknown}


NOTHING: tuple[Any, ...] = (None, "", [], {})


def short_name(name: str) -> str:
    """The name of an operation of Weave without the address and the version around it.

    >>> short_name("weave:///team/project/op/get_weather:8Fk1"), short_name("search")
    ('get_weather', 'search')
    """
    return name.rpartition("/")[2].partition(":")[0] if name.startswith("weave:///") else name


def _kind(value: Any, types: Mapping[str, str]) -> str:
    word = short_name(value) if isinstance(value, str) else ""
    beginnings = (kind for mark, kind in types.items() if mark.endswith(".") and word.startswith(mark))
    return types.get(word) or next(beginnings, "CHAIN")


def _sum(row: Mapping[str, Any], parts: tuple[Paths, ...]) -> float | None:
    found = [value for paths in parts if (value := first_at(row, paths)) is not None]
    try:
        return sum(map(float, found)) if found else None
    except (TypeError, ValueError, OverflowError):
        return None


def _counts(usage: Any) -> dict[str, Any]:
    if not isinstance(usage, dict):
        return {}
    counts = {key: value for key, paths in _COUNTS.items() if (value := first_at(usage, paths)) is not None}
    beside = [usage[name] for name in _BESIDE if isinstance(usage.get(name), int)]
    if beside and "prompt_tokens" not in usage and isinstance(usage.get("input_tokens"), int):
        counts["gen_ai.usage.input_tokens"] = usage["input_tokens"] + sum(beside)
    return counts


def _usage_of_reply(returned: Any) -> Any:
    """What the message of a reply says it used, where the run itself does not say it."""
    replies = [message for each in _listed(returned) if isinstance(message := _message(each), dict)]
    return next((first_at(reply, _REPLY_USAGES) for reply in replies if first_at(reply, _REPLY_USAGES)), None)


_REPLY_USAGES = ("usage_metadata", "response_metadata.token_usage")


def _json(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _arguments(given: Any) -> Any:
    """The arguments of a tool call; LangChain's tracer writes them as the text of a Python object."""
    text = given.get("input") if isinstance(given, dict) and set(given) == {"input"} else None
    if not isinstance(text, str) or not text.startswith("{"):
        return given
    try:
        found = python_literal(text)
    except (ValueError, SyntaxError):
        return given
    return found if isinstance(found, dict) else given


def _query(given: Any) -> Any:
    inner = first_at(given, ("query", "input", "question")) if isinstance(given, dict) else given
    return inner if isinstance(inner, str) else _json(given)


def _documents(returned: Any) -> Any:
    found = first_at(returned, ("documents", "output")) if isinstance(returned, dict) else returned
    return found if isinstance(found, list) else None if found is None else [found]


# Where a call's messages stand in what it was given, or gave back.
_LISTS = ("messages", "input", "contents", "prompts", "prompt", "choices", "generations", "output", "candidates")
_LANGCHAIN = {"human": "user", "ai": "assistant", "aimessagechunk": "assistant", "system": "system", "tool": "tool"}


def _messages(value: Any) -> str | None:
    found = [message for each in _listed(value) if (message := _message(each)) is not None]
    return _json(found) if found else None


def _listed(value: Any) -> list[Any]:
    """The messages of a call, whatever lists and objects are around them."""
    if isinstance(value, list):
        return [message for each in value for message in (_listed(each) if isinstance(each, list) else [each])]
    if not isinstance(value, dict):
        return [] if value in NOTHING else [value]
    if "role" in value or "kwargs" in value:
        return [value]
    key = next((key for key in _LISTS if value.get(key) not in NOTHING), None)
    system = value.get("system", value.get("instructions"))
    before = [{"role": "system", "content": system}] if system and key else []
    return [*before, *_listed(value[key])] if key else [value]


def _message(value: Any) -> Any:
    """A message of any provider as one with a role; texts stay texts."""
    if not isinstance(value, dict):
        return value if isinstance(value, str) else None
    inner = value.get("message")
    if isinstance(inner, dict):
        return _message(inner)
    if isinstance(value.get("kwargs"), dict):
        name = value.get("id")
        own = name[-1] if isinstance(name, list) and name and isinstance(name[-1], str) else ""
        return _message({"type": own.removesuffix("Message").lower(), **value["kwargs"]})
    kind = value.get("type")
    if kind == "function_call":
        return {"role": "assistant", "tool_calls": [{**value, "id": value.get("call_id")}]}
    if kind == "function_call_output":
        return {"role": "tool", "content": value.get("output"), "tool_call_id": value.get("call_id")}
    if kind == "reasoning":
        return None
    if "role" not in value and isinstance(kind, str) and kind.lower() in _LANGCHAIN:
        return {**value, "role": _LANGCHAIN[kind.lower()]}
    return value
