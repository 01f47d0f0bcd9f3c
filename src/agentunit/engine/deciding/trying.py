"""Trying failing checks again: how often one must fail to be broken, and which are tried next.

All of it is fixed before the first try: nothing that happens while trying can bend it (the rule is in
``tries_needed``; how often it is wrong was simulated: docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil, inf, log2
from typing import Any

from agentunit.engine.deciding.case_records import case_digester
from agentunit.engine.deciding.checks import ANSWERED, CaseTries, CheckRule, MadeBy, tries_by_case
from agentunit.engine.scoring.scored_run import ScoredRun, has_other_parameters, run_from_store
from agentunit.engine.scoring.stored_rows import MOST_HELD
from agentunit.store.run_store import RunStore
from agentunit.store.runs import RunHeader

MOST_AT_ONCE = 5
"""So many failing checks are tried in one round, and so many broken ones are enough to stop."""
MOST_BEFORE = 10
"""Of earlier tries the newest ten count."""
ENOUGH_ALIKE = 3
"""Of a deterministic agent so many tries that come to the same are enough."""
_MOST_OTHER = 0.1
_LONGEST_WAIT_S = 60.0
# Where the agent answered the calls after the one that failed, it is no outage.
_FEW_WAITS = 3


def tries_needed(n_passed_before: int, n_failed: int) -> int:
    """In how many tries without a pass a check is broken.

    ``n_passed_before`` checks of the run passed before; this one failed in ``n_failed`` of its tries before. The more
    checks there are, the more of them fail by chance several times in a row; and what failed before may do so again.

    >>> tries_needed(66, 0), tries_needed(66, 1), tries_needed(600, 0), tries_needed(1, 0)
    (10, 15, 13, 3)
    """
    return 3 + ceil(log2(max(1, n_passed_before))) + 5 * n_failed


@dataclass(frozen=True, slots=True)
class Before:
    """How a check did before: so many passes of so many tries, the newest ten."""

    n_passed: int
    n_tries: int

    @property
    def n_failed(self) -> int:
        """How often it failed."""
        return self.n_tries - self.n_passed

    @property
    def passed(self) -> bool:
        """Whether it passed in more than half of the tries."""
        return 2 * self.n_passed > self.n_tries


def is_deterministic(n_same: int, n_other: int, n_newly_failing: int, n_telling: int) -> bool:
    """Whether an agent is deterministic: nine of ten cases gave one and the same answer in all tries.

    ``n_same`` cases did, ``n_other`` did not. What newly fails answers otherwise, which says nothing; but one more of
    them, in place of a case that was the same, must not make it look less so. All but one that newly fails are counted
    as the same where they could have been: ``n_telling`` of them, which had an answer of their own before.

    >>> is_deterministic(9, 1, 1, 1), is_deterministic(8, 1, 2, 2), is_deterministic(17, 2, 1, 1)
    (True, True, False)
    >>> is_deterministic(1, 0, 1, 1), is_deterministic(0, 0, 2, 2), is_deterministic(0, 0, 2, 0)
    (True, True, False)
    """
    n_alike = n_same + max(0, min(n_newly_failing - 1, n_telling))
    return n_alike > 0 and n_other <= _MOST_OTHER * (n_alike + n_other) + 1e-9


@dataclass
class OpenCheck:
    """A newly failing check with its tries now, all of which failed: ``answers`` are digests of what came of them.

    ``passed_before`` says how often it passed before, of how many tries, and ``never_failed`` that it failed in none.
    """

    position: int
    case_id: str
    metric: str
    needed: int
    n_failed: int
    passed_before: tuple[int, int] = (0, 0)
    never_failed: bool = True
    answers: set[bytes] = field(default_factory=set)
    has_passed: bool = False
    n_unknown: int = 0
    """In how many tries again the check could not be made."""

    @property
    def is_answered(self) -> bool:
        """Whether it is ``answered`` itself, which an outage makes fail."""
        return self.metric == ANSWERED.name

    def is_broken(self, *, deterministic: bool) -> bool:
        """Whether it has failed often enough without a pass.

        Of a ``deterministic`` agent fewer tries are enough, where they came to the same, to the byte.

        >>> check = OpenCheck(0, "q1", "contains", needed=10, n_failed=3, answers={b"no"})
        >>> check.is_broken(deterministic=False), check.is_broken(deterministic=True)
        (False, True)
        """
        if self.has_passed:
            return False
        # Where the agent did not answer, an outage looks the same: it is asked three times in any case.
        alike = deterministic and self.never_failed and (self.is_answered or len(self.answers) == 1)
        return self.n_failed >= (min(self.needed, ENOUGH_ALIKE) if alike else self.needed)

    def take(self, passed: bool | None, answer: bytes | None) -> None:
        """Take what came of one more try; ``None`` where the check could not be made."""
        if passed is None:
            self.n_unknown += 1
        elif passed:
            self.has_passed = True
        else:
            self.n_failed += 1
            if answer is not None:
                self.answers.add(answer)


class TryingAgain:
    """Which cases to try in each round: at most five failing checks at once, in dataset order.

    A check that passes leaves, and the next one takes its place. Broken ones keep theirs: five are enough to know.
    Where the agent is ``deterministic``, fewer tries are enough, until one of them gives another answer than those
    before. ``most_tries`` bounds the tries of one check. ``n_broken`` cases are known to be broken already. Where it
    is not ``may_be_outage``, a call without an answer is waited for a few times only.

    >>> checks = [OpenCheck(n, f"c{n}", "contains", needed=3, n_failed=1) for n in range(7)]
    >>> trying = TryingAgain(checks)
    >>> trying.next_positions()
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        checks: Sequence[OpenCheck],
        *,
        deterministic: bool = False,
        most_tries: int | None = None,
        n_broken: int = 0,
        may_be_outage: bool = True,
    ) -> None:
        self.checks = sorted(checks, key=lambda check: check.position)
        self._deterministic = deterministic
        self._most_tries = most_tries
        self._n_broken = n_broken
        self._n_waits = 0
        self._most_waits = inf if may_be_outage else _FEW_WAITS
        self._may_be_out = any(check.is_answered for check in checks)

    def is_broken(self, check: OpenCheck) -> bool:
        """Whether a check has failed often enough."""
        return check.is_broken(deterministic=self._deterministic)

    def _is_open(self, check: OpenCheck) -> bool:
        if check.has_passed or self.is_broken(check):
            return False
        if self._most_tries is not None and check.n_failed + check.n_unknown >= self._most_tries:
            return False
        # Tries during an outage say nothing. But what could not be made so often will not be made by trying on.
        return max(check.n_failed, check.n_unknown) < check.needed

    @property
    def ended(self) -> set[tuple[int, str]]:
        """The checks, by position and metric, of which no more tries are wanted, and which are not known to be broken.

        What is broken by few tries is not among them: a later answer may show that the agent is not deterministic.
        """
        checks = [check for check in self.checks if not (self.is_broken(check) or self._is_open(check))]
        return {(check.position, check.metric) for check in checks}

    def _window(self) -> list[OpenCheck]:
        """The checks that are tried in the next round."""
        n_broken = self._n_broken + sum(self.is_broken(check) for check in self.checks)
        is_open = [check for check in self.checks if self._is_open(check)]
        return is_open[: max(0, MOST_AT_ONCE - n_broken)]

    def next_positions(self) -> list[int]:
        """The cases of the next round; none when trying has ended."""
        return list(dict.fromkeys(check.position for check in self._window()))

    def wait_s(self) -> float:
        """How long to wait before the next round: an outage is not a regression. Once it is over, no longer."""
        may_be_out, self._may_be_out = self._may_be_out, False
        if not may_be_out:
            self._n_waits = 0
            return 0.0
        self._n_waits += 1
        if self._n_waits > self._most_waits:
            return 0.0
        return min(_LONGEST_WAIT_S, 2.0 ** (self._n_waits - 1))

    def take(self, position: int, passed: Mapping[str, bool | None], answer: bytes | None) -> None:
        """Take one try of a case: whether each of its checks passed."""
        for check in self.checks:
            if check.position == position:
                if answer is not None and check.answers and answer not in check.answers:
                    self._deterministic = False
                has_passed = passed.get(check.metric)
                if passed.get(ANSWERED.name) is False:
                    self._may_be_out = True
                check.take(has_passed, answer)

    @property
    def most_calls(self) -> int:
        """How many calls of the agent may come at most; a check that passes ends its own.

        That few tries are enough of a deterministic agent is not known before: the next answer may be another one.

        >>> check = OpenCheck(0, "q1", "contains", needed=10, n_failed=3, answers={b"no", b"not now"})
        >>> TryingAgain([check], deterministic=True).most_calls
        7
        """
        left: dict[int, int] = {}
        for check in self.checks:
            if self._is_open(check):
                most = check.needed if self._most_tries is None else min(check.needed, self._most_tries)
                left[check.position] = max(left.get(check.position, 0), most - check.n_failed)
        return sum(left.values())


def newest(passes: Iterable[bool]) -> Before:
    """The newest ten of earlier tries; the newest comes first."""
    counted = list(passes)[:MOST_BEFORE]
    return Before(sum(counted), len(counted))


# Earlier tries of the checks of a baseline: those of runs before it, and what an exported run says of them.
#
# A single try says little about a check. So whether it passed before, and how often it fails by itself, is said by the
# newest ten tries: the baseline's own, then those of earlier runs of the same suite, where the case is the same and the
# same version of the metric, with the same parameters, scored it. Runs that ended in FAIL are left out: a check that
# was broken there and has just been fixed would not be protected, as tries of a broken agent make it look as if it
# never passed.

Earlier = Mapping[tuple[str, str, MadeBy], Sequence[bool]]
"""Earlier tries of a check, the newest first, by case, metric and what scored them."""

_FORMAT = 1


@dataclass
class _Gathered:
    """Tries of checks of the cases of a baseline, gathered run by run, the newest first."""

    digests: dict[str, bytes]
    tries: dict[tuple[str, str, MadeBy], list[bool]] = field(default_factory=dict)

    def add(self, case: CaseTries, digest: bytes) -> None:
        if self.digests.get(case.case_id) != digest:
            return
        for metric, check in case.checks.items():
            newest_first = [check.results[repeat] for repeat in sorted(check.results, reverse=True)]
            self.extend((case.case_id, metric, check.made_by), newest_first)

    def extend(self, check: tuple[str, str, MadeBy], newest_first: Sequence[bool]) -> None:
        known = self.tries.setdefault(check, [])
        known += newest_first
        del known[MOST_BEFORE:]


def earlier_tries(baseline: ScoredRun, rules: Mapping[str, CheckRule], checks: Collection[tuple[str, str]]) -> Earlier:
    """Earlier tries of these checks, by case and metric: of the runs in the baseline's store, or as its file says."""
    cases = {case_id for case_id, _ in checks}
    tries: Earlier = {}
    if baseline.history:
        tries = _from_file(baseline, cases)
    elif baseline.reopen is not None:
        gathered = _Gathered({})
        with baseline.reopen() as store:
            for run in earlier_runs(store, baseline.header):
                gathered.digests = gathered.digests or _digests(baseline, cases)
                _gather(gathered, run, baseline, rules, cases)
        tries = gathered.tries
    return {check: passes for check, passes in tries.items() if check[:2] in checks}


def may_have_earlier(baseline: ScoredRun) -> bool:
    """Whether there may be earlier tries: in long runs they would take minutes, and ten repeats need no more."""
    if baseline.history:
        return True
    is_short = baseline.n_records <= MOST_HELD and baseline.n_repeats < MOST_BEFORE
    return is_short and baseline.reopen is not None and not baseline.header.is_foreign


def earlier_runs(store: RunStore, header: RunHeader) -> Iterator[ScoredRun]:
    """The runs of the same suite and agent before a run, the newest first, as many as can matter."""
    decided = store.own_decisions()
    n_tries = 0
    for earlier in store.runs():
        is_before = earlier.created_at < header.created_at and earlier.id != header.id
        failed = decided.get(earlier.id, (None, ""))[0] == "fail"
        if not is_before or failed or earlier.status != "finished" or not _is_same_suite(earlier, header):
            continue
        run = run_from_store(store, earlier.id, labels=False)
        yield run
        n_tries += run.n_repeats
        if n_tries >= MOST_BEFORE:
            return


def _is_same_suite(earlier: RunHeader, header: RunHeader) -> bool:
    """Whether two runs are of one suite and one agent, set to the same; its versions may differ."""
    if earlier.settings.get("suite") is None and earlier.name != header.name:
        return False
    return all(earlier.settings.get(name) == header.settings.get(name) for name in ("suite", "agent", "set"))


def _digests(run: ScoredRun, cases: Collection[str] | None) -> dict[str, bytes]:
    """What is asked of the cases of a run."""
    digest_of = case_digester(run)
    digests: dict[str, bytes] = {}
    for stored in run.read_records() if run.read_records is not None else ():
        wanted = cases is None or stored.case_id in cases
        if wanted and stored.case_id not in digests:
            digests[stored.case_id] = digest_of(stored.record.case)
    return digests


def _gather(
    gathered: _Gathered,
    run: ScoredRun,
    baseline: ScoredRun,
    rules: Mapping[str, CheckRule],
    cases: Collection[str] | None,
) -> None:
    """Gather the tries of one run before a baseline."""
    digests = _digests(run, cases)
    rules = {metric: rule for metric, rule in rules.items() if not has_other_parameters(run, baseline, metric)}
    for case in tries_by_case(run, rules):
        if case.case_id in digests:
            gathered.add(case, digests[case.case_id])
    # A run that was imported knows of those before it.
    for check, tries in _from_file(run, digests).items():
        if check[1] in rules and gathered.digests.get(check[0]) == digests[check[0]]:
            gathered.extend(check, tries)


def history_for_export(store: RunStore, run: ScoredRun, rules: Mapping[str, CheckRule]) -> dict[str, Any]:
    """What an exported run says of earlier tries of its checks: CI has only that file.

    Of each check the tries as a text of 1 and 0, the newest first, and what scored them.
    """
    if run.history or not may_have_earlier(run):
        return run.history
    gathered = _Gathered(_digests(run, None))
    for earlier in earlier_runs(store, run.header):
        _gather(gathered, earlier, run, rules, None)
    checks: list[list[Any]] = []
    for (case_id, metric, made_by), tries in gathered.tries.items():
        text = "".join("1" if passed else "0" for passed in tries)
        checks.append([case_id, metric, sorted(map(list, made_by)), text])
    return {"format": _FORMAT, "checks": checks} if checks else {}


def _from_file(run: ScoredRun, cases: Collection[str]) -> Earlier:
    """The tries that a file tells of. It may come from anywhere: what is no such thing is left out."""
    tries: dict[tuple[str, str, MadeBy], list[bool]] = {}
    checks = run.history.get("checks") if run.history.get("format") == _FORMAT else None
    for check in checks if isinstance(checks, list) else ():
        with suppress(TypeError, ValueError):
            case_id, metric, makers, text = check
            if case_id in cases and isinstance(text, str):
                made_by = frozenset((str(backend), str(version)) for backend, version in makers)
                tries[str(case_id), str(metric), made_by] = [sign == "1" for sign in text[:MOST_BEFORE]]
    return tries
