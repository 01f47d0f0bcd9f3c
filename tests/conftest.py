"""Settings for all tests: property tests do not race against the clock, and ``auto`` means the same everywhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
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

Invoke = Callable[..., Result]


@pytest.fixture(autouse=True)
def own_variables() -> Iterator[None]:
    """What a command or a test sets for AgentUnit must not lead a later test on the same worker to another store."""
    before = _variables()
    yield
    for name in _variables().keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("AGENTUNIT_")}


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run the command line in an empty folder, as wide as a usual terminal window."""
    from agentunit.cli.main import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments, **options: CliRunner().invoke(cli, [str(each) for each in arguments], **options)
