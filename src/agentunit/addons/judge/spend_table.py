"""What a judge may have cost a run: noted before it is spent, so that a killed process hides none of it."""

from __future__ import annotations

from agentunit.store.database import Database
from agentunit.store.run_store import RunStore

_TABLE = "judge_spend"
_CREATE = f"""CREATE TABLE IF NOT EXISTS {_TABLE} (
    run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    judge TEXT NOT NULL,
    call TEXT NOT NULL,
    usd REAL NOT NULL,
    PRIMARY KEY (run_id, judge, call)
)"""
# Calls that are over, added up; every other row is the most that a call under way can cost.
_SETTLED = ""
_ADD = (
    f"INSERT INTO {_TABLE} (run_id, judge, call, usd) VALUES (?, ?, ?, ?) ON CONFLICT (run_id, judge, call) DO UPDATE"
)


class SpendLedger:
    """The spending of one judge on one run, with a connection of its own: it belongs to the thread that makes it.

    What a killed process has set aside stays so, for it may have been billed.
    """

    def __init__(self, database: Database, run_id: str, judge: str) -> None:
        self._database, self._run_id, self._judge = database, run_id, judge
        if not database.has_table(_TABLE):
            database.execute(_CREATE)
        rows = database.execute(f"SELECT call, usd FROM {_TABLE} WHERE run_id = ? AND judge = ?", (run_id, judge))
        self._usd: dict[str, float] = dict(rows)
        self.total_usd = sum(self._usd.values())

    def with_call(self, call: str, usd: float) -> float:
        """What the run would have cost with a call of this price; one that was set aside before counts once."""
        return self.total_usd + usd - self._usd.get(call, 0.0)

    def set_aside(self, call: str, usd: float) -> None:
        """Note the most that a call can cost, before it is made."""
        self._database.change(f"{_ADD} SET usd = excluded.usd", (self._run_id, self._judge, call, usd))
        self.total_usd = self.with_call(call, usd)
        self._usd[call] = usd

    def settle(self, call: str, usd: float) -> None:
        """Note what a call has cost in the end."""
        key = (self._run_id, self._judge)
        with self._database.transaction():
            self._database.change(f"DELETE FROM {_TABLE} WHERE run_id = ? AND judge = ? AND call = ?", (*key, call))
            self._database.change(f"{_ADD} SET usd = {_TABLE}.usd + excluded.usd", (*key, _SETTLED, usd))
        self.total_usd = self.with_call(call, usd)
        self._usd.pop(call, None)

    def close(self) -> None:
        """Let go of the file or the connection."""
        self._database.close()


def spend_ledger(store: RunStore, run_id: str, judge: str) -> SpendLedger:
    """What a judge may have cost a run of a store so far; it belongs to the thread that asks for it."""
    return SpendLedger(store.database.reopened(read_only=False), run_id, judge)
