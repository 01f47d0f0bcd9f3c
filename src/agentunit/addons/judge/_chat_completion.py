"""One request to the judge: how it is written, one attempt to send it, and what the response says."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Literal
from urllib.parse import parse_qsl, quote

import msgspec

from agentunit.addons.judge._completions import LIMIT_REFUSED, Completion, asked_wait_s, clipped, read_error
from agentunit.addons.judge._connection import ca_file_for, proxy_for
from agentunit.addons.judge._messages import JudgeRequest
from agentunit.addons.judge._profiles import FORMATS, Profile, Wanted, profile_named
from agentunit.addons.judge.settings import Address, JudgeSettings
from agentunit.backends.http_client import HttpClient, HttpFailure, Response

# AWS Signature Version 4: the headers that prove who sends a request. By hashlib and hmac alone.

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class AwsCredentials:
    """A key pair, with the token of a session where there is one. Appears in no ``repr``."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be shown to nobody."""
        return tuple(each for each in (self.access_key, self.secret_key, self.session_token) if each)


def signed_headers(
    credentials: AwsCredentials,
    *,
    method: str,
    host: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    region: str,
    service: str,
    now: datetime | None = None,
) -> dict[str, str]:
    """The headers to send besides ``headers``, which are signed too; ``target`` is path and query as sent.

    The path is encoded once more for the signature, as every service but S3 wants it.
    """
    moment = (now or datetime.now(timezone.utc)).strftime("%Y%m%dT%H%M%SZ")
    added = {"X-Amz-Date": moment}
    if credentials.session_token is not None:
        added["X-Amz-Security-Token"] = credentials.session_token
    path, _, query = target.partition("?")
    together = {**headers, **added, "Host": host}
    lowered = {name.lower(): " ".join(value.split()) for name, value in together.items()}
    names = sorted(lowered)
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in _pairs(query))
    canonical = "\n".join(
        [
            method,
            quote(path, safe="/-_.~") or "/",
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{lowered[name]}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(body).hexdigest(),
        ]
    )
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{credentials.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, f"{_ALGORITHM}\n{moment}\n{scope}\n{digest}".encode(), hashlib.sha256).hexdigest()
    signed = f"SignedHeaders={';'.join(names)}, Signature={signature}"
    return {**added, "Authorization": f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, {signed}"}


def _pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


_REFUSED = (400, 415, 422, 501)
# A refusal of the parameter itself, as servers word it; an error that merely mentions the word is about something else.
_TEMPERATURE_REFUSED = re.compile(
    r"(?:unsupported|not supported|unknown|unrecogni[sz]ed|unexpected|extra|invalid|deprecated)\b[^.;]{0,60}"
    r"['\"`]?\btemperature\b"
    r"|\btemperature\b['\"`]?[^.;]{0,40}\b(?:(?:is|are|was|be)(?: not|n't)|does(?: not|n't)|cannot|can't|may not|"
    r"not (?:supported|allowed|permitted)|unsupported|deprecated|only (?:supports|accepts|the default)|must be 1\b)"
)
SCORED_BY_LEVELS = "rubric"
"""The questions whose scores are levels, of which one can ask how sure they are."""
_SEED_REFUSED = re.compile(r"['\"`\s:.]seed\b")
_WORDS_OF_FILTERS = ("content_filter", "content management policy", "responsibleai")
_WORDS_OF_FORMAT = (
    *("response_format", "json_schema", "json_object", "structured output", "guided", "grammar", "schema"),
    *("output_config", "output_format", "responsemimetype", "responsejsonschema"),
)


@dataclass(frozen=True)
class Dialect:
    """How a request is put. A server that refuses a parameter, and answers without it, is asked so from then on."""

    reply_format: str = "json_schema"
    tokens_name: str = "max_tokens"
    with_temperature: bool = True
    with_seed: bool = True
    with_logprobs: bool = True

    @property
    def ease(self) -> int:
        """How much is left out or changed."""
        renamed = self.tokens_name != "max_tokens"
        left_out = (not self.with_temperature) + (not self.with_seed) + (not self.with_logprobs)
        return FORMATS.index(self.reply_format) + renamed + left_out

    def wanted(self, request: JudgeRequest, settings: JudgeSettings, max_tokens: int) -> Wanted:
        """A request in this dialect."""
        temperature = None
        if self.with_temperature:
            # A judgment must not vary; what has a seed is meant to.
            temperature = 0 if request.seed is None else 1
        return Wanted(
            model=settings.model,
            system=request.system,
            user=request.user,
            schema=request.schema,
            purpose=request.purpose,
            max_tokens=max_tokens,
            tokens_name=self.tokens_name,
            reply_format=self.reply_format,
            temperature=temperature,
            seed=request.seed if self.with_seed else None,
            effort=settings.reasoning_effort,
            logprobs=self.with_logprobs and settings.logprobs and request.purpose == SCORED_BY_LEVELS,
        )

    def easier(
        self,
        status: int,
        message: str,
        *,
        had_schema: bool,
        had_seed: bool = False,
        formats: tuple[str, ...] = FORMATS,
    ) -> tuple[Dialect, bool] | None:
        """What to try after a refusal, and whether the server said itself that this is the reason.

        ``None``: the refusal is about something else. A server that does not say why may object to the format.
        """
        if status not in _REFUSED:
            return None
        text = message.lower()
        if self.tokens_name == "max_tokens" and "max_completion_tokens" in text:
            return replace(self, tokens_name="max_completion_tokens"), True
        if self.with_temperature and _TEMPERATURE_REFUSED.search(text):
            return replace(self, with_temperature=False), True
        if self.with_logprobs and "logprobs" in text:
            return replace(self, with_logprobs=False), True
        if self.with_seed and had_seed and _SEED_REFUSED.search(f" {text}"):
            return replace(self, with_seed=False), True
        lower = next((each for each in formats if FORMATS.index(each) > FORMATS.index(self.reply_format)), None)
        if not had_schema or lower is None:
            return None
        is_named = any(word in text for word in _WORDS_OF_FORMAT)
        is_other = LIMIT_REFUSED.search(text) or any(word in text for word in _WORDS_OF_FILTERS)
        return (replace(self, reply_format=lower), is_named) if is_named or not is_other else None


_MAX_REPLY_BYTES = 4 << 20
_MAX_BATCH_BYTES = 1 << 30
_WORTH_REPEATING = (408, 409, 425)
_OVERLOADED = (429, 503, 529)
# What is wrong with every call alike: the key, the account, the address, the model's name.
_WRONG_FOR_ALL = (401, 402, 404, 405, 407)
# Words of a 403 that is about one text and not about who asks.
_ABOUT_THE_TEXT = re.compile(r"\bcontent|moderat|flagged|safety|harmful|unsafe|violat|usage polic", re.IGNORECASE)
_WRONG_KEY = ("api_key_invalid", "api key not valid", "api key expired")

Kind = Literal["answered", "final", "hopeless", "again", "stale", "turned_away", "too_slow", "unreachable"]


@dataclass(frozen=True)
class Attempt:
    """What came of a request.

    ``kind``: answered; final (repeating it changes nothing); hopeless (no other request will fare better); again; stale
    (the connection had been closed); turned_away (the server has too much to do; ``wait_s`` is what it asked for);
    too_slow; unreachable (no connection could be made).
    """

    kind: Kind
    problem: str | None = None
    status: int | None = None
    completion: Completion = field(default_factory=Completion)
    wait_s: float | None = None
    may_be_billed: bool = False


def client_for(address: Address, settings: JudgeSettings | None = None, *, for_batches: bool = False) -> HttpClient:
    """The HTTP client for a judge's address, by the proxy and with the certificates of the settings.

    ``for_batches``: requests name their own type, because files of requests have another; responses may be long.
    ``ValueError`` or ``OSError`` when the proxy or the certificates cannot be used.
    """
    usual = {"User-Agent": "agentunit", "Accept": "application/json", "Accept-Encoding": "identity"}
    if not for_batches:
        usual["Content-Type"] = "application/json"
    named = {name.lower() for name in address.headers}
    headers = {name: value for name, value in usual.items() if name.lower() not in named} | dict(address.headers)
    proxy = None if settings is None else settings.proxy
    return HttpClient(
        address.host,
        address.port,
        is_tls=address.is_tls,
        headers=headers,
        max_bytes=_MAX_BATCH_BYTES if for_batches else _MAX_REPLY_BYTES,
        proxy=proxy_for(proxy, address.host, address.port, is_tls=address.is_tls),
        ca_file=ca_file_for(None if settings is None else settings.ca_file) if address.is_tls else None,
    )


def request_body(profile: Profile, wanted: Wanted, extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields of a request; those that the user adds go before ours, one level deep."""
    body = profile.body(wanted)
    for name, value in (extra or {}).items():
        ours = body.get(name)
        body[name] = {**ours, **value} if isinstance(ours, dict) and isinstance(value, Mapping) else value
    return body


def initial_dialect(profile: Profile) -> Dialect:
    """How a server of a profile is asked first."""
    return Dialect(reply_format=profile.formats[0], tokens_name=profile.tokens_name)


# Also within the name of a private endpoint, vpce-….bedrock-runtime.REGION.vpce.amazonaws.com.
_REGION = re.compile(r"(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")


def aws_credentials() -> AwsCredentials | None:
    """The AWS keys of the environment, for a user who named a server of AWS."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    access, secret, token = (os.environ.get(name, "").strip() for name in names)
    return AwsCredentials(access, secret, token or None) if access and secret else None


def signature(address: Address, body: bytes, credentials: AwsCredentials) -> dict[str, str]:
    """The headers that sign a request to Bedrock."""
    found = _REGION.search(address.host)
    region = found[1] if found else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    plain_port = address.port == (443 if address.is_tls else 80)
    return signed_headers(
        credentials,
        method="POST",
        host=address.host if plain_port else f"{address.host}:{address.port}",
        target=address.target,
        headers={"Content-Type": "application/json"},
        body=body,
        region=region,
        service="bedrock",
    )


async def attempt(
    client: HttpClient,
    address: Address,
    body: bytes,
    timeout_s: float,
    *,
    on_new: bool = False,
    mark: str | None = None,
    credentials: AwsCredentials | None = None,
) -> Attempt:
    """Send a request once (``on_new``: on a new connection); whatever the server does, it ends after ``timeout_s``."""
    signed = None if credentials is None else signature(address, body, credentials)
    sending = client.send(address.target, body, on_new=on_new, mark=mark, headers=signed)
    try:
        response = await asyncio.wait_for(sending, timeout_s)
    except asyncio.TimeoutError:
        return Attempt("too_slow", f"no answer within {timeout_s:.3g} s", may_be_billed=True)
    except HttpFailure as error:
        if error.is_untrusted:
            return Attempt("hopeless", str(error))
        if error.is_unreachable:
            return Attempt("unreachable", str(error))
        return Attempt("stale" if error.was_stale else "again", str(error), may_be_billed=error.was_sent)
    body = address.hidden(response.body)
    for secret in credentials.secrets if credentials is not None else ():
        body = body.replace(secret.encode(), b"***")
    return judged(response._replace(body=body), address)


def judged(response: Response, address: Address) -> Attempt:
    """What a response means for its call, and for others."""
    status = response.status
    if 200 <= status < 300:
        completion = read_completion(response.body, profile_named(address.profile))
        if completion.unreadable is not None:
            return Attempt("again", completion.unreadable, status, completion, may_be_billed=True)
        kind: Kind = "answered" if completion.problem is None else "final"
        return Attempt(kind, completion.problem, status, completion, may_be_billed=True)
    said = read_error(response.body)
    problem = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    if 300 <= status < 400:
        return Attempt("hopeless", f"HTTP {status}: redirects are not followed; name the address itself", status)
    lowered = said.lower()
    if (status == 429 and "insufficient_quota" in said) or any(word in lowered for word in _WRONG_KEY):
        return Attempt("hopeless", problem, status)
    if status in _OVERLOADED:
        return Attempt("turned_away", problem, status, wait_s=asked_wait_s(response.headers, response.body))
    if status >= 500 and status != 501:
        return Attempt("again", problem, status, may_be_billed=True)
    if status in _WORTH_REPEATING:
        return Attempt("again", problem, status)
    if status in _WRONG_FOR_ALL or (status == 403 and not _ABOUT_THE_TEXT.search(said)):
        is_v1 = address.profile != "compatible" or address.target.startswith("/v1/")
        hint = "" if status not in (404, 405) or is_v1 else " (does its URL end in /v1?)"
        return Attempt("hopeless", f"{problem}{hint}", status)
    return Attempt("final", problem, status)


def read_completion(body: bytes, profile: Profile) -> Completion:
    """The reply in the body of a response with a status of success."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Completion(unreadable=f"the response is not JSON: {clipped(body)!r}")
    if not isinstance(data, dict):
        return Completion(unreadable=f"the response is not a JSON object: {clipped(body)!r}")
    return profile.completion(data)
