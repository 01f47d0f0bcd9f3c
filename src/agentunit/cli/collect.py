"""``agentunit collect``: a place on this machine where agents send their OpenTelemetry spans."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from urllib.parse import urlsplit

import click

from agentunit.cli.collect_session import Screen, Session, Stop, is_loopback
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure
from agentunit.traces.collector.forward import Backend, Forwarder, parse_backend
from agentunit.traces.collector.limits import receiver_limits
from agentunit.traces.collector.masking import MaskTexts
from agentunit.traces.collector.receiver import DEFAULT_GRPC_PORT, DEFAULT_HOST, DEFAULT_PORT, Receiver
from agentunit.traces.collector.recorder import TraceRecorder
from agentunit.traces.collector.spool import SpanSpool, SpoolError
from agentunit.traces.limits import LimitExceeded

_ANY = ("0.0.0.0", "::")


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
    """Receive OpenTelemetry spans (OTLP over HTTP and gRPC) and write one record per trace.

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
    try:
        limits = receiver_limits()
        spool = SpanSpool(out, max_bytes=limits.spool_bytes)
    except LimitExceeded as error:
        raise click.UsageError(str(error)) from None
    except SpoolError as error:
        raise InputFailure(str(error)) from None
    except OSError as error:
        raise InputFailure(f"cannot use {out} as a folder: {(error.strerror or str(error)).lower()}") from None
    with spool, _stop_signals() as stop:
        screen = Screen()
        if grpc_port is None:
            grpc_port = DEFAULT_GRPC_PORT if port else 0
        try:
            receiver = Receiver(
                spool,
                host=host,
                port=port,
                grpc_port=grpc_port,
                limits=limits,
                forwarding=None if backend is None else "masked" if mask else "as it came",
                report=screen.print_line,
            )
        except OSError as error:
            raise _cannot_listen(host, port, error) from None
        recorder = TraceRecorder(out, spool, quiet_s=quiet_s, keep_s=keep_h * 3600, report=screen.print_line)
        forwarder = None
        if backend is not None:
            if _is_own_address(backend, receiver, host):
                receiver.stop()
                raise click.BadParameter(f"{backend.shown} is this collector itself", param_hint="--forward")
            forwarder = Forwarder(spool, backend, mask=_mask_texts(), report=screen.print_line)
        session = Session(receiver, recorder, spool, forwarder)
        try:
            session.introduce(out, host, mask)
            session.run(screen, stop)
            n_open = session.conclude(out)
        except SpoolError as error:
            raise InputFailure(str(error)) from None
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


def _cannot_listen(host: str, port: int, error: OSError) -> InputFailure:
    if error.errno == errno.EADDRINUSE:
        reason = "the port is in use, perhaps by another collector; --port chooses another (0: any free one)"
    else:
        reason = f"{(error.strerror or str(error)).lower()}; --host and --port choose another address"
    return InputFailure(f"cannot listen on {host}, port {port}: {reason}")


def _is_own_address(backend: Backend, receiver: Receiver, host: str) -> bool:
    own_ports = {urlsplit(address).port for address in (receiver.address, receiver.grpc_address) if address}
    if backend.port not in own_ports:
        return False
    # Who connects to 0.0.0.0 reaches this machine. Its other addresses are served unless only loopback is.
    return is_loopback(backend.host) or backend.host in _ANY or (not is_loopback(host) and _is_here(backend.host))


def _is_here(host: str) -> bool:
    """Whether a host is an address of this machine: only such a one can be bound."""
    try:
        (family, *_, address), *_ = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True


def _mask_texts() -> MaskTexts:
    """What masks the texts of requests; a value gets the same pseudonym in all of them."""
    # Only who forwards pays for loading these.
    from agentunit.privacy.detectors import detector_named
    from agentunit.privacy.findings import PII_TYPES
    from agentunit.privacy.pseudonyms import Pseudonyms
    from agentunit.privacy.redaction import Redactor
    from agentunit.privacy.spans import masked_texts

    # Numbered pseudonyms would begin anew with every start, and then stand for somebody else.
    pseudonyms = Pseudonyms(os.environ.get("AGENTUNIT_SALT") or secrets.token_hex())
    redactor = Redactor(detector_named("patterns", "collect"), PII_TYPES, pseudonyms, audits=False)

    one_at_a_time = threading.Lock()
    masked = masked_texts(redactor)

    def mask(texts: Sequence[tuple[str, str]]) -> list[str]:
        with one_at_a_time:
            return masked(texts)

    return mask


@contextmanager
def _stop_signals() -> Iterator[Stop]:
    """What the first Ctrl-C or SIGTERM asks for. The second ends it where it stands; more do nothing.

    Another exception while the command cleans up after the second would leave it half done.
    """
    stop = Stop()

    def on_signal(number: int, frame: object) -> None:
        if stop.is_asked:
            for each in before:
                signal.signal(each, signal.SIG_IGN)
            raise KeyboardInterrupt
        stop.is_asked = True

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
