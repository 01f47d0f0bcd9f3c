from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

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
    result = invoke("run", "suite.py", "--repeats", "auto", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == exit_code
    assert data["run"]["n_done"] == data["run"]["n_planned"] < 150
    assert data["run"]["status"] == "finished"
    assert "for the population of such cases" in data["gates"][0]["reason"]
    assert data["run"]["settings"]["until_decided"]["ended"].endswith("every question is answered")


def test_a_baseline_decides_too(invoke):
    write_suite(0, ())
    assert invoke("run", "suite.py", "--name", "before").exit_code == 0
    write_suite(4, ())
    result = invoke("run", "suite.py", "--repeats", "auto", "--baseline", "before", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["run"]["n_done"] < 150


def test_without_a_question_there_is_nothing_to_decide(invoke):
    write_suite(0, ("response_time p95 <= 10",))
    result = invoke("run", "suite.py", "--repeats", "auto")
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
    assert invoke("run", "suite.py", "--repeats", "auto", "--name", "it").exit_code == 4
    assert invoke("gate", "it").exit_code == 4
    assert "CANNOT TELL" in invoke("show", "it").stdout
    for file in ("it.md", "it.html", "it.xml"):
        invoke("export", "it", "--to", file)
        text = Path(file).read_text(encoding="utf-8").upper()
        assert "CANNOT TELL" in text, file
    invoke("export", "it", "--to", "it.json")
    assert invoke("gate", "it.json").exit_code == 4


def test_a_comparison_keeps_the_evidence_of_the_run(invoke):
    write_suite(0, ())
    invoke("run", "suite.py", "--name", "before")
    write_suite(4, ())
    invoke("run", "suite.py", "--name", "after", "--repeats", "auto", "--baseline", "before")
    data = json.loads(invoke("compare", "before", "after", "--json").stdout)
    (metric,) = [each for each in data["comparison"]["metrics"] if each["metric"] == "exact_match"]
    assert (metric["verdict"], "shown after" in metric["reason"]) == ("regression", True)
    assert 0 < metric["p_adjusted"] <= 0.05
    assert "exact_match fell by" in data["comparison"]["sentence"]


def test_evidence_does_not_outlive_further_runs(invoke):
    write_suite(0)
    invoke("run", "suite.py", "--repeats", "auto", "--name", "it")
    result = invoke("run", "suite.py", "--resume", "it", "--json")
    assert "until_decided" not in json.loads(result.stdout)["run"]["settings"]
