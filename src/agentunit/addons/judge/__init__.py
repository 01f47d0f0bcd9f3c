"""A judge of our own: any OpenAI-compatible server that the user configured for AgentUnit.

Faithfulness by claims, answer correctness as factual overlap, retrieval quality as average precision, and criteria of
the user's own (``rubric``). Nothing is sent anywhere unless a server was configured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentunit.addons.judge.judge_backend import JudgeBackend

__all__ = ["JudgeBackend", "backend"]


def backend() -> JudgeBackend:
    """The judge as a quality backend (the entry point ``judge`` of the group ``agentunit.backends``)."""
    from agentunit.addons.judge.judge_backend import JudgeBackend

    return JudgeBackend()


def __getattr__(name: str) -> Any:
    # The client and the measures load only when a judge is asked for.
    if name == "JudgeBackend":
        from agentunit.addons.judge.judge_backend import JudgeBackend

        return JudgeBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
