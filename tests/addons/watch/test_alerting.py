"""Telling of alerts: by a request or a command, in a bounded number of tries, and never from data."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from agentunit.addons.watch import alerting
from agentunit.addons.watch.alerting import AlertSender, AlertTarget
from agentunit.addons.watch.following.series import Alert

EVIL = Alert(7, 0.0, "cost; rm -rf $HOME", "b", "`id`", "value", "rose", 1.0, 2.0, 0.0, 5, cases=["$(x)"])


@pytest.fixture
def hook():
    """A server that answers with the statuses it is given, and keeps what it got."""
    received, statuses = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(statuses.pop(0) if statuses else 200)
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://user:pass@127.0.0.1:{server.server_port}/hook?x=1", received, statuses
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_address_gets_the_alert_as_json(hook):
    url, received, _ = hook
    assert AlertTarget(url).send(EVIL) is None
    path, headers, body = received[0]
    assert (path, headers["Content-Type"]) == ("/hook?x=1", "application/json")
    assert headers["Authorization"].startswith("Basic ")
    data = json.loads(body)
    assert (data["event"], data["metric"], data["cases"]) == ("agentunit.drift", EVIL.metric, ["$(x)"])
    assert "pass" not in AlertTarget(url).shown


def test_tries_are_bounded_and_redirects_are_not_followed(hook, monkeypatch):
    monkeypatch.setattr(alerting, "_PAUSES_S", (0.0, 0.0))
    url, received, statuses = hook
    statuses += [500, 302, 503]
    lines = []
    sender = AlertSender(AlertTarget(url), lines.append)
    sender.put(EVIL)
    sender.stop()
    assert len(received) == 3
    assert sender.settled() == []  # it is sent at the next start
    assert sender.counts == {"failed": 3}
    assert "alert 7 could not be delivered" in lines[0]


def test_a_command_reads_the_alert_and_is_no_shell(tmp_path):
    script = tmp_path / "told.py"
    script.write_text("import sys; open(sys.argv[1], 'w').write(sys.stdin.read())")
    out = tmp_path / "out; touch gone"
    assert AlertTarget(f"{sys.executable} {script} '{out}'").send(EVIL) is None
    assert json.loads(out.read_text())["slice"] == "`id`"


def test_a_command_that_hangs_is_ended_with_its_children(monkeypatch):
    monkeypatch.setattr(alerting, "_TIMEOUT_S", 0.5)
    problem = AlertTarget("sh -c 'sleep 1000 & sleep 1000'").send(EVIL)
    assert problem == "it did not end within 0.5 s"


@pytest.mark.parametrize(
    ("target", "problem"),
    [("no-such-command-here", "No such file"), ("false", "status 1"), ("http://127.0.0.1:9/", "refused")],
)
def test_what_goes_wrong_is_said(target, problem):
    assert problem in (AlertTarget(target).send(EVIL) or "")


@pytest.mark.parametrize("target", ["", "'", "http://", "http://example.org:99999/"])
def test_nonsense_is_refused(target):
    with pytest.raises(ValueError, match=r"address|command|Port"):
        AlertTarget(target)


def test_nobody_in_a_hurry_waits_for_a_slow_address(monkeypatch):
    monkeypatch.setattr(alerting, "_HURRY_S", 0.0)
    goes_on = threading.Event()

    class Slow(AlertTarget):
        def send(self, alert):
            goes_on.wait(60)

    sender = AlertSender(Slow("true"), print)
    sender.put(EVIL)
    sender.stop(lambda: True)
    assert not goes_on.is_set()
    assert sender.settled() == []
    goes_on.set()
