"""What the outcomes of runs say about the cases: no information, a wrong key, a case that is turned round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from agentunit.formulas.item_rest import false_discoveries_controlled, reversed_p_value, smallest_p_value
from agentunit.soundness.found import Hit
from agentunit.soundness.material import Material, RunOutcomes, Try
from agentunit.soundness.texts import shown

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
    """Tries that ended by a fault of the infrastructure and count as failures of the agent."""
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
            yield Hit(case_id, f"{fail} agents fail, also {best.name}, which passes {rates[id(best)]:.0%} of all")


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
        told = f"{len(of_passing)} agents that pass it pass {_mean(of_passing):.0%} of the rest"
        yield Hit(case_id, f"{told}, {len(of_failing)} that fail it {_mean(of_failing):.0%} (p = {p_value:.1g})")


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
