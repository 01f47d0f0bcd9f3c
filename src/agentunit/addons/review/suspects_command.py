"""``agentunit score --suspects``: which runs went wrong, without labels, by consensus with runs of the same task."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from difflib import get_close_matches
from functools import partial
from itertools import islice
from typing import Any

import click
from msgspec import structs

from agentunit.addons.review._suspects_console import masked_report, print_suspects, rows_shown, suspect_groups
from agentunit.addons.review.suspects.ranking import Suspect, SuspectReport, rank_runs
from agentunit.addons.review.suspects.signatures import Signatures
from agentunit.addons.review.suspects.suspect_evidence import SuspectEvidence, in_order
from agentunit.addons.review.suspects.tasks import groups_alike
from agentunit.backends.asking import MARK, Asking, JudgeFailed, JudgeService, UnreadableReply, fenced, field_of
from agentunit.backends.quality import BACKEND_VARIABLE, LEXICAL, load_backend, missing_local_model
from agentunit.backends.services import configured, why_not_configured
from agentunit.cli.judge_options import JudgeChoice
from agentunit.cli.options import InputFailure, end_signals_interrupt, open_store
from agentunit.cli.outputs import open_for_writing
from agentunit.cli.score_options import ScoreOptions
from agentunit.cli.score_output import list_error
from agentunit.cli.sending_notice import ask_before_sending
from agentunit.cli.streams import remember_exit_code
from agentunit.cli.trace_inputs import names_run, refuse_missing, refuse_overwriting_inputs, trace_files_from
from agentunit.core.codec import RecordError
from agentunit.core.records import Record
from agentunit.core.results import InputError, RunFinding, encode_json
from agentunit.engine.deciding.causes import A_STATEMENT, sentence_kind
from agentunit.engine.deciding.decision import decide_ranking
from agentunit.formulas.text import shortened
from agentunit.metrics.base import Metric
from agentunit.metrics.inputs import InputProblem, Item
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.console import error_line
from agentunit.reports.failure_groups import GROUPS_SHOWN
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_json, printable_line, show_command
from agentunit.reports.progress import Progress
from agentunit.reports.reported_run import Mask, store_arguments
from agentunit.reports.terminal import Terminal
from agentunit.reports.trace_console import print_reading
from agentunit.store.runs import is_again
from agentunit.store.schema import StoreError
from agentunit.traces.grouping import GroupBy
from agentunit.traces.native import STDIN

# Names of causes that a judge writes, where one is named: it sees the masked evidence of the most frequent groups.

LONGEST_NAME = 80
_TASK = """\
Runs of an AI agent that failed were put into {n} groups by a program. Below is the evidence of each group. Name each \
group: at most eight words that tell an engineer what went wrong, no more than the evidence says.

Reply with JSON only, {n} names in the order of the groups: {{"mark": "...", "names": ["name of group 1", ...]}}"""


async def name_groups(evidence: Sequence[str], asking: Asking) -> list[str]:
    """One name for each group. ``JudgeFailed`` when the judge gives no usable reply."""
    task = _TASK.format(n=len(evidence))
    said = [(f"group {number}", text) for number, text in enumerate(evidence, 1)]
    schema = {
        "type": "object",
        "properties": {MARK: {"type": "string"}, "names": {"type": "array", "items": {"type": "string"}}},
        "required": [MARK, "names"],
        "additionalProperties": False,
    }

    def read(reply: dict[str, Any]) -> list[str]:
        names = field_of(reply, "names")
        if (
            not isinstance(names, list)
            or len(names) != len(evidence)
            or not all(isinstance(each, str) for each in names)
        ):
            raise UnreadableReply(f'"names" must be a list of {len(evidence)} texts')
        short = [" ".join(each.split())[:LONGEST_NAME] for each in names]
        if not all(short):
            raise UnreadableReply("every group needs a name")
        return short

    return await asking.read("group_names", task, fenced(said, task), schema, read)


def check_choice(choice: JudgeChoice) -> None:
    """A judge is asked only where it is named, and then for the names of causes alone."""
    if choice.backend not in (None, "auto", "local", LEXICAL, "judge"):
        raise click.UsageError(
            f"--backend must be judge, local or lexical with --suspects; received {choice.backend!r}"
        )
    if choice.settings and choice.backend != "judge":
        raise click.UsageError("with --suspects a judge only names causes: say so with --backend judge")
    if choice.backend == "judge" and configured() is None:
        raise click.UsageError(f"--backend judge: {why_not_configured()}")
    if choice.parameters:
        raise click.UsageError("--param does not go with --suspects: no metric is scored")


def named_by_judge(groups: list[RunFinding], choice: JudgeChoice) -> list[RunFinding]:
    """The most frequent groups with names that the judge wrote; with their own where it gives none."""
    if configured() is None:
        return groups
    judge: JudgeService = load_backend("judge")  # type: ignore[assignment]  # it does more than judge answers
    asked = groups[:GROUPS_SHOWN]
    evidence = [f"{each.n_records} runs; {each.kind}: {each.name}\nexample: {each.error}" for each in asked]
    sending = judge.estimate(
        metrics=("the names of causes",),
        fields=("masked evidence",),
        n_cases=len(asked),
        n_calls=1,
        n_characters=sum(map(len, evidence)),
    )
    ask_before_sending(sending, yes=choice.yes)
    try:
        names = judge.ask(partial(name_groups, evidence))
    except (JudgeFailed, RuntimeError) as error:
        click.echo(printable_line(f"note: the judge named no cause: {error}", 300), err=True)
        return groups
    named = [structs.replace(each, name=name) for each, name in zip(asked, names, strict=True)]
    return [*named, *groups[GROUPS_SHOWN:]]


MOST_RUNS = 10
"""So many runs are looked at: the model takes about a second for a long answer."""
CLEARLY_BELOW = 0.25
"""A sentence with a lower probability of being supported is named."""
# Sentences of an answer that nothing the agent saw supports, by the local model: evidence, never a rank.

_OWN_CHOICE = ("", "auto", "local", "local-large")
_LONGEST = 160


def local_groundedness() -> Metric | None:
    """The metric of groundedness with the local model; ``None`` where that is not installed."""
    if missing_local_model() is not None or os.environ.get(BACKEND_VARIABLE, "") not in _OWN_CHOICE:
        return None
    return resolve_metrics([{"faithfulness": {"backend": "local"}}])[0]


def unsupported(record: Record, metric: Any) -> SuspectEvidence | None:
    """The sentence of the answer that is supported least, where it clearly is not; ``None`` when there is none."""
    item = Item(record.case, record.trace, record.outcome)
    if not item.answer or not (item.tool_calls or item.context):
        return None
    try:
        result = metric.evaluate(record.case, record.trace, record.outcome)
    except InputProblem:
        return None
    claims = [each for each in result.detail.get("claims") or () if isinstance(each, dict) and "probability" in each]
    # A wish or a question needs no support: only what could be looked up is held against an answer.
    checkable = [each for each in claims if sentence_kind(str(each.get("text") or "")) != A_STATEMENT]
    worst = min(checkable, key=lambda each: each["probability"], default=None)
    if worst is None or worst["probability"] >= CLEARLY_BELOW:
        return None
    text = " ".join(str(worst.get("text") or "").split())
    said = (
        f"nothing the agent saw supports “{shortened(text, _LONGEST)}” ({worst['probability']:.2f} by the local model)"
    )
    return SuspectEvidence("not supported", said, sentence_kind(text))


_INTERRUPTED = 130
_ERRORS_SHOWN = 10
_FIELDS_NAMED = 12
_LONGEST_FIELD = 80


class SuspectInput:
    """What is ranked: files, or the records of a stored run. It can be read again, unless it is standard input."""

    def __init__(self, files: Sequence[str], store_path: str, format_name: str | None, group_by: GroupBy) -> None:
        self.files, self._store_path = files, store_path
        self._format, self._group_by = format_name, group_by
        self.run_id: str | None = None
        if names_run(files, store_path):
            with open_store(store_path, read_only=True) as store:
                try:
                    self.run_id = store.find_run(files[0]).id
                except StoreError as error:
                    raise InputFailure(f"{files[0]}: no such file, and no such run ({error})") from None
        else:
            refuse_missing(files)
        self.source = None if self.run_id else trace_files_from(files, format_name, group_by)
        self.can_read_again = STDIN not in files

    def records(self, *, again: bool = False) -> Iterator[tuple[Record | InputError, int | None, str]]:
        """Every record with its repeat, where the store says it, and its file; what cannot be read is an error."""
        if self.run_id is not None:
            with open_store(self._store_path, read_only=True) as store:
                for stored in store.records(self.run_id):
                    if not is_again(stored.repeat):
                        yield stored.record, stored.repeat, ""
            return
        source = trace_files_from(self.files, self._format, self._group_by) if again else self.source
        # Records of sessions come when all files are read.
        by_file = self._group_by == "trace"
        for each in source or ():
            yield each, None, (source.current_file or "") if by_file and source is not None else ""

    def show_command(self, run: Suspect) -> str | None:
        """The command that shows one of its runs; ``None`` where none could."""
        if not self.reference:
            return None
        repeat = run.repeat if run.n_repeats > 1 else None
        return show_command(run.source or self.reference, run.case_id, repeat=repeat, more=self.show_options)

    @property
    def show_options(self) -> list[str]:
        """What that command needs to find the store."""
        return [] if self.run_id is None else store_arguments(self._store_path)

    @property
    def reference(self) -> str:
        """What the input is called in commands; empty for what they cannot read: standard input, and sessions."""
        if self.run_id is None and (not self.can_read_again or self._group_by != "trace"):
            return ""
        return self.run_id or self.files[0]


def score_suspects(options: ScoreOptions) -> None:
    """Rank the runs of an input, print them, and leave with the exit code: 4 where no run has enough peers."""
    _refuse_with_suspects(
        metrics=options.names, by=options.by, jobs=options.jobs, engine=options.engine, resume=options.resume,
        plan=options.plan, again=options.again, expected=options.expected,
    )  # fmt: skip
    given = SuspectInput(options.files, options.store_path, options.format_name, options.group_by)
    choice, out, errors_file, as_json = options.choice, options.out, options.errors_file, options.as_json
    refuse_overwriting_inputs(given.files, out, errors_file)
    check_choice(choice)
    alike = None if choice.backend == LEXICAL else _question_groups()
    signatures = Signatures(options.tool_marks, options.task_field, keeps_questions=alike is not None)
    errors: list[InputError] = []
    n_errors = 0
    with ExitStack() as stack:
        stream = stack.enter_context(open_for_writing(errors_file)) if errors_file else None
        try:
            with end_signals_interrupt():
                for unread in _take_in(given, signatures):
                    n_errors += 1
                    errors = [*errors, unread][:_ERRORS_SHOWN]
                    list_error(unread, stream)
                    if options.strict:
                        raise InputFailure(f"{error_line(unread)} (--strict stops at the first)")
                _refuse_unknown_field(signatures)
                report = rank_runs(signatures, alike=alike, n_explained=MOST_RUNS)
                report = report if choice.backend == LEXICAL else _grounded(report, given)
        except RecordError as error:
            raise InputFailure(printable_line(str(error))) from None
        except KeyboardInterrupt:
            click.echo(f"stopped after {counted(len(signatures.runs), 'run')}; nothing was ranked", err=True)
            raise click.exceptions.Exit(_INTERRUPTED) from None
    mask = Mask(show_all=options.show_personal_data)
    decision = decide_ranking(report.n_runs, len(report.runs), n_errors, options.max_errors)
    remember_exit_code(decision.exit_code)
    groups = suspect_groups(report, given.reference, mask, given.show_options)
    if choice.backend == "judge" and groups:
        groups = named_by_judge(groups, choice)
    if out is not None:
        whole = masked_report(report, mask, None)
        with open_for_writing(out) as lines:
            for run in whole.runs:
                lines.write(encode_json({**structs.asdict(run), "next": given.show_command(run)}) + b"\n")
    shown = masked_report(report, mask, rows_shown(options.all_rows or as_json))
    first = next(iter(report.suspects or report.runs), None)
    shown_by = None if first is None else given.show_command(first)
    steps = [] if shown_by is None else [shown_by]
    if out is not None and out != STDIN:
        steps.append(f"every run's rank and evidence is in {out}")
    if given.source is not None:
        print_reading(given.source, Terminal(stderr=as_json or out == STDIN))
    if as_json:
        counts = {"n_suspects": len(report.suspects), "n_ranked": len(report.runs)}
        data = {**counts, **structs.asdict(shown), "groups": groups, "n_errors": n_errors}
        click.echo(
            printable_json({**data, "next": [] if shown_by is None else [shown_by], "exit_code": decision.exit_code})
        )
    elif report.n_runs:
        print_suspects(report, shown, groups, Terminal(stderr=out == STDIN), next_steps=steps)
    for each in errors:
        click.echo(error_line(each), err=True)
    if decision.exit_code:
        click.echo(printable_line(decision.headline), err=True)
        raise click.exceptions.Exit(decision.exit_code)


def _take_in(given: SuspectInput, signatures: Signatures) -> Iterator[InputError]:
    """Read everything once; yields what could not be read."""
    progress = Progress("runs", fraction=given.source.fraction if given.source else lambda: None)
    if given.source is not None:
        given.source.on_progress = progress.touch
    for each, repeat, source in progress.watch(given.records()):
        if isinstance(each, InputError):
            yield each
            continue
        try:
            signatures.add(each, repeat=repeat, source=source)
        except InputProblem as problem:
            yield InputError(each.case.id, None, str(problem))


def _refuse_unknown_field(signatures: Signatures) -> None:
    """A field that no record has says nothing about which runs are of one task."""
    field = signatures.task_field
    if field is None or not signatures.keys or any(each.by_field for each in signatures.keys):
        return
    known = [printable_line(each, _LONGEST_FIELD) for each in signatures.other_fields]
    # All begin with "metadata.": what follows is what can be mistyped.
    names = {each.partition(".")[2]: each for each in known}
    near = [names[each] for each in get_close_matches(field.partition(".")[2] or field, names, n=3)]
    n_more = len(known) - _FIELDS_NAMED
    listed = ", ".join([*known[:_FIELDS_NAMED], f"{n_more} more"] if n_more > 0 else known) or "no metadata"
    meant = f"did you mean {' or '.join(near)}?" if near else f"they have {listed}."
    raise click.BadParameter(
        f"none of the {len(signatures.keys):,} records has a value of {printable_line(field)}; {meant} "
        "Without --task, runs are matched by the ids of their cases and by their questions.",
        param_hint="--task",
    )


def _question_groups() -> Callable[[list[str]], list[list[int]]] | None:
    """How questions are matched in meaning; ``None`` where no encoder is installed."""
    from agentunit.backends.sentence_encoders import SHIPPED_MODEL, sentences_unready, text_similarity

    if sentences_unready() is not None:
        return None

    def alike(questions: list[str]) -> list[list[int]]:
        if sys.stderr.isatty():
            click.echo(f"comparing {len(questions):,} questions in meaning …", err=True)
        encoder = text_similarity(SHIPPED_MODEL)
        encoder.remember(questions)
        return groups_alike(questions, encoder.similarity)

    return alike


def _grounded(report: SuspectReport, given: SuspectInput) -> SuspectReport:
    """The report with what the local model says about the answers of the first suspects, where it is installed."""
    suspects = ((run.place, number) for number, run in enumerate(report.runs) if run.is_suspect)
    wanted = dict(islice(suspects, MOST_RUNS))
    metric = local_groundedness() if wanted and given.can_read_again else None
    if metric is None:
        return report
    runs = list(report.runs)
    last = max(wanted)
    records = (each for each, *_ in given.records(again=True) if not isinstance(each, InputError))
    for place, record in enumerate(Progress("runs read again").watch(records)):
        if place in wanted:
            found = unsupported(record, metric)
            if found is not None:
                run = runs[wanted[place]]
                runs[wanted[place]] = structs.replace(run, evidence=in_order((*run.evidence, found)))
        if place >= last:
            break
    return structs.replace(report, runs=runs)


def _refuse_with_suspects(**given: Any) -> None:
    """Options that say how metrics are scored do not go with a ranking that scores none."""
    for option, value in given.items():
        if value not in (None, False, (), ""):
            raise click.UsageError(f"--{option.replace('_', '-')} does not go with --suspects: no metric is scored")
