from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from kept_records import add_record
from viewer_client import cases_in, check_shape, folder_parts, page_parts

from agentunit import Record, TraceLog
from agentunit.addons.viewer import html_file
from agentunit.addons.viewer._media import type_of
from agentunit.cli.main import cli
from agentunit.core.case import DatasetCase
from agentunit.core.results import encode_json
from agentunit.reports.reported_run import open_run
from agentunit.store.sqlite import Store

SHAPES = {
    "index": ("Index", False),
    "runs": ("RunsPage", False),
    "trends": ("TrendsPage", True),
    "catalog": ("Catalog", False),
    "compare": ("ComparePage", False),
    "run": ("RunPage", False),
    "labels": ("LabelsPage", False),
    "queues": ("LabelQueue", True),
    "columns": ("CaseColumns", False),
    "cases": ("PackedCases", False),
    "events": ("TraceEvent", True),
    "outline": ("Outline", False),
}


def invoke(*arguments: object):
    return CliRunner().invoke(cli, [str(each) for each in arguments], catch_exceptions=False)


def check_parts(parts):
    for name, part in parts.items():
        if name.endswith(".bin"):
            assert type_of(part) is not None
            continue
        shape, many = SHAPES[re.split(r"[-.]", name.rsplit("/", 1)[-1])[0]]
        check_shape(shape, part, many=many)
        if shape == "PackedCases":
            check_shape("CaseDetail", cases_in(part), many=True)


def test_a_bundle_holds_what_the_server_would_say(store_path, runs, library, tmp_path):
    done = invoke("view", "--bundle", tmp_path / "site", "--store", store_path)
    assert done.exit_code == 0, done.output
    assert "python -m http.server" in done.output
    assert done.stderr.count("names and addresses may be in it") == 1
    parts = folder_parts(tmp_path / "site")
    check_parts(parts)
    index = parts["data/index.json.gz"]
    assert (index["source"], index["masked"], index["can_label"], index["can_unmask"]) == ("bundle", True, False, False)
    [first] = [run for run in index["layout"]["runs"] if run["id"] == runs[0]]
    columns = parts[f"{first['folder']}columns-0.json.gz"]
    live = library.run(runs[0]).columns
    assert columns["values"][2] == list(live.numbers("faithfulness"))
    assert columns["verdict"].encode() == live.verdicts()
    cases = cases_in(parts[f"{first['folder']}cases-0.json.gz"])
    assert [case["key"] for case in cases] == [f"{n}-0" for n in range(8)]
    fresh = json.loads(encode_json(library.case(runs[0], "2-0")))
    assert cases[2] == {**fresh, "subject": "", "events": cases[2]["events"]}
    assert first["media"] == {"7-0": [0, 1000]}
    assert {(pair["baseline"], pair["candidate"]) for pair in index["comparisons"]} >= {(runs[0], runs[1])}
    assert sorted(parts[f"{first['folder']}queues.json.gz"][0]["queue"]) == list(range(8))


def test_files_are_masked_unless_said_otherwise(store_path, runs, tmp_path):
    for options, is_masked in (((), True), (("--unmasked",), False)):
        folder = tmp_path / f"site{len(options)}"
        assert invoke("view", runs[0], "--bundle", folder, *options, "--store", store_path).exit_code == 0
        everything = str(folder_parts(folder))
        assert ("ada.lovelace@example.org" in everything) != is_masked
    assert invoke("view", "--unmasked", "--store", store_path).exit_code == 2


def test_a_folder_that_is_not_empty_is_left_alone(store_path, runs, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine.txt").write_text("mine")
    assert invoke("view", "--bundle", tmp_path / "site", "--store", store_path).exit_code == 2
    assert (tmp_path / "site" / "mine.txt").read_text() == "mine"


def test_shards_stay_below_a_megabyte_and_long_transcripts_lie_apart(store_path, tmp_path):
    with Store(store_path) as store:
        run_id = store.create_run("long", agentunit_version="1", settings={}).id
        for position in range(3):
            trace = TraceLog()
            for n in range(110):
                trace.record("message", role="assistant", content=f"{position} and {n} " * 400)
            record = Record(DatasetCase(f"c{position}", "?"), trace, "x")
            add_record(store, run_id, position, 0, record, failed=False, elapsed_s=0.1)
    assert invoke("view", "--bundle", tmp_path / "site", "--store", store_path).exit_code == 0
    sizes = [file.stat().st_size for file in (tmp_path / "site" / "data").rglob("*.gz")]
    assert max(sizes) <= 1_000_000
    parts = folder_parts(tmp_path / "site")
    check_parts(parts)
    [run] = parts["data/index.json.gz"]["layout"]["runs"]
    assert len(run["cases"]) > 1
    starts = run["events"]["1-0"]
    events = [parts[f"{run['folder']}events-1-0-{at}.json.gz"] for at in range(len(starts))]
    assert [part[0]["n"] for part in events] == starts
    assert [event["n"] for part in events for event in part] == list(range(110))


def test_one_file_needs_nothing_else(store_path, runs, tmp_path):
    target = tmp_path / "run.html"
    assert invoke("export", runs[0], "--to", target, "--store", store_path).exit_code == 0
    page = target.read_text(encoding="utf-8")
    parts = page_parts(target)
    check_parts(parts)
    assert parts["data/index.json.gz"]["run"] == runs[0]
    assert "connect-src 'none'" in page
    assert '<meta name="agentunit-source" content="file">' in page
    # What a case wrote is nowhere but in the data: it cannot end the script that it stands in.
    outside = re.sub(r'<script type="application/octet-stream"[^>]*>[^<]*</script>', "", page)
    assert "<img src=x" not in outside
    assert outside.count("<script>") == 1
    assert "PASS" in outside or "FAIL" in outside or "ERRORS" in outside  # for readers in which no script runs


def test_a_comparison_is_in_the_file_with_answers_of_a_run_that_is_not(store_path, runs, tmp_path):
    target = tmp_path / "run.html"
    assert invoke("export", runs[1], "--baseline", runs[0], "--to", target, "--store", store_path).exit_code == 0
    parts = page_parts(target)
    check_parts(parts)
    assert parts["data/index.json.gz"]["compare"] == {"baseline": runs[0], "candidate": runs[1]}
    page = parts["data/compare--1-0.json.gz"]
    assert page["cases"][0]["baseline"]["text"] == "order 2"
    assert page["cases"][0]["baseline_key"] is None


def test_a_file_that_would_be_too_large_becomes_a_bundle(store_path, runs, tmp_path):
    with Store(store_path) as store:
        said = html_file.write_html(open_run(runs[0], store), tmp_path / "run.html", most_bytes=5_000)
    assert "run-bundle" in said
    assert not (tmp_path / "run.html").exists()
    check_parts(folder_parts(tmp_path / "run-bundle"))


@pytest.mark.parametrize("ending", ["json.gz", "parquet"])
def test_an_exported_file_can_be_looked_at(store_path, runs, tmp_path, ending):
    file = tmp_path / f"run.{ending}"
    assert invoke("export", runs[0], "--to", file, "--store", store_path).exit_code == 0
    assert invoke("view", file, "--bundle", tmp_path / "site", "--store", "no/store.db").exit_code == 0
    parts = folder_parts(tmp_path / "site")
    check_parts(parts)
    case = cases_in(parts["data/runs/0/cases-0.json.gz"])[0]
    assert (case["recorded"], case["answer"]) == ((True, "order 0") if ending == "json.gz" else (False, None))
    assert len(case["scores"]) == 4
    # The run is in no store: commands find it by its file.
    [command, *_] = [each["command"] for each in parts["data/runs/0/run.json.gz"]["findings"]]
    assert command.startswith(f"agentunit show {file} ")


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_file_of_traces_opens_scored(tmp_path, as_folder):
    records = [
        {"case": {"id": f"c{n}", "query": "where?", "expected_output": "here"}, "outcome": {"output": "here"}}
        for n in range(3)
    ]
    (tmp_path / "traces").mkdir()
    file = tmp_path / "traces" / "traces.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    asked = file.parent if as_folder else file
    assert invoke("view", asked, "--bundle", tmp_path / "site", "--store", "no/store.db").exit_code == 0
    parts = folder_parts(tmp_path / "site")
    check_parts(parts)
    case = cases_in(parts["data/runs/0/cases-0.json.gz"])[0]
    assert (case["recorded"], case["answer"]) == (True, "here")
    assert case["scores"]


def test_what_view_refuses(store_path, runs, tmp_path):
    for arguments, said in (
        (("--host", "0.0.0.0"), "--allow-remote"),
        (("nothing",), "no run is called"),
        (("--bundle", Path("x"), "--store", "no/store.db"), "no runs are kept"),
    ):
        done = invoke("view", *arguments, *(() if "--store" in arguments else ("--store", store_path)))
        assert done.exit_code in (2, 3)
        assert said in done.output
