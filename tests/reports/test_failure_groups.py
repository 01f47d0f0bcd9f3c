from __future__ import annotations

import json

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.adapters.failures import describe_error, traceback_text
from agentunit.engine.deciding.causes import cause_of_failure
from agentunit.engine.deciding.run_findings import CauseGroups
from agentunit.formulas.statistics import quantile
from agentunit.reports.failure_groups import describe_groups
from agentunit.reports.finding_text import with_commands


def failed(error: str, failure: str = "raised", trace: str = "") -> Record:
    metadata = {"failure": failure, **({"traceback": trace} if trace else {})}
    return Record(DatasetCase("x"), TraceLog(metadata=metadata), Outcome(success=False, error=error))


def groups_of(*records: Record, ids=None):
    groups = CauseGroups()
    for n, record in enumerate(records):
        groups.add(cause_of_failure(ids[n] if ids else f"q{n}", None, record, ""))
    return with_commands(groups.findings(), "last")


def test_messages_that_differ_in_values_are_one_cause_and_other_keys_are_another():
    found = groups_of(
        failed("ValueError: no order 'A-1' in 12 rows (desk.py:3 in look_up)"),
        failed("KeyError: 'HOME_URL' (desk.py:9 in ask)"),
        failed("ValueError: no order 'B-22' in 7 rows (desk.py:3 in look_up)"),
        failed("KeyError: 'API_KEY' (desk.py:9 in ask)"),
        failed("ValueError: no order 'C' in 1 rows (desk.py:77 in cancel)"),
    )
    assert [group.cases for group in found] == [("q0", "q2"), ("q1",), ("q3",), ("q4",)]
    assert found[0].next == "agentunit show last q0"


def test_timeouts_are_one_cause_wherever_the_agent_was():
    found = groups_of(
        failed("timeout: no answer within 5 s (it was at desk.py:3 in ask)", "timeout"),
        failed("timeout: no answer within 5 s (it was at desk.py:8 in wait)", "timeout"),
    )
    assert [group.n_records for group in found] == [2]
    assert found[0].error == "timeout: no answer within 5 s"


def test_repeats_of_a_case_count_but_its_id_stands_once():
    (group,) = groups_of(failed("E: x"), failed("E: x"), ids=["q1", "q1"])
    assert (group.n_records, group.cases) == (2, ("q1",))


def raised_by(function, *arguments) -> BaseException:
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001
        return error
    raise AssertionError


def test_the_line_is_of_the_users_code_not_of_a_library_nor_of_agentunit():
    def answer():
        return json.loads("{bad")

    def score():
        return quantile([], 0.5)

    for function, line in ((answer, 'return json.loads("{bad")'), (score, "return quantile([], 0.5)")):
        error = raised_by(function)
        (group,) = groups_of(failed(describe_error(error), trace=traceback_text(error)))
        assert group.place is not None
        assert group.place.endswith(f"in {function.__name__}"), group
        assert "test_failure_groups.py:" in group.place
        assert group.line == line


def test_many_causes_are_cut_and_what_they_say_is_made_printable():
    lines = describe_groups(groups_of(*(failed(f"E{'x' * n}: \x1b[2J ::error::y") for n in range(8))))
    assert lines[-1] == "and 3 other causes"
    assert not any("\x1b" in line or "::error" in line for line in lines)
