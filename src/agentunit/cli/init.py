"""``agentunit init``: a small working suite to start from."""

from __future__ import annotations

import json
import os
import shlex
from importlib.resources import files
from pathlib import Path

import click

from agentunit import doors
from agentunit.cli.options import InputFailure, Verb
from agentunit.installation import remote_install_command, wheels_command
from agentunit.reports.printable import printable

_SUITES = ("suite.py", "suite.yaml", "suite.yml")
_WORKFLOW = Path(".github", "workflows", "agentunit.yml")
_IGNORED = ".agentunit/"
_ALREADY_IGNORED = {".agentunit", ".agentunit/", "/.agentunit", "/.agentunit/", "**/.agentunit", "**/.agentunit/"}


@click.command(cls=Verb)
@click.argument("folder", required=False, metavar="[FOLDER]", type=click.Path(file_okay=False, path_type=Path))
@click.option("--yaml", "as_yaml", is_flag=True, help="Write the suite as YAML instead of Python.")
@click.option("--ci", is_flag=True, help="Write a workflow for GitHub Actions that compares with main's baseline.")
@click.option(
    "--from",
    "tests",
    metavar="FILE",
    help="Write a suite of another tool's tests instead (FOLDER is named after FILE where none is named).",
)
def init(folder: Path | None, as_yaml: bool, ci: bool, tests: str | None) -> None:
    """Write a small working suite: an agent with one tool and one bug, cases that find it, gates that say so.

    It runs offline. Nothing is ever overwritten. With --ci, a suite that is there already stays. The workflow runs it
    on main, whose run is the baseline, and on every pull request, which gets one comment that is kept up to date.

    With --from, tests of promptfoo, DeepEval, RAGAS, LangSmith, Langfuse, Inspect or OpenAI evals (YAML, JSON, JSONL,
    CSV) become a suite: dataset.jsonl and suite.yaml. What does not map is listed, and the exit code is 3 then. Nothing
    in the file is run.

    \b
    agentunit init
    agentunit init evals --yaml
    agentunit init --ci
    agentunit init evals --from promptfooconfig.yaml
    """
    if tests is not None:
        if as_yaml or ci:
            raise click.UsageError("--from writes the suite of another tool's tests: leave out --yaml and --ci")
        if not os.path.isfile(tests):
            raise InputFailure(f"{tests}: no such file")
        doors.part("import_cases")(tests, folder)
        return
    folder = folder or Path()
    suite = folder / ("suite.yaml" if as_yaml else "suite.py")
    written = {
        suite: "what is run, how it is measured, what is good enough",
        folder / "my_agent.py": "the agent: replace it with your own",
        folder / "dataset.jsonl": "the cases, one per line",
    }
    filled: dict[str, str] = {}
    install = ""
    if ci:
        root = _repository(folder) or folder
        root = Path() if root == Path.cwd() else root
        own = next((path for path in (suite, *(folder / name for name in _SUITES)) if _exists(path)), None)
        if own is not None:
            suite, written = own, {}
        written[root / _WORKFLOW] = "evaluates every pull request against main"
        inside = suite.resolve().relative_to(root.resolve()).as_posix()
        install = remote_install_command()
        filled = {"@SUITE@": json.dumps(inside), "@INSTALL@": install}
    existing = [path for path in written if _exists(path)]
    if existing:
        raise click.UsageError(
            f"{', '.join(map(str, existing))} exist{'s' if len(existing) == 1 else ''} already: "
            f"nothing was written{'' if ci else ' (agentunit init FOLDER writes elsewhere)'}"
        )
    try:
        for path in written:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = files("agentunit.cli").joinpath("templates").joinpath(f"{path.name}.txt").read_text(encoding="utf-8")
            for place, value in filled.items():
                text = text.replace(place, value)
            # "x" fails where a file has appeared meanwhile, so that nothing is overwritten even then.
            with open(path, "x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
        ignoring = keep_runs_out_of_git(folder)
    except OSError as error:
        raise InputFailure(f"cannot write {error.filename}: {(error.strerror or str(error)).lower()}") from None
    width = max(len(str(folder)) + 16, *(len(str(path)) + 2 for path in written))
    for path, meaning in written.items():
        click.echo(printable(f"wrote {path!s:<{width}} {meaning}"))
    if ignoring is not None:
        click.echo(printable(f"added {_IGNORED} to {ignoring}, so that runs stay out of git"))
    if ci:
        click.echo(f"check its Install step, which says: {install}")
        if " wheels/" in install:
            click.echo(f"and commit the wheels that it installs: {wheels_command()}")
    click.echo(printable(f"next: agentunit run {shlex.quote(str(suite))}"))


def keep_runs_out_of_git(folder: Path) -> Path | None:
    """Add the store's folder to the .gitignore of the repository around a folder; returns the file if it was changed.

    A folder outside any repository, or one where runs are ignored already, is left alone.
    """
    root = _repository(folder)
    if root is None:
        return None
    file = root / ".gitignore"
    # Bytes that are not text may stand in a comment; they must not keep us from reading the rest.
    content = file.read_text(encoding="utf-8", errors="surrogateescape") if file.exists() else ""
    if _ALREADY_IGNORED & {line.strip() for line in content.splitlines()}:
        return None
    newline = "" if not content or content.endswith("\n") else "\n"
    with open(file, "a", encoding="utf-8") as stream:
        stream.write(f"{newline}{_IGNORED}\n")
    return file


def _repository(folder: Path) -> Path | None:
    here = folder.resolve()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), None)


def _exists(path: Path) -> bool:
    # A link to nowhere does not "exist", and yet writing to it would make a file somewhere else.
    return path.exists() or path.is_symlink()
