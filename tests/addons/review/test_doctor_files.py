from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentunit.addons.review._trace_health import examine
from agentunit.metrics.base import MetricResult
from agentunit.metrics.registry import registry
from agentunit.traces.reading import TraceFiles

RECORDED = Path(__file__).parents[2] / "frameworks" / "recorded"
DATA = Path(os.environ.get("AGENTUNIT_DATA") or Path(__file__).parents[3] / ".." / "shared" / "data")
needs_data = pytest.mark.skipif(not (DATA / "dev").is_dir(), reason="set AGENTUNIT_DATA to the folder of shared data")

ANSWERED = {"question", "answer"}


@pytest.mark.parametrize(
    ("variant", "cause", "switch", "adds", "metrics"),
    [
        ("adk.nocontent", "off", "CAPTURE_MESSAGE_CONTENT=SPAN_ONLY", ANSWERED | {"tool arguments"}, "faithfulness"),
        ("langgraph.hidden", "hidden", "OPENINFERENCE_HIDE_INPUTS=false", ANSWERED | {"texts of retrieved documents"},
         "faithfulness"),
        ("openai_agents.hidden", "hidden", "OPENINFERENCE_HIDE_INPUTS=false", ANSWERED, "exact_match"),
        ("openai_agents.traceloop_chat", "not_emitted", "openinference-instrumentation-openai-agents",
         {"answer", "token counts"}, "token_usage"),
        ("llamaindex.streaming", "off", '"include_usage": True', {"token counts"}, "token_usage"),
        ("openai_client", "off", "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental", ANSWERED, "tool_success"),
        ("openai_client.openai_v2_events", "off", "CAPTURE_MESSAGE_CONTENT=span_only", ANSWERED, "tool_success"),
        ("openai_client.genai_openai_events", "off", "CAPTURE_MESSAGE_CONTENT=span_only", ANSWERED, "tool_success"),
        ("pydantic_ai.hidden", "hidden", "include_content=True", ANSWERED | {"tool results"}, "regex"),
        ("autogen.unrooted", "split", "--group-by session", ANSWERED, "contains"),
        ("autogen", "not_emitted", "openinference-instrumentation-autogen-agentchat", {"model names"}, "cost"),
        ("crewai", "not_emitted", "use_event_listener=True", {"model calls", "model names"}, "cost"),
        ("ag2_classic.openinference", "not_emitted", "beside AG2's", {"model calls", "token counts"}, "token_usage"),
        ("adk.mixed", "lost", "remove GoogleADKInstrumentor", {"token counts"}, None),
        ("smolagents", "lost", "openinference-instrumentation-openai", {"cached tokens"}, None),
        ("openai_client.openai_v2", "not_emitted", "instrumentation-genai-openai", {"cached tokens"}, None),
    ],
)  # fmt: skip
def test_each_recording_gets_the_setting_of_its_instrumentation(invoke, variant, cause, switch, adds, metrics):
    result = invoke("doctor", RECORDED / f"{variant}.json", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    (remedy,) = [each for each in found["remedies"] if switch in each["switch"] and adds & set(each["adds"])]
    assert remedy["cause"] == cause
    assert adds <= set(remedy["adds"])
    assert remedy["n_cases"] == found["n_cases"]
    waiting = [row["metric"] for row in found["metrics"] if remedy["number"] in row["remedies"]]
    assert waiting == remedy["metrics"]
    assert metrics is None or metrics in waiting
    # No other way to the same is told.
    others = [each for each in found["remedies"] if each is not remedy and set(each["adds"]) & adds]
    assert others == []


@pytest.mark.parametrize(
    "variant",
    [
        "adk", "adk.schema1", "ag2", "autogen.openinference", "crewai.events", "crewai.native", "langgraph",
        "llamaindex", "openai_agents", "openai_client.genai_openai", "openai_client.openinference",
        "openai_client.traceloop", "pydantic_ai",
    ],
)  # fmt: skip
def test_a_complete_recording_is_not_told_to_switch_contents_on(invoke, variant):
    found = json.loads(invoke("doctor", RECORDED / f"{variant}.json", "--json").stdout)
    told = {word for each in found["remedies"] if each["cause"] != "unknown" for word in each["adds"]}
    assert told <= {"cached tokens"}
    assert found["holds"]["question"] == found["holds"]["answer"] == found["n_cases"] == 1


def test_log_records_beside_their_spans_hold_the_contents(invoke):
    spans = RECORDED / "openai_client.openai_v2_events.json"
    found = json.loads(invoke("doctor", spans, spans.with_suffix(".logs.json"), "--json").stdout)
    assert found["holds"]["answer"] == 1
    assert not any("SEMCONV" in each["switch"] for each in found["remedies"])


def test_grouping_by_session_heals_what_autogen_scatters(invoke):
    found = json.loads(invoke("doctor", RECORDED / "autogen.unrooted.json", "--group-by", "session", "--json").stdout)
    assert found["n_cases"] == found["holds"]["answer"] == 1
    assert not any(each["cause"] == "split" for each in found["remedies"])


def test_in_a_folder_each_instrumentation_gets_its_own_advice(invoke, tmp_path):
    for name in ("adk.nocontent.json", "pydantic_ai.hidden.json", "llamaindex.json"):
        (tmp_path / name).write_bytes((RECORDED / name).read_bytes())
    found = json.loads(invoke("doctor", tmp_path, "--json").stdout)
    assert found["n_files"] == found["n_cases"] == 3
    special = {
        tuple(each["origins"]): (each["switch"][-9:], each["n_cases"])
        for each in found["remedies"]
        if "answer" in each["adds"]
    }
    assert special == {("gcp.vertex.agent",): ("SPAN_ONLY", 1), ("pydantic-ai",): ("ent=True)", 1)}
    faithfulness = found["metrics"][0]
    assert (faithfulness["metric"], faithfulness["n_scored"], faithfulness["n_cases"]) == ("faithfulness", 1, 3)
    assert faithfulness["reasons"] == [{"reason": "no answer: outcome.output is missing", "n_cases": 2}]


@pytest.mark.parametrize("columns", ["80", "120"])
def test_what_is_printed_fits_the_terminal_but_for_what_is_copied(invoke, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    result = invoke("doctor", RECORDED / "openai_client.openai_v2_events.json", "--why")
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert "made by opentelemetry.instrumentation.openai_v2 (3), support-desk (1)" in lines
    assert "spans: llm (3), other (1)" in lines
    assert any(line.startswith("faithfulness") and "0/1" in line and "no answer" in line for line in lines)
    switch = "     OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental "
    (copied,) = [line for line in lines if line.startswith(switch)]
    assert [line for line in lines if len(line) > int(columns) and line != copied] == []
    # A row a metric, and the advice.
    assert len(lines) < 125


def test_the_first_screen_says_what_matters_and_where_the_rest_is(invoke, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    result = invoke("doctor", RECORDED / "openai_client.openai_v2_events.json")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) <= 30
    assert "every case can be scored by: " in result.stdout
    assert "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental" in result.stdout
    assert "what each metric lacks" in result.stdout
    assert "--why" in result.stdout


def test_records_are_told_their_fields(invoke, tmp_path):
    (tmp_path / "runs.jsonl").write_text(
        '{"case": {"id": "q1", "expected_output": "4"}, "outcome": {"answer": "4"}}\n'
        '{"case": {"id": "q2", "expected_output": "4", "context": ["4"]}, "outcome": "4"}\n'
        "no record\n"
    )
    found = json.loads(invoke("doctor", tmp_path / "runs.jsonl", "--json").stdout)
    assert (found["formats"], found["n_cases"], found["n_errors"]) == ({"records": 1}, 2, 1)
    assert "line 3" in found["errors"][0]
    switches = {each["switch"]: each["n_cases"] for each in found["remedies"]}
    assert switches["outcome.output"] == 1
    assert switches["case.context, or trace.events of type retrieval: documents"] == 1
    assert switches["trace.events of type llm_call: model, usage"] == 2
    printed = invoke("doctor", tmp_path / "runs.jsonl")
    assert printed.exit_code == 0
    assert "1 part of the input could not be read" in printed.stdout
    reasons = [each["reason"] for row in found["metrics"] for each in row["reasons"]]
    assert any("found outcome.answer, which is not read" in reason for reason in reasons)


def test_chat_logs_are_read_and_judged(invoke, tmp_path):
    chat = {"messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]}
    (tmp_path / "chats.jsonl").write_text(json.dumps(chat) + "\n")
    found = json.loads(invoke("doctor", tmp_path / "chats.jsonl", "--json").stdout)
    assert found["formats"] == {"chat": 1}
    assert found["holds"]["answer"] == 1
    (beyond,) = [each for each in found["remedies"] if "records (docs/records.md)" in each["switch"]]
    assert {"model calls", "retrievals"} <= set(beyond["adds"])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere.json"], 3, "nowhere.json: no such file"),
        (["empty.json"], 3, "nothing here is a case: empty.json"),
        ([RECORDED / "openai_client.logs.json"], 3, "nothing here is a case"),
        (["empty.json", "--from", "nonsense"], 2, "must be one of records, otlp-json"),
        (["empty.json", "--group-by", "colour"], 2, "colour"),
        (["--group-by", "session"], 2, "name a file or a folder"),
        (["--from", "chat"], 2, "name a file or a folder"),
    ],
)
def test_exit_codes(invoke, tmp_path, arguments, code, said):
    (tmp_path / "empty.json").write_text("")
    result = invoke("doctor", *arguments)
    assert result.exit_code == code
    assert said in " ".join(result.output.split())


def test_hostile_text_does_not_reach_the_terminal(invoke, tmp_path):
    evil = "\x1b[2J\x07[red]evil[/red]"
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331",
        "name": evil,
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.request.model", "value": {"stringValue": evil}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "3"}},
            {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "3"}},
        ],
    }
    plain = {**span, "spanId": "b7ad6b7169203332", "attributes": []}
    request = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": evil}, "spans": [span, plain]}]}]}
    (tmp_path / "spans.json").write_text(json.dumps(request))
    result = invoke("doctor", tmp_path / "spans.json")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "\x07" not in result.output
    assert "made by ·[2J·[red]evil[/red] (2)" in result.output
    assert json.loads(invoke("doctor", tmp_path / "spans.json", "--json").stdout)["scopes"] == {evil: 2}


class Sender:
    """A metric of another package, which must not be called."""

    name = "sender"

    def evaluate(self, case: object, trace: object, outcome: object) -> MetricResult:
        raise AssertionError("doctor called a metric of another package")


def test_nothing_is_sent_by_judges_or_metrics_of_other_packages(invoke, monkeypatch):
    from agentunit.backends import quality

    asked = []

    def installed() -> dict[str, object]:
        asked.append("backend")
        return {}

    monkeypatch.setattr(quality, "installed_backends", installed)
    monkeypatch.setitem(registry._registered, "sender", Sender())
    found = json.loads(invoke("doctor", RECORDED / "llamaindex.json", "--json").stdout)
    assert asked == []
    rows = {row["metric"]: row for row in found["metrics"]}
    assert rows["faithfulness"]["n_scored"] == 1
    assert rows["sender"]["n_scored"] == 0
    assert "not tried" in rows["sender"]["reasons"][0]["reason"]
    assert list(rows) == registry.names()


SECRET = "Jane Miller is secretly looking for another job and told her doctor about it."
PICTURED = {"image_path": "a.png", "video_path": "a.mp4", "consent": {"health": False}, "user_data": {"health": SECRET}}


@pytest.mark.parametrize("backend", ["auto", "local"])
def test_no_model_is_loaded(invoke, monkeypatch, backend):
    """Neither for what an agent told of sensitive statements, nor for evidence, pictures, captions or a suite."""
    from agentunit.backends import quality
    from agentunit.privacy._followed import groundedness_judge

    found = {"type": "tool_call", "payload": {"name": "hr", "result": SECRET, "status": "success"}}
    case = {"id": "q", "query": "How is she?", "expected_output": "Jane Miller is fine.", "metadata": PICTURED}
    record = {"case": case, "trace": {"events": [found]}, "outcome": {"output": "Jane wants to leave us soon."}}
    Path("runs.jsonl").write_text(json.dumps(record) + "\n")
    Path("cases.jsonl").write_text(json.dumps({"id": "q", "query": "How is she?", "expected_output": "Fine."}) + "\n")
    Path("suite.py").write_text(
        "import agentunit\n"
        "suite = agentunit.Suite(dataset='cases.jsonl', agent=print, metrics=['answer_correctness', 'faithfulness'])\n"
    )
    groundedness_judge.cache_clear()
    monkeypatch.setenv("AGENTUNIT_BACKEND", backend)
    monkeypatch.setattr(quality, "installed_backends", lambda: {"local": None})
    loaded: list[str] = []
    for opens in (
        "agentunit.backends.quality.load_backend",
        "agentunit.privacy._followed.load_backend",
        "agentunit.addons.media.clip.loading.load_clip",
        "agentunit.multimodal.reference_texts.text_similarity",
    ):
        monkeypatch.setattr(opens, lambda name, opens=opens: loaded.append(f"{opens} of {name}"))
    result = invoke("doctor", "runs.jsonl", "--json")
    rows = {row["metric"]: row for row in json.loads(result.stdout)["metrics"]}
    for metric in ("data_minimization", "faithfulness", "answer_correctness", "image_caption_accuracy"):
        assert rows[metric]["n_scored"] == 1, rows[metric]
    assert invoke("doctor", "suite.py").exit_code == 0
    assert loaded == []


def test_of_many_cases_that_are_alike_some_are_tried_and_all_are_counted(invoke, monkeypatch):
    monkeypatch.setattr("agentunit.addons.review._trace_health._EVENTS_TRIED", 0)
    asked = {"case": {"id": "q", "query": "When?"}, "outcome": {"output": "At nine."}}
    expected = {"case": {"id": "e", "query": "When?", "expected_output": "At ten."}, "outcome": {"output": "At nine."}}
    records = [*[asked] * 70, expected, *[asked] * 59]
    Path("runs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    found = json.loads(invoke("doctor", "runs.jsonl", "--json").stdout)
    # Twenty of those alike, then one in ten, and the one that is like no other.
    assert (found["n_cases"], found["n_tried"]) == (130, 20 + 11 + 1)
    rows = {row["metric"]: row for row in found["metrics"]}
    assert rows["exact_match"]["n_scored"] == 1
    for row in rows.values():
        assert row["n_scored"] + sum(reason["n_cases"] for reason in row["reasons"]) == 130
    assert "metrics were tried on 32 of 130 cases" in invoke("doctor", "runs.jsonl").stdout


def test_the_more_cases_are_alike_the_fewer_are_tried(invoke, monkeypatch):
    def adds_up(*_):
        pytest.fail("scores are added up that nobody asks for")

    monkeypatch.setattr("agentunit.addons.review._trace_health._MOST_TRIED", 30)
    monkeypatch.setattr("agentunit.engine.scoring.aggregate.MetricAggregate.add", adds_up)
    asked = {"case": {"id": "q", "query": "When?"}, "outcome": {"output": "At nine.", "success": True}}
    Path("runs.jsonl").write_text((json.dumps(asked) + "\n") * 4_000)
    found = json.loads(invoke("doctor", "runs.jsonl", "--json").stdout)
    # All of the first 30, one in ten up to 300, one in a hundred up to 3,000, one in a thousand of the rest.
    assert (found["n_cases"], found["n_tried"]) == (4_000, 30 + 27 + 27 + 1)
    assert {row["n_scored"] for row in found["metrics"] if row["metric"] == "task_success"} == {4_000}


def test_every_metric_of_our_own_has_places_that_the_doctor_knows():
    from agentunit.addons.review._trace_health import _needs
    from agentunit.metrics.registry import MetricRegistry

    own = MetricRegistry(entry_point_group=None)
    found = {name: info for name, info in own.describe_all() if info.inputs and not _needs(info)}
    # What only a probe knows is in no trace, whatever the instrumentation.
    assert [name for name, info in found.items() if not info.probes] == []


@needs_data
@pytest.mark.parametrize(
    ("path", "n_cases", "scope", "held"),
    [
        ("dev/trail_openinference.jsonl.gz", 34, "openinference.instrumentation.smolagents", "token counts"),
        ("otel/agntcy_single_session_traces.json", 2, "opentelemetry.instrumentation.langchain", "session id"),
        ("dev/tau2_sims.jsonl.gz", 140, None, "cost"),
        ("otel/trulens_generation_span.json", 1, "", "answer"),
    ],
)
def test_shared_traces(path, n_cases, scope, held):
    health = examine(TraceFiles([DATA / path]))
    assert health.n_cases == n_cases
    assert scope is None or scope in health.scopes
    assert health.holds[held] == n_cases
    for remedy in health.remedies:
        assert 0 < remedy.n_cases <= n_cases
    for row in health.metrics:
        assert row.n_scored + sum(each.n_cases for each in row.reasons) == n_cases


def test_the_doctor_says_of_groundedness_what_a_run_will_do(invoke, monkeypatch):
    """Tool results are evidence for a model, not for the lexical fallback."""
    call = {"type": "tool_call", "payload": {"name": "find", "result": "It opens at nine.", "status": "success"}}
    record = {"case": {"id": "q", "query": "When?"}, "trace": {"events": [call]}, "outcome": {"output": "At nine."}}
    Path("runs.jsonl").write_text(json.dumps(record) + "\n")
    for backend in ("lexical", "local"):
        monkeypatch.setenv("AGENTUNIT_BACKEND", backend)
        if backend == "local":
            monkeypatch.setattr("agentunit.metrics.builtin._QualityMetric._resolved", SimpleNamespace(name="local"))
        found = json.loads(invoke("doctor", "runs.jsonl", "--json").stdout)
        row = next(each for each in found["metrics"] if each["metric"] == "faithfulness")
        assert row["n_scored"] == (0 if backend == "lexical" else 1), row
