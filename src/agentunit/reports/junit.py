"""A run as JUnit XML: one test case a case, and one a gate.

A case is an ``error`` when the agent or a metric broke on it, and a ``failure`` when it breaks a gate on all values or
fails a check outright; a mediocre score is neither, since only a gate says how much is enough.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import IO
from xml.sax.saxutils import escape

from agentunit.reports.case_view import CaseView, view_case
from agentunit.reports.figures import quantity
from agentunit.reports.gate_words import (
    Verdict,
    broken_by,
    failed_checks,
    gate_expression,
    verdict_word,
)
from agentunit.reports.printable import clipped, printable, printable_line, xml_safe
from agentunit.reports.reported_run import ReportedCase, ReportedRun
from agentunit.reports.whole_file import whole_file

_IN_MEMORY_BYTES = 8_000_000
_TEXT_LENGTH = 4_000
_MESSAGE_LENGTH = 300


@dataclass
class _Counts:
    tests: int = 0
    failures: int = 0
    errors: int = 0
    elapsed_s: float = 0.0


def write_junit(reported: ReportedRun, path: str | os.PathLike[str], *, verdicts: Sequence[Verdict] = ()) -> int:
    """Write a run as JUnit XML; returns the number of cases."""
    header = reported.run.header
    # A suite states its counts before its cases: the cases wait in a buffer that moves to disk when it grows.
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as body, whole_file(path) as stream:
        cases = _write_cases(reported, verdicts, body)
        words = [verdict_word(verdict) for verdict in verdicts]
        gates = _Counts(len(words), words.count("FAIL"), sum(word not in ("PASS", "FAIL") for word in words))
        total = _Counts(
            cases.tests + gates.tests, cases.failures + gates.failures, cases.errors + gates.errors, cases.elapsed_s
        )
        _write(stream, '<?xml version="1.0" encoding="UTF-8"?>\n')
        _write(stream, f"<testsuites{_attributes(name='agentunit', **_counted(total))}>\n")
        stamp = datetime.fromtimestamp(header.created_at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        _write(stream, f"<testsuite{_attributes(name=header.name, timestamp=stamp, **_counted(cases))}>\n")
        _write(stream, _properties(_run_properties(reported)))
        body.seek(0)
        shutil.copyfileobj(body, stream)
        _write(stream, "</testsuite>\n")
        if verdicts:
            _write_gates(verdicts, gates, stream)
        _write(stream, "</testsuites>\n")
    return cases.tests


def _write_cases(reported: ReportedRun, verdicts: Sequence[Verdict], stream: IO[bytes]) -> _Counts:
    counts = _Counts()
    blamed: dict[str, list[str]] = {}
    for verdict in verdicts:
        for case_id in broken_by(verdict):
            blamed.setdefault(case_id, []).append(f"breaks the gate {gate_expression(verdict)}")
    repeated = reported.run.n_repeats > 1
    for case in reported.cases():
        view = view_case(case, brief=True)
        errors = _errors(case, view)
        failures = [*blamed.get(case.case_id, ()), *failed_checks(case.scores, reported.infos, verdicts)]
        counts.tests += 1
        counts.errors += bool(errors)
        counts.failures += bool(failures) and not errors
        counts.elapsed_s += case.elapsed_s
        name = f"{case.case_id} (repeat {view.repeat})" if repeated else case.case_id
        _write(stream, _testcase(reported, view, name, errors, failures))
    return counts


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
    reported: ReportedRun, view: CaseView, name: str, errors: list[tuple[str, str]], failures: list[str]
) -> str:
    parts = [f"<testcase{_attributes(classname=reported.run.header.name, name=name, time=f'{view.elapsed_s:.3f}')}>\n"]
    parts.append(_properties(_score_properties(reported, view)))
    if errors:
        kind, message = errors[0]
        told = "\n".join(each for _, each in errors)
        parts.append(_element("error", told, message=printable_line(message, _MESSAGE_LENGTH), type=kind))
    elif failures:
        message = "; ".join(failures)
        told = _case_text(view)
        parts.append(_element("failure", told, message=printable_line(message, _MESSAGE_LENGTH), type="check"))
    if view.printed:
        parts.append(_element("system-out", "\n".join(view.printed.values())))
    parts.append("</testcase>\n")
    return "".join(parts)


def _case_text(view: CaseView) -> str:
    lines = [f"question: {view.query or '–'}", f"answer: {view.answer or '–'}"]
    if view.expected:
        lines.append(f"expected: {' | '.join(view.expected)}")
    lines += [f"tool {call.name}: {call.error or call.status}" for call in view.tool_calls if call.ok is False]
    lines += [f"{score.metric}: {score.reason}" for score in view.scores if score.reason]
    return "\n".join(lines)


def _run_properties(reported: ReportedRun) -> dict[str, str]:
    header = reported.run.header
    properties = {
        "run": header.id,
        "status": header.status,
        "agentunit_version": header.agentunit_version,
        "n_cases": str(reported.run.n_cases),
        "n_failed": str(reported.run.n_failed),
    }
    for row in reported.summary.metrics:
        if row.mean is not None:
            interval = "" if row.low is None or row.high is None else f" [{row.low:.6g}, {row.high:.6g}]"
            status = "" if row.status == "ok" else f" ({row.status})"
            scored = f"scored {row.n_scored}/{row.n_cases}"
            properties[f"{row.metric}[{row.backend}].{row.aggregate}{status}"] = f"{row.mean:.6g}{interval}, {scored}"
    return properties


def _score_properties(reported: ReportedRun, view: CaseView) -> dict[str, str]:
    properties = {}
    for score in view.scores:
        if score.value is None:
            properties[score.metric] = f"{score.status}: {score.reason or 'no reason given'}"
        else:
            unit = reported.infos[score.metric].unit if score.metric in reported.infos else "score"
            informational = " (informational)" if score.status == "informational" else ""
            properties[score.metric] = f"{quantity(score.value, unit)}{informational}"
    return properties


def _write_gates(verdicts: Sequence[Verdict], counts: _Counts, stream: IO[bytes]) -> None:
    _write(stream, f"<testsuite{_attributes(name='gates', **_counted(counts))}>\n")
    for verdict in verdicts:
        _write(stream, f"<testcase{_attributes(classname='gates', name=gate_expression(verdict), time='0.000')}>\n")
        word = verdict_word(verdict)
        if word != "PASS":
            message = printable_line(f"{word}: {verdict.reason}", _MESSAGE_LENGTH)
            tag = "failure" if word == "FAIL" else "error"
            _write(stream, _element(tag, str(verdict.reason), message=message, type=word.lower()))
        _write(stream, "</testcase>\n")
    _write(stream, "</testsuite>\n")


def _counted(counts: _Counts) -> dict[str, str]:
    return {
        "tests": str(counts.tests),
        "failures": str(counts.failures),
        "errors": str(counts.errors),
        "skipped": "0",
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
