"""``agentunit score --suspects`` as a user meets it: files, runs, JSON, exit codes, masks."""

from __future__ import annotations

import json
import subprocess

import pytest
from judge_decisions import mark_of
from judge_server import JudgeServer
from kept_records import add_record

from agentunit.addons.judge.settings import configure_judge
from agentunit.backends.quality import load_backend
from agentunit.core.case import DatasetCase
from agentunit.core.codec import encode_record
from agentunit.core.records import Outcome, Record
from agentunit.core.trace import TraceEvent, TraceLog
from agentunit.store.opening import open_store


@pytest.fixture(autouse=True)
def without_models(monkeypatch):
    """No model is loaded: what it adds is tested with it, in tests/local."""
    monkeypatch.setenv("AGENTUNIT_BACKEND", "lexical")


def record(case_id, *ids, to="ada@example.org", answer="It is done.", error=None, tier="gold"):
    events = [
        TraceEvent("tool_call", {"name": "get_order", "arguments": {"id": 7}, "status": "success", "result": "7"})
    ]
    events += [
        TraceEvent("tool_call", {"name": "send_refund", "arguments": {"id": each, "to": to}, "status": "success"})
        for each in ids
    ]
    case = DatasetCase(case_id, "Where is the money for my order?", metadata={"tier": tier})
    return Record(case, TraceLog(events), Outcome(output=answer, error=error))


RECORDS = [record("a/trial-0", 7), record("a/trial-1", 7), record("a/trial-2", 7), record("a/trial-3"), record("b", 7)]


def write(path, records):
    path.write_bytes(b"\n".join(map(encode_record, records)) + b"\n")
    return path


def test_files_are_ranked_with_evidence_causes_tools_and_a_next_step(invoke, tmp_path):
    write(tmp_path / "runs.jsonl", RECORDS)
    result = invoke("score", "runs.jsonl", "--suspects")
    assert result.exit_code == 0, result.output
    assert "4 runs of 1 task ranked, 1 differs from most of its peers" in result.stdout
    assert "3 of 3 peers called `send_refund(id=7, to=<EMAIL_1>)`, this one did not call `send_refund`" in result.stdout
    assert "1 × did not call send_refund" in result.stdout
    assert "change something: send_refund" in result.stdout
    assert "only read: get_order" in result.stdout
    assert "1 run: no other run of the same task (such as b)" in result.stdout
    assert "next: agentunit show runs.jsonl a/trial-3" in result.stdout
    assert "ada@example.org" not in result.output
    shown = invoke("show", "runs.jsonl", "a/trial-3")
    assert shown.exit_code == 0, shown.output


def test_json_and_out_hold_the_same_ranks(invoke, tmp_path):
    write(tmp_path / "runs.jsonl", RECORDS)
    result = invoke("score", "runs.jsonl", "--suspects", "--json", "--out", "ranks.jsonl", "--show-personal-data")
    data = json.loads(result.stdout)
    lines = [json.loads(line) for line in (tmp_path / "ranks.jsonl").read_text().splitlines()]
    assert [each["case_id"] for each in data["runs"]] == [each["case_id"] for each in lines]
    assert lines[0]["next"] == "agentunit show runs.jsonl a/trial-3"
    assert (data["n_suspects"], data["n_runs"], data["exit_code"]) == (1, 5, 0)
    assert data["runs"][0]["evidence"][0]["kind"] == "missing call"
    assert "ada@example.org" in data["runs"][0]["evidence"][0]["text"]
    assert data["groups"][0]["name"] == "did not call send_refund"
    assert data["tools"][0]["tool"] == "send_refund"
    assert data["tools"][0]["mark"] == "write"
    assert data["unranked"][0]["n_runs"] == 1


def test_json_lists_every_ranked_run_and_the_text_ten(invoke, tmp_path):
    write(tmp_path / "runs.jsonl", [record(f"a/trial-{number}", *[7] * (number > 0)) for number in range(14)])
    data = json.loads(invoke("score", "runs.jsonl", "--suspects", "--json").stdout)
    assert (data["n_ranked"], len(data["runs"])) == (14, 14)
    text = " ".join(invoke("score", "runs.jsonl", "--suspects").stdout.split())
    assert "and 4 more (--why shows them)" in text


ODD_IDS = [
    "-7",
    "two  spaces",
    "it's",
    "a\x1b[2Jb",
    "line\nend",
    "$(reboot)",
    "überall",
    "::error::x",
    "a`b`",
    "back\\slash",
]


@pytest.mark.parametrize("odd", ODD_IDS)
def test_the_next_command_shows_the_run_whatever_its_id(invoke, tmp_path, odd):
    write(tmp_path / "runs.jsonl", [record(odd), *(record(odd, 7) for _ in range(3))])
    data = json.loads(invoke("score", "runs.jsonl", "--suspects", "--json").stdout)
    assert data["groups"][0]["next"] == data["next"][0]
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {data['next'][0]}"],
        capture_output=True, check=True, text=True, env={"LC_ALL": "C.UTF-8"},
    ).stdout.split("\0")[:-1]  # fmt: skip
    shown = invoke(*words[1:2], "--json", *words[2:])
    assert shown.exit_code == 0, shown.output
    # The first repeat is the suspect; without --repeat the worst one by its scores is shown.
    assert [(each["case_id"], each["repeat"]) for each in json.loads(shown.stdout)] == [(odd, 1)]


def test_what_cannot_be_shown_again_has_no_next_command(invoke, tmp_path):
    lines = b"".join(encode_record(each) + b"\n" for each in RECORDS)
    result = invoke("score", "-", "--suspects", "--json", "--out", "ranks.jsonl", input=lines)
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["next"], data["groups"][0]["next"]) == ([], "")
    assert json.loads((tmp_path / "ranks.jsonl").read_text().splitlines()[0])["next"] is None


def test_three_pieces_of_evidence_are_printed_and_all_are_in_the_json(invoke, tmp_path):
    odd = record("a/trial-9", answer=None)
    for name in ("one", "two", "three"):
        odd.trace.events.append(TraceEvent("tool_call", {"name": f"get_{name}", "status": "error", "error": name}))
    write(tmp_path / "runs.jsonl", [*RECORDS[:3], odd])
    printed = invoke("score", "runs.jsonl", "--suspects").stdout
    assert "… and 3 more (--json lists them)" in printed
    assert "get_three` failed" not in printed
    data = json.loads(invoke("score", "runs.jsonl", "--suspects", "--json").stdout)
    kinds = [each["kind"] for each in data["runs"][0]["evidence"]]
    assert kinds == ["missing call", "no answer", "failed call", "failed call", "failed call", "leaves its peers"]


def test_personal_data_is_masked_wherever_it_stands(invoke, tmp_path):
    address = "bartholomew.featherstonehaugh@example.org"
    error = f"ValueError: {'no ' * 26}mailbox for {address}"
    records = [record("a", 7, tier=address, to=address), *(record("a", tier=address, to=address) for _ in range(3))]
    records.append(record("a", error=error))
    write(tmp_path / "runs.jsonl", records)
    for more in ((), ("--json", "--why")):
        result = invoke("score", "runs.jsonl", "--suspects", "--out", "ranks.jsonl", *more)
        assert result.exit_code == 0, result.output
        for text in (result.output, (tmp_path / "ranks.jsonl").read_text()):
            assert "bartholomew" not in text


def test_ten_runs_are_shown_and_all_on_request(invoke, tmp_path):
    write(tmp_path / "runs.jsonl", [record("a", 7) for _ in range(12)])
    few, all_of_them = (invoke("score", "runs.jsonl", "--suspects", *more).stdout for more in ([], ["--why"]))
    assert "… and 2 more (--why shows them)" in few
    assert " 12  a repeat 12" in all_of_them
    write(tmp_path / "runs.jsonl", [*(record("a", 7) for _ in range(11)), record("a", 8)])
    printed = invoke("score", "runs.jsonl", "--suspects", "--why").stdout
    assert printed.count("does as most of its peers do") == 11
    assert "does as its peers do" not in printed


def test_a_run_of_the_store_is_ranked_by_its_repeats(invoke, tmp_path):
    with open_store("agentunit.db") as store:
        header = store.create_run("desk", agentunit_version="0", settings={}, n_planned=4)
        for repeat in range(4):
            add_record(store, header.id, 0, repeat, record("a", *([7] if repeat else [])), failed=False, elapsed_s=0.0)
        store.set_status(header.id, "finished", finished_at=1.0)
    result = invoke("score", "desk", "--suspects", "--store", "agentunit.db", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert next((each["repeat"], each["difference"], each["suspicion"]) for each in data["runs"]) == (0, 1.0, 0.75)
    assert data["next"] == [f"agentunit show {header.id} a --repeat 1 --store agentunit.db"]


@pytest.mark.parametrize(
    ("records", "code", "said"),
    [
        ([record("a", 7), record("a", 7)], 4, "no run could be ranked: none has two other runs of the same task"),
        ([], 3, "nothing to rank"),
    ],
)
def test_exit_codes_where_nothing_can_be_told(invoke, tmp_path, records, code, said):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"".join(encode_record(each) + b"\n" for each in records))
    result = invoke("score", "runs.jsonl", "--suspects")
    assert result.exit_code == code, result.output
    assert said in result.stderr


def test_unreadable_records_are_counted_and_allowed(invoke, tmp_path):
    path = write(tmp_path / "runs.jsonl", RECORDS)
    path.write_bytes(path.read_bytes() + b'{"case": 3, "v": 1}\n')
    refused = invoke("score", "runs.jsonl", "--suspects", "--errors", "errors.jsonl")
    assert refused.exit_code == 3
    assert "1 unreadable" in refused.stderr
    assert len((tmp_path / "errors.jsonl").read_text().splitlines()) == 1
    assert invoke("score", "runs.jsonl", "--suspects", "--max-errors", "1").exit_code == 0
    assert invoke("score", "runs.jsonl", "--suspects", "--strict").exit_code == 3


@pytest.mark.parametrize(
    "arguments",
    [("--suspects", "-m", "cost"), ("--suspects", "--jobs", "2"), ("--task", "metadata.tier"), ("--mark", "x=read")],
)
def test_options_that_do_not_go_together_are_refused(invoke, tmp_path, arguments):
    write(tmp_path / "runs.jsonl", RECORDS)
    result = invoke("score", "runs.jsonl", *arguments)
    assert result.exit_code == 2, result.output


def test_marks_and_tasks_of_the_user(invoke, tmp_path):
    write(tmp_path / "runs.jsonl", [record(f"t{n}", n, tier="gold") for n in range(4)])
    named = json.loads(invoke("score", "runs.jsonl", "--suspects", "--json", "--task", "metadata.tier").stdout)
    assert named["task_by"] == {"field": 4}
    assert named["n_suspects"] == 4
    marked = invoke(
        "score", "runs.jsonl", "--suspects", "--json", "--task", "metadata.tier", "--mark", "send_refund=read"
    )
    assert {each["tool"]: each["source"] for each in json.loads(marked.stdout)["tools"]}["send_refund"] == "option"
    assert json.loads(marked.stdout)["n_suspects"] == 0


def test_a_task_field_that_no_record_has_is_refused_before_anything_is_ranked(invoke, tmp_path):
    write(tmp_path / "runs.jsonl", RECORDS)
    mistyped = invoke("score", "runs.jsonl", "--suspects", "--task", "metadata.teir")
    assert mistyped.exit_code == 2
    assert "none of the 5 records has a value of metadata.teir; did you mean metadata.tier?" in mistyped.stderr
    assert not mistyped.stdout
    other = invoke("score", "runs.jsonl", "--suspects", "--json", "--task", "metadata.nope")
    assert other.exit_code == 2
    assert "they have metadata.tier." in other.stderr


def test_a_task_field_that_some_records_have_is_counted(invoke, tmp_path):
    of_one = [record(f"t{n}", n, tier="gold") for n in range(3)]
    write(tmp_path / "runs.jsonl", [*of_one, *(record(f"a/trial-{n}", 7, tier="") for n in range(4))])
    result = invoke("score", "runs.jsonl", "--suspects", "--task", "metadata.tier")
    assert "3 of 7 runs have metadata.tier; the others were matched by their ids or questions" in result.stdout
    assert "found by the field that you name and their ids" in result.stdout
    data = json.loads(invoke("score", "runs.jsonl", "--suspects", "--json", "--task", "metadata.tier").stdout)
    assert data["task_by"] == {"field": 3, "id": 4}
    assert (data["task_field"], data["n_with_task_field"]) == ("metadata.tier", 3)


def test_groups_name_the_slice_they_live_in(invoke, tmp_path):
    good = [record(f"{task}/trial-{n}", 7, tier="gold") for task in "abc" for n in range(4)]
    odd = [record(f"{task}/trial-9", tier="basic") for task in "abc"]
    write(tmp_path / "runs.jsonl", [*good, *odd])
    result = invoke("score", "runs.jsonl", "--suspects")
    assert "3 × did not call send_refund" in result.stdout
    assert "mostly tier=basic" in result.stdout


def test_an_output_is_not_written_over_an_input(invoke, tmp_path):
    write(tmp_path / "runs.jsonl", RECORDS)
    assert invoke("score", "runs.jsonl", "--suspects", "--out", "runs.jsonl").exit_code == 2


@pytest.fixture
def no_judge(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", str(tmp_path / "replies"))
    yield
    configure_judge()
    load_backend("judge").close()


def test_a_judge_names_causes_where_it_is_named_and_sees_masked_evidence(invoke, tmp_path, no_judge):
    write(tmp_path / "runs.jsonl", RECORDS)
    answer = {"names": ["Refund forgotten"]}
    with JudgeServer(lambda body: {"mark": mark_of(body), **answer}) as server:
        judge = ("--backend", "judge", "--judge-url", server.url, "--judge-model", "m", "--yes")
        result = invoke("score", "runs.jsonl", "--suspects", *judge)
        assert result.exit_code == 0, result.output
        assert "1 × Refund forgotten" in result.stdout
        assert "the names of causes asks a judge: masked evidence of 1 case" in result.stderr
        (call,) = server.calls
        assert "send_refund" in str(call.body)
        assert "ada@example.org" not in str(call.body)
        answer["names"] = []
        unnamed = invoke("score", "runs.jsonl", "--suspects", *judge, "--no-cache")
    assert unnamed.exit_code == 0
    assert "1 × did not call send_refund" in unnamed.stdout
    assert "note: the judge named no cause" in unnamed.stderr


@pytest.mark.parametrize(
    "arguments", [("--judge-url", "http://127.0.0.1:9/v1"), ("--backend", "ragas"), ("--param", "cost.currency=USD")]
)
def test_a_judge_that_nobody_asks_for_names_is_refused(invoke, tmp_path, no_judge, arguments):
    write(tmp_path / "runs.jsonl", RECORDS)
    assert invoke("score", "runs.jsonl", "--suspects", *arguments).exit_code == 2
