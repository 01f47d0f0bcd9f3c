"""Draw docs/assets: what the demo and the first run of a new suite print. ``python -m scripts.terminal_picture``.

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

ASSETS = Path(__file__).resolve().parent.parent / "docs" / "assets"
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

        def printed(*arguments: str) -> str:
            done = subprocess.run([*agentunit, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
            return re.sub(r"\d{8}-\d{6}-[0-9a-f]{4}", "20261116-101500-7c1e", done.stdout)

        printed("init")
        draw("first-verdict", "agentunit run suite.py", printed(*COMMAND))
        draw("findings", "agentunit show demo", printed("show", "demo"))
    return 0


def draw(name: str, command: str, printed: str) -> None:
    """Draw what a command printed as one picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(printed.strip()))
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    template = template.replace("font-family: Fira Code, monospace", f"font-family: {FONTS}")
    picture = console.export_svg(title="agentunit", code_format=template, unique_id=name)
    target = ASSETS / f"{name}.svg"
    target.write_text(re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE), encoding="utf-8")
    print(f"wrote {target.name}: {len(picture):,} characters")


if __name__ == "__main__":
    sys.exit(main())
