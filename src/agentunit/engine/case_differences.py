"""What became of each case that two runs share: which fail now, which are fixed, and which did not change.

Scores say how a case changed, records say whether its answer did. The records of both runs are read once, for this and
for the changes of tools.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from math import comb
from typing import Literal

from agentunit.core.codec import RecordError
from agentunit.core.conversation import exchanges_of, user_kind
from agentunit.core.outcome import outcome_text
from agentunit.core.records import Record
from agentunit.engine.comparison import (
    LISTED_KINDS,
    CaseAnswer,
    CaseDifference,
    CaseKind,
    CaseStanding,
    ScoreChange,
    ToolChange,
)
from agentunit.engine.gate_expressions import LABELED, Gate
from agentunit.engine.paired_scores import BackendScores
from agentunit.engine.scored_run import ScoredRun
from agentunit.engine.tool_changes import RunTools, TooManyTools, tools_changed
from agentunit.formulas.proportions import binomial_tail
from agentunit.metrics.base import MetricInfo
from agentunit.store.schema import StoreError

# However many cases changed, so many of each kind are listed, the first of them with their answers. All are counted.
MOST_LISTED = 200
_MOST_ANSWERED = 25
# Reports mask an answer, which takes time, and then cut it shorter still.
_LONGEST_ANSWER = 2_000
_ROUNDING = 1e-9
# A gate on one of these holds a single value to its threshold as well; a sum, or a share of passes, does not.
_NOT_BY_CASE = ("sum", "pass", LABELED)


@dataclass(frozen=True)
class CountedScores:
    """A metric that counts, in both runs: what a case is judged by."""

    label: str
    info: MetricInfo
    old: BackendScores
    new: BackendScores
    gates: tuple[Gate, ...] = ()

    def gain(self, case_id: str) -> float | None:
        """How much better the case became; ``None`` where a run has no value."""
        before, after = self.old.values.get(case_id), self.new.values.get(case_id)
        if before is None or after is None:
            return None
        return before - after if self.info.direction == "lower" else after - before

    def passes(self, value: float) -> bool | None:
        """Whether a case with this value passes; ``None`` where nothing says which values do.

        Of a metric that only knows pass and fail half of the repeats must pass. Any other needs a gate.
        """
        if self.info.unit == "score" and self.old.is_binary and self.new.is_binary:
            return value <= 0.5 if self.info.direction == "lower" else value >= 0.5
        by_case = [gate for gate in self.gates if not gate.aggregate.startswith(_NOT_BY_CASE)]
        return all(gate.holds(value) for gate in by_case) if by_case else None


@dataclass
class _Found:
    """A case whose scores changed, with the repeats of the baseline and the candidate that show it best."""

    kind: CaseKind
    change: float
    scores: tuple[ScoreChange, ...]
    repeats: tuple[int, int] = (0, 0)


@dataclass
class _Answers:
    """What the records of one run hold: which answers each case has, and in full those that are asked for."""

    digests: dict[str, set[bytes]] = field(default_factory=dict)
    kept: dict[str, CaseAnswer] = field(default_factory=dict)

    def add(self, case_id: str, failed: bool, record: Record, is_wanted: bool) -> None:
        text = _answer_text(record)
        digest = blake2b((text or "").encode("utf-8", "replace"), digest_size=16, key=b"failed" if failed else b"")
        self.digests.setdefault(case_id, set()).add(digest.digest() + (b"" if text is None else b"."))
        if is_wanted:
            error = getattr(record.outcome, "error", None)
            shown = None if error is None and not failed else str(error or "the agent failed and left no message")
            self.kept[case_id] = CaseAnswer(
                None if text is None else text[:_LONGEST_ANSWER], None if shown is None else shown[:_LONGEST_ANSWER]
            )


def _answer_text(record: Record) -> str | None:
    """The answer of a case; of a conversation all of it, because an earlier turn may have changed."""
    turns = exchanges_of(record.trace.events) if user_kind(record.case) is not None else []
    if len(turns) < 2:
        return outcome_text(record.outcome)
    return "\n".join(f"user: {turn.query}\nagent: {turn.answer or '(no answer)'}" for turn in turns)


def case_differences(
    candidate: ScoredRun, baseline: ScoredRun, cases: Collection[str], counted: Sequence[CountedScores]
) -> tuple[list[CaseDifference], dict[str, CaseStanding], tuple[ToolChange, ...], str | None]:
    """The cases that changed, how every case stands, the changes of tools, and what could not be read."""
    found = dict(_by_scores(cases, counted))
    listed = _listed(found)
    tools: tuple[ToolChange, ...] = ()
    answered = [case_id for of_kind in listed for case_id in of_kind[:_MOST_ANSWERED]]
    read = _read_both(candidate, baseline, cases, {case_id: found[case_id].repeats for case_id in answered})
    if isinstance(read, tuple):
        answers, (tools, note) = read
    else:
        answers, note = None, read
    differences = []
    for case_id in chain.from_iterable(listed):
        each = found[case_id]
        difference = CaseDifference(case_id, each.kind, each.scores)
        if answers is not None:
            old, new = answers
            same = old.digests.get(case_id) == new.digests.get(case_id)
            sides = old.kept.get(case_id), new.kept.get(case_id)
            difference = replace(difference, same_answer=same, baseline=sides[0], candidate=sides[1])
        differences.append(difference)
    standings: dict[str, CaseStanding] = {}
    n_other = 0
    for case_id in sorted(cases):
        if case_id in found:
            kind = found[case_id].kind
        else:
            changed = answers is not None and answers[0].digests.get(case_id) != answers[1].digests.get(case_id)
            kind = "other answer" if changed else "unchanged"
            n_other += changed
            if changed and n_other <= MOST_LISTED:
                differences.append(CaseDifference(case_id, "other answer", same_answer=False))
        ok_before, ok_now = (_is_ok(case_id, counted, side) for side in ("old", "new"))
        every_repeat = kind == "newly failing" and _Tries.of(case_id, counted).all_lost
        standings[case_id] = CaseStanding(kind, ok_before, ok_now, every_repeat)
    return differences, standings, tools, note


def count_kinds(standings: Mapping[str, CaseStanding]) -> dict[CaseKind, int]:
    """How many cases there are of each kind."""
    n_by_kind: dict[CaseKind, int] = dict.fromkeys((*LISTED_KINDS, "unchanged"), 0)
    for each in standings.values():
        n_by_kind[each.kind] += 1
    return n_by_kind


@dataclass(frozen=True)
class _Tries:
    """Which repeats of a case meet every counted metric of which one can say, in the baseline and now."""

    before: Sequence[bool]
    now: Sequence[bool]

    @classmethod
    def of(cls, case_id: str, counted: Sequence[CountedScores]) -> _Tries:
        sides: list[list[bool]] = []
        for side in ("old", "new"):
            by_repeat: dict[int, bool] = {}
            for each in counted:
                for repeat, value in getattr(each, side).repeats.get(case_id, {}).items():
                    passes = each.passes(value) if each.info.direction != "none" else None
                    if passes is not None:
                        by_repeat[repeat] = by_repeat.get(repeat, True) and passes
            sides.append(list(by_repeat.values()))
        return cls(*sides)

    @property
    def all_lost(self) -> bool:
        """Whether every repeat fails now, and every one of the baseline passed."""
        return bool(self.before and self.now) and all(self.before) and not any(self.now)

    @property
    def could_be_lost(self) -> float:
        """The chance that all failures are those of now, if they fell on repeats at random; 0.0 for other numbers."""
        n_failed = len(self.before) + len(self.now) - sum(self.before) - sum(self.now)
        if not self.before or not self.now or n_failed != len(self.now):
            return 0.0
        return 1.0 / comb(len(self.before) + len(self.now), n_failed)


def chance_of_broken(standings: Mapping[str, CaseStanding], counted: Sequence[CountedScores]) -> float | None:
    """The chance of so many cases that fail in every repeat now and passed in every one before; ``None`` for none.

    If nothing changed, the failures of a case fall on its repeats of both runs at random. So a case with as many
    failures as it has repeats now is lost as a whole with a known chance, and the number of those is binomial.
    """
    n_broken = sum(each.every_repeat for each in standings.values())
    if not n_broken:
        return None
    chances = [chance for case_id in standings if (chance := _Tries.of(case_id, counted).could_be_lost)]
    return binomial_tail(n_broken, len(chances), max(chances))


def _is_ok(case_id: str, counted: Sequence[CountedScores], side: Literal["old", "new"]) -> bool | None:
    """Whether a case meets every counted metric of which one can say; ``None`` where one can say it of none."""
    values = ((each, getattr(each, side).values.get(case_id)) for each in counted if each.info.direction != "none")
    said = {each.passes(value) for each, value in values if value is not None} - {None}
    return None if not said else said == {True}


def _by_scores(cases: Collection[str], counted: Sequence[CountedScores]) -> Iterable[tuple[str, _Found]]:
    counted = [each for each in counted if each.info.direction != "none"]
    # A few tokens more are no news about a case: a quantity makes one worse only where nothing else counts.
    has_scores = any(each.info.unit == "score" for each in counted)
    for case_id in sorted(cases):
        kinds: dict[CaseKind, float] = {}
        scores: list[tuple[float, ScoreChange, CountedScores]] = []
        for each in counted:
            gain = each.gain(case_id)
            if gain is None or abs(gain) <= _ROUNDING:
                continue
            before, after = each.old.values[case_id], each.new.values[case_id]
            passed, passes = each.passes(before), each.passes(after)
            kind: CaseKind | None = None
            if passed is not None and passed != passes:
                kind = "newly failing" if passed else "fixed"
            elif each.info.unit == "score" or not has_scores:
                kind = "worse" if gain < 0.0 else "better"
            if kind is not None:
                kinds[kind] = max(kinds.get(kind, 0.0), abs(gain))
                scores.append((gain, ScoreChange(each.label, before, after, each.info.unit), each))
        worst = next((kind for kind in LISTED_KINDS if kind in kinds), None)
        if worst is not None:
            scores.sort(key=lambda change: change[0], reverse=worst in ("fixed", "better"))
            repeats = _telling_repeats(case_id, scores[0][2], is_loss=scores[0][0] < 0.0)
            changes = tuple(change for _, change, _ in scores)
            yield case_id, _Found(worst, kinds[worst], changes, repeats)


def _telling_repeats(case_id: str, scores: CountedScores, *, is_loss: bool) -> tuple[int, int]:
    """Of a loss the best repeat before and the worst now, of a gain the other way round."""
    (old_low, old_high), (new_low, new_high) = scores.old.extremes(case_id), scores.new.extremes(case_id)
    higher_first = is_loss != (scores.info.direction == "lower")
    return (old_high, new_low) if higher_first else (old_low, new_high)


def _listed(found: Mapping[str, _Found]) -> list[list[str]]:
    """The cases to list, by kind, the greatest change first."""
    by_kind = [[case_id for case_id, each in found.items() if each.kind == kind] for kind in LISTED_KINDS]
    return [sorted(cases, key=lambda case_id: -found[case_id].change)[:MOST_LISTED] for cases in by_kind]


def _read_both(
    candidate: ScoredRun, baseline: ScoredRun, cases: Collection[str], wanted: Mapping[str, tuple[int, int]]
) -> tuple[tuple[_Answers, _Answers], tuple[tuple[ToolChange, ...], str | None]] | str | None:
    """The answers of both runs and the changes of tools; a sentence, or nothing, where records are not to be had."""
    answers: list[_Answers] = []
    tools: list[RunTools] = []
    too_many: str | None = None
    for place, run in enumerate((baseline, candidate)):
        if run.read_records is None:
            return None
        of_run, of_tools = _Answers(), RunTools()
        try:
            for stored in run.read_records():
                if stored.case_id not in cases:
                    continue
                repeats = wanted.get(stored.case_id)
                is_wanted = repeats is not None and repeats[place] == stored.repeat
                of_run.add(stored.case_id, stored.failed, stored.record, is_wanted)
                if too_many is None:
                    try:
                        of_tools.add(stored.record)
                    except TooManyTools as error:
                        too_many = f"tools were not compared: {run.header.label} {error}"
        except (RecordError, StoreError, OSError) as error:
            return f"answers and tools were not compared: the records of {run.header.label} cannot be read ({error})"
        answers.append(of_run)
        tools.append(of_tools)
    changed = () if too_many else tuple(tools_changed(*tools))
    return (answers[0], answers[1]), (changed, too_many)
