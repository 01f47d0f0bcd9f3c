"""The site of the docs: it builds without a warning, opens from the disk, can be searched, and calls nobody."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.optional
pytest.importorskip("mkdocs", reason="MkDocs is not installed (make optional PARTS=site)")

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def page(site: Path) -> Iterator[Any]:
    pytest.importorskip("playwright", reason="Playwright is not installed (make optional PARTS=site)")
    from browser_pages import NoBrowser, chromium
    from playwright.sync_api import sync_playwright

    try:
        path = chromium()
    except NoBrowser as problem:
        pytest.skip(str(problem))
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=[*quiet, "--disable-component-update", "--disable-sync"]
        )
        opened = browser.new_page()
        opened.set_default_timeout(120_000)  # for what must come; a slow machine is no fault
        opened.wanted = []
        opened.problems = []
        opened.on("request", lambda request: opened.wanted.append(request.url))
        opened.on("pageerror", lambda error: opened.problems.append(str(error)))
        yield opened
        browser.close()


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for path in [*pages, *site.rglob("*.css")]:
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"""<(?:script|img|iframe|source)[^>]*src=["']?(https?:)?//""", text)
        loaded += re.findall(r"""<link[^>]*rel=["']?(?:stylesheet|preconnect|preload)[^>]*https?://""", text)
        loaded += re.findall(r"""(?:@import|url\()\s*["']?https?://""", text)
        assert not loaded, path


def test_every_page_is_in_the_navigation(site: Path) -> None:
    navigation = (site / "index.html").read_text(encoding="utf-8")
    pages = [path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html"]
    assert [page for page in pages if f'href="{page}"' not in navigation] == []


def test_it_opens_from_the_disk_and_calls_nobody(site: Path, page: Any) -> None:
    for name in ("index.html", "tutorials/first-verdict.html", "cli.html", "examples/rag.html"):
        page.goto((site / name).as_uri())
        page.wait_for_selector("h1")
        broken = page.evaluate("[...document.images].filter((each) => !each.naturalWidth).map((each) => each.src)")
        assert broken == [], name
    assert [url for url in page.wanted if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    assert page.problems == []


def test_search_works_without_a_server(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    page.click("input[name=query]")
    page.keyboard.type("labeled rate")
    page.wait_for_selector(".md-search-result__link[href*=label]", state="attached")
    assert [url for url in page.wanted if url.startswith("http")] == []


def test_the_first_screen_has_the_figures_and_the_first_command(site: Path, page: Any) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto((site / "index.html").as_uri())
    assert page.locator(".figures > div").count() == 3
    # Side by side, each with a link to where it was measured.
    tops = page.evaluate("[...document.querySelectorAll('.figures > div')].map((e) => e.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    assert page.locator(".figures > div:has(a)").count() == 3
    below = page.evaluate("document.querySelector('.highlight').getBoundingClientRect().bottom")
    assert below <= 720
    assert "make demo" in page.inner_text(".highlight")


@pytest.mark.parametrize("width", [1280, 390])
def test_tables_are_tables_and_no_page_is_wider_than_the_screen(site: Path, page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    for name in ("index", "comparison", "privacy", "running", "cli", "tutorials/two-models"):
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_selector("h1")
        beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(beyond) == 0, name
        texts = "[...document.querySelectorAll('article p, article li')].map((each) => each.textContent)"
        assert [text for text in page.evaluate(texts) if "|---" in text] == [], name
