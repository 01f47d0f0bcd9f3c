"""The lock of a run that is being recorded. The operating system releases it when the process ends, however it ends."""

from __future__ import annotations


def lock_path(store_file: str, run_id: str) -> str:
    """The file that the process which records a run holds locked."""
    return f"{store_file}.{run_id}.lock"


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
