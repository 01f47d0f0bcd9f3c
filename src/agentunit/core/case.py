"""One test case: what an agent is asked, and what is known about the right answer."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class DatasetCase(Struct, forbid_unknown_fields=True, omit_defaults=True):
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
