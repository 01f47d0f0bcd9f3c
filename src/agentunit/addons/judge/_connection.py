"""How a judge's server is reached: headers and proxies that name variables of the environment, and certificates."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SENSITIVE = re.compile(r"auth|key|token|secret|passw|credential|cookie", re.IGNORECASE)
# Fields of requests have keys and tokens that are none: prompt_cache_key, eos_token.
_MOST_LEVELS = 100
_SECRET_FIELD = re.compile(
    r"(?<!cache[_-])key$|(?:^|access|auth|bearer|session|refresh|id)[_-]?token$|secret|passw|credential|authorization|cookie",
    re.IGNORECASE,
)
_SET_LIMIT = "the setting max_tokens is the limit of a reply"
_ONE_REPLY = "a question has one reply, which comes whole"
_OURS = {
    "model": "the setting model names it",
    **dict.fromkeys(("messages", "system", "contents", "systemInstruction"), "the question stands there"),
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), _SET_LIMIT),
    **dict.fromkeys(("generationConfig.maxOutputTokens", "inferenceConfig.maxTokens"), _SET_LIMIT),
    "options.num_predict": _SET_LIMIT,
    **dict.fromkeys(("n", "best_of", "stream", "generationConfig.candidateCount"), _ONE_REPLY),
}
FROM_ENVIRONMENT = "env"
"""The proxy that stands for ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``."""


def check_headers(headers: Any) -> None:
    """``ValueError`` for headers that cannot be sent, or that hold a secret in place of the name of its variable."""
    if headers is None:
        return
    if not isinstance(headers, Mapping):
        raise ValueError(f"JudgeSettings: headers must be values by their names; received {type(headers).__name__}")
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"JudgeSettings: headers must have names of letters, digits and dashes; received {name!r}")
        if not isinstance(value, str) or not value.isprintable() or not value.isascii():
            raise ValueError(f"JudgeSettings: headers must be printable ASCII text; received another for {name!r}")
        if _SENSITIVE.search(name) and not _VARIABLE.search(value):
            raise ValueError(
                f"JudgeSettings: headers must name the environment variable of a secret, such as "
                f"'{name}: Bearer ${{MY_TOKEN}}'; received a value itself for {name!r}"
            )


def check_extra_body(extra: Mapping[str, Any] | None) -> None:
    """``ValueError`` for a field that would undo a setting: the model, the limit of tokens and the cap rest on them."""
    for name, value in (extra or {}).items():
        inner = [f"{name}.{each}" for each in value] if isinstance(value, Mapping) else []
        for field in (name, *inner):
            if field in _OURS:
                raise ValueError(f"JudgeSettings: extra_body must not hold {field!r}: {_OURS[field]}")
    hidden_fields(extra)


def hidden_fields(value: Any, level: int = 0) -> Any:
    """Fields of a request as they may be shown: texts under names of secrets are hidden, at any depth."""
    if level > _MOST_LEVELS:
        raise ValueError(f"JudgeSettings: extra_body must have at most {_MOST_LEVELS} levels")
    if isinstance(value, Mapping):
        return {
            name: "***" if isinstance(each, str) and _SECRET_FIELD.search(str(name)) else hidden_fields(each, level + 1)
            for name, each in value.items()
        }
    return [hidden_fields(each, level + 1) for each in value] if isinstance(value, (list, tuple)) else value


def check_proxy(proxy: Any) -> None:
    """``ValueError`` for what is no proxy."""
    if proxy is None or proxy == FROM_ENVIRONMENT:
        return
    rule = "JudgeSettings: proxy must be 'env' or the address of an HTTP proxy such as 'http://proxy.example:3128'"
    try:
        parts = urlsplit(proxy)
        usable = isinstance(proxy, str) and parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        usable = False
    if not usable:
        raise ValueError(f"{rule}; received another one")
    if parts.password is not None and not _VARIABLE.search(proxy):
        raise ValueError(f"{rule}, its password by the name of a variable, as ${{NAME}}; received the password itself")


def expanded(text: str) -> str:
    """A text with the values of the variables that it names; one that is not set is empty."""
    return _VARIABLE.sub(lambda found: os.environ.get(found[1], "").strip(), text)


def unset_variables(texts: Iterable[str]) -> list[str]:
    """The variables that texts name and the environment does not have."""
    return [name for text in texts for name in _VARIABLE.findall(text) if not os.environ.get(name, "").strip()]


def unsendable_variables(texts: Iterable[str]) -> list[str]:
    """The variables that texts name whose values cannot stand in a header: with a line break, or not ASCII."""
    return [name for text in texts for name in _VARIABLE.findall(text) if not is_sendable(os.environ.get(name, ""))]


def is_sendable(value: str) -> bool:
    """Whether a value can stand in a header, as it is sent: without the spaces around it."""
    return value.strip().isascii() and value.strip().isprintable()


def without_login(address: str) -> str:
    """An address without user and password.

    >>> without_login("http://me:${PASSWORD}@proxy.example:3128")
    'http://proxy.example:3128'
    """
    scheme, separator, rest = address.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def proxy_for(proxy: str | None, host: str, port: int, *, is_tls: bool) -> SplitResult | None:
    """The proxy to go through; ``None``: straight to the host. ``ValueError`` when the environment names no address."""
    if proxy is None:
        return None
    if proxy != FROM_ENVIRONMENT:
        return _proxy_at(_with_login(proxy), "proxy")
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

    found = getproxies_environment()
    address = found.get("https" if is_tls else "http") or found.get("all")
    if not address or proxy_bypass_environment(f"{host}:{port}", found):
        return None
    return _proxy_at(address if "://" in address else f"http://{address}", "proxy of the environment")


def _with_login(proxy: str) -> str:
    """A proxy with the values of its variables; a password may hold what ends an address, so it is quoted."""
    scheme, separator, rest = proxy.partition("://")
    login, at, place = rest.rpartition("@")
    quoted = _VARIABLE.sub(lambda found: quote(os.environ.get(found[1], "").strip(), safe=""), login)
    return f"{scheme}{separator}{quoted}{at}{expanded(place)}"


def proxy_secrets(proxy: str | None) -> list[str]:
    """The passwords of the proxies that may be gone through, alone and as they are sent: a proxy may say them back."""
    from urllib.request import getproxies_environment  # it brings all of HTTP, which only a judge needs

    if proxy is None:
        return []
    addresses = getproxies_environment().values() if proxy == FROM_ENVIRONMENT else [_with_login(proxy)]
    found = []
    for address in addresses:
        login = unquote(address.rpartition("://")[2].rpartition("@")[0])
        if login:
            found += [login.rpartition(":")[2], base64.b64encode(login.encode()).decode()]
    return found


def _proxy_at(address: str, what: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        usable = parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"the {what} must be an http:// address; received {without_login(address)}")
    return parts


def ca_file_for(setting: str | None) -> str | None:
    """The file of certificates to trust: the setting, else ``REQUESTS_CA_BUNDLE``.

    ``None``: the system's own, or what ``SSL_CERT_FILE`` names, which the TLS library reads itself.
    """
    if setting is not None:
        return os.path.expanduser(setting)
    bundle = os.environ.get("REQUESTS_CA_BUNDLE", "")
    return bundle if not os.environ.get("SSL_CERT_FILE") and os.path.isfile(bundle) else None
