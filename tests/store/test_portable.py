from __future__ import annotations

import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kept_records import add_record

import agentunit
from agentunit.datasets.demo import demo_records
from agentunit.engine.scoring.scored_run import run_from_file, run_from_store
from agentunit.store.portable import export_run, import_run, portable_extras, read_portable
from agentunit.store.runs import FIRST_AGAIN, StoredDecision
from agentunit.store.schema import StoreError
from agentunit.store.sqlite import Store


@pytest.fixture
def store(tmp_path: Path):
    with Store(tmp_path / "runs.db") as opened:
        yield opened


@pytest.fixture
def run(store: Store) -> str:
    settings = {"metrics": ["task_success", "cost"]}
    header = store.create_run("desk", agentunit_version="1", settings=settings, n_planned=65)
    records = list(demo_records())
    scored = agentunit.score(records, ["task_success", "cost"])
    for position, (record, case) in enumerate(zip(records, scored, strict=True)):
        add_record(store, header.id, position, 0, record, failed=position == 3, elapsed_s=0.5)
        store.add_scores(header.id, position, 0, case.scores)
    store.set_status(header.id, "finished", finished_at=header.created_at + 5)
    return header.id


@pytest.mark.parametrize("name", ["main.json", "main.jsonl.gz"])
def test_a_run_travels_and_comes_back_whole(store: Store, run: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert export_run(store, run, path) == 65
    assert (path.read_bytes()[:2] == b"\x1f\x8b") is name.endswith(".gz")
    with Store(tmp_path / "elsewhere.db") as elsewhere:
        header = import_run(elsewhere, path)
        assert header.is_foreign
        own = store.find_run(run)
        assert header == msgspec.structs.replace(own, settings={**own.settings, "foreign": True})
        assert list(elsewhere.records(run)) == list(store.records(run))
        assert list(elsewhere.scores(run)) == list(store.scores(run))


def test_a_file_is_as_good_as_the_store_for_deciding(store: Store, run: str, tmp_path: Path) -> None:
    export_run(store, run, tmp_path / "main.json")
    from_file, from_store = run_from_file(tmp_path / "main.json"), run_from_store(store, run)
    assert from_file.header.is_foreign
    assert not from_store.header.is_foreign
    assert replace(from_file, header=from_store.header) == from_store
    assert from_file.summary() == from_store.summary()
    assert [(row.metric, row.backend) for row in from_file.summary().metrics] == [
        ("task_success", "outcome"), ("task_success", "state"), ("cost", "recorded"),
    ]  # fmt: skip


def test_tries_again_decisions_and_history_travel_along(store: Store, run: str, tmp_path: Path) -> None:
    path = tmp_path / "main.json"
    export_run(store, run, path)
    assert set(json.loads(path.read_text().splitlines()[0])) == {"agentunit_run", "header"}
    assert portable_extras(path) == ([], {})
    (first, *_) = store.records(run)
    add_record(store, run, 0, FIRST_AGAIN, first.record, failed=True, elapsed_s=0.5)
    store.add_scores(run, 0, FIRST_AGAIN, store.scores_at(run, 0, 0))
    decided = StoredDecision(
        2.0, "run", "fail", "FAIL: 1 broken", msgspec.Raw(b'{"verdict":"fail","headline":"FAIL: 1 broken"}')
    )
    store.add_decision(run, decided)
    history = {"tries": {"demo": [3, 1]}}
    assert export_run(store, run, path, history=history) == 66
    from_file, from_store = run_from_file(path), run_from_store(store, run)
    assert (from_file.decisions, from_file.history) == ([decided], history)
    assert replace(from_file, header=from_store.header, history={}) == from_store
    assert [(row.position, row.repeat) for row in from_file.again_records] == [(0, FIRST_AGAIN)]
    assert set(from_file.again_metrics) == {"task_success", "cost"}
    with Store(tmp_path / "elsewhere.db") as elsewhere:
        taken = import_run(elsewhere, path, run_id="copy")
        assert (taken.n_done, taken.n_failed) == (65, 1)
        copy = run_from_store(elsewhere, "copy")
        assert (copy.again_records, copy.decisions, copy.history) == (from_file.again_records, [decided], history)
        # What a run was imported with leaves with it, in the same place.
        export_run(elsewhere, "copy", tmp_path / "again.json")
    assert portable_extras(tmp_path / "again.json") == ([decided], history)
    assert "history" not in read_portable(tmp_path / "again.json")[0].settings


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({"decisions": [{"decision": [1]}]}, r"a decision must be a JSON object; received b'\[1\]'"),
        ({"decisions": [{"headline": "x" * 3_000}]}, "headline of a decision must have at most 2000 characters"),
        ({"decisions": [{"made_at": -1.0}]}, "made_at must be seconds since 1970"),
        ({"decisions": [{}] * 101}, "a run has at most 100 decisions; received 101"),
        ({"history": []}, "history must be a JSON object"),
        ({"history": {"a": "x" * (1 << 25)}}, "history must have at most 32 MiB"),
    ],
)
def test_what_no_run_has_is_refused(store: Store, run: str, tmp_path: Path, extra: dict[str, Any], reason: str) -> None:
    path = tmp_path / "main.json"
    export_run(store, run, path)
    first, *cases = path.read_text().splitlines()
    usual = {"made_at": 1.0, "made_by": "run", "verdict": None, "headline": "", "decision": {}}
    if "decisions" in extra:
        extra = {"decisions": [{**usual, **each} for each in extra["decisions"]]}
    path.write_text("\n".join([json.dumps({**json.loads(first), **extra}), *cases]))
    with pytest.raises(StoreError, match=reason):
        run_from_file(path)


def test_a_run_that_is_there_already_is_not_overwritten(store: Store, run: str, tmp_path: Path) -> None:
    export_run(store, run, tmp_path / "main.json")
    with pytest.raises(StoreError, match="already; import it under another id"):
        import_run(store, tmp_path / "main.json")
    assert import_run(store, tmp_path / "main.json", run_id="copy").id == "copy"
    assert len(store.runs()) == 2


def test_of_two_that_import_the_same_run_one_is_told_so(
    store: Store, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_run(store, run, tmp_path / "main.json")
    together = threading.Barrier(2)

    def read_together(path: Path) -> object:
        read = read_portable(path)
        together.wait(60)
        return read

    monkeypatch.setattr("agentunit.store.portable.read_portable", read_together)

    def take_in(number: int) -> str:
        with Store(tmp_path / "elsewhere.db") as elsewhere:
            try:
                return import_run(elsewhere, tmp_path / "main.json").id
            except StoreError as error:
                return str(error)

    Store(tmp_path / "elsewhere.db").close()
    with ThreadPoolExecutor(2) as pool:
        found = sorted(pool.map(take_in, range(2)), key=len)
    assert found[0] == run
    assert "already; import it under another id" in found[1]


def test_levels_without_end_in_a_case_are_not_readable(store: Store, run: str, tmp_path: Path) -> None:
    export_run(store, run, tmp_path / "main.json")
    lines = (tmp_path / "main.json").read_bytes().splitlines()
    lines[1] = b'{"position": 0, "x": ' + b"[" * 20_000
    (tmp_path / "deep.json").write_bytes(b"\n".join(lines))
    with Store(tmp_path / "elsewhere.db") as elsewhere, pytest.raises(StoreError, match="line 2: not readable"):
        import_run(elsewhere, tmp_path / "deep.json")


@pytest.mark.parametrize(
    ("line", "written", "odd", "reason"),
    [
        (0, '"n_planned":', f'"n_planned":{10**30},"was":', "a whole number in it is larger than a store can hold"),
        (1, '"position":0', f'"position":{10**30}', "a whole number in it is larger than a store can hold"),
        (1, '"value":1.0', '"value":1e300', r"line 2: task_success must be below 1e\+140 in size"),
    ],
)
def test_numbers_that_no_run_has_are_refused(
    store: Store, run: str, tmp_path: Path, line: int, written: str, odd: str, reason: str
) -> None:
    export_run(store, run, tmp_path / "main.json")
    lines = (tmp_path / "main.json").read_text().splitlines()
    assert written in lines[line]
    lines[line] = lines[line].replace(written, odd, 1)
    (tmp_path / "odd.json").write_text("\n".join(lines))
    with Store(tmp_path / "elsewhere.db") as elsewhere:
        with pytest.raises(StoreError, match=reason):
            import_run(elsewhere, tmp_path / "odd.json")
        assert not list(elsewhere.runs())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not an exported run"),
        (b'{"case": {"id": "q1"}}\n', "is not an exported run"),
        (b"\x1f\x8b broken", "is not an exported run"),
        (b'{"agentunit_run": 1, "header": {"settings": ' + b'{"a":' * 20_000, "is not an exported run"),
    ],
)
def test_what_is_no_exported_run_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "main.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=reason):
        read_portable(path)
    with pytest.raises(StoreError, match="no such file"):
        read_portable(tmp_path / "nowhere.json")


def test_half_a_file_leaves_nothing_behind(store: Store, run: str, tmp_path: Path) -> None:
    export_run(store, run, tmp_path / "main.json.gz")
    half = gzip.decompress((tmp_path / "main.json.gz").read_bytes())[:-500]
    (tmp_path / "half.json").write_bytes(half)
    with Store(tmp_path / "elsewhere.db") as elsewhere:
        with pytest.raises(StoreError, match=r"half.json, line \d+: not readable"):
            import_run(elsewhere, tmp_path / "half.json")
        assert elsewhere.runs() == []


def test_an_export_that_fails_leaves_the_old_file(store: Store, run: str, tmp_path: Path) -> None:
    target = tmp_path / "main.json"
    target.write_text("the baseline of yesterday")
    with pytest.raises(StoreError):
        export_run(store, "no-such-run", target)
    assert target.read_text() == "the baseline of yesterday"
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".part")] == []


def test_an_imported_run_takes_the_place_of_its_date(store: Store, run: str, tmp_path: Path) -> None:
    export_run(store, run, tmp_path / "run.json")
    newer = store.create_run("today", agentunit_version="1", settings={}).id
    import_run(store, tmp_path / "run.json", run_id="copy")
    assert store.find_run("last").id == newer
    assert store.find_run("last~1").id in (run, "copy")


def test_a_score_whose_record_is_not_read_costs_the_others_nothing(store: Store, run: str, tmp_path: Path) -> None:
    """A run that is still being written may show a score of a record that came after the records were read."""
    read = [stored for stored in store.records(run) if stored.position != 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "records", lambda run_id: iter(read))
        assert export_run(store, run, tmp_path / "main.json") == 64
    cases = list(read_portable(tmp_path / "main.json")[1])
    assert [case.position for case in cases if not case.scores] == []
