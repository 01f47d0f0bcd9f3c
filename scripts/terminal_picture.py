"""Draw docs/assets/first-verdict.svg: what the first run of a new suite prints. ``python -m scripts.terminal_picture``.

Rich draws it. Its own template would load fonts from elsewhere, so the fonts of the reader's system are used.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).resolve().parent.parent / "docs" / "assets" / "first-verdict.svg"
WIDTH = 94
GATES = ["--gate", "tool_success >= 0.8"]
COMMAND = ["run", "suite.py", "--metrics", "contains,tool_success", *GATES]
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def main() -> int:
    """Run the commands in an empty folder and draw what they print."""
    agentunit = [sys.executable, "-m", "agentunit"]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*agentunit, "init"], cwd=folder, env=environment, check=True, capture_output=True)
        done = subprocess.run([*agentunit, *COMMAND], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 1:
        print(f"the run should fail by a case (exit code 1); it ended with {done.returncode}: {done.stderr}")
        return 1
    printed = re.sub(r"\d{8}-\d{6}-[0-9a-f]{4}", "20261116-101500-7c1e", done.stdout)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ agentunit run suite.py", style="bold"))
    console.print(Text.from_ansi(printed.strip()))
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    template = template.replace("font-family: Fira Code, monospace", f"font-family: {FONTS}")
    picture = console.export_svg(title="agentunit", code_format=template, unique_id="verdict")
    TARGET.write_text(re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE), encoding="utf-8")
    print(f"wrote {TARGET.name}: {len(picture):,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
