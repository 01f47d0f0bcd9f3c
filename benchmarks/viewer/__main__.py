"""How fast the viewer opens large runs: ``python -m benchmarks.viewer`` (a million cases take ten minutes to make).

Times are those of whole requests to a server that was just started, as a browser sends them, over loopback; in brackets
the processor time that the server used meanwhile, which another load on the machine does not change (also for what it
does in the background).
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from agentunit.store.portable import export_run
from agentunit.store.sqlite import Store
from benchmarks.viewer.inspect_peer import inspect_rows
from benchmarks.viewer.large import long_transcript, many_cases

_FOLDER = Path(".bench") / "viewer"
_RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
Row = tuple[str, str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.viewer", description=__doc__)
    parser.add_argument("--cases", type=int, nargs="*", default=[100_000, 1_000_000], help="sizes of the runs")
    parser.add_argument("--bundle-cases", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=100_000, help="events of the long transcript")
    parser.add_argument(
        "--inspect", metavar="PYTHON", help="a Python that has inspect-ai, to measure its viewer beside"
    )
    parser.add_argument("--write-results", action="store_true", help=f"write {_RESULTS.name}")
    options = parser.parse_args(arguments)
    _FOLDER.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for row in _rows(options):
        rows.append(row)
        print(" | ".join(row), flush=True)
    if options.write_results:
        table = "\n".join(f"| {' | '.join(row)} |" for row in [("what", "measured", "target"), ("---",) * 3, *rows])
        machine = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} while measuring"
        _RESULTS.write_text(f"# The viewer\n\n{__doc__}\n{machine}.\n\n{table}\n", encoding="utf-8")
    return 0


def _rows(options: argparse.Namespace) -> Iterator[Row]:
    for n_cases in options.cases:
        yield from _table_rows(_made(f"many-{n_cases}.db", lambda path, n=n_cases: many_cases(path, n)), n_cases)
    if options.events:
        path = _made(f"long-{options.events}.db", lambda path: long_transcript(path, options.events, 1_200))
        yield from _transcript_rows(path, options.events)
    if options.bundle_cases:
        path = _made(f"many-{options.bundle_cases}.db", lambda path: many_cases(path, options.bundle_cases))
        yield from _bundle_rows(path, options.bundle_cases)
        if options.inspect:
            yield from inspect_rows(options.inspect, path, options.bundle_cases)


def _made(name: str, make: object) -> Path:
    path = _FOLDER / name
    if not path.exists():
        unfinished = path.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        make(unfinished)  # type: ignore[operator]
        unfinished.rename(path)
    return path


class Served(NamedTuple):
    """A server: its address, and its process."""

    address: str
    process: int

    def asked(self, path: str) -> tuple[str, bytes]:
        """What a request took, in all and of the server's processor, and what came."""
        cpu, began = self.cpu_s(), time.perf_counter()
        with urllib.request.urlopen(f"{self.address}{path}", timeout=600) as reply:
            content: bytes = reply.read()
        took = time.perf_counter() - began
        return f"{took * 1000:,.0f} ms ({(self.cpu_s() - cpu) * 1000:,.0f})", content

    def cpu_s(self) -> float:
        """Processor time of the server until now."""
        parts = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _served(path: Path) -> Iterator[Served]:
    """A server over a store, as the command makes it."""
    command = [sys.executable, "-m", "agentunit", "view", "--store", str(path), "--port", "7677"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield Served(server.stdout.readline().split()[0].rstrip("/"), server.pid)
    finally:
        server.terminate()
        server.wait(30)


def _run_id(server: Served) -> str:
    _, runs = server.asked("/api/runs")
    found = re.search(rb'"id":"([^"]+)"', runs)
    assert found is not None
    return found[1].decode()


def _table_rows(path: Path, n_cases: int) -> Iterator[Row]:
    began = time.perf_counter()
    with _served(path) as server:
        server.asked("/")
        run = f"/api/runs/{_run_id(server)}"
        server.asked(run)
        first, _ = server.asked(f"{run}/cases?limit=100")
        name = f"{n_cases:,} cases"
        target = "< 2 s" if n_cases >= 10**6 else ""
        yield (
            f"{name}: from the command to the first rows",
            f"{time.perf_counter() - began:.1f} s ({server.cpu_s():.1f})",
            target,
        )
        yield f"{name}: first page of the table", first, "≤ 300 ms" if n_cases <= 10**5 else ""
        asked = {
            "a page in the middle": f"limit=100&offset={n_cases // 2}",
            "sorted by a metric": "sort=faithfulness&desc=1",
            "sorted, a later page": "sort=faithfulness&desc=1&offset=5000",
            "filtered": f"filter={quote('faithfulness < 0.5 and tool_success == 1')}",
            "filtered by verdict": f"filter={quote('verdict == fail')}",
        }
        for what, query in asked.items():
            yield f"{name}: {what}", server.asked(f"{run}/cases?{query}")[0], ""
        while b'"pending":true' in server.asked(run)[1]:
            pass
        figures = f"{time.perf_counter() - began:.0f} s ({server.cpu_s():.0f})"
        yield f"{name}: all figures of the run (once, in the background)", figures, ""


def _transcript_rows(path: Path, n_events: int) -> Iterator[Row]:
    with Store(path, read_only=True) as store:
        n_bytes = sum(len(line) for *_, line in store.lines(store.runs()[0].id))
    with _served(path) as server:
        case = f"/api/runs/{_run_id(server)}/cases/0-0"
        name = f"{n_events:,} events, {n_bytes / 1e6:.0f} MB"
        asked = {
            "opened": "",
            "outline of all events": "/outline",
            "200 events in the middle": f"/events?offset={n_events // 2}&limit=200",
            "a text is looked for": "/find?text=nothing%20like%20it",
        }
        for what, path_of in asked.items():
            yield f"{name}: {what}", server.asked(f"{case}{path_of}")[0], "< 2 s" if what == "opened" else ""


def _bundle_rows(path: Path, n_cases: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, Store(path, read_only=True) as store:
        run_id = store.runs()[0].id
        records = b"\n".join(line for *_, line in store.lines(run_id))
        gzipped = len(gzip.compress(records, 9))
        portable = Path(folder) / "run.json.gz"
        export_run(store, run_id, portable)
        began = time.perf_counter()
        site = Path(folder) / "site"
        command = [sys.executable, "-m", "agentunit", "view", "--store", str(path), "--bundle", str(site)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took = time.perf_counter() - began
        sizes = [file.stat().st_size for file in (site / "data").rglob("*") if file.is_file()]
        name = f"bundle of {n_cases:,} cases"
        share = sum(sizes) / gzipped
        yield f"{name}: size against the gzipped records", f"{share:.2f} × {gzipped / 1e6:.1f} MB", "≤ 1.2 ×"
        against = f"{sum(sizes) / portable.stat().st_size:.2f} × {portable.stat().st_size / 1e6:.1f} MB"
        yield f"{name}: size against the exported run (records and scores)", against, ""
        yield f"{name}: largest part", f"{max(sizes) / 1e6:.2f} MB", "≤ 1 MB"
        yield f"{name}: time to write", f"{took:.0f} s", ""


if __name__ == "__main__":
    sys.exit(main())
