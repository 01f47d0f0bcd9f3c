"""Parts of other packages, as installed packages bring them, and through the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from example_plugin import use_each_part
from installed_packages import forget_plugins, write_metadata

from agentunit import doors, plugins
from agentunit.cli.main import cli
from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.reports.reporters import ReportError, format_for, reporter_named, reporter_names, reporter_table
from agentunit.store import open_store
from agentunit.store.schema import StoreError
from agentunit.traces.formats import format_named, format_names, format_table, trace_formats
from agentunit.traces.reading import TraceFiles

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "plugin"

FORMAT_SOURCE = """
from agentunit import DatasetCase, Outcome, Record
from agentunit.traces.formats_base import TraceFormat

def read(source, notes):
    for line in source.stream:
        {body}

ODD = TraceFormat("whatever", "one answer a line", lambda opening: {matches}, read)
"""


def install_format(install: Callable[..., Path], *, body: str, matches: str = "False") -> None:
    source = FORMAT_SOURCE.format(body=body, matches=matches)
    install("odd-format", modules={"odd_format": source}, entry_points={"agentunit.formats": {"odd": "odd_format:ODD"}})


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments])


# The example


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install_package: Any) -> Path:
    """The package of examples/plugin on the path, with the metadata that its pyproject.toml asks for."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    site = tmp_path / "site"
    write_metadata(site, project["name"], project["version"], project["entry-points"])
    for each in (site, EXAMPLE / "src"):
        monkeypatch.syspath_prepend(str(each))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("COLUMNS", "200")
    forget_plugins()
    return work


def test_the_example_works_through_the_command_line(example: Path) -> None:
    use_each_part(invoke, EXAMPLE / "tickets.jsonl")


def test_the_documentation_shows_or_links_each_part_of_the_example() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    for name in ("metric", "trace_format"):
        source = (EXAMPLE / "src" / "agentunit_example" / f"{name}.py").read_text(encoding="utf-8")
        body = source.partition("\n\n\n")[2].strip()
        assert body in page, f"docs/plugins.md does not show {name}.py as it is"
    for name in ("backend", "reporter", "command", "detector", "store"):
        assert f"(../examples/plugin/src/agentunit_example/{name}.py)" in page


# The tables


@pytest.mark.parametrize("name", sorted(doors._PARTS))
def test_every_door_leads_somewhere(name: str) -> None:
    assert doors.part(name) is not None


def test_our_own_go_through_the_same_tables() -> None:
    forget_plugins()
    own = [name for name, plugin in format_table().entries.items() if plugin.package is None]
    assert [each.name for each in trace_formats()][: len(own)] == own
    for name, plugin in reporter_table().entries.items():
        if plugin.package is None:
            assert reporter_named(name).summary
    assert format_for("a/RUN.HTML") == "html"
    assert format_for("run.json.gz") == "json"
    assert format_for("https://host/run.json") == "otel"
    assert format_for("run.docx") is None


def test_names_are_listed_without_importing_a_package(install_package: Callable[..., Path]) -> None:
    install_package(
        "loud-plugin",
        modules={"loud_plugin": "raise RuntimeError('imported')\n"},
        entry_points={"agentunit.formats": {"loud": "loud_plugin:A"}, "agentunit.reporters": {"loud": "loud_plugin:B"}},
    )
    assert "loud" in format_names()
    assert "loud" in reporter_names()
    assert format_for("run.html") == "html"
    assert "loud_plugin" not in sys.modules


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("raise RuntimeError('out of\\n order')\n", "RuntimeError: out of order"),
        ("import loud_plugin_needs_this\n", "ModuleNotFoundError: No module named 'loud_plugin_needs_this'"),
        ("", "AttributeError: module 'broken_plugin' has no attribute 'THING'"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("THING = 5\n", "TypeError: what its package offers is no"),
    ],
    ids=["raises", "misses a dependency", "misses the attribute", "exits", "is something else"],
)
def test_what_does_not_load_is_named_once_and_harms_nothing(
    install_package: Callable[..., Path], capsys: pytest.CaptureFixture[str], tmp_path: Path, source: str, why: str
) -> None:
    kinds = {
        "metric": "agentunit.metrics",
        "backend": "agentunit.backends",
        "trace format": "agentunit.formats",
        "reporter": "agentunit.reporters",
        "command": "agentunit.commands",
        "detector": "agentunit.detectors",
        "store": "agentunit.stores",
    }
    points = {group: {"broken": "broken_plugin:THING"} for group in kinds.values()}
    install_package("broken-plugin", modules={"broken_plugin": source}, entry_points=points)
    # One JSON object that is no trace: every format is asked.
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text('{"weather": "fine"}')
    found = list(TraceFiles([tmp_path / "a.json", tmp_path / "b.json"]))
    assert [type(each) for each in found] == [InputError, InputError]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: trace format 'broken' of broken-plugin 1.0 does not load: ")
    assert why in line
    with pytest.raises(ValueError, match=r"trace format 'broken' of broken-plugin 1\.0 does not load"):
        format_named("broken")
    with pytest.raises(ReportError, match=r"reporter 'broken' of broken-plugin 1\.0 does not load"):
        reporter_named("broken")
    scored = invoke("score", ROOT / "examples" / "plugin" / "tickets.jsonl", "--from", "broken")
    assert scored.exit_code == 2
    assert "of broken-plugin 1.0 does not load" in " ".join(scored.stderr.split())
    assert "Traceback" not in scored.output
    findings = {each["part"]: each for each in json.loads(invoke("doctor", "--json").stdout)}
    redacted = invoke(
        "convert", "--mask", ROOT / "examples" / "plugin" / "tickets.jsonl", "--check", "--backend", "broken"
    )
    assert redacted.exit_code == 2
    assert "detector 'broken' of broken-plugin 1.0 does not load" in " ".join(redacted.stderr.split())
    listed = invoke("runs", "--store", "broken://ada:hunter2@host/runs")
    assert listed.exit_code == 3
    assert "store 'broken' of broken-plugin 1.0 does not load" in " ".join(listed.stderr.split())
    for kind in kinds:
        assert findings[f"{kind} broken"]["state"] == "broken"
        assert "broken-plugin 1.0" in findings[f"{kind} broken"]["note"]


@pytest.mark.parametrize(
    ("kind", "group", "name"),
    [
        ("metric", "agentunit.metrics", "cost"),
        ("backend", "agentunit.backends", "judge"),
        ("backend", "agentunit.backends", "lexical"),
        ("trace format", "agentunit.formats", "chat"),
        ("trace format", "agentunit.formats", "records"),
        ("reporter", "agentunit.reporters", "html"),
        ("reporter", "agentunit.reporters", "json"),
        ("command", "agentunit.commands", "run"),
        ("detector", "agentunit.detectors", "patterns"),
        ("store", "agentunit.stores", "sqlite"),
        ("store", "agentunit.stores", "postgresql"),
    ],
)
def test_our_names_stay_ours_and_the_doctor_says_who_wanted_them(
    install_package: Callable[..., Path], kind: str, group: str, name: str
) -> None:
    install_package("greedy", modules={"greedy": "raise RuntimeError"}, entry_points={group: {name: "greedy:THING"}})
    table: plugins.PluginTable[Any] = plugins.PluginTable(kind, group, {name: "json:dumps"}, adopt=lambda made, _: made)
    assert table.load(name) is json.dumps
    findings = json.loads(invoke("doctor", "--json").stdout)
    (refused,) = [each for each in findings if each["state"] == "refused"]
    assert refused["part"] == f"{kind} {name}"
    assert "one of greedy 1.0" in refused["note"]
    assert "greedy" not in sys.modules


def test_a_name_of_two_packages_belongs_to_neither(install_package: Callable[..., Path]) -> None:
    for each in ("one", "two"):
        install_package(each, modules={each: "A = 1"}, entry_points={"agentunit.reporters": {"same": f"{each}:A"}})
    with pytest.raises(
        ReportError, match=r"two reporters are called 'same': one of (one|two) 1.0 and one of (one|two)"
    ):
        reporter_named("same")
    assert reporter_named("html").summary


# Plug-ins that load, and fail later


def test_a_format_that_fails_is_named_and_costs_its_file_only(
    install_package: Callable[..., Path], tmp_path: Path
) -> None:
    body = (
        "yield Record(DatasetCase(line.decode().strip()), outcome=Outcome(output='x')) if b'!' not in line else 1 / 0"
    )
    install_format(install_package, body=body)
    (tmp_path / "a.txt").write_text("one\ntwo!\nthree\n")
    (tmp_path / "b.txt").write_text("four\n")
    found = list(TraceFiles([tmp_path / "a.txt", tmp_path / "b.txt"], format="odd"))
    assert [each.case.id for each in found if isinstance(each, Record)] == ["one", "four"]
    (error,) = [each for each in found if isinstance(each, InputError)]
    assert "trace format 'odd' of odd-format 1.0 cannot read on: ZeroDivisionError" in str(error)


def test_a_format_that_yields_something_else_is_named(install_package: Callable[..., Path], tmp_path: Path) -> None:
    install_format(install_package, body="yield {'case': {}}")
    (tmp_path / "a.txt").write_text("one\n")
    (error,) = TraceFiles([tmp_path / "a.txt"], format="odd")
    assert "trace format 'odd' of odd-format 1.0 must yield records or spans; received {'case': {}}" in str(error)


def test_a_format_is_asked_after_our_own_and_must_not_raise(
    install_package: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install_format(install_package, body="return", matches="1 / 0")
    (tmp_path / "chat.json").write_text('{"messages": [{"role": "user", "content": "Hi"}]}')
    (tmp_path / "other.json").write_text('{"weather": "fine"}')
    found = list(TraceFiles([tmp_path / "chat.json", tmp_path / "other.json"]))
    assert [type(each) for each in found] == [Record, InputError]
    (line,) = capsys.readouterr().err.splitlines()
    assert "trace format 'odd' of odd-format 1.0 cannot look at" in line


def test_a_reporter_that_fails_is_named(install_package: Callable[..., Path], tmp_path: Path) -> None:
    source = "class Odd:\n    summary, endings = 'odd', ['.odd']\n    def write(self, reported, target): return 1 / 0\n"
    points = {"agentunit.reporters": {"odd": "odd_reporter:ODD"}}
    install_package("odd-reporter", modules={"odd_reporter": f"{source}\nODD = Odd()\n"}, entry_points=points)
    assert format_for("run.odd") == "odd"
    with pytest.raises(ReportError, match=r"reporter 'odd' of odd-reporter 1\.0 failed: ZeroDivisionError"):
        reporter_named("odd").write(None, "run.odd")  # type: ignore[arg-type]


def test_an_unknown_report_format_lists_those_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("export", "last", "--to", "run.txt", "--format", "word")
    assert done.exit_code == 2
    assert "must be one of json, junit, markdown, csv, parquet, html, otel" in " ".join(done.stderr.split())


def test_a_store_that_fails_is_named_without_its_password(
    install_package: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = (
        "def odd(address, *, read_only):\n    if 'none' in address:\n        return 5\n    raise OSError(address)\n"
    )
    points = {"agentunit.stores": {"odd": "odd_store:odd"}}
    install_package("odd-store", modules={"odd_store": source}, entry_points=points)
    with pytest.raises(
        StoreError, match=r"store 'odd' of odd-store 1\.0 cannot open odd://ada@host/runs: OSError"
    ) as failed:
        open_store("odd://ada:hunter2@host/runs")
    assert "hunter2" not in str(failed.value)
    with pytest.raises(StoreError, match="what its package offers is no database: it has no 'execute'"):
        open_store("odd://none")
    with pytest.raises(StoreError, match=r"or postgresql://USER@HOST/DATABASE, odd://…; received 'other://host'"):
        open_store("other://host")
