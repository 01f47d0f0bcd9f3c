"""Names to metrics: AgentUnit's own, a user's, and those of installed packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from hashlib import blake2b
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from agentunit.metrics.base import (
    MetadataUse,
    Metric,
    MetricInfo,
    describe,
    has_evaluate,
    info_metadata_inputs,
    metadata_inputs,
    renamed_method,
)
from agentunit.metrics.functions import FunctionMetric, is_metric_function
from agentunit.metrics.parameters import adjusted, made_with, named_with_parameters
from agentunit.plugins import Plugin, PluginTable

ENTRY_POINT_GROUP = "agentunit.metrics"

DEFAULT_METRICS = ("faithfulness", "answer_correctness", "tool_success", "cost", "token_usage")
"""The standard set, by name."""

# The families are known by module and class name only, so that listing a name does not import them all.
_OWN_METRICS = {
    "faithfulness": "agentunit.metrics.builtin:FaithfulnessMetric",
    "answer_correctness": "agentunit.metrics.builtin:AnswerCorrectnessMetric",
    "hallucination_rate": "agentunit.metrics.builtin:HallucinationRateMetric",
    "retrieval_quality": "agentunit.metrics.builtin:RetrievalQualityMetric",
    "rubric": "agentunit.addons.judge.rubric_metric:RubricMetric",
    "helpfulness": "agentunit.addons.judge.rubrics:HelpfulnessMetric",
    "refusal": "agentunit.addons.judge.rubrics:RefusalMetric",
    "tone": "agentunit.addons.judge.rubrics:ToneMetric",
    "instruction_following": "agentunit.addons.judge.rubrics:InstructionFollowingMetric",
    "plan_quality": "agentunit.addons.judge.rubrics:PlanQualityMetric",
    "tool_choice": "agentunit.addons.judge.rubrics:ToolChoiceMetric",
    "goal_kept": "agentunit.addons.judge.rubrics:GoalKeptMetric",
    "request_met": "agentunit.addons.judge.rubrics:RequestMetMetric",
    "tool_success": "agentunit.metrics.builtin:ToolSuccessMetric",
    "task_success": "agentunit.metrics.checks:TaskSuccessMetric",
    "tool_trajectory": "agentunit.metrics.trajectory:ToolTrajectoryMetric",
    "tool_argument_validity": "agentunit.metrics.tools:ToolArgumentValidityMetric",
    "contains": "agentunit.metrics.assertions:ContainsMetric",
    "regex": "agentunit.metrics.assertions:RegexMetric",
    "json_schema": "agentunit.metrics.assertions:JsonSchemaMetric",
    "exact_match": "agentunit.metrics.assertions:ExactMatchMetric",
    "answer_language": "agentunit.addons.language.answer_language:AnswerLanguageMetric",
    "assertions": "agentunit.addons.review.case_assertions:AssertionsMetric",
    "cost": "agentunit.metrics.builtin:CostMetric",
    "token_usage": "agentunit.metrics.builtin:TokenUsageMetric",
    "response_time": "agentunit.metrics.timing:ResponseTimeMetric",
    "cross_modal_grounding": "agentunit.multimodal.clip_metric:CrossModalGroundingMetric",
    "image_caption_accuracy": "agentunit.multimodal.reference_texts:ImageCaptionAccuracyMetric",
    "video_response_relevance": "agentunit.multimodal.video:VideoResponseRelevanceMetric",
    "audio_transcription_quality": "agentunit.multimodal.reference_texts:AudioTranscriptionMetric",
    "multimodal_coherence": "agentunit.multimodal.metrics:MultimodalCoherenceMetric",
    "pii_leakage": "agentunit.privacy.leakage:PIILeakageMetric",
    "privacy_budget": "agentunit.privacy.budget:PrivacyBudgetMetric",
    "data_minimization": "agentunit.privacy.minimization:DataMinimizationMetric",
    "consent_compliance": "agentunit.privacy.consent:ConsentComplianceMetric",
    "energy_consumption": "agentunit.sustainability.energy:EnergyMetric",
    "carbon_emissions": "agentunit.sustainability.carbon:CarbonMetric",
    "resource_utilization": "agentunit.sustainability.metrics:ResourceUtilizationMetric",
    "coordination_efficiency": "agentunit.multiagent.metrics:CoordinationEfficiencyMetric",
    "swarm_intelligence": "agentunit.multiagent.metrics:SwarmIntelligenceMetric",
    "network_fault_tolerance": "agentunit.multiagent.metrics:NetworkFaultToleranceMetric",
    "step_repetition": "agentunit.multiagent.conversation_metrics:StepRepetitionMetric",
    "ping_pong": "agentunit.multiagent.conversation_metrics:PingPongMetric",
    "agent_dominance": "agentunit.multiagent.conversation_metrics:AgentDominanceMetric",
    "unanswered_requests": "agentunit.multiagent.conversation_metrics:UnansweredRequestsMetric",
}

# What they grade by in ``case.metadata``, so that hiding it from agents does not import them all either.
_OWN_ANSWER_KEYS: dict[str, tuple[str, ...]] = {
    "rubric": ("rubric",),
    "task_success": ("expected_state", "check"),
    "tool_trajectory": ("expected_tool_calls",),
    "contains": ("contains",),
    "regex": ("regex",),
    "json_schema": ("json_schema",),
    "assertions": ("assertions",),
    "image_caption_accuracy": ("references", "captions"),
    "audio_transcription_quality": ("transcript", "references"),
    "data_minimization": ("sensitive", "necessary", "expected_tool_calls"),
}


def _require_own(what: str, names: Iterable[str]) -> None:
    for name in names:
        if name not in _OWN_METRICS:
            raise ValueError(f"{what}: a metric must be one of {', '.join(_OWN_METRICS)}; received {name!r}")


# Answer keys under a name that no metric has would be shown to agents.
_require_own("_OWN_ANSWER_KEYS", _OWN_ANSWER_KEYS)
_require_own("DEFAULT_METRICS", DEFAULT_METRICS)

MetricSource = Metric | type | Callable[..., Any]
"""What may stand behind a name: an instance, a class, a function that makes one, or a function that scores."""


class UnknownMetricError(ValueError):
    """A name that no metric has."""


class MetricRegistry:
    """The metrics that can be called by name. Most users need only the functions of this module."""

    def __init__(self, own: dict[str, str] | None = None, *, entry_point_group: str | None = ENTRY_POINT_GROUP) -> None:
        self._own = dict(_OWN_METRICS if own is None else own)
        self._registered: dict[str, MetricSource] = {}
        self.table: PluginTable[Any] = PluginTable("metric", entry_point_group, self._own, adopt=_adopted)

    def register(self, name: str, source: MetricSource, *, replace: bool = False) -> None:
        """Give a metric a name. A name that is taken is refused unless ``replace`` is true.

        The same metric may be registered again: a notebook cell that is run twice makes a new class of the same name.
        """
        if not isinstance(name, str) or not name.strip() or ":" in name or "," in name:
            raise ValueError(f"register_metric: name must be a text without ':' or ','; received {name!r}")
        if not _can_be_metric(source):
            raise TypeError(
                "register_metric: metric must be an instance with 'name' and 'evaluate', a class or a function; "
                f"received {source!r:.80}{renamed_method(source)}"
            )
        if isinstance(source, type) and (hint := renamed_method(source)):
            raise TypeError(f"register_metric: metric must have an 'evaluate' method; received {source!r:.80}{hint}")
        again = name in self._registered and _same_source(self._registered[name], source)
        if not (replace or again) and name in self.names():
            raise ValueError(
                f"register_metric: name must not be taken; received {name!r}, which is {self._owner(name)} "
                "(replace=True takes its place)"
            )
        self._registered[name] = source

    def names(self) -> list[str]:
        """All names: AgentUnit's own first, then registered ones, then those of installed packages."""
        return list(dict.fromkeys([*self._own, *self._registered, *self.table.brought]))

    def create(self, name: str, parameters: Mapping[str, Any] | None = None) -> Metric:
        """A metric of this name, with these parameters in place of their defaults."""
        if name in self._registered:
            return instantiate(self._registered[name], f"the metric registered as {name!r}", parameters, name)
        if name in self.table.entries:
            return instantiate(self.table.load(name), str(self.table.entries[name]), parameters, name)
        nearest = get_close_matches(name, self.names(), n=1, cutoff=0.65)
        others = "'agentunit metrics' lists them; your own: module:Class or module:function"
        hint = f"did you mean {nearest[0]!r}?" if nearest else others
        raise UnknownMetricError(f"no metric is called {name!r}; {hint}")

    def resolve(self, metrics: Iterable[Any] | Any | None = None) -> list[Metric]:
        """Metrics of names, ``module:attribute`` references, classes, functions or instances, in any mixture.

        A name with parameters is a mapping of one to the other: ``{"faithfulness": {"backend": "judge"}}``.
        """
        if metrics is None:
            metrics = DEFAULT_METRICS
        if isinstance(metrics, Mapping):
            metrics = [{name: values} for name, values in metrics.items()]
        if isinstance(metrics, str) or _can_be_metric(metrics) or not isinstance(metrics, Iterable):
            metrics = [metrics]
        resolved = [self._resolve_one(each) for each in metrics]
        if not resolved:
            raise ValueError("resolve_metrics: metrics must hold at least one; received none")
        seen: set[str] = set()
        for metric in resolved:
            if metric.name in seen:
                raise ValueError(
                    f"resolve_metrics: metrics must have different names; received {metric.name!r} twice "
                    "(assertions and rubrics take name='…'; others can be wrapped or left out)"
                )
            seen.add(metric.name)
        return resolved

    def describe_all(self) -> Iterator[tuple[str, MetricInfo | Exception]]:
        """Every name with its facts, or with the reason why an installed package's metric does not load."""
        for name in self.names():
            try:
                yield name, describe(self.create(name))
            except Exception as error:  # noqa: BLE001  # a listing must survive a broken third-party package
                yield name, error

    def answer_keys(self) -> dict[str, str]:
        """Every field of ``case.metadata`` that is an answer key of a metric, with the name of that metric."""
        found: dict[str, str] = {}
        for name in self.names():
            for key in self._answer_keys_of(name):
                found.setdefault(key, name)
        return found

    def _answer_keys_of(self, name: str) -> Iterable[str]:
        if name not in self._registered and name in self._own and self._own[name] == _OWN_METRICS.get(name):
            return _OWN_ANSWER_KEYS.get(name, ())
        try:
            uses = self._metadata_inputs(name) or {}
        except Exception:  # noqa: BLE001  # a broken third-party package grades nothing
            return ()
        return [key for key, use in uses.items() if use == "answer_key"]

    def _metadata_inputs(self, name: str) -> dict[str, MetadataUse] | None:
        if name in self._registered:
            source: Any = self._registered[name]
        else:
            source = _load(self._own[name]) if name in self._own else self.table.brought[name].load()
        # A class that has its facts need not be made: making one may take a model or a judge.
        info = getattr(source, "info", None) if isinstance(source, type) else None
        if isinstance(info, MetricInfo):
            return info_metadata_inputs(info)
        return metadata_inputs(instantiate(source, f"metric {name!r}"))

    def _resolve_one(self, source: Any) -> Metric:
        if isinstance(source, (str, Mapping)):
            name, values = (source, None) if isinstance(source, str) else named_with_parameters(source)
            return instantiate(_load(name), f"metric {name!r}", values) if ":" in name else self.create(name, values)
        if _can_be_metric(source):
            return instantiate(source, f"metric {getattr(source, '__name__', type(source).__name__)}")
        raise TypeError(
            "resolve_metrics: a metric must be a name, a class, a function or an instance; "
            f"received {source!r:.80}{renamed_method(source)}"
        )

    def _owner(self, name: str) -> str:
        if name in self._registered:
            return "registered already"
        return "AgentUnit's own" if name in self._own else f"a metric of {self.table.brought[name].package}"


def instantiate(source: Any, who: str, parameters: Mapping[str, Any] | None = None, name: str | None = None) -> Metric:
    """A metric of an instance, a class, a factory or a function; what is not a metric is refused by name.

    A function that scores is called ``name`` where it is known by one, else as it is defined.
    """
    if _is_instance(source):
        made = adjusted(source, parameters, who) if parameters else source
    elif not isinstance(source, type) and is_metric_function(source, parameters or ()):
        return FunctionMetric(source, name, parameters)
    else:
        made = made_with(source, parameters, who) if parameters else source()
    if not _is_instance(made):
        raise TypeError(
            f"{who} must have a 'name' and an 'evaluate' method; received {made!r:.80}{renamed_method(made)}"
        )
    # An info that cannot be read or kept with a run is known here, by the metric's name, and not in the middle of one.
    info = describe(made)
    try:
        msgspec.to_builtins(info)
    except (TypeError, ValueError) as error:
        raise TypeError(f"metric {made.name!r}: its info cannot be written as JSON: {error}") from None
    return made  # type: ignore[no-any-return]


def import_path(metric: Any) -> str:
    """The path that users import a metric's class from: the documented one for AgentUnit's own.

    >>> from agentunit.privacy.metrics import PIILeakageMetric
    >>> import_path(PIILeakageMetric())
    'agentunit.privacy.metrics.PIILeakageMetric'
    """
    kind = metric if isinstance(metric, type) else type(metric)
    return f"{kind.__module__}.{kind.__qualname__}"


def parameters(metric: Any) -> dict[str, Any]:
    """The parameters a metric was made with, as far as it tells."""
    if isinstance(metric, FunctionMetric):
        return dict(metric.options)
    if is_dataclass(metric):
        return {field.name: getattr(metric, field.name) for field in fields(metric) if field.name != "name"}
    return {
        key: value
        for key, value in getattr(metric, "__dict__", {}).items()
        if not key.startswith("_") and key not in ("name", "info")
    }


def parameter_defaults(metric: Any) -> dict[str, Any]:
    """The parameters of one of AgentUnit's metrics, or of a function, with their defaults."""
    defaults: dict[str, Any] = dict(metric.options) if isinstance(metric, FunctionMetric) else {}
    for field in fields(metric) if is_dataclass(metric) else ():
        factory = field.default_factory
        defaults[field.name] = factory() if factory is not MISSING else field.default
    return defaults


def parameters_digest(metric: Any) -> str:
    """What tells the parameters of one of AgentUnit's metrics, or of a function, apart; empty where all are defaults.

    What is not data, such as a function, is left out: it is another object in every process.
    """
    is_function = isinstance(metric, FunctionMetric)
    if not is_function and not is_dataclass(metric):
        return ""
    # The version of a function tells its defaults. Those of a class may get more in a release that changes no score.
    defaults = {} if is_function else parameter_defaults(metric)
    changed: dict[str, Any] = {}
    for name, value in parameters(metric).items():
        with suppress(TypeError, ValueError):
            if name not in defaults or value != defaults[name]:
                msgspec.json.encode(value, order="deterministic")
                changed[name] = value
    if not changed:
        return ""
    return blake2b(msgspec.json.encode(changed, order="deterministic"), digest_size=8).hexdigest()


def _is_instance(source: Any) -> bool:
    return not isinstance(source, type) and isinstance(getattr(source, "name", None), str) and has_evaluate(source)


def _adopted(source: Any, _: Plugin) -> Any:
    if not _can_be_metric(source):
        raise TypeError(f"what its package offers is not a metric; received {source!r:.80}")
    return source


def _can_be_metric(source: Any) -> bool:
    return _is_instance(source) or callable(source)


def _same_source(one: Any, other: Any) -> bool:
    """Whether two sources are the same metric: one class or function by its path, or such instances with equal fields.

    Lambdas all have the same path, so only the very same one counts.
    """
    if one is other:
        return True
    named = [each if hasattr(each, "__qualname__") else type(each) for each in (one, other)]
    paths = {(each.__module__, each.__qualname__) for each in named}
    if len(paths) > 1 or "<lambda>" in named[0].__qualname__ or _is_instance(one) != _is_instance(other):
        return False
    return not _is_instance(one) or bool(parameters(one) == parameters(other))


def _load(reference: str) -> Any:
    module_name, _, attribute = reference.rpartition(":")
    try:
        module = _module_of_file(module_name) if module_name.endswith(".py") else import_module(module_name)
    except ModuleNotFoundError as error:
        # Only "there is no such module" is the caller's mistake; a module that fails inside speaks for itself.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise UnknownMetricError(f"no module {module_name!r} to load the metric {reference!r} from") from None
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise UnknownMetricError(f"module {module_name!r} has no {attribute!r}") from None


def _module_of_file(path: str) -> ModuleType:
    file = Path(path)
    if not file.is_file():
        raise UnknownMetricError(f"no file {path!r} to load a metric from")
    spec = spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UnknownMetricError(f"{path!r} cannot be loaded as a Python file")
    module = module_from_spec(spec)
    if sys.modules.setdefault(file.stem, module) is module:
        _loaded_files[file.stem] = os.path.abspath(file)
    spec.loader.exec_module(module)
    return module


_loaded_files: dict[str, str] = {}


def loaded_files() -> dict[str, str]:
    """The files that metrics were loaded from, by the names that their modules have in this process."""
    return dict(_loaded_files)


def load_files(files: Mapping[str, str]) -> None:
    """Load the files that another process has loaded, so that what it sends can name them.

    One that is gone since may have been of an earlier metric. Where it is needed, what was sent cannot be read.
    """
    for name, path in files.items():
        if name not in sys.modules and os.path.exists(path):
            _module_of_file(path)


registry = MetricRegistry()


def register_metric(name: str, metric: MetricSource, *, replace: bool = False) -> None:
    """Make a metric available by name: a class, an instance, or a function such as ``def brevity(answer): …``.

    A name that is taken raises ``ValueError``; ``replace=True`` takes its place. Registering the same metric again is
    no conflict: the newer one counts.
    """
    registry.register(name, metric, replace=replace)


def resolve_metrics(metrics: Iterable[Any] | Any | None = None) -> list[Metric]:
    """Metrics of names, ``module:attribute`` references, classes, functions or instances; default: the standard set.

    >>> [metric.name for metric in resolve_metrics(["faithfulness", {"contains": {"name": "polite"}}])]
    ['faithfulness', 'polite']
    >>> resolve_metrics(["faithfullness"])
    Traceback (most recent call last):
    ...
    agentunit.metrics.registry.UnknownMetricError: no metric is called 'faithfullness'; did you mean 'faithfulness'?
    """
    return registry.resolve(metrics)
