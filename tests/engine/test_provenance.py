from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentunit import Suite
from agentunit.engine.recording.provenance import agent_version, git_state
from agentunit.engine.recording.runner import plan_run, record
from agentunit.engine.recording.suite import SuiteError, load_suite
from agentunit.store.sqlite import Store


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("desk", "agentunit_suite_")):
            del sys.modules[name]


def version_of_suite(folder: Path, name: str = "suite.py") -> str | None:
    suite = load_suite(folder / name)
    return agent_version(suite.agent, suite.folder)


def test_the_version_follows_the_agents_module_and_what_it_imports_of_the_project(tmp_path):
    package = tmp_path / "desk"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "agent": "import json\nfrom . import tools\nfrom desk.words import hello\ndef answer(query): return hello\n",
        "tools": "import notes\n",
        "words": "hello = 'hello'\n",
        "unused": "x = 1\n",
    }.items():
        (package / f"{name}.py").write_text(text)
    (tmp_path / "notes.py").write_text("a = 1\n")
    sys.path.insert(0, str(tmp_path))
    import desk.agent  # type: ignore[import-not-found]

    def version() -> str | None:
        return agent_version("desk.agent:answer", str(tmp_path))

    first = version()
    assert first is not None
    assert first == agent_version(desk.agent.answer, str(tmp_path))
    (package / "unused.py").write_text("x = 2\n")
    assert version() == first
    for path in (package / "agent.py", package / "words.py", package / "tools.py", tmp_path / "notes.py"):
        kept = path.read_text()
        path.write_text(kept + "# changed\n")
        assert version() != first, path
        path.write_text(kept)
    assert version() == first


def test_another_gate_in_the_suites_file_does_not_make_another_agent(tmp_path):
    text = "from agentunit import Suite\ndef agent(query):\n    return query\nsuite = Suite([{'id': 'a'}], agent)\n"
    (tmp_path / "suite.py").write_text(text)
    first = version_of_suite(tmp_path)
    assert first is not None
    (tmp_path / "suite.py").write_text(text.replace(", agent)", ", agent, gates=['cost <= 1'])"))
    assert version_of_suite(tmp_path) == first
    (tmp_path / "suite.py").write_text(text.replace("return query", "return 1"))
    assert version_of_suite(tmp_path) != first


def test_a_command_is_known_by_the_files_it_names_and_an_address_by_nothing(tmp_path):
    program = tmp_path / "desk.sh"
    program.write_text("echo 1\n")
    first = agent_version(f"command: sh {program}")
    program.write_text("echo 2\n")
    assert None not in (first, agent_version(f"command: sh {program}"))
    assert first != agent_version(f"command: sh {program}")
    assert agent_version("https://desk.example/ask") is None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_with_and_without_the_git_command(tmp_path, monkeypatch):
    assert git_state(str(tmp_path)) is None

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    assert git_state(str(tmp_path)) is None  # no commit yet
    (tmp_path / "a.py").write_text("1")
    git("add", "a.py")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "HEAD")
    below = tmp_path / "suites"
    below.mkdir()
    assert git_state(str(below)) == {"commit": commit, "dirty": False}
    (tmp_path / "a.py").write_text("2")
    assert git_state(str(below)) == {"commit": commit, "dirty": True}
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert git_state(str(below)) == {"commit": commit, "dirty": None}
    git("pack-refs", "--all")
    assert git_state(str(below)) == {"commit": commit, "dirty": None}


def test_a_run_is_not_taken_up_by_another_version_unless_told(tmp_path):
    cases = [{"id": f"q{n}", "query": "?"} for n in range(3)]

    def suite(version: object) -> Suite:
        return Suite(cases, lambda query: query, metrics=["response_time"], agent_version=version)  # type: ignore[arg-type]

    with Store(tmp_path / "runs.db") as store:
        plan = plan_run(suite(1.5), store, name="nightly", tags={"model": "x"})
        assert plan.header.name == "nightly"
        assert plan.header.settings["tags"] == {"model": "x"}
        assert plan.header.settings["agent_version"] == "1.5"
        # Nothing is kept yet, so nothing can be mixed.
        plan_run(suite("2"), store, resume="nightly")
        plan.open = plan.open[:1]
        record(plan, store)
        with pytest.raises(SuiteError, match=r"version 1\.5 of the agent, it is 2 now.*--changed-agent"):
            plan_run(suite("2"), store, resume="nightly")
        record(plan_run(suite("2"), store, resume="nightly", changed_agent=True), store)
        settings = store.find_run("nightly").settings
        assert (settings["agent_version"], settings["earlier_agent_versions"]) == ("2", ["1.5"])
        assert settings["tags"] == {"model": "x"}


def test_a_named_agent_has_its_version_before_anything_has_imported_it(tmp_path, monkeypatch):
    # A command that only asks whether the agent has changed asks before it is called.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk_named.py").write_text("def answer(query): return 'here'\n")
    assert "desk_named" not in sys.modules
    version = agent_version("desk_named:answer", str(tmp_path))
    assert version is not None
    assert version == agent_version("desk_named:answer", str(tmp_path))
    assert agent_version("desk_missing:answer", str(tmp_path)) is None
