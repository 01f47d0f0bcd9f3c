"""What commands write: a file, an object by URL, or standard output, whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
from contextlib import suppress
from typing import IO, Any, cast

from agentunit.cli.options import InputFailure
from agentunit.traces.native import STDIN, spoken_os_error
from agentunit.urls import RemoteOutput, is_remote, open_output

# A score line may be as long as the usual buffer: each would be a call of the system.
_BUFFER_BYTES = 1 << 18
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Output:
    """A stream whose content takes the place of ``out`` by ``finish``; a name that ends in .gz is compressed.

    A file is written beside its place until then, by one command at a time. Without ``finish``, what was there before
    stays; what was written stays beside it as .part where that can be read (``keeps_unfinished``), unless the disk is
    full. By URL there is nothing before ``finish``.
    """

    def __init__(self, out: str, *, keeps_unfinished: bool = True) -> None:
        self.out = out
        self._keeps_unfinished = keeps_unfinished
        self._remote: RemoteOutput | None = None
        self._unfinished = unfinished_path(out)
        self._compressed = out.endswith(".gz")
        self._alone: IO[bytes] | None = None
        self._is_finished = False
        if is_remote(out):
            try:
                self._remote = open_output(out)
            except OSError as error:
                raise cannot_write(out, error) from None
            raw = cast(IO[bytes], self._remote)
            self.stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="wb")) if self._compressed else raw
        elif self._unfinished != out:
            self._alone = raw = _open_alone(self._unfinished, out)
            self.stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="wb")) if self._compressed else raw
        else:
            self.stream = open_for_writing(out, compressed=self._compressed)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._remote is not None:
            # Closing the storage's own stream would put it in its place; one that compresses must have its end.
            with suppress(OSError):
                if self._compressed:
                    self.stream.close()
                self._remote.discard()
            return
        # What fills a disk must not stay on it.
        is_kept = self._keeps_unfinished and getattr(error, "errno", None) not in _NO_ROOM
        if self._alone is not None and not self._is_finished and not is_kept:
            self.remove_unfinished()
        self._close()

    def append(self, source: IO[bytes], n_bytes: int) -> None:
        """Take so many bytes of a file, from where it stands; between two plain files the system copies them."""
        if self._alone is self.stream:
            n_bytes -= _copied(source, self.stream, n_bytes, self._unfinished)
        while n_bytes and (some := source.read(min(n_bytes, _BUFFER_BYTES))):
            self.stream.write(some)
            n_bytes -= len(some)

    def remove_unfinished(self) -> None:
        """Leave nothing beside the place of the output: what was written cannot be read, or holds nothing."""
        if self._alone is not None:
            # Where files can be locked it is removed while it is held, so that nobody else's is.
            steps = (self._remove, self._close) if _can_lock() else (self._close, self._remove)
            for step in steps:
                step()

    def _remove(self) -> None:
        with suppress(OSError):
            os.unlink(self._unfinished)

    def _close(self) -> None:
        # The last of it may not find room either; what went wrong first is what is told.
        with suppress(OSError):
            self.stream.close()
        if self._alone is not None:
            with suppress(OSError):
                self._alone.close()

    def finish(self, *, keep: bool) -> None:
        """Put the whole in its place; one that holds nothing is taken away, and what was there before stays."""
        try:
            if self._remote is None:
                if self._compressed or self._alone is None or not _can_lock():
                    self.stream.close()
                if self._alone is not None:
                    # Moved while it is still held: as soon as it is not, another command may begin to write it anew.
                    if not self._alone.closed:
                        self._alone.flush()
                    finish_output(self._unfinished, self.out, keep=keep)
                    self._is_finished = True
                    self._alone.close()
            elif keep:
                self.stream.close()
                self._remote.close()
            else:
                self._remote.discard()
        except OSError as error:
            if error.errno in _NO_ROOM:
                self.remove_unfinished()
            raise cannot_write(self.out, error) from None


class _NamedFile(io.FileIO):
    """A file whose errors say which it is."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self.name
            raise


def _copied(source: IO[bytes], target: IO[bytes], n_bytes: int, name: str) -> int:
    """How many bytes of a file the system has copied to the end of another; none where it cannot."""
    if sys.platform != "linux":
        return 0
    n_copied = 0
    try:
        number, at = source.fileno(), source.tell()
        target.flush()
        while n_copied < n_bytes and (
            n := os.copy_file_range(number, target.fileno(), n_bytes - n_copied, at + n_copied)
        ):
            n_copied += n
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
            error.filename = name
            raise
    if n_copied:
        source.seek(at + n_copied)
    return n_copied


def _can_lock() -> bool:
    return os.name == "posix"


def _open_alone(path: str, out: str) -> IO[bytes]:
    """A file to write that no other command is writing.

    The lock is this process's own, not that of workers that it forks: when it is killed, another may go on at once.
    """
    try:
        while True:
            raw = _NamedFile(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666), "wb")
            raw.name = path
            stream = io.BufferedWriter(raw, _BUFFER_BYTES)
            if not _can_lock():
                raw.truncate(0)
                return stream
            import fcntl

            try:
                fcntl.lockf(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                # Some file systems know no locks.
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    stream.close()
                    raise InputFailure(f"{out} is being written by another command: wait for it, or stop it") from None
            # Whoever held it may have moved it to its place since it was opened here.
            if os.path.exists(path) and os.path.samestat(os.stat(path), os.fstat(raw.fileno())):
                raw.truncate(0)
                return stream
            stream.close()
    except OSError as error:
        raise cannot_write(path, error) from None


def open_for_writing(path: str, *, compressed: bool = False) -> IO[bytes]:
    """A file to write, by URL too, or standard output; one that cannot be written is an error in one line."""
    if path == STDIN:
        return open(sys.__stdout__.fileno() if sys.__stdout__ else 1, "wb", closefd=False)
    try:
        if is_remote(path):
            return cast(IO[bytes], open_output(path))
        return gzip.open(path, "wb") if compressed else open(path, "wb")  # type: ignore[return-value]
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: str, error: OSError) -> InputFailure:
    """The failure of an output, in one line."""
    if is_remote(path):
        why = str(error) if isinstance(error, FileNotFoundError) and str(error) else spoken_os_error(error)
        return InputFailure(f"cannot write {path}: {why}")
    return InputFailure(f"cannot write {path}: {(error.strerror or str(error)).lower()}")


def unfinished_path(out: str) -> str:
    """Where an output is written until it is complete: next to its place. What is no file (as a pipe) is written to
    directly: it must not be replaced by one."""
    if out == STDIN or is_remote(out) or (os.path.exists(out) and not os.path.isfile(out)):
        return out
    return f"{os.path.realpath(out) if os.path.islink(out) else out}.part"


def finish_output(unfinished: str, out: str, *, keep: bool) -> None:
    """Put a whole output in its place; one that holds nothing is taken away, and what was there before stays."""
    if unfinished == out:
        return
    if keep:
        os.replace(unfinished, os.path.realpath(out))
    else:
        os.unlink(unfinished)
