"""``agentunit doctor``: what is installed here, or what trace files hold; and what would add what is missing."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from inspect import getdoc
from shutil import which
from typing import Any

import click
from msgspec import Struct

import agentunit
from agentunit import doors
from agentunit.backends.quality import (
    LEXICAL,
    SERVICES,
    BackendUnavailable,
    backend_table,
    installed_backends,
    load_backend,
    resolve_backend,
    why_unready,
)
from agentunit.backends.services import PREFIX, configured
from agentunit.cli.main import EXIT_ERRORS, command_table
from agentunit.cli.options import Option, Verb, show_personal_data_option, store_option
from agentunit.cli.trace_inputs import trace_options
from agentunit.core.results import encode_json
from agentunit.installation import DISTRIBUTION, install_command, reinstall_command
from agentunit.metrics.registry import registry
from agentunit.plugins import PluginError, PluginTable
from agentunit.privacy.detectors import detector_table
from agentunit.reports.console import plain_table
from agentunit.reports.printable import printable_line
from agentunit.reports.reporters import reporter_table
from agentunit.reports.terminal import Terminal, Text
from agentunit.store.opening import store_table
from agentunit.traces.formats import format_table
from agentunit.traces.grouping import GroupBy

_BASE = "base install"
_TO_ADD = "\nTo add what is missing"
# What each optional part is for, and the module whose presence shows that it is there.
_EXTRAS = {
    "prices": ("genai_prices", "list prices of LLM calls, for cost"),
    "zstd": ("zstandard", "reading .zst record files"),
    "dp": ("dp_accounting", "true composition of privacy losses, for privacy_budget"),
    "parquet": ("pyarrow", "Parquet datasets and score tables"),
    "postgres": ("psycopg", "runs kept in PostgreSQL (--store postgresql://…)"),
    "remote": ("s3fs", "files by URL, such as s3://bucket/traces.jsonl"),
    "ner": ("spacy", "names of people by a language model, for pii_leakage and redact"),
    "presidio": ("presidio_analyzer", "Presidio as a backend of pii_leakage and redact"),
    "identity": ("stdnum", "identity and phone numbers of named countries, for redact"),
    "sustainability": ("ecologits", "energy and carbon of remote LLM calls, energy of GPUs"),
    "multimodal": ("onnxruntime", "images, video and audio, for the multimodal metrics"),
    "whisper": ("faster_whisper", "transcripts of audio files, for audio_transcription_quality"),
    "local": ("agentunit_local", "local models of the quality metrics, sentence embeddings, people and addresses"),
    "local-large": ("agentunit_local_large", "the larger local model of faithfulness: closer to people, slower"),
    "ragas": ("ragas", "RAGAS as a backend of the quality metrics"),
    "gpu": ("torch", "the local model on a GPU, as the backend local-gpu"),
    "otel": ("opentelemetry.sdk", "live capture of spans, OTLP protobuf, scores as OpenTelemetry events"),
    "viewer": ("starlette", "the live server of agentunit view (bundles and HTML files need nothing)"),
    "collect": ("grpc", "gRPC for agentunit collect, on port 4317 (OTLP over HTTP needs nothing or otel)"),
}


class PartFinding(Struct):
    """One line of the doctor's report; ``fix`` is the command or setting that would make it usable."""

    part: str
    state: str
    note: str
    fix: str | None = None


@click.command(cls=Verb)
@click.argument("files", nargs=-1, metavar="[FILE…|SUITE|RUN…]")
@trace_options
@store_option
@click.option(
    "--why",
    "everything",
    cls=Option,
    former=("--all",),
    is_flag=True,
    help="Show everything: what works, too; every metric of traces, every case of warnings.",
)
@show_personal_data_option
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--judge", "ask_judge", is_flag=True, help="Also ask the configured judge one short question.")
@click.option(
    "--cache",
    "cache",
    type=click.Choice(["show", "clear"]),
    is_flag=False,
    flag_value="show",
    help="Only look into the judge's cache of replies, or clear it.",
)
def doctor(
    files: tuple[str, ...],
    format_name: str | None,
    group_by: GroupBy,
    store_path: str,
    everything: bool,
    show_personal_data: bool,
    as_json: bool,
    ask_judge: bool,
    cache: str | None,
) -> None:
    """What is installed, usable and missing, and the command that adds it. Nothing is sent anywhere.

    With files or folders of traces: what they hold, which metrics can score them, and the setting of the
    instrumentation that would add what the others need.

    With a suite, a dataset, tests of another tool, or runs: whether the test itself is sound. Every warning has its
    evidence, its cases, and how much of the pass rate hangs on it. No agent and no judge is called; functions of a
    suite that grade are.

    \b
    agentunit doctor
    agentunit doctor spans.json
    agentunit doctor exports/ --group-by session
    agentunit doctor suite.py
    agentunit doctor suite.py last last~1 last~2
    agentunit doctor --judge
    agentunit doctor --cache clear

    Exit codes with files: 0 there are cases, 2 usage, 3 there are none; warnings change nothing. With --judge, the
    one thing that sends something: 0 it answered, 3 it did not.
    """
    if (ask_judge or cache) and files:
        raise click.UsageError("--judge and --cache are about the judge: they take no files")
    if files:
        doors.part("examine_files")(
            files,
            format_name,
            group_by,
            store_path,
            as_json=as_json,
            everything=everything,
            show_personal_data=show_personal_data,
        )
        return
    if format_name is not None or group_by != "trace":
        raise click.UsageError("--from and --group-by say how files are read: name a file or a folder")
    answers = doors.part("judge_answers")() if ask_judge else []
    if cache is not None:
        findings = [doors.part("judge_cache_finding")(clear=cache == "clear")]
    elif ask_judge:
        findings = []
    else:
        findings = [
            *_base(),
            *_addons(),
            *_optional_parts(),
            *_backends(),
            *_models(),
            *_measurable(),
            *_metrics(),
            *_plugins(),
            *_other_pytest(),
        ]
    findings += answers
    if as_json:
        click.echo(encode_json(findings).decode())
    else:
        _print(findings, everything=everything or ask_judge or cache is not None)
    if any(each.state != "ok" for each in [*answers, *(findings[:1] if cache else ())]):
        raise click.exceptions.Exit(EXIT_ERRORS)


def _print(findings: list[PartFinding], *, everything: bool) -> None:
    """Print what does not work, and what to do about it; what works in one line, or with everything as a table."""
    console = Terminal()
    if not everything:
        _print_working(findings, console)
    table = plain_table("part", "state", "what for")
    colours = {"ok": "green", "missing": "yellow", "broken": "red", "refused": "red", "not ready": "yellow"}
    listed = [each for each in findings if everything or each.state != "ok"]
    for finding in listed:
        colour = colours.get(finding.state, "white")
        table.add_row(finding.part, Text(finding.state, style=colour), finding.note)
    if listed:
        console.print(table)
    fixes = [finding for finding in findings if finding.fix]
    if fixes:
        console.print("\nWhat to do" if findings[0].part.startswith("judge") else _TO_ADD, style="bold")
        for finding in fixes:
            console.print(f"  {finding.part}: {finding.fix}", soft_wrap=True)
    if not everything:
        console.print("\nwhat works, and what for: --why", style="dim")


def _print_working(findings: list[PartFinding], console: Terminal) -> None:
    """The parts that work, in a few lines; packages of the base install are one part."""
    first, *others = findings
    works = [each.part.removeprefix("extra ") for each in others if each.state == "ok" and each.note != _BASE]
    auto = _taken()
    chosen = f"; backend auto takes {auto} for faithfulness" if auto is not None else ""
    console.print(f"{first.part}, {first.note}{chosen}")
    console.print(f"works: {', '.join([_BASE, *works])}\n")


def _base() -> list[PartFinding]:
    here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    findings = [PartFinding(f"agentunit {agentunit.__version__}", "ok", here)]
    for name in _base_requirements():
        try:
            findings.append(PartFinding(f"{name} {version(name)}", "ok", _BASE))
        except PackageNotFoundError:
            findings.append(PartFinding(name, "broken", "part of the base install, but missing", reinstall_command()))
    return findings


def _base_requirements() -> list[str]:
    try:
        declared = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # run from a source tree that was never installed
        return []
    base = [line for line in declared if "extra ==" not in line]
    return [line.split(">")[0].split("<")[0].split("=")[0].split("!")[0].split(";")[0].strip() for line in base]


def _addons() -> list[PartFinding]:
    """The add-ons that are missing from this installation, which all of them are part of."""
    missing = [name for name in doors.addon_names() if not _importable(f"agentunit.addons.{name}")]
    note = "part of AgentUnit, but missing here"
    return [PartFinding(f"add-on {name}", "missing", note, reinstall_command()) for name in missing]


def _optional_parts() -> list[PartFinding]:
    findings = []
    for extra, (module, purpose) in _EXTRAS.items():
        if not _importable(module):
            findings.append(PartFinding(f"extra {extra}", "missing", purpose, install_command(extra)))
        elif extra in ("ner", "presidio") and (unready := _spacy_unready(extra)) is not None:
            findings.append(unready)
        else:
            findings.append(PartFinding(f"extra {extra}", "ok", purpose))
    return findings


def _spacy_unready(extra: str) -> PartFinding | None:
    try:
        reason = doors.part("spacy_unready")()
        return reason and PartFinding(f"extra {extra}", "not ready", reason, doors.part("spacy_weights_command")())
    except PluginError as error:
        return PartFinding(f"extra {extra}", "broken", str(error))


def _other_pytest() -> list[PartFinding]:
    """The pytest that a shell starts, where it belongs to another Python: it knows nothing of the plug-in."""
    found = which("pytest")
    if found is None or os.path.dirname(found) == os.path.dirname(sys.executable):
        return []
    note = f"{found} is of another Python, which may not have the fixture agentunit_eval"
    return [PartFinding("pytest", "not ready", note, f"{sys.executable} -m pytest")]


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def _backends() -> list[PartFinding]:
    taken = _taken()
    note = "the fallback for quality metrics: needs nothing, and says little"
    findings = [PartFinding("backend lexical", "ok", note + ("; auto takes it" if taken == LEXICAL else ""))]
    for name in sorted(installed_backends()):
        backend = load_backend(name)
        if isinstance(backend, str):
            findings.append(PartFinding(f"backend {name}", "broken", backend))
            continue
        reason = why_unready(backend)
        measures = ", ".join(sorted(backend.measures))
        package = getattr(installed_backends()[name], "package", None)
        origin = f"; from {package}" if package else ""
        if reason is None:
            chosen = "; auto takes it for faithfulness" if name == taken else ""
            findings.append(PartFinding(f"backend {name}", "ok", f"{_asked(name)}measures {measures}{origin}{chosen}"))
        else:
            findings.append(PartFinding(f"backend {name}", "not ready", f"{reason}{origin}", _way_out(name)))
    return findings


def _taken() -> str | None:
    """The backend that judges faithfulness where none is named; ``None`` where the one that the user set cannot run."""
    try:
        backend = resolve_backend("auto", "faithfulness", "doctor")
    except BackendUnavailable:
        return None
    return LEXICAL if backend is None else backend.name


def _asked(name: str) -> str:
    """Which model where a backend asks, for one that sends something."""
    settings = configured() if name in SERVICES else None
    return "" if settings is None else f"asks {settings.model} at {settings.address.shown}; "


def _way_out(name: str) -> str | None:
    """The command that configures a judge, where that is what is missing."""
    try:
        is_missing = name == "judge" and configured() is None
    except ValueError:
        return None
    example = f"{PREFIX}URL=http://127.0.0.1:8000/v1 {PREFIX}MODEL=NAME"
    return f"export {example}   # a server, its model; {PREFIX}API_KEY if it wants a key" if is_missing else None


def _models() -> list[PartFinding]:
    try:
        return [PartFinding(each.part, each.state, each.note) for each in doors.part("model_weights")()]
    except PluginError as error:
        return [PartFinding("weights of models", "broken", str(error))]


def _measurable() -> list[PartFinding]:
    from agentunit.probes.machine import capabilities

    return [PartFinding(each.part, each.state, each.note, each.fix) for each in capabilities()]


def _metrics() -> list[PartFinding]:
    findings = []
    usable = 0
    for name, info in registry.describe_all():
        plugin = registry.table.brought.get(name)
        if isinstance(info, Exception):
            origin = f"; from {plugin.package}" if plugin and str(plugin.package) not in str(info) else ""
            findings.append(PartFinding(f"metric {name}", "broken", printable_line(f"{info}{origin}", 300)))
            continue
        usable += 1
        if plugin is not None:
            findings.append(PartFinding(f"metric {name}", "ok", f"from {plugin.package}"))
    return [PartFinding(f"{usable} metrics", "ok", "agentunit metrics lists them"), *findings]


def _plugins() -> list[PartFinding]:
    """What else installed packages brought, by their tables, and the names that were refused to packages."""
    tables: list[PluginTable[Any]] = [
        format_table(),
        reporter_table(),
        command_table(),
        detector_table(),
        store_table(),
    ]
    findings = []
    for table in tables:
        for name, plugin in table.brought.items():
            try:
                note = f"{_line_about(table.load(name))}; from {plugin.package}"
                findings.append(PartFinding(f"{table.kind} {name}", "ok", printable_line(note, 300)))
            except PluginError as error:
                findings.append(PartFinding(f"{table.kind} {name}", "broken", printable_line(str(error), 300)))
    refused = {
        (table.kind, name): why
        for table in (registry.table, backend_table(), *tables)
        for name, why in table.refused.items()
        if name not in table.brought
    }
    return findings + [PartFinding(f"{kind} {name}", "refused", why) for (kind, name), why in refused.items()]


def _line_about(made: Any) -> str:
    """What a part says of itself in one line: its summary, its line of help, or the first line of its docstring."""
    if isinstance(made, click.Command):
        return made.get_short_help_str(limit=100).rstrip(".")
    said = getattr(made, "summary", None) or getdoc(made) or "it does not say what it does"
    return str(said).partition("\n")[0].rstrip(".")
