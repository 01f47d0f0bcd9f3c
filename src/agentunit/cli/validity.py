"""``agentunit validity``: how well metrics agree with your own labels."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Literal, NamedTuple

import click
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from agentunit.cli.main import EXIT_CANNOT_TELL, EXIT_ERRORS, EXIT_OK
from agentunit.cli.options import InputFailure, metrics_from
from agentunit.core.case import DatasetCase
from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.core.results import InputError, Unscored, encode_json
from agentunit.engine.validity import Agreement, Label, LabelJoin, LabelledScores, score_labelled
from agentunit.metrics.base import MetricInfo
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, decompressed
from agentunit.traces.native import STDIN, read_records

_IDS = ("id", "case_id")
_QUERIES = ("query", "question")
_ANSWERS = ("answer", "response", "output")
_EXPECTED = ("expected", "expected_output")

# True, yes and 1 mean what --label-means says; the words of the second pair say it themselves.
_PLAIN_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_SPEAKING_WORDS = {
    "pass": 1.0, "passed": 1.0, "good": 1.0, "correct": 1.0,
    "fail": 0.0, "failed": 0.0, "bad": 0.0, "incorrect": 0.0,
}  # fmt: skip
_LARGEST_CELL = 1 << 30
_SHOWN = 10


class LabelRow(NamedTuple):
    """One row of a labels file. ``word`` is the label as it stands there, when it is a word."""

    line: int
    fields: dict[str, Any]
    number: float
    word: str | None


class LabelFile(Struct):
    """The rows of a labels file that carry a label, and what could not be read."""

    path: str
    columns: list[str]
    rows: list[LabelRow]
    errors: list[InputError]
    n_unlabelled: int = 0

    def refuse(self, line: int | None, reason: str) -> None:
        """Keep a row's fault; the rest of the file still counts."""
        self.errors.append(InputError(self.path, line, reason))


class Report(Struct):
    """What ``agentunit validity --json`` prints."""

    labels: str
    n_labels: int
    agreements: list[Agreement]
    unscored: list[Unscored]
    not_joined: list[str]
    input_errors: list[InputError]
    n_score_errors: int
    v: int = 1

    @property
    def exit_code(self) -> int:
        """3 when something could not be read or scored, 4 when no metric could be judged at all."""
        if self.input_errors or self.n_score_errors:
            return EXIT_ERRORS
        return EXIT_OK if self.told else EXIT_CANNOT_TELL

    @property
    def told(self) -> bool:
        """Whether the labels say something about any metric."""
        return any(row.verdict != "cannot tell" for row in self.agreements)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("records", nargs=-1, metavar="[RECORDS]…")
@click.option(
    "--labels", "labels_path", required=True, metavar="FILE", help="Your labels: CSV or JSONL, one row a case."
)
@click.option(
    "-m",
    "--metrics",
    "names",
    multiple=True,
    metavar="NAMES",
    help="Metrics, separated by commas. Default: the standard set.",
)
@click.option("--label-column", default="label", show_default=True, help="The column that holds the label.")
@click.option(
    "--label-means",
    type=click.Choice(["good", "bad"]),
    default="good",
    show_default=True,
    help="What true, yes, 1 or a high number stands for. Pass, good and correct always mean good.",
)
@click.option(
    "--threshold", type=float, help="A score at least this good counts as good.  [default: 0.5, for scores of 0 to 1]"
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON instead of a table.")
@click.pass_context
def validity(
    context: click.Context,
    records: tuple[str, ...],
    labels_path: str,
    names: tuple[str, ...],
    label_column: str,
    label_means: Literal["good", "bad"],
    threshold: float | None,
    as_json: bool,
) -> None:
    """How well do metrics agree with your own labels?

    \b
    agentunit validity runs.jsonl --labels mine.csv --metrics faithfulness,answer_correctness
    agentunit validity --labels answers.csv --label-column hallucinated --label-means bad

    With RECORDS, the labels file needs the columns id (or case_id) and label; rows are joined to records by case id.
    Without, it holds the texts too: query, context (a text, or a JSON list of texts), answer, expected, label, and
    optionally group (cases of one document or user, which are not independent).

    Labels are true/false, yes/no, 1/0, pass/fail, good/bad, correct/incorrect, or numbers as grades. The verdict
    follows the 95 % interval, not the figure in its middle. Exit codes: 0 told, 2 usage, 3 something could not be
    read (the rest still counts), 4 the labels cannot tell.
    """
    if threshold is not None and not isfinite(threshold):
        raise click.BadParameter(f"must be a finite number; received {threshold}", param_hint="--threshold")
    metrics = metrics_from(names)
    _refuse_missing([*records, labels_path])
    labels = read_label_file(labels_path, label_column)
    report, scored = judge(labels, records, metrics, label_means, threshold)
    if as_json:
        click.echo(encode_json(report).decode())
    else:
        print_report(report, scored.infos, Console())
    if report.exit_code == EXIT_ERRORS:
        unreadable, failed = len(report.input_errors), report.n_score_errors
        click.echo(f"errors: {unreadable + failed} ({unreadable} unreadable, {failed} failed scores)", err=True)
    context.exit(report.exit_code)


def judge(
    labels: LabelFile,
    records: Sequence[str],
    metrics: Any,
    label_means: Literal["good", "bad"] = "good",
    threshold: float | None = None,
) -> tuple[Report, LabelledScores]:
    """Join, score and measure; what could not be used is in the report."""
    oriented = orient_labels(labels, label_means)
    not_joined = [_count(labels.n_unlabelled, "row", "without a label")] if labels.n_unlabelled else []
    if records:
        join = LabelJoin(read_records(*records), labels_by_id(labels, oriented))
        scored = score_labelled(join, metrics)
        not_joined += _unmatched(join)
    else:
        scored = score_labelled(labelled_records(labels, oriented), metrics)
    report = Report(
        labels=labels.path,
        n_labels=len(oriented),
        agreements=scored.agreements(threshold),
        unscored=scored.summary.unscored,
        not_joined=not_joined,
        input_errors=[*labels.errors, *scored.summary.input_errors],
        n_score_errors=scored.summary.n_score_errors,
    )
    return report, scored


def read_label_file(path: str, label_column: str = "label") -> LabelFile:
    """The labels of a CSV or JSONL file, plain or compressed; a file without the label column is refused."""
    text = _text_of(path)
    if text.lstrip().startswith("["):
        raise InputFailure(f"{path}: a JSON array; write one object a line (jq -c '.[]' does it)")
    labels = LabelFile(path, [], [], [])
    is_jsonl = text.lstrip().startswith("{") or path.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    column = _tidy(label_column)
    for line, fields in _json_rows(text, labels) if is_jsonl else _csv_rows(text, labels):
        labels.columns += [name for name in fields if name not in labels.columns]
        raw = fields.get(column)
        if raw is None or (isinstance(raw, str) and not raw.strip()):
            labels.n_unlabelled += 1
            continue
        try:
            labels.rows.append(LabelRow(line, fields, *label_number(raw)))
        except ValueError as error:
            labels.refuse(line, str(error))
    if column not in labels.columns and not labels.errors:
        raise InputFailure(f"{path}: {_lacks(labels, f'no column {label_column!r} (--label-column names another)')}")
    return labels


def label_number(raw: Any) -> tuple[float, str | None]:
    """A label as a number, and the word it was, if it was one.

    >>> label_number("Yes"), label_number("0.5"), label_number(True)
    ((1.0, 'yes'), (0.5, None), (1.0, 'true'))
    """
    word = str(raw).strip().casefold()
    for words in (_PLAIN_WORDS, _SPEAKING_WORDS):
        if word in words:
            return words[word], word
    try:
        if isinstance(raw, (str, int, float)) and isfinite(float(word)):
            return float(word), None
    except ValueError:
        pass
    known = "true/false, yes/no, 1/0, pass/fail, good/bad, correct/incorrect or a number"
    raise ValueError(f"label must be {known}; received {raw!r:.60}")


def orient_labels(labels: LabelFile, label_means: Literal["good", "bad"]) -> dict[int, float]:
    """Each row's label by its line, higher being better. Words and grades do not mix: the rarer kind is refused."""
    words = [row for row in labels.rows if row.word]
    grades = [row for row in labels.rows if row.word is None and row.number not in (0, 1)]
    if words and grades:
        fewer = grades if len(grades) <= len(words) else words
        for row in fewer:
            kinds = "words" if fewer is grades else "grades"
            labels.refuse(row.line, f"label {row.word or f'{row.number:g}'!r} stands among {kinds}; use one kind")
        refused = {row.line for row in fewer}
        labels.rows = [row for row in labels.rows if row.line not in refused]
        grades = [] if fewer is grades else grades
    if label_means == "good":
        return {row.line: row.number for row in labels.rows}
    if grades:
        return {row.line: -row.number for row in labels.rows}
    return {row.line: row.number if row.word in _SPEAKING_WORDS else 1.0 - row.number for row in labels.rows}


def labels_by_id(labels: LabelFile, oriented: Mapping[int, float]) -> dict[str, Label]:
    """The labels of a file by case id; an id that comes again is refused, the first one counts."""
    if not set(_IDS) & set(labels.columns):
        raise InputFailure(f"{labels.path}: {_lacks(labels, 'no column id or case_id to join the records by')}")
    found: dict[str, Label] = {}
    lines: dict[str, int] = {}
    for row in labels.rows:
        case_id = str(_first(row.fields, _IDS, default="")).strip()
        if not case_id:
            labels.refuse(row.line, "has a label but no id")
        elif case_id in found:
            labels.refuse(row.line, f"id {case_id!r:.60} is labelled on line {lines[case_id]} already")
        else:
            found[case_id] = Label(oriented[row.line], _group(row))
            lines[case_id] = row.line
    return found


def labelled_records(labels: LabelFile, oriented: Mapping[int, float]) -> Iterator[tuple[Record, Label]]:
    """The rows of a file that holds the texts itself, as records with their labels."""
    if not set(_ANSWERS) & set(labels.columns):
        lack = "no column answer, response or output, and no record files were given to join its ids with"
        raise InputFailure(f"{labels.path}: {_lacks(labels, lack)}")
    for row in labels.rows:
        try:
            record = _record(row)
        except ValueError as error:
            labels.refuse(row.line, str(error))
            continue
        yield record, Label(oriented[row.line], _group(row))


def _record(row: LabelRow) -> Record:
    query = _first(row.fields, _QUERIES)
    if query is not None and not isinstance(query, str):
        raise ValueError(f"query must be a text; received {query!r:.60}")
    passages = _texts(row.fields.get("context"))
    if isinstance(passages, str):
        passages = [passages] if passages.strip() else None
    if passages is not None and not (isinstance(passages, list) and all(isinstance(each, str) for each in passages)):
        raise ValueError(f"context must be a text or a list of texts; received {passages!r:.60}")
    expected = _texts(_first(row.fields, _EXPECTED))
    case_id = str(_first(row.fields, _IDS, default="")).strip() or f"line-{row.line}"
    case = DatasetCase(case_id, query, expected_output=None if expected == "" else expected, context=passages)
    return Record(case, outcome=Outcome(output=_first(row.fields, _ANSWERS)))


def _texts(cell: Any) -> Any:
    """A cell of a CSV file that is written as a JSON list of texts becomes one; anything else stays as it is."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            return msgspec.json.decode(cell, type=list[str])
        except msgspec.MsgspecError:
            return cell
    return cell


def _first(fields: Mapping[str, Any], names: Sequence[str], default: Any = None) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), default)


def _group(row: LabelRow) -> str | None:
    group = row.fields.get("group")
    return None if group is None or group == "" else str(group)


def _text_of(path: str) -> str:
    try:
        with open(path, "rb") as raw:
            return decompressed(raw).read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFailure(f"{path}: not UTF-8 text (byte {error.start})") from None
    except BROKEN_STREAM as error:
        raise InputFailure(f"{path}: the compressed file is cut off or damaged ({error})") from None
    except (OSError, ZstandardMissing) as error:
        raise InputFailure(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _json_rows(text: str, labels: LabelFile) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, written in enumerate(text.split("\n"), 1):
        if not written.strip():
            continue
        try:
            row = msgspec.json.decode(written, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            labels.refuse(line, f"not a JSON object ({error}); write one object a line")
        else:
            yield line, {_tidy(name): value for name, value in row.items()}


def _csv_rows(text: str, labels: LabelFile) -> Iterator[tuple[int, dict[str, Any]]]:
    header = text.lstrip().partition("\n")[0]
    # Spreadsheets write semicolons where the comma is the decimal sign.
    delimiter = max(",;\t", key=header.count)
    line = 1
    previous_limit = csv.field_size_limit(_LARGEST_CELL)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        columns = [_tidy(name) for name in next((cells for cells in reader if cells), [])]
        labels.columns += columns
        line = reader.line_num + 1
        for cells in reader:
            if len(cells) == len(columns):
                yield line, dict(zip(columns, cells, strict=True))
            elif cells:
                labels.refuse(line, f"has {len(cells)} cells where the header has {len(columns)}")
            line = reader.line_num + 1
    except csv.Error as error:
        labels.refuse(line, f"not CSV from here on ({error})")
    finally:
        csv.field_size_limit(previous_limit)


def _tidy(column: str) -> str:
    return column.strip().casefold()


def _lacks(labels: LabelFile, lack: str) -> str:
    has = _printable(", ".join(labels.columns[:12])) or "nothing"
    return f"{lack}; the file has: {has:.300}{', …' if len(labels.columns) > 12 else ''}"


def _printable(line: str) -> str:
    """Control characters of a hostile file do not reach the terminal."""
    return "".join(character if character.isprintable() else "·" for character in line)


def _refuse_missing(paths: Sequence[str]) -> None:
    for path in paths:
        if path != STDIN and not os.path.isfile(path):
            raise InputFailure(f"{path}: {'is not a file' if os.path.exists(path) else 'no such file'}")


def _unmatched(join: LabelJoin) -> list[str]:
    missing = join.labels_without_record
    named = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
    repeated = "with the id of an earlier one; a label speaks of one answer, so the first is taken"
    lines = {
        _count(len(missing), "label", f"without a record ({named})"): len(missing),
        _count(join.n_records_without_label, "record", "without a label"): join.n_records_without_label,
        _count(join.n_repeated_records, "record", repeated): join.n_repeated_records,
    }
    return [line for line, count in lines.items() if count]


def _count(count: int, noun: str, what: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'} {what}"


def print_report(report: Report, infos: Mapping[str, MetricInfo], console: Console) -> None:
    """The table, what the labels cannot tell, what was left out, and what could not be read."""
    if report.agreements:
        console.print(_table(report.agreements, infos))
    lists = {
        "No figure": [f"{row.metric} ({row.backend}): {row.reason}" for row in report.agreements if row.reason],
        "Not joined": report.not_joined,
        "Not scored": [f"{entry.metric}: {entry.n_cases} × {entry.reason}" for entry in report.unscored],
        "Errors": [str(error) for error in report.input_errors],
    }
    for heading, lines in lists.items():
        if lines:
            console.print(f"\n[bold]{heading}[/bold]")
        for line in lines[:_SHOWN]:
            console.print(f"  {escape(_printable(line))}", highlight=False, soft_wrap=True)
        if len(lines) > _SHOWN:
            console.print(f"  … and {len(lines) - _SHOWN} more (--json lists them)", highlight=False)
    if not report.told:
        counted = _count(report.n_labels, "label", "read")
        console.print(f"\nThe data cannot tell: {counted}, no metric could be judged by them.", highlight=False)
    else:
        first = report.agreements[0].metric
        console.print(f"next: agentunit metrics {escape(first)}   says what it was measured on", style="bold")


def _table(rows: Sequence[Agreement], infos: Mapping[str, MetricInfo]) -> Table:
    statistics = sorted({row.statistic for row in rows})
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("metric", "backend", "n", f"{'/'.join(statistics)}, 95 %", "balanced acc.", "verdict"):
        numeric = heading in ("n", "balanced acc.")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=heading == "metric")
    colours = {"strong": "green", "useful": "green", "weak": "yellow"}
    for row in rows:
        better = {"higher": " ↑", "lower": " ↓", "none": ""}[infos[row.metric].direction]
        figure = "–" if row.value is None else f"{row.value:.2f}"
        if row.low is not None and row.high is not None:
            figure += f" [{row.low:.2f}, {row.high:.2f}]"
        if len(statistics) > 1:
            figure = f"{row.statistic} {figure}"
        at = "–" if row.balanced_accuracy is None else f"{row.balanced_accuracy:.2f} at {row.threshold:g}"
        verdict = Text(row.verdict, style=colours.get(row.verdict, "red"))
        table.add_row(Text(row.metric + better), Text(row.backend), f"{row.n:,}", Text(figure), at, verdict)
    return table
