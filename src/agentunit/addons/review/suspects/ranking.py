"""Runs in the order of how likely they went wrong: how far each differs from the other runs of its task.

Nothing is fitted and no label is read. Where a run of a task changed something, what the runs changed is compared, and
a run of a task whose runs do not agree is ranked before one that stands alone against peers who do; else what they
answered is compared. With fewer than two peers there is no verdict. What a run shows by itself (a tool whose last
call failed, a loop, no answer) is evidence to read and decides only between runs that differ alike: alone, it does
not tell good runs from bad ones.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from math import fsum
from typing import Literal

from msgspec import Struct

from agentunit.addons.review.suspects._answers import AnswerSignature, answer_difference
from agentunit.addons.review.suspects.signatures import RunSignature, Signatures
from agentunit.addons.review.suspects.suspect_evidence import SuspectEvidence, explain
from agentunit.addons.review.suspects.tasks import TaskBy, TaskRuns, group_tasks
from agentunit.addons.review.suspects.tool_marks import ToolMark

# How far one of several runs of a task differs from the others. Nothing is fitted; 0 is full agreement.


def set_difference(own: Set[object], other: Set[object]) -> float:
    """How far two sets differ, from 0 (equal) to 1 (nothing shared).

    Half of it is whether they are equal at all, half the Jaccard distance: one wrong booking among five right ones is
    a wrong result, and less wrong than five.

    >>> set_difference({"a", "b"}, {"a", "b"}), set_difference({"a"}, {"a", "b"}), set_difference({"a"}, {"b"})
    (0.0, 0.75, 1.0)
    >>> set_difference(set(), set()), set_difference(set(), {"a"})
    (0.0, 1.0)
    """
    if own == other:
        return 0.0
    return 0.5 + 0.5 * (1.0 - len(own & other) / len(own | other))


def mean_difference(differences: Sequence[float]) -> float | None:
    """The mean over the peers of a run; ``None`` without peers.

    >>> mean_difference([0.0, 1.0, 1.0, 1.0]), mean_difference([])
    (0.75, None)
    """
    # Exactly rounded: runs that differ alike must tie, in whatever order their peers come.
    return fsum(differences) / len(differences) if differences else None


def suspicion(difference: float, task_difference: float) -> float:
    """How likely a run went wrong: half by how far it differs from its peers, half by how far runs of its task differ.

    Runs that all do something else are mostly all wrong, for one thing is right. One that stands alone against peers
    who agree may be the only one that is right.

    >>> suspicion(1.0, 1.0), suspicion(1.0, 0.5), suspicion(0.0, 0.0)
    (1.0, 0.75, 0.0)
    """
    return (difference + task_difference) / 2


def percentile_rank(ordered: Sequence[float], value: float) -> float:
    """The share of values, given in ascending order, that lie below one; those equal to it count half.

    >>> percentile_rank([1, 2, 2, 9], 2), percentile_rank([1, 2, 2, 9], 9), percentile_rank([], 3)
    (0.5, 0.875, 0.5)
    """
    if not ordered:
        return 0.5
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 / len(ordered)


FEWEST_PEERS = 2
MOST_PEERS = 100
"""A run of a task with more is compared with so many of them, spread evenly: more would not change the verdict."""
MOST_EXPLAINED = 10_000
"""So many suspects are explained, and grouped by cause."""
SUSPICIOUS_FROM = 0.5
"""A run that differs from its peers by more than that, on the mean, is called a suspect."""

_MOST_REMEMBERED = 100_000

Basis = Literal["effects", "answers"]


class Suspect(Struct, frozen=True):
    """One run with its rank, which goes by ``suspicion``, from 0 to 1.

    ``difference`` is its mean difference from ``n_peers`` runs of its task, ``task_difference`` that of all runs of
    the task. Where effects are compared, suspicion is the mean of both; where answers are, and of a run that ended with
    an error, it is the difference.
    ``repeat`` counts from 0 and is one of ``n_repeats``, ``source`` is its file. ``length_percentile`` and
    ``steps_percentile`` say how long the run is among all runs of the input, from 0 to 100: a matter of how hard its
    task is, which is not used. ``slices`` is what the metadata of its case say, and ``place`` its number in the input,
    from 0.
    """

    rank: int
    case_id: str
    repeat: int
    source: str
    suspicion: float
    difference: float
    task_difference: float
    n_peers: int
    basis: Basis
    task_by: TaskBy
    n_steps: int
    n_characters: int
    steps_percentile: float
    length_percentile: float
    evidence: tuple[SuspectEvidence, ...]
    slices: tuple[str, ...]
    place: int
    n_repeats: int = 1

    @property
    def is_suspect(self) -> bool:
        """Whether it differs from most of its peers."""
        return self.difference > SUSPICIOUS_FROM


class Unranked(Struct, frozen=True):
    """Runs without a verdict, with the reason."""

    reason: str
    n_runs: int
    first_cases: tuple[str, ...]


class SuspectReport(Struct, frozen=True):
    """What was found: ``runs`` in the order of their ranks; ``n_tasks`` counts those with enough runs.

    ``n_with_task_field`` counts the runs that have ``task_field``, where the user names one.
    """

    n_runs: int
    n_tasks: int
    runs: list[Suspect]
    unranked: list[Unranked]
    tools: list[ToolMark]
    task_by: dict[str, int]
    slice_counts: dict[str, int]
    task_field: str | None = None
    n_with_task_field: int | None = None

    @property
    def suspects(self) -> list[Suspect]:
        """The runs that differ from most of their peers."""
        return [each for each in self.runs if each.is_suspect]


class RankedRun(Struct, frozen=True, gc=False):
    """How far one run differs from its peers: what ranks are made of."""

    place: int
    suspicion: float
    difference: float
    task_difference: float
    n_peers: int
    basis: Basis


def rank_runs(
    signatures: Signatures,
    *,
    alike: Callable[[list[str]], list[list[int]]] | None = None,
    n_explained: int = 0,
) -> SuspectReport:
    """Rank all runs that have peers. The evidence of suspects is put into words, and of at least the first so many.

    ``alike`` groups questions that mean the same (``tasks.groups_alike``), where an encoder is at hand.
    """
    written = signatures.written()
    changes = [frozenset(number for number in run.effects if number in written) for run in signatures.runs]
    verdicts: list[RankedRun] = []
    task_of: dict[int, TaskRuns] = {}
    witnesses_of: dict[int, list[int]] = {}
    unranked: dict[str, list[int]] = {}
    n_tasks = 0
    by: Counter[str] = Counter()
    for task in group_tasks(signatures.keys, alike=alike):
        witnesses = _witnesses(task.runs, signatures.runs)
        ended_well = set(witnesses)
        ranked: list[int] = []
        left: list[int] = []
        for place in task.runs:
            (ranked if len(witnesses) - (place in ended_well) >= FEWEST_PEERS else left).append(place)
        if left:
            unranked.setdefault(_why_unranked(task.runs), []).extend(left)
        if not ranked:
            continue
        found = _verdicts(task, ranked, witnesses, signatures, changes, any_written=bool(written))
        if not found:
            unranked.setdefault("no run of its task changed anything or gave an answer", []).extend(ranked)
            continue
        n_tasks += 1
        by[task.by] += len(ranked)
        verdicts += found
        task_of |= dict.fromkeys(ranked, task)
        witnesses_of |= dict.fromkeys(ranked, witnesses)
    order = sorted(verdicts, key=lambda each: (-each.suspicion, *_tie_break(signatures.runs[each.place]), each.place))
    steps = array("I", sorted(run.n_steps for run in signatures.runs))
    lengths = array("I", sorted(run.n_characters for run in signatures.runs))
    suspects = []
    difference = _remembering()
    n_repeats = Counter((run.source, run.case_id) for run in signatures.runs)
    for rank, verdict in enumerate(order, 1):
        run, task = signatures.runs[verdict.place], task_of[verdict.place]
        evidence: tuple[SuspectEvidence, ...] = ()
        if rank <= n_explained or (verdict.difference > SUSPICIOUS_FROM and rank <= MOST_EXPLAINED):
            peers = _peers(verdict.place, witnesses_of[verdict.place])
            evidence = explain(
                verdict.place,
                peers,
                signatures,
                changes,
                verdict.basis,
                by_name=_by_name(task),
                difference=difference,
            )
        suspects.append(
            Suspect(
                rank,
                run.case_id,
                run.repeat,
                run.source,
                round(verdict.suspicion, 4),
                round(verdict.difference, 4),
                round(verdict.task_difference, 4),
                verdict.n_peers,
                verdict.basis,
                task.by,
                run.n_steps,
                run.n_characters,
                round(100 * percentile_rank(steps, run.n_steps), 1),
                round(100 * percentile_rank(lengths, run.n_characters), 1),
                evidence,
                tuple(f"{field}={value}" for field, value in map(signatures.slices.__getitem__, run.slices)),
                run.place,
                n_repeats[run.source, run.case_id],
            )
        )
    left_out = [
        Unranked(reason, len(places), tuple(signatures.runs[place].case_id for place in places[:3]))
        for reason, places in unranked.items()
    ]
    counts = Counter(number for run in signatures.runs for number in run.slices)
    slices = {"=".join(signatures.slices[number]): count for number, count in counts.items()}
    field = signatures.task_field
    return SuspectReport(
        len(signatures.runs),
        n_tasks,
        suspects,
        left_out,
        signatures.marks.all(),
        dict(by),
        slices,
        field,
        None if field is None else sum(each.by_field for each in signatures.keys),
    )


def _witnesses(runs: Sequence[int], signatures: Sequence[RunSignature]) -> list[int]:
    """The runs of a task that others are compared with: one that ended with an error does not say what is right."""
    return [place for place in runs if signatures[place].error is None]


def _why_unranked(runs: Sequence[int]) -> str:
    if len(runs) > FEWEST_PEERS:
        return "other runs of the same task ended with an error; two without are needed"
    return "no other run of the same task" if len(runs) == 1 else "one other run of the same task; two are needed"


def _verdicts(
    task: TaskRuns,
    runs: Sequence[int],
    witnesses: Sequence[int],
    signatures: Signatures,
    changes: Sequence[frozenset[int]],
    *,
    any_written: bool,
) -> list[RankedRun]:
    """What is said of each of these runs of one task; nothing where there is nothing to compare."""
    if any(changes[place] for place in task.runs):
        held = {place: _held(changes[place], signatures, _by_name(task)) for place in task.runs}
        return _compared(runs, witnesses, "effects", lambda own, other: set_difference(held[own], held[other]))
    answers = {place: signatures.runs[place].answer for place in task.runs}
    has_stated = all((own := answers[place]) is not None and own.stated is not None for place in witnesses)
    if any_written and not has_stated and any(signatures.runs[place].path for place in task.runs):
        # All of them agree that nothing is to be changed. How each words its last sentence says nothing. Runs that
        # call no tool at all only answer, whatever other tasks of the input are about.
        return [RankedRun(place, 0.0, 0.0, 0.0, len(_peers(place, witnesses)), "effects") for place in runs]
    if all(each is None for each in answers.values()):
        return []
    return _compared(runs, witnesses, "answers", _answer_differences(answers))


def _compared(
    runs: Sequence[int],
    witnesses: Sequence[int],
    basis: Basis,
    difference: Callable[[int, int], float],
) -> list[RankedRun]:
    own: dict[int, tuple[float, int]] = {}
    for place in runs:
        peers = _peers(place, witnesses)
        own[place] = mean_difference([difference(place, peer) for peer in peers]) or 0.0, len(peers)
    of_task = mean_difference([own[place][0] for place in witnesses if place in own]) or 0.0
    # Answers are worded differently, so that a task whose answers differ may be one of many right wordings. A run
    # that ended with an error, and so is no witness, is not the only one that is right.
    pooled = set(witnesses) if basis == "effects" else set()
    return [
        RankedRun(place, suspicion(mean, of_task) if place in pooled else mean, mean, of_task, n_peers, basis)
        for place, (mean, n_peers) in own.items()
    ]


def _answer_differences(answers: Mapping[int, AnswerSignature | None]) -> Callable[[int, int], float]:
    known = _remembering()

    def difference(own: int, other: int) -> float:
        mine, theirs = answers[own], answers[other]
        if mine is None or theirs is None:
            return float(mine is not theirs)
        return known(mine, theirs)

    return difference


def _remembering() -> Callable[[AnswerSignature, AnswerSignature], float]:
    """The difference of answers that live as long as it: peers come again and again."""
    known: dict[tuple[int, int], float] = {}

    def difference(own: AnswerSignature, other: AnswerSignature) -> float:
        key = (id(own), id(other)) if id(own) <= id(other) else (id(other), id(own))
        if key not in known:
            if len(known) >= _MOST_REMEMBERED:
                known.clear()
            known[key] = answer_difference(own, other)
        return known[key]

    return difference


def _by_name(task: TaskRuns) -> bool:
    """Whether only names of tools are compared: the same question of two customers is about two orders."""
    return task.by in ("question", "meaning")


def _held(changed: frozenset[int], signatures: Signatures, by_name: bool) -> frozenset[object]:
    return frozenset(signatures.effects.tool(number) for number in changed) if by_name else frozenset(changed)


def _peers(place: int, runs: Sequence[int]) -> list[int]:
    """The other runs of a task, or a hundred of them, spread evenly."""
    if len(runs) <= MOST_PEERS + 1:
        return [each for each in runs if each != place]
    step = len(runs) / MOST_PEERS
    chosen = (runs[int(number * step)] for number in range(MOST_PEERS))
    return [each for each in chosen if each != place]


def _tie_break(run: RunSignature) -> tuple[int, int, int]:
    """Between runs that differ alike: those that raised or gave no answer first, then by calls that never succeeded."""
    return (-(run.error is not None or run.answer is None), -len(run.failed), -(run.loop is not None))
