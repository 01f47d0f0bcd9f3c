"""Verbs of earlier versions, as they are spelled now. They work in this edition, each with a hint on standard error."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise

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
    now, home = _SPELLED[verb](words)
    say_moved(f"'agentunit {verb}'", f"'agentunit {home}'")
    return now


def _demo(words: Sequence[str]) -> tuple[list[str], str]:
    if saved := _values(words, "--save"):
        if os.path.exists(saved[-1]):
            raise click.UsageError(f"{saved[-1]} exists already: name a file that does not")
        return ["convert", DEMO, "--out", saved[-1]], f"convert {DEMO} --out FILE"
    return ["show", DEMO, *words], f"show {DEMO}"


def _gate(words: Sequence[str]) -> tuple[list[str], str]:
    has_gate = any(word.startswith(("-g", "--gate")) for word in words)
    return ["show", *words, *([] if has_gate else ["--gate", "stored"])], "show RUN --gate EXPR|stored"


def _import(words: Sequence[str]) -> tuple[list[str], str]:
    """Three things were imported: labels of a run, exported runs, and the tests of other tools."""
    file = next((word for word in words if os.path.isfile(word)), words[0] if words else "")
    others = [word for word in words if word != file]
    if runs := _values(others, "--run"):
        return ["label", runs[-1], "--labels", file, *_without(others, "--run")], "label RUN --labels FILE"
    if os.path.isfile(file) and (is_table(file) or is_portable(file)):
        return ["runs", "--import", file, *others], "runs --import FILE"
    rest = _without(_without(others, "--out"), "--store")
    return ["init", *_values(others, "--out"), "--from", file, *rest], "init FOLDER --from FILE"


def _values(words: Sequence[str], option: str) -> list[str]:
    """The values of an option among words.

    >>> _values(["labels.csv", "--run", "last", "--run=main"], "--run")
    ['last', 'main']
    """
    after = [value for word, value in pairwise(words) if word == option]
    return after + [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]


def _without(words: Sequence[str], option: str) -> list[str]:
    pairs = zip(("", *words), words, strict=False)
    return [word for before, word in pairs if option not in (before, word) and not word.startswith(f"{option}=")]


_SPELLED: dict[str, Callable[[Sequence[str]], tuple[list[str], str]]] = {
    "demo": _demo,
    "gate": _gate,
    "import": _import,
    "redact": lambda words: (["convert", "--mask", *words], "convert --mask"),
    "validity": lambda words: (["label", "--measure", *words], "label --measure"),
}
