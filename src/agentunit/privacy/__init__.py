"""Personal data: finding it, and the metrics that say where it leaks.

The names below load on first use, so that using one part does not load them all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentunit.privacy.metrics import (
        ConsentComplianceMetric,
        DataMinimizationMetric,
        PIILeakageMetric,
        PrivacyBudgetMetric,
    )

__all__ = ["ConsentComplianceMetric", "DataMinimizationMetric", "PIILeakageMetric", "PrivacyBudgetMetric"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("agentunit.privacy.metrics"), name)
    raise AttributeError(f"module 'agentunit.privacy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
