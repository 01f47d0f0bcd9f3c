"""Paths that may be URLs, such as ``s3://bucket/traces.jsonl.gz``: local files are opened here, URLs by an add-on.

Only a URL that a user named is opened, and only then is the add-on imported.
"""

from __future__ import annotations

import io
import os
import re
from typing import BinaryIO, NamedTuple

from agentunit import doors

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?:::[A-Za-z][A-Za-z0-9+.-]*)*://")
_PASSWORD = re.compile(r"(?<=://)([^/?#\s@:]*):[^/\s]*@")
# A "?" of a pattern signs nothing.
_SIGNATURE = re.compile(r"[?#][^?#]*=.*", re.DOTALL)

READ_BUFFER_BYTES = 1 << 18


class RemoteError(OSError):
    """Storage that cannot be read or written; the message says why and what to do."""


class RemoteFile(NamedTuple):
    """A file on other storage, and whether the user named it or its folder."""

    url: str
    n_bytes: int
    named: bool


class RemoteOutput(io.RawIOBase):
    """A file to write by URL. It is there when it is closed, whole; left with an exception, there is none."""

    def discard(self) -> None:
        """Take back what was written."""
        raise NotImplementedError


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a URL.

    >>> [is_remote(path) for path in ("s3://bucket/a.jsonl", "simplecache::s3://bucket/a.jsonl", "C:/a.jsonl", "-")]
    [True, True, False, False]
    """
    return _URL.match(os.fspath(path)) is not None


def without_passwords(text: str) -> str:
    """A text that may quote URLs, without the passwords in them.

    >>> without_passwords("cannot write sftp://ada:hunter2@host/a.jsonl: access denied")
    'cannot write sftp://ada@host/a.jsonl: access denied'
    """
    return _PASSWORD.sub(r"\1@", text)


def shown_source(path: str) -> str:
    """The name of an input as it is kept with scores: of a URL neither a password nor what signs it.

    >>> shown_source("https://ada:hunter2@host/a.jsonl?X-Amz-Signature=7f"), shown_source("what?.jsonl")
    ('https://ada@host/a.jsonl', 'what?.jsonl')
    """
    return _SIGNATURE.sub("", without_passwords(path)) if is_remote(path) else path


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a local file, or a URL, which is taken for one without asking."""
    return is_remote(path) or os.path.isfile(path)


def remote_folder(url: str) -> str:
    """The folder of a URL."""
    return url.rpartition("/")[0]


def open_binary(path: str | os.PathLike[str]) -> BinaryIO:
    """A file to read, local or by URL, streamed: of a remote one a few MiB are held at a time."""
    name = os.fspath(path)
    if not is_remote(name):
        return open(name, "rb", buffering=READ_BUFFER_BYTES)
    opened: BinaryIO = doors.part("open_remote_file")(name)
    return opened


def open_output(url: str) -> RemoteOutput:
    """A file to write by URL."""
    opened: RemoteOutput = doors.part("open_remote_output")(url)
    return opened


def refuse_missing_url(url: str) -> None:
    """Raise for a URL that names nothing, as ``remote_files`` does, without listing a folder."""
    doors.part("refuse_missing_url")(url)


def remote_files(url: str) -> list[RemoteFile]:
    """The file that a URL names, or those of a folder or of a pattern (``*``, ``?``, ``[…]``), in order.

    One that is not there is a ``FileNotFoundError``. Names that begin with a dot are left out, unless they are named.
    """
    found: list[RemoteFile] = doors.part("remote_files")(url)
    return found


def remote_state(url: str) -> int:
    """A number that changes with a file: of what its storage tells about it, as its time of change or its ETag."""
    state: int = doors.part("remote_state")(url)
    return state
