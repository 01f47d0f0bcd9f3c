"""The table of trace formats in docs/traces.md: what each is, and which facts it lacks or loses, by the corpus."""

from __future__ import annotations

from pathlib import Path

from benchmarks.traces.facts import GAPS, Comparison, CorpusFile, compare, corpus_files, read_cases

from agentunit.traces.formats import format_table
from agentunit.traces.native import NATIVE_FORMAT

PAGE = Path(__file__).resolve().parent.parent / "docs" / "traces.md"
BEGIN = "<!-- Written by `make docs` from the formats and tests/corpus; do not edit by hand. -->"
END = "<!-- Up to here. -->"

# What a reader asks about, and the facts of the corpus that say it.
TOPICS = {
    "question": ("question",),
    "answer": ("answer",),
    "agents": ("agents",),
    "tool calls": ("tool_calls",),
    "failures": ("tool_failures", "tool_success"),
    "tokens": ("tokens",),
    "cost": ("cost",),
}
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
    lines = ["| format | what it is | without |", "|---|---|---|"]
    for name, what in summaries.items():
        lines.append(f"| `{name}` | {what.replace('|', '/')} | {_lacks(files.get(name, []))} |")
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


def _lacks(files: list[CorpusFile]) -> str:
    """The facts that no file states, or that all say are absent, and those that are not read exactly."""
    if not files:
        return "not tried: no file in tests/corpus"
    compared = [each for file in files for each in compare(file.expected["cases"], read_cases(file.path)[0])]
    lacks = []
    for topic, facts in TOPICS.items():
        found = [each for each in compared if each.fact.split(".")[0] in facts]
        if not _is_stated(found):
            lacks.append(topic)
        elif not all(each.exact for each in found):
            lacks.append(f"{topic} (in part)")
    return ", ".join(lacks)


def _is_stated(compared: list[Comparison]) -> bool:
    return any(value is not None for each in compared for value in each.expected)
