"""How an agent is called: a Python callable, a command or an HTTP endpoint, each so that it cannot stop a run."""

from agentunit.adapters.base import Agent, AgentResult, FailureKind, as_agent

__all__ = ["Agent", "AgentResult", "FailureKind", "as_agent"]
