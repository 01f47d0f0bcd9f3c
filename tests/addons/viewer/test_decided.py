"""Every page says what was decided once: the word of a run, of its cases, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from decided_runs import Case, Try, case_of, keep_run
from viewer_client import Client, cases_in, check_shape, folder_parts

from agentunit.addons.viewer._api import Api
from agentunit.addons.viewer._comparing import compare_page
from agentunit.addons.viewer._library import Library
from agentunit.addons.viewer._server import make_app
from agentunit.cli.main import cli
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.decision import EXIT_CANNOT_TELL, decide_comparison, decide_run
from agentunit.engine.deciding.stored import keep_decision
from agentunit.store.runs import FIRST_AGAIN
from agentunit.store.sqlite import Store


def case(case_id: str, planned: str, again: str = "") -> Case:
    """A case whose tries pass (``p``), fail (``f``) or have no answer (``x``), each with an answer of its own."""

    def tries(letters: str, word: str) -> list[Try]:
        return [
            Try({"contains": float(letter == "p")}, None if letter == "x" else f"{case_id} {word} {n}")
            for n, letter in enumerate(letters)
        ]

    return Case(case_id, tries(planned, "planned"), tries(again, "again"))


BEFORE = [case(f"c{n}", "fff" if n == 3 else "ppp") for n in range(8)]
NOW = [
    case("c0", "fff", "ffff"),
    case("c1", "pfp"),
    case("c2", "pxp"),
    case("c3", "fff"),
    *(case(f"c{n}", "ppp") for n in range(4, 8)),
]


@pytest.fixture
def headline(store_path: Path) -> str:
    """A store with a run that was decided against another; the sentence about it."""
    with Store(store_path) as store:
        before, now = keep_run(store, BEFORE, name="before"), keep_run(store, NOW, name="now")
        keep_decision(store, "before", decide_run(before), "run")
        return keep_decision(store, "now", decide_run(now, comparison=compare_runs(now, before)), "run").headline


@pytest.fixture
def pages(store_path: Path, headline: str) -> Iterator[Client]:
    library = Library(str(store_path))
    yield Client(make_app(Api(library)))
    library.close()


def fetched(client: Client, address: str, shape: str) -> dict[str, object]:
    while (page := client.get(address)).get("pending"):
        pass
    check_shape(shape, page)
    return page


def test_list_run_and_comparison_say_the_sentence_that_was_kept(pages, headline):
    assert headline.startswith("FAIL: 1 broken (c0")
    page = fetched(pages, "/api/runs/now", "RunPage")
    lines = {line["id"]: line for line in pages.get("/api/runs")["runs"]}
    compared = fetched(pages, "/api/compare?baseline=before&candidate=now", "ComparePage")
    for each in (page["line"], page["decision"], lines["now"], compared):
        assert (each["verdict"], each["headline"]) == ("fail", headline)
    assert not page["decision"]["decided_now"]
    assert page["decision"]["line"] == compared["line"] != ""
    assert (compared["baseline"]["verdict"], compared["candidate"]["verdict"]) == ("fail", "fail")
    other_way = fetched(pages, "/api/compare?baseline=now&candidate=before", "ComparePage")
    assert (other_way["verdict"], other_way["n_by_kind"]["fixed"]) == ("pass", 1)


def test_cases_are_called_by_one_word_and_say_why(pages):
    groups = fetched(pages, "/api/runs/now", "RunPage")["decision"]["groups"]
    named = {group["word"]: (group["n"], [each["case_id"] for each in group["cases"]]) for group in groups}
    assert named == {"broken": (1, ["c0"]), "still failing": (1, ["c3"]), "flaky": (2, ["c1", "c2"])}
    [broken] = groups[0]["cases"]
    assert broken["tries"] == "contains failed 7 of 7, passed 3 of 3 before; broken after 7"
    assert broken["why"] == "0, needs 1"
    compared = fetched(pages, "/api/compare?baseline=before&candidate=now", "ComparePage")
    [listed] = [each for each in compared["cases"] if each["kind"] == "broken"]
    assert {name: listed[name] for name in ("case_id", "tries", "why")} == {
        name: broken[name] for name in ("case_id", "tries", "why")
    }
    for group in groups:
        for each in group["cases"]:
            [key] = [key for key in pages.get(f"/api/runs/now/keys?case={each['case_id']}") if key.endswith("-0")]
            assert pages.get(f"/api/runs/now/cases/{key}")["finding"] == each
    assert pages.get("/api/runs/now/cases/5-0")["finding"] is None


def test_a_case_lists_its_checks_in_all_tries(pages):
    page = pages.get("/api/runs/now/cases/0-1")
    [check] = page["checks"]
    assert check["check"] == "contains"
    keys = [f"0-{n}" for n in range(3)] + [f"0-{FIRST_AGAIN + n}" for n in range(4)]
    assert [each["key"] for each in check["tries"]] == keys
    assert [(each["number"], each["again"]) for each in check["tries"]] == [
        *((n, False) for n in (1, 2, 3)),
        *((n, True) for n in (1, 2, 3, 4)),
    ]
    assert {(each["passed"], each["why"]) for each in check["tries"]} == {(False, "0, needs 1")}
    # Where the agent did not answer, nothing else was checked.
    checks = {each["check"]: each["tries"] for each in pages.get("/api/runs/now/cases/2-0")["checks"]}
    assert [each["passed"] for each in checks["answered"]] == [True, False, True]
    assert checks["answered"][1]["why"] == "ValueError: boom"
    assert [(each["number"], each["passed"]) for each in checks["contains"]] == [(1, True), (3, True)]


def test_cases_are_filtered_by_what_they_are_called(pages, store_path):
    def found(text: str, more: str = "") -> list[str]:
        rows = pages.get(f"/api/runs/now/cases?filter={quote(text)}{more}")["rows"]
        return [row["key"] for row in rows]

    assert found("state == flaky", "&fold=1") == ["1-0", "2-0"]
    assert found("state == broken and verdict == fail") == ["0-0", "0-1", "0-2"]
    assert found("state == fine", "&fold=1") == [f"{n}-0" for n in range(4, 8)]
    with Store(store_path) as store:
        keep_run(store, NOW, name="undecided")
    for text in ("state == flaky", "state is known"):
        refused = pages.ask("GET", f"/api/runs/undecided/cases?filter={quote(text)}")
        assert (refused.status, refused.data["error"]) == (400, "the states of cases were not kept with this run")


def test_later_decisions_are_listed_and_change_no_verdict(pages, store_path, headline):
    fetched(pages, "/api/runs/now", "RunPage")
    with Store(store_path) as store:
        run = keep_run(store, BEFORE, name="other")
        for threshold in (0.1, 0.9):
            keep_decision(store, "now", decide_run(run, [f"contains >= {threshold}"]), "gate")
        keep_decision(store, "now", decide_run(run, comparison=compare_runs(run, run)), "compare")
    page = fetched(pages, "/api/runs/now", "RunPage")
    while not page["decision"]["beside"]:
        page = fetched(pages, "/api/runs/now", "RunPage")
    assert (page["line"]["headline"], page["decision"]["headline"]) == (headline, headline)
    beside = page["decision"]["beside"]
    assert [(each["made_by"], each["against"], each["verdict"]) for each in beside] == [
        ("compare", "other", "pass"),
        ("gate", "", "fail"),
    ]
    assert "contains >= 0.9" in beside[1]["headline"]


def test_a_comparison_says_what_the_command_decided_that_made_it(store_path):
    library = Library(str(store_path))
    with Store(store_path) as store:
        before = keep_run(store, [NOW[0], case("c1", "ffp"), *NOW[2:]], name="before")
        now = keep_run(store, NOW, name="now")
        assert compare_page(library, "before", "now", wait=True)["verdict"] == "pass"
        # A command asked for more than the page does: what it ended with is shown.
        undecided = decide_comparison(compare_runs(now, before, on=["contains"], margin=0.01), now)
        assert undecided.exit_code == EXIT_CANNOT_TELL
        keep_decision(store, "now", undecided, "compare")
    page = compare_page(library, "before", "now", wait=True)
    library.close()
    assert (page["verdict"], page["headline"]) == ("cannot tell", undecided.headline)


def test_run_and_comparison_begin_with_the_same_findings(pages):
    page = fetched(pages, "/api/runs/now", "RunPage")
    compared = fetched(pages, "/api/compare?baseline=before&candidate=now", "ComparePage")
    assert compared["findings"] == page["findings"]
    found = [(each["word"], each["what"], each["cases"], each["repeat"]) for each in page["findings"]]
    assert found == [
        ("broken", "1 of 8 cases broken: contains: 0, needs 1", ["c0"], 0),
        ("flaky", "1 of 8 cases flaky: contains: 0, needs 1", ["c1"], 1),
        ("flaky", "1 of 8 cases flaky: ValueError: boom", ["c2"], 1),
    ]
    assert page["findings"][0]["evidence"] == '"c0 planned 0"'
    assert page["findings"][0]["command"] == "agentunit show now c0 --repeat 1"


def test_a_run_without_a_decision_is_decided_now_and_says_so(pages, store_path):
    with Store(store_path) as store:
        keep_run(store, [case_of("c0", 1.0), case_of("c1", 0.0)], name="old")
    page = fetched(pages, "/api/runs/old", "RunPage")
    assert (page["line"]["verdict"], page["line"]["decided_now"], page["decision"]["decided_now"]) == (
        "fail",
        True,
        True,
    )
    assert page["decision"]["groups"][0]["word"] == "wrong"


def test_a_run_that_goes_on_again_has_no_verdict_yet(pages, store_path):
    with Store(store_path) as store, store.recording("now"):
        store.set_status("now", "running")
        page = fetched(pages, "/api/runs/now", "RunPage")
        assert (page["line"]["verdict"], page["decision"]["decided_now"]) == (None, False)
        assert page["line"]["headline"].startswith("The run is still going; so far: ")
        assert "broken" not in page["line"]["headline"]


def test_a_bundle_says_the_same(pages, store_path, headline, tmp_path):
    done = CliRunner().invoke(cli, ["view", "--bundle", str(tmp_path / "site"), "--store", str(store_path)])
    assert done.exit_code == 0, done.output
    parts = folder_parts(tmp_path / "site")
    folders = {run["id"]: run["folder"] for run in parts["data/index.json.gz"]["layout"]["runs"]}
    page = parts[f"{folders['now']}run.json.gz"]
    assert page["decision"] == fetched(pages, "/api/runs/now", "RunPage")["decision"]
    [compared] = [part for name, part in parts.items() if "/compare-" in name and part["candidate"]["id"] == "now"]
    assert compared["headline"] == headline
    assert compared["findings"] == page["findings"] == fetched(pages, "/api/runs/now", "RunPage")["findings"]
    columns = parts[f"{folders['now']}columns-0.json.gz"]
    assert columns["state"][::3] == ["broken", "flaky", "flaky", "still failing", *["fine"] * 4]
    cases = {each["key"]: each for each in cases_in(parts[f"{folders['now']}cases-0.json.gz"])}
    assert len(cases) == 24
    shown, live = cases["0-0"], pages.get("/api/runs/now/cases/0-0")
    assert (shown["finding"], shown["again"]) == (live["finding"], [])
    # Tries again have no pages here, and say all the same how they went.
    without_pages = [{**each, "key": None if each["again"] else each["key"]} for each in live["checks"][0]["tries"]]
    assert shown["checks"] == [{**live["checks"][0], "tries": without_pages}]
