"""What a run says about where it comes from: its tags, the commit, the version of the agent."""

from __future__ import annotations

from collections.abc import Mapping

from agentunit.engine.decision import Decision
from agentunit.store.sqlite import RunHeader

_KNOWN_WORDS = {
    "still fails": "still fails, set aside until {until}",
    "fixed": "fixed: remove the mark",
    "expired": "counts again: the mark ended on {until}",
    "unknown": "set aside until {until}; no gate tells whether it passes",
}
_COMMIT_DIGITS = 10


def run_tags(header: RunHeader) -> dict[str, str]:
    """The tags of a run. It may come from a file: what is no tag is left out."""
    tags = header.settings.get("tags")
    return {str(key): str(value) for key, value in tags.items()} if isinstance(tags, Mapping) else {}


def origin_facts(header: RunHeader) -> list[tuple[str, str]]:
    """Name and text of what is known about the origin of a run, for reports."""
    settings = header.settings
    facts = []
    if tags := run_tags(header):
        facts.append(("tags", ", ".join(f"{key}={value}" for key, value in tags.items())))
    git = settings.get("git")
    if isinstance(git, Mapping) and isinstance(git.get("commit"), str):
        changed = " with uncommitted changes" if git.get("dirty") else ""
        facts.append(("commit", git["commit"][:_COMMIT_DIGITS] + changed))
    version, earlier = settings.get("agent_version"), settings.get("earlier_agent_versions")
    if isinstance(version, str):
        mixed = f" (some cases: {', '.join(map(str, earlier))})" if isinstance(earlier, list) and earlier else ""
        facts.append(("agent version", version + mixed))
    return facts


def describe_known_failures(decision: Decision) -> list[str]:
    """One line for each case that is marked as known to fail: how it stands, and why it was marked."""
    return [
        f"{each.case_id}: {_KNOWN_WORDS[each.state].format(until=each.until)} ({each.reason})"
        for each in decision.known_failures
    ]


def origin_as_data(header: RunHeader) -> dict[str, object]:
    """The same for JSON."""
    settings = header.settings
    return {"tags": run_tags(header), "git": settings.get("git"), "agent_version": settings.get("agent_version")}
