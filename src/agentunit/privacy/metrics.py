"""The catalog's privacy metrics, under the path it gives them."""

from __future__ import annotations

from agentunit.privacy.budget import PrivacyBudgetMetric
from agentunit.privacy.consent import ConsentComplianceMetric
from agentunit.privacy.leakage import PIILeakageMetric
from agentunit.privacy.minimization import DataMinimizationMetric

__all__ = ["ConsentComplianceMetric", "DataMinimizationMetric", "PIILeakageMetric", "PrivacyBudgetMetric"]
