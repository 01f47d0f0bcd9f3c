"""How a recording goes, on one line: share, rate, failures, spend, time left."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TextIO

from agentunit.engine.runner import Recording
from agentunit.reports.figures import duration, number
from agentunit.reports.progress import rewrite_line

_EVERY_S = 0.1


class RecordingLine:
    """One line on a terminal, rewritten in place; nothing at all when nobody is watching."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._start = time.monotonic()
        self._due = self._start + _EVERY_S
        self._shown = False

    def show(self, recording: Recording) -> None:
        """Show where a recording stands, if it is time to."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _EVERY_S
        with suppress(ValueError):
            # An agent may close the stream; that is no reason to end the run.
            if self._stream.isatty():
                rewrite_line(self._stream, recording_words(recording, now - self._start))
                self._shown = True

    def clear(self) -> None:
        """Leave the line as it was."""
        if self._shown:
            rewrite_line(self._stream, "")


def recording_words(recording: Recording, elapsed_s: float) -> str:
    """The line itself.

    >>> recording_words(Recording(n_planned=8, n_done=2, n_failed=1, spend_usd=0.5), 4.0)
    ' 25% · 2/8 cases · 0.5/s · 1 failed · $0.5000 · 12.0 s left'
    """
    share = recording.n_done / recording.n_planned if recording.n_planned else 1.0
    rate = recording.n_done / elapsed_s if elapsed_s > 0 else 0.0
    parts = [f"{share:4.0%}", f"{recording.n_done:,}/{recording.n_planned:,} cases", f"{rate:,.1f}/s"]
    if recording.n_failed:
        parts.append(f"{recording.n_failed:,} failed")
    if recording.spend_usd:
        parts.append(f"${number(recording.spend_usd, 'USD')}")
    if rate:
        parts.append(f"{duration((recording.n_planned - recording.n_done) / rate)} left")
    return " · ".join(parts)
