"""Texts that would like to be more than text, in every field that the viewer shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytestmark = pytest.mark.optional
pytest.importorskip("playwright", reason="Playwright is not installed (make optional PARTS=viewer)")

from browser_pages import served, static_host  # noqa: E402

import agentunit  # noqa: E402
from agentunit import DatasetCase, MetricResult, Outcome, Record, TraceLog  # noqa: E402
from agentunit.cli.main import cli  # noqa: E402
from agentunit.core.codec import encode_record  # noqa: E402
from agentunit.core.trace import AgentInteraction, HandoffEvent  # noqa: E402
from agentunit.engine.scoring.scored_run import infos_as_data  # noqa: E402
from agentunit.store.labels import StoredLabel, subject_of  # noqa: E402
from agentunit.store.sqlite import Store  # noqa: E402

PWN = "window.pwned=1"
PAYLOADS = (
    f"</script><script>{PWN}</script>",
    f"</title></style></textarea><img src=x onerror={PWN}>",
    f"<svg><script>{PWN}</script><animate onbegin={PWN} attributeName=x dur=1s></svg>",
    f"<svg/onload={PWN}>",
    f"<iframe srcdoc='<script>parent.{PWN}</script>'></iframe>",
    f"<details open ontoggle={PWN}>x</details><input autofocus onfocus={PWN}>",
    f"[link](javascript:{PWN}) [data](data:text/html,<script>parent.{PWN}</script>) [vb](vbscript:x)",
    f"<a href='java\tscript:{PWN}'>x</a> <javascript:{PWN}> [ref][1]\n\n[1]: javascript:{PWN}",
    "![remote](https://evil.example/pixel.png) <img src='https://evil.example/a.png'> "
    "[![x](//evil.example/b.png)](//evil.example)",
    "<form action='https://evil.example' id=app name=body><input name=q><button>send</button></form>",
    "<style>@import 'https://evil.example/a.css'; body { display: none }</style>"
    "<link rel=stylesheet href='https://evil.example/b.css'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'><base href='https://evil.example/'>",
    f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror={PWN}&gt;'>",
    f"`</code><img src=x onerror={PWN}>`\n\n```html\n</pre><script>{PWN}</script>\n```\n\n    <script>{PWN}</script>",
    f"| a | b |\n|---|---|\n| <img src=x onerror={PWN}> | [x](javascript:{PWN}) |\n\n- [ ] <input onclick={PWN}>",
    "{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1} <%= 1 %> __proto__ constructor",
    "\u202egnp.exe\u2066 \x1b]8;;https://evil.example\x07click\x1b]8;;\x07 \x00\ufeff",
    "../../../../etc/passwd\\..\\x.png?a#b%2e%2e/ '\"><b>",
    f"{'> ' * 2_000}{'- ' * 2_000}<img src=x onerror={PWN}>",
)


class Hostile:
    """A metric whose name and details are written by an attacker."""

    name = "hostile<img/src=x/onerror=window.pwned=1>"

    def evaluate(self, case: Any, trace: Any, outcome: Any) -> MetricResult:
        text = str(case.query)
        transcript = dict.fromkeys(("system", "user", "reply", "problem", "model"), text)
        detail = {
            text[:60]: text,
            "reason": text,
            "claims": [{"text": text[:40], "probability": 0.1, "source": text}],
            "references": [text],
            "sources": [text],
            "nested": [[{text[:20]: [text]}]] * 3,
            "judge": {"transcripts": [transcript], "model": text},
            "turns": [{"turn": text, "value": None, "reason": text}],
        }
        return MetricResult(self.name, 0.25, detail)


def hostile_record(number: int, text: str) -> Record:
    trace = TraceLog(metadata={"failure": text, "stdout": text, text[:50]: text, "cost": 0.1})
    trace.record("message", role="user", content=text)
    trace.record(
        "message", role=text, agent=text, content=[{"type": "text", "text": text}, {"type": "image", "image": text}]
    )
    trace.record(
        "tool_call", name=text, agent=text, arguments={text: [text]}, result={text: text}, error=text, status=text
    )
    trace.record("llm_call", agent=text, model=text, usage={"prompt_tokens": 1})
    trace.record("retrieval", query=text, documents=[{"text": text, "source": text}, text])
    trace.record(text[:60], **{"any": text})
    trace.interactions.append(AgentInteraction(text, text + "b", text, content=text))
    trace.handoffs.append(HandoffEvent(text, "b", reason=text, success=False))
    case = DatasetCase(
        f"{number} {text}",
        text,
        [text, "b"],
        context=[text],
        tools=[text],
        metadata={text: text, "category": text, "image_path": text, "images": [f"https://evil.example/{number}.png"]},
    )
    return Record(case, trace, Outcome(success=False, output=text, error=text, state={text: text}))


@pytest.fixture(scope="module")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "runs.db"
    metrics = [Hostile(), *agentunit.resolve_metrics(["exact_match", "tool_success"])]
    records = [hostile_record(number, text) for number, text in enumerate(PAYLOADS)]
    with Store(path) as store:
        for name in (PAYLOADS[0], PAYLOADS[0], PAYLOADS[1]):
            settings = {
                "gates": ["exact_match >= 0.5"],
                "metric_infos": infos_as_data(metrics),
                "agent": name,
                "tags": {PAYLOADS[1]: PAYLOADS[2]},
                "git": {"commit": PAYLOADS[3], "dirty": True},
                "agent_version": PAYLOADS[4],
            }
            run = store.create_run(
                name, agentunit_version=agentunit.__version__, settings=settings, n_planned=len(records)
            )
            for position, record in enumerate(records):
                failed = int(position % 2)
                store.add_lines([(run.id, position, 0, record.case.id, failed, 0.5, encode_record(record))])
            for position, scored in enumerate(agentunit.score(records, metrics)):
                store.add_scores(run.id, position, 0, scored.scores)
            store.set_status(run.id, "finished", finished_at=run.created_at + 1)
        labels = [
            StoredLabel(
                subject_of(record),
                metric,
                record.case.id,
                value,
                rater,
                question=text,
                note=text,
                run_id=run.id,
                position=position,
            )
            for position, (record, text) in enumerate(zip(records, PAYLOADS, strict=True))
            for metric in ("exact_match", "note")
            for value, rater in ((1.0, text), (0.0, "ben"))
        ]
        store.add_labels(labels)
    return path


def pages_of(store: Path) -> list[str]:
    from agentunit.store import open_store

    with open_store(str(store)) as opened:
        ids = [header.id for header in opened.runs()]
    tabs = ("", "?tab=transcript", "?tab=timeline", "?tab=agents", "?tab=judge", "?tab=record")
    cases = [f"run/{ids[0]}/case/{number}-0{tab}" for number in range(len(PAYLOADS)) for tab in tabs]
    return [
        "runs",
        f"runs?tab=trends&name={PAYLOADS[0]}",
        f"run/{ids[0]}",
        f"run/{ids[0]}/cases",
        f"compare/{ids[1]}/{ids[0]}",
        f"run/{ids[0]}/cases?open=0-0&filter=<img+src=x+onerror={PWN}>",
        f"run/{ids[0]}/label?metric=exact_match&rater=<img+src=x>",
        f"run/<img src=x onerror={PWN}>",
        "metrics",
        *cases,
    ]


def is_inert(watched: Any) -> None:
    """Nothing ran or was asked for, and no element came out of a text."""
    page = watched.page
    elements = "iframe, form[action], base, object, embed, link:not([rel=icon]), [onerror], [onload], [style*=url]"
    pictures = "img[src^=http], img[src^='//'], audio[src^=http], video[src^=http]"
    whole = "(wanted) => [...document.querySelectorAll(wanted)].map((each) => each.outerHTML.slice(0, 200))"
    foreign = page.evaluate(whole, f"{elements}, {pictures}")
    assert foreign == []
    protocols = page.evaluate("[...document.querySelectorAll('a[href]')].map((link) => link.protocol)")
    assert set(protocols) <= {"http:", "https:", "file:", "blob:"}
    assert page.evaluate("document.querySelectorAll('script:not([data-path])').length") == 1
    # What the server refuses (a filter that is none, a run that is not) the browser reports by itself.
    watched.faults[:] = [each for each in watched.faults if "Failed to load resource" not in each]
    watched.check()


def open_all(watched: Any) -> None:
    """Open everything that can be opened, so that it is drawn."""
    closed = watched.page.locator("main button[aria-expanded=false], main details:not([open]) > summary")
    for _ in range(min(closed.count(), 25)):
        closed.first.click()
    readable = watched.page.get_by_role("button", name="show as JSON")
    if readable.count():
        readable.first.click()


def test_nothing_runs_on_the_live_server(look: Callable[..., Any], hostile_store: Path) -> None:
    with served(hostile_store) as address:
        watched = look(address)
        for place in pages_of(hostile_store):
            watched.page.goto(f"{address}/#/{place}")
            watched.page.wait_for_function("() => document.querySelector('main')?.innerText.length > 20")
            watched.page.wait_for_selector(".spinner", state="detached")
            open_all(watched)
            is_inert(watched)
        watched.close()


@pytest.mark.parametrize("kind", ["bundle", "file"])
def test_nothing_runs_without_a_server(
    look: Callable[..., Any], hostile_store: Path, tmp_path: Path, kind: str
) -> None:
    run = pages_of(hostile_store)[2].removeprefix("run/")
    if kind == "file":
        path = tmp_path / "<img src=x onerror=window.pwned=1>.html"
        arguments = ["export", run, "--to", str(path)]
    else:
        path = tmp_path / "site"
        arguments = ["view", run, "--bundle", str(path)]
    result = CliRunner().invoke(cli, [*arguments, "--store", str(hostile_store)], catch_exceptions=False)
    assert result.exit_code in (0, 1, 3), result.output
    with static_host(tmp_path) as host:
        address = path.as_uri() if kind == "file" else f"{host}/site/"
        watched = look(address)
        for place in pages_of(hostile_store)[2:4] + pages_of(hostile_store)[9::5]:
            watched.page.goto(f"{address}#/{place}")
            watched.page.wait_for_function("() => document.querySelector('main')?.innerText.length > 20")
            watched.page.wait_for_selector(".spinner", state="detached")
            open_all(watched)
            is_inert(watched)
        watched.close()


def test_foreign_links_say_where_they_lead(look: Callable[..., Any], address: str, runs: dict[str, list[str]]) -> None:
    page = look(f"{address}/#/run/{runs['pictures'][0]}/case/3-0").page
    link = page.get_by_role("link", name="a page")
    assert link.inner_text() == "a page (pages.example ↗)"
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    assert page.get_by_text("not loaded: https://pictures.example/cat.png").count() == 1
    assert page.locator("main img").count() == 0
