"""Tables of recognizers over many texts at once: linear-time matching, checks on candidates, positions in characters.

The texts are joined into one buffer of UTF-8 with a byte between them that UTF-8 never contains and that no pattern
may match, so nothing found ever reaches over the end of a text. Each table is one pass of RE2 over the buffer; what
it finds is a candidate, and only candidates cost Python time. One pass before it tells which tables can find anything:
most find nothing in most texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from agentunit.privacy.findings import CATALOG_CONFIDENCE, Finding

BETWEEN = b"\xff"
_INSIDE_CHARACTERS = bytes(range(0x80, 0xC0))
_BATCH_BYTES = 4 << 20
_AUTOMATON_BYTES = 64 << 20


class Accepted(NamedTuple):
    """What a check accepts: bytes ``start`` to ``end`` of the buffer, with this confidence."""

    start: int
    end: int
    confidence: float


class Candidate(NamedTuple):
    """A match that a check may accept, in the buffer it was found in."""

    buffer: bytes
    start: int
    end: int
    confidence: float

    @property
    def written(self) -> bytes:
        """The matched bytes."""
        return self.buffer[self.start : self.end]

    def before(self, n_bytes: int) -> bytes:
        """Up to this many bytes of the same text that come just before."""
        start = self.start
        return self.buffer[max(0, start - n_bytes) : start].rpartition(BETWEEN)[2]

    def after(self, n_bytes: int) -> bytes:
        """Up to this many bytes of the same text that follow."""
        return self.buffer[self.end : self.end + n_bytes].partition(BETWEEN)[0]

    def whole(self) -> tuple[Accepted, ...]:
        """Accept the match as it is."""
        return (Accepted(self.start, self.end, self.confidence),)


Check = Callable[[Candidate], Sequence[Accepted]]


class Recognizer(NamedTuple):
    """One row of a table: what a pattern finds, how sure that is, and the check that a match must pass.

    The pattern is read by RE2 and by ``re``, over the bytes of UTF-8. It must not match the byte 0xFF (so no negated
    classes and no dot). A group named ``value`` holds the finding where the match has words around it. A pattern
    that repeats without limit takes a whole chain as one match, which is dropped unread above ``longest_bytes``.
    """

    type: str
    rule: str
    pattern: str
    confidence: float
    check: Check = Candidate.whole
    longest_bytes: int = 256


def catalog_recognizer(type: str, rule: str, pattern: str, check: Check) -> Recognizer:
    """A recognizer of one of the catalog's types, as sure as the catalog says."""
    return Recognizer(type, rule, pattern, CATALOG_CONFIDENCE[type], check)


class Table:
    """Recognizers that are looked for together, in one pass; of two that match at one place the first is asked."""

    def __init__(self, recognizers: Sequence[Recognizer]) -> None:
        self.union = "|".join(f"(?:{each.pattern})" for each in recognizers).encode("latin-1")
        self._recognizers = recognizers
        self._longest_bytes = max(each.longest_bytes for each in recognizers)
        self._only = recognizers[0] if len(recognizers) == 1 and "?P<value>" not in recognizers[0].pattern else None

    # Compiling takes far longer than a short text does, and most texts hold nothing that a table finds.
    @cached_property
    def _union(self) -> Any:
        import re2

        return re2.compile(self.union, _options())

    @cached_property
    def _which(self) -> re.Pattern[bytes]:
        """What tells which row has matched, with each row and its value as groups."""
        numbered = (
            f"(?P<row{n}>{each.pattern.replace('?P<value>', f'?P<value{n}>')})"
            for n, each in enumerate(self._recognizers)
        )
        return re.compile("|".join(numbered).encode("latin-1"))

    def find(self, buffer: bytes) -> Iterator[tuple[Recognizer, Accepted]]:
        """Everything in the buffer that passes its check, as spans of bytes."""
        at, n_bytes = 0, len(buffer)
        while at < n_bytes:
            start_again_at = n_bytes
            for match in self._union.finditer(buffer, at):
                start, end = match.span()
                if end - start > self._longest_bytes:
                    continue
                recognizer, candidate = self._candidate(buffer, start, end)
                spans = recognizer.check(candidate)
                for span in spans:
                    yield recognizer, span
                # What a check has cut off at the end may be the next finding.
                if spans and spans[-1].end < candidate.end:
                    start_again_at = spans[-1].end
                    break
            at = start_again_at

    def _candidate(self, buffer: bytes, start: int, end: int) -> tuple[Recognizer, Candidate]:
        if self._only is not None:
            return self._only, Candidate(buffer, start, end, self._only.confidence)
        found = self._which.fullmatch(buffer, start, end)
        if found is None or found.lastgroup is None:
            raise AssertionError(f"RE2 and re read a pattern differently at {buffer[start:end]!r}")
        row = found.lastgroup.removeprefix("row")
        recognizer = self._recognizers[int(row)]
        start, end = found.span(f"value{row}" if f"value{row}" in self._which.groupindex else f"row{row}")
        return recognizer, Candidate(buffer, start, end, recognizer.confidence)


class Tables:
    """Several tables and, for a quick look at each text, the patterns of most of them in one automaton.

    Tables whose patterns count the words before a value belong to ``alone``: with others in one automaton they would
    have too many states.
    """

    def __init__(self, tables: Sequence[Sequence[Recognizer]], alone: Sequence[Sequence[Recognizer]] = ()) -> None:
        import re2

        self._tables = [Table(each) for each in tables]
        self._alone = [Table(each) for each in alone]
        # A set of patterns never gives up, as a single one may: it is as sure as the tables are.
        self._set: Any = re2.Set.SearchSet(_options())
        for table in self._tables:
            self._set.Add(table.union)
        self._set.Compile()

    def find(self, texts: Sequence[str]) -> list[list[Finding]]:
        """What the tables find in each text, in no particular order and possibly overlapping."""
        findings: list[list[Finding]] = []
        for batch in _batches(texts):
            found: list[list[Finding]] = [[] for _ in batch]
            worth_a_look: list[int] = []
            wanted: set[int] = set()
            for number, text in enumerate(batch):
                places = self._set.Match(text)
                if places:
                    worth_a_look.append(number)
                    wanted.update(places)
            if worth_a_look:
                tables = [self._tables[place] for place in sorted(wanted)]
                more = _find_in_batch(tables, [batch[number] for number in worth_a_look])
                for number, findings_here in zip(worth_a_look, more, strict=True):
                    found[number] = findings_here
            if self._alone:
                for findings_here, more_here in zip(found, _find_in_batch(self._alone, batch), strict=True):
                    findings_here += more_here
            findings += found
        return findings


def without_overlaps(findings: Sequence[Finding]) -> list[Finding]:
    """Findings in order of their place; of two that overlap the longer stays, of two equally long the more certain."""
    if len(findings) < 2:
        return list(findings)
    kept: list[Finding] = []
    best_first = sorted(findings, key=lambda each: (each.start - each.end, -each.confidence, each.start, each.type))
    taken = bytearray(max(each.end for each in findings))
    for each in best_first:
        # The longest come first, so one that overlaps a kept finding has its first or last character in it.
        if taken[each.start] or taken[each.end - 1]:
            continue
        kept.append(each)
        taken[each.start : each.end] = b"\1" * (each.end - each.start)
    return sorted(kept, key=lambda each: each.start)


def _options() -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _AUTOMATON_BYTES
    options.never_capture = True
    options.log_errors = False
    return options


def _batches(texts: Sequence[str]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    n_bytes = 0
    for text in texts:
        # Half a surrogate pair has no UTF-8; one "?" for each keeps the count of characters.
        encoded = text.encode("utf-8", "replace")
        if batch and n_bytes + len(encoded) > _BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
        batch.append(encoded)
        n_bytes += len(encoded)
    if batch:
        yield batch


def _find_in_batch(tables: Sequence[Table], texts: list[bytes]) -> list[list[Finding]]:
    buffer = BETWEEN.join(texts)
    spans = sorted(
        (
            (span.start, span.end, recognizer.type, span.confidence, recognizer.rule)
            for table in tables
            for recognizer, span in table.find(buffer)
        ),
        key=lambda each: each[:2],
    )
    findings: list[list[Finding]] = [[] for _ in texts]
    number, text_start, text_end = -1, 0, -1
    in_characters = _Characters(b"")
    for start, end, pii_type, confidence, rule in spans:
        while start > text_end:
            number += 1
            text_start = text_end + 1
            text_end = text_start + len(texts[number])
            in_characters = _Characters(texts[number])
        first, past = in_characters.span(start - text_start, end - text_start)
        findings[number].append(Finding(pii_type, first, past, confidence, rule))
    return findings


class _Characters:
    """Positions in bytes as positions in characters, asked for in ascending order of their starts."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._plain = text.isascii()
        self._byte = self._character = 0

    def span(self, start: int, end: int) -> tuple[int, int]:
        """First and past-the-last character of a span of bytes."""
        if self._plain:
            return start, end
        self._character += self._count(self._byte, start)
        self._byte = start
        return self._character, self._character + self._count(start, end)

    def _count(self, start: int, end: int) -> int:
        return len(self._text[start:end].translate(None, _INSIDE_CHARACTERS))
