"""What MkDocs needs to build the site from docs/*.md as they are: ``make site``.

Files of the project beside docs/ that pages link to become pages of the site, and what GitHub reads as a nested list
becomes one for Python-Markdown, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
# Files outside of docs/, each with its page.
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md", "SECURITY.md": "security.md"}
_CODE = {".py": "python", ".sh": "bash", ".yaml": "yaml"}
# The first page has nothing to navigate within, and the comparison needs the width for its table.
_WIDE = {"index.md": ["navigation", "toc"], "comparison.md": ["navigation", "toc"]}
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)]*)?\))")
_FENCE = re.compile(r"^(\s*)(```|~~~)")
_NESTED = re.compile(r"^((?:  )+)([-*] |\d+\. )")


def on_config(config: Any) -> Any:
    """List every example, and every page that has no place yet among the how-tos."""
    named = str(config.nav)
    unplaced = sorted(page.name for page in (ROOT / "docs").glob("*.md") if f"'{page.name}'" not in named)
    pages = [f"examples/{readme.parent.name}.md" for readme in sorted((ROOT / "examples").glob("*/README.md"))]
    for entry in config.nav:
        if "Examples" in entry:
            entry["Examples"] = [entry["Examples"], *pages]
        if "How-to" in entry:
            entry["How-to"] += unplaced
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made from files outside of docs/."""
    for name, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for readme in sorted((ROOT / "examples").glob("*/README.md")):
        page = f"examples/{readme.parent.name}.md"
        files.append(File.generated(config, page, content=_with_code(readme)))
    overview = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "examples/index.md", content=overview))
    return files


def _with_code(readme: Path) -> str:
    """The text of an example, and below it the files that a reader on GitHub would open next."""
    shown = (path for path in sorted(readme.parent.iterdir()) if path.suffix in _CODE)
    code = (f"## {path.name}\n\n```{_CODE[path.suffix]}\n{path.read_text(encoding='utf-8')}```\n" for path in shown)
    return "\n".join([readme.read_text(encoding="utf-8"), *code])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page, with links that lead to pages of the site and lists as Python-Markdown wants them."""
    if page.file.src_uri in _WIDE:
        page.meta["hide"] = _WIDE[page.file.src_uri]
    source = _source_of(page.file.src_uri)
    depth = "../" * page.file.src_uri.count("/")

    def to_page(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = (source.parent / target).resolve()
        if not path.is_relative_to(ROOT):
            return found[0]
        place = _page_of(path.relative_to(ROOT))
        return found[0] if place is None else f"{found[1]}{depth}{place}{found[3]}"

    return "\n".join(_as_lists(_LINK.sub(to_page, markdown).splitlines()))


def _source_of(page: str) -> Path:
    """The file that a page was made from."""
    for name, made in OUTSIDE.items():
        if made == page:
            return ROOT / name
    if page == "examples/index.md":
        return ROOT / "examples" / "README.md"
    if page.startswith("examples/"):
        return ROOT / "examples" / Path(page).stem / "README.md"
    return ROOT / "docs" / page


def _page_of(path: Path) -> str | None:
    """The page of a file of the project, below the root of the site; None where it has none."""
    name = path.as_posix()
    if name in OUTSIDE:
        return OUTSIDE[name]
    if name == "README.md":
        return "index.md"
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    if name in ("examples", "examples/README.md"):
        return "examples/index.md"
    if name.startswith("examples/"):
        return f"examples/{path.parts[1]}.md"
    return None


def _as_lists(lines: list[str]) -> list[str]:
    """Nested entries by four spaces, and an empty line before a list that follows a paragraph."""
    made: list[str] = []
    fenced = False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            nested = _NESTED.match(line)
            before = made[-1] if made else ""
            if nested:
                line = " " * (2 * len(nested[1])) + line[len(nested[1]) :]
            elif re.match(r"  \S", line) and (not before.strip() or before.startswith("    |")):
                # A paragraph or a table that belongs to an entry of a list.
                line = "  " + line
            if re.match(r"[-*] |\d+\. ", line) and before and not re.match(r"\s|[-*] |\d+\. |#|>", before):
                made.append("")
        made.append(line)
    return made
