from __future__ import annotations

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import agentunit
from agentunit.datasets.demo import demo_records
from agentunit.engine.scored_run import run_from_file, run_from_store
from agentunit.store.portable import export_run, import_run, read_portable
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
        store.add_record(header.id, position, 0, record, failed=position == 3, elapsed_s=0.5)
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
