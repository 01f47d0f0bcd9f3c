"""Everything that a release consists of: built twice, installed from folders alone, tried. Nothing is uploaded."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from scripts import release

pytestmark = pytest.mark.optional


# What pip says where there is no index to ask, or where it has nothing of a package. One that lacks the locked version
# of a package names others: that is a fault of the lock.
_UNREACHABLE = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "(from versions: none)")


def make_release(dist: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.release", "--dist", str(dist), *options]
    return subprocess.run(command, cwd=release.ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a release, and what was said about it."""
    folder = tmp_path_factory.mktemp("dist")
    done = make_release(folder)
    if done.returncode and any(word in done.stderr for word in _UNREACHABLE):
        # The packages of others cannot be had; ours can be built all the same.
        done = make_release(folder, "--no-install")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


@pytest.fixture(scope="module")
def dist(made: tuple[Path, str]) -> Path:
    return made[0]


def test_it_is_built_twice_installed_from_folders_alone_and_tried(made: tuple[Path, str]) -> None:
    said = made[1].splitlines()[-1]
    if said == "built twice, equal to the byte; nothing was uploaded":
        pytest.skip("no index can be reached: nothing was installed")
    assert said == "built twice, equal to the byte; installed and tried; nothing was uploaded"


def test_all_files_are_there_with_their_checksums(dist: Path) -> None:
    stated = release.versions()
    wanted = set()
    for name, version in stated.items():
        stem = f"{name.replace('-', '_')}-{version}"
        wanted |= {f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"}
    sums = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == wanted
    assert all(release.digest(dist / name) == each for name, each in sums.items())


def test_the_base_package_is_small_and_whole(dist: Path) -> None:
    (wheel,) = dist.glob("agentunit_eval-*.whl")
    (sdist,) = dist.glob("agentunit_eval-*.tar.gz")
    assert wheel.stat().st_size < 4e6
    assert sdist.stat().st_size < 4e6
    names = zipfile.ZipFile(wheel).namelist()
    for kept in (
        "agentunit/py.typed",
        "agentunit/cli/templates/suite.py.txt",
        "agentunit/addons/viewer/static/schemas.json",
    ):
        assert kept in names
    with tarfile.open(sdist) as archive:
        assert not [name for name in archive.getnames() if "/packages/" in name or "/tests/" in name]


def test_each_bill_of_materials_lists_what_comes_along(dist: Path) -> None:
    (path,) = dist.glob("agentunit-local-large-*.cdx.json")
    listed = {each["name"] for each in json.loads(path.read_text())["components"]}
    assert {"agentunit-eval", "agentunit-local", "click", "msgspec", "numpy", "onnxruntime", "tokenizers"} <= listed
    (path,) = dist.glob("agentunit-eval-*.cdx.json")
    assert "numpy" not in {each["name"] for each in json.loads(path.read_text())["components"]}
