"""``agentunit rerun``: some cases of a run once more."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

import click

from agentunit.cli.judge_options import JudgeChoice, judge_options
from agentunit.cli.matrix import recorded_variables, set_variables
from agentunit.cli.options import InputFailure, json_option, open_store, show_personal_data_option, store_option
from agentunit.cli.references import meant_case, run_argument, unknown_case
from agentunit.cli.run import (
    adjusted_suite,
    ask_about_cases,
    finish,
    leave_if_stopped,
    record_with_progress,
    recorded_settings,
    score_with_progress,
    with_recorded_metrics,
)
from agentunit.cli.streams import output_to_stderr
from agentunit.core.case import DatasetCase
from agentunit.core.conversation import user_kind
from agentunit.datasets.readers import DatasetError
from agentunit.engine.judge_runs import judge_run
from agentunit.engine.runner import AgentError, plan_run
from agentunit.engine.suite import SuiteError
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import resume_command, store_arguments
from agentunit.store.protocol import RunStore
from agentunit.store.schema import StoreError


@click.command()
@run_argument
@click.argument("case_ids", nargs=-1, required=True, metavar="CASE…")
@click.option(
    "--suite",
    "suite_path",
    metavar="SUITE",
    help="The suite to run them with (default: the run's own; an imported run has none).",
)
@json_option("Print the result as JSON instead of tables.")
@show_personal_data_option
@judge_options
@store_option
def rerun(
    run_reference: str,
    case_ids: tuple[str, ...],
    suite_path: str | None,
    as_json: bool,
    show_personal_data: bool,
    store_path: str,
    choice: JudgeChoice,
) -> None:
    """Run some cases of a run again. Their new records and scores replace the old ones.

    \b
    agentunit rerun last desk-016 desk-039
    """
    with open_store(store_path) as store:
        _rerun(store, run_reference, case_ids, suite_path, as_json, show_personal_data, choice)


def _rerun(
    store: RunStore,
    run_reference: str,
    case_ids: Sequence[str],
    suite_path: str | None,
    as_json: bool,
    show_personal_data: bool,
    choice: JudgeChoice,
) -> None:
    try:
        header = store.find_run(run_reference)
        known = store.case_ids(header.id)
        meant = {case_id: meant_case(case_id, known) for case_id in case_ids}
        for case_id, found in meant.items():
            if found is None:
                raise unknown_case(header.label, case_id, known)
        case_ids = list(dict.fromkeys(filter(None, meant.values())))
        if header.is_foreign and suite_path is None:
            raise click.UsageError(
                f"run {header.id} was imported from a file, so the suite that it names is not executed: "
                "name one of your own with --suite SUITE"
            )
        path = suite_path or header.settings.get("suite")
        if not isinstance(path, str) or not path:
            raise InputFailure(f"run {header.label} does not say which suite made it: name it with --suite")
        set_variables(recorded_variables(header))
        suite = with_recorded_metrics(adjusted_suite(path, recorded_settings(header), choice), header)
        suite = replace(suite, metrics=choice.adjust(resolve_metrics(suite.metrics), may_play_users=True))

        def before(cases: Sequence[DatasetCase], n_open: int) -> None:
            wanted = [case for case in cases if case.id in case_ids]
            ask_about_cases(store, header, suite, wanted, len(wanted) * suite.repeats, choice)

        with output_to_stderr():
            plan = plan_run(suite, store, resume=header.id, suite_path=path, changed_agent=True, before=before)
    except AgentError as error:
        raise click.UsageError(str(error)) from None
    except (SuiteError, DatasetError, StoreError) as error:
        raise InputFailure(str(error)) from None
    # As in 'agentunit run', a judge's limits hold for the users it plays and for scoring together.
    with judge_run([], plays_users=any(user_kind(case) == "judge" for case in plan.cases)):
        recording = record_with_progress(plan, store, case_ids)
        leave_if_stopped(recording, _same_again(header.id, case_ids, suite_path, store.address))
        again = resume_command(header.id, path, store.address)
        score_with_progress(store, header.id, suite.metrics, recording.n_done, again, plan.cases)
    finish(store, header.id, suite, None, as_json=as_json, show_personal_data=show_personal_data)


def _same_again(run_id: str, case_ids: Sequence[str], suite_path: str | None, store_path: str) -> str:
    command = ["agentunit", "rerun", run_id, *case_ids]
    command += ["--suite", suite_path] if suite_path else []
    command += store_arguments(store_path)
    return printable_line(shlex.join(command))
