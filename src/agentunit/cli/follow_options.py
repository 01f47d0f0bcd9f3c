"""The options of commands that follow a source; what they need is loaded when they are used."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

if TYPE_CHECKING:
    from agentunit.cli.alerting import AlertTarget
    from agentunit.engine.following.state import Kept

_Command = TypeVar("_Command", bound=Callable[..., Any])

SECTION = "Following production"
OPTIONS = ("--follow", "--once", "--sample", "--budget", "--baseline", "--keep", "--prometheus", "--otlp", "--on-alert")
"""The options of a command that follows, for its help."""


class FollowChoice(Struct, frozen=True):
    """What the command line says about following. ``keep`` is a ``Kept``, ``target`` an ``AlertTarget``."""

    is_asked: bool = False
    once: bool = False
    sample: float = 1.0
    budget: int | None = None
    baseline: str | None = None
    keep: Any = None
    prometheus: tuple[str, int] | None = None
    otlp: str | None = None
    target: Any = None

    @property
    def is_changed(self) -> bool:
        """Whether anything was said that means nothing unless a source is followed."""
        return self != FollowChoice(self.is_asked)


def _checked(read: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    def check(_: click.Context, __: click.Parameter, text: str | None) -> Any:
        try:
            return None if text is None else read(text)
        except (ValueError, RuntimeError) as error:
            raise click.BadParameter(str(error)) from None

    return check


def _read_share(text: str) -> float:
    from agentunit.engine.following.sampling import parse_share

    return parse_share(text)


def _read_target(text: str) -> AlertTarget:
    from agentunit.cli.alerting import AlertTarget

    return AlertTarget(text)


def _read_keep(text: str) -> Kept:
    from agentunit.engine.following.state import Kept
    from agentunit.store.erasure import Whom

    what, _, age = (part.strip() for part in text.partition(","))
    if what not in ("text", "masked"):
        raise ValueError(f"what is kept is text or masked, with an age: masked,30d; received {text!r:.40}")
    return Kept(what == "masked", Whom("older", age).seconds if age else None)


def _read_address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) <= 65535 or (colon and not host):
        raise ValueError(f"must be a port, or HOST:PORT; received {text!r:.60}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _read_endpoint(text: str) -> str:
    from agentunit.traces.collector.forward import parse_backend

    parse_backend(text)
    return text


_START = (
    click.option("--follow", is_flag=True, help="Keep running: score new traces as files grow, and report changes."),
    click.option("--once", is_flag=True, help="Score what is new and exit, for cron. Exit code 1: a score got worse."),
)
_SHARED = (
    click.option(
        "--sample",
        metavar="SHARE",
        callback=_checked(_read_share),
        help="Score this share of the traces (5%), by a hash of their ids; failed ones always, rare slices whole.",
    ),
    click.option(
        "--budget",
        type=click.IntRange(min=1),
        metavar="N",
        help="The most cases a day for metrics with a model behind them (--judge-max-spend: also a day).",
    ),
    click.option(
        "--baseline",
        metavar="RUN|N",
        help="What to compare with: a stored run, or the first N cases.  [default: 1600]",
    ),
    click.option(
        "--keep",
        metavar="text|masked[,AGE]",
        callback=_checked(_read_keep),
        help="Keep scored traces in the store, one run per day: masked,30d. By default only sums are kept.",
    ),
    click.option(
        "--prometheus",
        metavar="[HOST:]PORT",
        callback=_checked(_read_address),
        help="Serve /metrics for Prometheus, on this machine only unless a host is named.",
    ),
    click.option(
        "--otlp",
        metavar="URL",
        callback=_checked(_read_endpoint),
        help="Send metrics and a gen_ai.evaluation.result event a score to this OTLP/HTTP endpoint (extra otel).",
    ),
    click.option(
        "--on-alert",
        "target",
        metavar="URL|COMMAND",
        callback=_checked(_read_target),
        help="Post each alert as JSON to this address, or run this command with it on standard input.",
    ),
)


def follow_options(*, starts: bool) -> Callable[[_Command], _Command]:
    """Give a command these options, with ``starts`` also those that begin it; it gets them as ``following``."""

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def with_choice(
            *args: Any, sample: float | None, follow: bool = False, once: bool = False, **kwargs: Any
        ) -> Any:
            names = ("budget", "baseline", "keep", "prometheus", "otlp", "target")
            said = {name: kwargs.pop(name) for name in names}
            following = FollowChoice(follow or once, once, 1.0 if sample is None else sample, **said)
            return command(*args, following=following, **kwargs)

        wrapped: Any = with_choice
        for option in reversed((*(_START if starts else ()), *_SHARED)):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


def refuse_with_follow(**said: Any) -> None:
    """Refuse options that mean nothing while a source is followed."""
    for name, value in said.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} does not go with --follow, which keeps its results in the store")
