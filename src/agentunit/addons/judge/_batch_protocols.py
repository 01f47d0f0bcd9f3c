"""The batch APIs of OpenAI and Anthropic: hand in requests, ask how far they are, fetch the results."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from agentunit.addons.judge._address import Address
from agentunit.addons.judge._batch_journal import BatchJournal, OpenBatch, Result
from agentunit.addons.judge._completions import clipped, read_error
from agentunit.addons.judge._profiles import profile_named
from agentunit.backends.http_client import HttpClient, HttpFailure, Response

_TIMEOUT_S = 300.0
_LISTED = 100
_CLOCKS_DIFFER_S = 300.0


class BatchFailure(Exception):
    """A request of the batch API failed; ``status`` is that of the response, ``None`` where there was none."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is; ``problem`` is why it came to nothing, ``outputs`` where its results are."""

    is_ended: bool
    outputs: tuple[str, ...] = ()
    problem: str | None = None


class BatchApi:
    """OpenAI's batches: a file of requests, a batch of it, a file of results.

    ``finds_surely``: a batch that ``find`` finds is the one that was handed in, by what it is made of.
    """

    finds_surely = True

    def __init__(self, client: HttpClient, address: Address) -> None:
        self._client = client
        self._address = address

    async def submit(self, batch: OpenBatch, bodies: Sequence[tuple[str, dict[str, Any]]], log: BatchJournal) -> str:
        """Hand in requests by their ids, and note every name as soon as it is known; the id of the batch."""
        endpoint = profile_named(self._address.profile).batch_endpoint
        lines = [
            msgspec.json.encode({"custom_id": custom_id, "method": "POST", "url": endpoint, "body": body})
            for custom_id, body in bodies
        ]
        boundary = secrets.token_hex(16)
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'.encode(),
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="judge.jsonl"\r\n'.encode(),
            b"Content-Type: application/jsonl\r\n\r\n" + b"\n".join(lines) + b"\n\r\n",
            f"--{boundary}--\r\n".encode(),
        ]
        kind = f"multipart/form-data; boundary={boundary}"
        file = await self._json("POST", "/files", b"".join(parts), kind)
        log.name_file(batch.number, str(file["id"]))
        wanted = {"input_file_id": file["id"], "endpoint": endpoint, "completion_window": "24h"}
        made = await self._json("POST", "/batches", msgspec.json.encode(wanted))
        return str(made["id"])

    async def find(self, batch: OpenBatch, known: set[str]) -> str | None:
        """The id of a batch that was handed in before its id could be noted; ``None`` when the server has none."""
        if batch.input_file is None:
            return None
        listed = await self._json("GET", f"/batches?limit={_LISTED}")
        of_file = (each for each in listed.get("data", ()) if each.get("input_file_id") == batch.input_file)
        return next((str(each["id"]) for each in of_file if each["id"] not in known), None)

    async def progress(self, batch_id: str) -> BatchProgress:
        """How far a batch is."""
        told = await self._json("GET", f"/batches/{batch_id}")
        if told.get("status") == "failed":
            listed = (told.get("errors") or {}).get("data") or [{}]
            return BatchProgress(
                True, problem=f"the server refused the batch: {clipped(str(listed[0].get('message')))}"
            )
        is_ended = told.get("status") in ("completed", "expired", "cancelled")
        files = (told.get("output_file_id"), told.get("error_file_id"))
        return BatchProgress(is_ended, tuple(f"/files/{each}/content" for each in files if each) if is_ended else ())

    async def results(self, progress: BatchProgress) -> list[Result]:
        """The responses of a batch that has ended."""
        found: list[Result] = []
        for place in progress.outputs:
            for line in await self._lines(place):
                response = line.get("response")
                if not isinstance(response, dict):
                    response = {"body": {"error": line.get("error")}}
                code = response.get("status_code")
                status = code if isinstance(code, int) and 100 <= code < 600 else 500
                found.append(Result(str(line.get("custom_id")), status, msgspec.json.encode(response.get("body"))))
        return found

    async def _json(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> dict[str, Any]:
        response = await self._sent(method, path, body, kind)
        try:
            found = msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise BatchFailure(f"the response to {path.partition('?')[0]} is not JSON: {clipped(response.body)!r}")
        return found

    async def _lines(self, path: str) -> list[dict[str, Any]]:
        response = await self._sent("GET", path, b"", "application/json")
        try:
            lines = [msgspec.json.decode(line) for line in response.body.splitlines() if line.strip()]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BatchFailure("the results of the batch are not lines of JSON") from None
        return [line for line in lines if isinstance(line, dict)]

    async def _sent(self, method: str, path: str, body: bytes, kind: str) -> Response:
        place, _, query = path.partition("?")
        target = self._address.beside(place)
        target += f"{'&' if '?' in target else '?'}{query}" if query else ""
        sending = self._client.send(target, body, method=method, headers={"Content-Type": kind})
        try:
            response = await asyncio.wait_for(sending, _TIMEOUT_S)
        except asyncio.TimeoutError:
            raise BatchFailure(f"no answer within {_TIMEOUT_S:g} s") from None
        except HttpFailure as error:
            raise BatchFailure(str(error)) from None
        response = response._replace(body=self._address.hidden(response.body))
        if not 200 <= response.status < 300:
            raise BatchFailure(f"HTTP {response.status}: {read_error(response.body)}", response.status)
        return response


class AnthropicBatchApi(BatchApi):
    """Anthropic's message batches: the requests themselves, and a file of results."""

    finds_surely = False

    async def submit(self, batch: OpenBatch, bodies: Sequence[tuple[str, dict[str, Any]]], log: BatchJournal) -> str:
        """Hand in requests by their ids; the id of the batch."""
        requests = [{"custom_id": custom_id, "params": body} for custom_id, body in bodies]
        made = await self._json("POST", "/v1/messages/batches", msgspec.json.encode({"requests": requests}))
        return str(made["id"])

    async def find(self, batch: OpenBatch, known: set[str]) -> str | None:
        """A batch of as many requests that was made since; whose results they are is checked by their ids."""
        listed = await self._json("GET", f"/v1/messages/batches?limit={_LISTED}")
        for each in listed.get("data", ()):
            counts = each.get("request_counts") or {}
            made_at = _seconds(each.get("created_at"))
            # It was handed in within the time that this takes, whatever other batches the account has.
            first, last = batch.created_at - _CLOCKS_DIFFER_S, batch.created_at + _TIMEOUT_S + _CLOCKS_DIFFER_S
            is_then = made_at is not None and first <= made_at <= last
            if is_then and sum(counts.values()) == batch.n_requests and each.get("id") not in known:
                return str(each["id"])
        return None

    async def progress(self, batch_id: str) -> BatchProgress:
        """How far a batch is."""
        told = await self._json("GET", f"/v1/messages/batches/{batch_id}")
        if told.get("processing_status") != "ended":
            return BatchProgress(False)
        # The address of the results names its path; their host is the one that was named.
        path = urlsplit(str(told.get("results_url") or "")).path.removeprefix(self._address.base)
        return BatchProgress(True, (path or f"/v1/messages/batches/{batch_id}/results",))

    async def results(self, progress: BatchProgress) -> list[Result]:
        """The responses of a batch that has ended."""
        found: list[Result] = []
        for line in await self._lines(progress.outputs[0]):
            result = line.get("result")
            if not isinstance(result, dict):
                continue
            if result.get("type") == "succeeded":
                status, body = 200, result.get("message")
            elif result.get("type") == "errored":
                error = result.get("error")
                kinds = [each.get("type") for each in _nested(error)]
                status, body = (400 if "invalid_request_error" in kinds else 500), error
            else:
                continue  # expired or canceled: not answered
            found.append(Result(str(line.get("custom_id")), status, msgspec.json.encode(body)))
        return found


def _nested(error: Any) -> Iterator[dict[str, Any]]:
    """An error, and the one in it."""
    while isinstance(error, dict):
        yield error
        error = error.get("error")


def _seconds(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def batch_api(kind: Literal["openai", "anthropic"], client: HttpClient, address: Address) -> BatchApi:
    """The batch API of this kind."""
    return AnthropicBatchApi(client, address) if kind == "anthropic" else BatchApi(client, address)
