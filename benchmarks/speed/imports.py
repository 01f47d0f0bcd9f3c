"""Question 1: how long does importing take, above what a bare Python needs to start and end?"""

from __future__ import annotations

from pathlib import Path

from benchmarks.speed.answers import Answer, Column, decimals, times, verdict
from benchmarks.speed.environments import python_of
from benchmarks.speed.peers import Peer
from benchmarks.speed.processes import OUR_PYTHON, ProcessFailed, Spread, wall_s

TARGET_S = 0.10
_OURS = (
    ("agentunit", "import agentunit"),
    # Our names load on first use; this is the price once something is used.
    ("agentunit, score loaded", "import agentunit; agentunit.score"),
)


def measure_imports(peers: list[Peer], rounds: int) -> Answer:
    """Import each package in fresh processes, all packages in turn."""
    answer = Answer(
        "import",
        "Import time above bare Python",
        (
            Column("name", "package"),
            Column("best_s", "best, s", decimals(3)),
            Column("worst_s", "worst, s", decimals(3)),
            Column("ratio", "to ours", times),
            Column("note", "target or remark"),
        ),
    )
    subjects = [(name, statement, OUR_PYTHON) for name, statement in _OURS]
    subjects += [(peer.name, peer.import_statement, python_of(peer.name)) for peer in peers]
    bare_s: dict[Path, list[float]] = {python: [] for _, _, python in subjects}
    import_s: dict[str, list[float]] = {name: [] for name, _, _ in subjects}
    failures: dict[str, str] = {}
    # One round more than is counted: the first writes bytecode and fills the disk cache.
    for round_number in range(rounds + 1):
        for name, statement, python in subjects:
            if name in failures:
                continue
            try:
                bare, imported = wall_s(python, "-c", "pass"), wall_s(python, "-c", statement)
            except ProcessFailed as failure:
                failures[name] = str(failure)
                continue
            if round_number:
                bare_s[python].append(bare)
                import_s[name].append(imported)
    for name, _, python in subjects:
        if name in failures:
            answer.add(name=name, note=failures[name])
            continue
        spread, bare_best_s = Spread.of(import_s[name]), min(bare_s[python])
        best_s = max(0.0, spread.best - bare_best_s)
        ours = name in dict(_OURS)
        answer.add(
            name=name,
            best_s=best_s,
            worst_s=max(0.0, spread.worst - bare_best_s),
            rounds=spread.rounds,
            note=verdict(best_s, TARGET_S, "s") if ours else None,
        )
    answer.compare("best_s", _OURS[1][0])
    answer.remarks.append(
        f"Best and worst of {rounds} fresh processes each, in turn, less the best bare start of the same environment. "
        "Ratios are to our import with `score` loaded."
    )
    return answer
