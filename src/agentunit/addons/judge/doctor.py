"""``agentunit doctor --judge`` and ``--cache``: one short question to the judge, and what its cache holds."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from datetime import datetime

from agentunit.addons.judge.settings import (
    JudgeSettings,
    configured,
    configured_values,
)
from agentunit.backends.services import PREFIX, why_not_configured
from agentunit.cli.doctor import PartFinding
from agentunit.reports.figures import counted, duration
from agentunit.reports.printable import printable_line

_TASK = 'You answer one question about a text. Reply with JSON only: {"mark": "...", "answer": "yes"}'
_ANSWER = "judge's answer"


def judge_answers() -> list[PartFinding]:
    """Ask each judge one short question, anew, and explain what comes of it."""
    from agentunit.addons.judge._panel import members_of

    try:
        settings = configured()
    except ValueError as error:
        return [PartFinding(_ANSWER, "broken", str(error))]
    if settings is None:
        return [PartFinding(_ANSWER, "not ready", why_not_configured())]
    return [_answer(each.settings) for each in members_of(settings)]


def _answer(settings: JudgeSettings) -> PartFinding:
    from agentunit.addons.judge._prompts import DATA_RULE, object_schema
    from agentunit.addons.judge.client import JudgeClient, JudgeRequest
    from agentunit.addons.judge.replies import own_object
    from agentunit.backends.asking import UnreadableReply, fenced

    asked = replace(settings, cache=None, max_attempts=1, batch=False)
    client = JudgeClient(asked)
    data = fenced([("text", "The sky is blue.")], _TASK)
    schema = object_schema(mark={"type": "string"}, answer={"type": "string"})
    request = JudgeRequest("doctor", f"{_TASK}\n\n{DATA_RULE}", data.message, schema, mark=data.mark)
    try:
        reply = client.submit(client.ask(request)).result()
    finally:
        client.close()
    place = f"{settings.address.shown} (profile {settings.address.profile})"
    if reply.text is None or reply.problem is not None:
        problem = reply.problem or "no answer and no reason"
        return PartFinding(_ANSWER, "broken", printable_line(f"{place}: {problem}", 400), way_out(problem, settings))
    where = f"{reply.model or settings.model} at {place}"
    took = f"in {duration(reply.elapsed_s)}, {reply.prompt_tokens or 0} + {reply.completion_tokens or 0} tokens"
    try:
        own_object(reply.text, data.mark, data.judged)
    except UnreadableReply as error:
        said = printable_line(reply.text, 80)
        note = f"{where} answered {said!r} {took}; {error}"
        return PartFinding(
            _ANSWER, "not ready", note, "name a model that follows a format: verdicts are read from JSON"
        )
    return PartFinding(_ANSWER, "ok", f"{where} answered in JSON {took}")


# What a problem says, and what to do about it; the first that fits. {key} and the like are filled in.
_WAYS_OUT: tuple[tuple[str, str], ...] = (
    (r"environment variable (\w+)", "export {1}=…"),
    (r"AWS Bedrock wants", "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… (or {prefix}API_KEY for a Bedrock key)"),
    (r"proxy refuses the tunnel: 407", "give the proxy its login: proxy http://USER:${{PASSWORD_VARIABLE}}@HOST:PORT"),
    (r"the proxy", "check the proxy ({proxy}); NO_PROXY={host} goes around the proxies of the environment"),
    (r"name is not known", "check the host {host}; behind a company's network {prefix}PROXY=env uses its proxy"),
    (r"refused", "nothing listens at {host}:{port}: start the server, or correct the port of {prefix}URL"),
    (
        r"certificate is not trusted",
        "{prefix}CA_FILE=FILE.pem names the certificates to trust (SSL_CERT_FILE and REQUESTS_CA_BUNDLE work, too)",
    ),
    (r"TLS failed \(.*(?:wrong version|record layer)", "the server does not speak TLS there: write http:// in the URL"),
    (r"TLS failed", "check that {host}:{port} is the server itself; an old one may not speak TLS 1.2"),
    (r"not HTTP|closed the connection without", "{host}:{port} is not an HTTP server, or wants https:// in the URL"),
    (r"profile '(\w+)'", "export {prefix}PROFILE={1}"),
    (r"HTTP 407", "give the proxy its login: proxy http://USER:${{PASSWORD_VARIABLE}}@HOST:PORT"),
    (r"HTTP 401|api key (?:not valid|expired)|API_KEY_INVALID", "{key}"),
    (r"insufficient_quota|HTTP 402", "the account has no credit left, or no plan: see the provider's billing page"),
    (r"HTTP 403", "the key is known, but may not use {model} there: grant it access, or take another model or region"),
    (r"HTTP 404", "check the model {model}, and the address {url}: {profile} servers are named like {example}"),
    (r"HTTP 405", "the address {url} takes no questions: {profile} servers are named like {example}"),
    (r"HTTP 429|asks to wait", "the server turns calls away: wait, or lower {prefix}CONCURRENCY"),
    (r"max_tokens|cut off", "raise {prefix}MAX_TOKENS, or lower {prefix}REASONING_EFFORT"),
    (r"HTTP 400.*\bmodel\b", "check the model {model}"),
    (r"HTTP 4\d\d", "the server refuses the request: {prefix}PROFILE names another kind of server ({profiles})"),
    (r"HTTP 3\d\d", "name the address that it redirects to"),
    (r"HTTP 5\d\d", "the server failed: look into its log, or try again later"),
    (r"is not JSON|no JSON object", "{url} is a page, not an API: {profile} servers are named like {example}"),
    (r"no answer within", "raise {prefix}TIMEOUT_S (now {timeout:g}), or check that the model is loaded"),
    (r"no choice|no content|no candidate|no message", "{prefix}PROFILE names the kind of server ({profiles})"),
    (r"price of the model", "set {prefix}USD_PER_MILLION_INPUT and {prefix}USD_PER_MILLION_OUTPUT"),
)


def way_out(problem: str, settings: JudgeSettings) -> str | None:
    """What to do about a problem with the judge; ``None`` where nothing better is known than the problem itself."""
    from agentunit.addons.judge._profiles import profile_named, profile_names

    address = settings.address
    variable = settings.api_key_env or f"{PREFIX}API_KEY"
    key = f"the key in {variable} is not the one of this server"
    if settings.key is None:
        key = f"no key was sent: export {variable}=…"
    known = {
        "prefix": PREFIX,
        "host": address.host,
        "port": address.port,
        "url": address.shown,
        "model": repr(settings.model),
        "key": key,
        "proxy": "of the environment" if settings.proxy == "env" else settings.proxy and "as set",
        "profile": address.profile,
        "profiles": ", ".join(profile_names()),
        "example": profile_named(address.profile).url_example,
        "timeout": settings.timeout_s,
    }
    for pattern, words in _WAYS_OUT:
        found = re.search(pattern, problem, re.IGNORECASE)
        if found is not None:
            return words.format(*(found[0], *found.groups()), **known)
    return None


def cache_finding(*, clear: bool) -> PartFinding:
    """What the judge's cache holds, or that it was cleared."""
    from agentunit.addons.judge._batch_journal import open_batches_in
    from agentunit.addons.judge.cache import cache_contents, cache_folder, clear_cache

    try:
        values = configured_values()
    except ValueError as error:
        return PartFinding("judge's cache", "broken", str(error))
    setting = values.get("cache", JudgeSettings.cache)
    if setting is None:
        return PartFinding("judge's cache", "off", "the settings keep no replies")
    folder, limit_mb = cache_folder(setting), values.get("cache_max_mb", JudgeSettings.cache_max_mb)
    try:
        if clear:
            n_deleted = clear_cache(folder)
            return PartFinding("judge's cache", "ok", f"cleared: {counted(n_deleted, 'reply', 'replies')} of {folder}")
        held = cache_contents(folder)
    except (OSError, sqlite3.Error) as error:
        return PartFinding(
            "judge's cache", "broken", f"{folder} cannot be read: {error}", "agentunit doctor --cache clear"
        )
    under_way = ", ".join(each.batch_id or "without an id yet" for each in open_batches_in(folder))
    batches = f"; batches under way: {under_way}" if under_way else ""
    if not held.n_replies or held.oldest_s is None or held.newest_s is None:
        return PartFinding("judge's cache", "ok", f"empty ({held.file}){batches}")
    since, last = (datetime.fromtimestamp(each).strftime("%Y-%m-%d") for each in (held.oldest_s, held.newest_s))
    size = f"{counted(held.n_replies, 'reply', 'replies')}, {held.n_bytes / 1e6:,.1f} of at most {limit_mb:,.0f} MB"
    note = f"{size}, used from {since} to {last}; {held.file}{batches}"
    return PartFinding("judge's cache", "ok", note, "agentunit doctor --cache clear deletes them")
