"""Every code block of README and docs runs: Python blocks in order, console blocks with the output they show."""

from __future__ import annotations

import doctest
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from agentunit.core.codec import decode_record

ROOT = Path(__file__).resolve().parent.parent
# Their Python needs the framework: tests/frameworks/test_live.py runs it in the environment of the same name.
FRAMEWORK_PAGES = sorted((ROOT / "docs" / "frameworks").glob("*.md"))
TOP_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
CONTRIBUTING = sorted((ROOT / "docs" / "contributing").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))
PAGES = sorted([*TOP_PAGES, *(ROOT / "docs").glob("*.md"), *FRAMEWORK_PAGES, *TUTORIALS, *CONTRIBUTING])
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m.group(1), m.group(2), text[: m.start()].count("\n") + 2) for m in _FENCE.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A CLIP that was trained on colored shapes, for the page that shows one.
    monkeypatch.setenv("AGENTUNIT_CLIP", str(ROOT / "tests" / "data" / "tiny_clip"))
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in blocks_of(page):
        where = f"{page.name}:{block.line}"
        if block.language == "python" and page in FRAMEWORK_PAGES:
            compile(block.text, str(page), "exec")
        elif block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True), namespace)
        elif block.language == "console":
            for command, shown in commands_of(block.text):
                run_and_compare(command, shown, where)
        elif block.language == "json":
            for line in block.text.splitlines():
                json.loads(line)
                decode_record(line)
        elif block.language == "yaml":
            yaml.safe_load(block.text)
        elif block.language == "toml" and sys.version_info >= (3, 11):
            import tomllib

            tomllib.loads(block.text)
        else:
            assert block.language in ("text", "toml"), f"{where}: a block needs a language that this test can run"


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.parent.name)
def test_every_example_ends_with_the_verdict_that_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / page.parent.name
    shutil.copytree(page.parent, folder, ignore=shutil.ignore_patterns(".agentunit", "__pycache__"))
    monkeypatch.chdir(folder)
    for block in blocks_of(page):
        if block.language == "console":
            for command, shown in commands_of(block.text):
                run_and_compare(command, shown, f"{page.parent.name}:{block.line}")


def test_the_list_of_examples_names_each_of_them() -> None:
    listed = re.findall(r"\]\((\w+)/README[.]md\)", (ROOT / "examples" / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [page.parent.name for page in EXAMPLES]


def test_every_page_in_the_navigation_of_the_site_exists() -> None:
    class Loader(yaml.SafeLoader):
        """Python's own tags name functions of Markdown extensions: what they are does not matter here."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w./-]+[.]md", str(yaml.load(text, Loader)["nav"])))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    made = {"changes.md", "contributing.md", "security.md", "examples/index.md"}
    assert named - made <= pages
    # A new page is listed by itself; a tutorial needs its place.
    assert {page for page in pages if page.startswith("tutorials/")} <= named


@pytest.mark.parametrize("page", FRAMEWORK_PAGES, ids=lambda page: page.stem)
def test_a_framework_page_has_an_environment_and_says_what_to_install(page: Path) -> None:
    assert [block.language for block in blocks_of(page)] == ["python"]
    pinned = (ROOT / "tests" / "frameworks" / "environments" / f"{page.stem}.txt").read_text(encoding="utf-8").split()
    installed = {line.partition("==")[0].partition("[")[0] for line in pinned}
    (command,) = re.findall(r"^`pip install \"\.\[otel\]\" (.*)`$", page.read_text(encoding="utf-8"), re.M)
    assert {each.strip('"').partition("[")[0] for each in command.split()} <= installed


def commands_of(block: str) -> list[tuple[str, str]]:
    commands: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], ""))
        else:
            command, shown = commands[-1]
            commands[-1] = (command, f"{shown}{line}\n")
    return commands


def run_and_compare(command: str, shown: str, where: str) -> None:
    if command.startswith("make "):
        # Making the environment anew inside the tests would recurse; that the target exists can still be checked.
        target = command.split()[1]
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)
        return
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
    # Pages show what a user sees who has the local model, as after "make demo".
    environment.pop("AGENTUNIT_BACKEND", None)
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, f"{where}: {command!r} exited {done.returncode}: {done.stderr or done.stdout}"
    checker = doctest.OutputChecker()
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    same = checker.check_output(_without_model_figures(shown), _without_model_figures(done.stdout), options)
    assert not shown or same, f"{where}: {command}\n{done.stdout}\n{done.stderr}"


def _without_model_figures(output: str) -> str:
    """What a model says may differ in its last digits from one processor to another."""
    return "\n".join(re.sub(r"\d", "0", line) if " local " in line else line for line in output.splitlines()) + "\n"


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, *EXAMPLES, ROOT / "examples" / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_size_of_the_install_is_the_same_wherever_it_is_stated() -> None:
    readme, comparison = (
        path.read_text(encoding="utf-8") for path in (ROOT / "README.md", ROOT / "docs" / "comparison.md")
    )
    stated = re.search(r"packages, megabytes \| (\d+), (\d+) \|", readme)
    base = [re.search(rf"\| {what} installed \| (\d+)", comparison) for what in ("packages", "megabytes")]
    assert stated is not None
    assert stated.groups() == tuple(each and each[1] for each in base)
