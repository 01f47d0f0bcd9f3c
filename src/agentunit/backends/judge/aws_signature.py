"""AWS Signature Version 4: the headers that prove who sends a request. By hashlib and hmac alone."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from urllib.parse import parse_qsl, quote

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
