"""The pictures of docs/viewer.md: ``python -m scripts.viewer_gallery`` (needs Playwright, Chromium and Pillow).

They show the sample of benchmarks/viewer: the bundled demo and examples/trial, with changed answers, times, commits and
labels that are made up, so that every page has something to show.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.viewer.sample import make_sample

_FOLDER = Path(__file__).resolve().parents[1] / "docs" / "viewer"
_COLORS = 224


class Picture(NamedTuple):
    """A page, what must be on it before it is taken, and how it is looked at."""

    place: str
    sign: str
    size: tuple[int, int] = (1200, 720)
    scheme: str = "light"
    prepare: Callable[[Any], None] = lambda page: None


def _open_tools(page: Any) -> None:
    page.get_by_role("button", name="find_order").click()


def _label_some(page: Any) -> None:
    for key in "yn":
        before = page.locator(".label-question .mono").inner_text()
        page.wait_for_selector(".label-page mark, .label-page .evidence-card")
        page.keyboard.press(key)
        page.locator(".label-question .mono", has_not_text=before).wait_for()
    page.wait_for_selector(".label-page .evidence-card")


def _open_first(page: Any) -> None:
    page.locator("button.change-head").first.click()
    page.wait_for_selector(".change-body mark, .change-body ins, .change-body del")
    page.evaluate("document.getElementById('differences').scrollIntoView()")


def pictures(runs: dict[str, list[str]]) -> dict[str, Picture]:
    """Every picture, by the name of its file."""
    desk, suite = runs["desk"][0], runs["suite"]
    case = f"run/{runs['desk'][-1]}/case/0-0"
    return {
        "runs": Picture("runs", "text=desk"),
        "run": Picture(f"run/{desk}", "text=tool_success"),
        "cases": Picture(f"run/{runs['desk'][-1]}/cases?open=0-0&row=0", "text=Not supported", (1400, 760)),
        "case": Picture(case, "text=Not supported"),
        "transcript": Picture(f"{case}?tab=transcript", "text=track_parcel", (1200, 860), "light", _open_tools),
        "timeline": Picture(f"{case}?tab=timeline", ".fall-bar", scheme="dark"),
        "agents": Picture(f"{case}?tab=agents", "text=Who writes to whom", (1200, 900)),
        "compare": Picture(f"compare/{suite[2]}/{suite[1]}", "text=contains", (1200, 800), "dark", _open_first),
        "label": Picture(f"run/{desk}/label?metric=faithfulness&rater=cy", ".label-page .card", prepare=_label_some),
        "phone": Picture(case, "text=Not supported", (390, 760), "dark"),
    }


def main() -> None:
    """Make the sample, look at it, and write the pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = make_sample(Path(folder))
        command = [sys.executable, "-m", "agentunit", "view", "--store", store]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[0]
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            try:
                for name, picture in pictures(_runs(store)).items():
                    (_FOLDER / f"{name}.png").write_bytes(_small(_taken(browser, address, picture)))
            finally:
                browser.close()
                server.terminate()
    total = sum(path.stat().st_size for path in _FOLDER.glob("*.png"))
    print(f"{_FOLDER}: {total / 1e6:.2f} MB")


def _runs(store: str) -> dict[str, list[str]]:
    from agentunit.store import open_store

    found: dict[str, list[str]] = {}
    with open_store(store) as opened:
        for header in sorted(opened.runs(), key=lambda each: each.created_at, reverse=True):
            found.setdefault(header.name, []).append(header.id)
    return found


def _taken(browser: Any, address: str, picture: Picture) -> bytes:
    width, height = picture.size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=picture.scheme)
    page.goto(f"{address}#/{picture.place}")
    page.wait_for_selector(picture.sign)
    picture.prepare(page)
    page.wait_for_selector(".spinner", state="detached")
    page.wait_for_timeout(500)
    content: bytes = page.screenshot(animations="disabled")
    page.close()
    return content


def _small(content: bytes) -> bytes:
    """The picture with few colors, which is a third of its size and looks the same."""
    from PIL import Image

    buffer = BytesIO()
    Image.open(BytesIO(content)).convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE).save(
        buffer, "PNG", optimize=True
    )
    return buffer.getvalue()


if __name__ == "__main__":
    main()
