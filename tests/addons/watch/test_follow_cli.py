"""``agentunit score --follow`` and ``collect --score`` as processes: what they print, how they end, what is left."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from followed_traces import record_line, span_line

from agentunit.cli.main import cli

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signals of POSIX")
LONG_AGO = 1_700_000_000.0
METRICS = ("--metrics", "tool_success,cost")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    return tmp_path


def write(folder: Path, *lines: str, name: str = "a.jsonl") -> None:
    path = folder / "in" / name
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(lines)
    os.utime(path, (LONG_AGO, LONG_AGO))


def score(*arguments: str):
    return CliRunner().invoke(cli, ["score", "in", *METRICS, *arguments])


class Following:
    """A process that follows; lines of its output as they come."""

    def __init__(self, folder: Path, *arguments: str, verb: tuple[str, ...] = ("score", "in", "--follow")) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agentunit", *verb, *METRICS, *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def line(self, beginning: str) -> str:
        """The next line that begins like this."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(beginning):
                return line.strip()
        raise AssertionError(f"no line begins with {beginning!r}")

    def n_arrived(self) -> int:
        """How many traces the store says have come."""
        try:
            with sqlite3.connect(f"file:{self.folder / '.agentunit/runs.db'}?mode=ro", uri=True) as store:
                ((state,),) = store.execute("SELECT state FROM follows").fetchall()
            return json.loads(state)["counts"].get("arrived", 0) if state else 0
        except (sqlite3.Error, ValueError):
            return 0

    def wait_for(self, n_traces: int) -> None:
        ends_at = time.monotonic() + 120
        while self.n_arrived() < n_traces:
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < ends_at, f"{self.n_arrived()} of {n_traces} traces came"
            time.sleep(0.05)

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=120)
        return self.process.returncode, output


@pytest.fixture
def follow(folder):
    started: list[Following] = []

    def start(*arguments: str, **options) -> Following:
        started.append(Following(folder, *arguments, **options))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


def test_once_scores_what_is_new_and_ends(folder):
    write(folder, *(record_line(number) for number in range(20)))
    first = score("--once")
    assert first.exit_code == 0
    assert "20 traces · 20 scored" in first.output
    write(folder, record_line(20))
    write(folder, span_line(1, "agent", "search"), name="spans.jsonl")
    again = json.loads(score("--once", "--json").stdout)
    assert again["counts"]["arrived"] == 22
    (row,) = [row for row in again["series"] if row["metric"] == "tool_success" and row["kind"] == "value"]
    assert (row["n"], row["mean"]) == (22, row["mean"])


def test_once_tells_by_its_exit_code_that_something_got_worse(folder):
    lines = [record_line(number, passed=number < 600, at=LONG_AGO + number * 600) for number in range(700)]
    write(folder, *lines)
    found = score("--once")
    assert found.exit_code == 1
    assert "ALERT: tool_success [trace] fell from 1.00 to 0.00 since 2023-11-19 02:13 UTC" in found.output.replace(
        "\n", " "
    )
    assert "last alert" not in found.output
    again = score("--once")
    assert again.exit_code == 0  # that was told
    assert "baseline learned again since): tool_success [trace] fell from 1.00 to 0.00" in again.output.replace(
        "\n", " "
    )


def test_once_counts_what_cannot_be_read(folder):
    write(folder, record_line(1), "oops\n")
    assert score("--once").exit_code == 3
    write(folder, record_line(2), "oops\n")
    assert score("--once", "--max-errors", "1").exit_code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(folder, follow, number):
    following = follow()
    following.line("following in")
    write(folder, *(record_line(number) for number in range(10)))
    following.wait_for(10)
    code, output = following.end(number)
    assert code == 0
    assert "10 traces · 10 scored" in output
    assert "Traceback" not in output


def test_killed_at_any_moment_it_loses_and_doubles_nothing(folder, follow):
    """Each process is killed as soon as it has got a little further: somewhere in the middle of its work."""
    n_lines, n_traces = 0, 0
    for kill in range(5):
        write(folder, *(record_line(number, passed=number % 2 > 0) for number in range(n_lines, n_lines + 400)))
        write(folder, *(span_line(kill * 40 + number + 1, "agent", "search") for number in range(40)), name="s.jsonl")
        n_lines += 400
        following = follow()
        following.wait_for(n_traces + 1)
        following.process.kill()
        following.process.wait()
        n_traces = following.n_arrived()
    found = score("--once", "--json")
    data = json.loads(found.stdout)
    assert data["counts"] == {"arrived": 2_200, "scored": 2_200}
    (row,) = [row for row in data["series"] if row["metric"] == "tool_success" and row["kind"] == "value"]
    assert row["n"] == 2_200
    assert sum(row["statuses"].values()) == 2_200


def test_prometheus_is_served_while_it_follows(folder, follow):
    following = follow("--watch", "prometheus=0", "--by", "metadata.kind")
    address = following.line("metrics:").split()[1]
    write(folder, *(record_line(number, kind='a"b\n') for number in range(3)))
    following.wait_for(3)
    ends_at = time.monotonic() + 60
    text = ""
    while 'agentunit_traces_total{result="scored"} 3' not in text:
        assert time.monotonic() < ends_at
        with urllib.request.urlopen(address, timeout=30) as answer:
            text = answer.read().decode()
    assert re.search(r'agentunit_score_mean\{.*slice="a\\"b\\n",window="24h"\} ', text) or 'slice="a\\"b\\n"' in text
    assert not re.search(r"\bc[012]\b", text)
    assert following.end(signal.SIGTERM)[0] == 0


def test_an_alert_runs_a_command_also_after_a_restart(folder):
    lines = [record_line(number, passed=number < 600, at=LONG_AGO + number * 600) for number in range(700)]
    write(folder, *lines)
    assert score("--once").exit_code == 1  # nobody was told
    command = f"{sys.executable} -c \"import sys; open('told.json', 'a').write(sys.stdin.read())\""
    assert score("--once", "--on-alert", command).exit_code == 0
    told = json.loads((folder / "told.json").read_text())
    assert (told["metric"], told["direction"], told["is_worse"]) == ("tool_success", "fell", True)
    assert told["cases"]
    score("--once", "--on-alert", command)
    json.loads((folder / "told.json").read_text())  # once only


def test_personal_data_of_alerts_is_masked_before_it_is_sent(folder):
    lines = [
        record_line(number, passed=number < 600, at=LONG_AGO + number * 600, user="ada@example.org")
        for number in range(700)
    ]
    write(folder, *lines)
    command = f"{sys.executable} -c \"import sys; open('told.json', 'a').write(sys.stdin.read() + chr(10))\""
    score("--once", "--by", "metadata.user", "--on-alert", command)
    told = [json.loads(line) for line in (folder / "told.json").read_text().splitlines()]
    assert {name for each in told for name in (each["slice"], *each["slices"])} == {"", "<EMAIL_1>"}


def test_an_alert_that_could_not_be_delivered_is_delivered_at_the_next_start(folder):
    lines = [record_line(number, passed=number < 600, at=LONG_AGO + number * 600) for number in range(700)]
    write(folder, *lines)
    assert "the next start tries again" in score("--once", "--on-alert", "false").output
    command = f"{sys.executable} -c \"import sys; open('told.json', 'a').write(sys.stdin.read())\""
    score("--once", "--on-alert", command)
    assert json.loads((folder / "told.json").read_text())["metric"] == "tool_success"


def test_two_processes_do_not_follow_the_same(folder, follow):
    following = follow()
    following.line("following in")
    other = score("--once")
    assert other.exit_code == 3
    assert "is followed by another process" in other.output
    following.end(signal.SIGTERM)


def test_collect_scores_what_arrives(folder, follow):
    verb = ("collect", "--out", "traces", "--port", "0", "--quiet-s", "0", "--score")
    following = follow(verb=verb)
    address = following.line("  OTEL_EXPORTER_OTLP_ENDPOINT").partition("=")[2]
    for number in range(5):
        request = urllib.request.Request(
            f"{address}/v1/traces", span_line(number + 1, "agent", "search").encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        urllib.request.urlopen(request, timeout=30).close()
    following.wait_for(5)
    code, output = following.end(signal.SIGINT)
    assert code == 0
    assert "5 traces · 5 scored" in output


def test_kept_traces_are_a_run(folder):
    write(folder, record_line(1))
    assert score("--once", "--watch", "keep=masked,30d").exit_code == 0
    listed = CliRunner().invoke(cli, ["runs"])
    assert "followed=in" in listed.output
    shown = CliRunner().invoke(cli, ["show", "last"])
    assert shown.exit_code == 0
    assert "tool_success" in shown.output


def test_a_stored_run_is_the_baseline(folder):
    write(folder, *(record_line(number) for number in range(300)))
    assert score("--once", "--watch", "keep=text").exit_code == 0
    (folder / "other").mkdir()
    lines = (record_line(number, passed=number % 2 > 0, at=LONG_AGO + number * 600) for number in range(1_000, 1_080))
    (folder / "other" / "b.jsonl").write_text("".join(lines))
    found = CliRunner().invoke(cli, ["score", "other", *METRICS, "--once", "--watch", "baseline=last"])
    assert found.exit_code == 1
    assert "tool_success [trace] fell from 1.00 to" in " ".join(found.output.split())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--watch", "sample=5%"), "--watch goes with --follow or --once"),
        (("--follow", "--watch", "sample=0"), "a sample is a share"),
        (("--follow", "--out", "x.jsonl"), "--out does not go with --follow"),
        (("--follow", "--watch", "keep=all"), "text or masked"),
        (("--follow", "--watch", "keep=masked,soon"), "an age is a number"),
        (("--follow", "--watch", "prometheus=x"), "must be a port"),
        (("--follow", "--watch", "baseline=50"), "from 100 to 20,000"),
        (("--follow", "--watch", "baseline=no-such-run"), "no run"),
        (("--follow", "--watch", "otlp=grpc://x"), "must begin with http"),
        (("--follow", "--metrics", "privacy_budget"), "counts from case to case"),
    ],
)
def test_what_cannot_be_done_is_said(folder, arguments, problem):
    write(folder, record_line(1))
    found = CliRunner().invoke(cli, ["score", "in", *arguments])
    assert found.exit_code in (2, 3)
    assert problem in " ".join(found.output.replace("│", " ").split())


def test_collect_refuses_options_of_scoring_without_it(folder):
    found = CliRunner().invoke(cli, ["collect", "--watch", "sample=5%"])
    assert found.exit_code == 2
    assert "go with --score" in found.output


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("sample", "must be one of sample=…, budget=…"),
        ("colour=red", "must be one of sample=…, budget=…"),
        ("budget=0", "must be a number above 0; received '0'"),
    ],
)
def test_a_setting_that_is_none_is_a_usage_error(folder, setting, problem):
    found = CliRunner().invoke(cli, ["score", "in", "--once", "--watch", setting])
    assert found.exit_code == 2
    assert problem in " ".join(found.output.split())


def test_other_metrics_than_last_time_are_told(folder):
    write(folder, *(record_line(f"q{at}") for at in range(3)))
    assert "scored before" not in score("--once").output
    other = CliRunner().invoke(cli, ["score", "in", "-m", "cost,token_usage", "--once"], env={"COLUMNS": "100"})
    assert (
        "token_usage: not scored before; 3 traces scored earlier stay without, those that come are scored "
        "('agentunit score in -m token_usage' scores all that is there)"
    ) in other.output
    assert "tool_success: scored before, not named now; shown as it stood" in other.output
    # What is no longer scored is still shown with its direction.
    assert "tool_success ↑" in other.output
    assert "cost:" not in other.output
