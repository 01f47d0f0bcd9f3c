from __future__ import annotations

import re
import sys

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, InMemoryLogRecordExporter, SimpleLogRecordProcessor

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.engine.deciding.decision import decide_run
from agentunit.installation import install_command
from agentunit.reports.otel_events import emit_scores, export_scores
from agentunit.reports.reported_run import open_run
from agentunit.reports.reporters import ReportError


@pytest.fixture
def exporter():
    return InMemoryLogRecordExporter()


@pytest.fixture
def provider(exporter):
    made = LoggerProvider(shutdown_on_exit=False)
    made.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    yield made
    made.shutdown()


def events(exporter):
    return [finished.log_record for finished in exporter.get_finished_logs()]


def test_one_event_a_score(demo_run, provider, exporter):
    assert emit_scores(demo_run, provider) == 66 * 5 + 1
    *found, decided = events(exporter)
    assert len(found) == 66 * 5
    assert {event.event_name for event in found} == {"gen_ai.evaluation.result"}
    assert decided.event_name == "agentunit.run.decision"
    assert decided.attributes["agentunit.run.verdict"] == "fail"
    assert decided.attributes["agentunit.run.headline"] == demo_run.decision.headline
    assert list(decided.attributes["agentunit.run.failing_cases"]) == list(demo_run.decision.failing_cases)
    event = next(each for each in found if each.attributes["gen_ai.evaluation.name"] == "tool_success")
    assert event.attributes["gen_ai.evaluation.score.value"] == pytest.approx(1 / 3)
    assert event.attributes["agentunit.case.id"] == "desk-001"
    assert event.attributes["agentunit.case.repeat"] == 1
    assert event.attributes["agentunit.metric.backend"] == "trace"
    assert event.attributes["agentunit.metric.version"] == "3"
    assert event.attributes["agentunit.run.id"] == "run-1"
    assert event.timestamp == 1_700_000_075_000_000_000
    # The gate asks for 1 in every case.
    assert event.attributes["gen_ai.evaluation.score.label"] == "fail"


def test_labels_and_explanations(demo_run, provider, exporter):
    demo_run.decision = decide_run(demo_run.run, ["cost p95 <= 0.05", "task_success >= 0"], max_errors=1)
    emit_scores(demo_run, provider, metrics=["cost", "task_success", "faithfulness"])
    scores = events(exporter)[:-1]
    found = {(e.attributes["agentunit.case.id"], e.attributes["gen_ai.evaluation.name"]): e for e in scores}
    assert len(found) == 66 * 3
    # The run passes, and this case of it does not.
    assert found["desk-016", "task_success"].attributes["gen_ai.evaluation.score.label"] == "fail"
    assert found["desk-001", "task_success"].attributes["gen_ai.evaluation.score.label"] == "pass"
    # A percentile speaks of the run and of no case.
    assert "gen_ai.evaluation.score.label" not in found["desk-001", "cost"].attributes
    unscored = found["hung", "faithfulness"].attributes
    assert "gen_ai.evaluation.score.value" not in unscored
    assert unscored["agentunit.score.status"] == "not_applicable"
    assert unscored["gen_ai.evaluation.explanation"].startswith("no ")


def test_an_event_belongs_to_the_span_the_trace_names(store, keep, provider, exporter):
    named = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331", "response_id": "chatcmpl-1"}
    strange = {"trace_id": "zz", "span_id": 7}
    records = [
        Record(DatasetCase(case_id, "?"), TraceLog(metadata=metadata), Outcome(success=True, output="a"))
        for case_id, metadata in (("named", named), ("strange", strange))
    ]
    keep(store, [records], metrics=["task_success"])
    emit_scores(open_run("run-1", store), provider)
    first, second, _ = events(exporter)
    assert (first.trace_id, first.span_id) == (0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)
    assert first.attributes["gen_ai.response.id"] == "chatcmpl-1"
    assert second.trace_id == 0
    assert "gen_ai.response.id" not in second.attributes


def test_a_metric_that_broke_is_an_error_event(store, keep, provider, exporter):
    class Broken:
        name = "broken"

        def evaluate(self, case, trace, outcome):
            raise KeyError("gone")

    keep(store, [[Record(DatasetCase("q1", "?"), TraceLog(), "a")]], metrics=[Broken()])
    emit_scores(open_run("run-1", store), provider)
    event, _ = events(exporter)
    assert event.attributes["error.type"] == "KeyError"
    assert event.severity_number.name == "WARN"


def test_a_processor_with_a_small_queue_gets_every_event(demo_run, exporter, monkeypatch):
    monkeypatch.setattr("agentunit.reports.otel_events._FLUSH_EVERY", 20)
    provider = LoggerProvider(shutdown_on_exit=False)
    # Without being asked, this processor sends once an hour and drops what its queue has no room for.
    batch = BatchLogRecordProcessor(
        exporter, schedule_delay_millis=3_600_000, max_export_batch_size=32, max_queue_size=32
    )
    provider.add_log_record_processor(batch)
    emit_scores(demo_run, provider)
    provider.shutdown()
    assert len(events(exporter)) == 331


def test_an_exporter_alone_is_enough(demo_run, exporter):
    assert export_scores(demo_run, exporter, metrics=["cost"]) == 67
    assert len(events(exporter)) == 67
    resource = exporter.get_finished_logs()[0].resource
    assert resource.attributes["service.name"] == "agentunit"


def test_hostile_text_is_only_text(hostile_run, hostile_text, provider, exporter):
    assert emit_scores(hostile_run, provider) == 7
    assert {event.attributes["agentunit.case.id"] for event in events(exporter)[:-1]} == {hostile_text}


def test_without_the_sdk_the_command_that_adds_it(demo_run, provider, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", None)
    with pytest.raises(ReportError, match=re.escape(install_command("otel"))):
        emit_scores(demo_run, provider)
