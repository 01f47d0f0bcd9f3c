from __future__ import annotations

import io

import pytest
from rich.console import Console

from agentunit.engine.comparison import Comparison
from agentunit.reports.decision_console import print_comparison


@pytest.mark.parametrize("note", [None, "the datasets differ: cases of the same id may not be the same case"])
def test_a_doubt_about_the_whole_comparison_is_printed(note):
    out = io.StringIO()
    print_comparison(Comparison("old", "new", 62, 58, 0, 0.05, (), note), Console(file=out, width=60))
    first, *rest = out.getvalue().strip().splitlines()
    assert first == "Against the baseline old → new: 62 cases in both, 58 only in the baseline"
    assert rest == ([note] if note else [])
