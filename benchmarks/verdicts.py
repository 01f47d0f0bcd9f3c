"""How often the verdict on a simulated agent is right, beside the rules that are usual elsewhere.

    python -m benchmarks.verdicts                     200 seeds a row, about two hours
    python -m benchmarks.verdicts --cases 66          some minutes
    python -m benchmarks.verdicts --answers yes/no    the same agent as a classifier
    python -m benchmarks.verdicts --before 1 --earlier 6 --cases 66
                                                      a baseline after six runs, with tries again of its own
    python -m benchmarks.verdicts --command-line      20 seeds a row through ``agentunit run`` as well

The last tables are kept in ``benchmarks/VERDICTS.md``.

The agent fails at random, in one of the ways of ``NOISES``. A seed gives a baseline with some tries of each case, and a
candidate that is the same agent or one with some cases broken: they fail whenever they are tried. Broken are cases that
worked: their chance to fail was below one half, whatever the baseline happened to record. The verdict is that of
``agentunit run --baseline``, newly failing checks being tried again.

- false FAIL: exit code 1 where nothing is broken. A row with broken cases has no such column.
- found: exit code 1, with a case named as broken that is. "wrongly named" counts runs that name another as broken.
- extra calls: the tries again, in percent of the planned calls.
- mean dropped: fails when the share of passed tries is lower than the baseline's.
- any fails: fails as soon as one planned try does, as promptfoo and DeepEval do (``benchmarks.peer_verdicts`` has them
  decide themselves).
- paired test: fails when McNemar's two-sided p-value is below 0.05 and more cases got worse than better, which is
  how ``mlflow.genai.compare_evaluations`` tests a pass/fail scorer: exact below 25 cases that differ, otherwise
  chi-square with continuity correction; one recording of each case, those without a score left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.core.score_block import ScoreRow
from agentunit.engine.deciding.case_records import answer_digest
from agentunit.engine.deciding.checks import ANSWERED
from agentunit.engine.deciding.compare import compare_runs, open_checks
from agentunit.engine.deciding.decision import EXIT_CANNOT_TELL, EXIT_FAILED, Decision, decide_run
from agentunit.engine.deciding.trying import TryingAgain, tries_needed
from agentunit.engine.scoring.scored_run import ScoredRun, run_from_store
from agentunit.formulas.paired import mcnemar_test
from agentunit.store.opening import DEFAULT_PATH
from agentunit.store.runs import FIRST_AGAIN, RecordRow, RunHeader, StoredRecord
from agentunit.store.sqlite import Store

CHECK = "contains"
RULES = ("mean dropped", "any fails", "paired test")
Answers = Literal["own texts", "yes/no", "one failure text", "own failure texts"]
Version = Literal["before", "now"]
# Answers that never come again need not be compared: reading them takes longer than all the rest.
UNREAD = "own texts"
_OUTAGE_SHARE = 0.1
_FIRST_EARLIER = 1000
"""What an agent is asked in earlier runs is none of its other tries."""
_CALL_S = 1.0
_EXACT_BELOW, _PAIRED_ALPHA = 25, 0.05


def _levels(n: int, *parts: tuple[float, float]) -> list[float]:
    """So many chances: of each part of the cases the given one, the last part filling up."""
    levels: list[float] = []
    for share, chance in parts:
        levels += [chance] * round(n * share)
    return (levels + [parts[-1][1]] * n)[:n]


def _mostly_failing(n: int, source: random.Random) -> list[float]:
    levels = _levels(n, (0.1, 1.0), (0.9, 0.0))
    return [level and source.uniform(0.8, 0.95) for level in levels]


# The chance of each case to fail in one try.
NOISES: dict[str, Callable[[int, random.Random], list[float]]] = {
    "8 %": lambda n, source: _levels(n, (1.0, 0.08)),
    "2/10/50 %": lambda n, source: _levels(n, (0.05, 0.5), (0.15, 0.1), (0.8, 0.02)),
    "coin tosses": lambda n, source: _levels(n, (0.3, 0.5), (0.7, 0.0)),
    # Nearly deterministic: with "--answers 'one failure text'" few failing tries are taken for enough.
    "few coin tosses": lambda n, source: _levels(n, (0.075, 0.5), (0.925, 0.0)),
    "mostly failing": _mostly_failing,
    "U-shaped": lambda n, source: [source.betavariate(0.25, 0.75) for _ in range(n)],
    # Beside the outage: every call fails for a tenth of the time that the planned calls of the candidate take.
    "outage": lambda n, source: _levels(n, (1.0, 0.02)),
}


@dataclass(frozen=True)
class Setting:
    """One row: the agent, and how it is tried."""

    noise: str
    n_cases: int = 66
    n_before: int = 3
    n_broken: int = 0
    n_now: int = 1
    answers: Answers = "own texts"
    n_earlier: int = 0
    """So many runs of one try came before the baseline, in which what newly failed was tried again."""


class Agent:
    """An agent whose every answer follows from the setting and a seed, so that two processes see the same."""

    def __init__(self, setting: Setting, seed: int) -> None:
        source = random.Random(f"{setting.noise} {setting.n_cases} {seed}")
        self.setting = setting
        self._seed = seed
        self._chances = NOISES[setting.noise](setting.n_cases, source)
        source.shuffle(self._chances)
        planned_s = setting.n_cases * setting.n_now * _CALL_S
        begin_s = source.uniform(0.0, planned_s)
        self._outage = (begin_s, begin_s + _OUTAGE_SHARE * planned_s) if setting.noise == "outage" else (0.0, 0.0)
        worked = [place for place, chance in enumerate(self._chances) if chance < 0.5]
        self.broken = frozenset(source.sample(worked, setting.n_broken))

    def passes(self, version: Version, place: int, nth: int) -> bool:
        """Whether a case passes the n-th time that it is asked."""
        if version == "now" and place in self.broken:
            return False
        chance = self._chances[place]
        return chance == 0.0 or random.Random(f"{self._seed} {version} {place} {nth}").random() >= chance

    def answer(self, version: Version, place: int, nth: int) -> str:
        """What it says then. It is right where it holds ``right(place)``."""
        passes = self.passes(version, place, nth)
        if self.setting.answers == "yes/no":
            return self.right(place) if passes else {"yes": "no", "no": "yes"}[self.right(place)]
        if self.setting.answers == "own texts":
            return f"{self.right(place) if passes else 'wrong'} {version} {nth}"
        if passes:
            return self.right(place)
        return "I could not look that up." if self.setting.answers == "one failure text" else f"no room {place:04}"

    def right(self, place: int) -> str:
        """What the answer of a case must hold."""
        if self.setting.answers == "yes/no":
            return "yes" if place % 2 else "no"
        return f"Room {place:04}"

    def is_out(self, time_s: float) -> bool:
        """Whether it answers nothing at this time of the candidate's run."""
        return self._outage[0] <= time_s < self._outage[1]


class Trial:
    """A baseline and a candidate of one seed, held in memory. ``decide`` tries again what newly fails."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting = setting
        self.agent = Agent(setting, seed)
        self._records: dict[Version, list[StoredRecord]] = {"before": [], "now": []}
        self.baseline = self._run("before", setting.n_before)
        if setting.n_earlier:
            self._add_earlier()
        self.candidate = self._run("now", setting.n_now)

    def _run(self, version: Version, n_repeats: int) -> ScoredRun:
        n = self.setting.n_cases
        header = RunHeader(version, version, 0.0, 1.0, "finished", n * n_repeats, "0", {})
        run = ScoredRun(header, n, n * n_repeats, 0, {CHECK: []})
        records: list[RecordRow] = []
        rows: list[ScoreRow] = []
        for place in range(n):
            for repeat in range(n_repeats):
                time_s = _CALL_S * (repeat * n + place)
                record, row = self._try(version, place, repeat, repeat, time_s)
                records.append(record)
                rows += row
        run.records, run.metrics, run.n_failed = records, {CHECK: rows}, sum(record.failed for record in records)
        if self.setting.answers != UNREAD:
            run.read_records = partial(iter, self._records[version])
        return run

    def _add_earlier(self) -> None:
        """Give the baseline the tries of runs before it, and those again that it made beside them."""
        setting, baseline = self.setting, self.baseline
        checks: list[list[Any]] = []
        baseline.again_metrics[CHECK] = []
        for place in range(setting.n_cases):
            passes = [self.agent.passes("before", place, _FIRST_EARLIER + nth) for nth in range(setting.n_earlier)]
            checks.append([case_name(place), CHECK, [["lexical", "1"]], "".join(str(int(each)) for each in passes)])
            n_tries = setting.n_before
            is_newly_failing = 2 * sum(passes) > len(passes) and not any(
                self.agent.passes("before", place, nth) for nth in range(n_tries)
            )
            while is_newly_failing and n_tries < tries_needed(setting.n_cases, 0):
                record, rows = self._try("before", place, FIRST_AGAIN + n_tries, n_tries, 0.0)
                baseline.again_records.append(record)
                baseline.again_metrics[CHECK] += rows
                is_newly_failing = rows[0].value != 1.0
                n_tries += 1
        baseline.history = {"format": 1, "checks": checks}

    def _try(
        self, version: Version, place: int, repeat: int, nth: int, time_s: float
    ) -> tuple[RecordRow, list[ScoreRow]]:
        """One try of a case, and its score where the agent answers."""
        case_id = case_name(place)
        failed = version == "now" and self.agent.is_out(time_s)
        if self.setting.answers != UNREAD:
            made = self._record(version, place, nth)
            self._records[version].append(StoredRecord(place, repeat, case_id, failed, _CALL_S, made))
        if failed:
            return RecordRow(place, repeat, case_id, True), []
        value = float(self.agent.passes(version, place, nth))
        row = ScoreRow(place, repeat, case_id, value, "ok", "lexical", "1")
        return RecordRow(place, repeat, case_id, False), [row]

    def _record(self, version: Version, place: int, nth: int) -> Record:
        case = DatasetCase(case_name(place), f"question {place}")
        return Record(case, TraceLog([]), Outcome(output=self.agent.answer(version, place, nth)))

    def decide(self) -> Decision:
        """The verdict, after the newly failing checks were tried again as ``agentunit run`` does."""
        candidate = self.candidate
        time_s = _CALL_S * candidate.n_records
        n_again: Counter[int] = Counter()
        ended: set[tuple[int, str]] = set()
        candidate.again_metrics[CHECK] = []
        while True:
            trying, _ = open_checks(candidate, self.baseline, (), ended=ended)
            positions = trying.next_positions()
            if not positions:
                break
            while positions:
                time_s += trying.wait_s()
                for place in positions:
                    self._try_again(trying, place, n_again[place], time_s)
                    n_again[place] += 1
                    time_s += _CALL_S
                positions = trying.next_positions()
            ended |= trying.ended
        return decide_run(candidate, (), compare_runs(candidate, self.baseline, gates=()))

    def _try_again(self, trying: TryingAgain, place: int, n_again: int, time_s: float) -> None:
        nth = self.setting.n_now + n_again
        record, rows = self._try("now", place, FIRST_AGAIN + n_again, nth, time_s)
        self.candidate.again_records.append(record)
        self.candidate.again_metrics[CHECK] += rows
        passed: dict[str, bool | None] = {ANSWERED.name: not record.failed}
        if rows:
            passed[CHECK] = rows[0].value == 1.0
        trying.take(place, passed, answer_digest(self._record("now", place, nth), failed=record.failed))

    @property
    def n_extra(self) -> int:
        """How many tries were made again."""
        return len(self.candidate.again_records)


def case_name(place: int) -> str:
    """The id of a case."""
    return f"case-{place:04}"


def mean_dropped(candidate: ScoredRun, baseline: ScoredRun) -> bool:
    """The rule "mean dropped": of the planned tries; one without an answer does not pass."""
    now, before = (sum(row.value or 0.0 for row in run.metrics[CHECK]) / run.n_records for run in (candidate, baseline))
    return now < before


def any_fails(candidate: ScoredRun) -> bool:
    """The rule "any fails"."""
    return candidate.n_failed > 0 or any(row.value != 1.0 for row in candidate.metrics[CHECK])


def paired_test_fails(candidate: ScoredRun, baseline: ScoredRun) -> bool:
    """The rule "paired test", on the first recording of each case."""
    now, before = (
        {row.case_id: row.value for row in run.metrics[CHECK] if row.repeat == 0} for run in (candidate, baseline)
    )
    better = sum(value == 1.0 and before.get(case) == 0.0 for case, value in now.items())
    worse = sum(value == 0.0 and before.get(case) == 1.0 for case, value in now.items())
    return worse > better and mcnemar(better, worse) < _PAIRED_ALPHA


def mcnemar(better: int, worse: int) -> float:
    """The two-sided p-value of a paired test, from the cases that got better and worse."""
    n = better + worse
    if n < _EXACT_BELOW:
        return mcnemar_test(better, worse)
    chi_square = (abs(better - worse) - 1) ** 2 / n
    return math.erfc(math.sqrt(chi_square / 2.0))


@dataclass
class Row:
    """What was counted over the seeds of one setting."""

    setting: Setting
    n_seeds: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    n_extra: int = 0

    def add(self, trial: Trial, decision: Decision) -> None:
        """Take one trial in."""
        comparison = decision.comparison
        assert comparison is not None
        truly = {case_name(place) for place in trial.agent.broken}
        named = set(comparison.broken)
        self.n_seeds += 1
        self.n_extra += trial.n_extra
        self.seen["FAIL"] += decision.exit_code == EXIT_FAILED
        self.seen["found"] += decision.exit_code == EXIT_FAILED and bool(named & truly)
        self.seen["wrongly named"] += bool(named - truly)
        self.seen["CANNOT TELL"] += decision.exit_code == EXIT_CANNOT_TELL
        self.seen["mean dropped"] += mean_dropped(trial.candidate, trial.baseline)
        self.seen["any fails"] += any_fails(trial.candidate)
        self.seen["paired test"] += paired_test_fails(trial.candidate, trial.baseline)

    def share(self, column: str) -> float:
        """Of how many seeds something was seen."""
        return self.seen[column] / self.n_seeds

    @property
    def extra_share(self) -> float:
        """The tries again, as a share of the planned calls."""
        return self.n_extra / (self.n_seeds * self.setting.n_cases * self.setting.n_now)

    def __str__(self) -> str:
        setting = self.setting
        right = f"{self.share('found'):.1%}" if setting.n_broken else ""
        false = "" if setting.n_broken else f"{self.share('FAIL'):.1%}"
        planned = setting.n_cases * setting.n_now
        cells = [
            setting.noise,
            setting.n_cases,
            f"{setting.n_before}, {setting.n_earlier} runs" if setting.n_earlier else setting.n_before,
            setting.n_now,
            setting.n_broken,
            false,
            right,
            f"{self.share('wrongly named'):.1%}",
            f"{self.share('CANNOT TELL'):.1%}",
            f"{self.extra_share:.1%}",
            f"{planned + self.n_extra / self.n_seeds:,.0f}",
            *(f"{self.share(rule):.1%}" for rule in RULES),
        ]
        return f"| {' | '.join(map(str, cells))} |"


COLUMNS = (
    "noise",
    "cases",
    "tries before",
    "tries now",
    "broken",
    "false FAIL",
    "found",
    "wrongly named",
    "CANNOT TELL",
    "extra calls",
    "calls",
    *RULES,
)


def measure(setting: Setting, seeds: Sequence[int]) -> Row:
    """The verdicts of one setting over these seeds."""
    row = Row(setting)
    for seed in seeds:
        trial = Trial(setting, seed)
        row.add(trial, trial.decide())
    return row


SUITE = """
import os
from collections import Counter

from agentunit import Suite
from benchmarks.verdicts import Agent, Setting, case_name

setting = {setting!r}
made = Agent(setting, {seed})
version = os.environ["TRIAL_VERSION"]
asked = Counter()


def agent(query):
    place = int(query.split()[1])
    asked[place] += 1
    return made.answer(version, place, asked[place] - 1)


cases = [
    {{"id": case_name(place), "query": f"question {{place}}", "metadata": {{"contains": made.right(place)}}}}
    for place in range(setting.n_cases)
]
repeats = setting.n_before if version == "before" else setting.n_now
suite = Suite(dataset=cases, agent=agent, metrics=["contains"], repeats=repeats, concurrency=1, name=version)
"""


@dataclass(frozen=True)
class Verdict:
    """What was decided: the exit code, the cases that are broken, and how many tries were made again."""

    exit_code: int
    broken: tuple[str, ...]
    n_extra: int


def in_memory(setting: Setting, seed: int) -> Verdict:
    """What is decided about a seed without a store."""
    trial = Trial(setting, seed)
    decision = trial.decide()
    assert decision.comparison is not None
    return Verdict(decision.exit_code, decision.comparison.broken, trial.n_extra)


def by_command_line(setting: Setting, seed: int) -> Verdict:
    """What ``agentunit run --baseline`` says about the same answers."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "suite.py").write_text(SUITE.format(setting=setting, seed=seed), encoding="utf-8")
        _agentunit(folder, "before", "run", "suite.py")
        exit_code, said = _agentunit(folder, "now", "run", "suite.py", "--baseline", "before")
        with Store(Path(folder) / DEFAULT_PATH) as store:
            n_extra = len(run_from_store(store, "last").again_records)
    broken = tuple(case_id for case_id, case in said["comparison"]["cases"].items() if case["kind"] == "broken")
    return Verdict(exit_code, broken, n_extra)


def _agentunit(folder: str, version: Version, *arguments: str) -> tuple[int, dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1]), "TRIAL_VERSION": version}
    environment.pop("AGENTUNIT_STORE", None)
    command = [sys.executable, "-m", "agentunit", *arguments, "--json"]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if not ended.stdout:
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr.strip()}")
    return ended.returncode, json.loads(ended.stdout)


def print_command_line(settings: Iterable[Setting], n_seeds: int) -> None:
    """One row for each setting: in how many seeds the command line decides as the trial in memory does."""
    print("| noise | cases | tries before | tries now | broken | seeds | FAIL | as in memory |")
    print(f"|---|{'---:|' * 7}")
    for setting in settings:
        verdicts = [by_command_line(setting, seed) for seed in range(n_seeds)]
        n_same = sum(verdict == in_memory(setting, seed) for seed, verdict in enumerate(verdicts))
        n_failed = sum(verdict.exit_code == EXIT_FAILED for verdict in verdicts)
        cells = (setting.noise, setting.n_cases, setting.n_before, setting.n_now, setting.n_broken)
        print(f"| {' | '.join(map(str, (*cells, n_seeds, n_failed, n_same)))} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one row for each kind of noise, number of cases, of broken ones, and of tries before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, help="seeds a row (default: 200, with --command-line 20)")
    parser.add_argument("--noises", nargs="+", choices=list(NOISES), default=list(NOISES))
    parser.add_argument("--cases", type=int, nargs="+", default=[66, 200, 600, 2000], help="cases a run")
    parser.add_argument("--before", type=int, nargs="+", default=[1, 3, 5, 10], help="tries of each case before")
    parser.add_argument("--earlier", type=int, default=0, help="runs of one try before the baseline (default: none)")
    parser.add_argument("--now", type=int, default=1, help="planned tries of each case now (default: 1)")
    parser.add_argument("--broken", type=int, nargs="+", default=[0, 1, 3, 9], help="cases that are broken now")
    parser.add_argument("--answers", choices=get_args(Answers), default="own texts", help="what the answers look like")
    parser.add_argument("--command-line", action="store_true", help="have 'agentunit run' decide, too")
    options = parser.parse_args(arguments)
    settings = [
        Setting(noise, n_cases, n_before, n_broken, options.now, options.answers, options.earlier)
        for n_cases in options.cases
        for noise in options.noises
        for n_broken in options.broken
        for n_before in options.before
    ]
    if options.command_line:
        # An outage lasts for a time, and the command line has a clock of its own.
        print_command_line((each for each in settings if each.noise != "outage"), options.seeds or 20)
        return 0
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|---|{'---:|' * (len(COLUMNS) - 1)}")
    for setting in settings:
        print(measure(setting, range(options.seeds or 200)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
