"""``agentunit redact``: traces of any format in, records without the personal data that was found out."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from difflib import get_close_matches

import click

from agentunit.backends.quality import BackendUnavailable
from agentunit.cli.options import jobs_option, store_option
from agentunit.cli.outputs import cannot_write, finish_output, unfinished_path
from agentunit.cli.rewriting import can_share, conclude_rewriting, rewrite_in_processes, rewrite_records
from agentunit.cli.trace_inputs import (
    files_or_run,
    refuse_overwriting_inputs,
    rewriting_options,
    trace_options,
)
from agentunit.core.results import encode_json
from agentunit.engine.columns import Block
from agentunit.engine.parallel.rewriting import RedactingJob, numbered_marks
from agentunit.metrics.trust import measured_figures
from agentunit.privacy.detectors import DETECTORS, detector_named
from agentunit.privacy.findings import PII_TYPES, Detector
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor
from agentunit.traces.grouping import GroupBy


def _what_remains() -> str:
    measured = [measured_figures().get(("redact", name)) for name in DETECTORS]
    figures = "; ".join(f"{figure.backend} {figure.at_length()}" for figure in measured if figure is not None)
    found = f" Measured over all types: {figures}." if figures else ""
    return (
        f"No detector finds everything.{found} Numbers that are no text are left as they are. Look at the "
        "file before you share it. Exit codes: 0 done, 2 usage, 3 something could not be read, or nothing was there."
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_what_remains())
@rewriting_options
@click.option("--types", metavar="TYPES", help=f"Mask only these types, separated by commas: {', '.join(PII_TYPES)}.")
@click.option("--keep", metavar="TYPES", help="Leave these types as they are.")
@click.option(
    "--backend", default="patterns", show_default=True, metavar="NAME", help=f"What finds it: {', '.join(DETECTORS)}."
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
    out: str,
    types: str | None,
    keep: str | None,
    backend: str,
    salt: str | None,
    mapping: str | None,
    format_name: str | None,
    group_by: GroupBy,
    jobs: int | None,
    store_path: str,
) -> None:
    """Write traces with personal data masked, to share them: <NAME_1>, <EMAIL_1>, the same value the same everywhere.

    The name of a run in place of files masks what it recorded. All files given together share their pseudonyms. Every
    text of a record is looked at: what was asked and answered, tool calls, messages, metadata and fields that AgentUnit
    does not know.

    \b
    agentunit redact spans.json.gz --out shareable.jsonl
    agentunit redact exports/ --keep ip_address --mapping secret.json --out shareable.jsonl.gz
    """
    wanted = _types(types, keep)
    refuse_overwriting_inputs(files, out, mapping)
    if mapping is not None and os.path.abspath(mapping) == os.path.abspath(out):
        raise click.UsageError("--mapping and --out name the same file: one is a secret, the other is to be shared")
    if salt is not None and not salt.strip():
        raise click.BadParameter("must not be empty", param_hint="--salt")
    source = files_or_run(files, format_name, group_by, store_path)
    pseudonyms = Pseudonyms(salt)
    detector = _detector(backend)
    shared = None if jobs is None else can_share(source, files, group_by)
    if jobs is None or shared is None:
        redactor = Redactor(detector, wanted, pseudonyms)
        done = rewrite_records(source, out, lambda records: map(encode_json, redactor.redact(records)))
    else:
        job = RedactingJob(
            shared.files[0][0],
            format_name,
            with_ids=len(shared.files) > 1,
            detector=detector,
            types=wanted,
            # Without a secret of the user's, marks have one of their own until they are numbered.
            salt=secrets.token_hex() if salt is None else salt,
        )

        def final(block: Block, lines: bytes) -> bytes:
            return lines if block.masked is None else numbered_marks(lines, block.masked, pseudonyms)

        done = rewrite_in_processes(shared, out, job, jobs, final)
    if mapping is not None:
        _write_secret(mapping, encode_json(pseudonyms.values))
    conclude_rewriting(source, out, done, _summary(pseudonyms, mapping))


def _types(types: str | None, keep: str | None) -> frozenset[str]:
    wanted = frozenset(PII_TYPES if types is None else _named(types, "--types"))
    wanted -= frozenset(() if keep is None else _named(keep, "--keep"))
    if not wanted:
        raise click.UsageError("no type is left to mask: 'agentunit convert' writes records as they are")
    return wanted


def _named(names: str, option: str) -> Iterator[str]:
    for name in (each.strip() for each in names.split(",") if each.strip()):
        if name not in PII_TYPES:
            nearest = get_close_matches(name, PII_TYPES, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; there are {', '.join(PII_TYPES)}"
            raise click.BadParameter(f"no type is called {name!r}{hint}", param_hint=option)
        yield name


def _detector(name: str) -> Detector:
    try:
        return detector_named(name, "redact")
    except BackendUnavailable as error:
        raise click.BadParameter(str(error).removeprefix("redact: "), param_hint="--backend") from None


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
        raise cannot_write(path, error) from None


def _summary(pseudonyms: Pseudonyms, mapping: str | None) -> Iterator[str]:
    counts = [
        f"{type} {n:,} ({pseudonyms.n_distinct(type):,} different)"
        for type, n in sorted(pseudonyms.uses.items(), key=lambda use: PII_TYPES.index(use[0]))
    ]
    yield f"masked: {', '.join(counts)}" if counts else "masked: nothing was found"
    if mapping is not None:
        yield f"{mapping} tells who is who: it is a secret, do not share it with the records"
    yield "a detector misses things ('agentunit redact --help' says how many): look at the file before you share it"
