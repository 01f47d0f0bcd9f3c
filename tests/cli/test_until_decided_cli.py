from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from viewer_client import report_text

from agentunit.store.sqlite import Store

SUITE = """
from agentunit import Suite

cases = [{"id": f"c{n}", "query": str(n), "expected_output": str(n)} for n in range(300)]
suite = Suite(cases, lambda query: query if int(query) % 10 >= WRONG else "no", metrics=["exact_match"], gates=GATES)
"""


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def write_suite(wrong: int, gates: tuple[str, ...] = ("exact_match >= 0.8",)) -> None:
    Path("suite.py").write_text(SUITE.replace("WRONG", str(wrong)).replace("GATES", repr(gates)))


@pytest.mark.parametrize(("wrong", "exit_code"), [(0, 0), (6, 1)])
def test_a_run_ends_when_its_gate_is_decided(invoke, wrong, exit_code):
    write_suite(wrong)
    result = invoke("run", "suite.py", "--repeats", "auto", "--seed", "1", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == exit_code
    assert data["run"]["n_done"] == data["run"]["n_planned"] < 150
    assert data["run"]["status"] == "finished"
    assert "for the population of such cases" in data["gates"][0]["reason"]
    assert data["run"]["settings"]["until_decided"]["ended"].endswith("every question is answered")


def test_a_baseline_decides_too(invoke):
    write_suite(0, ())
    assert invoke("run", "suite.py", "--name", "before").exit_code == 0
    options = ("--repeats", "auto", "--seed", "1", "--baseline", "before")
    result = invoke("run", "suite.py", *options)
    assert (result.exit_code, "or --baseline RUN with --margin" in result.stderr) == (2, True)
    # Whatever is known of the mean: every case is run once, because a case that is not run cannot be broken.
    for n_failing, exit_code in ((0, 0), (4, 1)):
        write_suite(n_failing, ())
        result = invoke("run", "suite.py", *options, "--margin", "0.1", "--json")
        assert result.exit_code == exit_code
        data = json.loads(result.stdout)
        assert data["run"]["n_done"] == 300
        assert "cases run" not in data["decision"]["headline"]


def test_without_a_question_there_is_nothing_to_decide(invoke):
    write_suite(0, ("response_time p95 <= 10",))
    result = invoke("run", "suite.py", "--repeats", "auto", "--seed", "1")
    assert result.exit_code == 2
    assert "needs a gate on the mean of a score" in result.stderr


@pytest.mark.parametrize("repeats", ["0", "many", "-1"])
def test_repeats_are_a_number_or_auto(invoke, repeats):
    write_suite(0)
    result = invoke("run", "suite.py", f"--repeats={repeats}")
    assert result.exit_code == 2
    assert "a number above 0, or auto" in result.stderr


def test_every_later_look_says_the_same_as_the_run(invoke):
    # 24 of 30 pass: just at the threshold, so that nothing is ever shown.
    suite = SUITE.replace("range(300)", "range(30)").replace("WRONG", "2").replace("GATES", "('exact_match >= 0.8',)")
    Path("suite.py").write_text(suite)
    assert invoke("run", "suite.py", "--repeats", "auto", "--seed", "1", "--name", "it").exit_code == 4
    assert invoke("show", "it", "--gate", "stored").exit_code == 4
    assert "CANNOT TELL" in invoke("show", "it").stdout
    for file in ("it.md", "it.html", "it.xml"):
        invoke("export", "it", "--to", file)
        text = report_text(file).upper()
        assert "CANNOT TELL" in text, file
    invoke("export", "it", "--to", "it.json")
    assert invoke("show", "it.json", "--gate", "stored").exit_code == 4


def test_a_comparison_keeps_the_evidence_of_the_run(invoke):
    write_suite(0, ())
    invoke("run", "suite.py", "--name", "before")
    write_suite(4, ())
    options = ("--repeats", "auto", "--seed", "1", "--baseline", "before", "--margin", "0.1")
    invoke("run", "suite.py", "--name", "after", *options)
    data = json.loads(invoke("compare", "before", "after", "--json").stdout)
    (metric,) = [each for each in data["comparison"]["metrics"] if each["metric"] == "exact_match"]
    assert (metric["verdict"], "shown after" in metric["reason"]) == ("regression", True)
    assert 0 < metric["p_adjusted"] <= 0.05
    assert "exact_match fell by" in data["comparison"]["sentence"]


def test_what_stays_open_is_not_called_answered(invoke):
    # Repeats decide about the gate, and do not about so small a loss: 30 cases do not rule it out.
    write_small(1)
    assert invoke("run", "suite.py", "--name", "before").exit_code == 0
    write_small(0)
    options = ("--repeats", "auto", "--seed", "1", "--baseline", "before", "--margin", "0.02")
    result = invoke("run", "suite.py", *options)
    assert result.exit_code == 4
    (told,) = [line for line in result.stderr.splitlines() if "questions decided" in line]
    assert "1 of 2 questions decided: every case was run as often as in the baseline; more cases would help" in told


def test_a_gate_near_its_threshold_says_so_and_what_a_number_of_repeats_would_do(invoke):
    write_small(6)
    result = invoke("run", "suite.py", "--repeats", "auto", "--seed", "1", "--json")
    reason = json.loads(result.stdout)["gates"][0]["reason"]
    assert result.exit_code == 4
    assert "mean 0.8 meets >= 0.8" in reason
    assert "the mean is too near the threshold" in reason
    assert reason.endswith("; --repeats N instead of auto compares the mean of these cases with it")


def write_small(n_wrong: int) -> None:
    suite = SUITE.replace("range(300)", "range(30)").replace("int(query) % 10 >= WRONG", f"int(query) >= {n_wrong}")
    Path("suite.py").write_text(suite.replace("GATES", "('exact_match >= 0.8',)"))


def test_evidence_does_not_outlive_further_runs(invoke):
    write_suite(0)
    invoke("run", "suite.py", "--repeats", "auto", "--seed", "1", "--name", "it")
    result = invoke("run", "suite.py", "--resume", "it", "--repeats", "1", "--json")
    assert "until_decided" not in json.loads(result.stdout)["run"]["settings"]


KILLED = """
import os, random, signal, threading
from agentunit import MetricResult, Suite

one_at_a_time = threading.Lock()


def die_at(name, n):
    \"\"\"Kill this process, once, at the nth call that gets here.\"\"\"
    with one_at_a_time:
        with open(name, "a") as file:
            file.write("x")
        if os.path.getsize(name) == n and os.environ.get("DIES_IN") == name:
            os.kill(os.getpid(), signal.SIGKILL)


def agent(query, seed):
    die_at("agent", 47)
    return query if random.Random(seed).random() < 0.9 else "no"


class Right:
    name = "right"

    def evaluate(self, case, trace, outcome):
        die_at("metric", 47)
        return MetricResult(self.name, float(outcome.output == case.query))


cases = [
    {"id": f"c{n}", "query": str(n), "expected_output": str(n), "metadata": {"customer": n // 3}} for n in range(30)
]
suite = Suite(cases, agent, metrics=["exact_match", Right()], gates=["exact_match >= 0.7"], isolation="thread", CLUSTER)
"""


def result_of(folder: Path):
    with Store(folder / ".agentunit" / "runs.db") as store:
        header = store.find_run("last")
        scores = {(row.position, row.repeat): row.value for name, row in store.score_rows(header.id) if name == "right"}
        answers = header.settings["until_decided"]["answers"]
        return header.status, store.finished(header.id) == set(scores), scores, answers


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize(
    ("dies_in", "status", "cluster"),
    [("agent", "interrupted", ""), ("metric", "stopped", "cluster='metadata.customer'")],
)
def test_a_killed_run_goes_on_with_the_evidence_it_has(invoke, monkeypatch, tmp_path, dies_in, status, cluster):
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "suite.py").write_text(KILLED.replace("CLUSTER", cluster))
    monkeypatch.chdir(tmp_path / "whole")
    assert invoke("run", "suite.py", "--repeats", "auto", "--seed", "4").exit_code == 0
    whole = result_of(tmp_path / "whole")
    monkeypatch.chdir(tmp_path / "killed")
    command = [sys.executable, "-m", "agentunit", "run", "suite.py", "--repeats", "auto", "--seed", "4"]
    killed = subprocess.run(command, env={**os.environ, "DIES_IN": dies_in}, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    found, _, before, answers = result_of(tmp_path / "killed")
    assert (found, [answer for answer, *_ in answers.values()]) == (status, [None])
    # The killed run by itself decides nothing, however good its mean looks.
    assert invoke("show", "last", "--gate", "stored").exit_code == 4
    assert invoke("run", "suite.py", "--resume", "last").exit_code == 0
    found, is_scored, scores, answers = result_of(tmp_path / "killed")
    assert (found, is_scored, answers) == ("finished", True, whole[3])
    assert before.items() <= scores.items()
    both = scores.keys() & whole[2].keys()
    assert len(both) == min(len(scores), len(whole[2]))
    assert all(scores[place] == whole[2][place] for place in both)
    # Decided is decided: taking it up once more runs nothing.
    assert invoke("run", "suite.py", "--resume", "last").exit_code == 0
    assert result_of(tmp_path / "killed")[2:] == (scores, answers)


def test_failed_cases_are_run_again_by_the_command_that_is_printed(invoke):
    write_suite(0)
    text = Path("suite.py").read_text()
    Path("suite.py").write_text(text.replace("lambda query: query", "lambda query: 1 / 0 if FAILS else query"))
    Path("suite.py").write_text("import os\nFAILS = os.path.exists('fails')\n" + Path("suite.py").read_text())
    Path("fails").touch()
    made = invoke("run", "suite.py", "--repeats", "auto", "--seed", "1", "--max-time", "60")
    (hint,) = [line for line in made.output.splitlines() if "run them again: agentunit " in line]
    Path("fails").unlink()
    again = invoke(*shlex.split(hint.split("agentunit ", 1)[1]))
    assert again.exit_code == 0, again.output
    assert "run them again" not in again.output


CAPPED = """
from agentunit import Suite


def agent(query, trace):
    trace.record("llm_call", model="m", cost=0.1)
    return query if int(query) % 10 >= WRONG else "no"


cases = [{"id": f"c{n}", "query": str(n), "expected_output": str(n)} for n in range(300)]
suite = Suite(cases, agent, metrics=["exact_match"], agent_version="1")
"""


def test_a_capped_run_goes_on_and_keeps_its_baseline(invoke):
    Path("suite.py").write_text(CAPPED.replace("WRONG", "0"))
    assert invoke("run", "suite.py", "--name", "before").exit_code == 0
    Path("suite.py").write_text(CAPPED.replace("WRONG", "4"))
    # In another order ten cases may happen to show it.
    options = ("--repeats", "auto", "--baseline", "before", "--margin", "0.1", "--seed", "4")
    first = invoke("run", "suite.py", *options, "--name", "after", "--max-cost", "1")
    assert "--resume" in first.stderr
    result = invoke("run", "suite.py", "--resume", "after", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["comparison"]["metrics"][0]["verdict"] == "regression"


def test_it_goes_on_with_the_questions_that_it_was_begun_with(invoke):
    write_suite(0)
    invoke("run", "suite.py", "--repeats", "auto", "--seed", "1", "--name", "it")
    result = invoke("run", "suite.py", "--resume", "it", "--gate", "exact_match >= 0.5")
    assert (result.exit_code, "continues with the gates and the baseline" in result.stderr) == (2, True)
    result = invoke("run", "suite.py", "--resume", "it", "--retry-failed")
    assert (result.exit_code, "does not go with a run until decided" in result.stderr) == (2, True)
    invoke("run", "suite.py", "--name", "plain", "--limit", "5")
    result = invoke("run", "suite.py", "--resume", "plain", "--repeats", "auto")
    assert (result.exit_code, "was not begun with --repeats auto" in result.stderr) == (2, True)
