"""``--jobs`` of every verb that has it: what several processes write and print is what one does."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from agentunit import installation
from agentunit.addons.scale.parallel._units_in_order import UnitsInOrder

CORPUS = Path(__file__).parents[2] / "corpus"
NAMES = ["Mia Li", "Noah Brown", "Olivia Smith", "James Miller"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setitem(UnitsInOrder.__init__.__kwdefaults__, "block_bytes", 1500)


def records(path: str, n: int = 60) -> None:
    lines = []
    for number in range(n):
        name = NAMES[number * 7 % 4]
        mail = f"{name.split()[0].lower()}{number % 5}@example.com"
        case = {"id": f"q{number}", "query": f"Write to {name} at {mail}, phone 555-010-4{number % 9}77."}
        trace = {"metadata": {"cost": number / 7, "epsilon": 0.01, "session_id": f"s{number // 2}"}}
        outcome = f"Dear {name.split()[0]}, mail {mail} or <NAME_3> it."
        lines.append(json.dumps({"v": 1, "case": case, "trace": trace, "outcome": outcome}))
    lines[n // 2] = "{bad"
    Path(path).write_text("\n".join([*lines, "{bad"]))


REWRITING = {
    "redact": ("convert", "--mask", "runs.jsonl", "--mapping", "{}.json", "--out", "{}.jsonl"),
    "redact with a salt": ("convert", "--mask", "runs.jsonl", "--salt", "secret", "--out", "{}.jsonl"),
    "convert": ("convert", "runs.jsonl", str(CORPUS / "otlp-json"), "--out", "{}.jsonl"),
    "convert to ATIF": ("convert", "runs.jsonl", "--to", "atif", "--out", "{}.jsonl.gz"),
    "convert sessions": ("convert", "runs.jsonl", "--group-by", "session", "--out", "{}.jsonl"),
}


@pytest.mark.parametrize("arguments", REWRITING.values(), ids=REWRITING.keys())
def test_rewritten_records_are_the_same(invoke, arguments):
    records("runs.jsonl")
    alone = invoke(*(each.format("here") for each in arguments))
    together = invoke(*(each.format("there") for each in arguments), "--jobs", "2")
    assert alone.exit_code == together.exit_code == 3, together.output
    assert together.output.replace("there", "here") == alone.output
    for path in Path().glob("here*"):
        other = Path(path.name.replace("here", "there"))
        if path.suffix == ".gz":
            continue  # the time of writing stands in it
        assert other.read_bytes() == path.read_bytes()
    assert not list(Path().glob("*.part"))


SCORING = {
    "files": ("score", "runs.jsonl", "-m", "exact_match,cost"),
    "a stateful metric": ("score", "runs.jsonl", "-m", "exact_match,privacy_budget"),
    "sessions": ("score", "runs.jsonl", "-m", "cost", "--group-by", "session"),
    "slices": ("score", "runs.jsonl", "-m", "cost", "--by", "metadata.none"),
    "nothing": ("score", "empty.jsonl", "-m", "cost"),
}


@pytest.mark.parametrize("arguments", SCORING.values(), ids=SCORING.keys())
def test_scores_are_the_same(invoke, arguments):
    records("runs.jsonl")
    Path("empty.jsonl").touch()
    printed = []
    for jobs in ((), ("--jobs", "2"), ("--jobs", "auto")):
        result = invoke(*arguments, *jobs, "--json", "--errors", "errors.txt", "--out", "scores.jsonl")
        data = json.loads(result.stdout)
        del data["created_at"], data["summary"]["elapsed_s"]
        for row in data["summary"]["metrics"]:
            del row["elapsed_s"]
        lines = Path("scores.jsonl").read_bytes() if data["summary"]["n_cases"] else None
        printed.append((result.exit_code, data, result.stderr, Path("errors.txt").read_bytes(), lines))
    assert printed[1] == printed[0]
    assert printed[2] == printed[0]


def test_standard_input_and_validity_take_several_processes(invoke):
    records("runs.jsonl", 40)
    Path("labels.csv").write_text("id,label\n" + "".join(f"q{n},{n % 3 > 0}\n" for n in range(40)))
    for command in (
        ("score", "-", "-m", "cost", "--out", "-"),
        ("label", "--measure", "-", "--labels", "labels.csv", "-m", "cost"),
    ):
        alone, together = (invoke(*command, *jobs, input=Path("runs.jsonl").read_bytes()) for jobs in ((), ("-j", "2")))
        assert together.stdout == alone.stdout
        assert together.exit_code == alone.exit_code == 3


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "1.5"])
def test_a_number_of_processes_that_is_none_is_refused(invoke, jobs):
    records("runs.jsonl")
    result = invoke("score", "runs.jsonl", "--jobs", jobs)
    assert result.exit_code == 2
    assert "must be a number of processes, or auto" in result.stderr


def test_an_engine_is_named_and_installed(invoke, monkeypatch):
    records("runs.jsonl", 4)
    for engine in ("spark", "ray://", "ray:/head"):
        result = invoke("score", "runs.jsonl", "--engine", engine)
        assert (result.exit_code, "must be ray, or ray://HOST:PORT" in result.stderr) == (2, True)
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    result = invoke("score", "runs.jsonl", "--engine", "ray")
    assert (result.exit_code, "needs the extra ray: pip install" in result.stderr) == (2, True)


def test_what_is_read_in_order_is_scored_here_whatever_the_engine(invoke, monkeypatch):
    records("runs.jsonl", 6)
    monkeypatch.setattr(installation, "find_spec", lambda name: name)
    alone = invoke("score", "runs.jsonl", "-m", "privacy_budget", "--out", "-")
    here = invoke("score", "runs.jsonl", "-m", "privacy_budget", "--out", "-", "--engine", "ray")
    assert here.stdout == alone.stdout
    assert "--engine: these records can only be read in order" in here.stderr


def test_resuming_needs_a_place(invoke):
    records("runs.jsonl")
    result = invoke("score", "runs.jsonl", "--jobs", "2", "--resume")
    assert result.exit_code == 2
    assert "--jobs and --out FILE (no URL), or with --engine" in result.stderr
    alone = invoke("score", "runs.jsonl", "--out", "mine.jsonl", "--resume")
    assert alone.exit_code == 2
    assert "'agentunit score runs.jsonl --jobs auto --out mine.jsonl'" in alone.stderr


def test_resuming_what_is_read_in_order_says_that_it_starts_over(invoke):
    records("runs.jsonl")
    result = invoke("score", "runs.jsonl", "-m", "privacy_budget", "--jobs", "2", "--out", "scores.jsonl", "--resume")
    assert "note: --resume: this process reads all records in order, and starts over" in result.stderr


@pytest.mark.parametrize("out", ["scores.jsonl", "scores.parquet", "memory://scores.jsonl"])
def test_what_cannot_be_resumed_leaves_nothing(invoke, tmp_path, monkeypatch, out):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    records("runs.jsonl")
    before = set(Path().iterdir()) | set(tmp_path.iterdir())
    refused = invoke("score", "runs.jsonl", "-m", "cost", "--jobs", "2", "--resume", "--out", out)
    assert refused.exit_code == 2
    assert ("no URL" if "://" in out else "nothing to continue") in refused.output
    assert set(Path().iterdir()) | set(tmp_path.iterdir()) == before
    del refused
    gc.collect()  # a file that was not closed is told now, and fails this test


@pytest.mark.parametrize("out", ["scores.jsonl", "scores.parquet"])
def test_an_output_that_was_not_written_is_no_next_step(invoke, out):
    Path("other.jsonl").write_text('{"a": 1}\n')
    nothing = invoke("score", "other.jsonl", "-m", "cost", "--out", out)
    assert nothing.exit_code == 3
    assert not Path(out).exists()
    assert out not in nothing.output


def test_a_plan_tells_records_time_and_what_a_share_would_tell(invoke):
    records("runs.jsonl", 5000)
    n_bytes = Path("runs.jsonl").stat().st_size
    result = invoke("score", "runs.jsonl", "-m", "cost,exact_match", "--plan", "--json")
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert (plan["n_files"], plan["n_bytes"], plan["judge"]) == (1, n_bytes, None)
    assert plan["n_records"] == pytest.approx(4999, rel=0.02)
    assert plan["cpu_hours"] == pytest.approx(plan["cpu_s_a_record"] * plan["n_records"] / 3600)
    (cost,) = [each for each in plan["metrics"] if each["metric"] == "cost"]
    one, ten, hundred = cost["half_widths"]
    # Costs are 0, 1/7, 2/7, … 4999/7: their standard deviation is 4999/7/√12.
    assert hundred == pytest.approx(1.96 * 4999 / 7 / 12**0.5 / 4999**0.5, rel=0.1)
    assert (one, ten) == (pytest.approx(10 * hundred), pytest.approx(hundred * 10**0.5))
    assert not Path("scores.jsonl").exists()
    shown = invoke("score", "runs.jsonl", "-m", "cost", "--plan", "--jobs", "4").stdout
    assert "records in 1 file of" in shown
    assert "--jobs 4: " in shown
