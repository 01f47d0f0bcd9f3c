"""All evaluations of a pytest session: the table in the terminal, and the report file."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from itertools import starmap
from math import fsum
from typing import Any

import msgspec
from msgspec import Struct

import agentunit
from agentunit.addons.pytest_plugin._gathering import Evaluated, FailedCheck, decode_payload
from agentunit.core.codec import decode_record
from agentunit.core.results import encode_json
from agentunit.core.score_block import RowsByMetric
from agentunit.engine.deciding.cut_offs import number_key
from agentunit.engine.deciding.decision import decide_tests
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.metrics.functions import note_checks
from agentunit.reports.figures import INTERVAL_HEADING, aligned, counted, describe_judge_spend, describe_value, quantity
from agentunit.reports.json_report import decision_as_data
from agentunit.reports.markdown import run_markdown
from agentunit.reports.markdown_text import code, inline
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import Mask, ReportedCase, ReportedRun
from agentunit.reports.reporters import reporter_named, whole_file
from agentunit.store.runs import RunHeader

_LINES_SHOWN = 10
_REASON_LENGTH = 160
_NO_VALUE = ""


class EvaluatedTest(Struct):
    """A test with all that it evaluated. ``passes`` is "4/5" for a test that ran five times."""

    nodeid: str
    outcome: str
    passes: str | None
    evaluated: list[Evaluated]
    failed_checks: list[FailedCheck]
    position: int = 0


CameWith = tuple[str, str, str | None, Sequence[str]]
"""A test's id, its outcome, how many attempts passed, and what came with its reports (``Gathering.take_payload``)."""


class SessionReport(ReportedRun):
    """A session as a run: every evaluation is a case, named by its test; attempts are repeats of it."""

    def __init__(
        self,
        tests: Iterable[CameWith],
        *,
        started_at: float,
        exit_code: int = 0,
        show_personal_data: bool = False,
    ) -> None:
        # As collected, whatever the order in which the workers of xdist were done.
        self.tests = sorted(starmap(_evaluated_test, tests), key=lambda test: (test.position, test.nodeid))
        self._placed = list(_placed(self.tests))
        failed = [test.nodeid for test in self.tests if test.outcome == "failed"]
        decision = decide_tests(failed, len(self.tests), session_exit_code=exit_code)
        run = _scored_run(self._placed, started_at)
        super().__init__(run, decision=decision, show_personal_data=show_personal_data)

    @property
    def reference(self) -> str:
        """Empty: a session is kept in no store, so no command finds it."""
        return ""

    @property
    def spend_usd(self) -> float | None:
        """What the traces say they cost in all; ``None`` when none of them says anything."""
        known = [each.spend_usd for _, _, each in self._placed if each.spend_usd is not None]
        return fsum(known) if known else None

    def _cases(self) -> Iterator[ReportedCase]:
        """Every evaluation whose record was kept, in order."""
        for position, nodeid, each in self._placed:
            if each.record is not None:
                yield ReportedCase(
                    position,
                    each.attempt,
                    nodeid,
                    each.failure is not None,
                    each.elapsed_s or 0.0,
                    decode_record(each.record),
                    each.scores,
                )

    def terminal_lines(self) -> Iterator[str]:
        """The table of metrics, what stands below it, and the verdict."""
        if self._placed:
            yield from map(printable, aligned(self._rows()))
        yield self._totals()
        if self.summary.judge is not None:
            yield printable_line(f"judge: {describe_judge_spend(self.summary.judge)}")
        for entry in self.summary.unscored[:_LINES_SHOWN]:
            mark = "error in" if entry.status == "error" else "not scored:"
            yield printable_line(f"{mark} {entry.metric}: {entry.n_records} × {entry.reason}", _REASON_LENGTH)
        uneven = [test for test in self.tests if test.passes is not None and not _is_full(test.passes)]
        for test in uneven[:_LINES_SHOWN]:
            yield printable_line(f"{test.passes} attempts passed: {test.nodeid}")
        if len(uneven) > _LINES_SHOWN:
            yield f"… and {len(uneven) - _LINES_SHOWN} more tests of which not all attempts passed"
        yield printable_line(self.decision.headline)

    def write(self, path: str) -> None:
        """Write the report; the ending of the file decides its form."""
        ending = os.path.splitext(path)[1].lower()
        if ending == ".html":
            reporter_named("html").write(self, path)
            return
        content = self._markdown().encode() if ending == ".md" else encode_json(self._as_data()) + b"\n"
        with whole_file(path) as stream:
            stream.write(content)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        rows = self.summary.metrics
        scored_by = {(row.metric, row.backend) for row in rows if row.n_scored}
        failed: Counter[tuple[str, str]] = Counter()
        for check in (check for test in self.tests for check in test.failed_checks):
            # A check that failed for want of a value is no fault of a backend that gave others.
            scored = check.value is not None and (check.metric, check.backend) in scored_by
            failed[check.metric, check.backend if scored else _NO_VALUE] += 1
        yield ("metric", INTERVAL_HEADING.replace("value", "mean"), "scored", "failed checks")
        for row in rows:
            value = describe_value(row, self.infos[row.metric].unit, self.infos[row.metric].direction)
            several = sum(other.metric == row.metric for other in rows) > 1
            name = f"{row.metric}[{row.backend}]" if several else row.metric
            n_failed = failed.pop((row.metric, row.backend if row.n_scored else _NO_VALUE), 0)
            yield (name, value, f"{row.n_scored}/{row.n_cases}", str(n_failed))
        for (metric, _), n_failed in failed.items():
            yield (f"{metric}, no value", "–", "", str(n_failed))

    def _totals(self) -> str:
        n_evaluated, n_failed = len(self._placed), self.run.n_failed
        n_failed_tests = sum(test.outcome == "failed" for test in self.tests)
        tests = counted(len(self.tests), "test") + (f" ({n_failed_tests} failed)" if n_failed_tests else "")
        parts = [f"{counted(n_evaluated, 'evaluation')} in {tests}"]
        if n_failed:
            parts.append(f"the agent failed in {n_failed}")
        if self.spend_usd is not None:
            n_known = sum(each.spend_usd is not None for _, _, each in self._placed)
            partly = "" if n_known == n_evaluated else f" (known for {n_known})"
            parts.append(f"spent {quantity(self.spend_usd, 'USD')}{partly}")
        return ", ".join(parts)

    def _markdown(self) -> str:
        text = run_markdown(self)
        failed = [test for test in self.tests if test.outcome == "failed"]
        if not failed:
            return text
        lines = [f"**{counted(len(failed), 'test')} failed**", ""]
        for test in failed[:_LINES_SHOWN]:
            passes = f", {test.passes} attempts passed" if test.passes else ""
            missed = dict.fromkeys(check.expression for check in test.failed_checks)
            why = f": {', '.join(code(each) for each in missed)}" if missed else ""
            lines.append(f"- {inline(test.nodeid, 300)}{passes}{why}")
        if len(failed) > _LINES_SHOWN:
            lines.append(f"- … and {len(failed) - _LINES_SHOWN} more")
        return text + "\n" + "\n".join(lines) + "\n"

    def _as_data(self) -> dict[str, Any]:
        header = self.run.header
        return {
            "v": 1,
            "agentunit_version": header.agentunit_version,
            "created_at": datetime.fromtimestamp(header.created_at, timezone.utc).isoformat(timespec="seconds"),
            "n_evaluations": len(self._placed),
            "n_agent_failures": self.run.n_failed,
            "spend_usd": self.spend_usd,
            "summary": self.summary,
            **decision_as_data(self.decision),
            "tests": [_test_as_data(test, self.mask) for test in self.tests],
        }


def _evaluated_test(nodeid: str, outcome: str, passes: str | None, parts: Sequence[str]) -> EvaluatedTest:
    test = EvaluatedTest(nodeid, outcome, passes, [], [])
    for part in map(decode_payload, parts):
        test.position = part.position
        test.evaluated += part.evaluated
        test.failed_checks += part.failed_checks
    return test


def _placed(tests: Sequence[EvaluatedTest]) -> Iterator[tuple[int, str, Evaluated]]:
    """Every evaluation with a position: the same for the attempts at one thing, which count as its repeats."""
    position = 0
    for test in tests:
        calls: dict[int, int] = {}
        for each in sorted(test.evaluated, key=lambda each: (each.call, each.attempt)):
            yield position + calls.setdefault(each.call, len(calls)), test.nodeid, each
        position += len(calls)


def _scored_run(placed: Sequence[tuple[int, str, Evaluated]], started_at: float) -> ScoredRun:
    n_failed = sum(each.failure is not None for _, _, each in placed)
    header = RunHeader(
        "pytest",
        "pytest",
        started_at,
        time.time(),
        "finished",
        len(placed),
        agentunit.__version__,
        {},
        n_done=len(placed),
        n_failed=n_failed,
    )
    run = ScoredRun(header, len({position for position, _, _ in placed}), len(placed), n_failed)
    rows = RowsByMetric(lambda name: number_key(run.info(name)))
    for position, nodeid, evaluated in placed:
        run.infos.update({name: run.info(name) for name in evaluated.scores})
        note_checks(run.infos, evaluated.scores)
        rows.add(position, evaluated.attempt, nodeid, evaluated.scores)
    run.metrics = {**rows.rows()}
    return run


def _test_as_data(test: EvaluatedTest, mask: Mask) -> dict[str, Any]:
    return {
        "nodeid": test.nodeid,
        "outcome": test.outcome,
        "passes": test.passes,
        "failed_checks": test.failed_checks,
        "evaluations": [
            mask.data(
                {
                    **{name: getattr(each, name) for name in each.__struct_fields__ if name != "record"},
                    "record": None if each.record is None else msgspec.json.decode(each.record),
                }
            )
            for each in test.evaluated
        ],
    }


def _is_full(passes: str) -> bool:
    passed, _, of = passes.partition("/")
    return passed == of
