from __future__ import annotations

import io

from viewer_client import cases_in, page_parts

from agentunit import DatasetCase, Outcome, Record, TraceEvent, TraceLog
from agentunit.addons.viewer.html_file import write_html
from agentunit.core.trace import AgentInteraction
from agentunit.multiagent.team import lanes_of
from agentunit.reports._agents_console import lane_blocks, signs_used
from agentunit.reports.case_console import print_case
from agentunit.reports.case_view import view_case
from agentunit.reports.reported_run import ReportedCase, open_run
from agentunit.reports.terminal import Terminal, cell_len


def message(agent: str, text: str, **more: object) -> TraceEvent:
    return TraceEvent("message", {"role": "assistant", "agent": agent, "content": text, **more})


def call(agent: str, status: str | None = None) -> TraceEvent:
    return TraceEvent("tool_call", {"name": "pytest", "agent": agent, **({"status": status} if status else {})})


def team(*, hub: str = "lead") -> Record:
    """Three agents, one of whom the other two need; a call and a message fail."""
    events = [
        message(hub, "Write it.", to_agent="coder"),
        message("coder", "Written.", to_agent=hub),
        message(hub, "Test it.", to_agent="tester"),
        call("tester", "error"),
        call("tester", "success"),
        call("tester"),
    ]
    said = [(hub, "coder", "Write it.", True), ("coder", hub, "Written.", True), (hub, "tester", "Test it.", False)]
    interactions = [AgentInteraction(a, b, content=text, success=ok) for a, b, text, ok in said]
    return Record(DatasetCase("built", "Build it."), TraceLog(events, interactions=interactions), Outcome(output="no"))


def printed(record: Record, *, width: int = 100, full: bool = False) -> str:
    stream = io.StringIO()
    view = view_case(ReportedCase(0, 0, record.case.id, False, 1.0, record, {}))
    print_case(view, {}, Terminal(file=stream, width=width), full=full)
    return stream.getvalue()


def test_the_terminal_shows_agents_links_and_lanes():
    lines = [line.rstrip() for line in printed(team()).splitlines()]
    assert "  ◇ a bottleneck: others need it to reach each other" in lines
    assert any(line.startswith("  lead ◇ ") for line in lines)
    links = lines[lines.index("Who writes to whom") + 1 :][:3]
    assert [line.split() for line in links] == [
        ["coder", "→", "lead", "1", "━" * 16],
        ["lead", "→", "coder", "1", "━" * 16],
        ["lead", "→", "tester", "1", "━" * 16, "✗", "1", "failed"],
    ]
    assert lines[lines.index("Lanes") + 1 :][:4] == [
        "  lead    ●▲✗───",
        "  coder   ▼●│───",
        "  tester  ──▼✗■□",
        "  ● message   ■ tool call   □ tool call, outcome unknown   ✗ failed   ▲ ▼ to whom   (by order)",
    ]


def test_long_lanes_are_cut_into_blocks_that_fit():
    trace = TraceLog([message("ab"[number % 2], f"turn {number}") for number in range(400)])
    lanes = lanes_of(trace)
    blocks = lane_blocks(lanes, 60)
    assert {cell_len(line) for block in blocks for line in block.plain.split("\n")} <= set(range(61))
    assert sum(block.plain.count("●") for block in blocks) == 400
    record = Record(DatasetCase("q"), trace, "done")
    assert "… and so on" in printed(record, width=60)
    assert "… and so on" not in printed(record, width=60, full=True)
    assert signs_used(lanes).startswith("● message   ▲ ▼ to whom")


def test_one_agent_is_no_team():
    record = Record(DatasetCase("q"), TraceLog([message("solo", "Done."), call("solo")]), "done")
    view = view_case(ReportedCase(0, 0, "q", False, 1.0, record, {}))
    assert (view.agents, view.network, view.lanes) == ([], None, None)
    assert "Lanes" not in printed(record)


def test_nothing_hostile_reaches_the_terminal_by_a_name(hostile_text):
    text = printed(team(hub=hostile_text))
    assert not set("\x1b\x00\u202e") & set(text)


def case_of(record: Record, store, keep, path) -> dict[str, object]:
    keep(store, [[record]], metrics=[])
    write_html(open_run("run-1", store), path)
    [case] = cases_in(page_parts(path)["data/runs/0/cases-0.json.gz"])
    return case


def test_the_page_knows_the_team(store, keep, hostile_text, tmp_path):
    case = case_of(team(hub=hostile_text), store, keep, tmp_path / "run.html")
    assert len(case["agents"]) == len(case["network"]["agents"]) == 3
    assert case["network"]["bottlenecks"] == [hostile_text]
    assert {mark["kind"] for mark in case["lanes"]["marks"]} >= {"message", "call"}
    assert sum(mark["failed"] is True for mark in case["lanes"]["marks"]) == 2


def test_a_case_without_a_team_has_no_drawing(store, keep, tmp_path):
    record = Record(DatasetCase("q"), TraceLog([message("solo", "Done.")]), "done")
    case = case_of(record, store, keep, tmp_path / "run.html")
    assert (case["agents"], case["network"], case["lanes"]) == ([], None, None)
