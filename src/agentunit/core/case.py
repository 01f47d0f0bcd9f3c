"""One test case: what an agent is asked, and what is known about the right answer."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from agentunit.public import publish


class DatasetCase(Struct, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """One case of a dataset.

    ``expected_output`` is any JSON value; a list of strings means several acceptable answers. ``tools`` are the
    tools the agent may use. ``context`` holds the passages the answer should rest on. ``extra`` keeps the fields
    of a record that this version does not know, so that they survive a round trip.

    A case is a conversation when it has ``turns`` (what the user says, in order: texts, or mappings with ``query`` and
    ``expected_output``) or ``user`` (a function, or a mapping with ``persona`` and ``goal`` that a judge model plays).
    ``query`` is then the first message; see ``agentunit.core.conversation``.

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
    # Any: records of earlier versions may hold other data under these names.
    turns: Any = None
    user: Any = None


class AskedCase(DatasetCase):
    """A case as an agent receives it in a conversation.

    ``query`` is what the user says now, and ``messages`` the conversation up to and with it: mappings with ``role``
    (``user`` or ``assistant``) and ``content``.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)


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


publish("agentunit", DatasetCase)
