"""Low-scored cases by cause: from the trace and the details of scores, never from a language model."""

from __future__ import annotations

import msgspec
import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.results import MetricResult, Score
from agentunit.core.score_block import Cause, CauseGroup
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.engine.deciding.causes import DOUBT, cause_of_check, cause_of_doubt, fact_of
from agentunit.engine.deciding.run_findings import CauseGroups, doubts
from agentunit.metrics.base import describe
from agentunit.metrics.evidence import NOT_MEASURED
from agentunit.metrics.registry import resolve_metrics
from agentunit.reports.finding_text import with_commands
from agentunit.reports.reported_run import ReportedCase, open_run, open_run_file
from agentunit.store import open_store
from agentunit.store.portable import export_run
from agentunit.store.score_blocks import ScoreBuffer


def scored(name, value, status="ok", backend="trace", **detail):
    why = f'missing: "{detail["missing"][0]}"' if "missing" in detail else None
    return Score(MetricResult(name, value, detail), status, backend, "1", 0.0, why)


def case(*calls, answer="Done.", scores=(), **metadata):
    events = [TraceEvent("tool_call", each) for each in calls]
    record = Record(DatasetCase("c1", "?", metadata=metadata), TraceLog(events), Outcome(output=answer))
    return ReportedCase(0, 0, "c1", False, 0.0, record, {each.result.name: each for each in scores})


LOCKED = {"name": "cancel", "status": "error", "error": "order 7 is locked"}
CLAIMS = [
    {"text": "Have a nice day!", "probability": 0.1},
    {"text": "You get $45 back.", "probability": 0.2, "evidence": "You get $30 back."},
]


@pytest.mark.parametrize(
    ("one", "kind", "words"),
    [
        (case(LOCKED), "failed call", "cancel: order 7 is locked"),
        (case(LOCKED, {"name": "cancel", "status": "success"}, answer=None), "no answer", ""),
        (
            case(scores=[scored("tool_trajectory", 0.0, expected=["find", "cancel"], actual=["find"])]),
            "missing call",
            "cancel",
        ),
        (case(LOCKED, {"name": "cancel", "status": "success"}), "contains", 'missing: "Paris"'),
    ],
)
def test_why_a_check_fails_is_told_from_the_trace_first(one, kind, words):
    found = cause_of_check("c1", None, one.record, one.scores, "contains", 'missing: "Paris"', "wrong")
    assert (found.kind, found.words, found.word) == (kind, words, "wrong")


def test_a_leak_is_not_blamed_on_a_tool_that_failed():
    one = case(LOCKED)
    found = cause_of_check("c1", None, one.record, one.scores, "pii_leakage", "email in output", "wrong")
    assert (found.kind, found.words) == ("pii_leakage", "email in output")


def test_a_doubt_names_the_sentence_that_can_be_looked_up_and_the_evidence():
    one = case(scores=[scored("faithfulness", 0.1, claims=CLAIMS, threshold=0.5)])
    found = cause_of_doubt("c1", None, one.record, one.scores, "faithfulness", "low")
    assert (found.kind, found.words, found.word) == ("not supported", "an amount of money", DOUBT)
    assert found.error == '"You get $45 back."; the evidence says "You get $30 back."'


@pytest.mark.parametrize(
    ("answer", "is_fact"), [("We have cancelled your order.", True), ("We cannot cancel your order.", False)]
)
def test_a_failed_call_is_a_fact_only_where_the_answer_hides_it(answer, is_fact):
    one = case(LOCKED, answer=answer)
    assert (fact_of("c1", None, one.record, {}) is not None) is is_fact


def test_a_failed_call_after_which_another_went_through_is_no_fact():
    one = case(LOCKED, {"name": "ask_colleague", "status": "success"}, answer="We have cancelled your order.")
    assert fact_of("c1", None, one.record, {}) is None


def test_a_call_with_other_arguments_than_expected_is_a_fact():
    score = scored("tool_trajectory", 0.0, expected=["find"], actual=["find"])
    score.why = 'find.order_id "A-9", expected "A-2"'
    one = case({"name": "find", "status": "success"}, scores=[score])
    found = fact_of("c1", None, one.record, one.scores)
    assert found is not None
    assert (found.kind, found.words) == ("tool_trajectory", score.why)


@pytest.mark.parametrize(
    ("score", "is_doubt"),
    [
        (scored("faithfulness", 0.1, backend="local"), True),
        (scored("faithfulness", 0.9, backend="local"), False),
        (scored("faithfulness", 0.1, "informational", backend="local"), False),
        # What it is worth was measured with given context alone.
        (scored("faithfulness", 0.1, backend="local", evidence_note=NOT_MEASURED), False),
        # So weak that it accuses as many good cases as bad ones.
        (scored("retrieval_quality", 0.1, backend="local"), False),
        (scored("tool_success", 0.1), False),
    ],
)
def test_a_doubt_is_of_a_model_that_is_worth_something(score, is_doubt):
    (metric,) = resolve_metrics([score.result.name])
    assert doubts(describe(metric), score) is is_doubt


def groups_of(causes, n_cases=20, slices=None):
    groups = CauseGroups()
    for cause in causes:
        groups.add(cause)
    return with_commands(groups.findings(n_cases, slices), "last")


def test_causes_that_differ_in_numbers_only_are_one_finding_with_its_slice():
    causes = [Cause(f"c{n}", 0, "failed call", f"cancel: order {n} is locked", "…", ("tier=gold",)) for n in range(4)]
    causes.append(Cause("d", 2, "missing call", "refund", "…"))
    groups = groups_of(causes, slices={"tier=gold": 5})
    assert [(each.name, each.n_cases, each.n_of, each.slice) for each in groups] == [
        ("cancel failed: order # is locked", 4, 5, "tier=gold"),
        ("did not call refund", 1, 20, None),
    ]
    assert groups[1].next == "agentunit show last d --repeat 3"


def test_a_slice_that_is_as_frequent_elsewhere_is_none():
    causes = [Cause(f"c{n}", 0, "no answer", "", "", ("tier=gold",)) for n in range(4)]
    (group,) = groups_of(causes, slices={"tier=gold": 18})
    assert (group.name, group.slice, group.n_of) == ("no final answer", None, 20)


def test_the_gravest_finding_comes_first_and_then_the_most_frequent():
    words = ["flaky", DOUBT, DOUBT, "broken", "wrong", "wrong", "wrong"]
    causes = [Cause(f"c{n}", None, word, word, "", word=word) for n, word in enumerate(words)]
    found = groups_of(causes)
    assert [(each.word, each.n_cases) for each in found] == [("broken", 1), ("wrong", 3), ("flaky", 1), (DOUBT, 2)]


def test_groups_that_were_made_apart_add_up_as_if_they_were_one():
    causes = [
        Cause(f"c{n}", None, "contains", f'missing: "{n % 3}"', "", (f"k={n % 2}",), "", "wrong") for n in range(30)
    ]
    parts = [CauseGroups(), CauseGroups(), CauseGroups()]
    for n, cause in enumerate(causes):
        parts[n // 10].add(cause)
    whole = CauseGroups()
    for part in parts:
        sent = msgspec.msgpack.decode(msgspec.msgpack.encode(part.groups()), type=list[CauseGroup])
        whole.merge(sent)
    counts = {"k=0": 15, "k=1": 15}
    assert with_commands(whole.findings(30, counts), "last") == groups_of(causes, 30, counts)


N_LONG, EVERY, N_LOW = 2_181, 3, 727


def long_run(folder, n_repeats=1):
    """A run in which every third case has no room, half of them by a failed call; the agent failed on one more."""
    store = open_store(folder / "runs.db")
    run = store.create_run("long", agentunit_version="0", settings={})
    lines, waiting = [], ScoreBuffer()
    for at in range(N_LONG):
        for repeat in range(n_repeats):
            is_low = at % EVERY == 0
            one = case(LOCKED, answer="?") if is_low and at % 2 else case(answer="Room 7")
            has_failed = at == N_LONG - 1
            lines.append((run.id, at, repeat, f"q{at}", int(has_failed), 0.1, encode_record(one.record)))
            scores = {"contains": scored("contains", float(not (is_low or has_failed)), missing=["Room"])}
            waiting.add(at, repeat, scores)
    store.add_lines(lines)
    store.add_blocks(run.id, waiting.take())
    store.set_status(run.id, "finished", finished_at=1.0)
    return store


def test_every_wrong_case_of_a_long_run_counts(tmp_path):
    with long_run(tmp_path) as store, open_run("last", store) as reported:
        found = reported.findings
        export_run(store, reported.header.id, tmp_path / "long.jsonl")
    assert [(each.word, each.name, each.n_cases, each.n_of) for each in found] == [
        ("wrong", 'contains: missing: "Room"', 364, N_LONG),
        ("wrong", "cancel failed: order 7 is locked", 363, N_LONG),
        ("wrong", "reported, without a message", 1, N_LONG),
    ]
    with open_run_file(tmp_path / "long.jsonl") as reported:
        assert [each.n_cases for each in reported.findings] == [364, 363, 1]


def test_repeats_of_wrong_cases_count_as_records(tmp_path):
    with long_run(tmp_path, n_repeats=2) as store, open_run("last", store) as reported:
        first, second, _ = reported.findings
    assert [(each.n_records, each.n_cases) for each in (first, second)] == [(728, 364), (726, 363)]
    assert first.next.endswith(" q0 --repeat 1")


def test_cases_that_were_not_read_count_by_their_check(tmp_path, monkeypatch):
    monkeypatch.setattr("agentunit.reports.finding_causes._MOST_READ", 100)
    with long_run(tmp_path) as store, open_run("last", store) as reported:
        found = reported.findings
    assert sum(each.n_cases for each in found) == N_LOW + 1
    assert "contains" in {each.name for each in found}
