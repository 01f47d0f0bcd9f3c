"""What ``agentunit convert --mask`` writes and tells: records, OTLP requests, and what a check found."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import click
import msgspec

from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure
from agentunit.cli.outputs import Output
from agentunit.cli.rewriting import RECORDS_AT_ONCE, Rewritten
from agentunit.core.codec import encode_record
from agentunit.core.records import Record
from agentunit.core.results import InputError, encode_json
from agentunit.core.score_block import MaskedValues
from agentunit.privacy.findings import Detector
from agentunit.privacy.masked_spans import masked_texts
from agentunit.privacy.pseudonyms import PLACEHOLDER, Pseudonyms
from agentunit.privacy.record_texts import places_of
from agentunit.privacy.redaction import Redactor, Survivor
from agentunit.reports.console import error_line
from agentunit.reports.figures import counted
from agentunit.reports.terminal import Terminal
from agentunit.traces.compressed import BROKEN_STREAM
from agentunit.traces.otlp.masked_requests import mask_request, plain_request
from agentunit.traces.otlp.protobuf_messages import ProtobufMissing
from agentunit.traces.otlp.stored_requests import StoredRequest, read_requests
from agentunit.traces.reading import TraceSource

_EXIT_FOUND = 1
_MARK = re.compile(rb"<[A-Z][A-Z_]*_[a-p]{12}>")
_SHOWN = 5
_MOST_FOUND = 20


@dataclass(frozen=True)
class RedactedRecords:
    """Records as worker processes write them, without what was found in them, and what that was.

    Marks are made with the ``salt``, in every process the same.
    """

    detector: Detector
    types: frozenset[str]
    salt: str

    def __call__(self, records: Sequence[Record], /) -> tuple[list[bytes], MaskedValues]:
        """The lines of some records."""
        pseudonyms = Pseudonyms(self.salt)
        redactor = Redactor(self.detector, self.types, pseudonyms)
        lines = []
        for start in range(0, len(records), RECORDS_AT_ONCE):
            lines += [encode_json(each) for each in redactor.redact(records[start : start + RECORDS_AT_ONCE])]
        left = [(each.type, each.record, each.place) for each in redactor.survivors]
        return lines, MaskedValues(dict(pseudonyms.uses), pseudonyms.found(), left)


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


def write_in_two_passes(out: str, redactor: Redactor, first_pass: Callable[[str], Rewritten]) -> Rewritten:
    """Records as a first pass writes them to the file it is given; then what only other records told is masked too."""
    with tempfile.TemporaryDirectory(prefix="agentunit-redact-") as folder:
        spool = os.path.join(folder, "records.jsonl")
        done = first_pass(spool)
        with Output(out) as output:
            if done.n_records:
                output.stream.writelines(_with_known(spool, redactor))
            output.finish(keep=done.n_records > 0)
    return done


def _with_known(spool: str, redactor: Redactor) -> Iterator[bytes]:
    known = redactor.known_by_now()
    with open(spool, "rb") as lines:
        for line in lines:
            data = msgspec.json.decode(line) if known else None
            yield encode_json(data) + b"\n" if known and redactor.redact_known(data, known, line) else line


def write_otlp(files: Sequence[str], out: str, redactor: Redactor) -> Rewritten:
    """OTLP requests with their texts masked, in the encoding and framing they came in; ids and times stay."""
    errors: list[InputError] = []
    n_requests = 0
    with tempfile.TemporaryFile() as spool, Output(out) as output:
        kept: list[tuple[StoredRequest, int]] = []
        mask = masked_texts(redactor)
        for path in files:
            for request in _requests(path, errors):
                body = _masked(request, mask, path, errors)
                if body is not None:
                    spool.write(body)
                    kept.append((request._replace(body=b""), len(body)))
        if len({(request.media_type, request.framing) for request, _ in kept}) > 1:
            raise click.UsageError("--to otlp: the files are encoded differently; redact each encoding by itself")
        spool.seek(0)
        known = redactor.known_by_now()
        mask = masked_texts(redactor, known)
        for request, n_bytes in kept:
            body = _masked(request._replace(body=spool.read(n_bytes)), mask, out, errors)
            if body is not None:
                # Times and names of attributes stay as they are: nobody may take them for clean.
                redactor.audit(plain_request("traces", request.media_type, body), known)
                output.stream.write(request.written(body))
                n_requests += 1
        output.finish(keep=n_requests > 0)
    return Rewritten(n_requests, errors)


def _requests(path: str, errors: list[InputError]) -> Iterator[StoredRequest]:
    try:
        yield from read_requests(path)
    except ProtobufMissing as error:
        raise InputFailure(str(error)) from None
    except (OSError, ValueError, RecursionError, *BROKEN_STREAM) as error:
        errors.append(InputError(path, None, f"no OTLP ({error})"))


def _masked(request: StoredRequest, mask: Callable[..., Any], path: str, errors: list[InputError]) -> bytes | None:
    try:
        return mask_request("traces", request.media_type, request.body, mask)
    except ImportError as error:
        raise InputFailure(f"{path}: protobuf cannot be read here ({error})") from None
    except (ValueError, RecursionError) as error:
        errors.append(InputError(path, None, f"a request cannot be masked: {error}"))
    except Exception as error:
        if type(error).__module__.startswith("google.protobuf"):
            errors.append(InputError(path, None, "a request is not valid protobuf"))
            return None
        raise
    return None


def check_records(source: TraceSource, redactor: Redactor) -> None:
    """Tell where records hold personal data, and end with 1 where they do, with 3 where something cannot be read."""
    console = Terminal(stderr=True)
    errors: list[InputError] = []
    found: Counter[str] = Counter()
    n_records = 0
    records = _readable(source, errors)
    while batch := list(islice(records, RECORDS_AT_ONCE)):
        n_records += len(batch)
        before = [msgspec.json.decode(encode_record(record)) for record in batch]
        for old, new in zip(before, redactor.redact(batch), strict=True):
            for place, types in _changes(old, new):
                found.update(types)
                if found.total() - len(types) < _MOST_FOUND:
                    # The id as it is masked: a log of CI is read by many.
                    click.echo(f"{new['case'].get('id', '')} {place}: {', '.join(types)}")
    for line in (f"not read: {error_line(error)}" for error in errors[:_SHOWN]):
        console.print(line, soft_wrap=True)
    counts = ", ".join(f"{type} {n:,}" for type, n in sorted(found.items()))
    n = "1 record" if n_records == 1 else f"{n_records:,} records"
    summary = f"{n}: {f'personal data found: {counts}' if found else 'no personal data found'}"
    if not n_records:
        summary = "no records: nothing was checked"
    console.print(summary, soft_wrap=True)
    if errors or not n_records:
        raise click.exceptions.Exit(EXIT_ERRORS)
    if found:
        raise click.exceptions.Exit(_EXIT_FOUND)


def _readable(source: Iterable[Record | InputError], errors: list[InputError]) -> Iterator[Record]:
    for each in source:
        if isinstance(each, InputError):
            errors.append(each)
        else:
            yield each


def _changes(old: Any, new: Any) -> Iterator[tuple[str, list[str]]]:
    """The places whose text a redactor changed, and the types of what it replaced there."""
    for (_, before), (place, after) in zip(places_of(old), places_of(new), strict=True):
        if before != after:
            already = Counter(PLACEHOLDER.findall(before))
            marks = Counter(PLACEHOLDER.findall(after)) - already
            yield place, [mark[1:-1].rpartition("_")[0].lower() for mark in marks.elements()]


def survivors_told(survivors: Iterable[Survivor]) -> list[str]:
    """What is said about known values that are still there; nothing where none are."""
    left = list(dict.fromkeys(survivors))
    lines = [f"still there: {each.type} at {each.record} {each.place}".replace("  ", " ") for each in left[:_SHOWN]]
    if len(left) > _SHOWN:
        lines.append(f"… and {counted(len(left) - _SHOWN, 'more place')}")
    if left:
        lines.append(
            "these places hold a record together and are not masked: do not share the file before you have changed them"
        )
    return lines
