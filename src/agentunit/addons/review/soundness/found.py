"""What an examination finds: warnings, each with its cases, its evidence and what hangs on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct, field

from agentunit.addons.review.soundness.material import Material

EVIDENCE_KEPT = 1000
"""How many cases a warning describes one by one; all are named."""


class Hit(NamedTuple):
    """One case that a check found at fault, and the evidence. Hits of one ``group`` are one warning."""

    case: str
    text: str
    group: str = ""


@dataclass(frozen=True)
class SoundnessCheck:
    """One question about a test. ``title`` is what is wrong with its cases, ``advice`` what to do about it.

    ``by_error`` says that not the cases are at fault but the tries of them that ended with an error, ``by_sample``
    that it tries only some of the cases where a model grades.
    """

    name: str
    title: str
    advice: str
    find: Callable[[Material], Iterable[Hit]]
    by_error: bool = False
    by_sample: bool = False


class CaseEvidence(Struct):
    """What speaks against one case."""

    case: str
    text: str


class HeadlineEffect(Struct):
    """How much of the headline hangs on the cases of a warning.

    ``rate`` and ``rate_without`` are pass rates with and without them, as a mean over the runs; where there is no run,
    both are unknown, and ``share`` says how much of a pass rate could hang on them. Where only ``n_tried`` cases were
    tried, it is their share of these, and nothing is known of the others.
    """

    share: float
    rate: float | None = None
    rate_without: float | None = None
    n_runs: int = 0
    n_tried: int | None = None


class SoundnessWarning(Struct):
    """One fault of a test. ``check`` is its name for programs."""

    check: str
    title: str
    advice: str
    n_cases: int
    cases: list[str]
    evidence: list[CaseEvidence]
    effect: HeadlineEffect


class Soundness(Struct):
    """What was examined, what was not and why, and what was found, the faults that matter most first.

    ``functions_called`` names the metrics that called functions of the suite's own with answers that no agent gave.
    """

    n_cases: int
    n_runs: int
    graded_by: list[str] | None
    pass_means: str | None
    rate: float | None
    warnings: list[SoundnessWarning]
    not_examined: list[str] = field(default_factory=list)
    functions_called: list[str] = field(default_factory=list)
