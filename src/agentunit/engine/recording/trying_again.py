"""Trying the newly failing checks of a run again, until they pass or are broken (``deciding/trying.py`` says when).

Each try is recorded and scored like any other, under a repeat number that marks it (``store.runs.FIRST_AGAIN``), so a
run that was killed meanwhile goes on where it stopped and ends with the same verdict.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.core.conversation import user_failure
from agentunit.core.score_block import Place
from agentunit.engine.deciding.case_records import answer_digest
from agentunit.engine.deciding.checks import ANSWERED, CheckRule, rules_of
from agentunit.engine.deciding.compare import open_checks
from agentunit.engine.deciding.gate_expressions import parse_gate
from agentunit.engine.deciding.trying import TryingAgain
from agentunit.engine.recording.runner import stated_cost
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.formulas.text import number
from agentunit.metrics.base import describe
from agentunit.store.run_store import RunStore
from agentunit.store.runs import FIRST_AGAIN, is_again

UNDER_WAY = "trying_again"
"""The setting of a run whose failing checks are being tried again."""


def try_again(
    store: RunStore,
    run_id: str,
    baseline: ScoredRun,
    gates: Sequence[str],
    metrics: Sequence[Any],
    record_places: Callable[[list[Place]], bool],
    *,
    cases: Sequence[DatasetCase] | None = None,
    most_tries: int | None = None,
    announce: Callable[[TryingAgain, ScoredRun], None] = lambda trying, run: None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Try the newly failing checks of a run again.

    ``record_places`` records some tries, and returns whether trying goes on; ``announce`` is told once what is to come.
    ``cases`` are those of the dataset, where it is at hand.
    """
    candidate = run_from_store(store, run_id, labels=False)
    checks = rules_of(candidate, [parse_gate(gate) for gate in gates], baseline)
    if candidate.again_records:
        # A run that was killed may have recorded tries that were not scored.
        score_tries(store, run_id, metrics, checks, cases)
        candidate = run_from_store(store, run_id, labels=False)
    ended: set[tuple[int, str]] = set()
    under_way = False
    n_again = Counter(record.position for record in candidate.again_records)
    while True:
        trying, rules = open_checks(candidate, baseline, gates, metrics, most_tries, ended)
        positions = trying.next_positions()
        if not positions:
            break
        if not under_way:
            announce(trying, candidate)
            _mark(store, run_id, under_way=True)
            under_way = True
        case_ids = {check.position: check.case_id for check in trying.checks}
        while positions:
            wait_s = trying.wait_s()
            if wait_s:
                sleep(wait_s)
            places = [(position, FIRST_AGAIN + n_again[position]) for position in positions]
            goes_on = record_places(places)
            score_tries(store, run_id, metrics, checks, cases)
            for place in places:
                taken = _take(store, run_id, trying, rules, case_ids[place[0]], place)
                n_again[place[0]] += taken
                goes_on = goes_on and taken
            if not goes_on:
                return
            positions = trying.next_positions()
        # A case that answers only now may fail another check, which was not made before. And other tries may have shown
        # that few of them are not enough.
        ended |= trying.ended
        candidate = run_from_store(store, run_id, labels=False)
    if store.find_run(run_id).settings.get(UNDER_WAY):
        _mark(store, run_id, under_way=False)


def score_tries(
    store: RunStore,
    run_id: str,
    metrics: Sequence[Any],
    checks: Mapping[str, CheckRule],
    cases: Sequence[DatasetCase] | None,
) -> None:
    """Score the tries again of a run by those of its metrics that are checks."""
    checked = checked_metrics(metrics, checks)
    if checked:
        score_run(store, run_id, checked, cases=cases, tries_again=True)


def checked_metrics(metrics: Sequence[Any], checks: Mapping[str, CheckRule]) -> list[Any]:
    """The metrics by which tries again are scored: those that are checks, but for what keeps state between cases."""
    return [metric for metric in metrics if metric.name in checks and not describe(metric).stateful]


def _mark(store: RunStore, run_id: str, *, under_way: bool) -> None:
    """Note whether trying is under way: a run that is killed meanwhile is not finished."""
    header = store.find_run(run_id)
    settings = {name: value for name, value in header.settings.items() if name != UNDER_WAY}
    if under_way:
        settings[UNDER_WAY] = True
    store.update_run(run_id, settings, n_planned=header.n_planned)
    store.set_status(run_id, "running" if under_way else "finished")


def _take(
    store: RunStore, run_id: str, trying: TryingAgain, rules: Mapping[str, CheckRule], case_id: str, place: Place
) -> bool:
    """Tell what came of one try; whether it was recorded."""
    stored = next((one for one in store.case(run_id, case_id) if one.place == place), None)
    if stored is None:
        return False
    passed: dict[str, bool | None] = {ANSWERED.name: not stored.failed}
    if user_failure(stored.record.trace) is not None:
        # A simulated user that failed says nothing about the agent.
        passed = {}
    elif not stored.failed:
        for metric, score in store.scores_at(run_id, *place).items():
            rule, value = rules.get(metric), score.result.value
            if rule is not None and value is not None and score.status == "ok":
                passed[metric] = rule.passes(value)
    trying.take(place[0], passed, answer_digest(stored.record, failed=stored.failed))
    return True


def describe_tries(run: ScoredRun) -> str:
    """What trying again took: how many calls of the agent, and what their traces say that they cost."""
    n_calls = len(run.again_records)
    calls = "1 call" if n_calls == 1 else f"{n_calls:,} calls"
    spent_usd = _cost_of_tries(run)
    cost = f", ${number(spent_usd, 'USD')}" if spent_usd else ""
    return f"tried again: {calls}{cost}"


def _cost_of_tries(run: ScoredRun) -> float:
    if run.read_cases is None:
        return 0.0
    costs: list[float] = []
    for stored, _ in run.read_cases({record.case_id for record in run.again_records}):
        if is_again(stored.repeat):
            costs.append(stated_cost(stored.record.trace, stored.record.outcome))
    return fsum(costs)
