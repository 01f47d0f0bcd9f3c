"""What the outcomes of runs say about the cases: no information, a wrong key, a case that is turned round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb, erfc, sqrt

from agentunit.addons.review.soundness._texts import shown
from agentunit.addons.review.soundness.found import Hit
from agentunit.addons.review.soundness.material import Material, RunOutcomes, Try
from agentunit.formulas.text import shown_share

# Does a case agree with the rest of its test? The item-rest statistic, with exact tests for few runs.

_MOST_EXACT_RUNS = 20
_MOST_ENUMERATED = 50_000


def reversed_p_value(passed: Sequence[bool], rest: Sequence[float]) -> float:
    """How likely runs that pass a case are as bad on the rest as these, if passing had nothing to do with the rest.

    ``passed[i]`` says whether run ``i`` passed the case, ``rest[i]`` its rate on the other cases. The statistic is the
    sum of the ranks (by ``rest``, ties share theirs) of the runs that pass; the p-value is one-sided: small where good
    runs fail and bad runs pass. Exact up to 20 runs and wherever few pass or fail, by the normal approximation with
    ties and continuity else. 1.0 where all pass or all fail: such a case tells nothing.

    >>> round(reversed_p_value([True, True, False, False], [0.1, 0.2, 0.8, 0.9]), 4)   # 1 of 6 ways to choose two
    0.1667
    >>> reversed_p_value([False, False, True, True], [0.1, 0.2, 0.8, 0.9])
    1.0
    """
    n, k = len(passed), sum(passed)
    if len(rest) != n:
        raise ValueError(f"reversed_p_value: passed and rest must be of one length; received {n} and {len(rest)}")
    if k in (0, n):
        return 1.0
    ranks = _doubled_ranks(rest)
    if 2 * k > n:
        # That few fail, and are the best, is the same question.
        ranks = [2 * n + 2 - rank for rank in ranks]
        passed, k = [not each for each in passed], n - k
    observed = sum(rank for rank, each in zip(ranks, passed, strict=True) if each)
    if n <= _MOST_EXACT_RUNS:
        return _exact(ranks, k, observed)
    if comb(n, k) <= _MOST_ENUMERATED:
        return sum(sum(chosen) <= observed for chosen in combinations(ranks, k)) / comb(n, k)
    mean = sum(ranks) / n
    variance = sum((rank - mean) ** 2 for rank in ranks) / n
    spread = sqrt(variance * k * (n - k) / (n - 1))
    return 1.0 if spread == 0 else 0.5 * erfc(-(observed + 0.5 - k * mean) / spread / sqrt(2))


def smallest_p_value(n: int, k: int) -> float:
    """The smallest p-value that ``k`` passes of ``n`` runs can have.

    >>> smallest_p_value(4, 2) == 1 / 6
    True
    """
    return 1.0 if k in (0, n) else 1 / comb(n, k)


def false_discoveries_controlled(p_values: Sequence[float], rate: float) -> list[int]:
    """The indices of the tests to believe so that at most ``rate`` of them are expected to be chance.

    Benjamini and Hochberg's rule.

    >>> false_discoveries_controlled([0.9, 0.001, 0.04, 0.02], 0.1)
    [1, 2, 3]
    """
    ordered = sorted(range(len(p_values)), key=lambda each: p_values[each])
    last = max(
        (place for place, each in enumerate(ordered, 1) if p_values[each] <= rate * place / len(p_values)), default=0
    )
    return sorted(ordered[:last])


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the mean rank of each value, so that ties are whole numbers."""
    ordered = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(ordered, 1)))}
    last = {value: place for place, value in enumerate(ordered, 1)}
    return [first[value] + last[value] for value in values]


def _exact(ranks: Sequence[int], k: int, observed: int) -> float:
    """The share of all ways to choose ``k`` ranks whose sum is at most the observed one."""
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(k))]
    for rank in ranks:
        for chosen in range(k - 1, -1, -1):
            larger = ways[chosen + 1]
            for total, count in ways[chosen].items():
                larger[total + rank] = larger.get(total + rank, 0) + count
    return sum(count for total, count in ways[k].items() if total <= observed) / comb(len(ranks), k)


FEWEST_AGENTS = 3
"""Below so many agents nothing is said of cases that all pass, all fail or are turned round."""
_FALSE_DISCOVERIES = 0.1
_LARGEST_SMALLEST_P = 0.01
# Chosen on MMLU: from nine in ten on, most keys that runs disagree with are wrong.
_AGREEING = 0.9
_GOOD_AGREEING = 2 / 3
# Where these decide, the last words of an agent are beside the point.
_NOT_BY_ANSWER = ("task_success", "tool_trajectory")
_MANY_AGENTS = 20
_EXCEPTIONS = 0.1

# The kinds of deaths that are not the agent's answer, by what errors of clients, gateways and runners say.
_DEATHS: dict[str, re.Pattern[str]] = {
    "rate limit": re.compile(
        r"rate.?limit|too many requests|(?:http|status|code)\D{0,12}(?:429|529)|"
        r"quota (?:exceeded|exhausted)|exceeded your current quota|"
        r"resource.?exhausted|insufficient_quota|throttl|overloaded",
        re.IGNORECASE,
    ),
    "context overflow": re.compile(
        r"context.?(?:length|window|size).{0,40}(?:exceed|overflow|too)|maximum context|context_length_exceeded|"
        r"(?:prompt|input|request) is too long|too many (?:input )?tokens|"
        r"exceeds? the (?:model'?s )?max\w* (?:context|tokens)|reduce the length of the messages",
        re.IGNORECASE,
    ),
    "connection error": re.compile(
        r"connection.?(?:error|reset|refused|aborted|closed)|econn(?:reset|refused|aborted)|remote.?protocol.?error|"
        r"server disconnected|name or service not known|temporary failure in name resolution|getaddrinfo|"
        r"network is unreachable|no route to host|ssl.{0,12}error|bad gateway|service unavailable|gateway time-?out|"
        r"internal server error|(?:http|status|code)\D{0,12}50[0234]|broken pipe|incomplete ?read|max retries exceeded",
        re.IGNORECASE,
    ),
    "credentials": re.compile(
        r"invalid.?api.?key|incorrect api key|authentication.?error|unauthorized|(?:http|status|code)\D{0,12}401|"
        r"permission.?denied.?error|billing hard limit|credit balance is too low",
        re.IGNORECASE,
    ),
    "machine": re.compile(r"out of memory|oom.?killed|cannot allocate memory|no space left|killed by signal 9", re.I),
    "timeout": re.compile(
        r"time(?:d)?[ _-]?out|deadline.?exceeded|readtimeout|timeouterror|did not answer within", re.IGNORECASE
    ),
}


def death_in(error: str) -> str | None:
    """The kind of failure of the infrastructure that an error describes; ``None`` where it is the agent's own.

    >>> death_in("RateLimitError: 429 Too Many Requests"), death_in("KeyError: 'city'")
    ('rate limit', None)
    """
    return next((kind for kind, pattern in _DEATHS.items() if pattern.search(error)), None)


def infrastructure_deaths(material: Material) -> Iterator[Hit]:
    """Tries that ended by a fault of the infrastructure, which the agent seems to have failed."""
    for run in material.runs:
        for case_id, tries in run.tries.items():
            for each in tries:
                kind = death_in(each.error) if each.error else None
                if kind is not None and each.counts_as_passed is False:
                    said = shown(each.error or "")
                    also = "; a timeout can be the agent's own" if kind == "timeout" else ""
                    yield Hit(case_id, f"{kind} in {run.name}: {said}{also}", kind)


def everyone_passes(material: Material) -> Iterator[Hit]:
    """Cases that every run passes: they tell no agent from another."""
    for case_id, results in _results(material).items():
        if all(rate == 1 for _, rate in results):
            yield Hit(case_id, f"all {len(results)} agents pass")


def everyone_fails(material: Material) -> Iterator[Hit]:
    """Cases that every agent fails although it passes others; of many agents, a few may pass."""
    rates = {id(run): run.rate() or 0.0 for run in material.agents}
    for case_id, results in _results(material).items():
        failing = [run for run, rate in results if rate == 0]
        n_passing = len(results) - len(failing)
        if n_passing > (_EXCEPTIONS * len(results) if len(results) >= _MANY_AGENTS else 0):
            continue
        best = max(failing, key=lambda run: rates[id(run)])
        if rates[id(best)]:
            fail = f"{len(failing)} of {len(results)}" if n_passing else f"all {len(results)}"
            yield Hit(
                case_id, f"{fail} agents fail, also {best.name}, which passes {shown_share(rates[id(best)])} of all"
            )


def agreed_otherwise(material: Material) -> Iterator[Hit]:
    """Cases on which most runs, good ones among them, give one and the same answer, and it counts as wrong."""
    if len(material.agents) < FEWEST_AGENTS or any(run.metric in _NOT_BY_ANSWER for run in material.agents):
        return
    rates = {id(run): run.rate() or 0.0 for run in material.agents}
    middle = sorted(rates.values())[len(rates) // 2]
    for case_id in _case_ids(material.agents):
        answers: list[tuple[str, bool, float]] = []
        for run in material.agents:
            tries = [each for each in run.tries.get(case_id, ()) if each.answer and each.passed is not None]
            if tries:
                answers.append((tries[0].answer or "", bool(tries[0].passed), rates[id(run)]))
        if len(answers) < FEWEST_AGENTS:
            continue
        (answer, n_runs), *_ = Counter(given for given, _, _ in answers).most_common(1)
        gave = [(passed, rate) for given, passed, rate in answers if given == answer]
        n_good = sum(rate >= middle for _, rate in gave)
        all_good = sum(rate >= middle for _, _, rate in answers)
        if any(passed for passed, _ in gave) or n_runs < FEWEST_AGENTS or n_runs < _AGREEING * len(answers):
            continue
        if n_good >= _GOOD_AGREEING * all_good:
            told = f"{n_runs} of {len(answers)} agents answer {shown(answer)}"
            yield Hit(case_id, f"{told}, {n_good} of the better {all_good} among them; it counts as wrong")


def turned_round(material: Material) -> Iterator[Hit]:
    """Cases that good runs fail and bad runs pass, more than chance explains."""
    found = []
    graded = _results(material)
    totals: dict[int, tuple[float, int]] = {}
    for results in graded.values():
        for run, rate in results:
            total, n_cases = totals.get(id(run), (0.0, 0))
            totals[id(run)] = total + rate, n_cases + 1
    for case_id, results in graded.items():
        passed = [rate >= 0.5 for _, rate in results]
        if smallest_p_value(len(passed), sum(passed)) > _LARGEST_SMALLEST_P:
            continue
        rest = [_rate_on_others(totals[id(run)], rate) for run, rate in results]
        found.append((case_id, passed, rest, reversed_p_value(passed, rest)))
    for index in false_discoveries_controlled([each[3] for each in found], _FALSE_DISCOVERIES) if found else ():
        case_id, passed, rest, p_value = found[index]
        of_passing = [rate for rate, each in zip(rest, passed, strict=True) if each]
        of_failing = [rate for rate, each in zip(rest, passed, strict=True) if not each]
        told = f"{len(of_passing)} agents that pass it pass {shown_share(_mean(of_passing))} of the rest"
        yield Hit(
            case_id, f"{told}, {len(of_failing)} that fail it {shown_share(_mean(of_failing))} (p = {p_value:.1g})"
        )


def _results(material: Material) -> dict[str, list[tuple[RunOutcomes, float]]]:
    """For each case that enough runs graded: the runs and the share of their tries that pass."""
    found: dict[str, list[tuple[RunOutcomes, float]]] = {}
    for run in material.agents:
        for case_id, tries in run.tries.items():
            graded = [each.counts_as_passed for each in tries if _is_answer(each)]
            if graded:
                found.setdefault(case_id, []).append((run, sum(map(bool, graded)) / len(graded)))
    return {case_id: results for case_id, results in found.items() if len(results) >= FEWEST_AGENTS}


def _is_answer(each: Try) -> bool:
    """Whether a try says something about the case: a death of the infrastructure does not."""
    return each.counts_as_passed is not None and not (each.error and death_in(each.error))


def _case_ids(runs: Sequence[RunOutcomes]) -> list[str]:
    return list(dict.fromkeys(case_id for run in runs for case_id in run.tries))


def _rate_on_others(totals: tuple[float, int], rate: float) -> float:
    total, n_cases = totals
    # Rounded, so that runs that pass equally many are tied.
    return round((total - rate) / (n_cases - 1), 9) if n_cases > 1 else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
