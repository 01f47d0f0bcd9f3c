"""The table of trace formats in docs/traces.md: what each is, and which facts of the corpus are read exactly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.traces.facts import GAPS, Comparison, CorpusFile, compare, corpus_files, read_cases

from agentunit.traces.formats import format_table
from agentunit.traces.native import NATIVE_FORMAT

PAGE = Path(__file__).resolve().parent.parent / "docs" / "traces.md"
BEGIN = "<!-- Written by `make docs` from the formats and tests/corpus; do not edit by hand. -->"
END = "<!-- Up to here. -->"

# The columns, and the facts of the corpus that each of them is about.
COLUMNS = {
    "question": ("question",),
    "answer": ("answer",),
    "agents": ("agents",),
    "tool calls": ("tool_calls",),
    "failures": ("tool_failures", "tool_success"),
    "tokens": ("tokens",),
    "cost": ("cost",),
}
EXACT, PARTLY, NOT, UNSTATED, UNTESTED = "yes", "partly", "no", "", "?"
NATIVE_SUMMARY = "AgentUnit's own [records](records.md), one JSON object per line"


def traces_page() -> str:
    """The page with its table written again."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"docs/traces.md must hold the lines {BEGIN!r} and {END!r}; at least one is missing")
    return "\n".join([before + BEGIN, "", *_tables(), "", END + after])


def _tables() -> list[str]:
    files: dict[str, list[CorpusFile]] = {}
    for file in corpus_files():
        files.setdefault(file.folder, []).append(file)
    summaries = {NATIVE_FORMAT: NATIVE_SUMMARY} | _summaries()
    lines = _table("format", "what it is", {name: (summaries[name], files.pop(name, [])) for name in summaries})
    if files:
        others = {folder: (_read_as(found), found) for folder, found in files.items()}
        lines += ["", *_table("made with", "read as", others)]
    gaps: dict[str, list[str]] = {}
    for (name, fact), reason in sorted(GAPS.items()):
        gaps.setdefault(f"`{name.split('/')[0]}`: {reason}", []).append(fact)
    if gaps:
        lines += ["", "Not read exactly:", "", *(f"- {gap}." for gap in gaps)]
    return lines


def _summaries() -> dict[str, str]:
    """What each of AgentUnit's own formats is; those of packages that happen to be installed here are left out."""
    table = format_table()
    return {name: table.load(name).summary for name in table.entries if name not in table.brought}


def _read_as(files: Iterable[CorpusFile]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(str(file.expected.get("format", "?")) for file in files))


def _table(first: str, second: str, rows: dict[str, tuple[str, list[CorpusFile]]]) -> list[str]:
    lines = [f"| {first} | {second} | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|"]
    for name, (what, files) in rows.items():
        lines.append(f"| `{name}` | {what.replace('|', '/')} | {' | '.join(_cells(files))} |")
    return lines


def _cells(files: list[CorpusFile]) -> list[str]:
    compared = [each for file in files for each in compare(file.expected["cases"], read_cases(file.path)[0])]
    return [_cell(compared, facts) if files else UNTESTED for facts in COLUMNS.values()]


def _cell(compared: list[Comparison], facts: tuple[str, ...]) -> str:
    """How a column's facts are read: a fact that no file states, or that all say is absent, has no mark."""
    found = [each for each in compared if each.fact.split(".")[0] in facts]
    if not any(value is not None for each in found for value in each.expected):
        return UNSTATED
    right = [each.exact for each in found]
    return EXACT if all(right) else PARTLY if any(right) else NOT
