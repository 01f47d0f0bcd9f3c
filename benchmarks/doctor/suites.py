"""Public suites as cases and runs, each at a commit before its faults were corrected."""

from __future__ import annotations

import ast
import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from agentunit.backends.json_schema import SchemaError, violations
from agentunit.core.case import DatasetCase
from agentunit.datasets.readers import DatasetError, load_dataset
from agentunit.soundness.material import Material, RunOutcomes, Try
from benchmarks.doctor.repositories import files_at, git, rows_at, text_at

GORILLA = "ShishirPatil/gorilla"
RESULTS = "HuanzhiMao/BFCL-Result"
TAU, TAU2, WEBARENA, MMLU = (
    "sierra-research/tau-bench",
    "sierra-research/tau2-bench",
    "web-arena-x/webarena",
    "aryopg/mmlu-redux",
)
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
SUBJECTS = (
    "college_chemistry", "college_mathematics", "econometrics", "formal_logic", "global_facts", "high_school_physics",
    "machine_learning", "public_relations", "virology",
)  # fmt: skip
# What τ-bench grades by is the database: calls that only read it are listed, and decide nothing.
_READS = ("get_", "list_", "search_", "find_", "calculate", "think", "transfer_to_human_agents")


def bfcl() -> tuple[list[Material], list[str]]:
    """BFCL in late 2024, two files of later commits whose ids were at fault, and ids that a dataset refuses."""
    cases = [case for category in _CATEGORIES for case in _bfcl_cases(BFCL_BEFORE, _BFCL_DATA, category)]
    no_key = list(_bfcl_cases("406c78a9^", _BFCL_DATA, "live_multiple"))
    twice = list(_bfcl_cases("3d96206f^", _BFCL_NOW, "live_relevance"))
    repeated = [*_repeated_ids(cases), *_repeated_ids(twice)]
    return [Material(_loaded(cases)), Material(_loaded(no_key))], repeated


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


def tau_bench() -> list[Material]:
    """The retail tasks before two rounds of corrections, and the airline tasks as they are."""
    retail = _tau_tasks("a8f3cf5^", "retail/tasks.py", "tasks", "retail")
    later = _tau_tasks("fbc1c58^", "retail/tasks_test.py", "TASKS_TEST", "retail-test")
    airline = _tau_tasks("HEAD", "airline/tasks_test.py", "TASKS", "airline")
    return [Material(_loaded(cases)) for cases in (retail, later, airline)]


def _tau_tasks(commit: str, path: str, name: str, prefix: str) -> list[dict[str, Any]]:
    domain = path.split("/")[0]
    tools = list(_tau_tools(commit, domain))
    return [
        _tau_case(f"{prefix}-{number}", task["instruction"], task["actions"], task.get("outputs") or [], tools)
        for number, task in enumerate(_assigned(text_at(TAU, commit, f"tau_bench/envs/{path}"), name))
    ]


def _tau_case(case_id: str, query: str, actions: list[Any], outputs: list[str], tools: list[Any]) -> dict[str, Any]:
    calls = [
        {"name": each["name"], "arguments": each.get("arguments", each.get("kwargs")) or {}}
        for each in actions
        if not each["name"].startswith(_READS)
    ]
    metadata: dict[str, Any] = {"expected_tool_calls": calls}
    if outputs:
        metadata["contains"] = outputs
    return {"id": case_id, "query": query, "tools": tools, "metadata": metadata}


def _tau_tools(commit: str, domain: str) -> Iterator[Any]:
    for path in files_at(TAU, commit, f"tau_bench/envs/{domain}/tools/"):
        for node in ast.walk(ast.parse(text_at(TAU, commit, path))):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
                try:
                    declared = ast.literal_eval(node.value)
                except ValueError:
                    continue
                if "function" in declared:
                    yield declared


def _assigned(source: str, name: str) -> Any:
    """The list that a module assigns to a name, read without running it; calls are their keywords."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return _literal(node.value)
    return []


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        return {each.arg: _literal(each.value) for each in node.keywords}
    if isinstance(node, ast.List):
        return [_literal(each) for each in node.elts]
    return ast.literal_eval(node)


def tau2() -> list[Material]:
    """The retail and airline tasks before the corrections of the verified edition."""
    return [Material(_loaded(list(_tau2_cases(domain)))) for domain in ("retail", "airline")]


def _tau2_cases(domain: str) -> Iterator[dict[str, Any]]:
    commit = "0ed2fd8"
    source = ast.parse(text_at(TAU2, commit, f"src/tau2/domains/{domain}/tools.py"))
    tools: list[Any] = [
        node.name for node in ast.walk(source) if isinstance(node, ast.FunctionDef) and node.name[0] != "_"
    ]
    for task in json.loads(text_at(TAU2, commit, f"data/tau2/domains/{domain}/tasks.json")):
        said = task["user_scenario"]["instructions"]
        criteria = task["evaluation_criteria"]
        query = "\n".join(
            str(said[key]) for key in ("reason_for_call", "known_info", "task_instructions") if said.get(key)
        )
        yield _tau_case(
            f"{domain}-{task['id']}", query, criteria["actions"] or [], criteria["communicate_info"] or [], tools
        )


def webarena() -> list[Material]:
    """The tasks of the release, and those before two later corrections."""
    return [Material(_loaded(list(_webarena_cases(commit)))) for commit in ("b454f2d", "58061ee^", "cd7d593^")]


def webarena_now() -> Material:
    """The tasks as they are now; nothing was tuned on them."""
    return Material(_loaded(list(_webarena_cases("HEAD"))))


def _webarena_cases(commit: str) -> Iterator[dict[str, Any]]:
    for task in json.loads(text_at(WEBARENA, commit, "config_files/test.raw.json")):
        grading = task["eval"]
        wanted = grading["reference_answers"]
        case: dict[str, Any] = {"id": str(task["task_id"]), "query": task["intent"], "metadata": {}}
        # What the annotator wrote as the answer, and the checks made of it.
        if isinstance(grading.get("reference_answer_raw_annotation"), str):
            case["expected_output"] = grading["reference_answer_raw_annotation"]
        metadata = case["metadata"]
        metadata["start_url"] = f"{task['start_url']}/"
        if "string_match" in grading["eval_types"]:
            metadata["assertions"] = list(_webarena_assertions(wanted))
            if isinstance(wanted, dict) and "fuzzy_match" in wanted:
                # A model compares; where it alone does, no assertion is missing.
                metadata["rubric"] = str(wanted["fuzzy_match"])
                metadata["assertions"] = metadata["assertions"] or None
        if "url_match" in grading["eval_types"]:
            metadata["expected_state"] = {"url": grading["reference_url"]}
        if "program_html" in grading["eval_types"]:
            contents = [each["required_contents"] for each in grading["program_html"]]
            state = metadata.setdefault("expected_state", {})
            state.update({f"page {number}": each for number, each in enumerate(contents)})
        yield case


def _webarena_assertions(wanted: Any) -> Iterator[dict[str, Any]]:
    rules = wanted if isinstance(wanted, dict) else {"exact_match": wanted} if isinstance(wanted, str) else {}
    for rule, value in rules.items():
        for each in value if isinstance(value, list) else [value]:
            if rule == "must_include" and each:
                yield {"type": "icontains", "value": each}
            elif rule == "exact_match":
                yield {"type": "levenshtein", "value": each, "threshold": 0}


def mmlu() -> tuple[list[Material], dict[str, str]]:
    """Nine subjects with the answers of ten models, and what experts said of each question."""
    materials, verdicts = [], {}
    models = sorted({path.split("/")[2] for path in files_at(MMLU, "HEAD", "outputs/original_helm/")})
    for subject in SUBJECTS:
        rows = list(csv.DictReader(io.StringIO(text_at(MMLU, "HEAD", f"mmlu_redux/mmlu_{subject}.csv"))))
        cases, by_question = [], {}
        for number, row in enumerate(rows):
            case_id = f"{subject}-{number}"
            choices = _choices(row["choices"])
            letter = "ABCD"[int(row["answer"])]
            listed = "\n".join(f"{name}. {choice}" for name, choice in zip("ABCD", choices, strict=False))
            cases.append({"id": case_id, "query": f"{row['question']}\n{listed}", "expected_output": letter})
            by_question.setdefault(" ".join(row["question"].split()), []).append((case_id, letter))
            verdicts[case_id] = row["error_type"].strip().lower()
        runs = [_helm_run(model, subject, by_question) for model in models]
        materials.append(Material(_loaded(cases), runs=[run for run in runs if run.tries]))
    return materials, verdicts


def _choices(text: str) -> list[str]:
    try:
        return [str(each) for each in json.loads(text)]
    except ValueError:
        try:
            return [str(each) for each in ast.literal_eval(text)]
        except (ValueError, SyntaxError):
            return [text]


def _helm_run(model: str, subject: str, by_question: dict[str, list[tuple[str, str]]]) -> RunOutcomes:
    run = RunOutcomes(model, "exact_match")
    text = text_at(MMLU, "HEAD", f"outputs/original_helm/{model}/{subject}.json")
    for state in json.loads(text)["request_states"] if text else ():
        found = by_question.get(" ".join(state["instance"]["input"]["text"].split()), [])
        completions = state["result"].get("completions") or [{"text": ""}]
        answer = completions[0]["text"].strip()[:1].upper()
        if len(found) == 1:
            case_id, letter = found[0]
            run.tries[case_id] = [Try(answer == letter, answer=answer)]
    return run


def _loaded(cases: list[dict[str, Any]]) -> list[DatasetCase]:
    """The cases as a dataset; ids that stand there twice are made different, which a dataset demands."""
    seen: dict[str, int] = {}
    for case in cases:
        seen[case["id"]] = seen.get(case["id"], 0) + 1
        if seen[case["id"]] > 1:
            case["id"] = f"{case['id']}#{seen[case['id']]}"
    return load_dataset(cases)


def _repeated_ids(cases: list[dict[str, Any]]) -> list[str]:
    """The id that a dataset of these cases is refused for, because two cases have it."""
    try:
        load_dataset(cases)
    except DatasetError as error:
        return [case["id"] for case in cases if f"id {case['id']!r} is taken" in str(error)][:1]
    return []
