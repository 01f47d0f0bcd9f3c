"""What frameworks write beside the vocabularies: whose work a span is, where it stands, and messages between agents.

Each of these was seen in spans of the real framework; ``tests/frameworks`` holds them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentunit.traces.spans import Span
from agentunit.traces.vocabularies._span_claims import Claims, usage_in
from agentunit.traces.vocabularies.span_messages import messages_in, unwrapped_result
from agentunit.traces.vocabularies.values import Facts, as_text, from_json

# LlamaIndex names the agent of a step nowhere but in the representation of its event.
_CURRENT_AGENT = re.compile(r"current_agent_name='([^']*)'")
_AUTOGEN_TYPE = re.compile(r"^(?P<name>.+)_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
# What LangChain's own agents call their steps.
_LANGGRAPH_MACHINERY = ("model_request", "model", "agent", "tools", "__start__")
_BEEAI_EVENT = re.compile(r"(?P<what>.+)\.(?P<event>start|success|error|finish)-\d+\Z")
_AG2_MACHINERY = ("_User", "chat_manager", "_Group_Tool_Executor")
# Tools that frameworks make for passing a task on, with the argument that names the agent it goes to.
_TRANSFER_TOOLS = {
    "transfer_to_agent": "agent_name",
    "transfer_to_other_agent": "agent_name",
    "handoff": "to_agent",
    "delegate_work_to_coworker": "coworker",
    "ask_question_to_coworker": "coworker",
}
# Spans of these without a word of their own are steps that hold others together.
_AGENT_SCOPES = ("pydantic-ai", "gcp.vertex.agent", "autogen", "crewai", "openinference.instrumentation")
_TRANSFER_NAME = re.compile(r"^(?:transfer|hand_?off)_to_(?P<agent>.+)$")
_TEAM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


def read_framework(span: Span, claims: Claims, facts: Facts) -> None:
    """Add what the framework of a span says of it in its own way."""
    attributes = span.attributes
    scope = span.scope
    if facts.agent is None and ("metadata" in claims.by_fact or "lc_path" in claims.by_fact):
        facts.agent = _langgraph_agent(claims)
    if scope.startswith("openinference.instrumentation.llama_index"):
        _read_llama_index(span, facts)
    elif scope.startswith("autogen"):
        _read_autogen(span, facts)
    elif "crewai" in scope or span.name.endswith("._execute_core"):
        _read_crewai(attributes, facts)
    elif "openai_agents" in scope:
        _read_openai_agents(span, facts)
    elif scope.endswith("instrumentation.beeai"):
        _read_beeai(span, facts)
    elif scope.endswith("instrumentation.ag2"):
        _read_ag2(attributes, facts)
    elif scope == "haystack":
        _read_haystack(facts)
    elif "gcp.vertex.agent.session_id" in attributes or "gcp.vertex.agent.llm_request" in attributes:
        _read_adk(attributes, facts)
    if facts.kind is None and scope.startswith(_AGENT_SCOPES):
        facts.kind = "chain"
    if facts.kind == "tool" and facts.to_agent is None:
        facts.to_agent = _transfer_target(facts)


def _langgraph_agent(claims: Claims) -> str | None:
    """The agent of a LangChain run: named outright, or the node around the graph that is running."""
    metadata = claims.of("metadata")
    if metadata.__class__ is str:
        metadata = from_json(metadata) if '"lang' in metadata else None
    known: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    path = known.get("langgraph_checkpoint_ns") or claims.of("lc_path")
    named = as_text(known.get("lc_agent_name")) or (claims.of("lc_agent") if "lc_path" in claims else None)
    if named is None and isinstance(path, str) and "|" in path:
        node = path.partition(":")[0]
        return None if node in _LANGGRAPH_MACHINERY else node or None
    return named


def _read_llama_index(span: Span, facts: Facts) -> None:
    if span.name.endswith("._prepare_chat_with_tools"):
        facts.kind = "chain"
    if facts.kind == "chain" and isinstance(facts.input, str):
        named = _CURRENT_AGENT.findall(facts.input)
        facts.agent = named[-1] if named else facts.agent
        if span.parent_id is None:
            # The workflow's own state and a shortened representation: neither is a question or an answer.
            facts.input = facts.output = None


def _read_crewai(attributes: Mapping[str, Any], facts: Facts) -> None:
    role = as_text(attributes.get("crewai.agent.role")) or as_text(attributes.get("tool.agent_role"))
    if role is not None:
        facts.agent = role
    if facts.kind == "agent" and facts.agent is None:
        # A task says who did it in what it returns, and who was to do it in what it was given.
        given, made = from_json(facts.input), from_json(facts.output)
        asked = given.get("agent") if isinstance(given, dict) else None
        did = made.get("agent") if isinstance(made, dict) else None
        facts.agent = as_text(did) or (as_text(asked.get("role")) if isinstance(asked, dict) else as_text(asked))
    if attributes.get("crewai.event_name") == "tool_failure_detected":
        facts.kind = "chain"  # the same failure has a span of its own already
    if facts.kind == "chain" and facts.usage is None:
        output = from_json(facts.output)
        usage = output.get("token_usage") if isinstance(output, dict) else None
        if isinstance(usage, dict) and usage.get("prompt_tokens"):
            facts.usage = usage_in(usage)
    if "crewai.task.id" in attributes:
        facts.session_id = None  # CrewAI's conversation is one task of a run


def _read_adk(attributes: Mapping[str, Any], facts: Facts) -> None:
    facts.session_id = facts.session_id or as_text(attributes.get("gcp.vertex.agent.session_id"))
    if facts.tool == "(merged tools)":
        facts.kind = "chain"  # a summary of parallel calls that have spans of their own
    if facts.kind != "llm" or facts.input_messages:
        return
    asked = from_json(attributes.get("gcp.vertex.agent.llm_request"))
    answered = from_json(attributes.get("gcp.vertex.agent.llm_response"))
    if isinstance(asked, dict):
        facts.input_messages = messages_in(asked.get("contents"), "user")
    if isinstance(answered, dict) and isinstance(answered.get("content"), dict):
        facts.output_messages = messages_in([answered["content"]], "assistant")


def _read_haystack(facts: Facts) -> None:
    """Haystack's own tracer: components, and the runs and steps of agents; what they are given is Python's text."""
    given, made = from_json(facts.input), from_json(facts.output)
    made = made if isinstance(made, dict) else {}
    if facts.kind == "llm":
        replies = [each for each in made.get("replies") or () if isinstance(each, dict)]
        facts.output_messages = messages_in(replies, "assistant")
        facts.input_messages = messages_in(given.get("messages"), "user") if isinstance(given, dict) else []
        meta = replies[0].get("meta") if replies else made.get("meta")
        meta = meta[0] if isinstance(meta, list) and meta else meta
        if isinstance(meta, dict):
            facts.model, facts.usage = as_text(meta.get("model")), usage_in(meta.get("usage"))
    elif facts.kind == "tool":
        facts.error = as_text(made.get("error")) if set(made) == {"error"} else None
    elif facts.kind == "agent":
        facts.agent = None if facts.agent == "haystack.agent" else facts.agent
        facts.input_messages = messages_in(given.get("messages"), "user") if isinstance(given, dict) else []


def _read_openai_agents(span: Span, facts: Facts) -> None:
    attributes = span.attributes
    if span.name.startswith("handoff to ") and "tool.name" not in attributes:
        facts.kind, facts.tool = "handoff", None
        facts.from_agent = as_text(facts.input)
        facts.to_agent = as_text(facts.output) or as_text(span.name.removeprefix("handoff to "))
        facts.input = facts.output = None
    elif facts.kind == "agent" and not {"agent.name", "gen_ai.agent.name", "graph.node.id"} & attributes.keys():
        facts.kind, facts.agent = "chain", None  # the workflow around the agents


def _read_beeai(span: Span, facts: Facts) -> None:
    """BeeAI's emitter: each call of a tool or a model is a span when it starts, one on success, one at its end."""
    found = _BEEAI_EVENT.match(span.name)
    if found is None:
        return
    told = {"tool": ("success", "error"), "llm": ("start",)}.get(facts.kind or "")
    if told is not None and found["event"] not in told:
        facts.kind = "chain"
    elif facts.kind == "tool" and facts.tool == span.name:
        facts.tool = found["what"].removeprefix("tool.")


def _read_ag2(attributes: Mapping[str, Any], facts: Facts) -> None:
    if attributes.get("ag2.span.type") == "usage":
        facts.kind, facts.usage = "chain", None  # repeats the tokens of the model calls beside it
    if facts.agent in _AG2_MACHINERY:
        facts.agent = None
        facts.kind = "chain" if facts.kind == "agent" else facts.kind


def _transfer_target(facts: Facts) -> str | None:
    """The agent that a tool call passes the task to, when the tool is one that frameworks make for this."""
    name = (facts.tool or "").lower().replace(" ", "_")
    if name in _TRANSFER_TOOLS:
        arguments, argument = from_json(facts.input), _TRANSFER_TOOLS[name]
        target = as_text(arguments.get(argument)) if isinstance(arguments, dict) else None
        if target:
            facts.delegates = argument == "coworker"
            return target
    told = facts.output.__class__ is not str or '"goto"' in facts.output
    goto = unwrapped_result(facts.output).to_agent if told else None
    if goto:
        return goto
    found = _TRANSFER_NAME.match(name)
    return found["agent"] if found and name not in _TRANSFER_TOOLS else None


def _read_autogen(span: Span, facts: Facts) -> None:
    """AutoGen's runtime: all contents stand in the messages that its agents are given."""
    attributes = span.attributes
    agent_id = facts.agent_id
    if agent_id is not None:
        team = _TEAM.search(agent_id)
        facts.session_id = facts.session_id or (team.group() if team else None)
    message = from_json(attributes.get("message"))
    if not isinstance(message, dict) or not span.name.startswith("autogen process"):
        return
    facts.kind = "message"
    facts.input = message
    facts.from_agent = _agent_name(attributes.get("sender_agent_type"))
    facts.to_agent = _agent_name(attributes.get("recipient_agent_type"))
    if facts.to_agent is not None:
        team = _TEAM.search(str(attributes.get("recipient_agent_type")))
        facts.session_id = team.group() if team else None


def _agent_name(agent_type: Any) -> str | None:
    if not isinstance(agent_type, str):
        return None
    found = _AUTOGEN_TYPE.match(agent_type)
    return found["name"] if found else agent_type or None
