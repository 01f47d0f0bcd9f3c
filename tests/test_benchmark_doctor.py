"""The benchmark of the doctor: its frozen list of faults, and what it says where the fetched suites are not there."""

from __future__ import annotations

import json
from collections import Counter

from benchmarks.doctor import __main__ as command
from benchmarks.doctor.function_calls import _bfcl_case
from benchmarks.doctor.repositories import NEEDED, VARIABLE, data_folder, repository
from benchmarks.doctor.suites import _webarena_assertions

from agentunit.addons.review.soundness.examine import CHECKS
from agentunit.addons.review.soundness.material import Material
from agentunit.datasets.readers import load_dataset


def _faults() -> list[dict]:
    return [json.loads(line) for line in command.FAULTS.read_text().splitlines()]


def test_every_fault_of_the_list_has_a_source_a_kind_and_cases():
    faults = _faults()
    assert len(faults) == 72
    assert len({fault["id"] for fault in faults}) == 72
    assert Counter(fault["suite"] for fault in faults) == {
        "bfcl": 35, "tau-bench": 6, "tau2": 12, "webarena": 7, "mmlu": 12,
    }  # fmt: skip
    for fault in faults:
        assert fault["cases"]
        assert fault["kind"]
        assert fault["note"]
        assert any(fault["source"].startswith(name) for name in (*NEEDED, "uiuc-kang-lab/")), fault["source"]


def test_checks_that_the_measurement_names_exist():
    known = {check.name for check in CHECKS} | {"refused"}
    assert set().union(*command._OF_KIND.values()) | command._NOT_OF_A_CASE <= known


def test_without_the_data_nothing_is_measured_and_it_says_what_to_do(monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert data_folder() is None
    assert command.main() == 0
    said = capsys.readouterr().out
    assert VARIABLE in said
    assert "ShishirPatil/gorilla" in said


def test_with_a_part_of_the_data_the_rest_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    repository.cache_clear()
    assert command.main() == 0
    repository.cache_clear()
    assert "not measured, as they are not there" in capsys.readouterr().out


def test_a_fault_is_seen_only_by_a_check_that_speaks_of_its_kind():
    row = {
        "id": "x",
        "question": [[{"role": "user", "content": "Two tickets, please"}]],
        "function": [
            {
                "name": "buy",
                "parameters": {"type": "dict", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
            }
        ],
    }
    wrong, right = (
        _bfcl_case({**row, "id": name}, [{"buy": {"n": values}}], "simple")
        for name, values in (("w", ["2"]), ("r", [2, "2"]))
    )
    seen = command._seen([Material(load_dataset([wrong, {**right, "query": "And two more"}]))])
    assert set(seen["w"]) == {"invalid_arguments"}
    assert "r" not in seen
    fault = {"cases": ["w"], "kind": "expected value of the wrong type"}
    assert command._checks_that_see(fault, seen) == {"invalid_arguments"}
    assert command._checks_that_see({**fault, "kind": "duplicate id"}, seen) == set()


def test_checks_of_webarena_become_assertions():
    made = list(_webarena_assertions({"must_include": ["65%"], "exact_match": "Yes", "fuzzy_match": ["No"]}))
    assert [each["type"] for each in made] == ["icontains", "levenshtein"]
