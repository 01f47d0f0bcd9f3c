"""Points in time: whatever a user or a log gives becomes seconds since 1970 as a float."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from math import inf, isfinite


def epoch_seconds(value: object) -> float:
    """Seconds since 1970-01-01 UTC of a number, a datetime or an ISO 8601 string.

    A datetime or string without a zone is read as UTC, so that the same file means the same everywhere.

    >>> epoch_seconds("1970-01-01T00:01:00Z")
    60.0
    >>> epoch_seconds(datetime(1970, 1, 1, 0, 0, 1))
    1.0
    >>> epoch_seconds(12)
    12.0
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = inf
        if not isfinite(seconds):
            raise ValueError(f"timestamp must be finite seconds; received {value!r:.40}")
        return seconds
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(_as_python_310_reads_it(value))
        except ValueError:
            raise ValueError(f"timestamp must be seconds or an ISO 8601 time; received {value!r}") from None
    if not isinstance(moment, datetime):
        raise ValueError(f"timestamp must be seconds, a datetime or an ISO 8601 time; received {value!r}")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()


_FRACTION = re.compile(r"[.,](\d+)")


def _as_python_310_reads_it(text: str) -> str:
    """Python 3.10 knows neither "Z" nor fractions of other than three or six digits."""
    zoned = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    return _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), zoned, count=1)
