"""Tables as datasets: CSV, TSV and Parquet, what their columns mean, and what a damaged one says."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import time
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from agentunit.core.case import DatasetCase
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.installation import install_command


@pytest.fixture
def load(tmp_path: Path):
    def written_and_loaded(content: str | bytes, name: str = "cases.csv") -> list[DatasetCase]:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return load_dataset(name, folder=tmp_path)

    return written_and_loaded


@pytest.fixture
def load_rows(tmp_path: Path):
    def written_and_loaded(rows: list[dict]) -> list[DatasetCase]:
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "cases.parquet")
        return load_dataset("cases.parquet", folder=tmp_path)

    return written_and_loaded


BOTH = [DatasetCase("a", "2 + 2?", "4"), DatasetCase("b", "3, or 4?", "3")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cases.csv", 'id,query,expected_output\na,2 + 2?,4\nb,"3, or 4?",3\n'),
        ("cases.csv", 'ID,Question,Expected Output\r\na,2 + 2?,4\r\nb,"3, or 4?",3'),
        ("cases.csv", '\ufeffid, input ,answer\na,2 + 2?,4\n\nb,"3, or 4?",3\n,,\n \n'),
        ("cases.csv", "case_id;question;reference\na;2 + 2?;4\nb;3, or 4?;3\n"),
        ("cases.csv", "id\tquery\texpected\na\t2 + 2?\t4\nb\t3, or 4?\t3\n"),
        ("cases.tsv", "id\tquery\texpected\na\t2 + 2?\t4\nb\t3, or 4?\t3\n"),
        ("old-mac.csv", 'id,query,expected\ra,2 + 2?,4\rb,"3, or 4?",3\r'),
        ("unicode.tsv", "id\tquery\texpected\na\t2 + 2?\t4\nb\t3, or 4?\t3\n".encode("utf-16")),
    ],
)
def test_every_spelling_of_a_table_gives_the_same_cases(load, name, content):
    assert load(content, name) == BOTH
    raw = content.encode() if isinstance(content, str) else content
    assert load(gzip.compress(raw), name + ".gz") == BOTH


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("query", '"two\nlines"', DatasetCase("case-1", "two\nlines")),
        ("query", '"said ""no"""', DatasetCase("case-1", 'said "no"')),
        ("query", "  spaced ", DatasetCase("case-1", "  spaced ")),
        ("id,query", " a ,q", DatasetCase("a", "q")),
        ("id,query", "007,q", DatasetCase("007", "q")),
        ("query,context", "q,one passage", DatasetCase("case-1", "q", context=["one passage"])),
        ("query,context", 'q,"[""one"", ""two""]"', DatasetCase("case-1", "q", context=["one", "two"])),
        # Near misses: text that only begins like a list.
        ("query,context", "q,[1] Smith says so", DatasetCase("case-1", "q", context=["[1] Smith says so"])),
        ("query,context", "q,[1]", DatasetCase("case-1", "q", context=["[1]"])),
        ("query,context", "q,[]", DatasetCase("case-1", "q", context=["[]"])),
        ("query,expected", 'q,"[""4"", ""four""]"', DatasetCase("case-1", "q", ["4", "four"])),
        ("query,expected", "q,42", DatasetCase("case-1", "q", "42")),
        ("query,expected", 'q,"{""a"": 1}"', DatasetCase("case-1", "q", '{"a": 1}')),
        ("query,tools", 'q,"search, book"', DatasetCase("case-1", "q", tools=["search", "book"])),
        ("query,tools", 'q,"[{""name"": ""search""}]"', DatasetCase("case-1", "q", tools=[{"name": "search"}])),
        ("query,expected", "q,", DatasetCase("case-1", "q")),
        ("query,metadata.level", "q,easy", DatasetCase("case-1", "q", metadata={"level": "easy"})),
        ("query,Metadata.Level", "q,easy", DatasetCase("case-1", "q", metadata={"Level": "easy"})),
        ("query,metadata.a.b", "q,1", DatasetCase("case-1", "q", metadata={"a.b": "1"})),
        ("query,Team", "q,red", DatasetCase("case-1", "q", metadata={"Team": "red"})),
        ("query,Team", "q,", DatasetCase("case-1", "q")),
        ("query,contains", 'q,"[""a"", ""b""]"', DatasetCase("case-1", "q", metadata={"contains": ["a", "b"]})),
        ("query,state", 'q,"{""n"": 1}"', DatasetCase("case-1", "q", metadata={"state": {"n": 1}})),
        ("query,state", "q,{n: 1}", DatasetCase("case-1", "q", metadata={"state": "{n: 1}"})),
        ("query,zip", "q,01234", DatasetCase("case-1", "q", metadata={"zip": "01234"})),
        ("query,metadata", 'q,"{""n"": 1}"', DatasetCase("case-1", "q", metadata={"n": 1})),
        ("expected,answer,query", "a,b,q", DatasetCase("case-1", "q", "a", metadata={"answer": "b"})),
        ("expected,answer,query", ",b,q", DatasetCase("case-1", "q", "b")),
        # A data frame writes its index into a column without a name.
        (",query", "0,q", DatasetCase("case-1", "q", metadata={"column_1": "0"})),
        ("id,metadata.image_path", "a,x.png", DatasetCase("a", metadata={"image_path": "x.png"})),
    ],
)
def test_what_columns_mean(load, header, row, expected):
    assert load(f"{header}\n{row}\n") == [expected]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("query,id\nq\n", ", line 2: the row must have 2 cells as the header has; received 1"),
        ("query\nq,r\n", ", line 2: the row must have 1 cells as the header has; received 2"),
        ('query,id\n"a\nb",1\nq\n', ", line 4: the row must have 2 cells as the header has; received 1"),
        ('query\nfine\n"never closed\nand on\n', ", line 3: not CSV: unexpected end of data"),
        ('query\n"a"b\nfine\n', ", line 2: not CSV: ',' expected after '\"'"),
        ("query,QUERY\na,b\n", ", line 1: the header names the column 'query' twice"),
        ("query,x,x\na,b,c\n", ", line 1: the header names the column 'x' twice"),
        ("prompt,gold\na,b\n", ", line 1: the header must name a column of a case (query, question, input, …); "),
        ("id,note\na,b\n", ", line 1: the header must name a column of a case (query, question, input, …); "),
        ("query,metadata\nq,red\n", ", line 2: metadata must be a JSON object; received 'red'"),
        ("query,metadata\nq,[1]\n", ", line 2: metadata must be a JSON object; received '[1]'"),
        ('query,metadata,level\nq,"{""level"": 1}",2\n', ", line 2: metadata 'level' is given twice, by the column"),
        (b"query\nfine\ncaf\xe9\n", ", line 3: not valid UTF-8 (invalid continuation byte); save the file as UTF-8"),
    ],
)
def test_a_damaged_table_says_where_and_why(load, content, told):
    with pytest.raises(DatasetError) as caught:
        load(content)
    assert str(caught.value).partition("cases.csv")[2].startswith(told)


def test_all_bad_rows_are_counted(load):
    with pytest.raises(DatasetError) as caught:
        load("query,id\n" + 'q\n"a"b,1\n' * 10 + "fine,1\n")
    assert caught.value.n_bad == 20
    assert [row.place for row in caught.value.bad_rows] == [f"line {number}" for number in range(2, 7)]


def test_a_long_cell_is_read_and_the_limit_of_the_process_stays(load):
    before = csv.field_size_limit()
    (case,) = load(f"query,context\nq,{'word ' * 100_000}\n")
    assert len(case.context[0]) == 500_000
    assert csv.field_size_limit() == before


# Parquet


def test_parquet_columns_keep_their_types(load_rows):
    cases = load_rows(
        [
            {"id": 1, "question": "2 + 2?", "answer": "4", "context": ["a", "b"], "metadata": {"n": 1}, "level": 3},
            {"id": 2, "question": "3?", "answer": None, "context": None, "metadata": {"m": "x"}, "level": None},
        ]
    )
    assert cases == [
        DatasetCase("1", "2 + 2?", "4", context=["a", "b"], metadata={"n": 1, "level": 3}),
        DatasetCase("2", "3?", metadata={"m": "x"}),
    ]


def test_parquet_texts_are_read_as_in_csv(load_rows):
    (case,) = load_rows(
        [{"query": "q", "context": '["a", "b"]', "metadata": '{"n": 1}', "tools": "search", "x": "[1]"}]
    )
    assert case == DatasetCase("case-1", "q", tools=["search"], context=["a", "b"], metadata={"n": 1, "x": [1]})


def test_parquet_not_a_number_is_nothing(load_rows):
    first, second = load_rows([{"query": "q", "score": float("nan")}, {"query": "r", "score": 0.5}])
    assert (first.metadata, second.metadata) == ({}, {"score": 0.5})


def test_parquet_rows_that_are_no_cases_are_told(load_rows):
    with pytest.raises(DatasetError) as caught:
        load_rows([{"query": 1}, {"query": 2}])
    lines = str(caught.value).splitlines()
    assert lines[1:] == [f"  row {n}: query must be a text; received {n}" for n in (1, 2)]
    with pytest.raises(DatasetError, match="the header must name a column of a case"):
        load_rows([{"prompt": "q"}])


def test_parquet_compressed_again(tmp_path):
    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([{"query": "q"}]), stream)
    (tmp_path / "cases.parquet.gz").write_bytes(gzip.compress(stream.getvalue()))
    assert load_dataset("cases.parquet.gz", folder=tmp_path) == [DatasetCase("case-1", "q")]


def test_parquet_missing_is_said_with_the_command(tmp_path, monkeypatch):
    parquet.write_table(pyarrow.Table.from_pylist([{"query": "q"}]), tmp_path / "cases.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DatasetError, match=r"needs the extra parquet: " + re.escape(install_command("parquet"))):
        load_dataset("cases.parquet", folder=tmp_path)


# Round trips

# A cell of blanks is an empty cell, and text written as JSON is read as JSON: neither can come back as it was.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(
    lambda text: text.strip() and text.lstrip()[0] not in "[{"
)
table_cases = st.builds(
    DatasetCase,
    texts.map(str.strip),
    st.none() | texts,
    st.none() | texts | st.lists(texts, min_size=1, max_size=3),
    st.none() | st.lists(texts, min_size=1, max_size=3),
    st.none() | st.lists(texts, min_size=1, max_size=3),
    st.dictionaries(
        st.sampled_from(["level", "team", "two words"]), texts | st.lists(st.integers(), max_size=2), max_size=3
    ),
)


def cell(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@given(
    st.lists(table_cases, min_size=1, max_size=5, unique_by=lambda case: case.id),
    st.sampled_from([(",", "cases.csv"), (";", "cases.csv"), ("\t", "cases.tsv")]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from(["utf-8", "utf-8-sig"]),
)
def test_cases_written_as_a_table_come_back_the_same(tmp_path_factory, cases, kind, newline, quote_all, encoding):
    delimiter, name = kind
    stream = io.StringIO(newline="")
    # Python's writer forgets that a bare carriage return needs quotes.
    quoting = csv.QUOTE_ALL if quote_all or "\\r" in repr(cases) else csv.QUOTE_MINIMAL
    writer = csv.writer(stream, delimiter=delimiter, lineterminator=newline, quoting=quoting)
    keys = ["level", "team", "two words"]
    writer.writerow(["id", "query", "expected", "tools", "context", *[f"metadata.{key}" for key in keys]])
    for case in cases:
        fields = [case.id, case.query, case.expected_output, case.tools, case.context]
        writer.writerow([cell(field) for field in [*fields, *[case.metadata.get(key) for key in keys]]])
    file = tmp_path_factory.mktemp("table") / name
    file.write_bytes(stream.getvalue().encode(encoding))
    assert load_dataset(file) == cases


def test_a_header_of_many_columns_is_read_at_once(load):
    began = time.monotonic()
    names = [f"c{number}" for number in range(60_000)]
    (case,) = load(f"query,{','.join(names)}\n2 + 2?,{','.join(names)}\n")
    assert len(case.metadata) == 60_000
    assert time.monotonic() - began < 20  # comparing each name with each other would take a minute
