"""How often following raises a false alarm, and how soon it notices a change: ``python -m benchmarks.drift``.

Streams are simulated whose level never changes, of every kind that scores come in, with four slices each, and the
alarms of a metric and its slices are counted as ``agentunit score --follow`` would raise them. The target is at most
one false alarm in 1,000 days of a metric. Then levels change, and the cases until the alarm are counted. The last part
breaks the assumption on purpose: levels wander from hour to hour.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator

from agentunit.addons.watch.drift import BASELINE_SIZE
from agentunit.addons.watch.following.series import SeriesKey, SeriesState, new_series, share_of
from agentunit.metrics.base import MetricInfo

DAYS = 30
N_SLICES = 4
DAY_S = 86_400.0
Draw = Callable[[random.Random], float]

SCORE = MetricInfo("score", "", "", "higher", (0.0, 1.0))
AMOUNT = MetricInfo("amount", "", "", "lower", (0.0, None), "USD")
KINDS: dict[str, tuple[MetricInfo, Draw]] = {
    "pass 50 %": (SCORE, lambda source: float(source.random() < 0.5)),
    "pass 90 %": (SCORE, lambda source: float(source.random() < 0.9)),
    "pass 99 %": (SCORE, lambda source: float(source.random() < 0.99)),
    "pass 100 %": (SCORE, lambda source: 1.0),
    "scores around 0.8": (SCORE, lambda source: source.betavariate(8.0, 2.0)),
    "scores, mostly 1": (SCORE, lambda source: min(1.0, source.betavariate(5.0, 0.5) * 1.05)),
    "amounts, log-normal": (AMOUNT, lambda source: source.lognormvariate(0.0, 1.5)),
    "amounts, few values": (AMOUNT, lambda source: float(source.choice((0, 0, 1, 2, 50)))),
}
CHANGES: dict[str, tuple[MetricInfo, Draw, Draw]] = {
    "pass 90 % → 60 %": (SCORE, KINDS["pass 90 %"][1], lambda source: float(source.random() < 0.6)),
    "pass 90 % → 80 %": (SCORE, KINDS["pass 90 %"][1], lambda source: float(source.random() < 0.8)),
    "pass 99 % → 95 %": (SCORE, KINDS["pass 99 %"][1], lambda source: float(source.random() < 0.95)),
    "scores 0.80 → 0.75": (SCORE, KINDS["scores around 0.8"][1], lambda source: source.betavariate(7.5, 2.5)),
    "amounts × 1.5": (AMOUNT, KINDS["amounts, log-normal"][1], lambda source: 1.5 * source.lognormvariate(0.0, 1.5)),
}


class Metric:
    """A metric as the follower watches it: as a whole, whether it has a score, and by slice."""

    def __init__(self, info: MetricInfo, n_slices: int = N_SLICES) -> None:
        self._streams: dict[SeriesKey, SeriesState] = {}
        self._info = info
        self._n_slices = n_slices

    def add(self, value: float, slice: int, at_s: float) -> int:
        """How many alarms one case raises."""
        keys = [SeriesKey("m", "b"), SeriesKey("m", "", kind="scored")]
        keys += [SeriesKey("m", "b", str(slice))] if self._n_slices else []
        n_alarms = 0
        for key in keys:
            state = self._streams.get(key)
            if state is None:
                state = self._streams[key] = new_series(key, self._info, [value], BASELINE_SIZE)
            alike = self._n_slices if key.slice else 1
            taken = 1.0 if key.kind == "scored" else value
            n_alarms += state.add(taken, "", at_s, True, share_of(key, alike)) is not None
        return n_alarms


def false_alarms(n_lives: int, seed: int = 0) -> Iterator[tuple[str, int, int, int]]:
    """For each kind: days of a metric, values, and alarms, all of them false."""
    for kind, (info, draw) in KINDS.items():
        n_values = n_alarms = 0
        for life in range(n_lives):
            source = random.Random(f"{seed} {kind} {life}")
            rate = source.choice((50, 200, 600))
            metric = Metric(info)
            at_s = 0.0
            while at_s < DAYS * DAY_S:
                at_s += source.expovariate(rate / DAY_S)
                n_alarms += metric.add(draw(source), source.randrange(N_SLICES), at_s)
                n_values += 1
        yield kind, n_lives * DAYS, n_values, n_alarms


def delays(n_lives: int, before: int = 2_000, rate: int = 1_000, seed: int = 0) -> Iterator[tuple[str, list[int]]]:
    """For each change: how many cases came until it was noticed, of those after it, sorted."""
    for change, (info, usual, changed) in CHANGES.items():
        found = []
        for life in range(n_lives):
            source = random.Random(f"{seed} {change} {life}")
            metric = Metric(info, 0)
            for case in range(before + 50_000):
                draw = usual if case < before else changed
                if metric.add(draw(source), 0, case * DAY_S / rate) and case >= before:
                    found.append(case - before + 1)
                    break
        yield change, sorted(found)


def wandering(n_lives: int, spread: float, seed: int = 0) -> tuple[int, int]:
    """Days and alarms where the pass rate is drawn anew every six hours, around 90 %."""
    n_alarms = 0
    for life in range(n_lives):
        source = random.Random(f"{seed} wander {spread} {life}")
        metric, level, block = Metric(SCORE, 0), 0.9, -1
        for case in range(DAYS * 200):
            at_s = case * DAY_S / 200
            if int(at_s // 21_600) != block:
                block = int(at_s // 21_600)
                level = min(1.0, max(0.0, source.gauss(0.9, spread)))
            n_alarms += metric.add(float(source.random() < level), 0, at_s)
    return n_lives * DAYS, n_alarms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=10, help=f"metrics of each kind, of {DAYS} days each")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    total_days = total_alarms = total_values = 0
    print(f"{'level never changes':<24}{'metric-days':>12}{'cases':>12}{'false alarms':>14}")
    for kind, days, n_values, n_alarms in false_alarms(options.lives, options.seed):
        total_days, total_alarms, total_values = total_days + days, total_alarms + n_alarms, total_values + n_values
        print(f"{kind:<24}{days:>12,}{n_values:>12,}{n_alarms:>14}", flush=True)
    print(f"{'all':<24}{total_days:>12,}{total_values:>12,}{total_alarms:>14}")
    print(f"\n{'level changes':<24}{'found':>12}{'median cases':>14}{'95 %':>8}")
    for change, found in delays(max(20, options.lives), seed=options.seed):
        n = max(20, options.lives)
        late = found[int(0.95 * (len(found) - 1))]
        print(f"{change:<24}{f'{len(found)}/{n}':>12}{statistics.median(found):>14g}{late:>8}", flush=True)
    print(f"\n{'level wanders':<24}{'metric-days':>12}{'alarms':>8}")
    for spread in (0.01, 0.03, 0.05):
        days, n_alarms = wandering(options.lives, spread, options.seed)
        print(f"{f'± {spread:.0%} every 6 hours':<24}{days:>12,}{n_alarms:>8}", flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
