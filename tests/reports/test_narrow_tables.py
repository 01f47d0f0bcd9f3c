"""Tables in a narrow window: words of state are whole, and no value is left out."""

from __future__ import annotations

import io

import pytest

from agentunit.core.results import MetricSummary, RunFinding, RunSummary
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import plain_table, print_block, print_run
from agentunit.reports.run_console import print_runs
from agentunit.reports.terminal import Terminal, Text
from agentunit.store.runs import RunHeader


def printed(width: int, show) -> str:
    out = io.StringIO()
    show(Terminal(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("status", ["running", "finished", "stopped", "interrupted"])
@pytest.mark.parametrize("width", [60, 72, 80, 100])
def test_the_state_of_a_run_is_never_cut(status, width):
    header = RunHeader(
        "20261115-100338-3288", "a desk", 1.7e9, None, status, 12_000, "1", {"tags": {"model": "x" * 30}}
    )
    header.n_done, header.n_failed = 1_200, 1_200
    text = printed(width, lambda console: print_runs([(header, {})], {header.id: "cannot tell"}, {}, console))
    assert status in text
    assert "CANNOT TELL" in text
    assert header.id in text
    assert "…" not in text


@pytest.mark.parametrize("word", ["not compared", "cannot tell", "regression"])
def test_a_fixed_word_stays_whole_beside_long_texts(word):
    table = plain_table("metric", "why", "", fixed=("",))
    table.add_row(Text("m" * 30), Text("because of a long story " * 5), Text(word))
    assert word in printed(50, lambda console: console.print(table))


def test_the_value_of_a_metric_is_shown_in_a_narrow_window():
    row = MetricSummary("answer_correctness", "patterns", "1", "ok", 65, 61, mean=0.85, low=0.8, high=0.9)
    row.trust = "strong, agreement 0.82"
    infos = {"answer_correctness": MetricInfo("answer_correctness", "quality", "", range=(0.0, 1.0))}
    summary = RunSummary(65, [row], [], 0, [], 0, 1.0)
    for width in (64, 80):
        text = printed(width, lambda console: print_run(summary, infos, console))
        assert "0.85" in text
        assert "61/65" in text


@pytest.mark.parametrize("width", [80, 100])
def test_a_score_and_its_interval_stay_on_one_line(width):
    row = MetricSummary("hallucination_rate", "outcome", "1", "ok", 165, 161, mean=0.93, low=0.82, high=0.98)
    row.trust = "useful, AUROC 0.82 (local)"
    infos = {"hallucination_rate": MetricInfo("hallucination_rate", "quality", "", range=(0.0, 1.0))}
    summary = RunSummary(165, [row], [], 0, [], 0, 1.0)
    assert "0.93 [0.82, 0.98]" in printed(width, lambda console: print_run(summary, infos, console))


@pytest.mark.parametrize(
    "trust", ["strong, agreement 0.82", "useful, AUROC 0.73 on given context; mean off by up to 0.4"]
)
@pytest.mark.parametrize("bounds", [(None, None), (0.8, 0.9)])
def test_trust_is_broken_between_words_only(trust, bounds):
    infos = {"answer_correctness": MetricInfo("answer_correctness", "quality", "", "higher", range=(0.0, 1.0))}
    for backend in ("local", "local-large"):
        for width in range(62, 130):
            row = MetricSummary("answer_correctness", backend, "1", "ok", 1, 1, mean=0.85, trust=trust)
            row.low, row.high = bounds
            summary = RunSummary(1, [row], [], 0, [], 0, 1.0)
            text = printed(width, lambda console, summary=summary: print_run(summary, infos, console))
            assert set(trust.split()) <= set(text.split()), text


FINDING = RunFinding(
    "contains", '"We ship it on Monday, and it is with you on Wednesday at the latest."', None, None, 4, ("c36",),
    "agentunit show 20261115-100338-3288 c36", "contains",
    'contains: missing: "Room 36", "floor 3"', None, 4, 40, "broken",
)  # fmt: skip


@pytest.mark.parametrize("width", [60, 72, 80, 100, 140])
def test_a_finding_takes_two_lines_and_none_is_wider_than_the_window(width):
    text = printed(width, lambda console: print_block(["FAIL: 4 broken"], [FINDING], console))
    verdict, blank, *lines = text.splitlines()
    assert (verdict, blank) == ("FAIL: 4 broken", "")
    assert len(lines) == 2
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("4 of 40 cases broken: contains: missing")
    assert sum("agentunit show 20261115-100338-3288 c36" in line for line in lines) == 1


def test_five_findings_are_shown_and_the_others_are_counted():
    text = printed(100, lambda console: print_block(["FAIL"], [FINDING] * 7, console))
    assert text.count("of 40 cases broken") == 5
    assert "… and 2 more findings (--why shows them)" in text
    assert printed(100, lambda c: print_block(["FAIL"], [FINDING] * 7, c, all_rows=True)).count("of 40 cases") == 7
