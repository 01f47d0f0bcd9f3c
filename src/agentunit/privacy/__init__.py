"""Personal data: finding it, and the metrics that say where it leaks.

The names below load on first use, so that using one part does not load them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentunit.public import lazy_names

if TYPE_CHECKING:
    from agentunit.privacy.metrics import (
        ConsentComplianceMetric,
        DataMinimizationMetric,
        PIILeakageMetric,
        PrivacyBudgetMetric,
    )

__all__ = ["ConsentComplianceMetric", "DataMinimizationMetric", "PIILeakageMetric", "PrivacyBudgetMetric"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {".metrics": " ".join(__all__)})
