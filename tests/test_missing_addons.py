"""An add-on that is missing or broken costs what it brings, and is named in one sentence; nothing else is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kept_records import add_record

from agentunit import doors
from agentunit.core.codec import decode_record
from agentunit.store.sqlite import Store

# Every import below these packages fails as it does where the files are not there, or in another way.
_START = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.startswith(PACKAGE):
            raise ERROR

sys.meta_path.insert(0, Missing())
sys.argv = ["agentunit", *ARGUMENTS]
from agentunit.cli.main import main
main()
"""
RECORD = {
    "case": {"id": "q1", "query": "Who?", "metadata": {"contains": "Jane"}},
    "outcome": {"output": "Ask Jane Doe at jane@example.org."},
}


@pytest.fixture
def call_without(tmp_path: Path) -> Any:
    (tmp_path / "records.jsonl").write_text(json.dumps(RECORD) + "\n", encoding="utf-8")

    def call(addon: str, *arguments: str, error: str = "ModuleNotFoundError('gone', name=name)") -> Any:
        program = _START.replace("PACKAGE", repr(f"agentunit.addons.{addon}")).replace("ERROR", error)
        program = program.replace("ARGUMENTS", repr(arguments))
        return subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    return call


@pytest.mark.parametrize(
    ("addon", "arguments"),
    [
        ("viewer", ["view", "--no-open"]),
        ("review", ["label", "last"]),
        ("review", ["doctor", "records.jsonl"]),
        ("redact", ["redact", "records.jsonl", "--out", "masked.jsonl"]),
        ("imports", ["import", "records.jsonl"]),
        ("scale", ["score", "records.jsonl", "--out", "scores.parquet", "--metrics", "cost"]),
        ("scale", ["runs", "--store", "postgresql://localhost/runs"]),
    ],
)
def test_a_command_names_the_addon_that_it_lacks(call_without: Any, addon: str, arguments: list[str]) -> None:
    done = call_without(addon, *arguments)
    assert done.returncode in (2, 3)
    assert f"the add-on {addon!r} of AgentUnit is not installed: pip install" in done.stderr
    assert "Traceback" not in done.stderr
    assert "ModuleNotFoundError" not in done.stderr


def test_an_addon_that_is_broken_is_named_with_what_is_wrong(call_without: Any) -> None:
    done = call_without("viewer", "view", "--no-open", error="ImportError('wrong machine')")
    assert "the add-on 'viewer' of AgentUnit cannot be loaded (wrong machine): pip install" in done.stderr


def test_the_doctor_lists_what_is_missing_and_goes_on(call_without: Any) -> None:
    for addon in doors.addon_names():
        done = call_without(addon, "doctor")
        assert done.returncode == 0, done.stderr
        assert f"add-on {addon}" in done.stdout


def test_traces_are_read_without_the_formats_of_an_addon(call_without: Any, tmp_path: Path) -> None:
    done = call_without("formats", "score", "records.jsonl", "--metrics", "contains")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hi"}]', encoding="utf-8")
    done = call_without("formats", "score", "chat.json", "--metrics", "contains")
    assert "the add-on 'formats' of AgentUnit is not installed" in done.stderr
    assert "ModuleNotFoundError" not in done.stderr


def test_personal_data_with_a_form_is_found_without_the_list_of_names(call_without: Any, tmp_path: Path) -> None:
    done = call_without("names", "score", "records.jsonl", "--metrics", "pii_leakage", "--out", "scores.jsonl")
    assert done.returncode == 0, done.stderr
    score = json.loads((tmp_path / "scores.jsonl").read_text(encoding="utf-8"))["scores"]["pii_leakage"]
    assert score["backend"] == "structured"
    assert score["result"]["detail"]["counts"] == {"email": 1}
    assert score["why"].endswith("; names and postal addresses were not looked for")
    assert "the add-on 'names' of AgentUnit is not installed" in score["result"]["detail"]["not_looked_for"]


def test_a_report_loads_no_other_reporter(call_without: Any, tmp_path: Path) -> None:
    with Store(tmp_path / ".agentunit" / "runs.db") as store:
        run_id = store.create_run("one", agentunit_version="1", settings={}).id
        add_record(store, run_id, 0, 0, decode_record(json.dumps(RECORD).encode()), failed=False, elapsed_s=0.1)
        store.set_status(run_id, "finished")
    done = call_without("scale", "export", "last", "--to", "report.html")
    assert done.returncode == 0, done.stderr
    assert "add-on" not in done.stderr
    assert (tmp_path / "report.html").stat().st_size > 0
