"""A run that no judge was configured for loads nothing of the judge."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import agentunit

suite = agentunit.Suite(dataset=[{"id": "a", "query": "2 + 2?", "expected_output": "4"}], agent=lambda case: "4")
"""
# A suite without metrics takes the standard set, whose quality metrics ask a judge where there is one.
PROGRAM = """
import sys

from agentunit.cli.main import cli

cli(["run", "suite.py", "--store", "runs.sqlite"], standalone_mode=False)
print(*sorted(name for name in sys.modules if name.startswith(("agentunit.addons.judge", "agentunit.addons.ragas"))))
"""


@pytest.mark.parametrize("is_configured", [False, True])
def test_a_run_loads_the_judge_only_where_one_was_configured(tmp_path: Path, is_configured: bool) -> None:
    (tmp_path / "suite.py").write_text(SUITE)
    env = {name: value for name, value in os.environ.items() if not name.startswith("AGENTUNIT_")}
    if is_configured:
        # An address without a model is no judge yet, but what was set must be read to know that.
        env |= {"AGENTUNIT_JUDGE_URL": "http://127.0.0.1:9/v1", "AGENTUNIT_JUDGE_API_KEY": ""}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    loaded = ran.stdout.splitlines()[-1].split()
    assert ("agentunit.addons.judge.settings" in loaded) == is_configured
    assert bool(loaded) == is_configured
