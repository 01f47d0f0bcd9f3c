"""Quality backends: what answers "is this answer grounded, correct, well retrieved?" beyond the lexical fallback.

A package offers one through the entry-point group ``agentunit.backends``: a name, and a callable that returns a
``QualityBackend``. Nothing is sent anywhere because a backend is installed: one that needs a service is ready only
when the user has configured it for AgentUnit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, Protocol

from agentunit.backends.services import is_any_named
from agentunit.installation import install_command
from agentunit.plugins import Plugin, PluginError, PluginTable, report_once, require

ENTRY_POINT_GROUP = "agentunit.backends"
LEXICAL = "lexical"
BACKEND_VARIABLE = "AGENTUNIT_BACKEND"
SERVICES = frozenset({"judge", "ragas"})
"""The backends that ask a language model elsewhere: what they are asked leaves this process, and may cost money."""
_OWN_BACKENDS = {"judge": "agentunit.addons.judge:backend", "ragas": "agentunit.addons.ragas:backend"}
_AUTOMATIC = ("ragas", "judge", "local-large", "local")
_LOCAL_SIZES = ("local", "local-large")


@dataclass(frozen=True)
class QualityQuestion:
    """One thing to judge. ``expected`` lists the acceptable answers, when the case has any.

    ``sources`` says of each text of the context where it came from, when that is not the case's context alone.
    """

    question: str | None
    context: Sequence[str]
    answer: str
    expected: Sequence[str] = ()
    sources: Sequence[str] = field(default=(), kw_only=True)


Scale = tuple[int, int] | tuple[str, ...]
"""The lowest and the highest score, or labels from worst to best."""


@dataclass(frozen=True)
class Criterion:
    """One thing that is scored. ``levels`` says of scores or labels, from worst to best, what they mean."""

    text: str
    scale: Scale = (1, 5)
    levels: tuple[tuple[int | str, str], ...] = ()
    weight: float = 1.0


@dataclass(frozen=True)
class RubricExample:
    """An answer with the scores that people gave it: one for each criterion, or ``overall``, from 0 to 1."""

    answer: str
    scores: tuple[int | str, ...]
    question: str | None = None
    reason: str | None = None
    overall: float | None = None


@dataclass(frozen=True)
class RubricQuestion(QualityQuestion):
    """An answer to be scored by criteria in plain words.

    ``scored_by`` are the criteria with their levels and weights; without it each of ``criteria`` has the ``scale``.
    ``messages`` (who, what) take the place of question and answer where a whole conversation is scored. ``steps`` is
    what the agent did on its way, ``tools`` what it could have used.
    """

    criteria: Sequence[str] = ()
    scale: Scale = (1, 5)
    scored_by: Sequence[Criterion] = ()
    examples: Sequence[RubricExample] = ()
    messages: Sequence[tuple[str, str]] = ()
    steps: Sequence[str] = ()
    tools: Sequence[str] = ()


@dataclass(frozen=True)
class PairQuestion(QualityQuestion):
    """Two answers to the same question: is ``answer`` better than ``other``?"""

    other: str = ""


@dataclass(frozen=True)
class Verdict:
    """A backend's answer: a score of 0 to 1 (higher is better), or ``None`` with a reason in the detail.

    A score that should be shown but decide nothing has the reason in its detail, as ``informational``. ``threshold``
    there is the score from which the backend calls such an answer good; a metric turns it as it turns the score.
    """

    value: float | None
    detail: dict[str, Any] = field(default_factory=dict)


class QualityBackend(Protocol):
    """What a backend package implements.

    One that waits for a service may also have ``start(measure, questions)``, which returns at once with a
    ``concurrent.futures.Future`` of what ``judge`` would return: the engine then has several batches under way. A batch
    that was started is never asked again, so a question that fails is a verdict without a value, with ``error``
    (``type`` and ``message``) in its detail. One whose attribute ``automatic`` is false is used only by its name. One
    that gains from more questions at once than the engine hands over by itself says how many in ``batch_questions``.
    One whose model another process can hold for many has ``hold_models`` and ``ask_elsewhere`` (``ray_models`` of the
    engine uses them).

    A verdict on faithfulness may list ``claims`` in its detail, each a dict whose ``passage`` is the number of the text
    of the context that decides; it counts from 0, or from the backend's attribute ``first_passage``. The metric adds
    where that text came from.
    """

    name: str
    measures: frozenset[str]

    def unready(self) -> str | None:
        """Why it cannot run now, with the way out; ``None`` when it can."""
        ...

    def judge(self, measure: str, questions: Sequence[QualityQuestion]) -> Sequence[Verdict]:
        """A verdict per question. ``measure`` is faithfulness, answer_correctness or retrieval_quality."""
        ...


class BackendUnavailable(RuntimeError):
    """A backend was named outright and cannot run here."""


def require_ready(reason: str | None) -> None:
    """Raise ``BackendUnavailable`` with the reason why something cannot run; ``None`` says that it can."""
    if reason is not None:
        raise BackendUnavailable(reason)


def resolve_backend(requested: str, measure: str, owner: str) -> QualityBackend | None:
    """The backend to use for a measure; ``None`` stands for the lexical fallback.

    ``auto`` takes the first that is installed, measures this and is ready: RAGAS with a configured judge (unless
    ``AGENTUNIT_RAGAS=0``), the judge itself, then the local model, the larger one first. Any other backend is used only
    when it is named, and one that is named must be able to run. The environment variable ``AGENTUNIT_BACKEND`` may name
    what ``auto`` means.
    """
    if requested == "auto":
        requested = os.environ.get(BACKEND_VARIABLE) or requested
    if requested == LEXICAL:
        return None
    found = installed_backends()
    if requested != "auto":
        return _named(requested, measure, owner, found)
    loaded = [load_backend(name) for name in _candidates(found)]
    for reason in loaded:
        if isinstance(reason, str):
            report_once(reason)
    usable = (each for each in loaded if not isinstance(each, str))
    return next((each for each in usable if _is_automatic(each, measure)), None)


class UnaskedBackend(NamedTuple):
    """A backend of which only the name is known: nothing of it is loaded, and nothing can be asked."""

    name: str


def unasked_backend(requested: str, measure: str, owner: str) -> UnaskedBackend | None:
    """What ``resolve_backend`` would take, without loading a model: one that is installed here is believed to run."""
    if requested == "auto":
        requested = os.environ.get(BACKEND_VARIABLE) or requested
    if requested == LEXICAL:
        return None
    found = installed_backends()
    if requested in found:
        return UnaskedBackend(requested)
    if requested != "auto":
        return UnaskedBackend(_named(requested, measure, owner, found).name)
    for name in _candidates(found):
        if name not in SERVICES or _is_automatic(load_backend(name), measure):
            return UnaskedBackend(name)
    return None


def _candidates(found: Container[str]) -> list[str]:
    """What ``auto`` may take of the backends found here; our own that ask a judge only where one was configured."""
    without = frozenset() if is_any_named() else SERVICES & _OWN_BACKENDS.keys()
    return [name for name in _AUTOMATIC if name in found and name not in without]


def _is_automatic(backend: QualityBackend | str, measure: str) -> bool:
    """Whether ``auto`` may take a backend for a measure, and it can run."""
    if isinstance(backend, str) or measure not in backend.measures:
        return False
    return getattr(backend, "automatic", True) and not why_unready(backend)


def missing_local_model() -> str | None:
    """The command that adds the local model; ``None`` where it is installed."""
    return None if "local" in installed_backends() else install_command("local")


def _named(requested: str, measure: str, owner: str, found: dict[str, Plugin]) -> QualityBackend:
    if requested not in found:
        names = ["auto", LEXICAL, *sorted(found)]
        nearest = get_close_matches(requested, names, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        if requested in _LOCAL_SIZES:
            hint = f"; {install_command(requested)} adds it"
        raise BackendUnavailable(
            f"{owner}: backend must be one of {', '.join(names)} (installed here); received {requested!r}{hint}"
        )
    backend = load_backend(requested)
    if isinstance(backend, str):
        raise BackendUnavailable(f"{owner}: {backend}")
    if measure not in backend.measures:
        raise BackendUnavailable(f"{owner}: backend {requested!r} does not measure {measure}")
    reason = why_unready(backend)
    if reason:
        raise BackendUnavailable(f"{owner}: backend {requested!r} cannot run: {reason}")
    return backend


@cache
def backend_table() -> PluginTable[QualityBackend]:
    """The backends by name, AgentUnit's own and those of installed packages."""
    return PluginTable("backend", ENTRY_POINT_GROUP, _OWN_BACKENDS, adopt=_adopted, reserved=("auto", LEXICAL))


@cache
def installed_backends() -> dict[str, Plugin]:
    """The backends that are here, by name; none of them is imported by looking."""
    return backend_table().entries


@cache
def load_backend(name: str) -> QualityBackend | str:
    """A backend, loaded once; a text with the reason when its package is broken."""
    try:
        return backend_table().load(name)
    except PluginError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  # a backend that is broken must not stop a run
        return f"backend {name!r} does not load: {type(error).__name__}: {error}"


def _adopted(make: Callable[[], QualityBackend], _: Plugin) -> QualityBackend:
    backend = make()
    require(backend, "quality backend", "name", "measures", "unready", "judge")
    return backend


def why_unready(backend: QualityBackend) -> str | None:
    """A backend's own word on why it cannot run; a backend that cannot even say so is not ready either."""
    try:
        return backend.unready()
    except Exception as error:  # noqa: BLE001  # a broken third-party package must not stop a run
        return f"{type(error).__name__}: {error}"
