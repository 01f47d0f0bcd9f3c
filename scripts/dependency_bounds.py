"""Run tests with the oldest or newest dependencies that pyproject.toml allows: ``… oldest|newest [TESTS…]``.

Oldest is the lowest version of each package that the development environment names (what those need in turn is the
newest), on the oldest Python: older versions have no builds for newer ones. Newest asks an index for the newest of
all, on this Python. Each has an environment of its own under .venv-bounds/. Needs uv and an index;
where one of them is missing the tests are skipped, and that is said.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from scripts.lock import OLDEST_PYTHON
from scripts.requirements import ROOT, requirements_of

_ENVIRONMENTS = ROOT / ".venv-bounds"
_RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
# What uv says where there is no index to ask. That no versions fit together is another thing, and a fault.
_UNREACHABLE = "Failed to fetch"


class NoIndex(Exception):
    """The packages cannot be had here and now."""


def python_for(bound: str) -> str | None:
    """The interpreter that a bound is tested with, None where there is none."""
    if bound == "newest":
        return sys.executable
    if sys.version_info[:2] == tuple(map(int, OLDEST_PYTHON.split("."))):
        return sys.executable
    versions = Path("~/.pyenv/versions").expanduser()
    installed = [shutil.which(f"python{OLDEST_PYTHON}"), *versions.glob(f"{OLDEST_PYTHON}.*/bin/python")]
    # A shim of pyenv is there and yet starts nothing.
    return next((str(each) for each in installed if each is not None and _starts(each)), None)


def _starts(python: str | Path) -> bool:
    return subprocess.run([str(python), "--version"], capture_output=True).returncode == 0


def prepare(bound: str, python: str) -> Path:
    """An environment of the bound; returns its interpreter."""
    home = _ENVIRONMENTS / bound
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run(["uv", "venv", "--quiet", "--python", python, str(home)], check=True)
    inside = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    asked = home / "requirements.txt"
    asked.write_text("\n".join(requirements_of("dev")) + "\n", encoding="utf-8")
    install = ["uv", "pip", "install", "--quiet", "--python", str(inside)]
    command = [*install, "--resolution", _RESOLUTIONS[bound], "--upgrade", "-r", str(asked)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    print(done.stderr, end="", file=sys.stderr, flush=True)
    if done.returncode and _UNREACHABLE in done.stderr:
        raise NoIndex
    done.check_returncode()
    own = ["-e", str(ROOT), "-e", str(ROOT / "packages" / "agentunit-local")]
    subprocess.run([*install, "--no-deps", *own], check=True)
    return inside


def main() -> int:
    """Make the environment of a bound and run tests in it."""
    bound, tests = sys.argv[1], sys.argv[2:]
    if bound not in _RESOLUTIONS:
        print(f"dependency_bounds: say oldest or newest; received {bound!r}", file=sys.stderr)
        return 2
    if shutil.which("uv") is None:
        print(f"SKIPPED {bound}: uv is not installed")
        return 0
    python = python_for(bound)
    if python is None:
        print(f"SKIPPED {bound}: there is no Python {OLDEST_PYTHON} here")
        return 0
    print(f"installing the {bound} dependencies into .venv-bounds/{bound} ({python}) …", flush=True)
    try:
        inside = prepare(bound, python)
    except NoIndex:
        print(f"SKIPPED {bound}: no index can be reached")
        return 0
    return subprocess.run([str(inside), "-m", "pytest", "-n", "2", *tests], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
