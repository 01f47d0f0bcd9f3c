"""Read public trace files beside an independent count: ``AGENTUNIT_DATA=folder python -m benchmarks.traces_public``.

The folder holds ``traces.tar.xz`` and ``otel``; neither is part of this project. For each family: how many files there
are, how many were recognized (an empty file is not), and for each fact of how many files it was read exactly, of how
many that state it. ``-v`` names every difference.
"""

from __future__ import annotations

import importlib
import os
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.traces.facts import FACTS, Comparison, compare, read_cases

VARIABLE = "AGENTUNIT_DATA"
# The files of each family, below the folder, and the module of benchmarks/public_counts that counts them.
FAMILIES = {
    "langfuse": ("traces/langfuse/*", "langfuse"),
    "phoenix": ("traces/phoenix/pxi/*", "phoenix"),
    "inspect": ("traces/inspect/*", "inspect_logs"),
    "inspect (otel)": ("otel/inspect_*", "inspect_logs"),
    "adk": ("traces/adk/*", "adk"),
    "adk (otel)": ("otel/adk_*", "adk"),
    "autogen": ("traces/autogen/*", "autogen"),
    "agntcy": ("traces/agntcy/*", "otel_rows"),
    "agntcy (otel)": ("otel/agntcy_*", "otel_rows"),
    "trulens (otel)": ("otel/trulens_*", "otel_rows"),
    "langsmith": ("traces/langsmith/*.json", "platforms"),
    "anthropic managed": ("traces/langsmith/*.jsonl", "platforms"),
    "claude agent sdk": ("traces/logfire/*", "platforms"),
    "vercel": ("traces/vercel/*", "platforms"),
    "fast-agent": ("traces/fastagent/*", "platforms"),
    "hal": ("traces/hal/*", "platforms"),
    "claude code": ("traces/sessions/claude-code*", "coding_agents"),
    "claude-code-log": ("traces/cclog/*", "coding_agents"),
    "codex": ("traces/sessions/codex*", "coding_agents"),
    "qwen code": ("traces/sessions/qwen*", "coding_agents"),
    "swe-agent": ("traces/swe/*", "coding_agents"),
    "mini-swe-agent": ("traces/mini/*", "coding_agents"),
    "openhands": ("traces/openhands/*", "coding_agents"),
    "atif": ("traces/phoenix/atif/*", "coding_agents"),
}


class FileResult(NamedTuple):
    """One file: whether its format was recognized, and its facts beside those that were counted."""

    path: Path
    recognized: bool
    compared: list[Comparison]

    @property
    def right(self) -> dict[str, bool]:
        """Each fact that the file states, and whether it was read exactly; kinds of tokens are one fact."""
        facts: dict[str, bool] = {}
        for each in self.compared:
            name = each.fact.split(".")[0]
            facts[name] = facts.get(name, True) and _exact(each)
        return facts


def main(arguments: list[str]) -> int:
    """Print one row for each family."""
    folder = Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[1] / ".." / "shared" / "data")
    if not (folder / "traces.tar.xz").is_file():
        print(f"skipped: no traces.tar.xz in {folder}; {VARIABLE} names the folder of public trace files")
        return 0
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(folder / "traces.tar.xz") as archive:
            archive.extractall(unpacked, filter="data")
        files = [path for root in (Path(unpacked), folder) for path in _files(root)]
        print("| family | files | recognized | exact | partly | not | " + " | ".join(FACTS) + " |")
        print("|---" * (6 + len(FACTS)) + "|")
        everything: list[FileResult] = []
        for family, (pattern, module) in FAMILIES.items():
            counter = importlib.import_module(f"benchmarks.public_counts.{module}")
            named = [path for path, below in files if fnmatch(below, pattern)]
            results = [read_file(path, counter.count(path)) for path in named]
            everything += results
            print(row_of(family, results))
            if "-v" in arguments:
                for line in differences(results):
                    print(f"  {line}")
        print(row_of("all", everything))
        counted = {result.path for result in everything}
        for path, below in files:
            if path not in counted:
                print(f"not counted: {below}")
    return 0


def read_file(path: Path, expected: list[dict[str, Any]]) -> FileResult:
    """Read a file and compare it with what was counted in it."""
    found, format = read_cases(path)
    return FileResult(path, format is not None, list(compare(expected, found)))


def row_of(family: str, results: list[FileResult]) -> str:
    """The row of a family."""
    stated = [list(result.right.values()) for result in results]
    states = Counter("exact" if all(right) else "partly" if any(right) else "not" for right in stated)
    cells = [family, len(results), sum(result.recognized for result in results)]
    cells += [states["exact"], states["partly"], states["not"]]
    for fact in FACTS:
        stating = [result.right[fact] for result in results if fact in result.right]
        cells.append(f"{sum(stating)}/{len(stating)}" if stating else "")
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def differences(results: list[FileResult]) -> Iterator[str]:
    """One line for each fact that was read otherwise."""
    for result in results:
        for each in result.compared:
            if not _exact(each):
                yield f"{result.path.name} {each.fact}: counted {each.expected!r:.160}, read {each.found!r:.160}"


def _exact(each: Comparison) -> bool:
    """Whether both say the same, in any order: neither cases of a file nor calls side by side have a certain one."""
    return each.exact or _in_any_order(each.expected) == _in_any_order(each.found)


def _in_any_order(values: list[Any]) -> list[str]:
    return sorted(str(sorted(map(str, value)) if isinstance(value, list) else value) for value in values)


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    for part in ("traces", "otel"):
        for path in sorted((root / part).rglob("*")) if (root / part).is_dir() else ():
            if path.is_file():
                yield path, path.relative_to(root).as_posix()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
