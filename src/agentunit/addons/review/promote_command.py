"""``agentunit promote``: a bad case of a run becomes a test case."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from agentunit.cli.options import InputFailure, Verb, run_argument, store_option
from agentunit.cli.references import find_reported_run, unknown_case, unreadable_runs_fail
from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.conversation import exchanges_of, script_of, user_kind
from agentunit.core.records import Outcome, Record
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.metrics.base import MetricInfo
from agentunit.reports.case_view import worst_repeat
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import ReportedCase, ReportedRun


@click.command(cls=Verb)
@run_argument
@click.argument("case_ids", nargs=-1, required=True, metavar="CASE…")
@click.option("--to", "target", required=True, metavar="FILE", help="The JSONL dataset; created if it does not exist.")
@click.option("--expected", metavar="TEXT", help="What the right answer would have been.")
@click.option("--as", "new_id", metavar="ID", help="The id the case gets there (default: the one it has).")
@store_option
def promote(
    run_reference: str,
    case_ids: tuple[str, ...],
    target: str,
    expected: str | None,
    new_id: str | None,
    store_path: str,
) -> None:
    """Add cases of a run to a dataset, with where they come from, so that what failed once is always tested.

    RUN is an id, the beginning of one, a name, 'last', 'last~1', or an exported file. Of a case that was repeated,
    the worst repeat is taken. All cases are added, or none.

    \b
    agentunit promote last desk-016 --to regressions.jsonl --expected "In Oslo."
    """
    _refuse_misuse(case_ids, target, expected, new_id)
    # A test case needs its texts as they were.
    with unreadable_runs_fail(), find_reported_run(run_reference, store_path, show_personal_data=True) as reported:
        cases = [_promoted(reported, case_id) for case_id in case_ids]
    if new_id is not None:
        cases[0].id = new_id
    if expected is not None:
        _expect(cases[0], expected)
    n_now = append_cases(Path(target), cases)
    names = printable_line(", ".join(case.id for case in cases))
    shown = printable_line(target)
    click.echo(f"added {names} to {shown} ({n_now} case{'' if n_now == 1 else 's'} now)")
    for case in cases:
        has_script = user_kind(case) == "script"
        if case.expected_output is None and not (has_script and script_of(case)[-1].expected_output is not None):
            click.echo(f"{printable_line(case.id)} has no expected output yet: its line in {shown} is the place for it")
    suite = reported.run.header.settings.get("suite")
    known = shlex.quote(suite) if isinstance(suite, str) and not reported.run.header.is_foreign else "SUITE"
    click.echo(printable(f"next: agentunit run {known}   if its dataset is {target}"))


def _expect(case: DatasetCase, expected: str) -> None:
    """State the right answer where metrics look for it: the last turn of a script may state one of its own."""
    case.expected_output = expected
    if case.turns is not None and user_kind(case) == "script" and script_of(case)[-1].expected_output is not None:
        case.turns = [*case.turns[:-1], {"query": script_of(case)[-1].query, "expected_output": expected}]


def _refuse_misuse(case_ids: Sequence[str], target: str, expected: str | None, new_id: str | None) -> None:
    for option, value in (("--expected", expected), ("--as", new_id)):
        if value is not None and len(case_ids) > 1:
            raise click.UsageError(f"{option} is for one case; received {len(case_ids)} cases")
    if new_id is not None and not new_id.strip():
        raise click.BadParameter("must not be empty", param_hint="--as")
    repeated = next((case_id for case_id in case_ids if case_ids.count(case_id) > 1), None)
    if repeated is not None:
        raise click.UsageError(f"case {repeated!r} is named twice")
    if not target.lower().endswith((".jsonl", ".ndjson")):
        raise click.BadParameter(f"must be a .jsonl or .ndjson file; received {target!r}", param_hint="--to")


def _promoted(reported: ReportedRun, case_id: str) -> DatasetCase:
    repeats = reported.case(case_id)
    if not repeats:
        raise unknown_case(reported.label, case_id, reported.case_ids())
    worst = worst_repeat(repeats, reported.infos)
    case = worst.record.case
    origin = _origin(reported.run.header.id, worst, reported.infos)
    if user_kind(case) == "function":
        # A dataset holds no function: what it said becomes the script.
        said = [turn.query for turn in exchanges_of(worst.record.trace.events)]
        if not said:
            raise click.UsageError(f"case {case_id!r}: its user is a function, which said nothing that could be asked")
        case = msgspec.structs.replace(case, user=None, turns=said)
    return msgspec.structs.replace(case, id=case_id, metadata={**case.metadata, "promoted_from": origin})


def _origin(run_id: str, chosen: ReportedCase, infos: Mapping[str, MetricInfo]) -> dict[str, Any]:
    outcome = chosen.record.outcome
    failing = {
        metric: score.result.value
        for metric, score in chosen.scores.items()
        if score.status == "ok" and score.result.value is not None and falls_short(infos[metric], score.result.value)
    }
    output = outcome.output if isinstance(outcome, Outcome) else outcome
    origin: dict[str, Any] = {"run": run_id, "output": output, "scores": failing}
    if isinstance(outcome, Outcome) and outcome.error:
        origin["error"] = outcome.error
    return origin


def falls_short(info: MetricInfo, value: float) -> bool:
    """Whether a value is not the best value of its metric. Open-ended quantities (cost, seconds) have no best.

    >>> falls_short(MetricInfo("contains", "quality", "", "higher", (0.0, 1.0)), 0.5)
    True
    >>> falls_short(MetricInfo("cost", "operational", "", "lower", (0.0, None)), 0.5)
    False
    """
    low, high = info.range
    if low is None or high is None or info.direction == "none":
        return False
    return value != (high if info.direction == "higher" else low)


def append_cases(target: Path, cases: Sequence[DatasetCase]) -> int:
    """Add cases to a JSONL dataset, all or none, in one step; returns how many it holds then."""
    # A dataset behind a link is changed where it lies; a rename would put a file in the link's place.
    file = target.resolve()
    try:
        with _replacing(file) as unfinished:
            earlier = load_dataset(file) if file.exists() else []
            taken = {case.id for case in earlier}
            for case in cases:
                if case.id in taken:
                    raise InputFailure(f"{target} has a case {case.id!r} already: --as gives this one another id")
            content = file.read_bytes() if file.exists() else b""
            if content and not content.endswith(b"\n"):
                content += b"\n"
            unfinished.write_bytes(content + b"".join(_line(case) + b"\n" for case in cases))
    except DatasetError as error:
        raise InputFailure(f"nothing was added: {error}") from None
    except OSError as error:
        raise InputFailure(f"cannot write {target}: {(error.strerror or str(error)).lower()}") from None
    return len(earlier) + len(cases)


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """A file beside another that takes its place at the end. While it is there, nobody else adds to the dataset."""
    unfinished = file.with_name(f"{file.name}.part")
    try:
        unfinished.touch(exist_ok=False)
    except FileExistsError:
        problem = f"{unfinished} is there: another 'agentunit promote' is writing, or was killed (then delete it)"
        raise InputFailure(problem) from None
    try:
        yield unfinished
        if file.exists():
            unfinished.chmod(file.stat().st_mode)
        with open(unfinished, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)


class _WithCase(msgspec.Struct):
    case: msgspec.Raw


def _line(case: DatasetCase) -> bytes:
    # The codec alone knows how unknown fields return to their places.
    return bytes(msgspec.json.decode(encode_record(Record(case)), type=_WithCase).case)
