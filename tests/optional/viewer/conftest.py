from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright", reason="Playwright is not installed (make optional PARTS=viewer)")
    from browser_pages import NoBrowser, chromium
    from playwright.sync_api import sync_playwright

    try:
        path = chromium()
    except NoBrowser as problem:
        pytest.skip(str(problem))
    with sync_playwright() as playwright:
        # A container has no user namespaces for the sandbox, and little shared memory.
        running = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"]
        )
        yield running
        running.close()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with runs of every kind. Tests that write copy it."""
    folder = tmp_path_factory.mktemp("sample")
    # In a process of its own, because other tests are held to scores without a model.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("AGENTUNIT_")}
    subprocess.run([sys.executable, "-m", "benchmarks.viewer.sample", str(folder)], check=True, env=plain)
    return folder / "runs.db"


@pytest.fixture(scope="session")
def runs(sample: Path) -> dict[str, list[str]]:
    """The ids of the sample's runs by name, the latest first."""
    from agentunit.store import open_store

    found: dict[str, list[str]] = {}
    with open_store(str(sample)) as store:
        for header in sorted(store.runs(), key=lambda each: each.created_at, reverse=True):
            found.setdefault(header.name, []).append(header.id)
    return found


@pytest.fixture(scope="session")
def address(sample: Path) -> Iterator[str]:
    """A live server on the sample, which is only looked at."""
    from browser_pages import served

    with served(sample) as found:
        yield found


@pytest.fixture
def own_store(sample: Path, tmp_path: Path) -> Path:
    """A copy of the sample to write to."""
    return Path(shutil.copy(sample, tmp_path / "runs.db"))


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens watched pages; at the end none of them did anything wrong."""
    from browser_pages import Watched

    opened: list[Watched] = []

    def open_page(address: str, **options: Any) -> Watched:
        watched = Watched(browser, **options)
        opened.append(watched)
        watched.page.goto(address)
        return watched

    yield open_page
    for watched in opened:
        watched.close()
