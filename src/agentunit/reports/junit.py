"""A run as JUnit XML: one test case a record, one a gate, and one for the verdict.

What failed is what the decision on the run names, no more and no less: a file is red exactly when the exit code is not
0. A case behind a failed gate or a regression is a ``failure``; one on which the agent or a metric broke is an
``error``, or ``skipped`` where the run allows so many errors. One that is known to fail is ``skipped``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import IO
from xml.sax.saxutils import escape

from agentunit.engine.comparison import CaseDifference
from agentunit.engine.decision import EXIT_FAILED, Decision, Reason
from agentunit.reports.case_view import CaseView, conversation_text, view_case
from agentunit.reports.comparison_view import KIND_HEADINGS, describe_answers, describe_kinds, describe_scores
from agentunit.reports.failure_groups import describe_groups
from agentunit.reports.figures import GATE_WORDS, describe_reason, quantity
from agentunit.reports.label_figures import describe_labeled
from agentunit.reports.printable import clipped, printable, printable_line, xml_safe
from agentunit.reports.reported_run import ReportedCase, ReportedRun
from agentunit.reports.reporters import whole_file
from agentunit.reports.run_facts import describe_known_failures, origin_facts
from agentunit.reports.slice_table import describe_slices, slice_cells

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
    """Write a run as JUnit XML; returns the number of records."""
    # Suites state their counts before their cases: they wait in a buffer that moves to disk when it grows.
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as body, whole_file(path) as stream:
        counts, n_records = _Counts(), 0
        for run in reported.runs:
            of_run, of_cases = _write_suites(run, body, f"{run.label}: " if reported.others else "")
            counts, n_records = counts + of_run, n_records + of_cases
        _write(stream, '<?xml version="1.0" encoding="UTF-8"?>\n')
        _write(stream, f"<testsuites{_attributes(name='agentunit', **_counted(counts))}>\n")
        body.seek(0)
        shutil.copyfileobj(body, stream)
        _write(stream, "</testsuites>\n")
    return n_records


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
    decision = reported.decision
    blamed: dict[str, list[str]] = {}
    for reason in decision.reasons:
        for case_id in reason.cases if reason.exit_code == EXIT_FAILED else ():
            blamed.setdefault(case_id, []).append(_blame(reason))
    # Errors that the run allows must not turn a file red that stands for a run that passed.
    errors_tag = "error" if decision.n_errors > decision.max_errors else "skipped"
    repeated = reported.run.n_repeats > 1
    aside = {
        each.case_id: ("known failure", f"known failure until {each.until}: {each.reason}")
        for each in decision.known_failures
        if each.state in ("still fails", "unknown")
    }
    changed: dict[str, CaseDifference] = {}
    if decision.comparison is not None:
        # The comparison lists so many of each kind, and has all of them by case.
        standings = decision.comparison.cases.items()
        changed = {each: CaseDifference(each, found.kind) for each, found in standings if found.kind != "unchanged"}
        changed |= {each.case_id: each for each in decision.comparison.differences}
    for case in reported.cases():
        view = view_case(case, brief=True)
        errors, failures = _errors(case, view), blamed.get(case.case_id, [])
        known = aside.get(case.case_id)
        if known is None and view.user_failure is not None:
            known = ("simulated user", view.user_failure)
        if known is not None:
            errors, failures = [known, *errors], []
        tag = "skipped" if known is not None else errors_tag if errors else "failure" if failures else None
        if tag == "skipped" and failures:
            tag = "failure"
        counts += _Counts(1, tag == "failure", tag == "error", tag == "skipped", case.elapsed_s)
        name = f"{case.case_id} (repeat {view.repeat})" if repeated else case.case_id
        _write(stream, _testcase(reported, view, (classname, name), tag, errors, failures, changed.get(case.case_id)))
    return counts


def _blame(reason: Reason) -> str:
    if reason.kind == "regression":
        return f"{reason.subject} is worse than in the baseline"
    if reason.kind == "newly failing":
        return "newly failing: it passed in every repeat of the baseline and fails in every one now"
    return f"breaks the gate {reason.subject}" if reason.kind == "gate" else reason.text


def _errors(case: ReportedCase, view: CaseView) -> list[tuple[str, str]]:
    """Kind and message of what broke on a case."""
    errors = []
    if case.failed:
        errors.append((view.failure or "agent", view.error or "the agent failed and left no message"))
    errors += [
        ("metric", f"{score.metric}: {score.reason or 'the metric failed'}")
        for score in view.scores
        if score.status == "error"
    ]
    return errors


def _testcase(
    reported: ReportedRun,
    view: CaseView,
    names: tuple[str, str],
    tag: str | None,
    errors: list[tuple[str, str]],
    failures: list[str],
    changed: CaseDifference | None,
) -> str:
    classname, name = names
    parts = [f"<testcase{_attributes(classname=classname, name=name, time=f'{view.elapsed_s:.3f}')}>\n"]
    against = {} if changed is None else _difference_properties(changed)
    parts.append(_properties({**against, **_score_properties(reported, view)}))
    if tag == "failure":
        message = printable_line("; ".join(failures), _MESSAGE_LENGTH)
        parts.append(_element("failure", _case_text(view), message=message, type="check"))
    elif tag is not None:
        kind, message = errors[0]
        messages = "\n".join(each for _, each in errors)
        kinds = {"type": kind} if tag == "error" else {}
        parts.append(_element(tag, messages, message=printable_line(message, _MESSAGE_LENGTH), **kinds))
    if view.printed:
        parts.append(_element("system-out", "\n".join(view.printed.values())))
    parts.append("</testcase>\n")
    return "".join(parts)


def _case_text(view: CaseView) -> str:
    lines = [f"question: {view.query or '–'}", f"answer: {view.answer or '–'}"]
    lines = [conversation_text(view.turns)] if view.turns else lines
    if view.expected:
        lines.append(f"expected: {' | '.join(view.expected)}")
    lines += [f"tool {call.name}: {call.error or call.status}" for call in view.tool_calls if call.ok is False]
    lines += [f"{score.metric}: {score.reason}" for score in view.scores if score.reason]
    return "\n".join(lines)


def _difference_properties(changed: CaseDifference) -> dict[str, str]:
    """What became of a case against the baseline, before its scores."""
    answers = {f"baseline.{when}": printable_line(text, _TEXT_LENGTH) for when, text in describe_answers(changed)}
    scores = f": {describe_scores(changed)}" if changed.scores else ""
    return {"baseline.change": f"{changed.kind}{scores}", **answers}


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
        if comparison.sentence:
            properties["baseline.result"] = comparison.sentence
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
    causes = describe_groups(reported.failures)
    if causes:
        causes = ["why the agent failed:", *causes, f"next: {reported.failures[0].next}"]
    if known := describe_known_failures(decision):
        causes += ["known failures:", *known]
    content = _element("system-out", "\n".join([decision.headline, *causes]))
    if decision.exit_code:
        tag = "failure" if decision.exit_code == EXIT_FAILED else "error"
        reasons = "\n".join([*(describe_reason(reason) for reason in decision.reasons), *causes])
        message = printable_line(decision.headline, _MESSAGE_LENGTH)
        content = _element(tag, reasons, message=message, type=str(decision.verdict))
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
