"""Quality backends beyond the lexical fallback: whichever are installed, their figures recorded for other machines.

A model takes minutes and its last digits depend on the processor. So what was recorded in
``recorded_FAMILY.json`` is shown as long as rows and code are the same; else the backend is measured anew where it is
installed, and left out where it is not. Services (a judge, RAGAS) are never asked: they would see the data and cost
money.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from agentunit.backends import quality
from agentunit.core.records import outcome_text
from benchmarks.validity.measure import Figure, LabelledCase

ROOT = Path(__file__).resolve().parents[2]
# The code whose change makes recorded figures stale. A backend that is not named here is measured every time.
_LOCAL_CODE = "packages/agentunit-local/src/agentunit_local"
CODE = {
    "local": (_LOCAL_CODE,),
    "local-large": (_LOCAL_CODE, "packages/agentunit-local-large/src/agentunit_local_large"),
}
_MEASURED_BY = ("measure.py", "at_threshold.py", "baselines.py", "quality_figures.py")
_WAY_OUT = {
    "local": "pip install ./packages/agentunit-local",
    "local-large": "pip install ./packages/agentunit-local ./packages/agentunit-local-large",
}
# A model on a GPU is the same model. The larger one judges groundedness alone.
_LESS = {"local-large": frozenset({"faithfulness"})}
# Bookkeeping of the training, and the recognizer of people, which scores no quality.
_NO_CODE = frozenset({"card.json", "recognizer", "recognizer.onnx", "__pycache__"})

Sets = Mapping[str, Sequence[LabelledCase]]


class Recorded(Struct, frozen=True):
    """The figures of one backend, and a digest of the rows and the code that they were made of."""

    made_of: str
    figures: list[Figure]


class BeyondLexical(Struct, frozen=True):
    """The figures by backend, why others have none, and the file that keeps the figures."""

    figures: dict[str, list[Figure]]
    missing: dict[str, str]
    files: dict[str, bytes]

    @property
    def remarks(self) -> list[str]:
        """A sentence for each backend without figures. The page is read in other folders than this one."""
        reasons = {name: reason.replace(str(ROOT), ".") for name, reason in self.missing.items()}
        return [f"`{name}` was not measured: {reason}." for name, reason in sorted(reasons.items())]


def beyond_lexical(
    family: str,
    measure: str,
    sets_for: Callable[[str], Sets],
    figures_of: Callable[[str, Sets], list[Figure]],
    *,
    use_recorded: bool,
) -> BeyondLexical:
    """The figures of every backend beyond the lexical one that measures this.

    ``sets_for`` gives the rows that a backend, named, is to score; ``figures_of`` scores them and makes the figures.
    """
    recorded = read_recorded(family)
    figures, missing, kept = {}, {}, {}
    for backend in sorted({*quality.installed_backends(), *CODE} - quality.SERVICES):
        if backend.endswith("-gpu") or (backend in _LESS and measure not in _LESS[backend]):
            continue
        sets = sets_for(backend)
        made_of = _fingerprint(backend, sets) if backend in CODE else None
        known = recorded.get(backend)
        if use_recorded and known is not None and known.made_of == made_of:
            figures[backend] = known.figures
        elif reason := why_not_measured(backend, measure):
            missing[backend] = reason
        else:
            figures[backend] = figures_of(backend, sets)
        if made_of and backend in figures:
            kept[backend] = Recorded(made_of, figures[backend])
    return BeyondLexical(figures, missing, {recorded_path(family): _encoded(kept)} if kept else {})


def why_not_measured(backend: str, measure: str) -> str | None:
    """Why a backend cannot be measured here; ``None`` when it can."""
    if backend not in quality.installed_backends():
        return f"it is not installed here ({_WAY_OUT[backend]})"
    loaded = quality.load_backend(backend)
    if isinstance(loaded, str):
        return loaded
    return quality.why_unready(loaded) if measure in loaded.measures else f"it does not measure {measure}"


def recorded_path(family: str) -> str:
    """Where a family's recorded figures lie in the repository."""
    return f"benchmarks/validity/recorded_{family}.json"


def read_recorded(family: str) -> dict[str, Recorded]:
    """What was recorded before; nothing where the file is absent."""
    path = ROOT / recorded_path(family)
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Recorded]) if path.is_file() else {}


def _encoded(kept: dict[str, Recorded]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n"


def _fingerprint(backend: str, sets: Sets) -> str:
    digest = hashlib.sha256()
    for name, cases in sorted(sets.items()):
        digest.update(name.encode())
        for record, label in cases:
            case = record.case
            told = [case.query, case.context, case.expected_output, outcome_text(record.outcome), label.value]
            digest.update(msgspec.json.encode([case.id, *told, str(label.group)]))
    digest.update(_code_digest(backend, ROOT))
    return digest.hexdigest()


@cache
def _code_digest(backend: str, root: Path) -> bytes:
    digest = hashlib.sha256()
    for module in _MEASURED_BY:
        digest.update(Path(__file__).with_name(module).read_bytes())
    for name in CODE[backend]:
        for file in sorted((root / name).rglob("*")):
            if file.is_file() and _NO_CODE.isdisjoint(file.relative_to(root / name).parts):
                digest.update(file.read_bytes())
    return digest.digest()
