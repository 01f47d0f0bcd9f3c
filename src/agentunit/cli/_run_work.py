"""The work of ``agentunit run``: a suite as the command line adjusts it, its plan, and what is said on the way."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from agentunit.adapters.bound_function import SET_PREFIX
from agentunit.cli._shown_run import AskedToShow, ShownRun
from agentunit.cli.judge_options import JudgeChoice
from agentunit.cli.options import InputFailure, metrics_from, open_store, seconds_from, tags_from
from agentunit.cli.sending_notice import ask_before_sending
from agentunit.cli.streams import output_to_stderr
from agentunit.core.case import DatasetCase
from agentunit.core.conversation import user_kind
from agentunit.core.records import Record
from agentunit.datasets.readers import DatasetError
from agentunit.doors import part
from agentunit.engine.deciding.cut_offs import margins_from
from agentunit.engine.deciding.gate_expressions import GateError, parse_gate
from agentunit.engine.recording.agent_view import agent_view
from agentunit.engine.recording.runner import AgentError, Caps, Plan, plan_run
from agentunit.engine.recording.suite import Suite, SuiteError, load_suite, with_gated_metrics
from agentunit.engine.scoring.scored_run import ScoredRun, find_scored_run
from agentunit.metrics.base import describe_error
from agentunit.metrics.registry import registry, resolve_metrics
from agentunit.reports.figures import counted
from agentunit.reports.reported_run import resume_command
from agentunit.store.run_store import RunStore
from agentunit.store.runs import RunHeader, without_tries_again
from agentunit.store.schema import StoreError

if TYPE_CHECKING:
    from agentunit.cli._until_decided import Goal

# What a run goes on with that is taken up.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RECORDED = ("repeats", "seed", "timeout_s", "retries", "gates")


@dataclass(frozen=True)
class RunOptions:
    """What the command line of ``agentunit run`` says, by the names that the command's decorators give it."""

    suite_path: str
    resume: str | None
    retry_failed: bool
    changed_agent: bool
    name: str | None
    tags: tuple[str, ...]
    sets: tuple[str, ...]
    repeats: str | None
    concurrency: int | None
    timeout_s: float | None
    retries: int | None
    seed: int | None
    limit: int | None
    max_cost: float | None
    max_time: str | None
    names: tuple[str, ...]
    gates: tuple[str, ...]
    baseline: str | None
    margins: tuple[str, ...]
    most_tries: int | None
    jobs: int | None
    all_rows: bool
    as_json: bool
    show_personal_data: bool
    store_path: str
    choice: JudgeChoice

    def check(self) -> None:
        """Refuse what does not go together, and values that Click cannot know to be wrong."""
        if self.retry_failed and self.resume is None:
            raise click.UsageError("--retry-failed goes with --resume RUN")
        if self.changed_agent and self.resume is None:
            raise click.UsageError("--changed-agent goes with --resume RUN")
        if (self.name is not None or self.tags or self.sets) and self.resume is not None:
            raise click.UsageError("--name, --tag and --set go with a new run, not with --resume")
        if self.name is not None and (not self.name.strip() or self.name.startswith("last")):
            raise click.BadParameter(
                f"must be a word that does not begin with 'last'; received {self.name!r}", param_hint="--name"
            )
        if self.max_cost is not None and not isfinite(self.max_cost):
            raise click.BadParameter(f"must be a number above 0; received {self.max_cost}", param_hint="--max-cost")
        is_number = self.repeats is not None and self.repeats.isdecimal() and int(self.repeats) > 0
        if self.repeats is not None and not self.until_decided and not is_number:
            raise click.BadParameter(
                f"must be a number above 0, or auto; received {self.repeats!r}", param_hint="--repeats"
            )

    @property
    def until_decided(self) -> bool:
        """Whether cases are repeated until gates and margins are decided."""
        return self.repeats == "auto"

    def in_place_of_the_suites(self) -> dict[str, Any]:
        """The settings of the suite that the command line replaces; ``None`` where it says nothing."""
        repeats = None
        if self.repeats is not None:
            repeats = 1 if self.until_decided else int(self.repeats)
        return {
            "repeats": repeats,
            "concurrency": self.concurrency,
            "timeout_s": self.timeout_s,
            "retries": self.retries,
            "seed": self.seed,
            "gates": list(self.gates) or None,
        }

    def planned(self, variables: Mapping[str, str]) -> dict[str, Any]:
        """What ``plan_run`` is to know besides the suite."""
        return {
            "resume": self.resume,
            "retry_failed": self.retry_failed,
            "changed_agent": self.changed_agent,
            "suite_path": self.suite_path,
            "limit": self.limit,
            "name": self.name,
            "tags": tags_from(self.tags),
            "variables": variables,
        }

    def asked(self) -> AskedToShow:
        """What is asked of the run besides recording it, and how it is printed."""
        caps = Caps(self.max_cost, None if self.max_time is None else seconds_from(self.max_time))
        try:
            margin = margins_from(self.margins) if self.margins else None
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--margin") from None
        return AskedToShow(
            self.baseline,
            margin,
            self.most_tries,
            self.jobs,
            caps,
            self.all_rows,
            self.as_json,
            self.show_personal_data,
        )


def run_as_asked(context: click.Context, options: RunOptions) -> None:
    """Run a suite as the command line says: once, or once for each combination of the values of ``--set``."""
    options.check()
    variants = variants_from(options.sets)
    if len(variants) > 1:
        from agentunit.cli._matrix import run_matrix

        run_matrix(context, variants, options)
    set_variables(variants[0])
    with open_store(options.store_path, must_exist=options.resume is not None) as store:
        _run_suite(store, options, variants[0])


def _run_suite(store: RunStore, options: RunOptions, variables: Mapping[str, str]) -> None:
    """Record, score, decide and show a run as the command line and the suite say."""
    given, planned, asked = options.in_place_of_the_suites(), options.planned(variables), options.asked()
    until_decided = options.until_decided
    goal: Goal | None = None
    base: ScoredRun | None = None
    try:
        header = None if options.resume is None else store.find_run(options.resume)
        if header is not None:
            # A run goes on as it was begun, unless a number of repeats makes it one of fixed size.
            as_begun = given["repeats"] is None and begun_until_decided(header) is not None
            until_decided = until_decided or as_begun
            set_variables(recorded_variables(header))
            asked = as_recorded(asked, header)
        suite = adjusted_suite(options.suite_path, given, options.choice, options.names, header)
        if until_decided:
            from agentunit.cli._until_decided import goal_of

            goal = goal_of(suite, store, asked.baseline, header, retry_failed=options.retry_failed, margin=asked.margin)
            planned["until_decided"] = goal.as_data()
            base = goal.baseline
        elif asked.baseline:
            base = find_scored_run(asked.baseline, store)
        planned["held_to"] = asked.held_to(base)

        def before(cases: Sequence[DatasetCase], n_open: int) -> None:
            ask_about_cases(store, header, suite, cases, n_open, options.choice)

        with output_to_stderr():
            plan = plan_run(suite, store, before=before, **planned)
    except AgentError as error:
        raise click.UsageError(str(error)) from None
    except (SuiteError, DatasetError, StoreError) as error:
        raise InputFailure(str(error)) from None
    if header is not None:
        _say_what_is_kept(plan, store, retry_failed=options.retry_failed, until_decided=goal is not None)
    again = resume_command(plan.header.id, options.suite_path, store.address)
    if goal is None:
        shown = ShownRun(store, plan, base, asked, again=again)
    else:
        from agentunit.cli._until_decided import RunUntilDecided

        shown = RunUntilDecided(store, plan, goal, asked, again=again)
    shown.show(shown.make())


def as_recorded(
    asked: AskedToShow, header: RunHeader, names: Sequence[str] = ("baseline", "margin", "tries")
) -> AskedToShow:
    """What is asked of a run that is taken up: where the command line says nothing, the same as before.

    A path that came with a file is not opened.
    """
    settings = {} if header.is_foreign else header.settings
    recorded: dict[str, Any] = {}
    for name in names:
        if getattr(asked, name) is None:
            recorded[name] = settings.get(name)
    return replace(asked, **recorded)


def variants_from(sets: Sequence[str]) -> list[dict[str, str]]:
    """Every combination of the values of ``--set NAME=VALUE,VALUE``; without any, one that sets nothing."""
    values: dict[str, list[str]] = {}
    for each in sets:
        name, _, listed = each.partition("=")
        found = list(dict.fromkeys(value.strip() for value in listed.split(",") if value.strip()))
        if not _VARIABLE.fullmatch(name.strip()) or not found:
            raise click.BadParameter(
                f"must be NAME=VALUE,VALUE, such as model=a,b; received {each!r}", param_hint="--set"
            )
        if name.strip() in values:
            raise click.BadParameter(f"names {name.strip()} twice; list its values with commas", param_hint="--set")
        values[name.strip()] = found
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def set_variables(chosen: Mapping[str, str]) -> None:
    """Hand the values of a run to its agent, and to whatever the suite starts, through the environment."""
    for name, value in chosen.items():
        os.environ[f"{SET_PREFIX}{name.upper()}"] = value


def recorded_variables(header: RunHeader) -> dict[str, str]:
    """What a run was recorded with; nothing for a run that came with a file."""
    chosen = header.settings.get("set")
    if header.is_foreign or not isinstance(chosen, Mapping):
        return {}
    return {str(name): str(value) for name, value in chosen.items() if _VARIABLE.fullmatch(str(name))}


def begun_until_decided(header: RunHeader) -> Mapping[str, Any] | None:
    """What a run that was begun with ``--repeats auto`` keeps about it; ``None`` for another run."""
    stored = header.settings.get("until_decided")
    # Runs of earlier versions do not say in which order their cases were drawn.
    if not isinstance(stored, Mapping) or not isinstance(stored.get("seed"), int):
        return None
    return stored if isinstance(stored.get("answers"), Mapping) else None


def _say_what_is_kept(plan: Plan, store: RunStore, *, retry_failed: bool, until_decided: bool) -> None:
    """Say where a run is taken up: what of it is kept, and what is still to run."""
    finished = without_tries_again(store.finished(plan.header.id))
    again = len(finished.intersection(plan.open)) if retry_failed else 0
    kept = counted(len(finished) - again, "record")
    failed = f" ({again:,} that failed are run again)" if again else ""
    to_run = "further ones are run until decided" if until_decided else f"{len(plan.open):,} to run"
    click.echo(f"continuing run {plan.header.label}: {kept} kept, {to_run}{failed}", err=True)


def _with_recorded_metrics(suite: Suite, header: RunHeader) -> Suite:
    """A suite with the metrics a run was begun with, where they are known here beyond the suite's own."""
    own = resolve_metrics(suite.metrics)
    names = {metric.name for metric in own}
    lacking = [name for name in header.settings.get("metrics") or () if name not in names]
    known = set(registry.names())
    return replace(suite, metrics=[*own, *(name for name in lacking if name in known)])


def ask_about_cases(
    store: RunStore,
    header: RunHeader | None,
    suite: Suite,
    cases: Sequence[DatasetCase],
    n_open: int,
    choice: JudgeChoice,
    scoring: Sequence[Any] | None = None,
) -> None:
    """Ask before the agent runs, not hours later, whether a judge may see what it will answer.

    ``scoring`` are the metrics by which these cases are scored, where they are not all of the suite's.
    """
    metrics = suite.metrics if scoring is None else scoring
    judged = [metric for metric in metrics if getattr(metric, "asks_service", False)]
    played = [case for case in cases if user_kind(case) == "judge"]
    if choice.settings and not played:
        choice.refuse_unused(suite.metrics)
    if not judged and not played:
        return
    from agentunit.engine.scoring.judging import SAMPLE_SIZE, plan_sending

    if n_open:
        ask_before_sending(part("plan_playing")(played, n_open / len(cases)), yes=choice.yes)
    if not judged:
        return
    lacking = [metric.name for metric in judged]
    n_recorded = 0 if header is None else store.n_records(header.id, unscored_by=lacking)
    sample = [Record(case) for case in cases[:SAMPLE_SIZE]]
    sending = plan_sending(judged, sample, n_cases=n_open + n_recorded, exact=True, answered=False)
    ask_before_sending(sending, yes=choice.yes)


def adjusted_suite(
    path: str,
    given: dict[str, Any],
    choice: JudgeChoice,
    names: Sequence[str] = (),
    header: RunHeader | None = None,
) -> Suite:
    """A suite with what the command line says in place of its own settings; mistakes in it are usage errors.

    ``header`` is that of the run that goes on: with what it was recorded with, whatever the suite says by now. Its
    gates are data and import nothing.
    """
    recorded = {} if header is None else {name: header.settings.get(name) for name in _RECORDED}
    try:
        with output_to_stderr():
            suite = load_suite(path)
        if header is not None:
            _refuse_modules(header, suite)
        for settings in (recorded, given):
            suite = replace(suite, **{name: value for name, value in settings.items() if value is not None})
        # Metrics that name the judge can be made only when it is configured.
        suite = replace(suite, judge=choice.configure(suite.judge) or None)
        if names:
            suite = replace(suite, metrics=metrics_from(names, choice))
        suite = with_gated_metrics(suite)
        # Built here only to be checked.
        agent_view(suite, suite.metrics)
    except click.ClickException:
        raise
    except (SuiteError, GateError) as error:
        raise click.UsageError(str(error)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a suite is a user's own code and may fail in any way
        raise click.UsageError(f"{path}: {describe_error(error)}") from None
    if header is not None:
        suite = _with_recorded_metrics(suite, header)
    return replace(suite, metrics=choice.adjust(resolve_metrics(suite.metrics), may_play_users=True))


def _refuse_modules(header: RunHeader, suite: Suite) -> None:
    """Refuse a gate of a run that names a module: it may have come with a file. The suite's own gates may."""
    for text in header.settings.get("gates") or ():
        gate = parse_gate(text)
        if ":" in gate.metric and text not in suite.gates:
            raise SuiteError(
                f"run {header.id} has the gate {text!r}, which would import {gate.metric!r}: nothing that comes with a "
                "run is imported (a suite of your own may name it among its gates)"
            )
