"""Plain functions as metrics: parameters by name, and a number, a bool, None or a MetricResult as the score."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import agentunit
from agentunit import MetricResult
from agentunit.metrics.base import describe
from agentunit.metrics.functions import NAMES, FunctionMetric
from agentunit.metrics.parameters import ParameterError
from agentunit.metrics.registry import MetricRegistry, parameters

RECORD = {
    "case": {"id": "q1", "query": "Where?", "expected_output": "On Monday.", "context": ["It ships on Monday."]},
    "trace": {"events": [{"type": "tool_call", "payload": {"name": "track", "status": "success"}}]},
    "outcome": {"success": True, "output": "On Monday."},
}


def brevity(answer: str, most_words: int = 3) -> float:
    """How short the answer is."""
    return min(1.0, most_words / len(answer.split()))


def scores_of(metrics: Any, record: Any = RECORD) -> dict[str, Any]:
    (case,) = agentunit.score([record], metrics)
    return case.scores


@pytest.fixture
def registry() -> MetricRegistry:
    return MetricRegistry(entry_point_group=None)


def test_every_parameter_gets_what_its_name_says() -> None:
    seen: dict[str, Any] = {}

    def everything(  # type: ignore[no-untyped-def]
        answer, query, expected, context, tool_calls, case, trace, outcome, messages
    ):
        seen.update(locals())
        return 1

    assert scores_of([everything])["everything"].result.value == 1.0
    assert tuple(name for name in NAMES if name in seen) == NAMES
    assert (seen["answer"], seen["query"], seen["expected"]) == ("On Monday.", "Where?", "On Monday.")
    assert seen["context"] == ["It ships on Monday."]
    assert seen["tool_calls"] == [{"name": "track", "status": "success"}]
    assert [each["content"] for each in seen["messages"]] == ["Where?", "On Monday."]
    assert (seen["case"].id, seen["trace"].events[0].type, seen["outcome"].success) == ("q1", "tool_call", True)


@pytest.mark.parametrize(
    ("returned", "value"), [(0.7, 0.7), (3, 3.0), (True, 1.0), (False, 0.0), (None, None)], ids=repr
)
def test_a_number_a_bool_or_none_is_the_score(returned: Any, value: float | None) -> None:
    def rated(answer: str) -> Any:
        return returned

    score = scores_of(rated)["rated"]
    assert score.result.value == value
    assert score.status == ("ok" if value is not None else "not_applicable")
    if value is None:
        assert score.result.detail["reason"] == "rated returned None: it does not apply to this case"


def test_a_result_keeps_its_detail_and_gets_the_metrics_name() -> None:
    def explained(answer: str) -> MetricResult:
        return MetricResult("whatever", 0.5, {"why": "half of it", "backend": "rules"})

    score = scores_of(explained)["explained"]
    assert (score.result.name, score.result.value, score.why) == ("explained", 0.5, "half of it")
    assert score.backend == "rules"


@pytest.mark.parametrize("returned", ["0.7", [1.0], {"value": 1}, b"1"], ids=repr)
def test_anything_else_is_an_error_of_that_score(returned: Any) -> None:
    def odd(answer: str) -> Any:
        return returned

    score = scores_of([odd, "exact_match"])["odd"]
    assert (score.status, score.result.value) == ("error", None)
    assert "must return a number, a bool, None or a MetricResult, or (value, why)" in score.result.detail["reason"]


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        ("answer", "no answer: outcome.output is missing"),
        ("expected", "nothing to compare with: case.expected_output is missing"),
        ("query", "no question: case.query is missing"),
        ("context", "no context: case.context is missing, and the trace recorded no retrieved documents"),
    ],
)
def test_what_a_record_lacks_is_a_reason_unless_the_parameter_has_a_default(parameter: str, reason: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def strict({parameter}): raise AssertionError\ndef lenient({parameter}='none'): return 1.0", namespace)
    scores = scores_of(
        [namespace["strict"], namespace["lenient"]],
        {"case": {"id": "q1"}, "trace": {"events": [{"type": "step"}]}, "outcome": {}},
    )
    assert (scores["strict"].status, scores["strict"].result.detail["reason"]) == ("not_applicable", reason)
    assert scores["lenient"].result.value == 1.0


def test_an_error_inside_is_an_error_of_its_case() -> None:
    def fragile(answer: str) -> float:
        return 1 / 0

    assert scores_of([fragile])["fragile"].result.detail["error"]["type"] == "ZeroDivisionError"


def test_further_parameters_have_defaults_and_can_be_set(registry: MetricRegistry) -> None:
    registry.register("brief", brevity)
    (metric,) = registry.resolve([{"brief": {"most_words": 1}}])
    assert metric.evaluate({"id": "q1"}, None, "On Monday.").value == 0.5  # type: ignore[arg-type]
    assert parameters(metric) == {"most_words": 1}
    with pytest.raises(ParameterError, match="metric 'brief' has no parameter 'most_word'; did you mean 'most_words'"):
        registry.create("brief", {"most_word": 1})


def test_a_registered_function_has_the_registered_name(registry: MetricRegistry) -> None:
    registry.register("short", brevity)
    registry.register("has_answer", lambda answer=None: answer is not None)
    assert [metric.name for metric in registry.resolve(["short", "has_answer"])] == ["short", "has_answer"]
    assert describe(registry.create("short")).summary == "How short the answer is."


def test_partials_and_callable_objects_are_functions_too(registry: MetricRegistry) -> None:
    class Longest:
        def __call__(self, answer: str) -> float:
            return float(max(map(len, answer.split())))

    one = functools.partial(brevity, most_words=1)
    made = registry.resolve([one, Longest()])
    assert [metric.name for metric in made] == ["brevity", "Longest"]
    assert [metric.evaluate({"id": "q1"}, None, "On Monday.").value for metric in made] == [0.5, 7.0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda answer: 1.0, "a lambda has no name that a metric could have: register_metric"),
        (lambda response: 1.0, "a lambda has no name"),
        (len, r"metric 'len': parameters .* must be among answer, query, .*, or have a default; received 'obj'"),
    ],
)
def test_what_cannot_be_called_is_refused_before_anything_is_scored(
    registry: MetricRegistry, function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        registry.resolve([function])


def test_an_async_function_is_refused(registry: MetricRegistry) -> None:
    async def slow(answer: str) -> float:
        return 1.0

    with pytest.raises(TypeError, match="metric 'slow': a metric function must not be async"):
        registry.resolve([slow])


def test_factories_are_still_factories(registry: MetricRegistry) -> None:
    def made(most_words: int = 5) -> FunctionMetric:
        return FunctionMetric(brevity, parameters={"most_words": most_words})

    (metric,) = registry.resolve([made])
    assert parameters(metric) == {"most_words": 5}
    registry.register("made", made)
    assert parameters(registry.create("made", {"most_words": 2})) == {"most_words": 2}


def test_a_function_that_returns_bool_is_a_check_others_have_no_direction() -> None:
    def polite(answer: str) -> bool:
        return True

    check, other = describe(FunctionMetric(polite)), describe(FunctionMetric(brevity))
    assert (check.check, check.direction, check.range) == (True, "higher", (0.0, 1.0))
    assert (other.check, other.direction, other.range) == (False, "none", (None, None))
    assert describe(FunctionMetric(brevity)).inputs == ("outcome.output",)


class OfAnotherLibrary:
    """A value as numpy's are: it has a type of its own, and says which kind of number that is."""

    def __init__(self, value: float, kind: str) -> None:
        self.value, self.dtype = value, SimpleNamespace(kind=kind)

    def __float__(self) -> float:
        return float(self.value)


@pytest.mark.parametrize("returned", [True, False, OfAnotherLibrary(1, "b")], ids=["True", "False", "numpy's"])
def test_a_function_without_annotations_is_a_check_once_it_returned_a_bool(returned: Any) -> None:
    def polite(answer: str):  # type: ignore[no-untyped-def]
        return None if answer == "?" else returned

    records = [{"case": {"id": "q1"}, "outcome": answer} for answer in ("?", "On Monday.")]
    run = agentunit.score(records, [polite])
    assert not run.infos["polite"].check
    _, score = [case.scores["polite"] for case in run]
    assert score.result.detail == {"backend": "custom", "returned": "bool"}
    assert score.why == f"returned {bool(float(returned))}"
    info = run.infos["polite"]
    assert (info.check, info.direction, info.range) == (True, "higher", (0.0, 1.0))


@pytest.mark.parametrize("returned", [1, 0.0, 1.0, OfAnotherLibrary(1, "i")], ids=["1", "0.0", "1.0", "numpy's"])
def test_a_function_that_returns_numbers_is_none(returned: Any) -> None:
    def rated(answer: str):  # type: ignore[no-untyped-def]
        return returned

    run = agentunit.score([RECORD], [rated])
    [score] = [case.scores["rated"] for case in run]
    assert (score.result.detail, score.why) == ({"backend": "custom"}, f"returned {float(returned):.0f}")
    assert not run.infos["rated"].check


def version_of(function: Callable[..., Any]) -> str:
    return describe(FunctionMetric(function, "named")).version


def made_of(source: str) -> Any:
    """A function whose source nobody knows any more."""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace["made"]


def test_the_version_of_a_function_is_a_hash_of_its_source() -> None:
    def one(answer: str) -> bool:
        return "Monday" in answer

    def other(answer: str) -> bool:
        return "monday" in answer

    class Called:
        def __call__(self, answer: str) -> bool:
            return "Monday" in answer

    versions = [version_of(each) for each in (one, other, Called(), brevity)]
    assert len(set(versions)) == 4
    assert all(re.fullmatch("[0-9a-f]{8}", each) for each in versions)
    assert version_of(functools.partial(brevity, most_words=1)) == version_of(brevity)
    assert scores_of(brevity)["brevity"].version == version_of(brevity)


def test_a_function_may_say_its_version_itself() -> None:
    def stated(answer: str) -> bool:
        return True

    stated.version = 7  # type: ignore[attr-defined]
    assert version_of(stated) == "7"


def test_without_source_the_version_is_a_hash_of_the_compiled_code() -> None:
    source = "def made(answer):\n    return any(each in {'a', 'b', 'c', 'd'} for each in answer) or (lambda: 'x')()"
    version = version_of(made_of(source))
    assert re.fullmatch("[0-9a-f]{8}", version)
    assert version_of(made_of(source.replace("'d'", "'e'"))) != version
    assert version_of(made_of(source.replace("'x'", "'y'"))) != version
    assert version_of(made_of(source.replace("any", "all"))) != version
    # Sets of texts have another order in every process.
    program = f"""
from agentunit.metrics.base import describe
from agentunit.metrics.functions import FunctionMetric
namespace = {{}}
exec({source!r}, namespace)
print(describe(FunctionMetric(namespace["made"])).version)
"""
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == version


def test_a_file_of_functions_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from agentunit.cli.main import cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_function_metrics.py").write_text(
        "def brevity(answer, most_words=20):\n    return min(1.0, most_words / len(answer.split()))\n"
    )
    record = agentunit.encode_record(
        agentunit.Record(agentunit.DatasetCase("q1"), outcome=agentunit.Outcome(output="a b"))
    )
    (tmp_path / "records.jsonl").write_bytes(record + b"\n")
    command = ["score", "records.jsonl", "-m", "my_function_metrics.py:brevity", "--json"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    assert '"mean":1.0' in done.stdout.replace(" ", "")
    done = CliRunner().invoke(cli, [*command, "--param", "brevity.most_words=1"])
    assert '"mean":0.5' in done.stdout.replace(" ", ""), done.output
