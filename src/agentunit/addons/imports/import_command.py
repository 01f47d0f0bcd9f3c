"""The tests of another tool as a suite: what is written, and what is said about it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import msgspec

from agentunit.addons.imports.foreign_tests import ForeignSuite, read_foreign
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure
from agentunit.datasets.readers import DatasetError
from agentunit.datasets.row_fields import KEPT
from agentunit.reports.console import plain_table, print_line, print_next
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import printing_mask
from agentunit.reports.terminal import Terminal, Text

_SHOWN = 40


def import_cases(file: str, out: Path | None) -> None:
    """Write the suite, print what became of the tests, and leave with 3 when something did not map."""
    try:
        suite = read_foreign(file)
    except DatasetError as error:
        raise InputFailure(printing_mask().name(str(error))) from None
    if not suite.cases:
        why = "; ".join(_counted(printing_mask().name(name), n) for name, n in suite.unmapped.items())
        raise InputFailure(
            f"{file}: no case could be read, nothing was written{f' (not mapped: {why})' if why else ''}"
        )
    name = re.sub(r"\W+", "-", Path(file).name.split(".")[0]).strip("-") or "imported"
    folder = out if out is not None else Path(name)
    _write(suite, name, folder)
    _print(suite, folder)
    if suite.recorded:
        answers = counted(sum(suite.recorded.values()), "recorded answer")
        print_line(f"{answers} in {printable_line(file)}: to score them as they are, without an agent", Terminal())
        print_next([shlex.join(["agentunit", "score", file])], Terminal())
    if suite.unmapped:
        raise click.exceptions.Exit(EXIT_ERRORS)


def _write(suite: ForeignSuite, name: str, folder: Path) -> None:
    contents = {
        "dataset.jsonl": b"".join(_line(case) + b"\n" for case in suite.cases),
        "suite.yaml": _suite_text(suite, name).encode(),
    }
    existing = [str(folder / each) for each in contents if (folder / each).exists() or (folder / each).is_symlink()]
    if existing:
        verb = "exists" if len(existing) == 1 else "exist"
        raise click.UsageError(
            f"{', '.join(existing)} {verb} already: nothing was written (agentunit init FOLDER writes elsewhere)"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each, content in contents.items():
            # "x" fails where a file has appeared meanwhile.
            with open(folder / each, "xb") as stream:
                stream.write(content)
    except OSError as error:
        raise InputFailure(f"cannot write {error.filename}: {(error.strerror or str(error)).lower()}") from None


def _line(case: Any) -> bytes:
    """A case as a line of a dataset; fields that it does not know stand beside the others, as they did before."""
    fields = msgspec.to_builtins(case)
    extra = fields.pop("__extra__", None) or {}
    return json.dumps({**fields, **{key: value for key, value in extra.items() if key not in fields}}).encode()


def _suite_text(suite: ForeignSuite, name: str) -> str:
    def listed(items: list[Any]) -> list[str]:
        return [f"  - {each if re.fullmatch('[a-z_]+', str(each)) else json.dumps(each)}" for each in items]

    lines = [
        f"# Imported from {suite.tool}: {_cases(suite)}.",
        f"name: {json.dumps(name)}",
        "dataset: dataset.jsonl",
        "",
        '# Your agent: module:function, found next to this file; also "command: …" or "https://…".',
        "agent:",
        "",
        "metrics:",
        *listed(suite.metrics),
    ]
    if suite.gates:
        lines += ["gates:", *listed(suite.gates)]
    if suite.asks_judge:
        lines += ["", "# The judge that rubrics ask.", '# judge: {url: "http://127.0.0.1:8000/v1", model: qwen3-8b}']
    if suite.grader_fields:
        lines += ["", "# The contexts are what graders compare with; agents find their own.", "grader_fields:"]
        lines += listed(suite.grader_fields)
    if suite.unmapped:
        lines += ["", "# Not mapped:"]
        lines += [f"#   {_one_line(_counted(each, n))}" for each, n in suite.unmapped.most_common()]
    return "\n".join(lines) + "\n"


def _print(suite: ForeignSuite, folder: Path) -> None:
    console = Terminal()
    print_line(f"{_cases(suite)} of {suite.tool}", console, style="bold")
    table = plain_table(suite.tool, "count", "becomes", right=["count"])
    gated = {gate.split()[0] for gate in suite.gates}
    for (source, metric), n in sorted(suite.became.items()):
        table.add_row(source, f"{n:,}", f"{metric}, gated" if metric in gated else f"metric {metric}")
    named = printing_mask().name
    for source, n in suite.kept.most_common(_SHOWN):
        becomes = "kept with the case as recorded, no agent sees it" if source in suite.recorded else KEPT
        table.add_row(Text(printable_line(named(source))), f"{n:,}", becomes)
    for source, n in suite.unmapped.most_common(_SHOWN):
        table.add_row(Text(printable_line(named(source))), f"{n:,}", "NOT MAPPED")
    for counter in (suite.kept, suite.unmapped):
        if len(counter) > _SHOWN:
            table.add_row(
                f"… and {counted(len(counter) - _SHOWN, 'more name')}",
                "",
                "in suite.yaml" if counter is suite.unmapped else "",
            )
    console.print(table)
    for gate in suite.gates:
        print_line(f"gate {gate}", console)
    if not suite.gates:
        print_line("no gates: the file states no threshold", console)
    if suite.unmapped:
        print_line(
            f"{sum(suite.unmapped.values()):,} did not map: they are listed in {folder / 'suite.yaml'} too", console
        )
    path = folder / "suite.yaml"
    print_line(f"name your agent in {path}, then", console)
    print_next([f"agentunit run {shlex.quote(str(path))}"], console)


def _cases(suite: ForeignSuite) -> str:
    return f"{len(suite.cases):,} case{'' if len(suite.cases) == 1 else 's'}"


def _one_line(text: str) -> str:
    """A text that cannot end the comment it stands in."""
    return "".join(each if each.isprintable() else "·" for each in text)


def _counted(name: str, n: int) -> str:
    return f"{name} ×{n}"
