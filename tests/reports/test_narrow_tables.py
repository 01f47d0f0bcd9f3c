"""Tables in a narrow window: words of state are whole, and no value is left out."""

from __future__ import annotations

import io

import pytest

from agentunit.core.results import MetricSummary, RunSummary
from agentunit.metrics.base import MetricInfo
from agentunit.reports.console import plain_table, print_run
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


def test_what_to_look_at_counts_only_what_is_worth_a_look():
    def row(metric: str, cases: list[str], n_below_best: int, share: float | None) -> MetricSummary:
        return MetricSummary(
            metric, "x", "1", "ok", 60, 60, mean=0.6, worst_cases=cases, n_below_best=n_below_best,
            mean_of="" if share is None else "support", share_low=share, cut=None if share is None else (0.3, 0.44),
            n_low_cases=None if share is None else round(60 * share),
        )  # fmt: skip

    worst = [f"c{number}" for number in range(5)]
    rows = [
        row("faithfulness", worst, 53, 0.1),  # 53 could be better; six are low
        row("hallucination_rate", worst, 53, 0.1),
        row("answer_correctness", worst, 41, 0.0),  # none is
        *(row(f"check_{number}", [f"d{number}"], 1, None) for number in range(8)),
    ]
    infos = {each.metric: MetricInfo(each.metric, "quality", "", range=(0.0, 1.0)) for each in rows}
    lower = MetricInfo("hallucination_rate", "quality", "", range=(0.0, 1.0), direction="lower")
    infos["hallucination_rate"] = lower
    summary = RunSummary(60, rows, [], 0, [], 0, 1.0)
    text = printed(120, lambda console: print_run(summary, infos, console)).partition("Look at\n")[2]
    assert text.splitlines()[0] == "  faithfulness, hallucination_rate: c0, c1, c2, c3, c4 and 1 more"
    assert "answer_correctness:" not in text
    assert "… and 3 more metrics" in text
