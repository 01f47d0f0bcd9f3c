"""Expected answers that are empty, that nothing checks, or that say two things at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentunit.addons.review.soundness._grading import calls_functions
from agentunit.addons.review.soundness._texts import nearest, plain, shown
from agentunit.addons.review.soundness.found import Hit
from agentunit.addons.review.soundness.material import Material, metadata_of
from agentunit.core.case import DatasetCase
from agentunit.metrics.base import MetricInfo, info_metadata_inputs
from agentunit.metrics.inputs import acceptable_answers
from agentunit.metrics.registry import registry

# An empty list of expected tool calls means that none is expected; of these an empty one says nothing.
_SAY_NOTHING_EMPTY = ("contains", "regex", "assertions", "expected_state", "json_schema", "rubric")
_MEANT = {
    "expected_tools": "expected_tool_calls",
    "expected_tool": "expected_tool_calls",
    "expected_calls": "expected_tool_calls",
    "expected_actions": "expected_tool_calls",
    "tools_expected": "expected_tool_calls",
    "tool_calls": "expected_tool_calls",
    "must_contain": "contains",
    "must_include": "contains",
    "asserts": "assertions",
    "assert": "assertions",
    "schema": "json_schema",
    "pattern": "regex",
    "final_state": "expected_state",
}
# Common words that name other things as well, such as a schema of tables: only a value of the right shape is meant.
_SHAPES: dict[str, Callable[[Any], bool]] = {
    "tool_calls": lambda value: isinstance(value, list),
    "schema": lambda value: isinstance(value, Mapping) and not {"type", "properties", "$ref"}.isdisjoint(value),
    "pattern": lambda value: isinstance(value, str) and any(sign in value for sign in "^$\\[(*+|"),
}
_ALTERNATIVES = re.compile(r"^(?P<one>[^.;\n]{1,40}?)\s*(?:\bor\b|\||(?<=\s)/(?=\s))\s*(?P<other>[^.;\n]{1,40})$", re.I)
_OPPOSITES = [{"yes", "no"}, {"true", "false"}, {"correct", "incorrect"}, {"valid", "invalid"}]


def empty(material: Material) -> Iterator[Hit]:
    """Cases whose expectation is there but empty, and cases without any among others that have one."""
    without = []
    for case in material.cases:
        expected = case.expected_output
        if expected == [] or (isinstance(expected, str) and not expected.strip()):
            yield Hit(case.id, f"expected_output is {shown(expected) if expected else repr(expected)}")
            continue
        for key in _SAY_NOTHING_EMPTY:
            value = metadata_of(case).get(key, "absent")
            if value in ("", [], {}):
                yield Hit(case.id, f"metadata[{key!r}] is {value!r}: nothing is checked")
                break
        else:
            if not _expects_something(case):
                without.append(case.id)
    if without and not material.left_out and len(without) * 2 < len(material.cases) and _need_expectations(material):
        n_others = len(material.cases) - len(without)
        for case_id in without:
            yield Hit(case_id, f"nothing is expected of it, unlike of the other {n_others:,} cases")


def unchecked(material: Material) -> Iterator[Hit]:
    """Expectations that cases list and no metric of the suite reads."""
    graded_by = material.graded_by
    if graded_by is None:
        return
    read = set().union(*map(_keys_read, material.infos.values())) if material.infos else set()
    # A metric that does not say what it reads may read anything.
    reads_all = any(info_metadata_inputs(info) is None for info in material.infos.values())
    unknown = graded_by - material.infos.keys()
    # So does a check that somebody wrote; and a run does not tell whether its task_success was one.
    if material.metrics is None:
        reads_all |= "task_success" in graded_by
    else:
        reads_all |= any(calls_functions(metric, material.cases) for metric in material.metrics)
    if unknown or reads_all:
        return
    keys = registry.answer_keys()
    for case in material.cases:
        fields = metadata_of(case)
        is_graded = any(key in read and key in keys for key in fields)
        for key in fields:
            if key in keys and key not in read and fields[key] not in (None, "", [], {}):
                reader = keys[key]
                yield Hit(
                    case.id, f"metadata[{key!r}] is listed; the metric {reader!r}, which reads it, is not used", key
                )
        # Beside another check, an expected answer may be there for people to read.
        if is_graded or not _has_answer(case):
            continue
        if not any("expected_output" in place for i in material.infos.values() for place in i.inputs):
            yield Hit(case.id, "expected_output is listed; no metric compares the answer with it", "expected_output")


def misnamed(material: Material) -> Iterator[Hit]:
    """Fields that look like expectations under a name that no metric reads."""
    known = registry.answer_keys()
    read = set().union(*map(_keys_read, material.infos.values())) if material.infos else set()
    meant_by: dict[str, str | None] = {}
    for case in material.cases:
        fields = metadata_of(case)
        for key in fields:
            if not isinstance(key, str) or key in known or key in read:
                continue
            if key not in meant_by:
                meant_by[key] = _MEANT.get(key.lower()) or nearest(key.lower(), known, cutoff=0.87)
            meant = meant_by[key]
            has_shape = _SHAPES.get(key.lower(), lambda _: True)
            if meant is not None and meant not in fields and meant in known and has_shape(fields[key]):
                yield Hit(case.id, f"metadata[{key!r}] is read by no metric; {meant!r} would be", key)


def two_answers(material: Material) -> Iterator[Hit]:
    """Expected answers that accept opposites, or that list alternatives in one text which is compared as a whole."""
    exact = material.graded_by is None or "exact_match" in material.graded_by
    for case in material.cases:
        expected = case.expected_output
        answers = {plain(each) for each in acceptable_answers(expected)}
        for opposites in _OPPOSITES:
            if opposites <= answers:
                yield Hit(case.id, f"both {' and '.join(sorted(opposites))} are accepted")
        found = _ALTERNATIVES.match(expected.strip()) if isinstance(expected, str) and exact else None
        if found and _are_alternatives(found["one"], found["other"], case):
            told = f"{shown(expected)} is compared as one text"
            yield Hit(case.id, f"{told}; a list accepts either: [{found['one'].strip()!r}, {found['other'].strip()!r}]")


def _are_alternatives(one: str, other: str, case: DatasetCase) -> bool:
    """Whether a text names two answers: what the question itself says, such as a title, is one name."""
    if any(each.strip().isdigit() for each in (one, other)) or len(plain(one)) < 2 or len(plain(other)) < 2:
        return False
    return plain(f"{one} or {other}") not in plain(case.query or "") and "://" not in one


def _expects_something(case: DatasetCase) -> bool:
    fields = metadata_of(case)
    named = any(
        isinstance(key, str) and (key in registry.answer_keys() or key.startswith("expected")) for key in fields
    )
    return named or _has_answer(case) or case.turns is not None or case.user is not None


def _has_answer(case: DatasetCase) -> bool:
    return case.expected_output not in (None, "", [])


def _need_expectations(material: Material) -> bool:
    """Whether some metric grades by what a case expects; a suite without one may expect nothing."""
    if material.metrics is None and material.runs:
        return any(run.metric != "task_success" for run in material.runs)
    if material.graded_by is None:
        return True
    return any(
        "case.expected_output" in place or "case.metadata" in place
        for info in material.infos.values()
        for place in info.inputs
    )


def _keys_read(info: MetricInfo) -> set[Any]:
    return set(info_metadata_inputs(info) or ()) | ({info.name} if info.name in registry.answer_keys() else set())
