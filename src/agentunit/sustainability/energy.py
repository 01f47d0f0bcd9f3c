"""How much energy a run took: measured or recorded on the machine, estimated for its calls to remote models."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from math import fsum, inf
from typing import Any, NamedTuple

from agentunit.core.results import MetricResult
from agentunit.formulas.sustainability import threshold_score
from agentunit.installation import install_command
from agentunit.metrics.base import ItemMetric, MetricInfo
from agentunit.metrics.inputs import InputProblem, Item, number_at
from agentunit.metrics.parameters import POSITIVE, check_parameters
from agentunit.metrics.sentences import amount
from agentunit.metrics.usage import Tokens, find_usage, llm_calls
from agentunit.probes.probe_settings import checked_interval
from agentunit.public import publish


class Amount(NamedTuple):
    """An amount with its least and most likely values."""

    low: float
    value: float
    high: float


@dataclass
class UsedEnergy:
    """Energy in kWh. ``local`` is the machine's, ``remote`` that of models elsewhere; ``None`` is unknown.

    Of the remote energy ``stated_remote`` was recorded by whoever knows it. ``remote_carbon_kg`` is that of the data
    centres for the rest, ``hardware_kg`` for making their hardware, which is shown but not added. ``missing`` says
    what could be neither measured nor estimated.
    """

    local: Amount | None = None
    remote: Amount | None = None
    stated_remote: Amount | None = None
    remote_carbon_kg: Amount | None = None
    hardware_kg: float | None = None
    backend: str = "measured"
    methods: dict[str, str] = field(default_factory=dict)
    shared: bool = False
    missing: list[str] = field(default_factory=list)

    @property
    def total(self) -> Amount | None:
        """All that is known."""
        return total_of(self.local, self.remote)

    @property
    def reason(self) -> str:
        """Why nothing is known."""
        return "; ".join(["no energy was measured or recorded", *self.missing])


def used_energy(item: Item) -> UsedEnergy:
    """The energy of a run, from its probes, its metadata and its LLM calls."""
    found = UsedEnergy()
    local = _local(item, found)
    remote = _remote(item, found)
    if local is None and not remote and found.stated_remote is not None:
        local = "recorded"
    found.backend = "+".join([*([local] if local else ()), *(["estimated"] if remote else ())]) or "measured"
    if found.local is None and found.remote is not None:
        found.missing.insert(0, "nothing was measured on the machine that the agent ran on")
    return found


def resources_of(item: Item) -> Mapping[str, Any]:
    """What the probes wrote into the trace."""
    resources = item.trace_metadata.get("resource_use")
    if resources is not None and not isinstance(resources, Mapping):
        raise InputProblem(f"trace.metadata['resource_use'] must be a dict; received {resources!r:.80}")
    return resources or {}


def problems_of(resources: Mapping[str, Any]) -> list[str]:
    """Why the probes could not measure something, in their own words."""
    return _texts(resources.get("problems"))


def missing_of(resources: Mapping[str, Any]) -> list[str]:
    """What the probes know to be in none of their figures."""
    return _texts(resources.get("missing"))


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, (list, tuple)) else []


def _local(item: Item, found: UsedEnergy) -> str | None:
    """Take in the machine's own energy; what it comes from."""
    resources = resources_of(item)
    measured = number_at("trace.metadata['resource_use']['energy_kwh']", resources.get("energy_kwh"))
    recorded = number_at("trace.metadata['energy_kwh']", item.trace_metadata.get("energy_kwh"))
    if recorded is not None and recorded != measured:
        found.local = Amount(recorded, recorded, recorded)
        found.methods["local"] = "recorded"
        return "recorded"
    if measured is None:
        found.missing += problems_of(resources)
        return None
    ends = [
        number_at(f"trace.metadata['resource_use'][{key!r}]", resources.get(key))
        for key in ("energy_min_kwh", "energy_max_kwh")
    ]
    low, high = (measured if end is None else end for end in ends)
    found.local = Amount(min(low, measured), measured, max(high, measured))
    found.shared = resources.get("shared") is True
    for part in ("cpu", "memory", "gpu"):
        if isinstance(resources.get(f"{part}_method"), str):
            found.methods[part] = resources[f"{part}_method"]
    found.missing += missing_of(resources)
    return "measured" if found.methods.get("cpu") == "rapl" else "modelled"


def _remote(item: Item, found: UsedEnergy) -> bool:
    """Take in the calls to remote models; whether there is an estimate."""
    energies: list[Amount] = []
    stated_energies: list[Amount] = []
    carbons: list[Amount] = []
    hardware: list[float] = []
    reasons: dict[str, None] = {}
    for place, model, tokens, stated in _calls(item):
        energy = number_at(f"{place}.energy_kwh", stated)
        if energy is not None:
            # Whoever serves the model knows best: 0 for one that runs on the measured machine.
            stated_energies.append(Amount(energy, energy, energy))
            found.methods.setdefault("remote", "recorded")
            continue
        problem = _problem(model, tokens)
        footprint = None if problem else footprint_of(model, tokens.completion or 0)
        if footprint is None:
            reasons[problem or f"the energy of model {model!r} is not known to {footprint_method()}"] = None
            continue
        found.methods["remote"] = footprint_method()
        energies.append(_middle(footprint.kwh))
        carbons.append(_middle(footprint.carbon_kg))
        hardware.append(_middle(footprint.hardware_kg).value)
    found.missing += reasons
    found.stated_remote = total_of(*stated_energies)
    found.remote = total_of(*energies, *stated_energies)
    found.remote_carbon_kg = total_of(*carbons)
    found.hardware_kg = fsum(hardware) if hardware else None
    return bool(energies)


def _calls(item: Item) -> Iterable[tuple[str, Any, Tokens, Any]]:
    calls = llm_calls(item)
    for position, payload, tokens in calls:
        yield f"trace.events[{position}]", payload.get("model"), tokens, payload.get("energy_kwh")
    if calls:
        return
    usage = find_usage(item)
    if usage is not None:
        yield "trace.metadata", item.trace_metadata.get("model"), usage[0], None


def _problem(model: Any, tokens: Tokens) -> str | None:
    if not isinstance(model, str) or not model:
        return "LLM tokens are recorded without the model that used them"
    if tokens.completion is None:
        return f"a call of {model} does not say how many tokens it generated"
    return footprint_unready()


def _middle(ends: tuple[float, float]) -> Amount:
    low, high = ends
    return Amount(low, (low + high) / 2, high)


def total_of(*amounts: Amount | None) -> Amount | None:
    """The sum of the amounts that are known; ``None`` when none is."""
    known = [amount for amount in amounts if amount is not None]
    return Amount(*(fsum(values) for values in zip(*known, strict=True))) if known else None


TRUST = {
    "measured": "measured",
    "modelled": "modeled",
    "recorded": "recorded",
    "estimated": "estimated",
    "measured+estimated": "estimated in part",
    "modelled+estimated": "estimated",
    "recorded+estimated": "estimated in part",
}
INPUTS = "trace.metadata.energy_kwh or trace.metadata.resource_use or trace llm_call"
sustainability_info = partial(
    MetricInfo,
    family="sustainability",
    direction="higher",
    range=(0.0, 1.0),
    backend="measured",
    extra="sustainability",
)


@dataclass(frozen=True)
class EnergyMetric(ItemMetric):
    """Energy of a run in kWh against a threshold: 1.0 up to ``threshold_kwh``, ``threshold / used`` beyond it.

    What the machine used is measured while the agent runs (every ``sample_interval`` seconds), or read from
    ``trace.metadata["energy_kwh"]``; what remote models used is estimated from their tokens (extra
    ``sustainability``). Tables show Wh.

    >>> EnergyMetric().evaluate({"id": "q1"}, {"metadata": {"energy_kwh": 0.4}}, "done").value
    0.25
    """

    threshold_kwh: float = 0.1
    sample_interval: float = 1.0

    info = sustainability_info(
        name="energy_consumption",
        summary="Energy of the run against a threshold: measured on the machine, estimated for remote models.",
        inputs=(INPUTS,),
        detail_keys=(
            "energy_kwh",
            "energy_wh",
            "threshold_kwh",
            "under_threshold",
            "local_wh",
            "remote_wh",
            "range_wh",
            "method",
            "incomplete",
        ),
        trust=TRUST,
        probes=("energy",),
        amount=("energy_wh", "Wh"),
    )

    def __post_init__(self) -> None:
        check_parameters(self, threshold_kwh=POSITIVE)
        checked_interval("EnergyMetric", "sample_interval", self.sample_interval)

    def score_item(self, item: Item) -> MetricResult:
        """Add up what is known of the run's energy."""
        used = used_energy(item)
        total = used.total
        if total is None:
            return self.unscored(used.reason, threshold_kwh=self.threshold_kwh)
        detail: dict[str, Any] = {
            "energy_kwh": total.value,
            "energy_wh": 1e3 * total.value,
            "threshold_kwh": self.threshold_kwh,
            "under_threshold": total.value <= self.threshold_kwh,
            "local_wh": thousandths(used.local),
            "remote_wh": thousandths(used.remote),
            "range_wh": [1e3 * total.low, 1e3 * total.high],
            "method": used.methods,
            "incomplete": bool(used.missing),
            **gaps(used),
            "backend": used.backend,
            "why": why_used(f"{amount(1e3 * total.value)} Wh", f"{amount(1e3 * self.threshold_kwh)} Wh", used),
        }
        return MetricResult(self.name, threshold_score(total.value, self.threshold_kwh), detail)


def why_used(used_amount: str, threshold: str, used: UsedEnergy) -> str:
    """An amount beside its threshold, and where it comes from; that it is not the whole, where something is missing."""
    sources = used.backend.replace("modelled", "modeled").replace("+", " and ")
    ending = "; not all is known" if used.missing else ""
    return f"{used_amount} {sources}, threshold {threshold}{ending}"


def gaps(used: UsedEnergy) -> dict[str, Any]:
    """What a reader must know about a figure: what is missing from it, and that others had a part in it."""
    notes: dict[str, Any] = {"missing": used.missing} if used.missing else {}
    if used.shared:
        notes["shared"] = "agents ran at the same time and cannot be separated: divided evenly among them"
    return notes


def thousandths(amount: Amount | None) -> float | None:
    """An amount in Wh or g, for one in kWh or kg."""
    return None if amount is None else 1e3 * amount.value


# Calls to remote models are estimated by the offline tables of the package ecologits (extra ``sustainability``): from
# the number of tokens a model generated, its size (often a guess, hence ranges), the provider's data centers and the
# electricity of the country they stand in. Prompt tokens are not counted. Nothing is fetched.

INSTALL_HINT = install_command("sustainability")
_PROBE_TOKENS = 1000


class Footprint(NamedTuple):
    """Least and most of what a call used: kWh of electricity, kilograms of CO2 equivalent of that electricity, and of
    making the hardware, in proportion to the time it was used."""

    kwh: tuple[float, float]
    carbon_kg: tuple[float, float]
    hardware_kg: tuple[float, float]


@lru_cache(maxsize=1)
def footprint_unready() -> str | None:
    """Why remote calls cannot be estimated here, with the command that adds it; ``None`` when they can."""
    if find_spec("ecologits") is not None:
        return None
    return f"the energy of remote LLM calls is estimated by ecologits, which is not installed ({INSTALL_HINT})"


# Asked with every record, and read from a file.
@lru_cache(maxsize=1)
def footprint_method() -> str:
    """What estimates, and in which version."""
    return f"ecologits {version('ecologits')}"


def footprint_of(model: str, completion_tokens: int) -> Footprint | None:
    """What a call to a remote model used that generated this many tokens; ``None`` for a model it does not know."""
    if footprint_unready() is not None:
        return None
    line = _line(model)
    if line is None:
        return None
    none, some = line
    steps = completion_tokens / _PROBE_TOKENS
    return Footprint(*(_along(zero, one, steps) for zero, one in zip(none, some, strict=True)))


def _along(zero: tuple[float, float], one: tuple[float, float], steps: float) -> tuple[float, float]:
    low, high = (start + (end - start) * steps for start, end in zip(zero, one, strict=True))
    return min(low, high), max(low, high)


@lru_cache(maxsize=1024)
def _line(model: str) -> tuple[Footprint, Footprint] | None:
    """A model's footprint at none and at some tokens: in between and beyond, the method is a straight line.

    The library takes a millisecond a call.
    """
    with _quiet():
        found = _find(model)
        if found is None:
            return None
        provider, name = found
        none, some = _ask(provider, name, 0), _ask(provider, name, _PROBE_TOKENS)
    return None if none is None or some is None else (none, some)


def _find(model: str) -> tuple[str, str] | None:
    """Provider and name of a model, also behind a prefix such as ``openai/`` or ``models/``."""
    from ecologits.model_repository import models
    from ecologits.tracers.utils import PROVIDER_CONFIG_MAP

    names = [model, *(model.split("/", n)[-1] for n in range(1, model.count("/") + 1))]
    for name in names:
        for provider in PROVIDER_CONFIG_MAP:
            if models.find_model(provider=provider, model_name=name) is not None:
                return provider, name
    return None


def _ask(provider: str, name: str, tokens: int) -> Footprint | None:
    from ecologits.tracers.utils import llm_impacts

    # Without the time a call took the library works with the time that such a model needs for its tokens.
    impacts = llm_impacts(provider, name, tokens, inf)
    if impacts.energy is None or impacts.usage is None or impacts.embodied is None:
        return None
    parts = (impacts.energy, impacts.usage.gwp, impacts.embodied.gwp)
    return Footprint(*(_ends(part.value) for part in parts))


def _ends(value: Any) -> tuple[float, float]:
    return float(getattr(value, "min", value)), float(getattr(value, "max", value))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that ecologits logs, which the ranges say already, and its logger class for everybody."""
    logger_class = logging.getLoggerClass()
    from ecologits.log import logger

    logging.setLoggerClass(logger_class)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


publish("agentunit.sustainability.metrics", EnergyMetric)
