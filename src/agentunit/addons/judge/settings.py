"""The address of the judge and its settings: from ``configure(...)``, else from ``AGENTUNIT_JUDGE_…``.

Nothing else is configuration: a key that lies in the environment under another name is never used.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Literal

from agentunit.addons.judge._address import Address, address_of
from agentunit.addons.judge._connection import (
    check_extra_body,
    check_headers,
    check_proxy,
    expanded,
    hidden_fields,
    proxy_secrets,
    unsendable_variables,
    unset_variables,
    without_login,
)
from agentunit.addons.judge._profiles import profile_names
from agentunit.backends.services import PREFIX, chosen, lock, why_not_configured

__all__ = ["PREFIX", "Address", "JudgeSettings", "address_of", "configure_judge", "configured", "why_not_configured"]

_NO_CACHE = ("", "none", "off", "no", "false", "0")
_YES = ("1", "true", "yes", "on")
_NO = ("", "0", "false", "no", "off")


@dataclass(frozen=True, repr=False)
class JudgeSettings:
    """A judge behind a server of one of the profiles, and the bounds within which it is asked.

    ``url`` is the base (``http://127.0.0.1:8000/v1``), ``profile`` how the server is spoken to (``None``: recognized
    from the address). ``api_key_env`` names the variable of the environment that holds the key; ``headers`` and
    ``proxy`` may name others as ``${NAME}``. ``proxy`` is an address, or ``"env"`` for the proxies of the environment.
    ``max_tokens`` is the limit of every reply in place of our own, ``extra_body`` goes into every request.
    ``timeout_s`` is for one attempt of one call, ``run_timeout_s`` for all calls of a run. ``max_spend_usd`` needs a
    price: the two ``usd_per_million_…``, or a model that the price table knows. ``batch`` asks through the batch API.
    ``cache`` is a folder, ``"default"`` the user's cache folder, ``None`` no cache.
    With ``judges`` (models' names, or settings that differ from these) each is asked, ``quorum`` of them must answer
    (else more than half), and ``vote`` says what their values make: ``mean`` (weighted) or ``majority``. ``logprobs``
    asks how sure a rubric's scores are, where the server tells, and takes the expected one.
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
    profile: str | None = None
    api_key_env: str | None = None
    headers: Mapping[str, str] | None = None
    organization: str | None = None
    proxy: str | None = None
    ca_file: str | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    extra_body: Mapping[str, Any] | None = None
    batch: bool = False
    cache_max_mb: float = 500.0
    judges: tuple[dict[str, Any], ...] = ()
    quorum: int | None = None
    vote: Literal["mean", "majority"] = "mean"
    logprobs: bool = False

    def __post_init__(self) -> None:
        names = profile_names()
        known = self.profile is None or self.profile in names
        _check(known, "profile", f"be one of {', '.join(names)}", self.profile)
        address_of(self.url)
        _check(isinstance(self.model, str) and bool(self.model.strip()), "model", "be the name of a model", self.model)
        key = self.api_key
        if not (key is None or (isinstance(key, str) and key.isascii() and key.isprintable() and key == key.strip())):
            raise ValueError("JudgeSettings: api_key must be printable ASCII text without spaces around it")
        for name in ("concurrency", "max_attempts", "repeats", "max_tokens"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            _check(whole or (value is None and name == "max_tokens"), name, "be a whole number of at least 1", value)
        for name in ("timeout_s", "run_timeout_s", "cache_max_mb"):
            _check_amount(name, getattr(self, name), may_be_zero=False, may_be_none=name == "run_timeout_s")
        for name in ("max_spend_usd", "usd_per_million_input", "usd_per_million_output"):
            _check_amount(name, getattr(self, name), may_be_zero=True, may_be_none=True)
        both = (self.usd_per_million_input is None) == (self.usd_per_million_output is None)
        _check(both, "usd_per_million_input", "be given together with usd_per_million_output", "only one of them")
        # A suite may say it as the environment does.
        if isinstance(self.cache, str) and self.cache.strip().lower() in _NO_CACHE[1:]:
            object.__setattr__(self, "cache", None)
        usable = self.cache is None or (isinstance(self.cache, str) and bool(self.cache.strip()))
        _check(usable, "cache", "be a folder, 'default' or None", self.cache)
        for name in ("transcripts", "batch", "logprobs"):
            _check(isinstance(getattr(self, name), bool), name, "be True or False", getattr(self, name))
        for name in ("api_key_env", "organization", "ca_file", "reasoning_effort"):
            value = getattr(self, name)
            is_text = value is None or (isinstance(value, str) and bool(value.strip()) and value.isprintable())
            _check(is_text, name, "be a text", value)
        extra = self.extra_body
        is_object = extra is None or (isinstance(extra, Mapping) and all(isinstance(name, str) for name in extra))
        _check(is_object, "extra_body", "be fields of a request by their names", type(extra).__name__)
        check_extra_body(extra)
        check_headers(self.headers)
        check_proxy(self.proxy)
        _check_panel(self)

    def __repr__(self) -> str:
        return f"JudgeSettings({', '.join(f'{name}={value!r}' for name, value in self.described().items())})"

    @property
    def address(self) -> Address:
        """Where requests go."""
        sent = {name: expanded(value) for name, value in (self.headers or {}).items()}
        if self.organization is not None:
            sent.setdefault("OpenAI-Organization", self.organization)
        named = [value for name, value in sent.items() if (self.headers or {}).get(name, value) != value]
        secrets = [*_words(named), *proxy_secrets(self.proxy)]
        return address_of(self.url, self.key, profile=self.profile, model=self.model, headers=sent, secrets=secrets)

    @property
    def key(self) -> str | None:
        """The key to send: the one that was given, or that of the variable which ``api_key_env`` names."""
        if self.api_key is not None or self.api_key_env is None:
            return self.api_key
        return os.environ.get(self.api_key_env, "").strip() or None

    @property
    def place(self) -> str:
        """What, besides the model and the question, decides what is answered: part of a reply's place in the cache."""
        changes = {
            "profile": self.profile,
            "max_tokens": self.max_tokens,
            "reasoning_effort": self.reasoning_effort,
            "extra_body": None if self.extra_body is None else dict(self.extra_body),
            "logprobs": self.logprobs or None,
        }
        set_here = {name: value for name, value in changes.items() if value is not None}
        shown = self.address.shown
        return f"{shown} {json.dumps(set_here, sort_keys=True, default=str)}" if set_here else shown

    @property
    def models(self) -> list[str]:
        """The models that are asked: those of the panel, else the one."""
        from agentunit.addons.judge._panel import members_of

        return [each.settings.model for each in members_of(self)]

    def why_unusable(self) -> str | None:
        """Which variable or file these settings name that is not there; ``None`` when all are."""
        wanted = [] if self.api_key_env is None or self.key is not None else [self.api_key_env]
        wanted += unset_variables([*(self.headers or {}).values(), self.proxy or ""])
        if wanted:
            return f"the judge's settings name the environment variable {wanted[0]}, which is not set"
        own_key = [] if self.api_key is not None or self.api_key_env is None else [f"${{{self.api_key_env}}}"]
        wrong = unsendable_variables([*own_key, *(self.headers or {}).values()])
        if wrong:
            return (
                f"the environment variable {wrong[0]} must hold one line of ASCII text for the judge; it holds another"
            )
        if self.ca_file is not None and not os.path.isfile(os.path.expanduser(self.ca_file)):
            return f"the judge's ca_file {self.ca_file} is not there"
        return None

    def described(self) -> dict[str, Any]:
        """The settings without secrets, fit for a run's record."""
        found = {
            each.name: value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default or each.name not in _SHOWN_WHERE_SET
        }
        if self.proxy is not None:
            found["proxy"] = without_login(self.proxy)
        if self.extra_body is not None:
            found["extra_body"] = hidden_fields(self.extra_body)
        if self.judges:
            found["judges"] = [_described_judge(each) for each in self.judges]
        return {name: value for name, value in found.items() if name != "api_key"} | {"url": self.address.shown}


_SHOWN_WHERE_SET = frozenset(
    {"profile", "api_key_env", "headers", "organization", "proxy", "ca_file", "max_tokens", "reasoning_effort"}
    | {"extra_body", "batch", "cache_max_mb", "judges", "quorum", "vote", "logprobs"}
)


def _words(values: list[str]) -> list[str]:
    return [word for value in values for word in (value, value.rpartition(" ")[2])]


def _described_judge(judge: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a panel's judge, without secrets."""
    found = {name: value for name, value in judge.items() if name != "api_key"}
    if "url" in found:
        found["url"] = address_of(found["url"]).shown
    if found.get("extra_body"):
        found["extra_body"] = hidden_fields(found["extra_body"])
    return found | ({"proxy": without_login(found["proxy"])} if found.get("proxy") else {})


def open_secret(judge: Mapping[str, Any]) -> str | None:
    """Which of a judge's settings shows a key that belongs into the environment: ``url``, ``extra_body``, or none.

    >>> open_secret({"url": "https://me:hush-hush-hush@judge.example/v1"})
    'url'
    """
    try:
        if "url" in judge and address_of(judge["url"]).secrets:
            return "url"
    except ValueError:  # what is no address is refused where it is put into force
        pass
    return None if hidden_fields(judge.get("extra_body")) == judge.get("extra_body") else "extra_body"


def panel_of(judges: Sequence[str | Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of a panel of judges that have all of theirs each: what is for the whole panel is the first's.

    >>> panel_of([{"model": "a", "repeats": 3}, "b"])
    {'repeats': 3, 'judges': [{'model': 'a'}, {'model': 'b'}]}
    """
    from agentunit.addons.judge._panel import OF_THE_PANEL

    whole: dict[str, Any] = {}
    members = []
    for each in judges:
        member = {"model": each} if isinstance(each, str) else dict(each)
        for name in OF_THE_PANEL:
            if name in member:
                whole.setdefault(name, member.pop(name))
        members.append(member)
    return {**whole, "judges": members}


def _check_panel(settings: JudgeSettings) -> None:
    from agentunit.addons.judge._panel import VOTES, checked_judges, members_of

    object.__setattr__(settings, "judges", checked_judges(settings.judges))
    n_judges, quorum = len(settings.judges), settings.quorum
    whole = quorum is None or (isinstance(quorum, int) and not isinstance(quorum, bool) and quorum >= 1)
    _check(whole and (not n_judges or (quorum or 1) <= n_judges), "quorum", "be from 1 to the number of judges", quorum)
    _check(settings.vote in VOTES, "vote", f"be {' or '.join(VOTES)}", settings.vote)
    if settings.judges:
        # Whether prices are known is looked up when the judge is asked, not here: the table takes a while to load.
        members_of(replace(settings, max_spend_usd=None, judges=()), settings.judges)


def _check(holds: bool, name: str, rule: str, value: object) -> None:
    if not holds:
        raise ValueError(f"JudgeSettings: {name} must {rule}; received {value!r}")


def _check_amount(name: str, value: object, *, may_be_zero: bool, may_be_none: bool) -> None:
    if value is None and may_be_none:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    enough = is_number and (value >= 0 if may_be_zero else value > 0)  # type: ignore[operator]
    _check(enough, name, f"be a number {'of at least' if may_be_zero else 'above'} 0", value)


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
            raise TypeError(f"configure_judge: {name!r} is not a setting of the judge{hint}")
    with lock:
        kept = dict(chosen)
        if "url" in kept and settings.get("url", kept["url"]) != kept["url"]:
            kept.pop("api_key", None)
        merged = {**kept, **settings} if settings else {}
        # A stand-in for what another call or the environment will give.
        checked = replace(JudgeSettings(url="http://localhost", model="any"), **merged)
        if "cache" in merged:
            merged["cache"] = checked.cache
        chosen.clear()
        chosen.update(merged)


def configured_values() -> dict[str, Any]:
    """The settings in force, one by one, also where they do not make a judge yet; ``ValueError`` when one is wrong."""
    found: dict[str, Any] = {}
    for name, read in _READERS.items():
        text = os.environ.get(PREFIX + name.upper())
        if text is not None:
            found[name] = _read(name, read, text)
    with lock:
        return {**found, **chosen}


def configured() -> JudgeSettings | None:
    """The settings in force, or ``None`` when no address or no model was named; ``ValueError`` when one is wrong."""
    found = configured_values()
    first = next((each for each in found.get("judges") or () if each), None)
    if first is not None:
        # The first judge of a panel stands for it where one name is wanted.
        named = {"model": first} if isinstance(first, str) else first
        found = {name: named[name] for name in ("url", "model") if name in named} | found
    if not found.get("url") or not found.get("model"):
        return None
    return JudgeSettings(**found)


def _read(name: str, read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text.strip())
    except ValueError:
        kinds = {int: "a whole number", float: "a number", _object: "a JSON object"}
        kind = kinds.get(read, "yes or no")
        # Headers and fields of requests may hold a key.
        received = f"{len(text)} characters that are none" if read is _object else repr(text)
        raise ValueError(f"{PREFIX}{name.upper()} must be {kind}; received {received}") from None


def _switch(text: str) -> bool:
    if text.lower() not in (*_YES, *_NO):
        raise ValueError(text)
    return text.lower() in _YES


def _text(text: str) -> str | None:
    return text or None


def _object(text: str) -> dict[str, Any] | None:
    found = json.loads(text) if text else None
    if found is not None and not isinstance(found, dict):
        raise ValueError(text)
    return found


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
    "profile": _text,
    "api_key_env": _text,
    "headers": _object,
    "organization": _text,
    "proxy": _text,
    "ca_file": _text,
    "max_tokens": int,
    "reasoning_effort": _text,
    "extra_body": _object,
    "batch": _switch,
    "cache_max_mb": float,
    "judges": lambda text: [name.strip() for name in text.split(",") if name.strip()],
    "quorum": int,
    "vote": str,
    "logprobs": _switch,
}
