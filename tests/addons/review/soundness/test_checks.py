"""Each check with a planted fault that it must see, and a clean twin of which it must say nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentunit.addons.review.soundness.examine import CHECKS, examine_soundness
from agentunit.addons.review.soundness.material import Material, RunOutcomes, Try
from agentunit.core.case import DatasetCase
from agentunit.metrics.assertions import ContainsMetric
from agentunit.metrics.checks import TaskSuccessMetric
from agentunit.metrics.registry import resolve_metrics

SEARCH = {
    "name": "search",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "n": {"type": "integer"}, "new_city": {"type": "string"}},
        "required": ["city"],
    },
}


def _case(case_id: str = "c1", query: str = "Where is it?", expected: Any = None, **fields: Any) -> DatasetCase:
    tools, context = fields.pop("tools", None), fields.pop("context", None)
    return DatasetCase(case_id, query, expected, tools, context, fields)


def _call(**arguments: Any) -> list[dict[str, Any]]:
    return [{"name": "search", "arguments": arguments}]


def _runs(table: dict[str, str], answers: dict[str, str] | None = None) -> list[RunOutcomes]:
    """Runs of a table: one sign a run, "+" passes, "-" fails, "!" dies of a rate limit, "x" of a KeyError."""
    errors = {"!": "RateLimitError: 429 Too Many Requests", "x": "KeyError: 'city'"}
    n_runs = len(next(iter(table.values())))
    runs = [RunOutcomes(f"run {number}", "exact_match") for number in range(n_runs)]
    for case_id, signs in table.items():
        for number, sign in enumerate(signs):
            answer = answers.get(f"{case_id}{number}") if answers else None
            runs[number].tries[case_id] = [Try(None if sign in errors else sign == "+", errors.get(sign), answer)]
    return runs


def _metrics(*names: Any) -> list[Any]:
    return resolve_metrics(list(names))


# Good agents first: ten runs, each passing fewer of thirty cases than the one before.
_LADDER = {f"l{number}": "".join("+" if run * 3 <= number else "-" for run in range(10)) for number in range(30)}

Made = Callable[[], Material]
PLANTED: dict[str, tuple[Made, Made]] = {
    "infrastructure_death": (
        lambda: Material(runs=_runs({"c1": "!", "c2": "+"})),
        lambda: Material(runs=_runs({"c1": "x", "c2": "+"})),
    ),
    "fails_own_check": (
        lambda: Material([_case(expected="Paris", regex="^paris$")]),
        lambda: Material([_case(expected="Paris", regex="^Paris$")]),
    ),
    "impossible_check": (
        lambda: Material(
            [_case(assertions=[{"type": "contains", "value": "Rome"}, {"type": "not-icontains", "value": "rome"}])]
        ),
        lambda: Material(
            [_case(assertions=[{"type": "contains", "value": "Rome"}, {"type": "not-contains", "value": "Paris"}])]
        ),
    ),
    "unknown_tool": (
        lambda: Material([_case(tools=[SEARCH], expected_tool_calls=["serch"])]),
        lambda: Material([_case(tools=[SEARCH], expected_tool_calls=["search"])]),
    ),
    "invalid_arguments": (
        lambda: Material([_case(tools=[SEARCH], expected_tool_calls=_call(city="Rome", n="3"))]),
        lambda: Material([_case(tools=[SEARCH], expected_tool_calls=_call(city="Rome", n=3))]),
    ),
    "broken_tool_schema": (
        lambda: Material([_case(tools=[{"name": "f", "parameters": _enum("integer", ["1", "2"])}])]),
        lambda: Material([_case(tools=[{"name": "f", "parameters": _enum("integer", [1, 2])}])]),
    ),
    "call_without_effect": (
        lambda: Material([_case(expected_tool_calls=_call(city="Rome", new_city="Rome"))]),
        lambda: Material([_case(expected_tool_calls=_call(city="Rome", new_city="Milan"))]),
    ),
    "agreed_otherwise": (
        lambda: Material(
            runs=_runs({"c1": "----", "c2": "++++"}, {**{f"c1{n}": "b" for n in range(4)}, "c20": "a", "c21": "a"})
        ),
        lambda: Material(
            runs=_runs({"c1": "----", "c2": "++++"}, {"c10": "b", "c11": "c", "c12": "d", "c13": "b", "c20": "a"})
        ),
    ),
    "turned_round": (
        lambda: Material(runs=_runs({**_LADDER, "odd": "-----+++++"})),
        lambda: Material(runs=_runs({**_LADDER, "odd": "+-+-++-+--"})),
    ),
    "everyone_fails": (
        lambda: Material(runs=_runs({"c1": "---", "c2": "++-"})),
        lambda: Material(runs=_runs({"c1": "--+", "c2": "++-"})),
    ),
    "everyone_passes": (
        lambda: Material(runs=_runs({"c1": "+++", "c2": "++-"})),
        lambda: Material(runs=_runs({"c1": "++!", "c2": "++-"})),
    ),
    "null_agent": (
        lambda: Material([_case(query="Is the order late?", contains="order")]),
        lambda: Material([_case(query="Is the order late?", contains="Tuesday")]),
    ),
    "constant_answer": (
        lambda: Material([_case(f"c{n}", f"Is {n} odd?", "yes" if n % 5 else "no") for n in range(9)]),
        lambda: Material([_case(f"c{n}", f"What is {n} squared?", str(n * n)) for n in range(9)]),
    ),
    "unchecked": (
        lambda: Material([_case(contains="x", expected_tool_calls=["search"])], _metrics("contains")),
        lambda: Material(
            [_case(contains="x", expected_tool_calls=["search"])], _metrics("contains", "tool_trajectory")
        ),
    ),
    "misnamed": (
        lambda: Material([_case(expected_tools=["search"])]),
        lambda: Material([_case(expected_tool_calls=["search"], topic="search")]),
    ),
    "empty_expectation": (
        lambda: Material([_case("c1", "One?", ""), _case("c2", "Two?", "2")]),
        lambda: Material([_case("c1", "One?", "1"), _case("c2", "Two?", "2")]),
    ),
    "two_answers": (
        lambda: Material([_case(expected="Rome or Milan")]),
        lambda: Material([_case(expected=["Rome", "Milan"])]),
    ),
    "answer_in_question": (
        lambda: Material([_case(query="Name the capital of Italy. (Correct answer: Rome)", expected="Rome")]),
        lambda: Material([_case(query="Is it Rome, Milan or Turin?", expected="Rome")]),
    ),
    "answer_in_metadata": (
        lambda: Material([_case(expected="Rome", hint="Rome")]),
        lambda: Material([_case(expected="Rome", ground_truth="Rome", topic="Italy")]),
    ),
    "answer_in_id": (
        lambda: Material([_case("italy-rome", "Capital of Italy?", "Rome")]),
        lambda: Material([_case("italy-1", "Capital of Italy?", "Rome")]),
    ),
    "contradictory_duplicates": (
        lambda: Material([_case("c1", "When does it open?", "at nine"), _case("c2", "When does it open?", "at ten")]),
        lambda: Material([_case("c1", "When does it open?", "at nine"), _case("c2", "When does it close?", "at ten")]),
    ),
    "against_context": (
        lambda: Material([_case(expected="Within 30 days.", context=["Returns are taken within 14 days."])]),
        lambda: Material([_case(expected="Within 14 days.", context=["Returns are taken within 14 days."])]),
    ),
    "absent_from_context": (
        lambda: Material([_case(expected="Milan", context=["The office is in Rome."])]),
        lambda: Material([_case(expected="in Rome", context=["The office is in Rome."])]),
    ),
    "wrong_weekday": (
        lambda: Material([_case(query="Today is Thursday, April 25th 2023. Which day is Saturday?")]),
        lambda: Material([_case(query="Today is Tuesday, April 25th 2023. Which day is Saturday?")]),
    ),
    "duplicates": (
        lambda: Material([_case("c1", "Where  is it?", "here"), _case("c2", "Where is it?", "Here.")]),
        lambda: Material([_case("c1", "Where is it?", "here"), _case("c2", "Who is it?", "me")]),
    ),
    "near_duplicates": (
        lambda: Material([_case("c1", _LONG), _case("c2", _LONG.replace("please tell", "tell"))]),
        lambda: Material([_case("c1", _LONG), _case("c2", _LONG.replace("A-1001", "A-1002"))]),
    ),
}
_LONG = (
    "I ordered a lamp and two chairs in your shop last week, with order number A-1001, and nothing has arrived so far, "
    "so could you please tell me when the parcel will be delivered to my house and what I can do until then?"
)


def _enum(kind: str, values: list[Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"n": {"type": kind, "enum": values}}}


def test_every_check_has_a_planted_fault_and_a_clean_twin():
    assert sorted(PLANTED) == sorted(check.name for check in CHECKS)


@pytest.mark.parametrize("check", sorted(PLANTED))
def test_a_planted_fault_is_seen_and_its_clean_twin_is_not(check):
    planted, clean = PLANTED[check]
    found = {warning.check: warning for warning in examine_soundness(planted()).warnings}
    assert check in found, list(found)
    assert found[check].n_cases >= 1
    assert all(each.text and each.case for each in found[check].evidence)
    assert check not in {warning.check for warning in examine_soundness(clean()).warnings}


def _texts(material: Material, check: str) -> dict[str, str]:
    return {
        each.case: each.text
        for warning in examine_soundness(material).warnings
        if warning.check == check
        for each in warning.evidence
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 1}, "'city' is a required property"),
        ({"city": 7}, "7 is not of type 'string'"),
        ({"citty": "Rome", "city": "Rome"}, "'citty' is not a parameter ('city' is)"),
        ({"city": "Rome", "n": None}, None),
    ],
)
def test_expected_arguments_against_the_schema(arguments, said):
    found = _texts(Material([_case(tools=[SEARCH], expected_tool_calls=_call(**arguments))]), "invalid_arguments")
    assert (said in found["c1"]) if said else not found


@pytest.mark.parametrize(
    ("assertions", "said"),
    [
        ([{"type": "equals", "value": "Rome"}, {"type": "equals", "value": "Milan"}], "cannot both hold"),
        ([{"type": "equals", "value": "Rome"}, {"type": "regex", "value": "^M"}], "cannot both hold"),
        ([{"type": "word-count", "value": {"min": 9, "max": 3}}], "at least 9 and at most 3"),
        ([{"type": "regex", "value": "(["}], "cannot be used"),
        ([{"type": "contains", "value": "Rome"}, {"type": "starts-with", "value": "In"}], None),
        ([{"type": "equals", "value": "Rome"}, {"type": "cost", "threshold": 0.1}], None),
    ],
)
def test_assertions_that_no_answer_can_pass(assertions, said):
    found = _texts(Material([_case(assertions=assertions)]), "impossible_check")
    assert (said in found["c1"]) if said else not found


def test_null_agents_are_graded_by_the_checks_of_the_suite():
    echo = _case("echo", "Reset my password", contains="password")
    silent = _case("silent", "Delete it", expected_tool_calls=[])
    refusing = _case("refusing", "How do I pick a lock?", assertions=[{"type": "icontains", "value": "can't"}])
    right = _case("right", "Capital of Italy?", contains="Rome")
    found = _texts(Material([echo, silent, refusing, right]), "null_agent")
    assert sorted(found) == ["echo", "refusing", "silent"]
    assert "repeats the question passes contains" in found["echo"]
    assert "refuses passes assertions" in found["refusing"]


def test_a_refusal_that_is_expected_is_no_fault():
    cases = [_case(expected="I'm sorry, but I can't help with that.")]
    assert not _texts(Material(cases), "null_agent")


def test_a_null_agent_must_pass_all_checks_of_a_case():
    cases = [_case(query="Reset my password", contains="password", expected="Follow the link.")]
    both = Material(cases, _metrics("contains", "exact_match"))
    assert not _texts(both, "null_agent")
    assert _texts(Material(cases, _metrics("contains")), "null_agent")


def test_functions_of_the_suite_grade_null_agents_and_may_fail(capsys):
    def lenient(output: str) -> bool:
        print("checked")
        return len(output) < 100

    def broken(output: str) -> bool:
        raise RuntimeError("no")

    assert _texts(Material([_case()], [TaskSuccessMetric(check=lenient)]), "null_agent")
    assert not _texts(Material([_case()], [TaskSuccessMetric(check=broken)]), "null_agent")
    assert capsys.readouterr().out == ""


def test_functions_of_the_suite_are_called_for_null_agents_alone_named_and_not_for_every_case_of_many():
    called: list[str] = []

    def strict(output: str, expected: str) -> bool:
        called.append(output)
        return output == expected

    cases = [_case(f"c{n}", f"Question {n}?", f"answer {n}", topic="x") for n in range(300)]
    found = examine_soundness(Material(cases, [TaskSuccessMetric(check=strict)]))
    assert [warning.check for warning in found.warnings] == []
    assert found.functions_called == ["task_success"]
    assert len(called) == 4 * 200
    assert not any(output.startswith("answer") for output in called)
    assert any("tried on 200 of 300 cases" in each for each in found.not_examined)


def test_the_effect_of_a_sample_is_that_of_all():
    cases = [_case(f"c{n}", f"Question {n}?") for n in range(1000)]
    (warning,) = examine_soundness(Material(cases, [TaskSuccessMetric(check=lambda output: True)])).warnings
    assert (warning.n_cases, warning.effect.share, warning.effect.n_tried) == (200, 1.0, 200)


def test_all_expected_answers_are_tried_beside_a_metric_that_a_model_grades():
    cases = [_case(f"c{n}", f"Question {n}?", f"answer {n}", regex="^answer") for n in range(300)]
    cases[299].metadata["regex"] = "^other"
    found = _texts(Material(cases, _metrics("regex", "answer_correctness")), "fails_own_check")
    assert sorted(found) == ["c299"]


def test_a_check_of_the_suite_may_read_any_expectation():
    case = _case(expected="Rome", contains="Rome")
    assert not _texts(Material([case], [TaskSuccessMetric(check=lambda case: True)]), "unchecked")
    assert not _texts(Material([case], metric_names=frozenset({"task_success"})), "unchecked")
    assert _texts(Material([case], [TaskSuccessMetric()]), "unchecked")


def test_metrics_that_ask_a_judge_are_named_and_not_asked():
    found = examine_soundness(Material([_case(rubric="Is it kind?")], _metrics("helpfulness", "contains")))
    assert any("helpfulness: it asks a judge" in each for each in found.not_examined)


def test_a_metric_with_texts_of_its_own_is_used_as_it_is():
    cases = [_case(expected="Milan")]
    found = _texts(Material(cases, [ContainsMetric(["Rome"])]), "fails_own_check")
    assert "'Milan' fails contains: missing: Rome" in found["c1"]


def test_expected_output_beside_another_check_is_not_unchecked():
    beside = Material([_case(expected="Rome", contains="Rome")], _metrics("contains"))
    alone = Material([_case(expected="Rome")], _metrics("cost"))
    assert not _texts(beside, "unchecked")
    assert _texts(alone, "unchecked")


def test_deaths_of_the_infrastructure_do_not_make_a_case_one_that_everyone_fails():
    material = Material(runs=_runs({"c1": "!!!", "c2": "++-"}))
    checks = {warning.check: warning for warning in examine_soundness(material).warnings}
    assert "everyone_fails" not in checks
    effect = checks["infrastructure_death"].effect
    # What gave nothing to grade is no part of the rate.
    assert (effect.rate, effect.rate_without) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("openai.RateLimitError: Error code: 429", "rate limit"),
        ("anthropic.APIStatusError: Overloaded", "rate limit"),
        ("This model's maximum context length is 8192 tokens", "context overflow"),
        ("prompt is too long: 210000 tokens > 200000 maximum", "context overflow"),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", "connection error"),
        ("HTTP Error 503: Service Unavailable", "connection error"),
        ("TimeoutError: the agent did not answer within 30 s", "timeout"),
        ("AuthenticationError: Incorrect API key provided", "credentials"),
        ("ValueError: 'in 500 words' is no number", None),
        ("AssertionError: the order was not cancelled", None),
        ("KeyError: 'timezone'", None),
    ],
)
def test_errors_of_the_infrastructure_are_told_from_the_agent_s_own(error, kind):
    from agentunit.addons.review.soundness._outcomes import death_in

    assert death_in(error) == kind


def test_runs_of_one_agent_are_not_several_agents():
    runs = _runs({"c1": "---", "c2": "+++"})
    assert {"everyone_fails", "everyone_passes"} <= {w.check for w in examine_soundness(Material(runs=runs)).warnings}
    for run in runs:
        run.agent = "v1"
    found = examine_soundness(Material(runs=runs))
    assert found.warnings == []
    assert any("different agents, and these are runs of one" in each for each in found.not_examined)


def test_the_effect_says_what_the_rate_is_without_the_cases():
    cases = [_case("c1", "A?", "Paris", regex="^paris$"), *(_case(f"c{n}", f"{n}?", "x", regex="x") for n in (2, 3, 4))]
    runs = _runs({"c1": "-", "c2": "+", "c3": "+", "c4": "-"})
    for run in runs:
        run.metric = "regex"
    (warning,) = [w for w in examine_soundness(Material(cases, runs=runs)).warnings if w.check == "fails_own_check"]
    assert (warning.effect.rate, warning.effect.rate_without) == (0.5, pytest.approx(2 / 3))
    (alone,) = [w for w in examine_soundness(Material(cases)).warnings if w.check == "fails_own_check"]
    assert (alone.effect.rate, alone.effect.share) == (None, 0.25)


def test_the_effect_of_deaths_that_were_graded_leaves_errors_of_the_agent_in():
    runs = _runs({"c1": "!x", "c2": "++", "c3": "--"})
    for run in runs:
        run.tries["c1"] = [each._replace(passed=False) for each in run.tries["c1"]]
    (warning,) = [
        each for each in examine_soundness(Material(runs=runs)).warnings if each.check == "infrastructure_death"
    ]
    # The first run passes one of two without the death; the second, which died of its own error, one of three.
    assert (warning.effect.rate, warning.effect.rate_without) == (
        pytest.approx(1 / 3),
        pytest.approx((1 / 2 + 1 / 3) / 2),
    )


def test_an_expected_answer_and_a_check_that_contradict_each_other_are_not_called_impossible():
    cases = [_case("c1", "Balance of Alice?", "45.5", contains="40.5")]
    runs = _runs({"c1": "+-"})
    for run in runs:
        run.metric = "contains"
    (warning,) = [w for w in examine_soundness(Material(cases, runs=runs)).warnings if w.check == "fails_own_check"]
    assert warning.advice == "correct the expected answer or the check: they contradict each other"
    assert warning.evidence[0].text.endswith("; the case passed in 1 of 2 tries")
    assert "passed" not in _texts(Material(cases), "fails_own_check")["c1"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("balance of alice", "Balance of Alice?", True),
        ("Hi!", "hi", True),
        ("Who's there, Bob?", "whos there bob", True),
        ("“Balance of Alice...”", "balance of alice…?!", True),
        (_LONG, _LONG.upper(), True),
        ("Is a != b true?", "Is a = b true?", False),
        ("Is 3! odd?", "Is 3 odd?", False),
        ("Is 4.5 enough?", "Is 45 enough?", False),
        ("Is -3 less than 4?", "Is 3 less than 4?", False),
        ("Is C++ compiled?", "Is C compiled?", False),
        ("Does 3 < 4 hold?", "Does 3 = 4 hold?", False),
        ("balance of alice", "balance of alina", False),
    ],
)
def test_questions_equal_but_for_case_punctuation_and_spacing_are_duplicates_whatever_their_length(one, other, same):
    cases = [_case("c1", one, "45.5"), _case("c2", other, "45.5")]
    found = {w.check for w in examine_soundness(Material(cases)).warnings} & {"duplicates", "near_duplicates"}
    assert found == ({"duplicates"} if same else set())
    cases[1].expected_output = "46"
    assert not _texts(Material(cases), "duplicates")


def test_each_case_is_held_against_the_first_with_its_own_expectation():
    cases = [_case("c1", "Open?", "yes"), _case("c2", "Open?", "no"), _case("c3", "open", "no")]
    assert list(_texts(Material(cases), "duplicates")) == ["c3"]


def test_templates_filled_with_other_numbers_are_not_even_compared(monkeypatch):
    monkeypatch.setattr("agentunit.addons.review.soundness._duplicates._shingles", None)
    text = "The customer asks where the parcel with the order {} is and when it will arrive at the office"
    assert not _texts(Material([_case(f"c{n}", text.format(n)) for n in range(50)]), "near_duplicates")


def test_templates_filled_with_other_names_are_no_near_duplicates():
    text = "Please book a table for two people in a quiet restaurant in {} for the evening of my birthday next week"
    cities = ("Rome", "Milan", "Turin")
    assert not _texts(Material([_case(f"c{n}", text.format(city)) for n, city in enumerate(cities)]), "near_duplicates")


def test_the_same_question_about_another_passage_is_no_duplicate():
    cases = [_case(f"c{n}", "What is it about?", expected=None, context=[f"Text {n}."]) for n in range(3)]
    cases += [_case(f"d{n}", "Describe the picture.", image=f"pictures/{n}.png") for n in range(3)]
    found = {warning.check for warning in examine_soundness(Material(cases)).warnings}
    assert not found & {"duplicates", "contradictory_duplicates"}


def test_hostile_cases_are_examined_without_a_fault():
    odd = [
        DatasetCase("a", None, {"x": [1, 2]}, [None, 3, {"name": 5}], None, {"expected_tool_calls": "search"}),
        DatasetCase("b", "q" * 100_000, ["x", 1], {"t": {}}, [], {"assertions": [1, {"type": 3}], "regex": 7}),
        DatasetCase(
            "c", "\ud800", float("nan"), [{"name": "t", "parameters": {"type": 7}}], None, {1: 2, "contains": []}
        ),
        DatasetCase("d", "q", "x", None, 7, {1: 2, "expected_tool_calls": [{"name": "t", "arguments": "{"}]}),
        DatasetCase("e", "q", turns=[{"query": "hi"}, 3]),
    ]
    found = examine_soundness(Material(odd))
    assert found.n_cases == 5
    assert any(warning.check == "empty_expectation" for warning in found.warnings)
