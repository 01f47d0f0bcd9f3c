"""Progress on anything longer than a second: rate, time left, failures.

A terminal shows one line that is rewritten in place; the log of a CI job or a file gets a new line now and then.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO, TypeVar

from agentunit.formulas.text import number
from agentunit.reports.figures import counted, duration

if TYPE_CHECKING:
    from agentunit.engine.recording.runner import Recording

_T = TypeVar("_T")
_QUIET_FOR_S = 1.0
_EVERY_S = 0.2
_RECORDING_EVERY_S = 0.1
# In a log: a line after ten seconds, or after a tenth of the work where that takes longer than two seconds.
_LOGGED_EVERY_S = 10.0
_LEAST_BETWEEN_S = 2.0
_ALL_READ = 0.995


class Progress:
    """One line on a terminal, rewritten in place. ``fraction`` says how far along the work is, where that is known."""

    def __init__(
        self,
        noun: str,
        *,
        fraction: Callable[[], float | None] = lambda: None,
        failures: Callable[[], int] = lambda: 0,
        stream: TextIO | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._noun = noun
        self._fraction = fraction
        self._failures = failures
        self._stream = sys.stderr if stream is None else stream
        self._now = now
        self._shown = False
        self._touch: Callable[[], None] = lambda: None

    def watch(self, work: Iterable[_T]) -> Iterator[_T]:
        """Yield everything, showing how it goes."""
        tick = self.ticker()
        count = 0
        self._touch = lambda: tick(count)
        # A model may take long before its first result: somebody who waits sees that something goes on.
        first = threading.Timer(_QUIET_FOR_S, self._touch) if self._stream.isatty() else None
        if first is not None:
            first.daemon, first.name = True, "agentunit-progress"
            first.start()
        try:
            for count, each in enumerate(work, 1):
                yield each
                tick(count)
        finally:
            if first is not None:
                first.cancel()
            self.clear()

    def touch(self) -> None:
        """Show how it goes although nothing new was yielded: some work reads long before its first result."""
        self._touch()

    def ticker(self) -> Callable[[int], None]:
        """A function to call with each new count, for work that is not an iteration; ``clear`` ends it."""
        in_place = self._stream.isatty()
        start = self._now()
        due = start + (_QUIET_FOR_S if in_place else _LOGGED_EVERY_S)
        last, is_held = start, False

        def tick(count: int) -> None:
            nonlocal due, last, is_held
            now = self._now()
            waited, last = now - last, now
            if now < due:
                return
            if not in_place and waited >= _LOGGED_EVERY_S and not is_held:
                # The first result of a batch: a line now would count it alone, after the time that the batch took.
                due, is_held = now + _EVERY_S, True
                return
            self._show(count, now - start, in_place=in_place)
            due, is_held = now + (_EVERY_S if in_place else _LOGGED_EVERY_S), False

        return tick

    def clear(self) -> None:
        """Leave the line as it was."""
        if self._shown:
            rewrite_line(self._stream, "")

    def _show(self, count: int, elapsed_s: float, *, in_place: bool) -> None:
        # Less than one a second is shown with a digit more: "0/s" looks like a standstill.
        rate = count / elapsed_s if count else 0.0
        parts = [
            _counted(count, self._noun),
            *([f"{rate:,.0f}/s" if rate >= 1.0 else f"{rate:.1g}/s"] if count else []),
        ]
        fraction = self._fraction()
        # A small or compressed input is read whole at once: that says nothing about the work that goes on.
        if fraction and fraction < _ALL_READ:
            parts.insert(0, f"{fraction:4.0%}")
            parts.append(f"{duration(elapsed_s / fraction - elapsed_s)} left")
        if self._failures():
            parts.append(counted(self._failures(), "error"))
        if in_place:
            rewrite_line(self._stream, " · ".join(parts))
            self._shown = True
        else:
            log_line(self._stream, " · ".join(parts))


def _counted(count: int, noun: str) -> str:
    """So many of what a plural noun names.

    >>> _counted(1, "runs read again"), _counted(2, "cases"), _counted(1, "scored")
    ('1 run read again', '2 cases', '1 scored')
    """
    first, *rest = noun.split(" ")
    return " ".join([f"{count:,}", first.removesuffix("s") if count == 1 else first, *rest])


def log_line(stream: TextIO, text: str) -> None:
    """Add a line to a log. One that was closed must not end the work."""
    with suppress(OSError, ValueError):
        stream.write(text.strip() + "\n")
        stream.flush()


def rewrite_line(stream: TextIO, text: str) -> None:
    """Put a text in place of a terminal's last line. A terminal that has been closed must not end the work."""
    with suppress(OSError, ValueError):
        stream.write("\r\x1b[K" + text)
        stream.flush()


class RecordingLine:
    """How a recording goes: one line on a terminal, rewritten in place; in a log a new line now and then.

    ``until`` says how far a run has come that is recorded in pieces, and of which nobody knows how long it will be.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        now: Callable[[], float] = time.monotonic,
        until: Callable[[], str] | None = None,
    ) -> None:
        self._until = until
        self._n_done = self._n_failed = self._n_user_failed = 0
        self._spend_usd = 0.0
        self._stream = sys.stderr if stream is None else stream
        self._now = now
        self._start = self._logged_at = now()
        self._due = self._start + _RECORDING_EVERY_S
        self._tenths = 0
        self._shown = False

    def show(self, recording: Recording) -> None:
        """Show where a recording stands, if it is time to."""
        now = self._now()
        if now < self._due:
            return
        self._due = now + _RECORDING_EVERY_S
        with suppress(ValueError):
            # An agent may close the stream; that is no reason to end the run.
            if self._stream.isatty():
                rewrite_line(self._stream, self._describe(recording, now))
                self._shown = True
            else:
                self._log(recording, now)

    def go_on_after(self, recording: Recording) -> None:
        """Count a recording that has ended: the next one goes on from there."""
        self._n_done += recording.n_done
        self._n_failed += recording.n_failed
        self._n_user_failed += recording.n_user_failed
        self._spend_usd += recording.spend_usd

    def _describe(self, recording: Recording, now: float) -> str:
        whole = replace(
            recording,
            n_done=self._n_done + recording.n_done,
            n_failed=self._n_failed + recording.n_failed,
            n_user_failed=self._n_user_failed + recording.n_user_failed,
            spend_usd=self._spend_usd + recording.spend_usd,
        )
        return describe_recording(whole, now - self._start, None if self._until is None else self._until())

    def _log(self, recording: Recording, now: float) -> None:
        # A tenth of one of many pieces is no news.
        tenths = 0 if self._until else 10 * recording.n_done // max(1, recording.n_planned)
        if now - self._logged_at >= (_LEAST_BETWEEN_S if self._tenths < tenths < 10 else _LOGGED_EVERY_S):
            self._logged_at, self._tenths = now, tenths
            log_line(self._stream, self._describe(recording, now))

    def clear(self) -> None:
        """Leave the line as it was."""
        if self._shown:
            rewrite_line(self._stream, "")


def describe_recording(recording: Recording, elapsed_s: float, until: str | None = None) -> str:
    """The line itself. ``until`` stands in place of what is not known where a run ends when it is decided.

    >>> from agentunit.engine.recording.runner import Recording
    >>> describe_recording(Recording(n_planned=8, n_done=2, n_failed=1, spend_usd=0.5), 4.0)
    ' 25% · 2/8 records · 0.5/s · 1 failed · $0.5000 · 12.0 s left'
    """
    share = recording.n_done / recording.n_planned if recording.n_planned else 1.0
    rate = recording.n_done / elapsed_s if elapsed_s > 0 else 0.0
    parts = [f"{share:4.0%}", f"{recording.n_done:,}/{counted(recording.n_planned, 'record')}", f"{rate:,.1f}/s"]
    if until is not None:
        parts = [counted(recording.n_done, "run"), *parts[2:]]
    if recording.n_failed:
        parts.append(f"{recording.n_failed:,} failed")
    if recording.n_user_failed:
        parts.append(f"{counted(recording.n_user_failed, 'simulated user')} failed")
    if recording.spend_usd:
        parts.append(f"${number(recording.spend_usd, 'USD')}")
    if until is not None:
        parts.append(until)
    elif rate:
        parts.append(f"{duration((recording.n_planned - recording.n_done) / rate)} left")
    return " · ".join(parts)
