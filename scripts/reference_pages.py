"""The pages of docs/ that say what commands and the Python API take, made from the code itself."""

from __future__ import annotations

import dataclasses
import inspect
import re
from textwrap import dedent

import click
import msgspec

import agentunit
from agentunit.cli.main import cli

_GENERATED = "<!-- Generated from the code (`make docs`); do not edit by hand. -->"
# Objects that stand beside one another on the page, in the order in which a reader meets them.
_GROUPS = {
    "Score and run": [
        "score",
        "Run",
        "run",
        "RunResult",
        "compare",
        "Comparison",
        "Suite",
        "read_records",
        "configure",
    ],
    "Records": ["Record", "DatasetCase", "TraceLog", "TraceEvent", "Outcome", "decode_record", "encode_record"],
    "Results": ["CaseScores", "Score", "MetricResult", "RunSummary"],
    "Metrics": ["Metric", "MetricInfo", "CompositeMetric", "resolve_metrics", "register_metric", "DEFAULT_METRICS"],
    "Recording live": ["instrument", "capture_spans", "redacting_processor"],
    "Teams of agents": ["AgentInteraction", "AgentRole", "ConflictEvent", "HandoffEvent", "InteractionType"],
}

# Objects that have a page of their own: a sentence is enough.
_DESCRIBED_ELSEWHERE = {
    "Comparison",
    "CompositeMetric",
    "DatasetCase",
    "MetricInfo",
    "Outcome",
    "Run",
    "RunSummary",
    "Suite",
    "TraceEvent",
    "capture_spans",
    "instrument",
    "redacting_processor",
    "register_metric",
    "run",
}


def cli_page() -> str:
    """Every command with its own options, and once those that several commands share."""
    context = click.Context(cli, info_name="agentunit")
    commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    options = {name: _options(name, command, context) for name, command in commands.items()}
    users: dict[tuple[str, str], list[str]] = {}
    for name, rows in options.items():
        for row in rows:
            users.setdefault(row, []).append(name)
    shared = {row: names for row, names in users.items() if len(names) > 1}
    lines = [
        "# Commands",
        "",
        _GENERATED,
        "",
        "Every command with its options, as `agentunit COMMAND --help-all` prints them. `--store` and `--media-root`",
        "may stand before the command.",
        "[Exit codes](getting-started.md#when-something-is-wrong).",
        "",
    ]
    for name, command in commands.items():
        lines.append(f"- [`{name}`](#{name}): {' '.join(_escaped(command.get_short_help_str(200)).split())}")
    for name, command in commands.items():
        own = [row for row in options[name] if row not in shared]
        lines += ["", *_command(name, command, context), *_option_list(own)]
        also = ", ".join(f"`{row[0].split()[0].rstrip(',')}`" for row in options[name] if row in shared)
        if also:
            lines += ["", f"[Shared](#shared-options): {also}."]
    lines += ["", "## Shared options", "", "They mean the same in every command that has them.", ""]
    lines += _option_list(sorted(shared, key=lambda row: row[0].lstrip("-")))
    return "\n".join(lines) + "\n"


def _options(name: str, command: click.Command, parent: click.Context) -> list[tuple[str, str]]:
    """The flags and the meaning of each option, without ``--help``."""
    context = click.Context(command, info_name=name, parent=parent)
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    records = [option.get_help_record(context) for option in options if not option.opts[0].startswith("--help")]
    return [record for record in records if record]


def _option_list(rows: list[tuple[str, str]]) -> list[str]:
    return [f"- `{' '.join(flags.split())}`: {' '.join(_escaped(text).split())}" for flags, text in rows]


def _command(name: str, command: click.Command, parent: click.Context) -> list[str]:
    """How a command is called, and the first paragraph of its help after the sentence that the list of commands has."""
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").replace("[OPTIONS]", "").split())
    lines = [f"## {name}", "", f"`{usage}`", ""]
    _, *paragraphs = dedent(f"        {inspect.cleandoc(command.help or '')}").strip().split("\n\n")
    # The rest, and examples, are in the help.
    if paragraphs and not paragraphs[0].lstrip().startswith("\b"):
        lines += [_escaped(" ".join(paragraphs[0].split())), ""]
    return lines


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")


def api_page() -> str:
    """Every name that ``import agentunit`` gives, with its parameters."""
    listed = {name for names in _GROUPS.values() for name in names}
    public = {name for name in agentunit.__all__ if not name.startswith("__")}
    if listed != public:
        raise ValueError(f"_GROUPS must list the names of agentunit.__all__; differs by {sorted(listed ^ public)}")
    lines = [
        "# Python API",
        "",
        _GENERATED,
        "",
        "All of it is imported from `agentunit`; the rest of the package may change without notice. Other pages",
        "describe [suites](running.md#a-suite), [records](records.md), [metrics](metrics.md),",
        "[writing one](writing-metrics.md), [capturing spans](frameworks.md) and",
        "[masking them](privacy.md#opentelemetry-in-opentelemetry-out); `help(agentunit.NAME)` says more.",
    ]
    for title, names in _GROUPS.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += ["", *_api_entry(name)]
    return "\n".join(lines) + "\n"


def _api_entry(name: str) -> list[str]:
    thing = getattr(agentunit, name)
    lines = [f"### {name}", ""]
    if not callable(thing):
        return [*lines, f"`{name} = {thing!r}`"]
    prose = inspect.cleandoc(thing.__doc__ or "").partition(">>>")[0].strip()
    if name in _DESCRIBED_ELSEWHERE:
        prose = prose.partition("\n\n")[0]
    lines += [f"`{_signature(name, thing)}`", "", _as_markdown(prose)]
    # Those of a metric are the ones of Metric.
    if thing is not agentunit.Metric and hasattr(thing, "evaluate"):
        return lines
    methods = [
        (key, value)
        for key, value in vars(thing).items()
        if inspect.isclass(thing) and not key.startswith("_") and inspect.isfunction(value) and value.__doc__
    ]
    for key, value in methods:
        first = inspect.cleandoc(value.__doc__ or "").partition("\n\n")[0]
        lines += ["", f"- `.{key}{_short(value)}`: {_as_markdown(' '.join(first.split()))}"]
    return lines


def _signature(name: str, thing: object) -> str:
    if inspect.isclass(thing) and (dataclasses.is_dataclass(thing) or issubclass(thing, msgspec.Struct)):
        return f"{name}({', '.join(_fields(thing))})"
    try:
        parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return name
    return f"{name}({', '.join(_parameter(each) for each in parameters if each.name != 'self')})"


def _fields(thing: type) -> list[str]:
    if dataclasses.is_dataclass(thing):
        return [each.name for each in dataclasses.fields(thing) if each.init]
    return [each.name for each in msgspec.structs.fields(thing)]


def _parameter(each: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(each.kind, "")
    default = "" if each.default is inspect.Parameter.empty else f"={_default(each.default)}"
    return f"{stars}{each.name}{default}"


def _default(value: object) -> str:
    # An address in memory would differ from one run to the next; a long list says nothing here.
    return re.sub(r"<.*>", "…", repr(value)) if len(repr(value)) < 100 else "…"


def _short(function: object) -> str:
    names = [_parameter(each) for each in inspect.signature(function).parameters.values()]  # type: ignore[arg-type]
    return f"({', '.join(name for name in names if name not in ('self', 'cls'))})"


def _as_markdown(prose: str) -> str:
    return prose.replace("``", "`").replace("::\n", ":\n")
