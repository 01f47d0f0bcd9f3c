"""The pytest plugin: agents run and scored inside tests, one test for each case of a dataset.

pytest loads this module at every start, also where no test uses it. So it imports pytest and nothing else; the rest
is an add-on, ``addons/pytest_plugin``, and comes with the first test that has the marker or the fixture.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from typing import Any

import pytest

_MARKER = "agentunit"
_MARKER_HELP = (
    "agentunit(dataset=FILE, gates=[…], passes=K, of=N, grader_fields=[…], agent_fields=[…]): one test for each case "
    "of a dataset (argument 'case'); thresholds for every evaluation; run the test N times and pass when K of them do; "
    "metadata that agents do not receive, or all that they do."
)
_REPORT_ENDINGS = (".json", ".md", ".html")

# What the add-on leaves for the hooks: what a test evaluated, how many attempts passed, that this is one of them.
GATHERING = pytest.StashKey[Any]()
PASSES = pytest.StashKey[str]()
IS_ATTEMPT = pytest.StashKey[bool]()


def _part(name: str) -> Any:
    from agentunit import doors

    return doors.part(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer ``--agentunit-report`` and ``--show-personal-data``."""
    group = parser.getgroup("agentunit", "agentunit: evaluation of AI agents")
    group.addoption(
        "--agentunit-report",
        metavar="FILE",
        help=f"Write all evaluations of the session here; the ending decides: {', '.join(_REPORT_ENDINGS)}.",
    )
    group.addoption(
        "--show-personal-data",
        action="store_true",
        help="Show e-mail addresses, card numbers, credentials and the like, which agentunit masks otherwise.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and gather results where reports come together: not in a worker of xdist."""
    config.addinivalue_line("markers", _MARKER_HELP)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_TestSession(config), "agentunit-session")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of every case of the dataset that the marker names."""
    if metafunc.definition.get_closest_marker(_MARKER) is not None:
        _part("pytest_cases")(metafunc)


@pytest.fixture
def agentunit_eval(request: pytest.FixtureRequest) -> Any:
    """Run an agent on a case and score what it did: ``agentunit_eval(agent, case, metrics=[…])``.

    ``agentunit_eval.score(record, metrics=[…])`` scores a recorded trace.
    """
    return _part("pytest_evaluator")(request)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a test that is marked "k of n" n times, each time as pytest and its other plugins would."""
    __tracebackhide__ = True
    if pyfuncitem.get_closest_marker(_MARKER) is not None and IS_ATTEMPT not in pyfuncitem.stash:
        return (yield from _part("pytest_attempts")(pyfuncitem))
    result = yield
    if GATHERING in pyfuncitem.stash:
        pyfuncitem.stash[GATHERING].end()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the evaluations travel with the report of their test, as text: so they reach the other side of xdist."""
    gathering = item.stash.get(GATHERING, None)
    report = yield
    if gathering is not None:
        carried: Any = report
        carried.agentunit = gathering.take_payload()
    if call.when == "call" and PASSES in item.stash:
        carried = report
        carried.agentunit_passes = item.stash[PASSES]
        del item.stash[PASSES]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Say "4/5" beside the verdict of a test that was run several times."""
    passes = getattr(report, "agentunit_passes", None)
    if passes is None or report.outcome == "skipped" or hasattr(report, "wasxfail"):
        return None
    return (report.outcome, ".", f"PASSED {passes}") if report.passed else (report.outcome, "F", f"FAILED {passes}")


class _Test:
    """What the reports of one test brought along."""

    __slots__ = ("outcome", "parts", "passes")

    def __init__(self) -> None:
        self.outcome = ""
        self.passes: str | None = None
        self.parts: list[str] = []


class _TestSession:
    """What all tests of a session evaluated, for the summary and the report."""

    def __init__(self, config: pytest.Config) -> None:
        self._started_at = time.time()
        self._tests: dict[str, _Test] = {}
        self._report_path = _checked_path(config)
        self._show_personal_data = bool(config.getoption("show_personal_data"))
        self._report_error: str | None = None
        self._made: Any = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in one report, from this process or a worker."""
        evaluated = getattr(report, "agentunit", None)
        passes = getattr(report, "agentunit_passes", None)
        if report.nodeid not in self._tests and evaluated is None and passes is None:
            return
        test = self._tests.setdefault(report.nodeid, _Test())
        if report.when == "call" or report.failed or not test.outcome:
            test.outcome = report.outcome
        test.passes = passes or test.passes
        if evaluated is not None:
            test.parts.append(evaluated)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the report, also when nothing was evaluated: an old file must not look like today's."""
        if self._report_path is None or session.config.option.collectonly:
            return
        from agentunit.reports.reporters import ReportError

        try:
            self._report(exitstatus).write(self._report_path)
        except ReportError as error:
            # Said in the summary: an exception here would take the list of failed tests with it.
            self._report_error = str(error)
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Print the table of metrics, if there is one."""
        if not self._tests and self._report_error is None:
            return
        terminalreporter.section("agentunit")
        for line in self._report(exitstatus).terminal_lines():
            terminalreporter.write_line(line)
        if self._report_error is not None:
            terminalreporter.write_line(f"no report: {self._report_error}", red=True)
        elif self._report_path is not None:
            terminalreporter.write_line(f"report: {self._report_path}")

    def _report(self, exit_code: int) -> Any:
        if self._made is None:
            came = [(nodeid, test.outcome, test.passes, test.parts) for nodeid, test in self._tests.items()]
            self._made = _part("pytest_report")(
                came,
                started_at=self._started_at,
                exit_code=int(exit_code),
                show_personal_data=self._show_personal_data,
            )
        return self._made


def _checked_path(config: pytest.Config) -> str | None:
    """Where the report goes. That it cannot be written should be known before an hour of tests, not after."""
    received = config.getoption("agentunit_report")
    if received is None:
        return None
    path = config.invocation_params.dir / os.path.expanduser(received)
    if path.suffix.lower() not in _REPORT_ENDINGS:
        endings = ", ".join(_REPORT_ENDINGS)
        raise pytest.UsageError(f"--agentunit-report: the file must end in {endings}; received {received!r}")
    if not path.parent.is_dir():
        raise pytest.UsageError(f"--agentunit-report: the folder of {received!r} does not exist")
    return str(path)
