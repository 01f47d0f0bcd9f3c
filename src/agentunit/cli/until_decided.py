"""``agentunit run --repeats auto``: what is to be decided, and recording until it is, in one go or in several."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from agentunit.cli.run import leave_if_stopped, record_with_progress, score_with_progress
from agentunit.engine.gate_expressions import parse_gate
from agentunit.engine.judge_evidence import EVIDENCE
from agentunit.engine.known_failures import set_aside_on
from agentunit.engine.paired_scores import case_ids
from agentunit.engine.runner import Caps, Plan
from agentunit.engine.scored_run import ScoredRun, SequentialAnswer, find_scored_run, run_from_store
from agentunit.engine.suite import Suite, SuiteError
from agentunit.engine.until_decided import (
    Course,
    Place,
    Question,
    Scores,
    Watched,
    answers_by_test,
    baseline_questions,
    count_decided,
    gate_questions,
    run_until_decided,
)
from agentunit.metrics.base import describe
from agentunit.reports.progress import RecordingLine
from agentunit.store.protocol import RunStore
from agentunit.store.runs import RunHeader
from agentunit.traces.remote import is_remote


def begun_until_decided(header: RunHeader) -> Mapping[str, Any] | None:
    """What a run that was begun with ``--repeats auto`` keeps about it; ``None`` for another run."""
    stored = header.settings.get("until_decided")
    # Runs of earlier versions do not say in which order their cases were drawn.
    if not isinstance(stored, Mapping) or not isinstance(stored.get("seed"), int):
        return None
    return stored if isinstance(stored.get("answers"), Mapping) else None


@dataclass
class Goal:
    """The questions of a run, and the seed that fixes the order of its cases; both stay when it is taken up again."""

    questions: list[Question]
    seed: int
    baseline: ScoredRun | None = None
    baseline_reference: str | None = None

    def as_data(self, ended: str | None = None) -> dict[str, Any]:
        """What is kept with the run."""
        answers = {question.subject: question.outcome() for question in self.questions}
        return {"seed": self.seed, "baseline": self.baseline_reference, "ended": ended, "answers": answers}


def goal_of(
    suite: Suite, store: RunStore, baseline: str | None, header: RunHeader | None, *, retry_failed: bool
) -> Goal:
    """What a run until decided is to answer; nothing to answer is a mistake, and so are other questions than before."""
    begun = None
    if header is not None:
        begun = begun_until_decided(header)
        if begun is None:
            raise click.UsageError(
                f"run {header.id} was not begun with --repeats auto, or by an earlier version: give --repeats a number"
            )
        if retry_failed:
            raise click.UsageError(
                "--retry-failed does not go with a run until decided, whose evidence must come in the order that was "
                "drawn ('retries' in the suite tries a failed case again at once)"
            )
        recorded = header.settings.get("cluster")
        if (recorded.get("field") if isinstance(recorded, Mapping) else None) != suite.cluster:
            raise SuiteError(f"run {header.id} was begun with other clusters: its cases were drawn by them")
        stored = begun.get("baseline")
        # A path that came with a file is not opened.
        if baseline is None and isinstance(stored, str) and not header.is_foreign:
            baseline = stored
    base = find_scored_run(baseline, store) if baseline else None
    questions = _questions(suite, base)
    if begun is not None and set(begun["answers"]) != {question.subject for question in questions}:
        asked = ", ".join(map(str, begun["answers"]))
        raise click.UsageError(
            f"a run until decided continues with the gates and the baseline that it started with ({asked})"
        )
    seed = suite.seed if suite.seed is not None else random.SystemRandom().randrange(1 << 31)
    reference = None
    if baseline is not None and base is not None:
        reference = baseline if is_remote(baseline) else base.header.id
        if os.path.isfile(baseline):
            reference = os.path.abspath(baseline)
    return Goal(questions, seed if begun is None else begun["seed"], base, reference)


def _questions(suite: Suite, base: ScoredRun | None) -> list[Question]:
    infos = {metric.name: describe(metric) for metric in suite.metrics}
    # What judged scores tell besides their values is decided once, at the end.
    gates = [gate for gate in map(parse_gate, suite.gates) if gate.metric not in EVIDENCE]
    questions = gate_questions(gates, infos.__getitem__)
    if base is not None:
        named = list(dict.fromkeys(gate.metric for gate in gates)) or list(infos)
        questions += baseline_questions(named, infos.__getitem__, base)
    if not questions:
        received = ", ".join(map(str, gates)) or "no gate"
        raise click.UsageError(
            "--repeats auto needs a gate on the mean of a score with a lowest and a highest value, such as "
            f"'exact_match >= 0.9', or --baseline RUN; received {received}"
        )
    return questions


def record_until_decided(plan: Plan, store: RunStore, suite: Suite, goal: Goal, caps: Caps, again: str) -> None:
    """Record and score cases until the questions are answered, a cap is reached, or it is clear that they never are."""
    run_id = plan.header.id
    spent_usd, began = 0.0, time.monotonic()
    settings = plan.resumed_with or plan.header.settings
    clusters = settings.get("cluster")
    course = Course(
        len(plan.cases),
        goal.seed,
        clusters["by_position"] if clusters else None,
        _times_in_baseline(goal.baseline, [case.id for case in plan.cases]),
    )

    line = RecordingLine(until=lambda: count_decided(goal.questions))

    def run_places(places: list[Place]) -> tuple[Scores, str | None]:
        nonlocal spent_usd
        finished = store.finished(run_id)
        plan.open = [place for place in places if place not in finished]
        plan.header.n_planned = len(finished) + len(plan.open)
        if plan.resumed_with is None:
            store.update_run(run_id, store.find_run(run_id).settings, n_planned=plan.header.n_planned)
        left = Caps(
            None if caps.cost_usd is None else max(0.0, caps.cost_usd - spent_usd),
            None if caps.time_s is None else max(0.001, caps.time_s - (time.monotonic() - began)),
        )
        recording = record_with_progress(plan, store, caps=left, line=line)
        line.go_on_after(recording)
        plan.resumed_with = None
        spent_usd += recording.spend_usd
        if recording.stopped and recording.capped_by is None:
            leave_if_stopped(recording, again)
        n_done = len(finished) + recording.n_done
        score_with_progress(store, run_id, suite.metrics, n_done, again, plan.cases, recording.records)
        scores: Scores = {place: [] for place in store.finished(run_id).intersection(places)}
        for name, row in store.score_rows(run_id):
            if (row.position, row.repeat) in scores:
                scores[row.position, row.repeat].append((name, row))
        return scores, f"--max-{recording.capped_by} is reached" if recording.capped_by else None

    def test(places: Collection[Place], alpha: float) -> Mapping[str, SequentialAnswer]:
        assert goal.baseline is not None
        candidate = run_from_store(store, run_id)
        return answers_by_test(
            candidate, goal.baseline, places, alpha, gates=suite.gates, min_coverage=suite.min_coverage
        )

    def keep(watched: Watched, ended: str | None = None) -> None:
        kept = {**store.find_run(run_id).settings, "until_decided": goal.as_data(ended)}
        store.update_run(run_id, kept, n_planned=len(store.finished(run_id)))

    watched = run_until_decided(
        goal.questions,
        course,
        run_places,
        at_once=suite.concurrency,
        ignored=set_aside_on(plan.header.created_at, settings),
        done=store.finished(run_id),
        test=test,
        keep=keep,
        min_coverage=suite.min_coverage,
    )
    keep(watched, str(watched))
    store.set_status(run_id, "finished")
    click.echo(str(watched), err=True)
    if (watched.stopped_by or "").startswith("--max"):
        click.echo(f"continue with: {again}", err=True)


def _times_in_baseline(baseline: ScoredRun | None, ids: Sequence[str]) -> list[int] | None:
    if baseline is None:
        return None
    times = Counter(record.case_id for record in baseline.records) or Counter(case_ids(baseline))
    return [times[case_id] for case_id in ids]
