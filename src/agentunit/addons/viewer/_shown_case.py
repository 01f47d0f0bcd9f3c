"""A record on its way to its page, and the checks of a case in all of its tries (``CaseCheck`` of types.ts)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from agentunit.addons.viewer._media import Media, MediaFinder
from agentunit.addons.viewer._transcript import shortened
from agentunit.addons.viewer._verdicts import CaseRules
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.conversation import user_failure
from agentunit.core.results import MetricResult, Score, encode_json
from agentunit.engine.deciding.case_findings import why_failed, why_not_answered
from agentunit.engine.deciding.checks import ANSWERED
from agentunit.reports.reported_run import Mask, ReportedCase
from agentunit.store.runs import FIRST_AGAIN, is_again

# Past so many events turns, agents and lanes are not worked out: the transcript itself is there, page by page.
_MOST_EVENTS_READ = 2_000


class ShownCase:
    """A record as it was recorded (``case``), and as it is shown: without media, cut and masked, each done once."""

    def __init__(self, case: ReportedCase, mask: Mask, media_root: Path | None = None) -> None:
        self.case = case
        self.mask = mask
        self._media_root = media_root

    @property
    def key(self) -> str:
        """Its name in addresses."""
        return key_of(self.case.position, self.case.repeat)

    @cached_property
    def _apart(self) -> tuple[ReportedCase, list[Media]]:
        recorded, media = _without_media(self.case, self._media_root)
        # Cut before it is masked: the detail of a metric may list every tool call of a long trace once more.
        return structs.replace(recorded, scores={name: _cut(score) for name, score in recorded.scores.items()}), media

    @property
    def recorded(self) -> ReportedCase:
        """The record with words in place of its media."""
        return self._apart[0]

    @property
    def media(self) -> list[Media]:
        """The media of the case and its outcome."""
        return self._apart[1]

    @cached_property
    def masked(self) -> ReportedCase:
        """The same, masked."""
        return self.mask.case(self.recorded)

    def results(self, rules: CaseRules) -> dict[str, bool]:
        """Whether each check passes on this try; where the agent did not answer, that is the only one."""
        if user_failure(self.case.record.trace) is not None:
            return {}
        if self.case.failed:
            return {ANSWERED.name: False}
        results = {ANSWERED.name: True}
        for metric, score in self.case.scores.items():
            passed = rules.passed(metric, score.value, score.status)
            if passed is not None:
                results[metric] = passed
        return results

    def why(self, check: str, rules: CaseRules) -> str:
        """Why a check fails on this try, masked."""
        if check == ANSWERED.name:
            return why_not_answered(self.masked.record)
        return why_failed(self.masked.scores[check], rules.rules[check].needs)


def checks_of_case(
    tries: Sequence[ShownCase], rules: CaseRules, *, has_pages_again: bool = True
) -> list[dict[str, Any]]:
    """Every check of a case with its tries, those that fail first; ``answered`` only where it fails.

    None of a single try that passes: its scores say the same. Tries again have no pages in a bundle
    (``has_pages_again``).
    """
    checks: dict[str, list[dict[str, Any]]] = {}
    for shown in tries:
        again = is_again(shown.case.repeat)
        number = shown.case.repeat - FIRST_AGAIN if again else shown.case.repeat
        for check, passed in shown.results(rules).items():
            checks.setdefault(check, []).append(
                {
                    "key": shown.key if has_pages_again or not again else None,
                    "number": number + 1,
                    "again": again,
                    "passed": passed,
                    "why": "" if passed else shown.why(check, rules),
                }
            )
    of_case = [{"check": check, "tries": made} for check, made in checks.items()]
    telling = [row for row in of_case if row["check"] != ANSWERED.name or _n_failed(row)]
    if len(tries) == 1 and not any(map(_n_failed, telling)):
        return []
    return sorted(telling, key=_n_failed, reverse=True)


def _n_failed(row: dict[str, Any]) -> int:
    return sum(not made["passed"] for made in row["tries"])


def key_of(position: int, repeat: int) -> str:
    """The name of a record in addresses."""
    return f"{position}-{repeat}"


def _without_media(case: ReportedCase, media_root: Path | None) -> tuple[ReportedCase, list[Media]]:
    """The case with words in place of its media; of a long trace also without its events."""
    record = case.record
    if len(record.trace.events) > _MOST_EVENTS_READ:
        short = structs.replace(record.trace, events=[], interactions=[], handoffs=[], conflicts=[])
        record = structs.replace(record, trace=short)
    data = msgspec.json.decode(encode_record(record))
    events = (data.get("trace") or {}).pop("events", [])
    finder = MediaFinder(0, media_root)
    data = finder.replaced(data)
    if events:
        data["trace"]["events"] = MediaFinder().replaced(events)
    return structs.replace(case, record=decode_record(encode_json(data))), finder.found


def _cut(score: Score) -> Score:
    """A score whose detail is as long as its page shows it."""
    cut: dict[str, Any] = shortened(score.result.detail)
    return structs.replace(score, result=MetricResult(score.result.name, score.result.value, cut))
