"""What the user configured for a judge, before anything of the judge is loaded.

A judge is a language model that is asked over HTTP: an add-on. Only ``configure(judge=…)`` and the environment's
``AGENTUNIT_JUDGE_…`` name one; where neither does, a run needs nothing of it.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, cast

from agentunit.doors import part

if TYPE_CHECKING:
    from agentunit.addons.judge.settings import JudgeSettings

PREFIX = "AGENTUNIT_JUDGE_"
SPEND_CAP_REACHED = "the spend cap is reached"
"""How the reason of a call begins that was not made for its cost."""

chosen: dict[str, Any] = {}
"""What ``configure_judge`` set for this process; only the judge's settings write it, with ``lock`` held."""
lock = threading.Lock()


def configure_judge(**settings: Any) -> None:
    """Set these for the whole process; they go before the environment, one by one. Nothing: forget what was set.

    A value of ``None`` takes the place of the environment's, too. What cannot be right is refused at once. A key that
    was set with an address does not go to another one.
    """
    if settings:
        part("configure_judge")(**settings)
        return
    with lock:
        chosen.clear()


def configured() -> JudgeSettings | None:
    """The settings in force, or ``None`` when no address or no model was named; ``ValueError`` when one is wrong."""
    return cast("JudgeSettings | None", part("judge_in_force")()) if is_any_named() else None


def configured_values() -> dict[str, Any]:
    """The settings in force, one by one, also where they do not make a judge yet; ``ValueError`` when one is wrong."""
    return cast("dict[str, Any]", part("judge_values")()) if is_any_named() else {}


def is_any_named() -> bool:
    """Whether anything was set about a judge, here or in the environment: where nothing was, none can be asked."""
    return bool(chosen) or any(name.startswith(PREFIX) for name in os.environ)


def judge_described() -> dict[str, Any] | None:
    """The judge as a run's record names it: no secret, and nothing of this machine."""
    settings = configured()
    here = ("cache", "cache_max_mb", "ca_file", "proxy")
    return None if settings is None else {k: v for k, v in settings.described().items() if k not in here}


def why_not_configured() -> str:
    """One sentence with what is missing; for when ``configured()`` is ``None``."""
    with lock:
        missing = [name for name in ("url", "model") if not (chosen.get(name) or os.environ.get(PREFIX + name.upper()))]
    variables = " and ".join(PREFIX + name.upper() for name in missing or ("url", "model"))
    example = "(the base address of a server, such as http://127.0.0.1:8000/v1, and a model's name; "
    return f"no judge is configured: set {variables} {example}{PREFIX}API_KEY where the server wants a key)"
