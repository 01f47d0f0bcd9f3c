"""From the JSON values of a file to records: one value, one record or one reason.

What a row says beside its conversation (id, question, expected answer) is read here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from agentunit.addons.formats.chats.loose_values import as_dict, as_name, text_of
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.core.results import InputError, decode_json
from agentunit.traces.formats_base import Opening, Source, TraceFormat, cannot_be_read
from agentunit.traces.json_files.stream import JsonRow, file_rows
from agentunit.traces.spans import ReadingNotes


class NoConversation(ValueError):
    """A value that holds no conversation of the format; the message is the reason."""


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


class RowContext(NamedTuple):
    """What a reader of rows may use beside the row.

    ``ids`` are unique within the file, ``fallback_id`` is for a conversation that names none, ``around`` is what the
    object around the row said before it.
    """

    ids: CaseIds
    notes: ReadingNotes
    fallback_id: str
    around: dict[str, Any]


def chat_format(
    name: str,
    summary: str,
    matches: Callable[[Opening], bool],
    record: Callable[[Any, RowContext], Record],
    *,
    rows: Callable[[Source], Iterator[JsonRow | InputError]] = file_rows,
    is_part: Callable[[Any], bool] = lambda row: False,
    session_of: Callable[[Any], str | None] = lambda row: None,
) -> TraceFormat:
    """A format of which each row is one conversation: ``record`` makes the record of a decoded row.

    Rows that are only a part of one (``is_part``: a bare message) are one conversation together, as a list: those that
    name the same session, and after each the rows that name none.
    What cannot be read is reported in its place.
    """

    def read(source: Source, notes: ReadingNotes) -> Iterator[Record | InputError]:
        context = RowContext(CaseIds(), notes, PurePath(source.name).name.split(".")[0] or "conversation", {})
        parts: dict[str, list[Any]] = {}
        session = ""

        def build(row: JsonRow) -> Record | None:
            nonlocal parts, session
            value = decode_json(row.data)
            if is_part(value):
                named = session_of(value)
                if named is not None and not session and "" in parts:
                    parts = {named: parts.pop("")}  # rows before the first that names a session belong to it
                session = named or session
                parts.setdefault(session, []).append(value)
                return None
            return record(value, context._replace(around=row.around))

        for row in rows(source):
            made = row if isinstance(row, InputError) else _attempt(source, row, partial(build, row), notes)
            if made is not None:
                yield made
        for each in parts.values():
            if (made := _attempt(source, JsonRow(b"", None, {}), partial(record, each, context), notes)) is not None:
                yield made

    return TraceFormat(name, summary, matches, read)


def _attempt(
    source: Source, row: JsonRow, make: Callable[[], Record | None], notes: ReadingNotes
) -> Record | InputError | None:
    """The record, which names the fields of it that no reader understood; or why there is none."""
    whole, notes.not_understood = notes.not_understood, Counter()
    try:
        made = make()
        if made is not None and notes.not_understood:
            made.trace.metadata["not_understood"] = dict(notes.not_understood)
        return made
    except NoConversation as error:
        reason = str(error)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        reason = f"not valid JSON: {error}"
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # one odd row must not cost the others
        reason = cannot_be_read(error)
    finally:
        own, notes.not_understood = notes.not_understood, whole
        notes.count_fields(own.elements())
    return InputError(source.name, row.line, f"{row.name}: {reason}" if row.name else reason)


def listed_in(row: Any, key: str, whose: str) -> tuple[dict[str, Any], list[Any]]:
    """A row, and the list that it holds under ``key``; ``whose`` says what the row should be."""
    members = as_dict(row)
    listed = members.get(key)
    if not isinstance(listed, list):
        raise NoConversation(f"{whose} needs a list of {key!r}; received {listed!r:.60}")
    return members, listed


_ID_KEYS = (
    "instance_id", "question_ID", "question_id", "case_id", "run", "task_id", "conversation_id", "session_id",
    "thread_id", "chat_id", "custom_id", "id", "uuid",
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

    def case(self, context: RowContext, asked: str | None, fallback_id: str | None = None) -> DatasetCase:
        """The case: the question stated, else the first thing asked; the id stated, else the fallback."""
        return DatasetCase(
            context.ids.unique("/".join(self.names) or fallback_id or context.fallback_id),
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
