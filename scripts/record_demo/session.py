"""One question being worked on: the simulated clock and meter, and the record of everything that happens."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from .instructions import AGENT_ROLES, INSTRUCTIONS
from .pages import page_text
from .retriever import search
from .tools import TIMEOUT_SECONDS, TOOL_COST_USD, TOOL_SECONDS, ToolError, Tools

CHARACTERS_PER_TOKEN = 4
# Invented prices in USD per million tokens: (prompt, completion).
PRICES = {"summit-small": (4.0, 16.0), "summit-large": (14.0, 56.0)}
LLM_BASE_SECONDS = {"summit-small": 0.35, "summit-large": 0.8}
MESSAGE_SECONDS = 0.06


class Session:
    """Records events while the simulated clock runs.

    `metered` is false while the desk's usage meter is down: model calls then carry no token counts.
    """

    def __init__(self, case_id: str, start_s: float, metered: bool) -> None:
        self.case_id = case_id
        self.tools = Tools()
        self.events: list[dict[str, Any]] = []
        self.interactions: list[dict[str, Any]] = []
        self.handoffs: list[dict[str, Any]] = []
        self.conflicts: list[dict[str, Any]] = []
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.cost_usd = 0.0
        self.saw_failure = False
        self._metered = metered
        self._now_s = start_s
        self._random = random.Random(f"record-demo {case_id}")
        self._seen: dict[str, list[str]] = {}

    def now(self) -> float:
        """The simulated time in epoch seconds, to the millisecond."""
        return round(self._now_s, 3)

    def record(self, kind: str, **payload: Any) -> None:
        """Append one trace event at the present moment."""
        self.events.append({"type": kind, "payload": payload, "timestamp": self.now()})

    def start(self, agent: str, task: str) -> None:
        """An agent takes up a task, which it sees in all its later prompts."""
        self.record("agent_start", agent=agent)
        self.note(agent, task)

    def end(self, agent: str) -> None:
        """An agent is done."""
        self.record("agent_end", agent=agent)

    def note(self, agent: str, text: str) -> None:
        """Let an agent see a text from now on."""
        self._seen.setdefault(agent, []).append(text)

    def write(self, agent: str, completion: str) -> str:
        """One simulated model call: the agent reads all it has seen and writes `completion`."""
        model = "summit-large" if self.saw_failure and agent != "triage" else "summit-small"
        prompt = "\n".join([INSTRUCTIONS[agent], *self._seen.get(agent, [])])
        prompt_tokens, completion_tokens = _tokens(prompt), _tokens(completion)
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        prompt_price, completion_price = PRICES[model]
        self.cost_usd += (prompt_tokens * prompt_price + completion_tokens * completion_price) / 1_000_000
        self._pass(LLM_BASE_SECONDS[model] + 0.0001 * prompt_tokens + 0.012 * completion_tokens)
        counts = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens} if self._metered else {}
        self.record("llm_call", agent=agent, model=model, **counts)
        self.note(agent, completion)
        return completion

    def call(self, agent: str, tool: str, tries: int = 1, **arguments: Any) -> dict[str, Any]:
        """The agent decides on a tool call, makes it, and repeats it after a timeout while tries are left."""
        self.write(agent, json.dumps({"tool": tool, "arguments": arguments}))
        function: Callable[..., dict[str, Any]] = getattr(self.tools, tool)
        while True:
            tries -= 1
            payload: dict[str, Any] = {"name": tool, "arguments": arguments, "agent": agent}
            if tool in TOOL_COST_USD:
                payload["cost"] = TOOL_COST_USD[tool]
                self.cost_usd += TOOL_COST_USD[tool]
            try:
                result = function(**arguments)
            except ToolError as error:
                self.saw_failure = True
                timed_out = "timeout" in str(error)
                self._pass(TIMEOUT_SECONDS if timed_out else TOOL_SECONDS[tool], exact=timed_out)
                self.record("tool_call", **payload, status="error", error=str(error))
                self.note(agent, f"{tool} failed: {error}")
                if not timed_out or tries == 0:
                    raise
                continue
            self._pass(TOOL_SECONDS[tool])
            self.record("tool_call", **payload, status="success", result=result)
            self.note(agent, json.dumps(result))
            return result

    def retrieve(self, agent: str, query: str) -> list[tuple[str, float]]:
        """Search the help pages; the agent sees the documents found."""
        found = search(query)
        self._pass(TOOL_SECONDS["search_help"])
        documents = [page_text(title) for title, _ in found]
        self.record("retrieval", query=query, documents=documents, agent=agent)
        self.note(agent, "\n".join(documents))
        return found

    def tell(self, sender: str, receiver: str, kind: str, message_type: str, content: str) -> dict[str, Any]:
        """A message between two agents; returns its record, which a reply may complete."""
        self._pass(MESSAGE_SECONDS)
        message: dict[str, Any] = {
            "from_agent": sender,
            "to_agent": receiver,
            "interaction_type": kind,
            "message_type": message_type,
            "content": content,
            "timestamp": self.now(),
            "success": True,
            "response_time": None,
        }
        self.interactions.append(message)
        self.note(receiver, f"{sender}: {content}")
        return message

    def answered(self, message: dict[str, Any], success: bool = True) -> None:
        """The receiver has reacted to a message (or, without success, has failed to)."""
        message["success"] = success
        message["response_time"] = round(self.now() - message["timestamp"], 3)

    def hand_over(self, sender: str, receiver: str, task: str, reason: str, accepted: bool = True) -> None:
        """Pass a task on; a receiver may decline it."""
        message = self.tell(sender, receiver, "handoff", "task", task)
        self._pass(0.12 if accepted else 0.9)
        self.answered(message, accepted)
        self.handoffs.append(
            {
                "from_agent": sender,
                "to_agent": receiver,
                "task_id": f"{self.case_id}/{len(self.handoffs) + 1}",
                "success": accepted,
                "handoff_time": message["response_time"],
                "timestamp": message["timestamp"],
                "reason": reason,
            }
        )

    def conflict(self, agents: list[str], kind: str, resolved: bool, since_s: float, description: str) -> None:
        """Two agents wanted different things."""
        self.conflicts.append(
            {
                "agents_involved": agents,
                "conflict_type": kind,
                "resolved": resolved,
                "resolution_time": round(self.now() - since_s, 3) if resolved else None,
                "timestamp": since_s,
                "description": description,
            }
        )

    def wait(self, seconds: float) -> None:
        """Time in which nothing happens, such as waiting for a reply that does not come."""
        self._pass(seconds, exact=True)

    def usage(self) -> dict[str, int]:
        """All tokens so far."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }

    def trace(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The whole record of this question."""
        return {
            "events": self.events,
            "metadata": metadata,
            "interactions": self.interactions,
            "handoffs": self.handoffs,
            "conflicts": self.conflicts,
            "agent_roles": AGENT_ROLES,
        }

    def _pass(self, seconds: float, exact: bool = False) -> None:
        # Plain arithmetic on random() alone: its sequence is the same on every Python. The eighth
        # power gives the occasional slow answer that services have.
        draw = self._random.random()
        slowness = 0.8 + 0.5 * draw + 2.5 * (draw * draw) ** 4
        self._now_s += seconds + 0.05 * draw if exact else seconds * slowness


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)
