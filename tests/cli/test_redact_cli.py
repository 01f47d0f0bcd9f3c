"""``agentunit redact``: what it writes, what it tells, and what it refuses."""

from __future__ import annotations

import gzip
import json
import stat
import sys
from pathlib import Path

import pytest
from spans_of import oi, otlp

from agentunit.core.codec import decode_record


def write_records(name="traces.jsonl", *outputs):
    lines = [json.dumps({"case": {"id": f"q{n}"}, "outcome": output}) for n, output in enumerate(outputs)]
    Path(name).write_text("\n".join(lines) + "\n")


def written(name="out.jsonl"):
    return [decode_record(line) for line in Path(name).read_text().splitlines()]


def test_records_come_out_masked_and_the_summary_counts(invoke):
    write_records("traces.jsonl", "mail a@example.com", "a@example.com, b@example.com or 192.168.3.44", "nothing")
    result = invoke("redact", "traces.jsonl", "--out", "out.jsonl")
    assert result.exit_code == 0, result.output
    assert [record.outcome for record in written()] == [
        "mail <EMAIL_1>",
        "<EMAIL_1>, <EMAIL_2> or <IP_ADDRESS_1>",
        "nothing",
    ]
    told = " ".join(result.stderr.split())
    assert "3 records in out.jsonl masked: email 3 (2 different), ip_address 1 (1 different)" in told
    assert "a detector misses things" in told
    assert result.stdout == ""
    assert not Path("out.jsonl.part").exists()
    # Once more: there is nothing left to mask.
    again = invoke("redact", "out.jsonl", "--out", "again.jsonl")
    assert Path("again.jsonl").read_bytes() == Path("out.jsonl").read_bytes()
    assert "masked: nothing was found" in again.stderr


def test_several_files_of_any_format_share_their_pseudonyms(invoke):
    write_records("traces.jsonl", "a@example.com")
    Path("spans.json").write_bytes(
        otlp(oi("AGENT", "a", input__value="I am b@example.com", output__value="a@example.com"))
    )
    result = invoke("redact", "traces.jsonl", "spans.json", "--out", "out.jsonl")
    first, second = written()
    assert first.outcome == second.outcome.output == "<EMAIL_1>"
    assert second.case.query == "I am <EMAIL_2>"
    assert "read as" in result.stderr


def test_compressed_output_and_types(invoke):
    write_records("traces.jsonl", "a@example.com from 192.168.3.44")
    invoke("redact", "traces.jsonl", "--out", "out.jsonl.gz", "--keep", "email, phone")
    assert b"a@example.com from <IP_ADDRESS_1>" in gzip.decompress(Path("out.jsonl.gz").read_bytes())
    invoke("redact", "traces.jsonl", "--out", "out.jsonl", "--types", "email")
    assert written()[0].outcome == "<EMAIL_1> from 192.168.3.44"


def test_a_salt_is_the_same_across_runs_and_never_numbered(invoke):
    write_records("one.jsonl", "a@example.com b@example.com")
    write_records("two.jsonl", "b@example.com")
    invoke("redact", "one.jsonl", "--out", "out.jsonl", "--salt", "s3cret")
    pseudonym = written()[0].outcome.split()[1]
    invoke("redact", "two.jsonl", "--out", "out.jsonl", env={"AGENTUNIT_SALT": "s3cret"})
    assert written()[0].outcome == pseudonym
    assert not any(letter.isdigit() for letter in pseudonym)
    assert invoke("redact", "one.jsonl", "--out", "out.jsonl", "--salt", " ").exit_code == 2


def test_the_mapping_is_written_on_request_for_its_owner_only(invoke):
    write_records("traces.jsonl", "A@example.com and a@example.com")
    invoke("redact", "traces.jsonl", "--out", "out.jsonl")
    assert sorted(path.name for path in Path().iterdir()) == ["out.jsonl", "traces.jsonl"]
    Path("secret.json").write_text("old")
    Path("secret.json").chmod(0o644)
    result = invoke("redact", "traces.jsonl", "--out", "out.jsonl", "--mapping", "secret.json")
    assert json.loads(Path("secret.json").read_text()) == {"<EMAIL_1>": "A@example.com"}
    assert "secret.json tells who is who: it is a secret" in " ".join(result.stderr.split())
    if sys.platform != "win32":
        assert stat.S_IMODE(Path("secret.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--types", "emial"], "no type is called 'emial'; did you mean 'email'?"),
        (["--keep", "shoe_size"], "no type is called 'shoe_size'; there are email, phone"),
        (["--types", "email", "--keep", "email"], "no type is left to mask"),
        (["--backend", "pattern"], "did you mean 'patterns'?"),
        (["--mapping", "./out.jsonl"], "--mapping and --out name the same file"),
        (["--mapping", "traces.jsonl"], "traces.jsonl is an input"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_written(invoke, options, words):
    write_records("traces.jsonl", "a@example.com")
    result = invoke("redact", "traces.jsonl", "--out", "out.jsonl", *options)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert not Path("out.jsonl").exists()


def test_what_cannot_be_read_is_counted_and_leaves_the_rest(invoke):
    Path("traces.jsonl").write_text('{"case": {"id": "q"}, "outcome": "a@example.com"}\n{"case": {"id": "a@exa\n')
    result = invoke("redact", "traces.jsonl", "--out", "out.jsonl")
    assert result.exit_code == 3
    assert [record.outcome for record in written()] == ["<EMAIL_1>"]
    assert "not read: traces.jsonl" in result.stderr
    Path("empty.jsonl").write_text("")
    assert invoke("redact", "empty.jsonl", "--out", "out.jsonl").exit_code == 3
    assert len(written()) == 1
    assert invoke("redact", "nowhere.jsonl", "--out", "out.jsonl").exit_code == 3


def test_help_says_that_detectors_miss_things_and_how_many(invoke):
    told = " ".join(invoke("redact", "--help").output.split())
    assert "No detector finds everything." in told
    assert "patterns useful, recall 0." in told
