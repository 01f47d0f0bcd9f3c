"""Which tools appeared, vanished or changed between two runs. It is shown beside a comparison and decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from agentunit.core.records import Record
from agentunit.core.results import json_fallback
from agentunit.engine.comparison import ToolChange, ToolChangeKind
from agentunit.metrics.tools import declared_tools

# Names and schemas come from records: however many there are, a comparison keeps no more than these.
MOST_TOOLS = 2_000
_MOST_VARIANTS = 50
_MOST_LISTS = 10_000
_SHOWN_VARIANTS = 5
_LONGEST_TEXT = 80


@dataclass
class _ToolFacts:
    """What the records of a run say about one tool: the records that call it, and every variant of its declaration."""

    n_called: int = 0
    is_offered: bool = False
    schemas: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)
    servers: set[str] = field(default_factory=set)


@dataclass
class RunTools:
    """What the records of a run say about its tools."""

    n_records: int = 0
    tools: dict[str, _ToolFacts] = field(default_factory=dict)
    server_versions: dict[str, set[str]] = field(default_factory=dict)
    lists_seen: set[bytes] = field(default_factory=set)

    def add(self, record: Record) -> None:
        """Take in one record; raises ``TooManyTools`` where a run names more than are compared."""
        self.n_records += 1
        for offered in (record.trace.metadata.get("tools"), record.case.tools):
            if offered:
                self._add_offered(offered)
        called: set[str] = set()
        for event in record.trace.events:
            if event.type == "tool_call" and isinstance(name := event.payload.get("name"), str) and name:
                called.add(name)
                if "server" in event.payload or "tool_version" in event.payload:
                    self._add_call(self._facts(name), event.payload)
        for name in called:
            self._facts(name).n_called += 1

    def _add_offered(self, offered: Any) -> None:
        # Most records of a run offer the same tools: a list that was read once is not read again.
        digest = _digest(offered, None)
        if digest in self.lists_seen:
            return
        if len(self.lists_seen) < _MOST_LISTS:
            self.lists_seen.add(digest)
        for tool in declared_tools(offered):
            facts = self._facts(tool.name)
            facts.is_offered = True
            if tool.schema is not None:
                _keep(facts.schemas, _digest(tool.schema).hex())
            _keep(facts.versions, tool.version)
            _keep(facts.servers, tool.server)

    def _add_call(self, facts: _ToolFacts, payload: dict[str, Any]) -> None:
        server = payload.get("server")
        _keep(facts.versions, payload.get("tool_version"))
        _keep(facts.servers, server)
        if isinstance(server, str) and (server in self.server_versions or len(self.server_versions) < MOST_TOOLS):
            _keep(self.server_versions.setdefault(server[:_LONGEST_TEXT], set()), payload.get("server_version"))

    def _facts(self, name: str) -> _ToolFacts:
        name = name[:_LONGEST_TEXT]
        if name not in self.tools and len(self.tools) >= MOST_TOOLS:
            raise TooManyTools(f"names more than {MOST_TOOLS:,}")
        return self.tools.setdefault(name, _ToolFacts())


class TooManyTools(Exception):
    """A run names more tools than are compared."""


def tools_changed(old: RunTools, new: RunTools) -> Iterator[ToolChange]:
    """How the tools of two runs differ. Which were offered is compared where the records of both runs state it."""
    names = sorted(old.tools.keys() | new.tools.keys())
    pairs = [(name, old.tools.get(name, _ToolFacts()), new.tools.get(name, _ToolFacts())) for name in names]
    if all(any(facts.is_offered for facts in run.tools.values()) for run in (old, new)):
        for name, before, after in pairs:
            if before.is_offered != after.is_offered:
                yield ToolChange(name, "no longer offered" if before.is_offered else "offered only now")
    for name, before, after in pairs:
        if bool(before.n_called) != bool(after.n_called):
            kind: ToolChangeKind = "no longer called" if before.n_called else "called only now"
            counts = (f"{facts.n_called} of {run.n_records} records" for facts, run in ((before, old), (after, new)))
            yield ToolChange(name, kind, *counts)
    for name, before, after in pairs:
        if before.schemas and after.schemas and before.schemas != after.schemas:
            yield ToolChange(name, "schema")
        yield from _differing(name, "version", before.versions, after.versions)
        yield from _differing(name, "server", before.servers, after.servers)
    for name in sorted(old.server_versions.keys() & new.server_versions.keys()):
        yield from _differing(name, "server version", old.server_versions[name], new.server_versions[name])


def _differing(name: str, kind: ToolChangeKind, before: set[str], after: set[str]) -> Iterator[ToolChange]:
    # A fact that only one of the runs states says nothing about a change.
    if before and after and before != after:
        yield ToolChange(name, kind, _listed(before), _listed(after))


def _listed(values: set[str]) -> str:
    shown = sorted(values)[:_SHOWN_VARIANTS]
    return ", ".join(shown) + (", …" if len(values) > len(shown) else "")


def _keep(values: set[str], value: Any) -> None:
    if isinstance(value, (str, int, float)) and value != "" and len(values) < _MOST_VARIANTS:
        values.add(str(value)[:_LONGEST_TEXT])


def _digest(value: Any, order: Literal["deterministic"] | None = "deterministic") -> bytes:
    try:
        text = msgspec.json.encode(value, order=order, enc_hook=json_fallback)
    except (TypeError, ValueError, RecursionError):
        text = repr(value).encode("utf-8", "replace")
    return blake2b(text, digest_size=16).digest()
