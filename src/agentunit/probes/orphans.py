"""Orphans: processes whose starter has ended, as a daemon's has. Linux gives them to the nearest process that asks."""

from __future__ import annotations

import sys
from contextlib import suppress

_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37


class Adoption:
    """Whether orphans among this process's descendants become its own children, which keeps them in sight.

    It changes nothing for children that this process started itself, and none is collected here: a process that has
    ended may be one that its starter waits for. Nobody waits for an adopted one, so it stays in the process table
    until this process ends. Code that waits for *any* child may be given an adopted one.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        self._ours = False
        self._wanted_by: set[int] = set()

    def begin(self, who: object) -> None:
        """Adopt from now on, until all who wanted it have had enough.

        What the program itself has asked the system for stays as it is.
        """
        self._wanted_by.add(id(who))
        if self._ours:
            return
        try:
            if _subreaper():
                return
            _set_subreaper(True)
            self._ours = True
        except (OSError, ImportError, AttributeError, ValueError) as error:
            self.problem = f"processes that detach themselves (daemons, setsid) are lost from sight here: {error}"

    def end(self, who: object) -> None:
        """Adopt no more, unless somebody else wants it; those adopted stay."""
        self._wanted_by.discard(id(who))
        if self._ours and not self._wanted_by:
            self._ours = False
            with suppress(OSError):
                _set_subreaper(False)


def _prctl(option: int, argument: object) -> None:
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has no way to follow them")
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(option, argument, zero, zero, zero) != 0:
        raise OSError(f"prctl({option}) was refused (error {ctypes.get_errno()})")


def _subreaper() -> bool:
    import ctypes

    found = ctypes.c_int(0)
    _prctl(_GET_CHILD_SUBREAPER, ctypes.byref(found))
    return bool(found.value)


def _set_subreaper(wanted: bool) -> None:
    import ctypes

    _prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(wanted))
