"""LangSmith: what langsmith 0.14.17 (PyPI) posts to a server on this machine, and the same runs as its API gives them.

``posted.jsonl`` is one body a line, runs in two parts; ``tree.json`` is the root with its child runs.
"""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

from langsmith import Client, traceable
from langsmith.run_helpers import tracing_context
from langsmith.schemas import Run

QUESTION, ANSWER = "Why was I charged twice?", "The second charge is refunded by a supervisor."
BODIES = []


class Server(BaseHTTPRequestHandler):
    def keep(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.command == "PATCH":
            body.setdefault("id", self.path.rpartition("/")[2])
        BODIES.append(body)
        self.send_response(202)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_PATCH = keep  # noqa: N815

    def log_message(self, *args):
        pass


def usage(n_in, n_out, cached=0, reasoning=0):
    details = {"input_token_details": {"cache_read": cached}, "output_token_details": {"reasoning": reasoning}}
    return {"input_tokens": n_in, "output_tokens": n_out, "total_tokens": n_in + n_out, **details}


@traceable(run_type="llm", name="ChatOpenAI", metadata={"ls_provider": "openai", "ls_model_name": "gpt-4.1-mini"})
def model(messages):
    if len(messages) == 1:
        calls = [
            {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"order": "A-1"}'}},
            {"id": "c2", "type": "function", "function": {"name": "refund", "arguments": '{"charge": "ch_2"}'}},
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        return {"choices": [{"message": message}], "model": "gpt-4.1-mini-2025", "usage_metadata": usage(211, 17)}
    message = {"role": "assistant", "content": ANSWER}
    return {"choices": [{"message": message}], "model": "gpt-4.1-mini-2025", "usage_metadata": usage(352, 31, 256, 8)}


@traceable(run_type="tool")
def lookup(order):
    return f"{order}: ch_1, ch_2"


@traceable(run_type="tool")
def refund(charge):
    raise ValueError("refunds need a supervisor")


@traceable(run_type="chain", name="support", metadata={"session_id": "s-1"})
def support(question):
    first = [{"role": "user", "content": question}]
    model(first)
    found = lookup(order="A-1")
    try:
        refund(charge="ch_2")
    except ValueError as error:
        failed = str(error)
    results = [{"role": "tool", "tool_call_id": "c1", "content": found}]
    results += [{"role": "tool", "tool_call_id": "c2", "content": failed}]
    return model([*first, *results])["choices"][0]["message"]["content"]


server = HTTPServer(("127.0.0.1", 0), Server)
Thread(target=server.serve_forever, daemon=True).start()
client = Client(f"http://127.0.0.1:{server.server_port}", api_key="none", auto_batch_tracing=False)
with tracing_context(enabled=True, client=client):
    support(QUESTION)
server.shutdown()
for body in BODIES:
    body.get("extra", {}).pop("runtime", None)
    body.pop("serialized", None)
    if body.get("error"):
        body["error"] = body["error"].splitlines()[0]
here = Path(__file__).parent
(here / "posted.jsonl").write_text("".join(json.dumps(body) + "\n" for body in BODIES))
runs = {}
for body in BODIES:
    runs[body["id"]] = {**runs.get(body["id"], {}), **{k: v for k, v in body.items() if v not in (None, {}, [])}}
for run in runs.values():
    told = run.get("outputs", {}).get("usage_metadata")
    if told:
        run.update(prompt_tokens=told["input_tokens"], completion_tokens=told["output_tokens"], total_cost="0.002")
*children, root = sorted((Run(**run) for run in runs.values()), key=lambda run: run.parent_run_id is None)
root.child_runs = sorted(children, key=lambda run: run.start_time)
root.prompt_tokens, root.completion_tokens = 563, 48
(here / "tree.json").write_text(root.model_dump_json(indent=1, exclude_none=True) + "\n")
