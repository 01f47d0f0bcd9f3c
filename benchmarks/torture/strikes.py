"""SIGKILL at random moments, and the signals that ask for an end."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from benchmarks.torture.children import Child, said_plainly, wait_for
from benchmarks.torture.ledger import Ledger, Lost, Skipped, Trial
from benchmarks.torture.scenarios import Scenario
from benchmarks.torture.scenarios_receive import receive_scenarios
from benchmarks.torture.scenarios_run import run_scenarios
from benchmarks.torture.scenarios_score import score_scenarios

# A folder is struck so often before its work may come to an end.
_MOST_STRIKES_A_FOLDER = 4
Strike = Callable[[Child, random.Random, Scenario], None]


def kill(child: Child, chance: random.Random, scenario: Scenario) -> None:
    """SIGKILL, to the process alone or with all of its group."""
    child.kill(group=scenario.always_group or chance.random() < 0.5)


def terminate(child: Child, chance: random.Random, scenario: Scenario) -> None:
    """SIGTERM, to the process alone as a container sends it, or to its group as ``timeout`` and service managers do."""
    if chance.random() < 0.5:
        child.signal(signal.SIGTERM)
    else:
        os.killpg(child.process.pid, signal.SIGTERM)


def hang_up(child: Child, chance: random.Random, scenario: Scenario) -> None:
    """SIGHUP to the whole group, as a terminal sends it that is closed."""
    os.killpg(child.process.pid, signal.SIGHUP)


def interrupt_twice(child: Child, chance: random.Random, scenario: Scenario) -> None:
    """Two Ctrl-C, to the whole group, the second a moment after the first."""
    os.killpg(child.process.pid, signal.SIGINT)
    time.sleep(chance.uniform(0.0, 0.2))
    # It may have ended already.
    with suppress(ProcessLookupError):
        os.killpg(child.process.pid, signal.SIGINT)


SIGNALS: dict[str, Strike] = {"SIGTERM": terminate, "SIGHUP": hang_up, "two Ctrl-C": interrupt_twice}


def all_scenarios() -> list[Scenario]:
    """Every verb that keeps or receives something. A new one is added here."""
    return [*run_scenarios(), *score_scenarios(), *receive_scenarios()]


def torture_with_kills(ledger: Ledger) -> None:
    """SIGKILL each kind of work at random moments until it has had its share."""
    _strike_all(ledger, "kill -9", all_scenarios(), ledger.counts.kills, [kill])


def torture_with_signals(ledger: Ledger) -> None:
    """The same work, asked to end; a process that hears a request must also end in the way that it promises."""
    heard = [each for each in all_scenarios() if each.hears_signals]
    _strike_all(ledger, "signal", heard, ledger.counts.signals, list(SIGNALS.values()))


def _strike_all(
    ledger: Ledger, part: str, scenarios: Sequence[Scenario], n_strikes: int, strikes: Sequence[Strike]
) -> None:
    """Two kinds of work at a time: most of it is waiting for a moment."""

    def strike_one(scenario: Scenario, share: int) -> None:
        # Each begins with another strike: a share may be smaller than the number of them.
        at = scenarios.index(scenario) % len(strikes)
        with ledger.trying(part, scenario.name) as trial:
            if trial is not None:
                strike_often(trial, scenario, share, [*strikes[at:], *strikes[:at]])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(strike_one, scenarios, _shares(n_strikes, len(scenarios))))
    ledger.arrange(part, [each.name for each in scenarios])


def _shares(total: int, n: int) -> list[int]:
    return [total // n + (at < total % n) for at in range(n)]


def strike_often(trial: Trial, scenario: Scenario, n_strikes: int, strikes: Sequence[Strike]) -> None:
    """Strike one kind of work until it has had its share, and compare each end with an undisturbed one."""
    scenario.begin()
    try:
        undisturbed = trial.place("undisturbed")
        scenario.prepare(undisturbed)
        to_begin_s, work_s = finish(scenario, undisturbed)
        expected = scenario.result(undisturbed)
        n_rounds = 0
        while trial.times < n_strikes:
            n_rounds += 1
            if n_rounds > 20 * n_strikes:
                raise Skipped("the work is over before a strike can come")
            folder = trial.place(f"round{n_rounds}")
            scenario.prepare(folder)
            most = min(_MOST_STRIKES_A_FOLDER, n_strikes - trial.times)
            work_s = _strike_folder(trial, scenario, folder, strikes, most, to_begin_s, work_s)
            found = scenario.result(folder)
            if found != expected:
                raise Lost(f"after strikes the result is another: {difference(expected, found)}")
    finally:
        scenario.end()


def _strike_folder(
    trial: Trial,
    scenario: Scenario,
    folder: Path,
    strikes: Sequence[Strike],
    most: int,
    to_begin_s: float,
    work_s: float,
) -> float:
    """Strike and go on, then let it finish; returns how long the work may take, as far as known by now."""
    for _ in range(most):
        child = scenario.start(folder)
        try:
            strike = strikes[trial.times % len(strikes)]
            # Nothing of ours hears a signal while Python itself starts.
            if strike is kill and trial.chance.random() < 0.1:
                _sleep_while_running(child, trial.chance.uniform(0.0, to_begin_s))
            else:
                _wait_for_work(scenario, child, folder)
                _sleep_while_running(child, trial.chance.uniform(0.0, work_s))
            if child.is_over:
                # Too late: the next one comes earlier.
                work_s *= 0.7
                _must_pass(scenario, child)
                if scenario.is_whole(folder):
                    return work_s
                continue
            try:
                strike(child, trial.chance, scenario)
            except ProcessLookupError:
                continue
            trial.times += 1
            code = child.end()
            if strike is not kill:
                _must_have_stopped(scenario, child, code, folder)
        finally:
            child.clear()
        scenario.check(folder)
    finish(scenario, folder)
    return work_s


def finish(scenario: Scenario, folder: Path) -> tuple[float, float]:
    """Go on until all is done, struck by nobody; returns how long it took to begin, and then to end."""
    began = begun = time.monotonic()
    for _ in range(20):
        child = scenario.start(folder)
        try:
            _wait_for_work(scenario, child, folder)
            begun = time.monotonic()
            child.end()
            _must_pass(scenario, child)
        finally:
            child.clear()
        scenario.check(folder)
        if scenario.is_whole(folder):
            return begun - began, time.monotonic() - begun
    raise Lost("it does not come to its end")


def _wait_for_work(scenario: Scenario, child: Child, folder: Path) -> None:
    wait_for(lambda: child.is_over or scenario.has_begun(folder), "the work did not begin")


def _must_pass(scenario: Scenario, child: Child) -> None:
    code = child.end()
    if code != 0:
        raise Lost(f"undisturbed, it ended with {code}: {child.errors[-500:]}")


def _must_have_stopped(scenario: Scenario, child: Child, code: int, folder: Path) -> None:
    """A signal may come before Python listens, or after the work is done; else the exit code says what happened."""
    too_early = -code in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    if too_early and scenario.must_hear(folder):
        raise Lost(f"a signal ended it and not the run that it had started: {child.errors[-500:]}")
    if code != 0 and not too_early and code not in scenario.stopped_codes:
        raise Lost(f"stopped by a signal, it ended with {code}: {child.errors[-500:]}")
    if not said_plainly(child) and not too_early:
        raise Lost(f"stopped by a signal, it printed a traceback: {child.errors[-700:]}")


def _sleep_while_running(child: Child, seconds: float) -> None:
    ends_at = time.monotonic() + seconds
    while not child.is_over and (left := ends_at - time.monotonic()) > 0:
        time.sleep(min(left, 0.005))


def difference(expected: object, found: object) -> str:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *found]:
            if expected.get(key) != found.get(key):
                return f"{key!r}: {difference(expected.get(key), found.get(key))}"
    return f"{str(found)[:300]} in place of {str(expected)[:300]}"
