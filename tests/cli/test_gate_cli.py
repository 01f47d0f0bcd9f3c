from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from kept_records import add_record

from agentunit.cli.compare import compare
from agentunit.cli.export import export
from agentunit.cli.show import show
from agentunit.core.codec import decode_record
from agentunit.core.results import MetricResult, Score
from agentunit.store.opening import DEFAULT_PATH
from agentunit.store.portable import export_run
from agentunit.store.sqlite import Store

GATES = ["tool_success >= 0.8", "exact_match all == 1"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.delenv("AGENTUNIT_STORE", raising=False)


def invoke(command, *arguments):
    return CliRunner().invoke(command, [str(each) for each in arguments])


def make_run(name, metrics, *, settings=None, n_failed=0, path=DEFAULT_PATH, status="ok"):
    """Put a run into the store: by metric, one value a case; None is an error."""
    n_cases = len(next(iter(metrics.values())))
    with Store(path) as store:
        header = store.create_run(name, agentunit_version="0", settings=settings or {}, n_planned=n_cases)
        for position in range(n_cases):
            record = decode_record(b'{"case": {"id": "q%d"}, "outcome": "x"}' % position)
            add_record(store, header.id, position, 0, record, failed=position < n_failed, elapsed_s=0.1)
            scores = {
                metric: Score(
                    MetricResult(metric, values[position], {} if values[position] is not None else {"reason": "boom"}),
                    "error" if values[position] is None else status,
                    "trace",
                    "1",
                    0.0,
                )
                for metric, values in metrics.items()
            }
            store.add_scores(header.id, position, 0, scores)
        store.set_status(header.id, "finished")
    return header.id


PERFECT = {"tool_success": [1.0] * 80, "exact_match": [1.0] * 80}


# show --gate


def gate(*arguments):
    """Decide by the gates that are named, or by those of the run."""
    has_gate = {"-g", "--gate"} & set(arguments)
    return invoke(show, *arguments, *(() if has_gate else ("--gate", "stored")))


def test_the_stored_gates_decide():
    run_id = make_run("good", PERFECT, settings={"gates": GATES})
    result = gate()
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert any(line.startswith("tool_success >= 0.8") and " met " in line and "80/80" in line for line in lines)
    assert any("80 of 80" in line and "every value is == 1" in line for line in lines)
    assert "PASS: 2 gates met" in result.output
    assert lines[-1] == f"next: agentunit show {run_id}"


def test_a_failed_gate_names_the_cases_and_the_next_command():
    values = {"tool_success": [1.0] * 80, "exact_match": [1.0] * 17 + [0.0] + [1.0] * 61 + [0.5]}
    run_id = make_run("bad", values, settings={"gates": GATES})
    result = gate("bad")
    assert result.exit_code == 1
    assert "2 of 80 values are not == 1: q17, q79" in result.output
    assert "FAIL: 2 wrong (q17, q79: 0, needs 1); exact_match all == 1: 2 of 80 values are not == 1" in result.output
    assert result.output.splitlines()[-1] == f"next: agentunit show {run_id} q17"


def test_gates_of_the_command_line_take_their_place():
    make_run("run", PERFECT, settings={"gates": ["tool_success > 1"]})
    assert gate().exit_code == 1
    assert gate("last", "--gate", "tool_success >= 1", "-g", "exact_match min == 1").exit_code == 0


def test_a_bad_expression_is_a_usage_error():
    make_run("run", PERFECT)
    result = gate("last", "--gate", "tool_success => 1")
    assert result.exit_code == 2
    assert "did you mean 'tool_success >= 1'?" in result.output


def test_nothing_to_decide_is_a_usage_error():
    make_run("run", PERFECT)
    result = gate()
    assert result.exit_code == 2
    assert "has no gates: give some with --gate, or a --baseline" in result.output


def test_errors_beyond_the_allowance():
    values = {"tool_success": [1.0] * 78 + [None] * 2}
    make_run("errors", values, settings={"gates": ["tool_success >= 0.8"], "max_errors": 3}, n_failed=1)
    assert gate().exit_code == 0  # one failed case and two error scores, three allowed
    result = gate("last", "--max-errors", 2)
    assert result.exit_code == 3
    assert "ERRORS: failed cases and scores: 3, allowed: 2" in result.output
    assert gate("last", "--max-errors", 0, "-g", "tool_success <= 0.5").exit_code == 1


def test_coverage_of_the_run_or_of_the_command_line():
    make_run("gaps", {"tool_success": [1.0] * 60 + [None] * 20}, settings={"gates": GATES[:1], "min_coverage": 0.7})
    assert gate("last", "--max-errors", 20).exit_code == 0
    result = gate("last", "--max-errors", 20, "--min-coverage", 0.9)
    assert result.exit_code == 1
    assert "only 60 of 80 records scored, 90% are needed" in " ".join(result.output.split())
    assert gate("last", "--min-coverage", 90).exit_code == 2


def test_json_has_everything():
    values = {"tool_success": [1.0] * 79 + [0.0]}
    run_id = make_run("run", values)
    result = gate("last", "-g", "tool_success all == 1", "--baseline", "last", "--json")
    assert result.exit_code == 1
    data = json.loads(result.output)
    assert (data["run"], data["exit_code"], data["n_errors"], data["max_errors"]) == (run_id, 1, 0, 0)
    (verdict,) = data["gates"]
    assert (verdict["expression"], verdict["verdict"]) == ("tool_success all == 1", "fail")
    assert (verdict["cases"], verdict["coverage"], verdict["n_scored"]) == (["q79"], 1.0, 80)
    assert data["comparison"]["metrics"][0]["verdict"] == "no change"


def test_an_exported_file_needs_no_store():
    run_id = make_run("elsewhere", PERFECT, settings={"gates": GATES}, path="elsewhere.db")
    with Store("elsewhere.db") as store:
        export_run(store, run_id, "main.json")
    result = gate("main.json", "--baseline", "main.json")
    assert result.exit_code == 0, result.output
    assert "next: agentunit show main.json" in result.output
    assert not Path(DEFAULT_PATH).exists()


def test_against_a_baseline_file():
    worse = {"tool_success": [1.0] * 60 + [0.0] * 20, "exact_match": [1.0] * 80}
    base = make_run("base", PERFECT, settings={"gates": ["tool_success >= 0.7"]})
    with Store() as store:
        export_run(store, base, "main.json.gz")
    run_id = make_run("new", worse, settings={"gates": ["tool_success >= 0.7"]})
    assert gate("new").exit_code == 0
    result = gate("new", "--baseline", "main.json.gz")
    assert result.exit_code == 1
    # A rate of tools that worked is no check: it speaks of the run, and of no case.
    assert "FAIL: tool_success 0.75, was 1 (p < 0.001)" in result.output
    assert result.output.splitlines()[-1] == f"next: agentunit show {run_id}"
    assert gate("new", "--baseline", "main.json.gz", "--metrics", "exact_match").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nope"], 3, "no run is called 'nope'"),
        (["last", "--store", "none.db"], 3, "no runs are kept in none.db yet"),
        (["last", "--baseline", "nope", "-g", "tool_success >= 0"], 3, "no run is called 'nope'"),
        (["last", "--baseline", "last", "--margin", "x"], 2, "margin: must be a number above 0"),
        (["last", "--baseline", "last", "--margin", "nope=0.1"], 2, "margin must name metrics of the runs"),
        (["last", "--baseline", "last", "--margin", "0.1", "--margin", "tool_success=1%"], 2, "received both"),
        (["last", "--baseline", "last", "--alpha", "2"], 2, "alpha must be above 0"),
    ],
)
def test_mistakes_are_one_line(arguments, code, words):
    make_run("run", PERFECT)
    result = gate(*arguments)
    assert result.exit_code == code
    assert words in result.output
    assert "Traceback" not in result.output


def test_a_file_that_is_no_run():
    make_run("run", PERFECT)
    Path("x.json").write_text("{}")
    result = gate("x.json", "-g", "tool_success >= 0")
    assert result.exit_code == 3
    assert "x.json is not an exported run" in result.output


def test_the_store_of_the_environment(monkeypatch):
    make_run("run", PERFECT, settings={"gates": GATES}, path="here.db")
    monkeypatch.setenv("AGENTUNIT_STORE", "here.db")
    assert gate().exit_code == 0


def test_hostile_names_do_not_reach_the_terminal():
    make_run("run", {"tool_success": [0.0] * 80, "x\x1b[2J": [1.0] * 80})
    result = gate("last", "-g", "tool_success >= 1", "-g", "nope >= 1", "--baseline", "last")
    assert "\x1b[2J" not in result.output


# compare


def test_compare_says_which_is_which():
    base = make_run("base", PERFECT)
    new = make_run("new", {"exact_match": [0.0] * 20 + [1.0] * 60, "tool_success": [1.0] * 80})
    result = invoke(compare, "base", "new")
    assert result.exit_code == 1
    # By name; the end of the id joins it where the name does not tell them apart.
    assert "Against the baseline base → new: 80 cases in both" in result.output
    again = make_run("base", PERFECT)
    twice = invoke(compare, base, again).output
    assert f"Against the baseline base ({base[-4:]}) → base ({again[-4:]}): 80 cases in both" in twice
    assert invoke(compare, base[-4:], new[-4:]).exit_code == 1
    lines = result.output.splitlines()
    row = next(line for line in lines if line.startswith("exact_match ↑"))
    assert row.split()[:4] == ["exact_match", "↑", "1.00", "0.75"]
    assert "-0.250 [" in row
    assert "regression" in row
    assert "FAIL: 20 newly failing, more than chance makes (q0, q1, q2, q3 and 16 more: 0, needs 1); " in result.output
    # Files of two runs hold no agent that could be asked again.
    assert lines[-1] == f"next: agentunit show {new} q0"
    swapped = invoke(compare, "new", "base")
    assert swapped.exit_code == 0
    assert "PASS: nothing broken against new; 20 fixed (q0, q1, q2, q3 and 16 more)" in swapped.output


def test_a_run_against_itself_did_not_change():
    make_run("base", {"tool_success": [1.0] * 3})
    result = invoke(compare, "last", "last")
    assert result.exit_code == 0
    assert "PASS: no change from base" in result.output


def test_several_runs_against_the_first():
    make_run("base", {"exact_match": [1.0] * 80})
    make_run("same", {"exact_match": [1.0] * 80})
    make_run("worse", {"exact_match": [0.0] * 20 + [1.0] * 60})
    result = invoke(compare, "base", "same", "worse")
    assert result.exit_code == 1
    lines = [line.split() for line in result.output.splitlines()]
    assert ["exact_match", "1.00", "1.00", "no", "change", "0.75", "regression"] in lines
    assert ["q0", "ok", "ok", "newly", "failing"] in lines
    assert "worse: FAIL: 20 newly failing, more than chance makes (q0, q1, q2, q3 and 16 more" in result.output
    assert "… and 10 more cases (--why shows them)" in result.output
    assert "\nq19 " not in result.output
    assert "\nq19 " in invoke(compare, "base", "same", "worse", "--why").output
    assert result.output.splitlines()[-1] == "next: agentunit export same worse --baseline base --to report.html"
    data = json.loads(invoke(compare, "base", "same", "worse", "--json").output)
    assert [each["exit_code"] for each in data["comparisons"]] == [0, 1]
    assert (data["exit_code"], data["comparisons"][0]["comparison"]["alpha"]) == (1, 0.005)
    by_case = [each["comparison"]["cases"] for each in data["comparisons"]]
    assert [of_run["q0"]["kind"] for of_run in by_case] == ["unchanged", "newly failing"]
    assert (by_case[1]["q0"]["ok_before"], by_case[1]["q0"]["ok_now"], by_case[1]["q0"]["check"]) == (
        True,
        False,
        "exact_match",
    )
    assert invoke(compare, "base", "same", "same").exit_code == 0
    assert "name at least two runs" in invoke(compare, "base").output


def test_what_newly_fails_and_may_be_chance_is_named_with_the_command_that_tells():
    base = make_run("base", {"exact_match": [1.0] * 9 + [0.0]})
    new = make_run("new", {"exact_match": [0.0] + [1.0] * 9})
    for command, runs in ((compare, ["base", "new"]), (show, ["new", "--baseline", "base"])):
        result = invoke(command, *runs)
        assert result.exit_code == 4
        assert "CANNOT TELL: 1 newly failing, not tried to the end (q0: 0, needs 1)" in result.output
        assert f"agentunit rerun {new} --newly-failing --suite SUITE --baseline {base}" in result.output
        # A small suite is no reason of its own not to tell.
        assert "too few" not in result.output


@pytest.mark.parametrize("unsure", ["pass", "fail", "by-case"])
def test_what_counted_where_nothing_could_be_told_is_accepted_with_a_note(unsure):
    make_run("base", PERFECT)
    for command, runs in ((compare, ["base", "base"]), (show, ["base", "--baseline", "base"])):
        result = invoke(command, *runs, "--unsure", unsure)
        assert result.exit_code == 0
        assert f"note: --unsure {unsure} has no effect any more" in result.stderr
    assert "--unsure" not in invoke(compare, "--help").output


def test_informational_metrics_are_shown_but_do_not_count():
    for name, value in (("base", 1.0), ("new", 0.0)):
        make_run(name, {"faithfulness": [value] * 80}, status="informational")
    result = invoke(compare, "base", "new")
    assert result.exit_code == 4
    assert "faithfulness ↑ i" in result.output
    assert "CANNOT TELL: no check and no gate says what must not get worse; --on METRIC names some" in result.output
    for option in ("-m", "--on"):
        assert invoke(compare, "base", "new", option, "faithfulness").exit_code == 1


def test_a_margin_on_the_command_line():
    source = random.Random(4)
    old = [source.uniform(0.01, 0.02) for _ in range(300)]
    make_run("base", {"cost": old})
    make_run("new", {"cost": [1.04 * value for value in old]})
    assert invoke(compare, "base", "new").exit_code == 4, "nothing says that the cost matters"
    # Whoever says how much more it may cost asks that it is tested.
    result = invoke(compare, "base", "new", "--margin", "cost=2%")
    assert result.exit_code == 1
    assert "cost: worse by" in result.output
    assert invoke(compare, "base", "new", "--margin", "cost=10%").exit_code == 0
    assert invoke(compare, "base", "new", "--on", "cost").exit_code == 1


def test_compare_as_json():
    make_run("base", PERFECT)
    make_run("new", PERFECT)
    data = json.loads(invoke(compare, "base", "new", "--json").output)
    assert data["exit_code"] == 0
    assert [each["metric"] for each in data["comparison"]["metrics"]] == ["exact_match", "tool_success"]
    assert data["comparison"]["n_paired"] == 80


@pytest.mark.parametrize("command", [show, compare])
def test_help_says_what_the_exit_codes_mean(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert "Exit codes" in result.output
    if command is compare:
        assert "BASE NEW" in result.output
        assert "the old run first" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((show, "last", "-g", "tool_sucess >= 0.8"), "has no scores of 'tool_sucess'; did you mean 'tool_success'?"),
        ((show, "last", "-g", "cost <= 1"), "has no scores of 'cost'; it has tool_success: 'agentunit score 20"),
        ((show, "last", "-g", "cost <= 1"), " --metrics cost' adds them"),
        ((show, "last", "-g", "tool_success[trac] >= 0.8"), "was not scored by 'trac'; did you mean 'trace'?"),
        (
            (show, "last", "--baseline", "last", "-m", "tool_sucess"),
            "received 'tool_sucess'; did you mean 'tool_succes",
        ),
        ((compare, "last", "last", "-m", "tool_sucess"), "received 'tool_sucess'; did you mean 'tool_success'?"),
        ((compare, "last", "last", "-m", "tool_success[trac]"), "'tool_success[trac]'; did you mean 'trace'?"),
        ((compare, "last", "last", "--margin", "tool_sucess=0.1"), "'tool_sucess'; did you mean 'tool_success'?"),
        ((export, "last", "--to", "run.md", "-g", "tool_sucess >= 0.8"), "did you mean 'tool_success'?"),
        ((export, "last", "--to", "run.xml", "-g", "tool_success[trac] >= 0.8"), "did you mean 'trace'?"),
    ],
)
def test_a_misspelt_name_is_a_usage_error_with_the_nearest_one(arguments, sentence):
    make_run("desk", {"tool_success": [1.0] * 5})
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert sentence in " ".join(result.stderr.split())


def test_gates_of_the_run_itself_cannot_be_answered_without_their_metric():
    make_run("desk", {"tool_success": [1.0] * 5}, settings={"gates": ["exact_match all == 1"]})
    assert gate("last").exit_code == 3


def test_a_file_of_traces_becomes_a_run_with_the_metrics_of_its_gates():
    lines = [
        json.dumps(
            {
                "case": {"id": f"q{number}", "query": "?"},
                "trace": {"events": [{"type": "tool_call", "payload": {"name": "t", "status": status}}]},
                "outcome": {"output": "x", "elapsed_s": 0.5},
            }
        )
        for number, status in enumerate(["success"] * 9 + ["error"])
    ]
    Path("traces.jsonl").write_text("\n".join(lines))
    result = gate("traces.jsonl", "--gate", "tool_success >= 0.8", "--gate", "response_time max <= 1")
    assert result.exit_code == 0, result.output
    assert "PASS: 2 gates met" in result.output
    assert gate("traces.jsonl", "--gate", "tool_success all == 1").exit_code == 1
    # The same records are one run, however often they are named.
    with Store(DEFAULT_PATH) as store:
        assert len(store.runs()) == 1
    written = invoke(export, "traces.jsonl", "--gate", "tool_success all == 1", "--to", "comment.md")
    assert written.exit_code == 1, written.output
    assert Path("comment.md").read_text(encoding="utf-8").startswith("### `traces.jsonl`: ❌ FAIL\n")
    assert gate("traces.jsonl", "--gate", "tool_success >=").exit_code == 2


# what a gate names


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("tool_sucess >= 0.9", "no metric is called 'tool_sucess'; did you mean 'tool_success'?"),
        ("faithfulness[lexicl] >= 0.9", "faithfulness has no backend 'lexicl'; did you mean 'lexical'?"),
    ],
)
@pytest.mark.parametrize("command", [(show,), (export, "--to", "report.md")])
def test_a_slip_in_a_gate_is_refused_before_traces_become_a_run(command, expression, said):
    Path("traces.jsonl").write_text('{"case": {"id": "q1"}, "outcome": "x"}\n')
    verb, *more = command
    result = invoke(verb, "traces.jsonl", "--gate", expression, *more)
    assert result.exit_code == 2
    assert f"Invalid value for --gate: gate '{expression}': {said}" in result.stderr
    assert [each.name for each in Path().iterdir()] == ["traces.jsonl"]


@pytest.mark.parametrize("option", [("-m", "cost"), ("--on", "cost"), ("--margin", "0.1")])
def test_what_is_compared_needs_a_baseline(option):
    make_run("good", PERFECT, settings={"gates": GATES})
    result = gate("last", *option)
    assert result.exit_code == 2
    assert "is compared with --baseline RUN, and there is none" in result.stderr


def test_a_gate_that_covers_too_little_says_how_to_ask_for_less():
    records = [
        {
            "case": {"id": f"q{at}", "expected_output": "x"},
            "outcome": {"output": "x" if at % 3 == 0 else None},
        }
        for at in range(9)
    ]
    Path("traces.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    result = gate("traces.jsonl", "--gate", "exact_match >= 0.9", "--json")
    assert result.exit_code == 1
    decided = json.loads(result.stdout)
    assert decided["decision"]["headline"] == "FAIL: exact_match >= 0.9: only 3 of 9 records scored, 80% are needed"
    advised = decided["gates"][0]["reason"].rpartition("if the others need no score: ")[2].strip("'")
    assert advised == "exact_match >= 0.9 coverage 0.33"
    assert gate("traces.jsonl", "--gate", advised).exit_code == 0
    missed = gate("traces.jsonl", "--gate", "exact_match < 0.5")
    assert "need no score" not in missed.output


def test_records_to_which_a_metric_does_not_apply_are_not_missing():
    records = [
        {"case": {"id": f"q{at}"}, "trace": {"events": [USED] if at % 3 == 0 else []}, "outcome": {"output": "x"}}
        for at in range(9)
    ]
    Path("traces.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    result = gate("traces.jsonl", "--gate", "tool_success >= 0.9")
    assert result.exit_code == 0
    assert " 3/3 " in result.output


USED = {"type": "tool_call", "payload": {"name": "look", "status": "success"}}


def test_export_prints_the_verdict_that_it_writes():
    make_run("bad", {"tool_success": [0.0, 1.0]}, settings={"gates": ["tool_success all == 1"]})
    sentence = "FAIL: 1 wrong (q0: 0, needs == 1); tool_success all == 1: 1 of 2 values are not == 1"
    for target in ("report.md", "junit.xml", "run.html"):
        result = invoke(export, "last", "--to", target)
        assert result.exit_code == 0
        assert result.stderr.splitlines()[-1] == sentence, target
    assert invoke(export, "last", "--to", "-", "-f", "markdown").stderr.splitlines()[-1] == sentence
    assert invoke(export, "last", "--to", "scores.csv").stderr == ""


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("tool_success >= 90", "; did you mean 'tool_success >= 0.9'?"),
        ("tool_success all == 100", "; did you mean 'tool_success all == 1'?"),
        ("tool_success p95 <= 90", "; did you mean 'tool_success p95 <= 0.9'?"),
        ("tool_success > 1", "; did you mean 'tool_success >= 1'?"),
        ("tool_success <= -1", ""),
    ],
)
def test_a_threshold_outside_of_the_metrics_range_is_refused(expression, hint):
    make_run("main", PERFECT)
    result = gate("last", "--gate", expression)
    assert result.exit_code == 2
    assert f"lie between 0 and 1{hint}" in result.output


@pytest.mark.parametrize("expression", ["tool_success >= 0", "tool_success sum >= 80", "mine >= -5", "mine <= 90"])
def test_a_threshold_is_refused_only_where_the_range_is_known_and_closed(expression):
    make_run("main", {**PERFECT, "mine": [1.0] * 80})
    assert gate("last", "--gate", expression).exit_code == 0
