"""``agentunit run`` with every kind of agent, and ``--resume``."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from agentunit.store.sqlite import Store
from benchmarks.torture.children import Child, wait_for
from benchmarks.torture.ledger import Lost
from benchmarks.torture.scenarios import STORE, Scenario, check_store, kept_cases, run_ids, run_result

N_CASES = 48

# The progress that a run shows is what it acknowledges: what stood there must be in the store after a kill.
ACKNOWLEDGED = """
import contextlib
from agentunit.reports.progress import RecordingLine

def show(self, recording):
    with contextlib.suppress(OSError), open(os.path.join(HERE, f"acknowledged.{os.getpid()}"), "ab", 0) as log:
        log.write(f"{recording.n_done}\\n".encode())

RecordingLine.show = show
"""

AGENTS = """
import asyncio, os, time

HERE = os.path.dirname(os.path.abspath(__file__))


def note(case_id):
    with open(os.path.join(HERE, "started.log"), "ab", buffering=0) as log:
        log.write(f"{case_id}\\n".encode())


def answer(query, trace, seed):
    trace.record("tool_call", name="double", status="error" if seed % 5 == 0 else "success")
    if int(query) % 7 == 0:
        raise ValueError("a bad number")
    return str(2 * int(query))


def double(query, case, trace, seed, model=""):
    note(case.id + model)
    time.sleep(0.004)
    return answer(query, trace, seed)


async def double_async(query, case, trace, seed):
    note(case.id)
    await asyncio.sleep(0.004)
    return answer(query, trace, seed)
"""

SUITE = """
import os, sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from agentunit import Suite
from agentunit.adapters.command import CommandAgent
from agentunit.adapters.http import HttpAgent
import agents
{acknowledged}
suite = Suite(
    dataset=[{{"id": f"q{{n}}", "query": str(n), "expected_output": str(2 * n)}} for n in range({n_cases})],
    agent={agent},
    metrics=["exact_match", "tool_success", "answer_correctness"],
    concurrency={concurrency},
    isolation={isolation!r},
    seed=11,
    max_errors=1000,
)
"""


class Run(Scenario):
    """Recording: killed at any moment and resumed, it ends as if nobody had."""

    def __init__(self, name: str, agent: str, *, isolation: str = "auto", concurrency: int = 3) -> None:
        self.name = f"run and --resume: {name}"
        self._agent = agent
        self._isolation = isolation
        self._concurrency = concurrency
        self._kept: set[str] = set()
        self._n_started = 0
        self._child: Child | None = None

    def prepare(self, folder: Path) -> None:
        (folder / "agents.py").write_text(AGENTS)
        (folder / "suite.py").write_text(
            SUITE.format(
                acknowledged=ACKNOWLEDGED,
                n_cases=N_CASES,
                agent=self.agent_of(folder),
                concurrency=self._concurrency,
                isolation=self._isolation,
            )
        )

    def agent_of(self, folder: Path) -> str:
        return self._agent

    def started(self, folder: Path) -> list[str]:
        """The cases that the agent was asked, in order, with repetitions."""
        log = folder / "started.log"
        return log.read_text().split() if log.exists() else []

    def start(self, folder: Path) -> Child:
        known = run_ids(folder)
        self._kept = kept_cases(folder, known[-1]) if known else set()
        self._n_started = len(self.started(folder))
        self._child = self.run(folder, "run", "suite.py", *(("--resume", known[-1]) if known else ()))
        return self._child

    def interrupt(self, folder: Path) -> str:
        """Kill a run when a few of its cases have begun; returns its id."""
        child = self.start(folder)
        try:
            wait_for(lambda: child.is_over or len(self.started(folder)) > 8, "the run does not begin")
            child.kill(group=True)
            child.end()
        finally:
            child.clear()
        self.check(folder)
        return run_ids(folder)[-1]

    def has_begun(self, folder: Path) -> bool:
        return len(self.started(folder)) > self._n_started

    def check(self, folder: Path) -> None:
        check_store(folder / STORE)
        known = run_ids(folder)
        if len(known) > 1:
            raise Lost("going on with a run began another one")
        now = kept_cases(folder, known[-1]) if known else set()
        if not self._kept <= now:
            raise Lost(f"cases that were kept are gone: {sorted(self._kept - now)[:5]}")
        repeated = self._kept & set(self.started(folder)[self._n_started :])
        if repeated:
            raise Lost(f"finished cases were run again: {sorted(repeated)[:5]}")
        log = folder / f"acknowledged.{self._child.process.pid}" if self._child else None
        # On a full disk the log itself may be empty.
        counts = log.read_text().split() if log is not None and log.exists() else []
        said = int(counts[-1]) if counts else 0
        if len(now) < len(self._kept) + said:
            raise Lost(f"the run had shown {said} cases as done and the store holds {len(now) - len(self._kept)}")

    def result(self, folder: Path) -> object:
        [run_id] = run_ids(folder)
        return run_result(folder, run_id)


class CommandRun(Run):
    """A command as the agent: a shell, which starts faster than Python."""

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        (folder / "agent.sh").write_text(
            f"read -r question\n"
            f'id=$(printf \'%s\' "$question" | sed -n \'s/.*"id": *"\\(q[0-9]*\\)".*/\\1/p\')\n'
            f'echo "$id" >> {folder}/started.log\n'
            'case "$id" in *7) echo broken >&2; exit 3;; esac\n'
            'echo "$((2 * ${id#q}))"\n'
        )

    def agent_of(self, folder: Path) -> str:
        return f"CommandAgent(['sh', {str(folder / 'agent.sh')!r}])"


class HttpRun(Run):
    """An agent behind HTTP, whose server outlives the run."""

    def begin(self) -> None:
        self._asked: dict[str, list[str]] = {}
        asked = self._asked

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked.setdefault(self.path, []).append(question["id"])
                body = json.dumps({"output": str(2 * int(question["query"]))}).encode()
                self.send_response(500 if question["id"].endswith("7") else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *arguments: object) -> None:
                pass  # clients are killed here, that is what it is for

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def agent_of(self, folder: Path) -> str:
        return f"HttpAgent('http://127.0.0.1:{self._server.server_address[1]}/{folder.name}')"

    def started(self, folder: Path) -> list[str]:
        return list(self._asked.get(f"/{folder.name}", ()))

    def result(self, folder: Path) -> object:
        return super().result(folder)


class VariantsRun(Run):
    """``--set model=a,b``: the variant that was struck goes on by its id, those that had not begun by their value."""

    # The second process of a variant is a run of its own, which goes on when the first one alone is killed.
    always_group = True
    _VARIANTS = ("a", "b")

    def __init__(self) -> None:
        super().__init__("variants (--set)", "agents.double")

    def start(self, folder: Path) -> Child:
        self._n_started = len(self.started(folder))
        found = self._found(folder)
        self._before = {value: kept_cases(folder, run_id) for value, (run_id, _) in found.items()}
        self._of_all = not found and not (folder / "begun").exists()
        if self._of_all:
            (folder / "begun").touch()
            return self.run(folder, "run", "suite.py", "--set", f"model={','.join(self._VARIANTS)}")
        for value in self._VARIANTS:
            if value not in found:
                return self.run(folder, "run", "suite.py", "--set", f"model={value}")
            run_id, status = found[value]
            if status != "finished":
                return self.run(folder, "run", "suite.py", "--resume", run_id)
        # All is recorded; a resume scores what is left.
        return self.run(folder, "run", "suite.py", "--resume", found[self._VARIANTS[-1]][0])

    def check(self, folder: Path) -> None:
        check_store(folder / STORE)
        found = self._found(folder)
        for value, kept in self._before.items():
            now = kept_cases(folder, found[value][0])
            if not kept <= now:
                raise Lost(f"cases that were kept are gone: {sorted(kept - now)[:5]}")
            again = {case_id + value for case_id in kept} & set(self.started(folder)[self._n_started :])
            if again:
                raise Lost(f"finished cases were run again: {sorted(again)[:5]}")

    def must_hear(self, folder: Path) -> bool:
        return self._of_all and not self.is_whole(folder)

    def is_whole(self, folder: Path) -> bool:
        found = self._found(folder)
        if len(found) < len(self._VARIANTS):
            return False
        results = [run_result(folder, run_id) for run_id, _ in found.values()]
        return all(
            each["status"] == "finished" and len(each["scores"]) == 3 * len(each["records"]) == 3 * N_CASES
            for each in results
        )

    def result(self, folder: Path) -> object:
        return {value: run_result(folder, run_id) for value, (run_id, _) in self._found(folder).items()}

    def _found(self, folder: Path) -> dict[str, tuple[str, str]]:
        if not run_ids(folder):
            return {}
        with Store(folder / STORE, read_only=True) as store:
            return {header.settings["set"]["model"]: (header.id, header.status) for header in store.runs()}


def run_scenarios() -> list[Scenario]:
    """Every kind of agent."""
    return [
        Run("function in worker processes", "'agents:double'"),
        Run("function in its own process", "agents.double", isolation="thread"),
        Run("coroutine", "agents.double_async", isolation="thread", concurrency=8),
        CommandRun("command", ""),
        HttpRun("HTTP", ""),
        VariantsRun(),
    ]
