"""Records of files written again by several processes, in the order of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from agentunit.core.records import Record
from agentunit.core.results import InputError, encode_json
from agentunit.engine.columns import Block, MaskedValues
from agentunit.engine.parallel.records import batches
from agentunit.engine.parallel.work import Job, UnitCounts
from agentunit.privacy.findings import Detector
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor

# A few at a time are redacted faster than one by one; a block is written when it has so many.
RECORDS_AT_ONCE = 16
_BATCHES_A_BLOCK = 64

_MARK = re.compile(rb"<[A-Z][A-Z_]*_[a-p]{12}>")


@dataclass(frozen=True)
class RewritingJob(Job):
    """A job that writes each record as ``encode`` does."""

    encode: Callable[[Record], bytes] = encode_json

    def blocks(self, found: Iterator[Record | InputError], counts: UnitCounts) -> Iterator[tuple[Block, bytes]]:
        """The records, one per line."""
        for some in _blocks_of(found):
            yield self._block([self.encode(record) for record in some], some, counts)

    def _block(
        self, lines: Sequence[bytes], records: Sequence[Record], counts: UnitCounts, masked: MaskedValues | None = None
    ) -> tuple[Block, bytes]:
        data = b"".join(line + b"\n" for line in lines)
        ids = [record.case.id for record in records] if self.with_ids else None
        block = Block(len(records), [], counts.take_errors(), [], 0, 0, len(data), ids, masked=masked)
        return block, data


@dataclass(frozen=True)
class RedactingJob(RewritingJob):
    """A job that masks personal data. Its marks are made with the ``salt``, in every process the same."""

    detector: Detector | None = None
    types: frozenset[str] = field(default_factory=frozenset)
    salt: str = ""

    def blocks(self, found: Iterator[Record | InputError], counts: UnitCounts) -> Iterator[tuple[Block, bytes]]:
        """The records without the data that was found, and what that was."""
        if self.detector is None:
            raise ValueError("RedactingJob: detector must be given; received None")
        for some in _blocks_of(found):
            pseudonyms = Pseudonyms(self.salt)
            redactor = Redactor(self.detector, self.types, pseudonyms)
            redact = redactor.redact
            lines = [encode_json(each) for batch in batches(some, RECORDS_AT_ONCE) for each in redact(batch)]
            left = [(each.type, each.record, each.place) for each in redactor.survivors]
            masked = MaskedValues(dict(pseudonyms.uses), pseudonyms.found(), left)
            yield self._block(lines, some, counts, masked)


def _blocks_of(found: Iterator[Record | InputError]) -> Iterator[list[Record]]:
    """The records of each block; the last is empty, and tells what could not be read after the last record."""
    yield from batches((each for each in found if isinstance(each, Record)), RECORDS_AT_ONCE * _BATCHES_A_BLOCK)
    yield []


def numbered_marks(lines: bytes, masked: MaskedValues, pseudonyms: Pseudonyms) -> bytes:
    """Lines whose marks are those of ``pseudonyms``, which counts what was masked in them.

    >>> masked = MaskedValues({"name": 2}, [("<NAME_abcdefghijkl>", "name", "Mia Li")])
    >>> numbered_marks(b"<NAME_abcdefghijkl> asked", masked, Pseudonyms())
    b'<NAME_1> asked'
    """
    final = {mark.encode(): pseudonyms.known(type, value).encode() for mark, type, value in masked.values}
    pseudonyms.uses.update(masked.uses)
    return _MARK.sub(partial(_final, final), lines)


def _final(final: dict[bytes, bytes], found: re.Match[bytes]) -> bytes:
    return final.get(found.group(), found.group())
