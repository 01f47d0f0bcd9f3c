"""A suite: which agent, on which cases, measured how, and what counts as good enough."""

from __future__ import annotations

import os
import reprlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from agentunit.adapters.base import ISOLATIONS, Isolation
from agentunit.doors import part
from agentunit.engine.deciding.checks import ANSWERED
from agentunit.engine.deciding.gate_expressions import (
    Gate,
    GateError,
    parse_gate,
    refuse_impossible,
)
from agentunit.engine.scoring.case_fields import check_field
from agentunit.engine.scoring.judging import EVIDENCE
from agentunit.metrics.base import describe
from agentunit.metrics.registry import DEFAULT_METRICS, resolve_metrics
from agentunit.metrics.trust import known_backends
from agentunit.public import publish
from agentunit.traces.limits import LimitExceeded, check_yaml_depth


@dataclass
class Suite:
    """Everything ``agentunit run`` needs. A YAML suite has the same keys.

    ``dataset`` is a file (JSONL, CSV, YAML, Parquet) or the cases themselves. ``agent`` is a callable,
    ``module:function``, a ``CommandAgent``, an ``HttpAgent`` or an ``http(s)://`` address. ``gates`` are expressions
    such as ``"faithfulness >= 0.8"``. ``timeout_s`` ends a case, ``retries`` tries a failed one again with a fresh
    trace, ``repeats`` runs each case several times. A gate fails when fewer than ``min_coverage`` of the cases have a
    score; ``max_errors`` failed cases and scores are allowed (without it, a case that the agent never answers fails the
    run as any failing check does). A metric with parameters is ``{name: {parameter: …}}``.
    ``judge`` has settings of the judge that metrics may ask (``url``, ``model``, ``repeats``, ``max_spend_usd``,
    ``judges`` for a panel, …; the key comes from ``AGENTUNIT_JUDGE_API_KEY``). Agents do not receive what they are
    graded by (``expected_output``, the answer keys of metrics): ``grader_fields`` names more fields that only graders
    read, ``agent_fields`` lists all the metadata that agents receive. ``isolation`` says where a Python function runs:
    ``process`` (worker processes), ``thread`` (this process) or ``auto`` (``module:function`` in worker processes,
    objects in this one). ``agent_version`` is kept with the run, instead of a hash of the agent's source. ``cluster``
    names a field of the metadata (``metadata.customer``) by which cases are alike: intervals and tests are over its
    values, not over cases. ``store: masked`` lets the store keep records with personal data masked only. ``try_again:
    false`` is for agents whose acts cannot be repeated: newly failing cases are not tried again then.
    """

    dataset: Any
    agent: Any
    metrics: Sequence[Any] = DEFAULT_METRICS
    gates: Sequence[str] = ()
    name: str = "suite"
    concurrency: int = 4
    timeout_s: float | None = None
    retries: int = 0
    repeats: int = 1
    seed: int | None = None
    min_coverage: float = 0.8
    max_errors: int | None = None
    judge: Mapping[str, Any] | None = None
    grader_fields: Sequence[str] = ()
    agent_fields: Sequence[str] | None = None
    isolation: Isolation = "auto"
    agent_version: str | None = None
    cluster: str | None = None
    store: Literal["plain", "masked"] = "plain"
    try_again: bool = True
    folder: str = "."

    def __post_init__(self) -> None:
        for parameter, minimum in (("concurrency", 1), ("retries", 0), ("repeats", 1), ("max_errors", 0)):
            value = getattr(self, parameter)
            if value is None and parameter == "max_errors":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
                raise SuiteError(f"Suite: {parameter} must be a whole number of at least {minimum}; received {value!r}")
        if self.timeout_s is not None and not (_is_number(self.timeout_s) and self.timeout_s > 0):
            raise SuiteError(f"Suite: timeout_s must be a number above 0; received {self.timeout_s!r}")
        if self.isolation not in ISOLATIONS:
            raise SuiteError(f"Suite: isolation must be auto, process or thread; received {self.isolation!r}")
        if self.store not in ("plain", "masked"):
            raise SuiteError(f"Suite: store must be plain or masked; received {self.store!r:.80}")
        if not (_is_number(self.min_coverage) and 0 <= self.min_coverage <= 1):
            raise SuiteError(f"Suite: min_coverage must be from 0 to 1; received {self.min_coverage!r}")
        if not isinstance(self.try_again, bool):
            raise SuiteError(f"Suite: try_again must be true or false; received {self.try_again!r:.80}")
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int)):
            raise SuiteError(f"Suite: seed must be a whole number; received {self.seed!r}")
        if self.judge is not None:
            self.judge = judge_section(self.judge)
        self.grader_fields = checked_fields("grader_fields", self.grader_fields)
        if self.agent_fields is not None:
            self.agent_fields = checked_fields("agent_fields", self.agent_fields)
        if not isinstance(self.name, str) or not self.name.strip():
            raise SuiteError(f"Suite: name must be a text; received {self.name!r}")
        if self.agent_version is not None:
            if isinstance(self.agent_version, (bool, list, dict)) or not str(self.agent_version).strip():
                raise SuiteError(f"Suite: agent_version must be a text; received {self.agent_version!r:.80}")
            self.agent_version = str(self.agent_version)
        if self.cluster is not None:
            try:
                check_field(str(self.cluster))
            except ValueError as error:
                raise SuiteError(f"Suite: cluster: {error}") from None
        self.metrics = _as_metrics(self.metrics)
        self.gates = _as_gates(self.gates)

    def __repr__(self) -> str:
        # A dataset may be thousands of cases.
        shown = [f"{name}={reprlib.repr(getattr(self, name))}" for name in ("dataset", "agent", "metrics", "gates")]
        return f"Suite({', '.join(shown)}, name={self.name!r})"


class SuiteError(ValueError):
    """A suite that cannot be used; the message says why and what to do."""


def checked_fields(parameter: str, names: Any) -> tuple[str, ...]:
    """The names of fields that a suite or a marker lists as ``grader_fields`` or ``agent_fields``."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise SuiteError(f"Suite: {parameter} must be a list of names of fields; received {names!r:.80}")
    always = ("id", "query") if parameter == "grader_fields" else ("id", "query", "context", "tools")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise SuiteError(f"Suite: {parameter} must be names of fields; received {name!r:.80}")
        if name in always:
            raise SuiteError(f"Suite: {parameter} must name fields of the metadata; every agent receives {name!r}")
    return tuple(names)


def load_suite(path: str | os.PathLike[str], *, needs_agent: bool = True) -> Suite:
    """A suite of a Python file (its ``suite``, or the only ``Suite`` in it) or of a YAML file.

    One that is to be looked at, and not run, may leave its agent empty (``needs_agent``).
    """
    file = Path(path)
    if not file.is_file():
        raise SuiteError(f"{file}: no such file ('agentunit init' writes a suite to start from)")
    if file.suffix in (".yaml", ".yml"):
        suite = _from_yaml(file, needs_agent=needs_agent)
    elif file.suffix == ".py":
        suite = _from_python(file)
    else:
        raise SuiteError(f"{file}: a suite must be a .py, .yaml or .yml file")
    suite.folder = str(file.parent)
    if suite.name == "suite":
        suite.name = file.stem
    return suite


def _from_python(file: Path) -> Suite:
    folder = str(file.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = ModuleType(f"agentunit_suite_{file.stem}")
    module.__file__ = str(file)
    # Known by name while it runs, so that what it defines (dataclasses, agents in processes) can be found again.
    sys.modules[module.__name__] = module
    # Compiled here and now: Python's cache tells files apart by second and size, and a suite is edited and rerun at
    # once.
    exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    named = getattr(module, "suite", None)
    if isinstance(named, Suite):
        return named
    found = [value for value in vars(module).values() if isinstance(value, Suite)]
    if len(found) != 1:
        raise SuiteError(f"{file}: a suite file must define 'suite = Suite(…)'; found {len(found)} suites")
    return found[0]


def _settings_in(file: Path, what: str) -> dict[str, Any]:
    import yaml

    try:
        text = file.read_text(encoding="utf-8")
        check_yaml_depth(text)
        content = yaml.safe_load(text)
    except (yaml.YAMLError, LimitExceeded, UnicodeDecodeError) as error:
        raise SuiteError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise SuiteError(f"{file}: {what} must be a mapping of settings; received {type(content).__name__}")
    return content


def judges_in(file: Path) -> dict[str, dict[str, Any]]:
    """The settings of judges by their names, which a YAML file has under ``judges``."""
    judges = _settings_in(file, "it").get("judges")
    if not isinstance(judges, dict):
        raise SuiteError(f"{file}: must hold judges by their names, as 'judges: {{NAME: {{url: …, model: …}}}}'")
    return {str(name): judge_section(judge, f"{file}: judge {name}") for name, judge in judges.items()}


def _from_yaml(file: Path, *, needs_agent: bool) -> Suite:
    content = _settings_in(file, "a YAML suite")
    known = {field.name for field in fields(Suite)} - {"folder"}
    unknown = [str(key) for key in content if key not in known]
    if unknown:
        raise SuiteError(f"{file}: settings must be among {', '.join(sorted(known))}; received {unknown[0]!r}")
    if not needs_agent:
        content = {"agent": None, **content}
    for required in ("dataset", "agent"):
        if required not in content:
            raise SuiteError(f"{file}: {required!r} is missing")
    if content["agent"] is None and needs_agent:
        raise SuiteError(
            f"{file}: 'agent' is empty: name yours there, as module:function (found next to the suite), "
            '"command: …" or an https:// address'
        )
    for key in ("metrics", "name"):
        if key in content and content[key] is None:
            raise SuiteError(f"{file}: {key!r} is empty; name something, or leave the line out for the default")
    folder = str(file.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return Suite(**content)


def _as_metrics(metrics: Any) -> Any:
    """One name, or several separated by commas, is a list of them; what is wrong in a list, the registry says."""
    if metrics is None:
        return DEFAULT_METRICS
    if isinstance(metrics, str) and metrics.strip():
        return [name.strip() for name in metrics.split(",") if name.strip()]
    if isinstance(metrics, (str, bool, int, float)):
        raise SuiteError(f"Suite: metrics must be a list of names, such as [contains, cost]; received {metrics!r}")
    return metrics


def _as_gates(gates: Any) -> Sequence[str]:
    if gates is None:
        return ()
    listed = [gates] if isinstance(gates, str) else gates
    if isinstance(listed, Mapping) or not isinstance(listed, Sequence) or not all(isinstance(g, str) for g in listed):
        raise SuiteError(f"Suite: gates must be a list of texts like 'faithfulness >= 0.8'; received {gates!r:.80}")
    return listed


def judge_section(received: Any, owner: str = "Suite") -> dict[str, Any]:
    """Settings of a judge as a file holds them, which others may read: a key among them is refused."""
    if not isinstance(received, Mapping):
        received = f"{received!r:.80}"
        raise SuiteError(f"{owner}: judge must be a mapping of settings such as url and model; received {received}")
    judges = received.get("judges")
    listed = judges if isinstance(judges, (list, tuple)) else ()
    if any("api_key" in each for each in listed if isinstance(each, Mapping)):
        raise SuiteError(f"{owner}: a key must not be in a file; name its environment variable as api_key_env")
    if "api_key" in received:
        raise SuiteError(f"{owner}: a key must not be in a file; set AGENTUNIT_JUDGE_API_KEY in the environment")
    for each in (received, *(each for each in listed if isinstance(each, Mapping))):
        _refuse_secrets(each, owner)
    section = dict(received)
    if isinstance(section.get("cache"), bool):  # YAML reads "off" so
        section["cache"] = "default" if section["cache"] else None
    return section


def _refuse_secrets(judge: Mapping[str, Any], owner: str) -> None:
    """Refuse a key in the address of a judge, or in the fields of its requests."""
    try:
        shown = part("open_secret")(judge) if judge else None
    except ValueError as error:
        raise SuiteError(f"Suite: {error}") from None
    if shown == "url":
        raise SuiteError(
            f"{owner}: a key must not be in a file, nor in its judge's url; name its environment variable as "
            "api_key_env, or set AGENTUNIT_JUDGE_URL in the environment"
        )
    if shown == "extra_body":
        raise SuiteError(
            f"{owner}: a key must not be in a file, nor in its judge's extra_body; set AGENTUNIT_JUDGE_EXTRA_BODY in "
            "the environment"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# The metrics that gates name: a slip in a gate is told before anything is run, read or scored.


def with_gated_metrics(suite: Suite) -> Suite:
    """A suite whose gates can be answered: the metrics they name are scored, and repeats suffice."""
    gates = [parse_gate(expression) for expression in suite.gates]
    for gate in gates:
        if gate.repeats_needed > suite.repeats:
            raise SuiteError(
                f"gate {str(gate)!r} needs {gate.repeats_needed} repeats of each case; received {suite.repeats} "
                f"(--repeats {gate.repeats_needed})"
            )
    # These are told by judged scores or by the run itself, and no metrics of their own.
    told = {*EVIDENCE, ANSWERED.name}
    scored = [gate for gate in gates if gate.metric not in told]
    return replace(suite, metrics=metrics_of_gates(scored, resolve_metrics(suite.metrics)))


def metrics_of_gates(gates: Iterable[Gate], at_hand: Sequence[Any]) -> list[Any]:
    """The metrics that are at hand, and those that gates name besides."""
    metrics = {metric.name: metric for metric in at_hand}
    for gate in gates:
        metrics[gate.metric] = gated_metric(gate, metrics.get(gate.metric))
    return list(metrics.values())


def gated_metric(gate: Gate, metric: Any = None) -> Any:
    """The metric that a gate is about, unless it is at hand already. A name that nothing has is a ``GateError``."""
    if metric is None:
        try:
            [metric] = resolve_metrics([gate.metric])
        except (ValueError, TypeError, RuntimeError) as error:
            raise GateError(f"gate {str(gate)!r}: {error}") from None
    # Backends of other packages need not be known here, so only what is close to a known one is taken for a slip.
    known = known_backends(describe(metric))
    near = [] if gate.backend is None or gate.backend in known else get_close_matches(gate.backend, known, n=1)
    if near:
        raise GateError(f"gate {str(gate)!r}: {gate.metric} has no backend {gate.backend!r}; did you mean {near[0]!r}?")
    refuse_impossible(gate, describe(metric))
    return metric


publish("agentunit", Suite)
