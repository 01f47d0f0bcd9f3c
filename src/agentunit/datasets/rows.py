"""From a row to a case: the spellings that are understood, the rules, and where what is wrong stands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from agentunit.core.case import DatasetCase, origin_of, set_origin
from agentunit.core.codec import RecordError, as_record
from agentunit.core.conversation import (
    ConversationError,
    check_conversation,
    names_turns,
    names_user,
    scripted,
    user_kind,
)
from agentunit.core.results import without_lone_surrogates
from agentunit.traces.limits import LimitExceeded, raised_by, read_limits

# The first spelling that holds something is taken; the others stay what they are, unknown fields.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "id": ("id", "case_id"),
    "query": ("query", "question", "input"),
    "expected_output": ("expected_output", "expected", "answer", "reference"),
    "tools": ("tools",),
    "context": ("context",),
    "metadata": ("metadata",),
    "turns": ("turns",),
    "user": ("user",),
}
# Columns of these names may be facts of the dataset's own; then they stay what they are, unknown fields.
_OF_CONVERSATIONS = {"turns": names_turns, "user": names_user}
_MARK = "known_failure"
_SHOWN = 5


class RowError(ValueError):
    """A row that is not a case; the message is the reason."""


class BadRow(NamedTuple):
    """Where something is wrong ("line 3"; empty for a whole file), and what."""

    place: str
    reason: str


class DatasetError(ValueError):
    """A dataset that cannot be used: the first few of its faults, and how many there are.

    A dataset is never silently shortened: one bad row refuses the whole.
    """

    def __init__(self, message: str, bad_rows: Sequence[BadRow] = (), n_bad: int = 0) -> None:
        super().__init__(message)
        self.bad_rows = list(bad_rows)
        self.n_bad = n_bad


class CaseCollector:
    """The cases of a source as they are read, each with an id of its own, and the faults met on the way.

    ``unit`` is what the numbers of places count: lines, rows or items, from 1.
    """

    def __init__(self, source: str, unit: str) -> None:
        self.source = source
        self.unit = unit
        self._cases: list[DatasetCase] = []
        self._number_of_id: dict[str, int] = {}
        self._bad_rows: list[BadRow] = []
        self._n_read = 0
        self._n_bad = 0
        limits = read_limits()
        self._most_cases, self._most_bad = limits.cases, limits.bad_items

    def add(self, number: int, case: DatasetCase) -> None:
        """Take a case in; without an id it is called by its position."""
        self._n_read += 1
        if len(self._cases) >= self._most_cases:
            raise LimitExceeded(
                f"the dataset holds more than {self._most_cases:,.0f} cases ({raised_by('AGENTUNIT_MAX_CASES')})"
            )
        if not case.id.isascii():
            # Ids are keys of the store, and a lone surrogate cannot be written there.
            case = _with_id(case, without_lone_surrogates(case.id))
        unnamed = not case.id or case.id.isspace()
        if unnamed:
            if case == DatasetCase(case.id):
                self._refuse(number, "the case is empty")
                return
            # Never the caller's own object: a list that is run twice would otherwise remember its ids.
            case = _with_id(case, f"case-{self._n_read}")
        if case.turns is not None or case.user is not None:
            try:
                case = with_first_message(case)
            except ConversationError as error:
                self._refuse(number, str(error))
                return
        if case.id in self._number_of_id:
            taken = f"{shown(case.id)} is taken by {self.unit} {self._number_of_id[case.id]} already"
            self._refuse(number, f"has no id, and its position {taken}" if unnamed else f"id {taken}")
        else:
            self._number_of_id[case.id] = number
            self._cases.append(case)

    def add_fields(self, number: int, fields: Any) -> None:
        """Take in a case or record that is a mapping; what is wrong with it is kept as a fault."""
        try:
            case = case_of_fields(fields)
        except RowError as error:
            self.refuse(number, str(error))
        else:
            self.add(number, case)

    def refuse(self, number: int | None, reason: str) -> None:
        """Keep the fault of a row, or of the file as a whole."""
        self._n_read += 1
        self._refuse(number, reason)

    def _refuse(self, number: int | None, reason: str) -> None:
        self._n_bad += 1
        if number is None:
            # What is wrong with the file as a whole is said before its rows.
            self._bad_rows.insert(0, BadRow("", reason))
            del self._bad_rows[_SHOWN:]
            return
        if self._n_bad > self._most_bad:
            raise LimitExceeded(
                f"more than {self._most_bad:,.0f} {self.unit}s cannot be used ({raised_by('AGENTUNIT_MAX_BAD_ITEMS')})"
            )
        if len(self._bad_rows) < _SHOWN:
            self._bad_rows.append(BadRow(f"{self.unit} {number}", reason))

    def finish(self) -> list[DatasetCase]:
        """All cases, or the error that says what is wrong."""
        if not self._n_bad:
            return self._cases
        if self._n_bad == 1:
            (only,) = self._bad_rows
            message = f"{', '.join(filter(None, (self.source, only.place)))}: {only.reason}"
        else:
            lines = [f"{self.source}: {self._n_bad:,} {self.unit}s cannot be used"]
            lines += [f"  {row.place or self.source}: {row.reason}" for row in self._bad_rows]
            if self._n_bad > len(self._bad_rows):
                lines.append(f"  … and {self._n_bad - len(self._bad_rows):,} more")
            message = "\n".join(lines)
        raise DatasetError(message, self._bad_rows, self._n_bad)


def _with_id(case: DatasetCase, case_id: str) -> DatasetCase:
    if case.id == case_id:
        return case
    renamed = msgspec.structs.replace(case, id=case_id)
    set_origin(renamed, origin_of(case))
    return renamed


def case_of_fields(fields: Any) -> DatasetCase:
    """A case of a mapping in the shape of a case, or of a whole record. Unknown fields are kept in ``extra``.

    >>> case = case_of_fields({"question": "Capital of France?", "answer": "Paris", "mood": "curious"})
    >>> case.query, case.expected_output, case.extra
    ('Capital of France?', 'Paris', {'mood': 'curious'})
    """
    if not isinstance(fields, Mapping):
        raise RowError(f"a case must be an object with fields; received {shown(fields)}")
    if isinstance(fields.get("case"), Mapping):
        return _case_of_record(fields)
    given = pick_spellings(fields)
    used = set(given.values())
    extra = {name: value for name, value in fields.items() if name not in used}
    if extra and not given.keys() - {"id"}:
        as_user = "; user must be a mapping with persona and goal to ask by itself" if "user" in extra else ""
        near = next((each for each in map(_nearest, map(str, extra)) if each is not None), None)
        hint = f"; did you mean {near!r}?" if near is not None and not as_user else ""
        raise RowError(f"a case needs at least a query; received the fields {listed(fields)}{as_user}{hint}")
    case = checked_case({name: fields[spelling] for name, spelling in given.items()})
    if extra:
        case.extra = _with_text_keys("the names of fields", extra)
    return case


def pick_spellings(fields: Mapping[str, Any]) -> dict[str, str]:
    """Which field of a row holds what; a field that is there but empty gives way to another spelling of it.

    >>> pick_spellings({"query": None, "input": "2 + 2?", "id": 7})
    {'id': 'id', 'query': 'input'}
    """
    given: dict[str, str] = {}
    for name, spellings in SPELLINGS.items():
        present = [spelling for spelling in spellings if spelling in fields]
        is_ours = _OF_CONVERSATIONS.get(name)
        if present and (is_ours is None or is_ours(fields[name])):
            given[name] = next((each for each in present if fields[each] is not None), present[0])
    return given


def checked_case(given: Mapping[str, Any]) -> DatasetCase:
    """A case of its own fields, each of which must be of the kind that metrics and agents rely on."""
    case_id, query = given.get("id"), given.get("query")
    if isinstance(case_id, int) and not isinstance(case_id, bool):
        case_id = str(case_id)
    if not (case_id is None or isinstance(case_id, str)):
        raise RowError(f"id must be a text or a whole number; received {shown(case_id)}")
    if not (query is None or isinstance(query, str)):
        raise RowError(f"query must be a text; received {shown(query)}")
    tools, context = given.get("tools"), given.get("context")
    if isinstance(context, str):
        context = [context]
    if not (context is None or (_is_list(context) and all(isinstance(each, str) for each in context))):
        raise RowError(f"context must be a text or a list of texts; received {shown(context)}")
    if not (tools is None or _is_list(tools)):
        raise RowError(f"tools must be a list; received {shown(tools)}")
    metadata = given.get("metadata")
    if not (metadata is None or isinstance(metadata, Mapping)):
        raise RowError(f"metadata must be an object with fields; received {shown(metadata)}")
    return DatasetCase(
        case_id or "",
        query,
        given.get("expected_output"),
        None if tools is None else list(tools),
        None if context is None else list(context),
        _with_text_keys("the names in metadata", metadata or {}),
        turns=given.get("turns"),
        user=given.get("user"),
    )


def field_notes(cases: Iterable[DatasetCase], declared: Collection[str] = ()) -> list[str]:
    """What may be a slip in the fields of cases: one sentence for each field that is kept, but not read.

    ``declared`` are names of fields that the user knows to be fields of their own.

    >>> field_notes([case_of_fields({"query": "Hi", "trns": ["Hi", "Bye"]})])
    ["field 'trns' (1 case) is not read; did you mean 'turns'? (metadata holds fields of your own)"]
    """
    counts: dict[tuple[str, str], int] = {}
    for case in cases:
        for name, value in (case.extra or {}).items():
            if name not in declared and (slip := _slip(case, name, value)) is not None:
                counts[name, slip] = counts.get((name, slip), 0) + 1
        for name in case.metadata if isinstance(case.metadata, Mapping) else ():
            near = _nearest(name) if isinstance(name, str) and name not in declared else None
            # Columns of tables that are no fields become metadata. Other names are too common for fields of one's own.
            if near == _MARK or (near in ("expected_output", "context") and not getattr(case, near)):
                slip = f"is not read; did you mean {near!r}?"
                counts[f"metadata.{name}", slip] = counts.get((f"metadata.{name}", slip), 0) + 1
    return [f"field {shown(name)} ({n:,} {'case' if n == 1 else 'cases'}) {slip}" for (name, slip), n in counts.items()]


def _slip(case: DatasetCase, name: str, value: Any) -> str | None:
    if name == "user":
        what = "a plain text" if isinstance(value, str) else "data of its own"
        rule = "a function in a Python suite, or a mapping with persona and goal, does"
        return None if value is None or case.user is not None else f"is {what} and plays no conversation ({rule})"
    if name == _MARK:
        return "is not read there: it belongs into metadata"
    near = _nearest(name)
    field = next((each for each, spellings in SPELLINGS.items() if near in spellings), None)
    # What a case has is not what it lacks: "answers" beside "answer" is a field of its own.
    if near is None or field is None or getattr(case, field) or not _OF_CONVERSATIONS.get(field, bool)(value):
        return None
    return f"is not read; did you mean {near!r}? (metadata holds fields of your own)"


@lru_cache(maxsize=1024)
def _nearest(name: str) -> str | None:
    """The name of a field that another is probably meant to be; none for those that are names themselves."""
    known = [*(spelling for spellings in SPELLINGS.values() for spelling in spellings if len(spelling) > 2), _MARK]
    if name in known or len(name) < 3:
        return None
    return next(iter(get_close_matches(name.lower(), known, n=1, cutoff=0.8)), None)


def with_first_message(case: DatasetCase) -> DatasetCase:
    """A conversation that can be held, with its first message as its query; ``ConversationError`` says why not."""
    check_conversation(case.turns, case.user)
    if case.query or user_kind(case) != "script":
        return case
    begun = msgspec.structs.replace(case, query=scripted(case.turns)[0].query)
    set_origin(begun, origin_of(case))
    return begun


def shown(value: Any) -> str:
    """A value as an error message shows it: short, and on one line."""
    return f"{value!r:.80}"


def one_line(error: Exception) -> str:
    """What an error of another library says, short and on one line."""
    return f"{' '.join(str(error).split()):.160}"


def listed(names: Any) -> str:
    """The first few of some names; what could steer a terminal becomes a dot."""
    texts = ["".join(each if each.isprintable() else "·" for each in str(name)) for name in names]
    return (", ".join(texts[:8]) + (", …" if len(texts) > 8 else "")) or "(none)"


def _case_of_record(record: Mapping[str, Any]) -> DatasetCase:
    try:
        # Only the version counts: what an agent once did on the case has no bearing on asking it again.
        as_record({"case": {}, **{name: record[name] for name in ("v",) if name in record}})
    except RecordError as error:
        raise RowError(str(error)) from None
    if isinstance(record["case"].get("case"), Mapping):
        raise RowError("a record's case holds another record")
    return case_of_fields(record["case"])


def _with_text_keys(place: str, fields: Mapping[Any, Any]) -> dict[str, Any]:
    for name in fields:
        if not isinstance(name, str):
            raise RowError(f"{place} must be texts; received {shown(name)}")
    return dict(fields)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))
