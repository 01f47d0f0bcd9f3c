"""The larger groundedness model for AgentUnit: its weights, and the backends that ``agentunit-local`` runs."""

from __future__ import annotations

import os
from pathlib import Path

from agentunit_local.quality import MODEL_VARIABLE, GpuBackend, LocalBackend

__version__ = "0.1.0"


class LargeBackend(LocalBackend):
    """The backend ``local-large``: as ``local``, with the larger cross-encoder and what was fitted with it.

    Faithfulness only: for the other metrics the larger model has shown no gain, and ``local`` is measured there.
    """

    name = "local-large"
    measures = frozenset({"faithfulness"})
    without_answer: frozenset[str] = frozenset()
    weights = Path(__file__).with_name("weights")

    @property
    def automatic(self) -> bool:
        """Whether ``auto`` may take it: not where the user named a model of their own, which ``local`` runs."""
        return not os.environ.get(MODEL_VARIABLE)


class LargeGpuBackend(LargeBackend, GpuBackend):
    """The backend ``local-large-gpu``: the same in torch, on a GPU."""

    name = "local-large-gpu"


def backend() -> LargeBackend:
    """The entry point of ``local-large``."""
    return LargeBackend()


def gpu_backend() -> LargeGpuBackend:
    """The entry point of ``local-large-gpu``."""
    return LargeGpuBackend()
