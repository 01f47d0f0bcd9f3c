"""Files of people's labels: CSV or JSONL, to join to records by id or with the texts in them."""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Literal, NamedTuple, cast

import msgspec
from msgspec import Struct, field

from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.results import InputError, decode_json
from agentunit.datasets.tables import bounded_text
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, bounded_lines, decompressed, describe_damage
from agentunit.traces.limits import LimitExceeded, check_nodes, raised_by, read_limits

# What people said in another tool: its exported annotations as rows of a labels file.
#
# A row is told by its columns. What a model or a program said is not a label, and is left out by ``is_by_people``.

OUTCOME = "outcome"
"""The rater of labels that are recorded outcomes."""


class Annotation(NamedTuple):
    """A row of another tool: the columns of a labels file, the tool, what was annotated, and whether by a person."""

    fields: dict[str, Any]
    tool: str
    name: str | None
    is_by_people: bool


def annotation_of(row: Mapping[str, Any]) -> Annotation | None:
    """What a row of another tool says, by columns in lower case; ``None`` for a row of a plain labels file.

    >>> said = {"traceid": "t1", "name": "faithful", "value": 1, "source": "ANNOTATION", "authoruserid": "ana"}
    >>> found = annotation_of(said)
    >>> found.tool, found.name, found.fields["id"], found.fields["label"], found.fields["rater"]
    ('langfuse', 'faithful', 't1', 1, 'ana')
    """
    if "traceid" in row and "source" in row and ("value" in row or "stringvalue" in row):
        return _langfuse(row)
    if "annotator_kind" in row or "annotatorkind" in row:
        return _phoenix(row)
    if "key" in row and "run_id" in row and ("score" in row or "value" in row):
        return _langsmith(row)
    if isinstance(row.get("case"), Mapping) and "outcome" in row:
        return _outcome(row)
    return None


def _langfuse(row: Mapping[str, Any]) -> Annotation:
    word = row.get("stringvalue")
    return Annotation(
        _fields(row["traceid"], word if word not in (None, "") else row.get("value"), row, "authoruserid", "comment"),
        "langfuse",
        _text(row.get("name")),
        str(row["source"]).upper() != "EVAL",
    )


def _phoenix(row: Mapping[str, Any]) -> Annotation:
    result = _mapping(row.get("result"))
    score = result.get("score", row.get("result.score", row.get("score")))
    word = result.get("label", row.get("result.label", row.get("label")))
    said = {**row, "explanation": result.get("explanation", row.get("result.explanation", row.get("explanation")))}
    kind = row.get("annotator_kind", row.get("annotatorkind"))
    name = row.get("annotation_name", row.get("name"))
    place = row.get("trace_id") or row.get("traceid") or row.get("span_id") or row.get("spanid")
    label = score if score not in (None, "") else word
    return Annotation(
        _fields(place, label, said, "user_id", "explanation"), "phoenix", _text(name), str(kind).upper() == "HUMAN"
    )


def _langsmith(row: Mapping[str, Any]) -> Annotation:
    source = _mapping(row.get("feedback_source"))
    score = row.get("score")
    said = {**row, "user_id": source.get("user_id") or source.get("user_name")}
    return Annotation(
        _fields(row.get("trace_id") or row["run_id"], score if score not in (None, "") else row.get("value"), said,
                "user_id", "comment"),
        "langsmith",
        _text(row["key"]),
        source.get("type", "app") not in ("model", "auto_eval"),
    )  # fmt: skip


def _outcome(row: Mapping[str, Any]) -> Annotation:
    outcome = row["outcome"]
    success = outcome.get("success") if isinstance(outcome, Mapping) else None
    answer = outcome.get("output") if isinstance(outcome, Mapping) else outcome
    fields = {"id": row["case"].get("id"), "label": success, "rater": OUTCOME, "answer": answer}
    return Annotation(fields, OUTCOME, None, True)


def _fields(place: Any, label: Any, row: Mapping[str, Any], rater: str, note: str) -> dict[str, Any]:
    return {"id": place, "label": label, "rater": row.get(rater), "note": row.get(note)}


def _mapping(value: Any) -> Mapping[str, Any]:
    """An object, also where a CSV file holds it as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = decode_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return None if value in (None, "") else str(value)


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


class LabelsError(ValueError):
    """A labels file that cannot be used at all; the message names it and says why."""


class Label(NamedTuple):
    """What people said of one case. Cases of one ``group`` (a source document, a user) are not independent."""

    value: float
    group: Hashable | None = None


class LabelRow(NamedTuple):
    """One row of a labels file. ``word`` is the label as it stands there, when it is a word."""

    line: int
    fields: dict[str, Any]
    number: float
    word: str | None


class LabelFile(Struct):
    """The rows of a labels file that carry a label, and what could not be read.

    Of the annotations of another ``tool`` those that a program made, or that have another name, are counted only.
    """

    path: str
    columns: list[str]
    rows: list[LabelRow]
    errors: list[InputError]
    n_unlabeled: int = 0
    n_not_by_people: int = 0
    n_other_names: int = 0
    other_names: set[str] = field(default_factory=set)
    tool: str | None = None

    def refuse(self, line: int | None, reason: str) -> None:
        """Keep a row's fault; the rest of the file still counts."""
        self.errors.append(InputError(self.path, line, reason))


def read_label_file(path: str, label_column: str = "label", *, annotation: str | None = None) -> LabelFile:
    """The labels of a CSV or JSONL file, plain or compressed; a file without the label column is refused.

    The file may hold annotations of another tool, of which those called ``annotation`` are read, or records whose
    outcomes say whether they succeeded.
    """
    labels = LabelFile(path, [], [], [])
    column = _tidy(label_column)
    try:
        with open(path, "rb") as raw:
            _collect(decompressed(raw), labels, column, annotation)
    except UnicodeDecodeError as error:
        raise LabelsError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except BROKEN_STREAM as error:
        raise LabelsError(f"{path}: {describe_damage(error, '')}") from None
    except (OSError, ZstandardMissing) as error:
        raise LabelsError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if column not in labels.columns and not labels.errors and labels.tool is None:
        raise LabelsError(f"{path}: {_lacks(labels, f'no column {label_column!r} (--label-column names another)')}")
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
            labels.refuse(row.line, f"label {row.word or f'{row.number:g}'!r} is mixed with {kinds}; use one kind")
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
        raise LabelsError(f"{labels.path}: {_lacks(labels, 'no column id or case_id to join the records by')}")
    found: dict[str, Label] = {}
    lines: dict[str, int] = {}
    for row in labels.rows:
        case_id = str(_first(row.fields, _IDS, default="")).strip()
        if not case_id:
            labels.refuse(row.line, "has a label but no id")
        elif case_id in found:
            labels.refuse(row.line, f"id {case_id!r:.60} is labeled on line {lines[case_id]} already")
        else:
            found[case_id] = Label(oriented[row.line], _group(row))
            lines[case_id] = row.line
    return found


def labeled_records(labels: LabelFile, oriented: Mapping[int, float]) -> Iterator[tuple[Record, Label]]:
    """The rows of a file that holds the texts itself, as records with their labels."""
    if not set(_ANSWERS) & set(labels.columns):
        lack = "no column answer, response or output, and no record files were given to join its ids with"
        raise LabelsError(f"{labels.path}: {_lacks(labels, lack)}")
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


def _collect(stream: io.BufferedIOBase, labels: LabelFile, column: str, annotation: str | None) -> None:
    # A stream that lets itself be looked into before it is read.
    start = cast(io.BufferedReader, stream).peek(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        raise LabelsError(f"{labels.path}: a JSON array; write one object per line (jq -c '.[]' does it)")
    is_jsonl = start.startswith(b"{") or labels.path.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    limit = read_limits().cases
    known: set[str] = set()
    for line, fields in _json_rows(stream, labels) if is_jsonl else _csv_rows(stream, labels):
        known = known or set(labels.columns)
        labels.columns += [name for name in fields if name not in known]
        known.update(fields)
        said = annotation_of(fields)
        if said is not None:
            labels.tool = said.tool
            if not _is_meant(said, labels, annotation):
                continue
            fields = said.fields
        raw = fields.get(column if said is None else "label")
        if raw is None or (isinstance(raw, str) and not raw.strip()):
            labels.n_unlabeled += 1
            continue
        try:
            labels.rows.append(LabelRow(line, fields, *label_number(raw)))
        except ValueError as error:
            labels.refuse(line, str(error))
        if len(labels.rows) + len(labels.errors) > limit:
            raise LimitExceeded(f"the file holds more than {limit:,.0f} labels ({raised_by('AGENTUNIT_MAX_CASES')})")


def _is_meant(said: Annotation, labels: LabelFile, annotation: str | None) -> bool:
    """Whether an annotation is a person's, and of the name that is asked for; counts those that are not."""
    if not said.is_by_people:
        labels.n_not_by_people += 1
        return False
    if annotation is not None and said.name is not None and said.name.casefold() != annotation.casefold():
        labels.n_other_names += 1
        labels.other_names.add(said.name)
        return False
    return True


def _json_rows(stream: io.BufferedIOBase, labels: LabelFile) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, written in bounded_lines(stream):
        if isinstance(written, str):
            raise LimitExceeded(f"line {line}: {written}")
        try:
            check_nodes(written)
            row = msgspec.convert(decode_json(written), dict[str, Any])
        except (LimitExceeded, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            labels.refuse(line, f"not a JSON object ({error}); write one object per line")
        else:
            yield line, {_tidy(name): value for name, value in row.items()}


def _csv_rows(stream: io.BufferedIOBase, labels: LabelFile) -> Iterator[tuple[int, dict[str, Any]]]:
    line = 1
    with bounded_text(stream) as lines:
        try:
            # Spreadsheets write semicolons where the comma is the decimal sign.
            reader = csv.reader(lines, delimiter=lines.delimiter(lambda header: max(",;\t", key=header.count)))
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


def _tidy(column: str) -> str:
    return column.strip().casefold()


def _lacks(labels: LabelFile, lack: str) -> str:
    named = ", ".join(labels.columns[:12])
    # Control characters of a hostile file do not reach the terminal.
    has = "".join(each if each.isprintable() else "·" for each in named) or "nothing"
    return f"{lack}; the file has: {has:.300}{', …' if len(labels.columns) > 12 else ''}"
