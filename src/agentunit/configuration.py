"""``agentunit.configure``: settings for the whole process, in place of the environment's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from agentunit.backends.media_sources import configure_media_root
from agentunit.backends.services import configure_judge

if TYPE_CHECKING:
    from agentunit.addons.judge.settings import JudgeSettings

_UNCHANGED: Any = object()


def configure(
    *,
    judge: JudgeSettings | Mapping[str, Any] | None = _UNCHANGED,
    media_root: str | os.PathLike[str] | None = _UNCHANGED,
) -> None:
    """Configure the judge that quality metrics and rubrics ask: explicit configuration is consent to sending.

    ``judge`` is a ``JudgeSettings`` or some of its fields (``url``, ``model``, ``api_key``, ``repeats``,
    ``max_spend_usd``, …), which go before ``AGENTUNIT_JUDGE_…`` one by one. ``media_root`` is the folder that pictures,
    videos and recordings named in files may be read from. ``None`` forgets what was set here.

    >>> configure(judge={"url": "http://127.0.0.1:8000/v1", "model": "qwen3-8b"})
    >>> from agentunit.backends.services import configured
    >>> configured().model
    'qwen3-8b'
    >>> configure(judge=None)
    """
    if media_root is not _UNCHANGED:
        configure_media_root(media_root)
    if judge is _UNCHANGED:
        return
    if judge is None:
        configure_judge()
        return
    if is_dataclass(judge) and not isinstance(judge, type):
        judge = {field.name: getattr(judge, field.name) for field in fields(judge)}
    if not isinstance(judge, Mapping) or not judge:
        raise TypeError(f"configure: judge must be settings of a judge, or None; received {judge!r:.80}")
    configure_judge(**judge)
