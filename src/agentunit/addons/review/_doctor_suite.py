"""``agentunit doctor SUITE|RUN…``: what is named (suites, datasets, tests of other tools, runs, records), examined."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from sys import stderr
from typing import Any

import click
import msgspec
from msgspec import structs

from agentunit import doors
from agentunit.addons.review.soundness.examine import examine_soundness
from agentunit.addons.review.soundness.found import CaseEvidence, HeadlineEffect, Soundness, SoundnessWarning
from agentunit.addons.review.soundness.gathered_runs import MOST_CASES, Gathered
from agentunit.addons.review.soundness.material import Material
from agentunit.backends.quality import BackendUnavailable
from agentunit.cli.options import InputFailure, print_field_notes
from agentunit.cli.references import load_run
from agentunit.cli.trace_inputs import trace_files_from
from agentunit.core.case import DatasetCase
from agentunit.core.results import InputError, encode_json
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.engine.recording.suite import Suite, SuiteError, load_suite
from agentunit.engine.scoring.score_rows import is_table
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.console import print_line
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.reports.progress import Progress
from agentunit.reports.reported_run import Mask
from agentunit.reports.terminal import Terminal, Text
from agentunit.store.opening import may_exist
from agentunit.store.portable import is_portable
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, bounded_lines, decompressed
from agentunit.traces.formats import ROWS_FORMAT, detect, read_opening
from agentunit.traces.grouping import GroupBy
from agentunit.traces.limits import LimitExceeded
from agentunit.traces.native import STDIN
from agentunit.urls import is_remote

# Whether a test is sound, in the terminal: each fault with its cases, what hangs on it and what to do.

_WARNINGS_SHOWN = 8
_CASES_SHOWN = 3
_LONGEST_ID = 40
_SHOWN_SHARE = 0.01
_LONGEST_EVIDENCE = 150


def print_soundness(soundness: Soundness, console: Terminal, *, everything: bool = False) -> None:
    """Print the warnings: the first of them with a few cases each, or everything."""
    print_line(_headline(soundness), console, "bold")
    shown = soundness.warnings if everything else soundness.warnings[:_WARNINGS_SHOWN]
    for number, warning in enumerate(shown, 1):
        _print_warning(number, warning, console, everything=everything)
    left = len(soundness.warnings) - len(shown)
    if soundness.functions_called:
        named = printable_line(", ".join(soundness.functions_called))
        console.print(Text(f"called with answers that no agent gave: {named} (functions of the suite)", style="dim"))
    for reason in soundness.not_examined:
        console.print(Text(f"not examined: {printable_line(reason)}", style="dim"))
    if left > 0 or any(each.n_cases > _CASES_SHOWN for each in shown):
        more = f"{counted(left, 'more warning')}, and " if left > 0 else ""
        console.print(Text(f"{more}all cases: --why, or --json", style="dim"))


def masked(soundness: Soundness, *, show_personal_data: bool) -> Soundness:
    """The same with personal data masked in the evidence, which quotes cases, and in questions that stand for an id."""
    mask = Mask(show_all=show_personal_data)

    def named(case: str) -> str:
        # An id stays, or its case could not be found again; a text with spaces is the question of a case without one.
        return mask.name(case) if " " in case else case

    warnings = [
        structs.replace(
            each,
            cases=[named(case) for case in each.cases],
            evidence=[CaseEvidence(named(one.case), mask.text(one.text)) for one in each.evidence],
        )
        for each in soundness.warnings
    ]
    # Reasons why a part could not be read may quote it.
    return structs.replace(
        soundness, warnings=warnings, not_examined=[mask.name(each) for each in soundness.not_examined]
    )


def _headline(soundness: Soundness) -> str:
    parts = [counted(soundness.n_cases, "case")]
    if soundness.n_runs:
        parts.append(counted(soundness.n_runs, "run"))
    if soundness.rate is not None:
        means = f" by {printable_line(soundness.pass_means)}" if soundness.pass_means else ""
        mean = ", the mean of the runs" if soundness.n_runs > 1 else ""
        parts.append(f"pass rate {soundness.rate:.2f}{means}{mean}")
    found = counted(len(soundness.warnings), "warning") if soundness.warnings else "no warning"
    return f"{', '.join(parts)}: {found} about the test itself"


def _print_warning(number: int, warning: SoundnessWarning, console: Terminal, *, everything: bool) -> None:
    title = Text(f"{number:2} {printable_line(warning.title)}: ", style="yellow")
    console.print(title.append(counted(warning.n_cases, "case"), style="not bold"))
    shown = warning.evidence if everything else _first_of_each(warning.evidence)[:_CASES_SHOWN]
    for each in shown:
        case = printable_line(each.case, _LONGEST_ID)
        text = printable_line(each.text) if everything else printable_line(each.text, _LONGEST_EVIDENCE)
        console.print(Text(case, style="bold").append(f"  {text}", style="not bold"), indent=5)
    if not everything and warning.n_cases > len(shown):
        console.print(Text(f"… and {warning.n_cases - len(shown):,} more", style="dim"), indent=5)
    console.print(Text(f"{describe_effect(warning.effect, warning.n_cases)}; {warning.advice}"), indent=3)


def _first_of_each(evidence: list[CaseEvidence]) -> list[CaseEvidence]:
    return list({each.case: each for each in reversed(evidence)}.values())[::-1]


def describe_effect(effect: HeadlineEffect, n_cases: int) -> str:
    """How much of the headline hangs on the cases of a warning, in words.

    >>> describe_effect(HeadlineEffect(0.06, 0.71, 0.78, 4), 3)
    'without these 3 cases the pass rate is 0.78 instead of 0.71'
    >>> describe_effect(HeadlineEffect(0.06), 3)
    'up to 0.06 of a pass rate depends on them'
    >>> describe_effect(HeadlineEffect(0.0001), 1)
    'less than 0.01 of a pass rate depends on it'
    >>> describe_effect(HeadlineEffect(0.5, n_tried=200), 100)
    '100 of the 200 cases that were tried: about 0.50 of a pass rate depends on such cases'
    """
    if effect.n_tried is not None:
        tried = f"{n_cases:,} of the {effect.n_tried:,} cases that were tried"
        return f"{tried}: about {effect.share:.2f} of a pass rate depends on such cases"
    these = "this case" if n_cases == 1 else f"these {n_cases:,} cases"
    if effect.rate is None or effect.rate_without is None:
        most = f"up to {effect.share:.2f}" if effect.share >= _SHOWN_SHARE else f"less than {_SHOWN_SHARE}"
        return f"{most} of a pass rate depends on {'it' if n_cases == 1 else 'them'}"
    if round(effect.rate, 2) == round(effect.rate_without, 2):
        return f"the pass rate is {effect.rate:.2f} with and without {these}"
    return f"without {these} the pass rate is {effect.rate_without:.2f} instead of {effect.rate:.2f}"


_NEWEST = re.compile(r"last(?:~\d+)?")
_YAML = (".yaml", ".yml")
_TABLES = (".csv", ".tsv", ".parquet")
# What a file of another tool may hold that has no counterpart here, and does not grade either.
_NO_CHECKS = ("setting ", "variable of ", "template in a prompt", "prompt ", "transformVars", "column ", "tests of ")
_QUESTIONS = {"query", "question"}
# What only records and traces have; a row with one of them is no case of a dataset.
_RECORDED = {"case", "trace", "outcome", "messages", "events", "spans", "resourceSpans", "trajectory", "traj"}


@dataclass
class Named:
    """What the words of a command line name."""

    tests: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)


def sort_inputs(words: Sequence[str], format_name: str | None, store_path: str) -> Named:
    """Which words name a suite or a dataset, which a run, and which files of traces."""
    named = Named()
    for word in words:
        if format_name is not None or word == STDIN or is_remote(word) or os.path.isdir(word):
            named.traces.append(word)
        elif not os.path.exists(word):
            is_path = os.sep in word or Path(word).suffix in (".json", ".jsonl", ".py", *_YAML, *_TABLES)
            is_run = _NEWEST.fullmatch(word) or (not is_path and may_exist(store_path))
            (named.runs if is_run else named.traces).append(word)
        elif is_table(word) or is_portable(word):
            named.runs.append(word)
        elif _is_test(word):
            named.tests.append(word)
        else:
            named.traces.append(word)
    return named


def examine_test(named: Named, group_by: GroupBy, store_path: str) -> Soundness:
    """The tests, runs and records that were named, examined together."""
    material = Material()
    for test in named.tests:
        _add_test(material, test)
    gathered = Gathered()
    progress = Progress("checks", fraction=lambda: None)
    for reference in named.runs:
        gathered.add_run(load_run(reference, store_path))
    for path in named.traces:
        n_runs = len(gathered.runs)
        gathered.add_records(Path(path).name, trace_files_from([path], None, group_by))
        # Traces alone are examined as such, too, and what cannot be read of them is said there.
        if len(gathered.runs) == n_runs and (named.tests or named.runs):
            raise InputFailure(_nothing_in(path, gathered.unread.get(Path(path).name, [])))
    material.runs = gathered.runs
    if not material.cases:
        # A case that has no id in its record is known by its question.
        material.cases = [
            case if case.id == case_id else msgspec.structs.replace(case, id=case_id)
            for case_id, case in gathered.cases.items()
        ]
        material.metric_names = frozenset(gathered.metric_names) or None
    # A check of the user's own may print; what this command prints is JSON, perhaps.
    with redirect_stdout(stderr):
        found = examine_soundness(material, progress.watch)
    progress.clear()
    for name, errors in gathered.unread.items():
        parts = counted(len(errors), "part")
        found.not_examined.append(f"{parts} of {name} that could not be read, such as {errors[0]}")
    if gathered.is_cut:
        found.not_examined.append(f"records after the first {MOST_CASES:,} of a file")
    return found


def _nothing_in(path: str, errors: Sequence[InputError]) -> str:
    return str(errors[0]) if errors else f"{path}: nothing here is a case"


def tell_soundness(found: Soundness, *, as_json: bool, everything: bool, show_personal_data: bool) -> None:
    """Print what was found, for a person or a program."""
    found = masked(found, show_personal_data=show_personal_data)
    if as_json:
        click.echo(encode_json(found).decode())
    else:
        print_soundness(found, Terminal(), everything=everything)


def holds_tests(path: str) -> bool:
    """Whether a file in which no trace was found holds tests of another tool, or questions with expected answers."""
    if not os.path.isfile(path):
        return False
    try:
        return bool(_cases_of(path)[0])
    except DatasetError:
        return False


def _is_test(path: str) -> bool:
    stem = path.removesuffix(".gz").removesuffix(".zst")
    suffix = Path(stem).suffix.lower()
    if suffix == ".py" or suffix in _YAML:
        return True
    if _holds_answers(path):
        return False
    if suffix in _TABLES:
        return True
    first = _first_row(path, suffix)
    if not isinstance(first, dict) or _RECORDED & first.keys():
        return False
    return bool(_QUESTIONS & first.keys()) and not {"answer", "output", "response"} & first.keys()


def _holds_answers(path: str) -> bool:
    """Whether a file holds rows with recorded answers, which are records of a test."""
    try:
        with open(path, "rb") as raw:
            found = detect(read_opening(path, decompressed(raw))[0])
    except (OSError, ZstandardMissing, *BROKEN_STREAM):
        return False
    return found is not None and found.name == ROWS_FORMAT


def _first_row(path: str, suffix: str) -> Any:
    """The first object of a JSON or JSON Lines file; ``None`` where there is none."""
    try:
        if suffix in (".jsonl", ".ndjson"):
            with open(path, "rb") as raw:
                line = next((line for _, line in bounded_lines(decompressed(raw)) if line.strip()), b"")
            return msgspec.json.decode(line)
        if suffix != ".json":
            return None
        content = doors.part("read_document")(Path(path))
    except (
        *(DatasetError, msgspec.DecodeError, RecursionError, OSError, UnicodeError, ZstandardMissing, LimitExceeded),
        *BROKEN_STREAM,
    ):
        return None
    rows = content.get("cases") if isinstance(content, dict) else content
    return rows[0] if isinstance(rows, list) and rows else None


def _add_test(material: Material, path: str) -> None:
    """The cases and metrics of a suite, of a dataset, or of a file of another tool."""
    try:
        if path.endswith(".py") or (path.endswith(_YAML) and _is_suite(path)):
            _add_suite(material, load_suite(path, needs_agent=False))
            return
        cases, metrics, left_out = _cases_of(path)
    except (DatasetError, SuiteError) as error:
        raise InputFailure(str(error)) from None
    print_field_notes(cases)
    material.cases = [*material.cases, *_told_apart(cases, material, path)]
    material.left_out = [*material.left_out, *left_out]
    if metrics is not None:
        _add_metrics(material, metrics, path)


def _add_suite(material: Material, suite: Suite) -> None:
    cases = load_dataset(suite.dataset, folder=suite.folder)
    print_field_notes(cases, (*suite.grader_fields, *(suite.agent_fields or ())))
    material.cases = [*material.cases, *_told_apart(cases, material, suite.name)]
    _add_metrics(material, suite.metrics, suite.name)
    material.gates = [*material.gates, *suite.gates]
    material.grader_fields = [*material.grader_fields, *suite.grader_fields]
    material.agent_fields = suite.agent_fields


def _told_apart(cases: list[DatasetCase], material: Material, owner: str) -> list[DatasetCase]:
    """The cases of one more test: an id that another test has already gets the name of its own behind it."""
    taken = {case.id for case in material.cases}
    return [msgspec.structs.replace(case, id=f"{case.id} ({owner})") if case.id in taken else case for case in cases]


def _add_metrics(material: Material, metrics: Any, owner: str) -> None:
    """The metrics of a suite; one whose judge is not set up here is named, and not needed."""
    try:
        made = resolve_metrics(metrics)
    except BackendUnavailable:
        made = []
        for each in metrics.items() if isinstance(metrics, Mapping) else metrics:
            one = dict([each]) if isinstance(metrics, Mapping) else each
            try:
                made += resolve_metrics([one])
            except BackendUnavailable:
                name = next(iter(one)) if isinstance(one, Mapping) else getattr(one, "name", one)
                material.left_out = [*material.left_out, f"{name} (its judge is not set up here)"]
    except (ValueError, TypeError, ImportError, AttributeError) as error:
        raise InputFailure(f"{owner}: {error}") from None
    material.metrics = [*(material.metrics or ()), *made]


def _is_suite(path: str) -> bool:
    content = doors.part("read_document")(Path(path))
    return isinstance(content, dict) and "dataset" in content


def _cases_of(path: str) -> tuple[list[DatasetCase], list[Any] | None, list[str]]:
    """A dataset of AgentUnit's own, else tests of another tool, the metrics that they became and what did not."""
    try:
        foreign = doors.part("read_foreign")(path)
    except DatasetError:
        return load_dataset(path), None, []
    left_out = [name for name in foreign.unmapped if not name.startswith(_NO_CHECKS)]
    return foreign.cases, foreign.metrics or None, left_out
