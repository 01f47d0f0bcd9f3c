"""Step repetition, on runs in which people marked that agents repeat themselves or begin anew."""

from __future__ import annotations

from typing import Any

from agentunit.addons.review.labeling.label_files import Label
from agentunit.core.records import Record
from agentunit.multiagent import StepRepetitionMetric
from agentunit.multiagent.derivation import steps_of
from benchmarks.validity.baselines import Baseline
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import LabelledCase, score_sets, set_figure

DATASET = "mast_human"
MODES = ("Step repetition", "Trajectory restart")
SHORT = Baseline("short run", "the fewer steps, the better", lambda record: -float(len(steps_of(record.trace))))


def measure(data: LabelledData) -> Family:
    """Score the runs; a run in which people saw the failure mode is a bad one."""
    sets: dict[str, list[LabelledCase]] = {}
    positives = {}
    for mode in MODES:
        cases = [(record, Label(float(not _has(record, mode)))) for record in data.records(DATASET)]
        within = [(record, label) for record, label in cases if record.case.metadata.get("system") == "HyperAgent"]
        for name, chosen in ((f"{mode}, all systems", cases), (f"{mode}, HyperAgent only", within)):
            sets[name] = chosen
            positives[name] = sum(label.value == 0 for _, label in chosen)
    scored = score_sets(sets, [[StepRepetitionMetric()]], [SHORT])
    figures = [set_figure(scorer, name, rows_of[name]) for scorer, rows_of in scored.items() for name in sets]
    # Within one system: pooled, a score need only tell long repairs of code from short sums.
    headline = [figure for figure in figures if figure.dataset == f"{MODES[0]}, HyperAgent only"]
    counted = "; ".join(f"{name}: {n} of {len(sets[name])}" for name, n in positives.items())
    return Family(
        key="multiagent_repetition",
        title="Step repetition",
        measured=(
            "People read runs of two systems (AG2 on mathematics, HyperAgent on repairing code; MAST) and marked which "
            "ways of failing they saw. A good score is low where they saw steps repeated, or work begun again."
        ),
        can=(
            "`step_repetition` counts what it says: steps that share most of their words with an earlier one of the "
            "same agent. It names the steps."
        ),
        cannot=(
            "That it agrees with what people call repetition is not shown: three of 21 runs carry the mark, and they "
            "are the longest ones."
        ),
        baselines=(SHORT,),
        headline=headline,
        figures=figures,
        trust=(),
        remarks=(f"Runs with the mark: {counted}.",),
        unit="runs",
    )


def _has(record: Record, mode: str) -> bool:
    note: Any = record.case.metadata.get("note") or {}
    return bool((note.get("options") or {}).get(mode) == "yes")
