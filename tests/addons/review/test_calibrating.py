"""A judge fitted to labels: what it is shown, what it is measured on, and what stays evidence."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from judge_decisions import decide, texts_of, words_of
from kept_records import add_record
from scripted_judge import ScriptedJudge, body_of

from agentunit import DatasetCase, Outcome, Record, score
from agentunit.addons.judge import rubric_metric
from agentunit.addons.judge.client import JudgeRequest
from agentunit.addons.judge.judge_backend import JudgeBackend
from agentunit.addons.judge.rubric_metric import RubricMetric
from agentunit.addons.review.labeling.calibrating import SHOWN_SHARE, CalibrationError, LabeledAnswer, calibrate
from agentunit.core.results import encode_json
from agentunit.engine.scoring.labeled_rates import labeled_summary
from agentunit.engine.scoring.rescoring import score_run
from agentunit.engine.scoring.scored_run import run_from_store
from agentunit.metrics import builtin
from agentunit.metrics.builtin import FaithfulnessMetric
from agentunit.metrics.registry import resolve_metrics
from agentunit.metrics.trust import describe_trust
from agentunit.store.labels import StoredLabel, subject_of, unshown_labels
from agentunit.store.sqlite import Store

GOOD, BAD = "thanks kindly", "whatever somewhere"


def learner(request: JudgeRequest) -> Any:
    """Likes long answers, until examples show which words people like."""
    body = body_of(request)
    made, system, texts = decide(body), request.system, texts_of(body)
    liked: dict[bool, set[str]] = {True: set(), False: set()}
    for number, value in re.findall(r"- example (\d+): overall ([\d.]+)", system):
        liked[float(value) >= 0.5] |= words_of(texts[f"answer of example {number}"])
    words = words_of(texts["answer"])
    for_it, against = (len(words & (liked[side] - liked[not side])) for side in (True, False))
    point = 4 if len(texts["answer"]) > 30 else 2
    if liked[True]:
        point = 5 if for_it > against else 3
    for each in made["scores"]:
        each["score"] = point
    return made


def answers(n: int) -> list[LabeledAnswer]:
    made = []
    for at in range(n):
        good = at % 3 != 0
        # Length says nothing about what people like.
        text = f"{GOOD if good else BAD} {at}{' and so on and on and on' if at % 2 else ''}"
        record = Record(DatasetCase(f"c{at}", f"Where is {at}?"), outcome=Outcome(output=text))
        made.append(LabeledAnswer(record, subject_of(record), float(good)))
    return made


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> ScriptedJudge:
    scripted = ScriptedJudge(learner)
    backend = JudgeBackend(scripted)  # type: ignore[arg-type]
    monkeypatch.setattr(rubric_metric, "resolve_backend", lambda *_: backend)
    return scripted


METRIC = RubricMetric("It is pleasant.", name="pleasant")


def test_the_figure_is_of_labels_that_nothing_was_learned_from(judge: ScriptedJudge) -> None:
    labeled = answers(80)
    found = calibrate(METRIC, labeled)
    shown = {each.answer for each in found.examples}
    held_out = {label.subject for label in unshown_labels([_label(each) for each in labeled], SHOWN_SHARE)}
    of_examples = {each.subject for each in labeled if each.record.outcome.output in shown}
    assert not of_examples & held_out
    assert (found.measured.n, found.crossed) == (len(held_out), False)
    # Long or short says nothing; the words of the examples say it all, and the mapping puts 3 of 5 on the bad side.
    assert found.before.agreement is not None
    assert found.before.agreement < 0.75
    assert (found.measured.agreement, found.with_examples.auroc) == (1.0, 1.0)
    assert found.with_examples.agreement is not None
    assert found.with_examples.agreement < 1.0
    assert found.threshold == 1.0
    # No question of the measured part shows a measured answer as an example.
    for request in judge.asked:
        texts = texts_of(body_of(request))
        assert texts["answer"] not in [text for name, text in texts.items() if name.startswith("answer of")]


def test_few_labels_are_crossed_so_that_each_is_measured(judge: ScriptedJudge) -> None:
    found = calibrate(METRIC, answers(30))
    assert (found.crossed, found.measured.n, found.before.n) == (True, 30, 30)


def test_the_same_labels_teach_the_same_on_every_machine(judge: ScriptedJudge) -> None:
    labeled = answers(40)
    first, again = calibrate(METRIC, labeled), calibrate(METRIC, labeled[::-1])
    assert (first.examples, first.knots, first.digest) == (again.examples, again.knots, again.digest)


@pytest.mark.parametrize(
    ("labeled", "reason"),
    [(answers(9), "pleasant has 9 labeled answers, 10 are needed"), (answers(40)[1::3], "are on one side")],
)
def test_what_teaches_nothing_is_refused(judge: ScriptedJudge, labeled: list[LabeledAnswer], reason: str) -> None:
    with pytest.raises(CalibrationError, match=reason):
        calibrate(METRIC, labeled)


def _label(each: LabeledAnswer) -> StoredLabel:
    return StoredLabel(each.subject, "pleasant", each.record.case.id, each.value, "ana")


def test_a_calibrated_run_shows_its_trust_and_leaves_out_what_taught_it(judge: ScriptedJudge, tmp_path: Path) -> None:
    labeled = answers(80)
    file = tmp_path / "pleasant.json"
    file.write_bytes(encode_json(calibrate(METRIC, labeled)))
    metric = RubricMetric("It is pleasant.", name="pleasant", calibration=str(file))
    (case, *_) = score([labeled[0].record], [metric])
    assert case.scores["pleasant"].result.detail["raw_value"] == 0.5
    assert case.scores["pleasant"].value < 0.5  # type: ignore[operator]
    with Store(tmp_path / "runs.db") as store:
        header = store.create_run("r", agentunit_version="0", settings={})
        for at, each in enumerate(labeled):
            add_record(store, header.id, at, 0, each.record, failed=False, elapsed_s=0.1)
        store.add_labels([_label(each) for each in labeled])
        score_run(store, header.id, [metric])
        run = run_from_store(store, header.id)
    (row,) = run.summary().metrics
    n_held_out = len(unshown_labels(run.labels, SHOWN_SHARE))
    assert row.trust == f"strong, agreement 1.00 on {n_held_out} labels not shown"
    assert row.labeled is not None
    # More than a quarter of the labels taught the judge: all of them count, and no score.
    assert (row.labeled.n_labels, row.labeled.n_taught, row.labeled.weight) == (80, 0, 0.0)
    run.infos = {"pleasant": replace(metric.info, shown_share=0.2)}
    rest = labeled_summary(run, "pleasant")
    n_unshown = len(unshown_labels(run.labels, 0.2))
    assert rest is not None
    assert 60 <= n_unshown < 80
    assert (rest.n_labels, rest.n_taught) == (n_unshown, 80 - n_unshown)
    run.infos = {"pleasant": METRIC.info}
    whole = labeled_summary(run, "pleasant")
    assert whole is not None
    assert (whole.n_labels, whole.n_taught) == (80, 0)


def test_a_calibration_is_of_its_metric_its_backend_and_its_models(
    judge: ScriptedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pleasant.json"
    found = calibrate(METRIC, answers(40))
    file.write_bytes(encode_json(found))
    with pytest.raises(ValueError, match="calibration must be of 'rubric'; received one of 'pleasant'"):
        RubricMetric("It is pleasant.", calibration=str(file))
    of_local = msgspec.structs.replace(found, metric="faithfulness", backend="local")
    with pytest.raises(ValueError, match="calibration must be of backend 'judge'; received one of 'local'"):
        FaithfulnessMetric("judge", calibration=of_local)
    monkeypatch.setenv("AGENTUNIT_JUDGE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "another")
    changed = RubricMetric("It is pleasant.", name="pleasant", calibration=msgspec.structs.replace(found, models=["m"]))
    assert describe_trust(changed.info, "judge") == "unmeasured, calibrated for m"
    assert changed.info.version == f"1+{found.digest}"
    assert RubricMetric.info.version == "1"


def test_scores_of_a_quality_metric_are_mapped_without_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = ScriptedJudge(lambda request: decide(body_of(request)))
    monkeypatch.setattr(builtin, "resolve_backend", lambda *_: JudgeBackend(scripted))  # type: ignore[arg-type]
    labeled = []
    for at in range(40):
        # People call half of an answer supported good enough; the judge's share of claims says 0.5.
        second = "It is blue." if at % 2 else f"It weighs {at} tons of gold and silver."
        first = f"The box {at} is red." if at % 4 < 2 else f"The cat {at} sleeps near Bern."
        case = DatasetCase(f"c{at}", "What?", context=[f"The box {at} is red. It is blue."])
        record = Record(case, outcome=Outcome(output=f"{first} {second}"))
        labeled.append(LabeledAnswer(record, subject_of(record), float(at % 4 != 2)))
    found = calibrate(FaithfulnessMetric("judge"), labeled)
    assert (found.examples, found.backend) == ([], "judge")
    assert found.measured.agreement == 1.0
    (metric,) = resolve_metrics([{"faithfulness": {"calibration": found}}])
    result = metric.evaluate(labeled[0].record.case, None, labeled[0].record.outcome)  # type: ignore[arg-type]
    assert result.detail["raw_value"] == 0.5
    assert result.value == pytest.approx(found.value_of(0.5))
