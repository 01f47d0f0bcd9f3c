"""Every file of the corpus is read as other code counted it, fact by fact.

``FORMAT/NAME.EXT`` was made by the tool's own SDK (``make.py`` says how). ``expect.py`` in the same folder, which knows
nothing of AgentUnit, counts what the file holds: without arguments it writes ``NAME.expected.json`` beside each file.
An expectation may name the ``format`` that its file must be taken for where the folder is called otherwise. ``GAPS`` of
``benchmarks/traces/facts.py`` lists the facts that are known to be read otherwise.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from benchmarks.traces.facts import CORPUS, GAPS, compare, corpus_files, read_cases

from agentunit.core.records import Record
from agentunit.core.results import InputError
from agentunit.traces.formats import format_table
from agentunit.traces.native import NATIVE_FORMAT
from agentunit.traces.reading import TraceFiles

FILES = {file.name: file for file in corpus_files()}
FACTS = [(name, comparison.fact) for name, file in FILES.items() for comparison in compare(file.expected["cases"], [])]
WITHOUT_AGENTUNIT = """
import runpy, sys
sys.modules["agentunit"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# Attributes that no vocabulary has a word for.
UNKNOWN_WORDS = {
    "jaeger/support.json": ["span.kind"],
    "mlflow/trace.json": ["model"],
    "otel-js/objects.json": ["ai.usage.inputTokenDetails.noCacheTokens", "ai.usage.outputTokenDetails.textTokens"],
}
# Places where a tool may add a field, which must not be lost without a word; "." is the first value of the file.
PLACES = {
    "adk-eval-set/dice.json": "eval_cases.0 eval_cases.0.conversation.0 eval_cases.0.conversation.0.intermediate_data",
    "adk-session/session.json": ". events.0 events.0.actions events.0.content.parts.0",
    "clickhouse/support.jsonl": ".",
    "hal/calls_UPLOAD.json": "raw_logging_results.0",
    "hal/tasks_UPLOAD.json": "raw_logging_results.7 raw_logging_results.7.messages.0",
    "inspect/support.json": "samples.0 samples.0.messages.0",
    "jaeger/support.json": "data.0.spans.0",
    "langsmith/posted.jsonl": ".",
    "langsmith/tree.json": ". extra extra.metadata child_runs.0",
    "marble/run.jsonl": "iterations.0",
    "mlflow/trace.json": "info info.tags info.trace_metadata data.spans.0 data.spans.0.attributes",
    "opik/trace.json": "trace spans.0 spans.2.error_info",
    "otel-js/objects.json": "0",
    "phoenix/spans.json": "data.0",
    "tau-bench/results.json": "0 0.info 0.traj.0",
    "tau2/results.json": "simulations.0 simulations.0.messages.0",
    "trulens/events.jsonl": ". record_attributes",
    "weave/calls.jsonl": ". attributes summary",
    "zipkin/support.json": "0",
}
COUNTERS = sorted(CORPUS.glob("*/expect.py"))


@cache
def facts_read(name):
    cases, _ = read_cases(FILES[name].path)
    return {each.fact: each for each in compare(FILES[name].expected["cases"], cases)}


@pytest.mark.parametrize(("name", "fact"), FACTS)
def test_a_fact_is_read_as_it_was_counted(name, fact):
    comparison = facts_read(name)[fact]
    if (name, fact) in GAPS:
        assert not comparison.exact, f"{fact} of {name} is read exactly now: take it off GAPS"
    elif (name, "*") not in GAPS:
        assert comparison.exact, f"{fact} of {name}: counted {comparison.expected}, read {comparison.found}"


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda path: path.parent.name)
def test_the_expectations_are_what_the_counter_counts(counter, tmp_path):
    kept = {path.name: json.loads(path.read_text("utf-8")) for path in counter.parent.glob("*.expected.json")}
    folder = tmp_path / counter.parent.name
    shutil.copytree(counter.parent, folder, ignore=shutil.ignore_patterns("*.expected.json", "__pycache__"))
    for shared in CORPUS.glob("*.py"):
        shutil.copy(shared, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_AGENTUNIT, "expect.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert kept
    assert {path.name: json.loads(path.read_text("utf-8")) for path in folder.glob("*.expected.json")} == kept


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_taken_for_what_it_is(name):
    _, format = read_cases(FILES[name].path)
    right = format == FILES[name].expected.get("format", FILES[name].folder)
    assert right == ((name, "*") not in GAPS and (name, "format") not in GAPS), f"{name} is taken for {format}"


@pytest.mark.parametrize("name", FILES)
def test_nothing_of_a_file_is_left_out(name):
    files = TraceFiles([FILES[name].path])
    assert [str(found) for found in files if isinstance(found, InputError)] == []
    assert not files.notes.problems
    assert set(files.notes.not_understood) == set(UNKNOWN_WORDS.get(name, ()))


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name, places in PLACES.items() for place in places.split()]
)
def test_a_field_that_no_reader_knows_is_counted(name, place, tmp_path):
    text = FILES[name].path.read_text("utf-8")
    lines = text.splitlines() if name.endswith(".jsonl") else [text]
    first = json.loads(lines[0])
    within = first
    for step in place.strip(".").split(".") if place != "." else ():
        within = within[int(step) if isinstance(within, list) else step]
    within["newly_added"] = "something"
    path = tmp_path / FILES[name].path.name
    path.write_text("\n".join([json.dumps(first), *lines[1:]]), encoding="utf-8")
    files = TraceFiles([path])
    records = [found for found in files if isinstance(found, Record)]
    assert sum(count for field, count in files.notes.not_understood.items() if field.endswith("newly_added")) == 1
    assert any("newly_added" in str(record.trace.metadata.get("not_understood")) for record in records)


def test_no_counter_and_no_maker_imports_agentunit():
    importing = []
    counters = Path(sys.modules[compare.__module__].__file__).parents[1] / "public_counts"
    for path in [*CORPUS.rglob("*.py"), *counters.glob("*.py")]:
        if path == Path(__file__).resolve():
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            importing += [path for name in names if name.split(".")[0] == "agentunit"]
    assert not importing


def test_known_gaps_are_facts_of_the_corpus():
    assert not set(GAPS) - set(FACTS) - {(name, all) for name in FILES for all in ("*", "format")}


def test_every_format_has_a_file():
    read_as = {file.expected.get("format", file.folder) for file in FILES.values()}
    own = [name for name in format_table().entries if name not in format_table().brought]
    assert set(own) | {NATIVE_FORMAT} <= read_as
