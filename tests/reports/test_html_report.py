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
from hypothesis import given
from hypothesis import strategies as st

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.reports import html as html_report
from agentunit.reports.html import _embedded, _shortened, write_html
from agentunit.reports.html_tables import html_text
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
            self._script = dict(attrs).get("id") or tag
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

    @property
    def bodies(self) -> list[dict[str, object] | None]:
        lines = self.scripts["bodies"].split("\n")[1:-1]
        return [json.loads(line) if line else None for line in lines]


def written(reported, tmp_path, **options) -> Page:
    path = tmp_path / "run.html"
    write_html(reported, path, **options)
    return Page(path.read_text(encoding="utf-8"))


def test_the_upper_half_needs_no_script(demo_run, faulty_tools, tmp_path):
    page = written(demo_run, tmp_path)
    for part in (
        "desk FAIL",
        "run run-1",
        "2023-11-14 22:13 UTC",
        "size 66 cases",
        "agent failed on 1 of 66 cases",
        "agent desk:answer",
    ):
        assert part in page.text, part
    assert f"{len(faulty_tools)} of" in page.text
    assert "tool_success ↑ higher is better" in page.text
    bars = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert len(bars) == sum(row.mean is not None for row in demo_run.summary.metrics)
    assert all("95 % interval" in bar["aria-label"] for bar in bars)


def test_every_case_is_in_the_page(demo_run, tmp_path):
    page = written(demo_run, tmp_path)
    index = json.loads(page.scripts["index"])
    assert [each["id"] for each in index["cases"]] == demo_run.case_ids()
    assert len(page.bodies) == 66
    metrics = [metric["name"] for metric in index["metrics"]]
    first = index["cases"][0]
    assert first["values"][metrics.index("tool_success")] == pytest.approx(1 / 3)
    assert first["statuses"][metrics.index("faithfulness")] == "i"
    body = page.bodies[0]
    assert body["answer"].startswith("Order A-1012")
    assert [call["name"] for call in body["tool_calls"]] == ["find_order", "track_parcel", "track_parcel"]
    assert index["cases"][-1]["failed"]


def test_nothing_is_asked_of_a_network(demo_run, tmp_path):
    page = written(demo_run, tmp_path)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.elements}
    for _, attributes in page.elements:
        assert not attributes.keys() & {"src", "href", "srcset", "style", "action"}
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in page.scripts["style"]
    assert "@import" not in page.scripts["style"]


def test_only_this_script_and_style_may_act(demo_run, tmp_path):
    page = written(demo_run, tmp_path)
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.scripts[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_the_script_never_writes_markup():
    source = html_report._page_part("run.js")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", source)


def test_hostile_text_stays_text(hostile_run, hostile_text, tmp_path):
    plain = written(hostile_run, tmp_path)
    scripts = [attributes for tag, attributes in plain.elements if tag == "script"]
    assert len(scripts) == 3  # the bodies, the index, the script itself
    assert not {"b", "img"} & {tag for tag, _ in plain.elements}
    (body,) = plain.bodies
    assert body["answer"] == hostile_text
    assert body["tool_calls"][0]["arguments"] == {hostile_text: hostile_text}


@given(st.text())
def test_embedded_data_comes_back_and_ends_no_script(text):
    embedded = _embedded({text: [text]})
    assert json.loads(embedded) == {text: [text]}
    assert not set("<>&\n\r\u2028\u2029") & set(embedded)


@given(st.text())
def test_text_in_markup_comes_back_as_text(text):
    page = Page(f'<p title="{html_text(text)}">{html_text(text)}</p>')
    ((tag, attributes),) = page.elements
    assert (tag, list(attributes)) == ("p", ["title"])
    assert attributes["title"] == "".join(page.texts)


def test_long_texts_and_lists_are_cut_with_a_word():
    view = {"answer": "x" * 25_000, "detail": {"list": list(range(600))}}
    short = _shortened(view)
    assert short["answer"].endswith("… (5,000 more characters)")
    assert short["detail"]["list"][-1] == "… (100 more)"
    deep: object = "end"
    for _ in range(300):
        deep = [deep]
    assert "nested deeper" in json.dumps(_shortened(deep))


def test_a_run_too_large_for_a_page_still_lists_every_case(demo_run, tmp_path, monkeypatch):
    monkeypatch.setattr(html_report, "_MOST_BODY_BYTES", 20_000)
    page = written(demo_run, tmp_path)
    bodies = page.bodies
    assert len(bodies) == len(json.loads(page.scripts["index"])["cases"]) == 66
    assert bodies[0] is not None
    assert bodies[-1] is None


def test_an_unscored_run_has_a_page(store, keep, tmp_path):
    keep(store, [[Record(DatasetCase("q1", "?"), TraceLog(), "a")]], metrics=[])
    page = written(open_run("run-1", store), tmp_path)
    assert "Nothing is scored yet." in page.text
    assert page.bodies[0]["answer"] == "a"


def in_browser(path: Path, fragment: str, profile: Path) -> str:
    """The page as Chromium has it after the script ran."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    flags += ["--disable-component-update", "--no-first-run", "--virtual-time-budget=3000", "--dump-dom"]
    address = f"{path.resolve().as_uri()}#{fragment}"
    done = subprocess.run(
        [str(CHROMIUM), *flags, f"--user-data-dir={profile}", address], capture_output=True, timeout=60, check=True
    )
    return done.stdout.decode("utf-8", "replace")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_lists_the_cases_and_opens_the_one_in_the_address(demo_run, tmp_path):
    path = tmp_path / "run.html"
    write_html(demo_run, path)
    page = Page(in_browser(path, "desk-001", tmp_path / "profile"))
    buttons = [attributes for tag, attributes in page.elements if attributes.get("class") == "open mono"]
    assert len(buttons) == 66
    assert [button["aria-expanded"] for button in buttons].count("true") == 1
    for part in ("66 cases", "carrier timeout after 8 s", "Timeline", "+10.42 s", "a colleague will find out"):
        assert part in page.text, part


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_runs_nothing_that_a_case_wrote(store, keep, hostile_text, tmp_path):
    trace = TraceLog()
    trace.record("tool_call", name=hostile_text, arguments={hostile_text: hostile_text}, error=hostile_text)
    case = DatasetCase("bad", hostile_text, hostile_text, context=[hostile_text], metadata={"x": hostile_text})
    keep(store, [[Record(case, trace, Outcome(output=hostile_text, error=hostile_text))]], name="harmless")
    path = tmp_path / "run.html"
    write_html(open_run("run-1", store), path)
    page = Page(in_browser(path, "bad", tmp_path / "profile"))
    assert "<script>alert(1)</script>" in page.text
    assert "harmless: AgentUnit" in page.text  # the title, which the text tries to change
    assert "img" not in {tag for tag, _ in page.elements}
    assert sum(tag == "script" for tag, _ in page.elements) == 3
