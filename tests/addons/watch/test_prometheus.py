"""The Prometheus endpoint: a text that a scraper can read whatever the data holds, and a dashboard that asks for it."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentunit.addons.watch._prometheus import FAMILIES, MetricsServer, prometheus_text
from agentunit.addons.watch.drift import BASELINE_SIZE
from agentunit.addons.watch.following.follower import TraceFollower
from agentunit.addons.watch.following.series import SeriesKey, new_series
from agentunit.addons.watch.following.state import SeriesRow, Snapshot
from agentunit.cli.main import cli
from agentunit.metrics.base import MetricInfo
from agentunit.reports.reported_run import Mask

DASHBOARD = Path(__file__).resolve().parents[3] / "examples" / "grafana" / "agentunit.json"
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = rf'{_NAME}="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(rf"{_NAME}(?:\{{{_LABEL}(?:,{_LABEL})*\}})? (?:[+-]?[0-9.e+-]+|NaN|[+-]Inf)")


def row(metric: str, slice: str, *values: float, info: MetricInfo | None = None) -> SeriesRow:
    key = SeriesKey(metric, "lexical", slice)
    state = new_series(key, info or MetricInfo(metric, "", "", "higher", (0.0, 1.0)), values, 1_600)
    for place, value in enumerate(values):
        state.add(value, "secret-case", float(place), True, 0.5)
    state.statuses = {"ok": len(values), "error": 2}
    return SeriesRow(key, state, 0.25, len(values), values[0], len(values), values[0])


def snapshot(*rows: SeriesRow) -> Snapshot:
    counts = {"arrived": 5, "scored": 4, "failed": 1}
    return Snapshot("traces", 0.0, counts, list(rows), [], 1, 2, 3.5, 0.0, 0.25, 1.0, None)


def test_the_text_is_well_formed_for_hostile_names():
    evil = 'a"b\\c\nd\r{}é\ud800'
    text = prometheus_text(snapshot(row(evil, "", 1.0, 0.5), row("cost", evil, 0.1)), Mask(), {"sent": 1})
    for line in text.splitlines():
        assert line.startswith("# ") or _SAMPLE.fullmatch(line), line
    assert "secret-case" not in text
    assert text.endswith("\n")


def test_families_are_declared_once_and_histograms_add_up():
    text = prometheus_text(snapshot(row("tool_success", "", 0.0, 0.05, 1.0)), Mask())
    declared = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
    assert dict(declared).items() <= {name: kind for name, (kind, _) in FAMILIES.items()}.items()
    assert len({name for name, _ in declared}) == len(declared)
    own = 'metric="tool_success",backend="lexical"'
    buckets = [int(n) for n in re.findall(rf"^agentunit_score_bucket{{{own},le=\"[^\"]+\"}} (\d+)$", text, re.M)]
    assert buckets == sorted(buckets)
    assert (buckets[0], buckets[1], buckets[-1]) == (1, 2, 3)
    assert f"agentunit_score_count{{{own}}} 3" in text
    assert f'agentunit_scores_total{{{own},status="error"}} 2' in text


def test_personal_data_in_slices_is_masked():
    text = prometheus_text(snapshot(row("cost", "ada@example.org", 0.5)), Mask())
    assert "ada@example.org" not in text
    assert "<EMAIL_1>" in text


def queries_of_the_dashboard() -> list[str]:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += [each["expr"] for each in board["annotations"]["list"]]
    return queries + [each["query"]["query"] for each in board["templating"]["list"] if isinstance(each["query"], dict)]


def test_the_dashboard_asks_for_metrics_that_are_exported():
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = {name for query in queries_of_the_dashboard() for name in re.findall(r"agentunit_\w+", query)}
    exported = set()
    for name, (kind, _) in FAMILIES.items():
        exported |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
    assert asked <= exported
    assert {name.removesuffix("_bucket") for name in asked} == set(FAMILIES)
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_every_query_of_the_dashboard_finds_series_on_the_endpoint_of_a_followed_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    served = []

    class Kept(MetricsServer):
        def stop(self):
            with urllib.request.urlopen(self.address, timeout=10) as answer:
                served.append(answer.read().decode())
            super().stop()

    monkeypatch.setattr("agentunit.addons.watch.follow_command.MetricsServer", Kept)
    # All in one hour, which goes on.
    hour = 472_222
    monkeypatch.setattr(TraceFollower, "_hour", lambda self: hour)
    with open("traces.jsonl", "w", encoding="utf-8") as lines:
        for number in range(BASELINE_SIZE + 400):
            status = "success" if number < BASELINE_SIZE else "error"
            call = {"type": "tool_call", "payload": {"name": "find", "status": status}}
            call["timestamp"] = 3600.0 * hour + number
            case = {"id": f"case-{number}", "metadata": {"kind": "ab"[number % 2]}}
            trace = {"events": [call], "metadata": {"trace_id": str(number)}}
            print(json.dumps({"v": 1, "case": case, "trace": trace, "outcome": {"success": True}}), file=lines)
    command = ["score", "traces.jsonl", "--once", "--metrics", "tool_success,cost", "--by", "metadata.kind"]
    options = ["--prometheus", "0", "--on-alert", "cat", "--store", "runs.db"]
    result = CliRunner().invoke(cli, [*command, *options])
    assert result.exit_code == 1, result.output
    series = [(name, dict(re.findall(rf'({_NAME})="([^"]*)"', labels)))
              for name, labels in re.findall(rf"^({_NAME})(?:\{{(.*)\}})? \S+$", served[-1], re.M)]  # fmt: skip
    for query in queries_of_the_dashboard():
        for name, matchers in re.findall(r"(agentunit_\w+)(?:\{([^}]*)\})?", query):
            wanted = re.findall(r'(\w+)(=~|!=|=)"([^"]*)"', matchers)
            found = [labels for own, labels in series if own == name and _fits(labels, wanted)]
            assert found, f"{query}: the endpoint has no {name} with {wanted}"
        for grouped in re.findall(r"by \(([^)]*)\)", query):
            name = re.findall(r"agentunit_\w+", query)[0]
            own = next(labels for each, labels in series if each == name)
            assert {label.strip() for label in grouped.split(",")} <= own.keys(), query


def _fits(labels: dict[str, str], wanted: list[tuple[str, str, str]]) -> bool:
    """As Prometheus matches, with every choice of a variable."""
    for label, sign, value in wanted:
        own, pattern = labels.get(label), ".*" if value.startswith("$") else value
        if own is None or not {"=": own == value, "!=": own != value, "=~": re.fullmatch(pattern, own)}[sign]:
            return False
    return True


def test_the_server_answers_and_ends():
    server = MetricsServer("127.0.0.1", 0, lambda: "x 1\n")
    try:
        with urllib.request.urlopen(server.address, timeout=10) as answer:
            assert answer.read() == b"x 1\n"
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(server.address.replace("/metrics", "/etc/passwd"), timeout=10)
        connection = http.client.HTTPConnection(server.address.split("/")[2], timeout=10)
        connection.request("POST", "/metrics", b"x")
        assert connection.getresponse().status == 501
        connection.close()
    finally:
        server.stop()


def test_no_two_slices_get_one_name():
    text = prometheus_text(snapshot(row("m", "a\tb", 1.0), row("m", "a b", 0.5), row("m", "a\rb", 0.5)), Mask())
    lines = [line.rpartition(" ")[0] for line in text.splitlines() if line.startswith("agentunit_score_mean")]
    assert len(lines) == len(set(lines)) == 6
