"""``agentunit collect``: a place on this machine where agents send their OpenTelemetry spans."""

from __future__ import annotations

import errno
import ipaddress
import os
import secrets
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure
from agentunit.privacy.detectors import detector_named
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor
from agentunit.reports.printable import printable_line
from agentunit.traces.collector.forward import Backend, Forwarder, parse_backend
from agentunit.traces.collector.limits import ReceiverLimits, receiver_limits
from agentunit.traces.collector.masking import MaskTexts
from agentunit.traces.collector.receiver import (
    DEFAULT_GRPC_PORT,
    DEFAULT_HOST,
    DEFAULT_PORT,
    Forwarding,
    Receiver,
)
from agentunit.traces.collector.recorder import TraceRecorder
from agentunit.traces.collector.request import PROTOBUF_MISSING, grpc_installed, protobuf_installed
from agentunit.traces.collector.spool import SpanSpool, SpoolError
from agentunit.traces.limits import LimitExceeded
from agentunit.traces.spans import ReadingNotes

_LOOK_EVERY_S = 0.2
_LINE_EVERY_S = 5.0
_MOST_NOTES_SHOWN = 5
_USUAL_WIDTH = 80
_MANY = 1000


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-o", "--out", default="traces", show_default=True, metavar="FOLDER", help="Where records are written.")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: any free one.")
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65535),
    help=f"The port for OTLP/gRPC (extra collect).  [default: {DEFAULT_GRPC_PORT}; with --port 0 any free one]",
)
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
@click.option(
    "--forward",
    metavar="URL",
    help="Also send everything as it came to this OTLP/HTTP backend, with the headers of OTEL_EXPORTER_OTLP_HEADERS.",
)
@click.option("--mask", is_flag=True, help="Mask personal data in what --forward sends; records are not masked.")
def collect(
    out: str,
    port: int,
    grpc_port: int | None,
    host: str,
    quiet_s: float,
    keep_h: float,
    forward: str | None,
    mask: bool,
) -> None:
    """Receive OpenTelemetry spans (OTLP over HTTP and gRPC) and write one record a trace.

    \b
    agentunit collect --out traces/
    agentunit score traces/

    A span that was acknowledged is on disk, also if this process is killed; what was not written as a record then is
    written at the next start. Nothing is sent anywhere unless --forward names a place. Ctrl-C writes the open traces
    and ends.

    Exit codes: 0 all was written, 2 usage, 3 errors: the port is in use, the folder cannot be written, a trace could
    not be made a record.
    """
    for name, value in (("--quiet-s", quiet_s), ("--keep-h", keep_h)):
        if not isfinite(value):
            raise click.BadParameter(f"must be a finite number; received {value}", param_hint=name)
    backend = _backend(forward, mask)
    limits = _limits()
    try:
        spool = SpanSpool(out, max_bytes=limits.spool_bytes)
    except SpoolError as error:
        raise InputFailure(str(error)) from None
    except OSError as error:
        raise InputFailure(f"cannot use {out} as a folder: {(error.strerror or str(error)).lower()}") from None
    with spool, _stop_signals() as stop:
        screen = _Screen()
        forwarding = None if backend is None else Forwarding(is_masked=mask)
        if grpc_port is None:
            grpc_port = DEFAULT_GRPC_PORT if port else 0
        try:
            receiver = Receiver(
                spool,
                host=host,
                port=port,
                grpc_port=grpc_port,
                limits=limits,
                forwarding=forwarding,
                report=screen.print_line,
            )
        except OSError as error:
            raise _cannot_listen(host, port, error) from None
        recorder = TraceRecorder(out, spool, quiet_s=quiet_s, keep_s=keep_h * 3600, report=screen.print_line)
        forwarder = None
        if backend is not None:
            _refuse_own_address(backend, receiver)
            forwarder = Forwarder(spool, backend, mask=_mask_texts(), report=screen.print_line)
        session = _Session(receiver, recorder, spool, forwarder, backend)
        session.introduce(out, host, mask)
        session.run(screen, stop)
        n_open = session.conclude(out)
    if n_open or recorder.counts.failed:
        raise click.exceptions.Exit(EXIT_ERRORS)


def _backend(forward: str | None, mask: bool) -> Backend | None:
    if forward is None:
        if mask:
            raise click.UsageError("--mask is for what --forward sends; 'agentunit redact' masks records")
        return None
    try:
        return parse_backend(forward, os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--forward") from None


def _limits() -> ReceiverLimits:
    try:
        return receiver_limits()
    except LimitExceeded as error:
        raise click.UsageError(str(error)) from None


def _cannot_listen(host: str, port: int, error: OSError) -> InputFailure:
    if error.errno == errno.EADDRINUSE:
        reason = "the port is in use, perhaps by another collector; --port chooses another (0: any free one)"
    else:
        reason = f"{(error.strerror or str(error)).lower()}; --host and --port choose another address"
    return InputFailure(f"cannot listen on {host}, port {port}: {reason}")


def _refuse_own_address(backend: Backend, receiver: Receiver) -> None:
    own_ports = {urlsplit(address).port for address in (receiver.address, receiver.grpc_address) if address}
    if backend.port in own_ports and _is_loopback(backend.host):
        raise click.BadParameter(f"{backend.shown} is this collector itself", param_hint="--forward")


def _mask_texts() -> MaskTexts:
    """What masks the texts of requests; a value gets the same pseudonym in all of them."""
    # Numbered pseudonyms would begin anew with every start, and then stand for somebody else.
    pseudonyms = Pseudonyms(os.environ.get("AGENTUNIT_SALT") or secrets.token_hex())
    redactor = Redactor(detector_named("patterns", "collect"), PII_TYPES, pseudonyms)

    def mask(texts: Sequence[tuple[str, str]]) -> list[str]:
        fields = [{field: text} for field, text in texts]
        redactor.redact_data([{"texts": fields}])
        return [str(next(iter(field.values()))) for field in fields]

    return mask


def _is_loopback(host: str) -> bool:
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        return all(ipaddress.ip_address(address.split("%")[0]).is_loopback for address in found)
    except (OSError, ValueError):
        return False


class _Session(NamedTuple):
    """The parts of a running collector, and what it prints about them."""

    receiver: Receiver
    recorder: TraceRecorder
    spool: SpanSpool
    forwarder: Forwarder | None
    backend: Backend | None

    def introduce(self, out: str, host: str, mask: bool) -> None:
        """Print where to send spans, and what is not as it could be."""
        address = self.receiver.address
        click.echo(f"listening on {address}, writing to {out} (Ctrl-C ends it). In the agent's process set:")
        click.echo(f"  OTEL_EXPORTER_OTLP_ENDPOINT={address}")
        click.echo(f"  OTEL_EXPORTER_OTLP_PROTOCOL={'http/protobuf' if protobuf_installed() else 'http/json'}")
        if self.receiver.grpc_address is not None:
            click.echo(f"or OTEL_EXPORTER_OTLP_ENDPOINT={self.receiver.grpc_address} OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
        if self.backend is not None:
            names = ", ".join(self.backend.headers)
            how = ("with personal data masked" if mask else "as it came") + (f", headers: {names}" if names else "")
            click.echo(f"forwarding everything to {self.backend.shown} {how}")
        elif n_waiting := self.spool.n_outgoing():
            click.echo(f"{n_waiting:,} requests wait in the spool to be forwarded: --forward URL sends them")
        if not protobuf_installed():
            click.echo(f"warning: {PROTOBUF_MISSING}", err=True)
        if self.receiver.grpc_problem is not None and grpc_installed():
            click.echo(f"warning: {self.receiver.grpc_problem}", err=True)
        if not _is_loopback(host):
            click.echo(
                f"warning: {host} is not loopback: whoever reaches this address can send spans, and nothing is "
                "encrypted",
                err=True,
            )
        sys.stdout.flush()

    def run(self, screen: _Screen, stop: threading.Event) -> None:
        """Serve until the stop, then write what is open."""
        screen.show(self.status())
        self.receiver.start()
        if self.forwarder is not None:
            self.forwarder.start()
        try:
            n_written = 0
            while not stop.wait(0 if n_written else _LOOK_EVERY_S):
                n_written = self.recorder.write_due()
                screen.show(self.status())
        finally:
            screen.clear()
            self.receiver.stop()
            if self.forwarder is not None:
                self.forwarder.stop()
        if (n_open := self.spool.n_open()) >= _MANY:
            screen.print_line(f"writing {n_open:,} open traces (Ctrl-C leaves them for the next start)")
        self.recorder.write_all()

    def status(self) -> str:
        """How it stands, in a line."""
        counts = self.receiver.counts
        written, n_open = self.recorder.counts.written, self.spool.n_open()
        parts = [f"{written:,} traces written", f"{n_open:,} open", f"{counts.spans:,} spans"]
        if counts.refused or counts.unreadable:
            parts.append(f"{counts.refused:,} requests and {counts.unreadable:,} spans refused")
        if counts.busy:
            parts.append(f"{counts.busy:,} asked to retry")
        if self.forwarder is not None:
            parts.append(f"{self.forwarder.counts.sent:,} requests forwarded, {self.spool.n_outgoing():,} waiting")
        return " · ".join(parts)

    def conclude(self, out: str) -> int:
        """Print what came of it and what to do next; returns how many traces are still open."""
        written, counts, n_open = self.recorder.counts, self.receiver.counts, self.spool.n_open()
        anew = f", {written.rewritten:,} written anew" if written.rewritten else ""
        click.echo(f"{written.written:,} traces written to {out}{anew}; {counts.spans:,} spans received")
        for count, line in (
            (counts.logs, "{:,} log records joined them"),
            (counts.replaced_spans, "{:,} spans came again with other content: the newer ones were kept"),
            (counts.other_logs, "left out: {:,} log records without a trace, or not of a GenAI call"),
            (counts.dropped_metrics, "dropped: {:,} requests of metrics"),
        ):
            if count:
                click.echo(line.format(count))
        if counts.refused or counts.unreadable:
            click.echo(
                f"refused: {counts.refused:,} requests, {counts.unreadable:,} spans or log records (reasons above)"
            )
        _print_notes(self.recorder.notes())
        if self.forwarder is not None and self.backend is not None:
            sent = self.forwarder.counts
            refused = f", {sent.refused:,} not accepted there" if sent.refused else ""
            click.echo(f"{sent.sent:,} requests forwarded to {self.backend.shown}{refused}")
            if n_waiting := self.spool.n_outgoing():
                click.echo(f"{n_waiting:,} requests wait to be forwarded; the next start with --forward sends them")
        if n_open:
            click.echo(
                f"{n_open:,} traces could not be written; they are kept, and written at the next start", err=True
            )
        if written.written or written.rewritten:
            click.echo(f"next: agentunit score {shlex.quote(out)}")
        elif counts.unserved_grpc and not counts.requests:
            click.echo(
                f"nothing could be read: gRPC exporters connected {counts.unserved_grpc:,} times (see above what to do)"
            )
        elif not counts.requests:
            click.echo("nothing arrived: were both variables set before the agent started, and did it make spans?")
        return n_open


def _print_notes(notes: ReadingNotes) -> None:
    for label, counter in (("unplaced spans", notes.unplaced), ("noticed", notes.problems)):
        for text, count in counter.most_common(_MOST_NOTES_SHOWN):
            click.echo(f"{label}: {count:,} × {printable_line(text, 200)}")
        if len(counter) > _MOST_NOTES_SHOWN:
            click.echo(f"{label}: {len(counter) - _MOST_NOTES_SHOWN:,} more kinds")


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


class _Screen:
    """One line rewritten in place on a terminal; without one, a line now and then when something has changed."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._shown: str | None = None
        self._next_at = 0.0

    def show(self, status: str) -> None:
        """Print the status."""
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

    def print_line(self, line: str) -> None:
        """Print a line that stays."""
        self.clear()
        with self._lock:
            click.echo(printable_line(line, 1000), err=True)

    def clear(self) -> None:
        """Remove the status line."""
        with self._lock:
            if self._live and self._shown is not None:
                click.echo("\r\x1b[K", nl=False, err=True)
                self._shown = None
