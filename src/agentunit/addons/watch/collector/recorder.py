"""Record files out of a spool: one a trace, written when the trace has been quiet, and anew when more of it comes."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from agentunit.addons.watch.collector.spool import CollectedTrace, SpanSpool, SpoolError
from agentunit.core.codec import encode_record
from agentunit.traces.assembly.record import assemble
from agentunit.traces.grouping import LARGEST_GROUP_BYTES
from agentunit.traces.spans import ReadingNotes

_TRACE_ID = re.compile("[0-9a-f]{32}")
_FOREVER = float("inf")
_SWEEP_EVERY_S = 60.0
_MOST_NOTES = 1_000
_MOST_KINDS = 500
_BATCH = 200
_PAUSE_AFTER_FAILURE_S = 5.0


class RecorderCounts(Struct):
    """What a recorder did since it was made: records, how often one was written again, and traces it failed on."""

    written: int = 0
    rewritten: int = 0
    failed: int = 0


class TraceRecorder:
    """Writes the records of a spool's traces to ``OUT/<day>/<trace id>.jsonl``; ``report`` gets each failure as a line.

    A trace is due ``quiet_s`` after its last span, or ``rootless_quiet_s`` when its root has not come. Recorded traces
    leave the spool after ``keep_s``. What may quote a trace is reported as ``quoted`` gives it back.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        spool: SpanSpool,
        *,
        quiet_s: float = 5.0,
        rootless_quiet_s: float = 60.0,
        keep_s: float = 24 * 3600.0,
        report: Callable[[str], None] = lambda line: None,
        quoted: Callable[[str], str] = str,
    ) -> None:
        self.out = Path(out)
        self.counts = RecorderCounts()
        self._spool = spool
        self._quiet_s = quiet_s
        self._rootless_quiet_s = max(quiet_s, rootless_quiet_s)
        self._keep_s = keep_s
        self._report, self._quoted = report, quoted
        # A trace that is written again is not counted twice, as long as it is among the last so many.
        self._notes: dict[str, ReadingNotes] = {}
        self._settled_notes = ReadingNotes()
        self._swept_at = -_FOREVER
        self._paused_until = -_FOREVER
        self._made_room = False

    def write_due(self, now: float | None = None) -> int:
        """Write what is due, up to a batch of it, and sweep the spool now and then; says how many were written."""
        now = time.time() if now is None else now
        if now < self._paused_until:
            return 0
        with self._trying(now):
            if self._spool.is_nearly_full():
                self._make_room(now)
            elif now - self._swept_at >= _SWEEP_EVERY_S:
                self._spool.remove_recorded(before=now - self._keep_s)
                self._swept_at = now
            return self._write_batch(now - self._quiet_s, now - self._rootless_quiet_s)
        return 0

    def write_all(self) -> None:
        """Write every trace that has something new, quiet or not."""
        with self._trying(time.time()):
            while self._spool.n_open():
                self._write_batch(_FOREVER, _FOREVER)

    def notes(self) -> ReadingNotes:
        """What was noticed while the records were made, each trace counted as it was last written."""
        total = ReadingNotes()
        for notes in (self._settled_notes, *self._notes.values()):
            _add_notes(total, notes)
        return total

    def _write_batch(self, rooted_before: float, rootless_before: float) -> int:
        due = self._spool.due(rooted_before=rooted_before, rootless_before=rootless_before, most=_BATCH)
        return sum(self._write(trace_id) for trace_id in due)

    @contextmanager
    def _trying(self, now: float) -> Iterator[None]:
        """A full disk is no reason to end: what is in the spool stays there, and is tried again after a while."""
        try:
            yield
        except (OSError, SpoolError) as error:
            reason = str(error) if isinstance(error, SpoolError) else (error.strerror or str(error)).lower()
            self._report(f"cannot write records to {self.out}: {reason}; the spans are kept, and it is tried again")
            self._paused_until = now + _PAUSE_AFTER_FAILURE_S

    def _write(self, trace_id: str) -> bool:
        revision, n_bytes = self._spool.size(trace_id)
        if n_bytes > LARGEST_GROUP_BYTES:
            return self._give_up(trace_id, revision, f"it has more than {LARGEST_GROUP_BYTES >> 20:,} MiB")
        notes = ReadingNotes()
        try:
            trace = self._spool.trace(trace_id)
            record = assemble(trace.spans, notes)
            line = None if record is None else encode_record(record)
        except SpoolError:
            raise
        except Exception as error:  # noqa: BLE001  # what a stranger sent must not end the collector
            return self._give_up(trace_id, revision, f"{type(error).__name__}: {error}")
        if line is not None:
            file = trace.file or self._free_file(trace)
            if trace.file is None:
                self._spool.fix_file(trace_id, file)
            self._write_file(file, line)
            self.counts.written += trace.file is None
            self.counts.rewritten += trace.file is not None
        self._spool.mark_written(trace_id, trace.revision)
        self._keep_notes(trace, notes)
        return line is not None

    def _make_room(self, now: float) -> None:
        """Rather than refuse new spans, forget recorded ones early: late ones then make a second record."""
        removed = self._spool.remove_recorded(before=now, spanless_before=now - self._rootless_quiet_s)
        if removed and not self._made_room:
            self._report("the spool is nearly full: spans of written traces are removed before their --keep-h is over")
            self._made_room = True

    def _give_up(self, trace_id: str, revision: int, reason: str) -> bool:
        self._report(f"trace {trace_id!r} cannot be made a record ({self._quoted(reason)}); its spans are kept")
        self.counts.failed += 1
        self._spool.mark_written(trace_id, revision, problem=reason)
        return False

    def _write_file(self, file: str, line: bytes) -> None:
        target = self.out / file
        target.parent.mkdir(parents=True, exist_ok=True)
        # Unfinished files lie in the spool, where nobody looks for records.
        unfinished = self._spool.folder / f"{target.name}.part"
        # Records hold what users asked and agents answered, as the spool does: nobody else's business.
        try:
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
                stream.write(line + b"\n")
            os.replace(unfinished, target)
        finally:
            unfinished.unlink(missing_ok=True)

    def _free_file(self, trace: CollectedTrace) -> str:
        """Where a trace goes that has no file yet: never over a record whose spans have left the spool."""
        name = file_name(trace.trace_id)
        file, number = f"{trace.day}/{name}.jsonl", 1
        while (self.out / file).exists():
            number += 1
            file = f"{trace.day}/{name}-{number}.jsonl"
        return file

    def _keep_notes(self, trace: CollectedTrace, notes: ReadingNotes) -> None:
        if trace.n_loose_logs:
            notes.problems["a log record whose span is missing was left out"] += trace.n_loose_logs
        self._notes.pop(trace.trace_id, None)
        if notes.unplaced or notes.problems:
            _add_notes(self._notes.setdefault(trace.trace_id, ReadingNotes()), notes)
        if len(self._notes) > _MOST_NOTES:
            _add_notes(self._settled_notes, self._notes.pop(next(iter(self._notes))))


def _add_notes(total: ReadingNotes, notes: ReadingNotes) -> None:
    for counter, more in ((total.unplaced, notes.unplaced), (total.problems, notes.problems)):
        counter.update(more)
        # Names come from the network: the rare ones make room, or a long run would fill the memory with them.
        if len(counter) > _MOST_KINDS:
            for name, _ in counter.most_common()[_MOST_KINDS // 2 :]:
                del counter[name]


def file_name(trace_id: str) -> str:
    """The name of a trace's file without its ending: ids come from the network, so only a real one is used as it is.

    >>> file_name("0af7651916cd43dd8448eb211c80319c"), file_name("../../etc/passwd")
    ('0af7651916cd43dd8448eb211c80319c', 'id-3754d6cb3a38e1185e5b382d5f3ef3f1')
    """
    if _TRACE_ID.fullmatch(trace_id):
        return trace_id
    return f"id-{hashlib.sha256(trace_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
