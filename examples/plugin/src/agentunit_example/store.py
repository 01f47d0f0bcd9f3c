"""A store: the runs of a team by name, whatever folder they lie in."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from agentunit.store.database import Database
from agentunit.store.schema import StoreError
from agentunit.store.sqlite import SqliteDatabase


def open_team(address: str, *, read_only: bool) -> Database:
    """The runs of a team: team://NAME is the file NAME.db in the folder that TEAM_RUNS names."""
    name = urlsplit(address).netloc
    folder = os.environ.get("TEAM_RUNS")
    if not name or folder is None:
        raise StoreError(f"a store of a team is team://NAME, and TEAM_RUNS names its folder; received {address!r}")
    return SqliteDatabase(os.path.join(folder, f"{name}.db"), read_only=read_only)
