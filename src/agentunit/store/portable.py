"""A run as one file that can be carried elsewhere: a baseline kept by CI, a run sent to a colleague.

The first line describes the run and holds what was decided about it, every other line is one finished case with its
scores. Plain, or gzip when the name ends in ``.gz``.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import IO, Any

import msgspec
from msgspec import Struct

from agentunit.core.codec import RecordError, decode_record, encode_record
from agentunit.core.results import Score, decode_json, encode_json
from agentunit.core.score_block import Place
from agentunit.formulas.statistics import LARGEST_MAGNITUDE
from agentunit.store.labels import StoredLabel, frames_of_run, labels_of_run, places_of, subject_of
from agentunit.store.run_store import RunStore
from agentunit.store.runs import HISTORY, RunHeader, StoredDecision, StoredRecord, scored_records
from agentunit.store.schema import StoreError
from agentunit.store.score_blocks import ScoreBuffer
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, decompressed
from agentunit.traces.native import spoken_os_error
from agentunit.urls import open_binary

# What a file says about its run, checked: anybody may have written it, and it is read wherever a run is.

# The last second that a calendar of four-digit years knows.
_LAST_MOMENT_S = 253402300799
_MOST_DECISIONS = 100
_LONGEST_MAKER = 40
_LONGEST_HEADLINE = 2000
# What a run of a hundred thousand cases may need.
_LARGEST_JSON_BYTES = 1 << 25


class _KnownSettings(Struct):
    """The settings that are read as what they are; of the others, each reader leaves out what is none."""

    metrics: list[str] | None = None
    metric_infos: dict[str, dict[str, Any]] | None = None
    gates: list[str] | None = None
    dataset_fingerprint: str | None = None
    users: list[str] | None = None
    limit: int | None = None
    repeats: int | None = None
    seed: int | None = None
    retries: int | None = None
    concurrency: int | None = None
    max_errors: int | None = None
    timeout_s: float | None = None
    min_coverage: float | None = None
    isolation: str | None = None
    agent_version: str | None = None
    earlier_agent_versions: list[str] | None = None


def check_foreign(header: RunHeader) -> None:
    """Refuse what no run has with a ``ValueError``, and note that the run came from a file."""
    for name in ("created_at", "finished_at"):
        moment_s = getattr(header, name)
        if moment_s is not None:
            _check_moment(name, moment_s)
    if header.n_done < 0 or header.n_failed < 0:
        raise ValueError(f"a count must not be negative; received {min(header.n_done, header.n_failed)}")
    msgspec.convert(header.settings, _KnownSettings)
    # Whatever the file says about itself: nobody knows who wrote it.
    header.settings = {**header.settings, "foreign": True}


def check_decisions(decisions: Sequence[StoredDecision]) -> None:
    """Refuse decisions that no run has with a ``ValueError``."""
    if len(decisions) > _MOST_DECISIONS:
        raise ValueError(f"a run has at most {_MOST_DECISIONS} decisions; received {len(decisions)}")
    for decision in decisions:
        _check_moment("made_at", decision.made_at)
        for name, longest in (
            ("made_by", _LONGEST_MAKER),
            ("verdict", _LONGEST_MAKER),
            ("headline", _LONGEST_HEADLINE),
        ):
            length = len(getattr(decision, name) or "")
            if length > longest:
                raise ValueError(f"{name} of a decision must have at most {longest} characters; received {length}")
        _check_object("a decision", bytes(decision.decision))


def check_history(history: bytes) -> None:
    """Refuse JSON that is not the history of a run with a ``ValueError``; empty: there is none."""
    if history:
        _check_object("history", history)


def _check_object(name: str, text: bytes) -> None:
    if len(text) > _LARGEST_JSON_BYTES:
        raise ValueError(f"{name} must have at most {_LARGEST_JSON_BYTES >> 20} MiB; received {len(text):,} bytes")
    try:
        data = decode_json(text)
    except RecursionError:
        raise ValueError(f"{name} has too many levels") from None
    if not isinstance(data, dict):
        raise ValueError(f"{name} must be a JSON object; received {text[:40]!r}")


def _check_moment(name: str, moment_s: float) -> None:
    if not (isfinite(moment_s) and 0 <= moment_s <= _LAST_MOMENT_S):
        raise ValueError(f"{name} must be seconds since 1970; received {moment_s!r}")


PORTABLE_VERSION = 1
_LOOKED_INTO = 1 << 12
# Scores that are kept one case at a time make the store put together its blocks again and again.
_CASES_AT_ONCE = 512
_RUN_ID = re.compile(r"(?!last(~|$))[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


class PortableHeader(Struct, omit_defaults=True):
    """The first line of the file. ``decisions`` are those about the run, oldest first; ``history`` tells of earlier
    tries of its checks, which a store keeps in the settings of an imported run.
    """

    agentunit_run: int
    header: RunHeader
    decisions: list[StoredDecision] = msgspec.field(default_factory=list)
    history: msgspec.Raw = msgspec.Raw()


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

    @property
    def place(self) -> Place:
        """Position and repeat."""
        return self.position, self.repeat


_header_decoder = msgspec.json.Decoder(PortableHeader)
_case_decoder = msgspec.json.Decoder(PortableCase)


def export_run(
    store: RunStore, run_id: str, path: str | os.PathLike[str], *, history: Mapping[str, Any] | None = None
) -> int:
    """Write a run to a file, whole or not at all; returns the number of records.

    ``history`` is what the file says about earlier tries of its checks (default: what the run was imported with).
    """
    target = os.fspath(path)
    unfinished = f"{target}.{os.getpid()}.part"
    n_cases = 0
    try:
        with _open_for_writing(unfinished, compressed=target.endswith(".gz")) as stream:
            stream.write(encode_json(_header_of(store, run_id, history)) + b"\n")
            for case in _cases_of(store, run_id):
                stream.write(encode_json(case) + b"\n")
                n_cases += 1
        os.replace(unfinished, target)
    except BaseException as error:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        if isinstance(error, OSError):
            raise StoreError(f"cannot write {target}: {(error.strerror or str(error)).lower()}") from None
        raise
    return n_cases


def _header_of(store: RunStore, run_id: str, history: Mapping[str, Any] | None) -> PortableHeader:
    header = store.find_run(run_id)
    kept = header.settings.pop(HISTORY, None)
    first = PortableHeader(PORTABLE_VERSION, header, store.decisions(run_id))
    history = kept if history is None else history
    if history:
        first.history = msgspec.Raw(encode_json(history))
    return first


def import_run(store: RunStore, path: str | os.PathLike[str], *, run_id: str | None = None) -> RunHeader:
    """Read a run back into a store, whole or not at all, under its own id or another."""
    header, cases = read_portable(path)
    decisions, history = portable_extras(path)
    if history:
        header.settings[HISTORY] = store.masking.masked_data(history)
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
            for decision in decisions:
                store.add_decision(wanted, decision)
    except RecordError as error:
        raise StoreError(f"{os.fspath(path)}: {error}") from None
    except OverflowError:
        raise StoreError(f"{os.fspath(path)}: a whole number in it is larger than a store can hold") from None
    return store.find_run(wanted)


def stored_in(path: str | os.PathLike[str], case: PortableCase) -> StoredRecord:
    """The record of a case in a file, as a store gives it."""
    try:
        record = decode_record(bytes(case.record))
    except RecordError as error:
        raise StoreError(f"{os.fspath(path)}: case {case.case_id!r}: {error}") from None
    return StoredRecord(case.position, case.repeat, case.case_id, case.failed, case.elapsed_s, record)


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
    waiting = ScoreBuffer()
    for case in cases:
        line = bytes(case.record)
        record = decode_record(line)
        subject = kept_subject = subject_of(record)
        case_id = case.case_id
        if store.masking.is_on:
            line = encode_json(store.masking.masked_data(msgspec.json.decode(line)))
            record = decode_record(line)
            kept_subject, case_id = subject_of(record), record.case.id
        store.add_lines([(run_id, case.position, case.repeat, case_id, int(case.failed), case.elapsed_s, line)])
        waiting.add(case.position, case.repeat, case.scores)
        if waiting.n_cases >= _CASES_AT_ONCE:
            store.add_blocks(run_id, waiting.take())
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
    store.add_blocks(run_id, waiting.take())
    store.set_status(run_id, header.status, finished_at=header.finished_at)


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
    return _read_header(name).header, _read_cases(name)


def portable_extras(path: str | os.PathLike[str]) -> tuple[list[StoredDecision], dict[str, Any]]:
    """What was decided about a portable file's run, oldest first, and what the file says about earlier tries."""
    first = _read_header(os.fspath(path))
    for decision in first.decisions:
        # Written as a store writes it, so that erasing finds the cases it names.
        said = decode_json(bytes(decision.decision))
        decision.decision = msgspec.Raw(encode_json(said))
        # A list of runs shows these two, every other screen the decision itself: they must not differ.
        verdict, headline = said.get("verdict", decision.verdict), said.get("headline", decision.headline)
        decision.verdict = verdict if isinstance(verdict, str) else None
        decision.headline = headline if isinstance(headline, str) else ""
    return first.decisions, decode_json(bytes(first.history)) if bytes(first.history) else {}


def _read_header(name: str) -> PortableHeader:
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
        check_decisions(first.decisions)
        check_history(bytes(first.history))
    except ValueError as error:
        raise StoreError(f"{name} is not an exported run that can be read ({error})") from None
    # Only what was checked is the run's history.
    first.header.settings.pop(HISTORY, None)
    return first


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
            for metric, score in case.scores.items():
                if score.value is not None and not abs(score.value) < LARGEST_MAGNITUDE:
                    raise StoreError(f"{name}, line {number}: {metric} must be below {LARGEST_MAGNITUDE} in size")
            yield case


def _cases_of(store: RunStore, run_id: str) -> Iterator[PortableCase]:
    of_run = labels_of_run(store, run_id)
    labels, frames = places_of(of_run), frames_of_run(store, run_id, of_run)
    for stored, scores in scored_records(store.records(run_id), store.scores(run_id)):
        place = stored.place
        yield PortableCase(
            *place,
            stored.case_id,
            stored.failed,
            stored.elapsed_s,
            msgspec.Raw(encode_record(stored.record)),
            scores,
            list(labels.get(place, ())),
            {metric: groups[place] for metric, groups in frames.items()},
        )


def _open_for_writing(path: str, *, compressed: bool) -> IO[bytes]:
    try:
        return gzip.open(path, "wb") if compressed else open(path, "wb")  # type: ignore[return-value]
    except OSError as error:
        raise StoreError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
