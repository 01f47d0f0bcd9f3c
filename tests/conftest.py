"""Settings for all tests: property tests do not race against the clock, and ``auto`` means the same everywhere."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings
from installed_packages import install_package  # noqa: F401  # a fixture

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# The local model may be installed or not; tests of it, and of how a backend is chosen, say so themselves.
os.environ["AGENTUNIT_BACKEND"] = "lexical"

# A shell that starts the tests in the background has SIGINT ignored, nohup SIGHUP, and processes started by tests would
# inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Files that tests read; some of them are code that must never be run.
collect_ignore = ["data", "support/no_network"]
