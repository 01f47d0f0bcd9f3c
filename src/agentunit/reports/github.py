"""GitHub Actions: what a run says on the page of a workflow."""

from __future__ import annotations

import os
from collections.abc import Callable

_VARIABLE = "GITHUB_STEP_SUMMARY"


def write_step_summary(make_markdown: Callable[[], str]) -> bool:
    """Append to the summary of the current workflow step, if there is one; says whether there is.

    Outside GitHub Actions, or when the summary cannot be written, nothing happens: a report that has no place to go
    must not fail the run it reports.
    """
    path = os.environ.get(_VARIABLE)
    if not path:
        return False
    markdown = make_markdown()
    try:
        with open(path, "a", encoding="utf-8", errors="replace") as stream:
            stream.write(markdown.rstrip("\n") + "\n\n")
    except OSError:
        return False
    return True
