"""A run on its way as a command shows it: progress and notes on standard error, then what was decided."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, NoReturn

import click

from agentunit.cli.main import EXIT_STOPPED
from agentunit.cli.options import InputFailure, end_signals_interrupt, print_field_notes, say_stopped
from agentunit.cli.streams import output_to_stderr, remember_exit_code
from agentunit.core.records import Record
from agentunit.core.score_block import Place
from agentunit.engine.recording.runner import Caps, Plan, Recording, record, stated_cost
from agentunit.engine.recording.suite import SuiteError
from agentunit.engine.recording.suite_run import RunRequest, RunResult, SuiteRun
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.text import number
from agentunit.reports.console import print_line, print_next, print_run
from agentunit.reports.decision_console import next_command, print_details, print_verdict_block
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_json, printable_line
from agentunit.reports.progress import Progress, RecordingLine
from agentunit.reports.reported_run import ReportedRun
from agentunit.reports.terminal import Terminal
from agentunit.store.run_store import RunStore
from agentunit.store.schema import StoreError

if TYPE_CHECKING:
    from agentunit.engine.deciding.trying import TryingAgain

_WAITS_SAID_FROM_S = 4.0


@dataclass(frozen=True)
class AskedToShow(RunRequest):
    """What a command line asks of a run, and how it is to be printed."""

    all_rows: bool = True
    as_json: bool = False
    show_personal_data: bool = False


class ShownRun(SuiteRun):
    """A run that shows how it goes. ``again`` is the command that continues it when it was stopped."""

    asked: AskedToShow

    def __init__(self, store: RunStore, plan: Plan, base: ScoredRun | None, asked: AskedToShow, *, again: str) -> None:
        super().__init__(store, plan, base, asked)
        self.again = again
        self.line = RecordingLine()
        self._is_begun = False

    def recorded(self, caps: Caps) -> Recording:
        """Record what is open of the plan, showing how it goes."""
        if not self._is_begun:
            self._is_begun = True
            self._note_what_agents_miss()
        try:
            with output_to_stderr():
                recording = record(self.plan, self.store, on_progress=self.line.show, caps=caps)
        except SuiteError as error:
            raise InputFailure(str(error)) from None
        except StoreError as error:
            kept = f"what was finished is kept, and 'agentunit run SUITE --resume {self.run_id}' continues"
            raise InputFailure(f"{error}; {kept}") from None
        finally:
            self.line.clear()
        self.line.go_on_after(recording)
        if caps.cost_usd is not None and recording.n_done and not recording.spend_usd:
            click.echo(
                "note: no trace states a cost, so --max-cost could not limit the run (outcome.cost states it)", err=True
            )
        return recording

    def _note_what_agents_miss(self) -> None:
        suite, view, cases = self.suite, self.plan.view, self.plan.cases
        if view.hides_undeclared(cases):
            names = printable_line(", ".join(view.undeclared))
            click.echo(
                f"note: the agent receives no metadata of the cases, because {names} does not say what it grades by "
                "(agent_fields in the suite lists what the agent receives)",
                err=True,
            )
        print_field_notes(cases, (*suite.grader_fields, *(suite.agent_fields or ())))

    def score(self, recorded: Mapping[Place, Record] | None = None, n_cases: int | None = None, **shown: Any) -> None:
        """Score what lacks a score, showing how it goes: of ``n_cases``, or all that were planned."""
        n_cases = n_cases or self.plan.header.n_planned
        n_scored = 0
        progress = Progress("scored", fraction=lambda: n_scored / n_cases if n_cases else None)
        tick = progress.ticker()

        def on_case(count: int) -> None:
            nonlocal n_scored
            n_scored = count
            tick(count)

        try:
            with output_to_stderr(), end_signals_interrupt():
                super().score(recorded, on_case=on_case, **shown)
        except KeyboardInterrupt:
            progress.clear()
            say_stopped("every case is recorded, and the scores so far are kept", self.again)
            raise click.exceptions.Exit(EXIT_STOPPED) from None
        except StoreError as error:
            kept = f"every case is recorded, the scores so far are kept, and '{self.again}' goes on"
            raise InputFailure(f"{error}; {kept}") from None
        finally:
            progress.clear()

    def try_failing_again(self, base: ScoredRun) -> None:
        """Try the checks again that newly fail, showing how it goes."""
        self.line = RecordingLine(until=lambda: "trying again")
        try:
            super().try_failing_again(base)
        except StoreError as error:
            raise InputFailure(f"{error}; what was finished is kept, and '{self.again}' goes on") from None

    def record_tries(self, places: list[Place]) -> bool:
        """Record some tries; returns whether trying goes on, and says so where a cap ends it."""
        self.plan.open = places
        recording = self.record()
        if recording.stopped:
            click.echo(
                f"--max-{recording.capped_by} is reached: not every failing check was tried to the end", err=True
            )
        return not recording.stopped

    def announce_tries(self, trying: TryingAgain, run: ScoredRun) -> None:
        """Say how much there is to try again, and what it may cost."""
        cost_usd = self._cost_of_a_call(trying, run)
        dollars = f", about ${number(trying.most_calls * cost_usd, 'USD')}" if cost_usd else ""
        checks = counted(len(trying.checks), "newly failing check")
        calls = counted(trying.most_calls, "call")
        click.echo(f"trying {checks} again, each until it passes: at most {calls}{dollars}", err=True)

    def _cost_of_a_call(self, trying: TryingAgain, run: ScoredRun) -> float:
        """What a call costs on average: by the metric, or as the traces of the failing cases state it."""
        costs = [row.value for row in run.metrics.get("cost", ()) if row.value is not None]
        if not costs and run.read_cases is not None:
            for stored, _ in run.read_cases({check.case_id for check in trying.checks}):
                costs.append(stated_cost(stored.record.trace, stored.record.outcome))
        return fsum(costs) / len(costs) if costs else 0.0

    def sleep(self, wait_s: float) -> None:
        """Wait for an agent that does not answer, and say so where it takes long."""
        if wait_s >= _WAITS_SAID_FROM_S:
            bound = "--tries N bounds the tries"
            click.echo(f"the agent did not answer: trying again in {wait_s:.0f} s ({bound})", err=True)
        super().sleep(wait_s)

    def leave(self, recording: Recording) -> NoReturn:
        """After Ctrl-C, or at a cap: say what is kept and how to go on."""
        left = recording.n_planned - recording.n_done
        spent = f" (${number(recording.spend_usd, 'USD')} spent)" if recording.capped_by == "cost" else ""
        cap = f"--max-{recording.capped_by} is reached{spent}: " if recording.capped_by else ""
        say_stopped(f"{cap}{recording.n_done} records are kept, {left} are open", self.again)
        raise click.exceptions.Exit(EXIT_STOPPED)

    def show(self, result: RunResult) -> None:
        """Print the run and what was decided about it, and leave with the exit code that says it."""
        asked, store, scored = self.asked, self.store, result.scored
        reported = ReportedRun(
            scored, store=store, decision=result.decision, show_personal_data=asked.show_personal_data
        )
        decision = reported.decision
        remember_exit_code(decision.exit_code)
        if "GITHUB_ACTIONS" in os.environ or "GITHUB_STEP_SUMMARY" in os.environ:
            from agentunit.reports.github_annotations import workflow_commands, write_step_summary

            # Before the lines that nobody may read any more.
            write_step_summary(reported)
            for line in workflow_commands(reported):
                click.echo(line, err=True)
        failures: list[str] = []
        if reported.failures:
            from agentunit.reports.failure_groups import describe_failures

            failures = describe_failures(reported.failures, scored, store.address)
        if asked.as_json:
            from agentunit.reports.json_report import decision_as_data

            for line in failures:
                click.echo(line, err=True)
            facts: dict[str, Any] = {
                "run": scored.header,
                "summary": reported.summary,
                "failures": reported.failures,
                "findings": reported.findings,
                **decision_as_data(decision),
            }
            click.echo(printable_json(facts))
        else:
            reported.shown_as = "last"
            console = Terminal()
            print_verdict_block(decision, reported.findings, console, all_rows=asked.all_rows)
            gated = {verdict.gate.metric for verdict in decision.gates}
            print_run(reported.summary, reported.infos, console, all_rows=asked.all_rows, gated=gated)
            print_details(decision, console, all_rows=asked.all_rows)
            for line in failures[-1:]:
                # How to run them again; which they are is a finding.
                print_line(line.strip(), console)
            print_next([decision.way_out or next_command(reported.shown_as, decision)], console)
        if decision.exit_code:
            raise click.exceptions.Exit(decision.exit_code)
