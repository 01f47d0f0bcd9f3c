"""What leaves the machine is masked in every place, and says the same as before."""

from __future__ import annotations

import errno
import os
import re
import signal
from pathlib import Path
from urllib.parse import quote

import click
import pytest
from click.testing import CliRunner
from kept_records import add_record
from viewer_client import Client, folder_parts, page_parts

from agentunit import DatasetCase, MetricResult, Outcome, Record, Score, TraceEvent, TraceLog
from agentunit.addons.viewer._api import Api
from agentunit.addons.viewer._bundle import Folder
from agentunit.addons.viewer._case_columns import beginning
from agentunit.addons.viewer._library import Library, PageFile
from agentunit.addons.viewer._server import make_app
from agentunit.cli.main import cli
from agentunit.engine.deciding.decision import decide_run
from agentunit.engine.deciding.stored import keep_decision
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.sqlite import Store

_LEAK = re.compile(r"leak\w*(?:@|&#64;)?")


def planted(place: str) -> str:
    return f"leak{place}@example.org"


def keep(store: Store, version: int) -> str:
    """A run of two cases with an address wherever somebody can write one."""
    settings = {
        "metrics": ["exact_match"],
        "tags": {"actor": planted("tag"), planted("key"): str(version)},
        "agent_version": planted("version"),
        **{name: f"/home/{planted(name)}/x" for name in ("agent", "dataset", "suite")},
        "git": {"commit": "abc", "author": planted("author")},
    }
    run_id = store.create_run(f"desk of {planted('name')}", agentunit_version="1", settings=settings, n_planned=2).id
    for position in range(2):
        failed = position == 1
        trace = TraceLog(
            [TraceEvent("tool_call", {"name": "find", "arguments": {planted("argument"): planted("value")}})],
            metadata={"failure": planted("failure")} if failed else {},
        )
        answer = Outcome(success=False, error=planted("error")) if failed else f"{version} {planted('answer')}"
        record = Record(DatasetCase(f"q{position}", planted("question"), "x"), trace, answer)
        add_record(store, run_id, position, 0, record, failed=failed, elapsed_s=1.0)
        # An address at the place where a long text is cut.
        detail = {"reason": planted("reason"), "text": f"{'word ' * 3_999}{planted('cut')} and more", planted("k"): 1}
        score = Score(MetricResult("exact_match", float(version == 1), detail), "ok", "exact", "1")
        store.add_scores(run_id, position, 0, {"exact_match": score})
        facts = {"run_id": run_id, "position": position, "repeat": 0, "note": planted("note")}
        subject, case_id = subject_of(record), record.case.id
        store.add_labels(
            [
                StoredLabel(subject, "exact_match", case_id, 1.0, planted("rater"), source=planted("source"), **facts),
                StoredLabel(subject, "note", case_id, None, "ana", **facts),
            ]
        )
    store.set_status(run_id, "interrupted")
    # The sentence quotes why a case fails.
    run = run_from_store(store, run_id)
    for made_by in ("run", "gate"):
        keep_decision(store, run_id, decide_run(run, ["exact_match >= 0.5"]), made_by)
    return run_id


@pytest.fixture
def planted_runs(store_path: Path) -> list[str]:
    with Store(store_path) as store:
        return [keep(store, version) for version in (1, 2)]


def invoke(*arguments: object):
    done = CliRunner().invoke(cli, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def leaks(text: str) -> set[str]:
    return set(_LEAK.findall(text)) - {"leakage"}


def test_a_bundle_holds_personal_data_nowhere(store_path, planted_runs, tmp_path):
    invoke("view", "--bundle", tmp_path / "site", "--store", store_path)
    assert leaks(str(folder_parts(tmp_path / "site"))) == set()
    invoke("view", "--bundle", tmp_path / "open", "--unmasked", "--store", store_path)
    seen = leaks(str(folder_parts(tmp_path / "open")))
    assert {f"leak{place}@" for place in ("error", "tag", "key", "version", "suite", "name", "rater", "source")} <= seen


@pytest.mark.parametrize("ending", ["html", "md", "xml"])
def test_a_report_holds_personal_data_nowhere(store_path, planted_runs, tmp_path, ending):
    target = tmp_path / f"run.{ending}"
    invoke("export", planted_runs[1], "--baseline", planted_runs[0], "--to", target, "--store", store_path)
    said = target.read_text(encoding="utf-8") + (str(page_parts(target)) if ending == "html" else "")
    assert leaks(re.sub(r'(?s)<script>.*?</script>|data-path="[^"]*">[^<]*<', "", said)) == set()


def test_the_masked_name_of_a_run_leads_to_its_trends(store_path, planted_runs):
    library = Library(str(store_path))
    client = Client(make_app(Api(library)))
    lines = client.get("/api/runs")["runs"]
    [name] = {line["name"] for line in lines}
    assert re.fullmatch(r"desk of <EMAIL_\d>", name)
    [trend] = client.get(f"/api/trends?name={quote(name)}")["trends"]
    assert len(trend["points"]) == 2
    assert client.get(f"/api/runs/{planted_runs[0]}/labels")["raters"] == ["ana"]
    assert planted("rater") in client.get(f"/api/runs/{planted_runs[0]}/labels?personal=1")["raters"]
    library.close()


def test_notes_are_not_counted_as_labels(store_path, planted_runs, tmp_path):
    library = Library(str(store_path))
    client = Client(make_app(Api(library)))
    assert [row["n_labels"] for row in client.get(f"/api/runs/{planted_runs[0]}/cases")["rows"]] == [1, 1]
    assert client.get(f"/api/runs/{planted_runs[0]}/cases?filter=labels+%3E+1")["total"] == 0
    library.close()
    invoke("view", planted_runs[0], "--bundle", tmp_path / "site", "--store", store_path)
    assert folder_parts(tmp_path / "site")["data/runs/0/columns-0.json.gz"]["n_labels"] == [1, 1]


@pytest.mark.parametrize("is_turned", [False, True])
def test_of_two_named_runs_the_first_is_the_baseline(store_path, planted_runs, tmp_path, is_turned):
    named = planted_runs[::-1] if is_turned else planted_runs
    invoke("view", *named, "--bundle", tmp_path / "site", "--store", store_path)
    index = folder_parts(tmp_path / "site")["data/index.json.gz"]
    assert index["compare"] == {"baseline": named[0], "candidate": named[1]}
    assert [run["id"] for run in index["layout"]["runs"]] == planted_runs[::-1]  # the newest first


def test_a_bundle_that_is_not_finished_leaves_nothing(store_path, planted_runs, tmp_path, monkeypatch):
    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("agentunit.addons.viewer._bundle.catalog", interrupted)
    done = CliRunner().invoke(cli, ["view", "--bundle", str(tmp_path / "site"), "--store", str(store_path)])
    assert done.exit_code != 0
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == []


@pytest.mark.parametrize("torn", ["ada@example.org", "4111 1111 1111 1111", "+1 (555) 867-5309", "078-05-1120"])
def test_no_half_of_an_address_is_left_where_a_text_is_cut(torn):
    for most in range(8, 8 + len(torn)):
        assert beginning(f"write to {torn} now", most).rstrip() in ("write to", "write", "")
    assert beginning("x" * 900, 500)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no such signal")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_viewer_that_is_ended_leaves_no_copy_of_records(store_path, planted_runs, tmp_path, monkeypatch, name):
    file, folder = tmp_path / "run.json.gz", tmp_path / "temporary"
    invoke("export", planted_runs[0], "--to", file, "--store", store_path)
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    seen = []

    def ended(*_: object, **__: object) -> None:
        seen.extend(folder.iterdir())
        signal.raise_signal(getattr(signal, name))

    monkeypatch.setattr("agentunit.addons.viewer.view_command._serve", ended)
    assert CliRunner().invoke(cli, ["view", str(file)]).exit_code != 0
    assert len(seen) == 1
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_pages_kept_beside_a_store_are_for_its_owner_alone(tmp_path):
    kept = PageFile(str(tmp_path / "runs.db"), "run", "stamp")
    kept.write({"line": {}})
    assert kept.read() == {"line": {}}
    [folder] = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0


def test_a_full_disk_keeps_no_page_and_no_part_of_one(tmp_path, monkeypatch):
    write = Path.write_bytes

    def without_room(path, content):
        write(path, content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    kept = PageFile(str(tmp_path / "runs.db"), "run", "stamp")
    kept.write({"line": 1})
    [file] = (tmp_path / "runs.db.viewer").iterdir()
    bundle = Folder(tmp_path / "bundle")
    monkeypatch.setattr(Path, "write_bytes", without_room)
    kept.write({"line": 2})
    assert kept.read() == {"line": 1}
    assert list(file.parent.iterdir()) == [file]
    with pytest.raises(click.ClickException, match="no space left"), bundle:
        pass
    assert list(tmp_path.iterdir()) == [file.parent]
