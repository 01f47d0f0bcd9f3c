"""Energy and carbon of calls to remote models, by the offline tables of the package ecologits (extra
``sustainability``).

EcoLogits estimates from the number of tokens a model generated, its size (often a guess, hence ranges), the provider's
data centers and the electricity of the country they stand in. It counts no prompt tokens. Nothing is fetched.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from math import inf
from typing import Any, NamedTuple

from agentunit.installation import install_command

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
