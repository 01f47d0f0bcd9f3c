"""Report files that are there whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

STDOUT = "-"


class ReportError(RuntimeError):
    """A report that cannot be made; the message says why and what to do."""


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    try:
        with open(path, "wb") as stream:
            yield stream
    except OSError as error:
        raise ReportError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A stream whose content takes the place of a file when all of it is written; ``-`` is standard output."""
    target = os.fspath(path)
    if target == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    # A link is followed; a device or a pipe is written to, never replaced by a file.
    if os.path.islink(target):
        target = os.path.realpath(target)
    if os.path.exists(target) and not os.path.isfile(target):
        with _opened(target) as stream:
            yield stream
        return
    unfinished = f"{target}.{os.getpid()}.part"
    try:
        stream = open(unfinished, "wb")  # noqa: SIM115  # closed before the rename, which Windows insists on
    except OSError as error:
        raise ReportError(f"cannot write {target}: {(error.strerror or str(error)).lower()}") from None
    try:
        with stream:
            yield stream
        os.replace(unfinished, target)
    except BaseException as error:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        if isinstance(error, OSError):
            raise ReportError(f"cannot write {target}: {(error.strerror or str(error)).lower()}") from None
        raise
