"""``agentunit collect``: a place on this machine where agents send their OpenTelemetry spans."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from math import isfinite
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from agentunit.addons.watch._collect_session import CollectorSession, Screen, is_loopback
from agentunit.addons.watch._collect_session import stop_signals as _stop_signals
from agentunit.addons.watch.collector.forward import Backend, Forwarder, parse_backend
from agentunit.addons.watch.collector.receiver import DEFAULT_GRPC_PORT, DEFAULT_HOST, DEFAULT_PORT, Receiver
from agentunit.addons.watch.collector.recorder import TraceRecorder
from agentunit.addons.watch.collector.request_limits import receiver_limits
from agentunit.addons.watch.collector.spool import SpanSpool, SpoolError
from agentunit.cli.follow_options import FollowChoice, follow_options
from agentunit.cli.judge_options import JudgeChoice, judge_options
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.options import InputFailure, Verb, by_option, metrics_from, store_option
from agentunit.traces.limits import LimitExceeded
from agentunit.traces.otlp.masked_requests import MaskTexts

if TYPE_CHECKING:
    from agentunit.addons.watch.follow_command import Scoring

_ANY = ("0.0.0.0", "::")


@click.command(
    cls=Verb,
    first="--out --port --host --forward --mask --score --metrics --by --watch --judge",
)
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
@click.option("--score", "scores", is_flag=True, help="Also score each trace that is written, and notice changes.")
@click.option("-m", "--metrics", "names", multiple=True, metavar="NAMES", help="Metrics, separated by commas.")
@by_option
@follow_options(starts=False)
@judge_options
@store_option
def collect(
    out: str,
    port: int,
    grpc_port: int | None,
    host: str,
    quiet_s: float,
    keep_h: float,
    forward: str | None,
    mask: bool,
    scores: bool,
    names: tuple[str, ...],
    by: str | None,
    store_path: str,
    choice: JudgeChoice,
    following: FollowChoice,
) -> None:
    """Receive OpenTelemetry spans (OTLP over HTTP and gRPC) and write one record per trace.

    \b
    agentunit collect --out traces/
    agentunit score traces/
    agentunit collect --out traces/ --score --watch prometheus=9464

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
    if not scores and (names or by or following.is_changed or choice.said or choice.backend or choice.parameters):
        raise click.UsageError("--metrics, --by, --watch, --judge and what else says how to score go with --score")
    try:
        limits = receiver_limits()
        spool = SpanSpool(out, max_bytes=limits.spool_bytes)
        token = None if is_loopback(host) else spool.token()
    except LimitExceeded as error:
        raise click.UsageError(str(error)) from None
    except SpoolError as error:
        raise InputFailure(str(error)) from None
    except OSError as error:
        raise InputFailure(f"cannot use {out} as a folder: {(error.strerror or str(error)).lower()}") from None
    with ExitStack() as stack:
        stack.enter_context(spool)
        stop = stack.enter_context(_stop_signals())
        screen = Screen()
        scoring = None
        if scores:
            scoring = stack.enter_context(_scoring(out, names, by, store_path, choice, following, screen))
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
                token=token,
                report=screen.print_line,
                quoted=_masked_quote,
            )
        except OSError as error:
            raise _cannot_listen(host, port, error) from None
        recorder = TraceRecorder(
            out, spool, quiet_s=quiet_s, keep_s=keep_h * 3600, report=screen.print_line, quoted=_masked_quote
        )
        forwarder = None
        if backend is not None:
            if _is_own_address(backend, receiver, host):
                receiver.stop()
                raise click.BadParameter(f"{backend.shown} is this collector itself", param_hint="--forward")
            forwarder = Forwarder(spool, backend, mask=_mask_texts(), masks_all=mask, report=screen.print_line)
        session = CollectorSession(receiver, recorder, spool, forwarder, scoring)
        try:
            session.introduce(out, host, mask, token)
            session.run(screen, stop)
            n_open = session.conclude(out)
        except SpoolError as error:
            raise InputFailure(str(error)) from None
    if n_open or recorder.counts.failed:
        raise click.exceptions.Exit(EXIT_ERRORS)


def _backend(forward: str | None, mask: bool) -> Backend | None:
    if forward is None:
        if mask:
            raise click.UsageError("--mask is for what --forward sends; 'agentunit convert --mask' masks records")
        return None
    try:
        return parse_backend(forward, os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--forward") from None


def _scoring(
    out: str,
    names: tuple[str, ...],
    by: str | None,
    store_path: str,
    choice: JudgeChoice,
    following: FollowChoice,
    screen: Screen,
) -> Scoring:
    """What scores the records that are written to a folder."""
    from agentunit.addons.watch._follow_console import describe_alert
    from agentunit.addons.watch.follow_command import Scoring
    from agentunit.reports.reported_run import Mask

    choice.configure()
    metrics = choice.adjust(metrics_from(names, choice))
    mask = Mask()
    return Scoring(
        [out],
        metrics,
        following,
        store_path=store_path,
        by=by,
        yes=choice.yes,
        report=screen.print_line,
        on_alert=lambda alert: screen.print_line(f"ALERT: {describe_alert(alert, mask)}"),
    )


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


def _masked_quote(text: str) -> str:
    """What came over the network, as it is printed."""
    from agentunit.reports.reported_run import printing_mask

    return printing_mask().name(text)


def _mask_texts() -> MaskTexts:
    """What masks the texts of requests; a value gets the same pseudonym in all of them."""
    # Only who forwards pays for loading these.
    from agentunit.privacy.detectors import detector_named
    from agentunit.privacy.findings import PII_TYPES
    from agentunit.privacy.masked_spans import masked_texts
    from agentunit.privacy.pseudonyms import Pseudonyms
    from agentunit.privacy.redaction import Redactor

    # Numbered pseudonyms would begin anew with every start, and then stand for somebody else.
    pseudonyms = Pseudonyms(os.environ.get("AGENTUNIT_SALT") or secrets.token_hex())
    redactor = Redactor(detector_named("patterns", "collect"), PII_TYPES, pseudonyms, audits=False)

    one_at_a_time = threading.Lock()
    masked = masked_texts(redactor)

    def mask(texts: Sequence[tuple[str, str | float]]) -> list[str | float]:
        with one_at_a_time:
            return masked(texts)

    return mask
