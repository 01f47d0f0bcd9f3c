"""The graph derived from a run, on runs whose team was set up as a star, a chain, a tree or a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from agentunit.addons.review.labeling.agreement import bootstrap_statistic_interval
from agentunit.core.records import Record
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.formulas.statistics import wilson_interval
from agentunit.multiagent import derived
from agentunit.multiagent.derivation import receivers_of, sender_of
from benchmarks.validity.data import LabelledData
from benchmarks.validity.family import Family
from benchmarks.validity.measure import DECIMALS, Figure, Scorer

DATASET = "marble"
Link = frozenset[str]
Links = frozenset[Link]
RECALL, PRECISION, EXACT = "links found", "found links that are right", "graph is exactly right"
STATED, NEXT_SPEAKER = Scorer("derived, receiver stated", "baseline"), Scorer("derived, receiver unknown", "baseline")
FEWEST_LINKS = 2


def measure(data: LabelledData) -> Family:
    """Compare derived links with stated ones, and the shape of the graph with the declared one."""
    records = data.records(DATASET)
    figures = []
    for scorer, derive in ((STATED, _links_of_events), (NEXT_SPEAKER, _links_of_speakers)):
        pairs = [(derive(record), _links(record.trace)) for record in records]
        found = [(len(ours & truth), len(truth)) for ours, truth in pairs]
        right = [(len(ours & truth), len(ours)) for ours, truth in pairs]
        exact = [(int(ours == truth), 1) for ours, truth in pairs]
        for statistic, counts in ((RECALL, found), (PRECISION, right), (EXACT, exact)):
            figures.append(_figure(scorer, DATASET, statistic, counts))
    shapes = _shapes(records)
    for shape, fits in SHAPES.items():
        for declared, graphs in shapes.items():
            scorer = Scorer(f"fits a {shape}", "baseline")
            counts = [(int(fits(links)), 1) for links in graphs]
            figures.append(_figure(scorer, f"declared {declared}", "shape of the derived graph", counts))
    silent = Counter(_declared(record) for record in records if not _links(record.trace))
    few = {name: len(graphs) for name, graphs in shapes.items()}
    return Family(
        key="multiagent_topology",
        title="The graph derived from a run",
        measured=(
            f"{len(records)} runs of MARBLE (research teams) state who wrote to whom, and by the name of the run "
            "whether the team was set up as a star, a chain, a tree or a graph. The stated links were hidden and "
            "derived again from the messages: with their receivers, and from nothing but the order of the speakers. A "
            "link is a pair of agents, whatever the direction."
        ),
        can=(
            "Where messages name their receivers, the derived graph is the stated one. Where they do not, taking the "
            "next speaker for the receiver misses no link of these runs."
        ),
        cannot=(
            "About one in five links derived from the order of speakers is not real: it joins two conversations that "
            "follow each other. And the talk does not show how a team was set up: runs declared chain or tree talk "
            "like stars."
        ),
        baselines=(),
        headline=(),
        figures=figures,
        trust=(),
        remarks=(
            f"The shape is told for runs with at least {FEWEST_LINKS} links "
            f"({', '.join(f'{name}: {n}' for name, n in few.items())}); in "
            f"{sum(silent.values())} of {len(records)} runs nobody wrote to anybody else "
            f"({', '.join(f'{name}: {silent[name]}' for name in shapes)}). One link fits every shape.",
            "The files declare the set-up by the name of the run alone: their field `coordination_mode` says graph for "
            "all of them.",
        ),
        unit="runs",
    )


def _figure(scorer: Scorer, dataset: str, statistic: str, counts: Sequence[tuple[int, int]]) -> Figure:
    parts, wholes = [part for part, _ in counts], [whole for _, whole in counts]
    interval = bootstrap_statistic_interval(_ratio, (parts, wholes))
    if set(wholes) == {1}:
        # Of yes and no, a bootstrap of all yes would claim no doubt at all.
        interval = wilson_interval(sum(parts), len(parts))
    low, high = (round(interval.low, DECIMALS), round(interval.high, DECIMALS)) if interval else (None, None)
    value = _ratio(parts, wholes)
    return Figure(scorer, dataset, statistic, len(counts), None if value is None else round(value, DECIMALS), low, high)


def _ratio(parts: Sequence[int], wholes: Sequence[int]) -> float | None:
    return sum(parts) / sum(wholes) if sum(wholes) else None


def _declared(record: Record) -> str:
    return str(record.case.metadata["run"]).split("_")[0]


def _shapes(records: Sequence[Record]) -> dict[str, list[Links]]:
    graphs: dict[str, list[Links]] = {}
    for record in records:
        links = _links(record.trace)
        if len(links) >= FEWEST_LINKS:
            graphs.setdefault(_declared(record), []).append(links)
    return dict(sorted(graphs.items()))


def _links(trace: TraceLog) -> Links:
    pairs = [(sender_of(each), name) for each in derived(trace).interactions for name in receivers_of(each)]
    return frozenset(frozenset(pair) for pair in pairs if pair[0] != pair[1])


def _links_of_events(record: Record) -> Links:
    return _links(TraceLog(record.trace.events))


def _links_of_speakers(record: Record) -> Links:
    unaddressed = [
        TraceEvent(event.type, {key: value for key, value in event.payload.items() if key != "to_agent"})
        for event in record.trace.events
    ]
    return _links(TraceLog(unaddressed))


def _is_star(links: Links) -> bool:
    return bool(frozenset.intersection(*links))


def _is_tree(links: Links) -> bool:
    """Whether no link closes a circle."""
    group: dict[str, frozenset[str]] = {}
    for link in links:
        one, other = (group.get(name, frozenset((name,))) for name in sorted(link))
        if one & other:
            return False
        for name in one | other:
            group[name] = one | other
    return True


def _is_chain(links: Links) -> bool:
    degrees = Counter(name for link in links for name in link)
    return _is_tree(links) and max(degrees.values()) <= 2


SHAPES: dict[str, Callable[[Links], bool]] = {"star": _is_star, "chain": _is_chain, "tree": _is_tree}
