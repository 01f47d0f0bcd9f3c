"""Spans of a real OpenTelemetry SDK lose their personal data before they are exported, and keep all else."""

from __future__ import annotations

import pytest

import agentunit

sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
in_memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


def traced(**options):
    plain, masked = in_memory.InMemorySpanExporter(), in_memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(agentunit.redacting_processor(export.SimpleSpanProcessor(masked), **options))
    provider.add_span_processor(export.SimpleSpanProcessor(plain))
    tracer = provider.get_tracer("shop")
    with tracer.start_as_current_span("invoke_agent", attributes={
        "input.value": "I am Mia Lindqvist, mia@example.com, SSN 536-22-8741", "gen_ai.agent.name": "Alice", "n": 12,
    }) as span:  # fmt: skip
        with tracer.start_as_current_span(
            "lookup",
            attributes={
                "tool.name": "lookup",
                "input.value": '{"passportNumber": "X1234567"}',
                "tags": ("mia@example.com", "b"),
                "customer.phone": 4155552671,
            },
        ) as inner:
            inner.add_event("note", {"text": "call 212-555-0147"})
        span.set_attribute("output.value", "Hello Mia Lindqvist, 536228741 and X 123 45 67 are noted")
        span.set_status(sdk.Status(sdk.StatusCode.ERROR, "mail to mia@example.com failed"))
    provider.shutdown()
    return plain.get_finished_spans(), masked.get_finished_spans()


def test_texts_are_masked_alike_and_the_rest_stays():
    plain, masked = traced(salt="s3cret")
    assert [(each.name, each.context, each.parent, each.start_time, each.end_time, each.kind) for each in plain] == [
        (each.name, each.context, each.parent, each.start_time, each.end_time, each.kind) for each in masked
    ]
    inner, outer = masked
    mail = inner.attributes["tags"][0]
    assert mail.startswith("<EMAIL_")
    assert inner.attributes["tool.name"] == "lookup"
    assert inner.events[0].attributes["text"].startswith("call <PHONE_")
    assert outer.attributes["gen_ai.agent.name"] == "Alice"
    assert outer.attributes["n"] == 12
    assert outer.status.description == f"mail to {mail} failed"
    shown = str([dict(each.attributes) for each in masked])
    for value in ("Mia", "Lindqvist", "536", "X1234567", "X 123", "example.com", "4155552671"):
        assert value not in shown
    again, _ = traced(salt="s3cret")[1]
    assert again.attributes["tags"][0] == mail
    assert traced()[1][0].attributes["tags"][0] != mail


def test_a_span_that_cannot_be_masked_is_not_exported(monkeypatch, caplog):
    monkeypatch.setattr("agentunit.privacy.redaction.Redactor.redact_data", lambda self, plain: 1 / 0)
    plain, masked = traced()
    assert len(plain) == 2
    assert masked == ()
    assert "a span was not exported" in caplog.text


def test_bytes_are_not_exported():
    exporter = in_memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(agentunit.redacting_processor(export.SimpleSpanProcessor(exporter)))
    with provider.get_tracer("t").start_as_current_span("a", attributes={"raw": b"536-22-8741", "n": 12}):
        pass
    (span,) = exporter.get_finished_spans()
    assert (span.attributes["raw"], span.attributes["n"]) == (b"", 12)


def test_what_is_no_processor_is_refused():
    with pytest.raises(
        TypeError, match="redacting_processor: processor must be a span processor or an exporter; received 3"
    ):
        agentunit.redacting_processor(3)
    with pytest.raises(ValueError, match=r"types must be among email, phone, .*; received 'emial'"):
        agentunit.redacting_processor(in_memory.InMemorySpanExporter(), types=["emial"])
    made = agentunit.redacting_processor(in_memory.InMemorySpanExporter(), types=["email"])
    made.shutdown()
