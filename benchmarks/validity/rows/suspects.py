"""Suspects by consensus against whether a run did its task."""

from __future__ import annotations

from agentunit.core.records import Record
from benchmarks.validity.baselines import Baseline
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import Figure
from benchmarks.validity.suspects import (
    CONSENSUS,
    FEWEST_PEERS,
    PRECISION,
    SHORT_RUN,
    SHORT_TEXT,
    SuspectSet,
    mean_over_sets,
    measure_set,
    recorded_sets,
)

NAMES = {
    "taubench_airline_gpt4o": "tau-bench airline",
    "mast_ag2_experiments": "AG2 mathematics (MAST)",
    "tau2_sims": "tau2, three domains",
}
SHORT = Baseline(
    SHORT_RUN.name,
    "the fewer steps, the better (its top tenth is *longest first*)",
    lambda record: -float(len(record.trace.events)),
)
SHORT_WORDS = Baseline(
    SHORT_TEXT.name,
    "the fewer characters its messages have, the better",
    lambda record: -float(sum(len(str(event.payload)) for event in record.trace.events if event.type == "message")),
)
CHOSEN_WITH = ("tau-bench retail, five agents", "tau2 airline, Gemini 2.5 Flash")
"""Recorded sets that were looked at once to decide whether a change of the ranking stays."""


def measure(data: LabelledData) -> Family:
    """Rank the runs of each set without their outcomes; a run that did its task is a good one."""
    measured: list[SuspectSet] = []
    abstained: list[str] = []
    for source, name in NAMES.items():
        records: list[Record] = data.records(source)
        found = measure_set(name, records)
        if found is None:
            abstained.append(f"{name} ({len(records)} runs)")
        else:
            measured.append(found)
    recorded = recorded_sets()
    sets = [*measured, *recorded]
    counted = [each for each in sets if each.fewest_peers >= FEWEST_PEERS]
    return Family(
        key="suspects",
        title="Suspects and the outcome",
        measured=(
            "`agentunit score --suspects` ranked runs by how far they differ from other runs of the same task; what "
            "they ended with was known to nobody but this table. The question is whether failed runs are ranked before "
            "those that did their task. Nothing is fitted to them."
        ),
        can=(
            "Saying where to look first among runs that were recorded more than twice: what most runs of a task do is "
            "mostly right, and the evidence names the call or the answer that differs."
        ),
        cannot=(
            "Saying that a run is wrong: on a task that most runs fail, the one that does it is the suspect. It says "
            "nothing about tasks that ran only once or twice, and little where right answers differ in wording or "
            "every right run takes another way. Within one task it often ranks no better than chance."
        ),
        baselines=(SHORT, SHORT_WORDS),
        headline=_means(counted),
        figures=[figure for each in sets for figure in each.figures],
        trust=(),
        outside_mean={
            each.name: f"its runs have {_peers(each)} peers" + " each" * (each.fewest_peers == each.most_peers)
            for each in sets
            if each.fewest_peers < FEWEST_PEERS
        },
        remarks=_remarks(sets, recorded, abstained),
        unit="runs",
    )


def _means(sets: list[SuspectSet]) -> list[Figure]:
    name = f"mean of {len(sets)} sets with {FEWEST_PEERS} peers or more"
    wanted = (
        (scorer, statistic) for statistic in ("AUROC", PRECISION) for scorer in (CONSENSUS, SHORT_RUN, SHORT_TEXT)
    )
    found = (mean_over_sets(sets, scorer, statistic, name) for scorer, statistic in wanted)
    return [each for each in found if each is not None]


def _remarks(sets: list[SuspectSet], recorded: list[SuspectSet], abstained: list[str]) -> tuple[str, ...]:
    rests_on = "; ".join(
        f"{each.name}: {each.n_tasks} tasks, {_peers(each)} peers"
        + (f", {each.n_unranked} runs not ranked" if each.n_unranked else "")
        for each in sets
    )
    remarks = [
        f"On what the verdicts rest. {rests_on}." if sets else "No run had two peers.",
        "Runs of one task are resampled together; the interval of the mean takes the sets as independent. *Short run* "
        "measures how hard a task is more than how a run went. Of runs that are ranked alike across the border of the "
        "top tenth, each counts by its share. A set is significantly worse than it where the interval "
        "of the difference lies below zero. All answers of GSM8K have one step: hold it against *short text*.",
    ]
    if abstained:
        remarks.append(f"Not ranked, because no run has two peers: {', '.join(abstained)}.")
    if recorded:
        remarks += [
            "Where effects are compared, half of a run's suspicion is how far it differs from its peers, half how far "
            "all runs of its task differ from each other. That was chosen on tau-bench airline (precision in the top "
            "10 % 0.833 before, 0.929 after) and stays because, looked at once, it helped on two other sets: "
            "tau-bench retail, five agents, 0.814 before, 0.901 after; tau2 airline 0.375 before, 0.625 after; AUROC "
            "0.782 and 0.783, 0.814 and 0.825. Where answers are compared it does not help (AG2 mathematics 0.697 "
            "before, 0.663 after), and is not done.",
            "Recorded from public results that are not part of the labeled data, and on which nothing was designed: "
            + "; ".join(f"{each.name}: {each.source} ({each.measured})" for each in recorded)
            + ". Measured once, after the ranking was settled: "
            + ", ".join(each.name for each in recorded if each.name not in CHOSEN_WITH)
            + ".",
        ]
    return tuple(remarks)


def _peers(each: SuspectSet) -> str:
    return (
        str(each.fewest_peers) if each.fewest_peers == each.most_peers else f"{each.fewest_peers} to {each.most_peers}"
    )
