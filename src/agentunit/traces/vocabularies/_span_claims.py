"""What the attributes of one span state: by fact, with where it stands, and whether two vocabularies disagree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentunit.traces.places import require_known
from agentunit.traces.spans import Span
from agentunit.traces.vocabularies._contents import numbered_messages
from agentunit.traces.vocabularies._table import TOKENS, UNUSED_TOKENS
from agentunit.traces.vocabularies.attribute_rows import FACTS, ROWS, SILENT, TOKEN_KINDS, AttributeRow, learn
from agentunit.traces.vocabularies.span_messages import messages_in
from agentunit.traces.vocabularies.values import Message, from_json, usage_of

# Facts whose sources must agree, in words.
_COMPARED = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cost": "costs",
    "model": "models",
    "tool": "tools",
    "agent": "agents",
}
require_known("_COMPARED: a fact", _COMPARED, FACTS)

Claim = tuple[AttributeRow, Any]


class Claims:
    """What the attributes of one span state, by fact, each with its row of the table."""

    __slots__ = ("by_fact", "contested", "kept", "ours", "read", "unknown")

    def __init__(self, span: Span) -> None:
        self.by_fact: dict[str, list[Claim]] = {}
        self.kept: dict[str, AttributeRow] = {}
        self.read: dict[str, Any] = {}
        self.unknown: list[str] = []
        self.ours = False
        self.contested: set[str] = set()
        if SILENT.issuperset(span.attributes):
            return
        known, by_fact, unknown = ROWS.get, self.by_fact, self.unknown
        numbered: dict[str, dict[int, dict[str, Any]]] = {}
        for name, value in span.attributes.items():
            row = known(name) or learn(name)
            fact = row.fact
            if fact is None:
                if not row.known:
                    unknown.append(name)
                if row.ours:
                    self.ours = True
                continue
            if row.ours:
                self.ours = True
            place = row.place
            if place is not None:
                family, number, rest = place
                entries = numbered.get(family)
                if entries is None:
                    value = numbered[family] = {number: {rest: value}}
                else:
                    if number in entries:
                        entries[number][rest] = value
                    else:
                        entries[number] = {rest: value}
                    continue
            elif fact == "usage":
                for part, count in _token_parts(row.attribute, value, unknown):
                    self._add(part, row, count)
                continue
            if fact in by_fact:
                self._add(fact, row, value)
            else:
                by_fact[fact] = [(row, value)]

    def _add(self, fact: str, row: AttributeRow, value: Any) -> None:
        stated = self.by_fact.setdefault(fact, [])
        if stated and stated[0][0].vocabulary != row.vocabulary:
            self.contested.add(fact)
        stated.append((row, value))
        if len(stated) > 1 and stated[-2][0].rank > row.rank:
            stated.sort(key=_rank)

    def __contains__(self, fact: str) -> bool:
        return fact in self.by_fact

    def of(self, fact: str) -> Any:
        """What counts for a fact: the first of its claims that says something."""
        if fact in self.read:
            return self.read[fact]
        found = None
        for row, value in self.by_fact.get(fact, ()):
            found = row.read(value)
            if found is not None:
                self.kept[fact] = row
                break
        self.read[fact] = found
        return found

    def vocabulary(self, fact: str) -> str:
        """Whose word counts for a fact that was read."""
        row = self.kept.get(fact)
        return "" if row is None else row.vocabulary

    def rows(self, fact: str) -> list[AttributeRow]:
        """The rows of all that is stated of a fact."""
        return [row for row, _ in self.by_fact.get(fact, ())]

    def messages(self, fact: str, default_role: str) -> list[Message]:
        """The messages of the first claim that holds any."""
        for row, value in self.by_fact.get(fact, ()):
            if row.place is not None:
                found = numbered_messages(value, default_role, plain=row.vocabulary == "openinference")
            else:
                found = messages_in(row.read(value), default_role)
            if found:
                return found
        return []

    def disagreements(self) -> list[str]:
        """One sentence for each fact that two vocabularies state differently."""
        found = []
        for fact in sorted(self.contested & _COMPARED.keys()):
            kept = self.kept.get(fact)
            if kept is None:
                continue
            for row, value in self.by_fact[fact]:
                other = row.read(value)
                if row.vocabulary != kept.vocabulary and other is not None and not self._agree(fact, other):
                    words = f"other {_COMPARED[fact]} in {row.attribute} than in {kept.attribute}"
                    found.append(f"spans state {words}; the latter counts")
        return found

    def _agree(self, fact: str, other: Any) -> bool:
        kept = self.read[fact]
        if kept == other:
            return True
        if fact.endswith("_tokens"):
            # Cached tokens and those of reasoning are counted within the others or beside them.
            parts = ("cached_tokens", "written_tokens") if fact == "input_tokens" else ("reasoning_tokens",)
            beside = [self.of(part) or 0 for part in parts]
            return bool(abs(kept - other) in (*beside, sum(beside)))
        if fact == "cost":
            return bool(abs(kept - other) <= 1e-6 * max(kept, other))
        # A model goes by its short and its dated name, and with its provider before it.
        plain = [str(each).rpartition("/")[2].lower() for each in (kept, other)]
        return fact == "model" and (plain[0].startswith(plain[1]) or plain[1].startswith(plain[0]))


def _rank(claim: Claim) -> tuple[int, int, int]:
    return claim[0].rank


def usage_in(counts: Any) -> dict[str, Any] | None:
    """Token counts as a record states them, out of a mapping of them in any provider's names."""
    found = dict(_token_parts("", counts, []))
    return usage_of(*(found.get(fact) for fact in TOKENS))


def _token_parts(attribute: str, value: Any, unknown: list[str]) -> Iterable[tuple[str, Any]]:
    counts = from_json(value)
    found: dict[str, Any] = {}
    for name, count in _flat(counts) if isinstance(counts, dict) else ():
        fact = TOKEN_KINDS.get(name)
        if fact is not None and count is not None:
            found.setdefault(fact, count)
        elif fact is None and count and name.rpartition(".")[2] not in UNUSED_TOKENS and name not in UNUSED_TOKENS:
            unknown.append(f"{attribute}.{name}")
    return found.items()


def _flat(counts: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, count in counts.items():
        if isinstance(count, dict):
            yield from ((f"{name}.{part}", each) for part, each in count.items())
        else:
            yield name, count
