"""The packages we measure beside ours: what to install, what to import, how their trivial metric or agent is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """One package, in a virtual environment of its own, at a pinned version so that two people measure the same.

    ``trivial_runs`` are the ways a metric returning 1.0 is run over many cases: a file in ``trivial/``, and a label
    where there is more than one way, which the file gets as its second argument. ``recorded_by`` is the file that runs
    a trivial agent and keeps what it did. ``most_cases`` is how many cases it can be given without taking minutes.
    """

    name: str
    requirements: tuple[str, ...]
    import_statement: str
    trivial_runs: tuple[tuple[str, str], ...] = ()
    most_cases: int = 10_000
    recorded_by: str = ""


PEERS = (
    Peer("autoevals", ("autoevals==0.4.1",), "import autoevals"),
    Peer("pydantic-evals", ("pydantic-evals==2.62.0",), "import pydantic_evals", (("with_pydantic_evals.py", ""),)),
    Peer("deepeval", ("deepeval==4.3.1",), "import deepeval", (("with_deepeval.py", ""),), 5_000),
    Peer(
        "inspect-ai",
        ("inspect-ai==0.3.285",),
        "import inspect_ai",
        # Its log of every sample is most of the cost, and more than the others keep: so once without.
        (("with_inspect_ai.py", ""), ("with_inspect_ai.py", "no sample log")),
        1_000,
        "record_with_inspect_ai.py",
    ),
    # Without the second requirement ragas 0.4.3 installs, but does not import.
    Peer("ragas", ("ragas==0.4.3", "langchain-community<0.4"), "import ragas"),
    Peer(
        "arize-phoenix-evals",
        ("arize-phoenix-evals==3.9.4",),
        "import phoenix.evals",
        (("with_phoenix_evals.py", ""),),
    ),
    # Its evaluation of a function keeps a trace of each call: measured as recording, not as a metric over records.
    Peer("mlflow", ("mlflow==3.17.2",), "import mlflow", (), 100, "record_with_mlflow.py"),
)
