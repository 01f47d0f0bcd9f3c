"""Where cases come from: every format with what it must read, and near misses that must be told apart from it."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import LooseRecord, Outcome, Record
from agentunit.core.trace import TraceLog
from agentunit.datasets.readers import DatasetError, fingerprint, load_dataset
from agentunit.installation import install_command

CAPITAL = DatasetCase("capital", "Capital of France?", "Paris", ["search"], ["Paris is in France."], {"level": 1})
SUM = DatasetCase("sum", "2 + 2?", ["4", "four"])
PLAIN = [
    {
        "id": "capital",
        "query": "Capital of France?",
        "expected_output": "Paris",
        "tools": ["search"],
        "context": ["Paris is in France."],
        "metadata": {"level": 1},
    },
    {"id": "sum", "query": "2 + 2?", "expected_output": ["4", "four"]},
]
JSONL = "".join(json.dumps(case) + "\n" for case in PLAIN)
YAML = """
- id: capital
  query: Capital of France?
  expected_output: Paris
  tools: [search]
  context: [Paris is in France.]
  metadata: {level: 1}
- {id: sum, query: 2 + 2?, expected_output: ['4', four]}
"""


@pytest.fixture
def load(tmp_path: Path):
    """Write a file of this name and load it from its folder."""

    def written_and_loaded(name: str, content: str | bytes) -> list[DatasetCase]:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return load_dataset(name, folder=tmp_path)

    return written_and_loaded


@pytest.fixture
def problem(load):
    """What is wrong with a file, without the folder it lies in."""

    def told(name: str, content: str | bytes) -> str:
        with pytest.raises(DatasetError) as caught:
            load(name, content)
        return str(caught.value).partition(name)[2]

    return told


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cases.jsonl", JSONL),
        ("cases.ndjson", JSONL),
        ("CASES.JSONL", JSONL),
        ("no-last-newline.jsonl", JSONL.rstrip()),
        ("windows.jsonl", JSONL.replace("\n", "\r\n")),
        ("blank-lines.jsonl", "\n  \n" + JSONL + "\n\n"),
        ("bom.jsonl", "\ufeff" + JSONL),
        ("cases.json", json.dumps(PLAIN)),
        ("cases.json", json.dumps({"name": "mine", "cases": PLAIN}, indent=2)),
        ("bom.json", "\ufeff" + json.dumps(PLAIN, indent=2)),
        ("lines-in.json", JSONL),
        ("cases.yaml", YAML),
        ("cases.yml", "name: mine\ncases:" + YAML.replace("\n", "\n  ")),
        ("json-in.yaml", json.dumps(PLAIN)),
    ],
)
def test_every_spelling_of_a_file_gives_the_same_cases(load, name, content):
    assert load(name, content) == [CAPITAL, SUM]
    assert load(name + ".gz", gzip.compress(content.encode())) == [CAPITAL, SUM]
    assert load(name + ".zst", zstandard.compress(content.encode())) == [CAPITAL, SUM]


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.json", "empty.csv", "empty.tsv", "empty.yaml"])
def test_an_empty_file_holds_no_cases(load, name):
    assert load(name, "") == []
    assert load(name, "\n\n") == []


def test_a_whole_record_gives_its_case(load):
    record = Record(CAPITAL, TraceLog(), Outcome(output="Paris"))
    odd = b'{"case": {"id": "sum", "query": "2 + 2?"}, "ticket": 7, "outcome": {"output": 5, "cost": "cheap"}}'
    cases = load("records.jsonl", encode_record(record) + b"\n" + odd + b"\n")
    assert cases == [CAPITAL, DatasetCase("sum", "2 + 2?")]


def test_a_field_called_case_that_is_no_object_is_just_a_field(load):
    (case,) = load("cases.jsonl", '{"query": "Which case?", "case": "dative"}')
    assert case.extra == {"case": "dative"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"question": "q", "answer": "a"}, DatasetCase("case-1", "q", "a")),
        ({"input": "q", "reference": "a"}, DatasetCase("case-1", "q", "a")),
        ({"query": "q", "expected": None, "answer": "a"}, DatasetCase("case-1", "q", "a", extra={"expected": None})),
        ({"case_id": 7, "query": "q"}, DatasetCase("7", "q")),
        # Two spellings of one thing: the better known is taken, the other is not lost.
        ({"query": "q", "question": "other"}, DatasetCase("case-1", "q", extra={"question": "other"})),
        ({"expected": "a", "answer": "b", "query": "q"}, DatasetCase("case-1", "q", "a", extra={"answer": "b"})),
        ({"query": "q", "context": "one text"}, DatasetCase("case-1", "q", context=["one text"])),
        ({"query": "q", "metadata": None, "tools": None}, DatasetCase("case-1", "q")),
        ({"query": "q", "expected_output": {"city": 1}}, DatasetCase("case-1", "q", {"city": 1})),
        ({"id": " ", "metadata": {"image_path": "a.png"}}, DatasetCase("case-1", metadata={"image_path": "a.png"})),
        ({"id": "only"}, DatasetCase("only")),
    ],
)
def test_spellings_and_unknown_fields(load, fields, expected):
    assert load("cases.jsonl", json.dumps(fields)) == [expected]
    assert load("cases.json", json.dumps([fields])) == [expected]
    assert load("cases.yaml", json.dumps([fields])) == [expected]
    assert load_dataset([fields]) == [expected]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"query": 5}, "query must be a text; received 5"),
        ({"input": {"text": "q"}}, "query must be a text; received {'text': 'q'}"),
        ({"id": 1.5, "query": "q"}, "id must be a text or a whole number; received 1.5"),
        ({"id": True, "query": "q"}, "id must be a text or a whole number; received True"),
        ({"query": "q", "context": [1]}, "context must be a text or a list of texts; received [1]"),
        ({"query": "q", "tools": "search"}, "tools must be a list; received 'search'"),
        ({"query": "q", "metadata": ["x"]}, "metadata must be an object with fields; received ['x']"),
        ({"prompt": "q", "gold": "a"}, "a case needs at least a query; received the fields prompt, gold"),
        ({}, "the case is empty"),
        ("q", "a case must be an object with fields; received 'q'"),
        (None, "a case must be an object with fields; received None"),
        ({"v": 2, "case": {"query": "q"}}, "record version must be 1; received 2; a newer AgentUnit wrote it: upgrade"),
        ({"case": {"case": {"query": "q"}}}, "a record's case holds another record"),
        ({"case": {"query": 5}, "outcome": "x"}, "query must be a text; received 5"),
    ],
)
def test_a_row_that_is_no_case_says_why(problem, fields, reason):
    good = '{"query": "fine"}\n'
    assert problem("cases.jsonl", good + json.dumps(fields)) == f", line 2: {reason}"
    assert problem("cases.json", json.dumps([{"query": "fine"}, fields])) == f", item 2: {reason}"
    assert problem("cases.yaml", "- query: fine\n\n- " + json.dumps(fields)) == f", line 3: {reason}"
    with pytest.raises(DatasetError) as caught:
        load_dataset([{"query": "fine"}, fields])
    assert str(caught.value) == f"dataset, item 2: {reason}"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.jsonl", '{"query": "q"', ", line 1: not JSON: the line is truncated"),
        ("a.jsonl", '{"query": "q"}{"query": "r"}', ", line 1: not JSON: trailing characters"),
        ("a.jsonl", '{"query": NaN}', ", line 1: NaN is not JSON (write null for an unknown number); "),
        ("a.jsonl", b'{"query": "\xff"}', ", line 1: not valid UTF-8 "),
        ("a.jsonl", '[{"query": "q"}]', ", line 1: a JSON list where a case is expected (a file that is one list"),
        ("a.jsonl", '{"query": "q", "extra": ' + "[" * 5000 + "]" * 5000 + "}", ", line 1: not readable: nested"),
        ("a.json", '{"query": "q"}', ": must be a list of cases, or an object whose 'cases' is one"),
        ("a.json", '{"cases": {"query": "q"}}', ": must be a list of cases, or an object whose 'cases' is one"),
        ("a.json", '"q"', ": must be a list of cases, or an object whose 'cases' is one"),
        ("a.json", '[{"query": "q"}', ": not JSON: the line is truncated"),
        ("a.json", '{"query": "q"}\n{"query": 5}', ", line 2: query must be a text; received 5"),
        ("a.yaml", "query: q", ": must be a list of cases, or a mapping whose 'cases' is one"),
        ("a.yaml", "- query: [1", ", line 2: not YAML: "),
        ("a.yaml", "- query: q\n---\n- query: r\n", ", line 2: not YAML: expected a single document in the stream but"),
        ("a.yaml", "- query: !!python/name:os.system x", ", line 1: not readable: could not determine a constructor"),
        ("a.yaml", "- &a [*a]", ", line 1: not readable: found unconstructable recursive node"),
        ("a.yaml", "- {1: one, query: q}", ", line 1: the names of fields must be texts; received 1"),
        ("a.yaml", "- {query: q, metadata: {1: one}}", ", line 1: the names in metadata must be texts; received 1"),
        ("a.yaml", b"- query: \xff\xfe", ": not YAML: "),
        ("a.parquet", "no Parquet at all", ": not a Parquet file that can be read: "),
        ("a.xlsx", "", ": a dataset's name must end in .jsonl, .ndjson, .json, .csv, "),
        ("cases", "", ": a dataset's name must end in .jsonl"),
        ("a.gz", "", ": a dataset's name must end in .jsonl"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(problem, name, content, told):
    assert problem(name, content).startswith(told)


def test_a_spreadsheet_gets_a_hint(problem):
    assert problem("a.xlsx", "").endswith("; a spreadsheet can be saved as CSV")


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet", ".txt", ""])
def test_missing_files_and_folders(tmp_path, suffix):
    with pytest.raises(DatasetError, match=f"missing{suffix}: no such file$"):
        load_dataset(f"missing{suffix}", folder=tmp_path)
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(DatasetError, match=f"folder{suffix}: is a folder, not a file$"):
        load_dataset(f"folder{suffix}", folder=tmp_path)


@pytest.mark.parametrize("name", ["cases.jsonl.gz", "cases.json.gz", "cases.csv.gz"])
def test_a_compressed_file_that_is_cut_off_is_refused_whole(problem, name):
    # Long enough that a good part of it decompresses before the end is missed.
    lines = "".join(f'{{"id": "q{i}", "query": "{i * 7919 % 10007} + {i}?"}}\n' for i in range(5000))
    content = {"csv": "query\n" + lines.replace('"', ""), "json": f"[{lines.replace('}', '},').rstrip()[:-1]}]"}
    whole = gzip.compress(content.get(name.split(".")[1], lines).encode())
    assert "the compressed file is cut off or damaged" in problem(name, whole[: len(whole) // 2])


def test_zstandard_missing_is_said_with_the_command(problem, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert install_command("zstd") in problem("cases.jsonl.zst", zstandard.compress(JSONL.encode()))


def test_ids_that_come_twice_name_both_places(problem):
    told = problem("cases.jsonl", '{"id": "a", "query": "1"}\n\n{"id": "b", "query": "2"}\n{"id": "a", "query": "3"}\n')
    assert told == ", line 4: id 'a' is taken by line 1 already"
    assert problem("flow.yaml", "[{id: a}, {id: a}]") == ", line 1: id 'a' is taken by line 1 already"
    assert problem("t.csv", "id,query\na,1\na,2\n") == ", line 3: id 'a' is taken by line 2 already"
    # The second case has no id, and is the second by position.
    told = problem("cases.jsonl", '{"id": "case-2", "query": "1"}\n{"query": "2"}')
    assert told == ", line 2: has no id, and its position 'case-2' is taken by line 1 already"


def test_numeric_and_written_ids_are_the_same_id(problem):
    assert problem("c.jsonl", '{"id": 7, "query": "1"}\n{"id": "7", "query": "2"}').endswith(
        "is taken by line 1 already"
    )


def test_only_the_first_few_faults_are_told_and_all_are_counted(load):
    bad = '{"query": 5}\n'
    with pytest.raises(DatasetError) as caught:
        load("cases.jsonl", '{"query": "fine"}\n' + 1200 * bad)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("cases.jsonl: 1,200 lines cannot be used")
    assert lines[1:6] == [f"  line {number}: query must be a text; received 5" for number in range(2, 7)]
    assert lines[6:] == ["  … and 1,195 more"]
    assert caught.value.n_bad == 1200
    assert caught.value.bad_rows[0] == ("line 2", "query must be a text; received 5")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.n_bad, copy.bad_rows) == (str(caught.value), 1200, caught.value.bad_rows)


def test_hostile_names_do_not_reach_the_terminal(problem):
    assert "\x1b" not in problem("c.jsonl", json.dumps({"\x1b[2Jprompt": "\x1b[2J"}))
    assert "\x1b" not in problem("c.jsonl", json.dumps({"query": ["\x1b[2J"]}))
    assert "\x1b" not in problem("c.csv", "\x1b[2J,b\n1,2\n")


def test_yaml_reads_words_as_words(load):
    content = """
    - query: no
      expected: 12:30
      id: 007
      metadata: {date: 2024-01-01, yes: on, number: 12, share: 0.5, small: 1e-3, flag: true, none: ~, grouped: 1_000}
    """
    (case,) = load("cases.yaml", content)
    assert case == DatasetCase(
        "007",
        "no",
        "12:30",
        metadata={
            "date": "2024-01-01",
            "yes": "on",
            "number": 12,
            "share": 0.5,
            "small": 0.001,
            "flag": True,
            "none": None,
            "grouped": "1_000",
        },
    )


def test_yaml_anchors_and_merges(load):
    one, two = load("cases.yaml", "- &a {query: one, context: [x]}\n- {<<: *a, query: two}\n")
    assert (one.query, one.context, two.query, two.context) == ("one", ["x"], "two", ["x"])


# Sources that are no files


def test_lists_iterables_and_functions():
    records = [Record(CAPITAL), LooseRecord(SUM, None, None)]
    for source in (
        [CAPITAL, SUM],
        (CAPITAL, PLAIN[1]),
        iter(PLAIN),
        (case for case in PLAIN),
        {"cases": PLAIN},
        lambda: PLAIN,
        lambda: iter([CAPITAL, SUM]),
        records,
    ):
        assert load_dataset(source) == [CAPITAL, SUM]
    assert load_dataset([]) == []


def test_a_function_may_name_a_file(tmp_path):
    (tmp_path / "cases.jsonl").write_text(JSONL)
    assert load_dataset(lambda: "cases.jsonl", folder=tmp_path) == [CAPITAL, SUM]
    assert load_dataset(tmp_path / "cases.jsonl", folder="elsewhere") == [CAPITAL, SUM]


def test_a_home_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "cases.jsonl").write_text(JSONL)
    assert len(load_dataset("~/cases.jsonl", folder="elsewhere")) == 2


def test_the_callers_own_cases_are_left_alone():
    mine = [DatasetCase(query="one"), DatasetCase("two", "two")]
    cases = load_dataset(mine)
    assert [case.id for case in cases] == ["case-1", "two"]
    assert mine[0].id == ""
    assert cases[1] is mine[1]


@pytest.mark.parametrize("source", [None, 5, b"cases.jsonl", {"query": "q"}, DatasetCase("a", "q")])
def test_other_sources_are_refused(source):
    with pytest.raises(DatasetError, match=f"received {type(source).__name__}$"):
        load_dataset(source)


def test_a_function_that_fails_says_so():
    def broken():
        raise KeyError("no table 'cases'")

    def broken_halfway():
        yield CAPITAL
        raise ValueError("connection lost")

    with pytest.raises(DatasetError, match=r"the dataset function .*broken failed: KeyError: .*no table") as caught:
        load_dataset(broken)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(DatasetError, match="dataset: failed after item 1: ValueError: connection lost"):
        load_dataset(broken_halfway)
    with pytest.raises(DatasetError, match="must return a list of cases; received NoneType"):
        load_dataset(lambda: None)


# Fingerprints


def test_a_fingerprint_changes_with_everything_a_case_says():
    same = [
        [CAPITAL, SUM],
        load_dataset(PLAIN),
        load_dataset([dict(reversed(fields.items())) for fields in PLAIN]),
    ]
    different = [
        [SUM, CAPITAL],
        [CAPITAL],
        [CAPITAL, SUM, SUM],
        [CAPITAL, DatasetCase("sum", "2 + 2?", ["four", "4"])],
        [CAPITAL, DatasetCase("sum", "2 + 2?", ["4", "four"], extra={"mood": "curious"})],
        [CAPITAL, DatasetCase("sum", "2 + 2?", ["4", "four"], metadata={"level": None})],
        [CAPITAL, DatasetCase("sum", "2 + 2?", ["4", "four"], context=[])],
        [],
    ]
    assert len({fingerprint(cases) for cases in same}) == 1
    assert len({fingerprint(cases) for cases in [same[0], *different]}) == 1 + len(different)


ODD_CASES = """
import functools
from agentunit.core.case import DatasetCase

class Checker:
    def __call__(self, output):
        return True

odd = [
    DatasetCase("a", "q", metadata={"check": Checker(), "words": {"one", "two", "three", "four"}}),
    DatasetCase("b", "q", metadata={"check": lambda output: True, 1: {"x", 2, (3, 4)}, "f": {None: frozenset("abc")}}),
    DatasetCase("c", "half a pair: \\ud800", metadata={"partial": functools.partial(len), "words": set("abcdef")}),
]
"""


def test_a_fingerprint_is_the_same_in_every_process(tmp_path):
    (tmp_path / "odd.py").write_text(
        ODD_CASES + "from agentunit.datasets.readers import fingerprint\nprint(*[fingerprint([c]) for c in odd])\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, str(tmp_path / "odd.py")],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert len(set(printed.pop().split())) == 3


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
any_cases = st.builds(
    DatasetCase,
    st.text(min_size=1).filter(str.strip),
    st.none() | st.text(),
    json_values,
    st.none() | st.lists(json_values, max_size=3),
    st.none() | st.lists(st.text(), max_size=3),
    st.dictionaries(st.text(max_size=8), json_values, max_size=3),
)


@given(st.lists(any_cases, max_size=5, unique_by=lambda case: case.id))
def test_cases_written_as_records_come_back_the_same(tmp_path_factory, cases):
    file = tmp_path_factory.mktemp("round") / "cases.jsonl"
    file.write_bytes(b"".join(encode_record(Record(case)) + b"\n" for case in cases))
    loaded = load_dataset(file)
    expected = [json.loads(encode_record(Record(case))) for case in cases]
    assert [json.loads(encode_record(Record(case))) for case in loaded] == expected
    assert fingerprint(loaded) == fingerprint(load_dataset(file))
