"""Fetching a picture from a URL, which happens only where the user allowed it."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from typing import Any

from agentunit.backends.media.limits import MediaLimits, MediaProblem

_AT_ONCE = 2**16


class _WebOnly(urllib.request.HTTPRedirectHandler):
    """A redirect may lead elsewhere on the web, but not to files or other protocols."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.lower().startswith(("http://", "https://")):
            raise MediaProblem(f"leads to {newurl:.80}, which is not fetched")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetched(url: str, limits: MediaLimits) -> bytes:
    """What an http or https URL holds, within the limits on bytes and seconds."""
    deadline = time.monotonic() + limits.most_fetch_s
    try:
        with urllib.request.build_opener(_WebOnly).open(url, timeout=limits.most_fetch_s) as answer:
            content = bytearray()
            while part := answer.read1(_AT_ONCE):
                content += part
                if len(content) > limits.most_bytes:
                    raise MediaProblem(f"must have at most {limits.most_bytes:,} bytes; it has more")
                if time.monotonic() > deadline:
                    raise MediaProblem(f"took longer than {limits.most_fetch_s:g} s")
    except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, MediaProblem):
            raise
        raise MediaProblem(f"cannot be fetched: {error}") from None
    if not content:
        raise MediaProblem("is empty")
    return bytes(content)
