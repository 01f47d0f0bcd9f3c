"""RAGAS as it is installed here: whether it can be imported, why not, and the classes that are used of it."""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, NamedTuple

from agentunit.installation import install_command

RAGAS_EXTRA = install_command("ragas")
# Up to this version RAGAS imports a module that later releases of langchain-community do not have.
_LAST_BROKEN_BESIDE = (0, 4, 3)
_FIRST_WITHOUT_MODULE = (0, 4)


class Ragas(NamedTuple):
    """The metric classes of RAGAS that are used."""

    faithfulness: Any
    answer_correctness: Any
    context_precision: Any
    context_utilization: Any


def why_not_installed() -> str | None:
    """Why RAGAS cannot be there, as far as that can be told without importing it; ``None`` when it may work."""
    if find_spec("ragas") is None:
        return f"RAGAS is not installed; {RAGAS_EXTRA} adds it"
    ragas, community = _installed("ragas"), _installed("langchain-community")
    if ragas and community and ragas[1] <= _LAST_BROKEN_BESIDE and community[1] >= _FIRST_WITHOUT_MODULE:
        return (
            f"ragas {ragas[0]} cannot be imported with langchain-community {community[0]}; "
            f'{RAGAS_EXTRA} or pip install "langchain-community<0.4" fixes that'
        )
    return None


@cache
def load_ragas() -> Ragas | str:
    """The classes of RAGAS, imported once (this takes seconds); a text with reason and way out when that fails."""
    # Read once by RAGAS, when it would first report to its makers.
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from ragas.embeddings.base import BaseRagasEmbedding
            from ragas.llms.base import InstructorBaseRagasLLM
            from ragas.metrics.collections import (
                AnswerCorrectness,
                ContextPrecision,
                ContextUtilization,
                Faithfulness,
            )
    except Exception as error:  # noqa: BLE001  # whatever a broken install raises, the user is told
        found = _installed("ragas")
        what = f"ragas {found[0]}" if found else "ragas"
        return f"{what} is installed but cannot be imported ({type(error).__name__}: {error}); {RAGAS_EXTRA} fixes that"

    from agentunit.addons.ragas._model import JudgeModel
    from agentunit.addons.ragas._ragas_embeddings import RagasEmbeddings

    # RAGAS refuses what is no instance of its abstract classes; deriving from them would import it with this package.
    InstructorBaseRagasLLM.register(JudgeModel)
    BaseRagasEmbedding.register(RagasEmbeddings)
    return Ragas(Faithfulness, AnswerCorrectness, ContextPrecision, ContextUtilization)


def _installed(distribution: str) -> tuple[str, tuple[int, ...]] | None:
    """A version as text and as numbers; ``None`` when it is unknown."""
    try:
        found = version(distribution)
    except PackageNotFoundError:
        return None
    return found, tuple(int(part) for part in found.split(".")[:3] if part.isdigit())
