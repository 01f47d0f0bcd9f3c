"""One test case: what an agent is asked, and what is known about the right answer."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class DatasetCase(Struct, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """One case of a dataset.

    ``expected_output`` is any JSON value; a list of strings means several acceptable answers. ``tools`` are the
    tools the agent may use. ``context`` holds the passages the answer should rest on. ``extra`` keeps the fields
    of a record that this version does not know, so that they survive a round trip.

    >>> DatasetCase("q1", "Capital of France?", expected_output="Paris").expected_output
    'Paris'
    """

    id: str = ""
    query: str | None = None
    expected_output: Any = None
    tools: list[Any] | None = None
    context: list[str] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] | None = field(default=None, name="__extra__")


def set_origin(case: DatasetCase, folder: str | None) -> None:
    """Note in which folder the file lies that a case was read from; paths in the case are confined to it.

    The note is no field: it is never written, and nothing in a file can set it.
    """
    vars(case)["origin"] = folder


def origin_of(case: object) -> str | None:
    """The folder of the file that a case was read from; ``None`` for a case that was made in Python.

    >>> case = DatasetCase("q1")
    >>> set_origin(case, "/data")
    >>> origin_of(case), origin_of(DatasetCase("q1")), origin_of({"id": "q1"})
    ('/data', None, None)
    """
    return vars(case).get("origin") if isinstance(case, DatasetCase) else None
