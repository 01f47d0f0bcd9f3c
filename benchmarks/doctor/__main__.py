"""``python -m benchmarks.doctor``: recall on the frozen list of faults, and how many warnings were later corrected.

AGENTUNIT_DOCTOR_DATA names the folder with the repositories that repositories.py lists; without it nothing is measured.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentunit.addons.review.soundness.examine import examine_soundness
from agentunit.addons.review.soundness.material import Material
from benchmarks.doctor import function_calls, suites
from benchmarks.doctor.repositories import NEEDED, VARIABLE, data_folder, repository

FAULTS = Path(__file__).parent / "faults.jsonl"
# They speak of the suite as a whole, or of cases that are right: they do not count as having seen a fault of a case.
_NOT_OF_A_CASE = {"everyone_passes", "near_duplicates", "duplicates", "null_agent", "constant_answer", "unchecked"}
# Which checks speak of which kind of fault, where another one could warn of the case for a reason of its own.
_OF_KIND = {
    "null agent passes": {"null_agent"},
    "key malformed": {"invalid_arguments"},
    "schema contradicts itself": {"broken_tool_schema", "invalid_arguments"},
    "expected value of the wrong type": {"invalid_arguments"},
    "expected argument that the tool does not have": {"invalid_arguments"},
    "expected tool that does not exist": {"unknown_tool"},
    "expected call changes nothing": {"call_without_effect"},
    "key contradicts the question": {"contradictory_duplicates", "agreed_otherwise", "everyone_fails", "turned_round"},
    "check too strict": {"agreed_otherwise", "everyone_fails"},
    "duplicate id": {"refused"},
    "ids do not match": {"empty_expectation"},
}
Seen = dict[str, dict[str, str]]


def main() -> int:
    """Measure what can be measured here."""
    if data_folder() is None:
        print(f"{VARIABLE} names no folder: fetch {', '.join(NEEDED)} with git and name the folder that holds them")
        return 0
    missing = [name for name in NEEDED if repository(name) is None]
    if missing:
        print(f"not measured, as they are not there: {', '.join(missing)}")
        return 0
    seen: dict[str, Seen] = {}
    views, repeated = function_calls.bfcl()
    seen["bfcl"] = _seen(views)
    for case_id in repeated:
        seen["bfcl"].setdefault(case_id, {})["refused"] = "two cases have this id"
    seen["tau-bench"], seen["tau2"] = _seen(suites.tau_bench()), _seen(suites.tau2())
    seen["webarena"] = _seen(suites.webarena())
    subjects, verdicts = suites.mmlu()
    seen["mmlu"] = _seen(subjects)
    runs = _seen([function_calls.bfcl_runs()])
    for case_id, checks in runs.items():
        seen["bfcl"].setdefault(case_id, {}).update({f"{check} (runs)": text for check, text in checks.items()})
    _print_recall(seen)
    before, now = (
        function_calls.bfcl_contents(function_calls.BFCL_BEFORE, now=False),
        function_calls.bfcl_contents("HEAD", now=True),
    )
    corrected = {case_id for case_id, content in before.items() if now.get(case_id) != content}
    _print_precision("bfcl, late 2024, cases and keys", seen["bfcl"], corrected, before)
    wrong = {case_id for case_id, verdict in verdicts.items() if verdict != "ok"}
    _print_precision("mmlu, nine subjects, ten models", seen["mmlu"], wrong, verdicts)
    old, new = function_calls.bfcl_contents_of_runs()
    changed = {case_id for case_id, content in old.items() if new.get(case_id) != content}
    _print_precision("bfcl, August 2024, outcomes of models", runs, changed, old)
    now = _seen([suites.webarena_now()])
    print(f"\nwebarena, as it is now: {sum(map(len, now.values()))} warnings, to be read by hand (--list shows them)")
    if "--list" in sys.argv:
        seen["webarena, now"] = now
        print(json.dumps(seen, indent=1))
    return 0


def _seen(materials: Iterable[Material]) -> Seen:
    """For each case, the checks that warn of it, with their evidence."""
    found: Seen = defaultdict(dict)
    for material in materials:
        for warning in examine_soundness(material).warnings:
            for evidence in warning.evidence:
                found[evidence.case].setdefault(warning.check, evidence.text)
            for case_id in warning.cases:
                found[case_id].setdefault(warning.check, "")
    return found


def _print_recall(seen: dict[str, Seen]) -> None:
    faults: list[dict[str, Any]] = [json.loads(line) for line in FAULTS.read_text().splitlines()]
    n_seen: Counter[str] = Counter()
    for fault in faults:
        checks = sorted(_checks_that_see(fault, seen[fault["suite"]]))
        n_seen[fault["suite"]] += bool(checks)
        print(f"{fault['id']:13} {'seen' if checks else '-':5} {fault['kind']:45} {', '.join(checks)}")
    for suite in dict.fromkeys(fault["suite"] for fault in faults):
        print(f"{suite}: {n_seen[suite]} of {sum(fault['suite'] == suite for fault in faults)} faults seen")
    print(f"all: {sum(n_seen.values())} of {len(faults)} faults seen")


def _checks_that_see(fault: dict[str, Any], seen: Seen) -> set[str]:
    found = set()
    for case_id in fault["cases"]:
        is_family = case_id.endswith("*")
        named = [each for each in seen if each.startswith(case_id[:-1])] if is_family else [case_id, f"{case_id}#2"]
        for each in named:
            found |= {check.removesuffix(" (runs)") for check in seen.get(each, {})}
    return found & _OF_KIND.get(fault["kind"], found - _NOT_OF_A_CASE)


def _print_precision(what: str, seen: Seen, faulty: set[str], known: Iterable[str]) -> None:
    known = set(known)
    base = len(faulty & known) / len(known)
    print(f"\n{what}: {len(faulty & known)} of {len(known)} cases were later corrected or found faulty ({base:.1%})")
    by_check: dict[str, set[str]] = defaultdict(set)
    for case_id, checks in seen.items():
        for check in checks:
            if not check.endswith(" (runs)"):
                by_check[check].add(case_id)
    of_cases: set[str] = set()
    for check, cases in sorted(by_check.items()):
        cases &= known
        if cases:
            right = len(cases & faulty)
            print(f"  {check:26} {len(cases):4} warned of, {right:4} faulty = {right / len(cases):.0%}")
        if check not in _NOT_OF_A_CASE:
            of_cases |= cases
    if of_cases:
        right = len(of_cases & faulty)
        print(
            f"  together, of single cases  {len(of_cases):4} warned of, {right:4} faulty = {right / len(of_cases):.0%}"
        )


if __name__ == "__main__":
    sys.exit(main())
