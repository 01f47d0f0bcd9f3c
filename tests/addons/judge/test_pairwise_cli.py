"""``--judge pairwise``: which of two answers is better, over the true HTTP path, from the question to every report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_decisions import decide, texts_of
from judge_faults import Fault, failing
from judge_server import JudgeServer, Received
from kept_records import add_record
from viewer_client import report_text

from agentunit import DatasetCase, Outcome, Record
from agentunit.addons.judge.settings import configure_judge
from agentunit.backends.quality import load_backend
from agentunit.cli import sending_notice as consent
from agentunit.store.sqlite import DEFAULT_PATH, Store

EXPECTED = "Monday in the town of Oslo"
# What the new run says where the baseline says "Monday"; the judge counts words of the expected answer.
NEW = {
    "w1": "Monday in Oslo",
    "w2": "Monday in town",
    "w3": "Monday, Oslo",
    "lost": "Friday",
    "tie": "Oslo",
    "same": "Monday ",
    "silent": None,
}


@pytest.fixture(autouse=True)
def no_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("AGENTUNIT_JUDGE_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", str(tmp_path / "replies"))
    yield
    configure_judge()
    backend: Any = load_backend("judge")
    backend.close()


def record_runs() -> None:
    with Store(DEFAULT_PATH) as store:
        for name, answers in (("old", dict.fromkeys(NEW, "Monday")), ("new", NEW)):
            header = store.create_run(name, agentunit_version="0", n_planned=len(NEW), settings={})
            for at, (case_id, answer) in enumerate(answers.items()):
                case = DatasetCase(case_id, "When and where does it arrive?", expected_output=EXPECTED)
                record = Record(case, outcome=Outcome(output=answer))
                add_record(store, header.id, at, 0, record, failed=False, elapsed_s=0.1)
            store.set_status(header.id, "finished")


def first_wins_ties(body: dict[str, Any]) -> dict[str, Any]:
    """A judge with a favorite place."""
    made = decide(body)
    (choice,) = made["choices"]
    return {**made, "choices": [{**choice, "better": choice["better"].replace("tie", "A")}]}


def compare(server: JudgeServer, *more: str) -> list[str]:
    return ["compare", "old", "new", "--judge", "pairwise", "--judge-url", server.url, "--judge-model", "m", *more]


def test_the_win_rate_is_shown_with_ties_and_places_and_decides_nothing(invoke: Any) -> None:
    record_runs()
    with JudgeServer(first_wins_ties) as server:
        shown = invoke(*compare(server))
        found = json.loads(invoke(*compare(server, "--json")).stdout)
        assert server.n_calls == 10, "two orders of five pairs; the second time all comes from the cache"
        assert server.errors == []
    said = found["comparison"]["pairwise"]
    assert (said["n_won"], said["n_lost"], said["n_tied"]) == (3, 1, 2)
    assert (said["n_same_answer"], said["n_without_answer"], said["n_failed"]) == (1, 1, 0)
    # Four pairs are decided in each order, once by the first place; on the tie the first place wins both orders.
    assert (said["n_first_won"], said["n_decided"], said["n_turned"]) == (6, 10, 1)
    assert said["win_rate"] == pytest.approx((3 + 2 * 0.5) / 6)
    assert 0.2 < said["low"] < said["win_rate"] < said["high"] < 0.95
    assert said["spend"]["n_cached"] == 10
    assert [(each["case_id"], each["value"]) for each in said["pairs"]][:2] == [("lost", 0.0), ("tie", 0.5)]
    (row,) = [each for each in found["comparison"]["metrics"] if each["metric"] == "win_rate"]
    assert (row["gated"], row["verdict"]) == (False, "shown only")
    assert row["difference"] == pytest.approx(2 * said["win_rate"] - 1)
    assert row["low"] == pytest.approx(2 * said["low"] - 1)
    assert "win_rate asks a judge: question, both answers and expected output of 5 cases go to m at" in shown.stderr
    assert "about 10 calls" in shown.stderr
    assert "the answer shown first won 6 of 10 decided questions, on 1 pair the order decided" in shown.stdout


def test_it_decides_where_it_is_named(invoke: Any) -> None:
    record_runs()
    with JudgeServer(decide) as server:
        result = invoke(*compare(server, "--on", "win_rate", "--json"))
    found = json.loads(result.stdout)
    (row,) = [each for each in found["comparison"]["metrics"] if each["metric"] == "win_rate"]
    assert row["gated"]
    assert row["p_worse"] is not None
    # Three answers are better, and one is worse.
    assert (result.exit_code, row["verdict"]) == (0, "no loss shown")


def test_reports_hold_what_the_judge_chose(invoke: Any) -> None:
    record_runs()
    with JudgeServer(decide) as server:
        asked = ["--judge", "pairwise", "--judge-url", server.url, "--judge-model", "m"]
        for target in ("report.md", "report.html"):
            result = invoke("export", "new", "--baseline", "old", *asked, "--to", target)
            assert result.exit_code == 0, result.output
            text = report_text(target)
            assert "By a judge, pair by pair" in text
            assert "the new answers win 0.67" in text


def test_a_pair_without_a_verdict_is_counted_and_told(invoke: Any) -> None:
    record_runs()

    def faults(request: Received) -> Fault | None:
        return failing(400, "too long") if "Friday" in texts_of(request.body).values() else None

    with JudgeServer(decide, faults=faults) as server:
        found = json.loads(invoke(*compare(server, "--json", "--no-cache")).stdout)["comparison"]["pairwise"]
    assert (found["n_failed"], found["n_won"], found["n_lost"]) == (1, 3, 0)
    assert "too long" in found["failed_why"]


def test_the_spend_cap_holds_for_all_runs_together(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    record_runs()
    monkeypatch.setenv("AGENTUNIT_JUDGE_USD_PER_MILLION_INPUT", "1000")
    monkeypatch.setenv("AGENTUNIT_JUDGE_USD_PER_MILLION_OUTPUT", "0")
    with JudgeServer(decide) as server:
        options = compare(server, "--json", "--no-cache", "--judge-max-spend", "6")
        whole = json.loads(invoke(*options).stdout)["comparison"]["pairwise"]["spend"]["cost_usd"]
        twice = json.loads(invoke("compare", "old", "new", "new", *options[3:]).stdout)["comparisons"]
    spent = [each["comparison"]["pairwise"]["spend"]["cost_usd"] or 0.0 for each in twice]
    assert sum(spent) <= 6 < 2 * whole


def test_no_sends_nothing_and_settings_need_the_option(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    record_runs()
    monkeypatch.setattr(consent, "_somebody_can_answer", lambda: True)
    with JudgeServer(decide) as server:
        assert invoke(*compare(server), input="n\n").exit_code == 2
        assert server.n_calls == 0
    result = invoke("compare", "old", "new", "--judge-model", "m")
    assert result.exit_code == 2
    assert "--judge-model: nothing is asked of a judge without --judge NAME" in result.output
    configure_judge()
    result = invoke("compare", "old", "new", "--judge", "pairwise")
    assert result.exit_code == 2
    assert "AGENTUNIT_JUDGE_URL" in result.output
