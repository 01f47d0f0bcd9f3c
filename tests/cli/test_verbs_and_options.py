"""How many verbs and options there are, and that the spellings of earlier versions still say the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest

from agentunit.cli.main import _FORMER_VERBS, _VERBS, cli

MOST_VERBS, MOST_OPTIONS, MOST_SHOWN = 15, 200, 12
RECORD = (
    '{"case": {"id": "q%d", "query": "Where is it?", "expected_output": "Oslo"},'
    ' "trace": {"metadata": {"cost": 0.5}}, "outcome": "Oslo, says a@example.com"}\n'
)


def options_of(help_text: str) -> list[str]:
    """The rows of a help page that begin with an option."""
    return [line for line in help_text.partition("Options:")[2].splitlines() if re.match(r"  -", line)]


@pytest.fixture
def here(invoke: Any) -> Any:
    Path("traces.jsonl").write_text("".join(RECORD % at for at in range(12)))
    cases = [json.loads(RECORD % at)["case"] for at in range(3)]
    Path("cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in cases))
    Path("spelled_agent.py").write_text("def answer(query): return 'Oslo'\n")
    Path("suite.yaml").write_text(
        "dataset: cases.jsonl\nagent: spelled_agent:answer\nmetrics: [exact_match]\ngates: ['exact_match >= 0.5']\n"
    )
    assert invoke("run", "suite.yaml", "--name", "main").exit_code == 0
    return invoke


def test_there_are_few_verbs_and_options(invoke: Any) -> None:
    assert len(_VERBS) <= MOST_VERBS
    assert not set(_VERBS) & set(_FORMER_VERBS)
    every = {verb: options_of(invoke(verb, "--help-all").stdout) for verb in _VERBS}
    assert sum(map(len, every.values())) <= MOST_OPTIONS
    for verb, options in every.items():
        shown = options_of(invoke(verb, "--help").stdout)
        assert len(shown) <= MOST_SHOWN, verb
        assert len(options) <= MOST_SHOWN or any("--help-all" in line for line in shown), verb


@pytest.mark.parametrize("verb", _VERBS)
def test_the_long_help_has_every_option_that_is_not_of_an_earlier_version(invoke: Any, verb: str) -> None:
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    rows = " ".join(options_of(invoke(verb, "--help-all").stdout)).split()
    for param in command.params:
        if isinstance(param, click.Option):
            long = [name for name in param.opts if name not in getattr(param, "former", ())][-1]
            assert (long in rows) is not param.hidden, long
    # What is named as worth showing first is there.
    assert getattr(command, "first", frozenset()) <= {name for param in command.params for name in param.opts}


# The hint, and the same said as it is spelled now.
FORMER_VERBS = [
    (("demo",), ("show", "demo"), "show demo"),
    (("gate",), ("show", "last", "--gate", "stored"), "show RUN --gate"),
    (("gate", "--", "main"), ("show", "main", "--gate", "stored"), "show RUN --gate"),
    (("gate", "last", "-g", "exact_match >= 2"), ("show", "last", "-g", "exact_match >= 2"), "show RUN --gate"),
    (("gate", "main", "--baseline", "main"), ("show", "main", "--baseline", "main"), "show RUN"),
    (("redact", "traces.jsonl", "--out", "-"), ("convert", "traces.jsonl", "--mask", "--out", "-"), "convert --mask"),
    (("redact", "--check", "traces.jsonl"), ("convert", "traces.jsonl", "--check"), "convert --mask"),
    (("validity", "main"), ("label", "main", "--measure"), "label --measure"),
    (("import", "nosuch.json"), ("init", "--from", "nosuch.json"), "init FOLDER --from FILE"),
]


@pytest.mark.parametrize(("former", "now", "hint"), FORMER_VERBS)
def test_a_former_verb_says_its_name_and_does_the_same(here: Any, former: Any, now: Any, hint: str) -> None:
    first, second = here(*former), here(*now)
    assert first.exit_code == second.exit_code
    assert re.sub(r"[\d.]+ m?s|[\d,]+/s", "", first.stdout) == re.sub(r"[\d.]+ m?s|[\d,]+/s", "", second.stdout)
    note, *others = first.stderr.splitlines()
    assert note.startswith(f"note: 'agentunit {former[0]}' is now 'agentunit {hint}")
    assert others == second.stderr.splitlines()
    assert f"\n  {former[0]} " not in here("--help").stdout


def test_what_was_imported_has_three_places_now(here: Any) -> None:
    assert here("export", "main", "--to", "run.json").exit_code == 0
    taken = here("import", "run.json", "--as", "copy")
    assert "imported as run copy" in taken.stdout
    assert "'agentunit runs --import FILE'" in taken.stderr
    Path("labels.csv").write_text("id,label\nq0,yes\nq1,no\n")
    labeled = here("import", "-m", "exact_match", "labels.csv", "--run", "main", "--rater", "ana")
    assert "2 labels of exact_match by ana" in labeled.stdout
    assert "'agentunit label RUN --labels FILE'" in labeled.stderr
    Path("tests.jsonl").write_text('{"input": "2 + 2?", "target": "4"}\n')
    assert here("import", "tests.jsonl", "--out", "evals", "--store", "other.db").exit_code == 0
    assert Path("evals/dataset.jsonl").exists()


def test_a_saved_demo_is_the_recording(here: Any) -> None:
    assert here("demo", "--save", "old.jsonl").exit_code == 0
    assert here("convert", "demo", "--out", "new.jsonl").exit_code == 0
    assert Path("old.jsonl").read_bytes() == Path("new.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("former", "now"),
    [
        (("show", "main", "--all"), ("show", "main", "--why")),
        (("show", "main", "q0", "--full"), ("show", "main", "q0", "--why")),
        (("show", "main", "q0", "--show-personal-data"), ("show", "main", "q0", "--unmasked")),
        (("compare", "main", "main", "--all"), ("compare", "main", "main", "--why")),
        (("show", "main", "-g", "exact_match >= 1", "--min-coverage", "1"), ("show", "main", "-g", "exact_match >= 1")),
        (("doctor", "traces.jsonl", "--all"), ("doctor", "traces.jsonl", "--why")),
    ],
)
def test_a_former_spelling_is_a_synonym(here: Any, former: Any, now: Any) -> None:
    first, second = here(*former), here(*now)
    assert (first.exit_code, first.stdout, first.stderr) == (second.exit_code, second.stdout, second.stderr)


def test_what_is_said_before_the_verb_holds_for_it(here: Any) -> None:
    assert here("export", "main", "--to", "run.json").exit_code == 0
    assert here("--store", "other.db", "runs", "--import", "run.json", "--as", "copy").exit_code == 0
    for words in (("--store", "other.db", "runs"), ("runs", "--store", "other.db")):
        assert "copy" in here(*words).stdout
    assert "copy" in here("runs", env={"AGENTUNIT_STORE": "other.db"}).stdout
    assert "copy" not in here("runs").stdout
    # After the verb goes before what stands before it, and that before the environment.
    assert "main" in here("--store", "other.db", "runs", "--store", ".agentunit/runs.db").stdout
    assert "copy" in here("--store", "other.db", "runs", env={"AGENTUNIT_STORE": "none.db"}).stdout


def test_every_run_of_a_matrix_gets_what_was_said_before_the_verb(here: Any) -> None:
    Path("media").mkdir()
    Path("spelled_agent.py").write_text("def answer(query, model): return 'Oslo'\n")
    done = here("--store", "other.db", "--media-root", "media", "run", "suite.yaml", "--set", "model=a,b")
    assert done.exit_code == 0, done.output
    assert len(json.loads(here("runs", "--json", "--store", "other.db").stdout)) == 2


def test_gates_kept_with_a_run_and_others_decide_together(here: Any) -> None:
    assert here("show", "main", "--gate", "stored").exit_code == 0
    both = here("show", "main", "--gate", "stored", "--gate", "exact_match <= 0.5", "--json")
    assert both.exit_code == 1
    assert [each["gate"]["operator"] for each in json.loads(both.stdout)["gates"]] == [">=", "<="]
    assert "decide on a whole run" in here("show", "main", "q0", "--gate", "stored").stderr
    assert "is compared with --baseline RUN" in here("show", "main", "--on", "exact_match").stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("convert", "traces.jsonl", "--out", "x.jsonl", "--keep", "email"), "--keep says how personal data is masked"),
        (("convert", "traces.jsonl", "--out", "x.jsonl", "--mask", "--to", "openai"), "mask to records first"),
        (("convert", "traces.jsonl", "--mask", "--to", "atif", "--out", "x.json"), "mask to records first"),
        (("convert", "traces.jsonl"), "give either --out FILE, to write there, or --check"),
        (("label", "main", "--precision", "0.9"), "--precision is about scores held against labels"),
        (("label", "main", "-m", "a", "-m", "b"), "labels are about one metric"),
        (("label",), "name the RUN whose answers are labeled"),
        (("label", "main", "--labels", "gone.csv"), "gone.csv: no such file"),
        (("init", "--from", "traces.jsonl", "--ci"), "leave out --yaml and --ci"),
        (("runs", "--as", "x"), "it goes with --import FILE"),
    ],
)
def test_what_does_not_go_together_is_refused(here: Any, words: Any, problem: str) -> None:
    found = here(*words)
    assert found.exit_code in (2, 3)
    assert problem in " ".join(found.stderr.split())
    assert not Path("x.jsonl").exists()
