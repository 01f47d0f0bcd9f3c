"""Options that several verbs share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from agentunit.cli.main import EXIT_ERRORS
from agentunit.store.schema import StoreError
from agentunit.store.sqlite import DEFAULT_PATH, Store

_Command = TypeVar("_Command", bound=Callable[..., Any])


class InputFailure(click.ClickException):
    """Input that cannot be read, or output that cannot be written: one line, exit code 3."""

    exit_code = EXIT_ERRORS


def store_option(command: _Command) -> _Command:
    """``--store``: where runs are kept."""
    return click.option(
        "--store",
        "store_path",
        envvar="AGENTUNIT_STORE",
        default=DEFAULT_PATH,
        show_default=True,
        metavar="FILE",
        help="Where runs are kept (also AGENTUNIT_STORE).",
    )(command)


def open_store(path: str, *, must_exist: bool = True) -> Store:
    """The store of a command; one that is not there yet is an error unless the command makes it."""
    if must_exist and not os.path.exists(path):
        raise InputFailure(f"no runs are kept in {path} yet ('agentunit run SUITE' makes some; --store names another)")
    try:
        return Store(path)
    except StoreError as error:
        raise InputFailure(str(error)) from None
    except OSError as error:
        raise InputFailure(f"cannot open the store {path}: {(error.strerror or str(error)).lower()}") from None
