"""Known vulnerabilities, risky code, faults of workflows and metadata: ``python -m scripts.audit [NAME…]``.

Each check is a tool of locks/tools.txt. One that needs an index which cannot be reached is skipped and named, so that
the others still count. The exit code is 1 if a check that ran found something.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from scripts.requirements import ROOT, parts

# What tools say when they cannot reach an index, as opposed to what they find.
_UNREACHABLE = ("ConnectionError", "ConnectTimeout", "NameResolutionError", "Max retries exceeded", "ServiceError")
_WORKFLOWS = ROOT / ".github"


def vulnerabilities() -> list[list[str]]:
    """Known vulnerabilities of every locked version."""
    chosen = [option for part in parts() for option in ("-r", f"locks/{part}.txt")]
    ignored = [line.split()[0] for line in _lines(ROOT / "locks" / "accepted-vulnerabilities.txt")]
    accepted = [option for each in ignored for option in ("--ignore-vuln", each)]
    return [["pip-audit", "--progress-spinner", "off", "--disable-pip", "--no-deps", *accepted, *chosen]]


def risky_code() -> list[list[str]]:
    """Code of ours that commonly is a weakness; what is meant so says why in its line."""
    return [["bandit", "--quiet", "--recursive", "--severity-level", "medium", "src", "packages", "scripts"]]


def workflows() -> list[list[str]]:
    """Faults of the workflows, and what a stranger could do with them."""
    files = sorted(str(path) for path in (_WORKFLOWS / "workflows").glob("*.yml"))
    if not files:
        return []
    schema = ["check-jsonschema", "--builtin-schema"]
    checks = [
        [*schema, "vendor.github-workflows", *files],
        [*schema, "vendor.dependabot", f"{_WORKFLOWS}/dependabot.yml"],
    ]
    actions = sorted(str(path) for path in (_WORKFLOWS / "actions").glob("*/action.yml"))
    checks.append([*schema, "vendor.github-actions", *actions])
    return [*checks, ["zizmor", "--offline", "--quiet", "--min-severity", "medium", str(_WORKFLOWS)]]


def shell() -> list[list[str]]:
    """Faults of shell scripts."""
    found = [path for folder in (".ci", ".github") for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    scripts = [str(path) for path in found if path.read_bytes().startswith(b"#!") and b"sh" in path.read_bytes()[:30]]
    return [["shellcheck", *scripts]] if scripts else []


def metadata() -> list[list[str]]:
    """The citation file and the configuration of pre-commit."""
    return [["cffconvert", "--validate"], ["pre-commit", "validate-config"]]


CHECKS: dict[str, Callable[[], list[list[str]]]] = {
    "vulnerabilities": vulnerabilities,
    "code": risky_code,
    "workflows": workflows,
    "shell": shell,
    "metadata": metadata,
}


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def check(name: str) -> str:
    """Run one check; returns "ok", "FOUND" or why it was skipped. What a tool found is printed."""
    for command in CHECKS[name]():
        if shutil.which(command[0]) is None:
            return f"skipped: {command[0]} is not installed"
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
        said = done.stdout + done.stderr
        if done.returncode and any(word in said for word in _UNREACHABLE):
            return "skipped: no index can be reached"
        if done.returncode:
            print(f"$ {' '.join(command)}\n{said.strip()}")
            return "FOUND"
    return "ok"


def main() -> int:
    """Run the checks that are named, else all, and print one line for each."""
    wanted = sys.argv[1:] or list(CHECKS)
    unknown = sorted(set(wanted) - set(CHECKS))
    if unknown:
        print(f"audit: there is no check {unknown[0]!r}. Checks: {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    results = {}
    for name in wanted:
        results[name] = check(name)
        print(f"{name:<16} {results[name]}", flush=True)
    return int("FOUND" in results.values())


if __name__ == "__main__":
    sys.exit(main())
