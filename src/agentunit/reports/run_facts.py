"""What a run says about where it comes from: its tags, the commit, the version of the agent."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentunit.engine.decision import Decision, named_cases
from agentunit.store.runs import RunHeader

_KNOWN_WORDS = {
    "fixed": "fixed: remove the mark",
    "expired": "counts again: the mark ended on {until}",
    "unknown": "set aside until {until}; no gate says whether it passes",
    "still fails": "still fails, set aside until {until}",
}
_IDS_SHOWN = {"fixed": 20, "expired": 20, "unknown": 5, "still fails": 5}
_COMMIT_DIGITS = 10


def origin_facts(header: RunHeader) -> list[tuple[str, str]]:
    """Name and text of what is known about the origin of a run, for reports."""
    settings = header.settings
    facts = []
    if tags := header.tags:
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


def describe_known_failures(decision: Decision, states: Collection[str] = tuple(_KNOWN_WORDS)) -> list[str]:
    """Lines about the cases that are marked as known to fail: how they stand, and why they were marked.

    Those with one reason and one date share a line; what asks for something to be done comes first.
    """
    alike: dict[tuple[str, str, str], list[str]] = {}
    for state in _KNOWN_WORDS:
        for each in decision.known_failures:
            if each.state == state and state in states:
                alike.setdefault((state, each.until, each.reason), []).append(each.case_id)
    return [
        f"{named_cases(cases, _IDS_SHOWN[state])}: {_KNOWN_WORDS[state].format(until=until)} ({reason})"
        for (state, until, reason), cases in alike.items()
    ]


def origin_as_data(header: RunHeader) -> dict[str, object]:
    """The same for JSON."""
    settings = header.settings
    return {"tags": header.tags, "git": settings.get("git"), "agent_version": settings.get("agent_version")}
