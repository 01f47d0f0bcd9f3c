"""The page of the viewer: one HTML document with its style and script inside, and a policy that allows only these."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files

_NEEDS_SCRIPT = "This page needs JavaScript, which asks no other place for anything."
STYLE, SCRIPT = "app.css", "app.js"


class ViewerError(RuntimeError):
    """The viewer cannot be opened; the message says why and what to do."""


@cache
def static_text(name: str) -> str:
    """A built file of the viewer."""
    try:
        return files("agentunit.addons.viewer").joinpath("static").joinpath(name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ViewerError(
            f"the viewer's {name} is not in this installation: install it again, or in a checkout run "
            "'npm ci && npm run build' in viewer/"
        ) from None


def content_policy(source: str) -> str:
    """What the page may do: run its own script, wear its own style, and ask nobody but where it came from."""
    script, style = static_text(SCRIPT), static_text(STYLE)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_fingerprint(script)}'",
            f"style-src '{_fingerprint(style)}'",
            "img-src 'self' blob: data:",
            "media-src 'self' blob: data:",
            "connect-src 'none'" if source == "file" else "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def page_head(source: str, title: str = "AgentUnit", without_script: str = "") -> str:
    """Everything before the data; ``without_script`` is markup for readers in which no script runs."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(source)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # Without one a browser asks the host for a file that is not there.
        '<link rel="icon" href="data:,">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="agentunit-source" content="{source}">\n'
        f"<title>{escape(title)}</title>\n<style>{static_text(STYLE)}</style>\n</head>\n<body>\n"
        f'<div id="app"></div>\n<noscript><p>{_NEEDS_SCRIPT}</p>{without_script}</noscript>\n'
    )


def page_foot() -> str:
    """The script and the end."""
    return f"<script>{static_text(SCRIPT)}</script>\n</body>\n</html>\n"


def live_page() -> bytes:
    """The page that a server hands out."""
    return (page_head("live") + page_foot()).encode()


def _fingerprint(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode()
