"""Why the agent failed: failed cases by exception and message, as every report shows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from agentunit.core.outcome import Outcome
from agentunit.core.records import Record
from agentunit.reports.printable import printable_line

GROUPS_SHOWN = 5
_IDS_SHOWN = 5
_LONGEST_ID = 80
_LONGEST_ERROR = 300
_LONGEST_LINE = 160
_PLACE = re.compile(r" \((?:it was at )?([^()]*:\d+ in [^()]+)\)$")
_FRAME = re.compile(
    r'^ *File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>[^\n]*)\n +(?P<source>\S[^\n]*)', re.M
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_VALUES = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*\b|\d+(?:[.,:]\d+)*")


class FailureGroup(Struct, frozen=True):
    """Failed cases with one cause: the same kind of exception, alike in its message, from the same place.

    ``error`` is the message of the first. ``place`` is where in the user's code it came from (``file:line in
    function``), ``line`` the line itself. ``n_records`` counts repeats, ``cases`` are all ids in dataset order.
    """

    failure: str
    error: str
    place: str | None
    line: str | None
    n_records: int
    cases: tuple[str, ...]
    next: str


def failure_groups(
    failed: Iterable[tuple[str, Record]], run_reference: str, mask: Callable[[list[str]], list[str]]
) -> list[FailureGroup]:
    """Failed cases, each with its id, by their cause, the most frequent first. ``mask`` masks what they say."""
    found: dict[tuple[str, str, str], tuple[list[str], int, str, str | None, str]] = {}
    for case_id, record in failed:
        metadata = record.trace.metadata if isinstance(record.trace.metadata, dict) else {}
        failure = str(metadata.get("failure") or "reported")
        outcome = record.outcome
        whole = (outcome.error if isinstance(outcome, Outcome) else None) or f"{failure}, without a message"
        named = _PLACE.search(whole)
        error, place = (whole[: named.start()], named.group(1)) if named else (whole, None)
        # Where an agent is when its time is up is chance; where it raises is not.
        key = (failure, message_shape(error), place or "" if failure != "timeout" else "")
        cases, n_records, *_ = found.setdefault(key, ([], 0, error, place, str(metadata.get("traceback") or "")))
        cases.append(case_id)
        found[key] = (cases, n_records + 1, *found[key][2:])
    groups = []
    for (failure, _, _), (cases, n_records, error, place, trace) in sorted(found.items(), key=lambda item: -item[1][1]):
        ids = tuple(dict.fromkeys(cases))
        failure, error, line, masked_place = mask([failure, error, source_line(trace, place) or "", place or ""])
        show = shlex.join(["agentunit", "show", run_reference, printable_line(ids[0])])
        groups.append(FailureGroup(failure, error, masked_place or None, line or None, n_records, ids, show))
    return groups


def message_shape(message: str) -> str:
    """A message without what differs from case to case: numbers, ids and quoted values.

    A message that is nothing but one quoted word, as that of ``KeyError``, keeps it.

    >>> message_shape("ValueError: no order 'A-7' in 12 rows"), message_shape("KeyError: 'OPENAI_API_KEY'")
    ("ValueError: no order '' in # rows", "KeyError: 'OPENAI_API_KEY'")
    """
    kind, _, said = message.partition(": ")
    if not _QUOTED.fullmatch(said.strip()):
        said = _QUOTED.sub("''", said)
    return f"{kind}: {_VALUES.sub('#', said)}"


def source_line(trace: str, place: str | None) -> str | None:
    """The line of a traceback that stands at a place such as ``desk.py:5 in answer``.

    >>> source_line('  File "/app/desk.py", line 5, in answer\\n    key = env["KEY"]\\n', "desk.py:5 in answer")
    'key = env["KEY"]'
    """
    if place is None:
        return None
    for frame in reversed(list(_FRAME.finditer(trace))):
        at = f":{frame['line']} in {frame['function']}"
        if place.endswith(at) and frame["file"].endswith(place.removesuffix(at)):
            return frame["source"].strip()
    return None


def describe_group(group: FailureGroup) -> list[str]:
    """A group in lines of plain text: what happened, where, and in which cases."""
    lines = [f"{group.n_records:,} × {printable_line(group.error, _LONGEST_ERROR)}"]
    if group.place:
        source = f":  {printable_line(group.line, _LONGEST_LINE)}" if group.line else ""
        lines.append(f"    at {printable_line(group.place, _LONGEST_ERROR)}{source}")
    lines.append(f"    in {named_ids(group.cases)}")
    return lines


def named_ids(cases: Sequence[str]) -> str:
    """The first ids of a group, and how many more there are."""
    more = f" and {len(cases) - _IDS_SHOWN:,} more" if len(cases) > _IDS_SHOWN else ""
    return ", ".join(printable_line(each, _LONGEST_ID) for each in cases[:_IDS_SHOWN]) + more


def describe_groups(groups: Sequence[FailureGroup]) -> list[str]:
    """The most frequent groups in lines of plain text, and the command that shows a case of the first."""
    lines = [line for group in groups[:GROUPS_SHOWN] for line in describe_group(group)]
    if len(groups) > GROUPS_SHOWN:
        lines.append(f"and {len(groups) - GROUPS_SHOWN:,} other causes")
    return lines
