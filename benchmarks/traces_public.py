"""Read public trace files beside an independent count: ``AGENTUNIT_DATA=folder python -m benchmarks.traces_public``.

The folder holds ``traces.tar.xz``, ``traces-2.tar.xz`` and ``otel``; none of it is part of this project. A fact of a
file was read ``exact``, left ``unknown``, or read ``wrong``: as something else than the file states. A file is exact
when all its facts are, wrong when one of them is, partly read when one of them is unknown, and refused when nothing was
read of it. ``-v`` names every difference, ``--write`` puts the table into benchmarks/traces/RESULTS.md, and one without
the single facts into docs/traces.md.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.public_counts import frameworks
from benchmarks.traces.facts import Comparison, compare, read_cases

VARIABLE = "AGENTUNIT_DATA"
# The tool of each family of files, the files below the folder, and the module of benchmarks/public_counts that counts.
FAMILIES = (
    ("langfuse", "traces/langfuse/*", "langfuse"),
    ("phoenix", "traces/phoenix/pxi/*", "phoenix"),
    ("inspect", "traces/inspect/*", "inspect_logs"),
    ("inspect", "otel/inspect_*", "inspect_logs"),
    ("adk", "traces/adk/*", "adk"),
    ("adk", "otel/adk_*", "adk"),
    ("autogen", "traces/autogen/*", "autogen"),
    ("agntcy", "traces/agntcy/*", "otel_rows"),
    ("agntcy", "otel/agntcy_*", "otel_rows"),
    ("trulens", "otel/trulens_*", "otel_rows"),
    ("langsmith", "traces/langsmith/*.json", "platforms"),
    ("anthropic-managed", "traces/langsmith/*.jsonl", "platforms"),
    ("claude agent sdk", "traces/logfire/*", "platforms"),
    ("vercel", "traces/vercel/*", "platforms"),
    ("fast-agent", "traces/fastagent/*", "platforms"),
    ("hal", "traces/hal/*", "platforms"),
    ("claude-code", "traces/sessions/claude-code*", "coding_agents"),
    ("claude-code-log", "traces/cclog/*", "coding_agents"),
    ("codex", "traces/sessions/codex*", "coding_agents"),
    ("qwen-code", "traces/sessions/qwen*", "coding_agents"),
    ("swe-agent", "traces/swe/*", "coding_agents"),
    ("mini-swe-agent", "traces/mini/*", "coding_agents"),
    ("openhands", "traces/openhands/*", "coding_agents"),
    ("atif", "traces/phoenix/atif/*", "coding_agents"),
)


# Counts that the file itself contradicts, by file and fact; None: all of it.
_DISPUTED: dict[str, tuple[str | None, str]] = {
    "aider/BeehiveInnovations__zen-mcp-server__.aider.chat.history.md": (
        None, "the counted question is a command to Aider; nothing in it was asked of a model"),
    "claude-code/wesm__agentsview__claude__valid_session.jsonl": (
        "tools failures", "no call was counted; the file holds a call of Read without a result"),
    "copilot/jazzyalex__agent-sessions__copilot__large.jsonl": (
        "tools", "one call was counted; the file requests one and starts another"),
    "qwen-code/jazzyalex__agent-sessions__qwen__system_telemetry.jsonl": (
        "answer", "one text was counted; the message has two"),
}  # fmt: skip
FACTS = ("cases", "question", "answer", "tools", "failures", "tokens", "cost", "agents")
STATES = ("exact", "partly", "wrong", "refused")
_ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = _ROOT / "docs" / "traces.md", _ROOT / "benchmarks" / "traces" / "RESULTS.md"
BEGIN, END = "<!-- Written by `python -m benchmarks.traces_public --write`. -->", "<!-- End of the public files. -->"
# Where the section with every fact begins in the results, which another program writes above it.
HEADING = "## Public files, fact by fact"
# Names of facts in a comparison that are one fact to a reader of the table.
_ONE_FACT = {"tool_calls": "tools", "tool_failures": "failures", "tool_success": "failures"}


class FileResult(NamedTuple):
    """One file: whether anything was read of it, and its facts beside those that were counted."""

    path: Path
    format: str | None
    read: bool
    compared: list[Comparison]

    @property
    def facts(self) -> dict[str, str]:
        """Each fact that the file states: exact, unknown or wrong; the worst of its parts."""
        worst: dict[str, str] = {}
        for each in self.compared:
            name = each.fact.split(".")[0]
            name = _ONE_FACT.get(name, name)
            worst[name] = max(worst.get(name, "exact"), verdict_of(each), key=("exact", "unknown", "wrong").index)
        return worst

    @property
    def state(self) -> str:
        """What was made of the file as a whole."""
        if not self.read:
            # A file that states no fact at all is rightly refused.
            return "refused" if any(any(each.expected) for each in self.compared[1:]) else "exact"
        found = set(self.facts.values())
        return "wrong" if "wrong" in found else "partly" if "unknown" in found else "exact"


def main(arguments: list[str]) -> int:
    """Print one row for each tool."""
    folder = Path(os.environ.get(VARIABLE) or _ROOT / ".." / "shared" / "data")
    if not (folder / "traces.tar.xz").is_file():
        print(f"skipped: no traces.tar.xz in {folder}; {VARIABLE} names the folder of public trace files")
        return 0
    with tempfile.TemporaryDirectory() as unpacked:
        for name in ("traces.tar.xz", "traces-2.tar.xz"):
            if (folder / name).is_file():
                with tarfile.open(folder / name) as archive:
                    archive.extractall(unpacked, filter="data")
        results = read_families(Path(unpacked), folder)
        for tool, files in read_counted(Path(unpacked)).items():
            results.setdefault(tool, []).extend(files)
        results = dict(sorted(results.items()))
        table = list(rows_of(results))
        print("\n".join(table))
        for name, (facts, why) in _DISPUTED.items():
            if (Path(unpacked) / "fresh" / name).is_file():
                print(f"not compared: {facts or 'anything'} of {name}: {why}")
        if "-v" in arguments:
            for tool, files in results.items():
                for line in differences(files):
                    print(f"{tool}: {line}")
    if "--write" in arguments:
        write_tables(table, len([each for files in results.values() for each in files]))
    return 0


def read_families(unpacked: Path, folder: Path) -> dict[str, list[FileResult]]:
    """The files of the first archive, which a module of benchmarks/public_counts counts while they are read."""
    files = [path for root in (unpacked, folder) for path in _files(root)]
    results: dict[str, list[FileResult]] = {}
    for tool, pattern, module in FAMILIES:
        counter = importlib.import_module(f"benchmarks.public_counts.{module}")
        of_tool = results.setdefault(tool, [])
        for path, below in files:
            if fnmatch(below, pattern):
                found, format = read_cases(path)
                of_tool.append(FileResult(path, format, bool(found), list(compare(counter.count(path), found))))
    return results


def read_counted(unpacked: Path) -> dict[str, list[FileResult]]:
    """The files of the second archive, whose counts lie beside them, and the dumps of frameworks of one known run."""
    counts: defaultdict[Path, list[dict[str, Any]]] = defaultdict(list)
    tools: dict[Path, str] = {}
    listing = unpacked / "counts.jsonl"
    for line in listing.read_text("utf-8").splitlines() if listing.is_file() else ():
        row = json.loads(line)
        if row.get("counted", True):
            path = unpacked / "fresh" / row["path"]
            facts, _ = _DISPUTED.get(row["path"], ("", ""))
            kept = row if facts is not None else {}
            counts[path].append({fact: value for fact, value in kept.items() if fact not in (facts or "").split()})
            tools[path] = row["tool"]
    for path in sorted((unpacked / "native").glob("*.json")):
        tools[path] = "dumps of frameworks"
        counts[path].append(frameworks.count(path))
    results: defaultdict[str, list[FileResult]] = defaultdict(list)
    for path in counts:
        found, format = read_cases(path)
        compared = list(compare_counts(counts[path], found))
        results[tools[path]].append(FileResult(path, format, bool(found), compared))
    return results


def compare_counts(expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> Iterator[Comparison]:
    """Each fact that a row of counts.jsonl states beside what was read; None there is a fact that was not counted."""
    yield Comparison("cases", [len(expected)], [len(found)])
    readings = [_as_counted(case) for case in found]
    for fact in ("question", "answer", "tools", "failures", "tokens_in", "tokens_out", "cost", "agents"):
        stating = [place for place, row in enumerate(expected) if row.get(fact) is not None]
        if stating:
            read = [readings[place][fact] if place < len(readings) else None for place in stating]
            name = fact.replace("_in", ".in").replace("_out", ".out")
            yield Comparison(name, [expected[place][fact] for place in stating], read)


def _as_counted(case: dict[str, Any]) -> dict[str, Any]:
    """A case under the names of counts.jsonl. Failures are unknown where no call states how it ended."""
    statuses = case["tool_failures"]
    stated = [status for status in statuses if status is not None]
    tokens = case["tokens"] or {}
    return {
        **case,
        "tools": case["tool_calls"],
        "failures": stated.count("error") if stated or not statuses else None,
        "tokens_in": tokens.get("input"),
        "tokens_out": tokens.get("output"),
        "agents": case["agents"] or None,
    }


def verdict_of(each: Comparison) -> str:
    """Exact, unknown (nothing was read where the file states something) or wrong.

    >>> verdict_of(Comparison("answer", ["Oslo"], [None])), verdict_of(Comparison("answer", ["Oslo"], ["Rome"]))
    ('unknown', 'wrong')
    """
    if each.exact or _in_any_order(each.expected) == _in_any_order(each.found):
        return "exact"
    known = [(right, read) for right, read in zip(each.expected, each.found, strict=False) if read is not None]
    return "wrong" if any(_differ(right, read) for right, read in known) else "unknown"


def _differ(right: Any, read: Any) -> bool:
    """Whether what was read contradicts what was counted; a part of a list that is unknown does not."""
    if isinstance(right, list) and isinstance(read, list):
        if len(right) != len(read):
            return True
        left = Counter(map(str, right)) - Counter(str(each) for each in read if each is not None)
        return left.total() > sum(each is None for each in read)
    return not Comparison("", [right], [read]).exact


def rows_of(results: dict[str, list[FileResult]]) -> Iterator[str]:
    """The table: how many files of each tool were read how, and each fact as exact/stated, with those read wrong."""
    yield f"| tool | files | {' | '.join((*STATES, *FACTS))} |"
    yield "|---" * (2 + len(STATES) + len(FACTS)) + "|"
    for tool, files in results.items():
        if files:
            yield _row_of(tool, files)
    yield _row_of("all", [each for files in results.values() for each in files])


def _row_of(tool: str, files: list[FileResult]) -> str:
    states = Counter(each.state for each in files)
    cells: list[Any] = [tool, len(files), *(states[state] for state in STATES)]
    for fact in FACTS:
        stated = Counter(each.facts[fact] for each in files if fact in each.facts and each.read)
        wrong = f", {stated['wrong']} wrong" if stated["wrong"] else ""
        cells.append(f"{stated['exact']}/{stated.total()}{wrong}" if stated else "")
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def differences(files: Iterable[FileResult]) -> Iterator[str]:
    """One line for each fact that was not read exactly."""
    for file in files:
        if file.state == "refused":
            yield f"{file.path.name} refused ({file.format})"
            continue
        for each in file.compared if file.state != "exact" else ():
            verdict = verdict_of(each)
            if verdict != "exact":
                shown = f"counted {each.expected!r:.160}, read {each.found!r:.160}"
                yield f"{file.path.name} ({file.format}) {each.fact} {verdict}: {shown}"


def write_tables(table: list[str], count: int) -> None:
    """Replace the table of all facts in the results, and the one of whole files on the docs page, with today's date."""
    day = datetime.now(timezone.utc).date()
    measured = f"Measured on {day} over {count} files."
    _replace(RESULTS, f"{measured} Of each fact: exact in how many of the files that state it.", table)
    _replace(PAGE, measured, without_facts(table))


def without_facts(table: list[str]) -> list[str]:
    """The same rows without the columns of single facts.

    >>> without_facts(["| chat | 2 | 2 | 0 | 0 | 0 | 2/2 | 1/1 |"])
    ['| chat | 2 | 2 | 0 | 0 | 0 |']
    """
    return ["|".join(row.split("|")[: 3 + len(STATES)]) + "|" for row in table]


def _replace(page: Path, measured: str, table: list[str]) -> None:
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text("\n".join([before + BEGIN, "", measured, "", *table, "", END + after]), "utf-8")


def _in_any_order(values: list[Any]) -> list[str]:
    return sorted(str(sorted(map(str, value)) if isinstance(value, list) else value) for value in values)


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    for part in ("traces", "otel"):
        for path in sorted((root / part).rglob("*")) if (root / part).is_dir() else ():
            if path.is_file():
                yield path, path.relative_to(root).as_posix()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
