"""The options of commands that follow a source; what reads them (addons/watch) is loaded when they are used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from msgspec import Struct

from agentunit import doors
from agentunit.cli.options import say_moved

_Command = TypeVar("_Command", bound=Callable[..., Any])


class FollowChoice(Struct, frozen=True):
    """What the command line says about following. ``keep`` is a ``Kept``, ``alert`` an ``AlertTarget``."""

    is_asked: bool = False
    once: bool = False
    sample: float = 1.0
    budget: int | None = None
    baseline: str | None = None
    keep: Any = None
    prometheus: tuple[str, int] | None = None
    otlp: str | None = None
    alert: Any = None

    @property
    def is_changed(self) -> bool:
        """Whether anything was said that means nothing unless a source is followed."""
        return self != FollowChoice(self.is_asked)


# What reads the text of each setting: a part by its name in the table of doors, where a text does not say it.
_SETTINGS: dict[str, str | None] = {
    "sample": "follow_share",
    "budget": "follow_budget",
    "baseline": None,
    "keep": "follow_keep",
    "prometheus": "follow_address",
    "otlp": "follow_endpoint",
    "alert": "alert_target",
}
_WATCH = click.option(
    "--watch",
    multiple=True,
    metavar="NAME=VALUE",
    help="How following works; repeatable. sample=5%: score this share, by a hash of the ids, failed traces always. "
    "budget=N: the most cases a day for metrics with a model behind them. baseline=RUN|N: compare with a run, or the "
    "first N cases (1600). keep=text|masked[,AGE]: keep scored traces, not only sums. prometheus=[HOST:]PORT: serve "
    "/metrics. otlp=URL: send metrics and events there. alert=URL|COMMAND: post or run with each alert.",
)
_START = (
    click.option("--follow", is_flag=True, help="Keep running: score new traces as files grow, and report changes."),
    click.option("--once", is_flag=True, help="Score what is new and exit, for cron. Exit code 1: a score got worse."),
)


def _former(setting: str) -> str:
    """The option that a setting was in earlier versions."""
    return "--on-alert" if setting == "alert" else f"--{setting}"


def _setting(name: str, text: str) -> Any:
    reader = _SETTINGS[name]
    try:
        return text if reader is None else doors.part(reader)(text)
    except (ValueError, RuntimeError) as error:
        raise click.BadParameter(str(error), param_hint=f"--watch {name}") from None


def _settings_from(words: Sequence[str]) -> dict[str, Any]:
    """What ``--watch NAME=VALUE`` sets, by the names of ``FollowChoice``."""
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in _SETTINGS:
            known = ", ".join(f"{each}=…" for each in _SETTINGS)
            raise click.BadParameter(f"must be one of {known}; received {word!r}", param_hint="--watch")
        found[name] = _setting(name, text)
    return found


def follow_options(*, starts: bool) -> Callable[[_Command], _Command]:
    """Give a command ``--watch``, with ``starts`` also what begins following; it gets them as ``following``."""

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def with_choice(
            *args: Any, watch: tuple[str, ...], follow: bool = False, once: bool = False, **kwargs: Any
        ) -> Any:
            former = {name: kwargs.pop(f"watch_{name}") for name in _SETTINGS}
            said = [f"{name}={text}" for name, text in former.items() if text is not None]
            for word in said:
                say_moved(_former(word.partition("=")[0]), f"--watch {word}")
            following = FollowChoice(follow or once, once, **_settings_from([*said, *watch]))
            return command(*args, following=following, **kwargs)

        wrapped: Any = with_choice
        for name in _SETTINGS:
            wrapped = click.option(_former(name), f"watch_{name}", hidden=True)(wrapped)
        for option in reversed((*(_START if starts else ()), _WATCH)):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate
