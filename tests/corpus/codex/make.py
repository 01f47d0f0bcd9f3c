"""A rollout of Codex 0.166.0 (npm install @openai/codex@0.166.0)."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from coders import PROMPT, record  # noqa: E402

CONFIG = """model = "gpt-5-codex"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "scripted"
base_url = "ADDRESS/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""
made = record(
    ["codex", "exec", "--skip-git-repo-check", PROMPT],
    {".codex/config.toml": CONFIG},
    {"SCRIPTED_KEY": "none"},
    ".codex/sessions/**/*.jsonl",
)
made.pop("printed")
(HERE / "rollout.jsonl").write_text(next(iter(made.values())), encoding="utf-8")
