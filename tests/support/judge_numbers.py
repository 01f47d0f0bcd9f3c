"""Token counts and embeddings of the judge server: simple, and the same everywhere."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from typing import Any

_EMBEDDING_SIZE = 64


def n_tokens(text: str) -> int:
    """A token every four characters, rounded up."""
    return math.ceil(len(text) / 4)


def embedded(text: str) -> list[float]:
    """Which words a text has, hashed into 64 numbers of length 1: alike texts get alike numbers, anywhere, always."""
    numbers = [0.0] * _EMBEDDING_SIZE
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        numbers[digest[0] % _EMBEDDING_SIZE] += 1.0 if digest[1] % 2 else -1.0
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers] if length else [1.0, *[0.0] * (_EMBEDDING_SIZE - 1)]


def embeddings_reply(body: dict[str, Any]) -> dict[str, Any]:
    """The response to a request for embeddings, as numbers or in base64."""
    given = body.get("input", "")
    # A list of numbers is one text as tokens, a list of lists several of them.
    one = isinstance(given, str) or (isinstance(given, list) and bool(given) and isinstance(given[0], int))
    texts = [given] if one else given
    data = []
    for index, text in enumerate(texts):
        numbers: Any = embedded(text if isinstance(text, str) else " ".join(map(str, text)))
        if body.get("encoding_format") == "base64":
            numbers = base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
        data.append({"object": "embedding", "index": index, "embedding": numbers})
    count = sum(n_tokens(text) if isinstance(text, str) else len(text) for text in texts)
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "model": body.get("model", "judge-1"), "data": data, "usage": usage}
