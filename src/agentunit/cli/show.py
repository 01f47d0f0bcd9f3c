"""``agentunit show``: a run, or everything about one of its cases."""

from __future__ import annotations

import click

from agentunit.cli.options import (
    all_rows_option,
    by_option,
    json_option,
    run_argument,
    show_personal_data_option,
    store_option,
)


@click.command()
@run_argument
@click.argument("case_id", required=False, metavar="[CASE]")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Which repeat of the case, counted from 1.")
@click.option("--full", is_flag=True, help="Show long texts in full, and every detail of the scores.")
@by_option
@all_rows_option
@json_option("Print it as JSON.")
@show_personal_data_option
@store_option
def show(
    run_reference: str,
    case_id: str | None,
    repeat: int | None,
    full: bool,
    by: str | None,
    all_rows: bool,
    as_json: bool,
    show_personal_data: bool,
    store_path: str,
) -> None:
    """Show a run, or everything about one of its cases.

    RUN is an id, the beginning of one, a name, 'last', 'last~1', an exported file or a score table (.parquet). Of
    a case that was repeated, the worst repeat is shown. With a CASE it may be a file or folder of records or traces,
    too: that case is scored on this machine. CASE is an id, or the beginning of one.

    \b
    agentunit show last
    agentunit show last --by metadata.category
    agentunit show last desk-016
    agentunit show last desk-016 --repeat 2 --full
    agentunit show traces.jsonl desk-016
    """
    if repeat is not None and case_id is None:
        raise click.UsageError("--repeat needs a CASE")
    if by is not None and case_id is not None:
        raise click.UsageError("--by goes with a whole run, not with a CASE")
    # What is shown is read by who looks: the help needs none of it.
    from agentunit.cli._show_work import show_run

    show_run(
        run_reference,
        case_id,
        repeat,
        store_path,
        full=full,
        by=by,
        all_rows=all_rows,
        as_json=as_json,
        show_personal_data=show_personal_data,
    )
