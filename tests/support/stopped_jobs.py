"""Jobs of several processes or tasks as commands of their own, which may be stopped after some of their blocks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

_COMMAND = """
import os, signal, sys
from agentunit.addons.scale import several_processes
from agentunit.cli.main import cli
from agentunit.addons.scale.parallel.pool import WorkerPool
from agentunit.addons.scale.ray_pool import RayPool
from agentunit.addons.scale.parallel._units_in_order import UnitsInOrder

several_processes.SeveralProcesses.__init__.__kwdefaults__["block_bytes"] = 4096
# So that blocks are left to do when this process ends, however fast its workers are.
WorkerPool.in_order.__defaults__ = RayPool.in_order.__defaults__ = (2,)
accept, n_accepted = UnitsInOrder._accept, 0

def accept_some(self, *arguments):
    global n_accepted
    accept(self, *arguments)
    n_accepted += 1
    if n_accepted == {stop_after}:
        os.kill(os.getpid(), signal.{signal_name})

UnitsInOrder._accept = accept_some
cli(sys.argv[1:])
"""


def agentunit(
    *arguments: str, stop_after: int = 0, signal_name: str = "SIGKILL", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in blocks of 4 KiB; it gets a signal when so many of them were taken."""
    code = _COMMAND.format(stop_after=stop_after, signal_name=signal_name)
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


def seen(done: subprocess.CompletedProcess[str]) -> Any:
    """What a command with ``--json`` ended with and printed, without the times."""
    assert done.stdout, done.stderr
    data = json.loads(done.stdout)
    del data["created_at"], data["summary"]["elapsed_s"]
    for row in data["summary"]["metrics"]:
        del row["elapsed_s"]
    return done.returncode, data
