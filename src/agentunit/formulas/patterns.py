"""Regular expressions in linear time: a pattern that came with data must not be able to stop the run."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


class PatternError(ValueError):
    """A pattern that cannot be used; the message is the engine's reason."""


class LinearPattern:
    """A pattern compiled by RE2: as in ``re``, but in time linear in the text.

    Look-around and back-references do not exist in it, and ``\\d``, ``\\w`` and ``\\b`` mean ASCII.

    >>> bool(LinearPattern("^[A-Z]-[0-9]+$").search("A-1042"))
    True
    """

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False
        options.case_sensitive = not ignore_case
        try:
            self._compiled: Any = re2.compile(pattern, options)
        except (re2.error, UnicodeError, TypeError) as error:
            reason = error.args[0] if error.args else error
            raise PatternError(reason.decode() if isinstance(reason, bytes) else str(reason)) from None

    def search(self, text: str) -> Any:
        """The first match anywhere, or ``None``."""
        return self._compiled.search(_encodable(text))

    def fullmatch(self, text: str) -> Any:
        """The match of the whole text, or ``None``."""
        return self._compiled.fullmatch(_encodable(text))


@lru_cache(maxsize=512)
def linear_pattern(pattern: str, *, ignore_case: bool = False) -> LinearPattern:
    """A ``LinearPattern``, compiled once."""
    return LinearPattern(pattern, ignore_case=ignore_case)


def _encodable(text: str) -> str:
    # RE2 works on UTF-8, in which half a surrogate pair does not exist.
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
