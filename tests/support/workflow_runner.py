"""Runs the shell of the workflow that ``agentunit init --ci`` writes, on fresh machines made of folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.support.fake_gh import FakeGitHub

ON_MAIN = "github.event_name != 'pull_request' && github.ref == 'refs/heads/main'"
IN_OWN_PULL_REQUEST = (
    "${{ !cancelled() && github.event_name == 'pull_request' && "
    "github.event.pull_request.head.repo.full_name == github.repository }}"
)
FROM_A_FORK = (
    "${{ github.event_name == 'pull_request' && github.event.pull_request.head.repo.full_name != github.repository }}"
)


@dataclass
class JobResult:
    """What came of a job: the exit codes of its steps by name, and what its machine holds at the end."""

    folder: Path
    codes: dict[str, int] = field(default_factory=dict)
    printed: str = ""
    summary: str = ""

    @property
    def failed(self) -> bool:
        """Whether a step failed."""
        return any(self.codes.values())


class WorkflowRunner:
    """One repository with its workflow. ``installs``: the Install step is run, in an environment without AgentUnit."""

    def __init__(self, folder: Path, *, installs: bool = False, variables: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.repository = folder / "repository"
        self.repository.mkdir(parents=True)
        self.github = FakeGitHub(folder / "github")
        self.installs = installs
        self.variables = dict(variables or {})
        self._n_machines = 0
        if not installs:
            program = self.github.tools / "agentunit"
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agentunit "$@"\n')
            program.chmod(0o755)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> None:
        """Do something in the repository."""
        named = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *named, *arguments], cwd=self.repository, check=True, capture_output=True)

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")

    def run(self, event: str, *, fork: bool = False) -> tuple[JobResult, JobResult | None]:
        """Run the workflow on the branch that is checked out: its two jobs, of which the second may be left out."""
        workflow = yaml.safe_load((self.repository / ".github/workflows/agentunit.yml").read_text(encoding="utf-8"))
        evaluated = self._job(workflow, "evaluate", event, fork)
        assert workflow["jobs"]["comment"]["if"] == IN_OWN_PULL_REQUEST
        if event != "pull_request" or fork:
            return evaluated, None
        return evaluated, self._job(workflow, "comment", event, fork)

    def _job(self, workflow: Mapping[str, Any], name: str, event: str, fork: bool) -> JobResult:
        self._n_machines += 1
        machine = self.folder / f"machine-{self._n_machines}"
        result = JobResult(machine / "work")
        result.folder.mkdir(parents=True)
        summary = machine / "summary.md"
        # Nothing of the machine that tests run on, but its programs.
        base = {
            "PATH": f"{machine}/python/bin:{self.github.tools}:{os.environ['PATH']}",
            "HOME": str(machine),
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": event,
            "GITHUB_REPOSITORY": "someone/something",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "99",
            "GITHUB_STEP_SUMMARY": str(summary),
            "GH_FOLDER": str(self.github.folder),
            **self.variables,
        }
        job = workflow["jobs"][name]
        known = {
            FROM_A_FORK: str(fork).lower(),
            "${{ github.token }}": "token",
            "${{ github.event.pull_request.number }}": "7",
            "${{ secrets.OPENAI_API_KEY }}": "",
            "${{ secrets.AGENTUNIT_JUDGE_API_KEY }}": "",
        }
        for step in job["steps"]:
            condition = step.get("if")
            assert condition in (None, "${{ !cancelled() }}", ON_MAIN)
            if condition != "${{ !cancelled() }}" and (result.failed or (condition == ON_MAIN and event != "push")):
                continue
            if "uses" in step:
                self._use(step["uses"].partition("@")[0], step.get("with", {}), result.folder)
                continue
            if step["name"] == "Install" and not self.installs:
                continue
            stated = {**workflow["env"], **job.get("env", {}), **step.get("env", {})}
            filled = {key: known[value] if "${{" in str(value) else str(value) for key, value in stated.items()}
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]],
                cwd=result.folder,
                env={**base, **filled},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            result.codes[step["name"]] = done.returncode
            result.printed += done.stdout
        result.summary = summary.read_text(encoding="utf-8") if summary.exists() else ""
        return result

    def _use(self, action: str, options: Mapping[str, Any], work: Path) -> None:
        """What an action of GitHub's does, as far as it is needed here."""
        kept = self.github.folder / str(options.get("name"))
        if action == "actions/checkout":
            subprocess.run(["git", "clone", "--quiet", str(self.repository), "."], cwd=work, check=True)
        elif action == "actions/setup-python":
            if self.installs:
                subprocess.run([sys.executable, "-m", "venv", str(work.parent / "python")], check=True)
        elif action == "actions/upload-artifact":
            kept = self.github.artifact.parent if options["name"] == "agentunit-baseline" else kept
            kept.mkdir(exist_ok=True)
            for path in options["path"].split():
                if (work / path).exists():
                    shutil.copy(work / path, kept)
        else:
            assert action == "actions/download-artifact"
            shutil.copytree(kept, work, dirs_exist_ok=True)
