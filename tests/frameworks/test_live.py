"""Real frameworks, each in an environment of its own, run as agents of a suite and captured live.

``make frameworks`` makes the environments from ``environments`` and runs these tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agentunit
from agentunit.core.codec import decode_record

pytestmark = pytest.mark.frameworks

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ENVIRONMENTS = Path(os.environ.get("AGENTUNIT_FRAMEWORKS", ".venv-frameworks"))
PAGES = sorted((ROOT / "docs" / "frameworks").glob("*.md"))
# Which name turns on what a scenario uses ("own": it does so itself), and what it cannot tell.
SCENARIOS = {
    "adk": ("google-adk", None),
    "ag2": ("ag2", None),
    "ag2_classic": ("ag2", "cached_tokens"),
    "agent_framework": ("agent-framework", None),
    "agno": ("agno", None),
    "autogen": ("autogen", "cached_tokens"),
    "crewai": ("crewai", None),
    "haystack": ("haystack", None),
    "langgraph": ("langgraph", None),
    "llamaindex": ("llamaindex", None),
    "logfire": ("own", None),
    "mlflow": ("own", None),
    "openai_agents": ("openai-agents", None),
    "openai_client": ("openai", None),
    "openlit": ("own", None),
    "pydantic_ai": ("pydantic-ai", None),
    "smolagents": ("smolagents", "cached_tokens"),
    "strands": ("strands", None),
}


@pytest.fixture
def run_in(tmp_path):
    """Run a script of this folder with the Python of an environment; its output."""

    def run_in(environment, *arguments):
        python = ROOT / ENVIRONMENTS / environment / "bin" / "python"
        if not python.exists():
            pytest.skip(f"{environment} is not installed in {ENVIRONMENTS}: 'make frameworks' does that")
        # Nothing of the machine's settings, and no files in the user's home.
        variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
        done = subprocess.run(
            [str(python), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            env=variables,
        )
        if done.returncode != 0 or "REFUSED" in done.stderr:
            pytest.fail(f"it ended with {done.returncode} or tried to reach another machine:\n{done.stderr[-4000:]}")
        return done.stdout

    return run_in


@pytest.mark.parametrize("place", ["thread", "worker"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_framework_as_an_agent(scenario, place, run_in, expected_of, facts_of, assert_agrees):
    framework, unknown = SCENARIOS[scenario]
    expected = expected_of(scenario)
    if unknown is not None:
        expected["usage"][unknown] = None
    lines = run_in(scenario, HERE / "run_live.py", scenario, framework, place).splitlines()
    records = [decode_record(line) for line in lines if line.startswith('{"v"')]
    assert [record.case.id for record in records] == ["live-0", "live-1", "live-2"]
    for record in records:
        assert record.outcome.error is None
        assert_agrees(facts_of(record), expected)
        told = record.trace.metadata["spans"]
        assert told["captured"] > 0
        assert not told.keys() & {"unattributed", "not_ended", "problems"}
        said = [event.payload for event in record.trace.events if event.type == "message"]
        assert [message for message in said if message["role"] == "user" and message["content"].strip()]


def test_the_vercel_ai_sdk(tmp_path, expected_of, facts_of, assert_agrees):
    environment = ROOT / ENVIRONMENTS / "vercel"
    if not (environment / ".ready").exists() or shutil.which("node") is None:
        pytest.skip(f"vercel is not installed in {ENVIRONMENTS}: 'make frameworks' does that where npm is")
    command = [sys.executable, HERE / "run_vercel.py", environment, tmp_path / "vercel.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        pytest.fail(done.stderr[-4000:])
    (record,) = agentunit.read_records(tmp_path / "vercel.json")
    assert_agrees(facts_of(record), expected_of("vercel"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page, run_in):
    assert run_in(page.stem, HERE / "run_page.py", page).endswith("the page runs\n")
