"""What reports show of personal data: checked types and credentials are masked in every one, unless asked for."""

from __future__ import annotations

import csv
import io
import json

import pytest
from viewer_client import report_text

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.addons.viewer.html_file import write_html
from agentunit.core.results import MetricResult, Score
from agentunit.engine.deciding.case_findings import CaseFinding
from agentunit.engine.deciding.decision import Decision, Reason, decide_run
from agentunit.engine.deciding.stored import keep_decision
from agentunit.reports._junit import write_junit
from agentunit.reports.case_console import print_case
from agentunit.reports.case_view import view_case
from agentunit.reports.markdown import run_markdown
from agentunit.reports.reported_run import Mask, ReportedCase, open_run
from agentunit.reports.reporters import write_csv
from agentunit.reports.terminal import Terminal

EMAIL, CARD, KEY = "mia.lindqvist@example.com", "4111 1111 1111 1111", "sk-abcdef0123456789abcdef"
SECRETS = (EMAIL, CARD, KEY, "hunter2xyz")


class Quoting:
    name = "quoting"

    def evaluate(self, case, trace, outcome):
        raise ValueError(f"cannot use {EMAIL}")


@pytest.fixture
def leaky(store, keep):
    trace = TraceLog(metadata={"stdout": f"key {KEY}", "password": "hunter2xyz"})
    trace.record("tool_call", name="pay", arguments={"card": CARD, "to": EMAIL}, status="error", error=f"no {EMAIL}")
    answer = f"I wrote to {EMAIL} and charged {CARD}."
    record = Record(
        DatasetCase("q1", f"Write to {EMAIL}", answer, context=[f"card {CARD}"]),
        trace,
        Outcome(success=False, output=answer),
    )
    keep(
        store,
        [[record]],
        metrics=["task_success", "tool_success", "exact_match", Quoting()],
        gates=["tool_success >= 1"],
    )
    return lambda show: open_run("run-1", store, show_personal_data=show)


def every_report(reported, folder):
    out = io.StringIO()
    (case,) = reported.case("q1")
    print_case(view_case(case), reported.infos, Terminal(file=out, width=120), full=True)
    made = {
        "show": out.getvalue(),
        "markdown": run_markdown(reported),
    }
    for name, write in (("html", write_html), ("junit", write_junit), ("csv", write_csv)):
        write(reported, folder / name)
        made[name] = report_text(folder / name)
    return made


def test_no_report_shows_a_value(leaky, tmp_path):
    for name, text in every_report(leaky(False), tmp_path).items():
        assert not [secret for secret in SECRETS if secret in text], name
        assert "EMAIL_1" in text, name


def test_one_switch_shows_them_all(leaky, tmp_path):
    made = every_report(leaky(True), tmp_path)
    assert [name for name, text in made.items() if EMAIL not in text.replace("&#64;", "@")] == []


def test_a_value_has_one_mask_in_a_report_and_texts_stay_comparable(leaky):
    (case,) = leaky(False).case("q1")
    view = view_case(case)
    assert view.answer == view.expected[0] == "I wrote to <EMAIL_1> and charged <CREDIT_CARD_1>."
    assert view.tool_calls[0].arguments == {"card": "<CREDIT_CARD_1>", "to": "<EMAIL_1>"}
    # What has no form of its own stays: the id by which a case is found, names, numbers.
    assert (view.case_id, case.scores["exact_match"].result.value) == ("q1", 1.0)


def test_the_columns_of_a_table_keep_their_reasons(leaky, tmp_path):
    write_csv(leaky(False), tmp_path / "run.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "run.csv").read_text(encoding="utf-8"))))
    (broken,) = [row for row in rows if row["metric"] == "quoting"]
    assert broken["reason"].startswith("ValueError: cannot use <EMAIL_1>")


def test_a_clean_case_is_not_touched():
    mask = Mask()
    assert mask.text("Order 1044 arrives on 2026-11-20.") == "Order 1044 arrives on 2026-11-20."
    assert mask.data({"n": 3, "model": "small-1.2"}) == {"n": 3, "model": "small-1.2"}


def test_the_summary_does_not_quote_a_value(leaky):
    assert EMAIL not in json.dumps([entry.reason for entry in leaky(False).summary.unscored])
    assert EMAIL in json.dumps([entry.reason for entry in leaky(True).summary.unscored])


def test_case_ids_in_a_headline_stay_so_that_the_cases_can_be_looked_up():
    reason = Reason("gate", 1, "m >= 1", "ada@example.org misses", ("ada@example.org",))
    decision = Decision(1, "fail", "FAIL: m >= 1 in ada@example.org; told by bob@example.org", (reason,))
    masked = Mask().decision(decision)
    assert masked.headline == "FAIL: m >= 1 in ada@example.org; told by <EMAIL_1>"
    assert masked.reasons[0].cases == ("ada@example.org",)


def test_numbers_as_case_ids_do_not_change_a_headline_or_hide_a_card():
    reason = Reason("gate", 1, "m >= 0.1", "", ("2", "1", "0"))
    headline = f"FAIL: m >= 0.1 in 2, 1, 0; said {CARD} to 1"
    masked = Mask().decision(Decision(1, "fail", headline, (reason,)))
    assert masked.headline == "FAIL: m >= 0.1 in 2, 1, 0; said <CREDIT_CARD_1> to 1"


@pytest.mark.parametrize("cut", [f"{EMAIL[:17]}…", f"{CARD[:17]}…"])
def test_what_a_sentence_cuts_short_is_masked(cut):
    finding = CaseFinding("q1", "wrong", None, "contains", why=f'missing: "{cut}"')
    decision = Decision(1, "fail", f'FAIL: 1 wrong (q1: missing: "{cut}', findings=(finding,), line=f"said {cut}")
    masked = Mask().decision(decision)
    assert (masked.headline, masked.line) == ('FAIL: 1 wrong (q1: missing: "…', "said …")
    assert masked.findings[0].why == 'missing: "…"'
    assert Mask(show_all=True).decision(decision) == decision


def test_decisions_that_were_kept_are_masked_in_every_report(leaky, store, tmp_path):
    found = CaseFinding("q1", "wrong", None, "tool_success", why=f"told {EMAIL}", n_failed=1, n_tries=1)
    reason = Reason("wrong", 1, "cases", "1 wrong", ("q1",))
    for made_by in ("run", "gate"):
        decision = Decision(1, "fail", f"FAIL: 1 wrong (q1: told {EMAIL})", (reason,), findings=(found,), line=EMAIL)
        keep_decision(store, "run-1", decision, made_by)
    keep_decision(store, "run-1", decide_run(leaky(True).run), "compare")
    for name, text in every_report(leaky(False), tmp_path).items():
        assert not [secret for secret in SECRETS if secret in text], name
    shown = run_markdown(leaky(False))
    assert "**FAIL: 1 wrong (q1: told &lt;EMAIL_1>)**" in shown
    assert "- gate, " in shown


def told_cases(n_cases):
    told = [
        {"answer": "Write to ada@example.org.", "password": "hunter22horse"},
        {"answer": "It opens at nine.", "note": "hunter22horse is a word"},
        {"answer": "The key of the door is hunter22horse.", "password": "hunter22horse"},
    ]
    cases = []
    for number in range(n_cases):
        said = told[number % 3]
        metadata = {name: text for name, text in said.items() if name != "answer"}
        result = MetricResult("exact_match", number / n_cases, {"answer": said["answer"]})
        score = Score(result, "ok", "text", "1", elapsed=float(number), why=said["answer"])
        record = Record(DatasetCase(f"q{number}", "What?", metadata=metadata), outcome=said["answer"])
        cases.append(ReportedCase(number, 0, f"q{number}", False, 0.0, record, {"exact_match": score}))
    return cases


def test_what_is_said_of_many_scores_is_masked_once():
    cases = told_cases(2_000)
    mask = Mask()
    looked_at: list[int] = []
    redact = mask._redactor.redact_data
    mask._redactor.redact_data = lambda plain: looked_at.append(len(plain)) or redact(plain)
    scored = list(mask.scored(iter(cases)))
    assert sum(looked_at) == 3
    assert [each.scores for each in scored] == [each.scores for each in Mask().cases(cases)]
    assert scored[2].scores["exact_match"].why == "The key of the door is <PASSWORD_1>."
    assert list(Mask(show_all=True).scored(cases)) == cases


def test_cases_are_masked_together_as_one_by_one():
    """Many at once are faster; each is masked by what it says itself, not by what the others say."""
    cases = told_cases(70)
    mask = Mask()
    looked_at: list[int] = []
    redact = mask._redactor.redact_data
    mask._redactor.redact_data = lambda plain: looked_at.append(len(plain)) or redact(plain)
    together = list(mask.cases(iter(cases)))
    assert len(looked_at) < 10
    assert sum(looked_at) == 70
    one_by_one = Mask()
    assert together == [one_by_one.case(case) for case in cases]
    assert together[0].scores["exact_match"].why == "Write to <EMAIL_1>."
    assert together[1].record.case.metadata["note"] == "hunter22horse is a word"
    assert "hunter22horse" not in str(together[2])
    assert (together[1].record, together[1].scores) == (cases[1].record, cases[1].scores)
