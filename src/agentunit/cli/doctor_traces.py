"""``agentunit doctor FILE…``: what traces hold and lack; records of a test are examined as one, too."""

from __future__ import annotations

import click
import msgspec

from agentunit.cli.doctor_soundness import Named, examine_test, holds_tests, tell_soundness
from agentunit.cli.main import EXIT_ERRORS
from agentunit.cli.trace_inputs import trace_files_from
from agentunit.core.results import encode_json
from agentunit.reports.console import Terminal
from agentunit.reports.printable import printable_line
from agentunit.reports.progress import Progress
from agentunit.reports.soundness_console import masked, print_soundness
from agentunit.reports.trace_console import print_health, reading_lines
from agentunit.reports.trace_health import examine
from agentunit.traces.formats import ROWS_FORMAT
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN
from agentunit.traces.settings import WORDS

# What a trace of production lacks, and a record of a test has.
_OF_A_TEST = [WORDS[each] for each in ("expected", "expected_tools", "success", "pattern")]


def examine_traces(
    files: tuple[str, ...],
    format_name: str | None,
    group_by: GroupBy,
    as_json: bool,
    everything: bool,
    show_personal_data: bool,
) -> None:
    """What traces hold; and, where they are the records of a test, whether that is sound."""
    source = trace_files_from(files, format_name, group_by)
    progress = Progress("cases", fraction=source.fraction)
    source.on_progress = progress.touch
    health = examine(source, progress.watch)
    found = None
    # Tests of some tools have a place for the answer that nobody filled.
    is_unanswered = set(health.formats) == {ROWS_FORMAT} and not health.holds[WORDS["answer"]]
    if (not health.n_cases or is_unanswered) and format_name is None and all(map(holds_tests, files)):
        found = examine_test(Named(tests=list(files)), group_by, "")
        tell_soundness(found, as_json=as_json, everything=everything, show_personal_data=show_personal_data)
        return
    if STDIN not in files and format_name is None and any(health.holds.get(word) for word in _OF_A_TEST):
        found = masked(examine_test(Named(traces=list(files)), group_by, ""), show_personal_data=show_personal_data)
    if as_json:
        data = msgspec.to_builtins(health)
        click.echo(encode_json({**data, "soundness": found}).decode())
    else:
        print_health(health, reading_lines(source), Terminal(), everything=everything)
        if found is not None and (found.warnings or everything):
            click.echo()
            print_soundness(found, Terminal(), everything=everything)
    if not health.n_cases:
        click.echo(f"nothing here is a case: {printable_line(', '.join(files))}", err=True)
        raise click.exceptions.Exit(EXIT_ERRORS)
