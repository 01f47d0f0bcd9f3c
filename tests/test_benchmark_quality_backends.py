"""Backends beyond the lexical one in the validity benchmark: a made-up model on made-up rows, and what is recorded."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentunit.addons.review.labeling.label_files import Label
from agentunit.backends.quality import Verdict
from agentunit.core.case import DatasetCase
from agentunit.core.records import Record

ROOT = Path(__file__).resolve().parents[1]
UNSEEN = "mean of the sets unseen in training"


class TrueModel:
    """Scores high what says "true" in answer or context."""

    name = "local"
    measures = frozenset({"faithfulness", "answer_correctness", "retrieval_quality"})
    reason = None

    def __init__(self):
        self.n_asked = 0

    def unready(self):
        return self.reason

    def judge(self, measure, questions):
        self.n_asked += len(questions)
        return [Verdict(0.9 if "true" in f"{each.answer} {each.context}" else 0.2) for each in questions]


@pytest.fixture
def model(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.validity import quality_backends, seen_in_training

    made = TrueModel()
    monkeypatch.setattr("agentunit.addons.review.labeling.agreement.MOST_RESAMPLES", 200)
    monkeypatch.setattr("agentunit.backends.quality.installed_backends", lambda: {"local": SimpleNamespace()})
    monkeypatch.setattr("agentunit.backends.quality.load_backend", lambda name: made)
    # Nothing of the repository's own record or training is read.
    monkeypatch.setattr(quality_backends, "ROOT", tmp_path)
    monkeypatch.setattr(seen_in_training, "ROOT", tmp_path)
    return made


def labelled(folder, **sets):
    from benchmarks.validity.data import LabelledData

    (folder / "dev").mkdir(exist_ok=True)
    for name, rows in sets.items():
        lines = "\n".join(json.dumps({"id": f"{name}:{index}", **row}) for index, row in enumerate(rows))
        (folder / "dev" / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    return LabelledData(folder)


def answers(dataset, n=40):
    """Half of the answers are true; one true one in five does not say so."""
    return [
        {"dataset": dataset, "context": ["a source"], "group": f"g{i}", "hallucinated": i % 2 == 1,
         "response": "it is true" if i % 2 == 0 and i % 10 else "a source"}
        for i in range(n)
    ]  # fmt: skip


def measured(name, data):
    from benchmarks.validity.rows import producers

    family = producers()[name](data)
    return family, {(each.scorer.backend or each.scorer.name, each.dataset, each.statistic): each
                    for each in [*family.headline, *family.figures]}  # fmt: skip


def write_left_out(root, datasets):
    path = root / "packages/agentunit-local/src/agentunit_local/weights/card.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"datasets": datasets}), encoding="utf-8")


def faithfulness_data(folder):
    names = ("frank_cnndm", "ragtruth_qa", "cliff_xsum")
    return labelled(folder, faithfulness=[row for name in names for row in answers(name)])


def test_rows_seen_in_training_are_marked_and_in_no_mean(model, tmp_path):
    family, figures = measured("faithfulness", faithfulness_data(tmp_path))
    local = {dataset: figure for (scorer, dataset, statistic), figure in figures.items()
             if scorer == "local" and statistic == "AUROC"}  # fmt: skip
    # Of 20 · 20 pairs, the 4 true answers that do not say so tie with all false ones: (16 + 4/2) / 20.
    assert {figure.value for figure in local.values()} == {0.9}
    assert (local[UNSEEN].n_sets, local[UNSEEN].n) == (2, 80)
    marks = {dataset: sign for (scorer, dataset, _), sign in family.marks.items() if scorer.backend == "local"}
    assert marks == {"frank_cnndm": "‡"}
    # Rules and models were tuned on these sets: only the formulas of which nothing was tuned have a trust figure here.
    assert {(each.metric, each.backend, each.n_sets) for each in family.trust} == {
        ("faithfulness", "lexical", 3),
        ("hallucination_rate", "lexical", 3),
    }
    # Cut at 0.5 it says bad of 24 rows, and 20 are: precision 20/24, recall 1.
    assert figures["local", "ragtruth_qa", "response-level F1"].value == round(40 / 44, 4)
    assert figures["call everything bad", "ragtruth_qa", "response-level F1"].value == round(2 / 3, 4)
    assert figures["content-token precision", UNSEEN, "AUROC"].n_sets == 2
    assert "The local model" in family.can
    assert not any("left out of training" in each.scorer.backend for each in family.figures)


def test_calibration_is_measured_on_sets_that_training_never_saw(model, tmp_path):
    family, figures = measured("faithfulness", faithfulness_data(tmp_path))
    # 32 values of 0.9 are all supported (0.1 off), 48 of 0.2 have 8 supported ones (0.2 − 1/6 off).
    rows = "rows of the sets unseen in training"
    assert figures["local", rows, "calibration error"].n == 80
    assert figures["local", rows, "calibration error"].value == round((32 * 0.1 + abs(48 * 0.2 - 8)) / 80, 4)
    # Both sets have as many of both labels: counting alike changes nothing.
    assert figures["local", f"{rows}, sets and labels counting alike", "calibration error"].value == 0.06
    assert not any(figure.statistic == "calibration error" for figure in family.headline)


def test_calibration_with_sets_and_labels_alike_weighs_rows(model):
    from benchmarks.validity.measure import Scorer
    from benchmarks.validity.quality_figures import calibration_figures

    from agentunit.addons.review.labeling.scorer_agreement import ScoredRow

    rows = [ScoredRow(1.0, 0.75, None)] * 3 + [ScoredRow(0.0, 0.75, None)]
    over_all, alike = calibration_figures({Scorer("m", "metric"): {"s": rows}}, ["s"], "rows")
    assert (over_all.value, alike.value) == (0.0, 0.25)


def test_answers_are_scored_with_each_change(model, tmp_path, monkeypatch):
    texts = ("It is true. It is old.", "It is old. It is new.", "It is red. It is blue.")
    row = {"dataset": "wice", "hallucinated": False, "response": "true it is"}
    data = labelled(tmp_path, faithfulness=[{**row, "context": list(texts[:n]), "group": n} for n in (1, 2)])
    # A model that likes capitals, and dislikes long answers and what stands first when it is not true.
    monkeypatch.setattr(model, "judge", lambda measure, questions: [
        Verdict(0.5 + 0.02 * each.answer.isupper() - 0.001 * len(each.answer) + 0.1 * ("true" in each.context[0]))
        for each in questions
    ])  # fmt: skip
    family, figures = measured("robustness", data)
    found = {(dataset, statistic): figure.value for (_, dataset, statistic), figure in figures.items()}
    holds, largest = "share of answers that hold", "largest change"
    assert found["capitals", holds] == 1.0
    assert found["capitals", largest] == 0.02
    assert found["a sentence from elsewhere", holds] == 1.0
    assert found["a sentence from elsewhere", "smallest fall"] > 0.03
    assert found["a courtesy", holds] == 0.0
    assert found["20 passages about other things", holds] == 0.0
    assert found["20 passages about other things", largest] == -0.1
    # One passage has no other order.
    assert figures["local", "passages in reverse", holds].n == 1
    assert found["passages in reverse", holds] == 0.0
    assert "benchmarks/validity/recorded_robustness.json" in family.files


def test_figures_on_rows_left_out_of_training_count_instead(model, tmp_path):
    write_left_out(tmp_path, {"frank_cnndm": {"n": 8, "auroc": 0.6}, "cliff_xsum": {"n": 8, "auroc": 0.1}})
    family, figures = measured("faithfulness", faithfulness_data(tmp_path))
    left_out = "local, rows left out of training"
    assert figures[left_out, "frank_cnndm", "AUROC"].value == 0.6
    # A set that was never trained on needs no such figure.
    assert (left_out, "cliff_xsum", "AUROC") not in figures
    mean = figures[left_out, "mean of 3 sets", "AUROC"]
    assert (mean.value, mean.n, mean.low) == (0.8, 88, None)  # 0.6, 0.9 and 0.9
    assert {each.backend for each in family.trust} == {"lexical"}


@pytest.mark.parametrize("datasets", [[], {"frank_cnndm": {"auroc": 0.7}}, {"frank_cnndm": 0.7}])
def test_a_card_that_cannot_be_read_is_said(model, tmp_path, datasets):
    from benchmarks.validity.data import DataProblem

    write_left_out(tmp_path, datasets)
    with pytest.raises(DataProblem, match=r"card\.json"):
        measured("faithfulness", faithfulness_data(tmp_path))


def test_clearly_worse_than_counting_words_is_marked(model, tmp_path):
    rows = [
        {"dataset": "ragtruth_qa", "context": ["red blue green"], "group": f"g{i}", "hallucinated": i % 2 == 1,
         "response": "true lies" if i % 2 else "red blue"}
        for i in range(40)
    ]  # fmt: skip
    family, figures = measured("faithfulness", labelled(tmp_path, faithfulness=rows))
    assert figures["local", "ragtruth_qa", "AUROC"].value == 0.0
    assert {sign for (scorer, _, _), sign in family.marks.items() if scorer.backend == "local"} == {"▼"}


def test_recorded_figures_stand_in_until_rows_change(model, tmp_path):
    family, first = measured("faithfulness", faithfulness_data(tmp_path))
    asked = model.n_asked
    assert asked == 120
    ((path, content),) = family.files.items()
    target = tmp_path / path
    target.parent.mkdir(parents=True)
    target.write_bytes(content)
    again, second = measured("faithfulness", faithfulness_data(tmp_path))
    assert (model.n_asked, second, again.files) == (asked, first, family.files)

    from benchmarks.validity.data import LabelledData

    measured("faithfulness", LabelledData(tmp_path, use_recorded=False))
    assert model.n_asked == 2 * asked
    model.reason = "its weights are gone"
    rows = [row for name in ("frank_cnndm", "other") for row in answers(name)]
    stale, figures = measured("faithfulness", labelled(tmp_path, faithfulness=rows))
    assert not any(backend == "local" for backend, _, _ in figures)
    assert "`local` was not measured: its weights are gone." in stale.remarks
    assert stale.files == {}


def test_services_are_never_asked(model, tmp_path, monkeypatch):
    from benchmarks.validity.quality_backends import beyond_lexical

    monkeypatch.setattr("agentunit.backends.quality.installed_backends", lambda: dict.fromkeys(("judge", "ragas")))
    found = beyond_lexical("f", "faithfulness", lambda _: {}, lambda *_: pytest.fail("asked"), use_recorded=True)
    assert (found.figures, list(found.missing)) == ({}, ["local", "local-large"])


def test_answers_of_the_training_are_no_trust_figure(model, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.validity.rows.answer_correctness.MOST_ROWS", 100)
    rows = [
        {"dataset": "evouna_NQ", "question": f"q{i}", "expected": ["x"], "model": system, "correct": bool(i % 2),
         "answer": "true" if i % 2 else "no"}
        for i in range(30) for system in ("one", "two", "three", "four")
    ]  # fmt: skip
    data = labelled(tmp_path, answer_correctness=rows)
    family, figures = measured("answer_correctness", data)
    assert figures["local", "evouna_NQ", "agreement"].value == 1.0
    # Whole questions, at most 100 rows of the 120.
    assert figures["local", "evouna_NQ", "agreement"].n == 100
    assert figures["local", "evouna_NQ, answers of one", "AUROC"].n == 25
    assert {sign for (scorer, _, _), sign in family.marks.items() if scorer.backend == "local"} == {"‡"}
    assert [(each.backend, each.statistic) for each in family.trust] == [("lexical", "AUROC")]

    entry = {"n": 120, "agreement": 0.93, "agreement_low": 0.92, "agreement_high": 0.94}
    write_left_out(tmp_path, {"evouna_NQ": entry})
    family, _ = measured("answer_correctness", data)
    assert [(each.backend, each.statistic, each.value, each.n_cases) for each in family.trust] == [
        ("lexical", "AUROC", 0.5, 120),
    ]


def test_retrieval_by_passage(model, tmp_path):
    triad = [{"dataset": "triad", "question": f"q{i}", "context": ["true" if i % 2 else "no"], "response": "x",
              "context_relevant": bool(i % 2)} for i in range(20)]  # fmt: skip
    lists = [{"dataset": "rgb_en_fact", "question": f"q{i}", "answer": [["x", "y"]], "positive": ["true", "true x"],
              "negative": ["no"]} for i in range(10)]  # fmt: skip
    family, figures = measured("retrieval_quality", labelled(tmp_path, rag_triad=triad, retrieval=lists))
    assert figures["local", "triad", "AUROC"].value == 1.0
    assert figures["local", "rgb_en_fact", "balanced accuracy"].value == 1.0
    assert figures["local", "rgb_en_fact", "AUROC"].n == 30
    # Labels made by looking for the answer count for nothing but themselves.
    assert {(each.backend, each.n_sets, each.n_cases) for each in family.trust} == {("lexical", 1, 20)}


@pytest.mark.parametrize("whole_groups", [False, True])
def test_samples_are_small_and_always_the_same(model, whole_groups):
    from benchmarks.validity.sampling import sampled

    cases = [(Record(DatasetCase(f"c{i}")), Label(1.0, f"g{i // 4}")) for i in range(40)]
    drawn = sampled(cases, 11, whole_groups=whole_groups)
    assert len(drawn) == (8 if whole_groups else 11)
    assert sampled(list(reversed(cases)), 11, whole_groups=whole_groups)[::-1] == drawn
    assert [case for case in cases if case in drawn] == drawn
    if whole_groups:
        assert len({label.group for _, label in drawn}) == 2
    assert sampled(cases, 40) == cases


def test_the_sets_of_the_training_are_those_that_its_code_names(model):
    """The model's own training code says which labeled sets it takes."""
    import ast

    from benchmarks.validity.seen_in_training import TRAINED_ON

    tree = ast.parse((ROOT / "training/groundedness/examples.py").read_text(encoding="utf-8"))
    (named,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "TRAINABLE"
    ]
    assert {*named, "evouna_"} == set(TRAINED_ON["local"])


def test_the_page_names_no_folder_of_the_machine_that_wrote_it() -> None:
    from benchmarks.validity import quality_backends

    missing = {"local-gpu": f'torch is not installed; pip install "{quality_backends.ROOT}[gpu]" adds it'}
    (remark,) = quality_backends.BeyondLexical({}, missing, {}).remarks
    assert remark == '`local-gpu` was not measured: torch is not installed; pip install ".[gpu]" adds it.'
