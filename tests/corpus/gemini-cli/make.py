"""A session of Gemini CLI 0.61.0 (npm install @google/gemini-cli@0.61.0)."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from coders import PROMPT, record  # noqa: E402

made = record(
    ["gemini", "-m", "gemini-2.5-pro", "--yolo", "--skip-trust", "-p", PROMPT],
    {".gemini/settings.json": '{"security":{"auth":{"selectedType":"gemini-api-key"}}}'},
    {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "ADDRESS"},
    ".gemini/tmp/*/chats/*.jsonl",
)
made.pop("printed")
(HERE / "session.jsonl").write_text(next(iter(made.values())), encoding="utf-8")
