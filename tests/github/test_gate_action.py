"""The shell parts of the action agentunit-gate, run with a gh that only writes down what it is asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.fake_gh import FakeGitHub

from agentunit.cli.demo import demo_records
from agentunit.core.codec import encode_record

ACTION = Path(__file__).resolve().parents[2] / ".github" / "actions" / "agentunit-gate"
pytestmark = pytest.mark.skipif(shutil.which("bash") is None or shutil.which("jq") is None, reason="needs bash and jq")


class Job:
    """A job on a machine of its own: a folder, an event, a token that may or may not write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.github = FakeGitHub(folder)
        tools = self.github.tools
        (tools / "agentunit").write_text(f'#!/usr/bin/env bash\nexec "{sys.executable}" -m agentunit "$@"\n')
        (tools / "agentunit").chmod(0o755)
        self.event({"pull_request": {"number": 7}})
        self.report = folder / "report.md"
        self.report.write_text("### demo: PASS\n")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GATE_", "GITHUB_"))}
        self.environment = {
            **kept,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(folder),
            "GITHUB_REPOSITORY": "someone/something",
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GH_FOLDER": str(folder),
            "GATE_AUTHOR": "github-actions[bot]",
            "GATE_NAME": "suite.py",
            "GATE_REPORT": str(self.report),
            "COLUMNS": "100",
        }

    def event(self, content: dict[str, Any]) -> None:
        (self.folder / "event.json").write_text(json.dumps(content))

    def call(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **variables}
        command = ["bash", str(ACTION / script)]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)

    def outputs(self) -> dict[str, str]:
        lines = (self.folder / "output").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_pull_request_has_one_comment_however_often_the_job_runs(job: Job) -> None:
    assert job.call("comment.sh").returncode == 0
    job.report.write_text("### demo: FAIL\n")
    done = job.call("comment.sh")
    assert done.returncode == 0, done.stderr
    (comment,) = job.github.comments()
    assert comment["body"] == "<!-- agentunit-gate: suite.py -->\n### demo: FAIL\n"


def test_another_gate_has_a_comment_of_its_own(job: Job) -> None:
    job.call("comment.sh")
    job.call("comment.sh", GATE_NAME="other.py")
    assert len(job.github.comments()) == 2


def test_a_strangers_comment_with_the_same_mark_stays(job: Job) -> None:
    theirs = {"id": 1, "user": {"login": "mallory"}, "body": "<!-- agentunit-gate: suite.py -->\nmine"}
    job.github.comments_file.write_text(json.dumps([theirs]))
    assert job.call("comment.sh").returncode == 0
    assert job.github.comments()[0] == theirs
    assert len(job.github.comments()) == 2


@pytest.mark.parametrize("refuses", ["all", "writing"])
def test_a_token_that_may_not_write_is_a_warning(job: Job, refuses: str) -> None:
    done = job.call("comment.sh", GH_REFUSES=refuses)
    assert done.returncode == 0
    assert "::warning title=agentunit-gate::" in done.stdout
    assert job.github.comments() == []


@pytest.mark.parametrize("event", [{}, {"pull_request": {"number": "7; touch hacked"}}])
def test_an_event_without_a_pull_request_makes_no_comment(job: Job, event: dict[str, Any]) -> None:
    job.event(event)
    done = job.call("comment.sh")
    assert done.returncode == 0
    assert not job.github.log.exists()
    assert not (job.folder / "hacked").exists()


def test_a_name_cannot_end_the_mark_or_run(job: Job) -> None:
    job.call("comment.sh", GATE_NAME="a --> <b>$(touch hacked)`touch hacked`")
    (comment,) = job.github.comments()
    first = comment["body"].splitlines()[0]
    assert first.startswith("<!-- agentunit-gate: a")
    assert first.count("-->") == 1
    assert not (job.folder / "hacked").exists()


def test_a_suite_is_run_and_its_verdict_is_an_output(job: Job) -> None:
    subprocess.run([sys.executable, "-m", "agentunit", "init", str(job.folder)], check=True, capture_output=True)
    done = job.call("gate.sh", GATE_SUITE="suite.py")
    assert done.returncode == 0, done.stderr
    # The suite of 'agentunit init' has a bug to find.
    assert job.outputs()["exit-code"] == "1"
    report = Path(job.outputs()["report"]).read_text(encoding="utf-8")
    assert "FAIL" in report
    assert (job.folder / "summary.md").read_text(encoding="utf-8") == report
    assert not (job.folder / ".agentunit").exists()


@pytest.mark.parametrize(
    ("gates", "code"),
    [("tool_success[trace] >= 0.5 coverage 0.5\n\ncontains >= 0.1 coverage 0.5\n", "0"), ("contains <= 0.05", "1")],
)
def test_traces_are_scored_and_decided_on(job: Job, gates: str, code: str) -> None:
    records = list(demo_records())[:12]
    (job.folder / "my traces.jsonl").write_bytes(b"\n".join(encode_record(each) for each in records) + b"\n")
    done = job.call("gate.sh", GATE_TRACES="my traces.jsonl\n", GATE_METRICS="tool_success,contains", GATE_GATES=gates)
    assert job.outputs()["exit-code"] == code, done.stderr
    assert "tool" in Path(job.outputs()["report"]).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "variables",
    [{}, {"GATE_SUITE": "suite.py", "GATE_TRACES": "a.jsonl"}, {"GATE_SUITE": "gone.py; touch hacked"}],
    ids=["neither", "both", "gone"],
)
def test_what_cannot_be_run_is_a_usage_error_with_a_report(job: Job, variables: dict[str, str]) -> None:
    done = job.call("gate.sh", **variables)
    assert done.returncode == 0, done.stderr
    assert job.outputs()["exit-code"] == "2"
    assert "exit code 2" in Path(job.outputs()["report"]).read_text(encoding="utf-8")
    assert not (job.folder / "hacked").exists()


def test_nothing_a_caller_states_is_pasted_into_a_script() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"], step["name"]
    workflows = (ACTION.parents[1] / "workflows").glob("*.yml")
    for path in workflows:
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            for step in job["steps"]:
                assert "${{" not in step.get("run", ""), f"{path.name}: {step}"


def test_actions_are_named_by_commit() -> None:
    for path in ACTION.parents[1].rglob("*.yml"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "uses:" in line and "uses: ./" not in line:
                commit = line.split("@", 1)[1].split(" ")[0]
                assert len(commit) == 40, f"{path.name}: {line.strip()}"
