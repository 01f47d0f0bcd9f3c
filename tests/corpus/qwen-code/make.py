"""A session of Qwen Code 0.15.10 (npm install @qwen-code/qwen-code@0.15.10), with Gemini's protocol."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from coders import PROMPT, record  # noqa: E402

made = record(
    ["qwen", "--auth-type", "gemini", "-m", "gemini-2.5-pro", "--yolo", "-p", PROMPT],
    {".qwen/settings.json": "{}"},
    {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "ADDRESS"},
    ".qwen/projects/*/chats/*.jsonl",
)
made.pop("printed")
(HERE / "session.jsonl").write_text(next(iter(made.values())), encoding="utf-8")
