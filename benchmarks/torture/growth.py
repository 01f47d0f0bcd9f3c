"""Whatever is read takes time that grows with its length, not with its square."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from click.testing import CliRunner

from agentunit.cli.main import cli
from agentunit.engine.deciding.gates import GateError, parse_gate
from benchmarks.torture.children import Child
from benchmarks.torture.ledger import Trial

TIMES = 4
MOST_GROWTH = 9.0
"""Four times as much may take nine times as long: linear is 4, quadratic 16."""
_PARTS = (
    *(" ", "\t ", "[", "[a", "a ", "a[", "m >= 1 ", "<", ">= ", "1", "0.", "pass^", "%", "é", "all ", "\u00a0", "]"),
)
# Names that differ by a number, in every way in which one record can hold very many of them.
_NAMED: dict[str, Callable[[int], object]] = {
    "names of a list": lambda n: [{"name": f"Mia Lindqvist {number}"} for number in range(n)],
    "full names in a text": lambda n: "; ".join(f"my name is Mia{number} Lindqvist{number}" for number in range(n)),
    "fields with numbers": lambda n: {f"name_{number}": f"Mia Lindqvist{number}" for number in range(n)},
    "addresses in a text": lambda n: " ".join(f"mia{number}@example.com" for number in range(n)),
    "names and their repeats": lambda n: (
        [{"customer_name": f"Mia {number} Li"} for number in range(n)]
        + [f"Mia {number} Li asks" for number in range(n)]
    ),
    "numbers of accounts": lambda n: [{"account_number": f"{10**9 + number}"} for number in range(n)],
    "user names": lambda n: [{"username": f"mia.li{number}"} for number in range(n)],
}


def time_to_read_gates(trial: Trial, n_texts: int) -> None:
    """Gates of one part, or of two, over and over."""
    _grows(trial, "gates", n_texts)


def time_to_redact(trial: Trial, n_texts: int) -> None:
    """One record with very many names that differ by a number."""
    _grows(trial, "redact", n_texts)


def _grows(trial: Trial, what: str, n_texts: int) -> None:
    folder = trial.place(what)
    root = Path(__file__).parents[2]
    seed = str(trial.chance.randrange(10**6))
    command = [sys.executable, "-m", "benchmarks.torture.growth", what, seed, str(n_texts)]
    child = Child(command, folder, environment={"PYTHONPATH": str(root)})
    code = child.end()
    trial.require(code == 0, f"the process ended with {code}: {child.errors[-500:]}")
    for line in child.out.splitlines():
        trial.times += 1
        measured = json.loads(line)
        if measured["growth"] > MOST_GROWTH:
            trial.lose(
                f"{measured['what']}: {TIMES} times as much takes {measured['growth']:.1f} times as long "
                f"({measured['seconds']:.2f} s of {measured['size']:,})"
            )


def main() -> None:
    """Measure in a process of its own, which does nothing else: one line for each text."""
    what, chance, n_texts = sys.argv[1], random.Random(int(sys.argv[2])), int(sys.argv[3])
    for number in range(n_texts):
        if what == "gates":
            part = _PARTS[number] if number < len(_PARTS) else "".join(chance.sample(_PARTS, 2))
            _measure(repr(part), lambda n, part=part: _read_gate(part * n), 5_000)
        else:
            name = sorted(_NAMED)[number % len(_NAMED)]
            _measure(name, lambda n, name=name: _redact(_NAMED[name](n)), 250)


def _read_gate(text: str) -> None:
    with suppress(GateError):
        parse_gate(text)


def _redact(value: object) -> None:
    record = {"v": 1, "case": {"id": "q", "query": "?", "metadata": {"held": value}}, "outcome": "yes"}
    Path("names.jsonl").write_text(json.dumps(record) + "\n")
    result = CliRunner().invoke(cli, ["redact", "names.jsonl", "--out", "masked.jsonl"])
    if result.exit_code not in (0, 1):
        raise RuntimeError(f"redact ended with {result.exit_code}: {result.output[-300:]}")


def _measure(what: str, action: Callable[[int], None], size: int) -> None:
    """Compare a text with one that is longer: the least of several tries, for the machine does other things as well."""
    action(size)
    once, more = _cpu_s(lambda: action(size)), _cpu_s(lambda: action(size * TIMES))
    # What is over before a clock can tell grows with nothing.
    growth = more / max(once, 0.002)
    print(json.dumps({"what": what, "growth": growth, "seconds": more, "size": size * TIMES}), flush=True)


def _cpu_s(action: Callable[[], None]) -> float:
    taken: list[float] = []
    # What takes seconds is told from noise by one try.
    while len(taken) < 3 and sum(taken) < 2.0:
        began = time.process_time()
        action()
        taken.append(time.process_time() - began)
    return min(taken)


if __name__ == "__main__":
    main()
