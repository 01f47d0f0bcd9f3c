"""The address of the judge and its settings: from ``configure(...)``, else from ``AGENTUNIT_JUDGE_…``.

Nothing else is configuration: a key that lies in the environment under another name is never used.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Literal
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

_SENSITIVE = re.compile(r"auth|key|token|secret|passw|credential|sig|code", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
_ENDPOINT = "/chat/completions"
# A shorter "secret" is a placeholder such as "none" or "EMPTY", which may be a word of a reply.
_SHORTEST_SECRET = 8


@dataclass(frozen=True)
class Address:
    """Where requests go. ``target`` is path and query as sent, ``shown`` is fit for any message."""

    host: str
    port: int
    is_tls: bool
    target: str = field(repr=False)
    shown: str
    authorization: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def hidden(self, body: bytes) -> bytes:
        """What a server sent, without the secrets of this address."""
        for secret in self.secrets:
            body = body.replace(secret.encode(), b"***")
        return body


def address_of(url: str, api_key: str | None = None) -> Address:
    """The address that a base URL stands for; ``ValueError`` with one sentence when it is none.

    >>> address_of("http://127.0.0.1:8000/v1").target
    '/v1/chat/completions'
    >>> address_of("https://me:hush@judge.example/v1?api-version=2&api-key=abc").shown
    'https://judge.example/v1?api-version=2&api-key=***'
    """
    parts = _split(url)
    host = _plain_host(parts.hostname or "")
    is_tls = parts.scheme == "https"
    port = parts.port or _PORTS[parts.scheme]
    path = parts.path.rstrip("/").removesuffix(_ENDPOINT)
    query = parse_qsl(parts.query, keep_blank_values=True)
    target = quote(path + _ENDPOINT, safe="/%:@!$&'()*+,;=~") + (f"?{urlencode(query)}" if query else "")
    in_url = f"[{host}]" if ":" in host else host
    place = f"{parts.scheme}://{in_url}" + (f":{port}" if port != _PORTS[parts.scheme] else "") + path
    shown_query = "&".join(f"{name}={'***' if _SENSITIVE.search(name) else value}" for name, value in query)
    return Address(
        host=host,
        port=port,
        is_tls=is_tls,
        target=target,
        shown=place + (f"?{shown_query}" if query else ""),
        authorization=_authorization(parts, api_key),
        secrets=_secrets(parts, query, api_key),
    )


def _split(url: str) -> SplitResult:
    rule = "JudgeSettings: url must be an http:// or https:// address such as 'http://127.0.0.1:8000/v1'"
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in _PORTS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except (AttributeError, ValueError):
        raise ValueError(f"{rule}; received something that is no address") from None
    if not usable or any(character.isspace() or not character.isprintable() for character in parts.geturl()):
        received = f"{parts.scheme or 'no'} scheme, {'a' if parts.hostname else 'no'} host"
        raise ValueError(f"{rule}; received one with {received} ({len(url)} characters)")
    return parts


def _plain_host(host: str) -> str:
    """A name in letters of its own as the name system writes it."""
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        raise ValueError(
            "JudgeSettings: url must have a host name that can be looked up; received one of other "
            "letters that cannot be"
        ) from None


def _authorization(parts: SplitResult, api_key: str | None) -> str | None:
    if api_key:
        return f"Bearer {api_key}"
    # Settings are read in every run, and the client is not loaded where no judge is named.
    from agentunit.backends.http_client import basic_authorization

    return basic_authorization(parts)


def _secrets(parts: SplitResult, query: list[tuple[str, str]], api_key: str | None) -> tuple[str, ...]:
    # A name without a password is a key.
    hidden_part = parts.password or parts.username or ""
    found = {api_key or "", hidden_part, unquote(hidden_part)}
    found.update(value for name, value in query if _SENSITIVE.search(name))
    found |= {quote(secret, safe="") for secret in found}
    login = _authorization(parts, None)
    found.add(login.removeprefix("Basic ") if login else "")
    found |= {json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for secret in found for is_ascii in (True, False)}
    found |= {secret.replace("/", "\\/") for secret in found}
    return tuple(sorted((secret for secret in found if len(secret) >= _SHORTEST_SECRET), key=len, reverse=True))


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
    With ``judges`` (models' names, or settings that differ from these) each is asked, ``quorum`` of them must answer
    (else more than half), and ``vote`` says what their values make: ``mean`` (weighted) or ``majority``.
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
    judges: tuple[dict[str, Any], ...] = ()
    quorum: int | None = None
    vote: Literal["mean", "majority"] = "mean"

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
        _check_panel(self)

    def __repr__(self) -> str:
        return f"JudgeSettings({', '.join(f'{name}={value!r}' for name, value in self.described().items())})"

    @property
    def address(self) -> Address:
        """Where requests go."""
        return address_of(self.url, self.api_key)

    def described(self) -> dict[str, Any]:
        """The settings without secrets, fit for a run's record."""
        found = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "api_key"}
        if self.judges:
            shown = [each | ({"url": address_of(each["url"]).shown} if "url" in each else {}) for each in self.judges]
            found["judges"] = [{name: each[name] for name in each if name != "api_key"} for each in shown]
        else:
            # One judge is described as ever: runs of earlier versions can be continued.
            found = {name: value for name, value in found.items() if name not in ("judges", "quorum", "vote")}
        return found | {"url": self.address.shown}


def _check_panel(settings: JudgeSettings) -> None:
    from agentunit.backends.judge.panel import VOTES, checked_judges, members_of

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


_set: dict[str, Any] = {}
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
        kept = dict(_set)
        if "url" in kept and settings.get("url", kept["url"]) != kept["url"]:
            kept.pop("api_key", None)
        merged = {**kept, **settings} if settings else {}
        # A stand-in for what another call or the environment will give.
        replace(JudgeSettings(url="http://localhost", model="any"), **merged)
        _set.clear()
        _set.update(merged)


def configured() -> JudgeSettings | None:
    """The settings in force, or ``None`` when no address or no model was named; ``ValueError`` when one is wrong."""
    found: dict[str, Any] = {}
    for name, read in _READERS.items():
        text = os.environ.get(PREFIX + name.upper())
        if text is not None:
            found[name] = _read(name, read, text)
    with _lock:
        found.update(_set)
    first = next((each for each in found.get("judges") or () if each), None)
    if first is not None:
        # The first judge of a panel stands for it where one name is wanted.
        named = {"model": first} if isinstance(first, str) else first
        found = {name: named[name] for name in ("url", "model") if name in named} | found
    if not found.get("url") or not found.get("model"):
        return None
    return JudgeSettings(**found)


def why_not_configured() -> str:
    """One sentence with what is missing; for when ``configured()`` is ``None``."""
    with _lock:
        missing = [name for name in ("url", "model") if not (_set.get(name) or os.environ.get(PREFIX + name.upper()))]
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
    "judges": lambda text: [name.strip() for name in text.split(",") if name.strip()],
    "quorum": int,
    "vote": str,
}
