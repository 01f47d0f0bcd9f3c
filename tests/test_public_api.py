"""docs/api.txt is the public interface as it is, and changes together with the changelog."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scripts import public_api
from scripts.public_api import SNAPSHOT, facts, undocumented_change


@pytest.fixture(scope="module")
def now() -> list[str]:
    return facts()


def test_the_snapshot_is_the_interface_as_it_is(now: list[str]) -> None:
    kept = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    gone, new = sorted({*kept} - {*now}), sorted({*now} - {*kept})
    assert (gone, new) == ([], []), "the public interface changed; if that is meant: make api, and a changelog line"
    assert kept == now, "docs/api.txt holds lines twice or in another order; make api writes it anew"


def test_the_changelog_tells_of_the_last_change() -> None:
    assert undocumented_change() is None


@pytest.mark.parametrize(
    "fact",
    [
        "name agentunit.score",
        "parameter agentunit.score(records) place 0",
        "name agentunit.DatasetCase (class)",
        "option agentunit run --json: flag",
        "detail cost source",
        "exit 1 fail",
        "exit 4 cannot tell",
        "variable AGENTUNIT_BACKEND",
        "entry points agentunit.metrics",
        "json demo.n_cases",
    ],
)
def test_each_kind_of_fact_is_there(now: list[str], fact: str) -> None:
    assert fact in now


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> None:
        named = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *named, *arguments], cwd=self.folder, check=True, capture_output=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    made.write("docs/api.txt", "metric cost (direction lower, version 1)\n")
    made.write("CHANGELOG.md", "## Unreleased\n\n- `cost` is new.\n")
    made.commit()
    return made


CHANGED = "metric cost (direction lower, version 2)\n"
UNTOLD = "no line that was added to CHANGELOG.md since then names"


def test_a_change_that_nothing_tells_of_is_named(repository: Repository) -> None:
    assert undocumented_change(repository.folder) is None
    repository.write("docs/api.txt", CHANGED)
    assert UNTOLD in str(undocumented_change(repository.folder))
    repository.commit()
    repository.commit()
    assert "'metric cost (direction lower, version 1)' and 1 more" in str(undocumented_change(repository.folder))
    repository.write("CHANGELOG.md", "## Unreleased\n\n- `cost` counts cached tokens.\n- `cost` is new.\n")
    assert undocumented_change(repository.folder) is None
    repository.commit()
    assert undocumented_change(repository.folder) is None


def test_a_line_about_something_else_does_not_tell_of_a_change(repository: Repository) -> None:
    repository.write("CHANGELOG.md", "## Unreleased\n\n- `redact` masks more.\n- `cost` is new.\n")
    repository.commit()
    repository.write("docs/api.txt", CHANGED)
    assert UNTOLD in str(undocumented_change(repository.folder))
    repository.write("CHANGELOG.md", "## Unreleased\n\n- `redact` masks even more.\n- `cost` is new.\n")
    repository.commit()
    assert UNTOLD in str(undocumented_change(repository.folder))


def test_a_change_with_its_line_is_fine(repository: Repository) -> None:
    repository.write("docs/api.txt", CHANGED)
    repository.write("CHANGELOG.md", "- The cost counts cached tokens.\n")
    assert undocumented_change(repository.folder) is None
    repository.commit()
    assert undocumented_change(repository.folder) is None


def test_a_snapshot_written_after_a_merge_is_told_by_the_lines_that_were_merged(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "other")
    repository.write("CHANGELOG.md", "- `score --sample` takes some.\n- `cost` is new.\n")
    repository.commit()
    repository.git("checkout", "--quiet", "-")
    repository.git("merge", "--quiet", "--no-ff", "--message", "merge", "other")
    repository.write(
        "docs/api.txt", "option agentunit score --sample: text\nmetric cost (direction lower, version 1)\n"
    )
    assert undocumented_change(repository.folder) is None
    repository.commit()
    assert undocumented_change(repository.folder) is None
    repository.write("docs/api.txt", "option agentunit score --sample: integer\n")
    repository.commit()
    assert undocumented_change(repository.folder) is not None


def test_without_git_nothing_is_known(tmp_path: Path) -> None:
    assert undocumented_change(tmp_path) is None


def test_a_changed_interface_fails_the_check_and_names_the_difference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], now: list[str]
) -> None:
    monkeypatch.setattr(public_api, "facts", lambda: sorted([*now[1:], "name agentunit.surprise"]))
    monkeypatch.setattr("sys.argv", ["public_api", "--check"])
    assert public_api.main() == 1
    shown = capsys.readouterr().out
    assert "+ name agentunit.surprise" in shown
    assert f"- {now[0]}" in shown
