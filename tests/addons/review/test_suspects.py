"""Suspects: runs by how far they differ from other runs of the same task, with no label read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.review.suspects._answers import answer_difference, answer_signature
from agentunit.addons.review.suspects._effects import Effect, EffectTable, differing_arguments
from agentunit.addons.review.suspects.ranking import MOST_PEERS, percentile_rank, rank_runs, set_difference
from agentunit.addons.review.suspects.signatures import Signatures
from agentunit.addons.review.suspects.suspect_evidence import differing_values
from agentunit.addons.review.suspects.tasks import TaskKeys, group_tasks, groups_alike, task_keys
from agentunit.addons.review.suspects.tool_marks import ToolMarks, mark_of_name, parse_marks
from agentunit.core.case import DatasetCase
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.traces.reading import read_records

QUESTION = "Please cancel my order, it is late"


def effect_of(tool: str, arguments: object) -> Effect:
    """One call, as two runs are compared by it."""
    table = EffectTable()
    return table[table.add(tool, arguments)]


def call(name, status="success", error=None, result="ok", **arguments):
    said = {"error": error} if error else {"result": result}
    return TraceEvent("tool_call", {"name": name, "arguments": arguments, "status": status, **said})


def run(case_id, *calls, answer="It is done.", error=None, success=None, query=QUESTION, **case):
    """A record; ``success`` is the label that nothing may read."""
    return Record(DatasetCase(case_id, query, **case), TraceLog(list(calls)), Outcome(success, answer, error=error))


def ranked(records, marks=None, task_field=None, **options):
    signatures = Signatures(marks, task_field)
    for record in records:
        signatures.add(record)
    return rank_runs(signatures, **options)


def lines(suspect):
    return [each.text for each in suspect.evidence]


def test_the_run_that_does_not_make_the_change_of_its_peers_is_first_and_says_so():
    same = [call("find_order", id=7), call("cancel_order", id=7)]
    report = ranked([*(run("a", *same) for _ in range(5)), run("a", call("find_order", id=7))])
    first = report.runs[0]
    assert (first.case_id, first.repeat, first.difference, first.n_peers) == ("a", 5, 1.0, 5)
    assert lines(first)[0] == "5 of 5 peers called `cancel_order(id=7)`, this one did not call `cancel_order`"
    assert len(lines(first)) == 1
    assert [each.difference for each in report.runs[1:]] == [0.2] * 5
    assert first.task_difference == pytest.approx(2 / 6, abs=1e-4)
    assert first.suspicion == pytest.approx((1 + 2 / 6) / 2, abs=1e-4)
    assert [each.case_id for each in report.suspects] == ["a"]


def test_runs_of_a_task_that_all_do_something_else_come_before_one_that_stands_alone():
    split = [run("split", call("cancel_order", id=number)) for number in range(4)]
    agreed = [run("agreed", call("cancel_order", id=7)) for _ in range(3)]
    report = ranked([*agreed, run("agreed", call("cancel_order", id=8)), *split])
    assert [(each.case_id, each.suspicion) for each in report.runs[:5]] == [("split", 1.0)] * 4 + [("agreed", 0.75)]
    assert {each.difference for each in report.runs[:5]} == {1.0}
    assert len(report.suspects) == 5


def test_a_run_that_raised_is_not_thought_to_be_the_only_right_one():
    split = [run("split", call("cancel_order", id=number)) for number in (1, 2, 3)]
    agreed = [run("agreed", call("cancel_order", id=7)) for _ in range(3)]
    report = ranked([*agreed, run("agreed", error="KeyError: 'ORDER'", answer=None), *split])
    assert (report.runs[0].case_id, report.runs[0].suspicion) == ("agreed", 1.0)


@pytest.mark.parametrize(
    ("odd", "kind", "said"),
    [
        (
            [call("cancel_order", id=8)],
            "other arguments",
            "3 of 3 peers called `cancel_order` with id `7`, this one `8`",
        ),
        (
            [call("cancel_order", id=7), call("refund", amount=5)],
            "further call",
            "called `refund(amount=5)`; no peer did",
        ),
        (
            [call("cancel_order", "error", "order 7 is locked", id=7)],
            "failed call",
            "3 of 3 peers called `cancel_order(id=7)`; here it failed: order 7 is locked",
        ),
        ([], "missing call", "3 of 3 peers called `cancel_order(id=7)`, this one did not call `cancel_order`"),
    ],
)
def test_evidence_names_what_differs(odd, kind, said):
    report = ranked([*(run("a", call("cancel_order", id=7)) for _ in range(3)), run("a", *odd)])
    first = report.runs[0]
    assert first.repeat == 3
    assert (first.evidence[0].kind, first.evidence[0].text) == (kind, said)


def against(*odd, n=3, peers=(), **options):
    """The evidence about one run whose ``n`` peers cancel an order, and further peers."""
    report = ranked([run("a", *odd, **options), *(run("a", call("cancel_order", id=7)) for _ in range(n)), *peers])
    return lines(next(each for each in report.runs if each.place == 0))


def test_no_sentence_says_of_a_call_that_failed_that_it_was_not_made():
    failed = call("cancel_order", "error", "order 7 is locked", id=7)
    assert not any("did not call" in each for each in against(failed))
    also = [run("a", call("cancel_order", id=7), call("cancel_order", id=8)) for _ in range(3)]
    said = against(failed, call("cancel_order", id=8), n=0, peers=also)
    assert said == ["3 of 3 peers also called `cancel_order(id=7)`, in this one no such call succeeded"]
    tried = run("a", call("cancel_order", id=7), call("refund", "error", "no", id=7))
    assert against(call("cancel_order", id=7), call("refund", id=7), peers=[tried]) == [
        "called `refund(id=7)`; no peer did (1 tried and failed)"
    ]


def test_the_number_of_peers_is_that_of_the_call_that_is_named():
    other = run("a", call("cancel_order", id=9))
    assert against(peers=[other])[0] == (
        "4 of 4 peers called `cancel_order`, 3 of them `cancel_order(id=7)`, this one did not call `cancel_order`"
    )
    called = call("cancel_order", id=7)
    assert against(called, call("refund", id=7), peers=[run("a", called, call("refund", id=8))])[0] == (
        "called `refund(id=7)`; 3 of 4 peers did not call `refund`"
    )


def test_a_call_in_place_of_that_of_the_peers_is_named_and_other_ways_to_look_around_are_not():
    way = [call("get_order", id=7), call("get_user", id=1)]
    peers = [run("a", *way, call("cancel_order", id=7)) for _ in range(3)]
    assert against(*way, call("transfer_to_human_agents"), n=0, peers=peers)[1:] == [
        "called `transfer_to_human_agents` (tool call 3) where a peer, after the same tools, called `cancel_order`"
    ]
    assert len(against(call("search", q="x"), *way, n=0, peers=peers)) == 1


def test_what_peers_say_stands_before_what_a_run_shows_by_itself():
    look = [call("get_user", id=1)] * 4
    said = against(*look, call("get_order", "error", "no such order", id=7), answer=None)
    assert said == [
        "3 of 3 peers called `cancel_order(id=7)`, this one did not call `cancel_order`",
        "gave no final answer",
        "`get_order` failed, and no later call of it succeeded: no such order",
        "called `get_user` 4 times in a row with the same arguments",
    ]
    rounds = [call("get_user", id=1), call("get_order", id=7), call("think")] * 3
    assert against(*rounds)[-1] == (
        "called `get_user` and the 2 calls after it 3 times in a row with the same arguments"
    )


def test_calls_beyond_those_of_the_peers_are_counted():
    more = [call("cancel_order", id=number) for number in (7, 8, 9, 10)]
    assert against(*more) == ["also called `cancel_order(id=8)` and 2 more such calls; 3 of 3 peers did not"]


def test_answers_of_runs_without_tools_are_compared_whatever_else_the_input_holds():
    said = [f"{word} " * 12 for word in ("one", "one", "one", "seven")]
    answers = [run("q", answer=answer, query="How many are there of them") for answer in said]
    alone = ranked(answers)
    together = ranked([*answers, *(run("a", call("cancel_order", id=7)) for _ in range(3))])
    assert (alone.runs[0].place, alone.runs[0].suspicion, alone.runs[0].basis) == (3, 1.0, "answers")
    assert (together.runs[0].place, together.runs[0].suspicion, together.runs[0].basis) == (3, 1.0, "answers")


def test_a_tool_that_is_declared_to_write_only_after_its_calls_were_left_out_is_not_compared():
    tools = [{"name": "check_in", "read_only": False}]
    late = [run("a", call("check_in", id=7), tools=tools if number == 2 else None) for number in range(3)]
    report = ranked(late)
    assert [each.suspicion for each in report.runs] == [0.0, 0.0, 0.0]
    assert [(each.tool, each.mark) for each in report.tools] == [("check_in", "unknown")]
    declared = [run("a", call("check_in", id=7), tools=tools) for _ in range(3)]
    assert [(each.tool, each.mark) for each in ranked(declared).tools] == [("check_in", "write")]


def test_long_values_are_shown_where_they_differ_as_they_were_spelled():
    legs = [{"date": "2024-05-17", "flight": "HAT136"}, {"date": "2024-05-20", "flight": "HAT039"}]
    other = [legs[0], {**legs[1], "flight": "HAT290"}]
    peers = [run("a", call("book", legs=legs)) for _ in range(3)]
    assert against(call("book", legs=other), n=0, peers=peers) == [
        "3 of 3 peers called `book` with legs `… flight: HAT039`, this one `… flight: HAT290`"
    ]


def leg(flight, day=27, **more):
    return {"date": f"2024-05-{day}", "flight": flight, **more}


@pytest.mark.parametrize(
    ("own", "other", "said"),
    [
        # What is sorted before it moves every place: both have HAT118.
        (
            [leg("HAT118"), leg("HAT229")],
            [leg("HAT084"), leg("HAT118")],
            "legs `… flight: HAT084`, this one `… flight: HAT229`",
        ),
        (["x", "b", "a"], ["A", "X", "c"], "legs `… c`, this one `… b`"),
        (["a"], ["a", "b"], "`… b` in legs, this one without it"),
        (["a", "b"], ["b"], "no `… a` in legs, this one with it"),
        (["a", "a"], ["a"], "legs `… 1 × a`, this one `… 2 × a`"),
        # The other call has this flight on another day: the flight alone would not tell them apart.
        (
            [leg("HAT1"), leg("HAT2", 28)],
            [leg("HAT2"), leg("HAT1", 28)],
            "legs `… {date: 2024-05-27, flight: HAT2}, {date: 2024-05-28, flight: HAT1}`, "
            "this one `… {date: 2024-05-27, flight: HAT1}, {date: 2024-05-28, flight: HAT2}`",
        ),
        ({"to": "Rome", "via": {"stop": "A", "gate": 1}}, {"to": "Rome", "via": {"stop": "B", "gate": 1}},
         "legs `… via: stop: B`, this one `… via: stop: A`"),
        (
            [leg("HAT1", stops=["Oslo", "Rome"]), leg("HAT2")],
            [leg("HAT1", stops=["Rome", "Bern"]), leg("HAT2")],
            "legs `… stops: Bern`, this one `… stops: Oslo`",
        ),
        # Far behind what was kept of long values.
        (
            [leg(f"HAT{number}") for number in range(100, 112)] + [leg("HAT900")],
            [leg(f"HAT{number}") for number in range(100, 112)] + [leg("HAT901")],
            "legs `… flight: HAT901`, this one `… flight: HAT900`",
        ),
        ([f"flight number {number}" for number in range(100)], [f"flight number {number}" for number in range(99)],
         "other legs"),
    ],
)  # fmt: skip
def test_the_evidence_names_what_only_one_call_has(own, other, said):
    peers = [run("a", call("book", legs=other)) for _ in range(3)]
    assert against(call("book", legs=own), n=0, peers=peers) == [f"3 of 3 peers called `book` with {said}"]


def test_calls_that_no_majority_makes_are_told_apart_by_what_only_one_has():
    legs = [[leg("HAT118"), leg("HAT229")], [leg("HAT084"), leg("HAT118")], [leg("HAT118"), leg("HAT300")]]
    report = ranked([run("a", call("book", legs=each)) for each in legs], n_explained=3)
    (found,) = next(each for each in report.runs if each.repeat == 0).evidence
    assert found.text == (
        "2 of 2 peers called `book` otherwise or not at all, "
        "such as with legs `… flight: HAT084`, this one `… flight: HAT229`"
    )
    assert found.cause == "book with other legs"


_ITEMS = st.lists(
    st.one_of(st.sampled_from("abcd"), st.dictionaries(st.sampled_from("xyz"), st.sampled_from("abc"), min_size=1)),
    min_size=1,
    max_size=5,
)


@given(_ITEMS, _ITEMS)
def test_no_item_that_both_calls_have_as_often_is_shown(own, other):
    left, right = effect_of("t", {"items": own}), effect_of("t", {"items": other})
    if differing_arguments(left, right):
        mine, theirs = (each.removeprefix("… ") for each in differing_values(left, right, "items"))
        assert mine != theirs
        for item in own:
            if own.count(item) == other.count(item) and isinstance(item, str):
                assert item not in mine.split(", ")
                assert item not in theirs.split(", ")


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (12345678901, 12345678902, False),
        ("123456789012345", "123456789012346", False),
        ("1e3", 1000, False),
        (0.1 + 0.2, 0.3, True),
        ("4.0", 4, True),
        (2.0**60, 2**60, True),
        ("007", 7, False),
        (-0.0, 0, True),
    ],
)
def test_numbers_are_the_same_only_where_all_digits_are(left, right, same):
    assert (effect_of("cancel", {"id": left}) == effect_of("cancel", {"id": right})) is same


def test_every_argument_counts_however_many_there_are():
    many = {f"a{number}": 1 for number in range(60)}
    assert effect_of("book", many) != effect_of("book", {**many, "a59": 2})


def test_a_record_of_very_many_tools_calls_and_errors_stays_small_and_names_the_right_tool():
    names = [call(f"book_{number}", "error", "x" * 500) for number in range(70_000)]
    signatures = Signatures()
    signatures.add(run("a", *names))
    kept = signatures.runs[0]
    assert len(kept.failed) <= 16
    assert signatures.tools[kept.failed[-1][0]] == "(one of many other tools)"
    many = [call("book", id=number) for number in range(1000)]
    peers = [run("a", *many, call("pay", id=7)) for _ in range(3)]
    said = against(*many, call("pay", id=7), n=0, peers=peers)
    assert not said


def test_peers_that_answer_otherwise_are_shown_by_an_example():
    report = ranked([run("sum", answer=answer) for answer in ("41", "42", "43", "44")])
    assert lines(report.runs[0]) == ["3 of 3 peers answer otherwise, such as “42”; this one “41”"]
    report = ranked([*(run("sum", answer="41") for _ in range(3)), run("sum", answer=None)])
    assert lines(report.runs[0]) == ["gave no final answer; 3 of 3 peers did"]


def test_a_value_is_not_cut_in_the_middle_of_what_may_be_personal_data():
    address = "bartholomew.featherstonehaugh@example.org"
    card = "4111 1111 1111 1111"
    assert "bartholomew" not in str(effect_of("send", {"to": address}))
    assert "4111" not in str(effect_of("send", {"to": f"a card of Bart {card}"}))
    answer = f"We have written to all of you and of course to them as well, at {address} and so on and so forth today"
    said = " ".join(lines(ranked([*(run("a", answer="Seven") for _ in range(3)), run("a", answer=answer)]).runs[0]))
    assert "bartholomew" not in said


def test_reads_spellings_order_and_free_text_do_not_count():
    report = ranked(
        [
            run(
                "a",
                call("get_order", id=1),
                call("send_email", to="A@x.org", ids=[2, 1], text="We are so very sorry about this"),
            ),
            run("a", call("send_email", ids=["1", 2.0], to=" a@X.org", text="Your order will come on Monday")),
            run(
                "a",
                call("search", q="x"),
                call("send_email", to="a@x.org", ids=[1, 2], cc=None, text="Hello from all of us here, again"),
            ),
        ]
    )
    assert [each.suspicion for each in report.runs] == [0.0, 0.0, 0.0]


def test_a_failed_call_that_was_repaired_is_no_evidence_and_its_repair_is_the_effect():
    repaired = [call("cancel_order", "error", "try again", id=7), call("cancel_order", id=7)]
    report = ranked([run("a", call("cancel_order", id=7)), run("a", *repaired), run("a", *repaired)])
    assert [each.suspicion for each in report.runs] == [0.0, 0.0, 0.0]
    assert not any(each.kind == "failed call" for one in report.runs for each in one.evidence)


@pytest.mark.parametrize("n_runs", [1, 2])
def test_fewer_than_two_peers_are_no_verdict(n_runs):
    report = ranked([run("a", call("cancel_order", id=7)) for _ in range(n_runs)])
    assert not report.runs
    assert not report.n_tasks
    assert sum(each.n_runs for each in report.unranked) == n_runs


def test_a_run_that_ended_with_an_error_is_ranked_and_is_nobodys_peer():
    good = [run("a", call("cancel_order", id=7)) for _ in range(3)]
    report = ranked(
        [*good, run("a", answer=None, error="KeyError: 'ORDER'"), run("a", answer=None, error="KeyError: 'X'")]
    )
    assert [(each.repeat, each.suspicion, each.n_peers) for each in report.runs[:2]] == [(3, 1.0, 3), (4, 1.0, 3)]
    assert [(each.suspicion, each.n_peers) for each in report.runs[2:]] == [(0.0, 2)] * 3
    assert report.runs[0].evidence[0].text == "ended with an error: KeyError: 'ORDER'"


def test_answers_are_compared_where_nothing_was_changed():
    answers = ["The answer is 42.", r"So \boxed{42}", "42.0", "I think we get 41"]
    report = ranked([run("sum", answer=answer) for answer in answers])
    first = report.runs[0]
    assert (first.repeat, first.basis, first.suspicion) == (3, "answers", 1.0)
    assert lines(first) == ["3 of 3 peers answer “42”, this one “I think we get 41”"]
    assert [each.suspicion for each in report.runs[1:]] == [pytest.approx(1 / 3, abs=1e-4)] * 3


def test_agents_that_agree_to_change_nothing_are_not_suspected_for_their_words():
    changing = [run("b", call("cancel_order", id=1)) for _ in range(3)]
    talk = "I am sorry, but our rules do not let me cancel an order that was sent {} already, whoever asks for it."
    refusing = [run("a", call("get_order", id=1), answer=talk.format(word)) for word in ("out", "off", "away")]
    report = ranked([*refusing, *changing])
    assert {each.suspicion for each in report.runs} == {0.0}


def test_a_task_that_the_framework_names_is_told_from_others_of_the_same_question():
    records = [
        run(f"airline/{task}/trial-{trial}", call("book", seat=task), metadata={"task_id": task, "domain": "airline"})
        for task in (1, 2)
        for trial in range(3)
    ]
    report = ranked(records)
    assert report.n_tasks == 2
    assert report.task_by == {"id": 6}
    assert not report.suspects


def test_the_same_question_of_other_customers_is_compared_by_names_of_tools():
    records = [run(f"trace-{n}", call("cancel_order", id=n)) for n in range(4)]
    records.append(run("trace-odd", call("refund", id=9)))
    report = ranked(records)
    assert report.task_by == {"question": 5}
    assert [each.case_id for each in report.suspects] == ["trace-odd"]


def test_one_id_with_two_questions_is_two_tasks():
    asked = ["Please cancel my order", "Please book a room for me", "What is it that I owe you?"]
    report = ranked([run("1", call("cancel_order", id=n), query=query) for n in range(3) for query in asked[: 1 + n]])
    assert report.n_tasks == 1
    assert [each.n_peers for each in report.runs] == [2, 2, 2]


def test_short_questions_match_nothing():
    assert not ranked([run(f"t{n}", call("cancel_order", id=1), query="Hi there!") for n in range(4)]).runs


def test_a_field_that_the_user_names_says_what_a_task_is():
    records = [run(f"t{n}", call("cancel_order", id=n < 3), query=None, metadata={"ticket": "T1"}) for n in range(4)]
    report = ranked(records, task_field="metadata.ticket")
    assert report.task_by == {"field": 4}
    assert [each.case_id for each in report.suspects] == ["t3"]


def test_questions_that_mean_the_same_are_one_task_where_an_encoder_is_there():
    words = [
        "cancel order 7 for me please",
        "please do cancel order 7",
        "I want order 7 cancelled",
        "cancel order 8 please now",
    ]
    signatures = Signatures(keeps_questions=True)
    for number, query in enumerate(words):
        signatures.add(run(f"t{number}", call("cancel_order", id=number), query=query))
    report = rank_runs(signatures, alike=lambda questions: groups_alike(questions, lambda left, right: 0.95))
    assert report.task_by == {"meaning": 3}
    assert [each.n_runs for each in report.unranked] == [1]


def test_labels_are_never_read():
    def records(success):
        return [run("a", call("cancel_order", id=n // 3), success=success) for n in range(4)]

    assert ranked(records(True)) == ranked(records(False)) == ranked(records(None))


def test_large_tasks_are_compared_with_a_hundred_peers():
    records = [run("a", call("cancel_order", id=n % 50 == 0)) for n in range(300)]
    report = ranked(records)
    assert max(each.n_peers for each in report.runs) <= MOST_PEERS
    assert {each.place for each in report.runs[:6]} == {n for n in range(300) if n % 50 == 0}


def test_length_is_shown_as_percentiles_and_not_used():
    long = [call("get_order", id=n) for n in range(20)]
    records = [run("a", *long, call("cancel_order", id=7)), *(run("a", call("cancel_order", id=7)) for _ in range(3))]
    report = ranked(records)
    assert {each.suspicion for each in report.runs} == {0.0}
    assert next(each for each in report.runs if each.place == 0).steps_percentile == 87.5


MARKS = [
    ("get_order", "read"), ("list_all_products", "read"), ("searchFlights", "read"), ("order_status", "read"),
    ("customer_info", "read"), ("think", "read"), ("is_open", "read"), ("web_search", "read"),
    ("github.list_issues", "read"), ("mcp__github__create_issue", "write"), ("cancel_pending_order", "write"),
    ("book_reservation", "write"), ("return_delivered_order_items", "write"), ("sendEmail", "write"),
    ("transfer_funds", "write"), ("transfer_to_human_agents", "read"), ("escalateToSupervisor", "read"),
    ("transfer_to_billing", "read"), ("handoff_to_refunds", "read"), ("transfer_to_savings_account", "write"),
    ("call_subagent", "read"), ("open", "unknown"), ("open_page", "read"), ("open_ticket", "write"), ("book", "write"),
    ("order_cancel", "write"), ("update", "write"), ("set_network_mode", "write"), ("bash", "unknown"),
    ("execute_sql", "unknown"), ("foo", "unknown"), ("", "unknown"), ("123", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "mark"), MARKS)
def test_names_tell_what_tools_do(name, mark):
    assert mark_of_name(name)[0] == mark


def test_declarations_go_before_names_and_what_the_user_says_before_both():
    marks = ToolMarks({"think": "write"})
    marks.declare([{"name": "get_order", "annotations": {"readOnlyHint": False}}], "recorded")
    marks.declare(
        [{"type": "function", "function": {"name": "cancel_order"}, "annotations": {"readOnlyHint": True}}], "suite"
    )
    marks.declare([{"name": "cancel_order", "annotations": {"destructiveHint": True}}, "plain"], "recorded")
    for tool in ("get_order", "cancel_order", "think", "list_orders"):
        marks.add_call(tool, "ok")
    found = {each.tool: (each.mark, each.source) for each in marks.all()}
    assert found == {
        "think": ("write", "option"),
        "get_order": ("write", "recorded"),
        "cancel_order": ("read", "suite"),
        "list_orders": ("read", "name"),
    }


def test_annotations_of_tools_come_through_from_spans(tmp_path):
    defined = [{"name": "zapp", "description": "?", "annotations": {"readOnlyHint": True, "title": "Zapp"}}]
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "chat m",
        "startTimeUnixNano": "1", "endTimeUnixNano": "2",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.tool.definitions", "value": {"stringValue": json.dumps(defined)}},
            {"key": "gen_ai.output.messages", "value": {"stringValue": '[{"role": "assistant", "parts": []}]'}},
        ],
    }  # fmt: skip
    path = tmp_path / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    (record,) = read_records(path)
    marks = ToolMarks()
    marks.declare(record.trace.metadata["tools"], "recorded")
    assert (marks.mark("zapp").mark, marks.mark("zapp").source) == ("read", "recorded")


@pytest.mark.parametrize(
    ("results", "mark"),
    [
        (["ok", None, {"status": "done"}], "write"),
        (["x" * 300, [1, 2], "y" * 400], "read"),
        (["ok", "x" * 300], "unknown"),
    ],
)
def test_results_tell_what_a_tool_does_whose_name_does_not(results, mark):
    marks = ToolMarks()
    for result in results:
        marks.add_call("zapp", result)
    assert marks.mark("zapp").mark == mark


def test_a_tool_that_is_not_known_to_change_something_is_not_compared_unless_the_user_says_so():
    records = [run("a", call("zapp", result="?", id=n), answer="It is done.") for n in range(4)]
    assert {each.suspicion for each in ranked(records).runs} == {0.0}
    assert {each.suspicion for each in ranked(records, {"zapp": "write"}).runs} == {1.0}


@pytest.mark.parametrize("entry", ["zapp", "=read", "zapp=maybe"])
def test_a_mark_that_cannot_be_read_is_refused(entry):
    with pytest.raises(ValueError, match="TOOL=read or TOOL=write"):
        parse_marks([entry])


@pytest.mark.parametrize(
    ("left", "right", "difference"),
    [
        ("42", "The final answer is 42 miles.", 0.0),
        ("FINAL ANSWER: Rockhopper penguin", "rockhopper penguin", 0.0),
        ("yes", "no", 1.0),
        ("1,500", "1500.0", 0.0),
        ("Paris", "London", 1.0),
        (
            "12",
            "I looked at every page that there is, and in the end only 12 of all the candidates were left over",
            0.0,
        ),
    ],
)
def test_answers_differ_by_what_they_come_down_to(left, right, difference):
    assert answer_difference(answer_signature(left), answer_signature(right)) == difference


def test_a_loop_is_seen_and_three_different_calls_are_none():
    again = ranked([run("a", *[call("get_page", n=1)] * 4) for _ in range(3)], n_explained=9)
    other = ranked([run("a", *[call("get_page", n=n) for n in range(4)]) for _ in range(3)], n_explained=9)
    assert any(each.kind == "loop" for each in again.runs[0].evidence)
    assert not any(each.kind == "loop" for each in other.runs[0].evidence)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
sets = st.frozensets(st.integers(0, 6), max_size=6)


@given(st.dictionaries(st.text(max_size=8), values, max_size=6), st.randoms())
def test_an_effect_does_not_depend_on_the_order_of_arguments(arguments, random):
    shuffled = list(arguments.items())
    random.shuffle(shuffled)
    own, other = effect_of("book", arguments), effect_of("book", dict(shuffled))
    assert own == other
    assert not differing_arguments(own, other)


@given(sets, sets)
def test_difference_of_sets_is_symmetric_bounded_and_zero_only_for_equals(own, other):
    found = set_difference(own, other)
    assert found == set_difference(other, own)
    assert 0 <= found <= 1
    assert (found == 0) == (own == other)


@given(st.text(max_size=200), st.text(max_size=200))
def test_difference_of_answers_is_symmetric_and_bounded(left, right):
    own, other = answer_signature(left), answer_signature(right)
    if own is not None and other is not None:
        found = answer_difference(own, other)
        assert found == answer_difference(other, own)
        assert 0 <= found <= 1
        assert answer_difference(own, own) == 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(-1, 6))
def test_a_percentile_is_a_share(numbers, value):
    assert 0 <= percentile_rank(sorted(numbers), value) <= 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "q1", "q2"]), st.booleans()), max_size=20))
def test_every_run_is_of_exactly_one_task(entries):
    keys = [TaskKeys(by_id.encode(), asked.encode() or None, named, asked or None) for by_id, asked, named in entries]
    places = [place for task in group_tasks(keys) for place in task.runs]
    assert sorted(places) == list(range(len(keys)))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sets(st.integers(0, 3)), st.booleans()), max_size=16))
def test_ranks_are_whole_and_do_not_depend_on_the_order_of_the_input(entries):
    records = [
        run(task, *(call("cancel_order", id=each) for each in sorted(ids)), error="boom" if failed else None)
        for task, ids, failed in entries
    ]
    report = ranked(records)
    n_unranked = sum(each.n_runs for each in report.unranked)
    assert len(report.runs) + n_unranked == len(records)
    assert [each.rank for each in report.runs] == list(range(1, len(report.runs) + 1))
    assert all(0 <= each.suspicion <= 1 and each.n_peers >= 2 for each in report.runs)
    again = ranked(records[::-1])
    assert sorted(each.suspicion for each in report.runs) == pytest.approx(
        sorted(each.suspicion for each in again.runs)
    )


def test_ids_of_repeats_are_one_task():
    names = ("q1/trial-0", "q1/trial-1", "q1/epoch-12", "q1_run3", "q1")
    assert len({task_keys(DatasetCase(name)).by_id for name in names}) == 1
