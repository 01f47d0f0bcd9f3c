from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentunit.core.results import MetricResult
from agentunit.metrics.assertions import ContainsMetric
from agentunit.metrics.base import CompositeMetric, Metric, MetricInfo, describe, metadata_inputs
from agentunit.metrics.builtin import CostMetric, FaithfulnessMetric
from agentunit.metrics.registry import (
    _OWN_ANSWER_KEYS,
    _OWN_METRICS,
    DEFAULT_METRICS,
    MetricRegistry,
    UnknownMetricError,
    _require_own,
    parameters,
    resolve_metrics,
)
from agentunit.metrics.trajectory import ToolTrajectoryMetric


class Own:
    """Counts nothing."""

    name = "own"

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, 1.0)


def make_own() -> Own:
    return Own()


@pytest.fixture
def registry() -> MetricRegistry:
    return MetricRegistry(entry_point_group=None)


def names_of(metrics: list[Any]) -> list[str]:
    return [metric.name for metric in metrics]


# Resolving


def test_every_kind_of_source_in_one_list(registry: MetricRegistry) -> None:
    instance = CostMetric()
    metrics = registry.resolve(
        ["faithfulness", ToolTrajectoryMetric, instance, make_own, "agentunit.metrics.timing:ResponseTimeMetric"]
    )
    assert names_of(metrics) == ["faithfulness", "tool_trajectory", "cost", "own", "response_time"]
    assert metrics[2] is instance


@pytest.mark.parametrize(
    ("single", "name"),
    [("cost", "cost"), (CostMetric, "cost"), (CostMetric(), "cost"), (make_own, "own"), (Own(), "own")],
    ids=["name", "class", "instance", "factory", "minimal instance"],
)
def test_one_metric_needs_no_list(registry: MetricRegistry, single: Any, name: str) -> None:
    assert names_of(registry.resolve(single)) == [name]


def test_any_iterable_of_metrics(registry: MetricRegistry) -> None:
    assert names_of(registry.resolve(name for name in ("cost", "token_usage"))) == ["cost", "token_usage"]
    assert names_of(registry.resolve({"cost": None, "contains": {"name": "polite"}})) == ["cost", "polite"]


def test_none_is_the_standard_set(registry: MetricRegistry) -> None:
    assert tuple(names_of(registry.resolve(None))) == DEFAULT_METRICS == tuple(names_of(resolve_metrics()))


def test_names_give_new_instances(registry: MetricRegistry) -> None:
    assert registry.create("cost") is not registry.create("cost")


def test_own_names_come_first_and_load(registry: MetricRegistry) -> None:
    registry.register("own", Own)
    assert registry.names()[-1] == "own"
    for name in registry.names():
        assert registry.create(name).name == name


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("faithfullness", "faithfulness"),
        ("tool_sucess", "tool_success"),
        ("Cost", "cost"),
        ("jsonschema", "json_schema"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(registry: MetricRegistry, wrong: str, near: str) -> None:
    with pytest.raises(UnknownMetricError, match=f"no metric is called '{wrong}'; did you mean '{near}'?"):
        registry.resolve([wrong])


def test_a_name_near_nothing_lists_what_there_is(registry: MetricRegistry) -> None:
    with pytest.raises(UnknownMetricError, match="'agentunit metrics' lists them; your own: module:Class"):
        registry.resolve("zzzzzzzz")


def test_a_registered_name_can_be_suggested(registry: MetricRegistry) -> None:
    registry.register("politeness", Own)
    with pytest.raises(UnknownMetricError, match="did you mean 'politeness'"):
        registry.resolve("politness")


def test_nothing_to_resolve(registry: MetricRegistry) -> None:
    with pytest.raises(ValueError, match="resolve_metrics: metrics must hold at least one; received none"):
        registry.resolve([])


@pytest.mark.parametrize("two", [["cost", "cost"], ["cost", CostMetric()], [Own, make_own]])
def test_two_metrics_of_one_name(registry: MetricRegistry, two: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"metrics must have different names; received '\w+' twice"):
        registry.resolve(two)


@pytest.mark.parametrize("source", [5, 5.0, object()])
def test_what_is_no_metric_is_refused_in_a_sentence(registry: MetricRegistry, source: Any) -> None:
    with pytest.raises(TypeError, match=r"resolve_metrics: .* must be .*; received"):
        registry.resolve([source])
    with pytest.raises(TypeError, match=r"resolve_metrics: .* must be .*; received"):
        registry.resolve(source)


def test_a_class_or_factory_that_makes_no_metric(registry: MetricRegistry) -> None:
    with pytest.raises(TypeError, match=r"metric dict must have a 'name' and an 'evaluate' method; received {}"):
        registry.resolve([dict])
    with pytest.raises(TypeError, match="must have a 'name' and an 'evaluate' method; received None"):
        registry.resolve([lambda: None])


# module:attribute


def on_path(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, name: str, source: str) -> None:
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))


METRIC_SOURCE = """
from agentunit.metrics.base import MetricResult

class Politeness:
    name = "politeness"

    def evaluate(self, case, trace, outcome):
        return MetricResult(self.name, 1.0)

ready_made = Politeness()
not_a_metric = 5
"""


def test_module_attribute_references(registry: MetricRegistry, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(tmp_path, monkeypatch, "registry_polite", METRIC_SOURCE)
    assert names_of(registry.resolve("registry_polite:Politeness")) == ["politeness"]
    assert names_of(registry.resolve(["registry_polite:ready_made"])) == ["politeness"]
    with pytest.raises(UnknownMetricError, match="module 'registry_polite' has no 'Rudeness'"):
        registry.resolve("registry_polite:Rudeness")
    with pytest.raises(TypeError):
        registry.resolve("registry_polite:not_a_metric")


def test_a_module_that_is_not_there(registry: MetricRegistry) -> None:
    with pytest.raises(UnknownMetricError, match="no module 'registry_nowhere'"):
        registry.resolve("registry_nowhere:Metric")
    with pytest.raises(UnknownMetricError, match=r"no module 'registry_nowhere.deeper'"):
        registry.resolve("registry_nowhere.deeper:Metric")


@pytest.mark.parametrize("missing", ["registry_dependency", "registry"], ids=["unlike its own name", "its beginning"])
def test_a_module_whose_own_import_fails_speaks_for_itself(
    registry: MetricRegistry, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    on_path(tmp_path, monkeypatch, "registry_needs_more", f"import {missing}\n")
    with pytest.raises(ModuleNotFoundError) as caught:
        registry.resolve("registry_needs_more:Metric")
    assert caught.value.name == missing


# Registering


def test_class_factory_and_instance_can_be_registered(registry: MetricRegistry) -> None:
    shared = Own()
    registry.register("by_class", Own)
    registry.register("by_factory", make_own)
    registry.register("by_instance", shared)
    assert isinstance(registry.create("by_class"), Own)
    assert isinstance(registry.create("by_factory"), Own)
    assert registry.create("by_instance") is shared


def test_duplicates_are_refused_unless_they_replace(registry: MetricRegistry) -> None:
    registry.register("own", Own)
    with pytest.raises(ValueError, match="name must not be taken; received 'own', which is registered already"):
        registry.register("own", CostMetric)
    assert isinstance(registry.create("own"), Own)
    with pytest.raises(ValueError, match="received 'cost', which is AgentUnit's own"):
        registry.register("cost", Own)
    registry.register("cost", Own, replace=True)
    registry.register("own", make_own, replace=True)
    assert isinstance(registry.create("cost"), Own)
    assert registry.names().count("cost") == 1


def cell(source: str = METRIC_SOURCE) -> dict[str, Any]:
    """What a notebook cell leaves behind; run again, it makes new objects of the same names."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "<cell>", "exec", dont_inherit=True), namespace)
    return namespace


@pytest.mark.parametrize("what", ["Politeness", "ready_made"])
def test_a_notebook_cell_that_is_run_again_registers_its_metric_anew(registry: MetricRegistry, what: str) -> None:
    registry.register("politeness", cell()[what])
    second = cell()
    registry.register("politeness", second[what])
    assert isinstance(registry.create("politeness"), second["Politeness"])
    assert registry.names().count("politeness") == 1


def test_a_factory_registered_again(registry: MetricRegistry) -> None:
    registry.register("own", make_own)
    registry.register("own", make_own)
    with pytest.raises(ValueError, match="'own', which is registered already"):
        registry.register("own", Own)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda: Own(), lambda: CostMetric()),
        (ContainsMetric("Paris"), ContainsMetric("London")),
        (Own, Own()),
        (cell()["Politeness"], cell(METRIC_SOURCE.replace("Politeness", "Rudeness"))["Rudeness"]),
    ],
    ids=["two lambdas", "two instances that differ", "a class and its instance", "another class of the same module"],
)
def test_another_metric_under_a_taken_name(registry: MetricRegistry, first: Any, second: Any) -> None:
    registry.register("taken", first)
    with pytest.raises(ValueError, match="'taken', which is registered already"):
        registry.register("taken", second)
    registry.register("taken", second, replace=True)


def test_equal_instances_registered_again(registry: MetricRegistry) -> None:
    registry.register("polite", ContainsMetric("please"))
    registry.register("polite", ContainsMetric("please"))


class OnlyCompute:
    name = "old"

    def compute(self, case: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, 1.0)


class OnlyComputeOfTheProtocol(Metric):
    """Has the protocol's own empty ``evaluate``, which scores nothing."""

    name = "old"

    def compute(self, case: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, 1.0)


@pytest.mark.parametrize("old", [OnlyCompute, OnlyComputeOfTheProtocol])
@pytest.mark.parametrize(
    "attempt",
    [
        lambda registry, old: registry.register("old", old),
        lambda registry, old: registry.register("old", old()),
        lambda registry, old: registry.resolve([old]),
        lambda registry, old: registry.resolve([old()]),
        lambda registry, old: registry.resolve(lambda: old()),
        lambda registry, old: CompositeMetric([old()]),
    ],
    ids=["register class", "register instance", "resolve class", "resolve instance", "resolve factory", "composite"],
)
def test_a_metric_with_only_the_old_compute_learns_the_new_name(
    registry: MetricRegistry, old: Any, attempt: Callable[[MetricRegistry, Any], None]
) -> None:
    renamed = r"compute\(\) is now called evaluate\(case, trace, outcome\): rename the method"
    with pytest.raises(TypeError, match=renamed):
        attempt(registry, old)


def test_a_metric_with_both_methods_is_a_metric(registry: MetricRegistry) -> None:
    class Both(Own):
        def compute(self, case: Any, outcome: Any) -> MetricResult:
            return MetricResult(self.name, 0.0)

    registry.register("both", Both)
    assert names_of(registry.resolve(["both"])) == ["own"]


def test_a_metric_that_inherits_only_the_empty_evaluate_of_the_protocol(registry: MetricRegistry) -> None:
    class Nothing(Metric):
        name = "nothing"

    with pytest.raises(TypeError, match="must have a 'name' and an 'evaluate' method") as caught:
        registry.resolve([Nothing])
    assert "compute" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", "a:b", "a,b", 5, None])
def test_names_that_could_not_be_asked_for(registry: MetricRegistry, name: Any) -> None:
    with pytest.raises(ValueError, match=r"register_metric: name must be a text without ':' or ','; received"):
        registry.register(name, Own)


@pytest.mark.parametrize("source", [5, None, "cost", object()])
def test_sources_that_are_no_metric(registry: MetricRegistry, source: Any) -> None:
    with pytest.raises(TypeError, match=r"register_metric: metric must be an instance .*; received"):
        registry.register("own", source)


# Installed packages

GROUP = "agentunit.metrics"


def test_an_installed_package_offers_a_metric(install_package: Callable[..., Any]) -> None:
    install_package(
        "polite-metrics",
        modules={"polite_metrics": METRIC_SOURCE},
        entry_points={GROUP: {"politeness": "polite_metrics:Politeness", "ready": "polite_metrics:ready_made"}},
    )
    registry = MetricRegistry()
    assert {"politeness", "ready"} <= set(registry.names())
    assert names_of(registry.resolve("politeness")) == ["politeness"]
    with pytest.raises(UnknownMetricError, match="did you mean 'politeness'"):
        registry.resolve("politenes")
    with pytest.raises(ValueError, match="received 'politeness', which is a metric of polite-metrics"):
        registry.register("politeness", Own)
    registry.register("politeness", Own, replace=True)
    assert isinstance(registry.create("politeness"), Own)


def test_looking_at_names_imports_no_package(install_package: Callable[..., Any]) -> None:
    install_package(
        "loud-metrics",
        modules={"loud_metrics": "raise RuntimeError('imported')\n"},
        entry_points={GROUP: {"loud": "loud_metrics:Metric"}},
    )
    registry = MetricRegistry()
    assert "loud" in registry.names()
    assert names_of(registry.resolve(["cost"])) == ["cost"]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("raise RuntimeError('out of order')\n", "broken_metrics:Metric"),
        ("import broken_metrics_need_this\n", "broken_metrics:Metric"),
        ("", "broken_metrics:Metric"),
        ("", "broken_metrics_missing:Metric"),
        ("Metric = dict\n", "broken_metrics:Metric"),
    ],
    ids=["raises", "misses a dependency", "misses the attribute", "misses the module", "is not a metric"],
)
def test_a_broken_entry_point_harms_only_itself(install_package: Callable[..., Any], source: str, target: str) -> None:
    install_package("broken-metrics", modules={"broken_metrics": source}, entry_points={GROUP: {"broken": target}})
    registry = MetricRegistry()
    listed = dict(registry.describe_all())
    assert isinstance(listed["broken"], Exception)
    assert isinstance(listed["cost"], MetricInfo)
    # Whoever asked for "broken" must learn which package to repair.
    with pytest.raises(Exception, match="broken-metrics"):
        registry.resolve("broken")


def test_two_packages_claim_one_name(install_package: Callable[..., Any]) -> None:
    for distribution in ("polite-one", "polite-two"):
        module = distribution.replace("-", "_")
        install_package(
            distribution, modules={module: METRIC_SOURCE}, entry_points={GROUP: {"politeness": f"{module}:Politeness"}}
        )
    registry = MetricRegistry()
    with pytest.raises(ValueError, match="two metrics are called 'politeness'") as caught:
        registry.resolve("politeness")
    assert "polite-one" in str(caught.value)
    assert "polite-two" in str(caught.value)
    assert isinstance(dict(registry.describe_all())["politeness"], Exception)
    assert names_of(registry.resolve("cost")) == ["cost"]
    registry.register("politeness", Own, replace=True)
    assert isinstance(registry.create("politeness"), Own)


def test_a_package_cannot_take_one_of_agentunits_names(
    install_package: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    install_package(
        "cheap-metrics",
        modules={"cheap_metrics": METRIC_SOURCE},
        entry_points={GROUP: {"cost": "cheap_metrics:Politeness"}},
    )
    registry = MetricRegistry()
    for _ in range(2):
        assert isinstance(registry.create("cost"), CostMetric)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "warning: two metrics are called 'cost': one of AgentUnit itself and one of cheap-metrics 1.0"
    )
    assert registry.names().count("cost") == 1
    assert names_of(registry.resolve(["faithfulness"])) == ["faithfulness"]
    assert capsys.readouterr().err == ""


def test_a_package_may_offer_a_plain_function(install_package: Callable[..., Any]) -> None:
    install_package(
        "short-metrics",
        modules={"short_metrics": "def measure(answer):\n    return len(answer) < 20\n"},
        entry_points={GROUP: {"short": "short_metrics:measure"}},
    )
    (metric,) = MetricRegistry().resolve("short")
    assert (metric.name, metric.evaluate({"id": "q1"}, None, "Yes.").value) == ("short", 1.0)  # type: ignore[arg-type]


def test_a_group_nobody_offers_anything_in() -> None:
    assert (
        MetricRegistry(entry_point_group="agentunit.tests.nothing").names()
        == MetricRegistry(entry_point_group=None).names()
    )


# What a metric tells about itself


def test_a_minimal_metric_gets_a_minimal_description() -> None:
    info = describe(Own())
    assert (info.name, info.family, info.summary) == ("own", "custom", "Counts nothing.")
    assert (info.stateful, info.version, info.direction) == (False, "1", "none")


def test_stateful_and_version_are_read_from_a_minimal_metric() -> None:
    class Counting(Own):
        stateful = True
        version = "2.1"

    info = describe(Counting())
    assert (info.stateful, info.version, info.summary) == (True, "2.1", "")


class Slotted:
    __slots__ = ("threshold",)
    name = "slotted"

    def __init__(self) -> None:
        self.threshold = 5

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        return MetricResult(self.name, 1.0)


class Configured(Own):
    def __init__(self) -> None:
        self.threshold_ms = 5.0
        self._cache: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        (ToolTrajectoryMetric(mode="strict"), {"mode": "strict", "arguments": "equal"}),
        (FaithfulnessMetric("lexical"), {"backend": "lexical", "evidence": "all", "calibration": None}),
        (Configured(), {"threshold_ms": 5.0}),
        (Own(), {}),
    ],
)
def test_parameters_as_far_as_a_metric_tells(metric: Any, told: dict[str, Any]) -> None:
    assert parameters(metric) == told


def test_a_metric_without_a_dict_tells_what_it_can() -> None:
    assert parameters(Slotted()) in ({}, {"threshold": 5})


def test_the_table_of_our_own_answer_keys_is_what_the_metrics_declare(registry: MetricRegistry) -> None:
    declared = {name: metadata_inputs(registry.create(name)) or {} for name in _OWN_METRICS}
    keys = {name: tuple(key for key, use in uses.items() if use == "answer_key") for name, uses in declared.items()}
    assert {name: found for name, found in keys.items() if found} == _OWN_ANSWER_KEYS


def test_answer_keys_of_a_name_that_no_metric_has_do_not_load() -> None:
    with pytest.raises(ValueError, match=r"_OWN_ANSWER_KEYS: a metric must be one of .*; received 'rubrik'"):
        _require_own("_OWN_ANSWER_KEYS", {"rubrik": ("rubric",)})


def test_answer_keys_of_our_own_metrics_load_none_of_them(registry: MetricRegistry, monkeypatch: Any) -> None:
    monkeypatch.setattr("agentunit.metrics.registry.import_module", None)
    assert registry.answer_keys()["references"] == "image_caption_accuracy"


def test_a_metric_in_the_place_of_one_of_ours_states_its_own_answer_keys(registry: MetricRegistry) -> None:
    class Other(ContainsMetric):
        info = replace(ContainsMetric.info, inputs=("case.metadata.gold",), metadata_inputs={})

    registry.register("contains", Other, replace=True)
    keys = registry.answer_keys()
    assert (keys["gold"], "contains" in keys) == ("contains", False)
