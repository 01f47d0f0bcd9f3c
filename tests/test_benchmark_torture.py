"""The torture finds what is lost, and says so; whether something is lost here is ``make torture``'s to say."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path

import pytest
from benchmarks.torture import growth, hostile_files, hostile_senders, named_modules, page
from benchmarks.torture.children import Child, wait_for
from benchmarks.torture.fuzz.mutate import mutated
from benchmarks.torture.fuzz.targets import TARGETS, Target, prepare_folder
from benchmarks.torture.ledger import Counts, Ledger, Lost, Skipped
from benchmarks.torture.scenarios import Scenario
from benchmarks.torture.strikes import kill, strike_often


def ledger(**options: object) -> Ledger:
    return Ledger(7, Counts.of(full=False), say=lambda line: None, **options)  # type: ignore[arg-type]


def test_a_row_is_lost_by_a_loss_and_by_a_fault_of_the_torture_itself_but_not_by_what_is_missing() -> None:
    kept = ledger()
    for name, error in (("lost", Lost("a case")), ("broken", KeyError("x")), ("skipped", Skipped("no gRPC"))):
        with kept.trying("kill -9", name):
            raise error
    with kept.trying("kill -9", "idle"):
        pass
    with kept.trying("kill -9", "fine") as trial:
        assert trial is not None
        trial.times = 3
    assert [row.tried for row in kept.failed] == ["lost", "broken", "idle"]
    assert [row.tried for row in kept.passed] == ["fine"]
    shown = page.table(kept)
    assert "a case" in shown
    assert "skipped: no gRPC" in shown


def test_one_row_can_be_tried_alone_with_the_same_random_numbers() -> None:
    alone = ledger(only=("fuzz:gate",))
    assert alone.wants("fuzz", "gate expressions")
    assert not alone.wants("fuzz", "datasets")
    assert not alone.wants("kill -9")
    assert alone.chance("fuzz", "gate").random() == ledger().chance("fuzz", "gate").random()
    assert "--seed 7 --only 'fuzz:gate expressions'" in alone.again("fuzz", "gate expressions")


def test_the_table_takes_its_place_and_its_summary_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAGE", "RESULTS"):
        copy = tmp_path / f"{name}.md"
        copy.write_text(getattr(page, name).read_text(encoding="utf-8"), encoding="utf-8")
        monkeypatch.setattr(page, name, copy)
    for tried in ("first", "second"):
        kept = ledger()
        with kept.trying("fuzz", tried):
            pass
        page.write_page(kept, "1.0", "short form")
    shown, results = page.PAGE.read_text(encoding="utf-8"), page.RESULTS.read_text(encoding="utf-8")
    assert "| second " in results
    assert "first" not in results
    assert "| fuzzed inputs | 1 | " in shown
    assert "| hostile agents | 6 |" not in shown
    assert shown.startswith("# Reliability")
    assert "## What is not promised" in shown


class Forgetful(Scenario):
    """Work that counts its starts: what it ends with depends on how often it was killed."""

    name = "forgetful"

    def prepare(self, folder: Path) -> None:
        (folder / "starts").write_text("")

    def start(self, folder: Path) -> Child:
        code = "import time; open('starts', 'a').write('x'); open('begun', 'w'); time.sleep(0.3)"
        (folder / "begun").unlink(missing_ok=True)
        return Child([sys.executable, "-c", code], folder)

    def has_begun(self, folder: Path) -> bool:
        return (folder / "begun").exists()

    def check(self, folder: Path) -> None:
        pass

    def result(self, folder: Path) -> object:
        return (folder / "starts").read_text()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="children are found in /proc")
def test_work_that_ends_otherwise_after_a_kill_is_a_loss() -> None:
    kept = ledger()
    with kept.trying("kill -9", "forgetful") as trial:
        assert trial is not None
        strike_often(trial, Forgetful(), 1, [kill])
    [row] = kept.failed
    assert "the result is another: xx in place of x" in row.lost[0]
    assert row.times == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="children are found in /proc")
def test_a_process_that_a_child_leaves_in_another_session_is_found_and_ended(tmp_path: Path) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)"
    child = Child([sys.executable, "-c", code], tmp_path)
    wait_for(lambda: child.is_over, "the child goes on")
    assert len(child.left()) == 1
    child.clear()
    wait_for(lambda: not child.left(), "the process is still there")


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_target_reads_inputs_near_its_seeds(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare_folder()
    seeds, chance = target.seeds(), random.Random(f"5/{target.name}")
    n_inputs = 5 if target.name in ("command lines", "records scored by every metric") else 40
    seen = [target.read(target.make(chance, seeds)) for _ in range(n_inputs)]
    assert len(set(seen)) > 1


def test_the_same_seed_makes_the_same_inputs() -> None:
    seeds = [b'{"a": [1, {"b": null}]}', b"x,y\n1,2\n"]
    first, second = random.Random(3), random.Random(3)
    made = [mutated(first, seeds) for _ in range(200)]
    assert made == [mutated(second, seeds) for _ in range(200)]
    assert len(set(made)) > 150


def test_a_forged_run_names_a_module_in_one_place(tmp_path: Path) -> None:
    lines = [{"header": {"settings": {"gates": ["a >= 1"], "tags": {}}}}, {"scores": {"a": {"value": None}}}]
    places = list(named_modules._places(lines))
    assert places == [
        (0, "header", "settings", "gates", 0),
        (0, "header", "settings", "tags"),
        (1, "scores", "a", "value"),
    ]
    for place, forged in named_modules._forged(lines, places, random.Random(2), 80):
        assert "torture_canary" in json.dumps(forged), place
    assert "torture_canary" not in json.dumps(lines)


def test_a_module_that_is_imported_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(named_modules, "_OF_FILES", ())
    monkeypatch.setattr(named_modules, "_OF_STORES", (["runs"],))
    (tmp_path / "base.db").touch()
    monkeypatch.setattr(named_modules, "CliRunner", lambda **settings: Importing(tmp_path / "imported"))
    assert named_modules._try([{}], []) == "'runs' imported the module that is named here"


class Importing:
    """Commands that import what they are given."""

    exception = None
    exit_code = 0

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def invoke(self, *_: object) -> Importing:
        self._canary.touch()
        return self


def test_time_that_grows_with_the_square_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    def quadratic(n: int) -> None:
        for _ in range(n):
            sum(range(n))

    growth._measure("square", quadratic, 400)
    growth._measure("line", lambda n: quadratic(400) if n == 400 else [quadratic(400) for _ in range(4)], 400)
    square, line = [json.loads(each)["growth"] for each in capsys.readouterr().out.splitlines()]
    assert line < growth.MOST_GROWTH < square


def test_requests_hold_what_must_not_leave_and_are_dense() -> None:
    for number in range(20):
        headers, body = hostile_senders._personal(random.Random(number), number)
        plain = gzip.decompress(body) if "Content-Encoding" in headers else body
        assert any(secret in plain for secret in hostile_senders._SECRETS[-3:]) or b"536221234" in plain
        assert b"mia.lindqvist" in plain
    for kind in hostile_senders._DENSE:
        _, body = hostile_senders._dense(kind, 100_000)
        assert len(body) < 2_000
        assert len(gzip.decompress(body)) >= 100_000


def test_literals_are_as_long_as_they_are_said_to_be() -> None:
    made = {hostile_files.literals(random.Random(seed)) for seed in range(200)}
    assert len(made) > 30
    assert max(map(len, made)) <= 80_000
