"""The options of every verb that scores: which backend, which parameters, and how a judge is asked."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agentunit.backends.services import configure_judge, configured, configured_values, why_not_configured
from agentunit.cli.options import say_moved
from agentunit.doors import part

if TYPE_CHECKING:
    from agentunit.addons.judge.win_rate import JudgedPairs
    from agentunit.engine.scoring.scored_run import ScoredRun

_Command = TypeVar("_Command", bound=Callable[..., Any])

JUDGES_FILE = "agentunit.yaml"
"""The file of this folder that holds judges by their names, under ``judges``."""
_CONFIGURED = "pairwise"
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
_JUDGE_HELP = (
    f"The judge to ask: one of {JUDGES_FILE} by its name, or a model at AGENTUNIT_JUDGE_URL. Repeat it for a panel."
)
_PAIRS_HELP = (
    "Also ask this judge which answer of each case is better, in both orders ('pairwise': that of "
    "AGENTUNIT_JUDGE_URL and AGENTUNIT_JUDGE_MODEL). The win rate is shown; it counts with '--on win_rate'."
)
_YES = click.option("-y", "--yes", is_flag=True, help="Send to the judge without asking you first.")
# What set the judge in earlier versions: the setting that it is in JUDGES_FILE, a suite and the environment.
_FORMER = {
    "--judge-url": ("url", str),
    "--judge-model": ("model", str),
    "--judge-repeats": ("repeats", click.IntRange(min=1)),
    "--judge-max-spend": ("max_spend_usd", float),
    "--judge-timeout": ("timeout_s", float),
    "--judge-concurrency": ("concurrency", click.IntRange(min=1)),
    "--judge-batch": ("batch", None),
    "--no-cache": ("cache", None),
    "--judge-transcripts": ("transcripts", None),
}


@dataclass
class JudgeChoice:
    """What the command line says about backends, parameters and the judge."""

    backend: str | None = None
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    yes: bool = False
    said: tuple[str, ...] = ()
    """The options that named or set a judge."""

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
            options = ", ".join(self.said)
            why = "name one that does, or --backend judge"
            if configured() is None:
                why = f"{why_not_configured()}, or name a judge of {JUDGES_FILE}"
            raise click.UsageError(f"{options}: no metric asks a judge ({why})")


def judge_options(command: _Command) -> _Command:
    """Give a command ``--backend``, ``--param``, ``--judge`` and ``--yes``; it gets them as ``choice``."""
    return _with_choice(command, _METRIC_OPTIONS, _JUDGE_HELP)


def pairwise_options(command: _Command) -> _Command:
    """The same for a command that scores nothing: its judge chooses between answers."""
    return _with_choice(command, (), _PAIRS_HELP)


def _with_choice(command: _Command, options: Sequence[Callable[[Any], Any]], judge_help: str) -> _Command:
    @functools.wraps(command)
    def with_choice(
        *args: Any,
        judges: tuple[str, ...],
        yes: bool,
        backend: str | None = None,
        parameters: tuple[str, ...] = (),
        **kwargs: Any,
    ) -> Any:
        settings, said = _named_judges(judges)
        for option, (name, _) in _FORMER.items():
            value = kwargs.pop(f"judge_{name}")
            if value:
                said.append(option)
                settings[name] = None if name == "cache" else value
        models = settings.get("model")
        if isinstance(models, tuple):
            settings["model"] = models[0]
            settings |= {"judges": list(models)} if len(models) > 1 else {}
        if told := [option for option in said if option in _FORMER]:
            place = f"a judge of {JUDGES_FILE} or AGENTUNIT_JUDGE_…, and --judge NAME names it"
            say_moved(", ".join(told), f"set in {place}")
        choice = JudgeChoice(backend, _parsed(parameters), settings, yes, tuple(said))
        return command(*args, choice=choice, **kwargs)

    wrapped: Any = _YES(with_choice)
    for option, (name, kind) in _FORMER.items():
        shape: dict[str, Any] = {"is_flag": True} if kind is None else {"type": kind, "multiple": name == "model"}
        wrapped = click.option(option, f"judge_{name}", hidden=True, **shape)(wrapped)
    wrapped = click.option("--judge", "judges", multiple=True, metavar="NAME", help=judge_help)(wrapped)
    for each in reversed(options):
        wrapped = each(wrapped)
    return wrapped  # type: ignore[no-any-return]


def _named_judges(names: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The settings of judges by their names, and the option that named them."""
    said = ["--judge"] if names else []
    names = [name for name in names if name != _CONFIGURED]
    if not names:
        return {}, said
    known = _judges_of_file()
    found = [known.get(name, name) for name in names]
    if len(found) > 1:
        return part("panel_of")(found), said
    (first,) = found
    return dict(first) if isinstance(first, Mapping) else {"model": first}, said


def _judges_of_file() -> dict[str, dict[str, Any]]:
    """The judges that the file of this folder names; nothing where there is none."""
    if not os.path.isfile(JUDGES_FILE):
        return {}
    from agentunit.engine.recording.suite import SuiteError, judges_in

    try:
        return judges_in(Path(JUDGES_FILE))
    except SuiteError as error:
        raise click.UsageError(str(error)) from None


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


def ask_about_pairs(
    choice: JudgeChoice, baseline: ScoredRun, runs: Sequence[ScoredRun]
) -> Sequence[JudgedPairs | None]:
    """What a judge chooses between each run and the baseline, after the user agreed; nothing without ``--judge``."""
    if "--judge" not in choice.said:
        if choice.said:
            raise click.UsageError(f"{', '.join(choice.said)}: nothing is asked of a judge without --judge NAME")
        return [None] * len(runs)
    judged: list[JudgedPairs | None] = part("ask_about_pairs")(choice, baseline, runs)
    return judged
