"""The record of a question to the judge: what was asked, what came back, and how often it was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentunit.backends.judge.messages import JudgeReply, JudgeRequest


def transcript(request: JudgeRequest, reply: JudgeReply, attempts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Plain data for a run's record. No header and no address is in it, so no key either."""
    return {
        "purpose": request.purpose,
        "sample": request.sample,
        "system": request.system,
        "user": request.user,
        "schema": request.schema,
        "max_tokens": request.max_tokens,
        "reply": reply.text,
        "problem": reply.problem,
        "model": reply.model,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "cost_usd": reply.cost_usd,
        "cached": reply.cached,
        "elapsed_s": round(reply.elapsed_s, 4),
        "attempts": list(attempts),
    }
