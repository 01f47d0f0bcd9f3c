from __future__ import annotations

import io

import pytest

from agentunit.engine.deciding.case_findings import CaseFinding
from agentunit.engine.deciding.comparison import CaseDifference, CaseStanding, Comparison
from agentunit.engine.deciding.decision import Decision
from agentunit.reports.decision_console import print_comparison, print_verdict
from agentunit.reports.terminal import Terminal


@pytest.mark.parametrize("note", [None, "the datasets differ: cases of the same id may not be the same case"])
def test_a_doubt_about_the_whole_comparison_is_printed(note):
    out = io.StringIO()
    comparison = Comparison("old", "new", 62, 58, 0, 0.01, (), note)
    print_comparison(Decision(0, "pass", "PASS", comparison=comparison), Terminal(file=out, width=60))
    first, *rest = out.getvalue().strip().splitlines()
    assert first == "Against the baseline old → new: 62 cases in both, 58 only in the baseline"
    assert rest == ([note] if note else [])


def test_the_sentence_comes_first_and_the_way_out_last():
    standings = {
        "q1": CaseStanding("newly failing", True, False, "contains", 2, 2, 10, (3, 3)),
        "q2": CaseStanding("fixed", False, True, "contains", 0, 2, None, (0, 3)),
        "q3": CaseStanding("changed"),
    }
    comparison = Comparison(
        "old", "new", 3, 0, 0, 0.01, (),
        differences=tuple(CaseDifference(case_id, each.kind) for case_id, each in standings.items()),
        n_by_kind={each.kind: 1 for each in standings.values()}, cases=standings,
    )  # fmt: skip
    findings = (CaseFinding("q1", "wrong", "newly failing", "contains", why='missing: "Room 36"'),)
    headline = "CANNOT TELL: 1 newly failing, not tried to the end (q1)"
    decision = Decision(4, "cannot tell", headline, comparison=comparison, findings=findings, line="1 case is gone")
    out = io.StringIO()
    print_verdict(decision, (), Terminal(file=out, width=80), "agentunit show new")
    first, _, *cases = out.getvalue().split("\n\n")
    assert first == f"{headline}\n1 case is gone"
    assert ["", *cases] == [
        "",
        "Newly failing, not tried to the end (1)\n"
        '  q1  missing: "Room 36" (contains failed 2 of 2, passed 3 of 3 before; broken after 10)',
        "Fixed (1)\n  q2  contains passed 2 of 2, passed 0 of 3 before",
        "Changed: another question or expected answer under the same id (1)\n  q3\n"
        "next: agentunit rerun new --newly-failing --baseline old\n",
    ]
