"""Google ADK: an eval set, written after the published types of google-adk (EvalSet, EvalCase, Invocation)."""

import json
from pathlib import Path


def said(role, words):
    return {"role": role, "parts": [{"text": words}]}


def turn(number, asked, answered, calls=(), results=()):
    steps = {"tool_uses": list(calls), "tool_responses": list(results), "intermediate_responses": []}
    made = {"invocation_id": f"e-{number}", "user_content": said("user", asked)}
    return {**made, "final_response": said("model", answered), "intermediate_data": steps, "creation_timestamp": number}


calls = [{"id": "c1", "name": "roll_die", "args": {"sides": 6}}, {"id": "c2", "name": "check_prime", "args": {"n": 5}}]
results = [
    {"id": "c1", "name": "roll_die", "response": {"result": 5}},
    {"id": "c2", "name": "check_prime", "response": {"error": "no such service"}},
]
turns = [turn(1, "Who are you?", "I roll dice."), turn(2, "Roll one. Is it prime?", "It is 5.", calls, results)]
case = {"eval_id": "dice", "conversation": turns, "session_input": None, "creation_timestamp": 1}
whole = {"eval_set_id": "set-1", "name": "dice", "description": None, "eval_cases": [case], "creation_timestamp": 1}
Path(__file__).with_name("dice.json").write_text(json.dumps(whole, indent=1) + "\n")
