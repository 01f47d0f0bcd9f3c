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

    What a killed process has set aside stays so, for it may have been billed. Of several processes that share a run
    each sees what the others have noted: it is read and added to in one step.
    """

    def __init__(self, database: Database, run_id: str, judge: str) -> None:
        self._database, self._run_id, self._judge = database, run_id, judge
        if not database.has_table(_TABLE):
            database.execute(_CREATE)
        self.total_usd = sum(self._noted().values())

    def set_aside(self, call: str, usd: float, cap_usd: float) -> bool:
        """Note the most that a call can cost, before it is made; False where the run could then cost more than a cap.

        A call that was set aside before counts once.
        """
        with self._database.transaction():
            self._add_to_settled(0.0)
            noted = self._noted()
            fits = sum(noted.values()) - noted.get(call, 0.0) + usd <= cap_usd
            if fits:
                noted[call] = usd
                self._database.change(f"{_ADD} SET usd = excluded.usd", (self._run_id, self._judge, call, usd))
        self.total_usd = sum(noted.values())
        return fits

    def settle(self, call: str, usd: float) -> None:
        """Note what a call has cost in the end."""
        with self._database.transaction():
            self._add_to_settled(usd)
            key = (self._run_id, self._judge, call)
            self._database.change(f"DELETE FROM {_TABLE} WHERE run_id = ? AND judge = ? AND call = ?", key)
            noted = self._noted()
        self.total_usd = sum(noted.values())

    def _add_to_settled(self, usd: float) -> None:
        # First in each transaction, if only with nothing: others wait here until it ends.
        key = (self._run_id, self._judge, _SETTLED)
        self._database.change(f"{_ADD} SET usd = {_TABLE}.usd + excluded.usd", (*key, usd))

    def _noted(self) -> dict[str, float]:
        key = (self._run_id, self._judge)
        return dict(self._database.execute(f"SELECT call, usd FROM {_TABLE} WHERE run_id = ? AND judge = ?", key))

    def close(self) -> None:
        """Let go of the file or the connection."""
        self._database.close()


def spend_ledger(store: RunStore, run_id: str, judge: str) -> SpendLedger:
    """What a judge may have cost a run of a store so far; it belongs to the thread that asks for it."""
    return SpendLedger(store.database.reopened(read_only=False), run_id, judge)
