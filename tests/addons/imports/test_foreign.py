from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentunit.addons.imports.foreign_tests import ForeignSuite, read_foreign
from agentunit.datasets.rows import DatasetError

DATA = Path(__file__).resolve().parents[2] / "data" / "foreign"


def written(tmp_path: Path, config: Any, name: str = "promptfooconfig.yaml") -> ForeignSuite:
    (tmp_path / name).write_text(json.dumps(config))
    return read_foreign(tmp_path / name)


def of_assertion(tmp_path: Path, *assertions: Any, **test: Any) -> ForeignSuite:
    return written(tmp_path, {"prompts": ["{{q}}"], "tests": [{"vars": {"q": "?"}, "assert": assertions, **test}]})


# Row by row


@pytest.mark.parametrize("name", ["deepeval.json", "deepeval.csv", "deepeval.jsonl"])
def test_deepeval_goldens_read_alike_from_each_file(name: str) -> None:
    suite = read_foreign(DATA / name)
    first, second = suite.cases
    assert (suite.tool, first.query, first.expected_output) == (
        "DeepEval",
        "How long do refunds take?",
        "Five working days.",
    )
    assert first.context == ["Refunds take five working days.", "Returns are free."]
    assert first.metadata["expected_tool_calls"] == [{"name": "look_up_order", "arguments": {"number": "A-1"}}]
    assert first.metadata["team"] == "billing"
    assert second.context == ["A-1042 was sent on Monday."]
    assert second.extra is not None
    assert second.extra["actual_output"] == "It was sent."
    assert dict(suite.kept) == {"comments": 1, "actual_output": 1, "tools_called": 1}
    assert suite.metrics == ["answer_correctness", "faithfulness", "tool_trajectory", "response_time"]
    assert suite.grader_fields == ["context"]
    assert not suite.unmapped


def test_a_deepeval_conversation_asks_what_the_user_said() -> None:
    (case,) = read_foreign(DATA / "deepeval_conversations.json").cases
    assert (case.query, case.expected_output) == ("I want my money back", "The refund is granted.")
    assert case.metadata["user_description"] == "Impatient"


@pytest.mark.parametrize("name", ["ragas.jsonl", "ragas.csv", "ragas_testset.jsonl"])
def test_ragas_samples(name: str) -> None:
    suite = read_foreign(DATA / name)
    (case,) = suite.cases
    assert (suite.tool, case.query, case.expected_output) == (
        "RAGAS",
        "How long do refunds take?",
        "Five working days.",
    )
    assert case.context == ["Refunds take five working days.", "It's free."]
    assert suite.kept["response"] == 1
    assert case.metadata.get("synthesizer_name") == ("single_hop" if "testset" in name else None)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_table_of_a_spreadsheet(tmp_path: Path, encoding: str) -> None:
    row = "How long?;['five days' 'free'];Five days.\n"
    (tmp_path / "ragas.csv").write_bytes(f"user_input;reference_contexts;reference\n{row}".encode(encoding))
    (case,) = read_foreign(tmp_path / "ragas.csv").cases
    assert (case.query, case.expected_output, case.context) == ("How long?", "Five days.", ["five days", "free"])


def test_ragas_conversations_keep_what_was_answered_from_agents() -> None:
    (case,) = read_foreign(DATA / "ragas_turns.jsonl").cases
    assert case.query == "Where is A-1?"
    assert case.metadata["expected_tool_calls"] == [{"name": "look_up", "arguments": {"number": "A-1"}}]
    assert [each["content"] for each in case.metadata["expected_messages"]] == ["One moment.", "sent", "It was sent."]


def test_inspect_samples() -> None:
    suite = read_foreign(DATA / "inspect.jsonl")
    refund, sky, chat, box = suite.cases
    assert (refund.id, refund.expected_output, refund.metadata) == ("refund", "Five working days.", {"team": "billing"})
    assert sky.query == "What color is the sky?\nA) green\nB) blue"
    assert sky.expected_output == ["B", "blue"]
    assert (chat.query, chat.metadata["messages"][0]["content"]) == ("2 + 2?", "You are terse.")
    assert box.extra is not None
    assert box.extra["setup"] == "echo hi"
    assert dict(suite.unmapped) == {"files": 1, "setup": 1, "sandbox": 1}


def test_langfuse_items() -> None:
    suite = read_foreign(DATA / "langfuse.json")
    (case,) = suite.cases
    assert (case.id, case.query, case.expected_output) == ("i1", "Where is A-1?", "sent")
    assert case.metadata == {"inputs": {"customer": "c7"}, "team": "billing"}
    assert suite.unmapped == {"archived item": 1}


@pytest.mark.parametrize("name", ["langsmith.jsonl", "langsmith.csv"])
def test_langsmith_examples(name: str) -> None:
    suite = read_foreign(DATA / name)
    assert suite.tool == "LangSmith"
    first, *others = suite.cases
    assert (first.id, first.query, first.expected_output) == ("e1", "Where is A-1?", "sent")
    assert first.metadata == {"team": "billing"}
    assert [(each.query, each.expected_output) for each in others] == [("2 + 2?", "4")] * (name != "langsmith.csv")


def test_openai_evals() -> None:
    suite = read_foreign(DATA / "openai_evals.jsonl")
    assert (suite.tool, suite.cases[0].query, suite.cases[0].expected_output) == (
        "OpenAI evals",
        "2 + 2?",
        ["4", "four"],
    )


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.json", "[1, 2]", "neither an exported run nor tests"),
        ("x.jsonl", '{"query": "2 + 2?"}', "needs no import"),
        ("x.jsonl", '{"input": "a", "target": "b"}\n{', "line 2: not JSON"),
        ("x.yaml", "a: [", "not YAML"),
        ("x.py", "raise SystemExit", "is code, which is never run"),
        ("x.jsonl", '{"id": "a", "input": "1", "target": "2"}\n{"id": "a", "input": "1", "target": "2"}', "taken"),
    ],
)
def test_what_is_no_such_file_says_so(tmp_path: Path, name: str, content: str, says: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=says):
        read_foreign(tmp_path / name)


# promptfoo


def test_a_promptfoo_configuration_becomes_cases_metrics_and_gates() -> None:
    suite = read_foreign(DATA / "promptfoo" / "promptfooconfig.yaml")
    assert [case.id for case in suite.cases] == [
        "test-1", "test-2/vars-1", "test-2/vars-2", "test-3", "test-4", "test-5", "test-6",
    ]  # fmt: skip
    first, peru, _, sums, robot, lamp, chair = suite.cases
    assert first.query == "You work for Bright & Co.\nWhere is A-1?"
    never = {"type": "not-icontains", "value": "as an AI"}
    assert first.metadata["assertions"] == [
        never,
        {"type": "icontains", "value": "sent"},
        {"type": "regex", "value": "A-[0-9]+"},
    ]
    assert first.metadata["vars"] == {"shop": "Bright & Co", "question": "Where is A-1?"}
    assert first.metadata["expected_vars"] == {"status": "sent"}
    assert peru.metadata["assertions"][1:] == [{"type": "contains-any", "value": ["yes", "no, never"]}]
    assert (peru.metadata["rubric"], peru.expected_output) == (["is polite"], "We ship everywhere.")
    assert sums.metadata["assertions"][1:] == [{"type": "equals", "value": "4"}]
    assert sums.metadata["description"] == "sums"
    assert robot.metadata["assertions"][1:] == [{"type": "not-contains", "value": "robot"}]
    assert lamp.metadata["assertions"][1:] == [
        {"type": "is-json", "value": {"type": "object", "required": ["stock"]}},
        {"type": "cost", "threshold": 0.01},
    ]
    assert (lamp.metadata["vars"]["product"], chair.metadata["vars"]["product"]) == ("lamp", "chair")
    assert suite.gates == ["assertions all == 1", "response_time max <= 3", "rubric all == 1 coverage 0.28"]
    assert suite.metrics == [
        "assertions",
        "response_time",
        {"rubric": {"scale": ["fail", "pass"]}},
        "answer_correctness",
    ]
    assert lamp.query is not None
    assert lamp.query.endswith("Is the lamp in stock?")
    assert suite.unmapped == {"javascript": 2, "python": 2}


@pytest.mark.parametrize(
    ("assertion", "name"),
    [
        ({"type": "javascript", "value": "true"}, "javascript"),
        ({"type": "contains", "value": "file://x.py"}, "contains (its value is code or cannot be read)"),
        ({"type": "contains", "value": "file:///etc/passwd"}, "contains (its value is code or cannot be read)"),
        ({"type": "contains", "value": "file://../secret.txt"}, "contains (its value is code or cannot be read)"),
        ({"type": "contains", "value": "x", "transform": "output.trim()"}, "contains (with transform)"),
        ({"type": "contains", "value": "x", "weight": 0}, "contains (weight 0: it decides nothing)"),
        ({"type": "contains"}, "contains (its value is not text)"),
        ({"type": "regex", "value": "(?=x)y(?<!z)"}, "regex (its pattern needs look-around or back references)"),
        ({"type": "cost"}, "cost (it has no threshold)"),
        ({"type": "not-llm-rubric", "value": "rude"}, "not-llm-rubric"),
        ({"type": "llm-rubric", "value": "x", "rubricPrompt": "y"}, "llm-rubric (with rubricPrompt)"),
        ({"type": "equals", "value": "{{ q | upper }}"}, None),
        ({"type": "assert-set", "threshold": 0.5, "assert": [{"type": "is-json"}]}, "assert-set (with a threshold)"),
        ("contains: x", "assertion without a type"),
        ({"type": "assert-set", "assert": 5}, "assert-set (its assertions are not a list)"),
        ({"type": "assert-set", "assert": "abc"}, "assert-set (its assertions are not a list)"),
    ],
)
def test_what_does_not_map_is_counted_by_name_and_never_checked(tmp_path: Path, assertion: Any, name: str) -> None:
    (tmp_path / "x.py").write_text("raise SystemExit")
    suite = of_assertion(tmp_path, assertion)
    assert sum(suite.unmapped.values()) == 1
    assert name is None or suite.unmapped == {name: 1}
    assert "assertions" not in suite.cases[0].metadata
    assert not suite.gates


def test_sets_templates_and_defaults_are_taken_apart(tmp_path: Path) -> None:
    suite = written(
        tmp_path,
        {
            "prompts": ["{{q}}"],
            "assertionTemplates": {"polite": {"type": "llm-rubric", "value": "is polite to {{q}}", "threshold": 0.8}},
            "defaultTest": {"assert": [{"type": "contains", "value": "x"}]},
            "tests": [
                {"vars": {"q": "Ann"}, "assert": [{"$ref": "#/assertionTemplates/polite"}]},
                {
                    "vars": {"q": "Bob"},
                    "options": {"disableDefaultAsserts": True},
                    "assert": [{"type": "assert-set", "assert": [{"type": "starts-with", "value": 5}]}],
                },
            ],
        },
    )
    assert suite.cases[0].metadata["rubric_0.8"] == ["is polite to Ann"]
    assert suite.cases[1].metadata["assertions"] == [{"type": "starts-with", "value": "5"}]
    assert suite.gates == ["assertions all == 1", "rubric_0.8 all >= 0.8 coverage 0.5"]
    assert {"rubric": {"name": "rubric_0.8", "scale": [0, 10]}} in suite.metrics


def test_a_limit_that_differs_stays_with_its_case(tmp_path: Path) -> None:
    tests = [{"vars": {"q": q}, "assert": [{"type": "latency", "threshold": ms}]} for q, ms in (("a", 500), ("b", 900))]
    suite = written(tmp_path, {"prompts": ["{{q}}"], "tests": tests})
    assert [case.metadata["assertions"][0]["threshold"] for case in suite.cases] == [0.5, 0.9]
    assert suite.gates == ["assertions all == 1"]


def test_a_limit_of_every_case_is_a_gate_and_nothing_else(tmp_path: Path) -> None:
    suite = of_assertion(tmp_path, *[{"type": "cost", "threshold": 0.01}] * 2)
    assert (suite.metrics, suite.gates) == (["cost"], ["cost max <= 0.01"])
    assert "assertions" not in suite.cases[0].metadata


def test_a_limit_that_stands_twice_on_one_case_is_none_of_the_others(tmp_path: Path) -> None:
    twice = [{"type": "cost", "threshold": 0.01}] * 2
    tests = [{"vars": {"q": "a"}, "assert": twice}, {"vars": {"q": "b"}}]
    suite = written(tmp_path, {"prompts": ["{{q}}"], "tests": tests})
    assert suite.gates == ["assertions all == 1 coverage 0.5"]


@pytest.mark.parametrize(("n_cases", "gates"), [(2, ["faithfulness all >= 0.8"]), (1, [])])
def test_a_score_of_the_whole_run_is_gated_only_where_every_case_asks_for_it(
    tmp_path: Path, n_cases: int, gates: list[str]
) -> None:
    graded = [{"type": "context-faithfulness", "threshold": 0.8}]
    tests = [{"vars": {"q": "?", "context": "c"}, "assert": graded if n < n_cases else []} for n in range(2)]
    suite = written(tmp_path, {"prompts": ["{{q}}"], "tests": tests})
    assert suite.metrics == [{"faithfulness": {"backend": "judge"}}]
    assert suite.gates == gates
    assert suite.cases[0].context == ["c"]
    assert [metric for _, metric in suite.became] == [
        "faithfulness" if gates else "faithfulness, no gate: it is on 1 of 2 cases"
    ]


def test_a_transformed_output_is_not_what_the_agent_says(tmp_path: Path) -> None:
    suite = of_assertion(tmp_path, {"type": "equals", "value": "4"}, options={"transform": "output.trim()"})
    assert suite.unmapped == {"equals (the test transforms the output)": 1}


def test_answer_keys_among_the_variables_are_kept_from_agents(tmp_path: Path) -> None:
    variables = {"q": "Capital?", "right": "Paris", "Expected": "Paris", "customer": "c7"}
    code = {"type": "javascript", "value": "output == context.vars.right"}
    suite = written(tmp_path, {"prompts": ["{{q}}"], "tests": [{"vars": variables, "assert": [code]}]})
    assert suite.cases[0].metadata == {
        "vars": {"q": "Capital?", "customer": "c7"},
        "expected_vars": {"right": "Paris", "Expected": "Paris"},
    }


def test_every_prompt_makes_a_case_and_a_chat_asks_its_last_question(tmp_path: Path) -> None:
    chat = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{q}}"}])
    suite = written(
        tmp_path, {"prompts": ["Say: {{q}}", {"raw": chat, "label": "chat"}], "tests": [{"vars": {"q": 'a"b'}}]}
    )
    plain, talk = suite.cases
    assert (plain.id, plain.query) == ("test-1/prompt-1", 'Say: a"b')
    assert (talk.metadata["prompt"], talk.id) == ("chat", "test-1/prompt-2")


def test_tests_that_lie_elsewhere_or_are_code_are_counted(tmp_path: Path) -> None:
    (tmp_path / "gen.py").write_text("raise SystemExit")
    tests = ["huggingface://datasets/x", "file://gen.py:make", "file://../other.yaml", {"vars": {"q": "1"}}]
    suite = written(tmp_path, {"prompts": ["{{q}}"], "tests": tests, "extensions": ["file://hook.js:run"]})
    assert len(suite.cases) == 1
    assert set(suite.unmapped) == {
        "setting extensions",
        "tests of huggingface://datasets/x",
        "tests of file://gen.py:make",
        "tests of file://../other.yaml",
    }


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    inside = tmp_path / "suite"
    inside.mkdir()
    (inside / "note.txt").symlink_to(tmp_path / "secret.txt")
    suite = written(inside, {"prompts": ["{{q}}"], "tests": [{"vars": {"q": "file://note.txt"}}]})
    assert suite.cases[0].query == "file://note.txt"
    assert suite.unmapped == {"variable of file://note.txt": 1}


def test_templates_are_filled_in_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", "1")
    with pytest.raises(DatasetError, match="longer than 1 MiB"):
        written(tmp_path, {"prompts": ["{{q}}" * 100], "tests": [{"vars": {"q": "x" * 20_000}}]})


@pytest.mark.parametrize(
    ("assertion", "name"),
    [
        ({"type": "word-count", "value": {"most": 3}}, "word-count (its value is not a number)"),
        ({"type": "is-json", "value": {"type": "colour"}}, "is-json (its value is not a usable schema)"),
    ],
)
def test_what_a_run_could_not_check_is_refused_at_once(tmp_path: Path, assertion: Any, name: str) -> None:
    assert of_assertion(tmp_path, assertion).unmapped == {name: 1}


# What no file may do


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '[{"input": ' + "[" * 3000 + "]" * 3000 + "}]", r"a\.json: nested too deeply"),
        ("a.jsonl", '{"input": ' + "[" * 3000 + "]" * 3000 + "}", r"not JSON \(nested too deeply\)"),
        ("a.json", '[{"vars": ' + '{"q": ' * 700 + '"x"' + "}" * 701 + "]", "its values are nested too deeply"),
        ("a.yaml", "- vars: &a\n    q: x\n    self: *a\n", "found unconstructable recursive node"),
        (
            "a.csv",
            "q,__expected\nCapital?,Paris,\nCapital?,Paris,Rome\n",
            "line 3: the row has more cells than the header",
        ),
        ("a.csv", "q,__expected\n" + "x,y\n" * 30, "it holds more than 20 rows"),
        ("a.jsonl", '{"input": "x", "target": "y"}\n' * 30, "it holds more than 20 rows"),
    ],
)
def test_a_file_that_asks_for_too_much_is_refused(name, text, message, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("AGENTUNIT_MAX_CASES", "20")
    (tmp_path / name).write_text(text)
    with pytest.raises(DatasetError, match=message):
        read_foreign(tmp_path / name)


def test_the_limit_of_cases_holds_while_prompts_and_variables_are_multiplied(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("AGENTUNIT_MAX_CASES", "20")
    made = []
    monkeypatch.setattr("agentunit.addons.imports._foreign_promptfoo.chat_of", lambda text: made.append(text) or text)
    config = {
        "prompts": ["{{a}}"],
        "providers": ["x"],
        "tests": [{"vars": {"a": [str(number) for number in range(20)]}}] * 50,
    }
    with pytest.raises(DatasetError, match="more cases than a dataset may hold"):
        written(tmp_path, config)
    assert len(made) == 21


def test_lists_of_variables_that_multiply_are_refused_before_they_do(tmp_path, monkeypatch) -> None:
    config = {"prompts": ["{{a}}"], "providers": ["x"], "tests": [{"vars": {c: list(range(30)) for c in "abcd"}}]}
    message = "test 1: its prompts and lists of variables make 810,000 cases.*AGENTUNIT_MAX_CASES"
    with pytest.raises(DatasetError, match=message):
        written(tmp_path, config)
    config["tests"][0]["vars"] = {c: list(range(5)) for c in "abcd"}
    assert len(written(tmp_path, config).cases) == 625
    monkeypatch.setenv("AGENTUNIT_MAX_CASES", "600")
    with pytest.raises(DatasetError, match="make 625 cases"):
        written(tmp_path, config)


def test_all_that_templates_become_together_has_bounds(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("AGENTUNIT_MAX_ITEM_MB", "1")
    variables = {"big": "x" * 300_000, **{f"v{number}": "{{big}}" for number in range(4)}}
    with pytest.raises(DatasetError, match=r"promptfooconfig\.yaml: .* longer than 1 MiB"):
        written(tmp_path, {"prompts": ["{{q}}"], "tests": [{"vars": variables}]})


def test_what_is_no_test_makes_no_case_and_is_counted(tmp_path) -> None:
    config = {"prompts": ["{{q}}"], "tests": [1, None, [], {"vars": {"q": "a"}}], "scenarios": [5, {"config": [1]}]}
    suite = written(tmp_path, config)
    assert [case.query for case in suite.cases] == ["a"]
    assert suite.unmapped == {"test that is not an object": 4, "scenario that is not an object": 1}


def test_variables_that_are_no_object_are_counted(tmp_path) -> None:
    suite = written(tmp_path, {"prompts": ["Hello"], "tests": [{"vars": 5}]})
    assert suite.unmapped == {"variables that are not an object": 1}
