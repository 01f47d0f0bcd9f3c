"""``agentunit metrics``: what can be measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from agentunit.cli.options import Option, Verb, json_option
from agentunit.core.results import encode_json
from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.registry import DEFAULT_METRICS, UnknownMetricError, import_path, parameter_defaults, registry
from agentunit.metrics.trust import describe_trust, known_backends
from agentunit.reports.console import plain_table
from agentunit.reports.figures import DIRECTION_MARK, describe_values
from agentunit.reports.json_report import info_as_data
from agentunit.reports.terminal import Column, Terminal, Text, TextTable

_WIDTH_WITH_TRUST = 100


@click.command(cls=Verb)
@click.argument("name", required=False, metavar="[NAME|FAMILY]")
@click.option(
    "--why", "unfolds", cls=Option, former=("--all",), is_flag=True, help="List every family, with what is measured."
)
@json_option("Print everything as JSON.")
def metrics(name: str | None, unfolds: bool, as_json: bool) -> None:
    """List the metrics: the standard set, then the others by family; or those of a family, or everything about one.

    \b
    agentunit metrics
    agentunit metrics privacy
    agentunit metrics faithfulness
    """
    described = list(registry.describe_all())
    families: dict[str, list[str]] = {}
    for each, info in described:
        families.setdefault("does not load" if isinstance(info, Exception) else info.family, []).append(each)
    if name is not None and name not in families:
        _show_one(name, as_json)
    elif as_json:
        shown = [_as_data(each, info) for each, info in described if name is None or each in families[name]]
        click.echo(encode_json(shown).decode())
    else:
        _show_list(dict(described), families, None if unfolds else name or "")


def _show_list(
    infos: Mapping[str, MetricInfo | Exception], families: Mapping[str, list[str]], only: str | None
) -> None:
    """Print the metrics of a family, of all (``None``), or the standard set and the names of the others (``""``)."""
    console = Terminal()
    # In a narrow window the text has no room beside the trust, which 'agentunit metrics NAME' tells at length.
    with_trust = console.width >= _WIDTH_WITH_TRUST
    fixed = ("metric", "trust") if with_trust else ("metric",)
    table = plain_table(*fixed, "what it says", fixed=fixed)
    unfolded = (
        {"standard set": list(DEFAULT_METRICS)} if only == "" else families if only is None else {only: families[only]}
    )
    for family, names in unfolded.items():
        table.add_row(Text(family, style="dim italic"))
        for name in names:
            info = infos[name]
            if isinstance(info, Exception):
                table.add_row(name, *[""] * with_trust, Text(f"does not load: {info}", style="red"))
                continue
            starred = name + DIRECTION_MARK[info.direction] + (" *" if name in DEFAULT_METRICS else "")
            # What follows the figure is said with each score.
            trust = [describe_trust(info, info.backend).partition(";")[0]] if with_trust else []
            table.add_row(starred, *trust, Text(info.summary))
    console.print(table)
    if only == "":
        folded = TextTable(Column(style="dim italic"), Column())
        for family, names in families.items():
            folded.add_row(family, Text(", ".join(name for name in names if name not in DEFAULT_METRICS)))
        console.print("\nby family")
        console.print(folded)
    click.echo("\n↑ higher is better, ↓ lower is better, * in the standard set")
    click.echo("next: agentunit metrics NAME|FAMILY   or   agentunit score FILE -m NAME,NAME")


def _show_one(name: str, as_json: bool) -> None:
    try:
        metric = registry.create(name)
    except (UnknownMetricError, ValueError, ImportError, TypeError) as error:
        raise click.BadParameter(str(error), param_hint="NAME") from None
    info = describe(metric)
    if as_json:
        click.echo(encode_json(info_as_data(info, parameter_defaults(metric), import_path(metric))).decode())
        return
    console = Terminal()
    console.print(Text(info.name, style="bold").append(f"  {info.summary}", style="not bold"))
    defaults = parameter_defaults(metric)
    rows = {
        "class": import_path(metric),
        "family": info.family,
        "range": describe_values(info),
        "needs": "; ".join(info.inputs) or "–",
        "answer keys": ", ".join(key for key, use in info.metadata_inputs.items() if use == "answer_key") or "–",
        "parameters": ", ".join(f"{key}={_shown(key, value)}" for key, value in defaults.items()) or "none",
        "detail": ", ".join([*info.detail_keys, "backend"]),
        "version": info.version,
    }
    if info.question:
        rows["raters are asked"] = info.question + (" (a share)" if info.graded else "")
    for backend in known_backends(info):
        note = "; informational: shown, gated only when named" if backend in info.informational else ""
        rows[f"trust ({backend})"] = describe_trust(info, backend, at_length=True) + note
    for number, criterion in enumerate(getattr(metric, "given_criteria", ()), 1):
        weight = f" (weight {criterion.weight:g})" if criterion.weight != 1 else ""
        levels = [f"  {level}: {text}" for level, text in criterion.levels]
        rows[f"criterion {number}"] = "\n".join([f"{criterion.text}{weight}", *levels])
    if info.stateful:
        rows["order"] = "keeps state: cases are scored in their order"
    table = TextTable(Column(style="dim"), Column())
    for key, value in rows.items():
        table.add_row(key, Text(value))
    console.print(table)
    documentation = (metric.__doc__ or "").partition(">>>")[0].strip()
    if documentation:
        console.print("\n" + "\n".join(line.strip() for line in documentation.splitlines()))


def _shown(name: str, value: Any) -> str:
    """A default in short; criteria have rows of their own."""
    return "…" if name == "criteria" and value else repr(value)


def _as_data(name: str, found: MetricInfo | Exception) -> dict[str, Any]:
    if isinstance(found, Exception):
        return {"name": name, "error": f"{type(found).__name__}: {found}"}
    metric = registry.create(name)
    return info_as_data(found, parameter_defaults(metric), import_path(metric))
