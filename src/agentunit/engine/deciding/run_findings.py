"""What is wrong with a run: cases with the same cause are one finding, the most frequent of the gravest kind first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from agentunit.core.records import Record
from agentunit.core.results import STATES, CaseCounts, CaseState, RunFinding, Score
from agentunit.core.score_block import Cause, CauseGroup, TallyColumns, reason_in
from agentunit.engine.deciding.case_findings import why_failed
from agentunit.engine.deciding.causes import (
    DOUBT,
    EXCEPTION,
    FACT,
    cause_of_check,
    cause_of_doubt,
    fact_of,
    slices_of,
    why_low,
)
from agentunit.engine.deciding.checks import CheckRule, check_rules
from agentunit.engine.deciding.cut_offs import is_low_score
from agentunit.metrics.base import MetricInfo
from agentunit.metrics.evidence import NOT_MEASURED
from agentunit.metrics.inputs import Item
from agentunit.metrics.trust import describe_trust

ALLOWED = "wrong, allowed"
"""How a wrong case stands that a gate allows."""
# The gravest first.
_WORDS = ("broken", "newly failing", "wrong", "newly flaky", "lost", ALLOWED, "flaky", FACT, DOUBT)
_LONGEST_NAME = 100
_IDS_KEPT = 200
_FEWEST_IN_SLICE = 3
_SHARE_IN_SLICE = 0.8
_MORE_THAN_ELSEWHERE = 0.2
# Checks that fail for many reasons: others that fail beside them say why.
_TELL_LITTLE = ("json_schema", "regex", "assertions", "task_success", "contains", "exact_match")
# A file may bring a new message, or a new value of a field, with every record.
_MOST_GROUPS, _MOST_SLICES = 1_000, 2_000
_REST = "for further reasons"
_NAMES = {
    "missing call": "did not call {}",
    "further call": "called {}, which most peers did not",
    "other arguments": "called {}",
    "no answer": "no final answer",
    "loop": "called {} again and again",
    "not supported": "the evidence does not support {}",
    "leaves its peers": "called {}",
}
# Kinds whose words say all there is to say.
_SPEAKING_KINDS = frozenset((EXCEPTION, "failed call"))
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_VALUES = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*\b|\d+(?:[.,:]\d+)*")


class CauseGroups:
    """Takes the causes of cases one by one, in dataset order; those that are alike are one finding."""

    def __init__(self, groups: Iterable[CauseGroup] = ()) -> None:
        self._groups = {_key(group.first): group for group in groups}

    def add(self, cause: Cause) -> None:
        """Take the cause of one more record."""
        self._add(CauseGroup(cause, 1, [cause.case_id], 1, dict.fromkeys(cause.slices, 1), True, cause.case_id))

    def _add(self, found: CauseGroup) -> None:
        key = _key(found.first)
        if key not in self._groups and len(self._groups) >= _MOST_GROUPS:
            key = (found.first.word, _REST, "", "")
        group = self._groups.get(key)
        if group is None:
            self._groups[key] = found
            return
        group.n_records += found.n_records
        group.is_alike = group.is_alike and found.is_alike and found.first.words == group.first.words
        if found.n_cases == 1 and found.last_id == group.last_id:
            # Another repeat of the same case.
            return
        group.n_cases += found.n_cases
        group.last_id = found.last_id
        if len(group.ids) < _IDS_KEPT:
            new = [case_id for case_id in found.ids if case_id not in group.ids]
            group.ids += new[: _IDS_KEPT - len(group.ids)]
        for slice, n in found.slices.items():
            if slice in group.slices or len(group.slices) < _MOST_SLICES:
                group.slices[slice] = group.slices.get(slice, 0) + n

    def merge(self, groups: Iterable[CauseGroup]) -> None:
        """Take the groups of the records that follow."""
        for group in groups:
            self._add(group)

    def groups(self) -> list[CauseGroup]:
        """Every group: the gravest first, and of these the most frequent."""
        return sorted(self._groups.values(), key=lambda group: (_gravity(group.first.word), -group.n_cases))

    def findings(
        self,
        n_cases: int = 0,
        slice_counts: Mapping[str, int] | None = None,
    ) -> list[RunFinding]:
        """What is wrong.

        ``slice_counts`` says how many of all ``n_cases`` are of each kind: what most cases of a finding share and
        others do not is its slice.
        """
        found: list[RunFinding] = []
        for group in self.groups():
            first = group.first
            says_why = first.kind not in _SPEAKING_KINDS and first.kind not in _NAMES
            is_named_alike = group.is_alike or first.kind in _NAMES
            name = cause_name(first.kind, first.words if is_named_alike else _shape(first))
            # Where cases differ in what a check says, the example says what it was of this one.
            evidence = f"{first.words}; answer: {first.error}" if says_why and not group.is_alike else first.error
            slice = _slice_of(group, slice_counts or {}, n_cases)
            ids = tuple(group.ids)
            where, n_of = (None, n_cases) if slice is None else slice
            found.append(
                RunFinding(
                    first.failure or first.kind,
                    evidence,
                    first.place or None,
                    first.line or None,
                    group.n_records,
                    ids,
                    "",
                    first.kind,
                    name,
                    where,
                    group.n_cases,
                    n_of,
                    first.word,
                    first.repeat,
                    first.reference,
                )
            )
        return found


def _gravity(word: str) -> int:
    return _WORDS.index(word) if word in _WORDS else len(_WORDS)


def _key(cause: Cause) -> tuple[str, str, str, str]:
    # Where an agent is when its time is up is chance; where it raises is not.
    place = "" if cause.failure == "timeout" else cause.place
    return cause.word, f"{cause.kind} {cause.failure}", _shape(cause), place


def _shape(cause: Cause) -> str:
    """What causes share that are alike."""
    if cause.kind == EXCEPTION:
        return message_shape(cause.words)
    return _VALUES.sub("#", _QUOTED.sub("…", cause.words)).removesuffix(": …")


def message_shape(message: str) -> str:
    """A message without what differs from case to case: numbers, ids and quoted values.

    A message that is nothing but one quoted word, as that of ``KeyError``, keeps it.

    >>> message_shape("ValueError: no order 'A-7' in 12 rows"), message_shape("KeyError: 'OPENAI_API_KEY'")
    ('ValueError: no order … in # rows', "KeyError: 'OPENAI_API_KEY'")
    """
    kind, _, said = message.partition(": ")
    if not _QUOTED.fullmatch(said.strip()):
        said = _QUOTED.sub("…", said)
    return f"{kind}: {_VALUES.sub('#', said)}".removesuffix(": ")


def cause_name(kind: str, words: str) -> str:
    """What a cause is called: its words, with what their kind adds to them.

    >>> cause_name("missing call", "cancel_order"), cause_name("failed call", "book: Error: no seats left")
    ('did not call cancel_order', 'book failed: no seats left')
    >>> cause_name("contains", 'missing: "24 months"'), cause_name("exception", "ValueError: no such city")
    ('contains: missing: "24 months"', 'ValueError: no such city')
    """
    if kind == "failed call":
        tool, _, said = words.replace(": Error: ", ": ", 1).partition(": ")
        words = f"{tool} failed: {said}" if said else f"{tool} failed"
    if kind in _SPEAKING_KINDS:
        name = words
    elif kind in _NAMES:
        name = _NAMES[kind].format(words)
    else:
        name = f"{kind}: {words}" if words else kind
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _slice_of(group: CauseGroup, counts: Mapping[str, int], n_cases: int) -> tuple[str, int] | None:
    """The kind of case that most of a group are and others less often, and how many cases are of it; or ``None``."""
    if group.n_cases < _FEWEST_IN_SLICE or not n_cases:
        return None
    best: tuple[float, str] | None = None
    for slice, n in group.slices.items():
        n_of_kind = counts.get(slice, 0)
        share, elsewhere = n / group.n_cases, n_of_kind / n_cases
        if share >= _SHARE_IN_SLICE and share - elsewhere >= _MORE_THAN_ELSEWHERE:
            best = max(best or (0.0, ""), (share - elsewhere, slice))
    if best is None:
        return None
    return best[1], counts.get(best[1], 0)


def _is_trusted(info: MetricInfo, backend: str) -> bool:
    """Whether low scores of a backend are worth a doubt: those of a weak one accuse as many good cases as bad ones."""
    return not describe_trust(info, backend).startswith("weak")


def most_telling(checks: Sequence[str]) -> str:
    """Of several checks that fail on one case, the one whose failure explains most: a leak, another language.

    >>> most_telling(["contains", "answer_language"]), most_telling(["mine", "contains"])
    ('answer_language', 'mine')
    """
    return min(checks, key=lambda check: (_TELL_LITTLE.index(check) if check in _TELL_LITTLE else -1, check))


def doubts(info: MetricInfo, score: Score) -> bool:
    """Whether a score is a doubt: a model or a judge that is worth something found the case low."""
    if score.status != "ok" or score.value is None:
        return False
    is_opinion = bool(info.mean_of) or "judge" in score.backend
    if not is_opinion or not is_low_score(info, score) or not _is_trusted(info, score.backend):
        return False
    return reason_in(score.value, score.result.detail) != NOT_MEASURED


class CaseTally:
    """How the cases of files stand, each recorded once, and what is wrong with those that are not fine."""

    def __init__(self, infos: Mapping[str, MetricInfo]) -> None:
        self._infos = infos
        self._rules: dict[str, CheckRule] = {}
        self._clear()
        self.read_checks()

    def _clear(self) -> None:
        self._counts: dict[CaseState, int] = dict.fromkeys(STATES, 0)
        self._causes = CauseGroups()
        self._slices: Counter[str] = Counter()

    def read_checks(self) -> None:
        """Take note of which metrics are checks: a function may turn out to be one."""
        self._rules = check_rules((), self._infos, lambda metric: False)

    @property
    def n_cases(self) -> int:
        """How many cases were taken."""
        return sum(self._counts.values())

    def add(self, case_id: str, item: Item, scores: Mapping[str, Score]) -> None:
        """Take one more case."""
        for slice in slices_of(item.case.metadata):
            if slice in self._slices or len(self._slices) < _MOST_SLICES:
                self._slices[slice] += 1
        state, metric = self._state(scores)
        self._counts[state] += 1
        record = Record(item.case, item.trace, item.outcome)
        cause: Cause | None
        if state == "wrong":
            why = why_failed(scores[metric], self._rules[metric].needs)
            cause = cause_of_check(case_id, None, record, scores, metric, why, "wrong")
        elif state == "doubtful":
            cause = cause_of_doubt(case_id, None, record, scores, metric, why_low(scores[metric]))
        else:
            cause = fact_of(case_id, None, record, scores)
        if cause is not None:
            self._causes.add(cause)

    def _state(self, scores: Mapping[str, Score]) -> tuple[CaseState, str]:
        """How a case stands, and the metric that says so."""
        is_checked = False
        failing: list[str] = []
        for metric, rule in self._rules.items():
            score = scores.get(metric)
            # As of a row: informational scores, and those without a value, decide nothing.
            if score is None or score.value is None or score.status != "ok":
                continue
            if not rule.passes(score.value):
                failing.append(metric)
            is_checked = True
        if failing:
            return "wrong", most_telling(failing)
        for metric, info in self._infos.items():
            if metric not in self._rules and metric in scores and doubts(info, scores[metric]):
                return "doubtful", metric
        return ("fine" if is_checked else "unknown"), ""

    def take(self) -> TallyColumns:
        """What was taken so far, which is forgotten."""
        columns = TallyColumns(list(self._counts.values()), self._causes.groups(), dict(self._slices))
        self._clear()
        return columns

    def merge(self, columns: TallyColumns, numbered: Mapping[str, str]) -> None:
        """Take what another process took of the records that follow, with the ids that cases without one have here."""
        if numbered:
            for group in columns.groups:
                first_id = numbered.get(group.first.case_id, group.first.case_id)
                group.first = structs.replace(group.first, case_id=first_id)
                group.ids = [numbered.get(case_id, case_id) for case_id in group.ids]
                group.last_id = numbered.get(group.last_id, group.last_id)
        for state, n in zip(STATES, columns.counts, strict=True):
            self._counts[state] += n
        self._causes.merge(columns.groups)
        self._slices.update(columns.slices)

    def counts(self) -> CaseCounts:
        """How many cases are fine and so on."""
        return CaseCounts(**self._counts)

    def findings(self) -> list[RunFinding]:
        """What is wrong."""
        return self._causes.findings(self.n_cases, self._slices)


def slice_counts_of(records: Iterable[Any]) -> Counter[str]:
    """How many of some records are of each kind."""
    counts: Counter[str] = Counter()
    for metadata in records:
        counts.update(slices_of(metadata))
    return counts
