from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agentunit.cli.init import init
from agentunit.cli.run import run
from agentunit.datasets.readers import load_dataset

DATA = Path(__file__).resolve().parents[2] / "data" / "foreign"
CONFIG = """
prompts: ["{{question}}"]
providers: [echo]
tests:
  - vars: {question: Where is A-1?}
    assert: [{type: contains, value: sent}, {type: "evil[bold]\\u2028agent: x", value: 1}]
  - vars: {question: Hello}
    assert: [{type: not-contains, value: sorry}]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("AGENTUNIT_STORE", raising=False)


def take(*arguments: object) -> Result:
    return CliRunner().invoke(init, ["--from", *map(str, arguments)])


def test_an_imported_suite_runs_and_its_gate_decides() -> None:
    Path("desk.yaml").write_text(CONFIG)
    result = take("desk.yaml")
    assert result.exit_code == 3
    assert "contains" in result.stdout
    assert "evil[bold]" in result.stdout
    assert "1 did not map" in result.stdout
    assert result.stdout.endswith("next: agentunit run desk/suite.yaml\n")
    suite = Path("desk/suite.yaml")
    explained = CliRunner().invoke(run, [str(suite)])
    assert explained.exit_code == 2
    assert "'agent' is empty: name yours there, as module:function" in explained.stderr

    assert suite.read_text().count("\nagent:\n") == 1
    suite.write_text(suite.read_text().replace("\nagent:\n", "\nagent: foreign_desk_agent:answer\n"))
    agent = Path("desk/foreign_desk_agent.py")
    agent.write_text("def answer(query):\n    return 'sent' if 'A-1' in query else 'sorry'\n")
    failed = CliRunner().invoke(run, [str(suite)])
    assert failed.exit_code == 1, failed.output
    assert "FAIL: 1 wrong (test-2: " in failed.stdout


def test_a_suite_that_maps_whole_ends_with_0_and_passes() -> None:
    Path("desk.jsonl").write_text(json.dumps({"input": "2 + 2?", "target": "4"}))
    result = take("desk.jsonl", "evals/new")
    assert result.exit_code == 0, result.output
    assert "no gates: the file states no threshold" in result.stdout
    (case,) = load_dataset("evals/new/dataset.jsonl")
    assert (case.query, case.expected_output) == ("2 + 2?", "4")


def test_nothing_is_overwritten() -> None:
    Path("desk").mkdir()
    Path("desk/suite.yaml").write_text("mine")
    Path("desk.yaml").write_text(CONFIG)
    result = take("desk.yaml")
    assert result.exit_code == 2
    assert "exists already: nothing was written" in result.stderr
    assert Path("desk/suite.yaml").read_text() == "mine"
    assert not Path("desk/dataset.jsonl").exists()


def test_a_file_without_a_case_writes_nothing_and_says_why() -> None:
    Path("desk.yaml").write_text("prompts: [x]\ntests: huggingface://datasets/x\n")
    result = take("desk.yaml")
    assert result.exit_code == 3
    assert (
        "no case could be read, nothing was written (not mapped: tests of huggingface://datasets/x ×1)" in result.stderr
    )
    assert not Path("desk").exists()


def test_what_nothing_reads_stays_with_the_case() -> None:
    take(DATA / "deepeval.json", "evals")
    assert [case.extra for case in load_dataset("evals/dataset.jsonl")] == [
        {"comments": "from the FAQ"},
        {"actual_output": "It was sent.", "tools_called": [{"name": "look_up_order", "type": "FUNCTION"}]},
    ]
