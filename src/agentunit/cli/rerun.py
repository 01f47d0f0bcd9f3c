"""``agentunit rerun``: some cases of a run once more, or until it is sure that they are broken."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from agentunit.cli._run_work import adjusted_suite, as_recorded, ask_about_cases, recorded_variables, set_variables
from agentunit.cli._shown_run import AskedToShow, ShownRun
from agentunit.cli.judge_options import JudgeChoice, judge_options
from agentunit.cli.options import (
    InputFailure,
    Verb,
    json_option,
    open_store,
    run_argument,
    show_personal_data_option,
    store_option,
    tries_option,
    why_option,
)
from agentunit.cli.references import meant_case, unknown_case
from agentunit.cli.streams import output_to_stderr
from agentunit.core.case import DatasetCase
from agentunit.datasets.readers import DatasetError
from agentunit.engine.deciding.checks import CheckRule, rules_of
from agentunit.engine.deciding.compare import open_checks
from agentunit.engine.deciding.gate_expressions import parse_gate
from agentunit.engine.recording.provenance import agent_version
from agentunit.engine.recording.runner import AgentError, Plan, open_again, plan_run
from agentunit.engine.recording.suite import Suite, SuiteError
from agentunit.engine.recording.trying_again import checked_metrics, score_tries
from agentunit.engine.scoring.scored_run import ScoredRun, find_scored_run, run_from_store
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import resume_command, store_arguments
from agentunit.store.run_store import RunStore
from agentunit.store.runs import FIRST_AGAIN, RunHeader
from agentunit.store.schema import StoreError


@dataclass(frozen=True)
class RerunOptions:
    """What the command line of ``agentunit rerun`` says, by the names that the command's decorators give it."""

    run_reference: str
    case_ids: tuple[str, ...]
    newly_failing: bool
    replaces: bool
    baseline: str | None
    most_tries: int | None
    suite_path: str | None
    all_rows: bool
    as_json: bool
    show_personal_data: bool
    store_path: str
    choice: JudgeChoice


@click.command(
    cls=Verb,
    first="--newly-failing --replace --baseline --tries --suite --judge --why --json --unmasked",
)
@run_argument
@click.argument("case_ids", nargs=-1, metavar="[CASE]…")
@click.option("--newly-failing", is_flag=True, help="Try the cases that passed in the baseline and fail now.")
@click.option("--replace", "replaces", is_flag=True, help="Put the new records in place of those of the run.")
@click.option("--baseline", metavar="RUN|FILE", help="What the run is held against. Default: as before.")
@tries_option
@click.option(
    "--suite",
    "suite_path",
    metavar="SUITE",
    help="The suite to run them with (default: the run's own; an imported run has none).",
)
@why_option
@json_option("Print the result as JSON instead of tables.")
@show_personal_data_option
@judge_options
@store_option
def rerun(**received: Any) -> None:
    """Try some cases of a run again, and decide again.

    Cases that are named get one more try. With --newly-failing, those that passed in the baseline and fail now are
    tried until they pass once, which makes them flaky, or have failed often enough to be broken. The tries are added to
    the run. Where the agent has changed since, they become a new run of these cases: tries of two versions never mix.

    \b
    agentunit rerun last desk-016 desk-039
    agentunit rerun last --newly-failing --baseline main
    agentunit rerun last desk-016 --replace
    """
    options = RerunOptions(**received)
    if options.newly_failing == bool(options.case_ids):
        raise click.UsageError("name the cases to try again, or say --newly-failing")
    if options.replaces and options.newly_failing:
        raise click.UsageError("--replace goes with the cases that it names, not with --newly-failing")
    with open_store(options.store_path) as store:
        _Rerun(store, options).make()


class _Rerun:
    """Some cases of a run, once more or until it is sure that they are broken."""

    def __init__(self, store: RunStore, options: RerunOptions) -> None:
        self._store, self._options = store, options
        try:
            self._header = store.find_run(options.run_reference)
        except StoreError as error:
            raise InputFailure(str(error)) from None
        asked = AskedToShow(
            options.baseline,
            tries=options.most_tries,
            all_rows=options.all_rows,
            as_json=options.as_json,
            show_personal_data=options.show_personal_data,
        )
        self._asked = as_recorded(asked, self._header, ("baseline", "margin"))
        self._path = self._suite_to_run()

    def make(self) -> None:
        """Record, score and decide."""
        store, header, replaces = self._store, self._header, self._options.replaces
        try:
            named = self._named_cases()
            set_variables(recorded_variables(header))
            suite = adjusted_suite(self._path, {}, self._options.choice, header=header)
            base = self._baseline(is_needed=not named)
            if not named and base is not None:
                trying, _ = open_checks(run_from_store(store, header.id), base, suite.gates, suite.metrics)
                wanted = list(dict.fromkeys(check.case_id for check in trying.checks))
            else:
                wanted = named
            is_new = not replaces and bool(wanted) and _is_another_agent(suite, header)
            plan = self._plan(suite, wanted, base, is_new=is_new, adds_tries=not is_new and not replaces)
        except AgentError as error:
            raise click.UsageError(str(error)) from None
        except (SuiteError, DatasetError, StoreError) as error:
            raise InputFailure(str(error)) from None
        again = resume_command(plan.header.id, self._path, store.address)
        shown = ShownRun(store, plan, base, self._asked, again=again)
        with shown.as_one_for_a_judge():
            if replaces:
                open_again(plan, wanted, store)
                # Until they are recorded, nothing but this command knows which cases were meant.
                shown.again = _same_again(header.id, wanted, self._options.suite_path, store)
            if is_new or replaces:
                recording = shown.record()
                shown.again = again
                shown.score(n_cases=recording.n_done)
            elif named:
                self._add_tries(shown, named)
            if base is not None and not named:
                if not wanted:
                    click.echo("nothing newly fails that is not decided: nothing was tried", err=True)
                shown.try_failing_again(base)
        shown.show(shown.decided("rerun"))

    def _suite_to_run(self) -> str:
        header, suite_path = self._header, self._options.suite_path
        if header.is_foreign and suite_path is None:
            raise click.UsageError(
                f"run {header.id} was imported from a file, so the suite that it names is not executed: "
                "name one of your own with --suite SUITE"
            )
        path = suite_path or header.settings.get("suite")
        if not isinstance(path, str) or not path:
            raise InputFailure(f"run {header.label} does not say which suite made it: name it with --suite")
        return path

    def _named_cases(self) -> list[str]:
        known = self._store.case_ids(self._header.id)
        named: dict[str, None] = {}
        for case_id in self._options.case_ids:
            meant = meant_case(case_id, known)
            if meant is None:
                raise unknown_case(self._header.label, case_id, known)
            named[meant] = None
        return list(named)

    def _baseline(self, *, is_needed: bool) -> ScoredRun | None:
        """What the run is held against: as asked, or as it was. One that is gone is missed only where it is needed."""
        reference = self._asked.baseline
        if reference is None:
            if is_needed:
                raise click.UsageError(
                    f"run {self._header.label} was not held against a baseline: name one with --baseline RUN"
                )
            return None
        try:
            return find_scored_run(reference, self._store)
        except StoreError as error:
            if is_needed or self._options.baseline is not None:
                raise
            click.echo(printable_line(f"note: decided without the baseline: {error}"), err=True)
            return None

    def _plan(
        self, suite: Suite, wanted: Sequence[str], base: ScoredRun | None, *, is_new: bool, adds_tries: bool
    ) -> Plan:
        header = self._header
        scoring = checked_metrics(suite.metrics, self._checks(suite)) if adds_tries else suite.metrics

        def before(cases: Sequence[DatasetCase], n_open: int) -> None:
            asked = [case for case in cases if case.id in wanted]
            n_tries = len(asked) * (1 if adds_tries else suite.repeats)
            ask_about_cases(self._store, header, suite, asked, n_tries, self._options.choice, scoring)

        held = self._asked.held_to(base)
        planned: dict[str, Any] = {"resume": header.id, "changed_agent": True}
        if is_new:
            # A name of its own: the run of all cases keeps the one that leads to it.
            name = f"{header.name}-rerun"
            planned = {"name": name, "tags": header.tags, "only": wanted}
        with output_to_stderr():
            plan = plan_run(suite, self._store, suite_path=self._path, held_to=held, before=before, **planned)
        if is_new:
            new = f"{plan.header.name} ({plan.header.id})"
            text = f"the agent has changed since run {header.id}: its tries become a new run, {new}"
            click.echo(printable_line(text), err=True)
        return plan

    def _add_tries(self, shown: ShownRun, named: Sequence[str]) -> None:
        """One more try of each case, added to those of the run."""
        plan = shown.plan
        n_again = Counter(row.position for row in self._store.record_rows(shown.run_id, again=True))
        plan.open = []
        for position, case in enumerate(plan.cases):
            if case.id in named:
                plan.open.append((position, FIRST_AGAIN + n_again[position]))
        shown.record()
        score_tries(self._store, shown.run_id, shown.suite.metrics, self._checks(shown.suite), plan.cases)

    def _checks(self, suite: Suite) -> dict[str, CheckRule]:
        run = run_from_store(self._store, self._header.id, labels=False)
        return rules_of(run, [parse_gate(gate) for gate in suite.gates])


def _is_another_agent(suite: Suite, header: RunHeader) -> bool:
    """Whether the agent has changed since a run was recorded, as far as one can know."""
    now = suite.agent_version or agent_version(suite.agent, suite.folder)
    before = header.settings.get("agent_version")
    return None not in (now, before) and now != before


def _same_again(run_id: str, case_ids: Sequence[str], suite_path: str | None, store: RunStore) -> str:
    command = ["agentunit", "rerun", run_id, *case_ids, "--replace"]
    command += ["--suite", suite_path] if suite_path else []
    command += store_arguments(store.address)
    return printable_line(shlex.join(command))
