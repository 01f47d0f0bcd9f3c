"""``agentunit doctor``: what is installed, usable and missing here, and the command that adds it."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec

import click
from msgspec import Struct
from rich.markup import escape
from rich.table import Table

import agentunit
from agentunit.backends.quality import installed_backends, load_backend, why_unready
from agentunit.core.results import encode_json
from agentunit.metrics.registry import registry
from agentunit.reports.console import Terminal

_DISTRIBUTION = "agentunit-eval"

# What each optional part is for, and the module whose presence shows that it is there.
_EXTRAS = {
    "prices": ("genai_prices", "list prices of LLM calls, for cost"),
    "zstd": ("zstandard", "reading .zst record files"),
    "parquet": ("pyarrow", "Parquet datasets and exports"),
    "otel": ("opentelemetry.sdk", "scores as OpenTelemetry events"),
}


class Finding(Struct):
    """One line of the doctor's report; ``fix`` is the command that would make it usable."""

    part: str
    state: str
    note: str
    fix: str | None = None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> None:
    """What is installed, usable and missing, and the command that adds it. Nothing is sent anywhere."""
    findings = [*_base(), *_optional_parts(), *_backends(), *_metrics()]
    if as_json:
        click.echo(encode_json(findings).decode())
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("part", "state", "what for"):
        table.add_column(heading, overflow="fold")
    colours = {"ok": "green", "missing": "yellow", "broken": "red", "not ready": "yellow"}
    for finding in findings:
        colour = colours.get(finding.state, "white")
        table.add_row(escape(finding.part), f"[{colour}]{finding.state}[/{colour}]", escape(finding.note))
    console = Terminal()
    console.print(table)
    fixes = [finding for finding in findings if finding.fix]
    if fixes:
        console.print("\n[bold]To add what is missing[/bold]")
        for finding in fixes:
            console.print(f"  {finding.part}: {finding.fix}", markup=False, highlight=False, soft_wrap=True)


def _base() -> list[Finding]:
    here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    findings = [Finding(f"agentunit {agentunit.__version__}", "ok", here)]
    for name in _base_requirements():
        try:
            findings.append(Finding(f"{name} {version(name)}", "ok", "base install"))
        except PackageNotFoundError:
            fix = f"pip install --force-reinstall {_DISTRIBUTION}"
            findings.append(Finding(name, "broken", "part of the base install, but gone", fix))
    return findings


def _base_requirements() -> list[str]:
    try:
        declared = requires(_DISTRIBUTION) or []
    except PackageNotFoundError:  # run from a source tree that was never installed
        return []
    base = [line for line in declared if "extra ==" not in line]
    return [line.split(">")[0].split("<")[0].split("=")[0].split("!")[0].split(";")[0].strip() for line in base]


def _optional_parts() -> list[Finding]:
    findings = []
    for extra, (module, purpose) in _EXTRAS.items():
        if not _importable(module):
            fix = f'pip install "{_DISTRIBUTION}[{extra}]"'
            findings.append(Finding(f"extra {extra}", "missing", purpose, fix))
        else:
            findings.append(Finding(f"extra {extra}", "ok", purpose))
    return findings


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def _backends() -> list[Finding]:
    findings = [Finding("backend lexical", "ok", "the fallback for quality metrics: needs nothing, says little")]
    for name in sorted(installed_backends()):
        backend = load_backend(name)
        if isinstance(backend, str):
            findings.append(Finding(f"backend {name}", "broken", backend))
            continue
        reason = why_unready(backend)
        measures = ", ".join(sorted(backend.measures))
        findings.append(Finding(f"backend {name}", "not ready" if reason else "ok", reason or f"measures {measures}"))
    return findings


def _metrics() -> list[Finding]:
    described = list(registry.describe_all())
    broken = [Finding(f"metric {name}", "broken", str(info)) for name, info in described if isinstance(info, Exception)]
    usable = len(described) - len(broken)
    return [Finding(f"{usable} metrics", "ok", "agentunit metrics lists them"), *broken]
