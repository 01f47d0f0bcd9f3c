"""Run the torture, print one table, write it into RESULTS.md and its summary into docs/reliability.md."""

from __future__ import annotations

import argparse
import secrets
import sys
import time

import agentunit
from benchmarks.torture.agents import torture_with_agents
from benchmarks.torture.attacks import torture_with_attacks
from benchmarks.torture.clock import torture_with_clock
from benchmarks.torture.determinism import torture_determinism
from benchmarks.torture.disks import torture_with_disks
from benchmarks.torture.fuzz.run import torture_with_inputs
from benchmarks.torture.ledger import Counts, Ledger
from benchmarks.torture.output import torture_with_output
from benchmarks.torture.page import table, totals, write_page
from benchmarks.torture.strikes import torture_with_kills, torture_with_signals
from benchmarks.torture.writers import torture_with_writers

PARTS = {
    "kill -9": torture_with_kills,
    "signal": torture_with_signals,
    "full disk": torture_with_disks,
    "read-only": torture_with_disks,
    "clock": torture_with_clock,
    "two writers": torture_with_writers,
    "agents": torture_with_agents,
    "fuzz": torture_with_inputs,
    "output": torture_with_output,
    "attacks": torture_with_attacks,
    "determinism": torture_determinism,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torture", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the counts of the night: 220 kills, 2,000,000 inputs")
    parser.add_argument("--only", action="append", default=[], metavar="PART[:ROW]", help=f"one of {', '.join(PARTS)}")
    parser.add_argument("--seed", type=int, help="to do again what was done (default: another one each time)")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--signals", type=int)
    parser.add_argument("--inputs", type=int)
    chosen = parser.parse_args()
    unknown = [each for each in chosen.only if each.partition(":")[0] not in PARTS]
    if unknown:
        parser.error(
            f"--only names a part ({', '.join(PARTS)}), and may go on with ':' and words of a row; "
            f"received {unknown[0]!r}"
        )
    counts = Counts.of(full=chosen.full)
    for name in ("kills", "signals", "inputs"):
        if getattr(chosen, name) is not None:
            setattr(counts, name, getattr(chosen, name))
    seed = secrets.randbelow(10**6) if chosen.seed is None else chosen.seed
    ledger = Ledger(seed, counts, tuple(chosen.only), say=lambda line: print(line, flush=True))
    ledger.say(f"seed {seed}")
    began = time.monotonic()
    for torture in dict.fromkeys(torture for part, torture in PARTS.items() if ledger.wants(part)):
        torture(ledger)
    print()
    print(table(ledger))
    print(f"\n{totals(ledger)} ({time.monotonic() - began:.0f} s, seed {seed})")
    if not ledger.only:
        write_page(ledger, agentunit.__version__, "full counts" if chosen.full else "short form")
    for row in ledger.failed:
        print(f"again: {ledger.again(row.part, row.tried)}")
    print(f"{len(ledger.passed)} passed, {len(ledger.failed)} failed")
    sys.exit(1 if ledger.failed else 0)


if __name__ == "__main__":
    main()
