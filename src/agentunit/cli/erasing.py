"""``agentunit runs --erase``: what the store, its labels, the judge's cache and files hold of somebody, removed."""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import zlib
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import click
import msgspec

from agentunit.backends.judge.cache import cache_folder, clear_cache
from agentunit.backends.judge.settings import JudgeSettings, configured_values
from agentunit.cli.options import open_store
from agentunit.cli.references import unreadable_runs_fail
from agentunit.core.codec import RecordError, decode_record
from agentunit.core.results import encode_json
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable
from agentunit.store.erasure import Erasure, Whom, whom
from agentunit.store.opening import shown_address
from agentunit.store.schema import StoreError

_PAGE = b'name="agentunit-source"'
_LOOKED_INTO = 1 << 14


def erase(wanted: str, files: Sequence[str], store_path: str, *, as_json: bool) -> None:
    """Erase from the store and the files named, clear the judge's cache, and say how much that was."""
    try:
        which = whom(wanted)
    except StoreError as error:
        raise click.BadParameter(str(error), param_hint="--erase") from None
    if files and which.kind == "older":
        raise click.UsageError("--erase older=… is about runs of the store: it takes no files")
    for name in files:
        _check_file(Path(name))  # before anything is erased: all of it or nothing
    with unreadable_runs_fail(), open_store(store_path) as store:
        erased = store.erase(which)
    in_files = {name: _erased_in(Path(name), which) for name in files}
    is_any = erased.n_records or erased.n_labels or any(n_gone != 0 for n_gone in in_files.values())
    n_replies = _cleared_replies() if is_any else 0
    if as_json:
        click.echo(encode_json({**erased._asdict(), "files": in_files, "n_judge_replies": n_replies}).decode())
        return
    click.echo(f"erased {_spoken(erased)} of {shown_address(store_path)}")
    for name, n_gone in in_files.items():
        gone = f"removed {name}, which was made of a run: make it again" if n_gone is None else ""
        click.echo(printable(gone or f"erased {counted(n_gone or 0, 'record')} of {name}"))
    if n_replies:
        click.echo(f"cleared the judge's cache ({counted(n_replies, 'reply', 'replies')}), which may have quoted it")


def print_erasures(store_path: str, *, as_json: bool) -> None:
    """The log of what was erased, the last first."""
    with unreadable_runs_fail(), open_store(store_path, read_only=True) as store:
        log = store.erasures()
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
        store.keep_masked()
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
    n_gone = 0
    try:
        with opened(path, "rb") as lines, opened(unfinished, "wb") as out:
            for line in lines:
                if line.strip() and _is_of(line, which):
                    n_gone += 1
                else:
                    out.write(line)
        shutil.copymode(path, unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return n_gone


def _is_of(line: bytes, which: Whom) -> bool:
    written = _record_in(line)
    return written is not None and which.is_in(decode_record(written))


def _record_in(line: bytes) -> bytes | None:
    """The record of a line: the line itself, or what a line of an exported run holds under ``record``."""
    data = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    return None if "agentunit_run" in data else bytes(data.get("record", line))


def _cleared_replies() -> int:
    setting = configured_values().get("cache", JudgeSettings.cache)
    if setting is None:
        return 0
    try:
        return clear_cache(cache_folder(str(setting)))
    except (OSError, sqlite3.Error) as error:
        reason = f"the judge's cache cannot be cleared: {error}"
        raise click.ClickException(f"{reason} ('agentunit doctor --cache clear' tries again)") from None
