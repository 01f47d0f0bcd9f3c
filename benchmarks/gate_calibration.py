"""How often the comparison with a baseline is right, on simulated runs whose true difference is known.

    python -m benchmarks.gate_calibration              400 pairs of runs a row, some minutes
    python -m benchmarks.gate_calibration --runs 50    a rough look
    python -m benchmarks.gate_calibration --sequential 2,000 runs a row that stop as soon as they can tell

Each pair of runs has three metrics of one kind over the same cases; each run draws its own noise. In "none" nothing
changed, so every "worse" is a false alarm (1 % is allowed, Holm holding for all three metrics together). In
"= margin" the first metric truly lost just the margin, so every "ruled out" is wrong (5 % are allowed). In "2 × margin"
it lost twice as much, and "worse" is right. "worse" says that one of the three is a regression, "ruled out" that the
first is no worse by its margin. Beside it, what two usual gates say: "mean dropped" fails when any of the three means
is worse, "by margin" when one is worse by more than the margin. Cases and their checks are not decided here:
``benchmarks.verdicts`` does that.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.cut_offs import Margin
from agentunit.engine.deciding.gate_expressions import parse_gate
from agentunit.engine.deciding.until_decided import (
    ALPHA,
    PART,
    Course,
    Place,
    Scores,
    answers_by_test,
    baseline_questions,
    gate_questions,
    run_until_decided,
)
from agentunit.engine.scoring.scored_run import ScoredRun, SequentialAnswer, info_of
from agentunit.formulas.bounded_mean import MeanEvidence
from agentunit.formulas.proportions import cases_needed
from agentunit.store.runs import RecordRow, RunHeader

MARGIN = 0.05
# Metrics that score from 0 to 1, higher being better; the values are ours.
SCORES = ("tool_success", "exact_match", "contains")
QUANTITIES = ("cost", "token_usage", "response_time")


@dataclass(frozen=True)
class Kind:
    """A law of scores. ``draw`` takes the cases' own levels, a true loss and a source, and gives a run's values."""

    name: str
    metrics: tuple[str, str, str]
    level: Callable[[random.Random], float]
    draw: Callable[[Sequence[float], float, random.Random], list[list[float]]]
    margin: float = MARGIN


def _pass_or_fail(levels: Sequence[float], loss: float, source: random.Random) -> list[list[float]]:
    # The same share of every case's chance is lost; the levels' mean is 0.8.
    return [[float(source.random() < level * (1.0 - loss / 0.8))] for level in levels]


def _repeated(levels: Sequence[float], loss: float, source: random.Random) -> list[list[float]]:
    runs = [_pass_or_fail(levels, loss, source) for _ in range(3)]
    return [[run[case][0] for run in runs] for case in range(len(levels))]


def _collapsing(levels: Sequence[float], loss: float, source: random.Random) -> list[list[float]]:
    # Nearly always the same high score; what is lost is lost all at once, in few cases (levels' mean is 0.9).
    noisy = [min(1.0, max(0.0, level + source.uniform(-0.02, 0.02))) for level in levels]
    return [[0.0 if source.random() < loss / 0.9 else value] for value in noisy]


def _shifted(levels: Sequence[float], loss: float, source: random.Random) -> list[list[float]]:
    return [[level - loss + source.uniform(-0.15, 0.15)] for level in levels]


def _growing(levels: Sequence[float], loss: float, source: random.Random) -> list[list[float]]:
    return [[level * (1.0 + loss) * source.lognormvariate(0.0, 0.2)] for level in levels]


KINDS = (
    Kind("pass/fail", SCORES, lambda source: source.betavariate(2.0, 0.5), _pass_or_fail),
    Kind("pass/fail × 3", SCORES, lambda source: source.betavariate(2.0, 0.5), _repeated),
    Kind("skewed", SCORES, lambda source: source.uniform(0.82, 0.98), _collapsing),
    Kind("continuous", SCORES, lambda source: source.uniform(0.35, 0.8), _shifted),
    Kind("cost", QUANTITIES, lambda source: source.lognormvariate(0.0, 0.5), _growing, margin=0.1),
)


def simulated_run(name: str, values: dict[str, list[list[float]]]) -> ScoredRun:
    """A run whose scores are given: by metric, case and repeat."""
    n_cases = len(next(iter(values.values())))
    n_repeats = len(next(iter(values.values()))[0])
    header = RunHeader(name, name, 0.0, 1.0, "finished", n_cases * n_repeats, "0", {})
    rows = {
        metric: [
            ScoreRow(case, repeat, f"case-{case}", value, "ok", "simulated", "1")
            for case, repeats in enumerate(cases)
            for repeat, value in enumerate(repeats)
        ]
        for metric, cases in values.items()
    }
    return ScoredRun(header, n_cases, n_cases * n_repeats, 0, rows)


def simulate(kind: Kind, n: int, loss: float, source: random.Random) -> tuple[ScoredRun, ScoredRun]:
    """A candidate and a baseline; the candidate's first metric truly lost ``loss``."""
    baseline, candidate = {}, {}
    for place, metric in enumerate(kind.metrics):
        levels = [kind.level(source) for _ in range(n)]
        baseline[metric] = kind.draw(levels, 0.0, source)
        candidate[metric] = kind.draw(levels, 0.0 if place else loss, source)
    return simulated_run("candidate", candidate), simulated_run("baseline", baseline)


def measure(kind: Kind, n: int, loss: float, runs: int, seed: int, resamples: int) -> Counter[str]:
    """How many of the simulated pairs end in each way."""
    source = random.Random(f"{kind.name} {n} {loss} {seed}")
    margin: Margin = f"{kind.margin:.0%}" if kind.metrics == QUANTITIES else kind.margin
    seen: Counter[str] = Counter()
    for _ in range(runs):
        candidate, baseline = simulate(kind, n, loss, source)
        comparison = compare_runs(candidate, baseline, on=kind.metrics, margin=margin, resamples=resamples)
        seen["worse"] += bool(comparison.regressions)
        metrics = {each.metric: each for each in comparison.metrics}
        seen["ruled out"] += metrics[kind.metrics[0]].verdict in ("no worse", "better")
        drops = [_drop(metrics[name].difference or 0.0, metrics[name].direction) for name in kind.metrics]
        limits = [metrics[name].margin or 0.0 for name in kind.metrics]
        seen["mean dropped"] += any(drop > 0.0 for drop in drops)
        seen["by margin"] += any(drop > limit for drop, limit in zip(drops, limits, strict=True))
    return seen


def _drop(difference: float, direction: str) -> float:
    return difference if direction == "lower" else -difference


# What one case adds to the evidence of a sequential test: a value from 0 to 1, given the true loss.
SEQUENTIAL = {
    "gate, pass/fail": (0.8, lambda loss, source: float(source.random() < 0.8 - loss)),
    "baseline, pass/fail": (0.5, lambda loss, source: _paired(0.05 + loss, 0.05, source)),
    "baseline, continuous": (0.5, lambda loss, source: 0.5 + (source.uniform(-0.3, 0.3) - loss) / 2.0),
}


def _paired(broken: float, fixed: float, source: random.Random) -> float:
    drawn = source.random()
    return 0.0 if drawn < broken else 1.0 if drawn < broken + fixed else 0.5


def stopped_at(name: str, loss: float, most: int, source: random.Random, alpha: float = ALPHA * PART) -> int | None:
    """After how many cases a run that looks after each of them has shown a loss; None if it never has."""
    threshold, draw = SEQUENTIAL[name]
    evidence = MeanEvidence(threshold, "below")
    for n in range(1, most + 1):
        evidence.add(draw(loss, source))
        if evidence.shows(alpha):
            return n
    return None


def fixed_size(name: str, loss: float, source: random.Random) -> int:
    """The cases that a test of fixed size needs to find a loss with 80 % probability, when the loss is known before."""
    threshold, draw = SEQUENTIAL[name]
    values = [draw(loss, source) - threshold for _ in range(20_000)]
    needed = cases_needed(-fmean(values), stdev(values))
    assert needed is not None
    return needed


def print_sequential(runs: int, most: int, seed: int) -> None:
    """One row for each kind of question and true loss, looked at after every case."""
    print(f"{runs} simulated runs a row, looked at after every case, at most {most} cases\n")
    print("| question | true loss | shown | cases on average | fixed size, 80 % |")
    print("|---|---:|---:|---:|---:|")
    for name in SEQUENTIAL:
        for loss in (0.0, 0.05, 0.1, 0.2):
            source = random.Random(f"{name} {loss} {seed}")
            ends = [stopped_at(name, loss, most, source) for _ in range(runs)]
            shown = sum(end is not None for end in ends) / runs
            average = f"{fmean(end or most for end in ends):.0f}" if loss else ""
            fixed = str(fixed_size(name, loss, source)) if loss else ""
            print(f"| {name} | {loss:g} | {shown:.1%} | {average} | {fixed} |", flush=True)


# Whole runs of an agent that did not change: cases, repeats of the baseline (0: a gate just at the truth), and clusters
# of how many cases.
WHOLE_RUNS = {
    "gate at the truth": (66, 0, 1),
    "gate at the truth, clusters of 5": (200, 0, 5),
    "baseline, 1 repeat": (66, 1, 1),
    "baseline, 3 repeats": (66, 3, 1),
    "baseline, 1 repeat, clusters of 5": (200, 1, 5),
}


def whole_run(name: str, source: random.Random) -> tuple[str | None, int]:
    """The answer of a run until decided about an agent that did not change, and how many runs of cases it took.

    Cases pass with chances whose mean is 0.8; those of a cluster have the same. The answer "no" is a false alarm, and
    for a gate so is "yes".
    """
    n, repeats, size = WHOLE_RUNS[name]
    levels = [source.betavariate(2.0, 0.5) for _ in range(n // size)]
    rows: dict[Place, ScoreRow] = {}

    def draw(place: Place) -> ScoreRow:
        passed = float(source.random() < levels[place[0] // size])
        return ScoreRow(*place, f"case-{place[0]}", passed, "ok", "simulated", "1")

    def run_places(places: list[Place]) -> tuple[Scores, str | None]:
        rows.update({place: draw(place) for place in places})
        # Repeats decide about these very cases, whose mean is not just the threshold: a gate is asked once.
        capped = "all are run" if not repeats and len(rows) == n else None
        return {place: [("contains", rows[place])] for place in places}, capped

    baseline = _run_of("baseline", [draw((case, repeat)) for case in range(n) for repeat in range(repeats)], n, size)

    def test(places: Collection[Place], alpha: float) -> Mapping[str, SequentialAnswer]:
        candidate = _run_of("candidate", [rows[place] for place in sorted(rows)], n, size)
        return answers_by_test(
            candidate, baseline, places, alpha, gates=["contains >= 0.5"], margin=MARGIN, resamples=500
        )

    asked = baseline_questions(["contains"], info_of, baseline, MARGIN) if repeats else []
    questions = asked or gate_questions([parse_gate("contains >= 0.8")], info_of)
    course = Course(n, source.randrange(1 << 31), [case // size for case in range(n)], [repeats] * n)
    watched = run_until_decided(questions, course, run_places, test=test)
    return questions[0].answer, watched.n_runs


def _run_of(name: str, rows: list[ScoreRow], n: int, size: int) -> ScoredRun:
    clusters = {"cluster": {"field": "metadata.customer", "by_position": [case // size for case in range(n)]}}
    header = RunHeader(name, name, 0.0, 1.0, "finished", len(rows), "0", clusters if size > 1 else {})
    records = [RecordRow(row.position, row.repeat, row.case_id, False) for row in rows]
    return ScoredRun(header, n, len(rows), 0, {"contains": rows}, records)


def print_whole_runs(runs: int, seed: int) -> None:
    """One row for each kind of whole run: how often it says yes or no."""
    print("\n| whole run, nothing changed | says worse | says met or no worse | runs on average |")
    print("|---|---:|---:|---:|")
    for name in WHOLE_RUNS:
        source = random.Random(f"{name} {seed}")
        found = [whole_run(name, source) for _ in range(runs)]
        said = Counter(answer for answer, _ in found)
        average = fmean(n_runs for _, n_runs in found)
        print(f"| {name} | {said['no'] / runs:.1%} | {said['yes'] / runs:.1%} | {average:.0f} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one row for each kind of score, number of cases and true loss."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate_calibration", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400, help="simulated pairs of runs a row (default: 400)")
    parser.add_argument("--cases", type=int, nargs="+", default=[20, 50, 200, 500], help="cases a run")
    parser.add_argument("--kinds", nargs="+", choices=[kind.name for kind in KINDS], help="kinds of scores")
    parser.add_argument("--resamples", type=int, default=500, help="sign flips a test (default: 500)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sequential", action="store_true", help="runs that stop as soon as they can tell")
    options = parser.parse_args(arguments)
    if options.sequential:
        print_sequential(5 * options.runs, 600, options.seed)
        print_whole_runs(5 * options.runs, options.seed)
        return 0
    print(f"{options.runs} simulated pairs of runs a row, 3 metrics each, margin 0.05 (cost: 10 %)\n")
    print("| scores | cases | true loss | worse | ruled out | mean dropped | by margin |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for kind in KINDS:
        if options.kinds and kind.name not in options.kinds:
            continue
        for n in options.cases:
            for words, share in (("none", 0.0), ("= margin", 1.0), ("2 × margin", 2.0)):
                seen = measure(kind, n, share * kind.margin, options.runs, options.seed, options.resamples)
                columns = ("worse", "ruled out", "mean dropped", "by margin")
                shares = " | ".join(f"{seen[column] / options.runs:.1%}" for column in columns)
                print(f"| {kind.name} | {n} | {words} | {shares} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
