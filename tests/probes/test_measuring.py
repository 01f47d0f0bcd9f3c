"""Real work in real processes and threads, and what the probe sees of it."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import agentunit
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.records import Record
from agentunit.core.trace import TraceLog
from agentunit.probes import meter as metering
from agentunit.probes.measuring import measure

BURN = "import time\nend = time.process_time() + {cpu_s}\nwhile time.process_time() < end: pass"
needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux's /proc")


def burn(cpu_s: float) -> None:
    end = time.thread_time() + cpu_s
    while time.thread_time() < end:
        pass


def run_child(code: str) -> None:
    subprocess.run([sys.executable, "-S", "-c", code], check=True)


def children_s() -> float:
    """CPU seconds of the children that have ended, by the system's own count."""
    times = os.times()
    return times.children_user + times.children_system


def start_child(code: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-S", "-c", code], stdin=pipe, stdout=pipe, text=True)


def found_by(trace: TraceLog) -> dict[str, Any]:
    found = trace.metadata["resource_use"]
    assert isinstance(found, dict)
    return found


def test_cpu_time_of_this_process() -> None:
    trace = TraceLog()
    with measure(trace, sample_interval=0.05):
        burn(0.4)
    found = found_by(trace)
    assert found["cpu_s"] == pytest.approx(0.4, abs=0.15)
    assert found["elapsed_s"] >= 0.4
    assert found["n_samples"] >= 3
    percent = 100 * found["cpu_s"] / (found["elapsed_s"] * found["cores_available"])
    assert found["cpu_percent"] == pytest.approx(percent)
    assert found["energy_min_kwh"] <= found["energy_kwh"] <= found["energy_max_kwh"]
    assert found["energy_kwh"] > 0


@needs_proc
def test_memory_has_its_part_in_the_energy() -> None:
    trace = TraceLog()
    with measure(trace, sample_interval=0.05):
        block = bytearray(b"x") * 200_000_000
        time.sleep(0.2)
        del block
    found = found_by(trace)
    used_j = 3.6e6 * found["memory_kwh"]
    assert used_j == pytest.approx(0.39 * found["memory_mean_gb"] * found["elapsed_s"], rel=1e-6)
    assert found["energy_kwh"] == pytest.approx(found["cpu_kwh"] + found["memory_kwh"])
    # At the most all modules of the machine, which are two of 5 W (on ARM 1.5 W) or more: as CodeCarbon counts.
    most_j = 3.6e6 * found["energy_max_kwh"]
    assert most_j >= 3.0 * found["elapsed_s"] + 6.0 * found["cpu_s"] - 1e-9
    assert found["memory_method"] == "memory model"


@pytest.mark.parametrize("interval_s", [0.05, 30.0], ids=["seen while they ran", "between two samples"])
def test_children_and_grandchildren_count(interval_s: float) -> None:
    grandchild = BURN.format(cpu_s=0.3)
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', {grandchild!r}])\n{grandchild}"
    trace = TraceLog()
    before_s = children_s()
    with measure(trace, sample_interval=interval_s):
        run_child(child)
    # Starting two interpreters costs a little too.
    assert found_by(trace)["cpu_s"] == pytest.approx(children_s() - before_s, rel=0.1)


def test_children_one_after_the_other_are_counted_once() -> None:
    trace = TraceLog()
    before_s = children_s()
    with measure(trace, sample_interval=0.02):
        for _ in range(3):
            run_child(BURN.format(cpu_s=0.2))
    assert found_by(trace)["cpu_s"] == pytest.approx(children_s() - before_s, rel=0.1)


@needs_proc
def test_memory_of_a_child() -> None:
    trace, base = TraceLog(), TraceLog()
    with measure(base, sample_interval=0.05):
        time.sleep(0.1)
    with measure(trace, sample_interval=0.05):
        child = start_child("block = bytearray(b'x') * 300_000_000\nprint('ready', flush=True)\ninput()")
        assert child.stdout is not None
        child.stdout.readline()
    child.communicate("done\n")
    grown = found_by(trace)["memory_peak_gb"] - found_by(base)["memory_peak_gb"]
    assert 0.28 <= grown <= 0.4
    assert found_by(trace)["memory_mean_gb"] <= found_by(trace)["memory_peak_gb"]
    assert trace.metadata["memory_gb"] == found_by(trace)["memory_peak_gb"]


def test_means_are_over_time_not_over_samples() -> None:
    account = metering.Account(1.0)
    account.take_memory(100, 0.0)
    account.take_memory(100, 9.0)
    account.take_memory(300, 1.0)
    # Nine seconds at 100 and one second from 100 to 300: (900 + 200) / 10.
    assert account.memory_byte_s / 10 == pytest.approx(110)


@needs_proc
def test_threads_at_the_same_time_have_their_own_cpu_time() -> None:
    traces = [TraceLog(), TraceLog()]

    def work(position: int) -> None:
        with measure(traces[position], sample_interval=0.05):
            burn(0.2 + 0.4 * position)

    before_s = time.process_time()
    threads = [threading.Thread(target=work, args=(position,)) for position in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent_s = time.process_time() - before_s
    little, much = (found_by(trace)["cpu_s"] for trace in traces)
    assert little == pytest.approx(0.2, abs=0.15)
    assert much == pytest.approx(0.6, abs=0.2)
    assert little + much <= spent_s + 0.05
    assert [found_by(trace)["beside"] for trace in traces] == [1, 1]
    assert not any(found_by(trace)["shared"] for trace in traces)


@needs_proc
def test_children_belong_to_the_thread_that_started_them() -> None:
    busy, idle = TraceLog(), TraceLog()
    started = threading.Barrier(2)

    def start_a_child() -> None:
        with measure(busy, sample_interval=0.05):
            started.wait()
            run_child(BURN.format(cpu_s=0.5))

    def wait() -> None:
        with measure(idle, sample_interval=0.05):
            started.wait()
            time.sleep(0.4)

    threads = [threading.Thread(target=each) for each in (start_a_child, wait)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found_by(busy)["cpu_s"] >= 0.4
    assert found_by(idle)["cpu_s"] <= 0.15


def test_coroutines_in_one_thread_are_marked_as_shared_and_counted_once() -> None:
    traces = [TraceLog(), TraceLog()]

    async def work(position: int) -> None:
        async with measure(traces[position], sample_interval=0.05):
            await asyncio.sleep(0.01)
            burn(0.3 * position)
            await asyncio.sleep(0.01)

    async def both() -> None:
        await asyncio.gather(work(0), work(1))

    before_s = time.process_time()
    asyncio.run(both())
    spent_s = time.process_time() - before_s
    assert all(found_by(trace)["shared"] for trace in traces)
    total_s = sum(found_by(trace)["cpu_s"] for trace in traces)
    assert 0.25 <= total_s <= spent_s + 0.05


def test_a_child_alone() -> None:
    trace = TraceLog()
    child = start_child("input()\n" + BURN.format(cpu_s=0.3))
    with measure(trace, sample_interval=0.05, pid=child.pid):
        burn(0.5)
        child.communicate("go\n")
    assert 0.2 <= found_by(trace)["cpu_s"] <= 0.48


def test_a_measurement_within_one_of_the_same_trace_counts_once() -> None:
    trace = TraceLog()
    with measure(trace), measure(trace):
        burn(0.2)
    assert found_by(trace)["cpu_s"] == pytest.approx(0.2, abs=0.12)
    assert found_by(trace)["beside"] == 0


def test_measurements_one_after_the_other_add_up() -> None:
    trace = TraceLog()
    within_s = 0.0
    for _ in range(2):
        before_s = time.monotonic()
        with measure(trace):
            burn(0.15)
        within_s += time.monotonic() - before_s
        time.sleep(0.2)
    found = found_by(trace)
    assert found["cpu_s"] == pytest.approx(0.3, abs=0.12)
    assert 0.3 <= found["elapsed_s"] <= within_s
    assert trace.metadata["energy_kwh"] == found["energy_kwh"]


def test_what_the_agent_says_itself_stays() -> None:
    trace = TraceLog()
    with measure(trace):
        trace.metadata["energy_kwh"] = 0.5
    assert trace.metadata["energy_kwh"] == 0.5
    assert found_by(trace)["energy_kwh"] < 0.5


def test_starting_and_stopping_out_of_order() -> None:
    trace = TraceLog()
    measurement = measure(trace)
    with pytest.raises(RuntimeError, match="nothing to stop"):
        measurement.stop()
    measurement.start()
    with pytest.raises(RuntimeError, match="starts once"):
        measurement.start()
    first = measurement.stop()
    assert measurement.stop() is first
    assert found_by(trace) == first


@pytest.mark.parametrize("interval", [0, -1, float("nan"), float("inf"), 1e300, 10**400, "1", True, 0.0001])
def test_an_interval_that_cannot_be(interval: Any) -> None:
    with pytest.raises(ValueError, match="measure: sample_interval must be"):
        measure(TraceLog(), sample_interval=interval)


@pytest.mark.parametrize("pid", [0, -1, True, "7"])
def test_a_process_number_that_cannot_be(pid: Any) -> None:
    with pytest.raises(ValueError, match="measure: pid must be the number of a child of this process; received"):
        measure(TraceLog(), pid=pid)


@needs_proc
def test_a_process_that_is_no_child_has_no_figures() -> None:
    trace = TraceLog()
    with measure(trace, pid=os.getpid()):
        burn(0.02)
    assert "energy_kwh" not in trace.metadata
    assert found_by(trace)["problems"][-1] == f"no child of this process has the number {os.getpid()}"


def test_a_measurement_that_was_dropped_takes_no_part() -> None:
    for trace in (TraceLog(), TraceLog()):
        measure(trace).start()
        gc.collect()
        with measure(trace):
            burn(0.1)
        found = found_by(trace)
        # Half of it would be the other's, if that still took part.
        assert 0.07 <= found["cpu_s"] <= 0.3
        assert not found["shared"]


@pytest.mark.parametrize("earlier", ["much", 3, {"elapsed_s": 1.0, "energy_kwh": "bad"}, {"elapsed_s": 1.0, "gpus": 3}])
def test_what_is_no_measurement_is_replaced(earlier: Any) -> None:
    trace = TraceLog(metadata={"resource_use": earlier})
    with measure(trace):
        pass
    assert "is no measurement, and was replaced" in found_by(trace)["problems"][-1]
    assert trace.metadata["energy_kwh"] == found_by(trace)["energy_kwh"]


def test_only_a_trace_can_be_measured_into() -> None:
    with pytest.raises(TypeError, match="trace must be a TraceLog; received dict"):
        measure({})  # type: ignore[arg-type]


def test_an_exception_passes_through_and_is_measured() -> None:
    trace = TraceLog()
    with pytest.raises(ZeroDivisionError), measure(trace):
        _ = 1 / 0
    assert "cpu_s" in found_by(trace)


@pytest.mark.parametrize("part", ["_set_up", "_advance"])
def test_a_probe_that_fails_does_not_touch_the_agent(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> None:
        raise OSError("no such counter")

    monkeypatch.setattr(metering.Meter, part, fail)
    monkeypatch.setattr(metering, "_meter", metering.Meter())
    trace = TraceLog()
    with measure(trace):
        answer = 42
    assert answer == 42
    assert "no such counter" in found_by(trace)["problems"][0]
    assert "energy_kwh" not in trace.metadata


def test_a_probe_that_fails_on_the_way_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    meter, account = metering.Meter(), metering.Account(0.01)
    meter.begin(account)

    def fail() -> None:
        raise OSError("the counter is gone")

    monkeypatch.setattr(meter.tree, "advance", fail)
    deadline = time.monotonic() + 60
    while not any("the counter is gone" in each for each in meter.problems) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert any("the counter is gone" in each for each in meter.problems)
    with pytest.raises(OSError, match="gone"):
        meter.end(account)
    assert meter._active == []


def test_an_end_that_interrupts_a_look_does_not_wait_for_it() -> None:
    meter, account = metering.Meter(), metering.Account(0.02)
    meter.begin(account)
    with meter._lock:
        # As a signal handler finds it that runs while this very thread looks.
        meter._looking = threading.get_ident()
        assert not meter.end(account)
        meter._looking = None
    other = metering.Account(0.02)
    meter.begin(other)
    assert meter.end(other)
    assert meter._active == []


def test_no_thread_stays_behind() -> None:
    with measure(TraceLog(), sample_interval=0.05):
        assert "agentunit-probe" in {thread.name for thread in threading.enumerate()}
    deadline = time.monotonic() + 60
    while "agentunit-probe" in {thread.name for thread in threading.enumerate()} and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "agentunit-probe" not in {thread.name for thread in threading.enumerate()}


def test_a_clock_that_jumps_back_takes_nothing_away(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = metering.Meter()
    account = metering.Account(60.0)
    meter.begin(account)
    now = time.monotonic()
    monkeypatch.setattr(metering.time, "monotonic", lambda: now - 100.0)
    assert meter.end(account)
    assert account.elapsed_s >= 0
    assert account.cpu_s >= 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_meter_of_its_own() -> None:
    code = (
        "import os, sys, time, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from agentunit.core.trace import TraceLog\n"
        "from agentunit.probes import measure\n"
        "outer = measure(TraceLog(), sample_interval=0.05).start()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    trace = TraceLog()\n"
        "    with measure(trace, sample_interval=0.05):\n"
        "        end = time.process_time() + 0.2\n"
        "        while time.process_time() < end: pass\n"
        "    found = trace.metadata['resource_use']\n"
        "    os._exit(0 if 0.15 <= found['cpu_s'] <= 0.4 and found['beside'] == 0 else 1)\n"
        "status = os.waitpid(pid, 0)[1]\n"
        "seen = outer.stop()['cpu_s']\n"
        "sys.exit(status or not 0.15 <= seen <= 0.6)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_facts_survive_the_record_file() -> None:
    trace = TraceLog()
    with agentunit.probes.measure(trace):
        pass
    record = Record(agentunit.DatasetCase("q1"), trace, agentunit.Outcome(output="x"))
    assert decode_record(encode_record(record)).trace.metadata == trace.metadata
