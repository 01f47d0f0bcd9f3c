"""The workflow of 'agentunit init --ci', from main's first baseline to the comment on a pull request."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.support.workflow_runner import WorkflowRunner

WORKFLOWS = Path(__file__).resolve().parents[2] / ".github" / "workflows"
pytestmark = pytest.mark.skipif(shutil.which("bash") is None or shutil.which("jq") is None, reason="needs bash and jq")

BUG, FIXED = "found.group()\n", "found.group().upper()\n"


def change(runner: WorkflowRunner, before: str, after: str) -> None:
    """Commit another agent."""
    agent = runner.repository / "my_agent.py"
    text = agent.read_text(encoding="utf-8")
    assert before in text
    agent.write_text(text.replace(before, after), encoding="utf-8")
    runner.commit()


@pytest.fixture
def runner(tmp_path: Path) -> WorkflowRunner:
    """A repository with a suite that passes, and the workflow."""
    made = WorkflowRunner(tmp_path)
    subprocess.run([sys.executable, "-m", "agentunit", "init", "--ci"], cwd=made.repository, check=True)
    change(made, BUG, FIXED)
    return made


def test_a_broken_case_fails_a_pull_request_until_it_is_fixed(runner: WorkflowRunner) -> None:
    on_main, comment = runner.run("push")
    assert (on_main.failed, comment) == (False, None), on_main.printed
    assert "7 cases × 3 repeats" in on_main.printed
    assert runner.github.artifact.exists()

    runner.git("checkout", "--quiet", "-b", "change")
    change(runner, FIXED, BUG)
    broken, comment = runner.run("pull_request")
    assert broken.codes["Run the suite"] == 1, broken.printed
    assert comment is not None
    assert not comment.failed, comment.printed
    (written,) = runner.github.comments()
    lines = [line for line in written["body"].splitlines() if line]
    assert lines[0] == "### `suite`: ❌ FAIL"
    assert lines[1].startswith("**FAIL: 1 broken (lower-case: missing:")
    assert any(line.startswith("- **1 of 7 cases broken: ") for line in lines[:5])
    assert broken.summary.startswith("### `suite`: ❌ FAIL\n")

    # What the comment says opens the run, elsewhere.
    (command,) = re.findall(r"`gh run download 99 --name agentunit-run && (.*)`", written["body"])
    assert command == "agentunit import run.json"
    here = runner.github.folder / "agentunit-run"
    for arguments in (["import", "run.json"], ["show", "last", "lower-case"]):
        subprocess.run([sys.executable, "-m", "agentunit", *arguments], cwd=here, check=True, capture_output=True)

    change(runner, BUG, FIXED)
    fixed, _ = runner.run("pull_request")
    assert not fixed.failed, fixed.printed
    (updated,) = runner.github.comments()
    assert updated["id"] == written["id"]
    assert updated["body"].startswith("### `suite`: ✅ PASS\n")


def test_a_fork_has_its_report_on_the_page_of_the_job(runner: WorkflowRunner) -> None:
    runner.run("push")
    runner.git("checkout", "--quiet", "-b", "change")
    change(runner, FIXED, BUG)
    broken, comment = runner.run("pull_request", fork=True)
    assert broken.codes["Run the suite"] == 1, broken.printed
    assert broken.summary.startswith("### `suite`: ❌ FAIL\n")
    assert (comment, runner.github.comments()) == (None, [])


def test_a_run_that_never_came_to_be_replaces_an_earlier_verdict(runner: WorkflowRunner) -> None:
    runner.run("pull_request")
    change(runner, "import re", "import gone")
    broken, _ = runner.run("pull_request")
    assert broken.codes["Run the suite"] != 0
    (comment,) = runner.github.comments()
    assert comment["body"].startswith("### suite.py: no verdict.")


def test_a_token_that_may_not_comment_is_a_warning(runner: WorkflowRunner) -> None:
    runner.variables["GH_REFUSES"] = "writing"
    evaluated, comment = runner.run("pull_request")
    assert comment is not None
    assert (evaluated.failed, comment.failed) == (False, False)
    assert "::warning::" in comment.printed


def test_actions_are_the_commits_that_our_own_workflows_name(runner: WorkflowRunner) -> None:
    workflow = runner.repository / ".github" / "workflows" / "agentunit.yml"
    own = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS.glob("*.yml"))
    used = re.findall(r"uses: (.*)", workflow.read_text(encoding="utf-8"))
    assert len(used) >= 4
    assert [each for each in used if each not in own] == []


def test_only_the_job_that_runs_nothing_of_a_pull_request_may_write(runner: WorkflowRunner) -> None:
    text = (runner.repository / ".github" / "workflows" / "agentunit.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read", "actions": "read"}
    assert "permissions" not in workflow["jobs"]["evaluate"]
    assert workflow["jobs"]["comment"]["permissions"] == {"pull-requests": "write"}
    assert not any("checkout" in step.get("uses", "") for step in workflow["jobs"]["comment"]["steps"])
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
