"""From the JSON values of a file to records: one value, one record or one reason.

What a row says beside its conversation (id, question, expected answer) is read here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.core.results import InputError, decode_json
from agentunit.traces.chats.values import as_dict, as_name, text_of
from agentunit.traces.formats_base import Source, cannot_be_read
from agentunit.traces.json_files.cursor import OPEN_BRACE, OPEN_BRACKET, JsonCursor, UnfitValue
from agentunit.traces.json_files.stream import read_documents


class NoConversation(ValueError):
    """A value that holds no conversation of the format; the message is the reason."""


class Row(NamedTuple):
    """One JSON value, where it stands (the line it ends on, or a name), and what the object around it said before."""

    data: bytes
    line: int | None
    around: dict[str, Any]
    name: str = ""


class CaseIds:
    """Ids made unique within a file: the second case of a name is told apart by a number.

    >>> ids = CaseIds()
    >>> ids.unique("q1"), ids.unique("q1"), ids.unique("q2")
    ('q1', 'q1 (2)', 'q2')
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def unique(self, wanted: str) -> str:
        """The id itself when it is new, else with a number."""
        name = wanted
        while name in self._seen:
            self._seen[wanted] += 1
            name = f"{wanted} ({self._seen[wanted]})"
        self._seen[name] = 1
        return name


def file_rows(source: Source, within: str | None = None) -> Iterator[Row | InputError]:
    """The values of a file; of an object with an array called ``within``, the elements of that array.

    What such an object holds before the array comes with each element. The array is never held whole, and of a file
    that was cut off the elements before the cut are there.
    """
    cursor = JsonCursor(source)
    yield from read_documents(cursor, lambda: _document_rows(cursor, within))


def _document_rows(cursor: JsonCursor, within: str | None) -> Iterator[Row | InputError]:
    first = cursor.peek()
    if first == OPEN_BRACKET and not cursor.one_a_line:
        yield from _element_rows(cursor, {})
    elif first != OPEN_BRACE or within is None:
        yield Row(cursor.value(), cursor.line, {})
    else:
        members: dict[str, bytes] = {}
        walked_in = False
        for name in cursor.members():
            if name == within and cursor.peek() == OPEN_BRACKET:
                walked_in = True
                yield from _element_rows(cursor, {key: _decoded(data) for key, data in members.items()})
            elif not walked_in:
                members[name] = cursor.value()
        if not walked_in:
            joined = b",".join(msgspec.json.encode(name) + b":" + data for name, data in members.items())
            yield Row(b"{" + joined + b"}", cursor.line, {})


def _element_rows(cursor: JsonCursor, around: dict[str, Any]) -> Iterator[Row | InputError]:
    for _ in cursor.elements():
        try:
            yield Row(cursor.value(), cursor.line, around)
        except UnfitValue as unfit:
            yield InputError(cursor.source.name, cursor.line, str(unfit))


def _decoded(data: bytes) -> Any:
    """A value beside the rows; one that is no JSON is as good as absent."""
    try:
        return decode_json(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def records_of_rows(
    source: Source,
    rows: Iterator[Row | InputError],
    build: Callable[[Any, dict[str, Any]], Record | None],
) -> Iterator[Record | InputError]:
    """Decode each row and build its record; what cannot be read is told in its place.

    ``build`` gets the decoded row and what stood around it; ``None`` from it means that the row was kept for later.
    """
    for row in rows:
        if isinstance(row, InputError):
            yield row
            continue
        try:
            record = build(decode_json(row.data), row.around)
        except NoConversation as reason:
            yield InputError(source.name, row.line, _placed(row, str(reason)))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            yield InputError(source.name, row.line, _placed(row, f"not valid JSON: {error}"))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  # one odd row must not cost the others
            yield InputError(source.name, row.line, _placed(row, cannot_be_read(error)))
        else:
            if record is not None:
                yield record


def _placed(row: Row, reason: str) -> str:
    return f"{row.name}: {reason}" if row.name else reason


_ID_KEYS = (
    "instance_id", "question_ID", "question_id", "case_id", "run", "task_id", "conversation_id", "session_id",
    "thread_id", "chat_id", "id", "uuid",
)  # fmt: skip
# The same task run again, under another setting: part of what tells one case from another.
_VARIANT_KEYS = ("condition", "trial", "epoch")
_QUESTION_KEYS = ("question", "problem_statement", "query", "prompt", "task")
_EXPECTED_KEYS = ("ground_truth", "expected_answer", "expected_output", "expected", "reference")
_SUCCESS_KEYS = ("is_correct", "correct", "success")


class RowFacts(NamedTuple):
    """What stands beside a conversation. ``success`` is the verdict of whoever made the file."""

    question: str | None
    expected: Any
    success: bool | None
    metadata: dict[str, Any]
    names: tuple[str, ...]

    def case(self, ids: CaseIds, fallback_id: str, asked: str | None) -> DatasetCase:
        """The case: the question stated, else the first thing asked; the id stated, else the fallback."""
        return DatasetCase(
            ids.unique("/".join(self.names) or fallback_id),
            self.question or asked,
            self.expected,
            metadata=self.metadata,
        )


def row_facts(row: dict[str, Any], conversation_key: str) -> RowFacts:
    """Read what a row states beside the conversation under ``conversation_key``; labels stay in the metadata.

    Two names in ``other_data`` are read as well: ``answer`` and ``correct``, as the MAST collection writes them.

    >>> facts = row_facts({"question": "Capital?", "ground_truth": "Oslo", "level": "1", "history": []}, "history")
    >>> facts.question, facts.expected, facts.metadata
    ('Capital?', 'Oslo', {'level': '1'})
    """
    other = as_dict(row.get("other_data"))
    question = next((text for key in _QUESTION_KEYS if (text := _words(row.get(key)))), None)
    expected = next((row[key] for key in _EXPECTED_KEYS if row.get(key) is not None), other.get("answer"))
    verdicts = [row.get(key) for key in _SUCCESS_KEYS] + [other.get("correct")]
    named = next((name for key in _ID_KEYS if (name := as_name(row.get(key)))), None)
    variants = [name for key in _VARIANT_KEYS if (name := as_name(row.get(key)))]
    used = {conversation_key, *_QUESTION_KEYS, *_EXPECTED_KEYS}
    return RowFacts(
        question,
        expected.strip() if isinstance(expected, str) else expected,
        next((verdict for verdict in verdicts if isinstance(verdict, bool)), None),
        {key: value for key, value in row.items() if key not in used and value is not None},
        (named, *variants) if named else (),
    )


def _words(value: Any) -> str | None:
    text = text_of(value) if isinstance(value, (str, list)) else None
    return text.strip() or None if text else None
