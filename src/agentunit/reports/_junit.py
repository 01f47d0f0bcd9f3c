"""A run as JUnit XML: one test case a case, one a gate, and one for the verdict.

What failed is what the decision on the run names, no more and no less: a file is red exactly when the exit code is not
0. A case that the run fails for is a ``failure``, one that counts as an error is an ``error``. ``skipped`` is what does
not count: known failures, simulated users that failed, errors that are allowed, and checks that fail and may, such as
those that failed before, too. A flaky or doubtful case passes, and its ``system-out`` says so.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from itertools import groupby
from math import fsum
from typing import IO, NamedTuple
from xml.sax.saxutils import escape

from agentunit.core.conversation import user_failure
from agentunit.engine.deciding.comparison import CaseDifference
from agentunit.engine.deciding.decision import EXIT_ERRORS, EXIT_FAILED, Decision
from agentunit.reports.case_view import CaseView, conversation_text, view_case, worst_repeat
from agentunit.reports.failure_groups import describe_groups
from agentunit.reports.figures import GATE_WORDS, describe_reason, quantity
from agentunit.reports.printable import clipped, printable, printable_line, xml_safe
from agentunit.reports.raters import describe_labeled
from agentunit.reports.reported_run import ReportedCase, ReportedRun
from agentunit.reports.reporters import whole_file
from agentunit.reports.run_facts import (
    KIND_HEADINGS,
    describe_answers,
    describe_change,
    describe_finding,
    describe_kinds,
    describe_known_failures,
    failed_cases,
    findings_by_case,
    further_reasons,
    lines_under,
    origin_facts,
    word_of,
)
from agentunit.reports.slice_table import describe_slices, slice_cells
from agentunit.store.runs import is_again

_IN_MEMORY_BYTES = 8_000_000
_TEXT_LENGTH = 4_000
_MESSAGE_LENGTH = 300


@dataclass
class _Counts:
    tests: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    elapsed_s: float = 0.0

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def write_junit(reported: ReportedRun, path: str | os.PathLike[str]) -> int:
    """Write a run as JUnit XML; returns the number of cases."""
    # Suites state their counts before their cases: they wait in a buffer that moves to disk when it grows.
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as body, whole_file(path) as stream:
        counts, n_cases = _Counts(), 0
        for run in reported.runs:
            of_run, of_cases = _write_suites(run, body, f"{run.label}: " if reported.others else "")
            counts, n_cases = counts + of_run, n_cases + of_cases
        _write(stream, '<?xml version="1.0" encoding="UTF-8"?>\n')
        _write(stream, f"<testsuites{_attributes(name='agentunit', **_counted(counts))}>\n")
        body.seek(0)
        shutil.copyfileobj(body, stream)
        _write(stream, "</testsuites>\n")
    return n_cases


def _write_suites(reported: ReportedRun, stream: IO[bytes], before: str) -> tuple[_Counts, int]:
    """Write the suites of one run: its cases, its gates and its verdict; returns the counts, and those of its cases.

    ``before`` stands before their names, where there are several runs.
    """
    header = reported.header
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as body:
        cases = _write_cases(reported, body, f"{before}{header.name}")
        gates, gate_cases = _gates(reported.decision, f"{before}gates")
        verdict, verdict_case = _verdict(reported, f"{before}verdict")
        stamp = datetime.fromtimestamp(header.created_at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        named = _attributes(name=f"{before}{header.name}", timestamp=stamp, **_counted(cases))
        _write(stream, f"<testsuite{named}>\n")
        _write(stream, _properties(_run_properties(reported)))
        body.seek(0)
        shutil.copyfileobj(body, stream)
        _write(stream, "</testsuite>\n")
        if gates.tests:
            named = _attributes(name=f"{before}gates", **_counted(gates))
            _write(stream, f"<testsuite{named}>\n{gate_cases}</testsuite>\n")
        named = _attributes(name=f"{before}verdict", **_counted(verdict))
        _write(stream, f"<testsuite{named}>\n{verdict_case}</testsuite>\n")
    return cases + gates + verdict, cases.tests


def _write_cases(reported: ReportedRun, stream: IO[bytes], classname: str) -> _Counts:
    counts = _Counts()
    outcomes = _Outcomes(reported.decision)
    for _, repeats in groupby(reported.cases(), key=lambda case: case.position):
        planned = [case for case in repeats if not is_again(case.repeat)]
        if not planned:
            continue
        outcome = outcomes.of_case(planned)
        elapsed_s = fsum(case.elapsed_s for case in planned)
        tag = outcome.tag
        counts += _Counts(1, tag == "failure", tag == "error", tag == "skipped", elapsed_s)
        view = view_case(worst_repeat(planned, reported.infos), brief=True)
        named = _attributes(classname=classname, name=view.case_id, time=f"{elapsed_s:.3f}")
        properties = {**outcomes.against_baseline(view.case_id), **_score_properties(reported, view)}
        _write(stream, f"<testcase{named}>\n{_properties(properties)}{_outcome_elements(outcome, view)}</testcase>\n")
    return counts


class _Outcome(NamedTuple):
    """How a case ends as a test case: the element that says so (``None``: it passes), its type, and what is said."""

    tag: str | None = None
    kind: str = ""
    messages: tuple[str, ...] = ()


class _Outcomes:
    """How the cases of a run end as test cases, by the decision on the run."""

    def __init__(self, decision: Decision) -> None:
        self._comparison = decision.comparison
        self._findings = findings_by_case(decision)
        self._failed = failed_cases(decision)
        self._errors = {
            case_id for reason in decision.reasons if reason.exit_code == EXIT_ERRORS for case_id in reason.cases
        }
        self._aside = {
            each.case_id: f"known failure until {each.until}: {each.reason}"
            for each in decision.known_failures
            if each.state in ("still fails", "unknown")
        }
        self._changed: dict[str, CaseDifference] = {}
        if decision.comparison is not None:
            # The comparison lists so many of each kind, and has all of them by case.
            for case_id, standing in decision.comparison.cases.items():
                if standing.kind != "unchanged":
                    self._changed[case_id] = CaseDifference(case_id, standing.kind)
            self._changed |= {each.case_id: each for each in decision.comparison.differences}

    def of_case(self, repeats: Sequence[ReportedCase]) -> _Outcome:
        """How a case of these repeats ends."""
        case_id = repeats[0].case_id
        finding = self._findings.get(case_id)
        said = "" if finding is None else describe_finding(finding, self._comparison)
        errors = [error for case in repeats for error in _errors(case)]
        broken_off = [text for case in repeats if (text := user_failure(case.record.trace)) is not None]
        if case_id in self._aside:
            return _Outcome("skipped", "known failure", (self._aside[case_id], *(text for _, text in errors)))
        if case_id in self._failed:
            word = word_of(self._failed[case_id])
            return _Outcome("failure", word, (f"{word}: {said}",))
        if case_id in self._errors and errors:
            return _Outcome("error", errors[0][0], tuple(text for _, text in errors))
        if broken_off and len(broken_off) == len(repeats):
            return _Outcome("skipped", "simulated user", tuple(broken_off))
        if finding is not None and finding.state != "wrong":
            return _Outcome(None, "", (f"{word_of(finding)}: {said}",))
        if errors:
            return _Outcome("skipped", errors[0][0], tuple(text for _, text in errors))
        if finding is not None:
            why = finding.kind if finding.kind in ("newly failing", "still failing") else "does not fail the run"
            return _Outcome("skipped", why, (f"{why}: {said}",))
        return _Outcome()

    def against_baseline(self, case_id: str) -> dict[str, str]:
        """What became of a case against the baseline, as properties."""
        changed = self._changed.get(case_id)
        if changed is None or self._comparison is None:
            return {}
        answers = {f"baseline.{when}": printable_line(text, _TEXT_LENGTH) for when, text in describe_answers(changed)}
        said = describe_change(changed, self._comparison, self._findings)
        return {"baseline.change": f"{changed.kind}: {said}" if said else changed.kind, **answers}


def _errors(case: ReportedCase) -> list[tuple[str, str]]:
    """Kind and message of what broke in one repeat of a case."""
    if not case.failed and all(score.status != "error" for score in case.scores.values()):
        return []
    view = view_case(case, brief=True)
    errors = []
    if case.failed and view.user_failure is None:
        errors.append((view.failure or "agent", view.error or "the agent failed and left no message"))
    errors += [
        ("metric", f"{score.metric}: {score.reason or 'the metric failed'}")
        for score in view.scores
        if score.status == "error"
    ]
    return errors


def _outcome_elements(outcome: _Outcome, view: CaseView) -> str:
    """The element that says how a case ended, and what was printed."""
    tag, messages = outcome.tag, outcome.messages
    printed = list(view.printed.values())
    if tag is None:
        printed = [*messages, *printed]
    out = _element("system-out", "\n".join(printed)) if printed else ""
    if tag is None:
        return out
    text = _case_text(view) if tag == "failure" else "\n".join(dict.fromkeys(messages))
    kinds = {} if tag == "skipped" else {"type": outcome.kind}
    return _element(tag, text, message=printable_line(messages[0], _MESSAGE_LENGTH), **kinds) + out


def _case_text(view: CaseView) -> str:
    lines = [f"question: {view.query or '–'}", f"answer: {view.answer or '–'}"]
    lines = [conversation_text(view.turns)] if view.turns else lines
    if view.expected:
        lines.append(f"expected: {' | '.join(view.expected)}")
    lines += [f"tool {call.name}: {call.error or call.status}" for call in view.tool_calls if call.ok is False]
    lines += [f"{score.metric}: {score.reason}" for score in view.scores if score.reason]
    return "\n".join(lines)


def _run_properties(reported: ReportedRun) -> dict[str, str]:
    header = reported.header
    properties = {
        "run": header.id,
        "status": header.status,
        "agentunit_version": header.agentunit_version,
        "n_cases": str(reported.run.n_cases),
        "n_repeats": str(reported.run.n_repeats),
        "n_failed": str(reported.run.n_failed),
        "verdict": reported.decision.headline,
        **({"statistics": reported.decision.line} if reported.decision.line else {}),
        "exit_code": str(reported.decision.exit_code),
        **{name.replace(" ", "_"): text for name, text in origin_facts(header)},
    }
    comparison = reported.decision.comparison
    if comparison is not None:
        properties["baseline"] = comparison.baseline
        properties["baseline.name"] = comparison.baseline_label
        properties["baseline.cases"] = describe_kinds(comparison)
        for kind in KIND_HEADINGS:
            listed = [case_id for case_id, standing in comparison.cases.items() if standing.kind == kind]
            if listed:
                properties[f"baseline.{kind}"] = ", ".join(listed)
        if comparison.note:
            properties["baseline.note"] = comparison.note
    for row in reported.summary.metrics:
        if row.mean is not None:
            interval = "" if row.low is None or row.high is None else f" [{row.low:.6g}, {row.high:.6g}]"
            status = "" if row.status == "ok" else f" ({row.status})"
            scored = f"scored {row.n_scored}/{row.n_cases}"
            properties[f"{row.metric}[{row.backend}].{row.aggregate}{status}"] = f"{row.mean:.6g}{interval}, {scored}"
        if row.labeled is not None:
            properties[f"{row.metric}[{row.backend}].labeled"] = describe_labeled(row.labeled)
    for table in reported.slices:
        for cells in slice_cells(table, reported.infos):
            rest = "too small" if cells.difference == "too small" else f"from the rest {cells.difference}"
            name = f"{describe_slices(table)}: {cells.slice}: {cells.metric}"
            properties[name] = f"{cells.value}, scored {cells.scored}, {rest}"
    return properties


def _score_properties(reported: ReportedRun, view: CaseView) -> dict[str, str]:
    properties = {}
    for score in view.scores:
        if score.value is None:
            properties[score.metric] = f"{score.status}: {score.reason or 'no reason recorded'}"
        else:
            informational = " (informational)" if score.status == "informational" else ""
            properties[score.metric] = f"{quantity(score.value, reported.unit(score.metric))}{informational}"
    return properties


def _gates(decision: Decision, classname: str) -> tuple[_Counts, str]:
    """A test case for each gate; a gate that the run cannot answer is an error."""
    counts, parts = _Counts(), []
    for verdict in decision.gates:
        parts.append(f"<testcase{_attributes(classname=classname, name=str(verdict.gate), time='0.000')}>\n")
        word = GATE_WORDS[verdict.verdict]
        if verdict.verdict != "pass":
            message = printable_line(f"{word}: {verdict.reason}", _MESSAGE_LENGTH)
            tag = "failure" if verdict.verdict == "fail" else "error"
            parts.append(_element(tag, verdict.reason, message=message, type=word.lower()))
        counts += _Counts(1, verdict.verdict == "fail", verdict.verdict not in ("pass", "fail"))
        parts.append("</testcase>\n")
    return counts, "".join(parts)


def _verdict(reported: ReportedRun, classname: str) -> tuple[_Counts, str]:
    """The test case of the decision as a whole: whatever it failed for, the file says so."""
    decision = reported.decision
    said = [*lines_under(decision), *map(describe_reason, further_reasons(decision))]
    if decision.way_out:
        said.append(f"next: {decision.way_out}")
    if causes := describe_groups(reported.failures):
        said += ["why the agent failed:", *causes, f"next: {reported.failures[0].next}"]
    if known := describe_known_failures(decision):
        said += ["known failures:", *known]
    content = _element("system-out", "\n".join([decision.headline, *said]))
    if decision.exit_code:
        tag = "failure" if decision.exit_code == EXIT_FAILED else "error"
        message = printable_line(decision.headline, _MESSAGE_LENGTH)
        content = _element(tag, "\n".join(said) or decision.headline, message=message, type=str(decision.verdict))
    counts = _Counts(1, decision.exit_code == EXIT_FAILED, decision.exit_code not in (0, EXIT_FAILED))
    attributes = _attributes(classname=classname, name="verdict", time="0.000")
    return counts, f"<testcase{attributes}>\n{content}</testcase>\n"


def _counted(counts: _Counts) -> dict[str, str]:
    return {
        "tests": str(int(counts.tests)),
        "failures": str(int(counts.failures)),
        "errors": str(int(counts.errors)),
        "skipped": str(int(counts.skipped)),
        "time": f"{counts.elapsed_s:.3f}",
    }


def _properties(named: dict[str, str]) -> str:
    if not named:
        return ""
    lines = [f"<property{_attributes(name=name, value=value)}/>\n" for name, value in named.items()]
    return f"<properties>\n{''.join(lines)}</properties>\n"


def _element(tag: str, text: str, **attributes: str) -> str:
    shown, left_off = clipped(printable(text), _TEXT_LENGTH)
    if left_off:
        shown += f"\n… {left_off:,} more characters"
    return f"<{tag}{_attributes(**attributes)}>{escape(xml_safe(shown))}</{tag}>\n"


def _attributes(**named: str) -> str:
    # A line end in an attribute would be read back as a space.
    escapes = {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
    return "".join(f' {name}="{escape(xml_safe(value), escapes)}"' for name, value in named.items())


def _write(stream: IO[bytes], text: str) -> None:
    stream.write(text.encode("utf-8"))
