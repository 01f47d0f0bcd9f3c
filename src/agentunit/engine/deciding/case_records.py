"""What the records of two runs tell of their cases: which cases are the same, which answers, which tools."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, TypeVar

import msgspec

from agentunit.core.case import DatasetCase
from agentunit.core.codec import RecordError
from agentunit.core.conversation import exchanges_of, user_kind
from agentunit.core.records import Record, outcome_text
from agentunit.core.results import encode_json, json_fallback
from agentunit.engine.deciding.comparison import CaseAnswer, ToolChange, ToolChangeKind
from agentunit.engine.recording.agent_view import AgentView
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.metrics.tools import declared_tools
from agentunit.store.runs import StoredRecord, is_again
from agentunit.store.schema import StoreError

# Which tools appeared, vanished or changed between two runs. It is shown beside a comparison and decides nothing.

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


# Reports mask an answer, which takes time, and then cut it shorter still.
_LONGEST_ANSWER = 2_000


class CaseDigester:
    """A digest of what is asked of a case: its query, its context, and what only graders read."""

    def __init__(self, grader_fields: Iterable[str] = ()) -> None:
        self._view = AgentView([], grader_fields=list(grader_fields))

    def __call__(self, case: DatasetCase) -> bytes:
        """The digest of a case."""
        asked = [case.query, case.context, case.expected_output, case.turns, self._view.grader_part(case)]
        return blake2b(encode_json(asked), digest_size=16).digest()


def case_digester(run: ScoredRun) -> CaseDigester:
    """What tells whether a case of a run is the same as one of another."""
    fields = run.header.settings.get("grader_fields")
    return CaseDigester(map(str, fields) if isinstance(fields, (list, tuple)) else ())


def answer_text(record: Record) -> str | None:
    """The answer of a case; of a conversation all of it, because an earlier turn may have changed."""
    turns = exchanges_of(record.trace.events) if user_kind(record.case) is not None else []
    if len(turns) < 2:
        return outcome_text(record.outcome)
    return "\n".join(f"user: {turn.query}\nagent: {turn.answer or '(no answer)'}" for turn in turns)


def answer_digest(record: Record, *, failed: bool) -> bytes | None:
    """What tells answers apart, to the byte; ``None`` where the agent gave none."""
    text = None if failed else answer_text(record)
    return None if text is None else blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


DigestT = TypeVar("DigestT", bytes, bytes | None)


@dataclass
class RunRecords:
    """What was read of the records of one run.

    ``cases`` is what is asked of each case, ``once`` the digest of the answer of each case that was run once, and
    ``several`` those of the others, by repeat.
    ``tried_again`` are the cases with tries again, ``shown`` the answers of the cases that a report shows.
    ``too_many_tools`` says that a run names more tools than are compared.
    """

    once: dict[str, bytes | None] = field(default_factory=dict)
    several: dict[str, dict[int, bytes | None]] = field(default_factory=dict)
    cases: dict[str, bytes] = field(default_factory=dict)
    tried_again: set[str] = field(default_factory=set)
    shown: dict[str, CaseAnswer] = field(default_factory=dict)
    tools: RunTools = field(default_factory=RunTools)
    too_many_tools: str | None = None

    def answers_of(self, case_id: str) -> set[bytes]:
        """The answers that a case got; a try without one says nothing about the others."""
        return {answer for answer in self.by_repeat(case_id).values() if answer is not None}

    def first_answers(self, case_id: str, at_least: int) -> set[bytes]:
        """The answers of the planned tries of a case, and of those again that make up ``at_least`` so many."""
        given = [(repeat, answer) for repeat, answer in sorted(self.by_repeat(case_id).items()) if answer is not None]
        n_planned = sum(not is_again(repeat) for repeat, _ in given)
        return {answer for _, answer in given[: max(at_least, n_planned)]}

    def by_repeat(self, case_id: str) -> dict[int, bytes | None]:
        """The answers of a case, by repeat; empty where none was read."""
        if case_id in self.several:
            return self.several[case_id]
        return {0: self.once[case_id]} if case_id in self.once else {}

    def given_by_several(self) -> set[bytes]:
        """The answers that more than one case gave: that they come again shows nothing."""
        seen: set[bytes] = set()
        several: set[bytes] = set()
        for case_id in self.cases:
            for answer in self.answers_of(case_id):
                (several if answer in seen else seen).add(answer)
        return several

    def add(self, stored: StoredRecord, digest_of: CaseDigester, is_shown: bool, before: RunRecords | None) -> None:
        """Take in one record. What is as in the run ``before`` is kept once for both: most is."""
        # The same texts in both runs: of a long run they take most of the room.
        case_id = sys.intern(stored.case_id)
        if case_id not in self.cases:
            asked = digest_of(stored.record.case)
            self.cases[case_id] = asked if before is None else _kept_once(asked, before.cases.get(case_id))
        digest = answer_digest(stored.record, failed=stored.failed)
        if before is not None:
            digest = _kept_once(digest, before.once.get(case_id))
        if stored.repeat == 0 and case_id not in self.several:
            self.once[case_id] = digest
        else:
            if case_id not in self.several:
                self.several[case_id] = {0: self.once.pop(case_id)} if case_id in self.once else {}
            self.several[case_id][stored.repeat] = digest
        if is_again(stored.repeat):
            self.tried_again.add(case_id)
        if is_shown:
            self.shown[case_id] = _shown_answer(stored)
        if self.too_many_tools is None:
            try:
                self.tools.add(stored.record)
            except TooManyTools as error:
                self.too_many_tools = str(error)


def _kept_once(digest: DigestT, known: DigestT | None) -> DigestT:
    return known if known is not None and known == digest else digest


@dataclass(frozen=True)
class BothRuns:
    """What the records of a baseline and of a candidate tell. ``note`` says what could not be compared."""

    old: RunRecords
    new: RunRecords
    note: str | None = None

    @property
    def are_read(self) -> bool:
        """Whether there are answers to compare."""
        return bool(self.new.cases)

    @property
    def tools(self) -> tuple[ToolChange, ...]:
        """How the tools of the two runs differ."""
        if self.note is not None:
            return ()
        return tuple(tools_changed(self.old.tools, self.new.tools))

    def is_changed(self, case_id: str) -> bool:
        """Whether something else is asked under the same id."""
        before, now = self.old.cases.get(case_id), self.new.cases.get(case_id)
        return before is not None and now is not None and before != now

    def same_answer(self, case_id: str) -> bool | None:
        """Whether a case has the same answers in both runs, to the byte."""
        before, now = self.old.by_repeat(case_id), self.new.by_repeat(case_id)
        return set(before.values()) == set(now.values()) if before and now else None


def read_both(
    candidate: ScoredRun, baseline: ScoredRun, cases: Collection[str], shown: Mapping[str, tuple[int, int]]
) -> BothRuns | None:
    """What the records of both runs tell of these cases; ``None`` where one of them has none.

    ``shown`` names the repeats, in the baseline and in the candidate, whose answers a report shows.
    """
    if candidate.read_records is None or baseline.read_records is None:
        return None
    sides: list[RunRecords] = []
    for place, run in enumerate((baseline, candidate)):
        assert run.read_records is not None
        read = RunRecords()
        digest_of = case_digester(run)
        try:
            for stored in run.read_records():
                if stored.case_id in cases:
                    repeats = shown.get(stored.case_id)
                    is_shown = repeats is not None and repeats[place] == stored.repeat
                    read.add(stored, digest_of, is_shown, sides[0] if sides else None)
        except (RecordError, StoreError, OSError) as error:
            note = f"answers and tools were not compared: the records of {run.header.label} cannot be read ({error})"
            return BothRuns(RunRecords(), RunRecords(), note)
        sides.append(read)
    too_many: str | None = None
    for run, read in zip((baseline, candidate), sides, strict=True):
        if read.too_many_tools is not None:
            too_many = f"tools were not compared: {run.header.label} {read.too_many_tools}"
    return BothRuns(sides[0], sides[1], too_many)


def _shown_answer(stored: StoredRecord) -> CaseAnswer:
    text = answer_text(stored.record)
    error = getattr(stored.record.outcome, "error", None)
    if error is not None or stored.failed:
        error = str(error or "the agent failed and left no message")[:_LONGEST_ANSWER]
    return CaseAnswer(None if text is None else text[:_LONGEST_ANSWER], error)
