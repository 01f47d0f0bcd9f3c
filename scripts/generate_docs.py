"""Write the pages of docs/ that are made from the code: ``python -m scripts.generate_docs [--check]``."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import fields
from pathlib import Path
from textwrap import dedent

from agentunit.formulas.sustainability import KM_PER_KG, TREES_PER_KG
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.registry import DEFAULT_METRICS, MetricRegistry, import_path, parameter_defaults
from agentunit.metrics.trust import describe_trust
from agentunit.multiagent import CoordinationMetrics, EmergentBehaviorMetrics, NetworkMetrics, analyzers
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.metrics import PIILeakageMetric
from agentunit.reports.figures import describe_values
from agentunit.reports.json_report import known_backends
from scripts.format_matrix import traces_page
from scripts.reference_pages import api_page, cli_page

DOCS = Path(__file__).resolve().parent.parent / "docs"

# One text for each type of personal data; the table shows what the detector makes of it.
PII_EXAMPLES = {
    "email": "Write to jane.doe@example.com.",
    "phone": "Call 212-555-0187.",
    "ssn": "My SSN is 536-22-8726.",
    "credit_card": "Card 4111-1111-1111-1111",
    "name": "Ask Jane Miller.",
    "address": "She lives at 12 Main Street, Springfield, IL 62701.",
    "iban": "IBAN DE89 3704 0044 0532 0130 00",
    "ip_address": "from 192.168.10.27",
    "mac_address": "00:1B:44:11:3A:B7",
    "passport": "Passport number: C01X00T47",
    "driver_license": "Driver's license: D1234567",
    "national_id": "Steuer-ID 86 095 742 719",
    "date_of_birth": "Born on 12 March 1984",
    "api_key": "AKIAIOSFODNN7EXAMPLE",
    "private_key": "-----BEGIN PRIVATE KEY----- MIIEvQIBADAN -----END PRIVATE KEY-----",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "password": "password: hunter2-Blue!",
    "crypto_address": "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    "medical_record": "MRN: 4857362",
}
NO_FORM = {"account"}
# What the top of the page of metrics says of all.
_USUAL_LOWER = "0 to 1; lower is better"
# Families that a page of their own describes, and metrics of other families that only their cards describe.
_PAGES = ("multimodal", "privacy", "sustainability", "multiagent")
_ONLY_HERE = {
    "task_success",
    "tool_trajectory",
    "tool_argument_validity",
    "regex",
    "json_schema",
    "exact_match",
    "answer_language",
    "assertions",
    "response_time",
}


def metrics_page() -> str:
    """The metrics page: the standard set, the families, then a card for each metric."""
    # Only AgentUnit's own metrics: what else is installed on the machine that writes the docs must not show.
    own = MetricRegistry(entry_point_group=None)
    metrics = [own.create(name) for name in own.names()]
    infos = [describe(metric) for metric in metrics]
    lines = [
        "# Metrics",
        "",
        "<!-- Generated from the metrics themselves (`make docs`); do not edit by hand. -->",
        "",
        "Every metric: what it says, its class and parameters, what it needs, and how far you can trust it. A score",
        "is a number, or `None` with a reason. ↑ higher is better, ↓ lower is better. Values are from 0 to 1 where",
        "nothing else is said. `agentunit metrics NAME` prints the rules in full, the keys of the detail, and what a",
        "judge is asked. [What was measured](validity.md). [How the catalog is read](catalog.md).",
        "",
        f"The standard set: {', '.join(_link(each) for each in infos if each.name in DEFAULT_METRICS)}.",
        "",
        "| family | metrics |",
        "|---|---|",
    ]
    for family in dict.fromkeys(each.family for each in infos):
        shown = f"[{family}]({family}.md)" if family in _PAGES else family
        lines.append(f"| {shown} | {', '.join(_link(each) for each in infos if each.family == family)} |")
    for metric in metrics:
        lines += ["", *_card(metric)]
    for section in (_combining, _by_name, _personal_data, _multi_agent, _equivalents, _migration):
        lines += ["", *section()]
    return "\n".join(lines) + "\n"


def _link(info: MetricInfo) -> str:
    mark = {"higher": " ↑", "lower": " ↓", "none": ""}[info.direction]
    return f"[`{info.name}`](#{info.name}){mark}"


def _trust(info: MetricInfo) -> str:
    """What each backend's scores are worth in a few words; backends of the same worth are named together."""
    backends: dict[str, list[str]] = {}
    for backend in known_backends(info):
        worth = describe_trust(info, backend) + (" (informational)" if backend in info.informational else "")
        backends.setdefault(worth, []).append(f"`{backend}`")
    return "; ".join(f"{', '.join(names)}: {worth}" for worth, names in backends.items())


def _card(metric: object) -> list[str]:
    info = describe(metric)
    prose = (type(metric).__doc__ or "").partition(">>>")[0].strip()
    if info.name not in _ONLY_HERE:
        prose = prose.partition("\n\n")[0]
    prose = "\n".join(line.strip() for line in prose.splitlines()).replace("``", "`")
    values = describe_values(info).removeprefix("0 to 1; higher is better").lstrip("; ")
    facts = [
        f"- class: `{import_path(metric)}`",
        *([f"- values: {values}"] if values and values != _USUAL_LOWER else []),
        *([f"- needs: {'; '.join(info.inputs)}"] if info.inputs else []),
        *_answer_keys(info),
        *_parameters(metric),
        f"- trust: {_trust(info)}",
    ]
    return [f"## {info.name}", "", prose, "", *facts]


def _parameters(metric: object) -> list[str]:
    """The parameters with their defaults; a ready rubric has those of ``rubric``."""
    defaults = parameter_defaults(metric)
    if getattr(metric, "given_criteria", ()):
        return [f"- parameters: those of [`rubric`](#rubric), with `reads={defaults['reads']!r}`"]
    listed = ", ".join(f"`{name}={value!r}`" for name, value in defaults.items())
    return [f"- parameters: {listed}"] if listed else []


def _combining() -> list[str]:
    return _section("""
        ## Combining metrics

        `agentunit.metrics.base.CompositeMetric(metrics, *, weights=None, name="composite")` is the mean of the values
        of its metrics; those without a value do not count. `weights` maps names of metrics to weights (1 for the
        others). `detail` is `{metric_name: metric_detail}`.

        ```python
        from agentunit.metrics.base import CompositeMetric
        from agentunit.metrics.builtin import AnswerCorrectnessMetric, ToolSuccessMetric

        composite = CompositeMetric([AnswerCorrectnessMetric(), ToolSuccessMetric()], name="quality")
        result = composite.evaluate({"id": "q1", "expected_output": "4"}, None, {"output": "4", "success": False})
        assert result.value == 0.5
        assert set(result.detail) == {"answer_correctness", "tool_success"}
        ```
        """)


def _by_name() -> list[str]:
    return _section("""
        ## Metrics by name

        `agentunit.metrics.resolve_metrics(metrics=None)` makes metrics of names, `module:Class` references, classes,
        factories or instances. `agentunit.metrics.DEFAULT_METRICS` is the standard set, a tuple of names.
        `agentunit.metrics.registry.register_metric(name, metric)` gives [a metric of your own](writing-metrics.md) a
        name.

        ```python
        from agentunit.metrics import DEFAULT_METRICS, resolve_metrics

        metrics = resolve_metrics(["faithfulness", "tool_success", {"contains": {"name": "polite"}}])
        assert [metric.name for metric in metrics] == ["faithfulness", "tool_success", "polite"]
        assert tuple(metric.name for metric in resolve_metrics()) == DEFAULT_METRICS
        ```
        """)


def _personal_data() -> list[str]:
    lines = _section("""
        ## Types of personal data

        What `pii_leakage` looks for, and how sure it is of the example. The score is the product of 1 − weight ·
        confidence over the distinct findings, with the weights of `severity_weights`, otherwise 0.5 (credentials: 1).

        | type | example | confidence |
        |---|---|---|
        """)
    metric = PIILeakageMetric()
    for kind in PII_TYPES:
        if kind in NO_FORM:
            continue
        findings = metric.evaluate({"id": "example"}, None, PII_EXAMPLES[kind]).detail["findings"]
        if [each["type"] for each in findings] != [kind]:
            raise ValueError(f"PII_EXAMPLES[{kind!r}] must hold one finding of its type; found {findings}")
        lines.append(f"| `{kind}` | `{PII_EXAMPLES[kind]}` | {findings[0]['confidence']:.2f} |")
    return lines


def _multi_agent() -> list[str]:
    lines = _section("""
        ## Multi-agent measures

        `agentunit.multiagent.MultiAgentMetricsCalculator(interactions, handoffs, conflicts, agent_roles)` computes
        what the three multi-agent metrics of the catalog rest on, as data classes. A field is `None` when there is
        nothing to compute it from.

        ```python
        from agentunit.multiagent import MultiAgentMetricsCalculator

        interactions = [{"from_agent": "lead", "to_agent": "coder"}, {"from_agent": "coder", "to_agent": "lead"}]
        calculator = MultiAgentMetricsCalculator(interactions=interactions, handoffs=[], conflicts=[], agent_roles={})
        coordination = calculator.calculate_coordination_metrics()
        network = calculator.calculate_network_metrics()
        emergent = calculator.calculate_emergent_behavior_metrics()
        assert (coordination.load_balance_score, network.density) == (1.0, 1.0)
        assert calculator.calculate_all() == {"coordination": coordination, "network": network, "emergent": emergent}
        ```

        | class | fields |
        |---|---|
        """)
    for kind in (CoordinationMetrics, NetworkMetrics, EmergentBehaviorMetrics):
        notes = _field_notes(kind)
        named = [
            f"`{field.name}`" + (f" ({notes[field.name]})" if field.name in notes else "") for field in fields(kind)
        ]
        lines.append(f"| `agentunit.multiagent.{kind.__name__}` | {', '.join(named)} |")
    return lines


def _field_notes(kind: type) -> dict[str, str]:
    """The texts below the fields of a data class of the analyzers."""
    # The class names the package that users import it from, not the module that has its source.
    defined = ast.parse(inspect.getsource(analyzers)).body
    (definition,) = (each for each in defined if isinstance(each, ast.ClassDef) and each.name == kind.__name__)
    notes = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            notes[field.target.id] = str(below.value.value)
    return notes


def _equivalents() -> list[str]:
    return _section(f"""
        ## Carbon equivalents

        `carbon_emissions` shows `detail["equivalents"]`: `km_driven` is kg × {KM_PER_KG:g} (kilometers by car),
        `trees_needed` is kg / {1 / TREES_PER_KG:g} (trees that take it up within a year).
        """)


def _migration() -> list[str]:
    return _section("""
        ## From 0.3 to 0.4

        `compute()` of a metric is now `evaluate(case, trace, outcome)`, which also receives the `TraceLog`. Privacy and
        sustainability metrics have modules of their own, `agentunit.privacy.metrics` and
        `agentunit.sustainability.metrics`.
        """)


def _section(text: str) -> list[str]:
    return dedent(text).strip().splitlines()


def _answer_keys(info: MetricInfo) -> list[str]:
    keys = [f"`{key}`" for key, use in info.metadata_inputs.items() if use == "answer_key"]
    return [f"- hidden from agents: metadata {', '.join(keys)}"] if keys else []


PAGES = {"api.md": api_page, "cli.md": cli_page, "metrics.md": metrics_page, "traces.md": traces_page}


def main() -> int:
    """Write the pages, or with ``--check`` say which are stale."""
    stale = []
    for name, make in PAGES.items():
        page, text = DOCS / name, make()
        if page.exists() and page.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            page.write_text(text, encoding="utf-8")
            print(f"wrote docs/{name}")
    if stale and "--check" in sys.argv:
        print(f"stale: {', '.join(stale)}; write them anew with: make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
