"""Tools that appeared, vanished or changed between two runs: shown beside a comparison, never a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from viewer_client import report_text

from agentunit.cli.main import cli
from agentunit.core.codec import as_record
from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding import case_records as module
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.comparison import ToolChange
from agentunit.engine.deciding.decision import decide_comparison
from agentunit.engine.scoring.scored_run import ScoredRun
from agentunit.reports.run_facts import describe_tool_changes
from agentunit.store.runs import RecordRow, RunHeader, StoredRecord
from agentunit.store.schema import StoreError


def record(case_id: str, *calls: Any, offered: Any = None, tools: Any = None) -> dict[str, Any]:
    events = [{"type": "tool_call", "payload": {"name": each} if isinstance(each, str) else each} for each in calls]
    metadata = {} if offered is None else {"tools": offered}
    return {"case": {"id": case_id, "tools": tools}, "trace": {"events": events, "metadata": metadata}, "outcome": "x"}


def run_of(name: str, *records: dict[str, Any]) -> ScoredRun:
    stored = [
        StoredRecord(place, 0, each["case"]["id"], False, 1.0, as_record(each)) for place, each in enumerate(records)
    ]
    rows = [ScoreRow(each.position, 0, each.case_id, 1.0, "ok", "b", "1") for each in stored]
    places = [RecordRow(each.position, 0, each.case_id, False) for each in stored]
    header = RunHeader(name, name, 0.0, 1.0, "finished", len(rows), "0", {})
    return ScoredRun(header, len(rows), len(rows), 0, {"m": rows}, places, read_records=lambda: (x for x in stored))


def changes(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    found = compare_runs(run_of("new", *new), run_of("old", *old)).tools
    return [(each.change, each.name, each.baseline, each.candidate) for each in found]


def test_offered_and_called_tools_are_compared_by_hand() -> None:
    old = [record("a", "track", "find", offered=["track", "find"]), record("b", "find", tools=["find", "book"])]
    new = [record("a", "find", "refund", offered=["find", "refund"]), record("b", "refund", tools=["find", "book"])]
    assert changes(old, new) == [
        ("offered only now", "refund", None, None),
        ("no longer offered", "track", None, None),
        ("called only now", "refund", "0 of 2 records", "2 of 2 records"),
        ("no longer called", "track", "1 of 2 records", "0 of 2 records"),
    ]


def test_schemas_versions_and_servers_are_compared() -> None:
    def side(schema: dict[str, Any], version: str, server: str, server_version: str) -> list[dict[str, Any]]:
        call = {"name": "t", "server": server, "server_version": server_version, "tool_version": version}
        steady = {"name": "u", "parameters": {"type": "object", "required": ["a"]}, "server": "s", "version": "1"}
        other = {"name": "s", "server": "s", "server_version": f"s-{server_version}"}
        return [record("a", call, other, offered=[{"name": "t", "inputSchema": schema}, steady])]

    old = side({"type": "object"}, "1.0", "files", "0.9")
    new = side({"type": "object", "required": ["x"]}, "1.1", "files2", "1.0")
    assert changes(old, new) == [
        ("schema", "t", None, None),
        ("version", "t", "1.0", "1.1"),
        ("server", "t", "files", "files2"),
        ("server version", "s", "s-0.9", "s-1.0"),
    ]
    assert changes(old, old) == []


def test_the_order_of_names_is_no_change_of_a_schema() -> None:
    one, other = {"type": "object", "title": "T"}, {"title": "T", "type": "object"}
    sides = [[record("a", "t", offered=[{"name": "t", "parameters": each}])] for each in (one, other)]
    assert changes(*sides) == []


def test_what_only_one_run_states_is_no_change() -> None:
    silent = [record("a", "t")]
    call = {"name": "t", "server": "s", "tool_version": "2"}
    telling = [record("a", call, offered=[{"name": "t", "parameters": {}}])]
    assert changes(silent, telling) == changes(telling, silent) == []


def test_only_cases_of_both_runs_count() -> None:
    assert changes([record("a", "t"), record("b", "u")], [record("a", "t"), record("c", "v")]) == []


def test_changes_of_tools_decide_nothing() -> None:
    old, new = run_of("old", record("a", "t")), run_of("new", record("a", "u"))
    changed, same = compare_runs(new, old), compare_runs(run_of("new", record("a", "t")), old)
    assert changed.tools
    assert not same.tools
    assert decide_comparison(changed).reasons == decide_comparison(same).reasons
    assert decide_comparison(changed).exit_code == decide_comparison(same).exit_code


def test_a_run_that_cannot_be_read_or_names_too_many_tools_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise StoreError("the file is gone")
        yield

    old, new = run_of("old", record("a", "t")), run_of("new", record("a", "u"))
    new.read_records = broken
    comparison = compare_runs(new, old)
    assert comparison.tools == ()
    assert "tools were not compared: the records of new cannot be read (the file is gone)" in (comparison.note or "")
    monkeypatch.setattr(module, "MOST_TOOLS", 3)
    many = compare_runs(run_of("new", record("a", *(f"t{n}" for n in range(4)))), old)
    assert many.note == "tools were not compared: new names more than 3"
    new.read_records = None
    assert (compare_runs(new, old).tools, compare_runs(new, old).note) == ((), None)


def test_few_of_many_names_are_shown() -> None:
    old = run_of("old", record("a", "t"))
    comparison = compare_runs(run_of("new", record("a", "t", *(f"u{n:02}" for n in range(30)))), old)
    ((change, names),) = describe_tool_changes(comparison)
    assert change == "called only now"
    assert names.startswith("u00 (1 of 1 records), u01")
    assert names.endswith(", and 10 more")
    assert comparison.tools[0] == ToolChange("u00", "called only now", "0 of 1 records", "1 of 1 records")


def test_every_report_shows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.delenv("AGENTUNIT_STORE", raising=False)
    suite = (
        "from agentunit import Suite\n"
        "def agent(query, trace):\n"
        "    trace.metadata['tools'] = [{'name': TOOL, 'parameters': {}}]\n"
        "    trace.record('tool_call', name=TOOL, status='success')\n"
        "    return 'x'\n"
        "suite = Suite(dataset=[{'id': 'a', 'query': 'q'}], agent=agent, metrics=['tool_success'])\n"
    )
    run = CliRunner()
    for file, tool in (("old.py", "track"), ("new.py", "find<b>")):
        (tmp_path / file).write_text(f"TOOL = {tool!r}\n{suite}")
        made = run.invoke(cli, ["run", file])
        assert made.exit_code == 0, made.output
    printed = run.invoke(cli, ["compare", "last~1", "last"]).output
    assert "no longer offered: track" in printed
    assert "called only now: find<b> (1 of 1 records)" in printed
    data = json.loads(run.invoke(cli, ["compare", "last~1", "last", "--json"]).stdout)
    vanished = {"name": "track", "change": "no longer offered", "baseline": None, "candidate": None}
    assert vanished in data["comparison"]["tools"]
    for file in ("run.md", "run.html"):
        run.invoke(cli, ["export", "last", "--to", file, "--baseline", "last~1"])
        text = report_text(tmp_path / file)
        assert "no longer offered" in text
        assert ("find<b>" if file == "run.html" else "find&lt;b") in text
        assert "find<b>" not in (tmp_path / file).read_text()
