"""The workflow of 'agentunit init --ci' on machines that have nothing: it installs wheels, and no index is asked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import release
from tests.support.workflow_runner import WorkflowRunner

pytestmark = pytest.mark.optional


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """AgentUnit, its local model and all that they need."""
    folder = tmp_path_factory.mktemp("wheels")
    own = [str(release.ROOT), str(release.ROOT / "packages" / "agentunit-local")]
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--wheel-dir", str(folder), *own]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the packages of others cannot be had: {done.stderr.strip().splitlines()[-1]}")
    return folder


def test_from_installing_to_a_comment(wheels: Path, tmp_path: Path) -> None:
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": "/dev/null"}
    runner = WorkflowRunner(tmp_path / "ci", installs=True, variables=offline)
    user = tmp_path / "user"
    subprocess.run([sys.executable, "-m", "venv", str(user)], check=True)
    own = [str(path) for path in wheels.glob("agentunit_*.whl")]
    subprocess.run([user / "bin" / "pip", "install", "--quiet", *own], env=offline, check=True)
    asked = [user / "bin" / "agentunit", "init", "--ci"]
    told = subprocess.run(asked, cwd=runner.repository, check=True, capture_output=True, text=True).stdout
    (fill,) = re.findall(r"^and commit the wheels that it installs: (.*)$", told, re.MULTILINE)
    subprocess.run(["bash", "-e", "-c", fill], cwd=runner.repository, check=True)
    agent = runner.repository / "my_agent.py"
    broken = agent.read_text(encoding="utf-8")
    agent.write_text(broken.replace("found.group()\n", "found.group().upper()\n"), encoding="utf-8")
    runner.commit()

    on_main, _ = runner.run("push")
    assert not on_main.failed, on_main.printed
    assert runner.github.artifact.exists()

    runner.git("checkout", "--quiet", "-b", "change")
    agent.write_text(broken, encoding="utf-8")
    runner.commit()
    found, _ = runner.run("pull_request")
    assert found.codes["Install"] == 0, found.printed
    assert found.codes["Run the suite"] == 1, found.printed
    (comment,) = runner.github.comments()
    assert comment["body"].startswith("### `suite`: ❌ FAIL\n\n**FAIL: 1 broken (lower-case: ")
