"""Claude Code 2.1.197 (npm install @anthropic-ai/claude-code@2.1.197): a session, its sub-agent, stream-json."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from coders import PROMPT, record  # noqa: E402

STREAM = ("--model", "claude-sonnet-4-5", "--verbose", "--output-format", "stream-json")
made = record(
    ["claude", "-p", PROMPT, "--allowedTools", "Bash,Write,Task,Agent", *STREAM],
    {},
    {
        "ANTHROPIC_BASE_URL": "ADDRESS",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
    ".claude/projects/**/*.jsonl",
)
(HERE / "stream.jsonl").write_text(made.pop("printed"), encoding="utf-8")
for name, text in made.items():
    target = "subagent.jsonl" if name.startswith("agent-") else "session.jsonl"
    (HERE / target).write_text(text, encoding="utf-8")
