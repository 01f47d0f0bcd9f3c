"""A server's batches: requests are taken in, and answered when the test lets them be."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

Complete = Callable[[dict[str, Any]], dict[str, Any]]
Answer = tuple[int, bytes]


class BatchShelf:
    """Batches as OpenAI and Anthropic have them, at the paths of both.

    ``polls_to_end`` is how often a batch is asked about before it has ended; ``skipped`` requests of each stay without
    a result, ``failing`` ones get status 500, ``garbled`` ones a result that is none. ``submissions`` counts the
    batches that were handed in. Azure has them at paths of its own.
    """

    def __init__(self, polls_to_end: int = 1) -> None:
        self.polls_to_end = polls_to_end
        self.skipped = self.failing = self.garbled = 0
        self.garbles_polls = 0
        self.refuses: str | None = None
        self.submissions = 0
        self._files: dict[str, list[dict[str, Any]]] = {}
        self._batches: dict[str, dict[str, Any]] = {}

    def handle(self, method: str, target: str, data: bytes, complete: dict[str, Complete]) -> Answer | None:
        """The response to a request for batches; ``None`` where it is for something else."""
        path = target.partition("?")[0].replace("/openai/v1/", "/v1/").replace("/openai/", "/v1/")
        if path == "/v1/files" and method == "POST":
            content = data.split(b"\r\n\r\n")[-1].rpartition(b"\r\n--")[0]
            name = f"file-{len(self._files)}"
            self._files[name] = [json.loads(line) for line in content.splitlines() if line.strip()]
            return _ok({"id": name, "purpose": "batch"})
        if path in ("/v1/batches", "/v1/messages/batches") and method == "POST":
            return self._made(path, json.loads(data))
        if path in ("/v1/batches", "/v1/messages/batches"):
            return _ok({"data": [self._told(each) for each in self._batches.values()]})
        if found := re.fullmatch(r"/v1/(?:messages/)?batches/(\w+)", path):
            batch = self._batches.get(found[1])
            if batch is None:
                return 404, b'{"error": {"message": "no such batch"}}'
            batch["polls"] += 1
            if batch["polls"] <= self.garbles_polls:
                return 200, b'{"status": "failed", "errors": ["?"], "processing_status": ["ended"]}'
            return _ok(self._told(batch))
        if found := re.fullmatch(r"/v1/files/out-(\w+)/content", path):
            return self._results(self._batches[found[1]], complete["openai"])
        if found := re.fullmatch(r"/v1/messages/batches/(\w+)/results", path):
            return self._results(self._batches[found[1]], complete["anthropic"])
        return None

    def _made(self, path: str, body: dict[str, Any]) -> Answer:
        if self.refuses is not None:
            return 400, json.dumps({"error": {"message": self.refuses}}).encode()
        self.submissions += 1
        is_openai = path == "/v1/batches"
        requests = self._files[body["input_file_id"]] if is_openai else body["requests"]
        name = f"b{self.submissions}"
        made = {"id": name, "file": body.get("input_file_id"), "requests": requests, "polls": 0, "openai": is_openai}
        self._batches[name] = {**made, "made_at_s": time.time()}
        return _ok(self._told(self._batches[name]))

    def add_of_somebody_else(self, n_requests: int) -> None:
        """A batch of the same account that another program has handed in to Anthropic just now."""
        params = {"system": "?", "messages": [{"role": "user", "content": "?"}]}
        requests = [{"custom_id": f"other-{number}", "params": params} for number in range(n_requests)]
        made = {"id": "other", "file": None, "requests": requests, "polls": 0, "openai": False}
        self._batches["other"] = {**made, "made_at_s": time.time()}

    def _told(self, batch: dict[str, Any]) -> dict[str, Any]:
        ended = batch["polls"] >= self.polls_to_end
        if batch["openai"]:
            status = "completed" if ended else "in_progress"
            output = f"out-{batch['id']}" if ended else None
            return {"id": batch["id"], "status": status, "output_file_id": output, "input_file_id": batch["file"]}
        counts = {"processing": 0 if ended else len(batch["requests"]), "succeeded": len(batch["requests"]) * ended}
        results = f"https://api.anthropic.com/v1/messages/batches/{batch['id']}/results" if ended else None
        told = {"id": batch["id"], "processing_status": "ended" if ended else "in_progress", "results_url": results}
        made_at = datetime.fromtimestamp(batch["made_at_s"], timezone.utc).isoformat()
        return {**told, "request_counts": counts, "created_at": made_at}

    def _results(self, batch: dict[str, Any], complete: Complete) -> Answer:
        lines = []
        # In another order than they were handed in, as servers do.
        for number, request in enumerate(reversed(batch["requests"])):
            if number < self.skipped:
                continue
            fails = number < self.skipped + self.failing
            if batch["openai"]:
                body = {"error": {"message": "failed"}} if fails else complete(request["body"])
                result: dict[str, Any] = {"response": {"status_code": 500 if fails else 200, "body": body}}
            else:
                error = {"type": "errored", "error": {"type": "error", "error": {"type": "api_error", "message": "?"}}}
                done = error if fails else {"type": "succeeded", "message": complete(request["params"])}
                result = {"result": done}
            if number < self.garbled:
                result = {"response": ["?"], "result": "?", "error": 5}
            lines.append(json.dumps({"custom_id": request["custom_id"], **result}))
        self.failing = self.skipped = self.garbled = 0
        return 200, "\n".join(lines).encode()


def _ok(body: dict[str, Any]) -> Answer:
    return 200, json.dumps(body).encode()
