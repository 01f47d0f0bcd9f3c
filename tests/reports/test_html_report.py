from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from viewer_client import cases_in, page_parts

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.addons.viewer._transcript import shortened
from agentunit.addons.viewer.html_file import write_html
from agentunit.reports.reported_run import open_run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


class Page(HTMLParser):
    """The elements of a page as a browser's parser finds them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._script = dict(attrs).get("data-path") or tag
            self.scripts[self._script] = ""

    def handle_endtag(self, tag):
        self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self.scripts[self._script] += data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def demo_page(demo_store, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "run.html"
    write_html(open_run("run-1", demo_store), path)
    return path


def test_the_verdict_and_the_metrics_need_no_script(demo_page, faulty_tools):
    page = Page(demo_page.read_text(encoding="utf-8"))
    for part in ("desk", "FAIL", "tool_success", "agent failed", f"{len(faulty_tools)} of"):
        assert part in page.text, part


def test_every_case_is_in_the_page(demo_run, demo_page):
    parts = page_parts(demo_page)
    columns = parts["data/runs/0/columns-0.json.gz"]
    assert columns["case_id"] == demo_run.case_ids()
    cases = [case for name, part in parts.items() if "/cases-" in name for case in cases_in(part)]
    assert len(cases) == 66
    metrics = [column["name"] for column in parts["data/runs/0/run.json.gz"]["columns"]]
    assert columns["values"][metrics.index("tool_success")][0] == pytest.approx(1 / 3)
    assert columns["statuses"][metrics.index("faithfulness")][0] == "i"
    first = cases[0]
    assert first["answer"].startswith("Order A-1012")
    called = [event["tool"]["name"] for event in first["events"] if event["kind"] == "tool_call"]
    assert called == ["find_order", "track_parcel", "track_parcel"]
    assert columns["failed"][-1] == 1


def test_nothing_is_asked_of_a_network(demo_page):
    page = Page(demo_page.read_text(encoding="utf-8"))
    assert not {"img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        # The icon is empty: without it browsers ask the host for one.
        named = {name for name, value in attributes.items() if (tag, value) != ("link", "data:,")}
        assert not named & {"src", "href", "srcset", "style", "action"}
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\((?!['\"]?data:)", page.scripts["style"])
    assert "@import" not in page.scripts["style"]


def test_only_this_script_and_style_may_act(demo_page):
    page = Page(demo_page.read_text(encoding="utf-8"))
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.scripts[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_hostile_text_stays_text(hostile_run, hostile_text, tmp_path):
    path = tmp_path / "run.html"
    write_html(hostile_run, path)
    page = Page(path.read_text(encoding="utf-8"))
    parts = page_parts(path)
    # The data is in base64: nothing in it can end its element.
    assert sum(tag == "script" for tag, _ in page.elements) == len(parts) + 1
    assert not {"b", "img"} & {tag for tag, _ in page.elements}
    [case] = cases_in(parts["data/runs/0/cases-0.json.gz"])
    assert case["answer"] == hostile_text
    assert case["events"][0]["tool"]["arguments"] == {hostile_text: hostile_text}


def test_long_texts_and_lists_are_cut_with_a_word():
    short = shortened({"answer": "x " * 12_500, "detail": {"list": list(range(600))}})
    assert short["answer"].endswith("… (5,000 more characters)")
    assert short["detail"]["list"][-1] == "… (100 more)"
    deep: object = "end"
    for _ in range(300):
        deep = [deep]
    assert "nested deeper" in json.dumps(shortened(deep))


def test_an_unscored_run_has_a_page(store, keep, tmp_path):
    keep(store, [[Record(DatasetCase("q1", "?"), TraceLog(), "a")]], metrics=[])
    write_html(open_run("run-1", store), tmp_path / "run.html")
    parts = page_parts(tmp_path / "run.html")
    assert parts["data/runs/0/run.json.gz"]["metrics"] == []
    assert cases_in(parts["data/runs/0/cases-0.json.gz"])[0]["answer"] == "a"


def in_browser(path: Path, fragment: str, profile: Path) -> str:
    """The page as Chromium has it after the script ran."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    flags += ["--disable-component-update", "--no-first-run", "--virtual-time-budget=3000", "--dump-dom"]
    flags += ["--window-size=1300,1600"]
    address = f"{path.resolve().as_uri()}#{fragment}"
    done = subprocess.run(
        [str(CHROMIUM), *flags, f"--user-data-dir={profile}", address], capture_output=True, timeout=60, check=True
    )
    return done.stdout.decode("utf-8", "replace")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_opens_the_run_and_the_case_in_the_address(demo_page, tmp_path):
    run = Page(in_browser(demo_page, "", tmp_path / "profile"))
    assert "tool_success" in run.text
    assert "Gates" in run.text
    case = Page(in_browser(demo_page, "/run/run-1/case/0-0", tmp_path / "profile"))
    for part in ("desk-001", "Order A-1012 is with the carrier", "track_parcel"):
        assert part in case.text, part


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_runs_nothing_that_a_case_wrote(store, keep, hostile_text, tmp_path):
    trace = TraceLog()
    trace.record("tool_call", name=hostile_text, arguments={hostile_text: hostile_text}, error=hostile_text)
    case = DatasetCase("bad", hostile_text, hostile_text, context=[hostile_text], metadata={"x": hostile_text})
    keep(store, [[Record(case, trace, Outcome(output=hostile_text, error=hostile_text))]], name="harmless")
    path = tmp_path / "run.html"
    write_html(open_run("run-1", store), path)
    before = sum(tag == "script" for tag, _ in Page(path.read_text(encoding="utf-8")).elements)
    page = Page(in_browser(path, "/run/run-1/case/0-0", tmp_path / "profile"))
    assert "<script>alert(1)</script>" in page.text
    assert "img" not in {tag for tag, _ in page.elements}
    assert sum(tag == "script" for tag, _ in page.elements) == before
