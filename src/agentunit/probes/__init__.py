"""What is measured while an agent runs: CPU, memory, GPUs and energy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentunit.public import lazy_names

if TYPE_CHECKING:
    from agentunit.probes.measuring import Measurement, measure

__all__ = ["Measurement", "measure"]

if not TYPE_CHECKING:
    # The adapters read the settings for every run; measuring is loaded only when something is measured.
    __getattr__, __dir__ = lazy_names(__name__, {".measuring": " ".join(__all__)})
