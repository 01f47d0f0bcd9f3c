"""The package of examples/plugin, built and installed by pip, and each of its parts used through the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from example_plugin import use_each_part

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "plugin"

pytestmark = pytest.mark.optional


def test_the_example_installed_by_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--target", str(site), str(EXAMPLE)]
    subprocess.run(command, check=True, capture_output=True, text=True)

    def invoke(*arguments: object) -> Any:
        command = [sys.executable, "-m", "agentunit", *map(str, arguments)]
        # As it is now: some parts are told by a variable where they find something.
        environment = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "200"}
        return subprocess.run(command, capture_output=True, text=True, cwd=work, env=environment)

    monkeypatch.chdir(work)
    use_each_part(invoke, EXAMPLE / "tickets.jsonl")
