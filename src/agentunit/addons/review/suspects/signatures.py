"""What is kept of each record: what it changed, what it answered and how it went, in a few hundred bytes."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agentunit.addons.review.suspects._answers import AnswerSignature, answer_signature
from agentunit.addons.review.suspects._effects import EffectTable
from agentunit.addons.review.suspects.tasks import TASK_FIELDS, TaskKeys, task_keys
from agentunit.addons.review.suspects.tool_marks import MarkWord, ToolMarks
from agentunit.core.records import Outcome, Record
from agentunit.engine.deciding.causes import failure_of
from agentunit.engine.scoring.case_fields import other_fields
from agentunit.formulas.conversation import loops
from agentunit.formulas.text import shortened
from agentunit.metrics.inputs import Item, payload_of

MOST_STEPS = 64
"""So many tool calls of a run are compared with those of its peers to say where it leaves them."""
MOST_EFFECTS = 100
MOST_FAILED = 16
MOST_NAMES = 0xFFFF
OTHER_TOOLS = "(one of many other tools)"
MOST_QUESTIONS_KEPT = 20_000
MOST_FIELDS = 8
MOST_VALUES = 50
MOST_OTHER_FIELDS = 200
"""So many fields of records that lack the one that the user names are known."""
FEWEST_ROUNDS = 3
"""A call or a few that come again that often in a row are a loop."""

# What names a task or one try at it is no kind of case.
_NO_SLICE = frozenset((*TASK_FIELDS, "trial", "epoch", "seed", "run", "id", "trace_id", "session_id", "user_id"))
_MOST_NAMES = 100
_AND_SO_ON = "and more calls"
_ONE_LINE = 240
_LONGEST_VALUE = 60
_LONGEST_NAME = 200


class RunSignature(Struct, gc=False):
    """One run. ``effects`` and ``path`` are numbers in the tables of ``Signatures``.

    ``place`` is its number in the input, from 0, of all records that could be read, and ``source`` its file.
    ``failed`` are tools whose last call failed, with what it said, ``ever_failed`` those of which any did.
    ``error`` is what the agent raised or reported, ``loop`` the tool that begins calls that came again and again, how
    many they are and how often they came, and ``slices`` what its metadata say, as numbers.
    """

    place: int
    case_id: str
    repeat: int
    source: str
    effects: tuple[int, ...]
    path: bytes
    answer: AnswerSignature | None
    n_steps: int
    n_characters: int
    failed: tuple[tuple[int, str], ...] = ()
    error: str | None = None
    loop: tuple[int, int, int] | None = None
    slices: tuple[int, ...] = ()
    ever_failed: tuple[int, ...] = ()


class Signatures:
    """The signatures of an input, built record by record.

    ``said`` are marks of tools by their names, ``task_field`` a field that says which task a run is of.
    ``keeps_questions`` keeps the texts of questions, so that they can be compared in meaning.
    """

    def __init__(
        self,
        said: Mapping[str, MarkWord] | None = None,
        task_field: str | None = None,
        *,
        keeps_questions: bool = False,
    ) -> None:
        self._keeps_questions = keeps_questions
        self._n_questions = 0
        self.marks = ToolMarks(said)
        self.runs: list[RunSignature] = []
        self.keys: list[TaskKeys] = []
        self.task_field = task_field
        self.other_fields: dict[str, None] = {}
        self.effects = EffectTable()
        self.tools: list[str] = []
        self.slices: list[tuple[str, str]] = []
        self._tool_numbers: dict[str, int] = {}
        self._slice_numbers: dict[tuple[str, str], int] = {}
        self._values: dict[str, set[str]] = {}
        self._answers: dict[AnswerSignature, AnswerSignature] = {}
        self._n_of_case: dict[tuple[str, str], int] = {}
        self._n_read = 0

    def add(self, record: Record, *, repeat: int | None = None, source: str = "") -> None:
        """Take in one record; ``repeat`` counts from 0, by default the records of its id and ``source`` so far.

        A record that no metric could read is an ``InputProblem``.
        """
        place = self._n_read
        self._n_read += 1
        item = Item(record.case, record.trace, record.outcome)
        name = record.case.id
        if repeat is None:
            repeat = self._n_of_case.get((source, name), 0)
            self._n_of_case[source, name] = repeat + 1
        self.marks.declare(item.trace_metadata.get("tools"), "recorded")
        self.marks.declare(item.case.tools, "suite")
        calls = _Calls(self)
        n_steps = n_characters = 0
        for event in item.events:
            if event.type == "tool_call":
                n_steps += 1
                calls.add(payload_of(event))
            elif event.type == "message":
                payload = payload_of(event)
                if payload.get("role") not in ("system", "developer"):
                    content = payload.get("content")
                    n_steps += 1
                    n_characters += len(content) if isinstance(content, str) else 0
        text = item.answer
        answer = answer_signature(text) if text else None
        if answer is not None:
            answer = self._answers.setdefault(answer, answer)
        outcome = item.outcome
        error = outcome.error if isinstance(outcome, Outcome) and isinstance(outcome.error, str) else None
        keys = task_keys(record.case, self.task_field)
        if self.task_field is not None and not keys.by_field and len(self.other_fields) < MOST_OTHER_FIELDS:
            self.other_fields.update(dict.fromkeys(other_fields(record.case.metadata)))
        if keys.question is not None:
            # Only a comparison in meaning reads them again.
            kept = self._keeps_questions and self._n_questions < MOST_QUESTIONS_KEPT
            self._n_questions += kept
            keys = keys if kept else keys._replace(question=None)
        self.keys.append(keys)
        self.runs.append(
            RunSignature(
                place,
                name,
                repeat,
                source,
                tuple(sorted(calls.effects)),
                calls.path.tobytes(),
                answer,
                n_steps,
                n_characters + (len(text) if text and not n_characters else 0),
                tuple(calls.failed.items()),
                None if not error else shortened(error, _ONE_LINE),
                calls.loop(),
                self._slices_of(item.case_metadata),
                tuple(sorted(calls.ever_failed)),
            )
        )

    def tool_number(self, name: str) -> int:
        """The number of a tool in ``tools``."""
        number = self._tool_numbers.get(name)
        if number is None:
            # A number has two bytes: names beyond them have one in common, which says so.
            if len(self.tools) >= MOST_NAMES:
                name = OTHER_TOOLS
                if name in self._tool_numbers:
                    return self._tool_numbers[name]
            number = self._tool_numbers[name] = len(self.tools)
            self.tools.append(name)
        return number

    def written(self) -> frozenset[int]:
        """The numbers of the effects of tools that change something, as is known after all records were seen."""
        marks = {tool: self.marks.mark(tool).mark for tool in set(self.effects.tools())}
        return frozenset(number for number, tool in enumerate(self.effects.tools()) if marks[tool] == "write")

    def _slices_of(self, metadata: Mapping[str, Any]) -> tuple[int, ...]:
        """The short values of a case's metadata, of fields that have few of them."""
        found = []
        for field, value in metadata.items():
            if field in _NO_SLICE or not isinstance(value, (str, int)) or len(str(value)) > _LONGEST_VALUE:
                continue
            if field not in self._values and len(self._values) >= _MOST_NAMES:
                continue
            known = self._values.setdefault(field, set())
            if len(known) >= MOST_VALUES and str(value) not in known:
                continue
            known.add(str(value))
            key = (field, str(value))
            number = self._slice_numbers.setdefault(key, len(self.slices))
            if number == len(self.slices):
                self.slices.append(key)
            found.append(number)
            if len(found) >= MOST_FIELDS:
                break
        return tuple(found)


class _Calls:
    """The tool calls of one record."""

    def __init__(self, owner: Signatures) -> None:
        self._owner = owner
        self.effects: set[int] = set()
        self.path = array("H")
        self.failed: dict[int, str] = {}
        self.ever_failed: set[int] = set()
        self._sequence: list[tuple[int, int]] = []

    def add(self, payload: dict[str, Any]) -> None:
        name = payload.get("name")
        name = name[:_LONGEST_NAME] if isinstance(name, str) and name else "(unnamed)"
        owner = self._owner
        number = owner.tool_number(name)
        if len(self.path) < MOST_STEPS:
            self.path.append(number)
        arguments = payload.get("arguments")
        self._sequence.append((number, hash(str(arguments)) if arguments else 0))
        said = failure_of(payload)
        if said is not None:
            self.failed.pop(number, None)
            if len(self.failed) >= MOST_FAILED:
                self.failed.pop(next(iter(self.failed)))
            self.failed[number] = shortened(said, _ONE_LINE)
            if len(self.ever_failed) < MOST_FAILED:
                self.ever_failed.add(number)
            return
        self.failed.pop(number, None)
        owner.marks.add_call(name, payload.get("result"))
        if owner.marks.may_write(name) and len(self.effects) < 2 * MOST_EFFECTS:
            # Of very many changes the tools are known, so that nothing wrong is said about what was not called.
            self.effects.add(owner.effects.add(name, arguments if len(self.effects) < MOST_EFFECTS else _AND_SO_ON))

    def loop(self) -> tuple[int, int, int] | None:
        """The longest stretch of calls that come again and again, arguments and all: its first tool, calls, rounds."""
        if len(self._sequence) < FEWEST_ROUNDS:
            return None
        found = [each for each in loops(self._sequence) if each.rounds >= FEWEST_ROUNDS]
        longest = max(found, key=lambda each: each.n_wasted, default=None)
        return None if longest is None else (self._sequence[longest.start][0], longest.period, longest.rounds)
