"""A collector at work: what ``agentunit collect`` prints at its start, while it runs and at its end."""

from __future__ import annotations

import ipaddress
import os
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import click

from agentunit.addons.watch.collector.forward import Forwarder
from agentunit.addons.watch.collector.receiver import Receiver
from agentunit.addons.watch.collector.recorder import TraceRecorder
from agentunit.addons.watch.collector.request import PROTOBUF_MISSING, grpc_installed, protobuf_installed
from agentunit.addons.watch.collector.spool import SpanSpool, SpoolError
from agentunit.engine.recording.end_signals import END_SIGNALS, heard_by
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import printing_mask
from agentunit.traces.spans import ReadingNotes

if TYPE_CHECKING:
    from agentunit.addons.watch.follow_command import Scoring

_LOOK_EVERY_S = 0.2
_LINE_EVERY_S = 5.0
_MOST_NOTES_SHOWN = 5
_USUAL_WIDTH = 80
_MANY = 1000


class Screen:
    """One line rewritten in place on a terminal; without one, a line now and then when something has changed.

    A terminal may be closed, or a reader gone, before the collector has written what it received.
    """

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
        with self._lock, suppress(OSError):
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
        with self._lock, suppress(OSError):
            click.echo(printable_line(line, 1000), err=True)

    def clear(self) -> None:
        """Remove the status line."""
        with self._lock, suppress(OSError):
            if self._live and self._shown is not None:
                click.echo("\r\x1b[K", nl=False, err=True)
                self._shown = None


@dataclass
class Stop:
    """Whether a signal has asked for the end. No event: its lock may be held by whom the signal interrupts."""

    is_asked: bool = False


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """What the first Ctrl-C, SIGTERM or closed terminal asks for. The second ends it where it stands; more do nothing.

    Another exception while the command cleans up after the second would leave it half done.
    """
    stop = Stop()

    def on_signal(number: int, frame: object) -> None:
        if stop.is_asked:
            for each in END_SIGNALS:
                signal.signal(each, signal.SIG_IGN)
            raise KeyboardInterrupt
        stop.is_asked = True

    with heard_by(on_signal):
        yield stop


class CollectorSession(NamedTuple):
    """The parts of a running collector, and what it prints about them."""

    receiver: Receiver
    recorder: TraceRecorder
    spool: SpanSpool
    forwarder: Forwarder | None
    scoring: Scoring | None = None

    def introduce(self, out: str, host: str, mask: bool, token: str | None) -> None:
        """Print where to send spans, and what is not as it could be."""
        address = self.receiver.address
        click.echo(printable(f"listening on {address}, writing to {out} (Ctrl-C ends it). In the agent's process set:"))
        click.echo(f"  OTEL_EXPORTER_OTLP_ENDPOINT={address}")
        click.echo(f"  OTEL_EXPORTER_OTLP_PROTOCOL={'http/protobuf' if protobuf_installed() else 'http/json'}")
        if token is not None:
            click.echo(f"  OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20{token}")
        if self.receiver.grpc_address is not None:
            click.echo(f"or OTEL_EXPORTER_OTLP_ENDPOINT={self.receiver.grpc_address} OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
        if self.forwarder is not None:
            names = ", ".join(self.forwarder.backend.headers)
            how = ("with personal data masked" if mask else "as it came") + (f", headers: {names}" if names else "")
            click.echo(f"forwarding everything to {self.forwarder.backend.shown} {how}")
        elif n_waiting := self.spool.n_outgoing():
            click.echo(
                f"{counted(n_waiting, 'request')} waiting in the spool to be forwarded: --forward URL sends them"
            )
        if not protobuf_installed():
            click.echo(f"warning: {PROTOBUF_MISSING}", err=True)
        if self.receiver.grpc_problem is not None and grpc_installed():
            click.echo(f"warning: {self.receiver.grpc_problem}", err=True)
        if token is not None:
            click.echo(
                f"warning: {host} is not loopback: whoever reaches this address and has the token above can send "
                "spans, and nothing is encrypted",
                err=True,
            )
        sys.stdout.flush()

    def run(self, screen: Screen, stop: Stop) -> None:
        """Serve until the stop, then write what is open."""
        screen.show(self.status())
        self.receiver.start()
        if self.forwarder is not None:
            self.forwarder.start()
        try:
            while not stop.is_asked:
                n_written = self.recorder.write_due()
                if self.scoring is not None:
                    self.scoring.step_when_due(lambda: stop.is_asked)
                with suppress(SpoolError):  # the recorder reports it, and tries again
                    screen.show(self.status())
                if not n_written:
                    time.sleep(_LOOK_EVERY_S)
        finally:
            screen.clear()
            self.receiver.stop()
            if self.forwarder is not None:
                self.forwarder.stop()
        if (n_open := self.spool.n_open()) >= _MANY:
            screen.print_line(f"writing {n_open:,} open traces (Ctrl-C leaves them for the next start)")
        self.recorder.write_all()
        if self.scoring is not None:
            self.scoring.step()

    def status(self) -> str:
        """How it stands, in a line."""
        counts = self.receiver.counts
        written, n_open = self.recorder.counts.written, self.spool.n_open()
        parts = [f"{counted(written, 'trace')} written", f"{n_open:,} open", counted(counts.spans, "span")]
        if counts.refused or counts.unreadable:
            parts.append(f"{counts.refused:,} requests and {counts.unreadable:,} spans refused")
        if counts.busy:
            parts.append(f"{counts.busy:,} asked to retry")
        if self.scoring is not None:
            snapshot = self.scoring.snapshot
            n_alerts = self.scoring.follower.state.n_alerts
            alerts = f", {counted(n_alerts, 'alert')}" if n_alerts else ""
            parts.append(f"{snapshot.counts.get('scored', 0):,} scored{alerts}")
        if self.forwarder is not None:
            parts.append(f"{self.forwarder.counts.sent:,} requests forwarded, {self.spool.n_outgoing():,} waiting")
        return " · ".join(parts)

    def conclude(self, out: str) -> int:
        """Print what came of it and what to do next; returns how many traces are still open."""
        written, counts, n_open = self.recorder.counts, self.receiver.counts, self.spool.n_open()
        anew = f", {written.rewritten:,} written again" if written.rewritten else ""
        click.echo(
            printable(
                f"{counted(written.written, 'trace')} written to {out}{anew}; {counted(counts.spans, 'span')} received"
            )
        )
        for count, line in (
            (counts.logs, "{:,} log records joined them"),
            (counts.replaced_spans, "{:,} spans came again with other content: the newer ones were kept"),
            (counts.other_logs, "left out: {:,} log records without a trace, or not of a GenAI call"),
            (counts.dropped_metrics, "dropped: {:,} requests of metrics"),
            (counts.refused, "refused: {:,} requests (reasons above)"),
            (counts.unreadable, "refused: {:,} spans or log records (reasons above)"),
        ):
            if count:
                click.echo(line.format(count))
        _print_notes(self.recorder.notes())
        if self.forwarder is not None:
            sent = self.forwarder.counts
            refused = f", {sent.refused:,} not accepted there" if sent.refused else ""
            refused += "".join(f", {n:,} of {signal} dropped" for signal, n in sorted(sent.not_served.items()))
            click.echo(f"{counted(sent.sent, 'request')} forwarded to {self.forwarder.backend.shown}{refused}")
            if n_waiting := self.spool.n_outgoing():
                click.echo(
                    f"{counted(n_waiting, 'request')} waiting to be forwarded; the next start with --forward sends them"
                )
        if n_open:
            click.echo(
                f"{counted(n_open, 'trace')} could not be written; kept, and written at the next start", err=True
            )
        if self.scoring is not None:
            from agentunit.addons.watch._follow_console import FollowScreen

            FollowScreen(self.scoring.follower.info, self.scoring.mask).show(self.scoring.snapshot, last=True)
        elif written.written or written.rewritten:
            click.echo(printable(f"next: agentunit score {shlex.quote(out)}"))
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
            click.echo(f"{label}: {count:,} × {printable_line(printing_mask().name(text), 200)}")
        if len(counter) > _MOST_NOTES_SHOWN:
            click.echo(f"{label}: {counted(len(counter) - _MOST_NOTES_SHOWN, 'more kind')}")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine only."""
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        return all(ipaddress.ip_address(address.split("%")[0]).is_loopback for address in found)
    except (OSError, ValueError):
        return False
