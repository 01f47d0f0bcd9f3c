"""Commands of other packages: listed, run, completed, and told apart from AgentUnit's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from installed_packages import forget_plugins

from agentunit.cli.main import _VERBS, cli, command_table

GREET = """
import click

@click.command()
@click.argument("name")
def greet(name):
    '''Say hello.'''
    click.echo(f"hello {name}")
"""


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def installed(install: Callable[..., Path], source: str, name: str = "greet") -> Path:
    return install("greeter", modules={"greeter": source}, entry_points={"agentunit.commands": {name: "greeter:greet"}})


def completed(typed: str, site: Path) -> subprocess.CompletedProcess[str]:
    asked = {"_AGENTUNIT_COMPLETE": "bash_complete", "COMP_WORDS": f"agentunit {typed}", "COMP_CWORD": "1"}
    code = "import sys; sys.argv[0] = 'agentunit'; from agentunit.cli.main import main; main()"
    environment = {**os.environ, **asked, "PYTHONPATH": str(site)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


def test_the_help_lists_them_by_package_and_imports_none(install_package: Callable[..., Path]) -> None:
    installed(install_package, "raise RuntimeError('imported')")
    *_, section = invoke("--help").stdout.partition("From other packages:\n")
    assert section.splitlines()[0].split(maxsplit=1) == ["greet", "greeter 1.0"]
    assert "greeter" not in sys.modules


def test_the_help_has_no_such_section_where_there_are_none() -> None:
    assert "other packages" not in invoke("--help").stdout


def test_one_is_run_with_what_was_typed(install_package: Callable[..., Path]) -> None:
    installed(install_package, GREET)
    assert invoke("greet", "Ada").stdout == "hello Ada\n"
    assert "Usage: cli greet [OPTIONS] NAME" in invoke("greet", "--help").stdout
    assert "did you mean 'greet'?" in invoke("great").stderr


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("raise RuntimeError('out of\\n order')", "RuntimeError: out of order"),
        ("", "AttributeError: module 'greeter' has no attribute 'greet'"),
        ("def greet(): pass", "TypeError: what its package offers is no click.Command; received <function greet"),
    ],
    ids=["raises", "misses the attribute", "is something else"],
)
def test_one_that_does_not_load_is_a_line_that_names_its_package(
    install_package: Callable[..., Path], source: str, why: str
) -> None:
    site = installed(install_package, source)
    done = invoke("greet", "Ada")
    assert done.exit_code == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: command 'greet' of greeter 1.0 does not load: {why}")
    assert completed("gr", site).stderr == ""


def test_shells_complete_them(install_package: Callable[..., Path]) -> None:
    site = installed(install_package, GREET)
    done = completed("g", site)
    assert (done.stdout.splitlines(), done.stderr) == (["plain,greet"], "")


def test_our_names_stay_ours_and_no_metadata_is_read_for_them(
    install_package: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(install_package, "raise RuntimeError('imported')", "runs")
    with monkeypatch.context() as patch:
        patch.setattr("agentunit.plugins.installed", pytest.fail)
        assert "List the runs" in invoke("runs", "--help").stdout
    assert command_table().brought == {}
    assert "one of greeter 1.0; AgentUnit's is used" in command_table().refused["runs"]


def test_our_own_rows_name_commands() -> None:
    forget_plugins()
    for name in _VERBS:
        assert isinstance(command_table().load(name), click.Command)
