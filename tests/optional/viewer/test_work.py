"""What people do in the viewer: sort, filter, search, compare, read a case, label, and watch a run that goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.optional
pytest.importorskip("playwright", reason="Playwright is not installed (make optional PARTS=viewer)")

from browser_pages import served  # noqa: E402

from agentunit.store import open_store  # noqa: E402


def shown_ids(page: Any) -> list[str]:
    return [text.split()[0] for text in page.locator(".grid-body [role=row] button.link").all_inner_texts()]


def values_of(page: Any, column: str) -> list[float]:
    heads = [text.replace("\n", "").replace(" ", "") for text in page.locator("[role=columnheader]").all_inner_texts()]
    [at] = [number for number, text in enumerate(heads) if text.startswith(column)]
    rows = page.locator(".grid-body [role=row]")
    texts = [rows.nth(row).locator("[role=gridcell]").nth(at).inner_text() for row in range(min(rows.count(), 12))]
    return [float(text) for text in texts if text not in ("n/a", "–")]


def test_cases_are_sorted_filtered_and_searched(
    look: Callable[..., Any], address: str, runs: dict[str, list[str]]
) -> None:
    page = look(f"{address}/#/run/{runs['desk'][-1]}/cases").page
    page.wait_for_selector("text=desk-001")
    page.get_by_role("columnheader", name="faithfulness").get_by_role("button").click()
    page.wait_for_selector("[role=columnheader]:not([aria-sort=none])")
    page.wait_for_function("() => !document.querySelector('.skeleton')")
    sorted_values = values_of(page, "faithfulness")
    assert len(sorted_values) > 5
    assert sorted_values == sorted(sorted_values)
    page.get_by_label("Filter cases").fill("faithfulness < 0.5 and tool_success == 1")
    page.wait_for_function("() => document.querySelector('[role=status]').innerText.includes('of')")
    assert all(value < 0.5 for value in values_of(page, "faithfulness"))
    assert set(values_of(page, "tool_success")) == {1.0}
    link = page.url
    page.get_by_label("Filter cases").fill("faithfulness <")
    page.wait_for_selector("#filter-problem")
    # What an earlier filter found is not shown as if this one had found it.
    page.wait_for_selector("text=The filter cannot be read.")
    assert page.locator(".grid-body [role=row]").count() == 0
    assert page.locator(".cases-tools [role=status]").inner_text() == ""
    page.get_by_label("Filter cases").fill("")
    page.get_by_label("Search cases").fill("zip of my old tent")
    page.wait_for_selector("text=desk-055")
    page.wait_for_function("() => document.querySelectorAll('.grid-body [role=row]').length === 1")
    # A link shows what its sender saw.
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".grid-body [role=row]")
    assert page.get_by_label("Filter cases").input_value() == "faithfulness < 0.5 and tool_success == 1"
    assert all(value < 0.5 for value in values_of(page, "faithfulness"))


def test_a_run_begins_with_what_is_wrong(look: Callable[..., Any], address: str, runs: dict[str, list[str]]) -> None:
    watched = look(f"{address}/#/run/{runs['failures'][0]}", permissions=["clipboard-read", "clipboard-write"])
    page = watched.page
    first = page.locator(".finding").first
    first.wait_for()
    order = "[...document.querySelectorAll('.headline, .finding-what, .facts, h2')].map((each) => each.className)"
    assert page.evaluate(order)[:2] == ["headline", "finding-what"]
    command = first.locator("code").inner_text()
    assert command.startswith(f"agentunit show {runs['failures'][0]} ")
    first.get_by_role("button", name="Copy the command").click()
    first.get_by_role("button", name="Copied the command").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == command
    first.get_by_role("link").first.click()
    page.wait_for_selector("text=The agent failed")


def test_a_case_opens_beside_the_table_and_on_its_own(
    look: Callable[..., Any], address: str, runs: dict[str, list[str]]
) -> None:
    page = look(f"{address}/#/run/{runs['desk'][-1]}/cases").page
    page.get_by_role("button", name="desk-001").click()
    panel = page.locator("aside.case-panel")
    panel.get_by_text("Not supported:").wait_for()
    panel.get_by_role("link", name="Transcript").click()
    panel.get_by_role("button", name="find_order").click()
    panel.get_by_text("ordered on").wait_for()
    assert panel.get_by_role("button", name="find_order").get_attribute("aria-expanded") == "true"
    assert panel.get_by_text("carrier timeout after 8 s").count() == 2
    panel.get_by_role("link", name="own page").click()
    page.wait_for_selector("article.case")
    page.get_by_role("link", name="next case").click()
    page.wait_for_selector("h1:has-text('desk-002')")


def test_a_doubt_leads_to_the_evidence(look: Callable[..., Any], address: str, runs: dict[str, list[str]]) -> None:
    page = look(f"{address}/#/run/{runs['desk'][-1]}/case/0-0").page
    page.get_by_role("button", name="doubt 1: why").click()
    assert page.evaluate("document.activeElement.id") == "doubt-1"
    page.locator("#doubt-1").get_by_role("button", name="context[0]").click()
    assert page.evaluate("document.activeElement.id") == "passage-0"
    # A sentence is marked in parts where some of its words are doubted more.
    marked = page.locator("mark.unsupported, mark.doubtful").all_inner_texts()
    assert "11 October" in "".join(marked)
    # Doubtful words of a sentence that nothing supports rest on its evidence, which is shown once.
    shown = page.locator(".evidence").all_inner_texts()
    assert len(shown) == len(set(shown))


def open_event(page: Any, name: str, text: str) -> None:
    """Open an event of the transcript until it shows a text: one that is fetched anew in between is closed again."""
    page.wait_for_function(
        """([name, text]) => {
            const heads = [...document.querySelectorAll('button[aria-expanded=false]')];
            heads.find((head) => head.innerText.includes(name))?.click();
            return document.body.innerText.includes(text);
        }""",
        arg=[name, text],
    )


def test_personal_data_is_masked_until_the_switch(
    look: Callable[..., Any], address: str, runs: dict[str, list[str]]
) -> None:
    page = look(f"{address}/#/run/{runs['desk'][-1]}/case/0-0?tab=record").page
    page.wait_for_selector("text=expected_output")
    whole = "async (a) => await (await fetch(a)).text()"
    route = f"/api/runs/{runs['desk'][-1]}/cases/0-0/raw"
    assert "omar.fitch@example.com" not in page.evaluate(whole, route)
    page.get_by_label("show personal data").check()
    page.get_by_role("link", name="Transcript").click()
    open_event(page, "find_order", "omar.fitch@example.com")
    page.get_by_label("show personal data").uncheck()
    page.wait_for_selector("text=omar.fitch@example.com", state="detached")
    open_event(page, "find_order", "<EMAIL_")
    assert "omar.fitch@example.com" not in page.content()


def test_two_runs_are_picked_and_compared(look: Callable[..., Any], address: str) -> None:
    page = look(f"{address}/#/runs").page
    page.wait_for_selector("text=desk")
    boxes = page.locator("tbody input[type=checkbox]")
    boxes.nth(1).check()
    boxes.nth(2).check()
    page.get_by_role("link", name="Compare").click()
    page.wait_for_selector("text=contains fell by 13 points")
    page.get_by_role("button", name="order-011").click()
    page.wait_for_selector(".change-body mark, .change-body ins, .change-body del")


def test_labels_are_in_the_store_at_once(look: Callable[..., Any], own_store: Path, runs: dict[str, list[str]]) -> None:
    run = runs["desk"][0]

    def kept(rater: str) -> list[tuple[str, float | None, str]]:
        with open_store(str(own_store)) as store:
            return [
                (each.case_id, each.value, each.note) for each in store.labels("faithfulness") if each.rater == rater
            ]

    def asked() -> str:
        return str(page.locator(".label-question .mono").inner_text())

    def press(key: str) -> str:
        before = asked()
        page.keyboard.press(key)
        page.wait_for_function(
            "(before) => document.querySelector('.label-question .mono')?.innerText !== before", arg=before
        )
        page.wait_for_selector(".answers button:enabled")
        page.wait_for_selector(".label-page .card")
        return before

    with served(own_store) as address:
        watched = look(f"{address}/#/run/{run}/label?metric=faithfulness&rater=cy")
        page = watched.page
        page.wait_for_selector(".label-page .card")
        assert "faithfulness 0" not in page.locator("article").inner_text()
        first = press("y")
        assert kept("cy") == [(first, 1.0, "")]
        # The score is told only now.
        assert f"{first}: you said yes, faithfulness" in page.locator(".said").inner_text()
        second = press("n")
        page.keyboard.press("t")
        page.keyboard.type("not in the context")
        page.keyboard.press("Escape")
        third = press("s")
        assert kept("cy")[1:] == [(second, 0.0, ""), (third, None, "not in the context")]
        press("u")
        assert [case for case, _, _ in kept("cy")] == [first, second]
        assert asked().startswith(third)
        # Another rater is asked about the same cases, in the same order, and says something else.
        page.get_by_label("rater", exact=True).fill("dee")
        page.get_by_role("button", name="Label as dee").click()
        page.wait_for_selector("text=by dee")
        page.wait_for_selector(".label-page .card")
        assert press("n") == first
        page.locator("section", has_text="Raters disagree").get_by_role("link", name=first).wait_for()
        page.locator("section", has_text="Raters disagree").get_by_role("link", name=first).click()
        page.wait_for_selector("article.case")
        page.get_by_placeholder("a note on this case").fill("Talk to Ana about this one.")
        page.get_by_role("button", name="Add note").click()
        page.wait_for_selector(".note-text >> text=Talk to Ana")
        page.reload()
        page.wait_for_selector(".note-text >> text=Talk to Ana")
        watched.close()


SUITE = """
import os, time
from agentunit import Suite

def answer(query):
    # The second case waits until the test has seen the first.
    while query == "second" and not os.path.exists("go"):
        time.sleep(0.02)
    return query

cases = [{"id": word, "query": word, "expected_output": word} for word in ("first", "second")]
suite = Suite(dataset=cases, agent=answer, metrics=["exact_match"], concurrency=1, name="slow")
"""


def test_a_run_is_seen_while_it_goes_on(look: Callable[..., Any], own_store: Path, tmp_path: Path) -> None:
    (tmp_path / "suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "agentunit", "run", "suite.py", "--store", str(own_store)]
    with served(own_store) as address:
        watched = look(f"{address}/#/runs")
        page = watched.page
        page.wait_for_selector("text=desk")
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as running:
            try:
                page.get_by_role("link", name="slow").click()
                page.wait_for_selector("text=1 of 2")
                page.get_by_role("link", name="Cases").click()
                page.wait_for_selector("[role=gridcell] >> text=first")
                assert page.locator("[role=gridcell] >> text=second").count() == 0
                (tmp_path / "go").touch()
                page.wait_for_selector("[role=gridcell] >> text=second")
            finally:
                (tmp_path / "go").touch()
        assert running.returncode == 0
        page.get_by_role("link", name="Overview").click()
        page.wait_for_selector("text=running", state="detached")
        watched.close()
