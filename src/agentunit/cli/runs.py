"""``agentunit runs``: what the store holds, the newest first."""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import msgspec

from agentunit.cli.options import InputFailure, Verb, json_option, open_store, store_option, tags_from
from agentunit.cli.references import unreadable_runs_fail
from agentunit.core.codec import RecordError, decode_record
from agentunit.core.results import encode_json
from agentunit.doors import part
from agentunit.engine.deciding.stored import listed_means, own_verdicts
from agentunit.engine.scoring.score_rows import is_table
from agentunit.engine.scoring.scored_run import info_of, recorded_infos
from agentunit.reports.console import print_next
from agentunit.reports.figures import counted, counted_cases
from agentunit.reports.json_report import run_line_as_data
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import Mask, how_to_resume, printing_mask
from agentunit.reports.run_console import print_runs
from agentunit.reports.terminal import Terminal
from agentunit.store.erasure import Erasure, Whom, erase_from, erasures_of, whom
from agentunit.store.opening import shown_address
from agentunit.store.portable import import_run, is_portable
from agentunit.store.runs import RunHeader
from agentunit.store.schema import StoreError

# ``agentunit runs --erase``: what the store, its labels and files hold of somebody, removed.

_PAGE = b'name="agentunit-source"'
_LOOKED_INTO = 1 << 14


def erase_data(wanted: str, files: Sequence[str], store_path: str, *, as_json: bool) -> None:
    """Erase from the store and the files named, and say how much that was, and what the judge's cache may still hold.

    Its replies do not say whose they are, nor of which store: it is cleared only where its folder is among the files.
    """
    try:
        which = whom(wanted)
    except StoreError as error:
        raise click.BadParameter(str(error), param_hint="--erase") from None
    if files and which.kind == "older":
        raise click.UsageError("--erase older=… is about runs of the store: it takes no files")
    cache: Path | None = part("judge_cache")()
    named_caches = [name for name in files if cache is not None and Path(name).resolve() == cache]
    files = [name for name in files if name not in named_caches]
    for name in files:
        _check_file(Path(name))  # before anything is erased: all of it or nothing
    with unreadable_runs_fail(), open_store(store_path) as store:
        erased = erase_from(store, which)
    in_files = {name: _erased_in(Path(name), which) for name in files}
    is_any = erased.n_records or erased.n_labels or any(n_gone != 0 for n_gone in in_files.values())
    n_replies = _cleared_replies(cache) if cache is not None and named_caches else 0
    n_left = part("n_kept_replies")(cache) if cache is not None and is_any and not named_caches else 0
    if as_json:
        replies = {"n_judge_replies": n_replies, "n_judge_replies_left": n_left}
        click.echo(encode_json({**erased._asdict(), "files": in_files, **replies}).decode())
        return
    click.echo(f"erased {_spoken(erased)} of {shown_address(store_path)}")
    for name, n_gone in in_files.items():
        gone = f"removed {name}, which was made of a run: make it again" if n_gone is None else ""
        click.echo(printable(gone or f"erased {counted(n_gone or 0, 'record')} of {name}"))
    if named_caches:
        click.echo(f"cleared the judge's cache ({counted(n_replies, 'reply', 'replies')}), which may have quoted it")
    if n_left:
        said = f"{counted(n_left, 'reply', 'replies')} in the judge's cache, of all your stores, may quote it and "
        said += "is left" if n_left == 1 else "are left"
        click.echo(printable(f"{said}: 'agentunit doctor --cache clear' clears {cache}"))


def print_erasures(store_path: str, *, as_json: bool) -> None:
    """The log of what was erased, the last first."""
    with unreadable_runs_fail(), open_store(store_path, read_only=True) as store:
        log = erasures_of(store)
    if as_json:
        click.echo(encode_json([each._asdict() for each in log]).decode())
        return
    for each in log:
        day = datetime.fromtimestamp(each.erased_at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        click.echo(f"{day}  by {each.kind}: {_spoken(each)}")
    if not log:
        click.echo("nothing was erased yet")


def keep_masked(store_path: str) -> None:
    """Let a store keep masked text only."""
    with unreadable_runs_fail(), open_store(store_path, must_exist=False) as store:
        store.masking.turn_on()
    click.echo(
        f"{shown_address(store_path)} keeps masked text only: what is written to it from now on is masked before"
    )


def _spoken(erased: Erasure) -> str:
    return (
        f"{counted(erased.n_records, 'record')} of {counted(erased.n_runs, 'run')} with their scores, "
        f"and {counted(erased.n_labels, 'label')}"
    )


def _erased_in(path: Path, which: Whom) -> int | None:
    """How many records were taken out of a file; ``None`` for pages made of a run, which are removed as a whole."""
    # Behind a link: replacing the link would leave the file itself as it was.
    path = path.resolve()
    try:
        if not _is_page(path):
            return _rewritten(path, which)
        if path.is_dir():
            if (path / "data").exists():
                shutil.rmtree(path / "data")
            path /= "index.html"
        path.resolve().unlink()
    except OSError as error:
        raise click.ClickException(f"{path} cannot be erased: {error}") from None
    return None


def _check_file(path: Path) -> None:
    """Refuse a file in which nothing could be erased."""
    if _is_page(path):
        if (path / "data").is_symlink():
            raise click.UsageError(f"{path / 'data'} is a link: remove its target yourself, then the page")
        return
    if not path.is_file() or path.name.endswith((".parquet", ".html")):
        raise click.UsageError(
            f"{path}: records can be erased in JSON Lines, in runs exported to .json and in pages of the viewer; "
            "make other files again from what is left"
        )
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    _check_line(line, f"{path}: line {number}")
        except (OSError, EOFError, zlib.error) as error:
            raise click.UsageError(f"{path} cannot be read, so nothing was erased: {error}") from None


def _check_line(line: bytes, where: str) -> None:
    try:
        written = _record_in(line)
        if written is not None:
            decode_record(written)
    except (msgspec.DecodeError, RecordError) as error:
        raise click.UsageError(f"{where} is not a record, so nothing was erased: {error}") from None


def _is_page(path: Path) -> bool:
    page = path / "index.html" if path.is_dir() else path
    if not page.is_file() or page.suffix != ".html":
        return False
    with page.open("rb") as stream:
        return _PAGE in stream.read(_LOOKED_INTO)


def _rewritten(path: Path, which: Whom) -> int:
    """Write a file anew without the lines of the records that are erased; returns how many there were."""
    opened = gzip.open if path.suffix == ".gz" else open
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    with opened(path, "rb") as lines:
        n_gone = sum(1 for line in lines if _is_of(line, which))
    if not n_gone:
        return 0
    try:
        with opened(path, "rb") as lines, opened(unfinished, "wb") as out:
            for line in lines:
                if not _is_of(line, which):
                    out.write(_without_quotes(line))
        shutil.copymode(path, unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return n_gone


def _without_quotes(line: bytes) -> bytes:
    """A line as it stays; the first of an exported run without decisions and history, which may quote what is gone."""
    if b'"agentunit_run"' not in line:
        return line
    data = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    if "agentunit_run" not in data:
        return line
    return encode_json({name: each for name, each in data.items() if name not in ("decisions", "history")}) + b"\n"


def _is_of(line: bytes, which: Whom) -> bool:
    if not line.strip():
        return False
    written = _record_in(line)
    return written is not None and which.is_in(decode_record(written))


def _record_in(line: bytes) -> bytes | None:
    """The record of a line: the line itself, or what a line of an exported run holds under ``record``."""
    data = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    return None if "agentunit_run" in data else bytes(data.get("record", line))


def _cleared_replies(cache: Path) -> int:
    try:
        return int(part("clear_judge_cache")(cache))
    except (OSError, sqlite3.Error) as error:
        reason = f"the judge's cache cannot be cleared: {error}"
        raise click.ClickException(f"{reason} ('agentunit doctor --cache clear' tries again)") from None


@dataclass(frozen=True)
class RunsOptions:
    """What the command line of ``agentunit runs`` says, by the names that the command's decorators give it."""

    files: tuple[str, ...]
    as_json: bool
    limit: int
    tags: tuple[str, ...]
    name: str | None
    taken_in: str | None
    run_id: str | None
    doomed: str | None
    erase: str | None
    erasures: bool
    keep: str | None
    store_path: str


@click.command(cls=Verb)
@click.argument("files", nargs=-1, metavar="[FILES]...")
@json_option("Print them as JSON.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="At most this many.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="Only runs with this tag: --tag model=x.")
@click.option("--name", metavar="NAME", help="Only runs of this name.")
@click.option("--import", "taken_in", metavar="FILE", help="Take in a run that 'agentunit export' wrote.")
@click.option("--as", "run_id", metavar="ID", help="With --import: the id the run gets (default: the one it had).")
@click.option("--delete", "doomed", metavar="RUN", help="Remove a run with its records and scores.")
@click.option(
    "--erase",
    metavar="WHAT",
    help="Erase user=ID, session=ID, case=ID or older=30d from the store, its labels and FILES.",
)
@click.option("--erasures", is_flag=True, help="Show when data was erased, and how much.")
@click.option("--keep", type=click.Choice(["masked"]), help="Keep only masked text in this store, from now on.")
@store_option
def runs(**received: Any) -> None:
    """List the runs of the store, the newest first; take in a run, remove one, or erase data.

    \b
    agentunit runs
    agentunit runs --tag model=x
    agentunit runs --json --limit 100
    agentunit runs --import main.json.gz --as main
    agentunit runs --delete 20261115-100338-3288
    agentunit runs --erase user=u-4711 shared/traces.jsonl
    agentunit runs --erase older=90d
    """
    options = RunsOptions(**received)
    store_path = options.store_path
    if options.files and options.erase is None:
        raise click.UsageError(f"files belong to --erase; received {options.files[0]!r} without it")
    if options.run_id is not None and options.taken_in is None:
        raise click.UsageError("--as names a run that is taken in: it goes with --import FILE")
    if options.taken_in is not None:
        _take_in(options.taken_in, options.run_id, store_path)
    elif options.erase is not None:
        erase_data(options.erase, options.files, store_path, as_json=options.as_json)
    elif options.erasures:
        print_erasures(store_path, as_json=options.as_json)
    elif options.keep is not None:
        keep_masked(store_path)
    elif options.doomed is not None:
        _delete(options.doomed, store_path)
    else:
        _list(options)


def _list(options: RunsOptions) -> None:
    tags, name, limit, store_path = options.tags, options.name, options.limit, options.store_path
    infos = {}
    listed: list[tuple[RunHeader, dict[str, float]]] = []
    with unreadable_runs_fail(), open_store(store_path, read_only=True) as store:
        wanted = tags_from(tags).items()
        headers = [header for header in store.runs() if wanted <= header.tags.items()]
        headers = [header for header in headers if name is None or header.name == name]
        for header in headers[:limit]:
            means, known = listed_means(store, header), recorded_infos(header.settings)
            infos.update({name: known.get(name) or info_of(name) for name in means})
            listed.append((header, means))
        own = own_verdicts(store, [header for header, _ in listed])
    if options.as_json:
        mask = Mask()
        lines = []
        for header, means in listed:
            verdict, headline = own.get(header.id, (None, ""))
            lines.append(run_line_as_data(header, means, verdict, mask.text(headline) or None))
        click.echo(encode_json(lines).decode())
        return
    if not listed and (tags or name is not None):
        click.echo(f"no run of {shown_address(store_path)} has that tag or name   next: agentunit runs")
        return
    if not listed:
        click.echo(f"{shown_address(store_path)} holds no runs yet   next: agentunit run SUITE")
        return
    console = Terminal()
    print_runs(listed, {run_id: verdict for run_id, (verdict, _) in own.items()}, infos, console)
    if len(headers) > limit:
        console.print(f"… and {len(headers) - limit:,} older (--limit shows more)", style="dim")
    resume = next((how for header, _ in listed if (how := how_to_resume(header, store_path))), None)
    print_next([resume or "agentunit show last"], console)


def _take_in(file: str, run_id: str | None, store_path: str) -> None:
    """Take an exported run into the store."""
    if run_id is not None and not run_id.strip():
        raise click.BadParameter("an id must not be blank", param_hint="--as")
    if not os.path.isfile(file):
        raise InputFailure(f"{file}: no such file")
    if is_table(file):
        raise InputFailure(f"{file} is a score table, without records to import: show and compare read it as it is")
    if not is_portable(file):
        raise InputFailure(
            f"{file} is not an exported run: 'agentunit label RUN --labels FILE' takes labels in, 'agentunit init "
            "FOLDER --from FILE' the tests of another tool, and 'agentunit score FILE' traces"
        )
    with unreadable_runs_fail(), open_store(store_path, must_exist=False) as store:
        header = import_run(store, file, run_id=run_id)
        size = store.size(header.id)
    name = printable_line(printing_mask().header(header).name)
    cases = counted_cases(size.n_cases, size.n_repeats, size.n_records)
    click.echo(f"{cases} of {name!r} imported as run {header.id}   next: agentunit show {header.id}")


def _delete(reference: str, store_path: str) -> None:
    with unreadable_runs_fail(), open_store(store_path) as store:
        # One that is damaged can still be removed.
        run_id = store.run_id(reference)
        size = store.size(run_id)
        store.delete_run(run_id)
    cases = counted_cases(size.n_cases, size.n_repeats, size.n_records)
    click.echo(f"removed run {printable_line(run_id)} with its {cases}")
