"""What pyproject.toml asks for, part by part, with AgentUnit's own names replaced by what they stand for.

A part is "base", an extra, or a group of tools. AgentUnit's own distributions are on no index, so no resolver may look
for them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
_OWN_PROJECTS = {
    "agentunit-eval": ROOT / "pyproject.toml",
    "agentunit-local": ROOT / "packages" / "agentunit-local" / "pyproject.toml",
    "agentunit-local-large": ROOT / "packages" / "agentunit-local-large" / "pyproject.toml",
}
BASE = "base"


def _read(name: str) -> dict[str, Any]:
    with open(_OWN_PROJECTS[name], "rb") as file:
        return tomllib.load(file)


def _project(name: str) -> dict[str, Any]:
    project: dict[str, Any] = _read(name)["project"]
    return project


def groups() -> dict[str, list[str]]:
    """The tools that the project is built and checked with; they have nothing to do with AgentUnit's own packages."""
    return dict(_read("agentunit-eval")["dependency-groups"])


def parts() -> list[str]:
    """The base install, every extra, and the groups of tools."""
    return [BASE, *sorted(_project("agentunit-eval")["optional-dependencies"]), *sorted(groups())]


def name_of(requirement: str) -> str:
    """The name of the package that a requirement asks for, in its normal spelling."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def requirements_of(part: str) -> list[str]:
    """The requirements on packages of others for a part; an extra includes the base install."""
    if part in groups():
        return groups()[part]
    project = _project("agentunit-eval")
    asked = list(project["dependencies"])
    if part != BASE:
        asked += project["optional-dependencies"][part]
    found: list[str] = []
    seen: set[str] = set()
    while asked:
        requirement = asked.pop(0)
        if requirement in seen:
            continue
        seen.add(requirement)
        name = name_of(requirement)
        if name not in _OWN_PROJECTS:
            found.append(requirement)
            continue
        own = _project(name)
        asked += own["dependencies"]
        extras = re.search(r"\[([^]]+)\]", requirement)
        for extra in extras[1].split(",") if extras else ():
            asked += own["optional-dependencies"][extra.strip()]
    return sorted(found, key=str.lower)
