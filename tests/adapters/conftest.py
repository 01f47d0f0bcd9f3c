from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from agentunit.adapters._callable import CallableAgent
from agentunit.adapters.base import as_agent
from agentunit.core.case import DatasetCase


@pytest.fixture
def ask():
    """Ask an agent one case, from a fresh event loop, and close it."""

    def ask(agent, query="Capital of France?", *, timeout_s=None, seed=None, case=None, isolation=None):
        async def go():
            called = as_agent(agent) if isolation is None else CallableAgent(agent, isolation=isolation)
            try:
                return await called.run(case or DatasetCase("q1", query), timeout_s=timeout_s, seed=seed)
            finally:
                await called.close()

        return asyncio.run(go())

    return ask


@pytest.fixture
def is_gone():
    """Whether a process is gone, or at least dead, before long."""

    def is_gone(pid: int) -> bool:
        for _ in range(200):
            try:
                os.kill(pid, 0)
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (ProcessLookupError, FileNotFoundError):
                return True
            if state == "Z":
                return True
            time.sleep(0.01)
        return False

    return is_gone
