"""A run of a suite from its first case to its decision: the one path of ``agentunit.run`` and of the commands."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from agentunit.backends.services import configure_judge
from agentunit.core.records import Record
from agentunit.core.results import RunSummary
from agentunit.core.score_block import Place
from agentunit.engine.deciding.case_findings import CaseFinding
from agentunit.engine.deciding.cut_offs import Margin, parse_margin
from agentunit.engine.deciding.decision import Decision, RunVerdict, decide_run
from agentunit.engine.deciding.stored import headline_means, keep_decision
from agentunit.engine.recording.runner import NO_CAPS, Caps, Plan, Recording, plan_run, record
from agentunit.engine.recording.suite import Suite, load_suite, with_gated_metrics
from agentunit.engine.scoring.judging import judge_run
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import ScoredRun, find_scored_run, run_from_file, run_from_store
from agentunit.public import publish
from agentunit.store.opening import DEFAULT_PATH, open_store
from agentunit.store.run_store import RunStore
from agentunit.urls import is_file, is_remote

if TYPE_CHECKING:
    from agentunit.engine.deciding.comparison import Comparison
    from agentunit.engine.deciding.trying import TryingAgain

_SHORTEST_TIME_S = 0.001


class ListedCases(tuple[CaseFinding, ...]):
    """Cases that are not fine. They print as at most a screen of text, with personal data masked."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(import_module("agentunit.reports.printed").cases_text(self))


@dataclass(frozen=True, repr=False)
class RunResult:
    """What came of a run: its ``decision``, and the scores that it was made from (``scored``)."""

    decision: Decision
    scored: ScoredRun

    @property
    def verdict(self) -> RunVerdict | None:
        """pass, fail, errors, cannot tell; ``None`` where nothing was there to decide by."""
        return self.decision.verdict

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the run."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """What ``agentunit run`` would leave with."""
        return self.decision.exit_code

    @property
    def broken(self) -> tuple[str, ...]:
        """The ids of the cases that a baseline passed and that are broken for sure."""
        return tuple(finding.case_id for finding in self.cases if finding.kind == "broken")

    @property
    def flaky(self) -> tuple[str, ...]:
        """The ids of the cases with a check that both passed and failed."""
        return tuple(finding.case_id for finding in self.cases if finding.state == "flaky")

    @property
    def cases(self) -> tuple[CaseFinding, ...]:
        """The cases that are not fine, each with one sentence why."""
        return ListedCases(self.decision.findings)

    def summary(self) -> RunSummary:
        """The figures of each metric."""
        return self.scored.summary()

    def __repr__(self) -> str:
        return str(import_module("agentunit.reports.printed").result_text(self.scored, self.decision))

    def _repr_html_(self) -> str:
        # For notebooks; the reports stand above the engine and load only when one asks.
        return str(import_module("agentunit.reports.notebook").result_html(self.scored, self.decision))


def run(
    suite: Suite | str | os.PathLike[str],
    *,
    baseline: str | None = None,
    margin: Margin | Mapping[str, Margin] | None = None,
    tries: int | None = None,
    store: str | os.PathLike[str] = DEFAULT_PATH,
) -> RunResult:
    """Record a suite's agent on its dataset, score what it did, and decide. The run is kept in the ``store``.

    ``suite`` is a ``Suite`` or the path of its file. With a ``baseline`` (a run of the store, or an exported file)
    every case is held against it, and what newly fails is tried again, at most ``tries`` times a check. A loss of the
    ``margin`` must then be ruled out as well.

    The result has the ``verdict`` and the ``exit_code`` of the command, the ``broken`` and the ``flaky`` cases, why
    each of the ``cases`` is not fine, and the figures of each metric in its ``summary()``.

    >>> import tempfile
    >>> from agentunit import Suite, run
    >>> folder = tempfile.TemporaryDirectory()
    >>> cases = [{"id": "q1", "query": "Capital of France?", "metadata": {"contains": "Paris"}}]
    >>> result = run(Suite(cases, lambda query: "Lyon", metrics=["contains"]), store=f"{folder.name}/runs.db")
    >>> result
    FAIL: 1 wrong (q1: missing: "Paris")
      1 of 1 case wrong: contains: missing: "Paris"
        "Lyon"
    >>> result.passed, result.exit_code
    (False, 1)
    >>> folder.cleanup()
    """
    asked = RunRequest(baseline, margin, tries)
    asked.check()
    loaded = suite if isinstance(suite, Suite) else load_suite(suite)
    path = None if isinstance(suite, Suite) else os.fspath(suite)
    if loaded.judge:
        # Metrics that name the judge can be made only when it is configured.
        configure_judge(**loaded.judge)
    loaded = with_gated_metrics(loaded)
    with open_store(store) as opened:
        base = None if baseline is None else find_scored_run(baseline, opened)
        plan = plan_run(loaded, opened, suite_path=path, held_to=asked.held_to(base))
        return SuiteRun(opened, plan, base, asked).make()


def compare(
    baseline: RunResult | ScoredRun | str | os.PathLike[str],
    candidate: RunResult | ScoredRun | str | os.PathLike[str],
    *,
    on: Sequence[str] | None = None,
    margin: Margin | Mapping[str, Margin] | None = None,
    store: str | os.PathLike[str] = DEFAULT_PATH,
) -> Comparison:
    """Hold a run against an earlier one: which cases are broken or fixed, and which metrics got worse.

    Both are what ``agentunit.run`` returned, or what ``agentunit compare`` takes: an id or a name of a run in the
    ``store``, an exported file, a score table. ``on`` names the metrics that count. With a ``margin``, a loss of that
    size must be ruled out as well.

    >>> import tempfile
    >>> from agentunit import Suite, compare, run
    >>> folder = tempfile.TemporaryDirectory()
    >>> cases = [{"id": "q1", "query": "Capital of France?", "metadata": {"contains": "Paris"}}]
    >>> agents = [lambda query: "Lyon", lambda query: "Paris"]
    >>> store = f"{folder.name}/runs.db"
    >>> before, after = (run(Suite(cases, agent, metrics=["contains"]), store=store) for agent in agents)
    >>> compare(before, after).n_by_kind["fixed"]
    1
    >>> folder.cleanup()
    """
    from agentunit.engine.deciding.compare import compare_runs

    old, new = (_scored(each, store) for each in (baseline, candidate))
    return compare_runs(new, old, on=on, margin=margin)


def _scored(run: RunResult | ScoredRun | str | os.PathLike[str], store: str | os.PathLike[str]) -> ScoredRun:
    if isinstance(run, RunResult):
        return run.scored
    if isinstance(run, ScoredRun):
        return run
    reference = os.fspath(run)
    if is_file(reference):
        return run_from_file(reference)
    with open_store(store, read_only=True) as opened:
        return find_scored_run(reference, opened)


@dataclass(frozen=True)
class RunRequest:
    """What is asked of a run besides recording it: what it is held against and how, and what it may take."""

    baseline: str | None = None
    margin: Margin | Mapping[str, Margin] | None = None
    tries: int | None = None
    jobs: int | None = None
    caps: Caps = NO_CAPS

    def check(self) -> None:
        """Refuse at once what would be refused when everything is recorded."""
        tries, margin = self.tries, self.margin
        if tries is not None and (isinstance(tries, bool) or not isinstance(tries, int) or tries < 1):
            raise ValueError(f"run: tries must be a whole number of at least 1; received {tries!r}")
        for loss in margin.values() if isinstance(margin, Mapping) else [margin]:
            if loss is not None:
                parse_margin(loss)

    def held_to(self, base: ScoredRun | None) -> dict[str, Any]:
        """What a run notes of the baseline it is held against, and how."""
        if self.baseline is None or base is None:
            return {}
        reference = baseline_reference(self.baseline, base)
        noted = {"baseline": reference, "margin": self.margin, "tries": self.tries}
        return {name: value for name, value in noted.items() if value is not None}


class SuiteRun:
    """A run of a suite on its way: it is recorded, scored, tried again where it newly fails, and decided.

    Nothing is shown of it here. A command overrides the steps that it shows.
    """

    def __init__(self, store: RunStore, plan: Plan, base: ScoredRun | None, asked: RunRequest) -> None:
        self.store = store
        self.plan = plan
        self.suite = plan.suite
        self.run_id = plan.header.id
        self.base = base
        self.asked = asked
        self._spent_usd = 0.0
        self._began = time.monotonic()

    def make(self) -> RunResult:
        """Go all the way."""
        with self.as_one_for_a_judge():
            self.record_and_score()
            if self.base is not None and self.suite.try_again and self.asked.tries != 1:
                self.try_failing_again(self.base)
        return self.decided("run")

    def as_one_for_a_judge(self) -> AbstractContextManager[None]:
        """Playing users and scoring, in any number of stages, are one run to a judge: its limits hold for all of it."""
        return judge_run(self.suite.metrics, plays_users=self.plan.plays_users)

    def record_and_score(self) -> None:
        """Record what is open of the plan, and score it."""
        recording = self.record()
        if recording.stopped:
            self.leave(recording)
        self.score(recording.records)

    def record(self) -> Recording:
        """Record what is open of the plan. What ends it besides a cap ends the run."""
        recording = self.recorded(self.caps_left())
        self._spent_usd += recording.spend_usd
        if recording.stopped and recording.capped_by is None:
            self.leave(recording)
        return recording

    def caps_left(self) -> Caps:
        """What is left of the caps."""
        cost_usd, time_s = self.asked.caps.cost_usd, self.asked.caps.time_s
        if cost_usd is not None:
            cost_usd = max(0.0, cost_usd - self._spent_usd)
        if time_s is not None:
            time_s = max(_SHORTEST_TIME_S, time_s - (time.monotonic() - self._began))
        return Caps(cost_usd, time_s)

    def recorded(self, caps: Caps) -> Recording:
        """Record what is open of the plan, within the caps."""
        return record(self.plan, self.store, caps=caps)

    def score(self, recorded: Mapping[Place, Record] | None = None, **shown: Any) -> None:
        """Score what lacks a score. What was ``recorded`` here need not be read again."""
        cases, jobs = self.plan.cases, self.asked.jobs
        score_run(self.store, self.run_id, self.suite.metrics, cases=cases, recorded=recorded, jobs=jobs, **shown)

    def try_failing_again(self, base: ScoredRun) -> None:
        """Try the checks again that newly fail beside a baseline."""
        from agentunit.engine.recording.trying_again import try_again

        try_again(
            self.store,
            self.run_id,
            base,
            self.suite.gates,
            self.suite.metrics,
            self.record_tries,
            cases=self.plan.cases,
            most_tries=self.asked.tries,
            announce=self.announce_tries,
            sleep=self.sleep,
        )

    def record_tries(self, places: list[Place]) -> bool:
        """Record some tries; returns whether trying goes on."""
        self.plan.open = places
        return not self.record().stopped

    def announce_tries(self, trying: TryingAgain, run: ScoredRun) -> None:
        """Told once, before the first try: what is tried again."""

    def sleep(self, wait_s: float) -> None:
        """Wait for an agent that does not answer."""
        time.sleep(wait_s)

    def leave(self, recording: Recording) -> NoReturn:
        """The recording was stopped; what was finished is kept."""
        raise KeyboardInterrupt

    def decided(self, made_by: str) -> RunResult:
        """Decide by all that was recorded, and keep the decision."""
        suite = self.suite
        gates, min_coverage = list(suite.gates), suite.min_coverage
        options: dict[str, Any] = {"gates": gates, "margin": self.asked.margin, "min_coverage": min_coverage}
        scored = run_from_store(self.store, self.run_id)
        comparison = None
        if self.base is not None:
            from agentunit.engine.deciding.compare import compare_runs

            comparison = compare_runs(scored, self.base, **options, at_hand=suite.metrics)
        decision = decide_run(scored, gates, comparison, min_coverage=min_coverage, max_errors=suite.max_errors)
        if scored.again_records:
            from agentunit.engine.recording.trying_again import describe_tries

            # What trying again took is in no mean and no total.
            parts = [decision.line, describe_tries(scored)]
            decision = replace(decision, line="; ".join(filter(None, parts)))
        # A list of runs shows them without adding up the scores of all.
        options["means"] = headline_means(scored)
        return RunResult(keep_decision(self.store, self.run_id, decision, made_by, **options), scored)


def baseline_reference(baseline: str, base: ScoredRun) -> str:
    """How it is noted what a run is held against, so that it can be found from anywhere."""
    if is_remote(baseline):
        return baseline
    return os.path.abspath(baseline) if os.path.isfile(baseline) else base.header.id


publish("agentunit", RunResult)
