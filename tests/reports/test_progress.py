from __future__ import annotations

import contextlib
import io

from agentunit.engine.recording.runner import Recording
from agentunit.reports.progress import Progress, RecordingLine


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


def test_an_input_that_was_read_whole_says_nothing_about_what_is_left():
    log = io.StringIO()
    list(Progress("cases", fraction=lambda: 1.0, stream=log, now=ticking(11.0)).watch(range(2)))
    assert log.getvalue() == "2 cases · 0.09/s\n"


def test_the_first_result_of_a_batch_is_not_logged_alone():
    log = io.StringIO()
    moments = iter([0.0, 100.0, *(100.0 + 0.01 * n for n in range(1, 64))])
    list(Progress("cases", stream=log, now=lambda: next(moments)).watch(range(64)))
    assert log.getvalue() == "21 cases · 0.2/s\n"


def test_a_log_gets_a_line_every_ten_seconds():
    log = io.StringIO()
    assert list(Progress("cases", stream=log, now=ticking(4.0)).watch(range(6))) == list(range(6))
    assert log.getvalue() == "3 cases · 0.2/s\n6 cases · 0.2/s\n"


def test_short_work_leaves_nothing_in_a_log():
    log = io.StringIO()
    list(Progress("cases", stream=log, now=ticking(0.5)).watch(range(10)))
    assert log.getvalue() == ""


def test_a_recording_leaves_a_line_a_tenth_or_ten_seconds_in_a_log():
    log, moment = io.StringIO(), [0.0]
    line = RecordingLine(log, now=lambda: moment[0])
    for n_done in range(101):
        moment[0] = n_done * 0.5  # a tenth takes five seconds
        line.show(Recording(n_planned=100, n_done=n_done, n_failed=n_done // 2))
    line.clear()
    lines = log.getvalue().splitlines()
    assert lines[0] == "10% · 10/100 records · 2.0/s · 5 failed · 45.0 s left"
    assert [each.split(" · ")[0] for each in lines] == [f"{n}%" for n in range(10, 100, 10)]
    log.truncate(0)
    slow = RecordingLine(log, now=lambda: moment[0])
    for _ in range(61):
        moment[0] += 0.5  # nothing ends in half a minute: still a sign of life every ten seconds
        slow.show(Recording(n_planned=100))
    assert len(log.getvalue().splitlines()) == 3


def test_the_line_is_cleared_when_the_work_fails():
    terminal = Terminal()

    def failing():
        yield 1
        yield 2
        raise RuntimeError("boom")

    with contextlib.suppress(RuntimeError):
        list(Progress("cases", stream=terminal, now=ticking(1.0)).watch(failing()))
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_run_in_pieces_counts_on_and_does_not_say_how_long_each_piece_takes():
    log, clock = io.StringIO(), [0.0]
    line = RecordingLine(log, now=lambda: clock[0], until=lambda: "1 of 2 questions decided")
    for _ in range(4):
        for done in range(1, 11):
            clock[0] += 1.0
            line.show(Recording(n_planned=10, n_done=done, n_failed=done // 10))
        line.go_on_after(Recording(n_planned=10, n_done=10, n_failed=1))
    assert log.getvalue().splitlines() == [
        f"{n} runs · 1.0/s · {n // 10} failed · 1 of 2 questions decided" for n in (10, 20, 30, 40)
    ]
