"""Without a server: a bundle on a static host, and one file opened from the disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytestmark = pytest.mark.optional
pytest.importorskip("playwright", reason="Playwright is not installed (make optional PARTS=viewer)")

from browser_pages import static_host  # noqa: E402

from agentunit.cli.main import cli  # noqa: E402
from agentunit.store import open_store  # noqa: E402


def invoked(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code in (0, 1), result.output
    return result.output


@pytest.fixture(scope="module")
def hosted(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("host") / "site"
    invoked("view", "--bundle", str(folder), "--store", str(sample))
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.name != "index.html"]
    assert max(sizes) <= 1_000_000
    with static_host(folder) as address:
        yield address


def pages_of(runs: dict[str, list[str]]) -> list[tuple[str, str]]:
    desk = runs["desk"][-1]
    return [
        (f"run/{desk}", "text=tool_success"),
        (f"run/{desk}/cases?sort=faithfulness&filter=faithfulness+<+0.5", "text=desk-005"),
        (f"run/{desk}/case/0-0", "text=Not supported"),
        (f"run/{desk}/case/0-0?tab=transcript", "text=track_parcel"),
        (f"run/{desk}/case/0-0?tab=timeline", ".fall-bar"),
        (f"run/{desk}/case/0-0?tab=record", "text=desk-001"),
        (f"run/{desk}/label?metric=faithfulness&rater=cy", "text=Does what the agent saw"),
    ]


def test_a_bundle_shows_what_the_server_shows(
    look: Callable[..., Any], hosted: str, runs: dict[str, list[str]]
) -> None:
    watched = look(hosted)
    page = watched.page
    for place, sign in [
        ("runs", "text=desk"),
        *pages_of(runs),
        (f"run/{runs['pictures'][0]}/case/0-0", "img[src^=blob]"),
        (f"run/{runs['long'][0]}/case/0-0?tab=transcript", "text=Step 3"),
        (f"run/{runs['hostile'][0]}/case/0-0", "text=window.pwned"),
        ("metrics", "text=faithfulness"),
    ]:
        page.goto(f"{hosted}/#/{place}")
        page.wait_for_selector(sign)
        watched.fits()
        watched.check()
    # Nobody can look behind the mask of what was published.
    assert page.get_by_label("show personal data").count() == 0
    page.goto(f"{hosted}/#/run/{runs['desk'][-1]}/case/0-0?tab=transcript")
    page.get_by_role("button", name="find_order").click()
    page.wait_for_selector("text=<EMAIL_")
    assert "omar.fitch@example.com" not in page.content()


def test_one_file_needs_no_host(
    look: Callable[..., Any], sample: Path, tmp_path: Path, runs: dict[str, list[str]]
) -> None:
    path = tmp_path / "run.html"
    invoked("export", runs["desk"][-1], "--to", str(path), "--store", str(sample))
    assert "omar.fitch@example.com" not in path.read_text()
    for width in ("desktop", "phone"):
        watched = look(path.as_uri(), width=width)
        for place, sign in pages_of(runs):
            watched.page.goto(f"{path.as_uri()}#/{place}")
            watched.page.wait_for_selector(sign)
            watched.fits()


@pytest.mark.parametrize("keeps", [True, False], ids=["kept in the browser", "storage refused"])
def test_labels_of_a_bundle_are_downloaded_and_imported(
    look: Callable[..., Any], hosted: str, sample: Path, tmp_path: Path, runs: dict[str, list[str]], keeps: bool
) -> None:
    run = runs["desk"][-1]
    watched = look("about:blank")
    page = watched.page
    if not keeps:
        refuse = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('refused') }})"
        page.add_init_script(refuse)
    page.goto(f"{hosted}/#/run/{run}/label?metric=faithfulness&rater=cy")
    asked = []
    for number, key in enumerate("yns", 1):
        page.wait_for_selector(".label-page .card")
        page.wait_for_selector(".answers button:enabled")
        asked.append(page.locator(".label-question .mono").inner_text())
        page.keyboard.press(key)
        page.wait_for_selector(f".progress >> text={number} label")
    if keeps:
        page.reload()
        page.wait_for_selector(".progress >> text=3 labels")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download labels").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["id"], row["label"], row["rater"]) for row in rows] == list(
        zip(asked, (1, 0, None), ("cy", "cy", "cy"), strict=True)
    )
    store = shutil.copy(sample, tmp_path / "runs.db")
    said = invoked("label", run, "--labels", str(file), "--metric", "faithfulness", "--store", str(store))
    assert "2 labels of faithfulness by cy" in said
    assert "1 left out: without a label" in said
    with open_store(str(store)) as kept:
        found = {label.case_id: label.value for label in kept.labels("faithfulness") if label.rater == "cy"}
    assert found == {asked[0]: 1.0, asked[1]: 0.0}
