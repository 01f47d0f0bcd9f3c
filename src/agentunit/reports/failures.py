"""The cases in which the agent failed: what happened, where, to which cases, and what to do next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from agentunit.core.outcome import Outcome
from agentunit.reports.printable import printable_line
from agentunit.store.sqlite import RunHeader, StoredRecord

_GROUPS_SHOWN = 5
_IDS_SHOWN = 5
_LONGEST_ID = 80
_LONGEST_ERROR = 300
_PLACE = re.compile(r" \(([^()]*:\d+ in [^()]+)\)$")


def describe_failures(failed: Iterable[StoredRecord], run: RunHeader, how_many: str) -> list[str]:
    """Lines for the terminal and the log: failed cases by exception and place, the most frequent first.

    ``how_many`` goes on with "the agent failed": "on 2 of 31 cases".
    """
    groups: dict[tuple[str, str], tuple[str, list[str], int]] = {}
    for record in failed:
        error = _error_of(record)
        place = found.group(1) if (found := _PLACE.search(error)) else ""
        kind = (error.partition(":")[0], place)
        first, ids, n = groups.get(kind, (error, [], 0))
        if len(ids) < _IDS_SHOWN and record.case_id not in ids:
            ids.append(record.case_id)
        groups[kind] = (first, ids, n + 1)
    if not groups:
        return []
    lines = [f"the agent failed {how_many}:"]
    ranked = sorted(groups.values(), key=lambda group: -group[2])
    for error, ids, n in ranked[:_GROUPS_SHOWN]:
        lines.append(f"  {n:,} × {printable_line(error, _LONGEST_ERROR)}")
        named = ", ".join(printable_line(case_id, _LONGEST_ID) for case_id in ids)
        more = f" and {n - len(ids):,} more" if n > len(ids) else ""
        lines.append(f"      in {named}{more}")
    if len(ranked) > _GROUPS_SHOWN:
        lines.append(f"  and {len(ranked) - _GROUPS_SHOWN:,} other failures")
    shown = shlex.join(["agentunit", "show", run.id, printable_line(ranked[0][1][0])])
    lines.append(f"  see one: {shown}")
    suite = run.settings.get("suite")
    if isinstance(suite, str) and not run.is_foreign:
        again = shlex.join(["agentunit", "run", suite, "--resume", run.id, "--retry-failed"])
        lines.append(f"  run them again: {again}")
    return lines


def _error_of(failed: StoredRecord) -> str:
    outcome = failed.record.outcome
    error = outcome.error if isinstance(outcome, Outcome) else None
    return error or str(failed.record.trace.metadata.get("failure") or "failed without a word")
