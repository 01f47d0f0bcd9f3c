"""Exported runs that name a module wherever a text can stand: whatever is done with them, it is never imported."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from agentunit.cli.main import cli
from agentunit.store.schema import StoreError
from benchmarks.torture.children import Child, agentunit, done
from benchmarks.torture.ledger import Trial
from benchmarks.torture.scenarios import STORE

_CANARY = "torture_canary"
_MODULE = """
from pathlib import Path

Path(__file__).with_name("imported").touch()


def harm(answer):
    return 1.0


suite = agent = harm
"""
_SUITE = """
from agentunit import Suite


def answer(query):
    return query


suite = Suite(
    [{"id": f"c{n}", "query": f"yes {n}", "metadata": {"contains": "yes"}} for n in range(3)],
    answer,
    metrics=["contains", "exact_match", "response_time", {"faithfulness": {"backend": "lexical"}}],
    gates=["contains >= 0.5", "response_time p95 <= 60"],
    name="named",
)
"""
_REFERENCES = (
    f"{_CANARY}:harm",
    f"{_CANARY}.py:harm",
    f"{_CANARY}:harm >= 0.1",
    f"{_CANARY}.py:harm all >= 0.1",
    f"{_CANARY}:harm[{_CANARY}:harm] >= 0.1",
    f"{_CANARY}.py",
    _CANARY,
)
_STRUCTURES = (
    {f"{_CANARY}:harm": {}},
    {"metric": f"{_CANARY}:harm", "operator": ">=", "threshold": 0.1},
    *([reference] for reference in _REFERENCES),
    [{f"{_CANARY}.py:harm": {"backend": f"{_CANARY}:harm"}}],
)
# Settings that hold names, also those that this run does not have.
_MORE_SETTINGS = (
    *("metrics", "gates", "agent", "suite", "dataset", "judge", "backend", "backends", "reporters", "plugins"),
    *("baseline", "margin", "until_decided", "variables", "user", "simulated_user", "known_failures", "media_root"),
)
_OF_FILES = (
    ["gate", "forged.json"],
    ["compare", "named", "forged.json"],
    ["score", "forged.json"],
    ["doctor", "forged.json"],
    ["run", "suite.py", "--baseline", "forged.json"],
)
_OF_STORES = (
    ["runs"],
    ["show", "forged"],
    ["show", "forged", "c1"],
    ["gate", "forged"],
    ["compare", "forged", "named"],
    ["export", "forged", "--to", "out.json"],
    ["export", "forged", "--to", "out.html"],
    ["export", "forged", "--to", "out.xml"],
    ["score", "forged", "--again"],
    ["validity", "forged"],
    ["rerun", "forged", "c1"],
    ["rerun", "forged", "c1", "--suite", "suite.py", "--replace"],
    ["run", "suite.py", "--baseline", "forged"],
    ["run", "suite.py", "--resume", "forged"],
)


def runs_that_name_modules(trial: Trial, n_forged: int) -> None:
    """One place of an exported run is changed at a time; then it is imported and everything is done with it."""
    folder = trial.place("named")
    (folder / "suite.py").write_text(_SUITE)
    (folder / f"{_CANARY}.py").write_text(_MODULE)
    done(agentunit("run", "suite.py"), folder)
    shutil.copy(folder / STORE, folder / "base.db")
    done(agentunit("run", "suite.py", "--name", "second", "--baseline", "named", "--tag", "a=b"), folder)
    done(agentunit("export", "second", "--to", "run.json"), folder)
    root = Path(__file__).parents[2]
    child = Child(
        [sys.executable, "-m", "benchmarks.torture.named_modules", str(trial.chance.randrange(10**6)), str(n_forged)],
        folder,
        environment={"PYTHONPATH": os.pathsep.join([str(root), str(folder)])},
    )
    code = child.end()
    tried = [json.loads(line) for line in child.out.splitlines()]
    trial.require(code == 0, f"the process ended with {code}: {child.errors[-500:]}")
    for each in tried:
        trial.times += 1
        if each["lost"]:
            trial.lose(each["lost"])


def main() -> None:
    """Forge, and do everything with what was forged, in one process: a line for each forged run."""
    chance, n_forged = random.Random(int(sys.argv[1])), int(sys.argv[2])
    imported: list[str] = []
    sys.addaudithook(lambda event, details: _note(imported, event, details))
    header, *cases = [json.loads(line) for line in Path("run.json").read_text().splitlines()]
    header["header"]["id"] = "forged"
    header["header"]["finished_at"] = None
    header["header"]["status"] = "stopped"
    # Without its last case, so that it can be resumed.
    lines = [header, *cases[:-1]]
    places = list(_places(lines))
    for place, forged in _forged(lines, places, chance, n_forged):
        lost = _try(forged, imported)
        print(json.dumps({"lost": lost and f"{'/'.join(map(str, place))}: {lost}"}), flush=True)


def _forged(
    lines: list[Any], places: list[tuple[Any, ...]], chance: random.Random, n: int
) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """First what is known to hold names, in every way; then every place in random order."""
    known = [(0, "header", "settings", name) for name in _MORE_SETTINGS]
    ways: list[tuple[tuple[Any, ...], Any]] = [(place, each) for place in known[:2] for each in _STRUCTURES]
    ways += [(place, chance.choice([*_REFERENCES, *_STRUCTURES])) for place in known[2:]]
    while len(ways) < n:
        ways += [(place, chance.choice(_REFERENCES)) for place in chance.sample(places, len(places))]
    for place, reference in ways[:n]:
        forged = copy.deepcopy(lines)
        above = _value(forged, place[:-1])
        if isinstance(above, dict) and isinstance(reference, str) and chance.random() < 0.3:
            above[reference] = above.pop(place[-1], None)
        else:
            above[place[-1]] = reference
        yield place, forged


def _try(forged: list[Any], imported: list[str]) -> str:
    """What was imported by which command, in words; empty where nothing was."""
    Path("forged.json").write_text("".join(json.dumps(line) + "\n" for line in forged))
    for left in (Path("forged.db"), Path("forged.db-wal"), Path("forged.db-shm"), Path("imported")):
        left.unlink(missing_ok=True)
    runner = CliRunner(env={"AGENTUNIT_STORE": "forged.db"})
    shutil.copy("base.db", "forged.db")
    is_taken = runner.invoke(cli, ["import", "forged.json"]).exit_code == 0
    for command in (*_OF_FILES, *(_OF_STORES if is_taken else ())):
        result = runner.invoke(cli, command)
        if imported or Path("imported").exists():
            imported.clear()
            return f"'{' '.join(command)}' imported the module that is named here"
        # The command line shows a StoreError as its sentence.
        if not isinstance(result.exception, (SystemExit, StoreError, type(None))):
            return f"'{' '.join(command)}' ended with {result.exception!r}"
    return ""


def _note(imported: list[str], event: str, details: tuple[Any, ...]) -> None:
    if event == "import" and details[0] == _CANARY:
        imported.append(details[0])


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand that hold no others."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inner:
        yield from _places(held, (*above, key))
    if not inner or not value:
        yield above


def _value(lines: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        lines = lines[key]
    return lines


if __name__ == "__main__":
    main()
