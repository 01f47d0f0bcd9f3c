"""The packages we measure beside ours: what to install, what to import, how their trivial metric is run."""

from __future__ import annotations

from dataclasses import dataclass

# Pinned, so that two people measure the same thing; newer versions are a one-line change.


@dataclass(frozen=True)
class Peer:
    """One package, in a virtual environment of its own.

    ``trivial_script`` is the file in ``trivial/`` that runs a metric returning 1.0 over many cases; ``n_cases`` is
    how many it can be given without taking minutes. A peer without one says why in ``no_script_because``.
    """

    name: str
    requirements: tuple[str, ...]
    import_statement: str
    trivial_script: str | None = None
    n_cases: int = 10_000
    no_script_because: str = ""


PEERS = (
    Peer(
        "autoevals",
        ("autoevals==0.4.1",),
        "import autoevals",
        no_script_because="scores one case a call and has no runner over cases",
    ),
    Peer("pydantic-evals", ("pydantic-evals==2.62.0",), "import pydantic_evals", "with_pydantic_evals.py"),
    Peer("deepeval", ("deepeval==4.3.1",), "import deepeval", "with_deepeval.py", 5_000),
    Peer("inspect-ai", ("inspect-ai==0.3.285",), "import inspect_ai", "with_inspect_ai.py", 1_000),
    Peer(
        "ragas",
        # Without the second, ragas 0.4.3 installs but does not import.
        ("ragas==0.4.3", "langchain-community<0.4"),
        "import ragas",
        no_script_because="its metrics need a model; not measured here",
    ),
    Peer(
        "arize-phoenix-evals",
        ("arize-phoenix-evals==3.9.4",),
        "import phoenix.evals",
        "with_phoenix_evals.py",
    ),
)
