"""Attacks that once let somebody in, cost the user money or stopped the machine, so that they stay closed."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.torture.growth import time_to_read_gates, time_to_redact
from benchmarks.torture.hostile_files import damaged_tables, deep_files, literal_bombs
from benchmarks.torture.hostile_senders import dense_requests, forged_requests, masked_backlog
from benchmarks.torture.ledger import Ledger, Trial
from benchmarks.torture.named_modules import runs_that_name_modules
from benchmarks.torture.spend_cap import cap_over_kills

# Each with how often it is tried in the short form.
ATTACKS: dict[str, tuple[Callable[[Trial, int], None], int]] = {
    "exported runs that name modules: import, resume, rerun, …": (runs_that_name_modules, 150),
    "cells and inputs of tools that are literals: memory": (literal_bombs, 8),
    "YAML and JSON without a bottom, beside good files": (deep_files, 8),
    "Parquet with one byte changed, beside good files": (damaged_tables, 6),
    "a judge's spend cap, over eight kills and resumes": (cap_over_kills, 2),
    "collect --forward --mask of a backlog collected without": (masked_backlog, 4),
    "collect: small requests that are long inside": (dense_requests, 24),
    "collect: wrong Host and Origin, no token": (forged_requests, 3),
    "time to read a gate": (time_to_read_gates, 60),
    "time to redact names that differ by a number": (time_to_redact, 14),
}


def torture_with_attacks(ledger: Ledger) -> None:
    """Each attack, in random ways."""
    for name, (attack, n_times) in ATTACKS.items():
        with ledger.trying("attacks", name) as trial:
            if trial is not None:
                attack(trial, n_times * ledger.counts.repeats)
