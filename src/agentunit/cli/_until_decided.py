"""``agentunit run --repeats auto``: what is to be decided, and recording until it is, in one go or in several."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from agentunit.cli._run_work import begun_until_decided
from agentunit.cli._shown_run import AskedToShow, ShownRun
from agentunit.core.score_block import Place
from agentunit.engine.deciding.cut_offs import Margin
from agentunit.engine.deciding.gate_expressions import parse_gate
from agentunit.engine.deciding.known_failures import set_aside_on
from agentunit.engine.deciding.paired_scores import case_ids
from agentunit.engine.deciding.until_decided import (
    Course,
    Question,
    Scores,
    Watched,
    answers_by_test,
    baseline_questions,
    count_decided,
    gate_questions,
    run_until_decided,
)
from agentunit.engine.recording.runner import Plan
from agentunit.engine.recording.suite import Suite, SuiteError
from agentunit.engine.recording.suite_run import baseline_reference
from agentunit.engine.scoring.scored_run import ScoredRun, SequentialAnswer, find_scored_run, run_from_store
from agentunit.metrics.base import describe
from agentunit.reports.progress import RecordingLine
from agentunit.store.run_store import RunStore
from agentunit.store.runs import RunHeader, without_tries_again


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
    suite: Suite,
    store: RunStore,
    baseline: str | None,
    header: RunHeader | None,
    *,
    retry_failed: bool,
    margin: Margin | Mapping[str, Margin] | None,
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
    questions = _questions(suite, base, margin)
    if begun is not None and set(begun["answers"]) != {question.subject for question in questions}:
        asked = ", ".join(map(str, begun["answers"]))
        raise click.UsageError(
            f"a run until decided continues with the gates and the baseline that it started with ({asked})"
        )
    seed = suite.seed if suite.seed is not None else random.SystemRandom().randrange(1 << 31)
    reference = None if baseline is None or base is None else baseline_reference(baseline, base)
    return Goal(questions, seed if begun is None else begun["seed"], base, reference)


def _questions(suite: Suite, base: ScoredRun | None, margin: Margin | Mapping[str, Margin] | None) -> list[Question]:
    infos = {metric.name: describe(metric) for metric in suite.metrics}
    # What judged scores tell besides their values is decided once, at the end.
    gates = [gate for gate in map(parse_gate, suite.gates) if gate.metric in infos]
    questions = gate_questions(gates, infos.__getitem__)
    if base is not None:
        named = list(dict.fromkeys(gate.metric for gate in gates)) or list(infos)
        questions += baseline_questions(named, infos.__getitem__, base, margin)
    if not questions:
        received = ", ".join(map(str, gates)) or "no gate"
        raise click.UsageError(
            "--repeats auto needs a gate on the mean of a score with a lowest and a highest value, such as "
            f"'exact_match >= 0.9', or --baseline RUN with --margin; received {received}"
        )
    return questions


class RunUntilDecided(ShownRun):
    """A run whose cases are recorded and scored until its questions are answered."""

    def __init__(self, store: RunStore, plan: Plan, goal: Goal, asked: AskedToShow, *, again: str) -> None:
        # So few cases at a time are not worth processes that score.
        super().__init__(store, plan, goal.baseline, replace(asked, jobs=None), again=again)
        self._goal = goal
        self.line = RecordingLine(until=lambda: count_decided(goal.questions))

    def record_and_score(self) -> None:
        """Record and score until all is answered, a cap is reached, or it is clear that it never will be."""
        plan, goal = self.plan, self._goal
        settings = plan.resumed_with or plan.header.settings
        clusters = settings.get("cluster")
        course = Course(
            len(plan.cases),
            goal.seed,
            clusters["by_position"] if clusters else None,
            _times_in_baseline(goal.baseline, [case.id for case in plan.cases]),
        )
        watched = run_until_decided(
            goal.questions,
            course,
            self._run_places,
            at_once=self.suite.concurrency,
            ignored=set_aside_on(plan.header.created_at, settings),
            done=self._finished(),
            test=self._test,
            keep=self._keep,
            min_coverage=self.suite.min_coverage,
            every_case=goal.baseline is not None,
        )
        self._keep(watched, str(watched))
        self.store.set_status(self.run_id, "finished")
        click.echo(str(watched), err=True)
        if (watched.stopped_by or "").startswith("--max"):
            click.echo(f"continue with: {self.again}", err=True)

    def _finished(self) -> set[Place]:
        return without_tries_again(self.store.finished(self.run_id))

    def _run_places(self, places: list[Place]) -> tuple[Scores, str | None]:
        """Record and score some places; returns all their scores, and which cap was reached."""
        store, plan = self.store, self.plan
        finished = self._finished()
        plan.open = [place for place in places if place not in finished]
        plan.header.n_planned = len(finished) + len(plan.open)
        if plan.resumed_with is None:
            store.update_run(self.run_id, store.find_run(self.run_id).settings, n_planned=plan.header.n_planned)
        recording = self.record()
        self.score(recording.records, len(finished) + recording.n_done)
        scores: Scores = {place: [] for place in store.finished(self.run_id).intersection(places)}
        for name, row in store.score_rows(self.run_id):
            if row.place in scores:
                scores[row.position, row.repeat].append((name, row))
        return scores, f"--max-{recording.capped_by} is reached" if recording.capped_by else None

    def _test(self, places: Collection[Place], alpha: float) -> Mapping[str, SequentialAnswer]:
        suite = self.suite
        assert self.base is not None
        candidate = run_from_store(self.store, self.run_id)
        return answers_by_test(
            candidate,
            self.base,
            places,
            alpha,
            gates=suite.gates,
            margin=self.asked.margin,
            min_coverage=suite.min_coverage,
        )

    def _keep(self, watched: Watched, ended: str | None = None) -> None:
        """Keep the answers so far."""
        kept = {**self.store.find_run(self.run_id).settings, "until_decided": self._goal.as_data(ended)}
        self.store.update_run(self.run_id, kept, n_planned=self.store.size(self.run_id).n_records)


def _times_in_baseline(baseline: ScoredRun | None, ids: Sequence[str]) -> list[int] | None:
    if baseline is None:
        return None
    times = Counter(record.case_id for record in baseline.records) or Counter(case_ids(baseline))
    return [times[case_id] for case_id in ids]
