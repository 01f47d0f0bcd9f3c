"""A server that gives no answer: who waits is told, and the first Ctrl-C ends the wait."""

from __future__ import annotations

import selectors
import signal
import socket

import pytest

from agentunit.addons.scale import postgres


@pytest.fixture
def silent(monkeypatch):
    """The socket of a server that gives no answer."""
    monkeypatch.setattr(postgres, "_TOLD_AFTER_S", 0.0)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours.fileno()


def exchange():
    yield selectors.EVENT_READ


def patience(seconds):
    waiting = postgres._Patience("postgresql://db.example.org/runs")
    waiting.seconds = seconds
    return waiting


def test_who_waits_is_told_for_how_long(silent, capsys):
    with pytest.raises(TimeoutError, match=r"no answer for 0\.3 s"):
        postgres._waited(exchange(), silent, patience(0.3))
    told = capsys.readouterr().err.splitlines()
    assert told == ["postgresql://db.example.org/runs does not answer; trying for another 0 s (Ctrl-C ends that)"]


def test_the_first_ctrl_c_ends_a_wait_whatever_it_means_elsewhere(silent, monkeypatch):
    asked = []
    monkeypatch.setattr(postgres, "_GOODBYE_S", 0.0)
    monkeypatch.setattr(postgres._Patience, "tell", lambda *_: signal.raise_signal(signal.SIGINT))
    earlier = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            postgres._waited(exchange(), silent, patience(60.0))
        assert asked == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is not earlier
    finally:
        signal.signal(signal.SIGINT, earlier)
