"""``agentunit doctor`` on suites, datasets, tests of other tools, runs and records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentunit.cli.main import cli

CASES = [
    {"id": "q1", "query": "Capital of Italy?", "expected_output": "Rome", "metadata": {"regex": "^rome$"}},
    {"id": "q2", "query": "Capital of Spain?", "expected_output": "Madrid", "metadata": {"regex": "Madrid"}},
]


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return lambda *arguments: CliRunner().invoke(cli, [str(each) for each in arguments])


def _write_lines(path: str, rows: list[dict]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def _record(case: dict, answer: str | None, error: str | None = None) -> dict:
    return {"case": case, "outcome": {"output": answer, "error": error}}


def test_a_dataset_is_examined_with_evidence_and_effect(invoke):
    _write_lines("cases.jsonl", CASES)
    result = invoke("doctor", "cases.jsonl")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "2 cases: 1 warning about the test itself" in text
    assert "The expected answer fails the check of its own case: 1 case" in text
    assert "q1 the expected answer 'Rome' fails regex: pattern ^rome$" in text
    assert "up to 0.50 of a pass rate depends on it; correct the expected answer or the check" in text


def test_cases_of_several_tests_are_told_apart(invoke):
    _write_lines("one.jsonl", CASES)
    _write_lines(
        "two.jsonl", [{**CASES[0], "query": "Where is the Pope?"}, {**CASES[1], "query": "Where is the king?"}]
    )
    found = json.loads(invoke("doctor", "one.jsonl", "two.jsonl", "--json").stdout)
    assert found["n_cases"] == 4
    (warning,) = found["warnings"]
    assert (warning["cases"], warning["effect"]["share"]) == (["q1", "q1 (two.jsonl)"], 0.5)


def test_json_has_every_case_and_figures(invoke):
    _write_lines("cases.jsonl", CASES)
    found = json.loads(invoke("doctor", "cases.jsonl", "--json").stdout)
    (warning,) = found["warnings"]
    assert warning["check"] == "fails_own_check"
    assert warning["cases"] == ["q1"]
    assert warning["effect"] == {"share": 0.5, "rate": None, "rate_without": None, "n_runs": 0, "n_tried": None}
    assert found["n_cases"] == 2
    assert found["not_examined"]


def test_a_python_suite_and_a_yaml_suite_without_an_agent(invoke):
    _write_lines("cases.jsonl", CASES)
    Path("suite.py").write_text(
        "from agentunit import Suite\nsuite = Suite(dataset='cases.jsonl', agent=str, metrics=['exact_match'])\n"
    )
    Path("suite.yaml").write_text("dataset: cases.jsonl\nagent:\nmetrics: [exact_match]\n")
    for suite in ("suite.py", "suite.yaml"):
        found = json.loads(invoke("doctor", suite, "--json").stdout)
        assert found["graded_by"] == ["exact_match"]
        assert [(each["check"], each["title"].rpartition(": ")[2]) for each in found["warnings"]] == [
            ("unchecked", "regex")
        ]


def test_tests_of_another_tool_are_examined(invoke):
    Path("promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n"
        "  - vars: {q: 'Reset my password'}\n    assert: [{type: icontains, value: password}]\n"
    )
    result = invoke("doctor", "promptfooconfig.yaml", "--json")
    assert result.exit_code == 0, result.output
    assert "null_agent" in [each["check"] for each in json.loads(result.stdout)["warnings"]]
    goldens = [{"input": f"{number}?", "expected_output": str(number or "")} for number in range(3)]
    Path("goldens.json").write_text(json.dumps(goldens))
    found = invoke("doctor", "goldens.json", "--json")
    assert found.exit_code == 0, found.output
    assert "empty_expectation" in [each["check"] for each in json.loads(found.stdout)["warnings"]]


def test_record_files_are_runs_of_different_agents(invoke):
    easy = [{"id": f"e{n}", "query": f"What is {n}?", "expected_output": str(n)} for n in range(4)]
    hard = {"id": "hard", "query": "Capital of Australia?", "expected_output": "Sydney"}
    for name in ("a", "b", "c"):
        rows = [_record(case, case["expected_output"]) for case in easy[:3]]
        rows.append(_record(easy[3], None, "RateLimitError: 429 Too Many Requests" if name == "c" else None))
        rows.append(_record(hard, "Canberra"))
        _write_lines(f"{name}.jsonl", rows)
    result = invoke("doctor", "a.jsonl", "b.jsonl", "c.jsonl", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["n_cases"] == 15
    warnings = {each["check"]: each for each in found["soundness"]["warnings"]}
    assert warnings["agreed_otherwise"]["cases"] == ["hard"]
    assert warnings["everyone_fails"]["cases"] == ["hard"]
    assert warnings["infrastructure_death"]["cases"] == ["e3"]
    assert warnings["everyone_passes"]["cases"] == ["e0", "e1", "e2"]
    assert warnings["everyone_fails"]["effect"]["rate_without"] > warnings["everyone_fails"]["effect"]["rate"]
    printed = invoke("doctor", "a.jsonl", "b.jsonl", "c.jsonl")
    assert "3 of 3 agents answer 'canberra'" in " ".join(printed.stdout.split())


def test_a_file_of_several_models_and_trials_is_as_many_runs(invoke):
    rows = []
    for model in ("a", "b", "c"):
        for trial in (0, 1):
            for task in (1, 2):
                metadata = {"task_id": task, "trial": trial}
                case = {"id": f"shop/{task}/trial-{trial}", "query": f"Hi, {model} {trial}!", "metadata": metadata}
                outcome = {"output": "done", "success": task == 2}
                rows.append({"case": case, "trace": {"metadata": {"model": model}}, "outcome": outcome})
    _write_lines("sims.jsonl", rows)
    found = json.loads(invoke("doctor", "sims.jsonl", "--json").stdout)["soundness"]
    assert (found["n_cases"], found["n_runs"], found["rate"]) == (2, 3, 0.5)
    assert {each["check"]: each["cases"] for each in found["warnings"]} == {
        "everyone_fails": ["shop/1"],
        "everyone_passes": ["shop/2"],
    }


def test_cases_of_one_id_that_ask_different_things_are_told_apart(invoke):
    rows = [_record({"id": "1", "query": query, "expected_output": query}, query) for query in ("one", "two")]
    _write_lines("runs.jsonl", rows)
    found = json.loads(invoke("doctor", "runs.jsonl", "--json").stdout)["soundness"]
    assert (found["n_cases"], found["rate"]) == (2, 1.0)


def test_a_suite_with_its_runs(invoke):
    _write_lines("cases.jsonl", CASES)
    for name in ("good", "bad", "worse"):
        answer = "{'Capital of Italy?': 'Rome', 'Capital of Spain?': 'Madrid'}" if name == "good" else "{}"
        Path(f"{name}.py").write_text(
            "from agentunit import Suite\n"
            f"def agent(query):\n    return {answer}.get(query, 'no idea {name}')\n"
            f"suite = Suite(dataset='cases.jsonl', agent=agent, metrics=['regex'], name='{name}')\n"
        )
        assert invoke("run", f"{name}.py").exit_code == 1, "no gate allows a wrong case"
    result = invoke("doctor", "good.py", "good", "bad", "worse", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["n_runs"], found["pass_means"], found["graded_by"]) == (3, "regex", ["regex"])
    checks = {each["check"]: each for each in found["warnings"]}
    assert checks["everyone_fails"]["cases"] == ["q1"]
    assert checks["fails_own_check"]["effect"]["n_runs"] == 3
    assert json.loads(invoke("doctor", "last", "--json").stdout)["n_runs"] == 1


def test_records_beside_a_suite_that_cannot_be_read_are_said(invoke):
    _write_lines("cases.jsonl", CASES)
    result = invoke("doctor", "cases.jsonl", "nowhere.jsonl")
    assert result.exit_code == 3
    assert "nowhere.jsonl: no such file" in result.output
    Path("runs.jsonl").write_text(json.dumps(_record(CASES[0], "Rome")) + '\n{"case": \n')
    found = json.loads(invoke("doctor", "cases.jsonl", "runs.jsonl", "--json").stdout)
    assert found["n_runs"] == 1
    assert any("1 part of runs.jsonl that could not be read" in each for each in found["not_examined"])
    Path("empty.jsonl").write_text("")
    assert invoke("doctor", "runs.jsonl", "empty.jsonl").exit_code == 0


def test_plain_traces_are_not_taken_for_a_test(invoke):
    chat = {"messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]}
    Path("chats.jsonl").write_text((json.dumps(chat) + "\n") * 3)
    found = json.loads(invoke("doctor", "chats.jsonl", "--json").stdout)
    assert found["n_cases"] == 3
    assert found["soundness"] is None


def test_personal_data_in_the_evidence_is_masked(invoke):
    case = {
        "id": "q1",
        "query": "Mail?",
        "expected_output": "anna.smith@mail.example.com",
        "metadata": {"regex": "^x$"},
    }
    _write_lines("cases.jsonl", [case])
    assert "anna.smith" not in invoke("doctor", "cases.jsonl").stdout
    assert "anna.smith" not in invoke("doctor", "cases.jsonl", "--json").stdout
    assert "anna.smith" in invoke("doctor", "cases.jsonl", "--json", "--show-personal-data").stdout


def test_personal_data_is_masked_in_questions_that_stand_for_an_id_and_where_evidence_is_cut(invoke):
    _write_lines(
        "runs.jsonl", [_record({"query": "Is anna.smith@mail.example.com late?", "expected_output": ""}, "no")]
    )
    far = {
        "id": "q1",
        "query": "Mail?",
        "expected_output": "x " * 143 + "anna.smith@mail.example.com",
        "metadata": {"regex": "zz"},
    }
    _write_lines("cases.jsonl", [far])
    for name in ("runs.jsonl", "cases.jsonl"):
        for options in ([], ["--json"], ["--why"]):
            result = invoke("doctor", name, *options)
            assert result.exit_code == 0, result.output
            assert "anna.smith" not in result.stdout
    assert "<EMAIL_1> late?" in invoke("doctor", "runs.jsonl", "--json").stdout


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Capital of Italy?", "answer": ""},
        {"input": "Capital of Italy?", "expected": ""},
        {"id": "q1", "turns": ["Hello", "Capital of Italy?"], "expected_output": ""},
    ],
)
def test_every_spelling_of_a_dataset_is_examined(invoke, row):
    _write_lines("cases.jsonl", [row, {**row, "id": "q2"}])
    result = invoke("doctor", "cases.jsonl", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["n_cases"] == 2
    assert "empty_expectation" in {each["check"] for each in found["warnings"]}


def test_text_of_cases_cannot_steer_the_terminal(invoke):
    case = {"id": "\x1b[2Jq", "query": "a", "expected_output": "[red]\x1b[31m", "metadata": {"regex": "^x$"}}
    _write_lines("cases.jsonl", [case])
    result = invoke("doctor", "cases.jsonl")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "[red]" in result.stdout


@pytest.mark.parametrize(
    ("written", "word", "said"),
    [
        ({"cases.csv": "query,expected_output\n"}, "cases.csv", "nothing here is a case: cases.csv"),
        ({"suite.yaml": "dataset: nowhere.jsonl\nagent: x\n"}, "suite.yaml", "nowhere.jsonl: no such file"),
        ({"suite.py": "x = 1\n"}, "suite.py", "must define 'suite = Suite(…)'"),
        ({"c.jsonl": '{"id": "a", "query": "x"}\n{"id": "a", "query": "y"}\n'}, "c.jsonl", "id 'a' is taken"),
        ({}, "nothing", "nothing: no such file"),
        ({}, "last", "no runs are kept in .agentunit/runs.db yet"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(invoke, written, word, said):
    for name, text in written.items():
        Path(name).write_text(text)
    result = invoke("doctor", word)
    assert result.exit_code == 3
    assert said in result.output
    assert "Traceback" not in result.output


def test_all_shows_every_case(invoke):
    _write_lines("cases.jsonl", [{"id": f"q{n}", "query": f"{n}?", "expected_output": ""} for n in range(12)])
    short, long = invoke("doctor", "cases.jsonl"), invoke("doctor", "cases.jsonl", "--why")
    assert "… and 9 more" in short.stdout
    assert "q11" not in short.stdout
    assert "q11" in long.stdout
