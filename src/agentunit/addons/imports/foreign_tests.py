"""The tests people already have, as cases: what a file of another tool holds, and what becomes of it here."""

from __future__ import annotations

import io
import itertools
import os
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from agentunit.core.case import DatasetCase
from agentunit.core.codec import why_not_json
from agentunit.core.results import decode_json
from agentunit.datasets.readers import load_dataset
from agentunit.datasets.row_fields import LISTS, MERGED, RECORDED, UNMAPPED, RowFormat, as_text, mapped_fields
from agentunit.datasets.rows import SPELLINGS, DatasetError, RowError, listed
from agentunit.datasets.structured import YamlProblem, plain_yaml
from agentunit.datasets.tables import as_data, separated_rows
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, bounded_lines, decompressed, read_whole
from agentunit.traces.limits import LimitExceeded, check_nodes, raised_by, read_limits

# Datasets of other tools, row by row: which field is what, as tables.

_LETTERS = string.ascii_uppercase
_CASE_NAMES = frozenset(["metadata", *itertools.chain.from_iterable(SPELLINGS.values())])


def _marks(*marks: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(mark.split()) for mark in marks)


def _as_metadata(names: str) -> dict[str, str]:
    return {name: f"metadata.{name}" for name in names.split()}


ROW_FORMATS = (
    RowFormat(
        "RAGAS",
        _marks("user_input"),
        {
            "user_input": "query",
            "reference": "expected_output",
            "reference_contexts": "context",
            "retrieved_contexts": "context",
            "response": RECORDED,
            "reference_tool_calls": "metadata.expected_tool_calls",
            **dict.fromkeys(("rubrics", "reference_topics"), UNMAPPED),
            **_as_metadata("persona_name query_style query_length synthesizer_name"),
        },
        grader_fields=("context",),
    ),
    RowFormat(
        "LangSmith",
        _marks("inputs outputs", "inputs dataset_id"),
        {
            "id": "id",
            "inputs": "query",
            "outputs": "expected_output",
            "metadata": MERGED,
            "split": "metadata.split",
            "attachments": UNMAPPED,
        },
    ),
    RowFormat(
        "Langfuse",
        _marks("input expectedOutput", "input datasetId"),
        {
            "id": "id",
            "input": "query",
            "expectedOutput": "expected_output",
            "metadata": MERGED,
            "mediaReferences": UNMAPPED,
        },
    ),
    RowFormat(
        "OpenAI evals", _marks("input ideal"), {"input": "query", "ideal": "expected_output", "metadata": MERGED}
    ),
    RowFormat(
        "Inspect",
        _marks("input target"),
        {
            "id": "id",
            "input": "query",
            "target": "expected_output",
            "choices": "choices",
            "metadata": MERGED,
            **dict.fromkeys(("files", "setup", "sandbox"), UNMAPPED),
        },
    ),
    RowFormat(
        "DeepEval",
        _marks("input expected_output", "input actual_output", "scenario expected_outcome"),
        {
            "turns": "query",
            "input": "query",
            "scenario": "query",
            "expected_output": "expected_output",
            "expected_outcome": "expected_output",
            "context": "context",
            "retrieval_context": "context",
            "actual_output": RECORDED,
            "expected_tools": "metadata.expected_tool_calls",
            "additional_metadata": MERGED,
            "custom_column_key_values": MERGED,
            **_as_metadata("name source_file user_description"),
            "expectations": UNMAPPED,
        },
        grader_fields=("context",),
        passages_between="|",
    ),
)


def case_of_row(
    row: Mapping[str, Any], row_format: RowFormat, kept: Counter[str], unmapped: Counter[str]
) -> dict[str, Any]:
    """A row as the fields of a case. What has no place among them keeps its name, and no agent receives it."""
    case, rest = mapped_fields(row, row_format)
    for name in rest:
        (unmapped if row_format.fields.get(name) == UNMAPPED else kept)[name] += 1
    if "choices" in case:
        _offer(case)
    # Names that a case has itself would be read as such.
    for name, value in rest.items():
        case[name if name not in _CASE_NAMES else f"{name} ({row_format.tool})"] = value
    return case


def _offer(case: dict[str, Any]) -> None:
    """Choices are part of the question, and a letter that names one is as good as its text."""
    given = case.pop("choices")
    choices = [as_text(each) for each in (given if isinstance(given, list) else [given])]
    case["metadata"]["choices"] = choices
    offered = [f"{letter}) {choice}" for letter, choice in zip(_LETTERS, choices, strict=False)]
    case["query"] = "\n".join([case.get("query") or "", *offered])
    target = case.get("expected_output")
    if isinstance(target, str) and len(target) == 1 and target in _LETTERS[: len(choices)]:
        case["expected_output"] = [target, choices[_LETTERS.index(target)]]


CODE = (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".py", ".rb", ".sh")


@dataclass
class ForeignSuite:
    """What was read from a file of another tool.

    ``became`` counts, by name, what turned into a metric (``gated`` when a gate decides by it); ``unmapped`` counts
    what did not, with the reason; ``kept`` counts fields that stay with the cases although nothing reads them;
    ``recorded`` are the answers among them, which ``agentunit score`` reads.
    """

    tool: str
    cases: list[DatasetCase] = field(default_factory=list)
    metrics: list[Any] = field(default_factory=list)
    gates: list[str] = field(default_factory=list)
    grader_fields: list[str] = field(default_factory=list)
    became: Counter[tuple[str, str]] = field(default_factory=Counter)
    unmapped: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    asks_judge: bool = False
    recorded: Counter[str] = field(default_factory=Counter)


def read_foreign(path: str | os.PathLike[str]) -> ForeignSuite:
    """The cases of a promptfoo, DeepEval, RAGAS, LangSmith, Langfuse, Inspect or OpenAI evals file.

    Nothing in the file is run, and no other file is read but those beside it that a promptfoo configuration names.
    What is no such file, or holds a case that cannot be used, raises ``DatasetError``.
    """
    file = Path(path)
    try:
        return _read(read_document(file), file)
    except RecursionError:
        raise DatasetError(f"{file}: its values are nested too deeply") from None
    except RowError as error:
        raise DatasetError(f"{file}: {error}") from None


def _read(content: Any, file: Path) -> ForeignSuite:
    if _is_promptfoo(content):
        from agentunit.addons.imports._foreign_promptfoo import read_promptfoo

        return read_promptfoo(content, file)
    rows = _rows(content)
    for row_format in ROW_FORMATS:
        if rows and row_format.knows(rows[0]):
            return _read_rows(rows, row_format, file)
    has = f"it has the fields {listed(rows[0])}" if rows else "no list of objects was found in it"
    if rows and {"query", "question"} & rows[0].keys():
        has += "; a dataset of AgentUnit's own needs no import: name it in a suite"
        has += "; recorded answers need none either: 'agentunit score FILE'"
    raise DatasetError(
        f"{file}: neither an exported run nor tests of promptfoo, {', '.join(each.tool for each in ROW_FORMATS)}; {has}"
    )


def read_document(file: Path) -> Any:
    """A JSON, JSONL, YAML, CSV or TSV file as plain data; a file that is code is refused, never run."""
    name = file.name.lower().removesuffix(".gz").removesuffix(".zst")
    suffix = Path(name).suffix
    if suffix in CODE:
        raise DatasetError(f"{file}: is code, which is never run here; export its tests as YAML, JSON or CSV")
    try:
        with open(file, "rb") as raw:
            stream = decompressed(raw)
            if suffix in (".csv", ".tsv"):
                return _bounded(_table(stream, "\t" if suffix == ".tsv" else None))
            if suffix in (".jsonl", ".ndjson"):
                return _bounded(_line(number, line) for number, line in bounded_lines(stream))
            text = read_whole(stream)
    except (OSError, UnicodeError, ZstandardMissing, LimitExceeded, ValueError, *BROKEN_STREAM) as error:
        raise DatasetError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    try:
        if suffix in (".yaml", ".yml"):
            return plain_yaml(text)
        check_nodes(text)
        return decode_json(text.removeprefix(b"\xef\xbb\xbf"))
    except (YamlProblem, msgspec.DecodeError, UnicodeError, RecursionError, LimitExceeded) as error:
        raise DatasetError(f"{file}: {why_not_json(error)}") from None


def _bounded(rows: Iterable[Any]) -> list[Any]:
    most = read_limits().cases
    found = list(rows if most == inf else islice(rows, int(most) + 1))
    if len(found) > most:
        raise LimitExceeded(f"it holds more than {most:,.0f} rows ({raised_by('AGENTUNIT_MAX_CASES')})")
    return found


def _table(stream: io.BufferedIOBase, delimiter: str | None) -> Iterator[Mapping[str, Any]]:
    header: list[str] | None = None
    for number, cells in separated_rows(stream, delimiter):
        if isinstance(cells, RowError):
            raise ValueError(f"line {number}: {cells}")
        if header is None:
            header = cells
            continue
        if any(cells[len(header) :]):
            raise ValueError(f"line {number}: the row has more cells than the header")
        yield dict(zip_longest(header, cells[: len(header)]))


def _line(number: int, line: bytes | str) -> Any:
    if isinstance(line, str):
        raise LimitExceeded(f"line {number}: {line}")
    try:
        check_nodes(line)
        return decode_json(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"line {number}: not JSON ({why_not_json(error)})") from None


def _is_promptfoo(content: Any) -> bool:
    if isinstance(content, Mapping):
        says = {"tests", "scenarios", "defaultTest", "redteam"} & content.keys()
        return bool(says and {"prompts", "providers", "targets"} & content.keys()) or (
            "prompts" in content and "providers" in content
        )
    first = content[0] if isinstance(content, list) and content else None
    if not isinstance(first, Mapping):
        return False
    return isinstance(first.get("vars"), Mapping) or any(str(name).startswith("__expected") for name in first)


def _rows(content: Any) -> list[Mapping[str, Any]]:
    """The list of objects in a document: the document itself, or the list that it holds under a usual name."""
    if isinstance(content, Mapping):
        content = next((content[name] for name in LISTS if isinstance(content.get(name), list)), [])
    return content if isinstance(content, list) and all(isinstance(each, Mapping) for each in content) else []


def _read_rows(rows: list[Mapping[str, Any]], row_format: RowFormat, file: Path) -> ForeignSuite:
    suite = ForeignSuite(row_format.tool, grader_fields=list(row_format.grader_fields))
    from_cells = file.name.lower().removesuffix(".gz").removesuffix(".zst").endswith((".csv", ".tsv"))
    cases: list[dict[str, Any]] = []
    for row in rows:
        fields = {str(name): as_data(value) if from_cells else value for name, value in row.items()}
        if str(fields.get("status", "")).upper() == "ARCHIVED":
            suite.unmapped["archived item"] += 1
            continue
        cases.append(case_of_row(fields, row_format, suite.kept, suite.unmapped))
    suite.cases = load_cases(cases, file)
    answers = {name for name, place in row_format.fields.items() if place == RECORDED}
    suite.recorded = Counter({name: n for name, n in suite.kept.items() if name in answers})
    for metric, source, holds in (
        ("answer_correctness", "expected outputs", lambda case: case.expected_output is not None),
        ("faithfulness", "contexts", lambda case: bool(case.context)),
        ("tool_trajectory", "expected tool calls", lambda case: "expected_tool_calls" in case.metadata),
    ):
        n_cases = sum(map(holds, suite.cases))
        if n_cases:
            suite.metrics.append(metric)
            suite.became[source, metric] += n_cases
    suite.metrics += ["response_time"]
    if not any(case.context for case in suite.cases):
        suite.grader_fields = []
    return suite


def load_cases(cases: list[dict[str, Any]], file: Path) -> list[DatasetCase]:
    """Cases that obey the rules of a dataset; what is wrong with one is said with the file's name."""
    try:
        return load_dataset(cases)
    except DatasetError as error:
        raise DatasetError(f"{file}: {str(error).removeprefix('dataset, ').removeprefix('dataset: ')}") from None
