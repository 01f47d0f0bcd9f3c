"""Files by URL, such as ``s3://bucket/traces.jsonl.gz``: whatever fsspec opens (extra ``remote``).

Only what a user named is contacted, with the credentials and the endpoint that the storage's own package finds in the
environment (``AWS_ENDPOINT_URL``, ``AWS_PROFILE``, …).
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeVar, cast

from agentunit.installation import install_command
from agentunit.urls import READ_BUFFER_BYTES, RemoteError, RemoteFile, RemoteOutput

_GLOB = re.compile(r"[*?\[]")
# What is read ahead, and what is held back until it is a part of its own: an object of S3 has 10,000 parts at most.
_READ_BYTES = 1 << 23
_WRITE_BYTES = 1 << 24

_WITH_BUCKETS = frozenset(("s3", "s3a", "gs", "gcs"))

_Result = TypeVar("_Result")


def open_remote(url: str) -> BinaryIO:
    """A file to read by URL, streamed."""
    with _explained():
        system, inner = _resolved(url)
        opened = system.open(inner, "rb", block_size=_READ_BYTES)
    return cast(BinaryIO, io.BufferedReader(_RemoteReader(opened), READ_BUFFER_BYTES))


def refuse_missing_url(url: str) -> None:
    """Raise for a URL that names nothing, as ``remote_files`` does, without listing a folder."""
    with _explained():
        system, inner = _resolved(url)
        try:
            system.info(inner)
        except FileNotFoundError:
            _matches(system, inner)


def remote_files(url: str) -> list[RemoteFile]:
    """The file that a URL names, or those of a folder or of a pattern (``*``, ``?``, ``[…]``), in order.

    One that is not there is a ``FileNotFoundError``. Names that begin with a dot are left out, unless they are named.
    """
    with _explained():
        system, inner = _resolved(url)
        # What another process has written since the last look counts.
        system.invalidate_cache()
        try:
            about = system.info(inner)
        except FileNotFoundError:
            return _matches(system, inner)
        if about["type"] != "directory":
            return [RemoteFile(url, int(about.get("size") or 0), named=True)]
        below = len(inner.rstrip("/")) + 1
        return [
            _named(system, each, named=False)
            for path, each in sorted(system.find(inner, detail=True).items())
            if each["type"] == "file" and not path.endswith("/") and not _is_hidden(path[below:])
        ]


def _matches(system: Any, inner: str) -> list[RemoteFile]:
    if not _GLOB.search(inner):
        raise FileNotFoundError(inner)
    found = [
        _named(system, each, named=True)
        for path, each in sorted(system.glob(inner, detail=True).items())
        if each["type"] == "file" and (_is_hidden(inner) or not _is_hidden(path))
    ]
    if not found:
        raise RemoteError("no file matches it")
    return found


def remote_state(url: str) -> int:
    """A number that changes with a file: of what its storage tells about it, as its time of change or its ETag."""
    with _explained():
        system, inner = _resolved(url)
        told = hashlib.sha256(str(system.ukey(inner)).encode()).digest()
    return int.from_bytes(told[:6], "little")


def exists(url: str) -> bool:
    """Whether something is there now."""
    with _explained():
        system, inner = _resolved(url)
        system.invalidate_cache()
        return bool(system.exists(inner))


def file_names(url: str) -> list[str]:
    """The names of the files in a folder; of one that is not there, none."""
    with _explained():
        system, inner = _resolved(url)
        system.invalidate_cache()
        try:
            found = system.ls(inner, detail=True)
        except FileNotFoundError:
            return []
        finally:
            # What comes later is not in the listing, which would say that it is not there.
            system.invalidate_cache()
        return [each["name"].rpartition("/")[2] for each in found if each["type"] == "file"]


def delete_files(urls: Sequence[str]) -> None:
    """Delete files of one storage."""
    with _explained():
        places = [_resolved(url) for url in urls]
        if places:
            places[0][0].rm([inner for _, inner in places])


class StorageOutput(RemoteOutput):
    """A file to write by URL, as fsspec's transactions make it."""

    def __init__(self, url: str) -> None:
        with _explained():
            self._url = url
            # A file system of its own: what is written to another file meanwhile has another end.
            self._system, inner = _resolved(url, skip_instance_cache=True)
            _refuse_missing_bucket(self._system, inner)
            self._system.start_transaction()
            self._file = self._system.open(inner, "wb", block_size=_WRITE_BYTES)

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any, /) -> int:
        """Take further bytes; how many."""
        with _explained():
            self._file.write(data)
        return memoryview(data).nbytes

    def close(self) -> None:
        """Put what was written in its place."""
        if not self.closed:
            super().close()
            self._end(commit=True)

    def discard(self) -> None:
        """Take back what was written."""
        if not self.closed:
            super().close()
            self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        with _explained():
            self._file.close()
            self._system.transaction.complete(commit=commit)
            # Those who read know files as they were.
            _resolved(self._url)[0].invalidate_cache()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # Python would close it, which means that it is whole.
        if hasattr(self, "_file"):
            self.discard()


class _RemoteReader(io.RawIOBase):
    """A file of fsspec as Python's own: any error of the storage's package is a ``RemoteError``."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._opened.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return int(_asked(lambda: self._opened.seek(offset, whence)))

    def tell(self) -> int:
        return int(self._opened.tell())

    def readinto(self, buffer: Any, /) -> int:
        data = _asked(lambda: self._opened.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            _asked(self._opened.close)


def _asked(ask: Callable[[], _Result]) -> _Result:
    with _explained():
        return ask()


def _resolved(url: str, **options: Any) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise RemoteError(f"a URL needs the extra remote: {install_command('remote')}") from None
    try:
        system, inner = url_to_fs(url, **options)
    except ImportError as error:
        scheme = url.partition("://")[0]
        way_out = install_command("remote") if scheme in ("s3", "s3a") else f"install what it names ({error})"
        raise RemoteError(f"{scheme}:// needs another package: {way_out}") from None
    except ValueError as error:
        raise RemoteError(f"no such kind of storage ({error})") from None
    return system, str(inner)


def _refuse_missing_bucket(system: Any, inner: str) -> None:
    """S3 would say it at the end, when hours of work are to be written."""
    protocols = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
    if not _WITH_BUCKETS.intersection(protocols):
        return
    bucket = inner.partition("/")[0]
    try:
        system.info(bucket)
    except FileNotFoundError:
        raise RemoteError(f"there is no bucket {bucket}") from None
    except OSError:
        # One may be allowed to write where one may not look.
        return


def _named(system: Any, about: dict[str, Any], *, named: bool) -> RemoteFile:
    return RemoteFile(str(system.unstrip_protocol(about["name"])), int(about.get("size") or 0), named)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


@contextmanager
def _explained() -> Iterator[None]:
    """Whatever a storage's package raises becomes one sentence; that something is not there stays what it is."""
    try:
        yield
    except (RemoteError, FileNotFoundError, MemoryError):
        raise
    except Exception as error:
        raise RemoteError(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    kind, said = type(error).__name__, " ".join(str(error).split()) or type(error).__name__
    if kind in ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound"):
        return f"no credentials ({said}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
    if isinstance(error, PermissionError):
        return f"access denied ({said})"
    if "Connect" in kind or isinstance(error, (ConnectionError, TimeoutError)):
        return f"the storage cannot be reached ({said}); AWS_ENDPOINT_URL names another endpoint of S3"
    return said if isinstance(error, OSError) else f"{kind}: {said}"
