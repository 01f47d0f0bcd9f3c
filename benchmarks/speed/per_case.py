"""Scripts that say how much of the processor they took for so many cases, run in turn, a row each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.answers import Answer, Column, decimals, times, verdict
from benchmarks.speed.processes import ProcessFailed, Spread, figures_of

_SCRIPTS = Path(__file__).resolve().parent / "trivial"


@dataclass(frozen=True)
class Subject:
    """One script of ``trivial/`` in one environment; ``target_ms`` is the most that it may take for a case."""

    name: str
    python: Path
    script: str
    n_cases: int
    arguments: tuple[str, ...] = ()
    target_ms: float | None = None

    def time_ms(self) -> float:
        """Milliseconds of the processor a case, in a fresh process."""
        figures = figures_of(
            self.python, "-W", "ignore", str(_SCRIPTS / self.script), str(self.n_cases), *self.arguments
        )
        return float(figures["cpu_s"]) * 1000 / self.n_cases


@dataclass
class _Timings:
    per_case_ms: list[float]
    failure: str | None = None


def measure_per_case(answers: list[tuple[Answer, list[Subject], str]], rounds: int) -> None:
    """Time the subjects of all answers in turn, so that they meet the same noise, and add a row for each.

    An answer comes with its subjects and the name of the one that the others are compared to.
    """
    timings = {subject: _Timings([]) for _, subjects, _ in answers for subject in subjects}
    for _ in range(rounds):
        for subject, timing in timings.items():
            if timing.failure is not None:
                continue
            try:
                timing.per_case_ms.append(subject.time_ms())
            except ProcessFailed as failure:
                timing.failure = str(failure)
    for answer, subjects, ours in answers:
        for subject in subjects:
            _add(answer, subject, timings[subject])
        answer.compare("best_ms", ours)


def per_case_answer(key: str, question: str) -> Answer:
    """An answer with the columns that these rows have."""
    columns = (
        Column("name", "package"),
        Column("n_cases", "cases", decimals(0)),
        Column("best_ms", "best, ms", decimals(4)),
        Column("worst_ms", "worst, ms", decimals(4)),
        Column("ratio", "to ours", times),
        Column("note", "target or remark"),
    )
    return Answer(key, question, columns)


def _add(answer: Answer, subject: Subject, timing: _Timings) -> None:
    if timing.failure is not None:
        answer.add(name=subject.name, n_cases=subject.n_cases, note=timing.failure)
        return
    spread = Spread.of(timing.per_case_ms)
    answer.add(
        name=subject.name,
        n_cases=subject.n_cases,
        best_ms=spread.best,
        worst_ms=spread.worst,
        rounds=spread.rounds,
        note=None if subject.target_ms is None else verdict(spread.best, subject.target_ms, "ms"),
    )
