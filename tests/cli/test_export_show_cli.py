from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from kept_records import add_record
from viewer_client import report_text

import agentunit
from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.cli.export import export
from agentunit.cli.runs import runs
from agentunit.cli.show import show
from agentunit.datasets.demo import demo_records
from agentunit.installation import install_command
from agentunit.store.sqlite import Store

Verb = Callable[..., Result]
VERBS = {"export": export, "runs": runs, "show": show}


def add_run(store: Store, run_id: str, records: list[Record], *, repeats: int = 1, created_at: float = 1.7e9) -> None:
    settings = {"gates": ["tool_success[trace] all == 1 coverage 0"]}
    n_planned = len(records) * repeats
    store.create_run(
        "desk", agentunit_version="1", settings=settings, n_planned=n_planned, run_id=run_id, created_at=created_at
    )
    for position, record in enumerate(records):
        for repeat in range(repeats):
            failed = record.trace.metadata.get("failure") is not None and repeat == repeats - 1
            add_record(store, run_id, position, repeat, record, failed=failed, elapsed_s=0.5)
            for case in agentunit.score([record], ["task_success", "tool_success", "faithfulness", "cost"]):
                store.add_scores(run_id, position, repeat, case.scores)
    store.set_status(run_id, "finished", finished_at=created_at + 5)


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verb:
    """Run a verb in a folder whose store holds two runs; the newer has one case, run three times."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("AGENTUNIT_STORE", raising=False)
    with Store(".agentunit/runs.db") as store:
        add_run(store, "20250101-aaaa", [each for each in demo_records() if isinstance(each, Record)])
        trace = TraceLog(metadata={"failure": "raised"})
        outcome = Outcome(success=True, output="a", error="KeyError: 'x\x1b[2J'")
        odd = Record(DatasetCase("odd\x1b[31m", "Why?", "b"), trace, outcome)
        add_run(store, "20250102-bbbb", [odd], repeats=3, created_at=1.8e9)
    return lambda name, *arguments: CliRunner().invoke(VERBS[name], [str(each) for each in arguments])


def test_runs_are_listed_the_newest_first(verb):
    result = verb("runs")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["run", "name", "when", "done", "failed", "status", "verdict", "metrics"]
    assert lines[1].startswith("20250102-bbbb")
    assert "3/3" in lines[1]
    assert lines[2].startswith("20250101-aaaa")
    assert "65/65" in lines[2]
    assert "task_success 0.9" in result.stdout
    assert lines[-1] == "next: agentunit show last"


def test_runs_as_data(verb):
    newest, oldest = json.loads(verb("runs", "--json").stdout)
    assert (newest["id"], newest["n_done"], newest["n_planned"], newest["n_failed"]) == ("20250102-bbbb", 3, 3, 1)
    assert (oldest["status"], oldest["created_at"]) == ("finished", 1.7e9)
    assert 0 < oldest["metrics"]["task_success"] < 1
    assert "faithfulness" not in oldest["metrics"]  # informational: no headline


def test_a_listing_can_be_short(verb):
    result = verb("runs", "--limit", 1)
    assert "20250101-aaaa" not in result.stdout
    assert "… and 1 older" in result.stdout


@pytest.mark.parametrize("name", ["runs", "show", "export"])
def test_without_a_store_one_line_and_no_store_is_made(verb, name):
    arguments = {"runs": [], "show": ["last"], "export": ["last", "--to", "x.md"]}[name]
    result = verb(name, *arguments, "--store", "elsewhere/runs.db")
    assert result.exit_code == 3
    assert len(result.stderr.splitlines()) == 1
    assert not Path("elsewhere").exists()


def test_a_run_is_shown_with_its_table_gates_and_worst_cases(verb):
    result = verb("show", "20250101")
    assert result.exit_code == 0, result.output
    for part in (
        "desk   run 20250101-aaaa",
        "65/65 done, finished",
        "value, 95 %",
        " of 65 cases wrong: ",
        "Gates (0 of 1 met)",
    ):
        assert part in result.stdout, part
    assert "tool_success[trace] all == 1 coverage 0" in result.stdout
    assert "FAIL" in result.stdout
    assert "next: agentunit show 20250101 desk-" in result.stdout
    assert "Worst cases" in verb("show", "20250101", "--all").stdout


def test_what_show_tells_to_do_next_works(verb):
    steps = [line.removeprefix("next: agentunit ") for line in verb("show", "20250101").stdout.splitlines()]
    steps = [line for line in steps if line.startswith(("show ", "export "))]
    (step,) = steps
    result = verb(*step.split())
    assert result.exit_code == 0, (step, result.output)


def test_a_run_with_failures_says_which(verb):
    result = verb("show", "last")
    assert "1 of 1 case flaky: KeyError: 'x·[2J'" in result.stdout


def test_a_run_as_data(verb):
    data = json.loads(verb("show", "last~1", "--json").stdout)
    assert data["run"]["id"] == "20250101-aaaa"
    assert data["summary"]["n_cases"] == 65
    assert data["gates"][0]["verdict"] == "fail"


def test_one_case_is_shown_in_full(verb):
    result = verb("show", "last~1", "desk-001")
    assert result.exit_code == 0, result.output
    for title in ("Question", "Answer", "Expected", "Context", "Tool calls", "Timeline", "Scores"):
        assert f"{title}" in result.stdout
    assert "error: carrier timeout after 8 s" in result.stdout
    (view,) = json.loads(verb("show", "last~1", "desk-001", "--json").stdout)
    assert view["case_id"] == "desk-001"
    assert {score["metric"] for score in view["scores"]} == {"task_success", "tool_success", "faithfulness", "cost"}


def test_of_a_repeated_case_the_worst_repeat_is_shown(verb):
    result = verb("show", "last", "odd\x1b[31m")
    assert result.exit_code == 0, result.output
    assert "repeat 3" in result.stdout
    assert "→ 3  the agent failed" in result.stdout
    chosen = verb("show", "last", "odd\x1b[31m", "--repeat", 2)
    assert "repeat 2" in chosen.stdout
    views = json.loads(verb("show", "last", "odd\x1b[31m", "--json").stdout)
    assert [view["repeat"] for view in views] == [1, 2, 3]


def test_no_control_character_reaches_the_terminal(verb):
    odd = "odd\x1b[31m"
    for arguments in ([], [odd], [odd, "--why"], ["od"], ["\x1b"]):
        result = verb("show", "last", *arguments)
        assert "\x1b" not in result.output, arguments
    assert "\x1b" not in verb("runs").output


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("desk-1", "desk-001"), ("desk_014", "desk-014"), ("063", "desk-063"), ("DESK-002", "desk-002")],
)
def test_an_unknown_case_suggests_the_nearest(verb, typed, meant):
    result = verb("show", "20250101-aaaa", typed)
    assert result.exit_code == 3
    assert result.stderr == f"Error: run desk (20250101-aaaa) has no case '{typed}'; did you mean '{meant}'?\n"


def test_half_a_character_is_the_name_of_no_case(verb):
    result = verb("show", "20250101-aaaa", "\udced")
    assert result.exit_code == 3
    assert "has no case '" in result.stderr


def test_mistakes_in_show_are_one_line(verb):
    for arguments, code in (
        (["nosuch"], 3),
        (["last", "zzzzzz"], 3),
        (["last", "odd\x1b[31m", "--repeat", "9"], 3),
        (["last", "--repeat", "1"], 2),
        (["last~7"], 3),
    ):
        result = verb("show", *arguments)
        assert result.exit_code == code, arguments
        assert "Traceback" not in result.output


def test_the_file_says_the_format(verb):
    written = {
        "run.xml": lambda path: ElementTree.parse(path).getroot().tag == "testsuites",
        "run.md": lambda path: Path(path).read_text().startswith("### `desk`: ❌ FAIL"),
        "run.csv": lambda path: len(list(csv.reader(io.StringIO(Path(path).read_text())))) == 65 * 4 + 1,
        "run.parquet": lambda path: pyarrow.parquet.read_table(path).num_rows == 65 * 4,
        "run.html": lambda path: Path(path).read_text().startswith("<!doctype html>"),
        "run.json": lambda path: json.loads(Path(path).read_text().splitlines()[0])["agentunit_run"] == 1,
        "RUN.JSONL": lambda path: len(Path(path).read_text().splitlines()) == 66,
        "run.json.gz": lambda path: Path(path).read_bytes().startswith(b"\x1f\x8b"),
    }
    for path, is_right in written.items():
        result = verb("export", "20250101", "--to", path)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(f"{path}: ")
        assert is_right(path), path


def test_a_format_can_be_named(verb):
    assert verb("export", "last", "--to", "report", "--format", "markdown").exit_code == 0
    assert Path("report").read_text().startswith("###")
    printed = verb("export", "last~1", "--to", "-", "--format", "csv")
    assert len(list(csv.reader(io.StringIO(printed.stdout)))) == 65 * 4 + 1
    unknown = verb("export", "last", "--to", "report.doc")
    assert unknown.exit_code == 2
    assert "report.doc" in unknown.stderr


def test_gates_can_be_given_anew(verb):
    verb("export", "last~1", "--to", "run.md", "--gate", "task_success[state] >= 0.1 coverage 0")
    assert Path("run.md").read_text().startswith("### `desk`: ✅ PASS")
    result = verb("export", "last~1", "--to", "run.md", "--gate", "task_success => 1")
    assert result.exit_code == 2
    assert "did you mean" in result.stderr


def test_a_run_goes_to_a_file_and_comes_back(verb):
    assert verb("export", "20250101", "--to", "main.json.gz").exit_code == 0
    result = verb("runs", "--import", "main.json.gz", "--as", "main")
    assert result.exit_code == 0, result.output
    assert result.stdout == "65 cases of 'desk' imported as run main   next: agentunit show main\n"
    for name in ("20250101", "main"):
        verb("export", name, "--to", f"{name}.csv")
    assert Path("main.csv").read_bytes() == Path("20250101.csv").read_bytes()


def test_an_import_into_a_new_store_makes_it(verb):
    verb("export", "20250101", "--to", "main.json")
    assert verb("runs", "--import", "main.json", "--store", "new/runs.db").exit_code == 0
    assert "65/65" in verb("runs", "--store", "new/runs.db").stdout


def test_an_import_that_cannot_be_is_one_line(verb):
    Path("notes.json").write_text("not a run")
    for arguments in (["nosuch.json"], ["notes.json"]):
        result = verb("runs", "--import", *arguments)
        assert result.exit_code == 3
        assert len(result.stderr.splitlines()) == 1
    assert verb("runs", "--import", "notes.json", "--as", " ").exit_code == 2
    assert "'agentunit init FOLDER --from FILE'" in verb("runs", "--import", "notes.json", "--as", "main").stderr
    assert verb("runs", "--as", "main").exit_code == 2


def test_a_question_about_a_run_changes_nothing_that_is_said_of_it(invoke):
    Path("suite.py").write_text(
        "from agentunit import Suite\n"
        "suite = Suite([{'id': 'q1', 'query': 'x', 'expected_output': 'a'}, {'id': 'q2', 'query': 'y',"
        " 'expected_output': 'b'}], lambda query: 'a', metrics=['exact_match'], gates=['exact_match >= 0.4'])\n"
    )
    assert invoke("run", "suite.py", "--name", "desk").exit_code == 0
    assert invoke("export", "desk", "--to", "desk.json").exit_code == 0
    kept = Path("desk.json").read_bytes()
    assert invoke("show", "desk.json", "-g", "exact_match >= 0.9").exit_code == 1
    assert Path("desk.json").read_bytes() == kept
    assert "gate, " not in invoke("show", "desk").stdout
    assert invoke("show", "desk", "-g", "exact_match >= 0.9").exit_code == 1
    sentence = "PASS: 1 gate met; 2 cases: 1 fine, 1 wrong"
    said, beside, *_, step = invoke("show", "desk").stdout.splitlines()
    assert (said, step) == (sentence, "next: agentunit show desk q2")
    assert beside.startswith("gate, ")
    assert beside.endswith(": FAIL: exact_match >= 0.9: mean 0.5 misses >= 0.9")
    (listed,) = json.loads(invoke("runs", "--json").stdout)
    assert (listed["verdict"], listed["headline"]) == ("pass", sentence)
    exported = invoke("export", "desk", "--to", "desk.xml")
    assert exported.stderr.splitlines()[-1] == sentence
    assert ElementTree.parse("desk.xml").getroot().get("failures") == "0"


def test_a_file_serves_as_a_run(verb):
    verb("export", "20250101", "--to", "main.json")
    assert "desk-001" in verb("show", "main.json", "desk-001", "--store", "no/store.db").stdout
    result = verb("export", "main.json", "--to", "main.html", "--store", "no/store.db")
    assert (result.exit_code, result.stdout) == (0, "main.html: 65 cases\n")
    assert not Path("no").exists()


def test_what_a_run_is_read_from_is_not_overwritten(verb):
    verb("export", "20250101", "--to", "main.json")
    before = Path("main.json").read_bytes()
    assert verb("export", "main.json", "--to", "main.json", "--format", "html").exit_code == 2
    assert verb("export", "last", "--to", ".agentunit/runs.db", "--format", "csv").exit_code == 2
    assert verb("export", "last", "--to", ".", "--format", "csv").exit_code == 2
    assert Path("main.json").read_bytes() == before


def test_a_file_that_cannot_be_written_is_one_line(verb):
    for name in ("no/such/run.md", "no/such/run.json", "no/such/run.html"):
        result = verb("export", "last", "--to", name)
        assert result.exit_code == 3
        assert result.stderr.startswith("Error: cannot write no/such/run.")


def test_without_pyarrow_the_hint_is_one_line(verb, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    result = verb("export", "last", "--to", "run.parquet")
    assert result.exit_code == 3
    assert result.stderr == f"Error: Parquet needs pyarrow: {install_command('parquet')}\n"


def test_the_next_command_finds_a_case_whose_id_cannot_be_printed(verb):
    with Store(".agentunit/runs.db") as store:
        hostile = Record(DatasetCase("::error file=x::pwned", "?", "b"), TraceLog(), Outcome(success=False, output="a"))
        add_run(store, "20250103-cccc", [hostile], created_at=1.9e9)
    shown = verb("show", "last")
    assert not [line for line in shown.stdout.splitlines() if line.lstrip().startswith("::")]
    assert "next: agentunit show last ': :error file=x::pwned'" in shown.stdout
    case = verb("show", "last", ": :error file=x::pwned")
    assert (case.exit_code, case.stdout.splitlines()[0][:22]) == (0, ": :error file=x::pwned")


def test_reports_mask_personal_data_unless_asked_and_a_portable_run_never_does(verb):
    with Store(".agentunit/runs.db") as store:
        leaky = Record(
            DatasetCase("q1", "Write to mia@example.com", "b"), TraceLog(), Outcome(success=False, output="a")
        )
        add_run(store, "20250103-cccc", [leaky], created_at=1.9e9)
    for name in ("run.html", "run.md"):
        verb("export", "last", "--to", name)
        masked = report_text(name)
        verb("export", "last", "--to", name, "--unmasked")
        assert ("mia@example.com" in masked, "mia@example.com" in report_text(name)) == (False, True), name
    for option in ([], ["--json"]):
        assert "mia@example.com" not in verb("show", "last", "q1", *option).stdout
        assert "mia@example.com" in verb("show", "last", "q1", *option, "--show-personal-data").stdout
    verb("export", "last", "--to", "run.json")
    assert "mia@example.com" in Path("run.json").read_text()


def test_export_compares_with_a_baseline_as_run_does(verb):
    records = [Record(DatasetCase(f"q{n}", "?"), TraceLog(), Outcome(success=True, output="a")) for n in range(40)]
    worse = [Record(each.case, each.trace, Outcome(success=False, output="a")) for each in records]
    with Store(".agentunit/runs.db") as store:
        add_run(store, "20250103-old", records, created_at=1.9e9)
        add_run(store, "20250104-new", worse, created_at=1.91e9)
    verb("export", "last", "--to", "run.md", "--gate", "cost >= 0 coverage 0", "--baseline", "20250103-old")
    text = Path("run.md").read_text()
    assert "**FAIL: 40 newly failing, more than chance makes (q0, q1, q2, q3 and 36 more: " in text
    assert "task_success 0, was 1 (p &lt; 0.001)**" in text


def test_export_takes_what_counts(verb):
    records = [Record(DatasetCase(f"q{n}", "?"), TraceLog(), Outcome(success=n > 2, output="a")) for n in range(10)]
    worse = [Record(each.case, each.trace, Outcome(success=n > 3, output="a")) for n, each in enumerate(records)]
    with Store(".agentunit/runs.db") as store:
        add_run(store, "20250103-old", records, created_at=1.9e9)
        add_run(store, "20250104-new", worse, created_at=1.91e9)

    held = ("--gate", "task_success >= 0", "--baseline", "20250103-old", "--on", "task_success")
    assert verb("export", "last", "--to", "run.md", *held).exit_code == 4
    assert Path("run.md").read_text().startswith("### `desk`: ⚠️ CANNOT TELL\n")
    assert "1 newly failing, not tried to the end (q3" in Path("run.md").read_text()
    assert verb("export", "last", "--to", "run.md", "--baseline", "20250103-old", "--on", "coast").exit_code == 2


@pytest.mark.parametrize(("gate", "code"), [("task_success >= 0.5", 0), ("task_success >= 0.9", 1)])
@pytest.mark.parametrize("target", ["comment.md", "junit.xml", "run.html"])
def test_an_export_that_decides_ends_with_its_verdict(verb, target, gate, code):
    records = [Record(DatasetCase(f"q{n}", "?"), TraceLog(), Outcome(success=n > 2, output="a")) for n in range(10)]
    with Store(".agentunit/runs.db") as store:
        add_run(store, "20250103-old", records, created_at=1.9e9)
    exported = verb("export", "last", "--gate", gate, "--to", target)
    assert exported.exit_code == code, exported.output
    assert Path(target).exists()
    # Who only wants the file is told that it was written.
    assert verb("export", "last", "--to", target).exit_code == 0


def test_a_case_of_a_record_file_is_shown_with_its_scores(invoke):
    assert invoke("convert", "demo", "--out", "traces.jsonl").exit_code == 0
    shown = invoke("show", "traces.jsonl", "desk-016", env={"AGENTUNIT_BACKEND": "lexical"})
    assert shown.exit_code == 0, shown.output
    assert "desk-016" in shown.stdout
    assert "tool_success" in shown.stdout
    wrong = invoke("show", "traces.jsonl", "desk-16")
    assert (wrong.exit_code, "did you mean 'desk-016'?" in wrong.stderr) == (3, True)
    whole = invoke("show", "traces.jsonl")
    assert (whole.exit_code, "'agentunit score traces.jsonl' scores it" in whole.stderr) == (2, True)


def test_the_command_that_score_suggests_works(invoke):
    row = {"case": {"id": "a b", "expected_output": "x"}, "outcome": "y"}
    Path("traces.jsonl").write_text(json.dumps(row) + "\n")
    scored = invoke("score", "traces.jsonl", "-m", "exact_match")
    assert scored.stdout.splitlines()[-1] == "next: agentunit show traces.jsonl 'a b'"
    assert invoke("show", "traces.jsonl", "a b").exit_code == 0


def test_the_command_that_keeps_scores_names_what_was_scored(invoke) -> None:
    Path("my traces").mkdir()
    Path("my traces", "a.jsonl").write_text(json.dumps({"case": {"id": "a"}, "outcome": "y"}) + "\n")
    last = invoke("score", "my traces", "-m", "response_time").stdout.splitlines()[-1]
    command = "agentunit score 'my traces' --metrics response_time --out scores.jsonl"
    assert last == f"next: {command} keeps every case's scores"
    invoke(*shlex.split(command)[1:])
    assert Path("scores.jsonl").exists()
    assert "scores.jsonl keeps" not in invoke("score", "my traces", "my traces/a.jsonl", "-m", "response_time").stdout


def test_a_case_of_a_folder_is_shown_by_the_command_that_score_suggests(invoke) -> None:
    Path("traces").mkdir()
    for n in range(2):
        case = {"id": f"desk-{n}16", "query": "2 + 2?", "expected_output": "4"}
        Path("traces", f"{n}.jsonl").write_text(json.dumps({"v": 1, "case": case, "outcome": {"output": "5"}}) + "\n")
    last = invoke("score", "traces", "-m", "exact_match").stdout.splitlines()[-1]
    assert last == "next: agentunit show traces desk-016"
    assert "desk-016" in invoke(*last.removeprefix("next: agentunit ").split()).stdout
    # The beginning of an id will do, where it is that of one case only.
    assert "desk-116" in invoke("show", "traces", "desk-1").stdout
    assert invoke("show", "traces", "desk-").exit_code == 3
    assert invoke("show", "traces").exit_code == 2
    # A run of that name comes first.
    Path("suite.py").write_text(
        "from agentunit import Suite\n"
        "suite = Suite([{'id': 'case-1', 'query': 'x'}], lambda query: query, metrics=['response_time'])\n"
    )
    assert invoke("run", "suite.py", "--name", "traces").exit_code == 0
    assert "case-1" in invoke("show", "traces", "case").stdout
    assert invoke("rerun", "traces", "case").exit_code == 0


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_an_id_that_cases_of_several_files_have_is_marked_and_listed_with_the_files(invoke, jobs) -> None:
    Path("runs").mkdir()
    for name, verdicts in (("a", (False, True, False)), ("b", (False, True))):
        lines = [
            json.dumps(
                {"case": {"id": str(at), "query": f"{name}{at}?"}, "outcome": {"success": verdict, "output": "x"}}
            )
            for at, verdict in enumerate(verdicts)
        ]
        Path("runs", f"{name}.jsonl").write_text("\n".join(lines))
    result = invoke("score", "runs", "-m", "tool_success,task_success", *jobs)
    assert "cases of several files have the same id" in result.output
    shown = invoke("show", "runs", "0").output
    assert "Cases with this id, of several files (--repeat N shows another)" in shown
    assert "→ 1  runs/a.jsonl: tool_success 0\n  2  runs/b.jsonl: tool_success 0\n" in shown
    assert "b0?" in invoke("show", "runs", "0", "--repeat", "2").output
    alone = invoke("score", "runs/a.jsonl", "-m", "tool_success,task_success", *jobs).output
    assert "several files" not in alone


def test_a_report_says_that_names_stay_unless_the_store_keeps_masked_text(verb):
    said = "names and addresses may be in it"
    for target in ("run.html", "run.md", "-"):
        result = verb("export", "last", "--to", target, *(("--format", "markdown") if target == "-" else ()))
        assert result.stderr.count(said) == 1
        assert "'agentunit convert last --mask --out FILE' masks the records" in result.stderr
        assert said not in result.stdout
    assert verb("export", "last", "--to", "run.json").exit_code == 0
    stderr = verb("export", "run.json", "--to", "run.html", "--store", "no/store.db").stderr
    assert (
        f"{said}: 'agentunit runs --import run.json' takes the run in, and 'agentunit convert RUN --mask --out FILE'"
        in stderr
    )
    assert said not in verb("export", "last", "--to", "scores.csv").output
    assert said not in verb("export", "last", "--to", "run.html", "--show-personal-data").output
    with Store("masked.db") as store:
        store.masking.turn_on()
        add_run(store, "20250101-cccc", [each for each in demo_records() if isinstance(each, Record)][:1])
    result = verb("export", "last", "--to", "run.html", "--store", "masked.db")
    assert (result.exit_code, said in result.output) == (0, False)
