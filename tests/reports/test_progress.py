from __future__ import annotations

import contextlib
import io

from agentunit.reports.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ticking(step_s: float):
    """A clock that moves on by a step each time it is read."""
    moment = [0.0]

    def now() -> float:
        moment[0] += step_s
        return moment[0]

    return now


def test_short_work_shows_nothing():
    terminal = Terminal()
    assert list(Progress("cases", stream=terminal, now=ticking(0.01)).watch(range(10))) == list(range(10))
    assert terminal.getvalue() == ""


def test_long_work_shows_rate_time_left_and_errors():
    terminal = Terminal()
    progress = Progress("cases", fraction=lambda: 0.25, failures=lambda: 3, stream=terminal, now=ticking(1.0))
    list(progress.watch(range(2)))
    # After the second case two seconds have passed: one case a second, a quarter done, so six seconds are left.
    assert "\r\x1b[K 25% · 2 cases · 1/s · 6.0 s left · 3 errors" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_nobody_watching_means_silence():
    stream = io.StringIO()
    assert list(Progress("cases", stream=stream, now=ticking(10.0)).watch(range(3))) == [0, 1, 2]
    assert stream.getvalue() == ""


def test_the_line_is_cleared_when_the_work_fails():
    terminal = Terminal()

    def failing():
        yield 1
        yield 2
        raise RuntimeError("boom")

    with contextlib.suppress(RuntimeError):
        list(Progress("cases", stream=terminal, now=ticking(1.0)).watch(failing()))
    assert terminal.getvalue().endswith("\r\x1b[K")
