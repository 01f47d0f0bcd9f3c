"""BFCL as cases and runs, before its faults were corrected and as it is now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentunit.addons.review.soundness.material import Material, RunOutcomes, Try
from agentunit.backends.json_schema import SchemaError, violations
from benchmarks.doctor.loading import loaded, repeated_ids
from benchmarks.doctor.repositories import files_at, git, rows_at

GORILLA = "ShishirPatil/gorilla"
RESULTS = "HuanzhiMao/BFCL-Result"
BFCL_BEFORE = "716ea6ee^"
_BFCL = "berkeley-function-call-leaderboard"
_BFCL_DATA = f"{_BFCL}/data"
_BFCL_NOW = f"{_BFCL}/bfcl_eval/data"
_CATEGORIES = (
    "simple", "multiple", "parallel", "parallel_multiple", "java", "javascript", "irrelevance", "live_simple",
    "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance",
)  # fmt: skip
_NO_CALL = ("irrelevance", "live_irrelevance")
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "int": "integer", "bool": "boolean"}


def bfcl() -> tuple[list[Material], list[str]]:
    """BFCL in late 2024, two files of later commits whose ids were at fault, and ids that a dataset refuses."""
    cases = [case for category in _CATEGORIES for case in _bfcl_cases(BFCL_BEFORE, _BFCL_DATA, category)]
    no_key = list(_bfcl_cases("406c78a9^", _BFCL_DATA, "live_multiple"))
    twice = list(_bfcl_cases("3d96206f^", _BFCL_NOW, "live_relevance"))
    repeated = [*repeated_ids(cases), *repeated_ids(twice)]
    return [Material(loaded(cases)), Material(loaded(no_key))], repeated


def _bfcl_cases(commit: str, folder: str, category: str) -> Iterator[dict[str, Any]]:
    name = f"BFCL_v3_{category}.json"
    rows = rows_at(GORILLA, commit, f"{folder}/possible_answer/{name}")
    keys = {row["id"]: row["ground_truth"] for row in rows}
    for row in rows_at(GORILLA, commit, f"{folder}/{name}"):
        yield _bfcl_case(row, keys.get(row["id"]), category)


def _bfcl_case(row: dict[str, Any], key: Any, category: str) -> dict[str, Any]:
    # Arguments for Java and JavaScript are texts of source code, whatever their type.
    typed = category not in ("java", "javascript")
    functions = row["function"] if isinstance(row["function"], list) else [row["function"]]
    tools = [{"name": each["name"], "parameters": _schema(each["parameters"], typed=typed)} for each in functions]
    schemas = {tool["name"]: tool["parameters"] for tool in tools}
    turns = row["question"]
    texts = [turns] if isinstance(turns, str) else [part["content"] for turn in turns for part in turn]
    case: dict[str, Any] = {"id": row["id"], "query": "\n".join(texts), "tools": tools, "metadata": {}}
    if category in _NO_CALL:
        case["metadata"]["expected_tool_calls"] = []
    elif category == "live_relevance":
        case["metadata"]["check"] = "some call is made"
    elif key is not None:
        calls = [item for call in (key if isinstance(key, list) else [key]) for item in call.items()]
        case["metadata"]["expected_tool_calls"] = [
            {"name": name, "arguments": _arguments(accepted, schemas.get(name))} for name, accepted in calls
        ]
    return case


def _arguments(accepted: dict[str, Any], schema: Any) -> dict[str, Any]:
    """For each argument an accepted value that the schema allows, if there is one; "" means that it may be left out."""
    described = schema.get("properties", {}) if isinstance(schema, dict) else {}
    chosen: dict[str, Any] = {}
    for name, values in accepted.items():
        # The checker of the suite, too, walks through what is no list of values letter by letter, or name by name.
        usable = [_nested(each, described.get(name)) for each in values if each != ""]
        if usable:
            chosen[name] = next((each for each in usable if _is_allowed(each, described.get(name))), usable[0])
    return chosen


def _nested(value: Any, schema: Any) -> Any:
    if isinstance(value, dict):
        return _arguments(value, schema) if all(isinstance(each, (list, str)) for each in value.values()) else value
    items = schema.get("items") if isinstance(schema, dict) else None
    return [_nested(each, items) for each in value] if isinstance(value, list) else value


def _is_allowed(value: Any, schema: Any) -> bool:
    try:
        return schema is None or not violations(value, schema)
    except SchemaError:
        return True


def _schema(schema: Any, *, typed: bool) -> Any:
    if isinstance(schema, list):
        return [_schema(each, typed=typed) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            made[key] = {name: _schema(each, typed=typed) for name, each in value.items()}
        elif key == "type" and isinstance(value, str):
            kind = _TYPES.get(value, value)
            if typed and kind in ("object", "array", "string", "number", "integer", "boolean"):
                made[key] = kind
        elif key in ("items", "additionalProperties"):
            made[key] = _schema(value, typed=typed)
        elif key in ("required", "enum", "default", "description"):
            made[key] = value
    return made


def bfcl_contents(commit: str, *, now: bool) -> dict[str, str]:
    """What each case and its key say, in a form in which files of different years can be compared."""
    found = {}
    for category in _CATEGORIES:
        renamed = {"simple": "simple_python", "java": "simple_java", "javascript": "simple_javascript"}
        name = f"BFCL_v4_{renamed.get(category, category)}.json" if now else f"BFCL_v3_{category}.json"
        folder = _BFCL_NOW if now else _BFCL_DATA
        keys = {row["id"]: row["ground_truth"] for row in rows_at(GORILLA, commit, f"{folder}/possible_answer/{name}")}
        for row in rows_at(GORILLA, commit, f"{folder}/{name}"):
            case_id = row["id"].replace("simple_python", "simple").replace("simple_java", "java")
            found[case_id] = json.dumps([row["question"], row["function"], keys.get(row["id"])], sort_keys=True)
    return found


def bfcl_runs() -> Material:
    """The scores of the models of August 2024 on the four categories in Python; answers are known of failures only."""
    models = sorted({path.split("/")[2] for path in files_at(RESULTS, "HEAD", "2024-08-11/score/")})
    files = {"simple": "simple", "multiple_function": "multiple", "parallel_function": "parallel"}
    files["parallel_multiple_function"] = "parallel_multiple"
    commit = git(GORILLA, "rev-list", "-1", "--before=2024-08-12", "HEAD").strip()
    sizes = {
        short: len(rows_at(GORILLA, commit, f"{_BFCL_DATA}/gorilla_openfunctions_v1_test_{name}.json"))
        for name, short in files.items()
    }
    runs = []
    for model in models:
        run = RunOutcomes(model, "valid")
        for name, short in files.items():
            rows = rows_at(RESULTS, "HEAD", f"2024-08-11/score/{model}/{name}_score.json")
            if not rows or rows[0].get("total_count") != sizes[short]:
                continue
            failed = {int(row["id"]) - 1: row.get("model_result_decoded") for row in rows[1:]}
            for number in range(sizes[short]):
                answer = json.dumps(failed[number], sort_keys=True) if failed.get(number) else None
                run.tries[f"{short}_{number}"] = [
                    Try(number not in failed, answer=answer or ("right" if number not in failed else None))
                ]
        if run.tries:
            runs.append(run)
    return Material(runs=runs)


def bfcl_contents_of_runs() -> tuple[dict[str, str], dict[str, str]]:
    """The same for the cases that the runs of August 2024 saw, and for those of today."""
    commit = git(GORILLA, "rev-list", "-1", "--before=2024-08-12", "HEAD").strip()
    before = {}
    for name, short in (
        ("simple",) * 2,
        ("multiple_function", "multiple"),
        ("parallel_function", "parallel"),
        ("parallel_multiple_function", "parallel_multiple"),
    ):
        stem = f"gorilla_openfunctions_v1_test_{name}.json"
        keys = rows_at(GORILLA, commit, f"{_BFCL_DATA}/possible_answer/{stem}")
        for number, row in enumerate(rows_at(GORILLA, commit, f"{_BFCL_DATA}/{stem}")):
            key = keys[number].get("ground_truth", keys[number])
            before[f"{short}_{number}"] = _of_any_year(row["question"], row["function"], key)
    now = {}
    for case_id, content in bfcl_contents("HEAD", now=True).items():
        question, functions, key = json.loads(content)
        now[case_id] = _of_any_year(question, functions, key)
    return before, now


def _of_any_year(question: Any, functions: Any, key: Any) -> str:
    texts = [question] if isinstance(question, str) else [part["content"] for turn in question for part in turn]
    listed = functions if isinstance(functions, list) else [functions]
    calls = (
        key if isinstance(key, list) else [{name: value} for name, value in key.items() if name != "id"] if key else []
    )
    schemas = [[each["name"], each["parameters"]] for each in listed]
    return json.dumps([[" ".join(text.split()) for text in texts], schemas, calls], sort_keys=True)
