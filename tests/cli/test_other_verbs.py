from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kept_records import add_record

import agentunit
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.core.results import MetricResult, Score
from agentunit.installation import install_command
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.registry import DEFAULT_METRICS, registry
from agentunit.store.sqlite import Store


def test_metrics_lists_every_name(invoke):
    result = invoke("metrics")
    assert result.exit_code == 0
    for name in registry.names():
        assert name in result.stdout
    assert "faithfulness ↑ *" in result.stdout


def test_metrics_begins_with_the_standard_set_and_unfolds_families(invoke):
    folded, family, whole = (invoke("metrics", *words).stdout for words in ((), ("privacy",), ("--why",)))
    standard, _, others = folded.partition("by family")
    assert [line.split()[0] for line in standard.splitlines() if "*" in line] == list(DEFAULT_METRICS)
    assert "pii_leakage ↑" not in folded
    assert "pii_leakage" in others
    assert "pii_leakage ↑" in family
    assert "carbon" not in family
    assert len(folded.splitlines()) < 30 < len(whole.splitlines())
    assert {each["family"] for each in json.loads(invoke("metrics", "privacy", "--json").stdout)} == {"privacy"}


def test_metrics_as_json_is_the_whole_catalog(invoke):
    listed = {each["name"]: each for each in json.loads(invoke("metrics", "--json").stdout)}
    assert list(listed) == registry.names()
    assert listed["cost"]["unit"] == "USD"
    assert listed["cost"]["range"] == [0.0, None]
    assert listed["faithfulness"]["parameters"] == {"backend": "auto", "calibration": None, "evidence": "all"}
    assert listed["faithfulness"]["informational_backends"] == ["lexical"]


def test_one_metric_in_full(invoke):
    result = invoke("metrics", "tool_trajectory")
    assert "agentunit.metrics.trajectory.ToolTrajectoryMetric" in result.stdout
    assert "mode='ordered', arguments='equal'" in result.stdout
    assert json.loads(invoke("metrics", "tool_trajectory", "--json").stdout)["name"] == "tool_trajectory"


def test_an_unknown_metric_is_a_usage_error(invoke):
    result = invoke("metrics", "costs")
    assert result.exit_code == 2
    assert "did you mean 'cost'?" in result.stderr


@pytest.mark.parametrize("is_other", [True, False])
def test_doctor_names_a_pytest_of_another_python(invoke, monkeypatch, tmp_path, is_other):
    folder = tmp_path if is_other else Path(sys.executable).parent
    monkeypatch.setattr("agentunit.cli.doctor.which", lambda name: str(folder / name))
    found = {each["part"]: each for each in json.loads(invoke("doctor", "--json").stdout)}
    assert ("pytest" in found) == is_other
    if is_other:
        assert found["pytest"]["fix"] == f"{sys.executable} -m pytest"
        assert f"{tmp_path / 'pytest'} is of another Python" in found["pytest"]["note"]


def test_doctor_names_what_is_missing_and_the_command(invoke, monkeypatch):
    from agentunit.cli import doctor

    monkeypatch.setattr(doctor, "find_spec", lambda module: None if module == "zstandard" else object())
    result = invoke("doctor")
    assert result.exit_code == 0
    assert f"extra zstd: {install_command('zstd')}" in result.stdout
    works = next(line for line in result.stdout.splitlines() if line.startswith("works: "))
    assert works.startswith("works: base install, prices, ")
    assert "list prices" not in result.stdout
    assert "list prices" in invoke("doctor", "--why").stdout
    found = {each["part"]: each for each in json.loads(invoke("doctor", "--json").stdout)}
    assert found["extra zstd"]["state"] == "missing"
    assert found["extra prices"]["state"] == "ok"
    assert found["backend lexical"]["state"] == "ok"
    assert "cores" in found["container limits"]["note"] or "1 core" in found["container limits"]["note"]
    assert {"CPU energy (RAPL)", "GPU energy (NVML)"} <= found.keys()
    assert {"sentence encoder", "CLIP", "Whisper"} <= found.keys()
    assert f"agentunit {agentunit.__version__}" in found


def test_demo_prints_its_table_and_the_next_command(invoke):
    result = invoke("show", "demo")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("65 cases: ")
    for heading in (
        "value, 95 %",
        "scored",
        "trust",
        " of 65 cases wrong: ",
        "not scored: ",
        "agentunit show demo desk-",
    ):
        assert heading in result.stdout
    table = result.stdout[result.stdout.index("metric  ") : result.stdout.index("… and 4 more rows (--why shows them)")]
    # A long cell goes on in a line that begins with spaces.
    assert sum(not line.startswith(" ") for line in table.splitlines()) == 11
    assert "cost ↓" in table
    assert "token_usage ↓" in invoke("show", "demo", "--why").stdout
    assert "more rows" not in invoke("show", "demo", "--why").stdout


def test_what_demo_tells_to_do_next_works(invoke):
    (line,) = [line for line in invoke("show", "demo").stdout.splitlines() if line.startswith("next: ")]
    result = invoke(*line.removeprefix("next: ").split("   ")[0].split()[1:])
    assert result.exit_code == 0, result.output


def test_help_shows_five_commands_first_and_the_others_below(invoke):
    first, _, more = invoke("--help").stdout.partition("Commands:")[2].partition("More:")
    names = [line.split()[0] for line in first.splitlines() if re.match(r"  \w", line)]
    assert names == ["init", "run", "score", "compare", "show"]
    assert "  label " in more
    assert "  run " not in more


def test_demo_does_not_overwrite(invoke):
    Path("demo.jsonl").write_text("mine")
    result = invoke("demo", "--save", "demo.jsonl")
    assert result.exit_code == 2
    assert Path("demo.jsonl").read_text() == "mine"


def test_the_command_itself():
    done = subprocess.run([sys.executable, "-m", "agentunit", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"agentunit, version {agentunit.__version__}\n")
    done = subprocess.run([sys.executable, "-m", "agentunit", "socre"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("asked", "code", "answer"),
    [("bash_source", 0, "_agentunit_completion"), ("bash_complete", 0, "plain,runs"), ("bash_what", 2, "")],
)
def test_a_shell_that_asks_for_completion_is_answered(asked, code, answer):
    environment = {**os.environ, "_AGENTUNIT_COMPLETE": asked, "COMP_WORDS": "agentunit ru", "COMP_CWORD": "1"}
    command = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'agentunit'; from agentunit.cli.main import main; main()",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, "")
    assert answer in done.stdout


def test_a_suite_that_is_nested_too_deeply_is_told_in_words(tmp_path):
    deep = "x = []\nfor _ in range(3_000):\n    x = [x]\n"
    suite = 'suite = Suite([{"query": "q"}], str, metrics=[{"contains": {"values": x}}])\n'
    (tmp_path / "suite.py").write_text(f"from agentunit import Suite\n{deep}{suite}")
    command = [sys.executable, "-m", "agentunit", "doctor", str(tmp_path / "suite.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("Error: values of the suite, or of a file, are nested too deeply (")


def test_importing_agentunit_is_cheap():
    heavy = ["numpy", "scipy", "torch", "pydantic", "click", "msgspec", "importlib.metadata"]
    code = f"import sys, agentunit; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_json_of_a_metric_holds_every_fact_about_it(invoke):
    found = json.loads(invoke("metrics", "energy_consumption", "--json").stdout)
    assert {each.name for each in dataclasses.fields(MetricInfo)} - found.keys() == set()
    assert found["amount"] == {"detail_key": "energy_wh", "unit": "Wh"}
    listed = {each["name"]: each for each in json.loads(invoke("metrics", "--json").stdout)}
    assert listed["energy_consumption"] == found
    assert listed["cost"]["amount"] is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes as Unix has them")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["metrics", "--json"], 0),
        (["runs"], 0),
        (["show", "last"], 0),
        (["show", "last", "--json"], 0),
        (["show", "last", "a"], 0),
        (["export", "last", "--to", "-", "--format", "csv"], 0),
        (["show", "last", "-g", "exact_match >= 0.5"], 1),
        (["show", "last", "-g", "exact_match >= 0.5", "--json"], 1),
        (["compare", "last", "last"], 0),
    ],
    ids=str,
)
def test_a_reader_that_has_gone_is_not_an_error(invoke, arguments, code):
    with Store(".agentunit/runs.db") as store:
        run = store.create_run("desk", agentunit_version="1", settings={}).id
        add_record(store, run, 0, 0, Record(DatasetCase("a", "?")), failed=False, elapsed_s=0.0)
        wrong = Score(MetricResult("exact_match", 0.0), "ok", "check", "1", 0.0)
        store.add_scores(run, 0, 0, {"exact_match": wrong})
        store.set_status(run, "finished")
    command = [sys.executable, "-m", "agentunit", *arguments]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, "")
