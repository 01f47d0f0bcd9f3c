"""The options of commands that follow a source; what reads them (addons/watch) is loaded when they are used."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec import Struct

from agentunit import doors

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


def _read_by(part: str) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """What reads the text of an option, by its name in the table of doors."""

    def read(_: click.Context, __: click.Parameter, text: str | None) -> Any:
        try:
            return None if text is None else doors.part(part)(text)
        except (ValueError, RuntimeError) as error:
            raise click.BadParameter(str(error)) from None

    return read


_START = (
    click.option("--follow", is_flag=True, help="Keep running: score new traces as files grow, and report changes."),
    click.option("--once", is_flag=True, help="Score what is new and exit, for cron. Exit code 1: a score got worse."),
)
_SHARED = (
    click.option(
        "--sample",
        metavar="SHARE",
        callback=_read_by("follow_share"),
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
        callback=_read_by("follow_keep"),
        help="Keep scored traces in the store, one run per day: masked,30d. By default only sums are kept.",
    ),
    click.option(
        "--prometheus",
        metavar="[HOST:]PORT",
        callback=_read_by("follow_address"),
        help="Serve /metrics for Prometheus, on this machine only unless a host is named.",
    ),
    click.option(
        "--otlp",
        metavar="URL",
        callback=_read_by("follow_endpoint"),
        help="Send metrics and a gen_ai.evaluation.result event a score to this OTLP/HTTP endpoint (extra otel).",
    ),
    click.option(
        "--on-alert",
        "target",
        metavar="URL|COMMAND",
        callback=_read_by("alert_target"),
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
