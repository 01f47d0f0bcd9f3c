"""Requests to end are heard by the process that asked to hear them, and by nobody that it forked."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import get_all_start_methods, get_context

import pytest

from agentunit.engine.recording.end_signals import END_SIGNALS, heard_by

posix_only = pytest.mark.skipif("fork" not in get_all_start_methods(), reason="nothing is forked here")


def test_each_request_is_heard_and_then_what_was_there_before_again():
    before = [signal.getsignal(each) for each in END_SIGNALS]
    heard = []
    with heard_by(lambda number, frame: heard.append(number)):
        for each in END_SIGNALS:
            signal.raise_signal(each)
    assert heard == list(END_SIGNALS)
    assert [signal.getsignal(each) for each in END_SIGNALS] == before


@posix_only
def test_what_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with heard_by(lambda number, frame: None):
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_another_thread_nothing_changes():
    before = [signal.getsignal(each) for each in END_SIGNALS]
    seen = []

    def look() -> None:
        with heard_by(lambda number, frame: None):
            seen.extend(signal.getsignal(each) for each in END_SIGNALS)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == before


def _stay(ready) -> None:
    ready.send(True)
    threading.Event().wait()


@posix_only
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_process_that_an_agent_forks_can_be_ended(name):
    fork = get_context("fork")
    ours, theirs = fork.Pipe()
    with heard_by(lambda number, frame: None):
        process = fork.Process(target=_stay, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        try:
            assert ours.recv()
            os.kill(process.pid, getattr(signal, name))
            process.join(60)
            assert process.exitcode == -getattr(signal, name)
        finally:
            process.kill()
            process.join()
