"""What is measured while an agent runs: CPU, memory, GPUs and energy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentunit.probes.measuring import Measurement, measure

__all__ = ["Measurement", "measure"]


def __getattr__(name: str) -> Any:
    # The adapters read the settings for every run; measuring is loaded only when something is measured.
    if name in __all__:
        return getattr(import_module("agentunit.probes.measuring"), name)
    raise AttributeError(f"module 'agentunit.probes' has no attribute {name!r}")
