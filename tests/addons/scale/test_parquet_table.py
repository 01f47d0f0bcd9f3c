from __future__ import annotations

import math
import random
import re
import subprocess
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as arrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from agentunit.addons.scale import parquet_process, table_reading
from agentunit.addons.scale._parquet_table import METADATA_KEY, TABLE_VERSION, TableFacts, TableWriter, new_header
from agentunit.addons.scale.table_reading import ScoreTableFile
from agentunit.core.results import InputError
from agentunit.engine.scoring.score_rows import COLUMNS, TableRow, is_table
from agentunit.formulas.statistics import LARGEST_MAGNITUDE
from agentunit.reports.reported_run import open_run_file
from agentunit.store.schema import StoreError

TEXTS = st.text(max_size=5)
LARGEST = math.nextafter(LARGEST_MAGNITUDE, 0.0)
NUMBERS = st.none() | st.floats(-LARGEST, LARGEST)


def row(position: int, metric: str | None = "cost", **cells: Any) -> TableRow:
    scored = {"status": "ok", "backend": "recorded", "version": "1", "elapsed_s": 0.1, "detail": '{"n": 1}'}
    facts = dict.fromkeys(COLUMNS) | {"run": "r", "position": position, "repeat": 1, "case_id": f"q{position}"}
    return TableRow(**(facts | {"metric": metric} | ({} if metric is None else scored) | cells))


def facts_of(**facts: Any) -> TableFacts:
    return TableFacts(**{"score_table": TABLE_VERSION, "header": new_header("scores", {}), **facts})


def written(path: Any, rows: list[TableRow], facts: TableFacts | None = None) -> Any:
    with open(path, "wb") as stream:
        writer = TableWriter(stream)
        writer.add(rows)
        writer.finish(facts or facts_of())
    return path


def rewrite(path: Any, change: Callable[[Any], Any], **options: Any) -> None:
    """What another program makes of a table, with its metadata."""
    metadata = {METADATA_KEY: parquet.read_metadata(path).metadata[METADATA_KEY.encode()]}
    parquet.write_table(change(parquet.read_table(path)).replace_schema_metadata(metadata), path, **options)


@settings(max_examples=25)
@given(st.lists(st.tuples(TEXTS, TEXTS, NUMBERS, TEXTS, st.none() | st.booleans()), max_size=6))
def test_what_is_written_is_read_back(tmp_path_factory, cells):
    rows = [
        row(place, case_id=case, metric=metric, value=value, reason=reason, agent_failed=failed, detail=reason)
        for place, (case, metric, value, reason, failed) in enumerate(cells)
    ]
    errors = [InputError("a.jsonl", 3, "not JSON")]
    path = written(tmp_path_factory.mktemp("t") / "a.parquet", rows, facts_of(n_input_errors=1, input_errors=errors))
    table = ScoreTableFile(path)
    assert list(table.rows()) == rows
    assert list(table.rows(details=False)) == [each._replace(detail=None) for each in rows]
    assert (table.facts.n_input_errors, table.facts.input_errors) == (1, errors)
    assert table.facts.header.is_foreign


def test_a_lone_surrogate_is_written_as_everywhere(tmp_path):
    path = written(tmp_path / "a.parquet", [row(0, case_id="a\ud800")])
    assert next(ScoreTableFile(path).rows()).case_id == "a?"


def test_rows_of_one_case_from_several_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("agentunit.addons.scale._parquet_table._ROWS_AT_ONCE", 1)
    monkeypatch.setattr("agentunit.addons.scale._parquet_table._DETAIL_BYTES_A_GROUP", 1)
    with open(tmp_path / "a.parquet", "wb") as stream:
        writer = TableWriter(stream)
        for place in range(5):
            writer.add([row(place, case_id="twice" if place in (1, 4) else "once")])
        writer.finish(facts_of())
    assert parquet.read_metadata(tmp_path / "a.parquet").num_row_groups == 5
    found = ScoreTableFile(tmp_path / "a.parquet").rows(case_ids=["twice"])
    assert [each.position for each in found] == [1, 4]


def test_a_table_without_its_end_is_none(tmp_path):
    with open(tmp_path / "a.parquet", "wb") as stream, TableWriter(stream) as writer:
        writer.add([row(0)])
    assert is_table(tmp_path / "a.parquet")
    with pytest.raises(StoreError, match="is not a score table that can be read"):
        ScoreTableFile(tmp_path / "a.parquet")


def changed(column: str, values: list[Any], kind: Any = None) -> Any:
    def change(table: Any) -> Any:
        place = table.schema.get_field_index(column)
        return table.set_column(place, column, arrow.array(values, kind or table.schema.field(column).type))

    return change


HOSTILE = {
    "no column": (lambda table: table.drop_columns(["value"]), "the column value is missing"),
    "wrong type": (changed("value", ["a", "b"], arrow.string()), "the column value must be float64; received string"),
    "numbers as text": (changed("status", [1, 2], arrow.int64()), "the column status must be string; received int64"),
    "nested": (
        changed("detail", [["a"], []], arrow.list_(arrow.string())),
        "the column detail must be string; received list",
    ),
    "no position": (changed("position", [None, 1]), "position must not be null"),
    "position below 0": (changed("position", [-1, 1]), "position counts from 0; received -1"),
    "repeat below 1": (changed("repeat", [0, 1]), "repeat counts from 1; received 0"),
    "no backend": (changed("backend", ["a", None]), "backend must not be null where there is a metric"),
    "a status of its own": (changed("status", ["ok", "great\x1b[31m"]), "a status must be error, informational"),
    "not a number": (changed("value", [float("nan"), 1.0]), "value must be a finite number or null"),
    "infinite": (changed("amount", [None, float("inf")]), "amount must be a finite number or null"),
    "out of order": (lambda table: table.take([1, 0]), "rows must be in the order of position and repeat"),
    "twice": (lambda table: table.take([0, 0]), "has two scores of 'cost'"),
    "two cases": (changed("position", [1, 1]), "two cases have position 1: 'q0' and 'q1'"),
    "a column twice": (lambda table: table.append_column("value", table["value"]), "the column value is missing, or"),
}


@pytest.mark.parametrize(("change", "message"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_table_is_refused_in_one_line(tmp_path, change, message):
    written(tmp_path / "a.parquet", [row(0), row(1)])
    rewrite(tmp_path / "a.parquet", change)
    with pytest.raises(StoreError, match=re.escape(message)) as refused:
        list(ScoreTableFile(tmp_path / "a.parquet").rows())
    assert str(refused.value).isprintable()


HEADER = msgspec.to_builtins(new_header("scores", {}))
METADATA = {
    "none": (None, "is a Parquet file, but no score table of AgentUnit"),
    "no JSON": (b"\xff\xfe", "is not a score table that can be read"),
    "another shape": (b"[]", "Expected `object`, got `array`"),
    "no header": (b'{"score_table": 1}', "missing required field `header`"),
    "a newer version": (msgspec.json.encode({"score_table": 2, "header": HEADER}), "newer AgentUnit: upgrade"),
    "no version": (msgspec.json.encode({"score_table": -1, "header": HEADER}), "must be 1; received -1"),
    "no date": (
        msgspec.json.encode({"score_table": 1, "header": HEADER | {"created_at": 1e300}}),
        "created_at must be seconds since 1970; received 1e+300",
    ),
    **{
        f"settings: {name}": (
            msgspec.json.encode({"score_table": 1, "header": HEADER | {"settings": {name: value}}}),
            f"at `$.{name}",
        )
        for name, value in {
            "metrics": 5,
            "metric_infos": [1],
            "gates": [1],
            "users": 5,
            "dataset_fingerprint": [],
        }.items()
    },
    "no count": (
        msgspec.json.encode({"score_table": 1, "header": HEADER, "n_input_errors": -3}),
        "a count must not be negative",
    ),
}


@pytest.mark.parametrize(("metadata", "message"), METADATA.values(), ids=METADATA)
def test_metadata_that_no_run_has_is_refused(tmp_path, metadata, message):
    written(tmp_path / "a.parquet", [row(0)])
    table = parquet.read_table(tmp_path / "a.parquet")
    said = {} if metadata is None else {METADATA_KEY: metadata}
    parquet.write_table(table.replace_schema_metadata(said), tmp_path / "a.parquet")
    with pytest.raises(StoreError, match=re.escape(message)):
        ScoreTableFile(tmp_path / "a.parquet")


def test_damaged_bytes_are_an_error_or_a_table(tmp_path):
    whole = written(tmp_path / "a.parquet", [row(place) for place in range(50)]).read_bytes()
    chance = random.Random(19)
    refused = []
    for _ in range(150):
        damaged = bytearray(whole[: chance.choice([len(whole), chance.randrange(len(whole))])])
        for _ in range(chance.choice([1, 3])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        (tmp_path / "b.parquet").write_bytes(damaged)
        try:
            list(ScoreTableFile(tmp_path / "b.parquet").rows())
        except StoreError as error:
            refused.append(str(error))
    assert len(refused) > 75
    assert all(map(str.isprintable, refused))


def test_a_small_file_does_not_become_endless_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(table_reading, "_BYTES_A_ROW", 1 << 17)
    written(tmp_path / "a.parquet", [row(place) for place in range(600)])
    with pytest.raises(StoreError, match="AGENTUNIT_MAX_EXPANSION raises this limit"):
        list(ScoreTableFile(tmp_path / "a.parquet").rows())


def test_a_long_text_in_every_row_is_one_text(tmp_path):
    written(tmp_path / "a.parquet", [row(place) for place in range(300)])
    rewrite(tmp_path / "a.parquet", changed("detail", ["x" * 100_000] * 300), use_dictionary=True)
    assert len({id(each.detail) for each in ScoreTableFile(tmp_path / "a.parquet").rows()}) == 1


def test_a_column_that_is_too_long_is_refused(tmp_path, monkeypatch):
    written(tmp_path / "a.parquet", [row(0)])
    monkeypatch.setenv("AGENTUNIT_MAX_FILE_MB", "0.00001")
    with pytest.raises(StoreError, match="AGENTUNIT_MAX_FILE_MB raises this limit"):
        list(ScoreTableFile(tmp_path / "a.parquet").rows())


def test_columns_of_a_later_version_are_left_alone(tmp_path):
    written(tmp_path / "a.parquet", [row(0)])
    rewrite(tmp_path / "a.parquet", lambda table: table.append_column("cluster", arrow.array(["x"])))
    assert list(ScoreTableFile(tmp_path / "a.parquet").rows()) == [row(0)]


def test_the_schema_is_the_documented_one():
    # docs/records.md has this table: a change of it is a new version.
    assert COLUMNS == (
        "run",
        "position",
        "repeat",
        "case_id",
        "metric",
        "value",
        "status",
        "backend",
        "version",
        "reason",
        "amount",
        "elapsed_s",
        "agent_failed",
        "agent_elapsed_s",
        "detail",
        "why",
    )
    assert (TABLE_VERSION, METADATA_KEY) == (1, "agentunit")


def test_no_file_is_no_table(tmp_path):
    assert not is_table(tmp_path / "none.parquet")
    with pytest.raises(StoreError, match="no such file"):
        ScoreTableFile(tmp_path / "none.parquet")


@pytest.mark.parametrize("column", ["value", "amount", "elapsed_s", "agent_elapsed_s"])
def test_a_number_that_nothing_can_add_up_is_refused(tmp_path, column):
    path = written(tmp_path / "a.parquet", [row(0, value=1.0), row(1, **{"value": 1.0, column: LARGEST_MAGNITUDE})])
    with pytest.raises(StoreError, match=rf"a.parquet .*{column} must be below 1e\+140 in size; received 1e\+140"):
        list(ScoreTableFile(path).rows())


def test_a_table_is_decoded_in_another_process(tmp_path, monkeypatch):
    """One changed byte of a file may end the process that decodes it: that costs the file, and nothing else."""
    path = written(tmp_path / "a.parquet", [row(0), row(1)])

    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("a file of foreign origin is decoded here")

    monkeypatch.setattr(parquet, "ParquetFile", refuse)
    table = ScoreTableFile(path)
    assert [each.case_id for each in table.rows()] == ["q0", "q1"]
    assert [each.case_id for each in table.rows(case_ids=["q1", "q7"], details=False)] == ["q1"]
    dies = parquet_process._START.replace("serve()", "import os; os.abort()")
    monkeypatch.setattr(parquet_process, "_START", dies)
    with pytest.raises(StoreError, match=r"a.parquet is not a score table that can be read \(.*exit code -6"):
        list(table.rows())
    with pytest.raises(StoreError, match="exit code -6"):
        ScoreTableFile(path)


def test_cases_of_a_table_are_read_together(tmp_path, monkeypatch):
    path = written(tmp_path / "a.parquet", [row(number, value=number / 9) for number in range(9)])
    reported = open_run_file(path)
    started: list[Any] = []
    start = subprocess.Popen

    def count(*args: Any, **options: Any) -> Any:
        started.append(args)
        return start(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", count)
    assert list(reported.cases_of(["q3", "q1"])) == ["q1", "q3"]
    assert [case.scores["cost"].value for case in reported.case("q2")] == [2 / 9]
    assert len(started) == 2
