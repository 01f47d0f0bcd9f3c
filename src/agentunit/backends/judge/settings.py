"""How the judge is reached, and what it may take: from ``configure(...)``, else from ``AGENTUNIT_JUDGE_…``.

Nothing else is configuration: a key that lies in the environment under another name is never used.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from agentunit.backends.judge.address import Address, address_of

PREFIX = "AGENTUNIT_JUDGE_"
_NO_CACHE = ("", "none", "off", "no", "false", "0")
_YES = ("1", "true", "yes", "on")
_NO = ("", "0", "false", "no", "off")


@dataclass(frozen=True, repr=False)
class JudgeSettings:
    """A judge behind an OpenAI-compatible server, and the bounds within which it is asked.

    ``url`` is the base (``http://127.0.0.1:8000/v1``). ``timeout_s`` is for one attempt of one call,
    ``run_timeout_s`` for all calls of a run. ``max_spend_usd`` needs a price: the two ``usd_per_million_…``, or a model
    that the price table knows. ``cache`` is a folder, ``"default"`` the user's cache folder, ``None`` no cache.
    The key appears in no ``repr``, and a password or key in the address neither.
    """

    url: str
    model: str
    api_key: str | None = None
    concurrency: int = 16
    timeout_s: float = 60.0
    run_timeout_s: float | None = None
    max_attempts: int = 5
    max_spend_usd: float | None = None
    usd_per_million_input: float | None = None
    usd_per_million_output: float | None = None
    repeats: int = 1
    cache: str | None = "default"
    transcripts: bool = False

    def __post_init__(self) -> None:
        address_of(self.url)
        _check(isinstance(self.model, str) and bool(self.model.strip()), "model", "be the name of a model", self.model)
        key = self.api_key
        if not (key is None or (isinstance(key, str) and key.isascii() and key.isprintable() and key == key.strip())):
            raise ValueError("JudgeSettings: api_key must be printable ASCII text without spaces around it")
        for name in ("concurrency", "max_attempts", "repeats"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            _check(whole, name, "be a whole number of at least 1", value)
        for name in ("timeout_s", "run_timeout_s"):
            _check_amount(name, getattr(self, name), may_be_zero=False, may_be_none=name == "run_timeout_s")
        for name in ("max_spend_usd", "usd_per_million_input", "usd_per_million_output"):
            _check_amount(name, getattr(self, name), may_be_zero=True, may_be_none=True)
        both = (self.usd_per_million_input is None) == (self.usd_per_million_output is None)
        _check(both, "usd_per_million_input", "be given together with usd_per_million_output", "only one of them")
        usable = self.cache is None or (isinstance(self.cache, str) and bool(self.cache.strip()))
        _check(usable, "cache", "be a folder, 'default' or None", self.cache)
        _check(isinstance(self.transcripts, bool), "transcripts", "be True or False", self.transcripts)

    def __repr__(self) -> str:
        return f"JudgeSettings({', '.join(f'{name}={value!r}' for name, value in self.described().items())})"

    @property
    def address(self) -> Address:
        """Where requests go."""
        return address_of(self.url, self.api_key)

    def described(self) -> dict[str, Any]:
        """The settings without secrets, fit for a run's record."""
        found = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "api_key"}
        return found | {"url": self.address.shown}


def _check(holds: bool, name: str, rule: str, value: object) -> None:
    if not holds:
        raise ValueError(f"JudgeSettings: {name} must {rule}; received {value!r}")


def _check_amount(name: str, value: object, *, may_be_zero: bool, may_be_none: bool) -> None:
    if value is None and may_be_none:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    enough = is_number and (value >= 0 if may_be_zero else value > 0)  # type: ignore[operator]
    _check(enough, name, f"be a number {'of at least' if may_be_zero else 'above'} 0", value)


_given: dict[str, Any] = {}
_lock = threading.Lock()


def configure_judge(**settings: Any) -> None:
    """Set these for the whole process; they go before the environment, one by one. Nothing: forget what was set.

    A value of ``None`` takes the place of the environment's, too. What cannot be right is refused at once. A key that
    was set with an address does not go to another one.
    """
    names = [each.name for each in fields(JudgeSettings)]
    for name in settings:
        if name not in names:
            nearest = get_close_matches(name, names, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; there are {', '.join(names)}"
            raise TypeError(f"configure_judge: {name!r} is no setting of the judge{hint}")
    with _lock:
        kept = dict(_given)
        if "url" in kept and settings.get("url", kept["url"]) != kept["url"]:
            kept.pop("api_key", None)
        merged = {**kept, **settings} if settings else {}
        # A stand-in for what another call or the environment will give.
        replace(JudgeSettings(url="http://localhost", model="any"), **merged)
        _given.clear()
        _given.update(merged)


def configured() -> JudgeSettings | None:
    """The settings in force, or ``None`` when no address or no model was named; ``ValueError`` when one is wrong."""
    found: dict[str, Any] = {}
    for name, read in _READERS.items():
        text = os.environ.get(PREFIX + name.upper())
        if text is not None:
            found[name] = _read(name, read, text)
    with _lock:
        found.update(_given)
    if not found.get("url") or not found.get("model"):
        return None
    return JudgeSettings(**found)


def why_not_configured() -> str:
    """One sentence with what is missing; for when ``configured()`` is ``None``."""
    with _lock:
        missing = [name for name in ("url", "model") if not (_given.get(name) or os.environ.get(PREFIX + name.upper()))]
    variables = " and ".join(PREFIX + name.upper() for name in missing or ("url", "model"))
    example = "(the base address of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1, and a model's name; "
    return f"no judge is configured: set {variables} {example}{PREFIX}API_KEY where the server wants a key)"


def _read(name: str, read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text.strip())
    except ValueError:
        kind = {int: "a whole number", float: "a number"}.get(read, "yes or no")  # type: ignore[call-overload]
        raise ValueError(f"{PREFIX}{name.upper()} must be {kind}; received {text!r}") from None


def _switch(text: str) -> bool:
    if text.lower() not in (*_YES, *_NO):
        raise ValueError(text)
    return text.lower() in _YES


_READERS: dict[str, Callable[[str], Any]] = {
    "url": str,
    "model": str,
    "api_key": lambda text: text or None,
    "concurrency": int,
    "timeout_s": float,
    "run_timeout_s": float,
    "max_attempts": int,
    "max_spend_usd": float,
    "usd_per_million_input": float,
    "usd_per_million_output": float,
    "repeats": int,
    "cache": lambda text: None if text.lower() in _NO_CACHE else text,
    "transcripts": _switch,
}
