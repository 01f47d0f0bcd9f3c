"""``agentunit redact``: traces of any format in, records without the personal data that was found out."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial

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
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import jobs_option, store_option
from agentunit.cli.outputs import cannot_write, finish_output, unfinished_path
from agentunit.cli.rewriting import Rewritten, can_share, conclude_rewriting, rewrite_in_processes, rewrite_records
from agentunit.cli.trace_inputs import (
    files_or_run,
    refuse_overwriting_inputs,
    rewriting_options,
    trace_options,
)
from agentunit.core.results import encode_json
from agentunit.core.score_block import MaskedValues
from agentunit.metrics.trust import measured_figures
from agentunit.privacy.detectors import DETECTORS, detector_named
from agentunit.privacy.findings import PII_TYPES, Detector
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor, Survivor
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN
from agentunit.traces.reading import TraceFiles


def _what_remains() -> str:
    measured = [measured_figures().get(("redact", name)) for name in DETECTORS]
    figures = "; ".join(f"{figure.backend} {figure.at_length()}" for figure in measured if figure is not None)
    found = f" Measured over all types: {figures}." if figures else ""
    return (
        f"No detector finds everything.{found} Numbers in data are masked only in fields such as ssn. Look at the "
        "file before you share it. Exit codes: 0 done, 1 --check found something, 2 usage, 3 something could not be "
        "read, nothing was there, or a known value is still there."
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_what_remains())
@partial(rewriting_options, needs_out=False)
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Write nothing: list where personal data is, and exit with 1 if there is any, as a gate in CI.",
)
@click.option(
    "--to",
    "target",
    type=click.Choice(["records", "otlp"]),
    default="records",
    show_default=True,
    help="What to write: AgentUnit's records, or OTLP as it came (JSON or protobuf), with its ids.",
)
@click.option("--types", metavar="TYPES", help=f"Mask only these types, separated by commas: {', '.join(PII_TYPES)}.")
@click.option("--keep", metavar="TYPES", help="Leave these types as they are.")
@click.option(
    "--backend", default="patterns", show_default=True, metavar="NAME", help=f"What finds it: {', '.join(DETECTORS)}."
)
@click.option(
    "--rules",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Your own rules, YAML or JSON: values to allow and to deny, patterns of further types (docs/privacy.md).",
)
@click.option(
    "--region",
    metavar="CODES",
    help="Also find identity and phone numbers of these countries (DE,FR), or of those a record names (auto).",
)
@click.option(
    "--salt",
    envvar="AGENTUNIT_SALT",
    metavar="SECRET",
    help="Make the same pseudonyms in every file of the same secret, instead of numbers (also AGENTUNIT_SALT).",
)
@click.option(
    "--mapping",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also write which pseudonym stands for what. That file is a secret: only you can read it (mode 0600).",
)
@trace_options
@jobs_option
@store_option
def redact(
    files: tuple[str, ...],
    out: str | None,
    is_check: bool,
    target: str,
    types: str | None,
    keep: str | None,
    backend: str,
    rules: str | None,
    region: str | None,
    salt: str | None,
    mapping: str | None,
    format_name: str | None,
    group_by: GroupBy,
    jobs: int | None,
    store_path: str,
) -> None:
    """Write traces with personal data masked, to share them: <NAME_1>, <EMAIL_1>, the same value the same everywhere.

    The name of a run instead of files masks what it recorded. All files given together share their pseudonyms. Every
    text of a record is looked at: what was asked and answered, tool calls, messages, metadata and fields that AgentUnit
    does not know.

    \b
    agentunit redact spans.json.gz --out shareable.jsonl
    agentunit redact exports/ --keep ip_address --mapping secret.json --out shareable.jsonl.gz
    agentunit redact spans.json --to otlp --out masked.json
    agentunit redact --check tests/data/*.jsonl
    """
    if is_check == (out is not None):
        raise click.UsageError("give either --out FILE, to write there, or --check, to write nothing")
    own = _read_rules(rules)
    wanted = _types(types, keep, own)
    refuse_overwriting_inputs(files, out, mapping)
    if mapping is not None and out is not None and os.path.abspath(mapping) == os.path.abspath(out):
        raise click.UsageError("--mapping and --out name the same file: one is a secret, the other is to be shared")
    if salt is not None and not salt.strip():
        raise click.BadParameter("must not be empty", param_hint="--salt")
    source = files_or_run(files, format_name, group_by, store_path)
    pseudonyms = Pseudonyms(salt)
    detector = _detector(backend, own, region)
    redactor = Redactor(detector, wanted, pseudonyms)
    shared = None if jobs is None else can_share(source, files, group_by)
    if out is None:
        check_records(source, redactor)
        return
    if target == "otlp":
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
            return rewrite_in_processes(shared, path, redacted, jobs, format_name=format_name, final=final)

        done = write_in_two_passes(out, redactor, first_pass)
    if mapping is not None:
        _write_secret(mapping, encode_json(pseudonyms.values))
    left = survivors_told(redactor.survivors)
    what = "request" if target == "otlp" else "record"
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
        raise click.UsageError("no type is left to mask: 'agentunit convert' writes records as they are")
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
    yield "a detector misses things ('agentunit redact --help' says how many): look at the file before you share it"
