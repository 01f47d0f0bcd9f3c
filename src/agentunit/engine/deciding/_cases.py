"""What became of each case: by its own tries, and beside a baseline.

A case is wrong where a check fails in every try, flaky where a check has both, doubtful where only a model or a judge
doubts it, and fine where all its checks pass. Beside a baseline it is decided check by check what changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import comb
from typing import Any

from agentunit.engine.deciding.case_records import BothRuns, RunRecords
from agentunit.engine.deciding.checks import CaseTries, CheckTries, MadeBy
from agentunit.engine.deciding.comparison import CaseKind, CaseStanding
from agentunit.engine.deciding.trying import (
    ENOUGH_ALIKE,
    MOST_AT_ONCE,
    Before,
    Earlier,
    OpenCheck,
    is_deterministic,
    newest,
    tries_needed,
)

# How likely chance makes so many newly failing checks, where they were not tried again.


@lru_cache(maxsize=4096)
def chance_of_newly_failing(n_before: int, n_now: int, failed_before: int, failed_now: int) -> float:
    """The chance that a check passed in more than half of its tries before and in none now, if nothing changed.

    Then its failures of both runs fall on its tries at random. A check that passes now and then counts as if it had
    failed as often as that takes to be most likely: one more failure must never make the others look more like chance.

    >>> chance_of_newly_failing(1, 1, 0, 1), chance_of_newly_failing(3, 3, 0, 3), chance_of_newly_failing(1, 1, 1, 1)
    (0.5, 0.05, 0.0)
    >>> chance_of_newly_failing(3, 3, 1, 0), chance_of_newly_failing(3, 3, 1, 2), chance_of_newly_failing(3, 3, 0, 2)
    (0.05, 0.05, 0.0)
    """
    most = max(failed_now, n_now - 1)
    return max(_chance(n_before, n_now, failed_before + failed) for failed in range(failed_now, most + 1))


def _chance(n_before: int, n_now: int, n_failed: int) -> float:
    """The same of a check with so many failures in both runs."""
    failed_before = n_failed - n_now
    if failed_before < 0 or 2 * failed_before >= n_before:
        return 0.0
    # All of the tries now are among the failures; the others lie among the tries before.
    return comb(n_before, failed_before) / comb(n_before + n_now, n_failed)


def chance_of_so_many(n_newly_failing: int, chances: Iterable[float]) -> float:
    """The chance of at least so many newly failing cases among those with these chances.

    Every case with failures counts: one that is fixed, or fails now and then within a run, shows what chance does.

    >>> chance_of_so_many(8, [0.5] * 8), chance_of_so_many(1, [0.5] * 2)
    (0.00390625, 0.75)
    """
    if n_newly_failing == 0:
        return 1.0
    # fewer[k]: the chance of exactly k, for every k below the number seen.
    fewer = [1.0] + [0.0] * (n_newly_failing - 1)
    # Those before the first and after the last are zero, too small for a number or not possible yet.
    first = last = 0
    for chance, times in Counter(chances).items():
        for _ in range(times):
            last = min(last + 1, n_newly_failing - 1)
            for k in range(last, first, -1):
                fewer[k] = fewer[k] * (1.0 - chance) + fewer[k - 1] * chance
            fewer[first] *= 1.0 - chance
            while first < last and fewer[first] == 0.0:
                first += 1
    return min(1.0, max(0.0, 1.0 - sum(fewer)))


# A check that passed so often before, and always, and mostly fails now, is newly flaky.
_ALWAYS_BEFORE = 5
_KINDS_OF_CHECKS: tuple[CaseKind, ...] = (
    "broken",
    "newly failing",
    "newly flaky",
    "lost",
    "still failing",
    "fixed",
    "flaky",
    "unchanged",
)
"""What a case is called: the first of these that holds of one of its checks."""


@dataclass(frozen=True, slots=True)
class BeforeCheck:
    """One check of a case before: its newest ten tries, those of the baseline alone among them, and what made them."""

    tries: Before
    in_baseline: Before
    made_by: MadeBy


@dataclass
class BeforeRun:
    """How the cases of a baseline stood, by id: whether their checks passed, and the newest tries of each check.

    ``n_passed`` checks passed in the baseline itself: so many could fail now by chance.
    """

    cases: dict[str, tuple[bool | None, dict[str, BeforeCheck]]] = field(default_factory=dict)
    n_passed: int = 0


def before_of(cases: Iterable[CaseTries], earlier: Earlier) -> BeforeRun:
    """How the cases of a baseline stood. ``earlier`` are tries of runs before it, which follow its own."""
    before = BeforeRun()
    # Most cases did alike, and share what is known of them: a long run has hundreds of thousands.
    alike: dict[tuple[Any, ...], tuple[bool | None, dict[str, BeforeCheck]]] = {}
    for case in cases:
        checks: dict[str, BeforeCheck] = {}
        for metric, tries in case.checks.items():
            newest_first = [tries.results[repeat] for repeat in sorted(tries.results, reverse=True)]
            in_baseline = newest(newest_first)
            before.n_passed += in_baseline.passed
            if in_baseline.n_passed:
                # What fails throughout in the baseline did not pass before: a run beside itself is no worse.
                newest_first += earlier.get((case.case_id, metric, tries.made_by), ())
            checks[metric] = BeforeCheck(newest(newest_first), in_baseline, tries.made_by)
        is_ok = _is_ok(case)
        before.cases[case.case_id] = alike.setdefault((is_ok, *checks.items()), (is_ok, checks))
    return before


def _is_ok(case: CaseTries) -> bool | None:
    """Whether all checks of a case pass in all tries; ``None`` where it has none."""
    made = [check for check in case.checks.values() if check.results]
    return all(all(check.results.values()) for check in made) if made else None


@dataclass
class CaseComparison:
    """The cases of a candidate beside those of a baseline, before records are read.

    ``n_checks`` passed before. ``newly_failing`` are the checks that passed before and fail in every try now,
    ``passed_late`` those that failed in every planned try and passed in one again.
    ``chances`` are those of the cases with failures to have a newly failing check if nothing had changed.
    ``flipped_before``: a check both passed and failed before. ``n_fixed`` checks failed before and pass now.
    """

    n_checks: int = 0
    standings: dict[str, CaseStanding] = field(default_factory=dict)
    newly_failing: dict[str, list[OpenCheck]] = field(default_factory=dict)
    passed_late: dict[str, list[OpenCheck]] = field(default_factory=dict)
    chances: list[float] = field(default_factory=list)
    n_made_before: dict[str, int] = field(default_factory=dict)
    n_lost: dict[str, int] = field(default_factory=dict)
    not_compared: dict[str, int] = field(default_factory=dict)
    flipped_before: bool = False
    n_fixed: int = 0


def compare_cases(now: Iterable[CaseTries], before: BeforeRun) -> CaseComparison:
    """Hold each case against how it did before. What is broken is said by ``with_broken``."""
    result = CaseComparison(before.n_passed)
    alike: dict[CaseStanding, CaseStanding] = {}
    for case in now:
        known = before.cases.get(case.case_id)
        if known is None:
            continue
        ok_before, checks_before = known
        standing = CaseStanding("unchanged", ok_before, _is_ok(case))
        failing: list[OpenCheck] = []
        chance = 0.0
        chances_of_failing: list[float] = []
        for metric, earlier in checks_before.items():
            tries = case.checks.get(metric) or CheckTries()
            if tries.results and tries.made_by != earlier.made_by:
                # Another backend or version may not mean the same.
                result.not_compared[metric] = result.not_compared.get(metric, 0) + 1
                continue
            tries_before, in_baseline = earlier.tries, earlier.in_baseline
            result.n_made_before[metric] = result.n_made_before.get(metric, 0) + (tries_before.n_tries > 0)
            result.flipped_before = result.flipped_before or 0 < in_baseline.n_passed < in_baseline.n_tries
            kind = _kind(tries_before, tries)
            # What newly fails is held against all that is known of it; of the others the two runs say enough.
            known_before = tries_before if kind == "newly failing" else in_baseline
            chance_of_check = 0.0
            if tries.results and (known_before.n_failed or tries.n_failed):
                chance_of_check = chance_of_newly_failing(
                    known_before.n_tries, tries.n_tries, known_before.n_failed, tries.n_failed
                )
            if kind == "newly failing":
                chances_of_failing.append(chance_of_check)
            # The checks of a case fail together, mostly.
            chance = max(chance, chance_of_check)
            if kind is None:
                continue
            result.n_fixed += kind == "fixed"
            if kind == "lost":
                result.n_lost[metric] = result.n_lost.get(metric, 0) + 1
            passed_before = (tries_before.n_passed, tries_before.n_tries)
            n_failed = tries.n_failed if kind == "newly failing" else tries.n_failed_first
            if n_failed and tries_before.passed:
                needed = tries_needed(result.n_checks, tries_before.n_failed)
                never_failed = not tries_before.n_failed
                check = OpenCheck(case.position, case.case_id, metric, needed, n_failed, passed_before, never_failed)
                if kind == "newly failing":
                    failing.append(check)
                else:
                    result.passed_late.setdefault(case.case_id, []).append(check)
            if _KINDS_OF_CHECKS.index(kind) < _KINDS_OF_CHECKS.index(standing.kind):
                standing = replace(
                    standing,
                    kind=kind,
                    check=metric,
                    n_failed=tries.n_failed,
                    n_tries=tries.n_tries,
                    passed_before=passed_before,
                )
        if chances_of_failing:
            # Of those that do fail, the one that chance explains least: another that fails is no excuse.
            chance = min(chances_of_failing)
        if chance:
            result.chances.append(chance)
        if failing:
            result.newly_failing[case.case_id] = failing
        result.standings[case.case_id] = alike.setdefault(standing, standing)
    return result


def _kind(before: Before, now: CheckTries) -> CaseKind | None:
    """What became of one check; ``None`` where nothing did."""
    if not before.n_tries:
        return None
    if not now.results:
        return "lost" if before.passed else None
    if before.passed:
        if now.is_wrong:
            return "newly failing"
        if not now.is_flaky:
            return None
        always = before.n_passed == before.n_tries >= _ALWAYS_BEFORE
        return "newly flaky" if always and now.n_failed > now.n_passed else "flaky"
    if now.is_wrong:
        return "still failing"
    if now.is_flaky:
        return "flaky"
    # What passed now and then before may have passed by chance now.
    return None if before.n_passed else "fixed"


@dataclass(frozen=True)
class Confirmation:
    """What the records say about newly failing checks: whether the agent is ``deterministic``, and its answers.

    ``at_once``: it is so in both runs throughout, so that a check need not be tried again.
    """

    deterministic: bool = False
    at_once: bool = False
    records: RunRecords = field(default_factory=RunRecords)


def confirmation(both: BothRuns | None, comparison: CaseComparison) -> Confirmation:
    """Whether the agent is deterministic: nine of ten cases answer as before, to the byte, in all tries.

    An agent with a seed of its own for each repeat may answer otherwise in each, the same in both runs. That several
    cases share an answer shows nothing: a classifier says "yes" again and again. And once a try again gave its case
    another answer than before, the agent is not deterministic, whatever the other cases say. A try without an answer
    says nothing: an outage makes none of that different. Of a check that three alike tries decide, those count.
    """
    if both is None or not both.are_read:
        return Confirmation()
    several_before = both.old.given_by_several()
    several = several_before | both.new.given_by_several()
    n_same = n_other = 0
    given_before = [both.old.answers_of(case_id) for case_id in comparison.newly_failing]
    n_telling = sum(bool(answers) and not answers & several_before for answers in given_before)
    for case_id in both.new.cases:
        before, answers = both.old.by_repeat(case_id), both.new.by_repeat(case_id)
        if case_id in comparison.newly_failing or not before or both.is_changed(case_id):
            continue
        given = both.new.answers_of(case_id) | both.old.answers_of(case_id)
        pairs = [(before.get(repeat), answer) for repeat, answer in answers.items()]
        is_same = len(given) == 1 or all(None in pair or pair[0] == pair[1] for pair in pairs)
        if not is_same:
            n_other += 1
        elif given and not given & several:
            n_same += 1
    by_few: set[str] = set()
    for case_id, checks in (*comparison.newly_failing.items(), *comparison.passed_late.items()):
        if any(check.never_failed for check in checks):
            by_few.add(case_id)
    wavers = False
    for case_id in both.new.tried_again:
        new = both.new
        counted = new.first_answers(case_id, ENOUGH_ALIKE) if case_id in by_few else new.answers_of(case_id)
        wavers = wavers or len(counted) > 1
    deterministic = not wavers and is_deterministic(n_same, n_other, len(comparison.newly_failing), n_telling)
    # Where checks turn both ways, they may do so by chance, however alike the other answers are.
    turns_one_way = comparison.n_fixed == 0
    at_once = deterministic and turns_one_way and not comparison.flipped_before
    return Confirmation(deterministic, at_once, both.new)


def with_broken(
    comparison: CaseComparison, confirmed: Confirmation, *, may_be_at_once: bool = False
) -> tuple[dict[str, CaseStanding], list[OpenCheck]]:
    """The cases with those that are broken for sure, and the newly failing checks that are not yet known to be.

    ``may_be_at_once``: nothing is tried again, and a deterministic agent needs no more than one try.
    """
    standings = dict(comparison.standings)
    unconfirmed: list[OpenCheck] = []
    deterministic = confirmed.deterministic
    n_broken = 0
    for case_id, checks in (*comparison.newly_failing.items(), *comparison.passed_late.items()):
        for check in checks:
            check.answers = confirmed.records.first_answers(case_id, ENOUGH_ALIKE)
    for case_id, checks in comparison.passed_late.items():
        # The first tries decide: nobody tries a broken check again until it passes.
        for check in checks:
            if check.is_broken(deterministic=deterministic):
                standings[case_id] = _standing_with(standings[case_id], "broken", check)
    for checks in comparison.newly_failing.values():
        n_broken += any(check.is_broken(deterministic=deterministic) for check in checks)
    # Once five are broken the others are listed: chance may have made some of them fail.
    at_once = may_be_at_once and confirmed.at_once and n_broken < MOST_AT_ONCE
    for case_id, checks in comparison.newly_failing.items():
        broken: OpenCheck | None = None
        for check in checks:
            one_is_enough = at_once and check.never_failed and not check.is_answered
            if one_is_enough or check.is_broken(deterministic=deterministic):
                broken = broken or check
            else:
                unconfirmed.append(check)
        if broken is not None:
            standings[case_id] = _standing_with(standings[case_id], "broken", broken)
        elif standings[case_id].kind != "broken":
            standings[case_id] = _standing_with(standings[case_id], "newly failing", checks[0])
    return standings, unconfirmed


def _standing_with(standing: CaseStanding, kind: CaseKind, check: OpenCheck) -> CaseStanding:
    """How a case stands by a check that failed so often."""
    return replace(
        standing,
        kind=kind,
        check=check.metric,
        n_failed=check.n_failed,
        n_tries=check.n_failed,
        needed=check.needed,
        passed_before=check.passed_before,
    )


def chance_of_unconfirmed(comparison: CaseComparison, *, in_outage: bool) -> float:
    """The chance of so many cases with a newly failing check if nothing had changed.

    ``in_outage``: the agent failed for a while, so that its failures are one event and not many.
    """
    n_failing = 0
    for checks in comparison.newly_failing.values():
        n_failing += not in_outage or any(not check.is_answered for check in checks)
    return chance_of_so_many(n_failing, comparison.chances)
