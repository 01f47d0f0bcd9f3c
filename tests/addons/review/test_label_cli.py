"""``agentunit label`` and what its labels do: the screen, lines in its place, files of labels, reports, validity."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import Result
from kept_records import add_record
from labeled_runs import METRIC, add_run, label_of, record
from viewer_client import report_text

from agentunit.addons.judge.rubric_metric import RubricMetric
from agentunit.addons.review._label_screen import describe_standing, marked_doubts
from agentunit.addons.review.labeling.rating import Standing
from agentunit.core.codec import encode_record
from agentunit.core.results import MetricResult, Score
from agentunit.formulas.labeled import LabeledRate
from agentunit.store.labels import StoredLabel
from agentunit.store.sqlite import DEFAULT_PATH, Store

Invoke = Callable[..., Result]
RUBRIC = msgspec.to_builtins(RubricMetric.info)
SCORES = [0.9 if position < 24 else 0.1 for position in range(30)]


@pytest.fixture
def run_id(invoke: Invoke) -> str:
    """A run of 30 cases in the default store of an empty folder."""
    with Store(DEFAULT_PATH) as store:
        return add_run(store, SCORES, name="suite")


def kept_labels(*, withdrawn: bool = False) -> list[StoredLabel]:
    with Store(DEFAULT_PATH, read_only=True) as store:
        return store.labels(withdrawn=withdrawn)


def test_answers_are_read_line_by_line_where_there_is_no_terminal(invoke: Invoke, run_id: str) -> None:
    lines = "y\nn\nwhat\ns\nt\nnot sure\ny\nu\nn\nb\ny\nq\n"
    result = invoke("label", "last", "--rater", "ana", input=lines)
    assert result.exit_code == 0, result.output
    assert "standard input is not a terminal" in result.stderr
    assert "Does what the agent saw support everything the answer says?" in result.stdout
    assert "'what' is not an answer" in result.stdout
    assert "3 new labels by ana, 3 in all" in result.stdout
    labels = kept_labels()
    assert sorted(label.value for label in labels if label.value is not None) == [0.0, 1.0, 1.0]
    assert {label.rater for label in labels} == {"ana"}
    everything = kept_labels(withdrawn=True)
    assert [label.note for label in everything if label.note] == ["not sure"]
    assert len(everything) == 6
    # The next session goes on; a score is never shown before its label.
    again = invoke("label", "last", "--rater", "ana", input="")
    assert f"{METRIC} 0." not in again.stdout
    assert "0 new labels by ana, 3 in all" in again.stdout


def test_a_score_is_shown_with_the_label_and_the_width_that_is_left(invoke: Invoke, run_id: str) -> None:
    shown = invoke("label", run_id, "-m", "faithfulness[local]", input="y\n" * 12 + "q\n").stdout
    before, _, after = shown.partition("you said yes")
    assert "(local)" not in before
    assert "(local)" in after
    assert "12 labels of 30: labeled rate" in shown
    assert "more give 0.2" in shown or "narrow enough" in shown
    # The last lines say it again: before them stands a whole page.
    assert "enough for an interval 0.2 wide (--width)" in shown
    narrow = invoke("label", run_id, "--rater", "ben", "--width", "0.01", input="y\n").stdout.splitlines()
    assert [line for line in narrow if line.startswith("about ")] == [narrow[-3]]
    assert "more labels for an interval 0.01 wide (--width)" in narrow[-3]


def test_a_session_of_few_labels_says_when_the_number_that_is_left_is_known(invoke: Invoke, run_id: str) -> None:
    shown = invoke("label", run_id, input="y\n" * 3).stdout
    assert "from 10 labels on it is said how many more give an interval 0.2 wide (--width)" in shown
    assert "more give" not in shown.replace("how many more give", "")


def test_a_file_of_traces_becomes_a_run_once(invoke: Invoke) -> None:
    lines = [encode_record(record(position, f"answer {position}")) for position in range(3)]
    Path("traces.jsonl").write_bytes(b"\n".join(lines))
    for n_given in (1, 2):
        result = invoke("label", "traces.jsonl", "-m", "pii_leakage", "--rater", "ana", input="y\nq\n")
        assert result.exit_code == 0, result.output
        assert f"{n_given} in all" in result.stdout
    with Store(DEFAULT_PATH) as store:
        assert len(store.runs()) == 1


def test_cases_of_one_id_that_ask_different_things_are_not_repeats(invoke: Invoke) -> None:
    rows = [("1", "red?"), ("1", "blue?"), ("1", "red?"), ("1 (2)", "green?")]
    Path("logs").mkdir()
    for number, (case_id, query) in enumerate(rows):
        line = {"case": {"id": case_id, "query": query}, "outcome": {"output": "yes"}}
        Path("logs", f"{number}.jsonl").write_text(json.dumps(line))
    result = invoke("label", "logs", "-m", "pii_leakage", "--rater", "ana", input="q\n")
    assert result.exit_code == 0, result.output
    with Store(DEFAULT_PATH) as store:
        kept = [(kept.record.case.id, kept.record.case.query) for kept in store.records(store.runs()[0].id)]
    assert sorted(kept) == [("1", "red?"), ("1", "red?"), ("1 (2)", "blue?"), ("1 (2) (2)", "green?")]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("last", "-m", "faithfulnes"), 3, "did you mean 'faithfulness'?"),
        (("last", "-m", "faithfulness[judge]"), 3, "faithfulness was not scored by 'judge'"),
        (("last", "--width", "0"), 2, "--width"),
        (("nowhere",), 3, "no run is called 'nowhere'"),
        (("last", "--rater", " "), 2, "--rater"),
    ],
)
def test_what_cannot_be_labeled_is_said_in_a_line(
    invoke: Invoke, run_id: str, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = invoke("label", *arguments, input="")
    assert result.exit_code == code
    assert words in result.output


def test_labels_of_a_file_are_kept_and_show_everywhere(invoke: Invoke, run_id: str) -> None:
    rows = [f"q{position},{'good' if position < 20 else 'bad'},ana,note {position}," for position in range(30)]
    rows += ["q0,bad,ben,,", "q1,good,ben,,another answer", "nowhere,good,ana,,", "q2,perhaps,ben,,"]
    Path("mine.csv").write_text("\n".join(["id,label,rater,note,answer", *rows]))
    result = invoke("label", "last", "--labels", "mine.csv", "-m", METRIC)
    assert result.exit_code == 3, result.output
    for words in ("31 labels", "1 left out: about another answer", "1 left out: the run has no such case", "perhaps"):
        assert words in result.output
    shown = invoke("show", "last").stdout
    assert "labeled rate ↑" in shown
    assert "faithfulness 0.74 raw, labeled rate 0.65 [0.65, 0.65] (30 labels of 30; 2 raters" in shown
    assert "raters disagree on 1: their mean counts" in shown
    labeled = json.loads(invoke("show", "last", "--json").stdout)["summary"]["metrics"][0]["labeled"]
    assert (labeled["n_labels"], labeled["n_disagreed"], labeled["raters"]) == (30, 1, ["ana", "ben"])
    for name in ("run.html", "run.md", "junit.xml"):
        assert invoke("export", "last", "--to", name).exit_code == 0
        assert "labeled rate" in report_text(name)
    for gate, code in (("faithfulness labeled >= 0.6", 0), ("faithfulness labeled >= 0.7", 1)):
        assert invoke("show", "last", "-g", gate).exit_code == code
    assert invoke("export", "last", "--to", "moved.json").exit_code == 0
    assert invoke("show", "moved.json", "-g", "faithfulness labeled >= 0.6").exit_code == 0


def test_without_labels_a_mean_is_called_one_and_a_gate_cannot_tell(invoke: Invoke, run_id: str) -> None:
    shown = invoke("show", "last", "--why").stdout
    assert "80% ≥ 0.5" in shown
    assert "faithfulness is mean support, not a rate" in shown
    decided = invoke("show", "last", "-g", "faithfulness labeled >= 0.6")
    assert decided.exit_code == 4
    assert "no case is labeled" in decided.stdout


@pytest.mark.parametrize(
    ("row", "n_labels", "words"),
    [
        ({"traceId": "q1", "name": METRIC, "value": 0, "source": "ANNOTATION", "authorUserId": "u1"}, 1, "by u1"),
        ({"traceId": "q1", "name": METRIC, "value": 1, "source": "EVAL"}, 0, "not by a person"),
        ({"traceId": "q1", "name": "tone", "value": 1, "source": "API"}, 0, "another name (tone)"),
        (
            {"span_id": "s", "trace_id": "q1", "annotator_kind": "HUMAN", "name": METRIC, "result": {"label": "good"}},
            1,
            "faithfulness",
        ),
        ({"trace_id": "q1", "annotator_kind": "LLM", "name": METRIC, "result": {"score": 1}}, 0, "not by a person"),
        (
            {"run_id": "r", "trace_id": "q1", "key": METRIC, "score": 1, "feedback_source": {"type": "app"}},
            1,
            "faithfulness",
        ),
        ({"run_id": "q1", "key": METRIC, "score": 1, "feedback_source": {"type": "model"}}, 0, "not by a person"),
        ({"case": {"id": "q1"}, "outcome": {"success": True, "output": "answer 1"}}, 1, "by outcome"),
        ({"case": {"id": "q1"}, "outcome": {"success": True, "output": "unheard"}}, 0, "about another answer"),
        ({"id": "q1", "label": 3}, 0, "a grade must be from 0 to 1"),
    ],
)
def test_annotations_of_other_tools_and_outcomes_are_labels(
    invoke: Invoke, run_id: str, row: dict[str, object], n_labels: int, words: str
) -> None:
    Path("theirs.jsonl").write_text(json.dumps(row) + "\n")
    result = invoke("label", "last", "--labels", "theirs.jsonl", "-m", METRIC)
    assert words in result.output
    assert (result.exit_code, len(kept_labels())) == (0 if n_labels else 3, n_labels)


def test_validity_reads_the_labels_of_a_run(invoke: Invoke, run_id: str) -> None:
    unlabeled = invoke("label", "--measure", "last")
    assert unlabeled.exit_code == 4
    assert f"agentunit label {run_id}" in unlabeled.stdout
    with Store(DEFAULT_PATH) as store:
        store.add_labels([label_of(each, float(each < 22)) for each in range(30)])
        store.add_labels([label_of(5, 0.0, "ben")])
    result = invoke("label", "--measure", "last", "--precision", "0.9")
    assert result.exit_code == 0, result.output
    for words in (
        "useful",
        "of cases that score 0.90 or more",
        "on labels held out",
        "may be wrong here",
        "ana yes, ben no",
    ):
        assert words in result.stdout, words
    (scorer,) = json.loads(invoke("label", "--measure", "last", "--json").stdout)["scorers"]
    assert scorer["n_tied"] == 1
    assert invoke("label", "--measure").exit_code == 2
    assert invoke("label", "--measure", "x.jsonl", "--labels", "y.csv", "--precision", "0.9").exit_code == 2


def test_doubtful_words_are_marked_also_where_personal_data_is_masked() -> None:
    answer = "Ask ana@example.org. It costs 9 €."
    claims = [
        {"text": "Ask ana@example.org.", "probability": 0.9, "doubtful": [{"start": 0, "end": 3}]},
        {"text": "It costs 9 €.", "probability": 0.1, "doubtful": [{"start": 30, "end": 33}]},
    ]
    masked = [{**claims[0], "text": "Ask <EMAIL_1>."}, claims[1]]
    for text, detail in ((answer, claims), ("Ask <EMAIL_1>. It costs 9 €.", masked)):
        parts = marked_doubts(text, {"claims": detail}, answer)
        assert "".join(part for part, _ in parts) == text
        assert [part for part, is_sure in parts if not is_sure] == ["9 €"]
    judged = [{"claim": "c", "answer_quote": "It costs 9 €.", "verdict": "not_in_passages"}]
    assert marked_doubts("It costs 9 €.", {"claims": judged}) == [("It costs 9 €.", False)]


def test_what_is_left_to_do_is_said() -> None:
    rate = LabeledRate(0.8, 0.6, 0.9, 30, 500, "labels alone", 0.0)
    assert describe_standing(Standing(30, 500, rate, 22), 0.2).endswith("0.30 wide; about 22 more give 0.2")
    assert "narrow enough" in describe_standing(Standing(30, 500, rate, 0), 0.4)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_terminal_takes_single_keys_and_loses_nothing_to_a_signal(
    invoke: Invoke, run_id: str, end: signal.Signals
) -> None:
    """One pass over a real terminal: keys without Enter, the score after the label, then the signal."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="xterm", COLUMNS="80", LINES="24")
        os.execv(sys.executable, [sys.executable, "-m", "agentunit", "label", "last", "--rater", "ana"])
    try:
        seen = wait_for(terminal, b"q quit")
        assert b"Does what the agent saw support everything" in seen
        assert b"(local)" not in seen
        os.write(terminal, b"y")
        assert b"(local)" in wait_for(terminal, b"q quit")
        os.write(terminal, b"n")
        wait_for(terminal, b"q quit")
        if end == signal.SIGTERM:
            # A polite request to end leaves the terminal as it was.
            os.kill(process, end)
            wait_for(terminal, b"\x1b[?1049l")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)
    assert [label.value for label in kept_labels()] == [1.0, 0.0]


def wait_for(terminal: int, words: bytes) -> bytes:
    """What the terminal shows up to these words."""
    seen = b""
    while words not in seen:
        assert select.select([terminal], [], [], 60)[0], seen
        seen += os.read(terminal, 4096)
    return seen


def test_names_of_raters_say_nothing_to_the_terminal_or_to_a_build(invoke: Invoke, run_id: str) -> None:
    hostile = "eve\x1b[2J\n::error::x"
    Path("labels.csv").write_text(f'id,label,rater,repeat\nq1,yes,"{hostile}",\nq2,yes,,"9\n::error::y"\n')
    shown = [invoke("label", "last", "--labels", "labels.csv").output]
    shown += [invoke("label", "last", "--rater", hostile, input="y\nq\n").output]
    for text in shown:
        assert "eve" in text
        assert "\x1b" not in text
        assert not [line for line in text.splitlines() if line.startswith("::")]


def test_a_rubric_is_labeled_under_its_own_name_by_shares(invoke: Invoke) -> None:
    with Store(DEFAULT_PATH) as store:
        header = store.create_run("r", agentunit_version="1", settings={"metric_infos": {"politeness": RUBRIC}})
        for position in range(3):
            add_record(store, header.id, position, 0, record(position, "Please."), failed=False, elapsed_s=0.0)
            result = MetricResult("politeness", 0.5, {"criteria": ["Is it polite?"]})
            store.add_scores(header.id, position, 0, {"politeness": Score(result, "ok", "judge", "1", 0.0)})
    labeled = invoke("label", "last", "--rater", "ana", input="7\nn\nq\n")
    assert labeled.exit_code == 0, labeled.output
    assert "Is it polite?" in labeled.stdout
    assert [(label.metric, label.value) for label in kept_labels()] == [("politeness", 0.7), ("politeness", 0.0)]
    Path("grades.csv").write_text("id,label\nq0,0.4\nq1,1\nq2,0.2\n")
    assert invoke("label", "last", "--labels", "grades.csv", "--rater", "ben").exit_code == 0
    assert sorted(label.value or 0.0 for label in kept_labels() if label.rater == "ben") == [0.2, 0.4, 1.0]


def test_what_the_scorer_doubts_is_marked_after_the_answer_or_when_asked_for(invoke: Invoke) -> None:
    with Store(DEFAULT_PATH) as store:
        run_id = store.create_run("doubted", agentunit_version="1", settings={}).id
        for position in range(2):
            add_record(store, run_id, position, 0, record(position, "Open. It costs 9 €."), failed=False, elapsed_s=0.0)
            claims = [{"text": "It costs 9 €.", "probability": 0.1, "doubtful": [{"start": 15, "end": 18}]}]
            result = MetricResult(METRIC, 0.1, {"claims": claims})
            store.add_scores(run_id, position, 0, {METRIC: Score(result, "ok", "local", "4", 0.0)})
        store.set_status(run_id, "finished")
    marked = "Open. It costs [?9 €?]."

    def pages(lines: str) -> list[str]:
        shown = invoke("label", run_id, "--rater", "ana", input=lines).stdout
        return [line.strip() for line in shown.splitlines() if "Open. It costs" in line]

    plain = "Open. It costs 9 €."
    assert pages("d\nd\nq\n") == [plain, marked, plain]
    # The next case is plain again; the one that was answered is marked when the rater comes back.
    assert pages("d\ny\nb\nq\n") == [plain, marked, plain, marked]
