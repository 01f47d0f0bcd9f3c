"""Where pictures may come from, and what is never opened."""

from __future__ import annotations

import base64
import errno
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from made_media import encoded, shape

from agentunit.backends.media_sources import (
    MediaAccess,
    MediaLimits,
    MediaProblem,
    is_url,
    read_source,
    shown_source,
    source_identity,
)

CONTENT = encoded(shape())
SMALL = MediaAccess(limits=MediaLimits(most_bytes=100))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside.png").write_bytes(CONTENT)
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (root / "in.png").write_bytes(CONTENT)
    (root / "deep" / "er.png").write_bytes(CONTENT)
    (root / "good_link.png").symlink_to(root / "deep" / "er.png")
    (root / "bad_link.png").symlink_to(tmp_path / "outside.png")
    (root / "bad_folder").symlink_to(tmp_path)
    (root / "circle.png").symlink_to(root / "circle.png")
    return root


@pytest.mark.parametrize(
    "uri",
    [
        "data:image/png;base64," + base64.b64encode(CONTENT).decode(),
        "DATA:image/png;name=x;base64,\n" + base64.encodebytes(CONTENT).decode(),
        "data:image/png;base64," + base64.b64encode(CONTENT).decode().rstrip("="),
        "data:image/png;base64," + quote(base64.b64encode(CONTENT).decode(), safe=""),
        "data:," + "".join(f"%{byte:02x}" for byte in CONTENT),
    ],
)
def test_data_uris(uri: str) -> None:
    assert read_source(uri, MediaAccess()) == CONTENT


def test_bytes_and_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for source in (CONTENT, bytearray(CONTENT), folder / "in.png", str(folder / "in.png"), "in.png", "deep/er.png"):
        assert read_source(source, MediaAccess()) == CONTENT  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["in.png", "deep/../in.png", "./deep/er.png", "good_link.png"])
def test_what_lies_under_the_root_is_read(folder: Path, path: str) -> None:
    assert read_source(path, MediaAccess(folder)) == CONTENT
    assert read_source(folder / path, MediaAccess(folder)) == CONTENT


@pytest.mark.parametrize("path", ["../outside.png", "bad_link.png", "bad_folder/outside.png", "deep/../../outside.png"])
def test_what_lies_outside_of_the_root_is_refused(folder: Path, path: str) -> None:
    for source in (path, folder / path):
        with pytest.raises(MediaProblem, match="is outside of the allowed folder"):
            read_source(source, MediaAccess(folder))
    assert read_source(folder / path, MediaAccess()) == CONTENT


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/environ", "/dev/zero"])
def test_absolute_paths_outside_of_the_root_are_refused(folder: Path, path: str) -> None:
    with pytest.raises(MediaProblem, match=r"outside of the allowed folder|cannot be found"):
        read_source(path, MediaAccess(folder))


@pytest.mark.parametrize("with_root", [True, False])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere.png", "no such file"),
        ("in.png/x", "not a directory|no such file"),
        ("circle.png", "loop|cannot be found|symbolic"),
        ("x" * 5000, "too long"),
        ("nul\0byte.png", "null"),
        ("lone \ud800.png", "cannot be|surrogates"),
    ],
)
def test_paths_that_lead_nowhere(folder: Path, path: str, words: str, with_root: bool) -> None:
    access = MediaAccess(folder if with_root else None)
    with pytest.raises(MediaProblem, match=words):
        read_source(path if with_root else str(folder / path), access)


def test_pipes_devices_sockets_and_folders_never_block(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "pipe.png")
    monkeypatch.chdir(folder)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind("socket.png")
        kinds = {"pipe.png": "a pipe", "deep": "a folder", "socket.png": "cannot be opened"}
        for name, words in kinds.items():
            with pytest.raises(MediaProblem, match=words):
                read_source(folder / name, MediaAccess())
    with pytest.raises(MediaProblem, match="must be a file; found a device"):
        read_source("/dev/zero", MediaAccess())


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"", "is empty"),
        (CONTENT, "at most 100 bytes"),
        ("data:image/png;base64," + base64.b64encode(CONTENT).decode(), "at most 100 bytes"),
        ("data:image/png;base64," + "A" * 1000, "at most 100 bytes"),
        ("data:image/png;base64,%%%", "not valid base64"),
        ("data:image/png;base64", "must hold a comma"),
        ("data:,", "is empty"),
    ],
)
def test_bytes_that_are_refused(source: Any, words: str) -> None:
    with pytest.raises(MediaProblem, match=words):
        read_source(source, SMALL)


def test_a_large_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    with path.open("wb") as file:
        file.truncate(2**40)  # a terabyte of nothing, which takes no room
    with pytest.raises(MediaProblem, match="at most 100 bytes"):
        read_source(path, SMALL)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.png", "https://example.com/x.png", "HTTPS://example.com/x.png"])
def test_urls_are_refused_unless_allowed(url: str) -> None:
    with pytest.raises(MediaProblem, match="nothing is fetched unasked; allow_urls=True"):
        read_source(url, MediaAccess())


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/y", "file:///etc/passwd", "gopher://127.0.0.1"])
def test_only_the_web_is_ever_fetched(url: str) -> None:
    for allow_urls in (True, False):
        with pytest.raises(MediaProblem, match="must be a path, a data URI, or an http or https URL"):
            read_source(url, MediaAccess(allow_urls=allow_urls))


def test_a_file_that_opens_but_cannot_be_read_is_a_problem_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("agentunit.backends.media_sources.open_file", lambda *_: Failing())
    with pytest.raises(MediaProblem, match="cannot be read: input/output error"):
        read_source(folder / "in.png", MediaAccess())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("https://a/b", True), ("s3://b/k", True), ("C:\\pictures\\a.png", False), ("a/b.png", False)],
)
def test_what_is_a_url(text: str, expected: bool) -> None:
    assert is_url(text) is expected


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
            return
        body = {"/good.png": CONTENT, "/large": bytes(1000), "/empty": b""}.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_url_that_is_allowed_is_fetched(site: str) -> None:
    assert read_source(f"{site}/good.png", MediaAccess(allow_urls=True)) == CONTENT


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/nowhere", "404"),
        ("/large", "at most 100 bytes"),
        ("/empty", "is empty"),
        ("/away", "not fetched|not allowed"),
    ],
)
def test_urls_that_lead_to_nothing_of_use(site: str, path: str, words: str) -> None:
    with pytest.raises(MediaProblem, match=words):
        read_source(site + path, MediaAccess(allow_urls=True, limits=SMALL.limits))


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("a.png", "a.png"),
        (b"abc", "3 bytes"),
        ("data:image/png;base64,QUJD", "data URI (image/png)"),
        ("data:,abc", "data URI (text/plain)"),
        ("\ud800", "\\ud800"),
    ],
)
def test_sources_are_shown_in_short(source: Any, shown: str) -> None:
    assert shown_source(source) == shown
    assert len(shown_source("x" * 10_000)) < 250


def test_identity_follows_the_content(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"one")
    link.symlink_to(path)
    access = MediaAccess()
    assert source_identity(str(path), access) == source_identity(link, access)
    before = source_identity(path, access)
    path.write_bytes(b"other")
    assert source_identity(path, access) != before
    assert source_identity(b"one", access) == source_identity(bytearray(b"one"), access)  # type: ignore[arg-type]
    assert source_identity("nowhere", access) == "nowhere"
