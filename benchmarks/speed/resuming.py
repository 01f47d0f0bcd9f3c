"""Question 7: how soon does a long run that was stopped go on?"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from benchmarks.speed.answers import Answer, Column, decimals, verdict
from benchmarks.speed.one_run import DISTINCT
from benchmarks.speed.processes import OUR_PYTHON, Spread, figures_of, wall_s
from benchmarks.speed.recordings import EVENTS_PER_RECORD, recordings

TARGET_S = 2.0
# One case in a thousand is still open, the last ones.
_ONE_OPEN_IN = 1_000

# One case at a time, so that the first one asked is also the first one told.
_SUITE = """
from functools import partial
from pathlib import Path

from agentunit import Suite
from benchmarks.speed.one_run import first_case_reached

agent = partial(first_case_reached, note=Path(__file__).with_name("reached.json"))
suite = Suite(dataset="cases.jsonl", agent=agent, metrics=["exact_match"], concurrency=1)
"""


_KINDS = {"short": "short cases, bare answers", "long": f"cases with passages, traces of {EVENTS_PER_RECORD} events"}


def measure_resuming(rounds: int, n_cases: int) -> Answer:
    """Time from the start of a process to the first case that is not done yet, on the command line and from Python."""
    answer = Answer(
        "resume",
        "From the start of the process to the first open case of a stopped run",
        (
            Column("name", "how"),
            Column("kind", "what"),
            Column("n_cases", "cases", decimals(0)),
            Column("n_open", "open", decimals(0)),
            Column("store_mb", "store, MB", decimals(0)),
            Column("best_s", "best, s", decimals(3)),
            Column("worst_s", "worst, s", decimals(3)),
            Column("note", "target or remark"),
        ),
        remarks=[
            f"Best and worst of {rounds} fresh processes each, in turn; starting Python and importing are counted. "
            "The dataset is a JSONL file. Files just written or read are in the system's cache."
        ],
    )
    for kind in _KINDS:
        _add_rows(answer, kind, rounds, n_cases)
    return answer


def _add_rows(answer: Answer, kind: str, rounds: int, n_cases: int) -> None:
    n_open = max(1, n_cases // _ONE_OPEN_IN)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        suite, store = str(folder / "suite.py"), str(folder / "runs.db")
        Path(suite).write_text(_SUITE, encoding="utf-8")
        _write_cases(folder / "cases.jsonl", n_cases, kind)
        figures_of(OUR_PYTHON, "-m", "benchmarks.speed.one_run", "interrupt", suite, store, str(n_open))
        ways = {
            "agentunit run --resume": ("agentunit", "run", suite, "--resume", "last", "--store", store),
            "from Python": ("benchmarks.speed.one_run", "resume", suite, store),
        }
        timings_s: dict[str, list[float]] = {way: [] for way in ways}
        # One round more than is counted: the first writes bytecode and fills the disk cache.
        for round_number in range(rounds + 1):
            for way, module in ways.items():
                reached_s = _time_to_first_case_s(module, f"case-{n_cases - n_open}", folder / "reached.json")
                if round_number:
                    timings_s[way].append(reached_s)
        store_mb = Path(store).stat().st_size / 1e6
    for way, each_s in timings_s.items():
        spread = Spread.of(each_s)
        answer.add(
            name=way,
            kind=_KINDS[kind],
            n_cases=n_cases,
            n_open=n_open,
            store_mb=store_mb,
            best_s=spread.best,
            worst_s=spread.worst,
            rounds=spread.rounds,
            note=verdict(spread.best, TARGET_S, "s"),
        )


def _write_cases(path: Path, n_cases: int, kind: str) -> None:
    bodies = [{}] if kind == "short" else [record["case"] for record in recordings(DISTINCT)]
    with path.open("w", encoding="utf-8") as file:
        for n in range(n_cases):
            short = {"id": f"case-{n}", "query": f"question {n}", "expected_output": f"answer {n}"}
            file.write(json.dumps({**bodies[n % len(bodies)], **short}) + "\n")


def _time_to_first_case_s(module: tuple[str, ...], expected_case: str, note: Path) -> float:
    # The time of day, for it is the one clock that two processes share on every system.
    started_at = time.time()
    wall_s(OUR_PYTHON, "-m", *module)
    reached = json.loads(note.read_text(encoding="utf-8"))
    note.unlink()
    if reached["case"] != expected_case:
        raise RuntimeError(f"the first case to be run must be {expected_case}; it was {reached['case']}")
    return float(reached["reached_at"]) - started_at
