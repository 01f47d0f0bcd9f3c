"""Run a scenario as the agent of a real suite, in its framework's environment, and print the records, one per line.

``python run_live.py SCENARIO FRAMEWORK thread|worker`` turns the framework on with ``agentunit.instrument(FRAMEWORK)``
(``own``: by the scenario itself) and asks the same question in three cases, two at a time. Connections to anywhere but
this machine are refused, and the names that were asked for are printed to stderr.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

OWN = "own"  # instead of a framework's name: the scenario turns its instrumentation on by itself
_LOCAL = (None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0")


def stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse to look up or connect to other machines."""
    host: Any = None
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    host = host.decode() if isinstance(host, bytes) else host
    if host not in _LOCAL:
        print(f"REFUSED {event} {host}", file=sys.__stderr__, flush=True)
        raise OSError(f"no connections in this test: {host}")


def main(scenario: str, framework: str, place: str) -> None:
    """Record the scenario and print what was recorded."""
    sys.addaudithook(stay_here)
    from opentelemetry import trace as otel

    import agentunit
    from agentunit.core.codec import encode_record

    names = [] if framework == OWN else [framework]

    with warnings.catch_warnings():
        # That AG2 1.x needs its middleware, which this scenario has.
        warnings.simplefilter("ignore", UserWarning)
        agentunit.instrument(*names)
        agentunit.instrument(*names)
    module = load_scenario(scenario)
    if not names:
        module.instrument(otel.get_tracer_provider())
    suite = agentunit.Suite(
        dataset=[{"id": f"live-{number}", "query": module.EXPECTED["question"]} for number in range(3)],
        agent=module.run,
        metrics=["token_usage"],
        concurrency=2,
        timeout_s=120 if place == "worker" else None,
    )
    for record in records_of(suite):
        print(encode_record(record).decode())


def records_of(suite: Any) -> list[Any]:
    """The records of one run of a suite."""
    from agentunit.engine.recording.runner import plan_run, record
    from agentunit.store.sqlite import Store

    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "runs.db") as store:
        plan = plan_run(suite, store)
        record(plan, store)
        return [stored.record for stored in store.records(plan.header.id)]


def load_scenario(name: str) -> Any:
    """The module of a scenario."""
    # Under another name: a scenario is called like the framework that it imports.
    path = Path(__file__).parent / "scenarios" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"scenario_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(*sys.argv[1:])
