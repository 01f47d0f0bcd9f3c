"""A detector: what AgentUnit's own patterns find, and the customer numbers of one company."""

from __future__ import annotations

import re

from agentunit.privacy.detection.engine import without_overlaps
from agentunit.privacy.detectors import PatternDetector
from agentunit.privacy.findings import Finding

_CUSTOMER_NUMBER = re.compile(r"\bCN-\d{6}\b")


class CustomerNumbers:
    """Finds personal data by patterns, and customer numbers such as CN-204518."""

    name = "customer_numbers"

    def __init__(self) -> None:
        self._patterns = PatternDetector()

    def find(self, texts: list[str]) -> list[list[Finding]]:
        """The findings of each text, in order, none overlapping."""
        findings = []
        for text, by_pattern in zip(texts, self._patterns.find(texts), strict=True):
            numbers = [
                Finding("account", found.start(), found.end(), 0.95, "customer number")
                for found in _CUSTOMER_NUMBER.finditer(text)
            ]
            findings.append(without_overlaps([*by_pattern, *numbers]))
        return findings
