"""Known vulnerabilities, risky code, faults of workflows and metadata: ``python -m scripts.audit [NAME…]``.

Each check is a tool of locks/tools.txt. One that needs an index which cannot be reached is skipped and named, so that
the others still count. What is meant as it is stands in audit_accepted.txt, with the reason. The exit code is 1 if a
check found something else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from scripts.lock import LOCKS
from scripts.requirements import ROOT
from scripts.sbom import pins

ACCEPTED = Path(__file__).with_name("audit_accepted.txt")
_WORKFLOWS = ROOT / ".github"
# What tools say when they cannot reach an index, as opposed to what they find.
_UNREACHABLE = ("ConnectionError", "ConnectTimeout", "NameResolutionError", "Max retries exceeded", "ServiceError")


class Skipped(Exception):
    """Why a check could not be made."""


def accepted() -> dict[str, str]:
    """What is meant as it is, and why: by "FILE RULE", or by the id of a vulnerability."""
    found = {}
    for line in ACCEPTED.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            words = line.split(" ", 2 if "/" in line.split(" ", 1)[0] else 1)
            found[" ".join(words[:-1])] = words[-1]
    return found


def vulnerabilities() -> list[str]:
    """Known vulnerabilities of every locked version."""
    # A package may be locked in several versions, and the tool takes one a round.
    rounds: list[dict[str, str]] = []
    for name, version in sorted({(pin.name, pin.version) for lock in LOCKS.glob("*.txt") for pin in pins(lock)}):
        place = next((each for each in rounds if name not in each), None)
        if place is None:
            rounds.append(place := {})
        place[name] = version
    found = []
    unknown: list[str] = []
    known = accepted()
    for each in rounds:
        with tempfile.TemporaryDirectory() as folder:
            asked = Path(folder, "requirements.txt")
            asked.write_text("".join(f"{name}=={version}\n" for name, version in each.items()), encoding="utf-8")
            command = ["pip-audit", "--format", "json", "--progress-spinner", "off", "--disable-pip", "--no-deps"]
            told = json.loads(_output([*command, "--requirement", str(asked)], codes=(0, 1)))
        for package in told["dependencies"]:
            if "skip_reason" in package:
                unknown.append(package["name"])
            for one in package.get("vulns", ()):
                if not known.keys() & {one["id"], *one["aliases"]}:
                    fixed = ", ".join(one["fix_versions"]) or "nowhere yet"
                    found.append(f"{package['name']} {package['version']}: {one['id']}, fixed in {fixed}")
    if unknown and not found:
        # A mirror of an index may know packages and not what is known about them: that is no clean bill.
        raise Skipped(f"nothing is known here about {len(unknown)} packages, {unknown[0]} among them")
    return found


def risky_code() -> list[str]:
    """Code of ours that commonly is a weakness."""
    command = ["bandit", "--quiet", "--recursive", "--severity-level", "medium", "--format", "json"]
    told = json.loads(_output([*command, "src", "packages", "scripts"], codes=(0, 1)))
    listed = {key: why for key, why in accepted().items() if " " in key}
    seen = {f"{each['filename']} {each['test_id']}" for each in told["results"]}
    found = [
        f"{each['filename']}:{each['line_number']}: {each['test_id']} {each['issue_text']}"
        for each in told["results"]
        if f"{each['filename']} {each['test_id']}" not in listed
    ]
    stale = [f"{ACCEPTED.name} lists what is not there any more: {key}" for key in sorted(listed.keys() - seen)]
    return [*found, *stale]


def workflows() -> list[str]:
    """Faults of the workflows and actions, and what a stranger could do with them."""
    schema = ["check-jsonschema", "--builtin-schema"]
    files = {
        "vendor.github-workflows": sorted(map(str, (_WORKFLOWS / "workflows").glob("*.yml"))),
        "vendor.github-actions": sorted(map(str, (_WORKFLOWS / "actions").glob("*/action.yml"))),
    }
    found = [line for name, paths in files.items() for line in _complaints([*schema, name, *paths])]
    return found + _complaints(
        ["zizmor", "--offline", "--min-severity", "medium", "--no-progress", "--color", "never", str(_WORKFLOWS)]
    )


def shell() -> list[str]:
    """Faults of shell scripts."""
    files = [path for folder in (".ci", ".github") for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    scripts = [str(path) for path in files if path.read_bytes().startswith(b"#!/usr/bin/env bash")]
    return _complaints(["shellcheck", *scripts])


def metadata() -> list[str]:
    """The citation file and the configuration of pre-commit."""
    return [*_complaints(["cffconvert", "--validate"]), *_complaints(["pre-commit", "validate-config"])]


CHECKS: dict[str, Callable[[], list[str]]] = {
    "vulnerabilities": vulnerabilities,
    "code": risky_code,
    "workflows": workflows,
    "shell": shell,
    "metadata": metadata,
}


def _output(command: list[str], codes: tuple[int, ...]) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    except FileNotFoundError:
        raise Skipped(f"{command[0]} is not installed") from None
    if any(word in done.stderr for word in _UNREACHABLE):
        raise Skipped("no index can be reached")
    if done.returncode not in codes:
        raise RuntimeError(f"{command[0]} ended with exit code {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _complaints(command: list[str]) -> list[str]:
    """What a tool prints where it is not content, as one finding."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    except FileNotFoundError:
        raise Skipped(f"{command[0]} is not installed") from None
    return [] if done.returncode == 0 else [f"{command[0]}:\n{(done.stdout + done.stderr).strip()}"]


def main() -> int:
    """Run the checks that are named, else all, and print one line for each."""
    wanted = sys.argv[1:] or list(CHECKS)
    unknown = sorted(set(wanted) - set(CHECKS))
    if unknown:
        print(f"audit: there is no check {unknown[0]!r}. Checks: {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    n_found = 0
    for name in wanted:
        try:
            found = CHECKS[name]()
        except Skipped as reason:
            print(f"{name:<16} SKIPPED: {reason}", flush=True)
            continue
        n_found += len(found)
        print(f"{name:<16} {f'{len(found)} found' if found else 'ok'}", *found, sep="\n  ", flush=True)
    return int(n_found > 0)


if __name__ == "__main__":
    sys.exit(main())
