"""``agentunit redact``: what it writes, what it tells, and what it refuses."""

from __future__ import annotations

import gzip
import json
import re
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
    result = invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl")
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
    again = invoke("convert", "--mask", "out.jsonl", "--out", "again.jsonl")
    assert Path("again.jsonl").read_bytes() == Path("out.jsonl").read_bytes()
    assert "masked: nothing was found" in again.stderr


def test_several_files_of_any_format_share_their_pseudonyms(invoke):
    write_records("traces.jsonl", "a@example.com")
    Path("spans.json").write_bytes(
        otlp(oi("AGENT", "a", input__value="I am b@example.com", output__value="a@example.com"))
    )
    result = invoke("convert", "--mask", "traces.jsonl", "spans.json", "--out", "out.jsonl")
    first, second = written()
    assert first.outcome == second.outcome.output == "<EMAIL_1>"
    assert second.case.query == "I am <EMAIL_2>"
    assert "read as" in result.stderr


def test_compressed_output_and_types(invoke):
    write_records("traces.jsonl", "a@example.com from 192.168.3.44")
    invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl.gz", "--keep", "email, phone")
    assert b"a@example.com from <IP_ADDRESS_1>" in gzip.decompress(Path("out.jsonl.gz").read_bytes())
    invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl", "--types", "email")
    assert written()[0].outcome == "<EMAIL_1> from 192.168.3.44"


def test_a_salt_is_the_same_across_runs_and_never_numbered(invoke):
    write_records("one.jsonl", "a@example.com b@example.com")
    write_records("two.jsonl", "b@example.com")
    invoke("convert", "--mask", "one.jsonl", "--out", "out.jsonl", "--salt", "s3cret")
    pseudonym = written()[0].outcome.split()[1]
    invoke("convert", "--mask", "two.jsonl", "--out", "out.jsonl", env={"AGENTUNIT_SALT": "s3cret"})
    assert written()[0].outcome == pseudonym
    assert not any(letter.isdigit() for letter in pseudonym)
    assert invoke("convert", "--mask", "one.jsonl", "--out", "out.jsonl", "--salt", " ").exit_code == 2


def test_the_mapping_is_written_on_request_for_its_owner_only(invoke):
    write_records("traces.jsonl", "A@example.com and a@example.com")
    invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl")
    assert sorted(path.name for path in Path().iterdir()) == ["out.jsonl", "traces.jsonl"]
    Path("secret.json").write_text("old")
    Path("secret.json").chmod(0o644)
    result = invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl", "--mapping", "secret.json")
    assert json.loads(Path("secret.json").read_text()) == {"<EMAIL_1>": "A@example.com"}
    assert "secret.json maps each pseudonym to its value: keep it secret" in " ".join(result.stderr.split())
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
    result = invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl", *options)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert not Path("out.jsonl").exists()


def test_what_cannot_be_read_is_counted_and_leaves_the_rest(invoke):
    Path("traces.jsonl").write_text('{"case": {"id": "q"}, "outcome": "a@example.com"}\n{"case": {"id": "a@exa\n')
    result = invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl")
    assert result.exit_code == 3
    assert [record.outcome for record in written()] == ["<EMAIL_1>"]
    assert "not read: traces.jsonl" in result.stderr
    Path("empty.jsonl").write_text("")
    assert invoke("convert", "--mask", "empty.jsonl", "--out", "out.jsonl").exit_code == 3
    assert len(written()) == 1
    assert invoke("convert", "--mask", "nowhere.jsonl", "--out", "out.jsonl").exit_code == 3


def test_help_says_that_detectors_miss_things_and_how_many(invoke):
    told = " ".join(invoke("convert", "--help-all").output.split())
    assert "No detector finds everything." in told
    assert re.search(r"patterns \w+, recall 0\.", told)


def test_a_check_writes_nothing_and_is_a_gate(invoke):
    write_records("traces.jsonl", "mail a@example.com", "nothing here")
    result = invoke("convert", "--check", "traces.jsonl")
    assert result.exit_code == 1
    assert result.stdout == "q0 outcome: email\n"
    assert "2 records: personal data found: email 1" in result.stderr
    assert "a@example.com" not in result.output
    assert [path.name for path in Path().iterdir()] == ["traces.jsonl"]
    write_records("clean.jsonl", "nothing here")
    assert invoke("convert", "--check", "clean.jsonl").exit_code == 0
    assert invoke("convert", "--check", "clean.jsonl", "--out", "out.jsonl").exit_code == 2
    assert invoke("convert", "--mask", "clean.jsonl").exit_code == 2
    Path("broken.jsonl").write_text("{")
    assert invoke("convert", "--check", "broken.jsonl").exit_code == 3
    Path("empty.jsonl").write_text("")
    empty = invoke("convert", "--check", "empty.jsonl")
    assert (empty.exit_code, empty.stderr) == (3, "no records: nothing was checked\n")


def test_a_known_value_that_stays_is_named_and_fails(invoke):
    records = [{"case": {"id": "2125550147", "query": "call 212-555-0147"}}, {"case": {"id": "q1", "query": "hi"}}]
    Path("traces.jsonl").write_text("\n".join(map(json.dumps, records)))
    result = invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl")
    assert result.exit_code == 3
    assert "still there: phone at 2125550147 case.id" in " ".join(result.stderr.split())
    assert len(written()) == 2


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_what_one_record_tells_is_masked_in_all(invoke, jobs):
    records = [
        {"case": {"id": "q0"}, "outcome": "gift_5128346 and Mia Lindqvist's"},
        {"case": {"id": "q1", "metadata": {"payment_id": "gift_5128346", "full_name": "Mia Lindqvist"}}},
        {"case": {"id": "2125550147", "query": "call 212-555-0147"}},
    ]
    Path("traces.jsonl").write_text("\n".join(map(json.dumps, records)))
    result = invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl", *jobs)
    assert "still there: phone at 2125550147 case.id" in " ".join(result.stderr.split())
    assert result.exit_code == 3
    assert written()[0].outcome == "<ACCOUNT_1> and <NAME_1>'s"


def spans_with_personal_data():
    return otlp(
        oi("AGENT", "a", input__value="I am b@example.com", output__value="see 536-22-8741"),
        oi("TOOL", "lookup", parent="a", input__value='{"ssn": "536228741", "userPassword": "hunter22x"}'),
    )


def test_otlp_comes_out_as_otlp_with_its_ids(invoke):
    given = spans_with_personal_data()
    Path("spans.json").write_bytes(given)
    Path("lines.jsonl").write_bytes(given.replace(b"\n", b" ") + b"\n" + given.replace(b"\n", b" ") + b"\n")
    assert invoke("convert", "--mask", "spans.json", "--to", "otlp", "--out", "masked.json").exit_code == 0
    masked = Path("masked.json").read_text()
    expected = json.dumps(json.loads(given))
    for value, mark in (
        ("b@example.com", "<EMAIL_1>"), ("536-22-8741", "<SSN_1>"), ("536228741", "<SSN_1>"),
        ("hunter22x", "<PASSWORD_1>"),
    ):  # fmt: skip
        expected = expected.replace(value, mark)
    assert json.loads(masked) == json.loads(expected)
    result = invoke("convert", "--mask", "lines.jsonl", "--to", "otlp", "--out", "masked.jsonl")
    assert Path("masked.jsonl").read_text().count("<EMAIL_1>") == 2
    assert "2 requests in masked.jsonl" in result.stderr
    assert invoke("convert", "--check", "masked.json").exit_code == 0
    write_records("traces.jsonl", "a@example.com")
    assert invoke("convert", "--mask", "traces.jsonl", "--to", "otlp", "--out", "none.json").exit_code == 3


@pytest.mark.parametrize("framing", ["one message", "varint", "four bytes"])
def test_otlp_protobuf_keeps_its_framing_and_ids(invoke, framing):
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    request = service.ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, name="a")
    span.attributes.add(key="input.value").value.string_value = "I am b@example.com"
    span.attributes.add(key="n").value.int_value = 7
    body = request.SerializeToString()
    lengths = {"one message": b"", "varint": bytes([len(body)]), "four bytes": len(body).to_bytes(4, "big")}
    Path("spans.pb").write_bytes(lengths[framing] + body)
    result = invoke("convert", "--mask", "spans.pb", "--to", "otlp", "--out", "masked.pb")
    assert result.exit_code == 0, result.output
    span.attributes[0].value.string_value = "I am <EMAIL_1>"
    n_length_bytes = len(lengths[framing])
    content = Path("masked.pb").read_bytes()
    assert service.ExportTraceServiceRequest.FromString(content[n_length_bytes:]) == request


def test_rules_and_regions_are_options(invoke):
    Path("rules.yaml").write_text('allow: [a@example.com]\nrecognizers: [{type: badge, pattern: "B-[0-9]{3}"}]\n')
    write_records("traces.jsonl", "a@example.com, B-417, PESEL nr 44051401359 or 02070803628")
    options = ("--rules", "rules.yaml", "--region", "PL", "--out", "out.jsonl")
    assert invoke("convert", "--mask", "traces.jsonl", *options).exit_code == 0
    assert written()[0].outcome == "a@example.com, <BADGE_1>, PESEL nr <NATIONAL_ID_1> or <NATIONAL_ID_2>"
    invoke("convert", "--mask", "traces.jsonl", "--rules", "rules.yaml", "--types", "badge", "--out", "out.jsonl")
    assert written()[0].outcome == "a@example.com, <BADGE_1>, PESEL nr 44051401359 or 02070803628"
    Path("rules.yaml").write_text("recognizers: [{type: badge, pattern: '('}]")
    result = invoke("convert", "--mask", "traces.jsonl", "--rules", "rules.yaml", "--out", "out.jsonl")
    assert result.exit_code == 2
    assert "the pattern of badge is none of RE2's" in " ".join(result.stderr.split())
    assert invoke("convert", "--mask", "traces.jsonl", "--region", "XX", "--out", "out.jsonl").exit_code == 2


TOLD = {"ssn": "536-22-8741", "customer_id": "CUST-99817-X", "full_name": "Mia Lindqvist"}


@pytest.mark.parametrize(
    "record",
    [
        {"outcome": "a tag <USER_536228741>"},
        {"outcome": "Lindqvist, Mia"},
        {"outcome": "Mia\nLindqvist"},
        {"outcome": "Mia+Lindqvist"},
        {"outcome": "0x3533362d32322d38373431"},
        {"outcome": r"\x35\x33\x36\x2d\x32\x32\x2d\x38\x37\x34\x31"},
        {"outcome": json.dumps({"a": json.dumps({"b": json.dumps({"c": "CUST\u00a099817\u00a0X"})})})},
        {"case": {"metadata": {"column": 536228741.0}}},
        {"trace": {"events": [{"type": "message", "payload": {"chunks": ["it is CUST-", "998", "17-X, yes"]}}]}},
    ],
)
def test_what_another_record_tells_is_masked_however_it_is_written(invoke, record):
    case = {"id": "q1", **record.pop("case", {})}
    told = {"case": {"id": "q0", "metadata": TOLD}}
    Path("traces.jsonl").write_text(f"{json.dumps(told)}\n{json.dumps({'case': case, **record})}\n")
    assert invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl").exit_code == 0
    masked = Path("out.jsonl").read_text().splitlines()[1]
    assert any(mark in masked for mark in ("<SSN_1>", "<ACCOUNT_1>", "<NAME_1>"))
    assert not any(left in masked for left in ("53622", "35333", "99817", "Mia", "Lindqvist", "x38", "998"))


def test_a_value_in_pieces_is_found_in_a_single_event(invoke):
    pieces = [{"delta": {"content": text}} for text in ("536", "-22", "-8741")]
    record = {"case": {"id": "q"}, "trace": {"events": [{"type": "llm", "payload": {"chunks": pieces}}]}}
    Path("traces.jsonl").write_text(json.dumps(record) + "\n")
    invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl")
    assert '"<SSN_1>"' in Path("out.jsonl").read_text()


def test_a_check_prints_no_personal_id(invoke):
    record = {"case": {"id": "mia@example.com"}, "outcome": "write to mia@example.com"}
    Path("traces.jsonl").write_text(json.dumps(record) + "\n")
    result = invoke("convert", "--check", "traces.jsonl")
    assert (result.exit_code, "mia@" in result.output) == (1, False)


@pytest.mark.parametrize("is_number", [True, False])
def test_otlp_masks_a_known_value_that_is_a_number_and_does_not_call_a_name_clean(invoke, is_number):
    told = {"key": "input.value", "value": {"stringValue": "my SSN is 536-22-8741"}}
    number = {"key": "n", "value": {"intValue": "536228741"}}
    name = {"key": "of 536-22-8741", "value": {"stringValue": "x"}}
    ids = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "a"}
    span = {**ids, "attributes": [told, number if is_number else name]}
    Path("spans.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    result = invoke("convert", "--mask", "spans.json", "--to", "otlp", "--out", "out.json")
    is_named = "spans[0].attributes[1].key" in "".join(result.stderr.split())
    assert (result.exit_code, is_named) == ((0, False) if is_number else (3, True)), result.stderr


def test_the_last_digits_of_a_card_are_masked_where_words_say_so(invoke):
    write_records("traces.jsonl", "Use my card ending in 7334, not room 7334.")
    invoke("convert", "--mask", "traces.jsonl", "--out", "out.jsonl")
    assert written()[0].outcome == "Use my card ending in <CREDIT_CARD_1>, not room 7334."
