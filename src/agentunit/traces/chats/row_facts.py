"""What a row says beside its conversation: its id, the question, the expected answer, and everything else."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentunit.core.case import DatasetCase
from agentunit.traces.chats.content import text_of
from agentunit.traces.chats.plain_data import as_dict, as_name
from agentunit.traces.chats.rows import CaseIds

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
