"""Blame for failed runs, on runs in which people named the agent and the step that went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import comb
from statistics import fmean

from msgspec import Struct

from agentunit.core.records import Record
from agentunit.formulas.agreement import bootstrap_statistic_interval
from agentunit.formulas.blame import RankedStep
from agentunit.multiagent import blame
from agentunit.multiagent.steps import Step, steps_of
from benchmarks.validity.baselines import Baseline
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import DECIMALS, Figure, Scorer

DATASET = "whoandwhen"
AGENT, STEP, THREE_STEPS = "right agent", "right step", "right step among three"
BLAME = Scorer("blame", "metric", "as shipped, in sample")
CHANCE = "chance"
BASELINES = (
    Baseline(CHANCE, "a step or agent drawn at random among those that are no bare results of code", lambda _: None),
    Baseline("last speaker", "the last one to speak, and its last step", lambda _: None),
    Baseline("most active", "the agent with most steps, and its first one after the task", lambda _: None),
    Baseline("longest step", "the step with most words, and its agent", lambda _: None),
)


# The variants that were tried on these runs before equal weights and an agent's worst step were kept: each weighting
# with each way of making one number of an agent's steps. Choosing among them is fitting, so it is cross-validated.
WEIGHTINGS: tuple[dict[str, float], ...] = (
    {"length": 1, "assumed": 1, "failed": 1, "unrun": 0.5, "early": 1},
    {"length": 1},
    {"early": 1},
    {"assumed": 1, "early": 0.01},
    {"length": 1, "early": 1},
    {"length": 1, "assumed": 1},
    {"length": 1, "assumed": 1, "early": 1},
    {"length": 1, "failed": 1, "early": 1},
    {"length": 1, "assumed": 1, "failed": 1, "early": 1},
    {"length": 1, "assumed": 1, "failed": 1, "unrun": 1, "early": 1},
    {"length": 1, "assumed": 0.5, "failed": 0.5, "unrun": 0.5, "early": 1},
)
SUMMARIES: tuple[Callable[[Sequence[float]], float], ...] = (sum, max, fmean)
CROSS_VALIDATED = Scorer("blame", "metric", "variant cross-validated")


class Guess(Struct, frozen=True):
    """An agent, and steps in order of preference."""

    agent: str
    steps: Sequence[int]


def measure(data: LabelledData) -> Family:
    """Count how often the first of each ranking is what people named."""
    records = data.records(DATASET)
    hits: dict[Scorer, dict[str, list[float]]] = {BLAME: _hits(records, _by_blame)}
    guesses = {"last speaker": _last_speaker, "most active": _most_active, "longest step": _longest_step}
    hits[Scorer(CHANCE, "baseline")] = _chance(records)
    for name, guess in guesses.items():
        hits[Scorer(name, "baseline")] = _hits(records, guess)
    hits[CROSS_VALIDATED] = _cross_validated(records)
    figures = [
        _figure(scorer, statistic, values, hits[Scorer(CHANCE, "baseline")][statistic])
        for scorer, by_statistic in hits.items()
        for statistic, values in by_statistic.items()
    ]
    rivals = [(name, AGENT, "agent") for name in guesses] + [("longest step", STEP, "step")]
    remarks = [
        _beside(name, hits[BLAME][statistic], hits[Scorer(name, "baseline")][statistic], what)
        for name, statistic, what in rivals
    ]
    return Family(
        key="multiagent_blame",
        title="Blame for failed runs",
        measured=(
            f"People read {len(records)} failed runs of teams of agents (Who&When, the part made by an algorithm: 5 to "
            "10 steps each) and named the agent and the step whose mistake decided the failure. A guess counts when "
            "it names the same one first."
        ),
        can=(
            "A first place to look: the ranking names the right step more often than chance, at no cost, and says "
            "which signs it saw."
        ),
        cannot=(
            "It does not understand the task, and it is not better than plain rules: taking the longest message does "
            "as well for the step, and naming the last speaker or the most active agent as well for the agent, better "
            f"than a variant chosen fairly. {len(records)} runs are too few to tell them apart. Never take it for a "
            "verdict."
        ),
        baselines=BASELINES,
        headline=[figure for figure in figures if figure.statistic in (AGENT, STEP)],
        figures=figures,
        trust=(),
        remarks=(
            *remarks,
            f"The figures of `blame` are optimistic: all signs weigh the same, but {len(WEIGHTINGS) * len(SUMMARIES)} "
            "variants were tried on these very runs before this one was kept. *Variant cross-validated* is the fair "
            "figure of such a choice: for each run, the variant that did best on all others (leave one out).",
            "In two of the runs the named step was not taken by the named agent; they count as labelled.",
        ),
        unit="runs",
    )


def _figure(scorer: Scorer, statistic: str, values: Sequence[float], chance: Sequence[float]) -> Figure:
    bar = sum(chance) / len(chance)
    interval = bootstrap_statistic_interval(_mean, (values,))
    low, high = (interval.low, interval.high) if interval and scorer.name != CHANCE else (None, None)
    verdict = ""
    if low is not None and high is not None:
        verdict = "better than chance" if low > bar else "worse than chance" if high < bar else "no better than chance"
    bounds = [None if each is None else round(each, DECIMALS) for each in (low, high)]
    return Figure(scorer, DATASET, statistic, len(values), round(_mean(values), DECIMALS), *bounds, verdict)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _beside(name: str, ours: Sequence[float], theirs: Sequence[float], what: str) -> str:
    gained = sum(a > b for a, b in zip(ours, theirs, strict=True))
    lost = sum(a < b for a, b in zip(ours, theirs, strict=True))
    return (
        f"Beside *{name}*, the ranking names the right {what} in {gained} runs where the other does not, and misses it "
        f"in {lost} where the other does (sign test, two-sided: p = {_sign_test(gained, lost):.2f})."
    )


def _sign_test(gained: int, lost: int) -> float:
    n = gained + lost
    tail = sum(comb(n, k) for k in range(min(gained, lost) + 1)) / 2**n
    return min(1.0, 2 * tail)


def _hits(records: Sequence[Record], guess: Callable[[Record], Guess]) -> dict[str, list[float]]:
    hits: dict[str, list[float]] = {AGENT: [], STEP: [], THREE_STEPS: []}
    for record in records:
        guessed, step = guess(record), int(record.case.metadata["mistake_step"])
        hits[AGENT].append(float(guessed.agent == record.case.metadata["mistake_agent"]))
        hits[STEP].append(float(step in guessed.steps[:1]))
        if len(guessed.steps) > 1:
            hits[THREE_STEPS].append(float(step in guessed.steps[:3]))
    return {statistic: values for statistic, values in hits.items() if len(values) == len(records)}


def _chance(records: Sequence[Record]) -> dict[str, list[float]]:
    chance: dict[str, list[float]] = {AGENT: [], STEP: [], THREE_STEPS: []}
    for record in records:
        steps = _spoken(record)
        chance[AGENT].append(1 / len({step.agent for step in steps}))
        chance[STEP].append(1 / len(steps))
        chance[THREE_STEPS].append(min(1.0, 3 / len(steps)))
    return chance


def _cross_validated(records: Sequence[Record]) -> dict[str, list[float]]:
    """The hits on each run of the variant that has most hits on all the others; the first of equals."""
    rankings = [blame(record).steps for record in records]
    variants = [
        _hits(records, _guesser(records, rankings, weights, summary)) for weights in WEIGHTINGS for summary in SUMMARIES
    ]
    chosen: dict[str, list[float]] = {}
    for statistic in (AGENT, STEP):
        hits = [variant[statistic] for variant in variants]
        chosen[statistic] = [
            max(hits, key=lambda each: sum(each) - each[place])[place] for place in range(len(records))
        ]
    return chosen


def _guesser(
    records: Sequence[Record],
    rankings: Sequence[Sequence[RankedStep]],
    weights: dict[str, float],
    summary: Callable[[Sequence[float]], float],
) -> Callable[[Record], Guess]:
    by_id = {record.case.id: ranked for record, ranked in zip(records, rankings, strict=True)}

    def guess(record: Record) -> Guess:
        scored = [
            (sum(weight * each.signs.get(sign, 0.0) for sign, weight in weights.items()), each)
            for each in sorted(by_id[record.case.id], key=lambda each: each.step)
        ]
        of_agent: dict[str, list[float]] = {}
        for score, each in scored:
            of_agent.setdefault(str(each.agent), []).append(score)
        agent = max(of_agent, key=lambda name: summary(of_agent[name]))
        return Guess(agent, [each.step for _, each in sorted(scored, key=lambda pair: -pair[0])])

    return guess


def _by_blame(record: Record) -> Guess:
    found = blame(record)
    return Guess(str(found.agents[0].agent), [each.step for each in found.steps])


def _last_speaker(record: Record) -> Guess:
    last = _spoken(record)[-1]
    return Guess(str(last.agent), [last.number])


def _most_active(record: Record) -> Guess:
    steps = _spoken(record)
    counts = Counter(step.agent for step in steps)
    agent = max(counts, key=lambda name: counts[name])
    own = [step.number for step in steps if step.agent == agent]
    return Guess(str(agent), [next((number for number in own if number), own[0])])


def _longest_step(record: Record) -> Guess:
    steps = [step for step in _spoken(record) if not step.is_task] or _spoken(record)
    ranked = sorted(steps, key=lambda step: (-len(step.text.split()), step.number))
    return Guess(str(ranked[0].agent), [step.number for step in ranked])


def _spoken(record: Record) -> list[Step]:
    return [step for step in steps_of(record.trace) if step.agent is not None and not step.is_result]
