"""One virtual environment for each package under ``.bench/``, and what installing it brought along."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.speed.peers import Peer

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".bench"
OURS = "agentunit"
_STAMP = "benchmark.json"
_NOT_COUNTED = {"pip", "setuptools", "wheel"}


class InstallFailed(RuntimeError):
    """pip could not install a package; the message is its last line."""


@dataclass(frozen=True)
class Installed:
    """What a fresh environment holds after installing one package: packages (itself included) and bytes added."""

    made_of: str
    n_packages: int
    n_bytes: int


def python_of(name: str) -> Path:
    """The interpreter of a package's environment."""
    return ENVIRONMENTS / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def installed_peer(peer: Peer) -> Installed | None:
    """The peer's environment, if it is there and made of the pinned requirements."""
    return _stamped(peer.name, " ".join(peer.requirements))


def installed_ours() -> Installed | None:
    """Our environment, if it is there and made of the working tree as it is now."""
    return _stamped(OURS, _tree_fingerprint())


def install_peer(peer: Peer) -> Installed:
    """Make the peer's environment afresh."""
    return _install(peer.name, list(peer.requirements), " ".join(peer.requirements))


def install_ours() -> Installed:
    """Install the working tree as a user would, not editable, with its base dependencies only."""
    return _install(OURS, [str(ROOT)], _tree_fingerprint())


def _install(name: str, arguments: list[str], made_of: str) -> Installed:
    folder = ENVIRONMENTS / name
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    n_bytes_before = _size_bytes(folder)
    pip = [str(python_of(name)), "-m", "pip", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "install", "-q", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["pip gave no reason"]
        raise InstallFailed(f"{name}: {lines[-1]}")
    listed = subprocess.run([*pip, "list", "--format", "json"], capture_output=True, text=True, check=True)
    names = {each["name"] for each in json.loads(listed.stdout)}
    installed = Installed(
        made_of=made_of,
        n_packages=len(names - _NOT_COUNTED),
        # Taken now, before anything is imported: bytecode written by pip counts, bytecode written by use does not.
        n_bytes=_size_bytes(folder) - n_bytes_before,
    )
    (folder / _STAMP).write_text(json.dumps(asdict(installed)), encoding="utf-8")
    return installed


def _stamped(name: str, made_of: str) -> Installed | None:
    try:
        installed = Installed(**json.loads((ENVIRONMENTS / name / _STAMP).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return installed if installed.made_of == made_of else None


def _size_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _tree_fingerprint() -> str:
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes())
    for path in sorted((ROOT / "src").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
