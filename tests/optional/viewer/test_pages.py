"""Every page, at both widths and in both colors: it is there, it fits, it can be used without eyes or pointer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.optional
pytest.importorskip("playwright", reason="Playwright is not installed (make optional PARTS=viewer)")

LOOKS = [(width, scheme) for width in ("desktop", "phone") for scheme in ("light", "dark")]


def pages_of(runs: dict[str, list[str]]) -> dict[str, tuple[str, str]]:
    """Address and a sign of each page, by name."""
    desk, suite = runs["desk"][-1], runs["suite"]
    case = f"run/{desk}/case/0-0"
    return {
        "runs": ("runs", "text=desk"),
        "trends": ("runs?tab=trends", "main"),
        "run": (f"run/{desk}", "text=tool_success"),
        "cases": (f"run/{desk}/cases", "text=desk-001"),
        "case": (case, "text=Not supported"),
        "transcript": (f"{case}?tab=transcript", "text=track_parcel"),
        "timeline": (f"{case}?tab=timeline", ".fall-bar"),
        "agents": (f"{case}?tab=agents", "text=Who writes to whom"),
        "record": (f"{case}?tab=record", "text=expected_output"),
        "conversation": (f"run/{suite[0]}/case/0-0", "text=turn 2"),
        "pictures": (f"run/{runs['pictures'][0]}/case/0-0", "img"),
        "sound": (f"run/{runs['pictures'][0]}/case/2-0", "audio"),
        "checks": (f"run/{suite[1]}/case/10-0", "text=failed 3 of 3"),
        "failure": (f"run/{runs['failures'][0]}/case/0-0", "text=The agent failed"),
        "compare": (f"compare/{suite[2]}/{suite[1]}", "text=FAIL: 8 broken"),
        "label": (f"run/{desk}/label?metric=faithfulness&rater=cy", "text=Does what the agent saw"),
        "metrics": ("metrics", "text=faithfulness"),
        "unknown": ("nowhere", "main"),
    }


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_is_there_and_fits(
    look: Callable[..., Any], address: str, runs: dict[str, list[str]], width: str, scheme: str
) -> None:
    watched = look(address, width=width, scheme=scheme)
    for place, sign in pages_of(runs).values():
        watched.page.goto(f"{address}/#/{place}")
        watched.page.wait_for_selector(sign)
        watched.fits()
        watched.check()


@pytest.mark.parametrize(("width", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_axe_finds_nothing_serious(
    look: Callable[..., Any], address: str, runs: dict[str, list[str]], width: str, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    watched = look(address, width=width, scheme=scheme)
    # Axe is put into the page from outside, which the page's policy rightly refuses to a page's own texts.
    found = {}
    for name, (place, sign) in pages_of(runs).items():
        watched.page.goto(f"{address}/#/{place}")
        watched.page.wait_for_selector(sign)
        response = Axe().run(watched.page).response
        assert len(response["passes"]) > 10
        violations = response["violations"]
        found[name] = [
            (each["id"], each["impact"], each["nodes"][0]["html"][:200])
            for each in violations
            if each["impact"] in ("serious", "critical")
        ]
    assert found == {name: [] for name in found}


def test_a_page_can_be_used_by_keys_alone(look: Callable[..., Any], address: str, runs: dict[str, list[str]]) -> None:
    desk = runs["desk"][-1]
    watched = look(f"{address}/#/run/{desk}/case/0-0")
    page = watched.page
    page.wait_for_selector("text=Not supported")
    page.keyboard.press("2")
    page.wait_for_selector("text=track_parcel")
    page.keyboard.press("n")
    page.wait_for_selector("h1:has-text('desk-002')")
    page.keyboard.press("p")
    page.wait_for_selector("h1:has-text('desk-001')")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open] >> text=next case")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    page.wait_for_selector("text=desk-010")
    # What can be pressed can be reached, and shows that it was.
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
