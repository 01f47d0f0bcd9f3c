"""The lock of a run that is being recorded. The operating system releases it when the process ends, however it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agentunit.store.runs import RunTaken

_ATTEMPTS = 5
_RETRY_AFTER_S = 0.02


def lock_path(store_file: str, run_id: str) -> str:
    """The file that the process which records a run holds locked."""
    return f"{store_file}.{run_id}.lock"


@contextmanager
def hold_run(store_file: str, run_id: str) -> Iterator[None]:
    """Hold a run for this process; one that another process holds is a ``RunTaken``."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    path = lock_path(store_file, run_id)
    with open(path, "wb") as file:
        for attempt in range(_ATTEMPTS):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                # Whoever lists the runs holds it for a moment, to see whether anybody does.
                if attempt == _ATTEMPTS - 1:
                    raise RunTaken(run_id) from None
                time.sleep(_RETRY_AFTER_S)
        # Whoever held it may have removed the file since it was opened here: such a lock holds nobody.
        if not os.path.exists(path) or not os.path.samestat(os.stat(path), os.fstat(file.fileno())):
            raise RunTaken(run_id)
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(path)


def is_being_recorded(store_file: str, run_id: str) -> bool:
    """Whether a process holds a run's lock; true where that cannot be known."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return True
    try:
        with open(lock_path(store_file, run_id), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True
