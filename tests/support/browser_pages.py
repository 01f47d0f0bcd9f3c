"""Pages in a real browser, which notes what none of ours may do: errors, requests beyond loopback, scripts of data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

OWN_HOSTS = ("127.0.0.1", "localhost", "")
_MOST_WAIT_MS = 120_000  # for what must come; a slow machine is no fault
WIDTHS = {"desktop": (1280, 800), "phone": (390, 780)}


class NoBrowser(Exception):
    """Why there is no browser here."""


def chromium() -> str:
    """Where Debian's Chromium is; the package is installed where that can be done."""
    found = shutil.which("chromium")
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", "-q", *step], env=environment, capture_output=True)
        found = shutil.which("chromium")
    if found is None:
        raise NoBrowser("Chromium is not installed (apt-get install chromium), and could not be installed here")
    return found


class Watched:
    """One page of a browser, with all that it did wrong."""

    def __init__(self, browser: Any, *, width: str = "desktop", scheme: str = "light", **options: Any) -> None:
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        self.context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(_MOST_WAIT_MS)
        self.faults: list[str] = []
        self._is_closed = False
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        self.context.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console {message.type}: {message.text} ({message.location.get('url')})")

    def _asked(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob", "file") and parts.hostname not in OWN_HOSTS:
            self.faults.append(f"asked {request.url}")

    def check(self) -> None:
        """Nothing went wrong so far, and nothing of the data ran."""
        assert self.page.evaluate("window.pwned") is None
        assert not self.faults, self.faults

    def fits(self) -> None:
        """The page is not wider than the window: nobody has to scroll sideways."""
        wide = "Math.max(0, document.documentElement.scrollWidth - window.innerWidth)"
        assert self.page.evaluate(wide) == 0, f"{self.page.url} is too wide"

    def close(self) -> None:
        """Check it, and close it: while its server is there, because pages go on asking."""
        if not self._is_closed:
            self._is_closed = True
            try:
                self.check()
            finally:
                self.context.close()


@contextmanager
def served(store: Path, *arguments: str) -> Iterator[str]:
    """The address of 'agentunit view' on a store, as a user starts it."""
    command = [sys.executable, "-m", "agentunit", "view", "--store", str(store), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[0].rstrip("/")
        finally:
            process.terminate()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@contextmanager
def static_host(folder: Path) -> Iterator[str]:
    """The address of a host that knows nothing but files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
