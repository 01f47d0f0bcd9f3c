"""The packages we measure beside ours: what to install, what to import, how their trivial metric or agent is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """One package, in a virtual environment of its own, at a pinned version so that two people measure the same.

    ``scored_by`` is the file in ``trivial/`` that scores ready records with a metric that returns 1.0, ``recorded_by``
    the one that runs a trivial agent and keeps what it did on disk. ``run_by`` are the ways to run that agent and score
    what it answers: a file, and a word for the file and the row where there is more than one way. ``most_cases`` is how
    many cases it can be given without taking minutes.
    """

    name: str
    requirements: tuple[str, ...]
    import_statement: str
    scored_by: str = ""
    recorded_by: str = ""
    run_by: tuple[tuple[str, str], ...] = ()
    most_cases: int = 10_000


PEERS = (
    Peer("autoevals", ("autoevals==0.4.1",), "import autoevals", scored_by="with_autoevals.py"),
    Peer(
        "pydantic-evals",
        ("pydantic-evals==2.62.0",),
        "import pydantic_evals",
        run_by=(("run_with_pydantic_evals.py", ""),),
    ),
    Peer(
        "deepeval",
        ("deepeval==4.3.1",),
        "import deepeval",
        scored_by="with_deepeval.py",
        run_by=(("run_with_deepeval.py", ""),),
        most_cases=5_000,
    ),
    Peer(
        "inspect-ai",
        ("inspect-ai==0.3.285",),
        "import inspect_ai",
        recorded_by="record_with_inspect_ai.py",
        # Its log of every sample is most of the cost, and more than the others keep: so once without.
        run_by=(("record_with_inspect_ai.py", ""), ("record_with_inspect_ai.py", "less")),
        most_cases=1_000,
    ),
    # Without the second requirement ragas 0.4.3 installs, but does not import.
    Peer("ragas", ("ragas==0.4.3", "langchain-community<0.4"), "import ragas"),
    Peer(
        "arize-phoenix-evals",
        ("arize-phoenix-evals==3.9.4",),
        "import phoenix.evals",
        scored_by="with_phoenix_evals.py",
    ),
    Peer(
        "mlflow",
        ("mlflow==3.17.2",),
        "import mlflow",
        recorded_by="record_with_mlflow.py",
        run_by=(("record_with_mlflow.py", ""),),
        most_cases=100,
    ),
)
