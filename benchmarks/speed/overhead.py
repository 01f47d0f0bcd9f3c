"""Question 3: what does the machinery cost when the metric itself costs nothing?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.answers import Answer, Column, decimals, times, verdict
from benchmarks.speed.environments import OURS, python_of
from benchmarks.speed.peers import Peer
from benchmarks.speed.processes import OUR_PYTHON, ProcessFailed, Spread, figures_of

TARGET_MS = 0.02
_SCRIPTS = Path(__file__).resolve().parent / "trivial"


@dataclass(frozen=True)
class _Subject:
    name: str
    python: Path
    script: str
    n_cases: int
    label: str = ""

    def time_ms(self) -> float:
        """Milliseconds a case, in a fresh process."""
        figures = figures_of(
            self.python, "-W", "ignore", str(_SCRIPTS / self.script), str(self.n_cases), *filter(None, [self.label])
        )
        return float(figures["elapsed_s"]) * 1000 / self.n_cases


def measure_overhead(peers: list[Peer], rounds: int, n_cases: int) -> Answer:
    """Score cases with a metric that returns 1.0, each tool in fresh processes, all tools in turn."""
    answer = Answer(
        "overhead",
        "Overhead of a trivial metric, per case",
        (
            Column("name", "package"),
            Column("n_cases", "cases", decimals(0)),
            Column("best_ms", "best, ms", decimals(4)),
            Column("worst_ms", "worst, ms", decimals(4)),
            Column("ratio", "to ours", times),
            Column("note", "target or remark"),
        ),
    )
    subjects = [_Subject(OURS, OUR_PYTHON, "with_agentunit.py", n_cases)]
    for peer in peers:
        for script, label in peer.trivial_runs:
            name = f"{peer.name}, {label}" if label else peer.name
            subjects.append(_Subject(name, python_of(peer.name), script, min(n_cases, peer.most_cases), label))
    per_case_ms: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    failures: dict[str, str] = {}
    for _ in range(rounds):
        for subject in subjects:
            if subject.name in failures:
                continue
            try:
                per_case_ms[subject.name].append(subject.time_ms())
            except ProcessFailed as failure:
                failures[subject.name] = str(failure)
    for subject in subjects:
        if subject.name in failures:
            answer.add(name=subject.name, n_cases=subject.n_cases, note=failures[subject.name])
            continue
        spread = Spread.of(per_case_ms[subject.name])
        answer.add(
            name=subject.name,
            n_cases=subject.n_cases,
            best_ms=spread.best,
            worst_ms=spread.worst,
            rounds=spread.rounds,
            note=verdict(spread.best, TARGET_MS, "ms") if subject.name == OURS else None,
        )
    answer.compare("best_ms", OURS)
    answer.remarks.append(
        f"Best and worst of {rounds} fresh processes each, in turn; building the cases and importing are not counted, "
        "making the summary is. Slow tools get fewer cases."
    )
    left_out = [peer.name for peer in peers if not peer.trivial_runs]
    if left_out:
        answer.remarks.append(f"Not measured here: {', '.join(left_out)}.")
    return answer
