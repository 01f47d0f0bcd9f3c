"""The validity benchmark on a tiny made-up data folder; the real one is measured only where it lies."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import msgspec
import pytest

from agentunit.core.case import DatasetCase
from agentunit.core.records import Record
from agentunit.metrics.trust import TrustFigure

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def write_set(folder, name, rows):
    (folder / "dev").mkdir(parents=True, exist_ok=True)
    lines = "\n".join(json.dumps({"id": f"{name}:{index}", **row}) for index, row in enumerate(rows))
    (folder / "dev" / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


def faithfulness_rows(dataset, n=24, grades=False):
    rows = []
    for index in range(n):
        made_up = index % 2 == 1
        rows.append(
            {
                "dataset": dataset,
                "question": None,
                "context": ["Paris lies on the Seine.", f"Stone {index}."],
                "response": "Elephants dance in Rome" if made_up else "Paris lies on a river: the Seine",
                "hallucinated": None if grades else made_up,
                "faithful": index / n if grades else None,
                "group": f"document {index // 4}",
                "baselines": {"FactCC": float(not made_up)},
            }
        )
    return rows


def write_agent_runs(folder):
    """Runs of teams whose outcome and faults are known by the way they are made."""

    def talk(*said):
        return [{"role": "assistant", "name": name, "content": words} for name, words in said]

    question, guess = ("boss", "What does a ticket cost?"), ("guesser", "Let us assume that it costs twenty dollars.")
    answer = ("boss", "Twenty it is, then.")
    again = [("worker", "I look at the same file again."), ("boss", "Go on.")]
    write_set(
        folder,
        "mast_human",
        [{"system": "HyperAgent" if i % 3 else "AG2", "instance_id": str(i),
          "trajectory": talk(question, guess, answer, *again * (3 if i % 2 else 1)),
          "note": {"options": dict.fromkeys(("Step repetition", "Trajectory restart"), "yes" if i % 2 else "no")}}
         for i in range(36)],
    )  # fmt: skip
    write_set(
        folder,
        "mast_ag2_experiments",
        [{"instance_id": str(i), "condition": f"trajs_gpt-4_impr_prompt_{topology}_topology_42",
          "trajectory": talk(question, guess, answer, *again * (1 if i % 2 else 2)),
          "other_data": {"correct": bool(i % 2)}}
         for topology in ("orig", "impr") for i in range(12)],
    )  # fmt: skip
    said = "In Session s1 \nFrom agent1 to agent2: Hello.\nFrom agent2 to agent1: Hello.\nFrom agent1 to agent3: You?"
    write_set(
        folder,
        "marble",
        [{"run": f"{shape}_research", "task": "Research", "coordination_mode": "graph",
          "iterations": [{"iteration": 1, "task_assignments": {}, "task_results": [], "communications": [said]}]}
         for shape in ("star", "chain") for _ in range(3)],
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = tmp_path / "data"
    write_agent_runs(data)
    sets = [faithfulness_rows("frank_xsum"), faithfulness_rows("halueval_qa"), faithfulness_rows("other")]
    graded = faithfulness_rows("factscore", grades=True)
    write_set(data, "faithfulness", [row for rows in [*sets, graded] for row in rows])
    write_set(
        data,
        "rag_triad",
        [
            {"dataset": "triad", "question": f"Where is Paris? {i}", "context": ["Paris" if i % 2 else "Bread"],
             "response": "In France", "context_relevant": bool(i % 2)}
            for i in range(20)
        ],
    )  # fmt: skip
    pairs = [{"dataset": "pairs", "question": f"Paris {i}", "passage": "Paris", "relevant": i % 2} for i in range(20)]
    write_set(data, "retrieval", [*pairs, {"dataset": "lists", "question": "?", "positive": [], "negative": []}])
    # The short system answers as the expected answers are written; the chatty one says the same in a sentence.
    write_set(
        data,
        "answer_correctness",
        [
            {"dataset": "open_questions", "question": f"q{i}", "expected": ["Paris", "Paris, France"], "model": model,
             "answer": answer if i % 2 else "Rome", "correct": bool(i % 2)}
            for i in range(20)
            for model, answer in (("short", "Paris"), ("chatty", "It is the city of paris."))
        ],
    )  # fmt: skip
    monkeypatch.setenv("AGENTUNIT_DATA", str(data))
    # No model is run here, whatever is installed: that is for test_benchmark_quality_backends.py.
    monkeypatch.setattr("agentunit.backends.quality.installed_backends", dict)
    # The privacy families are measured in test_benchmark_pii.py, without packages that may be installed here; captions
    # and transcripts in test_benchmark_multimodal.py; costs and tool calls in test_benchmark_operational.py; suspects
    # in test_benchmark_suspects.py.
    from benchmarks.validity import __main__ as command
    from benchmarks.validity.rows import producers

    elsewhere = (
        "data_minimization",
        "pii_leakage",
        "audio_transcription_quality",
        "image_caption_accuracy",
        "tool_success",
        "operational_exactness",
        "suspects",
    )
    here = {name: each for name, each in producers().items() if name not in elsewhere}
    monkeypatch.setattr(command, "producers", lambda: here)
    return data


def run(root, *arguments):
    from benchmarks.validity.__main__ import main

    return main(arguments, root=root)


def figures_of(name, data):
    from benchmarks.validity.data import LabelledData
    from benchmarks.validity.rows import producers

    family = producers()[name](LabelledData(data))
    figures = [*family.figures, *family.released]
    return family, {(each.scorer.title, each.dataset, each.statistic): each for each in figures}


def test_faithfulness_rows(folder):
    family, figures = figures_of("faithfulness", folder)
    # No context string stands in any answer: every lexical score is 0 (hallucination rate 1), a coin toss.
    for metric in ("faithfulness (lexical)", "hallucination_rate (lexical)"):
        assert figures[metric, "other", "AUROC"].value == 0.5
        assert figures[metric, "other", "AUROC"].verdict == "no better than chance"
        assert figures[metric, "factscore", "Spearman"].value is None
    # All content words of "Paris lies on a river: the Seine" but "river" are there, and none of the elephants.
    assert figures["content-token precision", "other", "AUROC"].value == 1.0
    assert figures["bigram precision", "other", "AUROC"].value == 1.0
    # Of the 24 faithful answers none scores 0.5 lexically: all are called bad, and that is one fixed answer.
    assert figures["faithfulness (lexical)", "other", "balanced accuracy"].value == 0.5
    assert figures["content-token precision", "other", "balanced accuracy"].value == 1.0
    assert ("content-token precision", "factscore", "balanced accuracy") not in figures
    assert figures["FactCC", "frank_xsum", "AUROC"].value == 1.0
    means = {each.scorer.title: each for each in family.headline if each.statistic == "AUROC"}
    assert means["content-token precision"].n_sets == 2
    assert means["content-token precision"].n == 48
    lexical = next(each.scorer for each in family.headline if each.scorer.title == "faithfulness (lexical)")
    assert family.marks[lexical, "other", "AUROC"] == "▼"
    assert (lexical, "other", "balanced accuracy") not in family.marks
    assert any("`local` was not measured: it is not installed here" in remark for remark in family.remarks)
    assert {figure.metric for figure in family.trust} == {"faithfulness", "hallucination_rate"}


def test_answer_correctness_rows(folder):
    family, figures = figures_of("answer_correctness", folder)
    lexical, everything = "answer_correctness (lexical)", "open_questions"
    assert figures[lexical, f"{everything}, answers of short", "AUROC"].value == 1.0
    assert figures[lexical, f"{everything}, answers of chatty", "AUROC"].value == 0.5
    # Ten of twenty right answers score 1, no wrong one does: (1 + 0.5) / 2, and 30 of 40 verdicts are people's.
    assert figures[lexical, everything, "AUROC"].value == 0.75
    assert figures[lexical, everything, "agreement"].value == 0.75
    assert figures["exact match", everything, "agreement"].value == 0.75
    assert figures["containment", everything, "agreement"].value == 1.0
    assert figures["containment", everything, "agreement"].verdict == "better than one fixed answer"
    assert figures["call everything correct", everything, "agreement"].value == 0.5
    assert [(figure.metric, figure.value, figure.n_cases) for figure in family.trust] == [
        ("answer_correctness", 0.75, 40)
    ]


def test_retrieval_rows_say_what_could_not_be_scored(folder):
    family, figures = figures_of("retrieval_quality", folder)
    assert figures["retrieval_quality (lexical)", "triad", "AUROC"].value == 0.5
    assert ("retrieval_quality (lexical)", "pairs", "AUROC") not in figures
    assert figures["question words in context", "pairs", "AUROC"].n == 20
    assert figures["question words in context", "triad", "AUROC"].value == 1.0
    assert any("`pairs`: 20 of 20 rows were not scored" in remark for remark in family.remarks)
    # Baselines are compared on the sets that the metric can score.
    assert {(each.dataset, each.n_sets) for each in family.headline} == {("triad", 1)}


def test_repetition_and_outcome_rows_ship_no_figure(folder):
    family, figures = figures_of("multiagent_repetition", folder)
    assert figures["step_repetition (trace)", "Step repetition, HyperAgent only", "AUROC"].value == 1.0
    assert figures["short run", "Step repetition, all systems", "AUROC"].value == 1.0
    assert family.trust == ()
    family, figures = figures_of("multiagent_outcome", folder)
    assert figures["step_repetition (trace)", "improved prompt, original topology", "AUROC"].value == 1.0
    assert {figure.n_sets for figure in family.headline} == {2}
    assert family.trust == ()


def test_topology_rows(folder):
    _, figures = figures_of("multiagent_topology", folder)
    # The three messages make the links 1-2 and 1-3; from the order of speakers the last one has no receiver.
    assert figures["derived, receiver stated", "marble", "graph is exactly right"].value == 1.0
    assert figures["derived, receiver unknown", "marble", "links found"].value == 0.5
    assert figures["derived, receiver unknown", "marble", "found links that are right"].value == 1.0
    assert figures["fits a star", "declared chain", "shape of the derived graph"].n == 3


def test_the_files_are_written_the_same_every_time(folder, tmp_path, capsys):
    root = tmp_path / "repository"
    assert run(root, "--check") == 1
    assert "docs/validity.md differs" in capsys.readouterr().out
    assert not root.exists()
    assert run(root) == 0
    figures, page = root / "src/agentunit/metrics/validity.json", root / "docs/validity.md"
    first = figures.read_bytes(), page.read_bytes()
    assert run(root) == 0
    assert (figures.read_bytes(), page.read_bytes()) == first
    assert run(root, "--check") == 0
    page.write_text(page.read_text(encoding="utf-8").replace("0.500", "0.900"), encoding="utf-8")
    capsys.readouterr()
    assert run(root, "--check") == 1
    told = capsys.readouterr().out
    assert "docs/validity.md differs" in told
    assert "validity.json" not in told


def test_the_shipped_figures_are_readable_and_sorted(folder, tmp_path):
    run(tmp_path)
    content = (tmp_path / "src/agentunit/metrics/validity.json").read_bytes()
    figures = msgspec.json.decode(content, type=list[TrustFigure])
    keys = [(figure.metric, figure.backend) for figure in figures]
    assert keys == sorted(set(keys))
    assert [metric for metric, backend in keys if backend == "lexical"] == [
        "answer_correctness",
        "faithfulness",
        "hallucination_rate",
        "retrieval_quality",
    ]
    for figure in figures:
        assert figure.held_out or figure.low <= figure.value <= figure.high


def test_no_shipped_figure_comes_from_data_that_something_was_tuned_on(folder, tmp_path):
    from benchmarks.validity.held_out import held_out
    from benchmarks.validity.measure import NOT_TUNED

    run(tmp_path)
    content = (tmp_path / "src/agentunit/metrics/validity.json").read_bytes()
    figures = msgspec.json.decode(content, type=list[TrustFigure])
    assert {figure.backend for figure in figures if not figure.held_out} <= NOT_TUNED
    shown = {(figure.metric, figure.backend): figure.value for figure in figures}
    assert shown["answer_correctness", "local"] == 0.817
    assert shown["faithfulness", "local"] == shown["hallucination_rate", "local"] == 0.752
    assert all(figure.held_out == held_out()[0].date for figure in figures if figure.backend == "local")


def test_the_newest_held_out_figures_stand_on_the_page_and_each_score_has_one(folder, tmp_path):
    from benchmarks.validity.held_out import held_out, newest_trust

    run(tmp_path)
    page = (tmp_path / "docs/validity.md").read_text(encoding="utf-8")
    results = (tmp_path / "benchmarks/validity/RESULTS.md").read_text(encoding="utf-8")
    ours = "| `answer_correctness` v3 | local | agreement 0.817 (0.798 to 0.836) | NQ301; 1,488 rows |"
    assert ours in page
    assert "| `audio_transcription_quality` v1 | wer | pairwise agreement 0.81 |" in page
    earlier = "| `answer_correctness` v1 | local | agreement 0.82 | NQ301 |"
    assert earlier in results
    assert earlier not in page
    for measured in held_out():
        places = [(metric, each.backend) for each in measured.figures if each.trust for metric in each.metrics]
        assert len(places) == len(set(places))
    dates = [measured.date for measured in held_out()]
    assert dates == sorted(dates, reverse=True)
    shown = {(each.metric, each.backend): each for each in newest_trust()}
    assert shown["answer_correctness", "local"].version == "3"
    assert shown["answer_correctness", "local"].word == "useful"


def test_the_page_shows_every_figure_with_its_words(folder, tmp_path):
    from benchmarks.validity.__main__ import producers

    run(tmp_path)
    page = (tmp_path / "docs/validity.md").read_text(encoding="utf-8")
    results = (tmp_path / "benchmarks/validity/RESULTS.md").read_text(encoding="utf-8")
    assert (
        "| `faithfulness` | lexical | AUROC 0.500 (0.500 to 0.500) | mean of 2 sets, 48 cases "
        "| content-token precision 1.000 |" in page
    )
    assert "| **mean of 2 sets** | 48 |" in results
    assert "| other | 24 | 0.500 ▼ (0.500 to 0.500) |" in results
    assert "† `halueval_qa` is not in the mean" in results
    assert "| GPT-4, prompted | SummEdits | balanced accuracy | 0.821 | SummEdits paper |" in results
    for text in (page, results):
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert text.count("**Can be trusted for.**") == text.count("**Cannot be trusted for.**") == len(producers())
        for line in text.splitlines():
            assert not line.startswith("|") or line.endswith("|"), line


def test_the_table_is_printed_and_parts_of_it_write_nothing(folder, tmp_path, capsys):
    root = tmp_path / "repository"
    assert run(root, "--only", "faithfulness,retrieval_quality") == 0
    told = capsys.readouterr()
    table = [line.split() for line in told.out.splitlines()]
    assert table[0][:5] == ["metric", "backend", "data", "n", "statistic"]
    assert ["faithfulness", "lexical", "other", "24", "AUROC", "0.500", "▼"] in [line[:7] for line in table]
    assert {line[0] for line in table[1:]} == {"faithfulness", "hallucination_rate", "retrieval_quality"}
    assert "content-token precision 1.000, bigram precision 1.000" in told.out
    assert "validity: retrieval_quality (2 of 2) …" in told.err
    assert not root.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "faithfulnes"), "no family is called 'faithfulnes'; there are: answer_correctness, "),
        (("--only", "faithfulness", "--check"), "--check compares whole files"),
    ],
)
def test_options_that_make_no_sense(folder, tmp_path, capsys, arguments, words):
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path, *arguments)
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


def test_published_figures_stand_beside_the_same_statistic(folder):
    from benchmarks.validity.family import Family
    from benchmarks.validity.lines import lines_of
    from benchmarks.validity.measure import Figure, Scorer

    ours = Scorer("faithfulness", "metric", "lexical")
    plain = [Figure(Scorer(name, "baseline"), "faithbench", "AUROC", 9, value, None, None)
             for name, value in (("worse", 0.6), ("better", 0.7), ("unknown", None))]  # fmt: skip
    figures = [Figure(ours, "faithbench", each, 9, 0.5, 0.4, 0.6) for each in ("balanced accuracy", "AUROC")]
    family = Family("faithfulness", "", "", "", "", (), figures, [*figures, *plain], ())
    cut, ranked = lines_of(family, family.headline)
    assert (cut.others, cut.best_plain) == ("GPT-4o, prompted 0.562, HHEM-2.1 0.543", "–")
    assert (ranked.others, ranked.plain, ranked.shown) == (
        "–",
        ["better 0.700", "worse 0.600"],
        "0.500 (0.400 to 0.600)",
    )


def test_without_data_it_says_so_and_does_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AGENTUNIT_DATA", str(tmp_path / "nowhere"))
    assert run(tmp_path) == run(tmp_path, "--check") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "skipped, no labeled data here" in lines[0]
    assert list(tmp_path.iterdir()) == []


def test_data_that_cannot_be_read_is_one_line(folder, tmp_path, capsys):
    (folder / "dev" / "retrieval.jsonl.gz").write_bytes(b"not gzip")
    root = tmp_path / "repository"
    assert run(root) == 3
    assert "retrieval.jsonl.gz" in capsys.readouterr().err.splitlines()[-1]
    assert not root.exists()


def record(answer=None, expected=None, context=None, query=None):
    return Record(DatasetCase("q", query, expected_output=expected, context=context), outcome=answer)


@pytest.mark.parametrize(
    ("baseline", "of", "value"),
    [
        # Content words: paris, seine, rome; two of three are there.
        ("answer_words_in_context", record("Paris is on the Seine, not Rome", context=["PARIS!", "seine"]), 2 / 3),
        ("answer_words_in_context", record("It is.", context=["It is."]), None),
        ("answer_words_in_context", record(None, context=["Paris"]), None),
        ("question_words_in_context", record(query="Where is Paris, Texas?", context=["Paris"]), 1 / 2),
        # Pairs: paris is, is on, on rome; the last is not there, nor do pairs reach over passages.
        ("answer_bigrams_in_context", record("Paris is on Rome", context=["So PARIS is, on", "Rome"]), 2 / 3),
        ("answer_bigrams_in_context", record("Paris", context=["Paris"]), None),
        ("exact_match", record("The Nobel-Prize!", expected=["prize", "nobel prize"]), 1.0),
        ("exact_match", record("A Nobel prize winner", expected=["nobel prize"]), 0.0),
        ("token_f1", record("the cat ran", expected=["dog", "the cat"]), 0.8),  # P 2/3, R 1
        ("token_f1", record("…", expected="4"), None),
        ("containment", record("It was the Nobel-Prize.", expected=["nobel prize"]), 1.0),
        ("containment", record("Nobels prize", expected=["nobel prize"]), 0.0),
        ("containment", record("anything", expected=["The"]), 0.0),
        ("containment", record("anything"), None),
    ],
)
def test_baselines_by_hand(baseline, of, value):
    from benchmarks.validity import baselines

    assert getattr(baselines, baseline)(of) == (None if value is None else pytest.approx(value))


def test_published_figures_are_shares_with_a_source():
    from benchmarks.validity.family import published_figures

    rows = [row for family in ("faithfulness", "answer_correctness") for row in published_figures(family)]
    assert len(rows) == 26
    for row in rows:
        assert 0.0 < row.value <= (row.high or 1.0) <= 1.0
        assert row.source


@pytest.mark.skipif(
    "AGENTUNIT_DATA" not in os.environ, reason="set AGENTUNIT_DATA to the labeled data to check the committed figures"
)
def test_the_committed_files_are_what_the_data_says():
    assert run(ROOT, "--check") == 0


def test_two_scorers_are_compared_on_the_same_cases_only():
    from benchmarks.validity.baselines import ANSWER_WORDS_IN_CONTEXT
    from benchmarks.validity.measure import Scorer
    from benchmarks.validity.quality_figures import above_plain, unnumbered

    from agentunit.addons.review.labeling.scorer_agreement import ScoredRow

    ours, plain = Scorer("faithfulness", "metric", "local"), Scorer(ANSWER_WORDS_IN_CONTEXT.name, "baseline")
    right = [ScoredRow(number % 2, 0.1 + 0.8 * (number % 2), (number, f"text {number}")) for number in range(40)]
    # The rival ranks every case the other way round, but for two cases that it does not know.
    wrong = [row._replace(value=1.0 - row.value) for row in right[2:]]
    scored = {ours: {"news": right, "grades": [ScoredRow(0.4, 0.5, (0, None))]}, plain: {"news": wrong}}
    (figure,) = above_plain(scored, ANSWER_WORDS_IN_CONTEXT)
    assert (figure.dataset, figure.n, figure.value, figure.low, figure.high) == ("news", 38, 1.0, 1.0, 1.0)
    assert {row.group for row in unnumbered(scored)[ours]["news"]} == {f"text {number}" for number in range(40)}


def test_calibration_stands_on_the_page_for_each_size(folder, tmp_path):
    run(tmp_path)
    short = (tmp_path / "docs/validity.md").read_text(encoding="utf-8")
    assert "- `local-large`: 0.093 over all rows" in short
    page = (tmp_path / "benchmarks/validity/RESULTS.md").read_text(encoding="utf-8")
    assert "## Calibration of groundedness" in page
    assert "| set | supported | mean score, `local` | mean score, `local-large` |" in page
    assert "| begin_wow | 0.50 | 0.55 ‡ | – |" in page


def test_trust_says_what_answers_were_held_against():
    figure = TrustFigure("faithfulness", "local", "AUROC", 0.73, evidence="given context", mean_off=0.4)
    assert str(figure) == "useful, AUROC 0.73 on given context; mean off by up to 0.4"
    assert "(given context)" in figure.at_length()
