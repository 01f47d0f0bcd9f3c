"""The one place that words install hints: a checkout, a repository, or an index."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentunit import installation
from agentunit.installation import install_command, reinstall_command, remote_install_command, wheels_command

ROOT = Path(__file__).parents[1]


@pytest.fixture
def origin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """AgentUnit as if pip had installed it into ``tmp_path`` and noted this."""

    class Distribution:
        noted: Any = None

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return self.noted if self.noted is None or isinstance(self.noted, str) else json.dumps(self.noted)

    monkeypatch.setattr(installation, "__file__", str(tmp_path / "lib" / "site-packages" / "agentunit" / "a.py"))
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Distribution())
    # Without this it would read the distribution that has just been replaced.
    monkeypatch.setattr("importlib.metadata.requires", lambda _: distribution_of_this_checkout().requires)
    for cached in (installation._checkout, installation._origin, installation._declared):
        cached.cache_clear()
    yield lambda noted: setattr(Distribution, "noted", noted)
    monkeypatch.undo()
    for cached in (installation._checkout, installation._origin, installation._declared):
        cached.cache_clear()


# Before a test takes its place.
distribution_of_this_checkout = partial(importlib.metadata.distribution, installation.DISTRIBUTION)


def test_in_a_checkout_the_command_names_its_folders() -> None:
    assert install_command("otel") == f'pip install "{ROOT}[otel]"'
    assert (ROOT / "packages/agentunit-local/pyproject.toml").is_file()
    local = ROOT / "packages/agentunit-local"
    assert install_command("local").replace('"', "") == f"pip install {local}"
    assert (ROOT / "packages/agentunit-local-large/pyproject.toml").is_file()
    assert install_command("local-large").replace('"', "") == f"pip install {local} {local}-large"


def test_installed_from_a_checkout_that_is_still_there(origin: Any, tmp_path: Path) -> None:
    checkout = tmp_path / "my checkout"
    (checkout / "packages/agentunit-local").mkdir(parents=True)
    (checkout / "packages/agentunit-local/pyproject.toml").touch()
    origin({"url": checkout.as_uri(), "dir_info": {}})
    assert install_command("local") == f'pip install "{checkout}/packages/agentunit-local"'
    assert install_command("zstd") == f'pip install "{checkout}[zstd]"'
    assert reinstall_command() == f'pip install --force-reinstall "{checkout}"'


def test_installed_from_a_repository(origin: Any) -> None:
    vcs = {"vcs": "git", "requested_revision": "main", "commit_id": "a" * 40}
    origin({"url": "https://example.com/a.git", "vcs_info": vcs})
    place = f"git+https://example.com/a.git@{'a' * 40}"
    assert install_command("local") == f'pip install "{place}#subdirectory=packages/agentunit-local"'
    assert install_command("otel") == f'pip install "agentunit-eval[otel] @ {place}"'
    local = f'"{place}#subdirectory=packages/agentunit-local"'
    assert remote_install_command() == f'pip install "{place}" {local}'
    assert install_command("local-large") == f'pip install {local} {local[:-1]}-large"'


@pytest.mark.parametrize("address", ["https://me:secret@example.com/a/b.git", "git@example.com:a/b.git"])
def test_a_checkout_whose_commit_is_in_its_repository(origin: Any, tmp_path: Path, address: str) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "packages/agentunit-local").mkdir(parents=True)
    (checkout / "packages/agentunit-local/pyproject.toml").touch()

    def git(*arguments: str) -> str:
        named = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        command = ["git", *named, *arguments]
        return subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "first")
    git("remote", "add", "origin", address)
    origin({"url": checkout.as_uri(), "dir_info": {}})
    wheels = "pip install wheels/agentunit_eval-*.whl wheels/agentunit_local-*.whl"
    assert remote_install_command() == wheels
    commit = git("rev-parse", "HEAD")
    git("update-ref", "refs/remotes/origin/main", commit)
    place = f"git+https://example.com/a/b.git@{commit}"
    assert remote_install_command() == f'pip install "{place}" "{place}#subdirectory=packages/agentunit-local"'
    git("commit", "--quiet", "--allow-empty", "--message", "not pushed")
    assert remote_install_command() == wheels
    local = checkout / "packages/agentunit-local"
    assert wheels_command() == f"pip wheel --no-deps --wheel-dir wheels {checkout} {local}"


UNKNOWN = [
    None,
    "",
    "no json",
    "[]",
    {"url": "file:///gone", "dir_info": {}},
    {"url": 3},
    {"url": "https://e.com/a.whl"},
]


@pytest.mark.parametrize("noted", UNKNOWN)
def test_from_who_knows_where_nothing_of_ours_is_asked_of_an_index(origin: Any, noted: Any) -> None:
    origin(noted)
    local = "FOLDER_OF_WHEELS/agentunit_local-*.whl"
    assert install_command("local") == f"pip install {local}"
    assert install_command("local-large") == f"pip install {local} FOLDER_OF_WHEELS/agentunit_local_large-*.whl"
    assert reinstall_command() == "pip install --force-reinstall FOLDER_OF_WHEELS/agentunit_eval-*.whl"
    assert remote_install_command() == "pip install wheels/agentunit_eval-*.whl wheels/agentunit_local-*.whl"


def test_beside_a_wheel_that_was_installed_the_others_are_found(origin: Any, tmp_path: Path) -> None:
    wheels = tmp_path / "my wheels"
    wheels.mkdir()
    local = wheels / "agentunit_local-0.1.0-py3-none-any.whl"
    local.touch()
    origin({"url": (wheels / "agentunit_eval-0.1.0-py3-none-any.whl").as_uri(), "archive_info": {}})
    assert install_command("local") == f'pip install "{local}"'
    assert wheels_command() == f'mkdir -p wheels && cp FOLDER_OF_WHEELS/agentunit_eval-*.whl "{local}" wheels/'
    assert install_command("local-large") == f'pip install "{local}" FOLDER_OF_WHEELS/agentunit_local_large-*.whl'


REQUIRED = [
    "click>=8.1",
    "zstandard>=0.22; extra == 'zstd'",
    "ecologits<0.12,>=0.11; extra == 'sustainability'",
    "psutil>=5.9; (sys_platform != 'linux') and extra == 'sustainability'",
    'spacy<4; (python_version >= "3.12") and extra == "ner"',
    "agentunit-eval[ner, zstd]; extra == 'presidio'",
    "presidio-analyzer; extra == 'presidio'",
]


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("zstd", 'pip install "zstandard>=0.22"'),
        ("sustainability", """pip install "ecologits<0.12,>=0.11" "psutil>=5.9; sys_platform != 'linux'\""""),
        ("presidio", """pip install "spacy<4; python_version >= '3.12'" "zstandard>=0.22" presidio-analyzer"""),
    ],
)
def test_an_extra_is_spelled_out_as_packages_of_others(
    origin: Any, monkeypatch: pytest.MonkeyPatch, extra: str, command: str
) -> None:
    origin(None)
    monkeypatch.setattr("importlib.metadata.requires", lambda _: REQUIRED)
    assert install_command(extra) == command


def test_no_extra_asks_an_index_for_one_of_ours(origin: Any) -> None:
    origin(None)
    for extra in distribution_of_this_checkout().metadata.get_all("Provides-Extra"):
        asked = install_command(extra).removeprefix("pip install ")
        assert not re.search(r"(?<!/)agentunit-", asked), asked


def test_the_local_model_names_none_of_ours() -> None:
    """pip asks an index for such a name where the local model and an extra are installed by one command."""
    text = (ROOT / "packages/agentunit-local/pyproject.toml").read_text(encoding="utf-8")
    (dependencies,) = re.findall(r"^dependencies = (.+)$", text, re.M)
    assert "agentunit" not in dependencies


def test_hints_are_worded_in_one_place() -> None:
    worded = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"pip install[^\n]*agentunit", path.read_text(encoding="utf-8"))
    ]
    assert worded in ([], ["src/agentunit/installation.py"])


def test_no_page_or_workflow_installs_one_of_ours_by_a_name_that_anybody_could_register() -> None:
    """``--no-index`` asks no index; a path, a URL or a file is no name."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("the files of the project are listed by git")
    by_name = re.compile(r"""(?:pip3?|uv|pipx|uvx) (?:install|add|run|tool|download)\b(?P<rest>[^`&|\n]*)""")
    ours = re.compile(
        r"""(?:^|[\s"'=])agentunit(?:-eval|-local|-local-large)?(?:\[[^]]*\])?(?=$|[\s"';,)<>=]|\.\s)(?! @)"""
    )
    kinds = (".md", ".txt", ".py", ".ts", ".tsx", ".yml", ".yaml", ".toml", "")
    paths = [ROOT / name for name in listed.stdout.split("\n") if name and Path(name).suffix in kinds]
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()[:160]}"
        for path in paths
        if path.is_file() and path != Path(__file__)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        for command in by_name.finditer(line)
        if "--no-index" not in command["rest"] and ours.search(command["rest"])
    ]
    assert wrong == []


def test_the_readme_installs_the_local_model_too() -> None:
    assert "`pip install . ./packages/agentunit-local`" in (ROOT / "README.md").read_text(encoding="utf-8")
