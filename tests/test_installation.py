"""The one place that words install hints: a checkout, a repository, or an index."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentunit import installation
from agentunit.installation import install_command, reinstall_command, remote_install_command

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
    for cached in (installation._checkout, installation._origin):
        cached.cache_clear()
    yield lambda noted: setattr(Distribution, "noted", noted)
    monkeypatch.undo()
    for cached in (installation._checkout, installation._origin):
        cached.cache_clear()


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
    vcs = {"vcs": "git", "requested_revision": "main"}
    origin({"url": "https://example.com/a.git", "vcs_info": vcs})
    place = "git+https://example.com/a.git@main"
    assert install_command("local") == f'pip install "{place}#subdirectory=packages/agentunit-local"'
    assert install_command("otel") == f'pip install "agentunit-eval[otel] @ {place}"'
    local = f'"{place}#subdirectory=packages/agentunit-local"'
    assert remote_install_command() == f'pip install "{place}" {local}'
    assert install_command("local-large") == f'pip install {local} {local[:-1]}-large"'


@pytest.mark.parametrize(
    "noted",
    [None, "", "no json", "[]", {"url": "file:///gone", "dir_info": {}}, {"url": 3}, {"url": "https://e.com/a.whl"}],
)
def test_from_an_index_or_who_knows_where_the_name_is_all_there_is(origin: Any, noted: Any) -> None:
    origin(noted)
    assert install_command("local") == 'pip install "agentunit-eval[local]"'
    assert reinstall_command() == "pip install --force-reinstall agentunit-eval"


def test_hints_are_worded_in_one_place() -> None:
    worded = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"pip install[^\n]*agentunit", path.read_text(encoding="utf-8"))
    ]
    assert worded in ([], ["src/agentunit/installation.py"])


def test_the_readme_installs_the_local_model_too() -> None:
    assert "`pip install . ./packages/agentunit-local`" in (ROOT / "README.md").read_text(encoding="utf-8")
