"""What became of each case: by its scores and its answers, listed before any statistics in every report."""

from __future__ import annotations

import html
import json
import random
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from viewer_client import report_text

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.cli.main import cli
from agentunit.core.results import MetricResult, Score
from agentunit.engine import case_differences as module
from agentunit.engine.compare import compare_runs
from agentunit.engine.decision import decide_comparison
from agentunit.engine.detectable import Sample
from agentunit.engine.scored_run import ScoredRun, run_from_store
from agentunit.formulas.paired import mcnemar_test, paired_permutation_test, smallest_detectable_drop
from agentunit.store.runs import RunHeader, ScoreRow
from agentunit.store.sqlite import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.db") as opened:
        yield opened


def keep(store, run_id, cases, *, metric="tool_success", gates=()):
    """A run: by case id a list of repeats, each (answer, value); an answer that is an error is a failed agent."""
    header = store.create_run(
        "desk", agentunit_version="0", settings={"gates": list(gates)}, n_planned=len(cases), run_id=run_id
    )
    for position, (case_id, repeats) in enumerate(cases.items()):
        for repeat, (answer, value) in enumerate(repeats):
            failed = isinstance(answer, Exception)
            outcome = Outcome(error=str(answer)) if failed else Outcome(output=answer)
            record = Record(DatasetCase(case_id, "?"), TraceLog(), outcome)
            store.add_record(header.id, position, repeat, record, failed=failed, elapsed_s=0.1)
            if not failed:
                score = Score(MetricResult(metric, value, {}), "ok", "b", "1", 0.0)
                store.add_scores(header.id, position, repeat, {metric: score})
    store.set_status(header.id, "finished", finished_at=header.created_at + 1)


def compared(store, old, new, **how):
    keep(store, "old", old, **how)
    keep(store, "new", new, **how)
    return compare_runs(run_from_store(store, "new"), run_from_store(store, "old"))


def kinds(comparison):
    return {each.case_id: each.kind for each in comparison.differences}


def test_each_kind_by_hand(store):
    old = {"a": [("yes", 1.0)], "b": [("no", 0.0)], "c": [("same", 1.0)], "d": [("one way", 1.0)], "e": [("x", 1.0)]}
    new = {"a": [("??", 0.0)], "b": [("yes", 1.0)], "c": [("same", 1.0)], "d": [("another", 1.0)]}
    new["e"] = [(KeyError("KEY"), None)]
    comparison = compared(store, old, new)
    assert kinds(comparison) == {"a": "newly failing", "e": "newly failing", "b": "fixed", "d": "other answer"}
    assert comparison.n_by_kind == {
        "newly failing": 2,
        "worse": 0,
        "fixed": 1,
        "better": 0,
        "other answer": 1,
        "unchanged": 1,
    }
    first, crashed, fixed, _ = comparison.differences
    assert (first.baseline.text, first.candidate.text, first.same_answer) == ("yes", "??", False)
    assert [(each.metric, each.baseline, each.candidate) for each in first.scores] == [("tool_success", 1.0, 0.0)]
    assert (crashed.candidate.text, crashed.candidate.error) == (None, "'KEY'")
    assert crashed.scores[0].metric == "answered"
    assert (fixed.baseline.text, fixed.candidate.text) == ("no", "yes")
    assert not comparison.is_unchanged


def test_of_several_repeats_the_answers_that_show_the_change_are_kept(store):
    old = {"a": [("right", 1.0), ("right", 1.0), ("wrong", 0.0)], "b": [("r", 1.0)] * 3}
    new = {"a": [("right", 1.0), ("broken", 0.0), ("broken", 0.0)], "b": [("r", 1.0), ("w", 0.0), ("r", 1.0)]}
    comparison = compared(store, old, new)
    # Half of the repeats must pass: two of three still do in b.
    assert kinds(comparison) == {"a": "newly failing", "b": "worse"}
    assert [(each.baseline.text, each.candidate.text) for each in comparison.differences] == [
        ("right", "broken"),
        ("r", "w"),
    ]


def test_a_gate_says_which_graded_scores_fail(store):
    old = {"a": [("x", 0.9)], "b": [("x", 0.9)], "c": [("x", 0.3)]}
    new = {"a": [("y", 0.4)], "b": [("y", 0.6)], "c": [("x", 0.5)]}
    comparison = compared(store, old, new, metric="answer_correctness", gates=["answer_correctness >= 0.5"])
    assert kinds(comparison) == {"a": "newly failing", "b": "worse", "c": "fixed"}
    assert {each.case_id: each.same_answer for each in comparison.differences} == {"a": False, "b": False, "c": True}


def test_few_tokens_more_make_no_case_worse(store):
    keep(store, "old", {"a": [("x", 100.0)]}, metric="token_usage")
    keep(store, "new", {"a": [("x", 101.0)]}, metric="token_usage")
    for run_id in ("old", "new"):
        score = Score(MetricResult("tool_success", 1.0, {}), "ok", "b", "1", 0.0)
        store.add_scores(run_id, 0, 0, {"tool_success": score})
    runs = [run_from_store(store, run_id) for run_id in ("new", "old")]
    assert compare_runs(*runs).is_unchanged
    assert kinds(compare_runs(*runs, on=["token_usage"])) == {"a": "worse"}


def test_many_changes_are_counted_and_some_are_listed(store, monkeypatch):
    monkeypatch.setattr(module, "MOST_LISTED", 2)
    monkeypatch.setattr(module, "_MOST_ANSWERED", 1)
    old = {f"c{place}": [("x", 1.0)] for place in range(5)}
    new = {f"c{place}": [("y", 0.1 * place)] for place in range(5)}
    comparison = compared(store, old, new)
    assert comparison.n_by_kind["worse"] == 5
    assert [each.case_id for each in comparison.differences] == ["c0", "c1"]
    assert [each.candidate is None for each in comparison.differences] == [False, True]


def test_records_are_read_once(store):
    keep(store, "old", {"a": [("x", 1.0)]})
    keep(store, "new", {"a": [("y", 0.0)]})
    runs = [run_from_store(store, run_id) for run_id in ("new", "old")]
    reads = []
    for run in runs:
        run.read_records = lambda read=run.read_records: (reads.append(1), read())[1]
    compare_runs(*runs)
    assert len(reads) == 2


@pytest.mark.parametrize("n", [1, 7, 66])
def test_the_same_outputs_are_no_change_whatever_counts(store, n):
    cases = {f"c{place}": [(f"answer {place}", float(place % 3 > 0))] for place in range(n)}
    comparison = compared(store, cases, cases)
    assert comparison.is_unchanged
    assert decide_comparison(comparison).exit_code == 0
    keep(store, "none", cases, metric="mine")
    itself = run_from_store(store, "none")
    assert decide_comparison(compare_runs(itself, itself)).exit_code == 0


def test_every_report_lists_the_cases_first_and_masks_their_answers(tmp_path):
    path = tmp_path / "runs.db"
    with Store(path) as store:
        keep(store, "old", {"q1": [("Write to ada@example.org", 1.0)], "q2": [("fine", 1.0)]})
        keep(store, "new", {"q1": [("<b>Write</b> to bob@example.org", 0.0)], "q2": [("fine", 1.0)]})
    where = ["--store", str(path)]

    def output(*arguments):
        return CliRunner().invoke(cli, [*arguments, *where]).output

    made = {"terminal": output("compare", "old", "new"), "json": output("compare", "old", "new", "--json")}
    for name in ("run.html", "run.md", "run.xml"):
        output("export", "new", "--to", str(tmp_path / name), "--baseline", "old")
        made[name] = html.unescape(report_text(tmp_path / name))
    for name, text in made.items():
        assert "q1" in text, name
        assert "newly failing" in text.casefold(), name
        assert "example.org" not in text, name
        assert "<EMAIL_" in text, name
    lines = made["terminal"].splitlines()
    assert lines[2] == "1 newly failing, 1 unchanged"
    assert lines[6] == "    before: Write to <EMAIL_1>"
    assert '"candidate": {"text": "<b>Write</b> to <EMAIL_' in made["run.html"]
    assert "<b>Write" not in (tmp_path / "run.html").read_text()
    assert made["run.md"].index("Newly failing (1)") < made["run.md"].index("| metric |")
    listed = json.loads(made["json"])["comparison"]["differences"]
    assert [(each["case_id"], each["baseline"]["text"]) for each in listed] == [("q1", "Write to <EMAIL_1>")]
    root = ElementTree.parse(tmp_path / "run.xml").getroot()
    changes = [each.get("value") for each in root.iter("property") if each.get("name") == "baseline.change"]
    assert changes == ["newly failing: tool_success 1.00 → 0.00"]
    assert "ada@example.org" in output("compare", "old", "new", "--show-personal-data")


# What a comparison of this size could have shown


@pytest.mark.parametrize(("b", "c", "n", "alpha"), [(0, 0, 66, 0.05), (4, 3, 66, 0.05), (10, 12, 200, 0.025)])
def test_the_power_of_the_mcnemar_test_holds_in_simulation(b, c, n, alpha):
    drop = smallest_detectable_drop(b, c, n, alpha=alpha)
    rate, source = (b + c) / (2 * n), random.Random(f"{b} {c} {n}")
    trials, found = 1500, 0
    for _ in range(trials):
        draws = [source.random() for _ in range(n)]
        gains = sum(each < rate for each in draws)
        losses = sum(rate <= each < 2 * rate + drop for each in draws)
        found += mcnemar_test(gains, losses, alternative="less") < alpha
    assert found / trials == pytest.approx(0.8, abs=0.035)


@pytest.mark.parametrize("sd", [0.0, 0.05, 0.2])
def test_the_power_of_the_sign_flip_test_holds_in_simulation(sd):
    source, n = random.Random(7), 66

    def noise():
        return [max(-1.0, min(1.0, source.gauss(0.0, sd))) for _ in range(n)]

    trials, found = 300, 0
    for _ in range(trials):
        gains = noise()
        drop = Sample(gains, 1.0, is_pass_fail=False).smallest_detectable(0.05)
        new = [-1.0 if source.random() < drop else gain for gain in noise()]
        found += paired_permutation_test(new, alternative="less", resamples=400) < 0.05
    assert 0.74 < found / trials < 0.97


def test_so_few_cases_show_nothing():
    assert smallest_detectable_drop(0, 0, 4) is None
    assert Sample([0.1, -0.1, 0.2, 0.0], 1.0, is_pass_fail=False).smallest_detectable(0.05) is None
    for wrong in ({"b": -1}, {"n": 0}, {"alpha": 0.7}, {"power": 1.0}):
        with pytest.raises(ValueError, match="must be"):
            smallest_detectable_drop(**{"b": 0, "c": 0, "n": 9, **wrong})


# Whether chance makes so many cases fail in every repeat


def test_the_chance_of_broken_cases_counts_the_ways_in_which_failures_may_fall():
    def chance(old: list[list[float]], new: list[list[float]]) -> float | None:
        header = RunHeader("r", "r", 0.0, 1.0, "finished", 0, "0", {})
        runs = (ScoredRun(header, len(each), 0, 0, {"tool_success": rows_of(each)}) for each in (new, old))
        return compare_runs(*runs, gates=["tool_success >= 0.5"]).p_broken

    good, bad, mixed = [1.0] * 3, [0.0] * 3, [1.0, 1.0, 0.0]
    assert chance([good] * 9, [good] * 9) is None
    assert chance([good] * 9, [bad, *[good] * 8]) == pytest.approx(1 / 20)
    assert chance([good] * 9, [bad, bad, *[good] * 7]) == pytest.approx(1 / 400)
    # A case with three failures elsewhere could have been lost as well: 1 − (19 / 20)².
    assert chance([good, mixed], [bad, [1.0, 0.0, 0.0]]) == pytest.approx(1 - 0.95**2)
    assert chance([[1.0]] * 9, [[0.0], *[[1.0]] * 8]) == pytest.approx(1 / 2)


def rows_of(cases: list[list[float]]) -> list[ScoreRow]:
    return [
        ScoreRow(place, repeat, f"c{place}", value, "ok", "b", "1")
        for place, values in enumerate(cases)
        for repeat, value in enumerate(values)
    ]
