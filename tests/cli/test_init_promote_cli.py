"""``agentunit init`` writes a suite that works; ``agentunit promote`` makes test cases of what went wrong."""

from __future__ import annotations

import importlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from click import ClickException
from click.testing import CliRunner, Result
from kept_records import add_record

from agentunit.addons.review.promote_command import append_cases, promote
from agentunit.cli.init import init
from agentunit.cli.run import run
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceLog
from agentunit.datasets.readers import load_dataset
from agentunit.engine.deciding.decision import decide
from agentunit.engine.deciding.gates import evaluate_gates
from agentunit.engine.recording.suite import load_suite
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.store.portable import export_run
from agentunit.store.sqlite import Store

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """Call a verb in an empty folder, leaving nothing behind in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("AGENTUNIT_STORE", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield lambda verb, *arguments: CliRunner().invoke(verb, [str(each) for each in arguments])
    for name in ("my_agent", "agentunit_suite_suite"):
        sys.modules.pop(name, None)


# init


@pytest.mark.parametrize(("options", "name"), [((), "suite.py"), (("--yaml",), "suite.yaml")])
@pytest.mark.parametrize("folder", [".", "new/evals"])
def test_the_written_suite_runs_and_finds_its_bug(call, options, name, folder):
    result = call(init, *([] if folder == "." else [folder]), *options)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in Path(folder).iterdir() if path.is_file()) == sorted(
        [name, "my_agent.py", "dataset.jsonl"]
    )
    assert result.output.splitlines()[-1] == f"next: agentunit run {Path(folder) / name}"

    suite = load_suite(Path(folder) / name)
    cases = load_dataset(suite.dataset, folder=suite.folder)
    assert 5 <= len(cases) <= 8
    agent = importlib.import_module("my_agent").answer
    assert suite.agent in (agent, "my_agent:answer")
    with Store("runs.db") as store:
        header = store.create_run(suite.name, agentunit_version="0", settings={}, n_planned=len(cases))
        for position, case in enumerate(cases):
            trace = TraceLog()
            outcome = Outcome(output=agent(query=case.query, trace=trace), elapsed_s=0.001)
            add_record(store, header.id, position, 0, Record(case, trace, outcome), failed=False, elapsed_s=0.001)
        score_run(store, header.id, suite.metrics)
        run = run_from_store(store, header.id)
        verdicts = evaluate_gates(run, suite.gates, min_coverage=suite.min_coverage)
        (failed_call,) = [event.payload for event in store.case(header.id, "lower-case")[0].record.trace.events]
    # One case of seven fails, and its trace says why; every other answer is exactly the expected one.
    assert [verdict.verdict for verdict in verdicts] == ["pass", "pass"]
    assert failed_call["error"] == "no order a-1002"
    decision = decide(run, verdicts, max_errors=suite.max_errors)
    assert (decision.exit_code, decision.failing_cases) == (1, ("lower-case",))
    wrong = [case.id for case in cases if agent(query=case.query, trace=TraceLog()) != case.expected_output]
    assert wrong == ["lower-case"]


def test_both_suites_say_the_same(call):
    call(init, "python")
    call(init, "yaml", "--yaml")
    python, yaml = load_suite("python/suite.py"), load_suite("yaml/suite.yaml")
    for setting in ("dataset", "metrics", "gates", "timeout_s", "min_coverage"):
        assert getattr(python, setting) == getattr(yaml, setting)


def test_the_comments_name_cases_that_exist(call):
    call(init)
    ids = {case.id for case in load_dataset("dataset.jsonl")}
    for name in ("suite.py", "my_agent.py"):
        shown = [line.split("show last ")[1].split()[0].strip("`") for line in Path(name).read_text().splitlines()
                 if "show last " in line]  # fmt: skip
        assert shown
        assert set(shown) <= ids


@pytest.mark.parametrize("existing", [["suite.py"], ["dataset.jsonl"], ["my_agent.py", "dataset.jsonl"]])
def test_nothing_is_overwritten(call, existing):
    for name in existing:
        Path(name).write_text("mine")
    result = call(init)
    assert result.exit_code == 2
    assert (
        f"{', '.join(existing)} exist{'s' if len(existing) == 1 else ''} already: nothing was written" in result.output
    )
    assert sorted(path.name for path in Path().iterdir()) == sorted(existing)
    assert all(Path(name).read_text() == "mine" for name in existing)


def test_a_suite_of_the_other_kind_is_no_obstacle_of_its_own(call):
    Path("suite.yaml").write_text("mine")
    assert call(init).exit_code == 0
    assert Path("suite.yaml").read_text() == "mine"


def test_a_link_to_nowhere_counts_as_existing(call, tmp_path):
    Path("dataset.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    assert call(init).exit_code == 2
    assert not Path("elsewhere.jsonl").exists()


def test_a_file_where_the_folder_should_be(call):
    Path("evals").write_text("mine")
    assert call(init, "evals").exit_code == 2
    result = call(init, "evals/deeper")
    assert result.exit_code == 3
    assert "cannot write" in result.output


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, ".agentunit/\n"),
        ("", ".agentunit/\n"),
        (".venv/\n", ".venv/\n.agentunit/\n"),
        (".venv/", ".venv/\n.agentunit/\n"),
        ("# .agentunit/\n", "# .agentunit/\n.agentunit/\n"),
        ("my.agentunit/\n", "my.agentunit/\n.agentunit/\n"),
        (".agentunit/\n", ".agentunit/\n"),
        ("/.agentunit\r\nbuild/\r\n", "/.agentunit\r\nbuild/\r\n"),
        ("  .agentunit/  \n", "  .agentunit/  \n"),
    ],
)
@pytest.mark.parametrize("folder", [".", "deep/evals"])
def test_runs_stay_out_of_git(call, before, after, folder):
    Path(".git").mkdir()
    if before is not None:
        Path(".gitignore").write_bytes(before.encode())
    result = call(init, folder)
    assert result.exit_code == 0
    assert Path(".gitignore").read_bytes().decode() == after
    assert ("added .agentunit/ to" in result.output) == (before != after)
    assert not Path("deep/evals/.gitignore").exists()


def test_a_git_worktree_is_a_repository_too(call):
    Path(".git").write_text("gitdir: elsewhere")
    call(init)
    assert Path(".gitignore").read_text() == ".agentunit/\n"


def test_without_a_repository_no_gitignore_is_made(call):
    assert "git" not in call(init).output
    assert not Path(".gitignore").exists()


# init --ci


WORKFLOW = Path(".github/workflows/agentunit.yml")


def steps_of(workflow: Path) -> tuple[dict, dict[str, str]]:
    """The job of a workflow, and the scripts of its steps by name."""
    job = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]["evaluate"]
    return job, {step["name"]: step["run"] for step in job["steps"] if "run" in step}


@pytest.mark.parametrize("folder", [".", "evals"])
def test_a_workflow_is_written_at_the_root_of_the_repository(call, folder):
    Path(".git").mkdir()
    result = call(init, folder, "--ci")
    assert result.exit_code == 0, result.output
    content = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    # YAML reads the key "on" as a truth value.
    assert set(content[True]) == {"push", "pull_request", "workflow_dispatch"}
    assert content["permissions"] == {"contents": "read", "actions": "read"}
    assert content["env"] == {"SUITE": "suite.py" if folder == "." else "evals/suite.py"}
    job, scripts = steps_of(WORKFLOW)
    assert scripts["Install"].splitlines()[-1].startswith("pip install ")
    assert "@SUITE@" not in str(content)
    assert "@INSTALL@" not in str(content)
    for script in scripts.values():
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    (makes,) = [step for step in job["steps"] if step.get("with", {}).get("name") == "agentunit-baseline"]
    assert makes["if"] == "github.event_name != 'pull_request' && github.ref == 'refs/heads/main'"


def test_with_a_suite_only_the_workflow_is_written_and_never_twice(call):
    Path("suite.yaml").write_text("mine")
    assert call(init, "--ci").exit_code == 0
    assert not Path("suite.py").exists()
    assert yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["env"]["SUITE"] == "suite.yaml"
    WORKFLOW.write_text("mine")
    result = call(init, "--ci")
    assert result.exit_code == 2
    assert f"{WORKFLOW} exists already: nothing was written" in result.output
    assert WORKFLOW.read_text() == Path("suite.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("event", "fork", "has_baseline", "options"),
    [
        ("push", "false", False, ["--repeats", "3"]),
        ("push", "false", True, ["--repeats", "3", "--baseline", "main-branch/baseline.json"]),
        ("workflow_dispatch", "false", True, ["--repeats", "3"]),
        ("pull_request", "false", False, []),
        ("pull_request", "false", True, ["--baseline", "main-branch/baseline.json"]),
        ("pull_request", "true", False, ["--metrics", "contains,tool_success", "--gate", "contains >= 0.5"]),
    ],
)
def test_what_each_event_is_held_to(call, tmp_path, event, fork, has_baseline, options):
    call(init, "--ci")
    job, scripts = steps_of(WORKFLOW)
    Path("agentunit").write_text('#!/bin/sh\n[ "$1" = runs ] || for each in "$@"; do echo "$each"; done\n')
    Path("agentunit").chmod(0o755)
    if has_baseline:
        Path("main-branch").mkdir()
        Path("main-branch/baseline.json").touch()
    env = {name: str(value) for name, value in job["env"].items()}
    known = {
        **env,
        "SUITE": "suite.py",
        "FROM_A_FORK": fork,
        "GITHUB_EVENT_NAME": event,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    made = subprocess.run(
        ["bash", "-e", "-c", scripts["Run the suite"]], env=known, capture_output=True, text=True, check=True
    )
    assert made.stdout.splitlines() == ["run", "suite.py", "--yes", *options]


def test_metrics_that_a_fork_lacks_are_no_regression(call):
    call(init)
    gates = ("-g", "contains >= 0.5", "-g", "response_time <= 60")
    assert call(run, "suite.py", "--name", "main", "-m", "contains,response_time", *gates).exit_code == 0
    arguments = ("suite.py", "-m", "contains,tool_success", "-g", "contains >= 0.5", "--baseline", "main")
    assert call(run, *arguments).exit_code == 0


# promote


@pytest.fixture
def run_id(call) -> str:
    """A run in the usual place: q1 is wrong, q2 is fine, q3 raised; q4 was repeated and went wrong the second time."""
    cases = [
        DatasetCase("q1", "Capital of France?", "Paris", ["search"], ["Paris is in France."], {"contains": "Paris"}),
        DatasetCase("q2", "2 + 2?", None, metadata={"contains": "4"}, extra={"ticket": 77}),
        DatasetCase("q3", "3 + 3?", "6", metadata={"contains": "6"}),
        DatasetCase("q4", "4 + 4?", "8", metadata={"contains": "8"}),
    ]
    outcomes = [
        (0, 0, Outcome(output="Lyon", cost=0.02)),
        (1, 0, Outcome(output="4", cost=0.01)),
        (2, 0, Outcome(success=False, error="ValueError: no")),
        (3, 0, Outcome(output="8")),
        (3, 1, Outcome(output="9")),
    ]
    with Store() as store:
        header = store.create_run("suite", agentunit_version="0", settings={"suite": "my suite.py"})
        for position, repeat, outcome in outcomes:
            record = Record(cases[position], TraceLog(), outcome)
            add_record(store, header.id, position, repeat, record, failed=bool(outcome.error), elapsed_s=0.1)
        score_run(store, header.id, ["contains", "answer_correctness", "cost"])
    return header.id


def lines(name: str = "bad.jsonl") -> list[dict]:
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


def test_a_bad_case_becomes_a_test_case(call, run_id):
    result = call(promote, "last", "q1", "--to", "bad.jsonl")
    assert result.exit_code == 0, result.output
    # cost has no best value, and the lexical answer_correctness is informational: neither says that q1 failed.
    assert lines() == [
        {
            "id": "q1",
            "query": "Capital of France?",
            "expected_output": "Paris",
            "tools": ["search"],
            "context": ["Paris is in France."],
            "metadata": {
                "contains": "Paris",
                "promoted_from": {"run": run_id, "output": "Lyon", "scores": {"contains": 0.0}},
            },
        }
    ]
    assert result.output.splitlines() == [
        "added q1 to bad.jsonl (1 case now)",
        "next: agentunit run 'my suite.py'   if its dataset is bad.jsonl",
    ]
    assert not list(Path().glob("*.part"))


def test_several_cases_at_once_and_unknown_fields_survive(call, run_id):
    result = call(promote, run_id[:12], "q2", "q3", "--to", "bad.jsonl")
    assert result.exit_code == 0, result.output
    two, three = lines()
    assert two["ticket"] == 77
    assert two["metadata"]["promoted_from"]["scores"] == {}
    assert three["metadata"]["promoted_from"] == {
        "run": run_id, "output": None, "scores": {}, "error": "ValueError: no"
    }  # fmt: skip
    assert "added q2, q3 to bad.jsonl (2 cases now)" in result.output
    assert "q2 has no expected output yet" in result.output
    assert "q3 has no expected output" not in result.output


def test_of_repeats_the_worst_is_taken(call, run_id):
    call(promote, "last", "q4", "--to", "bad.jsonl")
    assert lines()[0]["metadata"]["promoted_from"] == {"run": run_id, "output": "9", "scores": {"contains": 0.0}}


def test_a_conversation_becomes_a_script_with_its_answer_in_the_last_turn(call):
    cases = [
        DatasetCase("t", "Hi", turns=["Hi", {"query": "And?", "expected_output": "old"}]),
        DatasetCase("u", None, "yes", user={"function": "ask"}),
        DatasetCase("silent", None, "yes", user={"function": "ask"}),
    ]
    said = TraceLog()
    said.record("message", role="user", content="Well?", turn=1)
    with Store() as store:
        header = store.create_run("suite", agentunit_version="0", settings={})
        for position, (case, trace) in enumerate(zip(cases, (TraceLog(), said, TraceLog()), strict=True)):
            record = Record(case, trace, Outcome(output="no"))
            add_record(store, header.id, position, 0, record, failed=False, elapsed_s=0.1)
    assert "no expected output" not in call(promote, "last", "t", "u", "--to", "all.jsonl").output
    assert [each["turns"][-1] for each in lines("all.jsonl")] == [cases[0].turns[-1], "Well?"]
    assert call(promote, "last", "t", "--to", "bad.jsonl", "--expected", "new").exit_code == 0
    assert lines()[0]["turns"] == ["Hi", {"query": "And?", "expected_output": "new"}]
    refused = call(promote, "last", "silent", "--to", "bad.jsonl")
    assert (refused.exit_code, len(lines())) == (2, 1), "a case that nobody can run is in the dataset"


def test_the_expected_output_and_another_id(call, run_id):
    result = call(promote, "last", "q2", "--to", "bad.jsonl", "--expected", "four", "--as", "sum-of-twos")
    assert result.exit_code == 0
    assert (lines()[0]["id"], lines()[0]["expected_output"]) == ("sum-of-twos", "four")
    assert "has no expected output" not in result.output


def test_what_stands_in_the_dataset_stays_as_it_is(call, run_id):
    before = '\ufeff{"id": "mine", "query":   "spaced"}\r\n\n{"query": "no id, no newline"}'
    Path("bad.jsonl").write_bytes(before.encode())
    Path("bad.jsonl").chmod(0o640)
    assert call(promote, "last", "q1", "--to", "bad.jsonl").exit_code == 0
    after = Path("bad.jsonl").read_bytes().decode()
    assert after.startswith(before + '\n{"id":"q1"')
    assert [case.id for case in load_dataset("bad.jsonl")] == ["mine", "case-2", "q1"]
    assert stat.S_IMODE(Path("bad.jsonl").stat().st_mode) == 0o640


def test_a_linked_dataset_is_changed_where_it_lies(call, run_id):
    Path("shared").mkdir()
    Path("shared/bad.jsonl").touch()
    Path("bad.jsonl").symlink_to("shared/bad.jsonl")
    call(promote, "last", "q1", "--to", "bad.jsonl")
    assert Path("bad.jsonl").is_symlink()
    assert len(lines("shared/bad.jsonl")) == 1


def test_an_id_that_is_there_already_is_refused_and_nothing_changes(call, run_id):
    assert call(promote, "last", "q2", "--to", "bad.jsonl").exit_code == 0
    before = Path("bad.jsonl").read_bytes()
    result = call(promote, "last", "q1", "q2", "--to", "bad.jsonl")
    assert result.exit_code == 3
    assert result.output == "Error: bad.jsonl has a case 'q2' already: --as gives this one another id\n"
    assert Path("bad.jsonl").read_bytes() == before
    assert call(promote, "last", "q2", "--to", "bad.jsonl", "--as", "q2 again").exit_code == 0
    assert [line["id"] for line in lines()] == ["q2", "q2 again"]


def test_a_position_that_serves_as_an_id_is_taken_too(call, run_id):
    Path("bad.jsonl").write_text('{"query": "I am case-1"}\n')
    assert "has a case 'case-1' already" in call(promote, "last", "q1", "--to", "bad.jsonl", "--as", "case-1").output


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("last", "q11"), 3, "has no case 'q11'; did you mean 'q1'?"),
        (("last", "q1", "unheard-of"), 3, "has no case 'unheard-of'\n"),
        (("nightly", "q1"), 3, "no run is called 'nightly'"),
        (("last", "q1", "--store", "other.db"), 3, "no runs are kept in other.db yet"),
        (("last", "q1", "q2", "--expected", "x"), 2, "--expected is for one case; received 2 cases"),
        (("last", "q1", "q2", "--as", "x"), 2, "--as is for one case; received 2 cases"),
        (("last", "q1", "--as", " "), 2, "must not be empty"),
        (("last", "q1", "q1"), 2, "case 'q1' is named twice"),
        (("last", "q1", "--to", "bad.csv"), 2, "must be a .jsonl or .ndjson file; received 'bad.csv'"),
        (("last", "q1", "--to", "bad.jsonl.gz"), 2, "must be a .jsonl or .ndjson file; received 'bad.jsonl.gz'"),
        (("last", "q1", "--to", "no/such/bad.jsonl"), 3, "cannot write no/such/bad.jsonl: no such file or directory"),
        (("last",), 2, "Missing argument 'CASE…'"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(call, run_id, arguments, code, told):
    options = () if "--to" in arguments else ("--to", "bad.jsonl")
    result = call(promote, *arguments, *options)
    assert result.exit_code == code
    assert told in result.output
    assert {path.name for path in Path().iterdir()} == {".agentunit"}


def test_a_dataset_that_cannot_be_read_is_left_alone(call, run_id):
    Path("bad.jsonl").write_text('{"query": "fine"}\n{"query": ')
    result = call(promote, "last", "q1", "--to", "bad.jsonl")
    assert result.exit_code == 3
    assert "nothing was added: " in result.output
    assert "bad.jsonl, line 2: not JSON" in result.output
    assert Path("bad.jsonl").read_text() == '{"query": "fine"}\n{"query": '
    assert not list(Path().glob("*.part"))


def test_two_at_once_do_not_lose_a_case(call, run_id):
    Path("bad.jsonl.part").touch()
    result = call(promote, "last", "q1", "--to", "bad.jsonl")
    assert result.exit_code == 3
    assert "another 'agentunit promote' is writing" in result.output
    assert not Path("bad.jsonl").exists()
    assert Path("bad.jsonl.part").exists()


def test_a_write_that_fails_leaves_the_old_dataset(call, tmp_path, monkeypatch):
    target = tmp_path / "bad.jsonl"
    target.write_text('{"id": "mine"}\n')

    def no_space(source, goal):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agentunit.addons.review.promote_command.os.replace", no_space)
    with pytest.raises(ClickException, match=r"cannot write .*bad\.jsonl: no space left on device"):
        append_cases(target, [DatasetCase("new", "q")])
    assert target.read_text() == '{"id": "mine"}\n'
    assert not list(tmp_path.glob("*.part"))


def test_a_case_of_an_exported_run(call, run_id):
    with Store() as store:
        export_run(store, run_id, "run.json")
    assert call(promote, "run.json", "q1", "--to", "bad.jsonl", "--store", "unused.db").exit_code == 0
    assert lines()[0]["metadata"]["promoted_from"]["run"] == run_id
    assert not Path("unused.db").exists()


def test_a_promoted_case_can_be_promoted_again(call, run_id):
    call(promote, "last", "q1", "--to", "bad.jsonl")
    (case,) = load_dataset("bad.jsonl")
    with Store() as store:
        header = store.create_run("later", agentunit_version="0", settings={})
        record = Record(case, TraceLog(), Outcome(output="Nice"))
        add_record(store, header.id, 0, 0, record, failed=False, elapsed_s=0.1)
    call(promote, "later", "q1", "--to", "again.jsonl")
    assert lines("again.jsonl")[0]["metadata"]["promoted_from"] == {"run": header.id, "output": "Nice", "scores": {}}


def test_the_name_of_a_folder_says_nothing_to_a_ci_log(invoke):
    result = invoke("init", "a\n::error::x")
    assert result.exit_code == 0, result.output
    assert not [line for line in result.stdout.splitlines() if line.startswith("::")]
    assert (Path("a\n::error::x") / "suite.py").exists()
