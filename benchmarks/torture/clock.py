"""A clock that jumps: a library put before the system's own says that it is earlier than it was."""

from __future__ import annotations

import json
import shutil
import subprocess

from agentunit.store.sqlite import Store
from benchmarks.torture.children import agentunit, done
from benchmarks.torture.ledger import Ledger, Skipped, Trial
from benchmarks.torture.scenarios import STORE, check_store, run_ids, run_result
from benchmarks.torture.scenarios_run import Run

# Every TORTURE_JUMP_EVERY readings the clock is set back by TORTURE_JUMP_S more; TORTURE_CLOCK_S is where it starts.
_SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long number(const char *name) { const char *text = getenv(name); return text ? atol(text) : 0; }
static long offset(void) {
    static long readings = 0;
    long every = number("TORTURE_JUMP_EVERY");
    long jumps = every ? __sync_add_and_fetch(&readings, 1) / every : 0;
    return number("TORTURE_CLOCK_S") - jumps * number("TORTURE_JUMP_S");
}
int clock_gettime(clockid_t which, struct timespec *at) {
    int result = (int) syscall(SYS_clock_gettime, which, at);
    if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) at->tv_sec += offset();
    return result;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) { at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000; }
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""
_DAY_S = 86400


def torture_with_clock(ledger: Ledger) -> None:
    """Runs while the clock is set back."""
    with ledger.trying(
        "clock", "set back an hour again and again while a run is recorded, scored and resumed"
    ) as trial:
        if trial is not None:
            _jumping(trial, _compiled(trial))
    with ledger.trying("clock", "set back a day between two runs: 'last' is the one begun last") as trial:
        if trial is not None:
            _set_back_between(trial, _compiled(trial))


def _compiled(trial: Trial) -> dict[str, str]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Skipped("no C compiler, which the changed clock is made with")
    source, library = trial.folder / "clock.c", trial.folder / "clock.so"
    source.write_text(_SHIM)
    made = subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], capture_output=True)
    if made.returncode:
        raise Skipped(f"the changed clock cannot be compiled: {made.stderr.decode()[-100:]}")
    environment = {"LD_PRELOAD": str(library)}
    child = done(["date", "+%Y"], trial.folder, environment={**environment, "TORTURE_CLOCK_S": str(-40 * 365 * _DAY_S)})
    if not child.out.strip().isdecimal() or int(child.out) > 2010:
        raise Skipped("the clock cannot be changed for a process here")
    return environment


def _jumping(trial: Trial, environment: dict[str, str]) -> None:
    scenario = Run("function in worker processes", "'agents:double'")
    results = []
    for name, changed in (
        ("steady", {}),
        ("jumping", {**environment, "TORTURE_JUMP_EVERY": "20", "TORTURE_JUMP_S": "3600"}),
    ):
        folder = trial.place(name)
        scenario.prepare(folder)
        scenario.environment = changed
        scenario.interrupt(folder)
        done(agentunit("run", "suite.py", "--resume", "last"), folder, environment=changed)
        done(agentunit("score", "last", "--metrics", "token_usage,response_time"), folder, environment=changed)
        check_store(folder / STORE)
        [run_id] = run_ids(folder)
        result = run_result(folder, run_id)
        # How long an agent took is another each time, but never less than nothing.
        times = [result["scores"].pop(key)[0] for key in list(result["scores"]) if key[2] == "response_time"]
        trial.require(all(value is None or value >= 0 for value in times), "a case took less than no time")
        with Store(folder / STORE, read_only=True) as store:
            trial.require(all(each.elapsed_s >= 0 for each in store.records(run_id)), "a case took less than no time")
        results.append(result)
        trial.times += 3 if changed else 0
    trial.require(results[0] == results[1], "with a clock that is set back the result is another")


def _set_back_between(trial: Trial, environment: dict[str, str]) -> None:
    folder = trial.place("two-runs")
    Run("function in its own process", "agents.double", isolation="thread").prepare(folder)
    done(agentunit("run", "suite.py", "--limit", "3", "--name", "today"), folder)
    back = {**environment, "TORTURE_CLOCK_S": str(-_DAY_S)}
    done(agentunit("run", "suite.py", "--limit", "4", "--name", "yesterday"), folder, environment=back)
    shown = json.loads(done(agentunit("runs", "--json"), folder).out)
    names = [each["name"] for each in (shown if isinstance(shown, list) else shown["runs"])]
    trial.require(names[:2] == ["yesterday", "today"], f"the runs are listed as {names}")
    with Store(folder / STORE, read_only=True) as store:
        trial.require(store.find_run("last").name == "yesterday", "'last' is not the run that was begun last")
    done(agentunit("score", "last", "--metrics", "token_usage"), folder, environment=back)
    trial.times += 2
