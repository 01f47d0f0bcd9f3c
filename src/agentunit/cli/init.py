"""``agentunit init``: a small working suite to start from."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

import click

from agentunit.cli.options import InputFailure

_IGNORED = ".agentunit/"
_ALREADY_IGNORED = {".agentunit", ".agentunit/", "/.agentunit", "/.agentunit/", "**/.agentunit", "**/.agentunit/"}


@click.command()
@click.argument("folder", default=".", metavar="[FOLDER]", type=click.Path(file_okay=False, path_type=Path))
@click.option("--yaml", "as_yaml", is_flag=True, help="Write the suite as YAML instead of Python.")
def init(folder: Path, as_yaml: bool) -> None:
    """Write a small working suite: an agent with one tool and one bug, cases that find it, gates that say so.

    It runs offline. Nothing is ever overwritten.

    \b
    agentunit init
    agentunit init evals --yaml
    """
    suite = "suite.yaml" if as_yaml else "suite.py"
    written = {
        suite: "what is run, how it is measured, what is good enough",
        "my_agent.py": "the agent: put your own in its place",
        "dataset.jsonl": "the cases, one a line",
    }
    existing = [name for name in written if _exists(folder / name)]
    if existing:
        raise click.UsageError(
            f"{', '.join(str(folder / name) for name in existing)} exist{'s' if len(existing) == 1 else ''} already: "
            "nothing was written (agentunit init FOLDER writes elsewhere)"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in written:
            template = files("agentunit.cli").joinpath("templates").joinpath(f"{name}.txt")
            # "x" fails where a file has appeared meanwhile, so that nothing is overwritten even then.
            with open(folder / name, "x", encoding="utf-8", newline="\n") as stream:
                stream.write(template.read_text(encoding="utf-8"))
        ignoring = keep_runs_out_of_git(folder)
    except OSError as error:
        raise InputFailure(f"cannot write {error.filename}: {(error.strerror or str(error)).lower()}") from None
    for name, meaning in written.items():
        click.echo(f"wrote {folder / name!s:<{len(str(folder)) + 16}} {meaning}")
    if ignoring is not None:
        click.echo(f"added {_IGNORED} to {ignoring}, so that runs stay out of git")
    click.echo(f"next: agentunit run {shlex.quote(str(folder / suite))}")


def keep_runs_out_of_git(folder: Path) -> Path | None:
    """Add the store's folder to the .gitignore of the repository around a folder; returns the file if it was changed.

    A folder outside any repository, or one where runs are ignored already, is left alone.
    """
    here = folder.resolve()
    root = next((each for each in (here, *here.parents) if (each / ".git").exists()), None)
    if root is None:
        return None
    file = root / ".gitignore"
    # Bytes that are no text may stand in a comment; they must not keep us from reading the rest.
    content = file.read_text(encoding="utf-8", errors="surrogateescape") if file.exists() else ""
    if _ALREADY_IGNORED & {line.strip() for line in content.splitlines()}:
        return None
    newline = "" if not content or content.endswith("\n") else "\n"
    with open(file, "a", encoding="utf-8") as stream:
        stream.write(f"{newline}{_IGNORED}\n")
    return file


def _exists(path: Path) -> bool:
    # A link to nowhere does not "exist", and yet writing to it would make a file somewhere else.
    return path.exists() or path.is_symlink()
