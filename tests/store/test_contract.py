"""What every store must do, by the default one. PostgreSQL: tests/optional/postgres."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite("store_contract")

from store_contract import *  # noqa: E402, F403


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "deep" / "runs.db")
