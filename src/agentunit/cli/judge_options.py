"""The options of every verb that scores: which backend, which parameters, and how a judge is asked."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agentunit.backends.services import configure_judge, configured, configured_values, why_not_configured
from agentunit.doors import part

if TYPE_CHECKING:
    from agentunit.addons.judge.win_rate import JudgedPairs
    from agentunit.engine.scoring.scored_run import ScoredRun

_Command = TypeVar("_Command", bound=Callable[..., Any])

_METRIC_OPTIONS = (
    click.option(
        "--backend",
        metavar="NAME",
        help="What scores the quality metrics: auto, lexical, judge, ragas, local, local-large, local-gpu, "
        "local-large-gpu ('agentunit doctor').",
    ),
    click.option(
        "--param",
        "parameters",
        multiple=True,
        metavar="METRIC.NAME=VALUE",
        help="A parameter of a metric; repeatable: --param energy_consumption.threshold_kwh=0.2",
    ),
)
_TRANSCRIPTS = click.option(
    "--judge-transcripts", is_flag=True, help="Keep every call's prompt and reply with the scores."
)
_JUDGE_OPTIONS = (
    click.option("--judge-url", metavar="URL", help="The judge's server (also AGENTUNIT_JUDGE_URL)."),
    click.option(
        "--judge-model",
        "judge_models",
        multiple=True,
        metavar="NAME",
        help="The judge's model (also AGENTUNIT_JUDGE_MODEL); repeat it for a panel of several.",
    ),
    click.option("--judge-repeats", type=click.IntRange(min=1), metavar="N", help="Ask the judge N times."),
    click.option("--judge-max-spend", type=float, metavar="USD", help="The most that the judge may cost."),
    click.option("--judge-timeout", type=float, metavar="SECONDS", help="The most that one call may take."),
    click.option("--judge-concurrency", type=click.IntRange(min=1), metavar="N", help="The most calls at once."),
    click.option(
        "--judge-batch", is_flag=True, help="Ask in batches, at half the price; you can stop and continue at any time."
    ),
    click.option("--no-cache", is_flag=True, help="Ask the judge again, and keep no reply."),
    click.option("-y", "--yes", is_flag=True, help="Send to the judge without asking you first."),
)


@dataclass
class JudgeChoice:
    """What the command line says about backends, parameters and the judge."""

    backend: str | None = None
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    yes: bool = False

    def configure(self, suite: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Put the judge's settings into force: the command line's before the suite's before the environment's.

        Metrics are made after it: one that names the judge must find it configured. Gives the settings put into force.
        """
        wanted = {**(suite or {}), **self.settings}
        if "model" in self.settings and "judges" not in self.settings and (wanted.get("judges") or _panel_in_force()):
            # One model on the command line is the one judge, whatever panel the suite or the environment names.
            wanted["judges"] = []
        try:
            if wanted:
                configure_judge(**wanted)
        except (TypeError, ValueError) as error:
            raise click.UsageError(str(error)) from None
        return wanted

    def with_parameters(self, names: Sequence[str]) -> list[Any]:
        """Names as the registry takes them, each with the parameters that the command line has for it."""
        return [{name: self.parameters.pop(name)} if name in self.parameters else name for name in names]

    def adjust(self, metrics: Sequence[Any], *, may_play_users: bool = False) -> list[Any]:
        """Metrics with the parameters and the backend of the command line in place of their own.

        Settings of a judge that no metric asks are refused, unless the judge ``may_play_users`` of cases to come.
        """
        changed = {name: dict(values) for name, values in self.parameters.items()}
        names = [metric.name for metric in metrics]
        for name in changed:
            if name not in names:
                nearest = get_close_matches(name, names, n=1)
                hint = f"did you mean {nearest[0]!r}?" if nearest else f"scored are {', '.join(names)}"
                raise click.BadParameter(f"no metric called {name!r} is scored; {hint}", param_hint="--param")
        if self.backend is not None:
            for metric in metrics:
                if _chooses_backend(metric):
                    changed.setdefault(metric.name, {}).setdefault("backend", self.backend)
            if not any(_chooses_backend(metric) for metric in metrics):
                raise click.BadParameter(f"none of {', '.join(names)} has a backend to choose", param_hint="--backend")
        made = list(metrics)
        if changed:
            made = [_changed(metric, changed.get(metric.name)) for metric in metrics]
        if any(_chooses_backend(metric) for metric in made):
            _refuse_wrong_settings()
        if not may_play_users:
            self.refuse_unused(made)
        return made

    def refuse_unused(self, metrics: Sequence[Any]) -> None:
        """Refuse settings of a judge that no metric asks."""
        from agentunit.engine.scoring.judging import judged_metrics

        if self.settings and not judged_metrics(metrics):
            options = ", ".join(OPTION_OF[name] for name in self.settings)
            why = why_not_configured() if configured() is None else "name one that does, or --backend judge"
            raise click.UsageError(f"{options}: no metric asks a judge ({why})")


OPTION_OF = {
    "url": "--judge-url",
    "model": "--judge-model",
    "judges": "--judge-model",
    "repeats": "--judge-repeats",
    "max_spend_usd": "--judge-max-spend",
    "timeout_s": "--judge-timeout",
    "concurrency": "--judge-concurrency",
    "batch": "--judge-batch",
    "transcripts": "--judge-transcripts",
    "cache": "--no-cache",
}
"""The option that sets each setting of the judge."""
JUDGE_OPTIONS = ("--backend", "--param", *dict.fromkeys(OPTION_OF.values()), "--yes")
"""The options that ``judge_options`` gives a command, for its help."""


def judge_options(command: _Command) -> _Command:
    """Give a command these options; it gets them as ``choice``."""
    return _with_options(command, (*_METRIC_OPTIONS, *_JUDGE_OPTIONS, _TRANSCRIPTS))


def judge_settings_options(command: _Command) -> _Command:
    """The same without backends and parameters, for a command that scores nothing."""
    return _with_options(command, _JUDGE_OPTIONS)


def _with_options(command: _Command, options: Sequence[Callable[[Any], Any]]) -> _Command:
    @functools.wraps(command)
    def with_choice(
        *args: Any,
        judge_url: str | None,
        judge_models: tuple[str, ...],
        judge_repeats: int | None,
        judge_max_spend: float | None,
        judge_timeout: float | None,
        judge_concurrency: int | None,
        judge_batch: bool,
        no_cache: bool,
        yes: bool,
        judge_transcripts: bool = False,
        backend: str | None = None,
        parameters: tuple[str, ...] = (),
        **kwargs: Any,
    ) -> Any:
        chosen = {
            "url": judge_url,
            "model": judge_models[0] if judge_models else None,
            "judges": list(judge_models) if len(judge_models) > 1 else None,
            "repeats": judge_repeats,
            "max_spend_usd": judge_max_spend,
            "timeout_s": judge_timeout,
            "concurrency": judge_concurrency,
            "batch": judge_batch or None,
            "transcripts": judge_transcripts or None,
        }
        settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
        if no_cache:
            settings["cache"] = None
        return command(*args, choice=JudgeChoice(backend, _parsed(parameters), settings, yes), **kwargs)

    wrapped: Any = with_choice
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def _parsed(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """``METRIC.NAME=VALUE``, where a value is read as YAML reads it: 0.5, true, [a, b], or a text."""
    if not texts:
        return {}
    import yaml

    from agentunit.traces.limits import LimitExceeded, check_yaml_depth

    parsed: dict[str, dict[str, Any]] = {}
    for each in texts:
        place, equals, text = each.partition("=")
        metric, dot, name = place.strip().rpartition(".")
        if not equals or not dot or not metric or not name:
            raise click.BadParameter(f"must be METRIC.NAME=VALUE; received {each!r}", param_hint="--param")
        try:
            check_yaml_depth(text)
            parsed.setdefault(metric, {})[name] = yaml.safe_load(text)
        except LimitExceeded as error:
            raise click.BadParameter(f"{place}: {error}", param_hint="--param") from None
        except yaml.YAMLError:
            parsed.setdefault(metric, {})[name] = text
    return parsed


def _chooses_backend(metric: Any) -> bool:
    from agentunit.metrics.base import describe

    has_field = is_dataclass(metric) and any(field.name == "backend" for field in fields(metric))
    return has_field and describe(metric).family == "quality"


def _panel_in_force() -> bool:
    try:
        return bool(configured_values().get("judges"))
    except ValueError:
        return False


def _refuse_wrong_settings() -> None:
    """A setting that is wrong would make ``auto`` pass over the judge, and score by something else silently."""
    try:
        configured()
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _changed(metric: Any, parameters: Mapping[str, Any] | None) -> Any:
    from agentunit.backends.quality import BackendUnavailable
    from agentunit.metrics.parameters import ParameterError, adjusted

    if not parameters:
        return metric
    try:
        return adjusted(metric, parameters, f"metric {metric.name!r}")
    except BackendUnavailable as error:
        raise click.BadParameter(str(error), param_hint="--backend") from None
    except (ParameterError, TypeError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--param") from None


pairwise_option = click.option(
    "--judge",
    "judge",
    type=click.Choice(["pairwise"]),
    help="Also ask a judge which answer of each case is better, in both orders. The win rate is shown; it counts with "
    "'--on win_rate'.",
)


def ask_about_pairs(
    judge: str | None, choice: JudgeChoice, baseline: ScoredRun, runs: Sequence[ScoredRun]
) -> Sequence[JudgedPairs | None]:
    """What a judge chooses between each run and the baseline, after the user agreed; nothing without ``--judge``."""
    if judge is None:
        if choice.settings:
            options = ", ".join(dict.fromkeys(OPTION_OF[name] for name in choice.settings))
            raise click.UsageError(f"{options}: nothing is asked of a judge without --judge pairwise")
        return [None] * len(runs)
    judged: list[JudgedPairs | None] = part("ask_about_pairs")(choice, baseline, runs)
    return judged
