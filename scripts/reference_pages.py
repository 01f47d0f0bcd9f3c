"""The pages of docs/ that say what commands and the Python API take, made from the code itself."""

from __future__ import annotations

import dataclasses
import inspect
import re
from textwrap import dedent, wrap

import click
import msgspec

import agentunit
from agentunit.cli.main import cli

_GENERATED = "<!-- Generated from the code (`make docs`); do not edit by hand. -->"
# Objects that stand beside one another on the page, in the order in which a reader meets them.
_GROUPS = {
    "Score and run": ["score", "Run", "run", "RunResult", "Suite", "read_records", "configure"],
    "Records": ["Record", "DatasetCase", "TraceLog", "TraceEvent", "Outcome", "decode_record", "encode_record"],
    "Results": ["CaseScores", "Score", "MetricResult", "RunSummary"],
    "Metrics": ["Metric", "MetricInfo", "CompositeMetric", "resolve_metrics", "register_metric", "DEFAULT_METRICS"],
    "Recording live": ["instrument", "capture_spans", "redacting_processor"],
    "Teams of agents": ["AgentInteraction", "AgentRole", "ConflictEvent", "HandoffEvent", "InteractionType"],
}


def cli_page() -> str:
    """Every command with its options."""
    context = click.Context(cli, info_name="agentunit")
    names = cli.list_commands(context)
    lines = [
        "# Commands",
        "",
        _GENERATED,
        "",
        "Every command with its options, as `agentunit COMMAND --help-all` prints them. Where runs are kept and media",
        "lie is said before it or after it: `agentunit --store FILE --media-root FOLDER COMMAND`. Exit codes:",
        "0 pass, 1 a gate",
        "failed, 2 usage, 3 errors in the input or the scores, 4 the data cannot tell",
        "([what they mean](getting-started.md#when-something-is-wrong)).",
        "",
        "| command | what it does |",
        "|---|---|",
    ]
    commands = {name: cli.get_command(context, name) for name in names}
    for name, command in commands.items():
        lines.append(f"| [`{name}`](#{name}) | {_cell(_escaped(command.get_short_help_str(200)))} |")
    for name, command in commands.items():
        lines += ["", *_command(name, command, context)]
    return "\n".join(lines) + "\n"


def _command(name: str, command: click.Command, parent: click.Context) -> list[str]:
    context = click.Context(command, info_name=name, parent=parent)
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = [f"## {name}", "", "```text", *" ".join(usage.split()).splitlines(), "```", ""]
    for paragraph in dedent(f"        {inspect.cleandoc(command.help or '')}").strip().split("\n\n"):
        text = paragraph.strip("\n")
        if text.lstrip().startswith("\b"):
            lines += ["```text", *dedent(text.replace("\b\n", "")).splitlines(), "```", ""]
        else:
            lines += [_escaped(" ".join(text.split())), ""]
    rows = [
        option.get_help_record(context) for option in command.get_params(context) if isinstance(option, click.Option)
    ]
    lines += ["| option | meaning |", "|---|---|"]
    lines += [f"| `{_cell(flags)}` | {_cell(_escaped(text))} |" for flags, text in filter(None, rows)]
    return lines


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


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
        "All of it is imported from `agentunit`; the rest of the package may change without notice. Metrics have",
        "[a page of their own](metrics.md), and [writing one](writing-metrics.md) has another.",
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
        return [*lines, "```text", f"{name} = {thing!r}", "```"]
    signature = _signature(name, thing)
    prose = inspect.cleandoc(thing.__doc__ or "").partition(">>>")[0].strip()
    lines += ["```text", *signature, "```", "", _as_markdown(prose)]
    methods = [
        (key, value)
        for key, value in vars(thing).items()
        if inspect.isclass(thing) and not key.startswith("_") and inspect.isfunction(value) and value.__doc__
    ]
    for key, value in methods:
        first = inspect.cleandoc(value.__doc__ or "").partition("\n\n")[0]
        lines += ["", f"- `.{key}{_short(value)}`: {_as_markdown(' '.join(first.split()))}"]
    return lines


def _signature(name: str, thing: object) -> list[str]:
    if inspect.isclass(thing) and (dataclasses.is_dataclass(thing) or issubclass(thing, msgspec.Struct)):
        return _call(name, _fields(thing))
    try:
        parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return [name]
    return _call(name, [_parameter(each) for each in parameters if each.name != "self"])


def _call(name: str, parameters: list[str]) -> list[str]:
    return wrap(f"{name}({', '.join(parameters)})", 100, subsequent_indent="    ")


def _fields(thing: type) -> list[str]:
    if dataclasses.is_dataclass(thing):
        return [each.name for each in dataclasses.fields(thing) if each.init]
    return [each.name for each in msgspec.structs.fields(thing)]


def _parameter(each: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(each.kind, "")
    default = "" if each.default is inspect.Parameter.empty else f"={_default(each.default)}"
    return f"{stars}{each.name}{default}"


def _default(value: object) -> str:
    # An address in memory would differ from one run to the next.
    return re.sub(r"<.*>", "…", repr(value))


def _short(function: object) -> str:
    names = [_parameter(each) for each in inspect.signature(function).parameters.values()]  # type: ignore[arg-type]
    return f"({', '.join(name for name in names if name not in ('self', 'cls'))})"


def _as_markdown(prose: str) -> str:
    return prose.replace("``", "`").replace("::\n", ":\n")
