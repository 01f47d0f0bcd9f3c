"""Records as ATIF trajectories, version 1.7: what ATIF has a field for stands there, the rest travels in ``extra``.

A record that was written and is read back is the same record.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from msgspec.structs import replace

from agentunit.addons.formats.chats.loose_values import as_dict, as_list, as_name, as_number, text_of, without_nones
from agentunit.addons.formats.coding.atif import OWN
from agentunit.core.codec import as_event, encode_record
from agentunit.core.records import Record, outcome_text
from agentunit.core.results import decode_json, encode_json
from agentunit.core.trace import TraceEvent, TraceLog

_VERSION = "ATIF-v1.7"
_SOURCES = {"user": "user", "human": "user", "system": "system", "developer": "system"}
# Counts of the common providers; those of Anthropic's caches come on top of its input.
_READ, _WRITTEN = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
_CACHES = ("cache_read_input_tokens", "cache_creation_input_tokens")
_DETAILS = ("prompt_tokens_details", "input_tokens_details")


def encode_atif(record: Record) -> bytes:
    """One trajectory as one line of JSON."""
    return encode_json(_Writer(record).trajectory())


class _Writer:
    """The trajectory of one record; agents that were handed a task by a tool call are embedded ones."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.trace: TraceLog = record.trace
        self.events: list[TraceEvent] = [as_event(event) for event in self.trace.events]
        by_call = {as_name(event.payload.get("id")): event for event in self.events if event.type == "tool_call"}
        acting = {_agent_of(event) for event in self.events}
        self.children: dict[str, tuple[str, str]] = {}
        for handoff in self.trace.handoffs:
            if handoff.task_id in by_call and handoff.to_agent in acting and handoff.from_agent != handoff.to_agent:
                self.children.setdefault(str(handoff.task_id), (handoff.from_agent, handoff.to_agent))
        embedded = {child for _, child in self.children.values()}
        self.main = next(
            (name for event in self.events if (name := _agent_of(event)) and name not in embedded), "agent"
        )
        self.children = {call: pair for call, pair in self.children.items() if pair[1] != self.main}
        self.embedded = self._reachable()

    def _reachable(self) -> dict[str, str]:
        """The parent of each embedded agent; agents that hand tasks to each other in a circle stay in the main one."""
        parents: dict[str, str] = {}
        reached = [self.main]
        for parent in reached:
            for source, child in self.children.values():
                if source == parent and child not in parents:
                    parents[child] = parent
                    reached.append(child)
        return parents

    def trajectory(self) -> dict[str, Any]:
        whole = self._of(self.main)
        bare = replace(self.record, trace=replace(self.trace, events=[]))
        steps = whole["steps"]
        question, answer = as_name(self.record.case.query), outcome_text(self.record.outcome)
        if question and not any(step["source"] == "user" for step in steps):
            steps.insert(0, _added("user", question))
        said = next((step["message"] for step in reversed(steps) if step["source"] == "agent"), None)
        if answer and answer != said:
            steps.append(_added("agent", answer))
        if not steps:
            steps.append(_added("system", ""))
        for number, step in enumerate(steps, start=1):
            step["step_id"] = number
        whole["final_metrics"] = self._final(steps)
        return {**whole, "session_id": self.record.case.id or None, "extra": {OWN: decode_json(encode_record(bare))}}

    def _of(self, agent: str) -> dict[str, Any]:
        """The trajectory of one agent, with those of the agents that it handed tasks to."""
        steps = _Steps(self.children if self.embedded else {}, self.embedded)
        for place, event in enumerate(self.events):
            speaker = _agent_of(event)
            if (speaker if speaker in self.embedded else self.main) == agent:
                steps.add(place, event)
        children = [self._of(child) for child, parent in self.embedded.items() if parent == agent]
        about = self.trace.metadata
        # What the trace states as a whole is the main agent's.
        own = about if agent == self.main else {}
        models = {step["model_name"] for step in steps.made if "model_name" in step}
        tools = [_tool(tool) for tool in as_list(own.get("tools")) if isinstance(tool, dict)]
        described = without_nones(
            name=agent,
            version=as_name(about.get("agent_version")) or "unknown",
            model_name=models.pop() if len(models) == 1 else as_name(own.get("model")),
            tool_definitions=tools or None,
        )
        whole = {"schema_version": _VERSION, "trajectory_id": agent, "agent": described, "steps": steps.made}
        return {**whole, **({"subagent_trajectories": children} if children else {})}

    def _final(self, steps: list[dict[str, Any]]) -> dict[str, Any]:
        measured = [step["metrics"] for step in steps if "metrics" in step]
        stated = _metrics({"usage": self.trace.metadata.get("usage")})
        total = as_number(self.trace.metadata.get("cost"))
        if total is None:
            total = as_number(getattr(self.record.outcome, "cost", None))
        costs = [cost for event in self.events if (cost := as_number(event.payload.get("cost"))) is not None]
        names = ("prompt_tokens", "completion_tokens", "cached_tokens")
        sums = {name: stated.get(name, _sum(measured, name)) for name in names}
        return without_nones(
            **{f"total_{name}": value for name, value in sums.items()},
            total_cost_usd=total if total is not None else sum(costs) if costs else None,
            total_steps=len(steps),
        )


class _Steps:
    """Steps as events come: a model call, a message and the calls after it are one step of the agent."""

    def __init__(self, children: dict[str, tuple[str, str]], embedded: dict[str, str]) -> None:
        self.made: list[dict[str, Any]] = []
        self._children = children
        self._embedded = embedded

    def add(self, place: int, event: TraceEvent) -> None:
        payload = event.payload
        kept = {"n": place, **(event.extra or {}), "type": event.type, "payload": dict(payload)}
        if event.timestamp is not None:
            kept["timestamp"] = event.timestamp
        if event.type == "message":
            step = self._message(event, payload, kept)
        elif event.type == "llm_call":
            step = self._open("agent", event, fresh=True)
            step["metrics"] = _metrics(payload)
            step.update(without_nones(model_name=as_name(payload.get("model"))))
        elif event.type == "reasoning" and isinstance(payload.get("content"), str):
            step = self._open("agent", event, fresh="reasoning_content" in (self.made[-1] if self.made else {}))
            step["reasoning_content"] = kept["payload"].pop("content")
            kept["from"] = "reasoning_content"
        elif event.type == "tool_call":
            step = self._call(event, payload, kept)
        else:
            step = self.made[-1] if self.made else self._open("system", event, fresh=True)
        step["extra"][OWN]["events"].append(kept)

    def _message(self, event: TraceEvent, payload: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
        source = _SOURCES.get(str(payload.get("role")), "agent")
        last = self.made[-1] if self.made else {}
        step = self._open(source, event, fresh=source != "agent" or bool(last.get("message") or last.get("tool_calls")))
        step["message"] = text_of(payload.get("content")) or ""
        if isinstance(payload.get("content"), str):
            kept["from"] = "message"
            del kept["payload"]["content"]
        return step

    def _call(self, event: TraceEvent, payload: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
        step = self._open("agent", event)
        calls = step.setdefault("tool_calls", [])
        call_id = as_name(payload.get("id"))
        if call_id is None or any(call["tool_call_id"] == call_id for call in calls):
            call_id = f"call-{kept['n']}"
        arguments = payload.get("arguments")
        call = {"tool_call_id": call_id, "function_name": as_name(payload.get("name")) or "unknown", "arguments": {}}
        kept["call"] = len(calls)
        if isinstance(arguments, dict):
            call["arguments"] = kept["payload"].pop("arguments")
            kept["arguments"] = True
        elif arguments is not None:
            call["arguments"] = {"input": arguments}
        calls.append(call)
        facts = {name: payload[name] for name in ("status", "exit_code", "error") if payload.get(name) is not None}
        if "result" in payload or facts:
            result: dict[str, Any] = {"source_call_id": call_id, "content": text_of(payload.get("result"))}
            if isinstance(payload.get("result"), str):
                del kept["payload"]["result"]
                kept["result"] = True
            # ATIF has no status: that a call succeeded is as much a fact as that it failed.
            facts |= {"is_error": facts["status"] != "success"} if "status" in facts else {}
            result.update({"extra": facts} if facts else {})
            child = self._children.get(as_name(payload.get("id")) or "", ("", ""))[1]
            if child in self._embedded:
                result["subagent_trajectory_ref"] = [{"trajectory_id": child}]
            step.setdefault("observation", {"results": []})["results"].append(result)
        return step

    def _open(self, source: str, event: TraceEvent, *, fresh: bool = False) -> dict[str, Any]:
        """The last step when the event belongs to it, else a new one."""
        last = self.made[-1] if self.made else None
        agent = _agent_of(event)
        if last is not None and not fresh and last["source"] == source and last["extra"].get("agent") == agent:
            return last
        step = {**_added(source, ""), "step_id": len(self.made) + 1}
        if event.timestamp is not None and (said := _iso(event.timestamp)):
            step["timestamp"] = said
        if agent is not None:
            step["extra"]["agent"] = agent
        self.made.append(step)
        return step


def _agent_of(event: TraceEvent) -> str | None:
    return as_name(event.payload.get("agent"))


def _added(source: str, text: str) -> dict[str, Any]:
    """A step without events: for readers of ATIF, where its words stand in the record but in none of its events."""
    return {"step_id": 1, "source": source, "message": text, "extra": {OWN: {"events": []}}}


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    return tool if "function" in tool else {"type": "function", "function": tool}


def _metrics(payload: dict[str, Any]) -> dict[str, Any]:
    """The tokens and the cost of a model call as ATIF names them; its prompt includes what a cache held."""
    usage = as_dict(payload.get("usage"))
    read = _first_count(usage.get(name) for name in _READ)
    if read is not None and "prompt_tokens" not in usage:
        read += sum(usage[name] for name in _CACHES if isinstance(usage.get(name), int))
    cached = [as_dict(usage.get(name)).get("cached_tokens") for name in _DETAILS]
    return without_nones(
        prompt_tokens=read,
        completion_tokens=_first_count(usage.get(name) for name in _WRITTEN),
        cached_tokens=_first_count([*cached, usage.get(_CACHES[0])]),
        cost_usd=as_number(payload.get("cost")),
    )


def _first_count(values: Iterable[Any]) -> int | None:
    return next((each for each in values if isinstance(each, int)), None)


def _sum(measured: list[dict[str, Any]], name: str) -> int | None:
    known = [each[name] for each in measured if name in each]
    return sum(known) if known else None


def _iso(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
