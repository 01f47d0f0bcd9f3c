"""The judge from the command line: options, the question before the first call, what is spent, and what is kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_decisions import decide, mark_of
from judge_faults import Fault, failing, refusal
from judge_server import JudgeServer
from kept_records import add_record
from viewer_client import report_text

from agentunit import DatasetCase, Outcome, Record, Suite
from agentunit.addons.judge.settings import configure_judge
from agentunit.backends.quality import load_backend
from agentunit.cli import sending_notice as consent
from agentunit.engine.recording.runner import plan_run
from agentunit.engine.recording.runner import record as start_recording
from agentunit.engine.scoring.judging import cases_under_way
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.metrics.builtin import FaithfulnessMetric
from agentunit.store.labels import StoredLabel, subject_of
from agentunit.store.sqlite import DEFAULT_PATH, Store

KEY = "sk-secret-of-the-judge-0123456789"


@pytest.fixture(autouse=True)
def no_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No judge but that of the test, and no reply of another."""
    for name in [name for name in os.environ if name.startswith(("AGENTUNIT_JUDGE_", "AGENTUNIT_RAGAS"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("AGENTUNIT_BACKEND", raising=False)
    monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", str(tmp_path / "replies"))
    yield
    configure_judge()
    backend: Any = load_backend("judge")
    backend.close()


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(decide) as running:
        yield running


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if somebody sat there who can answer."""
    monkeypatch.setattr(consent, "_somebody_can_answer", lambda: True)


def record(name: str, city: str, context: str | None = None) -> dict[str, Any]:
    context = f"The capital of France is {city}." if context is None else context
    return {
        "v": 1,
        "case": {"id": name, "query": "What is the capital of France?", "context": [context], "expected_output": city},
        "trace": {"metadata": {"cost": 0.5}},
        "outcome": "The capital of France is Paris.",
    }


def write_records(n: int = 2) -> None:
    rows = [record(f"q{k}", "Paris" if k % 2 == 0 else "Lyon") for k in range(n)]
    Path("runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def judged(server: JudgeServer, *more: str) -> list[str]:
    return ["--judge-url", server.url, "--judge-model", "judge-1", *more]


CAPPED_SUITE = """
from agentunit import DatasetCase, Suite

def answer(question: str) -> str:
    return f"{question} The capital of France is Paris."

suite = Suite(
    [DatasetCase(f"q{n}", f"What is the capital, {n}?", context=[f"Paris is the capital. {n}"]) for n in range(800)],
    agent=answer,
    metrics=[{"faithfulness": {"backend": "judge"}}],
    judge={
        "url": %r, "model": "judge-1", "cache": None, "concurrency": 8, "max_spend_usd": %r,
        "usd_per_million_input": 2.0, "usd_per_million_output": 10.0,
    },
)
"""


def test_the_spend_cap_of_a_run_holds_over_kills_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cap_usd = 0.5
    # So much is billed whether or not anybody waits for the reply.
    billed_usd = 0.0

    def decide_and_bill(body: dict[str, Any]) -> Any:
        nonlocal billed_usd
        reply = decide(body)
        n_sent = sum(len(message["content"]) for message in body["messages"])
        billed_usd += (n_sent / 4 * 2.0 + len(json.dumps(reply)) / 4 * 10.0) / 1e6
        return reply

    with JudgeServer(decide_and_bill, latency_s=0.02) as server:
        Path("capped_suite.py").write_text(CAPPED_SUITE % (server.url, cap_usd))
        command = [sys.executable, "-m", "agentunit", "run", "capped_suite.py", "--yes"]
        for kill in range(4):
            process = subprocess.Popen(
                [*command, *(["--resume", "last"] if kill else [])], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            n_before = server.n_calls
            while server.n_calls < n_before + 150 and process.poll() is None:
                time.sleep(0.005)
            process.kill()
            process.communicate()
        last = subprocess.run([*command, "--resume", "last"], capture_output=True, text=True, timeout=120, check=False)
    assert server.n_calls > 150
    assert "the spend cap is reached" in last.stdout + last.stderr
    assert billed_usd <= cap_usd
    told = re.search(r"with earlier commands \$(\d\.\d{4}) of the cap of \$0\.5000 are spent", last.stdout)
    assert told
    assert billed_usd <= float(told[1]) <= cap_usd


# Scoring


def test_the_judge_scores_and_what_it_took_stands_beside_the_agents(invoke: Any, server: JudgeServer) -> None:
    write_records()
    result = invoke("score", "runs.jsonl", "-m", "faithfulness,cost", "--why", *judged(server, "--backend", "judge"))
    assert result.exit_code == 0, result.output
    assert re.search(r"faithfulness ↑ +0\.50 .* 2/2 +judge", result.stdout)
    assert "agent: $1.0000" in result.stdout
    assert re.search(r"judge: price unknown, [\d,]+ tokens in 3 calls of judge-1; 1 reply reused", result.stdout)
    assert server.errors == []


def test_a_second_run_asks_nothing_and_no_cache_asks_again(invoke: Any, server: JudgeServer) -> None:
    write_records()
    arguments = ["score", "runs.jsonl", "-m", "faithfulness", *judged(server)]
    invoke(*arguments)
    n_calls = server.n_calls
    assert "0 tokens in 0 calls of judge-1; 4 replies reused" in invoke(*arguments).stdout
    assert server.n_calls == n_calls
    invoke(*arguments, "--no-cache")
    # Both cases ask one question alike: without a cache it is asked once only if it is still under way.
    assert server.n_calls - 2 * n_calls in (0, 1)


def test_repeats_tell_the_judge_from_the_cases(invoke: Any, server: JudgeServer) -> None:
    write_records(4)
    result = invoke("score", "runs.jsonl", "-m", "faithfulness", "--why", *judged(server, "--judge-repeats", "3"))
    assert "Judge (asked 3 times)" in result.stdout
    assert "faithfulness: judge ± 0.00 on one answer, cases ± 0.58; 0% of the variance" in result.stdout
    assert "(each question 3 times)" in result.stderr
    again = invoke("score", "runs.jsonl", "-m", "faithfulness", "--json", *judged(server, "--judge-repeats", "3"))
    (row,) = json.loads(again.stdout)["summary"]["metrics"]
    assert row["judge"]["n_repeats"] == 3
    assert json.loads(again.stdout)["summary"]["judge"]["n_cached"] == 24


def test_a_refusal_is_an_error_with_its_reason_and_never_a_score(invoke: Any) -> None:
    write_records()
    with JudgeServer(decide, faults=lambda request: refusal("I will not judge this.")) as server:
        result = invoke("score", "runs.jsonl", "-m", "faithfulness", "--json", *judged(server))
    assert result.exit_code == 3
    summary = json.loads(result.stdout)["summary"]
    assert (summary["n_score_errors"], summary["metrics"][0]["mean"]) == (2, None)
    assert "refus" in summary["unscored"][0]["reason"]
    assert summary["judge"]["n_failed"] == 2


def test_a_spend_cap_ends_the_calls_and_says_so(invoke: Any, server: JudgeServer, monkeypatch: Any) -> None:
    write_records(6)
    monkeypatch.setenv("AGENTUNIT_JUDGE_USD_PER_MILLION_INPUT", "1000")
    monkeypatch.setenv("AGENTUNIT_JUDGE_USD_PER_MILLION_OUTPUT", "1000")
    result = invoke("score", "runs.jsonl", "-m", "faithfulness", *judged(server, "--judge-max-spend", "0.000001"))
    assert result.exit_code == 3
    assert server.n_calls == 0
    assert "it may spend at most $0.000001" in result.stderr
    assert "spend" in result.stdout


def test_a_key_is_sent_and_shown_nowhere(invoke: Any, monkeypatch: Any) -> None:
    write_records()
    monkeypatch.setenv("AGENTUNIT_JUDGE_API_KEY", KEY)
    for api_key, code in ((KEY, 0), ("another key", 3)):
        with JudgeServer(decide, api_key=api_key) as server:
            options = judged(server, "--judge-transcripts", "--no-cache")
            result = invoke("score", "runs.jsonl", "-m", "faithfulness", "-o", "scores.jsonl", "--json", *options)
            assert result.exit_code == code, result.output
            assert all(call.headers["authorization"] == f"Bearer {KEY}" for call in server.calls)
        assert KEY not in result.output
        assert KEY not in Path("scores.jsonl").read_text(encoding="utf-8")


def test_there_is_no_option_for_a_key(invoke: Any) -> None:
    for verb in ("score", "run", "rerun", "label"):
        options = re.findall(r"--[a-z-]+", invoke(verb, "--help-all").stdout)
        assert "--judge" in options
        assert not [each for each in options if "key" in each]


# The question


@pytest.mark.usefixtures("terminal")
def test_no_sends_nothing_and_leaves_with_2(invoke: Any, server: JudgeServer) -> None:
    write_records()
    arguments = ("score", "runs.jsonl", "-m", "faithfulness", "--out", "scores.jsonl", *judged(server))
    before = set(Path().iterdir())
    result = invoke(*arguments, input="n\n")
    assert result.exit_code == 2
    assert server.requests == []
    assert set(Path().iterdir()) == before
    assert (
        "faithfulness asks a judge: question, answer and context of 2 cases go to judge-1 at " + server.url
    ) in result.stderr
    assert re.search(r"about 4 calls, [\d,]+ tokens, price unknown; replies in the cache cost nothing", result.stderr)
    assert "nothing was sent" in result.stderr


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("how", ["answer", "--yes", "CI"])
def test_yes_sends(invoke: Any, server: JudgeServer, monkeypatch: Any, how: str) -> None:
    write_records()
    if how == "CI":
        monkeypatch.setenv("CI", "true")
    more = ["--yes"] if how == "--yes" else []
    answer = "y\n" if how == "answer" else ""
    result = invoke("score", "runs.jsonl", "-m", "faithfulness", *judged(server, *more), input=answer)
    assert result.exit_code == 0, result.output
    assert server.n_calls > 0
    assert "faithfulness asks a judge" in result.stderr
    assert ("Send it?" in result.stderr) == (how == "answer")


@pytest.mark.usefixtures("terminal")
def test_an_end_of_input_is_no_yes(invoke: Any, server: JudgeServer) -> None:
    write_records()
    assert invoke("score", "runs.jsonl", "-m", "faithfulness", *judged(server), input="").exit_code != 0
    assert server.requests == []


@pytest.mark.usefixtures("terminal")
def test_what_sends_nothing_asks_nothing(invoke: Any, server: JudgeServer, monkeypatch: Any) -> None:
    write_records()
    monkeypatch.setenv("AGENTUNIT_JUDGE_URL", server.url)
    monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "judge-1")
    Path("bare.jsonl").write_text('{"v":1,"case":{"id":"q1"},"outcome":"?"}\n', encoding="utf-8")
    assert invoke("score", "runs.jsonl", "-m", "cost").exit_code == 0
    assert invoke("score", "runs.jsonl", "-m", "faithfulness", "--backend", "lexical").exit_code == 0
    assert invoke("score", "bare.jsonl", "-m", "faithfulness").exit_code == 4  # no context: nothing to ask
    assert invoke("show", "demo").exit_code == 0
    assert invoke("doctor").exit_code == 0
    assert invoke("doctor", "runs.jsonl").exit_code == 0
    assert invoke("metrics").exit_code == 0
    assert server.requests == []


def test_a_key_in_the_environment_is_no_configuration(invoke: Any, monkeypatch: Any) -> None:
    write_records()
    for name in ("OPENAI_API_KEY", "AGENTUNIT_JUDGE_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, KEY)
    result = invoke("score", "runs.jsonl", "-m", "faithfulness", "--json")
    (row,) = json.loads(result.stdout)["summary"]["metrics"]
    # By the local model where that is installed.
    assert row["backend"] in ("lexical", "local")
    assert "asks a judge" not in result.stderr


def test_the_estimate_is_near_what_is_spent(invoke: Any, server: JudgeServer) -> None:
    write_records(8)
    names = "faithfulness,answer_correctness,retrieval_quality"
    result = invoke("score", "runs.jsonl", "-m", names, "--json", *judged(server, "--no-cache"))
    told = re.search(r"about ([\d,]+) calls, ([\d,]+) tokens", result.stderr)
    assert told is not None
    calls, tokens = (int(each.replace(",", "")) for each in told.groups())
    spent = json.loads(result.stdout)["summary"]["judge"]
    assert calls == spent["n_calls"] + spent["n_cached"]
    per_call = (spent["prompt_tokens"] + spent["completion_tokens"]) / spent["n_calls"]
    assert 0.5 < tokens / calls / per_call < 2


# Options that are wrong


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--judge-repeats", "3"], "--judge-repeats: no metric asks a judge (no judge is configured: set AGENTUNIT_"),
        (["--backend", "jugde"], "did you mean 'judge'?"),
        (["--backend", "judge"], "backend 'judge' cannot run: no judge is configured"),
        (["--judge-url", "example.org", "--judge-model", "m"], "JudgeSettings: url must be an http:// or https://"),
        (["--judge-url", "http://127.0.0.1:1/v1"], "set AGENTUNIT_JUDGE_MODEL"),
        (["--judge-max-spend", "-1"], "max_spend_usd must be a number of at least 0"),
        (["--param", "faithfulness.backnd=judge"], "did you mean 'backend'?"),
        (["--param", "faithfullness.backend=judge"], "did you mean 'faithfulness'?"),
        (["--param", "backend=judge"], "must be METRIC.NAME=VALUE; received 'backend=judge'"),
        (["--param", "faithfulness.backend"], "must be METRIC.NAME=VALUE"),
    ],
)
def test_a_wrong_option_is_a_usage_error(invoke: Any, options: list[str], said: str) -> None:
    write_records()
    result = invoke("score", "runs.jsonl", "-m", "faithfulness", *options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_a_backend_for_no_metric_is_a_usage_error(invoke: Any) -> None:
    write_records()
    result = invoke("score", "runs.jsonl", "-m", "cost,exact_match", "--backend", "lexical")
    assert result.exit_code == 2
    assert "none of cost, exact_match has a backend to choose" in result.stderr


def test_a_wrong_setting_of_the_environment_does_not_pass_for_no_judge(invoke: Any, monkeypatch: Any) -> None:
    write_records()
    monkeypatch.setenv("AGENTUNIT_JUDGE_REPEATS", "often")
    result = invoke("score", "runs.jsonl", "-m", "faithfulness")
    assert result.exit_code == 2
    assert "AGENTUNIT_JUDGE_REPEATS must be a whole number; received 'often'" in result.stderr
    assert invoke("score", "runs.jsonl", "-m", "cost").exit_code == 0


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        (["contains.values=[Paris, Lyon]", "contains.mode=any"], {"values": ["Paris", "Lyon"], "mode": "any"}),
        (["contains.values=Paris", "contains.ignore_case=true"], {"values": "Paris", "ignore_case": True}),
        (["contains.values={not: [yaml"], {"values": "{not: [yaml"}),
    ],
)
def test_parameters_are_read_as_yaml_reads_them(invoke: Any, given: list[str], parameters: dict[str, Any]) -> None:
    write_records()
    options = [part for each in given for part in ("--param", each)]
    result = invoke("score", "runs.jsonl", "-m", "contains", "--json", *options)
    (metric,) = json.loads(result.stdout)["metrics"]
    assert metric["parameters"].items() >= parameters.items()


# Suites and runs


SUITE = """
dataset: cases.jsonl
agent: judged_agent:answer
metrics:
  - faithfulness: {{backend: judge}}
  - rubric: {{name: politeness, criteria: "Is the answer polite?"}}
  - cost
judge: {{url: "{url}", model: judge-1{more}}}
"""


def write_suite(server: JudgeServer, more: str = "") -> None:
    Path("suite.yaml").write_text(SUITE.format(url=server.url, more=more), encoding="utf-8")
    Path("judged_agent.py").write_text("def answer(query):\n    return 'The capital is Paris.'\n", encoding="utf-8")
    rows = [
        {"id": f"q{k}", "query": "Capital?", "context": [f"The capital is {c}."]}
        for k, c in enumerate(("Paris", "Lyon"))
    ]
    Path("cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_suite_names_its_judge_and_the_run_keeps_who_it_was(invoke: Any, server: JudgeServer) -> None:
    write_suite(server)
    result = invoke("run", "suite.yaml", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    means = {row["metric"]: row["mean"] for row in data["summary"]["metrics"]}
    assert means["faithfulness"] == 0.5
    assert data["run"]["settings"]["judge"]["model"] == "judge-1"
    assert "api_key" not in data["run"]["settings"]["judge"]
    assert data["summary"]["judge"]["n_scores"] == 4
    asked = "faithfulness, politeness ask a judge: question, answer, context and tool results of 2 cases"
    assert asked in result.stderr
    shown = invoke("show", "last")
    assert "judge: price unknown" in shown.stdout
    assert invoke("export", "last", "--to", "run.md").exit_code == 0
    assert "spent by the judge" in Path("run.md").read_text(encoding="utf-8")
    assert invoke("export", "last", "--to", "run.html").exit_code == 0
    assert '"spent by the judge: price unknown' in report_text("run.html")


@pytest.mark.usefixtures("terminal")
def test_no_before_a_run_leaves_no_run_and_calls_no_agent(invoke: Any, server: JudgeServer) -> None:
    write_suite(server)
    Path("judged_agent.py").write_text("def answer(query):\n    open('called', 'w').close()\n", encoding="utf-8")
    assert invoke("run", "suite.yaml", input="n\n").exit_code == 2
    assert not Path("called").exists()
    assert server.requests == []
    assert json.loads(invoke("runs", "--json").stdout or "[]") == []


def test_the_command_line_goes_before_the_suite_before_the_environment(
    invoke: Any, server: JudgeServer, monkeypatch: Any
) -> None:
    write_suite(server, ", repeats: 2")
    monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "of-the-environment")
    monkeypatch.setenv("AGENTUNIT_JUDGE_TIMEOUT_S", "31")
    result = invoke("run", "suite.yaml", "--json", "--judge-repeats", "3", "--judge-concurrency", "2")
    kept = json.loads(result.stdout)["run"]["settings"]["judge"]
    assert (kept["model"], kept["repeats"], kept["timeout_s"], kept["concurrency"]) == ("judge-1", 3, 31.0, 2)
    assert cases_under_way([FaithfulnessMetric(backend="judge")]) == 16


def test_the_spend_cap_holds_for_all_stages_of_a_run_until_decided(invoke: Any, server: JudgeServer) -> None:
    write_suite(server, ", usd_per_million_input: 1000, usd_per_million_output: 0, max_spend_usd: 8, cache: null")
    rows = [{"id": f"q{k}", "query": f"Capital {k}?", "context": ["The capital is Paris."]} for k in range(30)]
    Path("cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = invoke("run", "suite.yaml", "--repeats", "auto", "--seed", "1", "--gate", "faithfulness >= 0.9", "--json")
    spent = json.loads(result.stdout)["summary"]["judge"]
    assert spent["n_failed"] > 0
    assert 4 < spent["cost_usd"] <= 8


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("{url: u, api_key: sk-1}", "a key must not be in a file; set AGENTUNIT_JUDGE_API_KEY"),
        ("{url: 'http://me:hush-hush@h', model: m}", "nor in its judge's url"),
        ("{url: 'http://h/v1?api-key=hush-hush', model: m}", "nor in its judge's url"),
        ("{judges: [{model: m, url: 'http://me:hush-hush@h'}]}", "nor in its judge's url"),
        ("{url: 'http://h', model: m, extra_body: {a: [{api_key: sk-1}]}}", "nor in its judge's extra_body"),
        (
            f"{{url: 'http://h', model: m, extra_body: {{a: {'[' * 150 + ']' * 150}}}}}",
            "at most 100 levels",
        ),
        ("judge-1", "judge must be a mapping of settings such as url and model; received 'judge-1'"),
        ("{modle: judge-1}", "'modle' is not a setting of the judge; did you mean 'model'?"),
        ("{url: 5, model: m}", "url must be an http:// or https:// address"),
    ],
)
def test_a_wrong_section_is_a_usage_error(invoke: Any, server: JudgeServer, section: str, said: str) -> None:
    write_suite(server)
    text = Path("suite.yaml").read_text(encoding="utf-8")
    Path("suite.yaml").write_text(re.sub(r"judge: \{url.*", f"judge: {section}", text), encoding="utf-8")
    result = invoke("run", "suite.yaml")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert "sk-1" not in result.stderr


def test_a_suite_in_python_brings_its_judge_along(tmp_path: Path, server: JudgeServer) -> None:
    suite = Suite(
        dataset=[{"id": "q0", "query": "Capital?", "context": ["The capital is Paris."]}],
        agent=lambda query: "The capital is Paris.",
        metrics=["faithfulness"],
        judge={"url": server.url, "model": "judge-1"},
    )
    with Store(tmp_path / "runs.db") as store:
        plan = plan_run(suite, store)
        start_recording(plan, store)
        score_run(store, plan.header.id, suite.metrics)
        (row,) = run_from_store(store, plan.header.id).summary().metrics
    assert (row.backend, row.mean) == ("judge", 1.0)


def test_transcripts_are_kept_only_when_asked_for(invoke: Any, server: JudgeServer) -> None:
    write_suite(server)
    assert invoke("run", "suite.yaml").exit_code == 0
    assert "Judge calls" not in invoke("show", "last", "q0").stdout
    assert (
        invoke("score", "last", "-m", "faithfulness", "--again", *judged(server, "--judge-transcripts")).exit_code == 0
    )
    shown = invoke("show", "last", "q0").stdout
    assert "Judge calls of faithfulness" in shown
    assert "claims · sample 1 · judge-1 · from the cache" in shown
    assert '"verdict": "supported"' in shown
    assert "instructions:" not in shown
    assert "instructions: You split an answer into claims" in invoke("show", "last", "q0", "--why").stdout
    (case,) = json.loads(invoke("show", "last", "q0", "--json").stdout)
    scores = {each["metric"]: each for each in case["scores"]}
    assert [call["purpose"] for call in scores["faithfulness"]["judge_calls"]] == ["claims", "verdicts"]
    assert "transcripts" not in scores["faithfulness"]["detail"]["judge"]
    assert "judge_calls" not in scores["politeness"]


def test_another_metric_over_a_run_does_not_ask_the_judge_again(invoke: Any, server: JudgeServer) -> None:
    write_suite(server, ", cache: off")
    assert invoke("run", "suite.yaml").exit_code == 0
    n_calls = server.n_calls
    assert n_calls > 0
    result = invoke("score", "last", "-m", "faithfulness,response_time", *judged(server, "--no-cache"))
    assert result.exit_code == 0, result.output
    assert server.n_calls == n_calls
    assert "asks a judge" not in result.stderr
    invoke("score", "last", "-m", "faithfulness", "--again", *judged(server, "--no-cache"))
    assert server.n_calls > n_calls


def test_rerun_asks_about_its_cases_alone(invoke: Any, server: JudgeServer) -> None:
    write_suite(server, ", cache: off")
    assert invoke("run", "suite.yaml").exit_code == 0
    n_calls = server.n_calls
    result = invoke("rerun", "last", "q1", "--replace")
    assert result.exit_code == 0, result.output
    assert "context and tool results of 1 case go" in result.stderr
    assert server.n_calls == n_calls + 3  # claims, verdicts, rubric
    # One more try is held against checks, and no judge makes one here: nothing is sent, and nobody is asked.
    added = invoke("rerun", "last", "q1")
    assert added.exit_code == 0, added.output
    assert "go to" not in added.stderr
    assert server.n_calls == n_calls + 3


@pytest.mark.usefixtures("terminal")
def test_validity_asks_first_too(invoke: Any, server: JudgeServer) -> None:
    write_records(4)
    labels = "".join(f"q{k},{'yes' if k % 2 == 0 else 'no'}\n" for k in range(4))
    Path("labels.csv").write_text("id,label\n" + labels, encoding="utf-8")
    arguments = ["label", "--measure", "runs.jsonl", "--labels", "labels.csv", "-m", "faithfulness", *judged(server)]
    assert invoke(*arguments, input="n\n").exit_code == 2
    assert server.requests == []
    assert "judge" in invoke(*arguments, "--yes").stdout
    assert server.n_calls > 0


# The doctor


def findings(invoke: Any, *options: str) -> tuple[int, dict[str, Any]]:
    result = invoke("doctor", "--json", *options)
    return result.exit_code, {each["part"]: each for each in json.loads(result.stdout)}


def test_the_doctor_says_what_the_judge_lacks_and_sends_nothing(
    invoke: Any, server: JudgeServer, monkeypatch: Any
) -> None:
    _, found = findings(invoke)
    assert found["backend judge"]["state"] == "not ready"
    assert found["backend judge"]["fix"].startswith("export AGENTUNIT_JUDGE_URL=")
    monkeypatch.setenv("AGENTUNIT_JUDGE_URL", server.url)
    monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "judge-1")
    _, found = findings(invoke)
    assert found["backend judge"]["state"] == "ok"
    assert found["backend judge"]["note"].startswith(f"asks judge-1 at {server.url}; measures ")
    assert server.requests == []


@pytest.mark.parametrize(
    ("fault", "code", "state", "said"),
    [
        (None, 0, "ok", "answered in JSON in"),
        (Fault(message={"role": "assistant", "content": "ok"}), 3, "not ready", "answered 'ok' in"),
        (failing(401, "wrong key"), 3, "broken", "wrong key"),
    ],
)
def test_the_doctor_asks_the_judge_when_told_to(
    invoke: Any, monkeypatch: Any, fault: Any, code: int, state: str, said: str
) -> None:
    with JudgeServer(lambda body: {"mark": mark_of(body), "answer": "yes"}, faults=lambda request: fault) as server:
        monkeypatch.setenv("AGENTUNIT_JUDGE_URL", server.url)
        monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "judge-1")
        exit_code, found = findings(invoke, "--judge")
        assert server.n_calls == 1
    assert (exit_code, found["judge's answer"]["state"]) == (code, state)
    assert said in found["judge's answer"]["note"]


def test_the_doctor_cannot_ask_a_judge_that_is_not_configured(invoke: Any) -> None:
    exit_code, found = findings(invoke, "--judge")
    assert (exit_code, found["judge's answer"]["state"]) == (3, "not ready")
    assert invoke("doctor", "--judge", "runs.jsonl").exit_code == 2


@pytest.mark.parametrize(
    ("metric", "sent"),
    [
        ("faithfulness", "question, answer and context"),
        ("answer_correctness", "question, answer and expected output"),
        ("retrieval_quality", "question, context and expected output"),
    ],
)
def test_only_what_is_sent_is_said_to_be(invoke: Any, server: JudgeServer, metric: str, sent: str) -> None:
    write_records()
    result = invoke("score", "runs.jsonl", "-m", metric, *judged(server, "--no-cache"))
    assert f"{metric} asks a judge: {sent} of 2 cases go to judge-1" in result.stderr


def test_transcripts_without_a_place_to_keep_them_are_refused(invoke: Any, server: JudgeServer) -> None:
    write_records()
    result = invoke("score", "runs.jsonl", "-m", "faithfulness", *judged(server, "--judge-transcripts"))
    assert result.exit_code == 2
    assert "say where with --out FILE" in result.stderr
    assert server.n_calls == 0


def test_scoring_again_without_the_suites_judge_does_not_replace_what_it_said(invoke: Any, server: JudgeServer) -> None:
    write_suite(server)
    assert invoke("run", "suite.yaml").exit_code == 0
    configure_judge()
    result = invoke("score", "last", "-m", "faithfulness", "--again")
    assert result.exit_code == 2
    assert "was scored by judge, and no judge is configured" in " ".join(result.stderr.split())
    assert "judge" in invoke("show", "last", "q0").stdout
    assert invoke("score", "last", "-m", "faithfulness", "--again", "--backend", "lexical").exit_code == 0


def test_the_notice_counts_the_cases_of_which_something_is_sent(invoke: Any, server: JudgeServer) -> None:
    without = {"case": {"id": "none", "query": "Capital?"}, "outcome": {"output": "Paris."}}
    rows = [record("q0", "Paris"), record("q1", "Lyon"), *({**without, "case": {"id": f"n{k}"}} for k in range(4))]
    Path("runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = invoke("score", "runs.jsonl", "-m", "faithfulness", "--why", *judged(server, "--no-cache"))
    assert " of 2 cases go to judge-1" in result.stderr
    assert re.search(r"faithfulness ↑ .* 2/6 +judge", result.stdout)


def test_an_answer_that_needs_no_judge_is_not_counted(invoke: Any, server: JudgeServer) -> None:
    same = {"case": {"id": "same", "query": "Capital?", "expected_output": "Paris."}, "outcome": {"output": "Paris."}}
    Path("runs.jsonl").write_text(json.dumps(same) + "\n", encoding="utf-8")
    result = invoke("score", "runs.jsonl", "-m", "answer_correctness", *judged(server, "--no-cache"))
    assert "asks a judge" not in result.stderr
    assert server.requests == []


def test_before_the_agent_ran_cases_that_only_tool_results_could_make_are_an_upper_bound(
    invoke: Any, server: JudgeServer
) -> None:
    write_suite(server)
    rows = [{"id": "q0", "query": "Capital?", "context": ["The capital is Paris."]}, {"id": "q1", "query": "Capital?"}]
    Path("cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asked = invoke("run", "suite.yaml", "-m", "faithfulness", "--repeats", "2").stderr
    assert "of up to 4 cases go to" in asked
    again = invoke("run", "suite.yaml", "-m", "retrieval_quality", "--repeats", "2").stderr
    assert "of 2 cases go to" in again


# Panels and calibration


def test_several_models_are_a_panel(invoke: Any, server: JudgeServer) -> None:
    write_records()
    asked = ["score", "runs.jsonl", "-m", "faithfulness", "--why", *judged(server, "--judge-model", "judge-2")]
    result = invoke(*asked)
    assert result.exit_code == 0, result.output
    assert "go to judge-1, judge-2 at" in result.stderr
    assert "Panel of faithfulness: 2 judges, agreement 1.00 (Krippendorff's alpha)" in result.stdout
    (row,) = json.loads(invoke(*asked, "--json").stdout)["summary"]["metrics"]
    assert [each["judge"] for each in row["panel"]["judges"]] == ["judge-1", "judge-2"]


def test_one_model_on_the_command_line_is_the_one_judge(
    invoke: Any, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_records()
    monkeypatch.setenv("AGENTUNIT_JUDGE_JUDGES", "judge-2,judge-3")
    result = invoke("score", "runs.jsonl", "-m", "faithfulness", *judged(server))
    assert "go to judge-1 at" in result.stderr
    assert {request.body["model"] for request in server.calls} == {"judge-1"}


def test_a_metric_is_calibrated_to_the_labels_of_a_run(invoke: Any, server: JudgeServer) -> None:
    with Store(DEFAULT_PATH) as store:
        header = store.create_run("shop", agentunit_version="0", settings={})
        labels = []
        for at in range(24):
            answer = f"Dear Jane, thanks {at}." if at % 2 else f"Dear Jane {at}."
            row = Record(DatasetCase(f"q{at}", "Hi?"), outcome=Outcome(output=answer))
            add_record(store, header.id, at, 0, row, failed=False, elapsed_s=0.1)
            labels.append(StoredLabel(subject_of(row), "helpfulness", f"q{at}", float(at % 2), "ana"))
        store.add_labels(labels)
    asked = ["label", "--measure", "shop", "-m", "helpfulness", "--calibrate", "mine.json", *judged(server, "--yes")]
    shown = invoke(*asked)
    assert shown.exit_code == 0, shown.output
    assert "helpfulness asks a judge: question and answer of 24 cases go to judge-1" in shown.stderr
    assert re.search(r"with \d examples +\d", shown.stdout)
    assert "measured on 24 labels that the judge was not shown: each part with what the other" in shown.stdout
    found = json.loads(Path("mine.json").read_text(encoding="utf-8"))
    assert (found["metric"], found["models"]) == ("helpfulness", ["judge-1"])
    assert {each["value"] for each in found["examples"]} == {0.0, 1.0}
    used = invoke(
        "score", "shop", "-m", "helpfulness", "--param", "helpfulness.calibration=mine.json", "--why", *judged(server)
    )
    assert re.search(r"agreement \d\.\d\d +on 24 labels|agreement \d\.\d\d", used.stdout), used.output
    for more, problem in (
        (["label", "--measure", "shop", "-m", "cost", "--calibrate", "x.json"], "cost cannot be calibrated"),
        (["label", "--measure", "--calibrate", "x.json"], "--calibrate takes one stored RUN"),
        (
            ["label", "--measure", "shop", "-m", "faithfulness", "--backend", "lexical", "--calibrate", "x.json"],
            "faithfulness is scored without a model here",
        ),
        (["label", "--measure", "-m", "cost"], "name one RUN that was labeled, or a file of labels"),
    ):
        result = invoke(*more)
        assert result.exit_code == 2
        assert problem in result.output


# Following


def test_following_asks_within_the_budget_of_a_day(invoke: Any, server: JudgeServer, monkeypatch: Any) -> None:
    write_records(40)
    arguments = ["score", "runs.jsonl", "--once", "-m", "faithfulness,cost", "--json", *judged(server, "--no-cache")]
    found = invoke(*arguments, "--budget", "5")
    assert "every case go to judge-1" in found.stderr
    rows = {(row["metric"], row["backend"]): row for row in json.loads(found.stdout)["series"]}
    assert rows["faithfulness", "judge"]["n"] == 5
    assert rows["faithfulness", ""]["statuses"] == {"skipped": 35}
    assert rows["cost", "recorded"]["n"] == 40


def test_following_keeps_to_the_spend_cap_of_a_day(invoke: Any, server: JudgeServer, monkeypatch: Any) -> None:
    # No two are alike: whether calls that are alike are joined depends on how fast they are answered.
    answers = [f"The capital of France is Paris, said guide {k}." for k in range(64)]
    asked = [{**record(f"q{k}", "Paris", each), "outcome": each} for k, each in enumerate(answers)]
    Path("runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked))
    monkeypatch.setenv("AGENTUNIT_JUDGE_USD_PER_MILLION_INPUT", "1000")
    monkeypatch.setenv("AGENTUNIT_JUDGE_USD_PER_MILLION_OUTPUT", "1000")
    options = judged(server, "--no-cache", "--judge-max-spend", "40")  # the first of four batches costs 14, all 54
    arguments = ["score", "runs.jsonl", "--once", "-m", "faithfulness", "--store", "runs.db", "--json", *options]
    rows = {(row["metric"], row["backend"]): row for row in json.loads(invoke(*arguments).stdout)["series"]}
    statuses = rows["faithfulness", "judge"]["statuses"]
    assert set(statuses) == {"ok"}
    assert 0 < statuses["ok"] < 64
    assert rows["faithfulness", ""]["statuses"]["skipped"] + sum(statuses.values()) == 64
    n_calls = server.n_calls
    with Path("runs.jsonl").open("a") as lines:
        lines.writelines(json.dumps(record(f"new{k}", "Paris")) + "\n" for k in range(5))
    assert invoke(*arguments).exit_code == 0
    assert server.n_calls == n_calls  # the cap of the day is reached, also for the next process
