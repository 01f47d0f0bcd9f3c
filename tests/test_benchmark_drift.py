"""The simulation of false alarms, small: the same numbers every time."""

from __future__ import annotations

from benchmarks.drift import CHANGES, KINDS, delays, false_alarms


def test_no_false_alarm_in_a_few_metrics_of_every_kind(monkeypatch):
    monkeypatch.setattr("benchmarks.drift.DAYS", 3)
    rows = list(false_alarms(1, seed=3))
    assert [kind for kind, *_ in rows] == list(KINDS)
    assert sum(n_alarms for *_, n_alarms in rows) == 0


def test_changes_are_found(monkeypatch):
    monkeypatch.setattr("benchmarks.drift.CHANGES", dict([next(iter(CHANGES.items()))]))
    ((change, found),) = delays(3, seed=1)
    assert change == "pass 90 % → 60 %"
    assert len(found) == 3
    assert all(20 < n < 200 for n in found)
