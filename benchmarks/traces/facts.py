"""What AgentUnit reads from a trace file, fact by fact, beside what other code counted in the same file.

An expectation is the JSON that ``tests/corpus`` keeps beside each file: ``{"cases": [{"question", "answer", "agents",
"tool_calls", "tokens", "cost"}]}``. A key that is left out is a fact that the format does not state; ``None`` says that
this file does not state it, and then nothing may be read. Each tool call is a name and how it ended; in a format that
does not state how calls end it is the name alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentunit.core.records import Record
from agentunit.metrics.builtin import CostMetric, TokenUsageMetric, ToolSuccessMetric
from agentunit.metrics.inputs import Item
from agentunit.metrics.usage import find_usage, llm_calls
from agentunit.multiagent.derivation import HUMANS, agent_in, derived
from agentunit.traces.reading import TraceFiles

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "corpus"
FACTS = ("cases", "question", "answer", "agents", "tool_calls", "tool_failures", "tool_success", "tokens", "cost")
# Facts that are known to be read otherwise than they were counted, by file ("*": all of it): the reason. The matrix of
# docs/traces.md shows them; a test fails when one of them is read exactly.
GAPS: dict[tuple[str, str], str] = {}
_REASONING = (("completion_tokens_details", "reasoning_tokens"), ("output_tokens_details", "reasoning_tokens"))


class CorpusFile(NamedTuple):
    """A file of the corpus with what other code counted in it."""

    folder: str
    path: Path
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        """The file below ``tests/corpus``."""
        return f"{self.folder}/{self.path.name}"


class Comparison(NamedTuple):
    """One fact of one file: what was counted in it, and what AgentUnit read, one value a case."""

    fact: str
    expected: list[Any]
    found: list[Any]

    @property
    def exact(self) -> bool:
        """Whether both say the same of every case."""
        return len(self.expected) == len(self.found) and all(map(_same, self.expected, self.found))


def corpus_files(folder: Path = CORPUS) -> list[CorpusFile]:
    """The files of the corpus, in order of their names."""
    files = []
    for expectation in sorted(folder.glob("*/*.expected.json")):
        stem = expectation.name.removesuffix(".expected.json")
        beside = [path for path in expectation.parent.glob(f"{stem}.*") if path != expectation]
        if len(beside) != 1:
            raise ValueError(f"{expectation}: one file must stand beside it; found {[path.name for path in beside]}")
        files.append(CorpusFile(expectation.parent.name, beside[0], json.loads(expectation.read_text("utf-8"))))
    return files


def read_cases(path: Path) -> tuple[list[dict[str, Any]], str | None]:
    """The facts of each case in a file, and the name of the format that it was read as."""
    files = TraceFiles([path])
    records = [found for found in files if isinstance(found, Record)]
    return [facts_of(record) for record in records], next(iter(files.notes.formats), None)


def facts_of(record: Record) -> dict[str, Any]:
    """The facts of a record as its user sees them in metrics; unknown is ``None``."""
    item = Item(record.case, record.trace, record.outcome)
    calls = [event.payload for event in record.trace.events if event.type == "tool_call"]
    success = ToolSuccessMetric().judge(item)
    cost = CostMetric().judge(item)
    return {
        "question": record.case.query,
        "answer": item.outcome.output,
        "agents": _agents(record),
        "tool_calls": [call.get("name") for call in calls],
        "tool_failures": [call.get("status") for call in calls],
        "tool_success": success.value if calls else None,
        "tokens": _tokens(item),
        # A list price is AgentUnit's own opinion; the file states what was recorded.
        "cost": cost.value if cost.detail.get("backend") == "recorded" else None,
    }


def compare(expected: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> Iterator[Comparison]:
    """Each stated fact of the cases of one file; tokens by kind."""
    yield Comparison("cases", [len(expected)], [len(found)])
    for fact in FACTS[1:]:
        stating = [place for place, case in enumerate(expected) if _stated(case, fact)]
        if not stating:
            continue
        right = [_value(expected[place], fact) for place in stating]
        read = [found[place][fact] if place < len(found) else None for place in stating]
        if fact != "tokens":
            yield Comparison(fact, right, read)
            continue
        if None in right:
            yield Comparison("tokens", [each is not None for each in right], [each is not None for each in read])
        for kind in dict.fromkeys(kind for each in right if each for kind in each):
            here = [place for place, each in enumerate(right) if each and kind in each]
            counted = [right[place][kind] for place in here]
            yield Comparison(f"tokens.{kind}", counted, [(read[place] or {}).get(kind) for place in here])


def _stated(case: Mapping[str, Any], fact: str) -> bool:
    if fact not in ("tool_failures", "tool_success"):
        return fact in case
    return bool(case.get("tool_calls")) and all(len(call) > 1 for call in case["tool_calls"])


def _value(case: Mapping[str, Any], fact: str) -> Any:
    if fact == "tool_calls":
        return [name for name, *_ in case["tool_calls"]]
    if fact == "tool_failures":
        return [status for _, status in case["tool_calls"]]
    if fact == "tool_success":
        statuses = [status for _, status in case["tool_calls"]]
        if case["tool_calls"][-1] == ["finish", None] and case.get("answer"):
            statuses[-1] = "success"  # it hands in the answer
        # Where no call states a status, nothing is known.
        return statuses.count("success") / len(statuses) if any(statuses) else None
    return case[fact]


def _agents(record: Record) -> list[str]:
    """The agents that have a role or did anything; the human is none of them."""
    named = {agent_in(event.payload) for event in record.trace.events} | set(derived(record.trace).roles)
    return sorted(name for name in named if name and name.lower() not in HUMANS)


def _tokens(item: Item) -> dict[str, int | None] | None:
    found = find_usage(item)
    if found is None:
        return None
    detail = TokenUsageMetric().judge(item).detail
    calls = llm_calls(item)
    usages = [payload.get("usage") or {} for _, payload, _ in calls]
    written = found[0].cache_written or sum(tokens.cache_written for _, _, tokens in calls)
    return {
        "input": detail["prompt_tokens"],
        "output": detail["completion_tokens"],
        "total": detail["total_tokens"],
        "cache_read": found[0].cached,
        "cache_write": written,
        "reasoning": sum(_reasoning(usage) for usage in [*usages, item.trace_metadata.get("usage") or {}]),
    }


def _reasoning(usage: Mapping[str, Any]) -> int:
    for details, name in _REASONING:
        part = usage.get(details)
        if isinstance(part, Mapping) and isinstance(count := part.get(name), int):
            return count
    return 0


def _same(expected: Any, found: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, (int, float)):
        return math.isclose(expected, found, rel_tol=1e-9, abs_tol=1e-12)
    return bool(expected == found)
