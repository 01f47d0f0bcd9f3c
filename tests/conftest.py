"""Settings for all tests: property tests do not race against the clock, and ``auto`` means the same everywhere."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from installed_packages import install_package  # noqa: F401  # a fixture

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# The local model may be installed or not; tests of it, and of how a backend is chosen, say so themselves.
os.environ["AGENTUNIT_BACKEND"] = "lexical"


# Files that tests read; some of them are code that must never be run.
collect_ignore = ["data"]
