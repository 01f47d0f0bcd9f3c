"""``agentunit view``: runs in a browser, from a local server or as a bundle of files."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from agentunit.addons.viewer._api import Api
from agentunit.addons.viewer._guard import LOOPBACK
from agentunit.addons.viewer._library import Library
from agentunit.addons.viewer._opened_runs import take_in_file
from agentunit.addons.viewer._page import ViewerError
from agentunit.cli.options import (
    InputFailure,
    Verb,
    end_signals_interrupt,
    of_all_verbs,
    open_store,
    show_personal_data_option,
    store_option,
    user_name,
)
from agentunit.cli.references import names_traces, note_what_stays, unreadable_runs_fail
from agentunit.cli.taken_in import run_of_traces
from agentunit.reports.printable import printable
from agentunit.store.schema import StoreError
from agentunit.urls import is_file

_SWITCH_S = 0.0005


@dataclass(frozen=True)
class ViewOptions:
    """What the command line of ``agentunit view`` says, by the names that the command's decorators give it."""

    references: tuple[str, ...]
    bundle: str | None
    host: str
    port: int | None
    allow_remote: bool
    rater: str | None
    media_root: str | None
    open_browser: bool
    show_personal_data: bool
    store_path: str


@click.command(cls=Verb)
@click.argument("references", nargs=-1, metavar="[RUN|FILE]...")
@click.option("--bundle", metavar="DIR", help="Write a folder for any static host instead of serving.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port to listen at.  [default: 7575, or a free one]")
@click.option("--allow-remote", is_flag=True, help="Let other machines connect, with the token in the printed address.")
@click.option("--rater", metavar="NAME", help="Who labels.  [default: your user name]")
@click.option("--media-root", type=click.Path(exists=True, file_okay=False), hidden=True)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
@show_personal_data_option
@store_option
def view(**received: Any) -> None:
    """Look at runs in the browser: metrics, cases, transcripts, comparisons, labels.

    Without RUN all runs of the store are listed, and a run that is going on is shown as it grows. RUN is an id, the
    beginning of one, a name, 'last', an exported file or a score table (.parquet); two RUNs open side by side, the
    older one first. A FILE of traces is scored by the standard set for this look; 'agentunit label FILE' keeps it as a
    run. Only this machine can connect, unless --host and --allow-remote say otherwise.

    --bundle writes a folder to publish: an index and parts of at most 1 MB that the page fetches when they are needed.
    It needs a static host ('python -m http.server --directory DIR' is one): browsers do not fetch from file://.

    \b
    agentunit view
    agentunit view last
    agentunit view last~1 last
    agentunit view traces.jsonl
    agentunit view last --bundle site
    """
    options = ViewOptions(**received)
    references, bundle, shows_all = options.references, options.bundle, options.show_personal_data
    if shows_all and bundle is None:
        raise click.UsageError("--unmasked is for --bundle: the live page has its own switch")
    # However it ends, no copy of records and no half of a bundle stays behind.
    with (
        end_signals_interrupt(),
        unreadable_runs_fail(),
        _opened(references, options.store_path) as (address, run_ids, is_temporary),
    ):
        only = run_ids if is_temporary or bundle is not None else None
        files = dict(zip(run_ids, references, strict=True)) if is_temporary else None
        root = options.media_root or of_all_verbs(click.get_current_context(), "media_root")
        library = Library(address, only=only or None, files=files, media_root=None if root is None else Path(root))
        try:
            pair = (run_ids[0], run_ids[1]) if len(run_ids) == 2 else None
            if bundle is not None:
                _write_bundle(library, bundle, pair, unmasked=shows_all)
                if not shows_all:
                    note_what_stays(references, address)
                return
            api = Api(
                library,
                run=run_ids[0] if len(run_ids) == 1 else None,
                compare=pair,
                rater=options.rater or user_name(),
                can_label=not is_temporary,
            )
            _serve(api, options)
        except ViewerError as error:
            raise InputFailure(str(error)) from None
        finally:
            library.close()


@contextmanager
def _opened(references: tuple[str, ...], store_path: str) -> Iterator[tuple[str, list[str], bool]]:
    """The store to look into, the ids that were asked for, and whether it is one made of files for this look."""
    traces = {each for each in references if names_traces(each, store_path)}
    files = [each for each in references if each in traces or is_file(each)]
    if not files:
        with open_store(store_path, read_only=True) as store:
            yield_ids = list(dict.fromkeys(store.find_run(reference).id for reference in references))
        yield store_path, yield_ids, False
        return
    if len(files) < len(references):
        raise click.UsageError(
            "name files, or runs of the store, not both: 'agentunit runs --import FILE' takes one in"
        )
    with tempfile.TemporaryDirectory(prefix="agentunit-view-") as folder:
        address = os.path.join(folder, "runs.db")
        try:
            run_ids = [
                run_of_traces(file, address, None, keep=False) if file in traces else take_in_file(address, file)
                for file in files
            ]
            yield address, run_ids, True
        except StoreError as error:
            raise InputFailure(str(error)) from None


def _serve(api: Api, options: ViewOptions) -> None:
    from agentunit.addons.viewer._server import bound_socket, make_app, make_server

    host = options.host
    is_local = host in LOOPBACK
    if not is_local and not options.allow_remote:
        raise click.UsageError(f"--host {host} lets other machines connect: add --allow-remote if you want that")
    token = None if is_local else secrets.token_urlsafe(24)
    server = make_server(make_app(api, token=token))
    listening = bound_socket(host, options.port)
    shown = "localhost" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    if token is not None:
        address += f"?token={token}"
    click.echo(f"{address}   (Ctrl-C ends it)")
    if token is not None:
        click.echo("other machines can connect, and whoever has this address sees all runs and can label", err=True)
    if options.open_browser:
        click.launch(address)
    # What is added up in the background gives way to a page that someone waits for.
    sys.setswitchinterval(_SWITCH_S)
    server.run(sockets=[listening])


def _write_bundle(library: Library, folder: str, pair: tuple[str, str] | None, *, unmasked: bool) -> None:
    from agentunit.addons.viewer._bundle import write_bundle

    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise click.UsageError(f"{folder} exists already: name a folder that does not, or an empty one")
    if not library.headers():
        raise InputFailure(f"{library.shown_address} holds no runs yet")
    written = write_bundle(library, Path(folder), pair=pair, personal=unmasked)
    click.echo(printable(f"{folder}: {written}   to look at it: python -m http.server --directory {folder}"))
