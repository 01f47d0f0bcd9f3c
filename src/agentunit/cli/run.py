"""``agentunit run``: record an agent on a dataset, score what it did, decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import click

from agentunit.cli.compare import unsure_option
from agentunit.cli.gated_metrics import gated_metric
from agentunit.cli.judge_options import JudgeChoice, judge_options
from agentunit.cli.main import EXIT_STOPPED
from agentunit.cli.matrix import KeepsArguments, recorded_variables, run_matrix, set_variables, variants_from
from agentunit.cli.options import (
    InputFailure,
    all_rows_option,
    end_signals_interrupt,
    jobs_option,
    media_root_option,
    metrics_from,
    open_store,
    say_stopped,
    seconds_from,
    show_personal_data_option,
    store_option,
    tags_from,
)
from agentunit.cli.references import next_command
from agentunit.cli.streams import output_to_stderr, remember_exit_code
from agentunit.cli.trace_inputs import print_field_notes
from agentunit.core.case import DatasetCase
from agentunit.core.conversation import user_kind
from agentunit.core.records import Record
from agentunit.datasets.readers import DatasetError
from agentunit.engine.agent_view import agent_view
from agentunit.engine.compare import compare_runs
from agentunit.engine.decision import Unsure, count_unsure, decide_run
from agentunit.engine.gate_expressions import GateError, parse_gate
from agentunit.engine.judge_evidence import EVIDENCE
from agentunit.engine.judge_runs import judge_run
from agentunit.engine.rescoring import score_run
from agentunit.engine.runner import AgentError, Caps, Plan, Recording, plan_run, record, rerun_cases
from agentunit.engine.scored_run import ScoredRun, find_scored_run, run_from_store
from agentunit.engine.suite import Suite, SuiteError, load_suite
from agentunit.metrics.base import describe_error
from agentunit.metrics.registry import registry, resolve_metrics
from agentunit.reports.console import Terminal, describe_failures, print_line, print_run
from agentunit.reports.decision_console import print_verdict
from agentunit.reports.figures import counted, number
from agentunit.reports.github_annotations import workflow_commands, write_step_summary
from agentunit.reports.json_report import decision_as_data
from agentunit.reports.printable import printable_json, printable_line
from agentunit.reports.progress import Progress, RecordingLine
from agentunit.reports.reported_run import ReportedRun, resume_command
from agentunit.store.protocol import RunStore
from agentunit.store.runs import RunHeader
from agentunit.store.schema import StoreError

_MAX_COST = "Start no further case once the traces add up to this cost. Finished cases are kept."


@click.command(cls=KeepsArguments, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("suite_path", metavar="SUITE")
@click.option(
    "--resume", metavar="RUN", help="Continue a run that was stopped: its id, the beginning of its id, or 'last'."
)
@click.option("--retry-failed", is_flag=True, help="With --resume: run the cases again in which the agent failed.")
@click.option(
    "--changed-agent", is_flag=True, help="With --resume: continue even though the agent's source has changed."
)
@click.option("--name", metavar="NAME", help="A name for the run instead of the suite's; other commands accept it.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A note kept with the run: --tag model=x.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE,…",
    help="One run for each value, tagged with it: --set model=a,b. The agent gets it as its parameter of that name, "
    "and in AGENTUNIT_SET_MODEL.",
)
@click.option(
    "--repeats",
    metavar="N|auto",
    help="Run each case N times; auto: run cases, then repeats, until gates and baseline are decided.",
)
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Cases at once.")
@click.option("--timeout", "timeout_s", type=float, metavar="SECONDS", help="The most a case may take.")
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Try a failed case again, with a fresh trace.")
@click.option("--seed", type=int, help="Gives each case a seed of its own, the same in every run.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N cases.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help=_MAX_COST)
@click.option(
    "--max-time", metavar="SECONDS", help="Stop recording after this time: 90, 30m or 2h. Finished cases are kept."
)
@click.option("-m", "--metrics", "names", multiple=True, metavar="NAMES", help="Metrics instead of the suite's.")
@click.option("-g", "--gate", "gates", multiple=True, metavar="EXPR", help="Gates instead of the suite's.")
@click.option("--baseline", metavar="RUN|FILE", help="Also compare with this run: a regression fails.")
@jobs_option
@all_rows_option
@unsure_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead of tables.")
@show_personal_data_option
@media_root_option
@judge_options
@store_option
@click.pass_context
def run(
    context: click.Context,
    suite_path: str,
    resume: str | None,
    retry_failed: bool,
    changed_agent: bool,
    name: str | None,
    tags: tuple[str, ...],
    sets: tuple[str, ...],
    repeats: str | None,
    concurrency: int | None,
    timeout_s: float | None,
    retries: int | None,
    seed: int | None,
    limit: int | None,
    max_cost: float | None,
    max_time: str | None,
    names: tuple[str, ...],
    gates: tuple[str, ...],
    baseline: str | None,
    jobs: int | None,
    all_rows: bool,
    unsure: Unsure | None,
    as_json: bool,
    show_personal_data: bool,
    store_path: str,
    choice: JudgeChoice,
) -> None:
    """Record an agent on a dataset, score what it did, and decide.

    SUITE is a Python file with 'suite = Suite(…)' or a YAML file; 'agentunit init' writes one to start from.

    \b
    agentunit run suite.py
    agentunit run suite.py --repeats 3 --gate "task_success pass^3 >= 0.7"
    agentunit run suite.py --set model=small,large
    agentunit run suite.py --resume last
    """
    if retry_failed and resume is None:
        raise click.UsageError("--retry-failed goes with --resume RUN")
    if changed_agent and resume is None:
        raise click.UsageError("--changed-agent goes with --resume RUN")
    if (name is not None or tags or sets) and resume is not None:
        raise click.UsageError("--name, --tag and --set go with a new run, not with --resume")
    if name is not None and (not name.strip() or name.startswith("last")):
        raise click.BadParameter(
            f"must be a word that does not begin with 'last'; received {name!r}", param_hint="--name"
        )
    if max_cost is not None and not isfinite(max_cost):
        raise click.BadParameter(f"must be a number above 0; received {max_cost}", param_hint="--max-cost")
    until_decided = repeats == "auto"
    if repeats is not None and not until_decided and not (repeats.isdecimal() and int(repeats) > 0):
        raise click.BadParameter(f"must be a number above 0, or auto; received {repeats!r}", param_hint="--repeats")
    variants = variants_from(sets)
    if len(variants) > 1:
        run_matrix(
            context,
            variants,
            store_path,
            baseline=baseline,
            unsure=unsure,
            all_rows=all_rows,
            as_json=as_json,
            show_personal_data=show_personal_data,
        )
    set_variables(variants[0])
    given = {
        "repeats": None if repeats is None else 1 if until_decided else int(repeats),
        "concurrency": concurrency,
        "timeout_s": timeout_s,
        "retries": retries,
        "seed": seed,
        "gates": list(gates) or None,
    }
    planned = {
        "resume": resume,
        "retry_failed": retry_failed,
        "changed_agent": changed_agent,
        "suite_path": suite_path,
        "limit": limit,
        "name": name,
        "tags": tags_from(tags),
        "variables": variants[0],
    }
    with open_store(store_path, must_exist=resume is not None) as store:
        caps = Caps(max_cost, None if max_time is None else seconds_from(max_time))
        _run(
            store,
            suite_path,
            given,
            names,
            choice,
            planned,
            caps,
            until_decided,
            baseline,
            jobs,
            all_rows,
            unsure,
            as_json,
            show_personal_data,
        )


def _run(
    store: RunStore,
    suite_path: str,
    given: dict[str, Any],
    names: Sequence[str],
    choice: JudgeChoice,
    planned: dict[str, Any],
    caps: Caps,
    until_decided: bool,
    baseline: str | None,
    jobs: int | None,
    all_rows: bool,
    unsure: Unsure | None,
    as_json: bool,
    show_personal_data: bool,
) -> None:
    from agentunit.cli.until_decided import begun_until_decided, goal_of, record_until_decided

    resume = planned["resume"]
    try:
        if resume is not None:
            # A run goes on as it was begun, unless a number of repeats makes it one of fixed size.
            as_begun = given["repeats"] is None and begun_until_decided(store.find_run(resume)) is not None
            until_decided = until_decided or as_begun
            set_variables(recorded_variables(store.find_run(resume)))
            earlier = recorded_settings(store.find_run(resume))
            given = {name: earlier.get(name) if value is None else value for name, value in given.items()}
        suite = adjusted_suite(suite_path, given, choice, names)
        header = None if resume is None else store.find_run(resume)
        if header is not None:
            suite = with_recorded_metrics(suite, header)
        suite = replace(suite, metrics=choice.adjust(resolve_metrics(suite.metrics), may_play_users=True))
        goal = goal_of(suite, store, baseline, header, retry_failed=planned["retry_failed"]) if until_decided else None
        if goal is not None:
            planned, base = {**planned, "until_decided": goal.as_data()}, goal.baseline
        else:
            base = find_scored_run(baseline, store) if baseline else None

        def before(cases: Sequence[DatasetCase], n_open: int) -> None:
            ask_about_cases(store, header, suite, cases, n_open, choice)

        with output_to_stderr():
            plan = plan_run(suite, store, before=before, **planned)
    except AgentError as error:
        raise click.UsageError(str(error)) from None
    except (SuiteError, DatasetError, StoreError) as error:
        raise InputFailure(str(error)) from None
    again = resume_command(plan.header.id, suite_path, store.address)
    if resume is not None:
        _say_what_is_kept(plan, store, retry_failed=planned["retry_failed"], until_decided=goal is not None)
    # Playing users and scoring, in however many stages, are one run to a judge: its limits hold for all together.
    with judge_run(suite.metrics, plays_users=any(user_kind(case) == "judge" for case in plan.cases)):
        if goal is not None:
            record_until_decided(plan, store, suite, goal, caps, again)
        else:
            recording = record_with_progress(plan, store, caps=caps)
            leave_if_stopped(recording, again)
            score_with_progress(
                store, plan.header.id, suite.metrics, plan.header.n_planned, again, plan.cases, recording.records, jobs
            )
    finish(
        store,
        plan.header.id,
        suite,
        base,
        as_json=as_json,
        show_personal_data=show_personal_data,
        all_rows=all_rows,
        unsure=unsure,
    )


def _say_what_is_kept(plan: Plan, store: RunStore, *, retry_failed: bool, until_decided: bool) -> None:
    """Say where a run is taken up: what of it is kept, and what is still to run."""
    finished = store.finished(plan.header.id)
    again = len(finished.intersection(plan.open)) if retry_failed else 0
    kept = counted(len(finished) - again, "record")
    failed = f" ({again:,} that failed are run again)" if again else ""
    to_run = "further ones are run until decided" if until_decided else f"{len(plan.open):,} to run"
    click.echo(f"continuing run {plan.header.label}: {kept} kept, {to_run}{failed}", err=True)


def recorded_settings(header: RunHeader) -> dict[str, Any]:
    """What a run was recorded with and must go on with, whatever the suite says by now."""
    return {name: header.settings.get(name) for name in ("repeats", "seed", "timeout_s", "retries", "gates")}


def with_recorded_metrics(suite: Suite, header: RunHeader) -> Suite:
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
) -> None:
    """Ask before the agent runs, not hours later, whether a judge may see what it will answer."""
    judged = [metric for metric in suite.metrics if getattr(metric, "asks_service", False)]
    played = [case for case in cases if user_kind(case) == "judge"]
    if not played:
        choice.refuse_unused(suite.metrics)
    if not judged and not played:
        return
    from agentunit.cli.consent import ask_before_sending
    from agentunit.engine.judge_plan import SAMPLE_SIZE, plan_playing, plan_sending

    if n_open:
        ask_before_sending(plan_playing(played, n_open / len(cases)), yes=choice.yes)
    if not judged:
        return
    lacking = [metric.name for metric in judged]
    n_recorded = 0 if header is None else store.n_records(header.id, unscored_by=lacking)
    sample = [Record(case) for case in cases[:SAMPLE_SIZE]]
    sending = plan_sending(judged, sample, n_cases=n_open + n_recorded, exact=True, answered=False)
    ask_before_sending(sending, yes=choice.yes)


def adjusted_suite(path: str, given: dict[str, Any], choice: JudgeChoice, names: Sequence[str] = ()) -> Suite:
    """A suite with what the command line says in place of its own settings; mistakes in it are usage errors."""
    try:
        with output_to_stderr():
            suite = load_suite(path)
        suite = replace(suite, **{name: value for name, value in given.items() if value is not None})
        # Metrics that name the judge can be made only when it is configured.
        suite = replace(suite, judge=choice.configure(suite.judge))
        if names:
            suite = replace(suite, metrics=metrics_from(names, choice))
        suite = _with_gated_metrics(suite)
        # Built here only to be checked.
        agent_view(suite, suite.metrics)
    except click.ClickException:
        raise
    except (SuiteError, GateError) as error:
        raise click.UsageError(str(error)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a suite is a user's own code and may fail in any way
        raise click.UsageError(f"{path}: {describe_error(error)}") from None
    return suite


def _with_gated_metrics(suite: Suite) -> Suite:
    """A suite whose gates can be answered: the metrics they name are scored, and repeats suffice."""
    metrics = resolve_metrics(suite.metrics)
    names = [metric.name for metric in metrics]
    for gate in [parse_gate(expression) for expression in suite.gates]:
        if gate.metric in EVIDENCE:  # told by judged scores, no metric of its own
            continue
        if gate.metric in names:
            gated_metric(gate, metrics[names.index(gate.metric)])
        else:
            metrics.append(gated_metric(gate))
            names.append(gate.metric)
        if gate.repeats_needed > suite.repeats:
            raise SuiteError(
                f"gate {str(gate)!r} needs {gate.repeats_needed} repeats of each case; received {suite.repeats} "
                f"(--repeats {gate.repeats_needed})"
            )
    return replace(suite, metrics=metrics)


def record_with_progress(
    plan: Plan,
    store: RunStore,
    case_ids: Sequence[str] | None = None,
    *,
    caps: Caps | None = None,
    line: RecordingLine | None = None,
) -> Recording:
    """Record a plan, or only some cases of it, showing how it goes; on a ``line`` that several recordings share."""
    if plan.view.hides_undeclared(plan.cases):
        names = printable_line(", ".join(plan.view.undeclared))
        click.echo(
            f"note: the agent receives no metadata of the cases, because {names} does not say what it grades by "
            "(agent_fields in the suite lists what the agent receives)",
            err=True,
        )
    print_field_notes(plan.cases, (*plan.suite.grader_fields, *(plan.suite.agent_fields or ())))
    line = line or RecordingLine()
    try:
        with output_to_stderr():
            if case_ids is not None:
                return rerun_cases(plan, case_ids, store, on_progress=line.show)
            recording = record(plan, store, on_progress=line.show, caps=caps or Caps())
    except SuiteError as error:
        raise InputFailure(str(error)) from None
    except StoreError as error:
        kept = f"what was finished is kept, and 'agentunit run SUITE --resume {plan.header.id}' continues"
        raise InputFailure(f"{error}; {kept}") from None
    finally:
        line.clear()
    if caps is not None and caps.cost_usd is not None and recording.n_done and not recording.spend_usd:
        click.echo(
            "note: no trace states a cost, so --max-cost could not limit the run (outcome.cost states it)", err=True
        )
    return recording


def leave_if_stopped(recording: Recording, again: str) -> None:
    """After Ctrl-C, or at a cap: say what is kept and how to go on."""
    if recording.stopped:
        left = recording.n_planned - recording.n_done
        spent = f" (${number(recording.spend_usd, 'USD')} spent)" if recording.capped_by == "cost" else ""
        cap = f"--max-{recording.capped_by} is reached{spent}: " if recording.capped_by else ""
        say_stopped(f"{cap}{recording.n_done} cases are kept, {left} are open", again)
        raise click.exceptions.Exit(EXIT_STOPPED)


def score_with_progress(
    store: RunStore,
    run_id: str,
    metrics: Sequence[Any],
    n_cases: int | None,
    again: str,
    cases: Sequence[DatasetCase] | None = None,
    recorded: Mapping[tuple[int, int], Record] | None = None,
    jobs: int | None = None,
) -> None:
    """Score what a run lacks, showing how it goes. ``again`` is the command that goes on after Ctrl-C."""
    scored = [0]
    progress = Progress("scored", fraction=lambda: scored[0] / n_cases if n_cases else None)
    ticks = progress.ticker()

    def on_case(n_scored: int) -> None:
        scored[0] = n_scored
        ticks(n_scored)

    try:
        with output_to_stderr(), end_signals_interrupt():
            score_run(store, run_id, metrics, on_case=on_case, cases=cases, recorded=recorded, jobs=jobs)
    except KeyboardInterrupt:
        progress.clear()
        say_stopped("every case is recorded, and the scores so far are kept", again)
        raise click.exceptions.Exit(EXIT_STOPPED) from None
    except StoreError as error:
        kept = f"every case is recorded, the scores so far are kept, and '{again}' goes on"
        raise InputFailure(f"{error}; {kept}") from None
    finally:
        progress.clear()


def finish(
    store: RunStore,
    run_id: str,
    suite: Suite,
    base: ScoredRun | None,
    *,
    as_json: bool,
    show_personal_data: bool = False,
    all_rows: bool = True,
    unsure: Unsure | None = None,
) -> None:
    """Print a run and what is decided about it, and leave with the exit code that says it."""
    scored = run_from_store(store, run_id)
    comparison = None
    if base is not None:
        comparison = compare_runs(scored, base, gates=suite.gates, min_coverage=suite.min_coverage)
    decision = decide_run(scored, suite.gates, comparison, min_coverage=suite.min_coverage, max_errors=suite.max_errors)
    decision = count_unsure(decision, unsure)
    reported = ReportedRun(scored, store=store, decision=decision, show_personal_data=show_personal_data)
    decision = reported.decision
    remember_exit_code(decision.exit_code)
    # Before the lines that nobody may read any more.
    write_step_summary(reported)
    for line in workflow_commands(reported):
        click.echo(line, err=True)
    failures = describe_failures(reported.failures, scored, store.address)
    if as_json:
        for line in failures:
            click.echo(line, err=True)
        facts = {"run": scored.header, "summary": reported.summary, "failures": reported.failures}
        click.echo(printable_json({**facts, **decision_as_data(decision)}))
    else:
        console = Terminal()
        gated = {verdict.gate.metric for verdict in decision.gates}
        print_run(reported.summary, reported.infos, console, all_rows=all_rows, gated=gated)
        for line in failures:
            print_line(line, console)
        print_verdict(decision, console, next_command(scored.header.id, scored, decision), all_rows=all_rows)
    if decision.exit_code:
        raise click.exceptions.Exit(decision.exit_code)
