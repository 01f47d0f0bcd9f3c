"""Verbs of earlier versions, as they are spelled now. They work in this edition, each with a hint on standard error."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

import click

from agentunit.cli.options import say_moved
from agentunit.datasets.demo import DEMO
from agentunit.engine.scoring.score_rows import is_table
from agentunit.store.portable import is_portable


def as_spelled_now(verb: str, *words: str) -> list[str]:
    """A command line that begins with such a verb, as it is written now; what is new in it is said.

    >>> as_spelled_now("redact", "spans.json", "--out", "shared.jsonl")
    ['convert', '--mask', 'spans.json', '--out', 'shared.jsonl']
    """
    now, home = _SPELLED[verb](list(words))
    say_moved(f"'agentunit {verb}'", f"'agentunit {home}'")
    return now


def _demo(words: list[str]) -> tuple[list[str], str]:
    said, rest = _taken(words, "--save")
    if said.save is None:
        return ["show", DEMO, *rest], f"show {DEMO}"
    if os.path.exists(said.save):
        raise click.UsageError(f"{said.save} exists already: name a file that does not")
    return ["convert", DEMO, "--out", said.save], f"convert {DEMO} --out FILE"


def _gate(words: list[str]) -> tuple[list[str], str]:
    has_gate = any(word.startswith(("-g", "--gate")) for word in words)
    return ["show", *([] if has_gate else ["--gate", "stored"]), *words], "show RUN --gate EXPR|stored"


def _import(words: list[str]) -> tuple[list[str], str]:
    """Three things were imported: labels of a run, exported runs, and the tests of other tools."""
    file = next(filter(os.path.isfile, words), words[0] if words else "")
    others = [word for word in words if word != file]
    if "--run" in words:
        said, rest = _taken(others, "--run")
        return ["label", str(said.run), "--labels", file, *rest], "label RUN --labels FILE"
    if os.path.isfile(file) and (is_table(file) or is_portable(file)):
        return ["runs", "--import", file, *others], "runs --import FILE"
    said, rest = _taken(others, "--out", "--store")
    return ["init", *([said.out] if said.out else []), "--from", file, *rest], "init FOLDER --from FILE"


def _taken(words: list[str], *options: str) -> tuple[Namespace, list[str]]:
    """The values of some options among words, and the other words.

    >>> _taken(["labels.csv", "--run", "last", "-m", "cost"], "--run")
    (Namespace(run='last'), ['labels.csv', '-m', 'cost'])
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    for option in options:
        parser.add_argument(option)
    return parser.parse_known_args(words)


_SPELLED: dict[str, Callable[[list[str]], tuple[list[str], str]]] = {
    "demo": _demo,
    "gate": _gate,
    "import": _import,
    "redact": lambda words: (["convert", "--mask", *words], "convert --mask"),
    "validity": lambda words: (["label", "--measure", *words], "label --measure"),
}
