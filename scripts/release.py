"""Build everything that a release consists of, try it in empty environments, and stop: ``python -m scripts.release``.

Into dist/ go wheels and source distributions of the three packages, checksums and bills of materials. Each is built
twice, the second time from the unpacked source distribution in another folder: the bytes must be equal. Then the wheels
are installed by name from folders alone (``--no-index``), as a user would, and used. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

from scripts.requirements import ROOT, name_of
from scripts.sbom import bill

PROJECTS = {
    "agentunit-eval": ROOT,
    "agentunit-local": ROOT / "packages" / "agentunit-local",
    "agentunit-local-large": ROOT / "packages" / "agentunit-local-large",
}
# What each bill of materials is about: the lock that applies, and which of ours come along.
_BILLS = {
    "agentunit-eval": ("base", ()),
    "agentunit-local": ("local", ("agentunit-eval",)),
    "agentunit-local-large": ("local-large", ("agentunit-eval", "agentunit-local")),
}
# What users ask for, the backend that quality metrics then take by themselves, and the bill of what comes along.
_TRIED = (
    ("agentunit-eval", "lexical", "agentunit-eval"),
    ("agentunit-eval[local]", "local", "agentunit-local"),
    ("agentunit-eval[local-large]", "local-large", "agentunit-local-large"),
)
_EPOCH_WITHOUT_GIT = 1577836800  # 2020-01-01, what zip files can hold on every system


class ReleaseError(Exception):
    """Why there is no release: one sentence."""


def source_epoch() -> int:
    """The time that goes into the files: the last commit's, unless SOURCE_DATE_EPOCH says another."""
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    if stated:
        return int(stated)
    told = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return int(told.stdout) if told.returncode == 0 and told.stdout.strip() else _EPOCH_WITHOUT_GIT


def build(project: Path, target: Path, epoch: int, *kinds: str) -> None:
    """Build a wheel, a source distribution or both with the backend of this environment."""
    chosen = [option for kind in kinds for option in ("-t", kind)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target), *chosen]
    _run(command, cwd=project, env=environment)


def build_all(dist: Path, epoch: int, projects: dict[str, Path] = PROJECTS) -> dict[str, str]:
    """Build every project twice and compare; returns the SHA-256 of each file by its name."""
    for name, folder in projects.items():
        print(f"building {name} …", flush=True)
        build(folder, dist, epoch, "sdist", "wheel")
        rebuild_and_compare(dist, name, epoch)
    return {path.name: digest(path) for path in sorted(dist.iterdir()) if path.suffix in (".whl", ".gz")}


def rebuild_and_compare(dist: Path, name: str, epoch: int) -> None:
    """Build again from the unpacked source distribution; a difference of one byte is an error."""
    (sdist,) = dist.glob(f"{name.replace('-', '_')}-[0-9]*.tar.gz")
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        (unpacked,) = Path(scratch).iterdir()
        again = Path(scratch, "again")
        build(unpacked, again, epoch, "sdist", "wheel")
        for path in sorted(again.iterdir()):
            if digest(path) != digest(dist / path.name):
                raise ReleaseError(
                    f"{path.name} is not reproducible: built again from the source distribution it differs"
                )


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def versions() -> dict[str, str]:
    """The version of each project, as its source says."""
    found = {}
    for name, folder in PROJECTS.items():
        package = "agentunit" if name == "agentunit-eval" else name.replace("-", "_")
        text = (folder / "src" / package / "__init__.py").read_text(encoding="utf-8")
        stated = re.search(r'^__version__ = "(.+)"$', text, re.M)
        if stated is None:
            raise ReleaseError(f"{name}: {package}/__init__.py states no version")
        found[name] = stated[1]
    return found


def write_bills(dist: Path, epoch: int) -> None:
    """One bill of materials for each distribution."""
    stated = versions()
    for name, (part, own) in _BILLS.items():
        made = bill(name, stated[name], part, {each: stated[each] for each in own}, epoch)
        text = json.dumps(made, indent=1, sort_keys=True) + "\n"
        (dist / f"{name}-{stated[name]}.cdx.json").write_text(text, encoding="utf-8")


def fetch_others(wheelhouse: Path, part: str) -> None:
    """The packages of others that a part needs, as locked, into a folder; needs an index."""
    wanted = ["-r", str(ROOT / "locks" / f"{part}.txt")]
    _pip(
        sys.executable,
        "download",
        "--quiet",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "-d",
        str(wheelhouse),
        *wanted,
    )


def try_out(wheel_folders: list[Path], requirement: str, backend: str, listed: Path) -> None:
    """Install into an empty environment from folders alone, and use it; ``listed`` is the bill of what comes along."""
    print(f'pip install "{requirement}" into an empty environment …', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "env")
        venv.create(home, with_pip=True)
        bin_folder = home / ("Scripts" if os.name == "nt" else "bin")
        links = [option for each in wheel_folders for option in ("--find-links", str(each))]
        _pip(str(bin_folder / "python"), "install", "--quiet", "--no-index", *links, requirement)
        compare_with_bill(bin_folder, listed)
        smoke_test(bin_folder, Path(folder), backend)


def compare_with_bill(bin_folder: Path, listed: Path) -> None:
    """Every package that was installed is in the bill of materials."""
    told = _run([str(bin_folder / "python"), "-m", "pip", "list", "--format", "json"], cwd=ROOT, env=dict(os.environ))
    made = json.loads(listed.read_text(encoding="utf-8"))
    known = {name_of(each["name"]) for each in (made["metadata"]["component"], *made["components"])}
    # What a new environment has by itself.
    unknown = {name_of(each["name"]) for each in json.loads(told)} - known - {"pip", "setuptools"}
    if unknown:
        raise ReleaseError(f"{listed.name} does not list what is installed: {', '.join(sorted(unknown))}")


def smoke_test(bin_folder: Path, folder: Path, backend: str) -> None:
    """What a user does first; ``backend`` is what quality metrics must take by themselves."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTUNIT_", "PYTHON"))}

    def agentunit(*arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        return _run([str(bin_folder / "agentunit"), *arguments], cwd=folder, env=environment, codes=codes)

    stated = versions()["agentunit-eval"]
    if stated not in agentunit("--version"):
        raise ReleaseError(f"the installed command does not say version {stated}")
    demo = json.loads(agentunit("show", "demo", "--json"))
    taken = {row["backend"] for row in demo["metrics"] if row["metric"] == "faithfulness"}
    if taken != {backend}:
        raise ReleaseError(f"the demo scored faithfulness by {sorted(taken)} instead of {backend!r}")
    agentunit("init", "evals")
    # The suite that comes with it has a bug to find: its gates fail.
    agentunit("run", "evals/suite.py", "--yes", codes=(1,))
    agentunit("export", "last", "--to", "run.html", codes=(0, 1))
    broken = [each for each in json.loads(agentunit("doctor", "--json")) if each["state"] == "broken"]
    if broken:
        raise ReleaseError(f"doctor finds parts of the base install broken: {broken}")
    _run([str(bin_folder / "python"), "-m", "pip", "check"], cwd=folder, env=environment)


def _pip(python: str, *arguments: str) -> None:
    _run([python, "-m", "pip", "--disable-pip-version-check", *arguments], cwd=ROOT, env=dict(os.environ))


def _run(command: list[str], *, cwd: Path, env: dict[str, str], codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode not in codes:
        said = (done.stdout + done.stderr).strip()[-3000:]
        raise ReleaseError(f"{' '.join(command)} ended with exit code {done.returncode}:\n{said}")
    return done.stdout


def main() -> int:
    """Build, compare, list, install, try; then say what there is."""
    reader = argparse.ArgumentParser(prog="python -m scripts.release", description=__doc__)
    reader.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the files go; emptied first")
    reader.add_argument("--no-install", action="store_true", help="only build: no index is asked for anything")
    options = reader.parse_args()
    dist: Path = options.dist.resolve()
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    epoch = source_epoch()
    try:
        sums = build_all(dist, epoch)
        write_bills(dist, epoch)
        (dist / "SHA256SUMS").write_text("".join(f"{sum_}  {name}\n" for name, sum_ in sums.items()), encoding="utf-8")
        if not options.no_install:
            with tempfile.TemporaryDirectory() as folder:
                others = Path(folder)
                fetch_others(others, "local-large")
                for requirement, backend, name in _TRIED:
                    (listed,) = dist.glob(f"{name}-[0-9]*.cdx.json")
                    try_out([dist, others], requirement, backend, listed)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for path in sorted(dist.iterdir()):
        print(f"{path.stat().st_size / 1e6:8.1f} MB  {path.name}")
    print(
        f"built twice, equal to the byte{'' if options.no_install else '; installed and tried'}; nothing was uploaded"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
