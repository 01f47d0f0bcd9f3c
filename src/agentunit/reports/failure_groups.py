"""Why the agent failed: failed or suspected cases by their cause, as every report shows them.

No language model is asked: a cause is an exception with its message and place, an error of a tool without what differs
from case to case, a call that peers made and this run did not, a kind of unsupported sentence. Its name is made of its
own words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from agentunit.core.records import Outcome, Record
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.formulas.text import shown_share
from agentunit.reports.console import print_line
from agentunit.reports.figures import (
    describe_failed,
)
from agentunit.reports.printable import printable_line, show_command
from agentunit.reports.reported_run import resume_command
from agentunit.reports.terminal import Terminal
from agentunit.store.opening import DEFAULT_PATH

GROUPS_SHOWN = 5
EXCEPTION = "exception"
_IDS_SHOWN = 5
_LONGEST_ID = 80
_LONGEST_ERROR = 300
_LONGEST_LINE = 160
_PLACE = re.compile(r" \((?:it was at )?([^()]*:\d+ in [^()]+)\)$")
_FRAME = re.compile(
    r'^ *File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>[^\n]*)\n +(?P<source>\S[^\n]*)', re.M
)
_LONGEST_NAME = 100
_FEWEST_IN_SLICE = 3
_SHARE_IN_SLICE = 0.8
_MORE_THAN_ELSEWHERE = 0.2
_NAMES = {
    "missing call": "did not call {}",
    "further call": "called {}, which most peers did not",
    "other arguments": "called {}",
    "no answer": "no final answer",
    "loop": "called {} again and again",
    "not supported": "not supported: {}",
    "leaves its peers": "called {}",
    "low score": "scored low in {}",
}
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_VALUES = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*\b|\d+(?:[.,:]\d+)*")


class FailureGroup(Struct, frozen=True):
    """Cases with one cause: the same kind of exception, alike in its message, from the same place; or as ``kind`` says.

    ``error`` is the message of the first, or the evidence against it. ``place`` is where in the user's code it came
    from (``file:line in function``), ``line`` the line itself. ``n_records`` counts repeats, ``n_cases`` does not;
    ``cases`` are the ids in dataset order, the first of them where there are very many. ``name`` says in a few words
    of its own what the cases share, and ``slice`` what kind of cases they are, where most of them are of one kind that
    is less frequent elsewhere.
    """

    failure: str
    error: str
    place: str | None
    line: str | None
    n_records: int
    cases: tuple[str, ...]
    next: str
    kind: str = EXCEPTION
    name: str = ""
    slice: str | None = None
    n_cases: int = 0


class Cause(Struct, frozen=True):
    """Why one case failed or is suspected. ``words`` are what cases with the same cause share.

    ``repeat`` counts from 0; ``None`` where the case was recorded once. ``reference`` is the run or file to show it
    of, where that is not the one of all.
    """

    case_id: str
    repeat: int | None
    kind: str
    words: str
    error: str
    slices: tuple[str, ...] = ()
    reference: str = ""


def cause_groups(
    causes: Iterable[Cause],
    run_reference: str,
    mask: Callable[[list[str]], list[str]],
    *,
    slice_counts: Mapping[str, int] | None = None,
    n_records: int = 0,
    show_options: Sequence[str] = (),
) -> list[FailureGroup]:
    """Causes that are alike as one group, the most frequent first. ``show_options`` go with the command that shows one.

    ``slice_counts`` says how many of all ``n_records`` are of each kind: what most cases of a group share and others
    do not is its slice.
    """
    found: dict[tuple[str, str], list[Cause]] = {}
    for cause in causes:
        # Where in the code an error came from is told apart by failure_groups, which knows the tracebacks.
        words = _PLACE.sub("", cause.words)
        found.setdefault((cause.kind, message_shape(words)), []).append(cause)
    groups = []
    for (kind, shape), alike in sorted(found.items(), key=lambda item: -len(item[1])):
        first = alike[0]
        slice = _slice_of(alike, slice_counts or {}, n_records)
        # Masked before it is cut: half an address is found by no detector.
        words, error, shown_slice = mask([shape, first.error, slice or ""])
        name, reference = group_name(kind, words), first.reference or run_reference
        show = show_command(reference, first.case_id, repeat=first.repeat, more=show_options) if reference else ""
        ids = tuple(dict.fromkeys(cause.case_id for cause in alike))
        shared = shown_slice or None
        groups.append(FailureGroup(kind, error, None, None, len(alike), ids, show, kind, name, shared, len(ids)))
    return groups


def group_name(kind: str, words: str) -> str:
    """What a cause is called: words of its own, with what their kind adds to them.

    >>> group_name("missing call", "cancel_order: "), group_name("failed call", "book: Error: only # seats left")
    ('did not call cancel_order', 'book: only # seats left')
    """
    words = words.removesuffix(": ").replace(": Error: ", ": ", 1)
    said = _NAMES.get(kind, "{}").format(words) if words or kind in _NAMES else kind
    return said if len(said) <= _LONGEST_NAME else said[: _LONGEST_NAME - 1] + "…"


def _slice_of(alike: Sequence[Cause], counts: Mapping[str, int], n_records: int) -> str | None:
    """The kind of case that most of a group are and others less often, in words; ``None`` where there is none."""
    if len(alike) < _FEWEST_IN_SLICE or not n_records:
        return None
    n_with = Counter(each for cause in alike for each in cause.slices)
    best: tuple[float, str] | None = None
    for slice, n in n_with.items():
        share, elsewhere = n / len(alike), counts.get(slice, 0) / n_records
        if share >= _SHARE_IN_SLICE and share - elsewhere >= _MORE_THAN_ELSEWHERE:
            best = max(best or (0.0, ""), (share - elsewhere, slice))
    if best is None:
        return None
    n = n_with[best[1]]
    return f"{best[1]} ({n} of {len(alike)}; {shown_share(counts.get(best[1], 0) / n_records)} of all)"


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
    for (failure, shape, _), (cases, n_records, error, place, trace) in sorted(
        found.items(), key=lambda item: -item[1][1]
    ):
        ids = tuple(dict.fromkeys(cases))
        texts = [failure, error, source_line(trace, place) or "", place or "", shape]
        failure, error, line, masked_place, words = mask(texts)
        name, show = group_name(EXCEPTION, words), show_command(run_reference, ids[0])
        at = masked_place or None
        groups.append(
            FailureGroup(failure, error, at, line or None, n_records, ids, show, EXCEPTION, name, n_cases=len(ids))
        )
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
    is_exception = group.kind == EXCEPTION
    lines = [f"{group.n_records:,} × {printable_line(group.error if is_exception else group.name, _LONGEST_ERROR)}"]
    if group.place:
        source = f":  {printable_line(group.line, _LONGEST_LINE)}" if group.line else ""
        lines.append(f"    at {printable_line(group.place, _LONGEST_ERROR)}{source}")
    if not is_exception:
        lines.append(f"    such as {printable_line(group.error, _LONGEST_ERROR)}")
    lines.append(f"    in {named_ids(group.cases, group.n_cases)}")
    if group.slice is not None:
        lines.append(f"    mostly {printable_line(group.slice, _LONGEST_LINE)}")
    return lines


def named_ids(cases: Sequence[str], n_cases: int) -> str:
    """The first ids of a group, and how many more of its cases there are."""
    more = f" and {n_cases - _IDS_SHOWN:,} more" if n_cases > _IDS_SHOWN else ""
    return ", ".join(printable_line(each, _LONGEST_ID) for each in cases[:_IDS_SHOWN]) + more


def describe_groups(groups: Sequence[FailureGroup]) -> list[str]:
    """The most frequent groups in lines of plain text, and the command that shows a case of the first."""
    lines = [line for group in groups[:GROUPS_SHOWN] for line in describe_group(group)]
    if len(groups) > GROUPS_SHOWN:
        lines.append(f"and {len(groups) - GROUPS_SHOWN:,} other causes")
    return lines


def print_causes(groups: Sequence[FailureGroup], console: Terminal) -> None:
    """Print why cases scored low, the most frequent causes first; nothing where none did."""
    if groups:
        console.print("\nLow scores by cause", style="bold")
        for line in describe_groups(groups):
            print_line(f"  {line}", console)


def describe_failures(groups: Sequence[FailureGroup], run: ScoredRun, store_path: str = DEFAULT_PATH) -> list[str]:
    """Lines for the terminal and the log: failed cases by their cause, and how to go on.

    The order of a run until decided must not depend on what came out, so that it cannot run them again.
    """
    if not groups:
        return []
    lines = [f"the agent failed {describe_failed(run)}:"]
    lines += [f"  {line}" for line in describe_groups(groups)]
    suite = run.header.settings.get("suite")
    if isinstance(suite, str) and not run.header.is_foreign:
        # The evidence of a run until decided must come in its order: only as one of fixed size can cases be retried.
        fixed = " --repeats 1" if run.header.settings.get("until_decided") else ""
        again = f"{resume_command(run.header.id, suite, store_path)}{fixed} --retry-failed"
        # Answers of two versions of an agent are mixed only by somebody who says so.
        is_mixed = run.n_failed < run.n_records and run.header.settings.get("agent_version") is not None
        changed = ", with --changed-agent if you change the agent first" if is_mixed else ""
        lines.append(f"  run them again{changed}: {printable_line(again)}")
    return lines
