"""What a file says about its run, checked: anybody may have written it, and it is read wherever a run is."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from agentunit.store.runs import RunHeader

# The last second that a calendar of four-digit years knows.
_LAST_MOMENT_S = 253402300799


class _KnownSettings(Struct):
    """The settings that are read as what they are; of the others, each reader leaves out what is none."""

    metrics: list[str] | None = None
    metric_infos: dict[str, dict[str, Any]] | None = None
    gates: list[str] | None = None
    dataset_fingerprint: str | None = None
    users: list[str] | None = None


def check_foreign(header: RunHeader) -> None:
    """Refuse what no run has with a ``ValueError``, and note that the run came from a file."""
    for name in ("created_at", "finished_at"):
        moment_s = getattr(header, name)
        if moment_s is not None and not (isfinite(moment_s) and 0 <= moment_s <= _LAST_MOMENT_S):
            raise ValueError(f"{name} must be seconds since 1970; received {moment_s!r}")
    if header.n_done < 0 or header.n_failed < 0:
        raise ValueError(f"a count must not be negative; received {min(header.n_done, header.n_failed)}")
    msgspec.convert(header.settings, _KnownSettings)
    # Whatever the file says about itself: nobody knows who wrote it.
    header.settings = {**header.settings, "foreign": True}
