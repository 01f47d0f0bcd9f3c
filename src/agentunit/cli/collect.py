"""``agentunit collect``: a place on this machine where agents send their OpenTelemetry spans."""

from __future__ import annotations

import errno
import ipaddress
import os
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite

import click

from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure
from agentunit.reports.printable import printable_line
from agentunit.traces.collector.receiver import DEFAULT_HOST, DEFAULT_PORT, Receiver
from agentunit.traces.collector.recorder import TraceRecorder
from agentunit.traces.collector.request import PROTOBUF_MISSING, protobuf_installed
from agentunit.traces.collector.spool import SpanSpool, SpoolError

_LOOK_EVERY_S = 0.2
_LINE_EVERY_S = 5.0
_MOST_NOTES_SHOWN = 5
_USUAL_WIDTH = 80
_MANY = 1000


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-o", "--out", default="traces", show_default=True, metavar="FOLDER", help="Where records are written.")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: any free one.")
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="The address to listen on.")
@click.option(
    "--quiet-s",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Write a trace this long after its last span, once its root has come (without a root: 60 s).",
)
@click.option(
    "--keep-h",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    help="Keep the spans of written traces this long, so that late ones can join them.",
)
def collect(out: str, port: int, host: str, quiet_s: float, keep_h: float) -> None:
    """Receive OpenTelemetry spans (OTLP/HTTP, protobuf and JSON) and write one record a trace.

    \b
    agentunit collect --out traces/
    agentunit score traces/

    A span that was acknowledged is on disk, also if this process is killed; what was not written as a record then is
    written at the next start. Nothing is sent anywhere. Ctrl-C writes the open traces and ends.

    Exit codes: 0 all was written, 2 usage, 3 errors: the port is in use, the folder cannot be written, a trace could
    not be made a record.
    """
    for name, value in (("--quiet-s", quiet_s), ("--keep-h", keep_h)):
        if not isfinite(value):
            raise click.BadParameter(f"must be a finite number; received {value}", param_hint=name)
    try:
        spool = SpanSpool(out)
    except SpoolError as error:
        raise InputFailure(str(error)) from None
    except OSError as error:
        raise InputFailure(f"cannot use {out} as a folder: {(error.strerror or str(error)).lower()}") from None
    with spool, _stop_signals() as stop:
        screen = _Screen()
        receiver = _listening(spool, host, port, screen)
        recorder = TraceRecorder(out, spool, quiet_s=quiet_s, keep_s=keep_h * 3600, tell=screen.tell)
        _introduce(receiver, out, host)
        _collect(receiver, recorder, spool, screen, stop)
        n_open = spool.n_open()
        _conclude(receiver, recorder, out, n_open)
    if n_open or recorder.counts.failed:
        raise click.exceptions.Exit(EXIT_ERRORS)


def _listening(spool: SpanSpool, host: str, port: int, screen: _Screen) -> Receiver:
    try:
        return Receiver(spool, host=host, port=port, tell=screen.tell)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            reason = "the port is in use, perhaps by another collector; --port chooses another (0: any free one)"
        else:
            reason = f"{(error.strerror or str(error)).lower()}; --host and --port choose another address"
        raise InputFailure(f"cannot listen on {host}, port {port}: {reason}") from None


def _introduce(receiver: Receiver, out: str, host: str) -> None:
    click.echo(f"listening on {receiver.address}, writing to {out} (Ctrl-C ends it). In the agent's process set:")
    click.echo(f"  OTEL_EXPORTER_OTLP_ENDPOINT={receiver.address}")
    click.echo(f"  OTEL_EXPORTER_OTLP_PROTOCOL={'http/protobuf' if protobuf_installed() else 'http/json'}")
    if not protobuf_installed():
        click.echo(f"warning: {PROTOBUF_MISSING}", err=True)
    if not _is_loopback(host):
        click.echo(
            f"warning: {host} is not loopback: whoever reaches this address can send spans, and nothing is encrypted",
            err=True,
        )
    sys.stdout.flush()


def _is_loopback(host: str) -> bool:
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        return all(ipaddress.ip_address(address.split("%")[0]).is_loopback for address in found)
    except (OSError, ValueError):
        return False


def _collect(
    receiver: Receiver, recorder: TraceRecorder, spool: SpanSpool, screen: _Screen, stop: threading.Event
) -> None:
    screen.show(_status(receiver, recorder, spool))
    receiver.start()
    try:
        n_written = 0
        while not stop.wait(0 if n_written else _LOOK_EVERY_S):
            n_written = recorder.write_due()
            screen.show(_status(receiver, recorder, spool))
    finally:
        screen.clear()
        receiver.stop()
    if (n_open := spool.n_open()) >= _MANY:
        screen.tell(f"writing {n_open:,} open traces (Ctrl-C leaves them for the next start)")
    recorder.write_all()


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets. The second one ends the command where it stands."""
    stop = threading.Event()

    def on_signal(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _status(receiver: Receiver, recorder: TraceRecorder, spool: SpanSpool) -> str:
    counts = receiver.counts
    parts = [f"{recorder.counts.written:,} traces written", f"{spool.n_open():,} open", f"{counts.spans:,} spans"]
    if counts.refused or counts.unreadable:
        parts.append(f"{counts.refused:,} requests and {counts.unreadable:,} spans refused")
    if counts.busy:
        parts.append(f"{counts.busy:,} asked to retry")
    return " · ".join(parts)


class _Screen:
    """One line rewritten in place on a terminal; without one, a line now and then when something has changed."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._shown: str | None = None
        self._next_at = 0.0

    def show(self, status: str) -> None:
        """Say how it stands."""
        now = time.monotonic()
        if status == self._shown or (not self._live and now < self._next_at):
            return
        with self._lock:
            if self._live:
                # In a narrower terminal the line would wrap, and the next one could not take its place.
                width = os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_WIDTH
                click.echo(f"\r\x1b[K{status[: width - 1]}", nl=False, err=True)
            elif self._shown is not None:
                click.echo(status)
                sys.stdout.flush()
                self._next_at = now + _LINE_EVERY_S
            self._shown = status

    def tell(self, line: str) -> None:
        """Say what happened, in a line that stays."""
        self.clear()
        with self._lock:
            click.echo(printable_line(line, 1000), err=True)

    def clear(self) -> None:
        """Take the status line away."""
        with self._lock:
            if self._live and self._shown is not None:
                click.echo("\r\x1b[K", nl=False, err=True)
                self._shown = None


def _conclude(receiver: Receiver, recorder: TraceRecorder, out: str, n_open: int) -> None:
    written, counts = recorder.counts, receiver.counts
    anew = f", {written.rewritten:,} written anew" if written.rewritten else ""
    click.echo(f"{written.written:,} traces written to {out}{anew}; {counts.spans:,} spans received")
    if counts.logs:
        click.echo(f"{counts.logs:,} log records joined them")
    if counts.replaced_spans:
        click.echo(f"{counts.replaced_spans:,} spans came again with other content: the newer ones were kept")
    if counts.refused or counts.unreadable:
        click.echo(f"refused: {counts.refused:,} requests, {counts.unreadable:,} spans or log records (reasons above)")
    if counts.other_logs:
        click.echo(f"left out: {counts.other_logs:,} log records without a trace, or not of a GenAI call")
    notes = recorder.notes()
    for label, counter in (("unplaced spans", notes.unplaced), ("noticed", notes.problems)):
        for text, count in counter.most_common(_MOST_NOTES_SHOWN):
            click.echo(f"{label}: {count:,} × {printable_line(text, 200)}")
        if len(counter) > _MOST_NOTES_SHOWN:
            click.echo(f"{label}: {len(counter) - _MOST_NOTES_SHOWN:,} more kinds")
    if n_open:
        click.echo(f"{n_open:,} traces could not be written; they are kept, and written at the next start", err=True)
    if written.written or written.rewritten:
        click.echo(f"next: agentunit score {shlex.quote(out)}")
    elif not counts.requests:
        click.echo("nothing arrived: were both variables set before the agent started, and did it make spans?")
