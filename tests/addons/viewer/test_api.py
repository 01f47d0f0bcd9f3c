from __future__ import annotations

import json
import re
import threading
import urllib.request

import jsonschema
import pytest
from kept_records import add_record
from viewer_client import Client, check_shape

from agentunit import MetricResult, Outcome, Record, Score, TraceLog
from agentunit.addons.viewer._api import Api
from agentunit.addons.viewer._library import Library
from agentunit.addons.viewer._run_pages import distribution, pending_page
from agentunit.addons.viewer._server import bound_socket, make_app, make_server
from agentunit.addons.viewer._trends import runs_page
from agentunit.core.case import DatasetCase
from agentunit.metrics.base import MetricInfo
from agentunit.store.runs import FIRST_AGAIN
from agentunit.store.sqlite import Store


def run_page(client, library, run_id):
    library.run_page(run_id, wait=True)
    return client.get(f"/api/runs/{run_id}")


def test_every_answer_has_the_shape_that_the_page_expects(client, library, runs):
    for run_id in runs:
        check_shape("RunPage", run_page(client, library, run_id))
        check_shape("SliceTable", client.get(f"/api/runs/{run_id}/slices?by=metadata.shop"))
        check_shape("LabelsPage", client.get(f"/api/runs/{run_id}/labels"))
        cases = client.get(f"/api/runs/{run_id}/cases?fold=1")
        check_shape("CasesPage", cases)
        for row in cases["rows"]:
            address = f"/api/runs/{run_id}/cases/{row['key']}"
            check_shape("CaseDetail", client.get(address))
            check_shape("EventsPage", client.get(f"{address}/events?offset=1"))
            check_shape("Outline", client.get(f"{address}/outline"))
            assert client.get(f"{address}/raw")["record"]["case"]["id"] == row["case_id"]
    for path, shape in (("index", "Index"), ("catalog", "Catalog"), ("pulse", "Pulse"), ("runs", "RunsPage")):
        check_shape(shape, client.get(f"/api/{path}"))
    check_shape("TrendsPage", client.get("/api/trends?name=desk"))
    check_shape("LabelTask", client.get(f"/api/runs/{runs[0]}/label?metric=faithfulness&rater=ana"))


def test_the_openapi_document_describes_every_route(client, library):
    document = client.get("/api/openapi.json")
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.path, route.method) for route in Api(library).routes()}
    assert document["openapi"].startswith("3.1")
    names = set(document["components"]["schemas"])
    used = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert used <= names
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_a_run_says_its_verdict_its_metrics_and_what_failed(client, library, runs):
    page = run_page(client, library, runs[1])
    assert page["decision"]["verdict"] in ("fail", "errors")
    assert [column["name"] for column in page["columns"]] == ["exact_match", "tool_success", "faithfulness", "cost"]
    card = next(card for card in page["metrics"] if card["metric"] == "exact_match")
    assert card["thresholds"] == [{"operator": ">=", "threshold": 0.5, "aggregate": "mean", "word": "met"}]
    assert sum(card["distribution"]["counts"]) == 8
    # What raised comes first, a doubt of a model last.
    found = [(each["word"], each["n_cases"], each["n_of"], each["cases"][0][:2]) for each in page["findings"]]
    assert found == [("wrong", 1, 8, "q6"), ("wrong, allowed", 2, 8, "q1"), ("doubt", 3, 8, "q0")]
    assert page["findings"][0]["what"].startswith("1 of 8 cases wrong: KeyError: 'x'")
    assert page["findings"][2]["what"].startswith("3 of 8 cases doubted: ")
    assert page["findings"][2]["command"] == f"agentunit show {runs[1]} q0"
    assert page["n_more_findings"] == 0
    assert page["unscored"][0]["reason"] == "no tool"
    assert page["slice_fields"] == ["metadata.shop"]
    assert page["amounts"][0]["total"] == pytest.approx(0.36)


def rows(client, run_id, **query):
    asked = "&".join(f"{name}={urllib.request.quote(str(value))}" for name, value in query.items())
    page = client.get(f"/api/runs/{run_id}/cases?{asked}")
    return [row["case_id"][:2] for row in page["rows"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"sort": "faithfulness", "desc": 1, "limit": 2}, ["q7", "q6"]),
        ({"sort": "tool_success", "offset": 5}, ["q5", "q6", "q7"]),
        ({"sort": "case", "desc": 1, "limit": 1}, ["q7"]),
        ({"sort": "time", "desc": 1, "limit": 1}, ["q7"]),
        ({"sort": "verdict", "limit": 2}, ["q6", "q1"]),
        ({"filter": "faithfulness > 0.35 and exact_match == 1"}, ["q4", "q5", "q7"]),
        ({"filter": "verdict == error or tool_success is not known"}, ["q6", "q7"]),
        ({"filter": "question ~ 'order 3'"}, ["q3"]),
        ({"search": "ORDER lovelace"}, ["q1"]),
        ({"search": "keyerror"}, ["q6"]),
        ({"search": "order", "sort": "cost", "limit": 2}, ["q5", "q4"]),
        ({"desc": 1, "limit": 1}, ["q7"]),
        ({"offset": 99}, []),
    ],
    ids=str,
)
def test_the_table_sorts_filters_and_searches(client, runs, query, expected):
    assert rows(client, runs[0], **query) == expected


def test_repeats_fold_to_the_verdict_of_all(client, runs):
    page = client.get(f"/api/runs/{runs[2]}/cases?fold=1&filter=verdict%20==%20fail")
    assert [(row["case_id"], row["repeats"]) for row in page["rows"]] == [
        ("q1", {"n": 3, "n_passed": 0}),
        ("q3", {"n": 3, "n_passed": 1}),
    ]
    assert page["n_all"] == 8
    assert client.get(f"/api/runs/{runs[2]}/cases")["total"] == 24
    assert client.get(f"/api/runs/{runs[2]}/keys?case=q3") == ["3-0", "3-1", "3-2"]


def test_tries_again_have_pages_and_no_rows(client, store_path, runs):
    before = client.get(f"/api/runs/{runs[0]}/cases")
    wrong = Score(MetricResult("exact_match", 0.0), "ok", "exact", "1")
    with Store(store_path) as store:
        # Of consecutive cases, whose scores are a block of their own.
        for position in (2, 3):
            (tried,) = store.case(runs[0], f"q{position}")
            add_record(store, runs[0], position, FIRST_AGAIN, tried.record, failed=True, elapsed_s=9.0)
            store.add_scores(runs[0], position, FIRST_AGAIN, {"exact_match": wrong})
    assert client.get(f"/api/runs/{runs[0]}/cases") == before
    page = client.get(f"/api/runs/{runs[0]}/cases/3-0")
    assert (page["n_repeats"], page["repeats"], page["again"]) == (1, ["3-0"], [f"3-{FIRST_AGAIN}"])
    again = client.get(f"/api/runs/{runs[0]}/cases/3-{FIRST_AGAIN}")
    assert (again["elapsed_s"], again["repeats"], again["again"]) == (9.0, page["repeats"], page["again"])
    assert client.ask("GET", f"/api/runs/{runs[0]}/cases/3-{FIRST_AGAIN + 1}").status == 404


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/runs/nothing", 404, "no run"),
        ("/api/runs/{run}/cases/99-0", 404, "no record"),
        ("/api/runs/{run}/cases/..%2f..", 404, ""),
        ("/api/runs/{run}/cases/-1-0", 404, "position and repeat"),
        ("/api/runs/{run}/cases?filter=fathfulness<1", 400, "did you mean 'faithfulness'"),
        ("/api/runs/{run}/cases?sort=__class__", 400, "no column"),
        ("/api/runs/{run}/cases?offset=-1", 400, "whole number"),
        ("/api/runs/{run}/cases?offset=1e9", 400, "whole number"),
        ("/api/runs/{run}/cases/0-0/events/77", 404, "events"),
        (f"/api/runs/{{run}}/cases/{'9' * 5_000}-0", 404, "no record"),
        (f"/api/runs/{{run}}/cases/0-0/events/{'9' * 5_000}", 404, "events"),
        (f"/api/runs/{{run}}/cases?offset={'9' * 5_000}", 400, "whole number"),
        ("/api/runs/{run}/cases/7-0/media/1", 404, "no such medium"),
        ("/api/runs/{run}/slices?by=shop", 400, "metadata"),
        ("/api/compare?baseline={run}", 400, "candidate"),
        ("/../../etc/passwd", 404, ""),
        ("/static/../server.py", 404, ""),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(client, runs, path, status, said):
    reply = client.ask("GET", path.format(run=runs[0]))
    assert reply.status == status, reply.body
    assert said in reply.body.decode()


def test_a_comparison_lists_what_is_broken_with_both_answers(client, library, runs):
    address = f"/api/compare?baseline={runs[0]}&candidate={runs[1]}"
    while (page := client.get(address))["pending"]:
        pass
    check_shape("ComparePage", page)
    worst = page["cases"][0]
    assert (worst["case_id"], worst["kind"], worst["candidate_key"]) == ("q2", "broken", "2-0")
    assert worst["baseline"]["text"] == "order 2"
    assert page["n_by_kind"]["broken"] == 1
    assert (
        page["tested"] == "tested: exact_match, answered (checks, and the metrics with gates); the others are described"
    )


def test_runs_have_a_history_and_a_band_of_noise(library, runs):
    page = runs_page(library, 0, 50, wait=True)
    newest = next(line for line in page["runs"] if line["id"] == runs[1])
    first = newest["metrics"][0]
    assert first["metric"] == "exact_match"
    assert first["history"] == [pytest.approx(6 / 8), pytest.approx(5 / 8)]


def test_labels_are_in_the_store_at_once(client, store_path, runs):
    address = f"/api/runs/{runs[0]}/label"
    task = client.get(f"{address}?metric=faithfulness&rater=ana")
    key = task["asked"]["key"]
    assert "score" not in task["asked"]
    said = {"metric": "faithfulness", "rater": "ana", "key": key, "value": 1.0, "note": "fine"}
    answered = client.ask("POST", address, said).data
    check_shape("LabelTask", answered)
    assert answered["answered"]["key"] == key != answered["asked"]["key"]
    with Store(store_path) as store:
        [label] = store.labels()
    assert (label.rater, label.value, label.note, label.run_id) == ("ana", 1.0, "fine", runs[0])
    assert label.probability is not None
    client.ask("POST", address, {**said, "rater": "ben", "value": 0.0})
    [apart] = client.get(f"/api/runs/{runs[0]}/labels")["disagreements"]
    assert [each["rater"] for each in apart["said"]] == ["ana", "ben"]
    undone = client.ask("POST", f"{address}/undo", {"metric": "faithfulness", "rater": "ben"}).data
    assert undone["asked"]["key"] == key
    note = client.ask("POST", f"/api/runs/{runs[0]}/note", {"key": "3-0", "rater": "ana", "note": "look"}).data
    check_shape("Label", note)
    noted = client.get(f"/api/runs/{runs[0]}/cases/3-0")["labels"]
    assert [each["note"] for each in noted if each["metric"] == "note"] == ["look"]


@pytest.mark.parametrize(
    "said",
    [
        {"metric": "faithfulness", "rater": "", "key": "0-0", "value": 1.0},
        {"metric": "faithfulness", "rater": "ana", "key": "0-0", "value": 7.0},
        {"metric": "nothing", "rater": "ana", "key": "0-0", "value": 1.0},
        {"metric": "faithfulness", "rater": "ana", "key": "0-0", "value": "yes"},
        {"metric": "faithfulness", "rater": "ana", "key": "0-0", "value": 1.0, "more": 1},
        [1],
    ],
)
def test_a_label_that_is_none_is_refused(client, store_path, runs, said):
    assert client.ask("POST", f"/api/runs/{runs[0]}/label", said).status in (400, 404)
    with Store(store_path) as store:
        assert store.labels() == []


def test_personal_data_is_masked_unless_asked_for(client, library, runs):
    for path in ("cases", "cases/1-0", "cases/1-0/raw", "cases?search=lovelace"):
        masked = client.ask("GET", f"/api/runs/{runs[0]}/{path}").body
        shown = client.ask("GET", f"/api/runs/{runs[0]}/{path}{'&' if '?' in path else '?'}personal=1").body
        assert b"ada.lovelace@" not in masked
        assert b"<EMAIL_1>" in masked
        assert b"ada.lovelace@" in shown


def test_a_run_that_goes_on_is_shown_as_it_grows(store_path):
    with Store(store_path) as store:
        run_id = store.create_run("live", agentunit_version="1", settings={}, n_planned=9).id
        with store.recording(run_id):
            add_record(store, run_id, 0, 0, Record(DatasetCase("a", "?"), outcome="x"), failed=False, elapsed_s=0.1)
            library = Library(str(store_path))
            client = Client(make_app(Api(library)))
            before = client.get(f"/api/pulse?run={run_id}")
            assert (before["live"], before["n_done"], before["n_planned"]) == (True, 1, 9)
            assert client.get(f"/api/runs/{run_id}/cases")["total"] == 1
            add_record(store, run_id, 4, 0, Record(DatasetCase("e", "?"), outcome="y"), failed=False, elapsed_s=0.1)
            after = client.get(f"/api/pulse?run={run_id}")
            assert after["stamp"] != before["stamp"]
            assert [row["case_id"] for row in client.get(f"/api/runs/{run_id}/cases")["rows"]] == ["a", "e"]
        assert not client.get(f"/api/pulse?run={run_id}")["live"]
        library.close()


def test_a_long_transcript_comes_by_pages(store_path):
    trace = TraceLog()
    for n in range(2_500):
        trace.record("message", role="assistant", content=f"step {n}" + ("x" * 30_000 if n == 2_400 else ""))
    with Store(store_path) as store:
        run_id = store.create_run("long", agentunit_version="1", settings={}).id
        record = Record(DatasetCase("long", "?"), trace, Outcome(output="done"))
        add_record(store, run_id, 0, 0, record, failed=False, elapsed_s=0.1)
    library = Library(str(store_path))
    client = Client(make_app(Api(library)))
    address = f"/api/runs/{run_id}/cases/0-0"
    assert len(client.get(address)["events"]) == 100
    page = client.get(f"{address}/events?offset=2399&limit=2")
    assert [event["text"][:9] for event in page["events"]] == ["step 2399", "step 2400"]
    assert len(page["events"][1]["text"]) < 21_000 < page["events"][1]["cut"]
    assert len(client.get(f"{address}/events/2400")["text"]) > 30_000
    assert client.get(f"{address}/find?text=STEP%202400") == [2400]
    assert len(client.get(f"{address}/outline")["kind"]) == 2_500
    library.close()


def test_a_real_server_answers(library, runs):
    listening = bound_socket("127.0.0.1", None)
    server = make_server(make_app(Api(library)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{listening.getsockname()[1]}/api/index", timeout=30) as reply:
            assert json.load(reply)["source"] == "live"
            assert "server" not in reply.headers
    finally:
        server.should_exit = True
        thread.join(30)


def test_a_run_that_cannot_be_read_does_not_hide_the_others(store_path, runs, client):
    with Store(store_path) as store:
        odd = store.create_run("desk", agentunit_version="1", settings={"gates": ["of a later version <"]}).id
        store.set_status(odd, "finished")
    lines = {line["id"]: line for line in client.get("/api/runs")["runs"]}
    assert lines.keys() == {*runs, odd}
    assert lines[odd]["verdict"] == "errors"
    assert "cannot be read: gate 'of a later version <'" in lines[odd]["headline"]
    assert all(len(trend["points"]) == 2 for trend in client.get("/api/trends?name=desk")["trends"])
    assert client.ask("GET", f"/api/runs/{odd}").status == 400


def test_a_run_that_is_going_on_is_not_called_wrong(store_path, runs, client):
    with Store(store_path) as store:
        going = store.create_run("desk", agentunit_version="1", settings={"gates": ["exact_match >= 0.5"]}).id
        with store.recording(going):
            page = client.get(f"/api/runs/{going}")
            assert (page["decision"]["verdict"], page["decision"]["reasons"]) == (None, [])
            assert page["line"]["headline"] == "The run is still going; nothing is scored yet."
            record = Record(DatasetCase("q", "?", "x"), TraceLog(), "y")
            add_record(store, going, 0, 0, record, failed=False, elapsed_s=1.0)
            store.add_scores(going, 0, 0, {"exact_match": Score(MetricResult("exact_match", 0.0), "ok", "exact", "1")})
            assert "so far: FAIL" in client.get(f"/api/runs/{going}")["decision"]["headline"]
        store.set_status(going, "finished")
    assert client.get(f"/api/runs/{going}")["decision"]["verdict"] == "fail"


def test_each_card_draws_its_own_values(store_path, runs, library):
    with Store(store_path) as store:
        for position, status in ((0, "informational"), (1, "ok")):
            score = Score(MetricResult("faithfulness", 0.9), status, "local", "3")
            store.add_scores(runs[0], position, 0, {"faithfulness": score})
    cards = [card for card in library.run_page(runs[0], wait=True)["metrics"] if card["metric"] == "faithfulness"]
    assert [(card["status"], card["n_scored"]) for card in cards] == [("ok", 7), ("informational", 1)]
    assert [card["distribution"]["n"] for card in cards] == [7, 1]


@pytest.mark.parametrize("values", [[0.0, 2.2e-313], [-1.7e308, 1.7e308], [3.0, 3.0]])
def test_values_too_close_or_too_far_apart_for_steps_are_one_step(values):
    found = distribution(values, MetricInfo("mine", "custom", "", unit="USD"))
    assert found is not None
    assert found["counts"] == [2]


def test_sizes_are_said_in_cases_and_repeats(client, library, runs):
    page = library.run_page(runs[2], wait=True)
    assert page["line"]["size"] == "8 cases × 3 repeats"
    sizes = {line["id"]: line["size"] for line in runs_page(library, 0, 10, wait=True)["runs"]}
    assert sizes == {runs[0]: "8 cases", runs[1]: "8 cases", runs[2]: "8 cases × 3 repeats"}
    opened = library.run(runs[2])
    pending = pending_page(opened.header, opened.columns, opened.infos, library.mask())
    assert (pending["line"]["size"], pending["n_cases"], pending["n_repeats"]) == ("8 cases × 3 repeats", 8, 3)
    # The example of a finding is one repeat of its case.
    assert [(each["cases"][0][:2], each["repeat"]) for each in page["findings"]] == [
        ("q6", 0),
        ("q1", 0),
        ("q3", 1),
        ("q0", 0),
    ]
