"""k of n: a test body run several times, which passes when enough of them do."""

from __future__ import annotations

import unittest
from types import TracebackType

import pytest

_LONGEST_REASON = 200


class Attempts:
    """Counts attempts, each made inside ``with attempts:``; one that fails does not end the others.

    What would fail a test fails an attempt; a skip, an expected failure or an exit counts for the whole test.

    >>> attempts = Attempts(passes=1)
    >>> for answer in ("4", "5"):
    ...     with attempts:
    ...         assert answer == "4"
    >>> attempts.share, attempts.failure()
    ('1/2', None)
    """

    def __init__(self, passes: int) -> None:
        self._passes = passes
        self._n_passed = 0
        self._reasons: list[str] = []
        self._first_failure: BaseException | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self._n_passed += 1
            self._reasons.append("passed")
            return True
        if isinstance(error, (pytest.xfail.Exception, unittest.SkipTest)):
            return False
        if not isinstance(error, (Exception, pytest.fail.Exception)):
            return False
        self._reasons.append(_told(error).splitlines()[0][:_LONGEST_REASON])
        self._first_failure = self._first_failure or error
        return True

    @property
    def share(self) -> str:
        """How many passed, of how many: "4/5"."""
        return f"{self._n_passed}/{len(self._reasons)}"

    def failure(self) -> AssertionError | None:
        """What to raise when too few passed, as if from the place where the first one failed."""
        first = self._first_failure
        if self._n_passed >= self._passes or first is None:
            return None
        lines = [f"{self._n_passed} of {len(self._reasons)} attempts passed, {self._passes} must"]
        lines += [f"  attempt {number}: {reason}" for number, reason in enumerate(self._reasons, 1)]
        in_full = _told(first)
        if "\n" in in_full:
            lines += ["the first failure in full:", in_full]
        return AssertionError("\n".join(lines)).with_traceback(first.__traceback__)


def _told(error: BaseException) -> str:
    kind = "" if isinstance(error, (AssertionError, pytest.fail.Exception)) else f"{type(error).__name__}: "
    return f"{kind}{str(error).strip() or type(error).__name__}"
