"""Agents that do harm, in every place where AgentUnit runs an agent.

``TORTURE_HARM=segfault`` in the environment tries one kind of harm only, to look for what went wrong.
"""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from agentunit.store.sqlite import Store
from benchmarks.torture.bad_server import HTTP_HARMS, BadServer
from benchmarks.torture.children import agentunit, done, said_plainly
from benchmarks.torture.ledger import Ledger, Lost, Skipped, Trial
from benchmarks.torture.scenarios import STORE, check_store, run_ids, run_result

_HARMS = Path(__file__).parent / "victims" / "harms.py"
_N_CASES = 6
_EVIL = "c2"
# Enough for a case that does nothing; a case that hangs costs it once. Where a machine is so busy that a neighbor needs
# longer, all is done again with more: that it was late is no loss.
_TIMEOUTS_S = (8, 40, 200)

_SUITE = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agentunit import Suite
from agentunit.adapters.command import CommandAgent
from agentunit.adapters.http import HttpAgent
{imports}
suite = Suite(
    dataset=[
        {{"id": f"c{{n}}", "query": "evil" if n == 2 else "good", "expected_output": "right"}}
        for n in range({n_cases})
    ],
    agent={agent},
    metrics=["exact_match"],
    concurrency={concurrency},
    isolation={isolation!r},
    timeout_s={timeout_s},
)
"""

# In the run's own process these reach every case and AgentUnit itself, or end it: what was done before must be kept,
# and a resume must do the rest.
_SHARED = {
    "patched_builtins",
    "patched_modules",
    "emptied_modules",
    "limits",
    "no_garbage_collection_and_no_recursion",
    "closed_files",
    "closed_streams",
    "changes_the_loops_factory",
    "closes_the_loop",
}
_ENDS = {"os_exit", "os_exit_as_if_a_gate_failed", "segfault", "abort", "kills_itself", "terminates_itself"}
# In any place: they end the run from outside of their own process.
_ENDS_EVERYWHERE = {"kills_its_parent"}
# Of these AgentUnit promises only what it can know: which processes an agent in its own process started, and which
# daemons a command that ended well has left, it cannot.
_LEAVES_PROCESSES = {"fork_storm", "daemon_in_its_own_session", "child_that_holds_the_output", "fork_that_comes_back"}
# These get a timeout, which ends them.
_TAKES_LONG = {
    "hangs",
    "hangs_and_catches_everything",
    "blocks_the_loop",
    "blocks_the_loop_and_catches_everything",
    "refuses_cancellation",
    "answers_100_mb",
    "prints_100_mb",
    "trace_of_100_mb",
    "threads_that_stay",
}


@dataclass(frozen=True)
class Place:
    """Where an agent runs, and what it may do to others there."""

    name: str
    agent: str
    isolation: str
    harms: Callable[[], list[str]]
    is_shared: bool
    imports: str = ""
    is_fresh: bool = False
    ends: tuple[str, ...] = ()


def _sync() -> list[str]:
    return _marked("harm")


def _sync_here() -> list[str]:
    # The parent of the run's own process is the torture itself.
    return [each for each in _sync() if each not in _ENDS_EVERYWHERE]


def _async_here() -> list[str]:
    return [each for each in _async() if each not in _ENDS_EVERYWHERE]


def _async() -> list[str]:
    return [
        *_marked("async_harm"),
        *(each for each in _sync() if each not in ("hangs", "hangs_and_catches_everything")),
    ]


def _of_commands() -> list[str]:
    none = ("trace_of_100_mb", "trace_of_garbage", "answer_without_end", "answer_of_many_levels")
    return [each for each in _sync() if each not in none]


def _marked(decorator: str) -> list[str]:
    """The names of the harms, without loading the file that does them."""
    return [
        each.name
        for each in ast.parse(_HARMS.read_text()).body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(isinstance(mark, ast.Name) and mark.id == decorator for mark in each.decorator_list)
    ]


PLACES = (
    Place("function in worker processes", "'harms:function'", "auto", _sync, is_shared=False),
    Place("coroutine in worker processes", "'harms:coroutine'", "process", _async, is_shared=False),
    Place(
        "function in the run's own process",
        "harms.function",
        "thread",
        _sync_here,
        is_shared=True,
        imports="import harms",
    ),
    # There a KeyboardInterrupt is a Ctrl-C, whoever raised it: the run stops, and can be resumed.
    Place(
        "coroutine in the run's own loop",
        "harms.coroutine",
        "thread",
        _async_here,
        is_shared=True,
        imports="import harms",
        ends=("keyboard_interrupt",),
    ),
    Place(
        "command",
        "CommandAgent([sys.executable, os.path.abspath('harms.py')])",
        "auto",
        _of_commands,
        is_shared=False,
        is_fresh=True,
    ),
    Place("HTTP", "HttpAgent({address!r})", "auto", lambda: list(HTTP_HARMS), is_shared=False, is_fresh=True),
)


def torture_with_agents(ledger: Ledger) -> None:
    """Every harm in every place; two at a time, because most of them wait."""
    for place in PLACES:
        harms = place.harms()
        with ledger.trying("agents", f"{place.name}: {len(harms)} kinds of harm") as trial:
            if trial is None:
                continue
            chosen = os.environ.get("TORTURE_HARM")
            wanted = [each for each in harms if chosen in (None, each)]
            if not wanted:
                raise Skipped(f"{chosen} is not done here")
            for loss in _each(trial, place, wanted):
                trial.lose(loss)


def _each(trial: Trial, place: Place, harms: list[str]) -> Iterator[str]:
    def attempt(harm: str) -> str | None:
        said = None
        for timeout_s in _TIMEOUTS_S:
            folder = trial.place(f"{harm}-{timeout_s}")
            try:
                _do_harm(folder, place, harm, timeout_s)
                return None
            except _Late as loss:
                said = f"{harm}: {loss}"
            except Lost as loss:
                return f"{harm}: {loss}"
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return said

    with ThreadPoolExecutor(2) as pool:
        for loss in pool.map(attempt, harms):
            trial.times += 1
            if loss is not None:
                yield loss


class _Late(Lost):
    """A neighbor of the hostile case ran out of time, which may be the machine's doing."""


def _do_harm(folder: Path, place: Place, harm: str, timeout_s: float) -> None:
    # One case at a time where the process may end: then it is known which cases must be there.
    may_end = harm in _ENDS_EVERYWHERE or (place.is_shared and harm in _ENDS | _SHARED) or harm in place.ends
    server = BadServer(harm, folder) if place.name == "HTTP" else None
    shutil.copy(_HARMS, folder)
    (folder / "harm").write_text(harm)
    agent = place.agent.format(address=server.address) if server is not None else place.agent
    (folder / "suite.py").write_text(
        _SUITE.format(
            imports=place.imports,
            n_cases=_N_CASES,
            agent=agent,
            concurrency=1 if may_end else 3,
            isolation=place.isolation,
            timeout_s=timeout_s if harm in _TAKES_LONG or server is not None else None,
        )
    )
    try:
        may_leave = harm in _LEAVES_PROCESSES and (place.is_shared or place.is_fresh)
        first = done(agentunit("run", "suite.py"), folder, expect=None, leaves_processes=may_leave)
        kept = _look(folder, place, harm, first.process.returncode, first.errors, may_end=may_end)
        n_started = len(_started(folder))
        (folder / "tame").touch()
        again = ("--resume", run_ids(folder)[-1], "--retry-failed")
        second = done(agentunit("run", "suite.py", *again), folder, expect=None)
        # An answer that was kept and is wrong is still wrong.
        if second.process.returncode not in (0, 1) or not said_plainly(second):
            raise Lost(f"going on ended with {second.process.returncode}: {second.errors[-400:]}")
        check_store(folder / STORE)
        right = {f"c{n}": False for n in range(_N_CASES)}
        if (found := _outputs(folder)) != {**right, _EVIL: found.get(_EVIL, True)} or found[_EVIL]:
            raise Lost(f"after going on the cases are {found}")
        if repeated := kept & set(_started(folder)[n_started:]):
            raise Lost(f"finished cases were run again: {sorted(repeated)}")
    finally:
        if server is not None:
            server.close()


def _look(folder: Path, place: Place, harm: str, code: int, errors: str, *, may_end: bool) -> set[str]:
    """What is left of a run with one hostile case; returns the cases that are there and did not fail."""
    check_store(folder / STORE)
    found = _outputs(folder)
    kept = {case_id for case_id, failed in found.items() if not failed}
    neighbors = {f"c{n}" for n in range(_N_CASES)} - {_EVIL}
    if may_end:
        # Where it did not end, the cases before it are there all the same.
        before = {f"c{n}" for n in range(2)}
        if not before <= kept:
            raise Lost(f"the cases before it are not kept: {found}")
        if code == 0 and len(kept) < _N_CASES:
            raise Lost(f"a run that lacks cases ended with 0: {found}")
        return kept
    if "Traceback" in errors:
        raise Lost(f"a traceback: {errors[-500:]}")
    if set(found) != neighbors | {_EVIL}:
        raise Lost(f"cases are lacking: {sorted(neighbors - set(found))}; exit code {code}; {errors[-300:]}")
    # A worker is used again: an agent that breaks the process it runs in breaks its own later cases there.
    if not neighbors <= kept and (harm not in _SHARED or place.is_fresh):
        late = _timed_out(folder)
        kind = _Late if neighbors - kept <= late else Lost
        raise kind(f"its neighbors failed with it: {sorted(neighbors - kept)}; {errors[-300:]}")
    # A wrong answer, or none, fails the run; one that could not be scored is an error.
    if code not in ((0, 1) if len(kept) == _N_CASES else (1, 3)):
        raise Lost(f"it ended with {code} while {_N_CASES - len(kept)} cases failed: {errors[-300:]}")
    return kept


def _outputs(folder: Path) -> dict[str, bool]:
    """The cases of a run, and whether each failed; a neighbor with another answer than its own is a loss."""
    ids = run_ids(folder)
    if not ids:
        return {}
    records = run_result(folder, ids[-1])["records"].values()
    for case_id, failed, output, *_ in records:
        if case_id != _EVIL and not failed and output != "right":
            raise Lost(f"{case_id} has the answer {str(output)[:50]!r}")
    return {case_id: failed for case_id, failed, *_ in records}


def _timed_out(folder: Path) -> set[str]:
    with Store(folder / STORE, read_only=True) as store:
        return {
            each.case_id
            for each in store.records(run_ids(folder)[-1])
            if each.record.trace.metadata.get("failure") == "timeout"
        }


def _started(folder: Path) -> list[str]:
    log = folder / "started.log"
    return log.read_text().split() if log.exists() else []
