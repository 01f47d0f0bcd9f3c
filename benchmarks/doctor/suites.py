"""Public suites as cases and runs, each at a commit before its faults were corrected."""

from __future__ import annotations

import ast
import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from agentunit.addons.review.soundness.material import Material, RunOutcomes, Try
from benchmarks.doctor.loading import loaded
from benchmarks.doctor.repositories import files_at, text_at

TAU, TAU2, WEBARENA, MMLU = (
    "sierra-research/tau-bench",
    "sierra-research/tau2-bench",
    "web-arena-x/webarena",
    "aryopg/mmlu-redux",
)
SUBJECTS = (
    "college_chemistry", "college_mathematics", "econometrics", "formal_logic", "global_facts", "high_school_physics",
    "machine_learning", "public_relations", "virology",
)  # fmt: skip
# What τ-bench grades by is the database: calls that only read it are listed, and decide nothing.
_READS = ("get_", "list_", "search_", "find_", "calculate", "think", "transfer_to_human_agents")


def tau_bench() -> list[Material]:
    """The retail tasks before two rounds of corrections, and the airline tasks as they are."""
    retail = _tau_tasks("a8f3cf5^", "retail/tasks.py", "tasks", "retail")
    later = _tau_tasks("fbc1c58^", "retail/tasks_test.py", "TASKS_TEST", "retail-test")
    airline = _tau_tasks("HEAD", "airline/tasks_test.py", "TASKS", "airline")
    return [Material(loaded(cases)) for cases in (retail, later, airline)]


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
    return [Material(loaded(list(_tau2_cases(domain)))) for domain in ("retail", "airline")]


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
    return [Material(loaded(list(_webarena_cases(commit)))) for commit in ("b454f2d", "58061ee^", "cd7d593^")]


def webarena_now() -> Material:
    """The tasks as they are now."""
    return Material(loaded(list(_webarena_cases("HEAD"))))


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
        materials.append(Material(loaded(cases), runs=[run for run in runs if run.tries]))
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
