"""A run as one file that can be carried elsewhere: a baseline kept by CI, a run sent to a colleague.

The first line describes the run, every other line is one finished case with its scores. Plain, or gzip when the name
ends in ``.gz``.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from typing import IO

import msgspec
from msgspec import Struct

from agentunit.core.codec import RecordError, decode_record, encode_record
from agentunit.core.results import Score, encode_json
from agentunit.store.foreign import check_foreign
from agentunit.store.labels import StoredLabel, frames_of_run, labels_of_run, places_of, subject_of
from agentunit.store.protocol import RunStore
from agentunit.store.runs import RunHeader
from agentunit.store.schema import StoreError
from agentunit.store.score_blocks import WrittenScore, written_scores
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, decompressed
from agentunit.traces.native import spoken_os_error
from agentunit.traces.remote import open_binary

PORTABLE_VERSION = 1
_LOOKED_INTO = 1 << 12
# Scores that are kept one case at a time make the store put together its blocks again and again.
_SCORES_AT_ONCE = 4096
_RUN_ID = re.compile(r"(?!last(~|$))[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


class PortableHeader(Struct):
    """The first line of the file."""

    agentunit_run: int
    header: RunHeader


class PortableCase(Struct, omit_defaults=True):
    """One finished case; the record is kept as it was written. ``labels`` are those that stood for its answer.

    Where some of the run's labels were given on another run, ``frames`` names, by metric, the group of answers within
    which labels are random.
    """

    position: int
    repeat: int
    case_id: str
    failed: bool
    elapsed_s: float
    record: msgspec.Raw
    scores: dict[str, Score]
    labels: list[StoredLabel] = msgspec.field(default_factory=list)
    frames: dict[str, str] = msgspec.field(default_factory=dict)


_header_decoder = msgspec.json.Decoder(PortableHeader)
_case_decoder = msgspec.json.Decoder(PortableCase)


def export_run(store: RunStore, run_id: str, path: str | os.PathLike[str]) -> int:
    """Write a run to a file, whole or not at all; returns the number of cases."""
    target = os.fspath(path)
    unfinished = f"{target}.{os.getpid()}.part"
    n_cases = 0
    try:
        with _open_for_writing(unfinished, compressed=target.endswith(".gz")) as stream:
            stream.write(encode_json(PortableHeader(PORTABLE_VERSION, store.find_run(run_id))) + b"\n")
            for case in _cases_of(store, run_id):
                stream.write(encode_json(case) + b"\n")
                n_cases += 1
        os.replace(unfinished, target)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise
    return n_cases


def import_run(store: RunStore, path: str | os.PathLike[str], *, run_id: str | None = None) -> RunHeader:
    """Read a run back into a store, whole or not at all, under its own id or another."""
    header, cases = read_portable(path)
    wanted = run_id or header.id
    if not _RUN_ID.fullmatch(wanted):
        raise StoreError(
            f"a run's id must be of letters, digits, '.', '_', '-'; received {wanted!r} (--as names another)"
        )
    try:
        with store.transaction():
            # Asked within it: another process may be taking in the same file.
            if any(run.id == wanted for run in store.runs()):
                raise StoreError(
                    f"{store.address} holds run {wanted} already; import it under another id, or delete that one"
                )
            _take_in(store, header, wanted, cases)
    except RecordError as error:
        raise StoreError(f"{os.fspath(path)}: {error}") from None
    return store.find_run(wanted)


def _take_in(store: RunStore, header: RunHeader, run_id: str, cases: Iterator[PortableCase]) -> None:
    store.create_run(
        header.name,
        agentunit_version=header.agentunit_version,
        settings=header.settings,
        n_planned=header.n_planned,
        run_id=run_id,
        created_at=header.created_at,
        by_date=True,
    )
    waiting: list[WrittenScore] = []
    for case in cases:
        line = bytes(case.record)
        record = decode_record(line)
        subject = kept_subject = subject_of(record)
        case_id, scores = case.case_id, case.scores
        if store.keeps_masked:
            # Details of scores quote what was scored.
            line = encode_json(store.masked_data(msgspec.json.decode(line)))
            record = decode_record(line)
            kept_subject, case_id = subject_of(record), record.case.id
            scores = {name: _masked(score, store) for name, score in scores.items()}
        store.add_lines([(run_id, case.position, case.repeat, case_id, int(case.failed), case.elapsed_s, line)])
        waiting += written_scores(run_id, case.position, case.repeat, scores)
        if len(waiting) >= _SCORES_AT_ONCE:
            store.add_written_scores(waiting)
            waiting = []
        if case.labels:
            # What a label is about is read from the record, not taken from the file's word.
            labels = [
                msgspec.structs.replace(label, subject=kept_subject, case_id=case_id)
                for label in case.labels
                if label.subject == subject
            ]
            # Under another id the run is still the one that its labels were drawn from.
            given_here = [
                msgspec.structs.replace(label, run_id=run_id) for label in labels if label.run_id == header.id
            ]
            store.add_labels([*given_here, *(label for label in labels if label.run_id != header.id)])
    store.add_written_scores(waiting)
    store.set_status(run_id, header.status, finished_at=header.finished_at)


def _masked(score: Score, store: RunStore) -> Score:
    detail = store.masked_data(msgspec.json.decode(encode_json(score.result.detail)))
    return msgspec.structs.replace(score, result=type(score.result)(score.result.name, score.result.value, detail))


def is_portable(path: str | os.PathLike[str]) -> bool:
    """Whether a file calls itself an exported run, or cannot be looked into; reading it says what is wrong with it."""
    try:
        with open_binary(path) as raw:
            return b'"agentunit_run"' in decompressed(raw).readline(_LOOKED_INTO)
    except (ZstandardMissing, OSError, *BROKEN_STREAM):
        return True


def read_portable(path: str | os.PathLike[str]) -> tuple[RunHeader, Iterator[PortableCase]]:
    """A portable file's run and its cases, streamed."""
    name = os.fspath(path)
    try:
        with open_binary(name) as raw:
            first = _header_decoder.decode(decompressed(raw).readline())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ZstandardMissing, *BROKEN_STREAM) as error:
        hint = "'agentunit export' writes one, 'agentunit score' reads traces"
        raise StoreError(f"{name} is not an exported run ({error}); {hint}") from None
    except OSError as error:
        raise StoreError(f"{name}: {spoken_os_error(error)}") from None
    if first.agentunit_run != PORTABLE_VERSION:
        raise StoreError(f"{name}: the version of an exported run must be 1; received {first.agentunit_run}")
    try:
        check_foreign(first.header)
    except ValueError as error:
        raise StoreError(f"{name} is not an exported run that can be read ({error})") from None
    return first.header, _read_cases(name)


def _read_cases(name: str) -> Iterator[PortableCase]:
    with open_binary(name) as raw:
        stream = decompressed(raw)
        stream.readline()
        number = 1
        while True:
            number += 1
            try:
                line = stream.readline()
                if not line:
                    return
                case = _case_decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, *BROKEN_STREAM) as error:
                raise StoreError(f"{name}, line {number}: not readable ({error})") from None
            yield case


def _cases_of(store: RunStore, run_id: str) -> Iterator[PortableCase]:
    # Records and scores come in the same order, so one pass over each is enough.
    scores = store.scores(run_id)
    waiting = next(scores, None)
    of_run = labels_of_run(store, run_id)
    labels, frames = places_of(of_run), frames_of_run(store, run_id, of_run)
    for stored in store.records(run_id):
        of_case: dict[str, Score] = {}
        while waiting is not None and (waiting.position, waiting.repeat) == (stored.position, stored.repeat):
            of_case[waiting.metric] = waiting.score
            waiting = next(scores, None)
        raw = msgspec.Raw(encode_record(stored.record))
        yield PortableCase(
            stored.position,
            stored.repeat,
            stored.case_id,
            stored.failed,
            stored.elapsed_s,
            raw,
            of_case,
            list(labels.get((stored.position, stored.repeat), ())),
            {metric: groups[stored.position, stored.repeat] for metric, groups in frames.items()},
        )


def _open_for_writing(path: str, *, compressed: bool) -> IO[bytes]:
    try:
        return gzip.open(path, "wb") if compressed else open(path, "wb")  # type: ignore[return-value]
    except OSError as error:
        raise StoreError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
