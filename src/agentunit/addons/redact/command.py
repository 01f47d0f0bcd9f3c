"""``agentunit convert --mask``: traces of any format in, records without the personal data that was found out."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches

import click

from agentunit.addons.redact._regional import RegionalDetector
from agentunit.addons.redact._written import (
    RedactedRecords,
    check_records,
    numbered_marks,
    survivors_told,
    write_in_two_passes,
    write_otlp,
)
from agentunit.addons.redact.rules import RuledDetector, Rules, read_rules
from agentunit.backends.quality import BackendUnavailable
from agentunit.cli.convert import ConvertOptions
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.outputs import cannot_write, finish_output, unfinished_path
from agentunit.cli.rewriting import Rewritten, can_share, conclude_rewriting, rewrite_in_processes, rewrite_records
from agentunit.cli.trace_inputs import refuse_overwriting_inputs
from agentunit.core.results import encode_json
from agentunit.core.score_block import MaskedValues
from agentunit.privacy.detectors import detector_named
from agentunit.privacy.findings import PII_TYPES, Detector
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor, Survivor
from agentunit.traces.native import STDIN
from agentunit.traces.reading import TraceFiles


def mask_traces(options: ConvertOptions) -> None:
    """Write traces with personal data masked, or only list where it is."""
    files, out, mapping, salt, jobs = options.files, options.out, options.mapping, options.salt, options.jobs
    own = _read_rules(options.rules)
    wanted = _types(options.types, options.keep, own)
    refuse_overwriting_inputs(files, out, mapping)
    if mapping is not None and out is not None and os.path.abspath(mapping) == os.path.abspath(out):
        raise click.UsageError("--mapping and --out name the same file: one is a secret, the other is to be shared")
    if salt is None:
        salt = os.environ.get("AGENTUNIT_SALT") or None
    if salt is not None and not salt.strip():
        raise click.BadParameter("must not be empty", param_hint="--salt")
    source = options.source()
    pseudonyms = Pseudonyms(salt)
    detector = _detector(options.backend or "patterns", own, options.region)
    redactor = Redactor(detector, wanted, pseudonyms)
    shared = None if jobs is None else can_share(source, files, options.group_by)
    if out is None:
        check_records(source, redactor)
        return
    if options.target == "otlp":
        if not isinstance(source, TraceFiles) or STDIN in files:
            raise click.UsageError("--to otlp needs files of OTLP")
        done = write_otlp([path for path, _, _ in source.files], out, redactor)
    elif jobs is None or shared is None:
        done = write_in_two_passes(
            out,
            redactor,
            lambda path: rewrite_records(source, path, lambda records: map(encode_json, redactor.redact(records))),
        )
    else:
        # Without a secret of the user's, marks have one of their own until they are numbered.
        own_salt = secrets.token_hex() if salt is None else salt
        redacted = RedactedRecords(detector, wanted, own_salt)

        def final(masked: MaskedValues, lines: bytes) -> bytes:
            redactor.survivors += (Survivor(*each) for each in masked.survivors)
            return numbered_marks(lines, masked, pseudonyms)

        def first_pass(path: str) -> Rewritten:
            return rewrite_in_processes(shared, path, redacted, jobs, format_name=options.format_name, final=final)

        done = write_in_two_passes(out, redactor, first_pass)
    if mapping is not None:
        _write_secret(mapping, encode_json(pseudonyms.values))
    left = survivors_told(redactor.survivors)
    what = "request" if options.target == "otlp" else "record"
    conclude_rewriting(source, out, done, [*_summary(pseudonyms, mapping), *left], what=what)
    if left:
        raise click.exceptions.Exit(EXIT_ERRORS)


def _read_rules(path: str | None) -> Rules:
    try:
        return Rules() if path is None else read_rules(path)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--rules") from None


def _types(types: str | None, keep: str | None, rules: Rules) -> frozenset[str]:
    known = (*PII_TYPES, *rules.own_types)
    wanted = frozenset(known if types is None else _named(types, "--types", known))
    wanted -= frozenset(() if keep is None else _named(keep, "--keep", known))
    if not wanted:
        raise click.UsageError("no type is left to mask: leave out --mask to write records as they are")
    return wanted


def _named(names: str, option: str, known: Sequence[str]) -> Iterator[str]:
    for name in (each.strip() for each in names.split(",") if each.strip()):
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; there are {', '.join(known)}"
            raise click.BadParameter(f"no type is called {name!r}{hint}", param_hint=option)
        yield name


def _detector(name: str, rules: Rules, region: str | None) -> Detector:
    try:
        detector = detector_named(name, "redact")
    except BackendUnavailable as error:
        raise click.BadParameter(str(error).removeprefix("redact: "), param_hint="--backend") from None
    if rules != Rules():
        detector = RuledDetector(detector, rules)
    try:
        return detector if region is None else RegionalDetector(detector, region.split(","))
    except (BackendUnavailable, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--region") from None


def _write_secret(path: str, content: bytes) -> None:
    unfinished = unfinished_path(path)
    try:
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "wb") as stream:
            if hasattr(os, "fchmod"):
                os.fchmod(handle, 0o600)  # one that was left behind may have had another mode
            stream.write(content + b"\n")
        finish_output(unfinished, path, keep=True)
    except OSError as error:
        if unfinished != path:
            with suppress(OSError):
                os.unlink(unfinished)
        raise cannot_write(path, error) from None


def _order(type: str) -> tuple[int, str]:
    return (PII_TYPES.index(type) if type in PII_TYPES else len(PII_TYPES), type)


def _summary(pseudonyms: Pseudonyms, mapping: str | None) -> Iterator[str]:
    counts = [
        f"{type} {n:,} ({pseudonyms.n_distinct(type):,} different)"
        for type, n in sorted(pseudonyms.uses.items(), key=lambda use: _order(use[0]))
    ]
    yield f"masked: {', '.join(counts)}" if counts else "masked: nothing was found"
    if mapping is not None:
        yield f"{mapping} maps each pseudonym to its value: keep it secret, and do not share it with the records"
    yield "a detector misses things ('agentunit convert --help' says how many): look at the file before you share it"
