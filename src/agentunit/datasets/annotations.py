"""What people said in another tool: its exported annotations as rows of a labels file.

A row is told by its columns. What a model or a program said is not a label, and is left out by ``is_by_people``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agentunit.core.results import decode_json

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
