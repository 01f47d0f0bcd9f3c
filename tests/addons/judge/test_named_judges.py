"""``--judge NAME``: a judge of the file of this folder, or a model at the server that the environment names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_decisions import decide
from judge_server import JudgeServer

from agentunit.backends.quality import load_backend
from agentunit.backends.services import configure_judge


@pytest.fixture
def judge_server() -> Iterator[JudgeServer]:
    with JudgeServer(decide) as running:
        yield running


@pytest.fixture
def asked(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Score faithfulness of one record by a judge, and give the result."""
    record = {
        "case": {"id": "q1", "query": "Capital?"},
        "trace": {"events": [{"type": "retrieval", "documents": ["Paris is the capital of France."]}]},
        "outcome": "Paris is the capital of France.",
    }
    Path("rag.jsonl").write_text(json.dumps(record) + "\n")
    for name in [name for name in os.environ if name.startswith("AGENTUNIT_JUDGE_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("AGENTUNIT_BACKEND", raising=False)
    monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", "off")

    def ask(*words: str, **env: Any) -> Any:
        # A command has a process of its own.
        configure_judge()
        return invoke("score", "rag.jsonl", "-m", "faithfulness", *words, **env)

    yield ask
    configure_judge()
    backend: Any = load_backend("judge")
    backend.close()


def write_judges(server: JudgeServer, **settings: Any) -> None:
    judges = {"local": {"url": server.url, "model": "judge-1", "cache": False, **settings}}
    Path("agentunit.yaml").write_text(json.dumps({"judges": judges}))


def test_a_judge_of_the_file_is_asked_by_its_name(asked: Any, judge_server: JudgeServer) -> None:
    write_judges(judge_server, repeats=2)
    found = asked("--judge", "local", "--json")
    assert found.exit_code == 0, found.output
    assert "judge-1 at " in found.stderr
    once = len(judge_server.calls)
    assert once > 0
    # Nothing is asked of a judge that only stands in the file.
    assert asked("--backend", "lexical").exit_code == 0
    assert len(judge_server.calls) == once


def test_a_name_that_the_file_does_not_have_is_a_model(asked: Any, judge_server: JudgeServer) -> None:
    env = {"AGENTUNIT_JUDGE_URL": judge_server.url}
    assert "judge-7 at " in asked("--judge", "judge-7", env=env).stderr
    write_judges(judge_server)
    assert "judge-7 at " in asked("--judge", "judge-7", env=env).stderr
    assert "judge-1, judge-7" in asked("--judge", "local", "--judge", "judge-7", env=env).output


def test_former_options_of_the_judge_work_and_say_where_they_are_set_now(asked: Any, judge_server: JudgeServer) -> None:
    found = asked("--judge-url", judge_server.url, "--judge-model", "judge-1", "--no-cache", "--judge-repeats", "2")
    assert found.exit_code == 0, found.output
    assert "note: --judge-url, --judge-model, --judge-repeats, --no-cache is now set in a judge of" in found.stderr
    assert "judge-1 at " in found.stderr


def test_a_judge_that_cannot_be_asked_is_a_usage_error(asked: Any, judge_server: JudgeServer) -> None:
    nobody = asked("--judge", "local")
    assert nobody.exit_code == 2
    assert "no judge is configured: set AGENTUNIT_JUDGE_URL" in " ".join(nobody.stderr.split())
    assert "or name a judge of agentunit.yaml" in " ".join(nobody.stderr.split())
    for content, problem in (
        ("judges: [a]", "must hold judges by their names"),
        ("judges: {a: 3}", "judge a: judge must be a mapping"),
        ("judges: {local: {url: u, model: m, api_key: sk-1}}", "a key must not be in a file"),
        ("judges: {local: {url: 'http://x/v1', model: m, colour: red}}", "'colour' is not a setting of the judge"),
        ("judges: {a", "agentunit.yaml: "),
    ):
        Path("agentunit.yaml").write_text(content)
        found = asked("--judge", "local")
        assert found.exit_code == 2
        assert problem in " ".join(found.stderr.split())
    assert judge_server.calls == []
