"""Logs of Inspect, as JSON and as archives whose files are deflated or Zstandard."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

ZSTANDARD = 93
GRADING = ("scorer", "scorers")


def count(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json":
        samples = json.loads(path.read_text("utf-8")).get("samples") or []
    else:
        with zipfile.ZipFile(path) as archive:
            files = [file for file in archive.infolist() if file.filename.startswith("samples/")]
            samples = [json.loads(content(archive, path, file)) for file in files]
    return [case_of(sample) for sample in samples]


def content(archive: zipfile.ZipFile, path: Path, file: zipfile.ZipInfo) -> bytes:
    if file.compress_type != ZSTANDARD:
        return archive.read(file)
    import zstandard

    raw = path.read_bytes()
    name_length, extra_length = struct.unpack("<HH", raw[file.header_offset + 26 : file.header_offset + 30])
    start = file.header_offset + 30 + name_length + extra_length
    return zstandard.ZstdDecompressor().decompressobj().decompress(raw[start : start + file.compress_size])


def case_of(sample: dict[str, Any]) -> dict[str, Any]:
    case: dict[str, Any] = {}
    if isinstance(sample["input"], str):
        case["question"] = sample["input"]
    messages = sample.get("messages") or []
    answered = [message for message in messages if message["role"] == "tool"]
    if all(message.get("function") for message in answered):
        case["tool_calls"] = [
            [message["function"], "error" if message.get("error") or message.get("tool_error") else "success"]
            for message in answered
        ]
    choices = (sample.get("output") or {}).get("choices") or []
    said = choices[0]["message"]["content"] if choices else None
    if isinstance(said, str) and said:
        case["answer"] = said
    # What graders used is part of the sample's sum: only samples without a grading model are counted.
    usages = list((sample.get("model_usage") or {}).values())
    if len(usages) == 1 and not graded_by_model(sample.get("events") or []):
        counts = usages[0]
        beside = sum(counts.get(f"input_tokens_cache_{name}") or 0 for name in ("read", "write"))
        within = counts["total_tokens"] == counts["input_tokens"] + counts["output_tokens"]
        case["tokens"] = {
            "input": counts["input_tokens"] + (0 if within else beside),
            "output": counts["output_tokens"],
        }
    return case


def graded_by_model(events: list[dict[str, Any]]) -> bool:
    """Whether a model was called after the scoring began."""
    begun = [place for place, event in enumerate(events) if event.get("type") in GRADING]
    return bool(begun) and any(event["event"] == "model" for event in events[begun[0] :])
