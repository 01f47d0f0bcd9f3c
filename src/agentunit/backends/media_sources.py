"""From what a record says of a picture or video to its bytes: a path, bytes, a data URI, or a URL where allowed.

Limits say what may be read at most, and ``MediaProblem`` is the one way in which it is refused.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Hashable
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote_to_bytes

from agentunit.core.case import origin_of
from agentunit.installation import install_command

EXTRA = install_command("multimodal")


class MediaProblem(ValueError):
    """A picture or video that cannot be used. The message goes on after its name: the rule, and what was found."""


@dataclass(frozen=True)
class MediaLimits:
    """Bounds on time and memory, checked before the work is done where that is possible.

    A video may take ``most_video_s`` seconds and ``most_video_memory_bytes`` of the process that samples it, and
    ``most_frames_per_seek`` decoded frames and ``most_packets_per_seek`` packets until a wanted frame is found.
    """

    most_bytes: int = 64 * 2**20
    most_pixels: int = 64_000_000
    most_frame_pixels: int = 40_000_000
    most_video_s: float = 60.0
    most_video_memory_bytes: int = 2 * 2**30
    most_frames_per_seek: int = 3_000
    most_packets_per_seek: int = 50_000
    most_decode_s: float = 30.0
    most_fetch_s: float = 30.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
                raise ValueError(f"MediaLimits: {each.name} must be a finite number above 0; received {value!r}")

    def check_frame(self, width: float, height: float) -> None:
        """Refuse a frame with too many pixels."""
        if width * height > self.most_frame_pixels:
            raise MediaProblem(
                f"must have at most {self.most_frame_pixels:,} pixels a frame; it has {int(width):,} × {int(height):,}"
            )


_configured: Path | None = None


def configure_media_root(root: str | os.PathLike[str] | None) -> None:
    """Let every metric without a ``media_root`` of its own read media in this folder; ``None`` forgets it."""
    global _configured  # one setting of the process, as that of the judge
    if root is not None and not (isinstance(root, (str, os.PathLike)) and os.path.isdir(root)):
        raise ValueError(f"media_root must be a folder; received {root!r:.200}")
    _configured = None if root is None else Path(root)


def configured_media_root() -> Path | None:
    """The folder that ``configure_media_root`` set."""
    return _configured


@dataclass(frozen=True)
class MediaAccess:
    """Where media may come from: files under ``root`` only, when there is one; URLs only when they are allowed.

    Relative paths start at ``root``, else at the working directory. ``foreign`` is true when the root is nobody's
    choice but the folder of the file that names the media.
    """

    root: Path | None = None
    allow_urls: bool = False
    limits: MediaLimits = MediaLimits()
    foreign: bool = False

    @classmethod
    def for_case(
        cls,
        case: object,
        media_root: str | os.PathLike[str] | None,
        allow_urls: bool = False,
        limits: MediaLimits | None = None,
    ) -> MediaAccess:
        """What the media of a case may be: under the root that the user names, else beside the file of the case.

        A case that was made in Python names files as its program does: anywhere.
        """
        chosen = _configured if media_root is None else Path(media_root)
        origin = origin_of(case) if chosen is None else None
        root = Path(origin) if origin is not None else chosen
        return cls(root, allow_urls, limits or MediaLimits(), origin is not None)


MediaSource = str | os.PathLike[str] | bytes
_CHUNK_BYTES = 2**16
_NEVER_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def shown_source(source: object) -> str:
    """A source in few words, for details and reasons; never what is inside of it.

    >>> shown_source("photos/cat.jpg"), shown_source(b"..."), shown_source("data:image/png;base64,iVBORw0KGgo=")
    ('photos/cat.jpg', '3 bytes', 'data URI (image/png)')
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return f"{len(source)} bytes"
    text = str(source)
    if is_data_uri(text):
        return f"data URI ({text[5:].split(',', 1)[0].split(';', 1)[0][:40] or 'text/plain'})"
    printable = text.encode("utf-8", "backslashreplace").decode()
    return printable if len(printable) <= 200 else f"{printable[:120]}…{printable[-60:]}"


def is_data_uri(text: str) -> bool:
    """Whether a text is a data URI."""
    return text[:5].lower() == "data:"


def is_url(text: str) -> bool:
    """Whether a text names a place elsewhere: ``scheme://…``, which no path of ours is."""
    scheme, separator, _ = text[:32].partition("://")
    return bool(separator) and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum()


def read_source(source: MediaSource, access: MediaAccess) -> bytes:
    """The bytes of a source. ``MediaProblem`` says why there are none."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _bounded(bytes(source), access)
    text = os.fspath(source)
    if is_data_uri(text):
        return _bounded(_from_data_uri(text, access), access)
    if is_url(text):
        if not text.lower().startswith(("http://", "https://")):
            raise MediaProblem("must be a path, a data URI, or an http or https URL")
        if not access.allow_urls:
            raise MediaProblem("is a URL, and nothing is fetched unasked; allow_urls=True lets it be fetched")
        return _bounded(_fetched(text, access), access)
    with open_file(text, access) as file:
        try:
            content = file.read(access.limits.most_bytes + 1)
        except OSError as error:
            raise MediaProblem(f"cannot be read: {_why(error)}") from None
    return _bounded(content, access)


def _fetched(url: str, access: MediaAccess) -> bytes:
    """What an http or https URL holds, as far as the limits on bytes and seconds allow."""
    # Loaded only where the user allowed URLs.
    import http.client
    import time
    import urllib.error
    import urllib.request

    class WebOnly(urllib.request.HTTPRedirectHandler):
        """A redirect may lead elsewhere on the web, but not to files or other protocols."""

        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            if not newurl.lower().startswith(("http://", "https://")):
                raise MediaProblem(f"leads to {newurl:.80}, which is not fetched")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    limits = access.limits
    deadline = time.monotonic() + limits.most_fetch_s
    content = bytearray()
    try:
        with urllib.request.build_opener(WebOnly).open(url, timeout=limits.most_fetch_s) as answer:
            while len(content) <= limits.most_bytes and (part := answer.read1(_CHUNK_BYTES)):
                content += part
                if time.monotonic() > deadline:
                    raise MediaProblem(f"took longer than {limits.most_fetch_s:g} s")
    except MediaProblem:
        raise
    except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError) as error:
        raise MediaProblem(f"cannot be fetched: {error}") from None
    return bytes(content)


def open_file(path: str | os.PathLike[str], access: MediaAccess) -> BinaryIO:
    """An open regular file, never a pipe or a device that would block, and within the root when there is one."""
    found = located(path, access) if access.root is not None else path
    try:
        handle = os.open(found, os.O_RDONLY | _NEVER_WAIT)
    except (OSError, ValueError) as error:
        raise MediaProblem(f"cannot be opened: {_why(error)}") from None
    try:
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind):
            kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
            words = next((words for matches, words in kinds if matches(kind)), "a device")
            raise MediaProblem(f"must be a file; found {words}")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def located(path: str | os.PathLike[str], access: MediaAccess) -> Path:
    """Where a path leads once links are followed; a place outside the root is refused."""
    root = access.root
    try:
        if root is None:
            return Path(path).resolve(strict=True)
        inside = root.resolve(strict=True)
        found = (inside / path).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        where = f" under {root}" if root is not None else ""
        raise MediaProblem(f"cannot be found{where}: {_why(error)}") from None
    if not found.is_relative_to(inside):
        if access.foreign:
            raise MediaProblem(
                f"is outside of {root}, the folder of the file that names it; --media-root FOLDER "
                "(media_root=… of the metric) allows another folder"
            )
        raise MediaProblem(f"is outside of the allowed folder {root}")
    return found


def confined(source: MediaSource, access: MediaAccess) -> MediaSource:
    """A source that may be read without a further look: a path becomes the place inside the root that it leads to."""
    if isinstance(source, (bytes, bytearray, memoryview)) or access.root is None:
        return source
    text = os.fspath(source)
    return source if is_data_uri(text) or is_url(text) else str(located(text, access))


def _from_data_uri(text: str, access: MediaAccess) -> bytes:
    header, comma, body = text.partition(",")
    if not comma:
        raise MediaProblem("must hold a comma between its type and its data, as data URIs do; it holds none")
    # Base64 is a third longer than its content, percent signs three times as long.
    if len(body) > 3 * access.limits.most_bytes:
        raise MediaProblem(_too_large(access))
    try:
        if header.lower().endswith(";base64"):
            # As browsers read them: percent signs first, white space anywhere, and "=" at the end is not needed.
            letters = b"".join(unquote_to_bytes(body).split()).rstrip(b"=")
            return base64.b64decode(letters + b"=" * (-len(letters) % 4), validate=True)
        return unquote_to_bytes(body)
    except (binascii.Error, ValueError):
        raise MediaProblem("is not valid base64") from None


def _bounded(content: bytes, access: MediaAccess) -> bytes:
    if not content:
        raise MediaProblem("is empty")
    if len(content) > access.limits.most_bytes:
        raise MediaProblem(_too_large(access))
    return content


def _too_large(access: MediaAccess) -> str:
    return f"must have at most {access.limits.most_bytes:,} bytes; it has more"


def _why(error: Exception) -> str:
    return (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else str(error)


def source_identity(source: MediaSource, access: MediaAccess) -> Hashable:
    """What tells a source from others without reading a large file: its content, or which file it is and since when."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return sha256(source).digest()
    text = os.fspath(source)
    if is_data_uri(text) or is_url(text):
        return sha256(text.encode("utf-8", "surrogatepass")).digest()
    try:
        found = os.stat(located(text, access))
    except (MediaProblem, OSError):
        return text
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
