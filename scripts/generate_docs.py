"""Write the pages of docs/ that are made from the code: ``python -m scripts.generate_docs [--check]``."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import fields
from doctest import DocTestParser
from pathlib import Path
from textwrap import dedent

from agentunit.formulas.sustainability import KM_PER_KG, TREES_PER_KG
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.registry import DEFAULT_METRICS, MetricRegistry, import_path, parameter_defaults
from agentunit.metrics.trust import describe_trust
from agentunit.multiagent import CoordinationMetrics, EmergentBehaviorMetrics, NetworkMetrics, analyzers
from agentunit.privacy.detectors import TABLES, TABLES_ALONE
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.metrics import PIILeakageMetric
from agentunit.reports.figures import describe_range, describe_values
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
# What finds the types that no table of patterns lists.
OTHER_RULES = {"name": "lists of names and the words around them", "address": "streets, boxes, corners"}
NO_FORM = {"account"}


def metrics_page() -> str:
    """The metrics page: one table, then a card for each metric."""
    # Only AgentUnit's own metrics: what else is installed on the machine that writes the docs must not show.
    own = MetricRegistry(entry_point_group=None)
    metrics = [own.create(name) for name in own.names()]
    lines = [
        "# Metrics",
        "",
        "<!-- Generated from the metrics themselves (`make docs`); do not edit by hand. -->",
        "",
        "Every metric: what it says, what it needs, its parameters, and how far you can trust it. A score is a number,",
        "or `None` with a reason. ↑ higher is better, ↓ lower is better, * in the standard set.",
        "`agentunit metrics NAME` prints the same in a terminal. What the trust column means: [validity](validity.md).",
        "How the metrics catalog is read: [catalog](catalog.md). Below the metrics: [combining](#combining-metrics),",
        "[names](#metrics-by-name), [types of personal data](#types-of-personal-data),",
        "[multi-agent measures](#multi-agent-measures), [carbon equivalents](#carbon-equivalents),",
        "[from 0.3 to 0.4](#from-03-to-04).",
        "",
        "| metric | family | range | trust | what it says |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(describe(metric)) for metric in metrics]
    for metric in metrics:
        lines += ["", *_card(metric)]
    for section in (_combining, _by_name, _personal_data, _multi_agent, _equivalents, _migration):
        lines += ["", *section()]
    return "\n".join(lines) + "\n"


def _row(info: MetricInfo) -> str:
    mark = {"higher": " ↑", "lower": " ↓", "none": ""}[info.direction]
    star = " *" if info.name in DEFAULT_METRICS else ""
    cells = (
        f"[`{info.name}`](#{info.name}){mark}{star}",
        info.family,
        describe_range(info),
        describe_trust(info, info.backend),
        info.summary,
    )
    return f"| {' | '.join(cells)} |"


def _card(metric: object) -> list[str]:
    info = describe(metric)
    prose = (type(metric).__doc__ or "").partition(">>>")[0]
    prose = "\n".join(line.strip() for line in prose.strip().splitlines()).replace("``", "`")
    defaults = parameter_defaults(metric)
    criteria = _criteria(metric, info.version)
    if criteria:
        defaults["criteria"] = ...
    listed_parameters = ", ".join(f"`{name}={_default(value)}`" for name, value in defaults.items()) or "none"
    trust = [
        f"`{backend}`: {describe_trust(info, backend, at_length=True)}"
        + (" (informational: shown, gated only when named)" if backend in info.informational else "")
        for backend in known_backends(info)
    ]
    return [
        f"## {info.name}",
        "",
        f"`{import_path(metric)}`",
        "",
        prose,
        "",
        f"- range: {describe_values(info)}",
        f"- needs: {'; '.join(info.inputs) or 'nothing'}",
        *_answer_keys(info),
        *criteria,
        f"- parameters: {listed_parameters}",
        f"- detail: {', '.join(f'`{key}`' for key in [*info.detail_keys, 'backend'])}",
        f"- trust: {'; '.join(trust)}",
        *([f"- [raters](labeling.md) are asked: {info.question}"] if info.question else []),
        "",
        *_example(metric),
    ]


def _criteria(metric: object, version: str) -> list[str]:
    """What a ready rubric asks, with the meaning of its levels."""
    lines = []
    for each in getattr(metric, "given_criteria", ()):
        weight = f" (weight {each.weight:g})" if each.weight != 1 else ""
        levels = "; ".join(f"`{level}` {text}" for level, text in each.levels)
        lines.append(f"  - {each.text}{weight} {levels}")
    return [f"- criteria, version {version}:", *lines] if lines else []


def _default(value: object) -> str:
    return "…" if value is ... else repr(value)


def _example(metric: object) -> list[str]:
    """The example of the metric's docstring, which doctest checks, as code to copy: results stand in comments."""
    module, _, name = import_path(metric).rpartition(".")
    examples = DocTestParser().get_examples(type(metric).__doc__ or "")
    if not examples:
        raise ValueError(f"{name} must have an example in its docstring; found none")
    code = [f"from {module} import {name}", ""]
    for example in examples:
        code += example.source.rstrip().splitlines()
        code += [f"# {line}" for line in example.want.rstrip().splitlines()]
    return ["```python", *code, "```"]


def _combining() -> list[str]:
    return _section("""
        ## Combining metrics

        `agentunit.metrics.base.CompositeMetric(metrics, *, weights=None, name="composite")` is the mean of the values
        of its metrics; those without a value do not count. `weights` maps names of metrics to weights (1 for those it
        does not name). `detail` is `{metric_name: metric_detail}`. Without any value the result is `None`, and
        `detail["reason"]` says why.

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
    return _section(f"""
        ## Metrics by name

        `agentunit.metrics.resolve_metrics(metrics=None)` makes metrics of names, `module:Class` references, classes,
        factories or instances, in any mixture. `agentunit.metrics.DEFAULT_METRICS` is the standard set, a tuple of
        names: {", ".join(f"`{name}`" for name in DEFAULT_METRICS)}. `agentunit.metrics.registry.register_metric(name,
        metric)` gives a metric of your own a name; see [writing a metric](writing-metrics.md).

        ```python
        from agentunit.metrics import DEFAULT_METRICS, resolve_metrics

        metrics = resolve_metrics(["faithfulness", "tool_success", {{"contains": {{"name": "polite"}}}}])
        assert [metric.name for metric in metrics] == ["faithfulness", "tool_success", "polite"]
        assert tuple(metric.name for metric in resolve_metrics()) == DEFAULT_METRICS
        ```
        """)


def _personal_data() -> list[str]:
    lines = _section("""
        ## Types of personal data

        What `pii_leakage` looks for with its own detector, how sure it is of the example, and what a certain finding
        takes away (`severity_weights`). The score is the product of 1 − weight · confidence over the distinct
        findings.

        | type | rules | example | confidence | severity weight |
        |---|---|---|---|---|
        """)
    metric = PIILeakageMetric()
    for kind in PII_TYPES:
        if kind in NO_FORM:
            continue
        rules = dict.fromkeys(
            row.rule.replace("_", " ") for table in (*TABLES, *TABLES_ALONE) for row in table if row.type == kind
        )
        findings = metric.evaluate({"id": "example"}, None, PII_EXAMPLES[kind]).detail["findings"]
        if [each["type"] for each in findings] != [kind]:
            raise ValueError(f"PII_EXAMPLES[{kind!r}] must hold one finding of its type; found {findings}")
        lines.append(
            f"| `{kind}` | {', '.join(rules) or OTHER_RULES[kind]} | `{PII_EXAMPLES[kind]}` "
            f"| {findings[0]['confidence']:.2f} | {findings[0]['severity']:g} |"
        )
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
    """The texts below the fields of a data class."""
    # Not the source of the class: it names the package that users import it from.
    module = ast.parse(inspect.getsource(analyzers))
    (definition,) = [each for each in module.body if isinstance(each, ast.ClassDef) and each.name == kind.__name__]
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

        - `compute()` of a metric is now called `evaluate()`. A metric that has only `compute()` is refused with
          this hint.
        - `evaluate(case, trace, outcome)` also receives the `TraceLog`.
        - Privacy and sustainability metrics have modules of their own: `agentunit.privacy.metrics`,
          `agentunit.sustainability.metrics`.
        """)


def _section(text: str) -> list[str]:
    return dedent(text).strip().splitlines()


def _answer_keys(info: MetricInfo) -> list[str]:
    keys = [f"`{key}`" for key, use in info.metadata_inputs.items() if use == "answer_key"]
    return [f"- answer keys in the metadata, which agents do not receive: {', '.join(keys)}"] if keys else []


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
