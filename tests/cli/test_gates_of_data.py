"""Gates that came with a run are data: they import nothing and call nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentunit.cli.main import cli
from agentunit.store.schema import StoreError

SUITE = """
from agentunit import Suite

cases = [{"id": "q1", "query": "?", "metadata": {"contains": "yes"}}]
suite = Suite(cases, lambda query: "yes", metrics=["contains"], gates=[], name="data")
"""
MODULE = """
from pathlib import Path

Path("imported").touch()


def harm(answer):
    return 1.0
"""


@pytest.fixture
def forged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of an imported run whose stored gates name a module; without its one case, so that it can go on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTUNIT_STORE", raising=False)
    (tmp_path / "suite.py").write_text(SUITE)
    (tmp_path / "harmful.py").write_text(MODULE)
    assert CliRunner().invoke(cli, ["run", "suite.py"]).exit_code == 0
    assert CliRunner().invoke(cli, ["export", "last", "--to", "run.json"]).exit_code == 0
    first, *cases = (tmp_path / "run.json").read_text().splitlines()
    header = json.loads(first)
    header["header"]["settings"]["gates"] = ["harmful:harm >= 0.1"]
    header["header"]["id"] = "forged"
    (tmp_path / "forged.json").write_text("\n".join([json.dumps(header), *cases]) + "\n")
    assert CliRunner().invoke(cli, ["runs", "--import", "forged.json"]).exit_code == 0
    return "forged"


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "suite.py", "--resume", "forged"],
        ["rerun", "forged", "q1", "--suite", "suite.py"],
        ["rerun", "forged", "q1", "--suite", "suite.py", "--replace"],
    ],
)
def test_a_gate_of_a_run_that_names_a_module_is_refused_by_name(forged: str, arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert "'harmful:harm >= 0.1', which would import 'harmful:harm'" in result.stderr
    assert not Path("imported").exists()


@pytest.mark.parametrize(
    "arguments",
    [["show", "forged"], ["show", "forged", "--gate", "stored"], ["show", "forged.json", "--gate", "stored"], ["runs"]],
)
def test_looking_at_such_a_run_imports_nothing(forged: str, arguments: list[str]) -> None:
    CliRunner().invoke(cli, arguments)
    assert not Path("imported").exists()


@pytest.mark.parametrize(("gates", "is_offered"), [(["harmful:harm >= 0.1"], False), (["contains >= 0.1"], True)])
def test_no_command_is_offered_that_would_be_refused(forged: str, gates: list[str], is_offered: bool) -> None:
    first, *cases = Path("forged.json").read_text().splitlines()
    header = json.loads(first)
    header["header"].update(status="stopped", finished_at=None)
    header["header"]["settings"].update(gates=gates, suite="suite.py")
    Path("stopped.json").write_text("\n".join([json.dumps(header), *cases]) + "\n")
    assert CliRunner().invoke(cli, ["import", "stopped.json", "--as", "stopped"]).exit_code == 0
    for arguments in (["show", "stopped"], ["runs"], ["export", "stopped", "--to", "-", "--format", "markdown"]):
        told = CliRunner().invoke(cli, arguments)
        assert ("--resume stopped" in told.output) == is_offered, told.output


def test_a_record_of_an_exported_run_that_cannot_be_read_is_named(forged: str) -> None:
    written = Path("run.json").read_text()
    Path("bad.json").write_text(written.replace('"record":{"v":1', '"record":{"v":"x"'))
    error = CliRunner().invoke(cli, ["doctor", "bad.json"]).exception
    assert isinstance(error, StoreError)
    assert str(error).endswith("bad.json: case 'q1': record version must be 1; received 'x'")


@pytest.mark.parametrize("name", ["limit", "repeats", "timeout_s", "earlier_agent_versions"])
def test_a_setting_of_another_kind_is_refused_when_a_run_is_taken_in(forged: str, name: str) -> None:
    first, *cases = Path("forged.json").read_text().splitlines()
    header = json.loads(first)
    header["header"]["settings"][name] = {"a": 1}
    Path("odd.json").write_text("\n".join([json.dumps(header), *cases]) + "\n")
    result = CliRunner().invoke(cli, ["runs", "--import", "odd.json", "--as", "odd"])
    assert result.exit_code == 3
    assert name in result.output
