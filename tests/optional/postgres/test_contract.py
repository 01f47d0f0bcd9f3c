"""What every store must do, by PostgreSQL. SQLite: tests/store/test_contract.py."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("store_contract")
pytestmark = pytest.mark.optional

from store_contract import *  # noqa: E402, F403
