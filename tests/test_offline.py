"""The default flow needs no network and asks for none: every connection and look-up is refused and noted.

Where the kernel allows it without rights, there is no network at all either, so that native code cannot reach one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="event loops there wake themselves through loopback")
GUARD = Path(__file__).parent / "support" / "no_network"

# One process, as a user's session: what is imported for one command stays for the next.
FLOW = """
import sys
import agentunit
from click.testing import CliRunner
from agentunit.cli.main import cli

def call(*arguments, codes=(0,)):
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code in codes, f"agentunit {' '.join(arguments)}: {done.exit_code}: {done.output[-800:]}"

call("show", "demo")
call("convert", "demo", "--out", "demo.jsonl")
call("doctor")
with open("demo.jsonl") as records, open("few.jsonl", "w") as few:
    few.writelines(line for _, line in zip(range(5), records))
call("doctor", "few.jsonl")
call("score", "few.jsonl", "--out", "scores.jsonl")
call("convert", "few.jsonl", "--out", "converted.jsonl")
call("convert", "--mask", "few.jsonl", "--out", "masked.jsonl")
call("metrics")
call("init", "--ci")
call("run", "suite.py", "--yes", codes=(1,))
call("show", "last")
call("runs")
call("compare", "last", "last")
call("show", "last", "--gate", "contains >= 0.1")
for name in ("run.html", "run.md", "run.json", "junit.xml", "run.csv"):
    call("export", "last", "--to", name, codes=(0, 1))
call("view", "--bundle", "site")
print("all of it")
"""


@cache
def without_network() -> list[str]:
    """The command before a command that takes the network away, where the kernel lets anybody do that."""
    command = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None:
        return []
    return command if subprocess.run([*command, "true"], capture_output=True).returncode == 0 else []


def run_guarded(code: str, folder: Path) -> tuple[subprocess.CompletedProcess[str], str]:
    log = folder / "asked.txt"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGENTUNIT_")}
    environment |= {"PYTHONPATH": str(GUARD), "NO_NETWORK_LOG": str(log), "HOME": str(folder), "NO_COLOR": "1"}
    command = [*without_network(), sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done, log.read_text(encoding="utf-8") if log.exists() else ""


def test_the_default_flow_asks_for_no_network(tmp_path: Path) -> None:
    done, asked = run_guarded(FLOW, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("all of it\n")
    assert asked == ""


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')",
        "import socket; socket.getaddrinfo('example.invalid', 80)",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', \"import socket; "
        "socket.create_connection(('127.0.0.1', 9))\"], check=True)",
    ],
    ids=["request", "name", "child"],
)
def test_the_guard_would_notice(code: str, tmp_path: Path) -> None:
    done, asked = run_guarded(code, tmp_path)
    assert done.returncode != 0
    assert "no network here" in done.stderr
    assert asked.startswith("socket.")
