"""A long transcript: it opens at once, keeps its place, and takes no more memory the longer one reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.optional
pytest.importorskip("playwright", reason="Playwright is not installed (make optional PARTS=viewer)")

_MOST_ROWS = 120
_MOST_GROWTH_BYTES = 12_000_000


def rows(page: Any) -> list[tuple[int, float, float]]:
    """Number, top and bottom of each drawn event."""
    found: list[tuple[int, float, float]] = page.evaluate(
        """() => [...document.querySelectorAll('.events.long > div')].map((row) => {
            const { top, bottom } = row.getBoundingClientRect();
            return [Number(row.dataset.n), top, bottom];
        }).sort((a, b) => a[0] - b[0])"""
    )
    return found


def settle(page: Any) -> None:
    """Wait until all drawn rows stand one below the other, as measured."""
    page.wait_for_function(
        """() => {
            const rows = [...document.querySelectorAll('.events.long > div')]
                .map((row) => [Number(row.dataset.n), row.getBoundingClientRect()]).sort((a, b) => a[0] - b[0]);
            const isBelow = ([, box], at) => at === 0 || Math.abs(box.top - rows[at - 1][1].bottom) < 1;
            return rows.length > 3 && rows.every(isBelow) && !document.querySelector('.events.long .event-line.soft');
        }"""
    )


def scroll(page: Any, steps: int, pixels: int) -> None:
    page.evaluate(
        """async ([steps, pixels]) => {
            const frame = document.querySelector('.events-frame');
            for (let step = 0; step < steps; step += 1) {
                frame.scrollTop += pixels;
                await new Promise(requestAnimationFrame);
            }
        }""",
        [steps, pixels],
    )


def test_rows_of_all_heights_stand_one_below_the_other(
    look: Callable[..., Any], address: str, runs: dict[str, list[str]]
) -> None:
    page = look(f"{address}/#/run/{runs['long'][0]}/case/0-0?tab=transcript").page
    page.wait_for_selector("text=Step 3")
    settle(page)
    page.get_by_role("button", name="read_file").first.click()
    page.wait_for_selector("text=Arguments")
    settle(page)
    scroll(page, 40, 900)
    settle(page)
    assert 3 < len(rows(page)) < _MOST_ROWS
    # Back at the top the first event is the first again, and what was opened is still open.
    scroll(page, 60, -900)
    settle(page)
    assert rows(page)[0][0] == 0
    page.wait_for_selector("text=Arguments")


def test_a_place_in_a_long_transcript_is_found(
    look: Callable[..., Any], address: str, runs: dict[str, list[str]]
) -> None:
    page = look(f"{address}/#/run/{runs['long'][0]}/case/0-0?tab=transcript&event=4000").page
    page.wait_for_selector(".target[data-n='4000']")
    settle(page)
    page.get_by_label("Find in the transcript").fill("Step 1234:")
    page.wait_for_selector(".target[data-n='2468']")
    page.get_by_label("Which events").select_option("failed")
    page.wait_for_selector("text=50 of 5,000 events")
    page.wait_for_selector("text=no such file")


def test_memory_stays_flat_while_one_scrolls(
    look: Callable[..., Any], address: str, runs: dict[str, list[str]]
) -> None:
    watched = look(f"{address}/#/run/{runs['long'][0]}/case/0-0?tab=transcript")
    page = watched.page
    page.wait_for_selector("text=Step 3")
    session = watched.context.new_cdp_session(page)

    def used() -> int:
        session.send("HeapProfiler.collectGarbage")
        return int(session.send("Runtime.getHeapUsage")["usedSize"])

    def there_and_back() -> None:
        scroll(page, 150, 1_200)
        scroll(page, 150, -1_200)
        settle(page)

    there_and_back()
    before = used()
    n_elements = page.evaluate("document.querySelectorAll('*').length")
    for _ in range(3):
        there_and_back()
    assert used() - before < _MOST_GROWTH_BYTES
    assert page.evaluate("document.querySelectorAll('*').length") < 2 * n_elements
