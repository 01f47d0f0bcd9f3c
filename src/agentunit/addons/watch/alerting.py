"""Telling of alerts: a request to an address, or a command, both named on the command line; never in scoring's way."""

from __future__ import annotations

import http.client
import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from urllib.parse import unquote, urlsplit

from agentunit.addons.watch.following.series import Alert
from agentunit.core.results import encode_json

_TIMEOUT_S = 10.0
_PAUSES_S = (1.0, 5.0)
_MOST_WAITING = 1_000
_HURRY_S = 3.0


class AlertTarget:
    """Where alerts go: ``http://…`` or ``https://…`` gets each as JSON, any other text is a command that reads it.

    A command is split as a shell would and run without one; nothing of an alert becomes part of it.
    """

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self.is_url = parts.scheme in ("http", "https")
        if self.is_url:
            if not parts.hostname:
                raise ValueError("an address has a host, as in https://hooks.example.org/agents")
            parts.port  # noqa: B018  # says what is wrong with it
            self._parts = parts
            self.shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
            return
        try:
            self._command = shlex.split(target)
        except ValueError as error:
            raise ValueError(f"the command cannot be read: {str(error).lower()}") from None
        if not self._command:
            raise ValueError("name an address, or a command")
        self.shown = self._command[0]

    def send(self, alert: Alert) -> str | None:
        """Tell of an alert; why that failed, or ``None``."""
        body = encode_json(alert.as_data())
        try:
            return self._post(body) if self.is_url else self._run(body)
        except subprocess.TimeoutExpired:
            return f"it did not end within {_TIMEOUT_S:g} s"
        except (OSError, http.client.HTTPException, ValueError) as error:
            return str(error) or type(error).__name__

    def _post(self, body: bytes) -> str | None:
        parts = self._parts
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        headers = {"Content-Type": "application/json", "User-Agent": "agentunit"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with closing(kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)) as connection:
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
        # A redirect would lead to a place that nobody named.
        return None if 200 <= status < 300 else f"it answered with status {status}"

    def _run(self, body: bytes) -> str | None:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.communicate(body, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # With its children, which would hold on to what they inherited.
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
            process.wait()
            raise
        return None if process.returncode == 0 else f"it ended with status {process.returncode}"


class AlertSender:
    """Sends alerts in a thread of its own, each up to three times. ``settled`` has the numbers of those sent."""

    def __init__(self, target: AlertTarget, report: Callable[[str], None]) -> None:
        self.target = target
        self.counts: Counter[str] = Counter()
        self._report = report
        self._waiting: queue.Queue[Alert | None] = queue.Queue(_MOST_WAITING)
        self._settled: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="agentunit-alerts", daemon=True)
        self._thread.start()

    def put(self, alert: Alert) -> None:
        """Have an alert sent; where too many wait, it is sent at the next start."""
        try:
            self._waiting.put_nowait(alert)
        except queue.Full:
            self.counts["dropped"] += 1

    def settled(self) -> list[int]:
        """The alerts that were sent since this was asked last; one that could not be is sent at the next start."""
        numbers = []
        while True:
            try:
                numbers.append(self._settled.get_nowait())
            except queue.Empty:
                return numbers

    def stop(self, is_hurried: Callable[[], bool] = lambda: False) -> None:
        """Send what waits, without pauses, and end; what takes longer is sent at the next start.

        Somebody who is in a hurry does not wait for a slow address.
        """
        self._is_ending.set()
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        began = time.monotonic()
        while self._thread.is_alive() and time.monotonic() - began < (_HURRY_S if is_hurried() else 3 * _TIMEOUT_S):
            self._thread.join(0.1)

    def _work(self) -> None:
        while (alert := self._waiting.get()) is not None:
            problem = self.target.send(alert)
            for pause_s in _PAUSES_S:
                if problem is None:
                    break
                self.counts["failed"] += 1
                self._is_ending.wait(pause_s)
                problem = self.target.send(alert)
            self.counts["failed" if problem else "sent"] += 1
            if problem is None:
                self._settled.put(alert.number)
            else:
                failed = f"alert {alert.number} could not be delivered to {self.target.shown}: {problem}"
                self._report(f"{failed}; the next start tries again")
