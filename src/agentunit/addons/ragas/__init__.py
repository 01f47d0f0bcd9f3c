"""RAGAS (extra ``ragas``) as a quality backend, asking the judge that the user configured for AgentUnit.

RAGAS brings its prompts and formulas; calls, retries, cache, spend cap and timeouts are those of the judge. Nothing of
RAGAS is imported before it is used, and its telemetry is off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentunit.addons.ragas._ragas_backend import RagasBackend

__all__ = ["backend"]


def backend() -> RagasBackend:
    """RAGAS as a quality backend (the entry point ``ragas`` of the group ``agentunit.backends``)."""
    from agentunit.addons.ragas._ragas_backend import RagasBackend

    return RagasBackend()
